"""Steps that measure how long reports and posted jobs take, and how memory grows over a thousand reports."""
import base64
import ctypes
import json
import os
import pathlib
import statistics
import struct
import time

from ..daemon import Daemon
from ..host import Skip
from ..numbers import fit_line
from ..runner import check, target
from . import programs

RELU = {"dtype": "fp16", "shape": {"n": 4194304}, "variant": "scalar"}
TEN_KERNELS = [{"kernel": "relu", **RELU}] * 10
# The launches of a report: a job for the daemon, and (workload, engine, parameters) of cupti_probe_train for ncu.
ONE_JOB, ONE_SUBJECT = {"kind": "kernel", "kernel": "relu", **RELU}, ("relu", "auto", RELU)
TEN_JOB, TEN_SUBJECT = {"kind": "kernel", "kernels": TEN_KERNELS}, ("sequence", "auto", {"kernels": TEN_KERNELS})
# (number of kernels, set (full includes metrics by instruction), limit in seconds or None, job, subject for ncu)
REPORTS = [
    (1, "full", 0.65, ONE_JOB, ONE_SUBJECT),
    (10, "full", 1.1, TEN_JOB, TEN_SUBJECT),
    (10, "basic", 0.45, TEN_JOB, TEN_SUBJECT),
    (1, "basic", None, ONE_JOB, ONE_SUBJECT),
    (10, "detailed", None, TEN_JOB, TEN_SUBJECT),
]
REPEATS = 5


def ncu_seconds(context, metric_set, subject):
    """Returns the duration of one ncu run over the same launches, including the whole program; None when it fails."""
    workload, engine, params = subject
    command = [context.host.tool("ncu"), "--profile-from-start", "off", "--set", metric_set, "--clock-control", "none",
               context.host.test_program("cupti_probe_train"), "run", workload, engine, json.dumps(params)]
    begin = time.monotonic()
    status, _ = programs.run(context, command, "ncu.txt")
    return time.monotonic() - begin if status == 0 else None


def profile(host, job, metric_set):
    """Returns the request for a report of the job. A CPU has no counters, so it gets a smaller job with the timing pass."""
    if host.is_gpu:
        return {**job, "set": metric_set, "passes": ["counters"]}
    return json.loads(json.dumps({**job, "passes": ["timing"], "samples": 1}).replace('"n": 4194304', '"n": 4096'))


def stage_times_ms(daemon, jobs):
    """Returns the median time of each stage of the counters pass, and of the compilation of posted code in the timing pass.
    "rest" is the remaining time of a job: waiting in the queue, transfer of the results through the pipe, storing, and the other
    work of the passes."""
    times = {}
    for job in jobs:
        run, = daemon.request(f"/jobs/{job['id']}/results")["runs"]
        stages = {item["name"].removeprefix("spent_").removesuffix("_ms"): item["value"]
                  for item in run["measurements"]
                  if item["name"].startswith("spent_") or (item["pass"], item["name"]) == ("timing", "compile_ms")}
        for stage, ms in {**stages, "rest": job["seconds"] * 1e3 - sum(stages.values())}.items():
            times.setdefault(stage, []).append(ms)
    return {stage: round(statistics.median(ms), 1) for stage, ms in times.items()}


def speed(context):
    host = context.host
    with Daemon(host, context.log_path("daemon.log")) as daemon:
        for kernels, metric_set, limit_s, job, subject in REPORTS:
            first, *jobs = [daemon.run_job(profile(host, job, metric_set)) for _ in range(REPEATS + 1)]
            times = [item["seconds"] for item in jobs]
            row = {"kernels": kernels, "set": metric_set, "median_s": statistics.median(times),
                   "least_s": min(times), "most_s": max(times), "first_s": first["seconds"], "at_most_s": limit_s,
                   "spent_ms": stage_times_ms(daemon, jobs)}
            if host.is_gpu and limit_s:
                row["ncu_s"] = ncu_seconds(context, metric_set, subject)
            yield row
            if host.is_gpu and limit_s:
                yield target(f"{metric_set} of {kernels} within {limit_s} s", row["median_s"] <= limit_s, row["median_s"])


POSTED_ELEMENTS = 1 << 18
POSTED_CODE = """extern "C" __global__ void scale(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + %d;
}"""
# (name, members of the request, limit of the median in seconds or None, pause before each job in seconds)
POSTED_JOBS = [
    ("timing", {"passes": ["timing"]}, 0.35, 1),
    ("timing", {"passes": ["timing"]}, None, 0),
    ("timing and full report", {"passes": ["timing", "counters"], "set": "full"}, 1.2, 1),
    ("timing and full report", {"passes": ["timing", "counters"], "set": "full"}, None, 0),
]
POSTED_REPEATS = 20


