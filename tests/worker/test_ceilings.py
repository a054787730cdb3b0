"""What the device can do at best, by the CPU worker, and by the CUDA worker where there is a GPU."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from frames import BUILD, Worker, measurements, of  # noqa: E402
from test_kernels import why_not  # noqa: E402

WORKERS = {"cpu": (BUILD / "bin" / "rooflined-worker-cpu", "cpu", "any"),
           "cuda": (BUILD / "bin" / "rooflined-worker-cuda", "gpu0", "clean")}
EVERYWHERE = {"dram_read_bytes_per_s", "dram_write_bytes_per_s", "dram_copy_bytes_per_s", "dram_triad_bytes_per_s",
              "fp64_operations_per_s", "fp32_operations_per_s"}


@pytest.fixture(scope="module", params=WORKERS)
def worker(request):
    program, device, role = WORKERS[request.param]
    reason = why_not(program)
    if reason is not None:
        pytest.skip(reason)
    with Worker(str(program), "--device", device, "--role", role, env={"ROOFLINED_THREADS": "2"}) as started:
        yield started


def test_every_rate_is_measured_or_has_a_reason(worker):
    frames = worker.ask("ceilings", {"samples": 3, "seed": 5})
    assert frames[-1].type == "DONE", frames[-1].payload
    (facts,) = of(frames, "FACTS")
    assert facts["floor_operations"] is None and facts["floor_bytes"] is None and facts["floor_precision"] == ""
    assert not of(frames, "EPOCH") and not of(frames, "SAMPLE")
    values = measurements(frames)
    for one in of(frames, "MEASUREMENT"):
        assert (one["value"] is None) == (one["reason"] != ""), one
    rates = {name: value for name, value in values.items() if name.endswith("_per_s")}
    assert len(rates) == 18 and EVERYWHERE <= {name for name, value in rates.items() if value is not None}
    assert all(value is None or value > 1e6 for value in rates.values())
    # All of a device's readings or none: what slowed it down is known exactly when its clock is.
    assert (values["throttled_ratio"] is None) == (values["sm_clock_most_mhz"] is None)
    if values["sm_clock_most_mhz"] is not None:
        assert values["sm_clock_least_mhz"] <= values["sm_clock_most_mhz"] and 0 <= values["throttled_ratio"] <= 1


def test_a_rate_can_be_asked_for_again(worker):
    first, second = (measurements(worker.ask("ceilings", {"samples": 1})) for _ in range(2))
    assert first.keys() == second.keys()
    assert {name for name in first if first[name] is None} == {name for name in second if second[name] is None}
