"""The real daemon on a free port, and a client that holds every answer against the contract."""

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
    """A job that takes well under a second."""
    body = {"kind": "train", "device": "cpu", "engine": "blas", "dataset": "synthetic", "max_images": 640, "epochs": 1,
            "warmup_epochs": 0, "precisions": ["fp32"]}
    return {**body, **changes}


def endless(**changes):
    """A job that runs until it is cancelled."""
    return job(epochs=1000, max_images=0, engine="reference", **changes)


class Daemon:
    def __init__(self, state, contract, options=(), env=None):
        self.contract = contract
        self.state = pathlib.Path(state)
        self.log = open(self.state.parent / f"{self.state.name}.log", "ab")
        self.token = None
        command = [str(BUILD / "bin" / "rooflined"), "--port", "0", "--state", str(state), "--web", str(SOURCE / "web"),
                   "--devices", "cpu", "--threads", "1", *options]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("ROOFLINED_")}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, env={**clean, **(env or {})})
        self.url = self._wait_for_url()
        self.host, self.port = re.fullmatch(r"https?://(.+):(\d+)", self.url).groups()
        self.port = int(self.port)
        self.session = requests.Session()
        self.session.trust_env = False
        self.asked = time.monotonic()

    def _wait_for_url(self, seconds=60):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline().decode() if ready else ""
        if not line.startswith("listening on "):
            self.stop()
            raise RuntimeError(f"the daemon did not start: {self.log_text()[-2000:]}")
        return line.split()[-1]

    def log_text(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def stop(self):
        """SIGTERM; returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
        self.process.stdout.close()
        return self.process.returncode

    def call(self, method, path, body=None, headers=None, stream=False, timeout=60, **more):
        """body: bytes are sent as they are, anything else as JSON."""
        headers = dict(headers or {})
        if self.token is not None:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        if time.monotonic() - self.asked > 1:
            self.session.close()  # the daemon may be closing the idle connection this very moment
        response = self.session.request(method, self.url + path, data=body, headers=headers, stream=stream, timeout=timeout,
                                        allow_redirects=False, **more)
        self.asked = time.monotonic()
        self.contract.check(method, response.request.url, body, response)
        return response

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def submit(self, body, **more):
        response = self.call("POST", "/jobs", body, **more)
        assert response.status_code == 202, response.text
        return response.json()["id"]

    def wait(self, number, states=FINAL, seconds=120):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            answer = self.get(f"/jobs/{number}").json()
            if answer["state"] in states:
                return answer
            assert answer["state"] not in FINAL, answer
            time.sleep(0.05)
        raise AssertionError(f"job {number} is still {answer['state']}: {answer}")

    def run(self, body):
        number = self.submit(body)
        answer = self.wait(number)
        assert answer["state"] == "completed", answer
        return number

    def cancel_all(self):
        for state in ("queued", "running"):  # in the order of a job's life, so that none slips by
            for item in self.get(f"/jobs?state={state}&limit=500").json()["items"]:
                self.call("DELETE", f"/jobs/{item['id']}")

    def events(self, number, headers=None, timeout=60):
        """(id, type, data) until the stream ends; each checked."""
        with self.get(f"/jobs/{number}/events", headers=headers, stream=True, timeout=timeout) as response:
            if response.status_code == 204:
                return
            assert response.status_code == 200, response.text
            for event in read_events(response.iter_lines(chunk_size=1)):
                self.contract.check_event(event[1], event[2])
                yield event


def read_events(lines):
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


def make_token(state):
    """Also creates the state folder."""
    made = subprocess.run([str(BUILD / "bin" / "rooflinectl"), "token", "--state", str(state)], capture_output=True, text=True,
                          check=True)
    return made.stdout.split()[-1]
