"""What a worker keeps reserved of a GPU after it has counted: it is gone when it was asked for, and whenever the worker does
anything else or nothing any more. Whether it is gone another worker tells, which counts."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from frames import BUILD, LAST, Worker, of  # noqa: E402

CUDA = BUILD / "bin" / "rooflined-worker-cuda"
RELU = {"dtype": "fp16", "variant": "scalar", "shape": {"n": 1 << 20}, "samples": 3}


def profiler():
    return Worker(str(CUDA), "--device", "gpu0", "--role", "profiled")


def count(worker):
    """How many instructions the kernel executes."""
    frames = worker.ask("relu", RELU, "counters")
    assert frames[-1].type == "DONE", frames[-1].payload
    return next(one["value"] for frame in of(frames, "METRIC") for one in frame if one["metric"] == "smsp__inst_executed.sum")


@pytest.fixture(scope="module")
def other():
    if not CUDA.exists():
        pytest.skip("the CUDA worker is not built here")
    with profiler() as worker:
        if not worker.hello.payload["usable"]:
            pytest.skip(worker.hello.payload["reason"])
        last = worker.ask("relu", RELU, "counters")[-1]
        if last.type != "DONE":
            pytest.skip(last.payload["message"])
        worker.release()
        yield worker


@pytest.fixture
def holder(other):
    """A worker that has just counted twice, the second time with what it kept of the first."""
    with profiler() as worker:
        assert count(worker) == count(worker)
        yield worker


@pytest.fixture(autouse=True)
def nothing_is_left(other):
    yield
    count(other)
    other.release()


def test_it_is_let_go_when_asked_for(holder, other):
    holder.release()
    instructions = count(other)
    other.release()
    assert count(holder) == instructions
    holder.release()


def test_it_is_let_go_for_what_has_no_counters(holder):
    assert holder.ask("relu", RELU, "activity")[-1].type == "DONE"


def test_it_is_let_go_when_cancelled(holder):
    holder.request("relu", RELU, "counters")
    holder.cancel()
    assert holder.until(*LAST)[-1].type == "CANCELLED"


def test_it_is_gone_with_its_worker(holder):
    holder.process.kill()
    holder.process.wait()
