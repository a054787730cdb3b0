"""Starts the daemon of a build on a free port with its own state folder, and calls its HTTP API."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.request


class Failed(Exception):
    """Raised when the daemon, a job or a program fails."""


class Daemon:
    """A context manager that starts a daemon and stops it. settings: options of the daemon; log: file to which its log is
    appended; token: if True, the daemon requires a token, and request() sends it."""

    def __init__(self, host, log, *settings, token=False):
        self.host, self.log, self.settings, self.token = host, log, settings, token

    def __enter__(self):
        self.state = tempfile.mkdtemp(prefix="rooflined-measure-")
        self.headers = {"content-type": "application/json"}
        if self.token:
            created = subprocess.run([self.host.program("rooflinectl"), "token", "--state", self.state], text=True,
                                     stdout=subprocess.PIPE, env=self.host.environment, check=True)
            self.headers["authorization"] = f"Bearer {created.stdout.split()[-1]}"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.host.program("rooflined"), "--state", self.state, "--port", "0",
                                             *self.settings],
                                            stdout=subprocess.PIPE, stderr=log, text=True, env=self.host.environment)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise Failed(f"the daemon did not start: see {self.log}")
        self.url = line.split()[-1]
        self.wait_for_device()
        return self

    def __exit__(self, *_):
        """Stops the daemon, which ends its workers. A worker that kept running would keep the counters reserved."""
        self.process.terminate()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.stdout.close()
            shutil.rmtree(self.state, ignore_errors=True)

    def request(self, path, body=None):
        """Sends a GET, or a POST with the body as JSON, and returns the decoded response."""
        message = urllib.request.Request(self.url + path, data=None if body is None else json.dumps(body).encode(),
                                         headers=self.headers)
        with urllib.request.urlopen(message, timeout=60) as response:
            return json.load(response)

    def wait_for_device(self, timeout_s=60):
        """Waits until the daemon knows the device's properties, and returns them."""
        deadline = time.monotonic() + timeout_s
        while True:
            device = next((item for item in self.request("/devices")["items"] if item["id"] == self.host.device), None)
            if device and device["properties"]:
                return device["properties"]
            if time.monotonic() > deadline or (device and device["reason"]):
                raise Failed(f"{self.host.device}: {device['reason'] if device else 'no such device'}")
            time.sleep(0.05)

    def run_job(self, body, timeout_s=600, poll_s=0.002):
        """Runs a job and returns it with "seconds", the time from POST until it was stored. Raises Failed unless every pass
        completed."""
        begin = time.monotonic()
        job_id = self.request("/jobs", {"device": self.host.device, **body})["id"]
        while (job := self.request(f"/jobs/{job_id}"))["state"] in ("queued", "running"):
            if time.monotonic() - begin > timeout_s:
                raise Failed(f"job {job_id} is still {job['state']} after {timeout_s} s")
            time.sleep(poll_s)
        duration_s = time.monotonic() - begin
        if job["state"] != "completed" or job["passes"]["completed"] != job["passes"]["total"]:
            raise Failed(f"job {job_id}: {json.dumps(job)}")
        return {**job, "seconds": duration_s}

    def run_results(self, body, **options):
        """Runs a job and returns the results of its runs."""
        return self.request(f"/jobs/{self.run_job(body, **options)['id']}/results")["runs"]

    def list_items(self, path):
        """Returns all items of a paginated list."""
        items, cursor = [], ""
        while cursor is not None:
            page = self.request(f"{path}?limit=500{cursor}")
            items += page["items"]
            cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
        return items

    def worker_pids(self):
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return sorted(int(child) for children in tasks for child in children.read_text().split())


def measurement(run, name, pass_name="timing"):
    """Returns the value of a run's measurement of a pass; None if the run has no such measurement."""
    return next((item["value"] for item in run["measurements"] if (item["pass"], item["name"]) == (pass_name, name)), None)
