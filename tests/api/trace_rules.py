"""What the Trace Event Format asks of a trace, and what Perfetto and chrome://tracing need to show it as it was."""

import collections
import json

NAMING = {"process_name", "thread_name"}
THREAD_MOST = 2**31 - 1  # Perfetto keeps a thread in 32 bits


def ns(us):
    """The format's microseconds as the whole nanoseconds that they stand for."""
    whole = round(us * 1e3)
    assert abs(us * 1e3 - whole) < 1e-3, f"{us} µs are not whole nanoseconds"
    return whole


def spans_of(events):
    """(start, end) of each, in ns."""
    return [(ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])) for event in events]


def nested(spans):
    """Does each lie in the one before that has not ended, or after it?"""
    open_ends = []
    for start, end in spans:
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            return False
        open_ends.append(end)
    return True


def check_metadata(event):
    assert event["name"] in NAMING and set(event) == {"name", "ph", "pid", "tid", "args"}, event
    assert set(event["args"]) == {"name"} and event["args"]["name"], event


def check_complete(event):
    assert set(event) == {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"}, event
    assert event["name"] and event["cat"] and event["ts"] >= 0 and event["dur"] >= 0, event
    assert None not in event["args"].values(), f"{event}: viewers show a null as a value"


def check(trace):
    """Events are metadata and complete ones alone, so that no begin can miss its end. Each process and thread has one name,
    before its first event; the events of a thread come in the order of their starts, and lie apart or within each other. Returns
    them by thread."""
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"} and trace["displayTimeUnit"] in ("ms", "ns")
    json.dumps(trace, allow_nan=False)
    processes, threads, by_thread = {}, {}, collections.defaultdict(list)
    for event in trace["traceEvents"]:
        place = event["pid"], event["tid"]
        assert type(event["pid"]) is int and event["pid"] > 0 and type(event["tid"]) is int and 0 <= event["tid"] <= THREAD_MOST
        if event["ph"] == "M":
            check_metadata(event)
            named, what = (threads, place) if event["name"] == "thread_name" else (processes, event["pid"])
            assert named.setdefault(what, event["args"]["name"]) == event["args"]["name"], f"{event} gives another name"
        else:
            assert event["ph"] == "X", event
            check_complete(event)
            assert event["pid"] in processes and place in threads, f"{event} is in no named thread"
            by_thread[place].append(event)
    for place, events in by_thread.items():
        spans = spans_of(events)
        assert spans == sorted(spans, key=lambda span: (span[0], -span[1])), f"thread {place} is out of order"
        assert nested(spans), f"events of thread {place} overlap"
    return by_thread
