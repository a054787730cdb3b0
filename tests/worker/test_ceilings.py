"""The ceilings workload in the CPU worker, and in the CUDA worker if there is a GPU."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from frames import BUILD, Worker, measurements, payloads  # noqa: E402
from test_kernels import skip_reason  # noqa: E402

WORKERS = {"cpu": (BUILD / "bin" / "rooflined-worker-cpu", "cpu", "any"),
           "cuda": (BUILD / "bin" / "rooflined-worker-cuda", "gpu0", "unprofiled")}
RATES_OF_ALL_DEVICES = {"dram_read_bytes_per_s", "dram_write_bytes_per_s", "dram_copy_bytes_per_s", "dram_triad_bytes_per_s",
                        "fp64_operations_per_s", "fp32_operations_per_s"}


@pytest.fixture(scope="module", params=WORKERS)
def worker(request):
    program, device, role = WORKERS[request.param]
    reason = skip_reason(program)
    if reason is not None:
        pytest.skip(reason)
    with Worker(str(program), "--device", device, "--role", role, env={"ROOFLINED_THREADS": "2"}) as started:
        yield started


def test_every_rate_is_measured_or_has_a_reason(worker):
    frames = worker.execute("ceilings", {"samples": 3, "seed": 5})
    assert frames[-1].type == "DONE", frames[-1].payload
    (metadata,) = payloads(frames, "METADATA")
    assert metadata["floor_operations"] is None and metadata["floor_bytes"] is None and metadata["floor_precision"] == ""
    assert not payloads(frames, "EPOCH") and not payloads(frames, "SAMPLE")
    values = measurements(frames)
    for measurement in payloads(frames, "MEASUREMENT"):
        assert (measurement["value"] is None) == (measurement["reason"] != ""), measurement
    rates = {name: value for name, value in values.items() if name.endswith("_per_s")}
    assert len(rates) == 18 and RATES_OF_ALL_DEVICES <= {name for name, value in rates.items() if value is not None}
    assert all(value is None or value > 1e6 for value in rates.values())
    # A GPU has all of these sensors or none; a CPU has at most a clock.
    assert (values["throttled_ratio"] is None) == (values["power_w_most"] is None)
    assert values["throttled_ratio"] is None or 0 <= values["throttled_ratio"] <= 1
    # /proc/stat has the times of the processors; NVML lists the processes that use a GPU.
    assert values["other_processes_cpu_time_ratio"] is None or values["other_processes_before"] is None
    assert 0 <= (values["other_processes_cpu_time_ratio"] or 0) <= 1
    if values["other_processes_cpu_time_ratio"] is not None:
        assert values["other_processes_busy_processors"] == pytest.approx(
            values["other_processes_cpu_time_ratio"] * len(os.sched_getaffinity(0)))
    if values["sm_clock_most_mhz"] is not None:
        assert values["sm_clock_least_mhz"] <= values["sm_clock_most_mhz"]


def test_ceilings_can_be_measured_again(worker):
    first, second = (measurements(worker.execute("ceilings", {"samples": 1})) for _ in range(2))
    # A reason for throttling is stored only for the readings in which it held.
    first, second = ({name: value for name, value in values.items() if not name.startswith("throttled_by_")}
                     for values in (first, second))
    assert first.keys() == second.keys()
    assert {name for name in first if first[name] is None} == {name for name in second if second[name] is None}
