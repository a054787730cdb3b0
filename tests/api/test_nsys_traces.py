"""Imports traces that nsys recorded on an H200 (tests/baselines/nsys_traces.py) and exported as SQLite. The numbers of kernels,
copies, calls and ranges must equal those that `nsys stats` printed for the same file. Tables and names that describe the
recording machine (processes, environment, paths) were deleted from the files after the export."""
import collections
import csv
import lzma
import re

import pytest

from daemon import SOURCE
from test_imports import class_times, findings, run_import

TRACES = SOURCE / "tests/data/nsys_traces"
COPIES = {"memcpy HtoD": "[CUDA memcpy Host-to-Device]", "memcpy DtoH": "[CUDA memcpy Device-to-Host]",
          "memcpy DtoD": "[CUDA memcpy Device-to-Device]"}


def report(trace, name):
    """Returns the rows of a report; none if nsys had nothing to print."""
    path = TRACES / f"{trace}_{name}.csv"
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def daemon(start):
    return start()


@pytest.fixture(scope="module", params=["copies", "graph_whole"])
def trace(request, daemon):
    """The name of a trace, its job and the rows of its timeline."""
    job = run_import(daemon, lzma.decompress((TRACES / f"{request.param}.sqlite.xz").read_bytes()))
    return request.param, job, daemon.get(f"/jobs/{job['id']}/timeline?limit=200000").json()["items"]


def duration_ns(row):
    return row["end_ns"] - row["start_ns"]


def numbers_and_times(rows, name_of):
    """Returns {name: (number of rows, sum of their durations in ns)}."""
    found = collections.defaultdict(lambda: (0, 0))
    for row in rows:
        count, total = found[name_of(row)]
        found[name_of(row)] = count + 1, total + duration_ns(row)
    return found


def printed(rows, label, number):
    return {row[label]: (int(row[number]), int(row["Total Time (ns)"])) for row in rows}


def is_whole_graph(row):
    """Returns true if a kernel row is a whole graph. nsys leaves such rows out of its reports on kernels."""
    return row["name"].startswith("CUDA graph ")


def test_kernels_equal_nsys_stats(daemon, trace):
    name, job, _ = trace
    found = {item["name"]: (item["launches"], round(item["total_us"] * 1000))
             for item in daemon.get(f"/jobs/{job['id']}/kernels?pass=activity&limit=1000").json()["items"]}
    assert found.pop("CUDA graph 1", None) == ((20, 1339832) if name == "graph_whole" else None)
    expected = printed(report(name, "cuda_gpu_kern_sum"), "Name", "Instances")
    assert found == expected
    assert len(found) == len(expected) == {"copies": 0, "graph_whole": 15}[name]


def test_copies_equal_nsys_stats(trace):
    name, _, rows = trace
    copies = [row for row in rows if row["kind"] == "memcpy"]
    assert numbers_and_times(copies, lambda row: COPIES[row["name"]]) == printed(report(name, "cuda_gpu_mem_time_sum"),
                                                                                 "Operation", "Count")
    for row in report(name, "cuda_gpu_mem_size_sum"):
        moved = sum(copy["bytes"] for copy in copies if COPIES[copy["name"]] == row["Operation"])
        assert f"{moved / 1e6:.3f}" == row["Total (MB)"]


def test_calls_equal_nsys_stats(trace):
    name, _, rows = trace
    calls = [row for row in rows if row["kind"] in ("runtime", "driver")]
    found = numbers_and_times(calls, lambda row: re.sub(r"_v\d{4}$", "", row["name"]))  # nsys leaves these versions out
    assert found and found == printed(report(name, "cuda_api_sum"), "Name", "Num Calls")


def test_operations_equal_nsys_stats(trace):
    """nsys counts times from the start of its session, the timeline from the first event. So the test compares times since the
    first operation."""
    name, _, rows = trace
    operations = [row for row in rows if row["kind"] in ("kernel", "memcpy") and not is_whole_graph(row)]
    first = min(row["start_ns"] for row in operations)
    found = [(row["start_ns"] - first, duration_ns(row), row["correlation"], row["stream"],
              *((row[side] or "").capitalize() for side in ("source_memory", "destination_memory"))) for row in operations]
    expected = report(name, "cuda_gpu_trace")
    begin = min(int(row["Start (ns)"]) for row in expected)
    numbers = ("Duration (ns)", "CorrId", "Strm")
    assert sorted(found) == sorted((int(row["Start (ns)"]) - begin, *(int(row[key]) for key in numbers), row["SrcMemKd"],
                                    row["DstMemKd"]) for row in expected)


def test_projections_of_ranges_equal_nsys_stats(daemon, trace):
    """nsys prints only ranges that contain operations. The findings list at most 256 names, so they may lack some of these
    ranges."""
    name, job, _ = trace
    document = findings(daemon, job)
    found = {f":{item['name']}": (item["projected_ns"], item["host_ns"], item["ranges"])
             for item in document["ranges"] if item["name"] and item["operations"]}
    names = ("Total Proj Time (ns)", "Total Range Time (ns)", "Range Instances")
    expected = {row["Range"]: tuple(int(row[key]) for key in names) for row in report(name, "nvtx_gpu_proj_sum")}
    assert found == {key: expected[key] for key in found}
    assert (len(found), len(expected), document["ranges_truncated"]) == {"copies": (16, 16, False),
                                                                         "graph_whole": (91, 163, True)}[name]


def test_classes_and_findings_name_the_known_properties(daemon, trace):
    name, job, rows = trace
    document = findings(daemon, job)
    times, rules = class_times(document), {finding["rule"] for finding in document["findings"]}
    assert sum(times.values()) == document["window"]["end_ns"] - document["window"]["start_ns"]
    assert document["unrecorded_launches"] == 0 and "idle_unknown" not in times
    copies, kernels = (sum(duration_ns(row) for row in rows if row["kind"] == kind) for kind in ("memcpy", "kernel"))
    assert (times["copy"], times.get("compute", 0)) == (copies, kernels)  # one after another in one stream
    if name == "copies":  # half of the copies are from or to pageable memory
        assert {"timeline_pageable_copies", "timeline_pinned_rate", "timeline_copies_alone"} <= rules
    else:  # an eager step, and replays of its graph
        assert {"timeline_small_launches", "timeline_host_work"} <= rules
        assert "timeline_pageable_copies" not in rules
