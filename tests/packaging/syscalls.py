#!/usr/bin/env python3
"""syscalls.py BUILD: traces the system calls of the daemon and its workers on the CPU and fails when the unit's SystemCallFilter
would refuse one."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(sys.argv[1])
SMALL_TRAINING = ["--device", "cpu", "--dataset", "synthetic", "--max-images", "256", "--epochs", "1", "--warmup-epochs", "0"]
STRACE = ["strace", "-f", "-c", "-U", "name"]
START_S = 300  # time limit for the start of the traced daemon
KERNEL = '{"kind": "kernel", "kernel": "copy", "dtype": "fp32", "shape": {"n": 4096}, "samples": 2, "device": "cpu"}'


def expand_set(name):
    """Returns the system calls of a systemd set such as @system-service, including those of nested sets."""
    if not name.startswith("@"):
        return {name}
    output = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", name], capture_output=True, text=True,
                            check=True).stdout
    names = [line.strip() for line in output.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return set().union(*map(expand_set, names)) if names else set()


def allowed_calls(unit):
    """Applies the SystemCallFilter lines of a unit in order: a list adds calls, a list that begins with ~ removes them."""
    calls = set()
    for words in re.findall(r"^SystemCallFilter=(.*)$", unit.read_text(), re.MULTILINE):
        listed = set().union(*map(expand_set, words.removeprefix("~").split()))
        calls = calls - listed if words.startswith("~") else calls | listed
    return calls


def check_strace():
    """Skips the test if strace can't trace even the program true: ptrace is forbidden, or strace lacks an option."""
    probe = subprocess.run([*STRACE, "-o", os.devnull, "true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if probe.returncode != 0:
        print(f"strace can't trace a program here: {probe.stdout}")
        sys.exit(77)


def used_calls(scratch):
    """Returns the calls of a daemon that starts, trains in every pass, times a kernel, serves the page and stops."""
    counts, out = scratch / "counts", scratch / "out"
    command = [*STRACE, "-o", str(counts), str(BUILD / "bin/rooflined"), "--port", "0", "--state", str(scratch / "state")]
    with open(out, "wb") as stdout, subprocess.Popen(command, stdout=stdout, stderr=subprocess.STDOUT) as strace:
        try:
            deadline = time.monotonic() + START_S
            while not (found := re.search(r"^listening on (\S+)", out.read_text(), re.MULTILINE)):
                if strace.poll() is not None:
                    sys.exit(f"the daemon ended before it listened, with status {strace.returncode}: {out.read_text()}")
                if time.monotonic() > deadline:
                    sys.exit(f"the daemon did not listen within {START_S} s: {out.read_text()}")
                time.sleep(0.1)
            ctl = [str(BUILD / "bin/rooflinectl"), "--url", found[1]]
            subprocess.run([*ctl, "run", *SMALL_TRAINING, "--passes", "timing,activity,counters"], check=True)
            subprocess.run([*ctl, "run", "-"], input=KERNEL, text=True, check=True)
            subprocess.run(["curl", "-fsS", "-o", str(scratch / "page"), found[1] + "/"], check=True)
        finally:
            if strace.poll() is None:
                for daemon in pathlib.Path(f"/proc/{strace.pid}/task/{strace.pid}/children").read_text().split():
                    os.kill(int(daemon), signal.SIGTERM)
            strace.wait(120)
    calls = set(counts.read_text().split()) - {"syscall", "name", "total"}
    if os.geteuid() == 0:
        calls -= {"fchown"}  # SQLite changes the owner of its files only as root, and the unit does not run the daemon as root
    return {call for call in calls if not call.startswith("-")}


def main():
    for tool in ("strace", "systemd-analyze"):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed")
            sys.exit(77)
    check_strace()
    allowed = allowed_calls(BUILD / "systemd/rooflined.service")
    assert {"read", "execve", "landlock_restrict_self"} <= allowed and "mount" not in allowed and "ptrace" not in allowed
    with tempfile.TemporaryDirectory() as scratch:
        calls = used_calls(pathlib.Path(scratch))
    assert len(calls) > 30, calls
    refused = sorted(calls - allowed)
    print(f"{len(calls)} system calls: {' '.join(sorted(calls))}")
    assert not refused, f"the unit's SystemCallFilter refuses {' '.join(refused)}"


main()
