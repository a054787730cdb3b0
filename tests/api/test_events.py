"""Server-sent events: order, resumption, the end of a stream, many streams at once, keep-alives."""

import threading
import time

import pytest
from daemon import endless, job


def test_all_events_of_a_job(daemon):
    number = daemon.submit(job(precisions=["fp32", "fp16"], passes=["timing", "activity", "counters"]))
    events = list(daemon.events(number))
    assert [event[0] for event in events] == list(range(1, len(events) + 1))
    states = [data["state"] for _, kind, data in events if kind == "state"]
    assert states == ["queued", "running", "completed"]
    assert events[-1][1:2] == ("state",)
    passes = [(data["variant"], data["pass"]) for _, kind, data in events if kind == "pass"]
    assert sorted(passes) == sorted((variant, name) for variant in ("fp32", "fp16")
                                    for name in ("timing", "activity", "counters"))
    # again, from the store
    assert list(daemon.events(number)) == events
    # from the middle
    for after in (1, len(events) - 1):
        assert list(daemon.events(number, headers={"Last-Event-ID": str(after)})) == events[after:]
    response = daemon.get(f"/jobs/{number}/events", headers={"Last-Event-ID": str(len(events))})
    assert response.status_code == 204


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "", "99999999999999999999"])
def test_bad_last_event_id(daemon, finished, last):
    response = daemon.get(f"/jobs/{finished}/events", headers={"Last-Event-ID": last})
    assert (response.status_code, response.json()["parameter"]) == (400, "Last-Event-ID")


def test_headers(daemon, finished):
    with daemon.get(f"/jobs/{finished}/events", stream=True) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["Cache-Control"] == "no-store"
    assert daemon.call("HEAD", f"/jobs/{finished}/events").status_code == 200


def test_events_arrive_without_delay(daemon):
    number = daemon.submit(endless())
    seen_at = {}
    for _, kind, data in daemon.events(number):
        if kind == "state":
            seen_at[data["state"]] = time.monotonic()
            if data["state"] == "running":
                cancelled_at = time.monotonic()
                assert daemon.call("DELETE", f"/jobs/{number}").status_code == 202
    assert seen_at["cancelled"] - cancelled_at < 10  # before the next comment, after 15 s


def test_many_listeners(daemon):
    number = daemon.submit(endless())
    daemon.wait(number, states=("running",))
    received = []

    def listen():
        import requests
        from daemon import read_events
        with requests.get(f"{daemon.url}/jobs/{number}/events", stream=True, timeout=60) as response:
            received.append([event[0] for event in read_events(response.iter_lines(chunk_size=1))])

    listeners = [threading.Thread(target=listen) for _ in range(150)]
    for listener in listeners:
        listener.start()
    daemon.wait_for_metric("rooflined_event_listeners", lambda value: value == 150)
    assert daemon.get("/healthz").status_code == 200  # event streams occupy no thread
    daemon.call("DELETE", f"/jobs/{number}")
    for listener in listeners:
        listener.join(60)
    assert len(received) == 150
    longest = max(received, key=len)
    assert all(ids == longest for ids in received) and longest == list(range(1, len(longest) + 1))
    # a client sees the end of its stream before the daemon removes the stream
    daemon.wait_for_metric("rooflined_event_listeners", lambda value: value == 0)


def test_the_number_of_streams_is_limited(start):
    other = start("--connection-limit", "24")  # half of the connections may be event streams
    number = other.submit(endless())
    streams = []
    for _ in range(20):
        import requests
        response = requests.get(f"{other.url}/jobs/{number}/events", stream=True, timeout=60)
        streams.append(response)
        if response.status_code != 200:
            break
    assert [stream.status_code for stream in streams] == [200] * 12 + [503]
    refused = other.get(f"/jobs/{number}/events")
    assert refused.status_code == 503 and "Retry-After" in refused.headers
    for stream in streams:
        stream.close()
    other.cancel_all()
    assert other.stop() == 0


def test_comments_keep_a_stream_open(start):
    """A queued job has no events: comments keep its stream open beyond the request time-out."""
    other = start("--request-timeout-s", "2")
    other.submit(endless())
    waiting = other.submit(endless())
    comments, started = 0, time.monotonic()
    with other.get(f"/jobs/{waiting}/events", stream=True, timeout=60) as response:
        for line in response.iter_lines(chunk_size=1):
            comments += line.startswith(b":")
            if comments == 1:
                break
    assert comments == 1 and time.monotonic() - started > 10
    other.cancel_all()
    assert other.stop() == 0


def test_stopping_ends_streams(start):
    other = start()
    number = other.submit(endless())
    other.wait(number, states=("running",))
    with other.get(f"/jobs/{number}/events", stream=True) as response:
        lines = response.iter_lines(chunk_size=1)
        next(lines)
        assert other.stop() == 0
        for _ in lines:
            pass
