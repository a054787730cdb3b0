"""Tests the timelines of all traces that were recorded on an H200 (tests/data/h200.sqlite.xz): the classes add up, the savings do
not exceed the idle time, only launches that were faster as one launch are called independent, and no advice is about rooflined's
own copies."""
import collections

import pytest

PREFILL, DECODE, TRANSPOSE = "Layer, prefill of 2048 tokens", "Layer, decode", "transpose.cu: padding of the tile"


def timeline(h200, run):
    return h200.get(f"/runs/{run}/timeline/findings").json()


@pytest.fixture(scope="module")
def timelines(h200):
    """The timeline of each run that has a trace, by the name of its job and its variant."""
    jobs = h200.get("/jobs?limit=500").json()["items"]
    runs = {(job["name"], run["variant"]): run["id"] for job in jobs for run in job["runs"]}
    found = {run: timeline(h200, number) for run, number in runs.items()}
    return {run: document for run, document in found.items() if document["classes"] is not None}


def test_classes_and_parts_of_every_trace_add_up(timelines):
    assert len(timelines) >= 16
    assert [sum(job == name for job, _ in timelines) for name in (PREFILL, DECODE, TRANSPOSE)] == [6, 2, 2]
    for run, found in timelines.items():
        window_ns = found["window"]["end_ns"] - found["window"]["start_ns"]
        totals = collections.Counter({item["class"]: item["time_ns"] for item in found["classes"]})
        assert totals.total() == window_ns, run
        for parts in (found["ranges"] if not found["ranges_truncated"] else [], found["phases"]):
            assert not parts or sum(part.get("own_ns", part["time_ns"]) for part in parts) == window_ns, run
        if found["critical_path"]["reason"] is None:
            parts = found["critical_path"]["parts"]
            assert sum(parts.values()) == window_ns, run
            if found["phases"]:
                assert sum(row["critical_path_ns"] for row in found["phases"]) == parts["kernels"] + parts["copies"], run


def test_ranges_and_phases_divide_the_operations(timelines):
    """The outermost ranges, and the time outside of them, have all copies, and so have the phases together."""
    for run, found in timelines.items():
        copies = [sum(group[name] for group in found["copies"]) for name in ("count", "bytes", "time_ns")]
        for parts in ([row for row in found["ranges"] if row["depth"] == 0], found["phases"]):
            if parts and not found["ranges_truncated"]:
                names = ("copies", "copies_bytes", "copies_ns")
                assert [sum(row[name] for row in parts) for name in names] == copies, run


def test_savings_of_every_trace_are_at_most_its_idle_time(timelines):
    for run, found in timelines.items():
        window_ns = found["window"]["end_ns"] - found["window"]["start_ns"]
        idle_ns = sum(item["time_ns"] for item in found["classes"] if item["class"].startswith("idle_"))
        saved_pct = sum(finding["speedup_pct"] for finding in found["findings"] if finding["scope"] == "global")
        assert saved_pct <= 100 * idle_ns / window_ns + 1e-9, run


def test_copies_that_restore_the_buffers_of_posted_code_are_no_finding(timelines):
    """They take more than 40 % of the window of the transposition with conflicts."""
    conflicts = timelines[TRANSPOSE, "conflicts"]
    copies = [item["time_ns"] for item in conflicts["classes"] if item["class"] == "copy"]
    assert copies[0] > 0.4 * (conflicts["window"]["end_ns"] - conflicts["window"]["start_ns"])
    for found in (conflicts, timelines[TRANSPOSE, "padded"]):
        assert not [finding["rule"] for finding in found["findings"] if "copies" in finding["rule"]]


def test_only_q_k_and_v_of_a_decode_step_are_independent_launches(timelines):
    """Of the recorded layers, only the step `baseline` for one token has products that leave the device unfilled. Gate and up
    leave multiprocessors unused too, but not the memory: on two streams they were not faster."""
    rule = "timeline_independent_launches"
    with_groups = {run for run, found in timelines.items() if found["independent_launches"]["groups"]}
    step = DECODE, "baseline"
    assert with_groups == {step}
    assert {run for run, found in timelines.items() if rule in {finding["rule"] for finding in found["findings"]}} == {step}
    group, = timelines[step]["independent_launches"]["groups"]
    assert group["steps"] == 5
    assert [(item["launch"], item["blocks"], item["resident_blocks"]) for item in group["launches"]] == [
        (name, 96, 132) for name in ("q", "k", "v")]
    assert all("nvjet" in item["kernel"] and 0.5 < item["memory_ratio"] < 0.7 for item in group["launches"])
    assert group["time_ns"] == pytest.approx(sum(item["time_ns"] for item in group["launches"]), abs=2)
    finding, = (finding for finding in timelines[step]["findings"] if finding["rule"] == rule)
    assert finding["scope"] == "local" and finding["version"] == 1 and finding["names"] == ["q", "k", "v"]
    assert finding["speedup_pct"] == pytest.approx(100 * (1 - group["concurrent_ns"] / group["time_ns"]), abs=1e-3)


def test_workloads_without_declared_data_have_a_reason(timelines):
    for run, found in timelines.items():
        reason = found["independent_launches"]["reason"]
        if run[0] in (PREFILL, DECODE):
            assert reason is None
        else:
            assert "do not declare which data" in reason and found["independent_launches"]["groups"] is None
