"""Tests imports of traces that other profilers recorded: totals of generated traces, limits, hostile files, clients that leave,
and a daemon or importer that is killed."""

import contextlib
import gzip
import hashlib
import http.client
import json
import os
import pathlib
import select
import signal
import socket
import sqlite3
import time

import exported_run
import generated_traces
import pytest
from generated_traces import COPY_US, GEMM, GEMM_US, SMALL_US

STEPS = 20
TRACE = generated_traces.kineto(1)


@pytest.fixture(scope="module")
def import_daemon(start):
    """A daemon with small limits."""
    return start("--import-limit-bytes", str(8 << 20), "--import-spool-bytes", str(12 << 20), "--request-timeout-s", "8")


def upload(daemon, data, query="", **headers):
    return daemon.call("POST", f"/imports{query}", data, headers={"Content-Type": "application/octet-stream", **headers})


def run_import(daemon, data, query=""):
    """Imports a trace, which must complete, and returns the job's document."""
    response = upload(daemon, data, query)
    assert response.status_code == 202, response.text
    job = daemon.wait(response.json()["id"])
    assert job["state"] == "completed", job
    return job


def fail_import(daemon, data):
    """Imports a file whose import must fail, and returns the problem's message."""
    response = upload(daemon, data)
    assert response.status_code == 202, response.text
    job = daemon.wait(response.json()["id"])
    assert job["state"] == "failed" and job["worker_deaths"] == 0, job
    assert job["problem"]["domain"] == "input", job
    return job["problem"]["message"]


def spooled(daemon):
    return list((daemon.state / "uploads").iterdir())


def wait_until(condition, seconds=120):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def measurements(daemon, job):
    run = daemon.get(f"/jobs/{job['id']}/results").json()["runs"][0]
    return {item["name"]: item for item in run["measurements"]}


def findings(daemon, job):
    return daemon.get(f"/runs/{job['runs'][0]['id']}/timeline/findings").json()


def class_times(document):
    return {item["class"]: item["time_ns"] for item in document["classes"] if item["time_ns"]}


# Times of the classes in all steps. A step has kernels of 50 and 5 µs and a copy of 10 µs, with 1 µs between two operations. The
# host calls the next step's first launch 23 µs after the copy has ended; the kernel begins 10 µs after the call.
CLASS_TIMES = {"compute": STEPS * round((GEMM_US + SMALL_US) * 1000), "copy": STEPS * round(COPY_US * 1000),
               "idle_host_work": (STEPS - 1) * 23_000, "idle_launch_latency": (STEPS - 1) * 10_000, "idle_copy": STEPS * 1_000,
               "idle_device_latency": STEPS * 1_000}


@pytest.fixture(scope="module")
def imported(import_daemon, tmp_path_factory):
    """Jobs that imported the same steps in four formats: Kineto's JSON, this JSON compressed, nsys's SQLite, and SQLite in an
    older version of nsys's schema."""
    folder = tmp_path_factory.mktemp("traces")
    kineto = generated_traces.kineto(STEPS)
    files = {"kineto": kineto,
             "gzip": generated_traces.zipped(kineto),
             "nsys": generated_traces.nsys(folder / "new.sqlite", STEPS).read_bytes(),
             "nsys_old": generated_traces.nsys(folder / "old.sqlite", STEPS, nvtx_text_column=True).read_bytes()}
    return {name: run_import(import_daemon, data, f"?file_name={name}") for name, data in files.items()}


@pytest.mark.parametrize("name", ["kineto", "gzip", "nsys", "nsys_old"])
def test_totals_are_those_of_the_file(import_daemon, imported, name):
    job = imported[name]
    document = findings(import_daemon, job)
    assert class_times(document) == CLASS_TIMES
    assert sum(CLASS_TIMES.values()) == document["window"]["end_ns"] - document["window"]["start_ns"]
    kernels = {item["name"]: item for item in import_daemon.get(f"/jobs/{job['id']}/kernels").json()["items"]}
    gemm = kernels[GEMM]
    assert (gemm["launches"], gemm["total_us"], gemm["min_us"], gemm["max_us"]) == (STEPS, STEPS * GEMM_US, GEMM_US, GEMM_US)
    assert [gemm["grid"], gemm["block"], gemm["registers_per_thread"]] == [[128, 2, 1], [256, 1, 1], 64]
    rows = import_daemon.get(f"/jobs/{job['id']}/timeline?limit=1000").json()["items"]
    assert [row["kind"] for row in rows].count("memcpy") == STEPS and len(rows) == 8 * STEPS
    copy = next(row for row in rows if row["kind"] == "memcpy")
    assert (copy["name"], copy["bytes"], copy["stream"]) == ("memcpy DtoH", generated_traces.COPY_BYTES, 7)
    assert (copy["source_memory"], copy["destination_memory"]) == ("device", "pinned")
    first = rows[0]
    assert (first["kind"], first["start_ns"]) == ("range", 0)  # times since the first event, to the ns


