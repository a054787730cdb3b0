"""Tests GET /jobs/{id}/export. The export in openmetrics is read by the parser of prometheus_client. The exports in chrome,
perfetto and nsys are checked against the columns or schemas that their tools publish, because these tools need not be installed.
The name of the main test of each of these four formats says what the export is checked against. Counts and durations equal
those of the timeline exactly."""

import collections
import csv
import gzip
import io
import json
import math
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import exported_run
import kineto_rules
import pytest
import report_fixture
import traced_run
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from daemon import SOURCE, job

FORMATS = {"chrome": ("application/gzip", ".pt.trace.json.gz"), "perfetto": ("application/x-protobuf", ".perfetto-trace"),
           "nsys": ("application/vnd.sqlite3", ".nsys.sqlite"), "ncu-csv": ("text/csv", ".ncu.csv"), "csv": ("text/csv", ".csv"),
           "openmetrics": ("application/openmetrics-text", ".openmetrics.txt")}


@pytest.fixture(scope="module")
def inserted_ids(daemon):
    """The ids of the job and the run that exported_run.py inserts."""
    return exported_run.insert(daemon)


def export(daemon, job_id, name, run=None):
    response = daemon.get(f"/jobs/{job_id}/export?format={name}" + (f"&run={run}" if run else ""))
    assert response.status_code == 200, response.text
    return response.content


def timeline(daemon, job_id):
    return daemon.get(f"/jobs/{job_id}/timeline?limit=200000").json()["items"]


def totals(rows):
    """Returns {(kind, name): (count, sum of durations)} of (kind, name, duration) rows."""
    found = collections.defaultdict(lambda: (0, 0))
    for kind, name, duration in rows:
        count, total = found[kind, name]
        found[kind, name] = count + 1, total + duration
    return dict(found)


def totals_of_timeline(daemon, job_id):
    return totals((item["kind"], item["name"], item["end_ns"] - item["start_ns"]) for item in timeline(daemon, job_id))


# --- the route --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_has_its_type_and_name(daemon, inserted_ids, name):
    job_id, run = inserted_ids
    response = daemon.get(f"/jobs/{job_id}/export?format={name}")
    media_type, suffix = FORMATS[name]
    assert response.headers["Content-Type"].split(";")[0] == media_type
    stem = f"job-{job_id}" + ("" if name == "openmetrics" else f"-run-{run}")
    assert response.headers["Content-Disposition"] == f'attachment; filename="{stem}{suffix}"'
    assert "ETag" not in response.headers and response.headers["Cache-Control"] == "no-store"
    head = daemon.call("HEAD", f"/jobs/{job_id}/export?format={name}")
    assert head.status_code == 200 and head.content == b""


def refusal(daemon, path):
    response = daemon.get(path)
    return response.status_code, response.json()["code"], response.json()["detail"]


def test_invalid_exports_are_refused(daemon, inserted_ids):
    job_id, run = inserted_ids
    other, _ = exported_run.insert(daemon)
    assert refusal(daemon, f"/jobs/{job_id}/export")[:2] == (400, "invalid_parameter")
    assert refusal(daemon, f"/jobs/{job_id}/export?format=pdf")[:2] == (400, "invalid_parameter")
    assert refusal(daemon, f"/jobs/{job_id}/export?format=csv&run=0")[:2] == (400, "invalid_parameter")
    for name in FORMATS:
        assert refusal(daemon, f"/jobs/999999/export?format={name}")[:2] == (404, "not_found")
        status, code, detail = refusal(daemon, f"/jobs/{other}/export?format={name}&run={run}")
        assert (status, code, detail) == (404, "not_found", f"Job {other} has no run {run}.")


