"""Storing a pass with many activity rows does not delay clients. fake_gpu_worker.py replaces the worker of a GPU."""

import sqlite3
import stat
import time

import pytest
from daemon import BUILD, SOURCE, FINAL
from test_source_jobs import source

ROWS = 2_000_001  # one more than GET /runs/{id}/timeline/statistics counts
MIDDLE_NS = 2_000_000_000  # the middle of the trace, in which a row begins every 2 µs
# When one transaction stored the whole pass, a POST took 12 s: as long as the rows. On two idle cores the median is 9 ms and the
# longest POST takes 33 ms. The limits are higher, because a machine may pause, and they grow with the time in which the rows are
# stored, because a busy machine and sanitizers slow the daemon down.
MAX_POST_S, MAX_MEDIAN_POST_S, MAX_RSS_GROWTH_KB = 0.75, 0.15, 64 << 10
MAX_POST_RATIO, MAX_MEDIAN_POST_RATIO = 1 / 8, 1 / 40  # of the time in which the rows are stored


@pytest.fixture(scope="module")
def gpu_daemon(start, tmp_path_factory):
    """A daemon with a gpu0 whose worker is fake_gpu_worker.py."""
    folder = tmp_path_factory.mktemp("workers")
    program = folder / "rooflined-worker-cuda"
    script = SOURCE / "tests" / "api" / "fake_gpu_worker.py"
    program.write_text(f'#!/bin/sh\nexec /usr/bin/python3 {script} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (folder / "rooflined-worker-cpu").symlink_to(BUILD / "bin" / "rooflined-worker-cpu")
    env = {"FAKE_WORKER_NOTES": str(folder / "notes"), "FAKE_WORKER_PATH": str(SOURCE / "tests" / "worker")}
    options = ("--allow-source", "--workers", str(folder), "--devices", "all", "--request-deadline-s", "600")
    return start(*options, token=True, env=env)


def rss_kb(daemon):
    with open(f"/proc/{daemon.process.pid}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def query(daemon, sql):
    with sqlite3.connect(f"file:{daemon.state}/rooflined.db?mode=ro", uri=True) as base:
        return base.execute(sql).fetchone()[0]


def test_posts_are_answered_while_a_large_pass_is_stored(gpu_daemon):
    large = gpu_daemon.call("POST", "/jobs", source(entry=f"rows_{ROWS}", passes=["activity"])).json()["id"]
    before_kb, largest_kb, posts, durations_s, storing_since = rss_kb(gpu_daemon), 0, [], [], None
    while (state := gpu_daemon.call("GET", f"/jobs/{large}").json()["state"]) not in FINAL:
        begin = time.monotonic()
        response = gpu_daemon.call("POST", "/jobs", source(entry="waits"))
        durations_s.append(time.monotonic() - begin)
        assert response.status_code == 202, response.text
        posts.append(response.json()["id"])
        largest_kb = max(largest_kb, rss_kb(gpu_daemon))
        if query(gpu_daemon, "SELECT max(activity_stored) FROM passes"):
            storing_since = storing_since or time.monotonic()
            timeline = gpu_daemon.call("GET", f"/jobs/{large}/timeline?limit=10").json()
            assert gpu_daemon.call("GET", f"/jobs/{large}").json()["state"] in FINAL or timeline["items"] == []
        time.sleep(0.05)
    storing_s = time.monotonic() - (storing_since or 0)
    for job_id in posts:
        gpu_daemon.call("DELETE", f"/jobs/{job_id}")
    durations_s.sort()
    median_s, p99_s = durations_s[len(durations_s) // 2], durations_s[len(durations_s) * 99 // 100]
    print(f"{len(durations_s)} posts: median {median_s * 1e3:.1f} ms, 99 % {p99_s * 1e3:.1f} ms, "
          f"longest {durations_s[-1] * 1e3:.1f} ms; RSS {before_kb} to {largest_kb} KB")
    assert state == "completed" and storing_since and len(durations_s) >= 10
    assert median_s < max(MAX_MEDIAN_POST_S, MAX_MEDIAN_POST_RATIO * storing_s)
    assert durations_s[-1] < max(MAX_POST_S, MAX_POST_RATIO * storing_s)
    if "fsanitize" not in (BUILD / "build.ninja").read_text():  # AddressSanitizer keeps freed memory
        assert largest_kb - before_kb < MAX_RSS_GROWTH_KB
    assert query(gpu_daemon, f"SELECT activity_rows FROM passes WHERE job_id = {large} AND name = 'activity'") == ROWS
    timeline = gpu_daemon.call("GET", f"/jobs/{large}/timeline?from={MIDDLE_NS}&to={MIDDLE_NS + 20000}").json()
    assert len(timeline["items"]) == 10
    run = gpu_daemon.call("GET", f"/jobs/{large}/results").json()["runs"][0]["run"]
    whole = gpu_daemon.call("GET", f"/runs/{run}/timeline/statistics")
    assert whole.status_code == 422 and "2000000 events" in whole.json()["detail"], whole.text
