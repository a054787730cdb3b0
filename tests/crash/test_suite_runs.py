"""Kills the daemon while a regression suite runs: the run continues, and no job is submitted twice. Cancels suite runs around
kills and failures of the database: no job of them runs on."""

import contextlib
import json
import os
import random
import signal
import sqlite3
import time

from harness import STOP_LIMIT_S, assert_sound, wait_until

SEED = int(os.environ.get("ROOFLINED_SEED", random.randrange(2**32)))
BLOCKS, KILLS = 6, 8
SUITE = {"name": "nightly", "blocks": BLOCKS, "profile": True, "metrics": [{"job": "relu", "metric": "time_cold_us_median"}],
         "jobs": [{"name": name, "request": {"kind": "kernel", "kernel": name, "shape": {"n": 2048}, "variant": "vector",
                                             "samples": 2}} for name in ("relu", "copy")]}
STEPS = [("block", block, job["name"]) for block in range(BLOCKS) for job in SUITE["jobs"]]
STEPS += [("profile", 0, job["name"]) for job in SUITE["jobs"]]


def suite_run(daemon, number):
    response = daemon.call("GET", f"/suite-runs/{number}")
    assert response.status_code == 200, response.text
    return response.json()


def has_ended(daemon, number):
    return suite_run(daemon, number)["state"] not in ("queued", "running")


def start_suite(daemon, key="first"):
    response = daemon.call("POST", "/suites/nightly/runs", json={"definition": SUITE}, headers={"Idempotency-Key": key})
    assert response.status_code == 202, response.text
    return response.json()["id"]


def test_a_suite_run_survives_kills(start):
    rng = random.Random(SEED)
    print("seed", SEED)
    daemon = start()
    number = start_suite(daemon)
    for kill in range(KILLS):
        if kill % 2 == 1:  # a job fails after too many crashes, so the daemon completes one between two kills
            ended_jobs = suite_run(daemon, number)["progress"]["done"]
            wait_until(lambda: has_ended(daemon, number) or suite_run(daemon, number)["progress"]["done"] > ended_jobs, 300,
                       "another job's end")
        time.sleep(rng.uniform(0.05, 1.5))
        daemon.kill()
        wait_until(lambda: not daemon.processes(), 60, "the exit of all workers")
        daemon = start()
        assert start_suite(daemon) == number, "the key has started another run"
    wait_until(lambda: has_ended(daemon, number), 600, "the run's end")
    ended_run = suite_run(daemon, number)
    assert ended_run["state"] == "completed", ended_run["reason"]
    assert [(job["role"], job["block"], job["job_name"]) for job in ended_run["jobs"]] == STEPS
    assert {job["state"] for job in ended_run["jobs"]} == {"completed"}
    keys = daemon.rows("SELECT idempotency_key FROM jobs")
    assert len(keys) == len(STEPS), "a job was submitted twice, or one is not recorded"
    assert sorted(value["block"] for value in ended_run["values"]) == list(range(BLOCKS))
    stored = {json.loads(text)["reason"] for (text,) in daemon.rows("SELECT judgement FROM suite_verdicts")}
    assert stored == {verdict["reason"] for verdict in ended_run["verdicts"]}
    assert_sound(daemon)


def test_a_stop_waits_for_no_suite_and_the_run_goes_on(start):
    daemon = start()
    number = start_suite(daemon)
    wait_until(lambda: suite_run(daemon, number)["progress"]["done"] >= 1, 300, "the end of the first job")
    status, duration_s = daemon.signal(signal.SIGTERM)
    assert status == 0 and duration_s < STOP_LIMIT_S, (status, duration_s)
    daemon = start()
    before = suite_run(daemon, number)
    assert before["state"] == "running"
    wait_until(lambda: suite_run(daemon, number)["progress"]["done"] > before["progress"]["done"], 300, "another job's end")


def start_endless_job(daemon):
    """Starts a suite run whose first job runs until it is cancelled. Returns the ids of the suite run and of the job."""
    endless = {**SUITE, "name": "endless", "blocks": 5, "metrics": [{"job": "train", "metric": "epoch_ms_median"}],
               "jobs": [{"name": "train", "request": {"kind": "train", "engine": "reference", "epochs": 1000,
                                                      "precisions": ["fp32"]}}]}
    number = daemon.call("POST", "/suites/endless/runs", json={"definition": endless}).json()["id"]
    job = wait_until(lambda: suite_run(daemon, number)["progress"]["job"], 300, "the first job")
    daemon.wait_for(job, "running")
    return number, job


def connect(daemon):
    return contextlib.closing(sqlite3.connect(daemon.state / "rooflined.db", isolation_level=None, timeout=60))


def test_the_job_of_a_run_that_was_cancelled_before_a_crash_is_cancelled(start):
    """A kill between the cancellation of the run and the cancellation of its job leaves a job that no suite run waits for. The
    next start cancels the job."""
    daemon = start()
    number, job = start_endless_job(daemon)
    assert daemon.call("DELETE", f"/suite-runs/{number}").status_code == 202
    daemon.kill()
    wait_until(lambda: not daemon.processes(), 60, "the exit of all workers")
    daemon = start()
    daemon.wait_for(job, "cancelled")
    assert suite_run(daemon, number)["jobs"][0]["state"] == "cancelled"


def test_a_submitted_job_that_its_cancelled_run_does_not_list_is_cancelled(start):
    """A suite run that is cancelled after it has submitted a job and before suite_jobs contains the job leaves such a job."""
    daemon = start()
    number, job = start_endless_job(daemon)
    daemon.kill()
    wait_until(lambda: not daemon.processes(), 60, "the exit of all workers")
    with connect(daemon) as database:
        database.execute("UPDATE suite_runs SET state = 'cancelled', finished_ns = started_ns WHERE id = ?", [number])
        database.execute("DELETE FROM suite_jobs WHERE suite_run_id = ?", [number])
    daemon = start()
    daemon.wait_for(job, "cancelled")


def test_the_cancellation_of_the_job_is_repeated_until_it_succeeds(start):
    """The database refuses the cancellation of the job for a while after the cancellation of the suite run. A trigger refuses it,
    because a lock of another program could come too late."""
    daemon = start()
    number, job = start_endless_job(daemon)
    with connect(daemon) as database:
        database.execute("CREATE TRIGGER refusal BEFORE UPDATE OF state ON jobs WHEN new.state = 'cancelled' "
                         "BEGIN SELECT raise(ABORT, 'refused'); END")
        assert daemon.call("DELETE", f"/suite-runs/{number}").status_code == 202
        time.sleep(1.5)
        assert daemon.job(job)["state"] == "running"
        database.execute("DROP TRIGGER refusal")
    daemon.wait_for(job, "cancelled", seconds=30)
    assert suite_run(daemon, number)["jobs"][0]["state"] == "cancelled"
