"""Compares the export of an H200's trace in the format nsys with what `nsys stats` reads from it. tests/data/nsys_stats has the
reports that `nsys stats` of Nsight Systems 2025.3.1 printed for the export of run RUN, and the database with this run
(trace.sqlite.xz). nsys is not installed where the tests run. So the tests query the export as nsys does, and compare the results
and the API's numbers with the reports; they must be equal to the digit."""
import csv
import lzma
import re
import sqlite3

import pytest

from daemon import SOURCE
from test_exports import NSYS_REPORTS, export

JOB, RUN = 6, 10  # the layer's prefill, variant baseline
REPORTS = SOURCE / "tests/data/nsys_stats"


def report(name):
    with open(REPORTS / f"{name}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def recorded(start, tmp_path_factory):
    """A daemon with the run for which nsys printed the reports."""
    state = tmp_path_factory.mktemp("recorded")
    (state / "rooflined.db").write_bytes(lzma.decompress((REPORTS / "trace.sqlite.xz").read_bytes()))
    return start(state=state)


@pytest.fixture(scope="module")
def exported(recorded, tmp_path_factory):
    file = tmp_path_factory.mktemp("nsys") / "export.sqlite"
    file.write_bytes(export(recorded, JOB, "nsys", run=RUN))
    with sqlite3.connect(file) as database:
        yield database
    database.close()


def nsys_name(name):
    """Returns the name of a call as nsys prints it: without a version of four digits at its end."""
    return re.sub(r"_v\d{4}$", "", name)


@pytest.mark.parametrize("name, number, label", [
    ("cuda_gpu_kern_sum", "Instances", "Name"), ("cuda_api_sum", "Num Calls", "Name"), ("nvtx_sum", "Instances", "Range"),
    ("cuda_gpu_mem_time_sum", "Count", "Operation")])
def test_nsys_stats_has_the_counts_and_times_of_the_export(exported, name, number, label):
    printed = {row[label]: (int(row[number]), int(row["Total Time (ns)"])) for row in report(name)}
    found = {}
    for kind, text, count, total in exported.execute(NSYS_REPORTS[name]):
        names = {"memset": "[CUDA memset]", "rooflined": f"rooflined:{text}"}
        found[names.get(kind, nsys_name(text))] = (count, total)
    assert printed and found == printed


def test_nsys_stats_has_the_kernels_of_the_api(recorded):
    items = recorded.get(f"/jobs/{JOB}/kernels?pass=activity&limit=1000").json()["items"]
    kernels = [item for item in items if item["run"] == RUN]
    found = {}
    for item in kernels:
        count, total = found.get(item["name"], (0, 0))
        found[item["name"]] = count + item["launches"], total + round(item["total_us"] * 1000)
    assert found == {row["Name"]: (int(row["Instances"]), int(row["Total Time (ns)"])) for row in report("cuda_gpu_kern_sum")}


def test_nsys_stats_has_the_operations_of_the_timeline(recorded):
    operations = [item for item in recorded.get(f"/jobs/{JOB}/timeline?run={RUN}&limit=200000").json()["items"]
                  if item["kind"] in ("kernel", "memcpy", "memset")]
    found = [(item["start_ns"], item["end_ns"] - item["start_ns"], item["correlation"], item["stream"]) for item in operations]
    names = ("Start (ns)", "Duration (ns)", "CorrId", "Strm")
    printed = [tuple(int(row[name]) for name in names) for row in report("cuda_gpu_trace")]
    assert sorted(found) == sorted(printed) and len(printed) == 85


def test_nsys_stats_projects_ranges_as_the_findings_do(recorded):
    ranges = recorded.get(f"/runs/{RUN}/timeline/findings").json()["ranges"]
    found = {f"rooflined:{item['name']}": (item["projected_ns"], item["host_ns"], item["ranges"])
             for item in ranges if item["name"]}
    names = ("Total Proj Time (ns)", "Total Range Time (ns)", "Range Instances")
    assert found == {row["Range"]: tuple(int(row[name]) for name in names) for row in report("nvtx_gpu_proj_sum")}
