"""The transformer layer: the times of its variants, the causes of idle time with and without a graph, and PyTorch's times."""
import sys

from ..daemon import Daemon
from ..host import SOURCE
from ..runner import check
from . import programs
from .pytorch import stream_json_lines

SHAPES = {"prefill": {"tokens": 2048}, "decode": {"tokens": 1, "cached_tokens": 2047}}
SMALL = {"hidden": 128, "heads": 2, "ffn": 344}  # of the layer on a CPU
PRODUCTS = {"q", "k", "v", "qkv", "qkv_rope", "o", "o_residual", "gate", "up", "gate_up", "gate_up_silu", "gate_beside_up",
            "down", "down_residual"}  # launches
MIN_SPEEDUP = 1.05  # of the best variant over torch.compile
TORCH_MIN_S = 45  # time to start PyTorch and to measure eager and one compiled variant
MIN_PRODUCT_RATIO = 0.85  # of the ceiling's rate over the products


def layer(context):
    host = context.host
    shapes = SHAPES if host.is_gpu else {name: {**shape, **SMALL, **{key: 33 for key in shape if shape[key] > 1}}
                                         for name, shape in SHAPES.items()}
    best_us = {}  # by phase and type: the cold and the warm time of the variant `best`
    with Daemon(host, context.log("daemon.log")) as daemon:
        daemon.run_job({"kind": "ceilings"})
        rates = {rate["name"]: rate["value"] for rate in daemon.request("/ceilings")["items"][0]["rates"]}
        for phase, shape in shapes.items():
            for dtype in ("fp16", "bf16"):
                for row in measure_variants(daemon, phase, shape, dtype, rates.get(f"tensor_{dtype}_operations_per_s")):
                    yield row
                    if row.get("cold_us"):
                        best_us[phase, dtype] = row["cold_us"], row["warm_us"]
    for phase, dtype in sorted(best_us, key=lambda key: key[1] != "fp16") if host.is_gpu else ():
        if context.remaining_s() < TORCH_MIN_S:
            yield {"partial": f"no time for PyTorch's {phase} in {dtype}"}
        else:
            yield from compare_with_torch(context, phase, shapes[phase], dtype, best_us[phase, dtype])


def measure_variants(daemon, phase, shape, dtype, rate):
    """Yields a row for each variant: its times, its gain over the previous variant, and in fp16 its launches and timeline."""
    passes = ["timing", "activity"] if dtype == "fp16" else ["timing"]
    job = daemon.run_job({"kind": "layer", "dtype": dtype, **shape, "passes": passes})
    kernels = daemon.request(f"/jobs/{job['id']}/kernels?pass=activity&limit=1000")["items"]
    before = None
    for run in daemon.request(f"/jobs/{job['id']}/results")["runs"]:
        values = {item["name"]: item["value"] for item in run["measurements"] if item["pass"] in ("timing", "activity")}
        launches = {}
        for kernel in (kernel for kernel in kernels if kernel["run"] == run["run"]):
            launches[kernel["launch"]] = launches.get(kernel["launch"], 0) + kernel["total_us"] / run["params"]["samples"]
        cold_us, product_us = values["time_cold_us_median"], sum(launches.get(name, 0) for name in PRODUCTS)
        timeline = daemon.request(f"/runs/{run['run']}/timeline/findings")
        row = {"phase": phase, "dtype": dtype, "variant": run["variant"], "cold_us": cold_us,
               "warm_us": values["time_warm_us_median"], "floor_us": values.get("floor_cold_us"),
               "gained_ratio": None if before is None else 1 - cold_us / before,
               "token_us": cold_us / shape["tokens"], "error": values["relative_error"], "launches": launches,
               "product_operations_per_s": product_operations(run["params"]) / product_us * 1e6 if product_us else None,
               "suspect": any(sample["suspect"] for sample in run["samples"]),
               "classes": {item["class"]: item["time_ns"] for item in timeline["classes"] or ()},
               "findings": [finding["message"] for finding in timeline["findings"] or ()]}
        yield row
        before = cold_us
    if phase == "prefill" and rate and row["product_operations_per_s"]:
        ratio = row["product_operations_per_s"] / rate
        yield check(f"{dtype}: the products of {row['variant']} reach {MIN_PRODUCT_RATIO:.0%} of the ceiling",
                    ratio >= MIN_PRODUCT_RATIO, ratio)


def product_operations(params):
    hidden, ffn = params["hidden"], params["ffn"]
    return 2 * params["batch"] * params["tokens"] * (4 * hidden * hidden + 3 * hidden * ffn)


def compare_with_torch(context, phase, shape, dtype, ours):
    command = [sys.executable, str(SOURCE / "tests" / "baselines" / "torch_layer.py"), "--dtype", dtype,
               *(text for name, value in shape.items() for text in (f"--{name.replace('_', '-')}", str(value)))]
    if programs.run(context, [sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], "torch.log")[0] != 0:
        return
    compiled = []
    for row in stream_json_lines(context, command, f"torch-{phase}-{dtype}.jsonl"):
        yield {"phase": phase, **row}
        if row["variant"].startswith("compile") and "cold_us" in row:
            compiled.append((row["cold_us"], row["warm_us"]))
    if not compiled:
        return
    ratios = [min(times) / our_us for times, our_us in zip(zip(*compiled), ours)]
    yield check(f"{phase} {dtype}: {MIN_SPEEDUP} times as fast as torch.compile", min(ratios) >= MIN_SPEEDUP, ratios)
