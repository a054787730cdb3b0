"""Steps that run regression suites: the shipped suites once each, repeated runs of unchanged code, intentionally slowed kernels,
and a suite beside another process that lowers the clocks."""
import contextlib
import json
import os
import pathlib
import threading
import time

from ..daemon import Daemon, Failed
from ..host import SOURCE
from ..runner import check, target

FINAL_STATES = ("completed", "failed", "cancelled")
MAX_SHIPPED_S = {True: 180, False: 600}  # limit of the time that all shipped suites take together; key: is the device a GPU?


def run_suite(daemon, host, name, definition=None, poll_s=0.1):
    """Runs a suite against its rolling baseline and returns the document of its run. Fails unless it completed."""
    body = {"device": host.device, **({"definition": definition} if definition else {})}
    run_id = daemon.request(f"/suites/{name}/runs", body)["id"]
    while (run := daemon.request(f"/suite-runs/{run_id}"))["state"] not in FINAL_STATES:
        time.sleep(poll_s)
    if run["state"] != "completed":
        raise Failed(f"suite run {run_id}: {json.dumps(run)[:2000]}")
    return run


def shipped_suites(host):
    """Returns the names of the shipped suites that run on the host's device."""
    suites = {path.stem: json.loads(path.read_text()) for path in (SOURCE / "daemon" / "suite" / "suites.d").glob("*.json")}
    return sorted(name for name, suite in suites.items() if suite.get("device", host.device) == host.device)


def values_by_metric(run):
    """Returns {"values": {metric: {role: values of the blocks}}, "dropped": the dropped values with reasons}. The value of a
    dropped block is None."""
    values = {}
    for value in run["values"]:
        kept = value["value"] if value["dropped_reason"] is None else None
        values.setdefault(value["metric"], {}).setdefault(value["role"], []).append(kept)
    return {"values": values, "dropped": [value for value in run["values"] if value["dropped_reason"] is not None]}


def suites(context):
    """Runs each shipped suite once. Without a baseline nothing can differ, so the measured runs have no confirming blocks."""
    seconds = 0
    with Daemon(context.host, context.log_path("daemon.log")) as daemon:
        for name in shipped_suites(context.host):
            run = run_suite(daemon, context.host, name)
            seconds += run["elapsed_s"]
            yield {"suite": name, "seconds": run["elapsed_s"], "estimated_s": run["estimated_s"], "counts": run["counts"],
                   "quarantine_reason": run["quarantine_reason"], "values": run["values"]}
    limit_s = MAX_SHIPPED_S[context.host.is_gpu]
    yield target(f"the shipped suites take at most {limit_s} s together", seconds <= limit_s, round(seconds, 1))


# --- the daemon's own time -----------------------------------------------------------------------------------------------------

COST_BLOCKS, COST_ROUNDS, COST_POLL_S = 30, 3, 3
COST_JOB = {"kind": "kernel", "kernel": "relu", "shape": {"n": 4096}, "variant": "vector", "samples": 3}


def processor_s(daemon):
    """Returns the processor time of the daemon's process, without its workers."""
    fields = pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_as_client(daemon, host):
    for _ in range(COST_BLOCKS):
        daemon.run_job({**COST_JOB, "fresh_worker": True, "passes": ["timing"]}, poll_s=0.2)


def run_as_suite(daemon, host):
    definition = {"name": "cost", "blocks": COST_BLOCKS, "canary": False, "profile": False,
                  "jobs": [{"name": "relu", "request": COST_JOB}], "metrics": [{"job": "relu", "metric": "time_cold_us_median"}]}
    run = run_suite(daemon, host, "cost", definition, poll_s=COST_POLL_S)
    if len(run["jobs"]) != COST_BLOCKS:
        raise Failed(f"the suite ran {len(run['jobs'])} jobs")


def suite_cost(context):
    """Measures the daemon's processor time for the jobs of a suite run, and for the same jobs if a client submits them. Each
    round has a new daemon, so that the suite has no baseline and needs no confirming blocks."""
    for number in range(COST_ROUNDS):
        with Daemon(context.host, context.log_path("daemon.log")) as daemon:
            for submitter, run in (("client", run_as_client), ("suite", run_as_suite)):
                before = processor_s(daemon)
                run(daemon, context.host)
                yield {"round": number, "submitter": submitter, "ms_per_job": 1e3 * (processor_s(daemon) - before) / COST_BLOCKS}


# --- runs in which nothing changed ---------------------------------------------------------------------------------------------

UNCHANGED_SUITE = "mnist"


def compared_metrics(run):
    return [{name: verdict[name] for name in ("metric", "verdict", "reason", "effect_ratio", "baseline_median", "current_median",
                                              "blocks_current", "blocks_dropped", "q_value", "history_limit_ratio")}
            for verdict in run["verdicts"]]