def test_a_job_of_several_runs_needs_the_parameter_run(daemon):
    fixture = report_fixture.Rows(daemon)
    job_id = fixture.job()
    runs = [fixture.run([{}], job=job_id, trace=([], exported_run.rows())) for _ in range(2)]
    response = daemon.get(f"/jobs/{job_id}/export?format=csv")
    assert (response.status_code, response.json()["parameter"]) == (400, "run")
    assert response.json()["detail"] == f"run must name one of the runs {runs[0]}, {runs[1]}"
    assert {row["run"] for row in csv.DictReader(io.StringIO(export(daemon, job_id, "csv", runs[1]).decode()))} == {str(runs[1])}
    assert daemon.get(f"/jobs/{job_id}/export?format=ncu-csv").status_code == 400
    for run, expected in ((None, runs), (runs[0], runs[:1])):
        found = families(export(daemon, job_id, "openmetrics", run))
        assert {sample.labels["run"] for family in found for sample in family.samples} == set(map(str, expected))


@pytest.mark.parametrize("name", ("chrome", "perfetto", "nsys", "csv"))
def test_a_run_without_a_trace_has_a_reason(daemon, name):
    fixture = report_fixture.Rows(daemon)
    untraced, traced = fixture.run([{}]), fixture.run([{}], trace=([], exported_run.rows()))
    found = refusal(daemon, f"/jobs/{fixture.job_of(untraced)}/export?format={name}")
    assert found == (404, "not_found", f"Run {untraced} has no trace: the job did not ask for the activity pass.")
    path = f"/jobs/{fixture.job_of(traced)}/export?format={name}"
    for state, kept, reason in (("running", 1, "the activity pass is running"),
                                ("completed", 0, "retention has deleted the rows of the trace")):
        fixture.db.execute("UPDATE passes SET state = ?, activity_kept = ? WHERE run_id = ? AND ordinal = 1",
                           [state, kept, traced])
        fixture.db.commit()
        assert refusal(daemon, path)[2] == f"Run {traced} has no trace: {reason}."


def test_a_trace_of_the_cpu_engine(daemon):
    job_id = daemon.run(job(passes=["timing", "activity"]))
    items = timeline(daemon, job_id)
    assert len({item["thread"] for item in items}) == 1 and all(item["thread"] > 1 for item in items)
    (events,) = kineto_rules.check(json.loads(gzip.decompress(export(daemon, job_id, "chrome")))).values()
    assert [event["name"] for event in events] == [item["name"] for item in items]
    for name in FORMATS:
        assert export(daemon, job_id, name)


# --- chrome -----------------------------------------------------------------------------------------------------------------


def test_chrome_against_the_columns_of_holistic_trace_analysis(daemon, inserted_ids):
    job_id, run = inserted_ids
    trace = json.loads(gzip.decompress(export(daemon, job_id, "chrome")))
    by_thread = kineto_rules.check(trace)
    assert trace["rooflined"]["run"] == run and trace["deviceProperties"][0]["computeMajor"] == 9
    events = [event for found in by_thread.values() for event in found]
    kinds = {category: kind for kind, category in kineto_rules.CATEGORIES.items()}
    names = {"Memcpy HtoD (Pageable -> Device)": "memcpy HtoD", "Memcpy DtoH (Device -> Pinned)": "memcpy DtoH",
             "Memset (Device)": "memset"}
    found = totals((kinds[event["cat"]], names.get(event["name"], event["name"]), kineto_rules.ns(event["dur"]))
                   for event in events)
    expected = totals_of_timeline(daemon, job_id)
    expected.pop(("memory", "allocate device"))  # an instant event
    assert found == expected
    (allocation,) = [event for event in trace["traceEvents"] if event["ph"] == "i"]
    assert allocation["name"] == "allocate device" and allocation["args"] == {"Bytes": 1 << 40}
    (first,) = [event for event in events if event["name"] == exported_run.KERNEL and event["ts"] == 5.0]
    assert (first["pid"], first["tid"]) == (0, 7) and first["args"] == {
        "device": 0, "context": 1, "stream": 7, "External id": 1, "correlation": 1, "registers per thread": 40,
        "shared memory": 1040, "grid": [4, 2, 1], "block": [128, 1, 1]}
    linked = {event["id"] for event in trace["traceEvents"] if event["ph"] == "f"}
    assert linked == {1, 2, 11, 12}  # 77 has a kernel but no call, and 90 a call but no kernel: neither has a flow
    assert {(event["pid"], event["tid"]) for event in events if event["cat"] == "cuda_runtime"} == {(4000, 4001), (4000, 4002)}


