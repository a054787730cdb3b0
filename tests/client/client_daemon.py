"""The real daemon with the CPU worker, for the tests of rooflinectl."""
import os
import pathlib
import re
import signal
import subprocess

BUILD = pathlib.Path(os.environ["ROOFLINED_BUILD"])


class Daemon:
    """options: further command-line options; environment: variables that are added to those of this process."""

    def __init__(self, state, *options, environment=None):
        self.state, self.options, self.environment = state, options, {**os.environ, **(environment or {})}
        self.start()

    def start(self, port=0):
        self.process = subprocess.Popen(
            [BUILD / "bin/rooflined", "--port", str(port), "--state", str(self.state), "--devices", "cpu", *self.options],
            env=self.environment, stdout=subprocess.PIPE, stderr=open(f"{self.state}.log", "ab"), text=True)
        line = self.process.stdout.readline()
        match = re.match(r"listening on (http://\S+)", line)
        assert match, f"the daemon did not start: {line!r}\n{open(f'{self.state}.log').read()}"
        self.url = match.group(1)

    def restart_after_kill(self):
        self.stop(signal.SIGKILL)
        self.start(self.url.rsplit(":", 1)[1])

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=60)