def test_findings_name_the_known_causes(import_daemon, imported):
    for name in ("kineto", "nsys"):
        document = findings(import_daemon, imported[name])
        assert {"timeline_host_work", "timeline_launch_latency"} <= {finding["rule"] for finding in document["findings"]}
        step, = [item for item in document["ranges"] if item["name"] in ("ProfilerStep#1", "step")]
        assert (step["ranges"], step["operations"]) == (STEPS, 3 * STEPS)


def test_formats_of_one_trace_compare_equal(import_daemon, imported):
    a, b = (imported[name]["runs"][0]["id"] for name in ("kineto", "nsys"))
    comparison = import_daemon.get(f"/compare/timeline?a={a}&b={b}").json()
    assert all(item["a_ns"] == item["b_ns"] for item in comparison["classes"]), comparison
    assert {item["change"] for item in comparison["rows"]} == {"same"}, comparison


def test_the_job_describes_its_file_and_device(import_daemon, imported):
    job = imported["gzip"]
    data = generated_traces.zipped(generated_traces.kineto(STEPS))
    assert (job["kind"], job["device"]) == ("import", "import")
    request = job["request"]
    assert (request["file_name"], request["format"], request["bytes"]) == ("gzip", "kineto", len(data))
    assert request["sha256"] == hashlib.sha256(data).hexdigest()
    run = import_daemon.get(f"/jobs/{job['id']}/results").json()["runs"][0]
    device = run["device"]
    assert (device["name"], device["compute_capability"], device["sm_count"]) == ("NVIDIA H100 80GB HBM3", "9.0", 132)
    assert run["engine"] == "kineto" and "Kineto" in job["runs"][0]["log"]
    listed = import_daemon.get("/jobs?kind=import").json()["items"]
    assert job["id"] in [item["id"] for item in listed]
    assert all(item["id"] != "import" for item in import_daemon.get("/devices").json()["items"])
    report = import_daemon.get(f"/runs/{run['run']}/report").json()
    assert report["device_properties"] == device and report["commit"] == run["commit"] is not None
    assert report["ceilings_reason"] == "an imported trace has no device whose ceilings were measured"


def test_values_that_a_trace_lacks_are_null_with_a_reason(import_daemon, imported):
    job = imported["kineto"]
    passes = {item["pass"]: item for item in job["runs"][0]["passes"]}
    assert passes["timing"]["state"] == "unavailable" and "untraced" in passes["timing"]["reason"]
    assert passes["counters"]["state"] == "unavailable" and "counters" in passes["counters"]["reason"]
    values = measurements(import_daemon, job)
    for name in ("epoch_untraced_ms", "perturbation_ratio", "activity_dropped_records", "launch_gap_ratio"):
        assert values[name]["value"] is None and values[name]["reason"], name
    kernel = import_daemon.get(f"/jobs/{job['id']}/kernels").json()["items"][0]
    assert kernel["dynamic_shared_bytes"] is None and "sum" in kernel["reason"]


RESOURCES = ("registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes")


def test_values_of_operations_that_a_trace_lacks_are_null(import_daemon):
    """The first file has a kernel and a copy without resources and sizes, as other programs than Kineto write them. The second
    file has the same operations with values."""
    events = [launch(78, 0, 5, 10), kernel("k", 10, 20, 10), launch(78, 40, 5, 11, "cudaMemcpyAsync"),
              complete("user_annotation", "load", 78, 39, 9),
              complete("gpu_memcpy", "CopyHostToDevice", 7, 50, 40, 0, device=0, stream=7, correlation=11)]
    job = import_events(import_daemon, events)
    item, = import_daemon.get(f"/jobs/{job['id']}/kernels").json()["items"]
    assert [item[name] for name in RESOURCES] == [None, None, None]
    for words in ("registers per thread: the trace does not have it", "shared memory: the trace does not have it"):
        assert words in item["reason"]
    rows = {row["kind"]: row for row in import_daemon.get(f"/jobs/{job['id']}/timeline").json()["items"]}
    assert rows["kernel"]["registers"] is None and rows["memcpy"]["bytes"] is None
    document = findings(import_daemon, job)
    copies, = document["copies"]
    assert [copies[name] for name in ("bytes", "bytes_per_s", "time_ns")] == [None, None, 40_000]
    assert copies["reason"] == "the trace does not have the sizes of all copies"
    load, = [item for item in document["ranges"] if item["name"] == "load"]
    assert [load[name] for name in ("copies", "copies_bytes", "unsized_copies")] == [1, None, 1]
    exported = import_daemon.get(f"/jobs/{job['id']}/export?format=csv").text.splitlines()
    assert [line.split(",")[21:25] for line in exported if ",kernel," in line or ",memcpy," in line] == 2 * [["", "", "", ""]]
    again = run_import(import_daemon, import_daemon.get(f"/jobs/{job['id']}/export?format=chrome").content)
    assert findings(import_daemon, again)["copies"][0]["bytes"] is None

    events[1]["args"] |= {"registers per thread": 32, "shared memory": 0}
    events[-1]["args"]["bytes"] = 0
    job = import_events(import_daemon, events)
    item, = import_daemon.get(f"/jobs/{job['id']}/kernels").json()["items"]
    assert [item[name] for name in RESOURCES] == [32, None, None] and "only the sum" in item["reason"]
    exported = gzip.decompress(import_daemon.get(f"/jobs/{job['id']}/export?format=chrome").content)
    assert b'"shared memory":0' in exported
    copies, = findings(import_daemon, job)["copies"]
    assert [copies[name] for name in ("bytes", "bytes_per_s", "reason")] == [0, 0, None]

    events[1]["args"] = {**events[1]["args"], "dynamic_shared_bytes": 512}
    job = import_events(import_daemon, events)
    item, = import_daemon.get(f"/jobs/{job['id']}/kernels").json()["items"]
    assert [item[name] for name in RESOURCES] == [32, None, 512] and "static shared memory: the trace does not" in item["reason"]
    exported = gzip.decompress(import_daemon.get(f"/jobs/{job['id']}/export?format=chrome").content)
    assert b'"shared memory"' not in exported