def unchanged(context):
    """Repeats a suite against its rolling baseline until the step's time ends. The first run has no baseline, so its verdict is
    `incomparable`."""
    rows = []
    with Daemon(context.host, context.log_path("daemon.log")) as daemon:
        longest_s = 0
        while not rows or context.remaining_s() > 1.5 * longest_s:
            begin = time.monotonic()
            run = run_suite(daemon, context.host, UNCHANGED_SUITE)
            longest_s = max(longest_s, time.monotonic() - begin)
            rows.append({"suite": UNCHANGED_SUITE, "seconds": run["elapsed_s"], "verdict": run["verdict"],
                         "quarantine_reason": run["quarantine_reason"], "metrics": compared_metrics(run),
                         **values_by_metric(run)})
            yield rows[-1]
    alarms = [metric["metric"] for row in rows for metric in row["metrics"] if metric["verdict"] in ("slower", "faster")]
    yield check(f"no metric is slower or faster in {len(rows) - 1} runs of unchanged code", not alarms, alarms)


# --- values of unchanged code --------------------------------------------------------------------------------------------------

RECORDED_BLOCKS = 8  # blocks of a suite run; the blocks of a run that the end of the step interrupts are lost
RECORDED_ON_A_CPU = ("copy", "train")  # jobs short enough for a CPU to execute them many times within the step's limit


def shipped_definition(name):
    return json.loads((SOURCE / "daemon" / "suite" / "suites.d" / f"{name}.json").read_text())


def record_blocks(context, name):
    """Records the blocks of a shipped suite, run after run without canary and profile, until the step's time ends.
    scripts/recorded.py makes a file of tests/data/recorded of them. The suite's name differs in each run, so that the run has no
    baseline and therefore no confirming blocks."""
    definition = {**shipped_definition(name), "blocks": RECORDED_BLOCKS, "canary": False, "profile": False}
    if not context.host.is_gpu:
        definition["jobs"] = [job for job in definition["jobs"] if job["name"] in RECORDED_ON_A_CPU]
        definition["metrics"] = [metric for metric in definition["metrics"] if metric["job"] in RECORDED_ON_A_CPU]
    with Daemon(context.host, context.log_path("daemon.log")) as daemon:
        properties, longest_s, part = daemon.wait_for_device(), 0, 0
        while part == 0 or context.remaining_s() > 1.2 * longest_s:
            begin = time.monotonic()
            run = run_suite(daemon, context.host, f"{name}-{part}", {**definition, "name": f"{name}-{part}"})
            longest_s = max(longest_s, time.monotonic() - begin)
            yield {"suite": name, "part": part, "seconds": run["elapsed_s"], "device_name": run["device_name"],
                   "driver": run["driver"], "uuid": properties.get("uuid"),
                   **values_by_metric(run)}
            part += 1


# --- intentionally slowed kernels ----------------------------------------------------------------------------------------------

BLOCK_THREADS = 256
ELEMENTS = 1 << 26  # 256 MB, which is more than L2 holds

# A chain of dependent multiply-adds, which keeps the FP32 pipe busy if a multiprocessor has at least 16 warps.
# UNUSED_SHARED_BYTES lowers the occupancy.
ARITHMETIC = """
extern "C" __global__ void measured(float *values, int count) {
#if UNUSED_SHARED_BYTES
  __shared__ float unused[UNUSED_SHARED_BYTES / 4];
  if (count < 0) values[0] = unused[count + (unused[threadIdx.x] = 1) > 0];
#endif
  float x = values[blockIdx.x * blockDim.x + threadIdx.x];
  for (int i = 0; i < ROUNDS; i++) x = x * 0.999f + 0.5f;
  values[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
"""

# Each warp loads sectors of L2 one after the other; each address depends on the previous load, so the rate is proportional to the
# occupancy.
DEPENDENT_LOADS = """
extern "C" __global__ void measured(int *table, int count) {
#if UNUSED_SHARED_BYTES
  __shared__ int unused[UNUSED_SHARED_BYTES / 4];
  if (count < 0) table[0] = unused[count + (unused[threadIdx.x] = 1) > 0];
#endif
  int index = blockIdx.x;
  for (int i = 0; i < 200; i++) index = __ldcg(table + (index * 5 + 8 & count - 1));
  if (index < 0) table[0] = index;
}
"""

# STRIDED_PER_1000 of 1000 blocks load one element from each sector.
COPY = """
extern "C" __global__ void measured(const float *from, float *to, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int stride = blockIdx.x % 1000 < STRIDED_PER_1000 ? 8 : 1;
  if (i < count) to[i] = from[(long long)i * stride % count];
}
"""


def request(code, blocks, block_threads, arguments):
    return {"kind": "source", "code": code, "entry": "measured", "grid": [blocks], "block": [block_threads],
            "arguments": arguments, "samples": 10}


