#!/usr/bin/env python3
"""Exposes one daemon to random faults and misbehaving clients, then removes the faults and checks that nothing is lost:
chaos.py [--minutes N] [--seed N]. A failure prints the seed and the times of all faults. The worker is ../bench/stream_worker.c,
which logs what it has sent; the seed of a job on "cpu" is the number of its activity rows and is used by no other job. A job on
"gpu0" runs until it is cancelled."""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from free_port import free_port  # noqa: E402
from harness import BUILD, FINAL, STOP_LIMIT_S, Daemon, assert_sound, wait_until  # noqa: E402

MAX_OPEN_JOBS = 6
EPOCHS = 3  # as in grow_records.c
SPILL_AFTER_S = 5  # a pass that was sent this long before a kill is stored or spilled; on an idle machine 1 s suffices
HEALTH_P99_MS = 50
MAX_MEMORY_MB = 200
MAX_NEW_DESCRIPTORS = 40  # the store's readers open the database only when they are first used
DISK_MB = 1024
SUITE_SEED = 1 << 40  # seed of the jobs of suite runs, which are repetitions of each other
SUITE = {"name": "chaos", "device": "cpu", "blocks": 5, "profile": False,
         "metrics": [{"job": "train", "metric": "epoch_ms_median"}],
         "jobs": [{"name": "train", "request": {"kind": "train", "precisions": ["fp32"], "seed": SUITE_SEED, "epochs": EPOCHS - 1,
                                                "warmup_epochs": 1}}]}
LONG_TRACE_ROWS = 1000001  # rows, which the worker sends as fast as the daemon reads them
# A program that holds the write lock of the database until its standard input is closed.
LOCKER = """
import sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
base.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
base.execute("ROLLBACK")
"""
# Seed, pass, number of kernels, number of epochs or activity rows, and their checksum as stream_worker.c computes it.
CHECKSUMS = """
  SELECT r.seed, p.name, (SELECT count(*) FROM kernels WHERE pass_id = p.id),
    CASE p.name WHEN 'timing' THEN (SELECT count(*) FROM epochs WHERE pass_id = p.id)
      ELSE (SELECT count(*) FROM activity WHERE pass_id = p.id) END,
    CASE p.name WHEN 'timing' THEN (SELECT sum((epoch + 1) * device_ms) * 1000 FROM epochs WHERE pass_id = p.id)
      ELSE (SELECT sum((a.ordinal + 1) * (a.start_ns + 3 * a.duration_ns + 7 * d.bytes + 11 * a.correlation) % 1000003)
            FROM activity a JOIN activity_dictionary d ON d.pass_id = a.pass_id AND d.entry = a.entry WHERE a.pass_id = p.id) END
  FROM passes p JOIN runs r ON r.id = p.run_id WHERE p.state = 'completed'"""


