"""The installed daemon under systemd, in a system that boots: the unit's start at boot, its sandbox, restarts after a kill and a
hang, and jobs that survive them. The tests share one system and run in their order."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import pytest
from machine import Machine, libraries_of, reason_to_skip, root_archive

BUILD = pathlib.Path(os.environ["ROOFLINED_BUILD"])
UNIT = "rooflined.service"
SHORT = {"kind": "train", "engine": "blas", "dataset": "synthetic", "device": "cpu", "max_images": 128, "epochs": 1,
         "warmup_epochs": 0, "precisions": ["fp32"]}
ENDLESS = {**SHORT, "engine": "reference", "max_images": 0, "epochs": 1000}


@pytest.fixture(scope="module")
def machine():
    """The booted system with the programs of this build in /usr/local, and the daemon enabled before the boot."""
    if reason := reason_to_skip():
        pytest.skip(reason)
    programs = [path for path in (BUILD / "bin").iterdir() if path.name.startswith("rooflin")]
    folder = tempfile.mkdtemp(prefix="rooflined-boot-")
    system = Machine(f"{folder}/root", root_archive(libraries_of(programs)))
    try:
        if reason := system.why_unbootable():
            pytest.skip(f"systemd-nspawn does not work here: {reason}")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", "/usr/local"], env={**os.environ, "DESTDIR": str(system.root)},
                       check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["systemctl", f"--root={system.root}", "enable", UNIT], check=True)
        state = system.boot()
        assert state == "running", system.run("systemctl", "--failed", "--no-legend").stdout
        yield system
        assert system.stop() < 30
    finally:
        system.stop()
        shutil.rmtree(folder, ignore_errors=True)


def ctl(machine, *arguments, stdin=None, seconds=60):
    return machine.run("rooflinectl", *arguments, stdin=stdin, seconds=seconds).stdout


def answers(machine):
    return machine.run("rooflinectl", "devices", check=False).returncode == 0


def job(machine, number):
    return json.loads(ctl(machine, "--json", "show", str(number)))


def submit(machine, request):
    return int(re.search(r"\d+", ctl(machine, "submit", "-", stdin=json.dumps(request)))[0])


def wait_for(machine, number, *states):
    machine.wait_until(lambda: job(machine, number)["state"] in states, 120, f"job {number} is {' or '.join(states)}")


def assert_completes(machine, number):
    wait_for(machine, number, "completed", "failed", "cancelled")
    assert job(machine, number)["state"] == "completed", job(machine, number)


def end_main_process(machine, *command):
    """Runs a command that ends the daemon while one job runs and another is queued. The restarted daemon must continue both."""
    running, queued = submit(machine, ENDLESS), submit(machine, SHORT)
    wait_for(machine, running, "running")
    before, restarts = main_pid(machine), int(machine.property(UNIT, "NRestarts"))
    machine.run(*command)
    machine.wait_until(lambda: main_pid(machine) not in (0, before) and answers(machine), 30, "the daemon restarts")
    assert int(machine.property(UNIT, "NRestarts")) == restarts + 1
    wait_for(machine, running, "running")
    assert job(machine, queued)["state"] == "queued"  # behind the first
    ctl(machine, "cancel", str(running))
    wait_for(machine, running, "cancelled")
    assert_completes(machine, queued)


def main_pid(machine):
    return int(machine.property(UNIT, "MainPID"))


def status_of(machine, pid):
    text = machine.run("cat", f"/proc/{pid}/status").stdout
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def test_units_verify(machine):
    for unit in ("rooflined.service", "rooflined-regress@mnist.service", "rooflined-regress@mnist.timer",
                 "rooflined-notify@x.service"):
        done = machine.run("systemd-analyze", "verify", "--man=no", unit, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_daemon_starts_at_boot_and_answers(machine):
    machine.wait_until(lambda: answers(machine), 30, "the daemon answers")
    assert machine.property(UNIT, "ActiveState") == "active"
    assert re.search(r"^cpu +cpu +idle", ctl(machine, "devices"), re.M)
    assert "listens on http://127.0.0.1:8731, state in /var/lib/rooflined" in machine.journal("-o", "cat", "-u", UNIT)
    assert_completes(machine, submit(machine, SHORT))


def test_sandbox_holds(machine):
    status = status_of(machine, main_pid(machine))
    assert all(int(uid) >= 61184 for uid in status["Uid"].split()), "the daemon's user is not dynamic"
    assert [int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")] == [0, 0, 0, 0]
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")
    inside = ("nsenter", "-t", str(main_pid(machine)), "-m", "sh", "-c")
    for folder in ("/usr", "/etc", "/var"):
        assert "Read-only" in machine.run(*inside, f"touch {folder}/x", check=False).stderr
    machine.run("systemd-analyze", "security", "--no-pager", "--threshold=20", UNIT)
    assert (machine.root / "var/lib/private/rooflined/rooflined.db").stat().st_mode & 0o777 == 0o600


def test_killed_daemon_restarts_and_continues_its_jobs(machine):
    end_main_process(machine, "systemctl", "kill", "-s", "KILL", UNIT)  # the daemon and its workers
    assert "Failed with result 'signal'" in machine.journal("-o", "cat", "-u", UNIT)


def test_watchdog_ends_a_hung_daemon(machine):
    drop_in = f"/etc/systemd/system/{UNIT}.d/watchdog.conf"
    machine.write(drop_in, "[Service]\nWatchdogSec=5\n")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", UNIT)
    end_main_process(machine, "systemctl", "kill", "--kill-who=main", "-s", "STOP", UNIT)
    assert "Failed with result 'watchdog'" in machine.journal("-o", "cat", "-u", UNIT)
    (machine.root / drop_in.lstrip("/")).unlink()
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", UNIT)


def test_invalid_configuration_is_not_retried(machine):
    machine.write("/etc/rooflined/rooflined.conf", "[rooflined]\nprot = 1\n")
    assert machine.run("systemctl", "restart", UNIT, check=False).returncode != 0
    assert machine.property(UNIT, "ActiveState") == "failed"
    assert machine.property(UNIT, "ExecMainStatus") == "78"
    assert re.search(r"rooflined\.conf.*prot", machine.journal("-o", "cat", "-u", UNIT))
    time.sleep(3)  # longer than RestartSec
    assert machine.property(UNIT, "ActiveState") == "failed"
    (machine.root / "etc/rooflined/rooflined.conf").unlink()
    machine.run("systemctl", "start", UNIT)
    assert answers(machine)
