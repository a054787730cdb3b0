"""The transformer layer: the times of its variants, the causes of idle time with and without a graph, and PyTorch's times.

A pause of PAUSE_MS precedes each sample, because layers back to back reach the power limit, which lowers the clocks. The rate of
the matrix products is measured over TRACED layers back to back, which take only about 10 ms. PyTorch's samples have the same
pauses, and its measurements alternate with ours."""
import contextlib
import json
import statistics
import subprocess
import sys

from ..daemon import Daemon, Failed
from ..host import SOURCE
from ..runner import target
from . import programs

SHAPES = {"prefill": {"tokens": 2048}, "decode": {"tokens": 1, "cached_tokens": 2047}}
SMALL = {"hidden": 128, "heads": 2, "ffn": 344}  # sizes of the layer on a CPU
PRODUCTS = {"q", "k", "v", "qkv", "qkv_rope", "norm1_qkv_rope", "o", "o_residual", "gate", "up", "gate_up", "gate_up_silu",
            "norm2_gate_up_silu", "gate_beside_up", "down", "down_residual"}  # names of launches that are matrix products
BASES = {"graph": "baseline", "fused": "graph", "streams": "fused", "tuned": "fused", "best": "tuned"}  # see docs/jobs.md
LARGE_PRODUCT = {"m": 8192, "n": 8192, "k": 4096}  # the products of the layer are compared with the rate of this one
PAUSE_MS = 10
TRACED = 6  # layers in the activity pass
# For these two rules, the input that is the share of idle time in the window. For all other rules, the first input in percent is
# the share of the window that the finding is about.
IDLE_SHARES = {"timeline_small_kernels": "timeline__small_kernels_latency_pct",
               "timeline_small_launches": "timeline__small_kernels_launch_pct"}
ROUNDS = 3  # at most, in which PyTorch and our variant `best` alternate
MAX_ROUND_DIFFERENCE = 0.005  # a third round is left out if the ratios of the first two differ by no more than this share
MIN_SPEEDUP = 1.05  # of the variant `best` over torch.compile
TORCH_MIN_S = 45  # time to start PyTorch, to measure its eager layer and to compile
MIN_PRODUCT_RATIO = 0.85  # rate of the layer's products over that of LARGE_PRODUCT


def layer(context, phases=tuple(SHAPES)):
    host = context.host
    shapes = SHAPES if host.is_gpu else {name: {**shape, **SMALL, **{key: 33 for key in shape if shape[key] > 1}}
                                         for name, shape in SHAPES.items()}
    shapes = {phase: shapes[phase] for phase in phases}
    with Daemon(host, context.log_path("daemon.log")) as daemon, pytorch(context) as torch:
        daemon.run_job({"kind": "ceilings"})
        rates = {rate["name"]: rate["value"] for rate in daemon.request("/ceilings")["items"][0]["rates"]}
        for dtype in ("fp16", "bf16"):
            ceiling = large_product_rate(daemon, dtype) if host.is_gpu and "prefill" in shapes else None
            yield {"dtype": dtype, "large_product_operations_per_s": ceiling,
                   "tensor_operations_per_s": rates.get(f"tensor_{dtype}_operations_per_s")}
            for phase, shape in shapes.items():
                for row in measure_variants(daemon, phase, shape, dtype):
                    yield row
                if phase == "prefill" and ceiling:
                    yield product_target(row, ceiling)
                if torch is not None and context.remaining_s() < TORCH_MIN_S:
                    yield {"partial": f"no time for PyTorch's {phase} in {dtype}"}
                elif torch is not None:
                    yield from compare_with_torch(daemon, torch, phase, {"dtype": dtype, **shape})


def large_product_rate(daemon, dtype):
    (run,) = daemon.run_results({"kind": "kernel", "kernel": "gemm", "dtype": dtype, "shape": LARGE_PRODUCT,
                                 "variant": "searched", "samples": 10, "pause_ms": PAUSE_MS, "passes": ["timing"]})
    operations = 2 * LARGE_PRODUCT["m"] * LARGE_PRODUCT["n"] * LARGE_PRODUCT["k"]
    return operations / (1e-6 * timings(run)["time_cold_us_median"])


def timings(run):
    return {item["name"]: item["value"] for item in run["measurements"] if item["pass"] == "timing"}


def gain_over_base(variant, cold_us, times_us):
    """Returns the share of time that a variant saves over the variant that it changes; None if there is none. times_us: the cold
    times of the measured variants. If the base was not measured, as `graph` on a CPU, its own base replaces it."""
    while variant in BASES:
        variant = BASES[variant]
        if variant in times_us:
            return 1 - cold_us / times_us[variant]
    return None


