"""What the device can do at best, and how near single kernels come to it."""
from ..daemon import Daemon
from ..host import SOURCE
from ..runner import check
from . import programs

CEILINGS_JOBS = 3
OF_COPY = 0.93
COMPILES_MS = 10  # NVRTC takes seven times as long at least


def ceilings(context):
    with Daemon(context.host, context.log("daemon.log")) as daemon:
        for number in range(CEILINGS_JOBS if context.host.gpu else 1):
            took = daemon.run({"kind": "ceilings"})["seconds"]
            device = daemon.ask("/ceilings")["items"][0]
            for rate in device["rates"] + device["conditions"]:
                yield {"job": number, "name": rate["name"], "value": rate["value"], "reason": rate["reason"]}
            yield {"job": number, "name": "seconds", "value": took, "reason": None}
            yield check("not stale", not device["stale"], device["stale_reason"])


def bandwidth(context):
    """Every variant at a large size beside the best copy of the same run, and small sizes with a cold and a warm cache."""
    options = ["-m", "256", "-n", "15", "-s"] if context.host.gpu else ["-m", "1", "-n", "3", "-s", "-f", "relu"]
    rows = programs.json_lines(context, [context.host.test_program("measure_kernels"), *options, "-c"], "measure_kernels.jsonl")
    yield from rows
    yield check("every result within its tolerance", not any(row.get("wrong") for row in rows))
    if context.host.gpu:
        for (kernel, dtype, columns), ratio in best_of_copy(rows).items():
            yield check(f"{kernel} {dtype}{f' of {columns} columns' if columns else ''} at {OF_COPY:.0%} of the best copy",
                        ratio >= OF_COPY, ratio)


def best_of_copy(rows):
    """(kernel, dtype, columns): the best variant's bandwidth over the best copy's."""
    copy, best = max(row["best_copy_bytes_per_s"] for row in rows if "best_copy_bytes_per_s" in row), {}
    for row in rows:
        if row.get("size") == "large":
            key = row["kernel"], row["dtype"], row["shape"].get("columns")
            best[key] = max(best.get(key, 0), row["bytes_per_s"] / copy)
    return best


def lombscargle(context):
    context.host.need_gpu()
    rows = programs.json_lines(context, [context.host.test_program("bench_lombscargle")], "bench_lombscargle.jsonl", cwd=SOURCE)
    yield from rows
    talk = [row for row in rows if row.get("dtype") == "fp32" and row.get("version") not in (None, "uniform")]
    beyond = [row for row in rows if row.get("dtype") == "fp32" and row.get("version") == "uniform"]
    best = min(talk, key=lambda row: row["median_ms"])
    ours = min(beyond, key=lambda row: row["median_ms"])
    yield check("twice as fast as the best row of the talk", 2 * ours["median_ms"] <= best["median_ms"],
                best["median_ms"] / ours["median_ms"])
    yield check("at an error no larger", ours["error"] <= best["error"], ours["error"])
    again = max(row["compile_ms"] for row in rows if row.get("build") == "nvrtc_cached, again")
    yield check("nothing is compiled a second time", again < COMPILES_MS, again)
    slowest = max(row["first_ms"] for row in rows if row.get("build") == "fatbin")
    yield check("first pass from the fatbin under 2 ms", slowest < 2, slowest)