def test_chrome_places_overlapping_kernels_on_separate_threads(daemon):
    """Kernels of a stream may overlap by a few nanoseconds; events of a thread may not. An overlapping kernel and its phases are
    written to another thread."""
    spans = {"first": (1000, 2000), "second": (1970, 3000), "inside": (1980, 2500), "third": (2990, 4000), "later": (4000, 5000)}
    rows = [{"kind": "phase" if name == "inside" else "kernel", "name": name, "start_ns": start, "end_ns": end, "stream": 7}
            for name, (start, end) in spans.items()]
    job_id, _ = exported_run.insert(daemon, rows)
    trace = json.loads(gzip.decompress(export(daemon, job_id, "chrome")))
    by_thread = kineto_rules.check(trace)
    named = {(event["pid"], event["tid"]): event["args"]["name"]
             for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert {named[thread]: [event["name"] for event in events] for thread, events in by_thread.items()} == {
        "stream 7": ["first", "third", "later"], "stream 7, overlapping 1": ["second", "inside"]}


def random_stream(draw, stream):
    """Returns random kernels with phases. Each may begin before the previous one ends, as programmatic dependent launches do."""
    rows, previous_start, previous_end = [], 0, draw.randrange(1000)
    for k in range(40):
        start = max(previous_start, previous_end - draw.choice((0, 0, draw.randrange(200))))
        end = previous_end + draw.randrange(1, 3000)
        rows.append({"kind": "kernel", "name": f"kernel {k}", "start_ns": start, "end_ns": end, "stream": stream})
        cuts = sorted(draw.sample(range(start, end + 1), min(4, end - start + 1)))
        rows += [{"kind": "phase", "name": "part", "start_ns": low, "end_ns": high, "stream": stream, "step": 1}
                 for low, high in zip(cuts, cuts[1:]) if low >= previous_end]
        previous_start, previous_end = previous_end, end
    return rows


def test_random_streams_keep_every_slice(daemon, perfetto_trace_class):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rows = [row for stream in (3, 7) for row in random_stream(random.Random(seed), stream)]
    job_id, _ = exported_run.insert(daemon, rows)
    by_thread = kineto_rules.check(json.loads(gzip.decompress(export(daemon, job_id, "chrome"))))
    expected = sorted((row["name"], row["start_ns"], row["end_ns"]) for row in rows)
    assert sorted((event["name"], *span) for events in by_thread.values()
                  for event, span in zip(events, kineto_rules.spans_of(events))) == expected
    slices, _, _ = perfetto_slices(export(daemon, job_id, "perfetto"), perfetto_trace_class)
    assert sorted((name, start, end) for _, name, start, end, _ in slices) == expected


# --- perfetto ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def perfetto_trace_class():
    """The class of Perfetto's message Trace, made by protoc from the fields that Perfetto publishes."""
    if shutil.which("protoc") is None:
        pytest.skip("protoc is not installed")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"--python_out={folder}", f"--proto_path={SOURCE / 'tests/data'}", "perfetto_trace.proto"],
                       check=True)
        sys.path.insert(0, folder)
        import perfetto_trace_pb2  # noqa: PLC0415
        sys.path.remove(folder)
    return perfetto_trace_pb2.Trace


def unknown_fields(message):
    found = len(message.UnknownFields())
    for field, value in message.ListFields():
        if field.message_type is not None:
            found += sum(map(unknown_fields, value if field.label == field.LABEL_REPEATED else [value]))
    return found


