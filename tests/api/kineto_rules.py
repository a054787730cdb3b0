"""Checks that a trace has what readers of Kineto's traces need: the columns and types of HolisticTraceAnalysis
(hta/common/trace_parser.py, hta/configs/default_event_args.py), and what Perfetto and chrome://tracing need to show it
correctly."""

import collections
import json

MAX_THREAD = 2**31 - 1  # Perfetto keeps a thread id in 32 bits
HTA_ARGUMENTS = {"External id": int, "correlation": int, "stream": int, "device": int, "context": int, "bytes": int,
                 "registers per thread": int, "shared memory": int, "memory bandwidth (GB/s)": (int, float), "grid": list,
                 "block": list}
CATEGORIES = {"kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset", "memory": "cpu_instant_event",
              "runtime": "cuda_runtime", "driver": "cuda_driver", "range": "user_annotation", "overhead": "overhead",
              "span": "cpu_op", "phase": "gpu_user_annotation"}
WORK, CALLS = ("kernel", "gpu_memcpy", "gpu_memset"), ("cuda_runtime", "cuda_driver")


def ns(us):
    """Converts the format's microseconds to whole nanoseconds."""
    whole = round(us * 1e3)
    assert abs(us * 1e3 - whole) < 1e-3, f"{us} µs are not whole nanoseconds"
    return whole


def spans_of(events):
    """Returns (start, end) of each event in ns."""
    return [(ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])) for event in events]


def are_nested(spans):
    """Returns true when no two spans overlap without one containing the other."""
    open_ends = []
    for start, end in spans:
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            return False
        open_ends.append(end)
    return True


def check_flows(trace, events):
    """Checks that each flow begins once, at a call, and ends at an operation with the same correlation."""
    keys = {"calls": set(), "work": set(), "others": set()}
    for event in events:
        key = event["pid"], event["tid"], event["ts"], event["args"].get("correlation")
        keys["work" if event["cat"] in WORK else "calls" if event["cat"] in CALLS else "others"].add(key)
    flows = [event for event in trace["traceEvents"] if event["ph"] in "sf"]
    assert all(event["cat"] == event["name"] == "ac2g" for event in flows)
    begun = collections.Counter(event["id"] for event in flows if event["ph"] == "s")
    ended = {event["id"] for event in flows if event["ph"] == "f"}
    assert set(begun) == ended and set(begun.values()) <= {1}
    for event in flows:
        key = event["pid"], event["tid"], event["ts"], event["id"]
        assert key in keys["calls"] if event["ph"] == "s" else key in keys["work"] and event["bp"] == "e", event
    return ended


def check(trace):
    """Checks a trace and returns its complete events (phase X) by thread."""
    json.dumps(trace, allow_nan=False)
    assert trace["schemaVersion"] == 1 and trace["distributedInfo"]["rank"] == 0 and trace["displayTimeUnit"] in ("ms", "ns")
    processes, threads, by_thread, events = {}, {}, collections.defaultdict(list), []
    for event in trace["traceEvents"]:
        assert {"ph", "cat", "name", "pid", "tid", "ts"} <= set(event), event  # HTA makes columns of them
        assert type(event["pid"]) is int and type(event["tid"]) is int and 0 <= event["tid"] <= MAX_THREAD, event
        thread = event["pid"], event["tid"]
        if event["ph"] == "M":
            names, key = (threads, thread) if event["name"] == "thread_name" else (processes, event["pid"])
            if event["name"] in ("thread_name", "process_name"):
                assert names.setdefault(key, event["args"]["name"]) == event["args"]["name"], f"{event} gives another name"
        elif event["ph"] in "Xi":
            assert event["pid"] in processes and thread in threads, f"{event} is in no named thread"
            assert (event["ph"] == "i") == (event["cat"] == "cpu_instant_event")
            for name, value in event["args"].items():
                assert name not in HTA_ARGUMENTS or isinstance(value, HTA_ARGUMENTS[name]), event
            if event["ph"] == "X":
                assert event["dur"] >= 0, event
                events.append(event)
                by_thread[thread].append(event)
        else:
            assert event["ph"] in "sf", event
    for event in events:
        assert ("stream" in event["args"]) == (event["cat"] in WORK), event  # HTA takes an event with a stream for device work
    check_flows(trace, events)
    for thread, found in by_thread.items():
        spans = spans_of(found)
        assert spans == sorted(spans, key=lambda span: (span[0], -span[1])), f"thread {thread} is not sorted"
        assert are_nested(spans), f"events of thread {thread} overlap"
    return by_thread
