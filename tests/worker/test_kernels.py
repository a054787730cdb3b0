"""Kernel workloads in the CPU worker, and in the CUDA worker if there is a GPU: samples, measurements and the check."""
import pathlib
import statistics
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from frames import BUILD, Worker, measurements, payloads, unpack  # noqa: E402

CPU, CUDA = BUILD / "bin" / "rooflined-worker-cpu", BUILD / "bin" / "rooflined-worker-cuda"
RELU = {"dtype": "fp16", "shape": {"n": 20001}, "variant": "vector", "samples": 9, "seed": 3}


def skip_reason(program):
    if not program.exists():
        return f"{program.name} is not built here"
    done = subprocess.run([str(program), "--list"], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    hello = unpack(done.stdout)[0].payload
    return None if hello["usable"] else hello["reason"]


@pytest.fixture(scope="module", params=((CPU, "cpu"), (CUDA, "gpu0")), ids=("cpu", "cuda"))
def worker(request):
    program, device = request.param
    reason = skip_reason(program)
    if reason is not None:
        pytest.skip(reason)
    with Worker(str(program), "--device", device, "--role", "any" if device == "cpu" else "unprofiled",
                env={"ROOFLINED_THREADS": "2"}) as started:
        yield started


def test_a_kernel_is_checked_and_timed(worker):
    frames = worker.execute("relu", RELU)
    assert frames[-1].type == "DONE", frames[-1].payload
    (metadata,) = payloads(frames, "METADATA")
    assert metadata["floor_bytes"] == 2 * 2 * 20001 and metadata["floor_operations"] == 20001
    assert (metadata["floor_written_bytes"], metadata["floor_precision"]) == (2 * 20001, "fp16")
    assert metadata["deterministic"] and metadata["dataset"] == "" and metadata["images_per_epoch"] == metadata["parameters"] == 0
    assert not payloads(frames, "EPOCH")
    samples = {mode: [s["device_us"] for s in payloads(frames, "SAMPLE") if s["mode"] == mode] for mode in ("cold", "warm")}
    assert [s["ordinal"] for s in payloads(frames, "SAMPLE")] == 2 * list(range(9))
    values = measurements(frames)
    for mode, times in samples.items():
        assert len(times) == 9 and min(times) > 0
        assert values[f"time_{mode}_us_min"] == min(times)
        assert values[f"time_{mode}_us_median"] == pytest.approx(median := statistics.median(times))
        spread = 1.4826 * statistics.median(abs(time - median) for time in times) / median
        assert values[f"time_{mode}_us_spread_ratio"] == pytest.approx(spread)
    # A GPU has all of these sensors or none; a CPU has at most a clock.
    assert (values["throttled_ratio"] is None) == (values["power_w_most"] is None)
    assert values["achieved_bytes_per_s"] == pytest.approx(metadata["floor_bytes"] / values["time_cold_us_median"] * 1e6)
    assert values["relative_error"] == values["relative_error_limit"] == 0  # relu does not round
    assert values["launches_per_step"] == 1
    assert values["memory_dataset_bytes"] == values["memory_activations_bytes"] == 2 * 20001
    for measurement in payloads(frames, "MEASUREMENT"):
        assert (measurement["value"] is None) == (measurement["reason"] != ""), measurement


ELEMENTWISE, LIBRARY = ("scalar", "vector"), ("heuristic", "searched")
GPU_VARIANTS = ("searched",)
CONV = {"images": 2, "height": 15, "width": 13, "channels": 16, "filters": 8, "kernel": 3, "stride": 1, "padding": 1}


@pytest.mark.parametrize("workload, dtype, shape, variants", (
    ("copy", "fp64", {"n": 1}, ELEMENTWISE), ("residual_add", "bf16", {"n": 17}, ELEMENTWISE),
    ("bias_gelu", "fp32", {"rows": 5, "columns": 301}, ELEMENTWISE), ("silu_mul", "fp16", {"n": 70001}, ELEMENTWISE),
    ("gemm", "fp16", {"m": 1, "n": 515, "k": 1027}, LIBRARY), ("gemm", "tf32", {"m": 130, "n": 60, "k": 33}, LIBRARY),
    ("attention", "fp16", {"batch": 1, "heads": 4, "kv_heads": 2, "sequence": 131, "head_size": 64, "causal": True}, LIBRARY),
    ("conv", "fp16", CONV, LIBRARY), ("conv_dgrad", "tf32", CONV, LIBRARY), ("conv_wgrad", "fp32", CONV, LIBRARY)))
def test_errors_stay_within_their_limits(worker, workload, dtype, shape, variants):
    for variant in variants:
        frames = worker.execute(workload, {"dtype": dtype, "shape": shape, "variant": variant, "samples": 1})
        if variant in GPU_VARIANTS and worker.hello.payload["device"] == "cpu":
            assert (frames[-1].type, frames[-1].payload["domain"]) == ("FAILED", "input")
            assert frames[-1].payload["message"].endswith("(at /variant)")
            continue
        assert frames[-1].type == "DONE", frames[-1].payload
        values = measurements(frames)
        assert 0 <= values["relative_error"] <= values["relative_error_limit"] < 0.005


def test_progress_of_a_kernel_has_no_epochs(worker):
    phases = {p["phase"] for p in payloads(worker.execute("relu", RELU), "PROGRESS")}
    assert phases <= {"prepare", "evaluate", "samples"} and phases


@pytest.mark.parametrize("change, pointer", (
    ({"shape": {}}, "/shape/n"), ({"shape": {"n": 0}}, "/shape/n"), ({"shape": {"n": 1, "rows": 1}}, "/shape/rows"),
    ({"variant": "fast"}, "/variant"), ({"dtype": "fp8"}, "/dtype"), ({"samples": 0}, "/samples"), ({"epochs": 1}, "/epochs")))
def test_wrong_parameters_are_refused(worker, change, pointer):
    (failed,) = worker.execute("relu", {**RELU, **change})
    assert failed.type == "FAILED" and failed.payload["domain"] == "input"
    assert failed.payload["message"].endswith(f" (at {pointer})")


@pytest.mark.skipif(not CPU.exists(), reason="the CPU worker is not built here")
def test_activity_records_every_launch():
    with Worker(str(CPU), "--device", "cpu", env={"ROOFLINED_THREADS": "2"}) as worker:
        frames = worker.execute("relu", RELU, "activity")
        assert frames[-1].type == "DONE", frames[-1].payload
        (kernel,) = payloads(frames, "KERNEL")
        assert (kernel["launch"], kernel["phase"], kernel["launches"]) == ("relu", "kernel", 9)
        assert measurements(frames)["completeness_ratio"] == 1