def perfetto_slices(data, trace_class):
    """Returns the slices [(category, name, start, end, track)], the descriptors {uuid of a track: descriptor}, and the
    annotations [(slice's name, start, {name: value}, ids of flows)]. Pairs the events of a track as Perfetto does: sorts them by
    time, events of equal times in the order of the file; an end event ends the innermost open slice."""
    trace = trace_class.FromString(data)
    assert unknown_fields(trace) == 0
    names, tracks, annotations, slices, pending = {}, {}, [], [], collections.defaultdict(list)
    for number, packet in enumerate(trace.packet):
        assert packet.trusted_packet_sequence_id == 1
        assert (packet.sequence_flags == packet.SEQ_INCREMENTAL_STATE_CLEARED) == (number == 0)
        for kind in ("event_categories", "event_names", "debug_annotation_names"):
            for entry in getattr(packet.interned_data, kind):
                assert entry.iid and names.setdefault((kind, entry.iid), entry.name) == entry.name
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert tracks.setdefault(descriptor.uuid, descriptor) == descriptor
        if packet.HasField("track_event"):
            assert packet.track_event.track_uuid in tracks, "the track has no descriptor yet"
            pending[packet.track_event.track_uuid].append((packet.timestamp, number, packet.track_event))
    for track, events in pending.items():
        stack = []
        for time_ns, _, event in sorted(events, key=lambda item: item[:2]):
            if event.type == event.TYPE_SLICE_BEGIN:
                arguments = {names["debug_annotation_names", annotation.name_iid]:
                             getattr(annotation, annotation.WhichOneof("value")) for annotation in event.debug_annotations}
                stack.append((names["event_categories", event.category_iids[0]], names["event_names", event.name_iid], time_ns,
                              arguments, list(event.flow_ids)))
            else:
                category, name, start, arguments, flows = stack.pop()
                assert not stack or time_ns >= start
                slices.append((category, name, start, time_ns, track))
                annotations.append((name, start, arguments, flows))
        assert not stack, "a slice has no end"
    return slices, tracks, annotations


def test_perfetto_against_its_published_protos_with_protoc(daemon, inserted_ids, perfetto_trace_class):
    job_id, _ = inserted_ids
    slices, tracks, annotations = perfetto_slices(export(daemon, job_id, "perfetto"), perfetto_trace_class)
    assert totals((kind, name, end - start) for kind, name, start, end, _ in slices) == totals_of_timeline(daemon, job_id)
    items = {(item["kind"], item["name"], item["start_ns"], item["end_ns"]) for item in timeline(daemon, job_id)}
    assert {part[:4] for part in slices} == items  # the overlapping ones too
    names = {uuid: descriptor.name or descriptor.thread.thread_name or descriptor.process.process_name
             for uuid, descriptor in tracks.items()}
    placed = {names[track] for kind, _, _, _, track in slices if kind == "kernel"}
    assert placed == {"stream 7", "stream 7, overlapping 1", "stream 13"}
    threads = {(track.thread.pid, track.thread.tid) for track in tracks.values() if track.HasField("thread")}
    assert threads == {(4000, 4001), (4000, 4002)}
    assert all(track.parent_uuid in tracks for track in tracks.values() if track.parent_uuid)
    by_start = {(name, start): (arguments, flows) for name, start, arguments, flows in annotations}
    assert by_start["memcpy HtoD", 2_000] == ({"correlation": 11, "device": 0, "context": 1, "bytes": 50_176,
                                               "source_memory": "pageable", "destination_memory": "device"}, [11])
    assert by_start[exported_run.KERNEL, 5_000][0]["grid"] == "4×2×1"
    assert by_start["cudaLaunchKernel_v7000", 3_000][1] == by_start[exported_run.KERNEL, 5_000][1] == [1]


# --- csv --------------------------------------------------------------------------------------------------------------------


