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
def second_worker():
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
def worker_with_counters(second_worker):
    """A worker with the range profiler enabled: it has collected twice, the second time with the kept profiler."""
    with start_profiled_worker() as worker:
        assert collect_instructions(worker) == collect_instructions(worker)
        yield worker


@pytest.fixture(autouse=True)
def counters_are_free_afterwards(second_worker):
    yield
    collect_instructions(second_worker)
    second_worker.release()


def test_counters_are_released_on_request(worker_with_counters, second_worker):
    worker_with_counters.release()
    instructions = collect_instructions(second_worker)
    second_worker.release()
    assert collect_instructions(worker_with_counters) == instructions
    worker_with_counters.release()


def test_counters_are_released_for_a_pass_without_counters(worker_with_counters):
    assert worker_with_counters.execute("relu", RELU, "activity")[-1].type == "DONE"


def test_counters_are_released_when_cancelled(worker_with_counters):
    worker_with_counters.request("relu", RELU, "counters")
    worker_with_counters.cancel()
    assert worker_with_counters.until(*END_TYPES)[-1].type == "CANCELLED"


def test_counters_are_released_when_the_worker_is_killed(worker_with_counters):
    worker_with_counters.process.kill()
    worker_with_counters.process.wait()
