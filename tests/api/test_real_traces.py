"""Imports traces that torch.profiler recorded on an H200 (tests/baselines/torch_traces.py). Totals must equal the profiler's own
table, classes of time must equal the intervals of the file, and findings must name the known properties of the traces."""
import collections
import decimal
import gzip
import json
import re

import pytest

from daemon import SOURCE
from test_imports import class_times, findings, run_import

TRACES = SOURCE / "tests/data/traces"
COPIES = ("gpu_memcpy", "gpu_memset")
STORED_NAME_BYTES = 255  # longer names of kernels are truncated to this size


@pytest.fixture(scope="module", params=["training", "graph", "streams"])
def trace(request, start):
    """The name of a trace, its events, and the daemon and the job that imported it."""
    packed = (TRACES / f"{request.param}.json.gz").read_bytes()
    daemon = start()
    return request.param, json.loads(gzip.decompress(packed))["traceEvents"], daemon, run_import(daemon, packed)


def interval(event):
    begin, duration = (int(decimal.Decimal(str(event[key])) * 1000) for key in ("ts", "dur"))
    return begin, begin + duration


def union_ns(events):
    """Returns the time during which at least one of the events runs."""
    total, end = 0, 0
    for begin, until in sorted(map(interval, events)):
        total += max(0, until - max(begin, end))
        end = max(end, until)
    return total


def test_kernels_equal_the_profilers_table(trace):
    name, _, daemon, job = trace
    expected = json.loads((TRACES / f"{name}.totals.json").read_text())["kernels"]
    found = collections.Counter()
    for item in daemon.get(f"/jobs/{job['id']}/kernels?pass=activity&limit=1000").json()["items"]:
        (same,) = (key for key in expected if key.encode()[:STORED_NAME_BYTES] == item["name"].encode()[:STORED_NAME_BYTES])
        assert item["launches"] == expected[same]["calls"]
        assert item["total_us"] == pytest.approx(expected[same]["device_us"], abs=1e-3)
        found[same] += 1
    assert found and set(found.values()) == {1}


def test_classes_equal_the_files_intervals(trace):
    _, events, daemon, job = trace
    kernels = [event for event in events if event.get("cat") == "kernel"]
    copies = [event for event in events if event.get("cat") in COPIES]
    intervals = [interval(event) for event in kernels + copies]
    times = class_times(findings(daemon, job))
    assert sum(times.values()) == max(end for _, end in intervals) - min(begin for begin, _ in intervals)
    assert times["compute"] + times.get("compute_and_copy", 0) == union_ns(kernels)
    assert times["copy"] + times.get("compute_and_copy", 0) == union_ns(copies)
    assert "unknown" not in times and "idle_unknown" not in times


def test_findings_name_the_known_properties(trace):
    name, events, daemon, job = trace
    document = findings(daemon, job)
    times, messages = class_times(document), " ".join(finding["message"] for finding in document["findings"])
    window = sum(times.values())
    if name == "training":  # Python is slower than the small kernels, and the host waits for each loss
        assert times["idle_host_work"] > 0.5 * window and times["idle_synchronization"] > 0
        assert "Capture the launches in a CUDA graph" in messages
    elif name == "graph":  # kernels of replays have no launch of their own
        launches = sum(event.get("name") == "cudaGraphLaunch" for event in events)
        assert launches == 20 and re.search(r"713 kernels are shorter than 10 µs", messages)
    else:
        assert times["compute_and_copy"] > 0.7 * window
        assert "Copies from or to host memory run without kernels during 6.9 %" in messages
        assert sum(finding["kind"] == "optimization" for finding in document["findings"]) == 0
