"""Tests the routes that read measurements: results, kernels, timeline, comparison, history; and their ETags."""

import csv
import math

import pytest
import report_fixture
import traced_run

from daemon import endless, job


def test_results_describe_every_run(daemon, finished):
    results = daemon.get(f"/jobs/{finished}/results").json()
    assert results["state"] == "completed"
    assert [run["variant"] for run in results["runs"]] == ["fp32", "fp16"]
    for run in results["runs"]:
        assert run["engine"] == "blas" and run["dataset"] == "custom" and run["partial"] is True
        assert run["images_per_epoch"] == 640 and run["steps_per_epoch"] == 10 and run["parameters"] == 315146
        assert [epoch["epoch"] for epoch in run["epochs"]] == [0, 1]
        for epoch in run["epochs"]:
            assert epoch["host_ms"] > 0 and epoch["images"] == 640
            for name, value in epoch.items():
                if value is None and name != "suspect_reason":
                    assert name in epoch["unavailable"], f"{name} is null without a reason"
        median = sorted(epoch["epoch_ms"] for epoch in run["epochs"])
        assert math.isclose(run["summary"]["epoch_ms_median"], sum(median) / 2, rel_tol=1e-9)
        assert run["summary"]["epoch_ms_min"] == median[0]
        for name, value in run["summary"].items():
            if value is None and name != "suspect_cause":
                assert name in run["summary"]["unavailable"], f"{name} is null without a reason"
        for measurement in run["measurements"]:
            assert (measurement["value"] is None) == (measurement["reason"] is not None), measurement
        states = {entry["pass"]: entry["state"] for entry in run["passes"]}
        assert states == {"timing": "completed", "activity": "completed", "counters": "unavailable"}
        counters = next(entry for entry in run["passes"] if entry["pass"] == "counters")
        assert counters["reason"]


def test_the_fused_engine_of_the_cpu(daemon):
    job_id = daemon.run(job(engine="fused", passes=["timing", "activity"]))
    (run,) = daemon.get(f"/jobs/{job_id}/results").json()["runs"]
    assert run["engine"] == "fused" and run["epochs"][0]["suspect"] is False
    names = {item["launch"] for item in daemon.get(f"/jobs/{job_id}/kernels?pass=activity").json()["items"]}
    assert {"convolutions_forward", "fc1_forward", "convolutions_backward", "adam"} <= names


def test_a_job_can_train_on_synthetic_digits(daemon):
    (run,) = daemon.get(f"/jobs/{daemon.run(job(dataset='synthetic', max_images=64))}/results").json()["runs"]
    assert run["dataset"] == "synthetic" and run["images_per_epoch"] == 64 and run["partial"] is True


def test_finished_results_keep_their_etag(daemon, finished):
    path = f"/jobs/{finished}/results"
    first = daemon.get(path)
    etag = first.headers["ETag"]
    for header in (etag, f'"x", W/{etag}', "*"):
        same = daemon.get(path, headers={"If-None-Match": header})
        assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", etag)
    assert daemon.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
    assert daemon.get(path).headers["ETag"] == etag


def test_unfinished_results_have_an_etag_until_they_change(daemon):
    job_id = daemon.submit(endless())
    daemon.wait(job_id, states=("running",))
    response = daemon.get(f"/jobs/{job_id}/results")
    assert response.status_code == 200 and response.json()["state"] == "running"
    daemon.cancel_all()
    changed = daemon.get(f"/jobs/{job_id}/results", headers={"If-None-Match": response.headers["ETag"]})
    assert changed.status_code == 200 and changed.json()["state"] == "cancelled"