def test_csv_has_each_row_of_the_timeline(daemon, inserted_ids):
    job_id, run = inserted_ids
    lines = list(csv.DictReader(io.StringIO(export(daemon, job_id, "csv").decode(), newline="")))
    items = timeline(daemon, job_id)
    assert len(lines) == len(items)
    for line, item in zip(lines, items):
        grid, block = item.pop("grid") or [None] * 3, item.pop("block") or [None] * 3
        item.update(zip(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"), grid + block))
        item.update(job=job_id, duration_ns=item["end_ns"] - item["start_ns"])
        assert line == {name: "" if value is None else str(value) for name, value in item.items()}


def test_ncu_csv_is_the_report(daemon):
    fixture = report_fixture.Rows(daemon)
    run = fixture.run([{"metrics": report_fixture.ncu_raw()}, {}])
    expected = daemon.get(f"/runs/{run}/report?format=csv&page=raw").content
    assert export(daemon, fixture.job_of(run), "ncu-csv") == expected and expected.count(b"\n") == 4


# --- openmetrics ------------------------------------------------------------------------------------------------------------


SUMMARY = ("epoch_ms_median", "epoch_ms_min", "images_per_s", "test_accuracy_ratio", "train_loss", "test_loss")


def families(data):
    return list(text_string_to_metric_families(data.decode()))


def test_openmetrics_with_the_parser_of_prometheus_client(daemon, finished):
    data = export(daemon, finished, "openmetrics")
    assert data.endswith(b"# EOF\n")
    samples = {(family.name, sample.labels["run"], sample.labels["pass"]): sample.value
               for family in families(data) for sample in family.samples}
    units = {family.name: family.unit for family in families(data)}
    assert units["rooflined_peak_memory_bytes"] == "bytes" and units["rooflined_epoch_median_seconds"] == "seconds"
    for run in daemon.get(f"/jobs/{finished}/results").json()["runs"]:
        measured = {measurement["name"]: measurement["value"] for measurement in run["measurements"]}
        label = str(run["run"])
        assert samples["rooflined_peak_memory_bytes", label, "timing"] == measured["peak_memory_bytes"]
        traced_s = samples["rooflined_epoch_traced_seconds", label, "activity"]
        assert math.isclose(traced_s, measured["epoch_traced_ms"] * 1e-3, rel_tol=1e-14)  # JSON has 15 digits
        images_per_s = samples["rooflined_images_per_second", label, "timing"]
        assert math.isclose(images_per_s, run["summary"]["images_per_s"], rel_tol=1e-14)
        numbers = [*measured.values(), *(run["summary"][name] for name in SUMMARY)]
        assert sum(key[1] == label for key in samples) == sum(value is not None for value in numbers)


# --- nsys -------------------------------------------------------------------------------------------------------------------

# Queries that read the same columns as the reports of nsys 2024.6 (target-linux-x64/reports/*.py).
NSYS_REPORTS = {
    "cuda_gpu_kern_sum": """SELECT 'kernel', s.value, count(*), sum("end" - start) FROM CUPTI_ACTIVITY_KIND_KERNEL k
        JOIN StringIds s ON s.id = coalesce(k.demangledName, k.shortName) GROUP BY 2""",
    "cuda_api_sum": """SELECT c.label, s.value, count(*), sum("end" - start) FROM CUPTI_ACTIVITY_KIND_RUNTIME r
        LEFT JOIN StringIds s ON s.id = r.nameId JOIN ENUM_NSYS_EVENT_CLASS c ON c.id = r.eventClass GROUP BY 1, 2""",
    "cuda_gpu_mem_time_sum": """SELECT 'memcpy', o.label, count(*), sum("end" - start) FROM CUPTI_ACTIVITY_KIND_MEMCPY m
        JOIN ENUM_CUDA_MEMCPY_OPER o ON o.id = m.copyKind GROUP BY 2
        UNION ALL SELECT 'memset', 'memset', count(*), sum("end" - start) FROM CUPTI_ACTIVITY_KIND_MEMSET""",
    "nvtx_sum": """SELECT d.text, coalesce(s.value, n.text), count(*), sum(n."end" - n.start) FROM NVTX_EVENTS n
        LEFT JOIN StringIds s ON s.id = n.textId
        LEFT JOIN NVTX_EVENTS d ON d.eventType = 75 AND d.domainId = n.domainId
          AND d.globalTid & 0x0000FFFFFF000000 = n.globalTid & 0x0000FFFFFF000000
        WHERE n.eventType IN (59, 60, 70, 71) GROUP BY 2"""}
NSYS_TRACE = """SELECT k.start, k."end", s.value, b.value, g.name, k.deviceId, k.contextId, k.greenContextId, k.streamId,
    k.registersPerThread, k.staticSharedMemory, k.dynamicSharedMemory, k.globalPid / 0x1000000 % 0x1000000, k.graphNodeId,
    r.globalTid / 0x1000000 % 0x1000000, r.globalTid % 0x1000000, c.value
  FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName JOIN StringIds b ON b.id = k.shortName
    LEFT JOIN TARGET_INFO_GPU g ON g.id = k.deviceId LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId
    LEFT JOIN StringIds c ON c.id = r.nameId ORDER BY k.start, k."end" DESC"""


@pytest.fixture
def open_nsys(daemon, tmp_path):
    """open_nsys(job) returns a connection to the export of the job."""
    def open_export(job_id):
        file = tmp_path / f"{job_id}.sqlite"
        file.write_bytes(export(daemon, job_id, "nsys"))
        database = sqlite3.connect(file)
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return database
    return open_export


def test_nsys_reports_in_the_schema_that_nsys_publishes(daemon, inserted_ids, open_nsys):
    job_id, run = inserted_ids
    database = open_nsys(job_id)
    found = {(kind, name): (count, total) for sql in NSYS_REPORTS.values() for kind, name, count, total in database.execute(sql)}
    expected = totals_of_timeline(daemon, job_id)
    labels = {"runtime": "CUDA runtime", "driver": "CUDA driver", "range": "rooflined", "span": "rooflined"}
    copies = {"memcpy HtoD": "Host-to-Device", "memcpy DtoH": "Device-to-Host"}
    assert found == {(labels.get(kind, kind), copies.get(name, name)): value for (kind, name), value in expected.items()
                     if kind not in ("memory", "phase", "overhead")}
    kernels = database.execute(NSYS_TRACE).fetchall()
    assert kernels[0] == (5_000, 15_001, exported_run.KERNEL, "gemm", "NVIDIA H200", 0, 1, None, 7, 40, 1024, 16, 4000, None,
                          4000, 4001, "cudaLaunchKernel_v7000")
    assert kernels[1][2:4] == (exported_run.KERNEL, "gemm") and kernels[1][13] == 3 and kernels[1][15] == 4002
    assert kernels[-1][:4] == (20_000, 20_000, "simple", "simple") and kernels[-1][-1] is None
    kinds = """SELECT s.label, d.label FROM CUPTI_ACTIVITY_KIND_MEMCPY m LEFT JOIN ENUM_CUDA_MEM_KIND s ON s.id = m.srcKind
        LEFT JOIN ENUM_CUDA_MEM_KIND d ON d.id = m.dstKind ORDER BY start"""
    assert database.execute(kinds).fetchall() == [("Pageable", "Device"), ("Device", "Pinned")]
    schema_version = database.execute("SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_SCHEMA_VERSION'").fetchall()
    assert schema_version == [("3.16.1",)]
    assert database.execute("SELECT startTime, stopTime, duration FROM ANALYSIS_DETAILS").fetchall() == [(0, 90_000, 90_000)]
    assert dict(database.execute("SELECT * FROM META_DATA_CAPTURE"))["ROOFLINED_RUN"] == str(run)
    assert database.execute("SELECT pid, globalPid FROM PROCESSES").fetchall() == [(4000, 4000 << 24)]


def test_nsys_leaves_no_file_behind(daemon, inserted_ids):
    export(daemon, inserted_ids[0], "nsys")
    assert not list(daemon.state.glob("export-*"))


def test_a_trace_of_an_older_version_has_no_ids(daemon, open_nsys):
    """Rows of databases before version 23 have neither threads nor contexts. An export leaves these empty instead of writing
    zeros."""
    inserted = traced_run.insert(daemon.state)
    line = next(csv.DictReader(io.StringIO(export(daemon, inserted["job"], "csv").decode())))
    assert line["thread"] == line["process"] == line["context"] == line["device"] == ""
    trace = json.loads(gzip.decompress(export(daemon, inserted["job"], "chrome")))
    kineto_rules.check(trace)
    assert not any({"device", "context"} & set(event.get("args", ())) for event in trace["traceEvents"])
    ids = "SELECT globalTid, globalPid FROM CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1"
    assert open_nsys(inserted["job"]).execute(ids).fetchall() == [(None, None)]
