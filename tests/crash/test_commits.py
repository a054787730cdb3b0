"""kill -9 of the daemon behind each commit of a job's life, one after the other: what belongs together is on disk or none of it
is."""

import contextlib
import os
import shutil
import signal

import pytest
import requests
from harness import BUILD, FINAL, assert_sound, endless, job, wait_until

COMMITS_MOST = 200


@contextlib.contextmanager
def doomed(start, state, commits):
    """A daemon that dies behind its so-manieth commit, at the latest when the block is over."""
    env = {"LD_PRELOAD": str(BUILD / "tests" / "sync_kill.so"), "SYNC_KILL_AFTER": str(commits),
           "ASAN_OPTIONS": "verify_asan_link_order=0"}
    daemon = start(state=state, env=env, wait=False)
    try:
        yield daemon
    except (requests.RequestException, AssertionError):
        daemon.process.wait(30)  # the answer that did not come must be the death's doing
        assert daemon.process.returncode == -signal.SIGKILL
    finally:
        if daemon.process.poll() is None:
            daemon.kill()
        wait_until(lambda: not daemon.processes(), 10, "the workers' end")


def completes(daemon):
    daemon.wait_until_it_answers()
    daemon.wait_for(daemon.submit(job(precisions=["fp32"], passes=["timing", "counters"])))


def is_cancelled(daemon):
    daemon.wait_until_it_answers()
    number = daemon.submit(endless())
    daemon.wait_for(number, "running")
    daemon.call("DELETE", f"/jobs/{number}")
    daemon.wait_for(number, "cancelled")


def kills_its_worker(daemon):
    daemon.wait_until_it_answers()
    number = daemon.submit(endless())
    for _ in range(2):
        (worker, *_) = wait_until(lambda: daemon.job(number) and daemon.processes(), 30, "a worker")
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: daemon.job(number)["state"] in FINAL or worker not in daemon.processes(), 30, "the worker's end")
    daemon.wait_for(number, "failed")


@pytest.mark.parametrize("life", [completes, is_cancelled, kills_its_worker])
def test_killed_behind_each_commit(start, tmp_path, life):
    """A life is tried with a death behind the first commit, behind the second, until it gets through; each death leaves a sound
    database, and so does the next start, which takes the job up again."""
    fresh = tmp_path / "fresh"
    start(state=fresh).stop()
    died = 0
    for commits in range(1, COMMITS_MOST):
        state = tmp_path / f"death-{commits}"
        shutil.copytree(fresh, state)
        with doomed(start, state, commits) as daemon:
            life(daemon)
            break
        died += 1
        assert_sound(daemon)
        next_one = start(state=state)
        assert_sound(next_one)
        next_one.kill()
    assert 3 < died < COMMITS_MOST - 1, "no life was long enough to be cut short, or all were"