def test_events_that_are_left_out_are_counted(import_daemon):
    base = 1_700_000_000_000_000
    more = [{"ph": "X", "cat": "python_function", "name": f"f{i}", "pid": 1, "tid": 1, "ts": base, "dur": 1} for i in range(5)]
    more += [{"ph": "X", "cat": "gpu_user_annotation", "name": "a", "pid": 0, "tid": 7, "ts": base, "dur": 1},
             {"ph": "X", "cat": "Trace", "name": "b", "pid": 0, "tid": 7, "ts": base, "dur": 1},
             {"ph": "B", "cat": "cpu_op", "name": "never ends", "pid": 1, "tid": 1, "ts": base},
             {"ph": "E", "pid": 1, "tid": 2, "ts": base}]
    job = run_import(import_daemon, generated_traces.kineto(2, more_events=more))
    values = {name: item["value"] for name, item in measurements(import_daemon, job).items() if name.startswith("skipped")}
    assert values == {"skipped_python_function_events": 5, "skipped_gpu_user_annotation_events": 1,
                      "skipped_other_category_events": 1, "skipped_unpaired_events": 2, "skipped_synchronization_events": 0,
                      "skipped_other_gpu_events": 0, "skipped_other_process_events": 0}
    assert "5 left out: calls of Python functions" in job["runs"][0]["log"]


def test_begins_and_ends_pair_by_thread(import_daemon):
    """B and E events nest within their thread. The file need not end with the bracket that closes its array."""
    events = [{"ph": "B", "cat": "cpu_op", "name": "outer", "pid": 1, "tid": "main", "ts": 10},
              {"ph": "B", "cat": "cpu_op", "name": "other", "pid": 1, "tid": "worker", "ts": 11.5},
              {"ph": "B", "cat": "cpu_op", "name": "inner", "pid": 1, "tid": "main", "ts": 12},
              {"ph": "E", "pid": 1, "tid": "main", "ts": 13.001}, {"ph": "E", "pid": 1, "tid": "main", "ts": 20},
              {"ph": "E", "pid": 1, "tid": "worker", "ts": 30}]
    data = json.dumps(events).encode()[:-1]
    job = run_import(import_daemon, data)
    rows = import_daemon.get(f"/jobs/{job['id']}/timeline").json()["items"]
    assert [(row["name"], row["start_ns"], row["end_ns"]) for row in rows] == [
        ("outer", 0, 10_000), ("other", 1_500, 20_000), ("inner", 2_000, 3_001)]


def test_one_gpu_is_kept(import_daemon):
    """The work of a second GPU is left out together with the API calls that launched it. If only the work were left out, these
    calls would count as unrecorded_launches: launch calls without a recorded operation."""
    base = 1_700_000_000_123_456
    more = [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 77, "tid": 78, "ts": base + 5, "dur": 1,
             "args": {"correlation": 900_001}},
            {"ph": "X", "cat": "kernel", "name": "other", "pid": 1, "tid": 7, "ts": base + 20, "dur": 500,
             "args": {"device": 1, "stream": 7, "correlation": 900_001}}]
    job = run_import(import_daemon, generated_traces.kineto(STEPS, more_events=more))
    assert measurements(import_daemon, job)["skipped_other_gpu_events"]["value"] == 2
    document = findings(import_daemon, job)
    assert class_times(document) == CLASS_TIMES and document["unrecorded_launches"] == 0


def complete(category, name, thread, start_us, duration_us, process=77, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": start_us, "dur": duration_us,
            "args": args}


def kernel(name, start_us, duration_us, correlation, device=0, **args):
    return complete("kernel", name, 7, start_us, duration_us, device, device=device, stream=7, correlation=correlation,
                    grid=[1, 1, 1], block=[32, 1, 1], **args)


def launch(thread, start_us, duration_us, correlation, name="cudaLaunchKernel", process=77):
    return complete("cuda_runtime", name, thread, start_us, duration_us, process, correlation=correlation)


