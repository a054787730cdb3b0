"""Checks a trace against the Trace Event Format, and against what Perfetto and chrome://tracing need to show it correctly."""

import collections
import json

METADATA_NAMES = {"process_name", "thread_name"}
MAX_THREAD = 2**31 - 1  # Perfetto keeps a thread id in 32 bits


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


def check_metadata(event):
    assert event["name"] in METADATA_NAMES and set(event) == {"name", "ph", "pid", "tid", "args"}, event
    assert set(event["args"]) == {"name"} and event["args"]["name"], event


def check_complete(event):
    assert set(event) == {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"}, event
    assert event["name"] and event["cat"] and event["ts"] >= 0 and event["dur"] >= 0, event
    assert None not in event["args"].values(), f"{event}: viewers show a null as a value"


def check(trace):
    """Returns the complete events by thread. Checks that there are only metadata and complete events (so that no begin event
    lacks its end), that each process and thread has one name, given before its first event, and that the events of a thread are
    sorted by start and are nested."""
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"} and trace["displayTimeUnit"] in ("ms", "ns")
    json.dumps(trace, allow_nan=False)
    processes, threads, by_thread = {}, {}, collections.defaultdict(list)
    for event in trace["traceEvents"]:
        thread = event["pid"], event["tid"]
        assert type(event["pid"]) is int and event["pid"] > 0 and type(event["tid"]) is int and 0 <= event["tid"] <= MAX_THREAD
        if event["ph"] == "M":
            check_metadata(event)
            names, key = (threads, thread) if event["name"] == "thread_name" else (processes, event["pid"])
            assert names.setdefault(key, event["args"]["name"]) == event["args"]["name"], f"{event} gives another name"
        else:
            assert event["ph"] == "X", event
            check_complete(event)
            assert event["pid"] in processes and thread in threads, f"{event} is in no named thread"
            by_thread[thread].append(event)
    for thread, events in by_thread.items():
        spans = spans_of(events)
        assert spans == sorted(spans, key=lambda span: (span[0], -span[1])), f"thread {thread} is not sorted"
        assert are_nested(spans), f"events of thread {thread} overlap"
    return by_thread
