#!/usr/bin/env python3
"""How long a kernel's report takes: from POST /jobs until it is stored, on a warm worker, and ncu beside it on the same kernels.

  reports.py BIN TESTS [--runs 7] [--no-ncu]

BIN has rooflined and its workers, TESTS has cupti_probe_train. Prints a Markdown table."""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

RELU = {"dtype": "fp16", "shape": {"n": 4194304}, "variant": "scalar"}
TEN = [{"kernel": "relu", **RELU}] * 10
ONCE = ("1 × ReLU 2048², fp16", {"kind": "kernel", "kernel": "relu", **RELU}, ("relu", "auto", RELU))
TEN_TIMES = ("10 × ReLU 2048², fp16", {"kind": "kernel", "kernels": TEN}, ("sequence", "auto", {"kernels": TEN}))
CASES = [(*ONCE, "full"), (*TEN_TIMES, "full"), (*TEN_TIMES, "detailed"), (*TEN_TIMES, "basic"), (*ONCE, "basic")]


class Daemon:
    def __init__(self, folder, state):
        self.process = subprocess.Popen([os.path.join(folder, "rooflined"), "--state", state, "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().removeprefix("listening on ").strip()

    def ask(self, path, body=None):
        request = urllib.request.Request(self.url + path, data=None if body is None else json.dumps(body).encode(),
                                         headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def seconds(self, body):
        begin = time.monotonic()
        number = self.ask("/jobs", body)["id"]
        while (job := self.ask(f"/jobs/{number}"))["state"] in ("queued", "running"):
            time.sleep(0.002)
        if job["state"] != "completed" or job["passes"]["completed"] != job["passes"]["total"]:
            raise SystemExit(f"job {number}: {json.dumps(job)}")
        return time.monotonic() - begin

    def close(self):
        self.process.terminate()
        self.process.wait()


def ncu_seconds(ncu, probe, which, subject):
    workload, engine, params = subject
    begin = time.monotonic()
    done = subprocess.run([ncu, "--profile-from-start", "off", "--set", which, "--clock-control", "none", probe, "run", workload, engine,
                           json.dumps(params)], capture_output=True, text=True)
    return time.monotonic() - begin if done.returncode == 0 else float("nan")


def row(name, which, times, first, beside):
    print(f"| {name} | {which} | {statistics.median(times):.3f} | {min(times):.3f} | {max(times):.3f} | {first:.3f} | {beside:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin")
    parser.add_argument("tests")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--no-ncu", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    ncu = None if options.no_ncu else shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    print("| kernels | set | median s | least s | most s | first s | ncu s |\n| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as state:
        daemon = Daemon(options.bin, state)
        try:
            for name, body, subject, which in CASES:
                request = {**body, "device": "gpu0", "passes": ["counters"], "set": which}
                first, *times = [daemon.seconds(request) for _ in range(options.runs + 1)]
                beside = ncu_seconds(ncu, os.path.join(options.tests, "cupti_probe_train"), which, subject) if ncu else float("nan")
                row(name, which, times, first, beside)
        finally:
            daemon.close()  # a worker that stays would keep the counters from whoever comes next


if __name__ == "__main__":
    main()
