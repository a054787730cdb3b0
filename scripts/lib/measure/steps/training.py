"""The training workload: epoch times, memory, and the duration of a step by launch."""
import json
import re
import statistics
import urllib.error

from ..daemon import Daemon, Failed, measurement
from ..host import SOURCE
from ..runner import check, target
from . import programs

PURPOSES = ("dataset", "weights", "activations", "workspace")
OTHER_ENGINES = ("auto", "reference", "blas")  # auto selects one of the measured engines; the others run on a CPU only


def job_sizes(host):
    """Returns precisions, batch sizes, and the fields that make a job short enough for the device."""
    if host.is_gpu:
        return ("fp32", "tf32", "fp16"), (64, 512, 4096), {"epochs": 10}
    return ("fp32", "fp16"), (64,), {"epochs": 2, "max_images": 640, "warmup_epochs": 0}


def engines(host):
    """Returns the names of the engines to measure."""
    if not host.is_gpu:
        return ["blas"]
    document = json.loads((SOURCE / "schema" / "openapi.json").read_text())
    names = document["components"]["schemas"]["TrainJob"]["properties"]["engine"]["enum"]
    return [engine for engine in names if engine not in OTHER_ENGINES]


def train_each(daemon, host, batches, **fields):
    """Yields (row, run, job id) for each engine, batch size and precision. If the engine does not support the parameters, run is
    None and the row has the reason."""
    precisions, _, size = job_sizes(host)
    for engine in engines(host):
        for batch in batches:
            for precision in precisions:
                row = {"engine": engine, "precision": precision, "batch": batch}
                try:
                    job = daemon.run_job({"kind": "train", "engine": engine, "precisions": [precision], "batch_size": batch,
                                          "passes": ["timing"], **size, **fields})
                    yield row, daemon.request(f"/jobs/{job['id']}/results")["runs"][0], job["id"]
                except (Failed, urllib.error.HTTPError) as refusal:
                    yield {**row, "refused": str(refusal)[:300]}, None, None


# Limits of the median epoch of the step `job`: the times of PyTorch's compiled graph (docs/measurements/h200-main-job.md).
JOB_TARGETS_MS = {"fp32": 264, "fp16": 205}
MIN_JOB_ACCURACY = 0.985  # of one seed


def job(context):
    host = context.host
    size = {} if host.is_gpu else {"epochs": 1, "max_images": 640}
    passes = ["timing", "activity", "counters"] if host.is_gpu else ["timing", "activity"]
    with Daemon(host, context.log_path("daemon.log")) as daemon:
        done = daemon.run_job({"kind": "train", "precisions": ["fp32", "fp16"], "epochs": 5, "passes": passes, **size})
        yield {"seconds": done["seconds"],
               "shown": programs.run(context, [host.program("rooflinectl"), "--url", daemon.url, "show", str(done["id"])],
                                     "show.txt")[1]}
        for run in daemon.request(f"/jobs/{done['id']}/results")["runs"]:
            yield {name: run[name] for name in ("variant", "engine", "dataset", "commit", "summary", "epochs", "measurements")}
            yield from job_checks(run, host.is_gpu)


def job_checks(run, is_gpu):
    name = run["variant"]
    for measurement_name, expected in [("activity_dropped_records", 0), ("activity_zero_time_records", 0),
                                       ("completeness_ratio", 1)]:
        measured = measurement(run, measurement_name, "activity")
        yield check(f"{name}: {measurement_name} is {expected}", measured == expected, measured)
    yield check(f"{name}: no epoch is suspect", not any(epoch["suspect"] for epoch in run["epochs"]))
    if is_gpu:
        summary = run["summary"]
        yield target(f"{name}: median epoch within {JOB_TARGETS_MS[name]} ms", summary["epoch_ms_median"] <= JOB_TARGETS_MS[name],
                     summary["epoch_ms_median"])
        yield check(f"{name}: accuracy", summary["test_accuracy_ratio"] >= MIN_JOB_ACCURACY, summary["test_accuracy_ratio"])


# Milliseconds per epoch of the best engine on an H200: target and next target.
EPOCH_TARGETS_MS = {(64, "fp32"): (29, 23), (64, "tf32"): (17, 13), (64, "fp16"): (14, 11), (512, "fp16"): (6, 5),
                    (4096, "fp16"): (4, 3)}


