"""How long reports take, and whether a thousand of them leave anything behind."""
import ctypes
import json
import os
import pathlib
import statistics
import time

from ..daemon import Daemon
from ..numbers import line
from ..runner import check
from . import programs

RELU = {"dtype": "fp16", "shape": {"n": 4194304}, "variant": "scalar"}
TEN = [{"kernel": "relu", **RELU}] * 10
ONE_JOB, ONE_SUBJECT = {"kind": "kernel", "kernel": "relu", **RELU}, ("relu", "auto", RELU)
TEN_JOB, TEN_SUBJECT = {"kind": "kernel", "kernels": TEN}, ("sequence", "auto", {"kernels": TEN})
# kernels, set (full looks inside kernels as well), at most so many seconds (None: no bar), job, what ncu runs
REPORTS = [
    (1, "full", 1.4, ONE_JOB, ONE_SUBJECT),
    (10, "full", 2.6, TEN_JOB, TEN_SUBJECT),
    (10, "basic", 0.7, TEN_JOB, TEN_SUBJECT),
    (1, "basic", None, ONE_JOB, ONE_SUBJECT),
    (10, "detailed", None, TEN_JOB, TEN_SUBJECT),
]
REPEATS = 5


def ncu_seconds(context, which, subject):
    """One run of ncu over the same launches, the whole program."""
    workload, engine, params = subject
    command = [context.host.tool("ncu"), "--profile-from-start", "off", "--set", which, "--clock-control", "none",
               context.host.test_program("cupti_probe_train"), "run", workload, engine, json.dumps(params)]
    begin = time.monotonic()
    status, _ = programs.run(context, command, "ncu.txt")
    return time.monotonic() - begin if status == 0 else None


def profile(host, job, which):
    """The request. A CPU has no counters: there it is the same jobs, smaller, for their times."""
    if host.gpu:
        return {**job, "set": which, "passes": ["counters"]}
    return json.loads(json.dumps({**job, "passes": ["timing"], "samples": 1}).replace('"n": 4194304', '"n": 4096'))


def spent(daemon, jobs):
    """Median milliseconds by piece of the counters pass, and what is not of it: the queue, the pipe, storing."""
    pieces = {}
    for job in jobs:
        run, = daemon.ask(f"/jobs/{job['id']}/results")["runs"]
        own = {one["name"].removeprefix("spent_").removesuffix("_ms"): one["value"]
               for one in run["measurements"] if one["name"].startswith("spent_")}
        for piece, ms in {**own, "rest": job["seconds"] * 1e3 - sum(own.values())}.items():
            pieces.setdefault(piece, []).append(ms)
    return {piece: round(statistics.median(ms), 1) for piece, ms in pieces.items()}


def speed(context):
    host = context.host
    with Daemon(host, context.log("daemon.log")) as daemon:
        for kernels, which, bar, job, subject in REPORTS:
            first, *jobs = [daemon.run(profile(host, job, which)) for _ in range(REPEATS + 1)]
            times = [one["seconds"] for one in jobs]
            row = {"kernels": kernels, "set": which, "median_s": statistics.median(times),
                   "least_s": min(times), "most_s": max(times), "first_s": first["seconds"], "at_most_s": bar,
                   "spent_ms": spent(daemon, jobs)}
            if host.gpu and bar:
                row["ncu_s"] = ncu_seconds(context, which, subject)
            yield row
            if host.gpu and bar:
                yield check(f"{which} of {kernels} within {bar} s", row["median_s"] <= bar, row["median_s"])


SOAK_JOBS = 1000
SOAK_WARM = 0.1  # of the jobs: what is allocated once and kept
SOAK_GROUP = 5   # samples: the least of them leaves out what a request held just then
GROWTH, DRIFT = 0.01, 0.01


def memory_of(process):
    """Resident and anonymous bytes."""
    fields = dict(one.split(":", 1) for one in pathlib.Path(f"/proc/{process}/status").read_text().splitlines())
    return {"rss_bytes": int(fields["VmRSS"].split()[0]) << 10, "anonymous_bytes": int(fields["RssAnon"].split()[0]) << 10}