def import_events(daemon, events):
    return run_import(daemon, json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())


# Kineto wrote negative ids before 2024-10 (pytorch/kineto, pull request 1002). Other programs write texts, or 64-bit numbers.
@pytest.mark.parametrize("threads, numbers", [([5, 7], [5, 7]), ([-5, -7], [1, 2]), (["main", "worker"], [1, 2]),
                                              ([139872345675520, 139872345679999], [1, 2]), ([0, 2], [1, 2])])
def test_threads_are_told_apart_by_any_id(import_daemon, threads, numbers):
    """Two threads launch. Then the first synchronizes while the second launches, which is no wait of the second."""
    first, second = threads
    document = findings(import_daemon, import_events(import_daemon, [
        launch(first, 10, 20, 10), launch(second, 11, 20, 11), kernel("a", 100, 5, 10), kernel("b", 110, 5, 11),
        complete("cuda_runtime", "cudaDeviceSynchronize", first, 120, 100, correlation=40), launch(second, 200, 5, 41),
        kernel("c", 210, 5, 41)]))
    assert [item["thread"] for item in document["threads"]] == numbers
    launches = [item["launches"] for item in document["threads"]]
    assert launches == [{"count": 1, "time_ns": 20_000}, {"count": 2, "time_ns": 25_000}]
    assert class_times(document) == {"compute": 15_000, "idle_host_work": 85_000, "idle_launch_latency": 10_000,
                                     "idle_device_latency": 5_000}


def test_a_graph_on_several_gpus_keeps_its_launch(import_daemon):
    """Each launch of a graph has work on two GPUs, with one correlation id. The launch of the other GPU's kernel is left out."""
    events = [launch(78, 500, 5, 90), kernel("other", 520, 10, 90, device=1)]
    for step in range(3):
        start, correlation = 1000 * step, 5 + step
        events.append(launch(78, start, 50, correlation, "cudaGraphLaunch"))
        events += [kernel(f"k{i}", start + 60 + 20 * i, 10, correlation, **{"graph node id": (1 << 32) + i}) for i in range(3)]
        events.append(kernel("k3", start + 60, 10, correlation, device=1, **{"graph node id": (1 << 32) + 3}))
    job = import_events(import_daemon, events)
    document = findings(import_daemon, job)
    assert class_times(document) == {"compute": 90_000, "idle_host_work": 1_780_000, "idle_launch_latency": 120_000,
                                     "idle_device_latency": 60_000}
    assert (document["queue"]["unmatched_operations"], document["unrecorded_launches"]) == (0, 0)
    assert measurements(import_daemon, job)["skipped_other_gpu_events"]["value"] == 5


def test_equal_ids_of_two_processes_match_no_call(import_daemon):
    """A file merged from two processes with a GPU each. An operation names no process, so either of two calls with its id
    can be its launch. The id 50 belongs to one call."""
    events = [launch(100, 500, 5, 50, process=100), kernel("k", 510, 20, 50)]
    for process, device, offset_us in ((100, 0, 0), (200, 1, 3)):
        for i in range(4):
            events.append(launch(process, 100 * i + offset_us, 5, 10 + i, process=process))
            events.append(kernel("k", 100 * i + 10 + offset_us, 20, 10 + i, device))
    job = import_events(import_daemon, events)
    assert findings(import_daemon, job)["queue"]["unmatched_operations"] == 4
    assert measurements(import_daemon, job)["ambiguous_operations"]["value"] == 4
    assert "4 operations without a launch call" in job["runs"][0]["log"]
    alone = import_events(import_daemon, [event for event in events if event["pid"] in (0, 100)])
    assert findings(import_daemon, alone)["queue"]["unmatched_operations"] == 0


# --- round trip -----------------------------------------------------------------------------------------------------------------


def rows_of(daemon, job_id):
    """Returns the rows of a timeline in a fixed order, with the columns that the formats chrome and nsys both keep."""
    kept = ("kind", "name", "start_ns", "end_ns", "stream", "correlation", "grid", "block", "registers", "bytes", "process",
            "thread", "device", "context", "graph_node", "source_memory", "destination_memory")
    rows = daemon.get(f"/jobs/{job_id}/timeline?limit=1000").json()["items"]
    for row in rows:
        if row["kind"] == "overhead":
            row["process"] = None  # an overhead of Kineto's format has no process
    return sorted(json.dumps({name: row[name] for name in kept}) for row in rows)


@pytest.mark.parametrize("name", ["chrome", "nsys"])
def test_an_export_is_imported_with_the_same_rows_and_findings(import_daemon, name):
    exportable = [row for row in exported_run.rows() if row["kind"] not in ("memory", "phase", "span")]
    job_id, run_id = exported_run.insert(import_daemon, exportable)
    exported = import_daemon.get(f"/jobs/{job_id}/export?format={name}").content
    job = run_import(import_daemon, exported)
    assert rows_of(import_daemon, job["id"]) == rows_of(import_daemon, job_id)
    original = import_daemon.get(f"/runs/{run_id}/timeline/findings").json()
    imported = findings(import_daemon, job)
    assert "the trace was imported" in imported["independent_launches"]["reason"]
    other = {"run": 0, "independent_launches": None}  # the reasons differ
    assert {**imported, **other} == {**original, **other}
    comparison = import_daemon.get(f"/compare/timeline?a={run_id}&b={job['runs'][0]['id']}").json()
    assert {item["change"] for item in comparison["rows"]} == {"same"}