def epochs(context):
    host, done_rows = context.host, []
    with Daemon(host, context.log_path("daemon.log")) as daemon:
        for row, run, _ in train_each(daemon, host, job_sizes(host)[1]):
            if run:
                summary = run["summary"]
                row |= {"by": "http", "epochs": summary["epochs"], "epoch_ms_median": summary["epoch_ms_median"],
                        "epoch_ms_min": summary["epoch_ms_min"],
                        "epoch_ms": [epoch["epoch_ms"] for epoch in run["epochs"] if not epoch["warmup"]],
                        "floor_ms": measurement(run, "floor_ms"), "test_accuracy_ratio": summary["test_accuracy_ratio"],
                        "launches_per_step": summary["launches_per_step"]}
                done_rows.append(row)
            yield row
    if host.is_gpu:
        yield from compare_with_targets(done_rows)
        yield from bench_epochs(context, [row for row in done_rows if row["batch"] == 64])


def compare_with_targets(rows):
    for (batch, precision), (target_ms, next_target_ms) in EPOCH_TARGETS_MS.items():
        candidates = [row for row in rows if (row["batch"], row["precision"]) == (batch, precision)]
        best = min(candidates, key=lambda row: row["epoch_ms_median"], default={"engine": None, "epoch_ms_median": None})
        ms = best["epoch_ms_median"]
        met = ms is not None and ms <= target_ms
        yield {"batch": batch, "precision": precision, "best_engine": best["engine"], "best_ms": ms, "target_ms": target_ms,
               "met": met, "next_target_ms": next_target_ms}
        yield target(f"{precision}, batch {batch}: the best engine within {target_ms} ms", met, ms)


IMAGES = 60000
PART = re.compile(r"^  (\S+) +([\d.]+) us$", re.M)


def bench_epochs(context, rows):
    """Times the same trainings without the daemon. Also times each launch of a step by repeating it in a graph, or the phases of
    a launch that runs several steps."""
    for row in rows:
        result = bench(context, row, "epochs=10", "launches=1")
        if result["launches"] < IMAGES / row["batch"]:
            result["parts_us"] = bench(context, row, "epochs=2", "phases=1")["parts_us"]
        yield {"by": "bench_train", **result}


def bench(context, row, *options):
    params = {name: row[name] for name in ("engine", "precision", "batch")}
    command, log = [context.host.test_program("bench_train"), *(f"{name}={value}" for name, value in params.items()),
                    *options], f"{'-'.join(map(str, params.values()))}.log"
    result = programs.json_lines(context, command, log)[-1]
    return {**result, **params, "parts_us": {name: float(us) for name, us in PART.findall(context.log_path(log).read_text())}}


# Limits at batch 64 of the device memory without the data set, for the engine that needs the least.
MEMORY_TARGETS_BYTES = {"fp32": 16e6, "fp16": 12e6}
MAX_FP16_RATIO = 0.6  # memory in FP16 over memory in FP32, at batch 4096


def memory(context):
    host, memory_bytes = context.host, {}
    with Daemon(host, context.log_path("daemon.log")) as daemon:
        for row, run, _ in train_each(daemon, host, (64, 4096) if host.is_gpu else (64,), epochs=1):
            if run:
                row |= {"peak_bytes": measurement(run, "peak_memory_bytes"),
                        "context_bytes": measurement(run, "context_memory_bytes"),
                        **{f"{purpose}_bytes": measurement(run, f"memory_{purpose}_bytes") for purpose in PURPOSES}}
                row["besides_dataset_bytes"] = row["peak_bytes"] - row["dataset_bytes"]
                memory_bytes[row["engine"], row["batch"], row["precision"]] = row["besides_dataset_bytes"]
            yield row
    if host.is_gpu:
        for precision, limit_bytes in MEMORY_TARGETS_BYTES.items():
            measured = min((size for (_, *key), size in memory_bytes.items() if key == [64, precision]), default=None)
            yield target(f"{precision}, batch 64: within {limit_bytes / 1e6:.0f} MB",
                         measured is not None and measured <= limit_bytes, measured)
        for engine in {engine for engine, *_ in memory_bytes}:
            half, full = (memory_bytes.get((engine, 4096, precision)) for precision in ("fp16", "fp32"))
            if half and full:
                yield target(f"{engine}, batch 4096: FP16 at most {MAX_FP16_RATIO} of FP32", half / full <= MAX_FP16_RATIO,
                             half / full)


