"""Kills the daemon with SIGKILL at random times, while jobs run and are submitted."""

import os
import random
import threading
import time

import requests
from harness import assert_sound, endless, job, wait_until

KILLS = int(os.environ.get("ROOFLINED_KILLS", 52))
DAEMON_DEATHS_MAX = 5  # as in daemon/queue/queue.c
SEED = int(os.environ.get("ROOFLINED_SEED", random.randrange(2**32)))


class Submitter(threading.Thread):
    """Submits jobs until the daemon is killed. The next Submitter repeats unanswered requests with the same keys."""

    def __init__(self, daemon, rng, unanswered, accepted):
        super().__init__()
        self.daemon_process, self.unanswered, self.accepted = daemon, unanswered, accepted
        self.pauses = [rng.uniform(0, 0.3) for _ in range(4)]
        self.bodies = [job(max_images=rng.choice([256, 384, 640]), seed=rng.randrange(1000),
                           precisions=rng.choice([["fp32"], ["fp32", "fp16"]]), epochs=rng.choice([1, 2]),
                           passes=rng.choice([["timing"], ["timing", "activity"]])) for _ in range(4)]

    def run(self):
        requests_to_send = list(self.unanswered.items()) + [(f"key-{random.getrandbits(64)}", body) for body in self.bodies]
        for (key, body), pause in zip(requests_to_send, self.pauses):
            self.unanswered[key] = body
            try:
                number = self.daemon_process.submit(body, key)
            except requests.RequestException:
                return
            self.accepted[key] = number
            del self.unanswered[key]
            time.sleep(pause)


def kill_at_random(start, rng, unanswered, accepted, submit):
    daemon = start(wait=False)
    if rng.random() < 0.15:  # kill it while it starts
        time.sleep(rng.uniform(0, 0.1))
    else:
        daemon.wait_until_it_answers()
        listed = {item["id"] for item in daemon.call("GET", "/jobs?limit=500").json()["items"]}
        assert set(accepted.values()) <= listed, "an accepted job is lost"
        assert_sound(daemon)
        submitter = Submitter(daemon, rng, unanswered, accepted) if submit else None
        if submitter:
            submitter.start()
        time.sleep(rng.uniform(0, 1.2))
        daemon.kill()
        if submitter:
            submitter.join()
    if daemon.process.poll() is None:
        daemon.kill()
    wait_until(lambda: not daemon.processes(), 60, "the exit of all workers")


def test_no_accepted_job_is_lost_and_no_result_is_stored_twice(start):
    print(f"ROOFLINED_SEED={SEED}")
    rng = random.Random(SEED)
    unanswered, accepted = {}, {}
    for number in range(KILLS):
        kill_at_random(start, rng, unanswered, accepted, submit=number % 4 != 3)
    daemon = start()
    for key, body in unanswered.items():
        accepted[key] = daemon.submit(body, key)
    assert len(set(accepted.values())) == len(accepted), "two keys got the same job"
    for number in accepted.values():
        ended_job = daemon.wait_for(number)
        assert ended_job["state"] == ("failed" if ended_job["daemon_deaths"] == DAEMON_DEATHS_MAX else "completed"), ended_job
        assert ended_job["worker_deaths"] == 0, ended_job
    assert_sound(daemon)
    assert daemon.rows("SELECT count(*) FROM jobs") == [(len(accepted),)], "a repeated request made a second job"
    print(f"{KILLS} kills, {len(accepted)} jobs")


def test_a_job_fails_after_repeated_crashes_and_other_jobs_run(start):
    daemon = start()
    fatal, other = daemon.submit(endless()), daemon.submit(job())
    for _ in range(DAEMON_DEATHS_MAX):
        before = daemon.rows("SELECT count(*) FROM events WHERE type = 'progress'")
        wait_until(lambda: daemon.rows("SELECT count(*) FROM events WHERE type = 'progress'") > before, 120, "progress")
        daemon.kill()
        daemon = start()
    failed = daemon.wait_for(fatal)
    assert (failed["state"], failed["daemon_deaths"]) == ("failed", DAEMON_DEATHS_MAX)
    assert "the daemon or the host went down" in failed["problem"]["message"]
    assert daemon.wait_for(other)["state"] == "completed"
    assert_sound(daemon)