def test_exported_ranges_keep_their_threads(import_daemon):
    """The range `whole` belongs to the whole process. `early` and `late` overlap, so `late` is shown in a separate track."""
    spans = {"whole": (0, 90_000, 0), "early": (1_000, 30_000, 4001), "late": (2_000, 50_000, 4001)}
    ranges = [{"kind": "range", "name": name, "start_ns": start, "end_ns": end, "process": 4000, "thread": thread}
              for name, (start, end, thread) in spans.items()]
    rows = [*ranges, exported_run.call("cudaLaunchKernel_v7000", 3_000, 3_456, 1), exported_run.kernel("k", 5_000, 15_000, 1)]
    job_id, run_id = exported_run.insert(import_daemon, rows)
    job = run_import(import_daemon, import_daemon.get(f"/jobs/{job_id}/export?format=chrome").content)
    assert rows_of(import_daemon, job["id"]) == rows_of(import_daemon, job_id)
    imported = findings(import_daemon, job)["ranges"]
    assert imported == import_daemon.get(f"/runs/{run_id}/timeline/findings").json()["ranges"]
    assert {item["name"]: item["operations"] for item in imported if item["name"]} == dict.fromkeys(spans, 1)


# --- refusals at submission ----------------------------------------------------------------------------------------------------


def check_refusal(response, status, code):
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    return response.json()


