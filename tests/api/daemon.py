"""Starts the real daemon on a free port, and sends requests to it. Every response is checked against the contract
(contract.py)."""

import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time

import requests

SOURCE = pathlib.Path(os.environ.get("ROOFLINED_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("ROOFLINED_BUILD", SOURCE / "build" / "dev"))
DOCUMENT = json.loads((SOURCE / "schema" / "openapi.json").read_text())
FINAL = ("completed", "failed", "cancelled")


def job(**changes):
    """Returns the request of a training job that takes well under a second: 640 images, one epoch."""
    body = {"kind": "train", "device": "cpu", "engine": "blas", "dataset": "files", "max_images": 640, "epochs": 1,
            "warmup_epochs": 0, "precisions": ["fp32"]}
    return {**body, **changes}


def endless(**changes):
    """Returns the request of a job that runs until it is cancelled."""
    return job(epochs=1000, max_images=0, engine="reference", **changes)


class Unanswered(Exception):
    """The daemon did not respond to a request."""


class Daemon:
    """A daemon process with a state folder, and its client. contract: a Contract, which checks every response."""

    def __init__(self, state, contract, options=(), env=None):
        self.contract = contract
        self.state = pathlib.Path(state)
        self.log = open(self.state.parent / f"{self.state.name}.log", "ab")
        self.token = None
        self.command = [str(BUILD / "bin" / "rooflined"), "--port", "0", "--state", str(state),
                        "--devices", "cpu", "--threads", "1", *options]
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("ROOFLINED_")}
        self.env = {**inherited, **(env or {})}
        self.session = requests.Session()
        self.session.trust_env = False
        self._start()

    def _start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=self.log, env=self.env)
        self.url = self._wait_for_url()
        self.host, self.port = re.fullmatch(r"https?://(.+):(\d+)", self.url).groups()
        self.port = int(self.port)

    def _wait_for_url(self, seconds=120):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline().decode() if ready else ""
        if not line.startswith("listening on "):
            self.kill()
            raise RuntimeError(f"the daemon did not start: {self.log_text()[-2000:]}")
        return line.split()[-1]

    def log_text(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def stop(self):
        """Sends SIGTERM and returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        self.process.stdout.close()
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def condition(self):
        """Returns text for the output of a failed test: the exit status or what each thread waits for, and the end of the log."""
        if self.process.poll() is not None:
            state = f"ended with status {self.process.returncode}"
        else:
            threads = pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
            state = "runs; its threads wait in " + " ".join((thread / "wchan").read_text() for thread in threads)
        return f"--- the daemon at {self.url} {state}\n{self.log_text()[-3000:]}"

    def recover(self):
        """After a failed test: cancels all jobs, and restarts a daemon that exited or does not answer, on the same state
        folder."""
        try:
            self.cancel_all(timeout=10)
        except (Unanswered, AssertionError):
            self.kill()
            self._start()

    def call(self, method, path, body=None, headers=None, stream=False, timeout=60, **request_options):
        """Sends a request and checks the response. body: bytes are sent unchanged, other values as JSON. Each call opens a new
        connection, because the daemon may close an idle one at any time."""
        headers = dict(headers or {})
        if self.token is not None:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        self.session.close()
        try:
            response = self.session.request(method, self.url + path, data=body, headers=headers, stream=stream, timeout=timeout,
                                            allow_redirects=False, **request_options)
        except requests.RequestException as error:
            raise Unanswered(f"{method} {path}: {error!r}") from None
        self.contract.check(method, response.request.url, body, response)
        return response

    def get(self, path, **request_options):
        return self.call("GET", path, **request_options)

    def submit(self, body, **request_options):
        response = self.call("POST", "/jobs", body, **request_options)
        assert response.status_code == 202, response.text
        return response.json()["id"]

    def wait(self, job_id, states=FINAL, seconds=240):
        """Waits until the job is in one of the states, and returns its document."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            document = self.get(f"/jobs/{job_id}").json()
            if document["state"] in states:
                return document
            assert document["state"] not in FINAL, document
            time.sleep(0.05)
        raise AssertionError(f"job {job_id} is still {document['state']}: {document}")

    def wait_for_metric(self, name, holds, seconds=120):
        """Waits until holds(value of the Prometheus metric) is true."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            value = int(self.get("/metrics").text.split(f"\n{name} ")[1].split()[0])
            if holds(value):
                return
            time.sleep(0.1)
        raise AssertionError(f"{name} is still {value}")

    def run(self, body):
        """Submits a job, which must complete, waits for it, and returns its id."""
        job_id = self.submit(body)
        document = self.wait(job_id)
        assert document["state"] == "completed", document
        return job_id

    def cancel_all(self, **request_options):
        for state in ("queued", "running"):  # in this order, so that a job that starts meanwhile is found among the running ones
            for item in self.get(f"/jobs?state={state}&limit=500", **request_options).json()["items"]:
                self.call("DELETE", f"/jobs/{item['id']}", **request_options)

    def events(self, job_id, **request_options):
        return self.events_of(f"/jobs/{job_id}", **request_options)

    def events_of(self, path, headers=None, timeout=60):
        """Yields (id, type, data) of each event until the stream ends, and checks each against the contract."""
        with self.get(f"{path}/events", headers=headers, stream=True, timeout=timeout) as response:
            if response.status_code == 204:
                return
            assert response.status_code == 200, response.text
            for event in read_events(response.iter_lines(chunk_size=1)):
                self.contract.check_event(f"{path}/events", event[1], event[2])
                yield event


def read_events(lines):
    """Parses server-sent events; comments are skipped."""
    fields = {}
    for line in lines:
        line = line.decode()
        if line == "":
            if "data" in fields:
                yield int(fields["id"]), fields["event"], json.loads(fields["data"])
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = fields[name] + "\n" + value if name in fields else value


def rooflinectl(*arguments):
    """Runs rooflinectl, which must succeed; returns its output."""
    return subprocess.run([str(BUILD / "bin" / "rooflinectl"), *arguments], capture_output=True, text=True, check=True).stdout


def make_token(state, *name):
    """Makes a token, and the state folder if there is none."""
    return rooflinectl("token", "--state", str(state), *name).split()[-1]


def revoke_token(state, name):
    rooflinectl("token", "--state", str(state), "revoke", name)
