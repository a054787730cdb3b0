"""The real daemon of a build, on a free port with a state folder of its own, spoken to over HTTP."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.request


class Failed(Exception):
    """A job that did not do what was asked."""


class Daemon:
    """Use in a `with`. `settings` are the daemon's own options; its log is kept in `log`."""

    def __init__(self, host, log, *settings):
        self.host, self.log, self.settings = host, log, settings

    def __enter__(self):
        self.state = tempfile.mkdtemp(prefix="rooflined-measure-")
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
        """A worker that stays would keep the counters from whoever comes next."""
        self.process.terminate()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.stdout.close()
            shutil.rmtree(self.state, ignore_errors=True)

    def ask(self, path, body=None):
        request = urllib.request.Request(self.url + path, data=None if body is None else json.dumps(body).encode(),
                                         headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def wait_for_device(self, seconds=60):
        until = time.monotonic() + seconds
        while True:
            device = next((one for one in self.ask("/devices")["items"] if one["id"] == self.host.device), None)
            if device and device["facts"]:
                return device["facts"]
            if time.monotonic() > until or (device and device["reason"]):
                raise Failed(f"{self.host.device}: {device['reason'] if device else 'no such device'}")
            time.sleep(0.05)

    def run(self, body, seconds=600):
        """The finished job with "seconds", from POST until it was stored. Fails unless every pass completed."""
        begin = time.monotonic()
        number = self.ask("/jobs", {"device": self.host.device, **body})["id"]
        while (job := self.ask(f"/jobs/{number}"))["state"] in ("queued", "running"):
            if time.monotonic() - begin > seconds:
                raise Failed(f"job {number} is still {job['state']} after {seconds} s")
            time.sleep(0.002)
        took = time.monotonic() - begin
        if job["state"] != "completed" or job["passes"]["completed"] != job["passes"]["total"]:
            raise Failed(f"job {number}: {json.dumps(job)}")
        return {**job, "seconds": took}

    def runs(self, body, **more):
        """The results of the job's runs."""
        return self.ask(f"/jobs/{self.run(body, **more)['id']}/results")["runs"]

    def items(self, path):
        """All items of a list that comes in pages."""
        found, cursor = [], ""
        while cursor is not None:
            page = self.ask(f"{path}?limit=500{cursor}")
            found += page["items"]
            cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
        return found

    def workers(self):
        """The process ids of the daemon's workers."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return sorted(int(child) for children in tasks for child in children.read_text().split())


def measurement(run, name, of="timing"):
    """A run's measurement of a pass, None where it has none."""
    return next((one["value"] for one in run["measurements"] if (one["pass"], one["name"]) == (of, name)), None)
