"""Boots a system with the daemon, and controls jobs of this daemon through rooflinectl."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import tempfile

import pytest
from machine import Machine, libraries_of, reason_to_skip, root_archive

BUILD = pathlib.Path(os.environ["ROOFLINED_BUILD"])
UNIT = "rooflined.service"
SHORT = {"kind": "train", "engine": "blas", "dataset": "synthetic", "device": "cpu", "max_images": 128, "epochs": 1,
         "warmup_epochs": 0, "precisions": ["fp32"]}
ENDLESS = {**SHORT, "engine": "reference", "max_images": 0, "epochs": 1000}


@contextlib.contextmanager
def booted_system(prepare):
    """Makes a system with the libraries that this build's programs need, calls prepare(system), and boots the system. Skips the
    test where no system can boot."""
    if reason := reason_to_skip():
        pytest.skip(reason)
    programs = [path for path in (BUILD / "bin").iterdir() if path.name.startswith("rooflin")]
    folder = tempfile.mkdtemp(prefix="rooflined-boot-")
    system = Machine(f"{folder}/root", root_archive(libraries_of(programs)))
    try:
        if reason := system.why_unbootable():
            pytest.skip(f"systemd-nspawn does not work here: {reason}")
        prepare(system)
        state = system.boot()
        assert state == "running", system.run("systemctl", "--failed", "--no-legend").stdout
        yield system
        assert system.stop() < 50
    finally:
        system.stop()
        shutil.rmtree(folder, ignore_errors=True)


def ctl(machine, *arguments, stdin=None, seconds=180):
    return machine.run("rooflinectl", *arguments, stdin=stdin, seconds=seconds).stdout


def daemon_answers(machine):
    return machine.run("rooflinectl", "devices", check=False).returncode == 0


def job(machine, number):
    return json.loads(ctl(machine, "--json", "show", str(number)))


def submit(machine, request):
    return int(re.search(r"\d+", ctl(machine, "submit", "-", stdin=json.dumps(request)))[0])


def wait_for(machine, number, *states):
    machine.wait_until(lambda: job(machine, number)["state"] in states, 300, f"job {number} is {' or '.join(states)}")


def assert_completes(machine, number):
    wait_for(machine, number, "completed", "failed", "cancelled")
    assert job(machine, number)["state"] == "completed", job(machine, number)


def main_pid(machine):
    return int(machine.property(UNIT, "MainPID"))
