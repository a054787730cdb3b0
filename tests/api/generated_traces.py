"""Generates trace files with known totals: Kineto's JSON, and SQLite with nsys's schema. A step is a launch of a GEMM, a launch
of a short kernel, a copy and a synchronization. A step begins every STEP_US; the host works in the rest of that time."""

import gzip
import json
import sqlite3

GEMM = "void gemm_kernel<float, 128>(float const*, float const*, float*)"
STEP_US, GEMM_US, SMALL_US, COPY_US = 100.0, 50.0, 5.0, 10.0
LAUNCH_US, COPY_BYTES = 4.0, 4096


class Step:
    """The calls and operations of step number i, counted from 0. Times are in ns."""

    def __init__(self, i, base_ns):
        self.start = base_ns + round(i * STEP_US * 1000)
        self.correlation = 10 * i + 1

    def calls(self):
        """Yields (name, start, end, correlation) of each API call, in the order of their starts."""
        names = ("cudaLaunchKernel", "cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize")
        for number, name in enumerate(names):
            start = self.start + round(number * (LAUNCH_US + 1) * 1000)
            yield name, start, start + round(LAUNCH_US * 1000), self.correlation + number

    def operations(self):
        """Yields (kind, name, start, end, correlation) of each operation, in the order of their starts."""
        start = self.start + 10_000
        for number, (kind, name, us) in enumerate((("kernel", GEMM, GEMM_US), ("kernel", "relu(float*)", SMALL_US),
                                                   ("memcpy", "Memcpy DtoH (Device -> Pinned)", COPY_US))):
            yield kind, name, start, start + round(us * 1000), self.correlation + number
            start += round(us * 1000) + 1_000


def kineto(steps, base_ns=1_700_000_000_123_456_789, more_events=(), **extra_members):
    """Returns the document of a PyTorch profiler's trace."""
    def us_text(ns):
        """Returns the time in µs with all its digits, which a float would lose: as a string between @ signs. The last line of
        kineto removes these signs and the quotes from the JSON text, so that the string becomes a number."""
        return f"@{ns // 1000}.{ns % 1000:03d}@"

    events = [{"ph": "M", "name": "process_name", "pid": 77, "tid": 0, "args": {"name": "python"}}]
    for step in (Step(i, base_ns) for i in range(steps)):
        events.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 77, "tid": 78,
                       "ts": us_text(step.start), "dur": us_text(round(STEP_US * 1000) - 1), "args": {"External id": 1}})
        for name, start, end, correlation in step.calls():
            events.append({"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 77, "tid": 78, "ts": us_text(start),
                           "dur": us_text(end - start), "args": {"External id": 2, "cbid": 211, "correlation": correlation}})
            events.append({"ph": "s", "id": correlation, "pid": 77, "tid": 78, "ts": us_text(start), "cat": "ac2g",
                           "name": "ac2g"})
        for kind, name, start, end, correlation in step.operations():
            args = {"External id": 2, "device": 0, "context": 1, "stream": 7, "correlation": correlation}
            if kind == "kernel":
                args |= {"queued": 0, "registers per thread": 64, "shared memory": 1024, "blocks per SM": 1.5,
                         "warps per SM": 6.0, "grid": [128, 2, 1], "block": [256, 1, 1], "est. achieved occupancy %": 40}
            else:
                args |= {"bytes": COPY_BYTES, "memory bandwidth (GB/s)": 0.4}
            events.append({"ph": "X", "cat": "kernel" if kind == "kernel" else "gpu_memcpy", "name": name, "pid": 0, "tid": 7,
                           "ts": us_text(start), "dur": us_text(end - start), "args": args})
    document = {"schemaVersion": 1, "deviceProperties": [
        {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84942979072, "computeMajor": 9, "computeMinor": 0,
         "maxThreadsPerBlock": 1024, "regsPerMultiprocessor": 65536, "warpSize": 32, "sharedMemPerMultiprocessor": 233472,
         "numSms": 132}], "traceEvents": [*events, *more_events], "traceName": "trace.json", **extra_members}
    return json.dumps(document).replace('"@', "").replace('@"', "").encode()


def zipped(data):
    return gzip.compress(data, 1, mtime=0)


NSYS_SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.11.0'), ('EXPORT_PRODUCT_VERSION', '2024.5.1');
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, l2CacheSize INTEGER,
  totalMemory INTEGER, smCount INTEGER, uuid TEXT, cuDevice INTEGER, computeMajor INTEGER, computeMinor INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA H100 80GB HBM3', '0000:01:00.0', 52428800, 84942979072, 132, 'GPU-7', 0, 9, 0);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,
  gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
  staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
  copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL,
  eventId INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,
  color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
"""
GLOBAL_PID = (1 << 56) | (77 << 24)
GLOBAL_TID = GLOBAL_PID | 78


def nsys(path, steps, base_ns=500_000, nvtx_text_column=False):
    """Writes an nsys export to the path. nvtx_text_column: names of ranges are texts, as in the exports of older versions."""
    db = sqlite3.connect(path)
    db.executescript(NSYS_SCHEMA)
    if nvtx_text_column:
        db.execute("ALTER TABLE NVTX_EVENTS DROP COLUMN textId")
    ids = {}

    def string_id(text):
        """Returns the text's id in StringIds. Inserts the text if it has none."""
        if text not in ids:
            ids[text] = len(ids) + 1
            db.execute("INSERT INTO StringIds VALUES (?, ?)", [ids[text], text])
        return ids[text]

    for step in (Step(i, base_ns) for i in range(steps)):
        end = step.start + round(STEP_US * 1000) - 1
        text = "step" if nvtx_text_column else string_id("step")
        db.execute(f"INSERT INTO NVTX_EVENTS (start, end, eventType, globalTid, {'text' if nvtx_text_column else 'textId'})"
                   " VALUES (?, ?, 59, ?, ?)", [step.start, end, GLOBAL_TID, text])
        for call, start, end, correlation in step.calls():
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 1, ?, ?, ?, 0, NULL)",
                       [start, end, GLOBAL_TID, correlation, string_id(call + "_v7000")])
        for kind, text, start, end, correlation in step.operations():
            if kind == "kernel":
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, NULL, 7, ?, ?, ?, ?, 64, 128, 2, 1, 256, "
                           "1, 1, 0, 1024, NULL)", [start, end, correlation, GLOBAL_PID, string_id(text),
                                                    string_id(text.split("(")[0])])
            else:
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 0, 1, 7, ?, ?, ?, 2, 2, 1)",
                           [start, end, correlation, GLOBAL_PID, COPY_BYTES])
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (?, ?, 0, 1, 7, ?, ?, 1, 0)",
                   [step.start, step.start + 10, step.correlation, GLOBAL_PID])
    db.commit()
    db.close()
    return path
