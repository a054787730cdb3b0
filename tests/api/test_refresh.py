"""Ceilings that are measured again when their device is no longer what it was: here the CPU, with another number of threads."""

import sqlite3
import time

import pytest
from daemon import job
from test_ceilings import KERNEL, ceilings


def automatic(daemon):
    return [item for item in daemon.get("/jobs?kind=ceilings").json()["items"] if item["origin"] == "daemon"]


def asked(daemon):
    """The daemon's own job, which comes right after the pass that showed the change."""
    until = time.monotonic() + 30
    while not automatic(daemon):
        assert time.monotonic() < until, "the daemon asks for nothing"
        time.sleep(0.02)
    (found,) = automatic(daemon)
    return found


def reason(daemon, number):
    run = daemon.get(f"/jobs/{number}").json()["runs"][0]["id"]
    return daemon.get(f"/runs/{run}/report").json()["ceilings_reason"]


@pytest.fixture
def measured(start, tmp_path):
    """A state folder with ceilings of one thread; the daemon that measured them has ended."""
    daemon = start(state=tmp_path / "state")
    assert reason(daemon, daemon.run(KERNEL)) == "no ceilings of this device were measured yet"
    assert automatic(daemon) == [], "what was never measured is not measured again"
    daemon.run(ceilings())
    assert reason(daemon, daemon.run(KERNEL)) is None
    assert automatic(daemon) == []
    assert daemon.stop() == 0
    return tmp_path / "state"


def test_a_change_is_noticed_and_answered_once(start, measured):
    daemon = start("--threads", "2", state=measured)
    number = daemon.run(KERNEL)
    refresh = asked(daemon)
    assert (refresh["kind"], refresh["device"]) == ("ceilings", "cpu") and refresh["id"] > number
    if refresh["state"] == "queued":
        assert "stale" in reason(daemon, number) and "1 threads" in reason(daemon, number)
    after = daemon.submit(KERNEL)  # asked for later, done earlier: a client does not wait for the daemon's own jobs
    assert daemon.wait(refresh["id"])["state"] == "completed"
    daemon.wait(after)
    assert reason(daemon, number) is None
    assert reason(daemon, daemon.run(KERNEL)) is None
    assert [item["id"] for item in automatic(daemon)] == [refresh["id"]]
    assert daemon.stop() == 0


def test_a_refresh_that_was_cancelled_is_not_asked_for_again(start, measured):
    daemon = start("--threads", "2", state=measured)
    number = daemon.run(KERNEL)
    refresh = asked(daemon)
    daemon.call("DELETE", f"/jobs/{refresh['id']}")
    state = daemon.wait(refresh["id"])["state"]
    daemon.run(KERNEL)
    assert len(automatic(daemon)) == 1
    if state == "cancelled":
        assert reason(daemon, number).startswith("the ceilings are stale: run ")
    assert daemon.stop() == 0


def test_the_daemons_jobs_wait_for_the_others(start, measured):
    daemon = start("--threads", "2", state=measured)
    first = daemon.submit(job(epochs=8))
    others = [daemon.submit(KERNEL) for _ in range(3)]
    for number in [first, *others]:
        daemon.wait(number)
    refresh = asked(daemon)
    daemon.wait(refresh["id"])
    with sqlite3.connect(daemon.state / "rooflined.db") as database:
        order = [row[0] for row in database.execute("SELECT id FROM jobs WHERE id >= ? ORDER BY started_ns", [first])]
    assert order == [first, *others, refresh["id"]]
    assert daemon.stop() == 0


def test_it_can_be_turned_off(start, measured):
    daemon = start("--threads", "2", "--refresh-ceilings=false", state=measured)
    number = daemon.run(KERNEL)
    daemon.run(KERNEL)
    assert automatic(daemon) == []
    assert reason(daemon, number).startswith("the ceilings are stale: run ")
    assert daemon.stop() == 0
