"""Kills the daemon with SIGKILL after each commit of a job. Each transaction must be on disk completely or not at all."""

import contextlib
import os
import shutil
import signal

import pytest
import requests
from harness import BUILD, FINAL, assert_sound, endless, job, wait_until

MAX_COMMITS = 200


@contextlib.contextmanager
def killed_after(start, state, commits, *options, **variables):
    """Starts a daemon that is killed after `commits` commits, at the latest at the end of the block."""
    env = {"LD_PRELOAD": str(BUILD / "tests" / "sync_kill.so"), "SYNC_KILL_AFTER": str(commits),
           "ASAN_OPTIONS": "verify_asan_link_order=0", **variables}
    daemon = start(*options, state=state, env=env, wait=False)
    try:
        yield daemon
    except (requests.RequestException, AssertionError):
        daemon.process.wait(60)  # the response is missing because the daemon was killed
        assert daemon.process.returncode == -signal.SIGKILL
    finally:
        if daemon.process.poll() is None:
            daemon.kill()
        wait_until(lambda: not daemon.processes(), 60, "the exit of all workers")


def run_to_completion(daemon):
    daemon.wait_until_it_answers()
    daemon.wait_for(daemon.submit(job(precisions=["fp32"], passes=["timing", "counters"])))


def cancel(daemon):
    daemon.wait_until_it_answers()
    number = daemon.submit(endless())
    daemon.wait_for(number, "running")
    daemon.call("DELETE", f"/jobs/{number}")
    daemon.wait_for(number, "cancelled")


def kill_workers(daemon):
    daemon.wait_until_it_answers()
    number = daemon.submit(endless())
    for _ in range(2):
        (worker, *_) = wait_until(lambda: daemon.job(number) and daemon.processes(), 60, "a worker")
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: daemon.job(number)["state"] in FINAL or worker not in daemon.processes(), 60, "the exit of the worker")
    daemon.wait_for(number, "failed")


@pytest.mark.parametrize("scenario", [run_to_completion, cancel, kill_workers])
def test_a_kill_after_each_commit_loses_nothing(start, tmp_path, scenario):
    """Repeats the scenario with a kill after the first commit, the second, and so on, until it completes. The database is sound
    after each kill and after the next start."""
    fresh = tmp_path / "fresh"
    start(state=fresh).stop()
    kills = 0
    for commits in range(1, MAX_COMMITS):
        state = tmp_path / f"killed-{commits}"
        shutil.copytree(fresh, state)
        with killed_after(start, state, commits) as daemon:
            scenario(daemon)
            break
        kills += 1
        assert_sound(daemon)
        restarted = start(state=state)
        assert_sound(restarted)
        restarted.kill()
    assert 3 < kills < MAX_COMMITS - 1, "the scenario was never killed, or always"


def test_a_kill_between_slices_repeats_the_pass(start, tmp_path):
    """A pass whose activity rows are stored in slices is killed after each of its commits. The next start deletes the slices and
    repeats the pass. fake_worker.c replaces the worker."""
    rows = 60000
    workers = tmp_path / "workers"
    workers.mkdir()
    (workers / "rooflined-worker-cpu").symlink_to(BUILD / "tests" / "fake_worker")
    options, variables = ("--workers", str(workers)), {"FAKE_WORKER": "rows", "FAKE_ROWS": str(rows)}
    fresh = tmp_path / "fresh"
    start(*options, state=fresh, env=variables).stop()
    kills_between_slices = 0
    for commits in range(1, MAX_COMMITS):
        state = tmp_path / f"killed-{commits}"
        shutil.copytree(fresh, state)
        with killed_after(start, state, commits, *options, **variables) as daemon:
            daemon.wait_until_it_answers()
            daemon.wait_for(daemon.submit(job(passes=["activity"])))
            break
        assert_sound(daemon)
        kills_between_slices += daemon.rows("SELECT count(*) FROM passes WHERE activity_stored > activity_kept")[0][0]
        restarted = start(*options, state=state, env=variables)
        for (number,) in restarted.rows("SELECT id FROM jobs"):
            assert restarted.wait_for(number)["state"] == "completed"
            assert restarted.rows("SELECT count(*), count(DISTINCT start_ns) FROM v_activity") == [(rows, rows)]
        assert_sound(restarted)
        restarted.kill()
    assert 3 < kills_between_slices < MAX_COMMITS - 1
