"""Server-sent events: order, resumption, the end of a stream, many listeners, keep-alives."""

import threading
import time

import pytest
from daemon import endless, job


def test_a_whole_life(daemon):
    number = daemon.submit(job(precisions=["fp32", "fp16"], passes=["timing", "activity", "counters"]))
    events = list(daemon.events(number))
    assert [event[0] for event in events] == list(range(1, len(events) + 1))
    states = [data["state"] for _, kind, data in events if kind == "state"]
    assert states == ["queued", "running", "completed"]
    assert events[-1][1:2] == ("state",)
    passes = [(data["variant"], data["pass"]) for _, kind, data in events if kind == "pass"]
    assert sorted(passes) == sorted((variant, name) for variant in ("fp32", "fp16")
                                    for name in ("timing", "activity", "counters"))
    # the same again, from the store
    assert list(daemon.events(number)) == events
    # and from the middle
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


def test_events_come_as_they_happen(daemon):
    number = daemon.submit(endless())
    moments = {}
    for _, kind, data in daemon.events(number):
        if kind == "state":
            moments[data["state"]] = time.monotonic()
            if data["state"] == "running":
                asked = time.monotonic()
                assert daemon.call("DELETE", f"/jobs/{number}").status_code == 202
    assert moments["cancelled"] - asked < 10  # not when the next comment is due


def test_many_listeners(daemon):
    number = daemon.submit(endless())
    daemon.wait(number, states=("running",))
    heard = []

    def listen():
        import requests
        from daemon import read_events
        with requests.get(f"{daemon.url}/jobs/{number}/events", stream=True, timeout=60) as response:
            heard.append([event[0] for event in read_events(response.iter_lines(chunk_size=1))])

    listeners = [threading.Thread(target=listen) for _ in range(150)]
    for listener in listeners:
        listener.start()
    daemon.wait_for_metric("rooflined_event_listeners", lambda value: value == 150)
    assert daemon.get("/healthz").status_code == 200  # listeners don't hold others up
    daemon.call("DELETE", f"/jobs/{number}")
    for listener in listeners:
        listener.join(60)
    assert len(heard) == 150
    longest = max(heard, key=len)
    assert all(ids == longest for ids in heard) and longest == list(range(1, len(longest) + 1))
    # a client sees the end before the daemon has put the listener away
    daemon.wait_for_metric("rooflined_event_listeners", lambda value: value == 0)


def test_listeners_are_bounded(start):
    other = start("--connection-limit", "24")  # half of them may listen
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


def test_a_listener_survives_silence_and_the_request_limit(start):
    """A job that waits says nothing: comments keep the stream open beyond every other limit."""
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
