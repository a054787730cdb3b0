"""A worker keeps the range profiler enabled after a counters pass. It disables the profiler on request, before any other pass,
and when it ends. A second worker checks this: it can collect counters only when the first has disabled its profiler."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from frames import BUILD, END_TYPES, Worker, payloads  # noqa: E402

CUDA = BUILD / "bin" / "rooflined-worker-cuda"
RELU = {"dtype": "fp16", "variant": "scalar", "shape": {"n": 1 << 20}, "samples": 3}


def start_profiled_worker():
    return Worker(str(CUDA), "--device", "gpu0", "--role", "profiled")


def collect_instructions(worker):
    """Collects counters; returns how many instructions the kernel executes."""
    frames = worker.execute("relu", RELU, "counters")
    assert frames[-1].type == "DONE", frames[-1].payload
    return next(metric["value"] for frame in payloads(frames, "METRIC") for metric in frame
                if metric["metric"] == "smsp__inst_executed.sum")


@pytest.fixture(scope="module")
def other():
    if not CUDA.exists():
        pytest.skip("the CUDA worker is not built here")
    with start_profiled_worker() as worker:
        if not worker.hello.payload["usable"]:
            pytest.skip(worker.hello.payload["reason"])
        last = worker.execute("relu", RELU, "counters")[-1]
        if last.type != "DONE":
            pytest.skip(last.payload["message"])
        worker.release()
        yield worker


@pytest.fixture
def holder(other):
    """A worker with the range profiler enabled: it has collected twice, the second time with the kept profiler."""
    with start_profiled_worker() as worker:
        assert collect_instructions(worker) == collect_instructions(worker)
        yield worker


@pytest.fixture(autouse=True)
def counters_are_free_afterwards(other):
    yield
    collect_instructions(other)
    other.release()


def test_counters_are_released_on_request(holder, other):
    holder.release()
    instructions = collect_instructions(other)
    other.release()
    assert collect_instructions(holder) == instructions
    holder.release()


def test_counters_are_released_for_a_pass_without_counters(holder):
    assert holder.execute("relu", RELU, "activity")[-1].type == "DONE"


def test_counters_are_released_when_cancelled(holder):
    holder.request("relu", RELU, "counters")
    holder.cancel()
    assert holder.until(*END_TYPES)[-1].type == "CANCELLED"


def test_counters_are_released_when_the_worker_is_killed(holder):
    holder.process.kill()
    holder.process.wait()
