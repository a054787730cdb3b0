"""The CPU worker trains the MNIST CNN with its default engine on some of the synthetic digits."""
import os
import pathlib
import subprocess
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1])]
from digits import mnist  # noqa: E402
from frames import BUILD, Worker, measurements, payloads, unpack  # noqa: E402

CPU, CUDA = str(BUILD / "bin" / "rooflined-worker-cpu"), str(BUILD / "bin" / "rooflined-worker-cuda")
SMALL = {"dataset": "synthetic", "max_images": 1600, "epochs": 2, "warmup_epochs": 1, "batch_size": 64, "seed": 7}


@pytest.fixture(scope="module")
def worker():
    with Worker(CPU, "--device", "cpu", env={"ROOFLINED_THREADS": "2"}) as cpu:
        yield cpu


@pytest.mark.parametrize("precision", ("fp32", "fp16"))
def test_training_is_timed_and_learns(worker, precision):
    frames = worker.execute("mnist_cnn", {**SMALL, "precision": precision, "epochs": 3})
    assert frames[-1].type == "DONE", frames[-1].payload
    (metadata,) = payloads(frames, "METADATA")
    assert metadata["images_per_epoch"] == 1600 and metadata["steps_per_epoch"] == 25 and metadata["parameters"] == 315146
    assert metadata["dataset"] == "synthetic" and len(metadata["dataset_sha256"]) == 64 and metadata["partial"]
    assert (metadata["floor_precision"], metadata["floor_operations"] > 1e10) == (precision, True)
    assert 0 < metadata["floor_written_bytes"] < metadata["floor_bytes"]
    epochs = payloads(frames, "EPOCH")
    assert [(e["epoch"], e["warmup"]) for e in epochs] == [(0, True), (1, False), (2, False), (3, False)]
    assert all(e["device_ms"] > 0 and e["evaluation_ms"] > 0 and e["images"] == 1600 for e in epochs)
    assert epochs[0]["train_loss"] == epochs[1]["train_loss"] > epochs[2]["train_loss"] > epochs[3]["train_loss"]
    assert epochs[3]["test_accuracy_ratio"] > epochs[1]["test_accuracy_ratio"] > 0.15
    for epoch in epochs:
        missing = {name for name, value in epoch.items() if value is None and name != "unavailable"}
        assert missing == set(epoch["unavailable"] or {})
    values = measurements(frames)
    parts = sum(values[f"memory_{p}_bytes"] for p in ("dataset", "weights", "activations", "workspace"))
    assert 0 < values["peak_memory_bytes"] <= parts
    assert values["memory_weights_bytes"] >= 4 * 4 * 315146  # weights, gradients and two moments
    assert values["peak_rss_bytes"] > values["peak_memory_bytes"] and values["launches_per_step"] >= 5
    assert "floor_ms" not in values  # the daemon computes it


def test_the_cost_counts_the_images_of_the_data_set(tmp_path):
    """The folder has 640 training images, not MNIST's 60,000."""
    with Worker(CPU, "--device", "cpu", env={"ROOFLINED_MNIST_DIR": str(mnist(tmp_path, train=640))}) as worker:
        costs = []
        for max_images in (0, 640, 320):
            changes = {"dataset": "files", "max_images": max_images, "epochs": 1, "warmup_epochs": 0}
            (metadata,) = payloads(worker.execute("mnist_cnn", {**SMALL, **changes}), "METADATA")
            costs.append((metadata["images_per_epoch"], metadata["floor_operations"], metadata["floor_bytes"]))
    assert costs[0] == costs[1] and costs[0][0] == 640
    assert costs[0][1] == 2 * costs[2][1] and costs[0][2] - costs[2][2] == 320 * (28 * 28 + 1)


@pytest.mark.parametrize("learning_rate, skipped", ((1, [19, 19, 20]), (1e-3, [0, 0, 0])))
def test_skipped_steps_are_counted_in_each_epoch(tmp_path, learning_rate, skipped):
    """With a learning rate of 1, the gradients overflow after the first step. The reset before the measured epochs restores the
    weights."""
    with Worker(CPU, "--device", "cpu", env={"ROOFLINED_MNIST_DIR": str(mnist(tmp_path, train=640))}) as worker:
        changes = {"dataset": "files", "max_images": 0, "batch_size": 32, "precision": "fp16", "learning_rate": learning_rate}
        epochs = payloads(worker.execute("mnist_cnn", {**SMALL, **changes}), "EPOCH")
    assert [epoch["skipped_steps"] for epoch in epochs] == skipped


def test_two_requests_with_the_same_seed_give_identical_losses(worker):
    runs = [payloads(worker.execute("mnist_cnn", SMALL), "EPOCH") for _ in range(2)]
    assert [e["train_loss"] for e in runs[0]] == [e["train_loss"] for e in runs[1]]
    other = payloads(worker.execute("mnist_cnn", {**SMALL, "seed": 8}), "EPOCH")
    assert other[0]["train_loss"] != runs[0][0]["train_loss"]


def test_activity_shows_every_launch(worker):
    frames = worker.execute("mnist_cnn", SMALL, "activity")
    assert frames[-1].type == "DONE", frames[-1].payload
    values = measurements(frames)
    assert values["completeness_ratio"] == 1 and values["activity_dropped_records"] == 0
    assert values["perturbation_ratio"] == pytest.approx(values["epoch_traced_ms"] / values["epoch_untraced_ms"])
    kernels = payloads(frames, "KERNEL")
    assert {"data", "forward", "backward", "optimizer"} <= {k["phase"] for k in kernels}
    assert sum(k["launches"] for k in kernels) == values["launches_issued"]
    assert 0.8 < sum(k["share_ratio"] for k in kernels) <= 1
    assert all(k["reason"] for k in kernels if k["registers_per_thread"] is None)


def test_an_unsupported_precision_is_refused(worker):
    (failed,) = worker.execute("mnist_cnn", {**SMALL, "precision": "tf32"})
    assert failed.type == "FAILED" and failed.payload["domain"] == "input"
    assert worker.execute("mnist_cnn", {**SMALL, "epochs": 1, "warmup_epochs": 0})[-1].type == "DONE"


@pytest.mark.parametrize("program", (CPU, CUDA))
def test_no_worker_is_linked_with_cupti(program):
    if not os.path.exists(program):
        pytest.skip("not built here")
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "cupti" not in libraries.lower()
    if program == CPU:
        assert "cuda" not in libraries.lower()


def test_the_cuda_worker_sends_hello_without_a_gpu():
    if not os.path.exists(CUDA):
        pytest.skip("the CUDA worker is not built here")
    done = subprocess.run([CUDA, "--list"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    hello = unpack(done.stdout)
    assert done.returncode == 0 and hello
    if not os.path.exists("/dev/nvidiactl"):
        assert len(hello) == 1 and not hello[0].payload["usable"] and hello[0].payload["device"] == "gpu0"
        assert hello[0].payload["reason"]
        for role in ("unprofiled", "profiled"):
            with Worker(CUDA, "--device", "gpu0", "--role", role) as worker:
                assert not worker.hello.payload["usable"] and worker.hello.payload["reason"]
                assert worker.process.wait(20) == 3
