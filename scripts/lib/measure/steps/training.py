"""The training workload: its times, its memory, and where a step's time goes."""
import json
import re
import urllib.error

from ..daemon import Daemon, Failed, measurement
from ..host import SOURCE
from ..runner import check
from . import programs

PURPOSES = ("dataset", "weights", "activations", "workspace")
NOT_OF_A_GPU = ("auto", "reference", "blas")


def sizes(host):
    """precisions, batches, and what makes a job small enough for a CPU"""
    if host.gpu:
        return ("fp32", "tf32", "fp16"), (64, 512, 4096), {"epochs": 10}
    return ("fp32", "fp16"), (64,), {"epochs": 2, "max_images": 640, "warmup_epochs": 0}


def engines(host):
    """Those that a job may name."""
    if not host.gpu:
        return ["blas"]
    document = json.loads((SOURCE / "schema" / "openapi.json").read_text())
    known = document["components"]["schemas"]["TrainJob"]["properties"]["engine"]["enum"]
    return [engine for engine in known if engine not in NOT_OF_A_GPU]


def trainings(daemon, host, batches, **asked):
    """(row, run, job's id) of each engine, batch and precision; run None where the engine does not do that, which the row then
    says."""
    precisions, _, small = sizes(host)
    for engine in engines(host):
        for batch in batches:
            for precision in precisions:
                row = {"engine": engine, "precision": precision, "batch": batch}
                try:
                    done = daemon.run({"kind": "train", "engine": engine, "precisions": [precision], "batch_size": batch,
                                       "passes": ["timing"], **small, **asked})
                    yield row, daemon.ask(f"/jobs/{done['id']}/results")["runs"][0], done["id"]
                except (Failed, urllib.error.HTTPError) as refusal:
                    yield {**row, "refused": str(refusal)[:300]}, None, None


# The bars of a job of five epochs: an epoch must not be slower than PyTorch's compiled graph, docs/measurements.
JOB_TARGETS_MS = {"fp32": 264, "fp16": 205}
JOB_ACCURACY = 0.985  # of a single seed


def job(context):
    host = context.host
    small = {} if host.gpu else {"epochs": 1, "max_images": 640}
    passes = ["timing", "activity", "counters"] if host.gpu else ["timing", "activity"]
    with Daemon(host, context.log("daemon.log")) as daemon:
        done = daemon.run({"kind": "train", "precisions": ["fp32", "fp16"], "epochs": 5, "passes": passes, **small})
        yield {"seconds": done["seconds"],
               "shown": programs.run(context, [host.program("rooflinectl"), "--url", daemon.url, "show", str(done["id"])],
                                     "show.txt")[1]}
        for run in daemon.ask(f"/jobs/{done['id']}/results")["runs"]:
            yield {name: run[name] for name in ("variant", "engine", "dataset", "commit", "summary", "epochs", "measurements")}
            yield from job_checks(run, host.gpu)


def job_checks(run, gpu):
    name = run["variant"]
    for what, expected in [("activity_dropped_records", 0), ("activity_zero_time_records", 0), ("completeness_ratio", 1)]:
        seen = measurement(run, what, "activity")
        yield check(f"{name}: {what} is {expected}", seen == expected, seen)
    yield check(f"{name}: no epoch is suspect", not any(epoch["suspect"] for epoch in run["epochs"]))
    if gpu:
        summary = run["summary"]
        yield check(f"{name}: median epoch within {JOB_TARGETS_MS[name]} ms", summary["epoch_ms_median"] <= JOB_TARGETS_MS[name],
                    summary["epoch_ms_median"])
        yield check(f"{name}: accuracy", summary["test_accuracy_ratio"] >= JOB_ACCURACY, summary["test_accuracy_ratio"])


# Milliseconds an epoch of the best engine on an H200: target and next target.
EPOCH_TARGETS_MS = {(64, "fp32"): (42, 25), (64, "tf32"): (24, 14), (64, "fp16"): (20, 11), (512, "fp16"): (9, 5)}


def epochs(context):
    host, done = context.host, []
    with Daemon(host, context.log("daemon.log")) as daemon:
        for row, run, _ in trainings(daemon, host, sizes(host)[1]):
            if run:
                summary = run["summary"]
                row |= {"by": "http", "epochs": summary["epochs"], "epoch_ms_median": summary["epoch_ms_median"],
                        "epoch_ms_min": summary["epoch_ms_min"],
                        "epoch_ms": [epoch["epoch_ms"] for epoch in run["epochs"] if not epoch["warmup"]],
                        "floor_ms": measurement(run, "floor_ms"), "test_accuracy_ratio": summary["test_accuracy_ratio"],
                        "launches_per_step": summary["launches_per_step"]}
                done.append(row)
            yield row
    if host.gpu:
        yield from compare_with_targets(done)
        yield from bench_epochs(context, [row for row in done if row["batch"] == 64])


