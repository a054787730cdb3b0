"""Steps that measure the peak rates of the device, and the share of them that single kernels reach."""
from ..daemon import Daemon
from ..host import SOURCE
from ..runner import check, target
from . import programs

CEILINGS_JOBS = 3  # ceilings jobs on a GPU, one after another
MIN_COPY_RATIO = 0.93  # bandwidth of every kernel over that of the best copy
MAX_CACHED_COMPILE_MS = 10  # NVRTC takes at least seven times as long


def ceilings(context):
    with Daemon(context.host, context.log_path("daemon.log")) as daemon:
        for number in range(CEILINGS_JOBS if context.host.is_gpu else 1):
            seconds = daemon.run_job({"kind": "ceilings"})["seconds"]
            device = daemon.request("/ceilings")["items"][0]
            for rate in device["rates"] + device["conditions"]:
                yield {"job": number, "name": rate["name"], "value": rate["value"], "reason": rate["reason"]}
            yield {"job": number, "name": "seconds", "value": seconds, "reason": None}
            yield check("not stale", not device["stale"], device["stale_reason"])


def bandwidth(context):
    """Measures every variant at a large size, relative to the best copy of the same run, and small sizes with a cold and a warm
    cache."""
    options = ["-m", "256", "-n", "15", "-s"] if context.host.is_gpu else ["-m", "1", "-n", "3", "-s", "-f", "relu"]
    rows = programs.json_lines(context, [context.host.test_program("measure_kernels"), *options, "-c"], "measure_kernels.jsonl")
    yield from rows
    yield check("every result within its tolerance", not any(row.get("wrong") for row in rows))
    if context.host.is_gpu:
        for (kernel, dtype, columns), ratio in best_copy_ratios(rows).items():
            size = f" of {columns} columns" if columns else ""
            yield target(f"{kernel} {dtype}{size} at {MIN_COPY_RATIO:.0%} of the best copy", ratio >= MIN_COPY_RATIO, ratio)


def best_copy_ratios(rows):
    """Returns {(kernel, dtype, columns): bandwidth of the best variant over that of the best copy}."""
    copy, best = max(row["best_copy_bytes_per_s"] for row in rows if "best_copy_bytes_per_s" in row), {}
    for row in rows:
        if row.get("size") == "large":
            key = row["kernel"], row["dtype"], row["shape"].get("columns")
            best[key] = max(best.get(key, 0), row["bytes_per_s"] / copy)
    return best


def lombscargle(context):
    context.host.require_gpu()
    rows = programs.json_lines(context, [context.host.test_program("bench_lombscargle")], "bench_lombscargle.jsonl", cwd=SOURCE)
    yield from rows
    general = [row for row in rows if row.get("dtype") == "fp32" and row.get("version") not in (None, "uniform")]
    uniform = [row for row in rows if row.get("dtype") == "fp32" and row.get("version") == "uniform"]
    best = min(general, key=lambda row: row["median_ms"])
    ours = min(uniform, key=lambda row: row["median_ms"])
    yield target("variant uniform is twice as fast as the fastest version in the talk",
                 2 * ours["median_ms"] <= best["median_ms"], best["median_ms"] / ours["median_ms"])
    yield check("variant uniform has no larger error", ours["error"] <= best["error"], ours["error"])
    cached = max(row["compile_ms"] for row in rows if row.get("build") == "nvrtc_cached, again")
    yield check("cached kernels are not compiled again", cached < MAX_CACHED_COMPILE_MS, cached)
    slowest = max(row["first_ms"] for row in rows if row.get("build") == "fatbin")
    yield target("the first launch from the fatbin takes less than 2 ms", slowest < 2, slowest)