def posted_job(number, **changes):
    """Returns a job whose kernel no earlier job has compiled: `number` makes it unique. The result of every launch is compared
    with the expected one."""
    values = struct.pack(f"<{POSTED_ELEMENTS}f", *[2.0 + number] * POSTED_ELEMENTS)
    buffer = {"dtype": "fp32", "count": POSTED_ELEMENTS}
    return {"kind": "source", "code": POSTED_CODE % number, "entry": "scale", "grid": [POSTED_ELEMENTS // 256], "block": [256],
            "arguments": [{"buffer": {**buffer, "init": "ones", "access": "in"}}, {"buffer": {**buffer, "access": "out"}},
                          {"scalar": {"dtype": "int32", "value": POSTED_ELEMENTS}}],
            "expected": {"argument": 1, "values": base64.b64encode(values).decode()}, **changes}


def posted(context):
    """Measures the time of jobs with posted kernels from POST until they are stored, with a pause before each job and without."""
    if not context.host.is_gpu:
        raise Skip("posted kernels need a GPU")
    number = 0
    with Daemon(context.host, context.log_path("daemon.log"), "--allow-source", "--body-limit-bytes", str(16 << 20),
                token=True) as daemon:
        for name, changes, limit_s, pause_s in POSTED_JOBS:
            jobs = []
            for _ in range(POSTED_REPEATS + 1):
                time.sleep(pause_s)
                number += 1
                jobs.append(daemon.run_job(posted_job(number, **changes)))
            first, *times = [job["seconds"] for job in jobs]
            yield {"passes": name, "pause_s": pause_s, "median_s": statistics.median(times), "least_s": min(times),
                   "most_s": max(times), "first_s": first, "at_most_s": limit_s,
                   "spent_ms": stage_times_ms(daemon, jobs[1:]), "first_spent_ms": stage_times_ms(daemon, jobs[:1])}
            if limit_s:
                yield target(f"{name} within {limit_s} s", statistics.median(times) <= limit_s, statistics.median(times))


MAX_CHECK_COST_RATIO = 0.01
ATOMICS_CODE = """extern "C" __global__ void histogram(const float *x, float *y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(y + i % 4096, x[i]);
}"""
POLYNOMIAL_CODE = """extern "C" __global__ void polynomial(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  for (int k = 0; k < 512; k++) v = v * 0.5f + x[i];
  y[i] = v;
}"""


def correct_programs():
    """Returns {name: posted program}. Each computes correctly, and the checks verify its result and that its inputs stay."""
    def program(code, entry, count, results, expected, grid):
        buffers = [{"dtype": "fp32", "count": count, "init": "ones", "access": "in"}, {"dtype": "fp32", "count": results}]
        arguments = [*({"buffer": item} for item in buffers), {"scalar": {"dtype": "int32", "value": count}}]
        values = base64.b64encode(struct.pack(f"<{results}f", *[expected] * results)).decode()
        return {"code": code, "entry": entry, "grid": [grid], "block": [256], "arguments": arguments,
                "expected": {"argument": 1, "values": values}}

    scale = POSTED_CODE % 1
    return {"scale_small": program(scale, "scale", 1 << 16, 1 << 16, 3.0, 256),
            "scale": program(scale, "scale", 1 << 19, 1 << 19, 3.0, 2048),
            "polynomial": program(POLYNOMIAL_CODE, "polynomial", 1 << 18, 1 << 18, 2.0, 1024),
            "histogram": program(ATOMICS_CODE, "histogram", 1 << 22, 4096, 1024.0, 132 * 8)}


def check_cost(context):
    """Compares the times of posted kernels when their results are checked after each launch with the times without checks."""
    context.host.require_gpu()
    files = []
    for name, program in correct_programs().items():
        files.append(context.log_path(f"{name}.json"))
        files[-1].write_text(json.dumps(program))
    for row in programs.json_lines(context, [context.host.test_program("bench_checks"), *files], "bench_checks.jsonl"):
        yield row
        yield target(f"{row['program']}, {row['cache']}: the checks change the time by at most 1 % (95 % interval)",
                     max(1 - row["low_ratio"], row["high_ratio"] - 1) <= MAX_CHECK_COST_RATIO, row["ratio"] - 1)


SOAK_JOBS = 1000
SOAK_WARMUP_RATIO = 0.1  # share of the jobs that come before the fits, because permanent allocations are made in them
SOAK_GROUP_SAMPLES = 5   # size of a group; its minimum excludes memory that a request holds at the moment of sampling
MAX_GROWTH_RATIO, MAX_DRIFT_RATIO = 0.01, 0.01


def process_memory(process):
    """Returns the resident and the anonymous memory of a process in bytes."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines())
    return {"rss_bytes": int(fields["VmRSS"].split()[0]) << 10, "anonymous_bytes": int(fields["RssAnon"].split()[0]) << 10}


class DeviceMemory:
    """Reads from NVML how much memory of the first visible GPU is in use."""

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

    def used_bytes(self):
        """Returns the device memory in use; None without NVML."""
        info = self.Info()
        return info.used if self.nvml and self.nvml.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(info)) == 0 else None


def kernel_duration_us(daemon, job, gpu):
    """Returns the duration of the job's kernel: on a GPU as the counters measured it, on a CPU the fastest sample."""
    if gpu:
        return counter_duration_us(daemon.request(f"/jobs/{job['id']}/kernels")["items"][0])
    return min(sample["device_us"] for sample in daemon.request(f"/jobs/{job['id']}/results")["runs"][0]["samples"])


def counter_duration_us(kernel):
    return next(item["value"] for item in kernel["metrics"] if item["metric"] == "gpu__time_duration.sum") / 1e3


def soak_sample(daemon, memory, jobs):
    workers = [process_memory(worker) for worker in daemon.worker_pids()]
    return {"jobs": jobs, "daemon": process_memory(daemon.process.pid), "device_bytes": memory.used_bytes(),
            "workers": len(workers),
            "worker": {name: sum(worker[name] for worker in workers) for name in ("rss_bytes", "anonymous_bytes")}}


def group_minima(values):
    return [min(values[i:i + SOAK_GROUP_SAMPLES]) for i in range(0, len(values) - SOAK_GROUP_SAMPLES + 1, SOAK_GROUP_SAMPLES)]


def soak_fits(samples, times):
    """Yields (name, unit, fit, holds) for each quantity. holds: whether growth or drift is within its limit; None if it has no
    limit."""
    jobs = [sample["jobs"] for sample in samples]
    daemon, worker = ([sample[process]["rss_bytes"] for sample in samples] for process in ("daemon", "worker"))
    device = [sample["device_bytes"] for sample in samples]
    for name, values, has_limit in [("host memory", [sum(parts) for parts in zip(daemon, worker)], True),
                                    ("the daemon's part", daemon, False),
                                    ("the worker's part", worker, False), ("device memory", device, True)]:
        if None not in values:
            fit = fit_line(group_minima(jobs), group_minima(values))
            yield f"growth of {name}", "bytes", fit, fit["growth_ratio"] <= MAX_GROWTH_RATIO if has_limit else None
    job_numbers, us = zip(*times)
    fit = fit_line(job_numbers, us)
    # Other work on the machine makes times drift, so the check fails only if the drift's whole interval is outside the limit.
    yield "drift of a kernel's time", "us", fit, fit["low"] <= MAX_DRIFT_RATIO and fit["high"] >= -MAX_DRIFT_RATIO


def soak(context):
    host, memory = context.host, DeviceMemory()
    body = profile(host, ONE_JOB, "basic")
    samples, times = [], []
    with Daemon(host, context.log_path("daemon.log")) as daemon:
        begin, workers = time.monotonic(), None
        for number in range(1, SOAK_JOBS + 1):
            job = daemon.run_job(body)
            workers = workers or daemon.worker_pids()
            times.append((number, kernel_duration_us(daemon, job, host.is_gpu)))
            if number % 10 == 0:
                samples.append(soak_sample(daemon, memory, number))
                yield samples[-1]
            if context.remaining_s() < 5:
                break
        seconds = time.monotonic() - begin
        yield {"jobs_done": number, "seconds": seconds, "kernel_us": [us for _, us in times]}
        if number < SOAK_JOBS:
            yield {"partial": f"{number} of {SOAK_JOBS} jobs fit into the time"}
        yield check("one worker ran all jobs", daemon.worker_pids() == workers, len(daemon.worker_pids()))
    first_steady = number * SOAK_WARMUP_RATIO
    for name, unit, fit, holds in soak_fits([sample for sample in samples if sample["jobs"] >= first_steady],
                                            [item for item in times if item[0] >= first_steady]):
        yield {"fit": name, "unit": unit, **fit}
        if holds is not None:
            yield check(name, holds, fit["growth_ratio"])