def buffer(dtype, count, init):
    return {"buffer": {"dtype": dtype, "count": count, "init": init}}


def defines(**macros):
    return "".join(f"#define {name} {value}\n" for name, value in macros.items())


def arithmetic(multiprocessors, rounds=20000, unused_shared_bytes=0):
    blocks = 8 * multiprocessors
    return request(defines(ROUNDS=rounds, UNUSED_SHARED_BYTES=unused_shared_bytes) + ARITHMETIC, blocks, BLOCK_THREADS,
                   [buffer("fp32", blocks * BLOCK_THREADS, "uniform"), {"scalar": {"dtype": "int32", "value": blocks}}])


def dependent_loads(multiprocessors, unused_shared_bytes=0):
    table = 16384
    return request(defines(UNUSED_SHARED_BYTES=unused_shared_bytes) + DEPENDENT_LOADS, 32 * 8 * multiprocessors, 64,
                   [buffer("int32", table, "range"), {"scalar": {"dtype": "int32", "value": table}}])


def copy(_, strided_per_1000=0):
    return request(defines(STRIDED_PER_1000=strided_per_1000) + COPY, ELEMENTS // BLOCK_THREADS, BLOCK_THREADS,
                   [buffer("fp32", ELEMENTS, "uniform"), buffer("fp32", ELEMENTS, "zeros"),
                    {"scalar": {"dtype": "int32", "value": ELEMENTS}}])


# Name of the job: (kernel, arguments that change, evidence that the cause of the regression must have). Without evidence (None)
# the job must not be slower. On a multiprocessor of compute capability 9.0, the shared memory of the occupancy jobs leaves room
# for 31, 30 and 29 blocks of 64 threads instead of 32, and that of the last job for 4 blocks of 256 threads instead of 8.
CHANGES = {
    "instructions_2": (arithmetic, {"rounds": 20400}, "smsp__inst_executed.sum"),
    "instructions_5": (arithmetic, {"rounds": 21000}, "smsp__inst_executed.sum"),
    "instructions_10": (arithmetic, {"rounds": 22000}, "smsp__inst_executed.sum"),
    "occupancy_31": (dependent_loads, {"unused_shared_bytes": 6400}, "theoretical_occupancy_ratio"),
    "occupancy_30": (dependent_loads, {"unused_shared_bytes": 6656}, "theoretical_occupancy_ratio"),
    "occupancy_29": (dependent_loads, {"unused_shared_bytes": 6912}, "theoretical_occupancy_ratio"),
    "strided_6": (copy, {"strided_per_1000": 6}, "dram__bytes.sum"),
    "strided_14": (copy, {"strided_per_1000": 14}, "dram__bytes.sum"),
    "strided_29": (copy, {"strided_per_1000": 29}, "dram__bytes.sum"),
    "occupancy_unimportant": (arithmetic, {"unused_shared_bytes": 40960}, None),
}


def changes_suite(multiprocessors, changed):
    """Returns the definition of the suite, with the original kernels or, if `changed`, with the changes of CHANGES."""
    jobs = [{"name": name, "request": kernel(multiprocessors, **(change if changed else {}))}
            for name, (kernel, change, _) in CHANGES.items()]
    return {"name": "changes", "blocks": 8, "time_budget_s": 300, "jobs": jobs,
            "metrics": [{"job": name, "metric": "time_cold_us_median", "threshold_ratio": 0.01} for name in CHANGES]}


def slowed(context):
    host = context.host
    host.require_gpu()
    with Daemon(host, context.log_path("daemon.log"), "--allow-source", "--source-buffer-bytes", str(1 << 30),
                token=True) as daemon:
        multiprocessors = daemon.wait_for_device()["sm_count"]
        run_suite(daemon, host, "changes", changes_suite(multiprocessors, False))
        run = run_suite(daemon, host, "changes", changes_suite(multiprocessors, True))
    yield {"seconds": run["elapsed_s"], "quarantine_reason": run["quarantine_reason"],
           "dropped": [value for value in run["values"] if value["dropped_reason"]]}
    for verdict in run["verdicts"]:
        name = verdict["metric"].split("/")[0]
        yield {"change": name, **{key: verdict[key] for key in ("verdict", "reason", "baseline_median", "current_median",
                                                                "effect_ratio", "interval_ratio", "cycles_effect_ratio",
                                                                "confirmation_effect_ratio", "causes")}}
        yield from verdict_checks(name, verdict)


def verdict_checks(name, verdict):
    expected = CHANGES[name][2]
    if expected is None:
        yield check(f"{name} is not slower", verdict["verdict"] != "slower", verdict["effect_ratio"])
        return
    yield check(f"{name} is slower", verdict["verdict"] == "slower", f"{verdict['verdict']}: {verdict['reason']}")
    first = verdict["causes"][0] if verdict["causes"] else {"class": None, "evidence": []}
    properties = [item["property"] for item in first["evidence"]]
    yield check(f"{name}: the cause is its code, with {expected}", first["class"] == "code" and expected in properties,
                [first["class"], *properties])