class DeviceMemory:
    """Bytes in use on the first GPU, by NVML; None without it."""

    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]

    def __init__(self):
        self.nvml, self.device = None, ctypes.c_void_p()
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if nvml.nvmlInit_v2() == 0 and self.find(nvml, os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]) == 0:
            self.nvml = nvml

    def find(self, nvml, name):
        if name.isdigit():
            return nvml.nvmlDeviceGetHandleByIndex_v2(int(name), ctypes.byref(self.device))
        return nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(self.device))

    def used(self):
        info = self.Info()
        return info.used if self.nvml and self.nvml.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(info)) == 0 else None


def kernel_us(daemon, job, gpu):
    """The steady kernel's time in a job."""
    if gpu:
        return counted_us(daemon.ask(f"/jobs/{job['id']}/kernels")["items"][0])
    return min(one["device_us"] for one in daemon.ask(f"/jobs/{job['id']}/results")["runs"][0]["samples"])


def counted_us(kernel):
    return next(one["value"] for one in kernel["metrics"] if one["metric"] == "gpu__time_duration.sum") / 1e3


def soak_sample(daemon, memory, jobs):
    workers = [memory_of(worker) for worker in daemon.workers()]
    return {"jobs": jobs, "daemon": memory_of(daemon.process.pid), "device_bytes": memory.used(), "workers": len(workers),
            "worker": {name: sum(one[name] for one in workers) for name in ("rss_bytes", "anonymous_bytes")}}


def least_of_groups(values):
    return [min(values[i:i + SOAK_GROUP]) for i in range(0, len(values) - SOAK_GROUP + 1, SOAK_GROUP)]


def soak_fits(samples, times):
    """name, unit, line, whether it may be as it is (None: that is not asked of it)"""
    jobs, daemon, worker, device = ([one["jobs"] for one in samples], [one["daemon"]["rss_bytes"] for one in samples],
                                    [one["worker"]["rss_bytes"] for one in samples], [one["device_bytes"] for one in samples])
    for name, values, asked in [("host memory", [sum(both) for both in zip(daemon, worker)], True),
                                ("the daemon's part", daemon, False),
                                ("the worker's part", worker, False), ("device memory", device, True)]:
        if None not in values:
            fit = line(least_of_groups(jobs), least_of_groups(values))
            yield f"growth of {name}", "bytes", fit, fit["growth_ratio"] <= GROWTH if asked else None
    numbers, us = zip(*times)
    fit = line(numbers, us)
    # On a machine that does other things besides, a time drifts without anybody's fault: only what its interval excludes counts.
    yield "drift of a kernel's time", "us", fit, fit["low"] <= DRIFT and fit["high"] >= -DRIFT


def soak(context):
    host, memory = context.host, DeviceMemory()
    body = profile(host, ONE_JOB, "basic")
    samples, times = [], []
    with Daemon(host, context.log("daemon.log")) as daemon:
        begin, workers = time.monotonic(), None
        for number in range(1, SOAK_JOBS + 1):
            job = daemon.run(body)
            workers = workers or daemon.workers()
            times.append((number, kernel_us(daemon, job, host.gpu)))
            if number % 10 == 0:
                samples.append(soak_sample(daemon, memory, number))
                yield samples[-1]
            if context.left_s() < 5:
                break
        took = time.monotonic() - begin
        yield {"jobs_done": number, "seconds": took, "kernel_us": [us for _, us in times]}
        if number < SOAK_JOBS:
            yield {"partial": f"{number} of {SOAK_JOBS} jobs fit into the time"}
        yield check("one worker for all of them", daemon.workers() == workers, len(daemon.workers()))
    steady = number * SOAK_WARM
    for name, unit, fit, holds in soak_fits([one for one in samples if one["jobs"] >= steady],
                                            [one for one in times if one[0] >= steady]):
        yield {"fit": name, "unit": unit, **fit}
        if holds is not None:
            yield check(name, holds, fit["growth_ratio"])
