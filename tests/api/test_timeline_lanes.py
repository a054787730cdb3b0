"""Tests the lanes of a timeline, their statistics, and the search for a name."""

import collections
import random

import pytest
import ranged_run
import report_fixture
import traced_run
from test_requests import assert_problem

SHAPE = {f"{side}_{axis}": 1 for side in ("grid", "block") for axis in "xyz"}


def lanes_of(daemon, run, query=""):
    found = daemon.get(f"/runs/{run}/timeline/lanes{query}").json()
    columns = ("start_ns", "duration_ns", "events", "busy_ns", "depth", "name")
    for lane in found["lanes"]:
        items = [dict(zip(columns, values)) for values in zip(*(lane[name] for name in columns), strict=True)]
        lane["items"] = [{**item, "name": found["names"][item["name"]]} for item in items]
    return found


def two_streams():
    """Returns rows of two streams of a device and of two threads. Many are short. Each call draws new random times."""
    rows, at = [], 0
    for i in range(3000):
        at += random.randrange(200, 1500)
        stream = random.choice((7, 13))
        rows.append({"kind": "kernel", "name": f"kernel{i % 3}", "start_ns": at, "end_ns": at + random.choice((100, 900, 5000)),
                     "stream": stream, "device": 1, "context": 1, **SHAPE})
        rows.append({"kind": "runtime", "name": "cudaLaunchKernel", "start_ns": at - 150, "end_ns": at - 50, "process": 5,
                     "thread": 100 + i % 2, "correlation": i + 1})
    return rows


def busy_ns(rows, begin, end):
    """Returns the length of the union of the rows' parts inside a window."""
    total, until = 0, begin
    for row in sorted(rows, key=lambda row: row["start_ns"]):
        start, stop = max(row["start_ns"], until), min(row["end_ns"], end)
        total, until = total + max(0, stop - start), max(until, stop)
    return total


def test_lanes_of_a_launch_with_phases(daemon):
    inserted = traced_run.insert(daemon.state)
    found = lanes_of(daemon, inserted["run"])
    assert [(lane["kind"], lane["stream"], lane["thread"]) for lane in found["lanes"]] == [
        ("calls", None, None), ("kernels", 7, None), ("phases", 7, None), ("copies", 7, None)]
    kernels, phases = found["lanes"][1]["items"], found["lanes"][2]["items"]
    assert kernels[-1] == {"start_ns": 10_000, "duration_ns": traced_run.EPOCH_NS, "events": 1, "busy_ns": traced_run.EPOCH_NS,
                           "depth": 0, "name": traced_run.EPOCH}
    assert len(phases) == traced_run.STEPS * len(traced_run.PHASES) and {item["events"] for item in phases} == {1}
    assert found["trace_end_ns"] == 10_000 + traced_run.EPOCH_NS and found["step_ns"] == 512
    coarse = lanes_of(daemon, inserted["run"], "?pixels=2")
    merged = coarse["lanes"][2]["items"]
    assert len(merged) == 1 and merged[0]["events"] == len(phases) and merged[0]["name"] == "conv2_input_gradient"
    assert merged[0]["busy_ns"] == traced_run.STEPS * traced_run.STEP_NS


def test_ranges_are_nested_lanes(daemon):
    inserted = ranged_run.insert(daemon.state)
    ranges = lanes_of(daemon, inserted["run"])["lanes"][0]
    assert ranges["kind"] == "ranges" and ranges["depths"] == 2
    assert [(item["name"], item["depth"]) for item in ranges["items"]] == [("epoch", 0), ("forward", 1)]


@pytest.mark.parametrize("pixels", [3, 100, 4096])
def test_lanes_have_every_event(daemon, pixels):
    rows = two_streams()
    run = report_fixture.Rows(daemon).run([], trace=([], rows))
    begin, end = rows[1000]["start_ns"], rows[4000]["end_ns"]
    found = lanes_of(daemon, run, f"?from={begin}&to={end}&pixels={pixels}")
    expected = collections.Counter()
    for row in rows:
        if row["start_ns"] < end and row["end_ns"] > begin:
            expected[(row.get("device", 1) - 1 if "device" in row else None, row.get("stream"), row.get("thread"))] += 1
    events = {(lane["device"], lane["stream"], lane["thread"]): sum(lane["events"]) for lane in found["lanes"]}
    assert events == expected
    assert (end - begin) / found["step_ns"] <= pixels and found["step_ns"] & (found["step_ns"] - 1) == 0
    for lane in found["lanes"]:
        assert lane["start_ns"] == sorted(lane["start_ns"])
        merged = [item for item in lane["items"] if item["events"] > 1]
        assert all(item["duration_ns"] <= found["step_ns"] for item in merged)