# --- another process that lowers the clocks ------------------------------------------------------------------------------------

# Products of random matrices reach the power limit of the device. The sizes keep the job's check of the result short.
POWER_LIMITED_JOB = {"kind": "kernel", "kernel": "gemm", "dtype": "fp16", "shape": {"m": 8192, "n": 4096, "k": 4096},
                     "variant": "heuristic", "samples": 1000, "passes": ["timing"]}
DEVICE_STATE = "power.draw,clocks.sm,clocks_throttle_reasons.active,temperature.gpu"
NEIGHBOUR_METRICS = {"arithmetic": "time_cold_us_median", "copy": "time_cold_us_median", "train": "epoch_ms_median"}


def neighbour_suite(multiprocessors):
    """Returns the suite without canaries: they would quarantine the run, but the verdicts alone must not attribute a lower clock
    to the code."""
    training = {"kind": "train", "precisions": ["fp16"], "epochs": 3, "max_images": 12800}
    jobs = {"arithmetic": arithmetic(multiprocessors), "copy": copy(multiprocessors), "train": training}
    return {"name": "neighbour", "blocks": 7, "time_budget_s": 60, "canary": False,
            "jobs": [{"name": name, "request": request} for name, request in jobs.items()],
            "metrics": [{"job": job, "metric": metric, "threshold_ratio": 0.02} for job, metric in NEIGHBOUR_METRICS.items()]}


@contextlib.contextmanager
def power_drawing_process(context):
    """Executes POWER_LIMITED_JOB repeatedly in another process on the same GPU. The body of the `with` statement starts 4 s
    later. Yields a list that receives the state of the GPU about once a second."""
    stopping, states = threading.Event(), []
    with Daemon(context.host, context.log_path("neighbour.log")) as other:
        def draw_power():
            while not stopping.is_set():
                job_id = other.request("/jobs", {"device": context.host.device, **POWER_LIMITED_JOB})["id"]
                while not stopping.is_set() and (state := other.request(f"/jobs/{job_id}")["state"]) in ("queued", "running"):
                    time.sleep(0.02)
                if not stopping.is_set() and state != "completed":
                    states.append(f"job {job_id}: {state}")
                    return

        def record_states():
            while not stopping.wait(1):
                states.append(context.host.query_gpu(DEVICE_STATE))

        threads = [threading.Thread(target=draw_power), threading.Thread(target=record_states)]
        for thread in threads:
            thread.start()
        time.sleep(4)
        try:
            yield states
        finally:
            stopping.set()
            for thread in threads:
                thread.join()


def neighbour(context):
    """Runs the suite alone, then beside a process that lowers the clocks of the GPU. Lower clocks are no regression of the code:
    blocks are dropped, verdicts are inconclusive, or the cause is the device."""
    host = context.host
    host.require_gpu()
    with Daemon(host, context.log_path("daemon.log"), "--allow-source", "--source-buffer-bytes", str(1 << 30),
                token=True) as daemon:
        multiprocessors = daemon.wait_for_device()["sm_count"]
        definition = neighbour_suite(multiprocessors)
        run_suite(daemon, host, "neighbour", definition)
        with power_drawing_process(context) as states:
            run = run_suite(daemon, host, "neighbour", definition)
    yield {"seconds": run["elapsed_s"], "states": states, **values_by_metric(run)}
    for verdict in run["verdicts"]:
        yield {"metric": verdict["metric"], **{key: verdict[key] for key in (
            "verdict", "reason", "baseline_median", "current_median", "effect_ratio", "cycles_effect_ratio", "blocks_current",
            "blocks_dropped", "causes")}}
    yield from neighbour_checks(run)


def neighbour_checks(run):
    """Checks that lower clocks are attributed to the device. The second check fails if the clocks did not drop, because then the
    first check proves nothing."""
    def is_attributed_to_device(verdict):
        return verdict["blocks_dropped"] > 0 or "the clock differs" in verdict["reason"] or any(
            cause["class"] == "device" for cause in verdict["causes"])

    classes = {verdict["metric"]: [cause["class"] for cause in verdict["causes"]] for verdict in run["verdicts"]}
    code = {metric: names for metric, names in classes.items() if "code" in names}
    yield check("no cause has the class code", not code, code)
    yield check("the device's state is detected: dropped blocks, cycles, or a cause of the class device",
                any(is_attributed_to_device(verdict) for verdict in run["verdicts"]),
                {verdict["metric"]: [verdict["verdict"], verdict["blocks_dropped"], *classes[verdict["metric"]]]
                 for verdict in run["verdicts"]})