def test_pages_list_every_kernel_once(daemon, finished):
    path = f"/jobs/{finished}/kernels"
    whole = daemon.get(path).json()
    assert whole["next_cursor"] is None and whole["items"]
    pages, cursor = [], ""
    while cursor is not None:
        page = daemon.get(f"{path}?limit=3{cursor}").json()
        assert len(page["items"]) <= 3
        pages += page["items"]
        cursor = f"&cursor={page['next_cursor']}" if page["next_cursor"] else None
    assert pages == whole["items"]
    runs = {item["run"] for item in whole["items"]}
    assert len(runs) == 2
    one = daemon.get(f"{path}?run={min(runs)}&pass=activity").json()["items"]
    assert one and all(item["run"] == min(runs) and item["pass"] == "activity" for item in one)
    assert daemon.get(f"{path}?pass=counters").json()["items"] == []
    assert daemon.get(f"{path}?run=999999").json()["items"] == []
    for item in one:
        assert item["launches"] >= 1 and item["min_us"] <= item["median_us"] <= item["max_us"] <= item["total_us"] * (1 + 1e-9)
        assert item["grid"] is None  # the CPU has no grid
    assert sum(item["share_ratio"] for item in one) <= 1 + 1e-9


def test_a_timeline_has_windows(daemon, finished):
    path = f"/jobs/{finished}/timeline"
    whole = daemon.get(path).json()
    assert whole["items"] and whole["truncated"] is False
    assert all(item["start_ns"] <= item["end_ns"] for item in whole["items"])
    run = whole["items"][0]["run"]
    run_items = [item for item in whole["items"] if item["run"] == run]
    assert [item["start_ns"] for item in run_items] == sorted(item["start_ns"] for item in run_items)
    start, end = run_items[len(run_items) // 3]["start_ns"], run_items[len(run_items) // 2]["start_ns"]
    window = daemon.get(f"{path}?run={run}&from={start}&to={end}").json()["items"]
    assert window == [item for item in run_items
                      if item["start_ns"] < end and (item["end_ns"] > start or item["start_ns"] >= start)]
    assert 0 < len(window) < len(run_items)
    short = daemon.get(f"{path}?limit=5").json()
    assert len(short["items"]) == 5 and short["truncated"] is True
    exact = daemon.get(f"{path}?limit={len(whole['items'])}").json()
    assert exact == whole


def test_phases_of_a_launch_are_listed(daemon):
    inserted = traced_run.insert(daemon.state)
    shuffle, epoch = daemon.get(f"/jobs/{inserted['job']}/kernels?pass=activity").json()["items"]
    assert shuffle["phases"] == [] and epoch["launch"] == "persistent_epoch"
    assert [(phase["name"], phase["phase"]) for phase in epoch["phases"]] == [phase[:2] for phase in traced_run.PHASES]
    assert all((phase["steps"], phase["blocks"]) == (traced_run.STEPS, traced_run.BLOCKS) for phase in epoch["phases"])
    assert sum(phase["mean_us"] for phase in epoch["phases"]) == pytest.approx(traced_run.STEP_NS / 1e3)
    whole = daemon.get(f"/jobs/{inserted['job']}/timeline").json()["items"]
    phases = [item for item in whole if item["kind"] == "phase"]
    steps = range(traced_run.STEPS)
    assert [(item["step"], item["name"]) for item in phases] == [(step, name) for step in steps for name, *_ in traced_run.PHASES]
    (launch,) = [item for item in whole if item["name"] == epoch["name"]]
    assert launch["step"] is None and all(item["correlation"] == launch["correlation"] for item in phases)
    assert all(launch["start_ns"] <= item["start_ns"] < item["end_ns"] <= launch["end_ns"] for item in phases)
    second = traced_run.FIRST_NS + traced_run.STEP_NS
    window = daemon.get(f"/jobs/{inserted['job']}/timeline?from={second}&to={second + traced_run.STEP_NS}").json()["items"]
    assert window == [launch, *(item for item in phases if item["step"] == 1)]


def insert_trace_with_gap(rows):
    """Inserts a run in which the host calls two launches early enough and the third one late. Returns the run's id."""
    def launch(correlation, call, start, **more):
        return [{"kind": "runtime", "name": "cudaLaunchKernel_v7000", "start_ns": call, "end_ns": call + 2000,
                 "correlation": correlation},
                {"kind": "kernel", "name": f"k{correlation}", "start_ns": start, "end_ns": start + 15_000, "stream": 7,
                 "correlation": correlation, **more}]
    shape = {f"{side}_{axis}": 1 for side in ("grid", "block") for axis in "xyz"}
    return rows.run([], trace=([], [*launch(1, 0, 5_000, **shape), *launch(2, 3_000, 21_000, **shape),
                                    *launch(3, 86_000, 95_000, **shape),
                                    {"kind": "range", "name": "epoch 0", "start_ns": 0, "end_ns": 80_000},
                                    {"kind": "range", "name": "forward", "start_ns": 2_500, "end_ns": 20_000}]))


# Members of ranges and phases: totals over their operations.
OPERATION_TOTALS = ("small_kernels", "small_kernels_ns", "copies", "copies_bytes", "unsized_copies", "copies_ns",
                    "blocking_copies", "blocking_copies_ns", "critical_path_ns")


def test_a_late_launch_is_a_finding(daemon):
    rows = report_fixture.Rows(daemon)
    run = insert_trace_with_gap(rows)
    answer = daemon.get(f"/runs/{run}/timeline/findings")
    found = answer.json()
    same = daemon.call("GET", f"/runs/{run}/timeline/findings", headers={"If-None-Match": answer.headers["ETag"]})
    assert same.status_code == 304
    assert found["reason"] is None and found["incomplete_reason"] is None
    assert found["window"] == {"start_ns": 5_000, "end_ns": 110_000} and found["operations"] == found["kernels"] == 3
    classes = {item["class"]: item for item in found["classes"]}
    times = {name: item["time_ns"] for name, item in classes.items() if item["time_ns"]}
    assert times == {"compute": 45_000, "idle_device_latency": 1_000, "idle_host_work": 50_000, "idle_launch_latency": 9_000}
    assert sum(times.values()) == 105_000
    assert classes["idle_host_work"]["longest"] == [
        {"start_ns": 36_000, "end_ns": 86_000, "before": "k2", "after": "k3", "call": None}]
    assert classes["idle_launch_latency"]["longest"][0]["call"] == "cudaLaunchKernel_v7000"
    assert classes["compute"]["longest"] is None and classes["idle_copy"]["longest"] == []
    totals = dict.fromkeys(OPERATION_TOTALS, 0)
    assert [{name: value for name, value in found_range.items() if name != "classes"} for found_range in found["ranges"]] == [
        {"name": "epoch 0", "depth": 0, "ranges": 1, "operations": 2, "time_ns": 31_000, "own_ns": 15_000,
         "ratio": pytest.approx(31 / 105), "projected_ns": 31_000, "host_ns": 80_000, **totals},
        {"name": "forward", "depth": 1, "ranges": 1, "operations": 1, "time_ns": 16_000, "own_ns": 16_000,
         "ratio": pytest.approx(16 / 105), "projected_ns": 15_000, "host_ns": 17_500, **totals},
        {"name": None, "depth": 0, "ranges": 0, "operations": 1, "time_ns": 74_000, "own_ns": 74_000,
         "ratio": pytest.approx(74 / 105), "projected_ns": None, "host_ns": None, **totals, "critical_path_ns": 15_000}]
    outside = {name: time for name, time in found["ranges"][2]["classes"].items() if time}
    assert outside == {"compute": 15_000, "idle_host_work": 50_000, "idle_launch_latency": 9_000}
    assert found["ranges_truncated"] is False
    queue = {name: value for name, value in found["queue"].items() if name != "mean_depths"}
    assert queue == {
        "reason": None, "unmatched_operations": 0, "empty_idle_ns": 52_000,
        "total": {"operations": 3, "min": 0, "median": 0, "max": 1, "empty_ratio": pytest.approx(1 - 23 / 105)},
        "streams": [
            {"stream": 7, "operations": 3, "min": 0, "median": 0, "max": 1, "empty_ratio": pytest.approx(1 - 23 / 105)}]}
    assert sum(found["queue"]["mean_depths"]) * 1_050 == pytest.approx(23_000)
    findings = {finding["rule"]: finding["speedup_pct"] for finding in found["findings"]}
    assert findings == {"timeline_host_work": pytest.approx(100 * 50 / 105),
                        "timeline_launch_latency": pytest.approx(100 * 9 / 105), "timeline_empty_queue": None,
                        "timeline_critical_path": None}
    evidence = {finding["rule"]: (finding["intervals"], finding["names"]) for finding in found["findings"]}
    host_work, latency = ({"start_ns": start, "end_ns": end, "before": "k2", "after": "k3", "call": call}
                          for start, end, call in ((36_000, 86_000, None), (86_000, 95_000, "cudaLaunchKernel_v7000")))
    assert evidence == {"timeline_host_work": ([host_work], []), "timeline_launch_latency": ([latency], []),
                        "timeline_empty_queue": ([host_work, latency], []), "timeline_critical_path": ([], ["k3"])}
    report = daemon.get(f"/runs/{run}/report").json()
    assert report["timeline"] == {"reason": None, "incomplete_reason": None, "findings": found["findings"]}
    assert daemon.get(f"/runs/{run}/report?kernel=0").json()["timeline"] is None
    lines = list(csv.DictReader(daemon.get(f"/runs/{run}/report?format=csv").text.splitlines()))
    assert [(line["ID"], line["Section Name"], line["Rule Name"], line["Estimated Speedup"]) for line in lines] == [
        ("", "Timeline", "timeline_host_work", "47.62"), ("", "Timeline", "timeline_launch_latency", "8.571"),
        ("", "Timeline", "timeline_empty_queue", ""), ("", "Timeline", "timeline_critical_path", "")]
    path = found["critical_path"]
    assert {name: time for name, time in path["parts"].items() if time} == {
        "kernels": 15_000, "launches": 9_000, "host_work": 81_000}
    assert path["names"] == [{"name": "k3", "count": 1, "time_ns": 15_000, "ratio": pytest.approx(15 / 105)}]
    assert path["reason"] is None and path["operations"] == 1 and path["inferred_operations"] == 0


def test_findings_name_the_phases(daemon):
    """One kernel belongs to the phase optimizer, the other to two phases; a copy has no phase. The idle time before a kernel
    counts towards the kernel's phases."""
    shape = {f"{side}_{axis}": 1 for side in ("grid", "block") for axis in "xyz"}
    names = (("memcpy", "memcpy HtoD", 0, 1_000), ("kernel", "steps", 4_000, 84_000), ("kernel", "adam", 85_000, 95_000))
    trace = [{"kind": "runtime", "name": "cudaLaunchKernel_v7000", "start_ns": i, "end_ns": i + 1, "correlation": i + 1}
             for i in range(3)]
    trace += [{"kind": kind, "name": name, "start_ns": start, "end_ns": end, "stream": 7, "correlation": i + 1,
               **(shape if kind == "kernel" else {})} for i, (kind, name, start, end) in enumerate(names)]
    phases = [{"name": "conv1_forward", "phase": "forward", "steps": 4, "blocks": 1, "share_ratio": 0.25},
              {"name": "conv1_backward", "phase": "backward", "steps": 4, "blocks": 1, "share_ratio": 0.5},
              {"name": "conv2_backward", "phase": "backward", "steps": 4, "blocks": 1, "share_ratio": 0.25}]
    kernels = [{"name": "steps", "launches": 1, "total_us": 80, "phases": phases},
               {"name": "adam", "launch": "adam", "phase": "optimizer", "launches": 1, "total_us": 10}]
    run = report_fixture.Rows(daemon).run([], trace=(kernels, trace))
    found = daemon.get(f"/runs/{run}/timeline/findings").json()
    assert [(row["phase"], row["time_ns"], row["classes"]["compute"]) for row in found["phases"]] == [
        ("forward", 20_750, 20_000), ("backward", 62_250, 60_000), ("optimizer", 11_000, 10_000), (None, 1_000, 0)]
    assert [row["critical_path_ns"] for row in found["phases"]] == [20_000, 60_000, 10_000, 1_000]
    copies = [(row["copies"], row["copies_ns"], row["small_kernels"]) for row in found["phases"]]
    assert copies == [*3 * [(0, 0, 0)], (1, 1_000, 0)]
    assert sum(row["ratio"] for row in found["phases"]) == pytest.approx(1)
    assert daemon.get(f"/runs/{insert_trace_with_gap(report_fixture.Rows(daemon))}/timeline/findings").json()["phases"] == []


def test_a_stream_that_waits_for_an_event(daemon):
    """The copy ends last. It waits for the event that the other stream records after its kernel, although the copy's call
    returned long before."""
    shape = {f"{side}_{axis}": 1 for side in ("grid", "block") for axis in "xyz"}
    calls = [("cudaLaunchKernel_v7000", {}), ("cudaEventRecord_v3020", {"call_stream": 9, "event": 5}),
             ("cudaStreamWaitEvent_v3020", {"call_stream": 7, "event": 5}), ("cudaMemcpyAsync_v3020", {})]
    trace = [{"kind": "runtime", "name": name, "start_ns": 1_000 * i, "end_ns": 1_000 * i + 900, "correlation": i + 1, **more}
             for i, (name, more) in enumerate(calls)]
    trace += [{"kind": "kernel", "name": "k", "start_ns": 5_000, "end_ns": 95_000, "stream": 9, "correlation": 1, **shape},
              {"kind": "memcpy", "name": "memcpy HtoD", "start_ns": 96_000, "end_ns": 105_000, "stream": 7, "correlation": 4}]
    found = daemon.get(f"/runs/{report_fixture.Rows(daemon).run([], trace=([], trace))}/timeline/findings").json()
    assert {name: time for name, time in found["critical_path"]["parts"].items() if time} == {
        "kernels": 90_000, "copies": 9_000, "device_latency": 1_000}


def test_copies_of_pageable_memory_are_a_finding(daemon):
    """Two copies of 2 MiB: one of pageable memory by a blocking call of another thread, one of pinned memory."""
    shape = {f"{side}_{axis}": 1 for side in ("grid", "block") for axis in "xyz"}
    copy = {"kind": "memcpy", "name": "memcpy HtoD", "stream": 7, "bytes": 2 << 20, "destination_memory": 3}
    trace = [{"kind": "runtime", "name": "cudaMemcpy_v3020", "start_ns": 0, "end_ns": 410_000, "correlation": 1, "thread": 51},
             {**copy, "start_ns": 10_000, "end_ns": 410_000, "correlation": 1, "source_memory": 1},
             {"kind": "runtime", "name": "cudaMemcpyAsync_v3020", "start_ns": 412_000, "end_ns": 415_000, "correlation": 2,
              "thread": 52},
             {**copy, "start_ns": 420_000, "end_ns": 520_000, "correlation": 2, "source_memory": 2},
             {"kind": "runtime", "name": "cudaLaunchKernel_v7000", "start_ns": 416_000, "end_ns": 417_000, "correlation": 3,
              "thread": 52},
             {"kind": "kernel", "name": "k", "start_ns": 520_000, "end_ns": 529_999, "stream": 7, "correlation": 3, **shape},
             {"kind": "range", "name": "load", "start_ns": 0, "end_ns": 411_000, "thread": 51},
             {"kind": "range", "name": "step", "start_ns": 412_000, "end_ns": 418_000, "thread": 52}]
    found = daemon.get(f"/runs/{report_fixture.Rows(daemon).run([], trace=([], trace))}/timeline/findings").json()
    assert found["copies"] == [
        {"name": "memcpy HtoD", "source_memory": "pageable", "destination_memory": "device", "count": 1, "bytes": 2 << 20,
         "time_ns": 400_000, "bytes_per_s": pytest.approx((2 << 20) / 400e-6), "reason": None},
        {"name": "memcpy HtoD", "source_memory": "pinned", "destination_memory": "device", "count": 1, "bytes": 2 << 20,
         "time_ns": 100_000, "bytes_per_s": pytest.approx((2 << 20) / 100e-6), "reason": None}]
    none = {"count": 0, "time_ns": 0}
    assert found["threads"] == [
        {"thread": 51, "launches": none, "synchronizations": none, "blocking_copies": {"count": 1, "time_ns": 410_000},
         "idle_ns": 0},
        {"thread": 52, "launches": {"count": 1, "time_ns": 1_000}, "synchronizations": none, "blocking_copies": none,
         "idle_ns": 10_000}]
    assert {row["name"]: tuple(row[name] for name in OPERATION_TOTALS[:-1]) for row in found["ranges"]} == {
        "load": (0, 0, 1, 2 << 20, 0, 400_000, 1, 400_000), "step": (1, 9_999, 1, 2 << 20, 0, 100_000, 0, 0), None: (0,) * 8}
    names = {finding["rule"]: finding["names"] for finding in found["findings"]}
    assert names["timeline_pageable_copies"] == names["timeline_pinned_rate"] == ["memcpy HtoD, pageable to device"]
    assert names["timeline_copies_alone"] == ["memcpy HtoD, pageable to device", "memcpy HtoD, pinned to device"]
    findings = {finding["rule"]: (finding["speedup_pct"], finding["scope"]) for finding in found["findings"]}
    assert findings["timeline_pageable_copies"] == (None, None)
    assert findings["timeline_pinned_rate"] == (pytest.approx(75), "local")


def test_ranges_of_a_timeline_are_bounded(daemon):
    """Of 300 range names, the 256 with the most time are listed."""
    rows = report_fixture.Rows(daemon)
    shape = {f"{side}_{axis}": 1 for side in ("grid", "block") for axis in "xyz"}
    trace = []
    for i in range(300):
        start = 10_000 * i
        trace += [{"kind": "range", "name": f"step {i}", "start_ns": start, "end_ns": start + 1_000},
                  {"kind": "runtime", "name": "cudaLaunchKernel_v7000", "start_ns": start, "end_ns": start + 10,
                   "correlation": i + 1},
                  {"kind": "kernel", "name": "k", "start_ns": start + 100, "end_ns": start + 1_000 + i, "correlation": i + 1,
                   **shape}]
    found = daemon.get(f"/runs/{rows.run([], trace=([], trace))}/timeline/findings").json()
    assert found["ranges_truncated"] is True and len(found["ranges"]) == 257
    assert found["ranges"][-1]["name"] is None and found["ranges"][-1]["time_ns"] == 0


def test_a_timeline_with_dropped_records_has_no_causes(daemon):
    rows = report_fixture.Rows(daemon)
    run = insert_trace_with_gap(rows)
    (activity,) = rows.db.execute("SELECT id FROM passes WHERE run_id = ? AND name = 'activity'", [run]).fetchone()
    rows.insert("measurements", pass_id=activity, name="activity_dropped_records", value=3)
    rows.db.commit()
    found = daemon.get(f"/runs/{run}/timeline/findings").json()
    assert found["incomplete_reason"] == "3 records were dropped, 0 have no times"
    assert {item["class"]: item["time_ns"] for item in found["classes"] if item["time_ns"]} == {
        "compute": 45_000, "idle_unknown": 60_000}
    assert found["queue"]["reason"] == found["incomplete_reason"] and found["queue"]["total"] is None
    assert found["critical_path"]["reason"] == found["incomplete_reason"] and found["critical_path"]["parts"] is None
    assert {row["critical_path_ns"] for row in found["ranges"]} == {None}
    assert [finding["rule"] for finding in found["findings"]] == ["timeline_unknown"]


def test_a_run_without_a_timeline_has_a_reason(daemon):
    rows = report_fixture.Rows(daemon)
    found = daemon.get(f"/runs/{rows.run([])}/timeline/findings").json()
    assert found["reason"] is not None and found["classes"] is None and found["findings"] is None
    kept = insert_trace_with_gap(rows)
    rows.db.execute("UPDATE passes SET activity_kept = 0 WHERE run_id = ?", [kept])
    rows.db.commit()
    assert daemon.get(f"/runs/{kept}/timeline/findings").json()["reason"] == "retention has deleted the rows of the trace"
    rows.db.execute("UPDATE passes SET activity_kept = 1, activity_rows = 2000001 WHERE run_id = ?", [kept])
    rows.db.commit()
    large = daemon.call("GET", f"/runs/{kept}/timeline/findings")
    assert large.status_code == 422 and "2000001 rows" in large.json()["detail"], large.text
    assert "2000001 rows" in daemon.get(f"/runs/{kept}/report").json()["timeline"]["reason"]
    missing = daemon.call("GET", "/runs/999999/timeline/findings")
    assert missing.status_code == 404 and missing.json()["code"] == "not_found"


def test_two_timelines_are_compared(daemon):
    rows = report_fixture.Rows(daemon)
    a, b = insert_trace_with_gap(rows), insert_trace_with_gap(rows)
    (activity,) = rows.db.execute("SELECT id FROM passes WHERE run_id = ? AND name = 'activity'", [b]).fetchone()
    rows.db.execute("UPDATE activity SET duration_ns = duration_ns + 4000 WHERE pass_id = ? AND start_ns = 95000", [activity])
    rows.db.execute("UPDATE names SET name = 'new k2' WHERE pass_id = ? AND name = 'k2'", [activity])
    rows.db.commit()
    path = f"/compare/timeline?a={a}&b={b}"
    answer = daemon.get(path)
    found = answer.json()
    assert daemon.call("GET", path, headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304
    assert found["window"] == {"a_ns": 105_000, "b_ns": 109_000, "difference_ns": 4_000}
    changes = {(row["name"], row["idle"]): (row["change"], row["difference_ns"]) for row in found["rows"]}
    assert changes == {
        ("k1", None): ("same", 0), ("k2", None): ("gone", -15_000), ("k2", "idle_device_latency"): ("gone", -1_000),
        ("new k2", None): ("new", 15_000), ("new k2", "idle_device_latency"): ("new", 1_000),
        ("k3", None): ("longer", 4_000), ("k3", "idle_host_work"): ("same", 0), ("k3", "idle_launch_latency"): ("same", 0)}
    assert sum(row["difference_ns"] for row in [*found["rows"], found["rest"]]) == 4_000
    assert sum(item["b_ns"] for item in found["classes"]) == 109_000
    without = rows.run([])
    missing = daemon.get(f"/compare/timeline?a={a}&b={without}").json()
    assert missing["rows"] is None and missing["a"]["reason"] is None and missing["b"]["reason"] is not None
    assert daemon.call("GET", f"/compare/timeline?a={a}&b=999999").status_code == 404
    refused = daemon.call("GET", f"/compare/timeline?a={a}&b=0")
    assert refused.status_code == 400 and refused.json()["parameter"] == "b", refused.text
    rows.db.execute("UPDATE passes SET activity_rows = 2000001 WHERE run_id = ?", [b])
    rows.db.commit()
    assert daemon.call("GET", path).status_code == 422


def test_a_comparison_has_the_speedup(daemon, finished):
    (pair,) = daemon.get(f"/jobs/{finished}/comparison").json()["items"]
    assert (pair["baseline"]["variant"], pair["candidate"]["variant"]) == ("fp32", "fp16")
    expected = pair["baseline"]["epoch_ms_median"] / pair["candidate"]["epoch_ms_median"]
    if pair["speedup_ratio"] is None:
        assert "suspect" in pair["unavailable"]["speedup_ratio"]
    else:
        assert math.isclose(pair["speedup_ratio"], expected, rel_tol=1e-9)
    alone = daemon.run(job())
    assert daemon.get(f"/jobs/{alone}/comparison").json() == {"items": []}


def test_a_history_has_every_run(daemon, finished):
    assert finished
    path = "/history?metric=epoch_ms_median"
    points = daemon.get(path).json()["items"]
    assert points and [point["at"] for point in points] == sorted(point["at"] for point in points)
    assert {point["run"] for point in points if point["job"] == finished} == {
        run["run"] for run in daemon.get(f"/jobs/{finished}/results").json()["runs"]}
    workload = points[0]["workload"]
    assert daemon.get(f"{path}&workload={workload}&device=cpu").json()["items"] == points
    assert daemon.get(f"{path}&device=gpu0").json()["items"] == []
    assert daemon.get("/history?metric=no_such_thing").json() == {"items": [], "truncated": False}
    cut = points[len(points) // 2]["at"]
    late = daemon.get(f"{path}&from={cut}").json()["items"]
    early = daemon.get(f"{path}&to={cut}").json()["items"]
    assert early + late == points and late
    limited = daemon.get(f"{path}&limit=1").json()
    assert limited["items"] == points[-1:] and limited["truncated"] is (len(points) > 1)


def test_a_long_history_is_complete(daemon):
    """The daemon reads the points from the database while it sends the reply, after the handler has returned. The limit drops the
    oldest points."""
    rows = report_fixture.Rows(daemon)
    params = {"shape": {"n": 77}}
    runs = [rows.run([], params=params, measurements={"time_cold_us_median": 20.0 + i}) for i in range(400)]
    for query in ("metric=time_cold_us_median&device=gpu0&workload=relu&limit=10000",
                  f"metric=time_cold_us_median&like={runs[7]}&limit=10000"):
        answer = daemon.get(f"/history?{query}")
        assert len(answer.content) > 100000 and answer.json()["truncated"] is False
        points = [point for point in answer.json()["items"] if point["run"] in runs]
        assert [point["run"] for point in points] == runs
        assert [point["value"] for point in points] == [20.0 + i for i in range(400)]
        assert {point["metric"] for point in points} == {"time_cold_us_median"}
    path = f"/history?metric=time_cold_us_median&like={runs[7]}&limit=150"
    newest = daemon.get(path).json()
    assert newest["truncated"] is True and [point["run"] for point in newest["items"]] == runs[-150:]
    older = daemon.get(f"{path}&to={newest['items'][0]['at']}").json()
    assert older["truncated"] is True and [point["run"] for point in older["items"]] == runs[-300:-150]
    oldest = daemon.get(f"{path}&to={older['items'][0]['at']}").json()
    assert oldest["truncated"] is False and [point["run"] for point in oldest["items"]] == runs[:100]


def test_a_history_has_runs_with_equal_parameters(daemon):
    def runs_of(**changes):
        job_id = daemon.run({"kind": "kernel", "kernel": "copy", "dtype": "fp32", "shape": {"n": 1009}, "samples": 2,
                             "device": "cpu", **changes})
        return {run["variant"]: run["run"] for run in daemon.get(f"/jobs/{job_id}/results").json()["runs"]}

    first, other, again = runs_of(), runs_of(shape={"n": 1013}), runs_of()
    points = daemon.get(f"/history?metric=time_cold_us_median&like={again['vector']}").json()["items"]
    assert [point["run"] for point in points] == [first["vector"], again["vector"]]
    assert all(point["variant"] == "vector" and point["value"] > 0 for point in points)
    (alone,) = daemon.get(f"/history?metric=time_cold_us_median&like={other['scalar']}").json()["items"]
    assert alone["run"] == other["scalar"]
    unknown = daemon.get("/history?metric=time_cold_us_median&like=999999")
    assert (unknown.status_code, unknown.json()["code"], unknown.json()["parameter"]) == (404, "not_found", "like")
