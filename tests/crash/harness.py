"""Starts daemons that tests kill at any time, finds their workers, and checks the invariants of their databases."""

import os
import pathlib
import select
import signal
import sqlite3
import subprocess
import time
import uuid

import requests
from digits import mnist

SOURCE = pathlib.Path(os.environ.get("ROOFLINED_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("ROOFLINED_BUILD", SOURCE / "build" / "dev"))
PROGRAM = BUILD / "bin" / "rooflined"
FINAL = ("completed", "failed", "cancelled")
STOP_LIMIT_S = 2  # a stop that waits for a lock, a stream or a receiver takes longer
MARK = "ROOFLINED_TEST_MARK"  # environment variable that identifies the processes of a daemon


def job(**changes):
    """Returns the request of a short training job on the CPU, with the images that Daemon writes."""
    return {"kind": "train", "engine": "blas", "dataset": "files", "max_images": 256, "epochs": 1, "warmup_epochs": 0,
            "precisions": ["fp32"], **changes}


def endless(**changes):
    """Returns the request of a job that runs until it is cancelled or killed."""
    return job(epochs=1000, max_images=0, engine="reference", **changes)


def wait_until(condition, seconds=180, condition_name="the condition"):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{condition_name} was not true within {seconds} s")


class Daemon:
    """A running daemon. options: further command-line options; env: variables added to a clean environment; wait: return only
    when the daemon listens."""

    def __init__(self, state, *options, env=None, wait=True):
        self.state = pathlib.Path(state)
        self.mark = uuid.uuid4().hex
        self.log = open(self.state.parent / f"{self.state.name}.log", "ab+")
        clean = {key: value for key, value in os.environ.items() if not key.startswith("ROOFLINED_")}
        command = [str(PROGRAM), "--port", "0", "--state", str(state), "--devices", "cpu", "--threads", "1",
                   "--mnist-dir", str(mnist(self.state.parent / "digits")), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log,
                                        env={**clean, MARK: self.mark, **(env or {})})
        self.session = requests.Session()
        self.session.trust_env = False
        self.url = None
        if wait:
            self.wait_until_it_answers()

    def wait_until_it_answers(self, seconds=180):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline().decode() if ready else ""
        assert line.startswith("listening on "), f"the daemon did not start: {self.log_text()[-2000:]}"
        self.url = line.split()[-1]

    def log_text(self):
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def signal(self, number):
        """Sends a signal and waits for the exit. Returns (exit status, seconds until the exit)."""
        begin = time.monotonic()
        self.process.send_signal(number)
        status = self.process.wait(60)
        duration_s = time.monotonic() - begin
        self.session.close()
        self.process.stdout.close()
        return status, duration_s

    def kill(self):
        return self.signal(signal.SIGKILL)

    def stop(self):
        if self.process.poll() is None:
            return self.signal(signal.SIGTERM)
        return self.process.returncode, 0

    def call(self, method, path, **request_options):
        self.session.close()  # each call opens a new connection, because the daemon may close an idle one at any time
        return self.session.request(method, self.url + path, timeout=120, **request_options)

    def submit(self, body, key=None):
        response = self.call("POST", "/jobs", json=body, headers={"Idempotency-Key": key} if key else {})
        assert response.status_code == 202, response.text
        return response.json()["id"]

    def job(self, number):
        response = self.call("GET", f"/jobs/{number}")
        assert response.status_code == 200, response.text
        return response.json()

    def wait_for(self, number, *states, seconds=300):
        wanted_states = states or FINAL

        def reached():
            found = self.job(number)
            assert found["state"] in wanted_states or found["state"] not in FINAL, found
            return found if found["state"] in wanted_states else None

        return wait_until(reached, seconds, f"job {number} being {' or '.join(wanted_states)}")

    def run(self, **changes):
        ended_job = self.wait_for(self.submit(job(**changes)))
        assert ended_job["state"] == "completed", ended_job
        return ended_job

    def processes(self):
        """Returns the process ids of the running processes that the daemon started."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return [pid for pid in found if pid != self.process.pid]

    def worker(self):
        """Waits until a worker is running, and returns its process id."""
        return wait_until(self.processes, 60, "a worker")[0]

    def wait_for_progress(self, number, phase="%"):
        progress = "SELECT 1 FROM events WHERE job_id = ? AND type = 'progress' AND data ->> '$.phase' LIKE ?"
        wait_until(lambda: self.rows(progress, number, phase), 120, "progress")

    def rows(self, sql, *values):
        with sqlite3.connect(f"file:{self.state}/rooflined.db?mode=ro", uri=True) as base:
            return base.execute(sql, values).fetchall()


def assert_sound(daemon):
    """Checks the invariants of the database, which hold after any crash."""
    assert daemon.rows("PRAGMA integrity_check") == [("ok",)]
    assert daemon.rows("PRAGMA foreign_key_check") == []
    # A pass has all of its epochs or none.
    assert daemon.rows("""
        SELECT p.id, p.state, count(e.epoch), count(DISTINCT e.epoch) FROM passes p
        JOIN runs r ON r.id = p.run_id LEFT JOIN epochs e ON e.pass_id = p.id
        WHERE p.name = 'timing' GROUP BY p.id
        HAVING count(e.epoch) <> CASE WHEN p.state = 'completed'
            THEN (r.params ->> '$.epochs') + (r.params ->> '$.warmup_epochs') ELSE 0 END
          OR count(e.epoch) <> count(DISTINCT e.epoch)""") == []
    # Queries return each activity row of a completed pass once, and no row of any other pass.
    assert daemon.rows("""
        SELECT p.id, p.state FROM passes p
        WHERE p.activity_kept <> (p.state = 'completed' AND p.name = 'activity')
          OR (p.activity_kept AND p.activity_rows <> (SELECT count(DISTINCT ordinal) FROM activity WHERE pass_id = p.id))
          OR (p.activity_kept AND p.activity_rows <> (SELECT count(*) FROM activity WHERE pass_id = p.id))""") == []
    assert daemon.rows("SELECT count(*) FROM v_activity") == daemon.rows(
        "SELECT coalesce(sum(activity_rows), 0) FROM passes WHERE name = 'activity' AND state = 'completed'")
    # A completed job has no unfinished pass, and a job's events are numbered without gaps.
    assert daemon.rows("""
        SELECT j.id FROM jobs j JOIN passes p ON p.job_id = j.id
        WHERE j.state = 'completed' AND p.state NOT IN ('completed', 'unavailable')""") == []
    assert daemon.rows("SELECT job_id FROM events GROUP BY job_id HAVING max(seq) <> count(*) OR min(seq) <> 1") == []
    # Each change of a state has exactly one event: the last state event has the job's state, and two successive state events have
    # different states.
    assert daemon.rows("""
        SELECT j.id, j.state FROM jobs j WHERE j.state IS NOT (
          SELECT data ->> '$.state' FROM events WHERE job_id = j.id AND type = 'state' ORDER BY seq DESC LIMIT 1)""") == []
    assert daemon.rows("""
        SELECT * FROM (SELECT job_id, seq, data ->> '$.state' AS reported,
          lag(data ->> '$.state') OVER (PARTITION BY job_id ORDER BY seq) AS before FROM events WHERE type = 'state')
        WHERE reported = before""") == []
    assert daemon.rows("""
        SELECT p.id, p.state FROM passes p WHERE (p.state IN ('completed', 'unavailable')) <> (
          SELECT count(*) FROM events e WHERE e.job_id = p.job_id AND e.type = 'pass' AND e.data ->> '$.run_id' = p.run_id
            AND e.data ->> '$.pass' = p.name AND e.data ->> '$.state' <> 'died')""") == []
    assert daemon.rows("""
        SELECT j.id FROM jobs j WHERE j.worker_deaths + j.daemon_deaths <> (
          SELECT count(*) FROM events e WHERE e.job_id = j.id AND e.type = 'pass' AND e.data ->> '$.state' = 'died')""") == []
