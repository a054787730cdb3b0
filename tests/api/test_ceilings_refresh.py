"""The daemon measures ceilings again after their device has changed. In these tests the number of threads of the CPU changes."""

import sqlite3
import time

import pytest
from daemon import job
from test_ceilings import KERNEL, ceilings


def refresh_jobs(daemon):
    """Returns the ceilings jobs that the daemon submitted itself."""
    return [item for item in daemon.get("/jobs?kind=ceilings").json()["items"] if item["origin"] == "daemon"]


def wait_for_refresh_job(daemon):
    """Waits for the job that the daemon submits after the pass that detected the change, and returns it."""
    deadline = time.monotonic() + 120
    while not refresh_jobs(daemon):
        assert time.monotonic() < deadline, "the daemon submits no refresh job"
        time.sleep(0.02)
    (found,) = refresh_jobs(daemon)
    return found


def ceilings_reason(daemon, job_id):
    run = daemon.get(f"/jobs/{job_id}").json()["runs"][0]["id"]
    return daemon.get(f"/runs/{run}/report").json()["ceilings_reason"]


@pytest.fixture
def measured(start, tmp_path):
    """A state folder with the ceilings of a CPU with one thread. The daemon that measured them has stopped."""
    daemon = start(state=tmp_path / "state")
    assert ceilings_reason(daemon, daemon.run(KERNEL)) == "no ceilings of this device were measured yet"
    assert refresh_jobs(daemon) == [], "only ceilings that exist are refreshed"
    daemon.run(ceilings())
    assert ceilings_reason(daemon, daemon.run(KERNEL)) is None
    assert refresh_jobs(daemon) == []
    assert daemon.stop() == 0
    return tmp_path / "state"


def test_a_change_causes_one_refresh(start, measured):
    daemon = start("--threads", "2", state=measured)
    job_id = daemon.run(KERNEL)
    refresh = wait_for_refresh_job(daemon)
    assert (refresh["kind"], refresh["device"]) == ("ceilings", "cpu") and refresh["id"] > job_id
    if refresh["state"] == "queued":
        assert "stale" in ceilings_reason(daemon, job_id) and "1 threads" in ceilings_reason(daemon, job_id)
    after = daemon.submit(KERNEL)  # runs first: jobs of clients go before the daemon's own
    assert daemon.wait(refresh["id"])["state"] == "completed"
    daemon.wait(after)
    assert ceilings_reason(daemon, job_id) is None
    assert ceilings_reason(daemon, daemon.run(KERNEL)) is None
    assert [item["id"] for item in refresh_jobs(daemon)] == [refresh["id"]]
    assert daemon.stop() == 0


def test_a_cancelled_refresh_is_not_repeated(start, measured):
    daemon = start("--threads", "2", state=measured)
    job_id = daemon.run(KERNEL)
    refresh = wait_for_refresh_job(daemon)
    daemon.call("DELETE", f"/jobs/{refresh['id']}")
    state = daemon.wait(refresh["id"])["state"]
    daemon.run(KERNEL)
    assert len(refresh_jobs(daemon)) == 1
    if state == "cancelled":
        assert ceilings_reason(daemon, job_id).startswith("the ceilings are stale: run ")
    assert daemon.stop() == 0


def test_jobs_of_clients_run_before_the_refresh(start, measured):
    daemon = start("--threads", "2", state=measured)
    first = daemon.submit(job(epochs=8))
    others = [daemon.submit(KERNEL) for _ in range(3)]
    for job_id in [first, *others]:
        daemon.wait(job_id)
    refresh = wait_for_refresh_job(daemon)
    daemon.wait(refresh["id"])
    with sqlite3.connect(daemon.state / "rooflined.db") as database:
        order = [row[0] for row in database.execute("SELECT id FROM jobs WHERE id >= ? ORDER BY started_ns", [first])]
    assert order == [first, *others, refresh["id"]]
    assert daemon.stop() == 0


def test_refresh_can_be_disabled(start, measured):
    daemon = start("--threads", "2", "--refresh-ceilings=false", state=measured)
    job_id = daemon.run(KERNEL)
    daemon.run(KERNEL)
    assert refresh_jobs(daemon) == []
    assert ceilings_reason(daemon, job_id).startswith("the ceilings are stale: run ")
    assert daemon.stop() == 0