class Disk:
    """A small file system for the state folder, or a plain folder where tmpfs can't be mounted."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.is_mounted = self._mount(f"size={DISK_MB}m") if os.geteuid() == 0 else False

    def _mount(self, options):
        return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.folder], capture_output=True).returncode == 0

    def fill(self):
        used = os.statvfs(self.folder)
        self._mount(f"remount,size={(used.f_blocks - used.f_bfree) * used.f_frsize + 65536}")

    def empty(self):
        self._mount(f"remount,size={DISK_MB}m")

    def unmount(self):
        if self.is_mounted:
            subprocess.run(["umount", "-l", self.folder], check=True)


class Chaos:
    """A run of the test. Each fault and each kind of client is a method that a thread repeats until the run ends."""

    def __init__(self, folder, seed, seconds):
        self.seed, self.seconds = seed, seconds
        self.folder = pathlib.Path(folder)
        self.disk = Disk(self.folder / "disk")
        self.begin = time.monotonic()
        self.timeline, self.problems = [], []  # texts: what happened, and what was wrong
        self.down_intervals, self.kills = [], []  # (end, restart) of the daemon; times of its kills
        self.stopping = threading.Event()
        self.mutex = threading.Lock()
        self.active_faults = set()  # faults that may keep the daemon from starting
        self.accepted, self.unanswered = {}, {}  # idempotency key: (job id, request); idempotency key: request
        self.cancelled, self.events = {}, {}  # job id: request; job id: {sequence: (type, data)}
        self.suite_runs, self.unanswered_suite = {}, None  # idempotency key: suite run's id; the key of an unanswered request
        self.counts = {}
        self.stopped_workers = set()
        self.max_memory_mb = 0
        self.worker_log = self.folder / "sent"
        self.worker_log.touch()
        workers = self.folder / "workers"
        workers.mkdir()
        for kind in ("cpu", "cuda"):
            (workers / f"rooflined-worker-{kind}").symlink_to(BUILD / "tests" / "stream_worker")
        self.port = free_port()
        self.options = ["--port", str(self.port), "--workers", str(workers), "--devices", "all", "--queue-limit", "100000",
                        "--refresh-ceilings=false", "--request-timeout-s", "5"]
        self.daemon = None

    def rng(self, name):
        return random.Random(f"{self.seed} {name}")

    def log_event(self, text):
        self.timeline.append(f"{time.monotonic() - self.begin:8.3f} s  {text}")

    def count(self, name):
        with self.mutex:
            self.counts[name] = self.counts.get(name, 0) + 1

    # --- the daemon ---------------------------------------------------------------------------------------------------------

    def start(self):
        """Starts the daemon. It may refuse while the disk is full or another program holds the lock."""
        until = time.monotonic() + 90
        while True:
            faults = set(self.active_faults)
            daemon = Daemon(self.disk.folder / "state", *self.options, wait=False,
                            env={"STREAM_WORKER_LOG": str(self.worker_log)})
            try:
                daemon.wait_until_it_answers()
                self.daemon = daemon
                return
            except AssertionError:
                status = daemon.process.wait(60)
                self.log_event(f"start refused with status {status} while "
                               f"{faults or self.active_faults or 'no fault'} was active")
                daemon.stop()
                if not (faults or self.active_faults) or time.monotonic() > until:
                    raise
            time.sleep(0.3)

    def memory_mb(self, field):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text().splitlines():
                if line.startswith(field + ":"):
                    return int(line.split()[1]) / 1000
        return 0

    def descriptors(self):
        """Returns the targets of the daemon's open descriptors."""
        folder, found = pathlib.Path(f"/proc/{self.daemon.process.pid}/fd"), []
        for link in folder.iterdir():
            with contextlib.suppress(OSError):
                found.append(os.readlink(link))
        return sorted(found)

    def request(self, method, path, body=None, timeout=30, **headers):
        """Returns (status, document). Raises OSError or HTTPException if the daemon does not answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(connection):
            headers = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, json.dumps(body) if body else None,
                               {**headers, "Content-Type": "application/json"} if body else headers)
            response = connection.getresponse()
            content = response.read()
            return response.status, json.loads(content) if content[:1] in b"{[" and content else None

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=8)

    # --- faults ---------------------------------------------------------------------------------------------------------------

    def kill_daemon(self, rng):
        self.stopping.wait(rng.uniform(2, 7))
        if self.stopping.is_set():
            return
        self.max_memory_mb = max(self.max_memory_mb, self.memory_mb("VmHWM"))
        killed = time.monotonic()
        with_stop = rng.random() < 0.2
        self.log_event("SIGTERM to the daemon" if with_stop else "kill -9 of the daemon")
        if with_stop:
            status, duration_s = self.daemon.signal(signal.SIGTERM)
            assert status == 0 and duration_s < 2 * STOP_LIMIT_S, f"SIGTERM: exit status {status} after {duration_s:.1f} s"
        else:
            self.daemon.kill()
            self.kills.append(killed)
        self.count("restarts")
        ended_daemon = self.daemon
        wait_until(lambda: not ended_daemon.processes(), 60, "the exit of the killed daemon's workers")
        time.sleep(rng.choice([0, rng.uniform(0, 0.5)]))
        self.start()
        self.down_intervals.append((killed, time.monotonic()))
        self.log_event("the daemon listens")

    def signal_workers(self, rng):
        self.stopping.wait(rng.uniform(1, 4))
        daemon = self.daemon
        workers = daemon.processes()
        if self.stopping.is_set() or not workers or daemon.process.poll() is not None:
            return
        worker = rng.choice(sorted(workers))
        kills, seconds = rng.random() < 0.4, rng.uniform(0.2, 3)
        if not kills and self.seconds > 120 and rng.random() < 0.1:
            seconds = 40  # so long that the daemon notices the missing heartbeats
        with contextlib.suppress(ProcessLookupError):
            self.log_event(f"SIGKILL to worker {worker}" if kills else f"SIGSTOP to worker {worker} for {seconds:.1f} s")
            os.kill(worker, signal.SIGKILL if kills else signal.SIGSTOP)
            self.count("workers killed" if kills else "workers stopped")
            if not kills:
                self.stopping.wait(seconds)
                os.kill(worker, signal.SIGCONT)

    def lock_database(self, rng):
        self.stopping.wait(rng.uniform(1, 5))
        if self.stopping.is_set():
            return
        self.active_faults.add("the foreign lock")
        locker = subprocess.Popen([sys.executable, "-c", LOCKER, str(self.disk.folder / "state" / "rooflined.db")],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            if locker.stdout.readline():
                self.log_event("another program holds the lock")
                self.count("foreign locks")
                self.stopping.wait(rng.choice([rng.uniform(0.1, 2), rng.uniform(2, 8)]))
        finally:
            locker.stdin.close()
            locker.wait(60)
            locker.stdout.close()
            self.log_event("the lock is released")
            self.active_faults.discard("the foreign lock")

    def fill_disk(self, rng):
        self.stopping.wait(rng.uniform(3, 8))
        if self.stopping.is_set():
            return
        self.active_faults.add("the full disk")
        try:
            self.log_event("the disk is full")
            self.count("full disks")
            self.disk.fill()
            self.stopping.wait(rng.uniform(0.5, 4))
        finally:
            self.disk.empty()
            self.log_event("the disk has space")
            self.active_faults.discard("the full disk")

    # --- clients -----------------------------------------------------------------------------------------------------------

    def submit(self, rng):
        """Submits a job. A request without an answer, or with 503, is repeated with its key."""
        if self.unanswered and rng.random() < 0.7:
            key = rng.choice(sorted(self.unanswered))
            body = self.unanswered[key]
        elif self.open_jobs() < MAX_OPEN_JOBS:
            key = f"key-{rng.getrandbits(64):016x}"
            seed = len(self.accepted) + len(self.unanswered) + 1 + 1000 * rng.randrange(12)
            if self.seconds > 120 and rng.random() < 0.03:
                seed = LONG_TRACE_ROWS
                self.log_event("a job with a long trace")
            used = [other["seed"] for other in [*list(self.unanswered.values()), *(b for _, b in list(self.accepted.values()))]]
            while seed in used:
                seed += 1
            body = {"kind": "train", "device": "gpu0" if rng.random() < 0.15 else "cpu", "precisions": ["fp32"], "seed": seed,
                    "epochs": EPOCHS - 1, "warmup_epochs": 1, "passes": ["timing", "activity"]}
        else:
            time.sleep(0.2)
            return
        self.unanswered[key] = body
        self.post(key, body)
        if key in self.accepted and rng.random() < 0.2:
            self.post(key, body)  # repeats the request, as a client does that has lost the answer
        time.sleep(rng.uniform(0, 0.3))

    def run_suites(self, rng):
        """Requests a suite run, repeats unanswered requests with their key, and cancels some runs."""
        self.stopping.wait(rng.uniform(0.2, 3))
        if self.stopping.is_set():
            return
        runs = self.request("GET", "/suites/chaos/runs?limit=3")[1] if self.suite_runs else {"items": []}
        running = [item["id"] for item in runs.get("items", []) if item["state"] in ("queued", "running")]
        if running and rng.random() < 0.1:
            status, document = self.request("DELETE", f"/suite-runs/{rng.choice(running)}")
            assert status in (202, 409, 503), f"DELETE /suite-runs: {status} {document}"
        elif len(running) < 2:
            self.unanswered_suite = self.unanswered_suite or f"suite-{rng.getrandbits(64):016x}"
            self.post_suite(self.unanswered_suite)

    def post_suite(self, key):
        status, document = self.request("POST", "/suites/chaos/runs", {"definition": SUITE}, Idempotency_Key=key)
        self.count(f"POST suite run {status}")
        assert status in (202, 503), f"POST /suites/chaos/runs: {status} {document}"
        if status == 202:
            assert self.suite_runs.setdefault(key, document["id"]) == document["id"], "the key has started another suite run"
            self.unanswered_suite = None

    def post(self, key, body):
        status, document = self.request("POST", "/jobs", body, Idempotency_Key=key)
        self.count(f"POST {status}")
        assert status in (202, 503), f"POST /jobs: {status} {document}"
        if status == 503:
            time.sleep(0.1)
            return
        before = self.accepted.get(key)
        assert before is None or before[0] == document["id"], f"key {key} got the jobs {before[0]} and {document['id']}"
        self.accepted[key] = (document["id"], body)
        self.unanswered.pop(key, None)

    def open_jobs(self):
        count = 0
        for state in ("queued", "running"):
            status, document = self.request("GET", f"/jobs?state={state}&limit=100")
            assert status in (200, 503), f"GET /jobs: {status} {document}"
            if status == 503:
                raise ConnectionError(document)  # the daemon stops, or a pool is full
            count += len(document["items"])
        return count

    def random_job(self, rng):
        return rng.choice(sorted(number for number, _ in list(self.accepted.values()))) if self.accepted else 1

    def cancel(self, rng):
        self.stopping.wait(rng.uniform(0.2, 1.5))
        jobs = [(number, body) for number, body in list(self.accepted.values())
                if body["device"] == "gpu0" or number > len(self.accepted) - MAX_OPEN_JOBS and rng.random() < 0.2]
        if jobs and not self.stopping.is_set():
            number, body = rng.choice(jobs)
            self.cancelled[number] = body
            status, document = self.request("DELETE", f"/jobs/{number}")
            assert status in (200, 202, 204, 404, 409, 503), f"DELETE /jobs/{number}: {status} {document}"
            self.count(f"DELETE {status}")

    def abandon(self, rng):
        """Requests a large reply and disconnects, sometimes while it is being sent."""
        path = rng.choice([f"/jobs/{self.random_job(rng)}/export?format={rng.choice(('chrome', 'perfetto', 'nsys', 'csv'))}",
                           "/history?metric=epoch_ms_median&limit=10000", "/jobs?limit=500",
                           f"/jobs/{self.random_job(rng)}/results",
                           f"/jobs/{self.random_job(rng)}/timeline?limit=5000", f"/jobs/{self.random_job(rng)}/comparison"])
        with self.connect() as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            if rng.random() < 0.3:
                client.recv(100)
            time.sleep(rng.uniform(0, 0.1))
        self.count("abandoned readers")

    def send_slowly(self, rng):
        """Sends single bytes, or half a request."""
        with self.connect() as client:
            text = (b"POST /jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
                    b'{"kind"')
            if rng.random() < 0.5:
                client.sendall(text[: rng.randrange(len(text))])
            else:
                for byte in text[: rng.randrange(40)]:
                    client.sendall(bytes([byte]))
                    time.sleep(0.05)
        self.count("slow or partial requests")

    def follow_events(self, rng):
        """Reads the event stream of a job from its start or from the last event that an earlier stream has delivered."""
        number = self.random_job(rng)
        seen = self.events.setdefault(number, {})
        last = max(seen, default=0) if rng.random() < 0.5 else 0
        with self.connect() as client, client.makefile("rb") as lines:
            client.sendall(f"GET /jobs/{number}/events HTTP/1.0\r\nHost: 127.0.0.1\r\nLast-Event-ID: {last}\r\n\r\n".encode())
            event = {}
            until = time.monotonic() + rng.uniform(1, 10)
            for line in lines:
                name, _, value = line.decode().rstrip("\r\n").partition(": ")
                event[name] = value
                if name == "" and {"id", "event", "data"} <= set(event):
                    sequence = int(event["id"])
                    assert sequence == last + 1, f"the event stream of job {number} has {sequence} after {last}"
                    last = sequence
                    before = seen.setdefault(sequence, (event["event"], event["data"]))
                    assert before == (event["event"], event["data"]), f"event {sequence} of job {number}: {before}, then {event}"
                    self.count("events")
                    event = {}
                if self.stopping.is_set() or time.monotonic() > until:
                    return
        time.sleep(0.2)

    # --- the run -------------------------------------------------------------------------------------------------------------

    def repeat(self, action, name):
        rng = self.rng(name)
        while not self.stopping.is_set():
            try:
                action(rng)
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                self.count("interrupted clients")
                time.sleep(0.05)  # the daemon is down, or refuses the connection
            except Exception:
                self.problems.append(f"{name}: {traceback.format_exc()}")
                self.log_event(f"PROBLEM in {name}")
                self.stopping.set()

    def run(self):
        self.start()
        descriptors = self.descriptors()
        actions = [(self.submit, 1), (self.cancel, 1), (self.abandon, 3), (self.send_slowly, 3), (self.follow_events, 4),
                   (self.signal_workers, 1), (self.lock_database, 1), (self.kill_daemon, 1), (self.run_suites, 1)]
        if self.disk.is_mounted:
            actions.append((self.fill_disk, 1))
        else:
            self.log_event("tmpfs can't be mounted: the disk is never full")
        prober = subprocess.Popen([sys.executable, str(HERE / "probe.py"), str(self.port)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        threads = [threading.Thread(target=self.repeat, args=(action, f"{action.__name__} {number}"))
                   for action, count in actions for number in range(count)]
        for thread in threads:
            thread.start()
        self.stopping.wait(self.seconds)
        self.stopping.set()
        for thread in threads:
            thread.join(120)
        samples = json.loads(prober.communicate()[0])
        assert not self.problems, "\n".join(self.problems)
        assert not any(thread.is_alive() for thread in threads), "a client hangs"
        self.log_event("all faults are removed")
        self.drain()
        self.check_jobs()
        self.check_suites()
        self.check_records()
        self.check_events()
        self.check_resources(descriptors)
        self.check_latency(samples)

    # --- the checks ------------------------------------------------------------------------------------------------------------

    def drain(self):
        for key, body in list(self.unanswered.items()):
            wait_until(lambda key=key, body=body: self.post(key, body) or key in self.accepted, 120, f"the acceptance of {key}")
        for number, body in list(self.accepted.values()):
            if body["device"] == "gpu0":
                self.cancelled[number] = body
                self.request("DELETE", f"/jobs/{number}")
        if self.unanswered_suite:
            wait_until(lambda: self.post_suite(self.unanswered_suite) or not self.unanswered_suite, 120, "the suite's acceptance")
        running = "SELECT count(*) FROM suite_runs WHERE state IN ('queued', 'running')"
        wait_until(lambda: self.daemon.rows(running) == [(0,)], 300, "the end of the suite runs")
        wait_until(lambda: self.open_jobs() == 0, 300, "an empty queue")
        self.log_event("the queue is empty")
        assert self.request("GET", "/readyz")[0] == 200, "the daemon is not ready after the faults"

    def check_jobs(self):
        stored = {number: (state, json.loads(request)["seed"], key) for number, state, request, key in self.daemon.rows(
            "SELECT id, state, request, idempotency_key FROM jobs "
            "WHERE origin = 'client' AND idempotency_key NOT LIKE 'suite %'")}
        for key, (number, body) in self.accepted.items():
            assert number in stored, f"job {number}, accepted with the key {key}, is lost"
            assert stored[number][1:] == (body["seed"], key), f"job {number} is not what was accepted: {stored[number]}"
            assert stored[number][0] in FINAL, f"job {number} is {stored[number]}"
            assert stored[number][0] != "cancelled" or number in self.cancelled, f"job {number} was cancelled by no client"
        assert len(stored) == len(self.accepted), "a repeated request made a second job"
        assert_sound(self.daemon)

    def check_suites(self):
        assert {number for number, in self.daemon.rows("SELECT id FROM suite_runs")} == set(self.suite_runs.values())
        orphans = self.daemon.rows("""SELECT idempotency_key FROM jobs j WHERE idempotency_key LIKE 'suite %'
            AND NOT EXISTS (SELECT 1 FROM suite_jobs s WHERE s.job_id = j.id)""")
        cancelled = {number for number, in self.daemon.rows("SELECT id FROM suite_runs WHERE state = 'cancelled'")}
        assert all(int(key.split()[1]) in cancelled for key, in orphans), f"jobs that no suite run knows: {orphans}"
        assert self.daemon.rows("SELECT count(*) FROM suite_jobs WHERE state = 'submitted'") == [(0,)]
        completed = self.daemon.rows("SELECT id FROM suite_runs WHERE state = 'completed'")
        for number, in completed:
            blocks = self.daemon.rows("SELECT block FROM suite_values WHERE suite_run_id = ? ORDER BY block", number)
            assert blocks == [(block,) for block in range(SUITE["blocks"])], f"suite run {number} has values of {blocks}"
        self.log_event(f"{len(completed)} of {len(self.suite_runs)} suite runs completed")

    def sent_passes(self):
        """Yields (event, seed, pass, time in s, count, checksum, kernels) of the lines in the workers' log."""
        for line in self.worker_log.read_text().splitlines():
            event, seed, name, at_ns, count, checksum, kernels = line.split()
            yield event, int(seed), name, int(at_ns) / 1e9, int(count), int(checksum), int(kernels)

    def check_records(self):
        sent = [sent_pass for sent_pass in self.sent_passes() if sent_pass[1] != SUITE_SEED]
        expected = {(seed, name): (count, checksum, kernels) for _, seed, name, _, count, checksum, kernels in sent}
        stored = {}
        for seed, name, kernels, count, checksum in self.daemon.rows(CHECKSUMS):
            if seed == SUITE_SEED:
                continue
            assert (seed, name) in expected, f"the {name} pass of seed {seed} was stored, but no worker has sent it"
            stored[seed, name] = (count, int(checksum), kernels)
            assert stored[seed, name] == expected[seed, name], \
                f"the {name} pass of seed {seed} is {stored[seed, name]}, sent were {expected[seed, name]}"
        cancelled = {body["seed"] for body in self.cancelled.values()}
        numbers = {body["seed"]: number for number, body in list(self.accepted.values())}
        for event, seed, name, at, *_ in sent:
            was_killed = any(at - 1 < kill < at + SPILL_AFTER_S for kill in self.kills)
            # The daemon stops reading while it holds 32 MB of rows that wait for the database. So the end of a long trace may
            # still be in the pipe when the daemon or the worker is killed.
            may_be_in_pipe = seed >= LONG_TRACE_ROWS
            if event != "sent" or seed in cancelled or was_killed or may_be_in_pipe:
                continue
            when = f"sent at {at - self.begin:.3f} s"
            assert (seed, name) in stored, f"the {name} pass of job {numbers[seed]} (seed {seed}), {when}, is missing"
            repetitions = [other for other in sent if other[:3] == (event, seed, name) and other[3] > at]
            assert not repetitions, f"the {name} pass of job {numbers[seed]}, {when}, was executed again"
        hidden = "SELECT count(*) FROM passes WHERE activity_stored = 1 AND activity_kept = 0"
        wait_until(lambda: self.daemon.rows(hidden) == [(0,)], 120, "the deletion of rows of unfinished passes")
        for table in ("activity", "activity_groups", "activity_intervals", "activity_dictionary", "names", "epochs", "kernels",
                      "measurements"):
            remaining = self.daemon.rows(f"""SELECT DISTINCT p.job_id, p.name, p.state FROM passes p
                WHERE p.state NOT IN ('completed', 'unavailable') AND EXISTS (SELECT 1 FROM {table} WHERE pass_id = p.id)""")
            assert remaining == [], f"{table} has rows of unfinished passes (job, pass, state): {remaining}"
        self.log_event(f"{len(stored)} completed passes have what was sent; {len(sent)} lines in the workers' log")

    def check_events(self):
        with contextlib.closing(sqlite3.connect(f"file:{self.daemon.state}/rooflined.db?mode=ro", uri=True)) as base:
            for number, seen in self.events.items():
                stored = {sequence: (kind, {**json.loads(data), "at": at}) for sequence, kind, data, at in base.execute(
                    "SELECT seq, type, data, at FROM events WHERE job_id = ?", [number])}
                for sequence, (kind, data) in seen.items():
                    assert stored.get(sequence) == (kind, json.loads(data)), \
                        f"event {sequence} of job {number} was sent as {kind} {data}, but {stored.get(sequence)} is stored"

    def check_resources(self, descriptors):
        def sockets(links):
            return sum(link.startswith("socket:") for link in links)
        try:
            wait_until(lambda: sockets(self.descriptors()) <= sockets(descriptors) + 2, 120, "the end of the connections")
            assert len(self.descriptors()) <= len(descriptors) + MAX_NEW_DESCRIPTORS
        except AssertionError as failure:
            raise AssertionError(f"{failure} descriptors after the start: {descriptors}\nnow: {self.descriptors()}") from None
        assert len(self.daemon.processes()) <= 3, f"workers: {self.daemon.processes()}"
        if "fsanitize" not in (BUILD / "build.ninja").read_text():
            memory_mb = max(self.max_memory_mb, self.memory_mb("VmHWM"))
            self.log_event(f"peak memory {memory_mb:.0f} MB")
            assert memory_mb <= MAX_MEMORY_MB, f"peak memory {memory_mb:.0f} MB"
        status, duration_s = self.daemon.stop()
        assert status == 0 and duration_s < 2 * STOP_LIMIT_S, f"SIGTERM: exit status {status} after {duration_s:.1f} s"
        assert not self.daemon.processes(), "workers are left after the stop"

    def check_latency(self, samples):
        """Checks that the 99th percentile of the latency of /healthz exceeds that of a control server, which a busy machine also
        delays, by at most 50 ms. Ignores probes while the daemon was down."""
        def p99_ms(name):
            times = sorted((end - due) * 1000 if succeeded else 5000 for due, end, succeeded in samples[name]
                           if not any(due < up and end > down for down, up in self.down_intervals))
            assert len(times) > 100, f"only {len(times)} probes of the {name}"
            return times[int(len(times) * 0.99)]
        daemon_ms, control_ms = p99_ms("daemon"), p99_ms("control")
        slow = sorted((round(due - self.begin, 2), round((end - due) * 1000)) for due, end, succeeded in samples["daemon"]
                      if end - due > 0.1 and not any(due < up and end > down for down, up in self.down_intervals))
        self.log_event(f"p99 of /healthz {daemon_ms:.1f} ms, of the control {control_ms:.1f} ms")
        assert daemon_ms <= HEALTH_P99_MS + control_ms, \
            f"p99 of /healthz {daemon_ms:.1f} ms, of the control {control_ms:.1f} ms; over 100 ms (s, ms): {slow[:40]}"

    def close(self):
        self.stopping.set()
        if self.daemon is not None and self.daemon.process.poll() is None:
            self.daemon.kill()
        self.disk.unmount()


def run(folder, seed, seconds):
    """Runs the test and returns a summary. Raises AssertionError with the seed and the timeline."""
    chaos = Chaos(folder, seed, seconds)
    try:
        chaos.run()
        return "\n".join([*chaos.timeline[-4:], str(dict(sorted(chaos.counts.items())))])
    except Exception as failure:
        log = (chaos.daemon.log_text() if chaos.daemon else "").splitlines()[-40:]
        timeline = "\n".join([*chaos.timeline, "end of the daemon's log:", *log, str(chaos.counts)])
        raise AssertionError(f"{failure}\nchaos.py --seed {seed} --minutes {seconds / 60:.2f}\n{timeline}") from failure
    finally:
        chaos.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        print(run(folder, options.seed, options.minutes * 60))


if __name__ == "__main__":
    main()