def measure_variants(daemon, phase, shape, dtype):
    """Yields a row for each variant: its times, its gain over the variant that it changes, its launches and its timeline."""
    job = daemon.run_job({"kind": "layer", "dtype": dtype, **shape, "samples": TRACED, "pause_ms": PAUSE_MS,
                          "passes": ["timing", "activity"]})
    kernels = daemon.request(f"/jobs/{job['id']}/kernels?pass=activity&limit=1000")["items"]
    times_us = {}
    for run in daemon.request(f"/jobs/{job['id']}/results")["runs"]:
        values, launches = timings(run), {}
        for kernel in (kernel for kernel in kernels if kernel["run"] == run["run"]):
            launches[kernel["launch"]] = launches.get(kernel["launch"], 0) + kernel["total_us"] / TRACED
        cold_us, product_us = values["time_cold_us_median"], sum(launches.get(name, 0) for name in PRODUCTS)
        timeline = daemon.request(f"/runs/{run['run']}/timeline/findings")
        yield {"phase": phase, "dtype": dtype, "variant": run["variant"], "cold_us": cold_us,
               "warm_us": values["time_warm_us_median"], "floor_us": values.get("floor_cold_us"),
               "gained_ratio": gain_over_base(run["variant"], cold_us, times_us),
               "token_us": cold_us / shape["tokens"], "error": values["relative_error"], "launches": launches,
               "product_operations_per_s": product_operations(run["params"]) / product_us * 1e6 if product_us else None,
               "suspect": any(sample["suspect"] for sample in run["samples"]),
               "clock_mhz": values.get("sm_clock_least_mhz"), "throttled_ratio": values.get("throttled_ratio"),
               "classes": {item["class"]: item["time_ns"] for item in timeline["classes"] or ()},
               "findings": [describe_finding(finding) for finding in timeline["findings"] or ()]}
        times_us[run["variant"]] = cold_us


def describe_finding(finding):
    """Returns the finding with the share of the window that it is about."""
    shares = {item["name"]: item["value"] for item in finding["inputs"] if item["name"].endswith("_pct")}
    share = IDLE_SHARES.get(finding["rule"], next(iter(shares)))
    return {"rule": finding["rule"], "title": finding["title"], "message": finding["message"], "share_pct": shares[share],
            "saving_pct": finding["speedup_pct"], "scope": finding["scope"]}


def product_operations(params):
    hidden, ffn = params["hidden"], params["ffn"]
    return 2 * params["batch"] * params["tokens"] * (4 * hidden * hidden + 3 * hidden * ffn)


def product_target(row, ceiling):
    ratio = row["product_operations_per_s"] / ceiling
    return target(f"{row['dtype']}: the products of {row['variant']} reach {MIN_PRODUCT_RATIO:.0%} of the rate of a large "
                  "product", ratio >= MIN_PRODUCT_RATIO, ratio)


@contextlib.contextmanager
def pytorch(context):
    """Starts tests/baselines/torch_layer.py and yields its process; None if PyTorch has no GPU."""
    works = context.host.is_gpu and programs.run(
        context, [sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], "torch.log")[0] == 0
    if not works:
        yield None
        return
    with open(context.log_path("torch.err"), "wb") as err, \
            subprocess.Popen([sys.executable, str(SOURCE / "tests" / "baselines" / "torch_layer.py")], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=err, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def torch_rows(process, request):
    """Sends a request and yields the rows of the answer."""
    process.stdin.write(json.dumps({**request, "pause_ms": PAUSE_MS}) + "\n")
    process.stdin.flush()
    while row := json.loads(process.stdout.readline() or '{"failed": true}'):
        if "failed" in row:
            raise Failed("PyTorch's program ended: see torch.err")
        yield row


def rounds_agree(round_ratios):
    """Returns whether the ratios of the last two rounds are nearly equal."""
    return all(abs(a / b - 1) <= MAX_ROUND_DIFFERENCE for a, b in zip(*round_ratios[-2:], strict=True))


def compare_with_torch(daemon, torch, phase, layer_request):
    """Times the compiled layer and the variant `best` in alternation, each until two rounds agree or ROUNDS times, and yields the
    rows and the ratios."""
    round_ratios = []  # for each round PyTorch's time divided by ours, [cold, warm]
    for number in range(ROUNDS):
        compiled = []
        for row in torch_rows(torch, layer_request):
            yield {"phase": phase, "round": number, **row}
            if row["variant"].startswith("compile") and "cold_us" in row:
                compiled.append(row)
        (run,) = daemon.run_results({"kind": "layer", **layer_request, "variants": ["best"], "pause_ms": PAUSE_MS,
                                     "passes": ["timing"]})
        ours = {"cold_us": timings(run)["time_cold_us_median"], "warm_us": timings(run)["time_warm_us_median"]}
        yield {"phase": phase, "dtype": layer_request["dtype"], "round": number, "best": ours,
               "throttled_ratio": timings(run).get("throttled_ratio")}
        if not compiled:
            return
        round_ratios.append([min(row[time] for row in compiled) / ours[time] for time in ("cold_us", "warm_us")])
        if number > 0 and rounds_agree(round_ratios):
            break
    ratios = [statistics.median(cache_ratios) for cache_ratios in zip(*round_ratios)]
    yield {"phase": phase, "dtype": layer_request["dtype"], "speedup_cold": ratios[0], "speedup_warm": ratios[1],
           "rounds": round_ratios}
    yield target(f"{phase} {layer_request['dtype']}: {MIN_SPEEDUP} times as fast as torch.compile",
                 min(ratios) >= MIN_SPEEDUP, ratios)
