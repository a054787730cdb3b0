"""The CUDA worker on a GPU: what each role loads and measures. Skipped with the reason where there is no GPU."""
import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from frames import BUILD, Worker, measurements, payloads, unpack  # noqa: E402

CUDA = BUILD / "bin" / "rooflined-worker-cuda"
SMALL_JOB = {"dataset": "synthetic", "max_images": 12832, "epochs": 2, "warmup_epochs": 1, "batch_size": 64, "seed": 7,
             "engine": "fused"}
KERNEL, PHASE = 0, 9  # rl_activity_kind


def skip_reason():
    if not CUDA.exists():
        return "the CUDA worker is not built here"
    done = subprocess.run([str(CUDA), "--list"], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    hello = unpack(done.stdout)[0].payload
    return None if hello["usable"] else hello["reason"]


SKIP_REASON = skip_reason()
pytestmark = pytest.mark.skipif(SKIP_REASON is not None, reason=str(SKIP_REASON))


def memory_maps(worker):
    return pathlib.Path(f"/proc/{worker.process.pid}/maps").read_text()


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    """The environment of workers that share their autotuning cache, as under one daemon."""
    return {"ROOFLINED_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="module")
def unprofiled(shared_cache):
    with Worker(str(CUDA), "--device", "gpu0", "--role", "unprofiled", env=shared_cache) as worker:
        yield worker


@pytest.fixture(scope="module")
def profiled(shared_cache):
    with Worker(str(CUDA), "--device", "gpu0", "--role", "profiled", env=shared_cache) as worker:
        yield worker


@pytest.mark.parametrize("precision", ("fp32", "tf32", "fp16"))
def test_timing_without_cupti(unprofiled, precision):
    frames = unprofiled.execute("mnist_cnn", {**SMALL_JOB, "precision": precision})
    assert frames[-1].type == "DONE", frames[-1].payload
    assert "cupti" not in memory_maps(unprofiled).lower()
    epochs = payloads(frames, "EPOCH")
    assert [e["warmup"] for e in epochs] == [True, False, False]
    for epoch in epochs:
        assert 0 < epoch["device_ms"] <= epoch["host_ms"] * 1.001
        assert epoch["sm_clock_before_mhz"] > 100 and epoch["memory_clock_mhz"] > 100
        assert 10 < epoch["temperature_c"] < 110 and 20 < epoch["power_w"] < 2000
        absent = {name for name, value in epoch.items() if value is None and name != "unavailable"}
        assert absent == set(epoch["unavailable"] or {})
        assert absent <= {"loss_scale"}
    assert epochs[2]["train_loss"] < epochs[1]["train_loss"]
    values = measurements(frames)
    assert values["memory_weights_bytes"] >= 4 * 4 * 315146
    assert values["peak_memory_bytes"] <= sum(values[f"memory_{p}_bytes"]
                                              for p in ("dataset", "weights", "activations", "workspace"))
    assert 5e7 < values["context_memory_bytes"] < 4e9
    assert values["device_memory_after_bytes"] > values["device_memory_before_bytes"]
    assert 5 <= values["launches_per_step"] <= 200


def test_two_requests_with_one_seed_give_the_same_bits(unprofiled):
    frames = [unprofiled.execute("mnist_cnn", SMALL_JOB) for _ in range(2)]
    (metadata,) = payloads(frames[0], "METADATA")
    if not metadata["deterministic"]:
        pytest.skip(metadata["deterministic_note"])
    first, second = ([e["train_loss"] for e in payloads(f, "EPOCH")] for f in frames)
    assert first == second and first[0] == first[1]


def test_another_process_gives_the_same_bits_or_is_not_deterministic(unprofiled, shared_cache):
    for precision in ("fp32", "fp16"):
        params = {**SMALL_JOB, "precision": precision}
        here = unprofiled.execute("mnist_cnn", params)
        with Worker(str(CUDA), "--device", "gpu0", "--role", "unprofiled", env=shared_cache) as other:
            there = other.execute("mnist_cnn", params)
        if payloads(here, "METADATA")[0]["deterministic"]:
            assert [e["train_loss"] for e in payloads(here, "EPOCH")] == [e["train_loss"] for e in payloads(there, "EPOCH")]
    with Worker(str(CUDA), "--device", "gpu0", "--role", "unprofiled", env={"ROOFLINED_CACHE_DIR": ""}) as alone:
        (metadata,) = payloads(alone.execute("mnist_cnn", SMALL_JOB), "METADATA")
    assert not metadata["deterministic"] and "ROOFLINED_CACHE_DIR" in metadata["deterministic_note"]


@pytest.mark.parametrize("engine, precision, phases", (("fused", "fp32", {"forward", "backward", "optimizer"}),
                                                       ("fused", "fp16", {"forward", "backward", "optimizer"}),
                                                       ("persistent", "fp16", {"data", "kernel"})))
def test_activity_is_complete_and_attributed(profiled, engine, precision, phases):
    frames = profiled.execute("mnist_cnn", {**SMALL_JOB, "engine": engine, "precision": precision}, "activity")
    assert frames[-1].type == "DONE", frames[-1].payload
    assert "cupti" in memory_maps(profiled).lower()
    values = measurements(frames)
    assert values["completeness_ratio"] == 1
    assert values["activity_dropped_records"] == 0 and values["activity_zero_time_records"] == 0
    assert 0 < values["device_busy_ratio"] <= 1 and values["perturbation_ratio"] > 0.5
    kernels = payloads(frames, "KERNEL")
    assert [k["ordinal"] for k in kernels] == list(range(len(kernels)))
    assert all(k["launch"] and k["phase"] for k in kernels), [k["name"] for k in kernels if not k["launch"]]
    assert phases <= {k["phase"] for k in kernels}
    assert sum(k["launches"] for k in kernels) == values["activity_kernel_records"]
    shares = [k["share_ratio"] for k in kernels]
    assert max(shares) < 1 and sum(shares) > values["device_busy_ratio"] - 0.01  # overlapping kernels count twice
    assert 0 <= values["launch_gap_ratio"] < 0.5
    for kernel in kernels:
        assert kernel["min_us"] <= kernel["median_us"] <= kernel["max_us"]
        assert kernel["registers_per_thread"] > 0 and kernel["block_x"] > 0 and kernel["grid_x"] > 0
        assert 0 < kernel["theoretical_occupancy_ratio"] <= 1


@pytest.mark.parametrize("precision", ("fp32", "tf32", "fp16"))
def test_an_epoch_in_one_launch_shows_its_phases(profiled, precision):
    frames = profiled.execute("mnist_cnn", {**SMALL_JOB, "engine": "persistent", "precision": precision}, "activity")
    assert frames[-1].type == "DONE", frames[-1].payload
    (epoch,) = [kernel for kernel in payloads(frames, "KERNEL") if kernel["launch"] == "persistent_epoch"]
    phases, names = payloads(frames, "PHASE"), payloads(frames, "NAME")
    assert {phase["phase"] for phase in phases} == {"forward", "backward", "optimizer"}
    assert all((phase["ordinal"], phase["steps"], phase["blocks"]) == (epoch["ordinal"], 32, 128) for phase in phases)
    assert all(0 <= phase["min_us"] <= phase["mean_us"] <= phase["max_us"] for phase in phases)
    (metadata,) = payloads(frames, "METADATA")
    step_us = sum(phase["mean_us"] for phase in phases)  # of the first steps; the others are alike, except the short last one
    assert 0.8 < step_us * metadata["steps_per_epoch"] / epoch["total_us"] < 1.1
    rows = [row for frame in payloads(frames, "ROWS") for row in frame]
    (launch,) = [row for row in rows if row[2] == KERNEL and names[row[3]] == epoch["name"]]
    spans = [row for row in rows if row[2] == PHASE]
    assert [(row[7], names[row[3]]) for row in spans] == [(step, phase["name"]) for step in range(1, 33) for phase in phases]
    assert all(before[1] == after[0] for before, after in zip(spans, spans[1:]) if before[7] == after[7])
    assert launch[0] <= spans[0][0] and spans[-1][1] <= launch[1]
    error_us = measurements(frames)["phase_clock_error_us"]
    assert 0 <= error_us < 0.05 * epoch["total_us"]


@pytest.mark.parametrize("engine", ("fused", "persistent"))
def test_counters_are_collected_or_have_a_reason(profiled, engine):
    frames = profiled.execute("mnist_cnn", {**SMALL_JOB, "engine": engine, "precision": "fp16"}, "counters", timeout=200)
    assert frames[-1].type in ("DONE", "UNAVAILABLE"), frames[-1].payload
    if frames[-1].type == "UNAVAILABLE":
        assert frames[-1].payload["message"]
        pytest.skip(frames[-1].payload["message"])
    metrics = [metric for frame in payloads(frames, "METRIC") for metric in frame]
    assert metrics and all(m["value"] is not None or m["reason"] for m in metrics)
    assert {m["ordinal"] for m in metrics} <= {k["ordinal"] for k in payloads(frames, "KERNEL")}


def test_the_profiled_role_works_without_rooflined_cupti(tmp_path):
    alone = tmp_path / CUDA.name
    shutil.copy(CUDA, alone)
    with Worker(str(alone), "--device", "gpu0", "--role", "profiled") as worker:
        assert worker.hello.payload["usable"]
        last = worker.execute("mnist_cnn", SMALL_JOB, "counters")[-1]
        assert last.type == "UNAVAILABLE" and "rooflined-cupti.so" in last.payload["message"]