def test_files_of_other_formats_are_refused(import_daemon):
    assert "nsys export" in check_refusal(upload(import_daemon, b"\x80\x02nsys-rep"), 415, "unsupported_media_type")["detail"]
    check_refusal(upload(import_daemon, b""), 415, "unsupported_media_type")
    assert "kineto" in check_refusal(upload(import_daemon, b"[]", "?format=nsys"), 415, "unsupported_media_type")["detail"]
    check_refusal(upload(import_daemon, b"[]", "?format=perfetto"), 400, "invalid_parameter")
    blank = upload(import_daemon, generated_traces.kineto(3), "?file_name=%C2%A0%E3%80%80")
    check_refusal(blank, 400, "invalid_parameter")
    assert blank.json()["parameter"] == "file_name" and "invisible" in blank.json()["detail"]
    form = import_daemon.call("POST", "/imports", b"--x--", headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert "form" in check_refusal(form, 415, "unsupported_media_type")["detail"]
    check_refusal(import_daemon.call("POST", "/jobs", {"kind": "import"}), 400, "invalid_field")
    check_refusal(import_daemon.call("POST", "/jobs", {"kind": "ceilings", "device": "import"}), 400, "invalid_field")
    wait_until(lambda: spooled(import_daemon) == [])


def test_a_file_above_the_limit_is_refused(import_daemon):
    too_large = bytes(8 << 20) + b"x"
    check_refusal(upload(import_daemon, too_large), 413, "body_too_large")
    connection = http.client.HTTPConnection(import_daemon.host, import_daemon.port)
    connection.request("POST", "/imports", (b"[" + bytes(1 << 20) for _ in range(9)), {"Transfer-Encoding": "chunked"},
                       encode_chunked=True)
    response = connection.getresponse()
    assert response.status == 413 and json.loads(response.read())["code"] == "body_too_large"
    wait_until(lambda: spooled(import_daemon) == [])


def test_a_repeated_request_gets_its_job(import_daemon):
    key = {"Idempotency-Key": "import-once"}
    first = upload(import_daemon, generated_traces.kineto(3), **key)
    repeated = upload(import_daemon, generated_traces.kineto(3), **key)
    assert (first.json()["id"], repeated.headers["Idempotent-Replayed"]) == (repeated.json()["id"], "true")
    check_refusal(upload(import_daemon, generated_traces.kineto(4), **key), 422, "idempotency_mismatch")
    for query in ("?file_name=other.json", "?deadline_s=9"):
        check_refusal(upload(import_daemon, generated_traces.kineto(3), query, **key), 422, "idempotency_mismatch")
    same_format = upload(import_daemon, generated_traces.kineto(3), "?format=kineto", **key)  # the format that auto has found
    assert same_format.json()["id"] == first.json()["id"]
    import_daemon.wait(first.json()["id"])
    wait_until(lambda: spooled(import_daemon) == [])


def send_part(daemon, length, data):
    """Sends the headers of an upload of `length` bytes, and `data`, the first of these bytes."""
    client = socket.create_connection((daemon.host, daemon.port))
    client.sendall(f"POST /imports HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode() + data)
    return client


def test_a_client_that_leaves_leaves_no_file(import_daemon):
    client = send_part(import_daemon, 4 << 20, b"[" + b" " * (3 << 20))
    wait_until(lambda: len(spooled(import_daemon)) == 1)
    client.close()
    wait_until(lambda: spooled(import_daemon) == [])


def test_a_silent_client_is_disconnected(import_daemon):
    with send_part(import_daemon, 4 << 20, b"[" + b" " * (2 << 20)) as client:
        client.settimeout(60)
        assert client.recv(1) == b""
    wait_until(lambda: spooled(import_daemon) == [])


@contextlib.contextmanager
def uploads_in_progress(daemon, data):
    """Eight clients that have sent `data` of a longer upload, and then send nothing."""
    clients = [send_part(daemon, 8 << 20, data) for _ in range(8)]
    try:
        yield clients
    finally:
        for client in clients:
            client.close()
        wait_until(lambda: spooled(daemon) == [])


@pytest.fixture(scope="module")
def patient_daemon(start):
    """A daemon whose time-outs end no upload during a test."""
    return start("--request-timeout-s", "600")


def test_silent_uploads_leave_space(patient_daemon):
    with uploads_in_progress(patient_daemon, b"["):
        for data in (TRACE, TRACE + b" " * (2 << 20)):
            assert upload(patient_daemon, data).status_code == 202
        patient_daemon.cancel_all()


def test_uploads_at_the_same_time_are_limited(patient_daemon):
    """A short upload needs no place among the eight. A long one is refused, or takes the place of a client that has sent nothing
    for some seconds."""
    with uploads_in_progress(patient_daemon, b"[" + b" " * (2 << 20)) as clients:
        wait_until(lambda: len(spooled(patient_daemon)) == 8)
        assert upload(patient_daemon, TRACE).status_code == 202
        statuses = []

        def is_accepted():
            statuses.append(upload(patient_daemon, TRACE + b" " * (2 << 20)).status_code)
            return statuses[-1] == 202

        wait_until(is_accepted)
        assert set(statuses) <= {202, 503}
        readable, _, _ = select.select(clients, [], [], 60)
        assert len(readable) == 1 and readable[0].recv(1) == b""
        patient_daemon.cancel_all()


def test_failed_uploads_leave_space(start):
    """Eight clients have sent more than the limit of a file, and the rest of their chunk is still due."""
    daemon = start("--request-timeout-s", "600", "--import-limit-bytes", str(2 << 20))
    head = b"POST /imports HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % (4 << 20)
    with contextlib.ExitStack() as clients:
        for _ in range(8):
            client = clients.enter_context(socket.create_connection((daemon.host, daemon.port)))
            client.sendall(head + b"[" + b" " * (3 << 20))
        wait_until(lambda: upload(daemon, TRACE + b" " * (1 << 20)).status_code == 202)
    assert daemon.stop() == 0


def test_all_uploads_together_are_limited(import_daemon):
    """Two uploads of 7 MB exceed the spool's 12 MB."""
    first = send_part(import_daemon, 8 << 20, b"[" + b" " * (7 << 20))
    wait_until(lambda: spooled(import_daemon) and spooled(import_daemon)[0].stat().st_size >= 6 << 20)
    assert "import_spool_bytes" in check_refusal(upload(import_daemon, b"[" + b" " * (7 << 20)), 503, "unavailable")["detail"]
    first.close()
    wait_until(lambda: spooled(import_daemon) == [])


def test_uploads_need_a_token(start):
    """The daemon checks the token before it reads a large body, and after it has read a small body."""
    daemon = start("--require-token", token=True)
    small, large = generated_traces.kineto(2), generated_traces.kineto(2, padding=["x" * 1000] * 3000)
    for data in (small, large):
        check_refusal(daemon.call("POST", "/imports", data, headers={"Authorization": "Bearer wrong"}), 401, "unauthorized")
    assert spooled(daemon) == []
    for data in (large, small):
        run_import(daemon, data)
    daemon.stop()


def test_a_half_closed_client_gets_its_reply(import_daemon):
    data = json.dumps([json.loads(generated_traces.kineto(1))["traceEvents"][1]] * 12_000).encode()
    for _ in range(5):
        with send_part(import_daemon, len(data), data) as client:
            client.shutdown(socket.SHUT_WR)
            client.settimeout(60)
            assert client.recv(100).startswith(b"HTTP/1.1 202 "), len(data)
    import_daemon.cancel_all()
    wait_until(lambda: spooled(import_daemon) == [])


# --- hostile files -------------------------------------------------------------------------------------------------------------


def event(**changes):
    return json.dumps([{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1, **changes}]).encode()


def several(count, **changes):
    return json.dumps(count * json.loads(event(**changes))).encode()


@pytest.mark.parametrize("data, message", [
    (b"[" * 100_000, "nested deeper than 64"),
    (b'{"a":' * 100_000, "nested deeper than 64"),
    (b'{"traceEvents": [{"ph": "X"', "malformed JSON"),
    (b'{"traceEvents": [}', "malformed JSON"),
    (b'{"other": 1}', "no trace events"),
    (b"[]", "no trace events"),
    (b'["' + b"x" * (2 << 20) + b'"]', "longer than 1048576 bytes"),
    (b"[" + b" " * (3 << 20) + b"]", "longer than 1048576 bytes"),
    (event(ts=-1), "negative"), (event(dur=-1), "ends before"),
    (event(ts=1e300), "64 bits"), (event(ts=1, dur=9e18), "64 bits"), (event(ts=9.3e15), "64 bits"),
    (event(ts="soon"), "64 bits"), (event(ts=None), "no ts"), (event(dur=None), "no dur"),
    (event().replace(b'"ts": 1', b'"ts": NaN'), "malformed JSON"),
    (event(name="n" * 60_001), "60000"),
    (several(5, dur=2.2e15), "durations of all events add up to more than 9223372036854775807 ns: record a shorter time"),
    (several(2, cat="gpu_memcpy", name="Memcpy HtoD", args={"bytes": 1 << 62}), "807 bytes: record fewer copies"),
    (event(cat="rendering"), "no kernel"),
    (json.dumps([{"ph": "B", "cat": "cpu_op", "name": "b", "ts": i} for i in range(5000)]).encode(), "4096 events of phase B"),
    (b"\x1f\x8b" + b"garbage", "gzip data is damaged"),
    (generated_traces.zipped(generated_traces.kineto(50))[:-100], "gzip data ends early"),
])
def test_hostile_json_ends_in_a_clear_error(import_daemon, data, message):
    message_text = fail_import(import_daemon, data)
    assert message in message_text.replace("times must be from 0", "negative"), message_text
    wait_until(lambda: spooled(import_daemon) == [])


def test_names_are_bounded(import_daemon):
    names = b",".join(b'{"ph":"X","cat":"kernel","name":"%d","pid":0,"tid":7,"ts":1,"dur":1}' % i for i in range(1_000_000))
    message_text = fail_import(import_daemon, generated_traces.zipped(b"[" + names + b"]"))
    assert "more than 100000 different names" in message_text, message_text


def test_a_decompression_bomb_is_bounded(import_daemon):
    """A few megabytes that decompress to 3 GiB of JSON."""
    part = gzip.compress(b"[0,0,0,0,0,0,0]," * (1 << 16))  # a gzip file may have many members
    bomb = generated_traces.zipped(b'{"x":[') + 3 * 1024 * part
    began = time.monotonic()
    response = upload(import_daemon, bomb)
    job_id = response.json()["id"]
    peak = 0
    while (job := import_daemon.get(f"/jobs/{job_id}").json())["state"] not in ("completed", "failed"):
        peak = max([peak, *importer_memory(import_daemon)])
        if time.monotonic() - began > 2:
            assert import_daemon.call("DELETE", f"/jobs/{job_id}").status_code == 202
            break
        time.sleep(0.02)
    job = import_daemon.wait(job_id)
    assert job["state"] in ("cancelled", "failed"), job
    assert 0 < peak < 100 << 20
    wait_until(lambda: spooled(import_daemon) == [])


def importer_pids(daemon):
    """Returns the process ids of the daemon's importers."""
    found = []
    for child in pathlib.Path(f"/proc/{daemon.process.pid}/task").glob("*/children"):
        try:
            found += [int(pid) for pid in child.read_text().split()
                      if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("rooflined-impor")]
        except OSError:
            pass  # it has exited
    return found


def importer_memory(daemon):
    """Returns the resident bytes of each importer of the daemon."""
    sizes = []
    for pid in importer_pids(daemon):
        try:
            sizes.append(int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        except OSError:
            pass
    return sizes


def nsys_trace_with(tmp_path, *statements, steps=1):
    path = tmp_path / "trace.sqlite"
    generated_traces.nsys(path, steps)
    db = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()
    return path.read_bytes()


KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"


@pytest.mark.parametrize("statements, message", [
    ([f"UPDATE {KERNEL} SET start = -5"], "times must be from 0"),
    ([f"UPDATE {KERNEL} SET end = start - 1"], "ends before"),
    ([f"UPDATE {KERNEL} SET end = 9223372036854775807"], "times must be from 0"),
    (["ALTER TABLE NVTX_EVENTS RENAME TO x", "CREATE VIEW NVTX_EVENTS AS SELECT 1 AS start, 2 AS end"], "is not a table"),
    (["DROP TABLE StringIds", "CREATE VIEW StringIds AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
      "SELECT i AS id, 'x' AS value FROM n"], "is not a table"),
    ([f"DROP TABLE {name}" for name in (KERNEL, "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME",
                                        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "NVTX_EVENTS")], "none of nsys's tables"),
    ([f"ALTER TABLE {KERNEL} RENAME COLUMN start TO begin"], "not an integer"),
    (["ALTER TABLE StringIds RENAME TO keyed", "CREATE TABLE StringIds AS SELECT * FROM keyed"], "no primary key"),
])
def test_hostile_databases_end_in_a_clear_error(import_daemon, tmp_path, statements, message):
    message_text = fail_import(import_daemon, nsys_trace_with(tmp_path, *statements))
    assert message in message_text, message_text


def test_a_damaged_database_ends_in_a_clear_error(import_daemon, tmp_path):
    data = bytearray(nsys_trace_with(tmp_path, steps=200))
    for at in range(4096, len(data), 97):
        data[at] ^= 0x5A
    assert "database" in fail_import(import_daemon, bytes(data))


def test_untimed_records_are_counted_and_graphs_are_operations(import_daemon, tmp_path):
    """A record with start 0 and end 0 has times that could not be collected. A whole graph can be one operation."""
    untimed = (f"INSERT INTO {KERNEL} SELECT 0, 0, deviceId, contextId, NULL, streamId, 99, globalPid, demangledName, shortName, "
               f"64, 1, 1, 1, 1, 1, 1, 0, 0, NULL FROM {KERNEL} LIMIT 1")
    create_graphs = ("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, "
                     "contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER, "
                     "graphExecId INTEGER)")
    insert_graph = ("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES "
                    f"(900000, 950000, 0, 1, 7, 50, {generated_traces.GLOBAL_PID}, 12, 13)")
    job = run_import(import_daemon, nsys_trace_with(tmp_path, untimed, create_graphs, insert_graph, steps=2))
    assert measurements(import_daemon, job)["activity_zero_time_records"]["value"] == 1
    assert "1 have no times" in findings(import_daemon, job)["incomplete_reason"]
    kernels = {item["name"]: item for item in import_daemon.get(f"/jobs/{job['id']}/kernels").json()["items"]}
    graph, relu = kernels["CUDA graph 12"], kernels["relu(float*)"]
    assert graph["total_us"] == 50
    assert [graph[name] for name in RESOURCES] == [None, None, None] and [relu[name] for name in RESOURCES] == [64, 0, 1024]
    assert "registers per thread: the trace does not have it" in graph["reason"] and "does not have it" not in relu["reason"]


# --- kills ---------------------------------------------------------------------------------------------------------------------


def slow_trace():
    """Returns a small file whose import takes seconds: it has millions of events that are not imported."""
    ignored = generated_traces.zipped(b',{"ph":"M","name":"a","args":{"x":[1,2,3,4,5,6,7,8,9]}}' * 100_000)
    return generated_traces.zipped(event()[:-1]) + 25 * ignored + generated_traces.zipped(b"]")


def test_an_import_survives_a_kill_of_its_importer(import_daemon):
    job_id = upload(import_daemon, slow_trace()).json()["id"]
    wait_until(lambda: importer_pids(import_daemon) and import_daemon.get(f"/jobs/{job_id}").json()["passes"]["unavailable"] == 1)
    time.sleep(0.3)
    os.kill(importer_pids(import_daemon)[0], signal.SIGKILL)
    job = import_daemon.wait(job_id)
    assert (job["state"], job["worker_deaths"]) == ("completed", 1), job
    wait_until(lambda: spooled(import_daemon) == [])


def test_an_import_survives_a_kill_of_the_daemon(start):
    daemon = start()
    data = slow_trace()
    job_id = upload(daemon, data).json()["id"]
    wait_until(lambda: daemon.get(f"/jobs/{job_id}").json()["passes"]["unavailable"] == 1)
    (daemon.state / "uploads" / "0123456789abcdef0123456789abcdef").write_bytes(b"of an upload that was cut off")
    daemon.kill()
    daemon._start()
    assert len(spooled(daemon)) == 1
    job = daemon.wait(job_id)
    assert (job["state"], job["daemon_deaths"]) == ("completed", 1), job
    wait_until(lambda: spooled(daemon) == [])


def test_an_import_does_not_wait_for_a_device(import_daemon):
    from daemon import endless

    training = import_daemon.submit(endless())
    import_daemon.wait(training, ("running",))
    run_import(import_daemon, generated_traces.kineto(2))
    assert import_daemon.get(f"/jobs/{training}").json()["state"] == "running"
    import_daemon.call("DELETE", f"/jobs/{training}")
    import_daemon.wait(training)


def test_a_cancelled_import_leaves_no_file(import_daemon):
    first, second = (upload(import_daemon, slow_trace()).json()["id"] for _ in range(2))
    for job_id in (second, first):
        import_daemon.call("DELETE", f"/jobs/{job_id}")
        assert import_daemon.wait(job_id)["state"] == "cancelled"
    wait_until(lambda: spooled(import_daemon) == [])


def test_without_an_importer_uploads_are_refused(start, tmp_path):
    from daemon import BUILD

    (tmp_path / "rooflined-worker-cpu").symlink_to(BUILD / "bin" / "rooflined-worker-cpu")
    daemon = start("--workers", str(tmp_path))
    assert "rooflined-import" in check_refusal(upload(daemon, b"[]"), 503, "unavailable")["detail"]
    daemon.stop()