def compare_with_targets(rows):
    for (batch, precision), (target, next_target) in EPOCH_TARGETS_MS.items():
        fitting = [row for row in rows if (row["batch"], row["precision"]) == (batch, precision)]
        best = min(fitting, key=lambda row: row["epoch_ms_median"], default={"engine": None, "epoch_ms_median": None})
        ms = best["epoch_ms_median"]
        met = ms is not None and ms <= target
        yield {"batch": batch, "precision": precision, "best_engine": best["engine"], "best_ms": ms, "target_ms": target,
               "met": met, "next_target_ms": next_target}
        yield check(f"{precision}, batch {batch}: the best engine within {target} ms", met, ms)


IMAGES = 60000
PART = re.compile(r"^  (\S+) +([\d.]+) us$", re.M)


def bench_epochs(context, rows):
    """The same without the daemon, and what each launch of a step costs when it is repeated in a graph; of an epoch in one
    launch, what its phases do."""
    for row in rows:
        found = bench(context, row, "epochs=10", "launches=1")
        if found["launches"] < IMAGES / row["batch"]:
            found["parts_us"] = bench(context, row, "epochs=2", "phases=1")["parts_us"]
        yield {"by": "bench_train", **found}


def bench(context, row, *options):
    which = {name: row[name] for name in ("engine", "precision", "batch")}
    command, log = [context.host.test_program("bench_train"), *(f"{name}={value}" for name, value in which.items()),
                    *options], f"{'-'.join(map(str, which.values()))}.log"
    found = programs.json_lines(context, command, log)[-1]
    return {**found, **which, "parts_us": {name: float(us) for name, us in PART.findall(context.log(log).read_text())}}


# Device memory besides the data set at batch 64, bytes at most, of the engine that needs least of those that `auto` may take.
MEMORY_TARGETS = {"fp32": 16e6, "fp16": 12e6}
HALF_OF_FLOAT = 0.6  # at batch 4096


def memory(context):
    host, besides = context.host, {}
    with Daemon(host, context.log("daemon.log")) as daemon:
        for row, run, _ in trainings(daemon, host, (64, 4096) if host.gpu else (64,), epochs=1):
            if run:
                row |= {"peak_bytes": measurement(run, "peak_memory_bytes"),
                        "context_bytes": measurement(run, "context_memory_bytes"),
                        **{f"{purpose}_bytes": measurement(run, f"memory_{purpose}_bytes") for purpose in PURPOSES}}
                row["besides_dataset_bytes"] = row["peak_bytes"] - row["dataset_bytes"]
                besides[row["engine"], row["batch"], row["precision"]] = row["besides_dataset_bytes"]
            yield row
    if host.gpu:
        for precision, target in MEMORY_TARGETS.items():
            seen = min((size for (_, *key), size in besides.items() if key == [64, precision]), default=None)
            yield check(f"{precision}, batch 64: within {target / 1e6:.0f} MB", seen is not None and seen <= target, seen)
        for engine in {engine for engine, *_ in besides}:
            half, full = (besides.get((engine, 4096, precision)) for precision in ("fp16", "fp32"))
            if half and full:
                yield check(f"{engine}, batch 4096: FP16 at most {HALF_OF_FLOAT} of FP32", half / full <= HALF_OF_FLOAT,
                            half / full)


TRACED_MOST = 100000


def phases(context):
    """The activity pass of an epoch: what each launch of a step takes, and by how much the step ends later for it."""
    host = context.host
    with Daemon(host, context.log("daemon.log")) as daemon:
        for row, run, job_id in trainings(daemon, host, sizes(host)[1][:2], epochs=1, passes=["timing", "activity"]):
            if run is None:
                yield row
                continue
            row["steps"] = run["steps_per_epoch"]
            kernels = daemon.items(f"/jobs/{job_id}/kernels")
            ended = later_by_kernel(daemon.ask(f"/jobs/{job_id}/timeline?limit={TRACED_MOST}")["items"])
            for one in kernels:
                yield {**row, "launch": one["launch"], "phase": one["phase"], "kernel": one["name"], "launches": one["launches"],
                       "median_us": one["median_us"], "total_us": one["total_us"], "later_us": ended.pop(one["name"], 0)}
            yield {**row, "epoch_ms": run["summary"]["epoch_ms_median"],
                   "traced_ms": measurement(run, "epoch_traced_ms", "activity"), "gap_ratio": run["summary"]["launch_gap_ratio"]}


def later_by_kernel(activities):
    """Microseconds by which the end of all work moved with the ends of each kernel. Launches that begin before the one in front
    has ended take longer than that; these add up to the whole."""
    later, last = {}, None
    for one in sorted((one for one in activities if one["kind"] in ("kernel", "span")), key=lambda one: one["end_ns"]):
        last = one["start_ns"] if last is None else last
        later[one["name"]] = later.get(one["name"], 0) + (one["end_ns"] - last) * 1e-3
        last = one["end_ns"]
    return later