MAX_TIMELINE_ITEMS = 100000


def phases(context):
    """Runs the activity pass over an epoch. Yields for each kernel its durations, and "later_us": by how much its launches delay
    the ends of the steps, summed over the epoch."""
    host = context.host
    with Daemon(host, context.log_path("daemon.log")) as daemon:
        for row, run, job_id in train_each(daemon, host, job_sizes(host)[1][:2], epochs=1, passes=["timing", "activity"]):
            if run is None:
                yield row
                continue
            row["steps"] = run["steps_per_epoch"]
            kernels = daemon.list_items(f"/jobs/{job_id}/kernels")
            added_us = added_us_by_kernel(daemon.request(f"/jobs/{job_id}/timeline?limit={MAX_TIMELINE_ITEMS}")["items"])
            for kernel in kernels:
                yield {**row, "launch": kernel["launch"], "phase": kernel["phase"], "kernel": kernel["name"],
                       "launches": kernel["launches"], "median_us": kernel["median_us"], "total_us": kernel["total_us"],
                       "later_us": added_us.pop(kernel["name"], 0)}
            yield {**row, "epoch_ms": run["summary"]["epoch_ms_median"],
                   "traced_ms": measurement(run, "epoch_traced_ms", "activity"), "gap_ratio": run["summary"]["launch_gap_ratio"]}


# (engine, precision, batch): number of jobs. The ratio of a job varies most in FP16 at batch 64.
TRACED_JOBS = {("cudnn", "fp16", 64): 9, ("fused", "fp16", 64): 9, ("fused", "fp16", 512): 5, ("cudnn", "tf32", 64): 3,
               ("fused", "tf32", 64): 3, ("cudnn", "fp32", 64): 3, ("fused", "fp32", 64): 3, ("persistent", "fp16", 64): 3}
MAX_PERTURBATION_RATIO = 1.03  # of cudnn and fused


def traced(context):
    """Measures how much longer a traced epoch takes, in jobs of one epoch that take turns. The ratio depends on how fast the host
    launches graphs, so nothing else should run on it."""
    host, ratios = context.host, {}
    host.require_gpu()
    with Daemon(host, context.log_path("daemon.log")) as daemon:
        for round_index in range(max(TRACED_JOBS.values())):
            for (engine, precision, batch), jobs in TRACED_JOBS.items():
                if round_index >= jobs:
                    continue
                run = daemon.run_results({"kind": "train", "engine": engine, "precisions": [precision], "batch_size": batch,
                                          "epochs": 1, "passes": ["activity"]})[0]
                row = {"engine": engine, "precision": precision, "batch": batch} | {
                    name: measurement(run, name, "activity")
                    for name in ("perturbation_ratio", "epoch_untraced_ms", "epoch_traced_ms", "completeness_ratio")}
                ratios.setdefault((engine, precision, batch), []).append(row["perturbation_ratio"])
                yield row
    for (engine, precision, batch), values in ratios.items():
        if engine != "persistent":
            median = statistics.median(values)
            yield target(f"{engine}, {precision}, batch {batch}: a traced epoch takes at most {MAX_PERTURBATION_RATIO} times as "
                         "long", median <= MAX_PERTURBATION_RATIO, median)


def added_us_by_kernel(activities):
    """Returns for each kernel the microseconds by which its launches delay the end of the step. Launches overlap, so their
    durations can add up to more than the step's; the returned values add up to the step's duration."""
    added_us, last_end = {}, None
    for activity in sorted((item for item in activities if item["kind"] in ("kernel", "span")), key=lambda item: item["end_ns"]):
        last_end = activity["start_ns"] if last_end is None else last_end
        added_us[activity["name"]] = added_us.get(activity["name"], 0) + (activity["end_ns"] - last_end) * 1e-3
        last_end = activity["end_ns"]
    return added_us