def test_statistics_equal_those_of_the_rows(daemon):
    rows = two_streams()
    run = report_fixture.Rows(daemon).run([], trace=([], rows))
    begin, end = rows[500]["start_ns"] + 37, rows[5000]["end_ns"] - 11
    path = f"/runs/{run}/timeline/statistics?from={begin}&to={end}"
    answer = daemon.get(path)
    assert daemon.call("GET", path, headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304
    found = answer.json()
    inside = [row for row in rows if row["start_ns"] < end and row["end_ns"] > begin]
    for lane in found["lanes"]:
        lane_rows = [row for row in inside if (row.get("stream"), row.get("thread")) == (lane["stream"], lane["thread"])]
        assert lane["events"] == len(lane_rows) and lane["busy_ns"] == busy_ns(lane_rows, begin, end)
        assert lane["ratio"] == pytest.approx(lane["busy_ns"] / (end - begin))
    for item in found["names"]:
        named = [min(row["end_ns"], end) - max(row["start_ns"], begin) for row in inside
                 if (row["name"], row.get("stream"), row.get("thread")) == (item["name"], item["stream"], item["thread"])]
        assert (item["events"], item["total_ns"], item["longest_ns"]) == (len(named), sum(named), max(named))
    assert sum(item["events"] for item in found["names"]) == len(inside) and found["names_truncated"] is False
    totals = [item["total_ns"] for item in found["names"]]
    assert totals == sorted(totals, reverse=True)


def test_events_are_found_by_name(daemon):
    rows = [{"kind": "kernel", "name": name, "start_ns": start, "end_ns": start + 10, "stream": 7, **SHAPE}
            for name, start in (("void conv1_forward<float>(int)", 100), ("adam", 200), ("conv2_forward", 300), ("adam", 400))]
    run = report_fixture.Rows(daemon).run([], trace=([], rows))

    def search(query):
        found = daemon.get(f"/runs/{run}/timeline/search?{query}").json()
        starts = [found[name] and found[name]["start_ns"] for name in ("previous", "next", "first", "last")]
        return found["events"], found["earlier_events"], *starts

    assert search("name=FORWARD") == (2, 0, None, 100, 100, 300)
    assert search("name=forward&from=101") == (2, 1, 100, 300, 100, 300)
    assert search("name=forward&from=301") == (2, 2, 300, None, 100, 300)
    assert search("name=100%25") == (0, 0, None, None, None, None)
    event = daemon.get(f"/runs/{run}/timeline/search?name=adam&from=300").json()["next"]
    assert event == {"name": "adam", "kind": "kernels", "device": None, "stream": 7, "thread": None, "start_ns": 400,
                     "end_ns": 410}


def test_lanes_are_bounded(daemon):
    """A reply has at most 64 lanes."""
    rows = [{"kind": "kernel", "name": "k", "start_ns": 10 * i, "end_ns": 10 * i + 5, "stream": i + 1, **SHAPE}
            for i in range(100)]
    run = report_fixture.Rows(daemon).run([], trace=([], rows))
    for route in ("lanes", "statistics"):
        found = daemon.get(f"/runs/{run}/timeline/{route}").json()
        assert len(found["lanes"]) == 64 and found["lanes_truncated"] is True


def test_a_run_without_lanes_has_a_reason(daemon):
    fixture = report_fixture.Rows(daemon)
    run = fixture.run([])
    for query in ("lanes", "statistics", "search?name=x"):
        found = daemon.get(f"/runs/{run}/timeline/{query}").json()
        assert found.pop("run") == run and found.pop("reason") == "the job did not ask for the activity pass"
        assert set(found.values()) == {None}
        missing = daemon.call("GET", f"/runs/999999/timeline/{query}")
        assert missing.status_code == 404 and missing.json()["code"] == "not_found"


def test_query_parameters_of_a_timeline_are_checked(daemon):
    run = report_fixture.Rows(daemon).run([])
    for query, parameter in (("lanes?from=-1", "from"), ("lanes?to=0", "to"), ("lanes?from=5&to=5", "to"),
                             ("lanes?pixels=0", "pixels"), ("lanes?pixels=4097", "pixels"), ("lanes?x=1", "x"),
                             ("statistics?from=9&to=8", "to"), ("search", "name"), ("search?name=", "name"),
                             ("search?name=a&from=x", "from"), ("search?name=" + 512 * "a", "name")):
        assert_problem(daemon.get(f"/runs/{run}/timeline/{query}"), 400, "invalid_parameter", parameter=parameter)
