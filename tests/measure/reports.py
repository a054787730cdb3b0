#!/usr/bin/env python3
"""How long a kernel's report takes: from POST /jobs until it is stored, on a warm worker, and ncu beside it on the same kernels.

  reports.py BIN TESTS [--runs 7] [--no-ncu]

BIN has rooflined and its workers, TESTS has cupti_probe_train and cupti_probe_gallery. Prints a Markdown table. Ten kernels are counted by
the profiler's module in a process of its own, without what storing takes."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.request

RELU = {"dtype": "fp16", "shape": {"n": 4194304}, "variant": "scalar"}
CASES = [  # what, the request beside kind and device, set; ncu's workload, engine and parameters
    ("ReLU 2048², fp16", {"kind": "kernel", "kernel": "relu", **RELU}, "full", ("relu", "cuda", RELU)),
    ("ReLU 2048², fp16", {"kind": "kernel", "kernel": "relu", **RELU}, "detailed", ("relu", "cuda", RELU)),
    ("ReLU 2048², fp16", {"kind": "kernel", "kernel": "relu", **RELU}, "basic", ("relu", "cuda", RELU)),
]


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


def ten(options, ncu):
    """Ten launches of one ReLU in a step."""
    probe = os.path.join(options.tests, "cupti_probe_gallery")
    module = {**os.environ, "ROOFLINED_CUPTI": os.path.join(options.bin, "rooflined-cupti.so")}
    for which in ("full", "detailed", "basic"):
        text = subprocess.run([probe, "bench", which, str(options.runs + 1), "relu", "10"], capture_output=True, text=True, env=module, check=True).stdout
        first, *times = [float(line.split()[-2]) for line in text.splitlines()]
        begin = time.monotonic()
        if ncu:
            subprocess.run([ncu, "--profile-from-start", "off", "--set", which, "--clock-control", "none", probe, "run", "relu", "10"],
                           capture_output=True, check=True)
        row("10 × ReLU 2048², fp16: counting alone", which, times, first, time.monotonic() - begin if ncu else float("nan"))


def row(name, which, times, first, beside):
    print(f"| {name} | {which} | {statistics.median(times):.3f} | {min(times):.3f} | {max(times):.3f} | {first:.3f} | {beside:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin")
    parser.add_argument("tests")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--no-ncu", action="store_true")
    options = parser.parse_args()
    ncu = None if options.no_ncu else shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    print("| kernels | set | median s | least s | most s | first s | ncu s |\n| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as state:
        daemon = Daemon(options.bin, state)
        for name, body, which, subject in CASES:
            request = {**body, "device": "gpu0", "passes": ["counters"], "set": which}
            first, *times = [daemon.seconds(request) for _ in range(options.runs + 1)]
            beside = ncu_seconds(ncu, os.path.join(options.tests, "cupti_probe_train"), which, subject) if ncu else float("nan")
            row(name, which, times, first, beside)
        daemon.close()
    ten(options, ncu)


if __name__ == "__main__":
    main()
