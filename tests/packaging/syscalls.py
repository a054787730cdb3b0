#!/usr/bin/env python3
"""syscalls.py BUILD: what the daemon and its workers call in a session on the CPU, held against the unit's SystemCallFilter."""

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
SMALL = ["--device", "cpu", "--dataset", "synthetic", "--max-images", "256", "--epochs", "1", "--warmup-epochs", "0"]
KERNEL = '{"kind": "kernel", "kernel": "copy", "dtype": "fp32", "shape": {"n": 4096}, "samples": 2, "device": "cpu"}'


def members(name):
    """System calls of a set of systemd's, those of the sets in it among them."""
    if not name.startswith("@"):
        return {name}
    listed = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", name], capture_output=True, text=True,
                            check=True).stdout
    words = [line.strip() for line in listed.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return set().union(*map(members, words)) if words else set()


def allowed(unit):
    """Of a unit's lines, in their order: a list adds, one that begins with ~ takes away."""
    calls = set()
    for words in re.findall(r"^SystemCallFilter=(.*)$", unit.read_text(), re.MULTILINE):
        named = set().union(*map(members, words.removeprefix("~").split()))
        calls = calls - named if words.startswith("~") else calls | named
    return calls


def used(scratch):
    """Of a daemon that starts, trains under every pass, times a kernel, is asked for its page, and stops."""
    counts, out = scratch / "counts", scratch / "out"
    command = ["strace", "-f", "-c", "-U", "name", "-o", str(counts), str(BUILD / "bin/rooflined"), "--port", "0", "--state",
               str(scratch / "state")]
    with open(out, "wb") as stdout, subprocess.Popen(command, stdout=stdout, stderr=subprocess.STDOUT) as traced:
        try:
            until = time.monotonic() + 60
            while not (found := re.search(r"^listening on (\S+)", out.read_text(), re.MULTILINE)):
                if traced.poll() is not None or time.monotonic() > until:
                    print(f"nothing can be traced here: {out.read_text()}")
                    sys.exit(77)
                time.sleep(0.1)
            ctl = [str(BUILD / "bin/rooflinectl"), "--url", found[1]]
            subprocess.run([*ctl, "run", *SMALL, "--passes", "timing,activity,counters"], check=True)
            subprocess.run([*ctl, "run", "-"], input=KERNEL, text=True, check=True)
            subprocess.run(["curl", "-fsS", "-o", str(scratch / "page"), found[1] + "/"], check=True)
        finally:
            for daemon in pathlib.Path(f"/proc/{traced.pid}/task/{traced.pid}/children").read_text().split():
                os.kill(int(daemon), signal.SIGTERM)
            traced.wait(30)
    calls = set(counts.read_text().split()) - {"syscall", "name", "total"}
    if os.geteuid() == 0:
        calls -= {"fchown"}  # SQLite gives its files to the database's owner where it is root, as under the unit it is not
    return {call for call in calls if not call.startswith("-")}


def main():
    for tool in ("strace", "systemd-analyze"):
        if shutil.which(tool) is None:
            print(f"there is no {tool}")
            sys.exit(77)
    unit = allowed(BUILD / "systemd/rooflined.service")
    assert {"read", "execve", "landlock_restrict_self"} <= unit and "mount" not in unit and "ptrace" not in unit
    with tempfile.TemporaryDirectory() as scratch:
        calls = used(pathlib.Path(scratch))
    assert len(calls) > 30, calls
    refused = sorted(calls - unit)
    print(f"{len(calls)} system calls: {' '.join(sorted(calls))}")
    assert not refused, f"the unit's SystemCallFilter refuses {' '.join(refused)}"


main()
