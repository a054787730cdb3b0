"""Tests server-sent events: their order, resumption, the end of a stream, many streams at once, keep-alives."""

import threading
import time

import pytest
from daemon import endless, job


def test_a_stream_has_all_events_of_a_job(daemon):
    job_id = daemon.submit(job(precisions=["fp32", "fp16"], passes=["timing", "activity", "counters"]))
    events = list(daemon.events(job_id))
    assert [event[0] for event in events] == list(range(1, len(events) + 1))
    states = [data["state"] for _, kind, data in events if kind == "state"]
    assert states == ["queued", "running", "completed"]
    assert events[-1][1:2] == ("state",)
    passes = [(data["variant"], data["pass"]) for _, kind, data in events if kind == "pass"]
    assert sorted(passes) == sorted((variant, name) for variant in ("fp32", "fp16")
                                    for name in ("timing", "activity", "counters"))
    # A second stream reads the events from the store.
    assert list(daemon.events(job_id)) == events
    # A stream continues after the event in Last-Event-ID.
    for after in (1, len(events) - 1):
        assert list(daemon.events(job_id, headers={"Last-Event-ID": str(after)})) == events[after:]
    response = daemon.get(f"/jobs/{job_id}/events", headers={"Last-Event-ID": str(len(events))})
    assert response.status_code == 204


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "", "99999999999999999999"])
def test_a_bad_last_event_id_is_refused(daemon, finished, last):
    response = daemon.get(f"/jobs/{finished}/events", headers={"Last-Event-ID": last})
    assert (response.status_code, response.json()["parameter"]) == (400, "Last-Event-ID")


def test_event_streams_have_their_headers(daemon, finished):
    with daemon.get(f"/jobs/{finished}/events", stream=True) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["Cache-Control"] == "no-store"
    assert daemon.call("HEAD", f"/jobs/{finished}/events").status_code == 200


def test_events_arrive_without_delay(daemon):
    job_id = daemon.submit(endless())
    seen_at = {}
    for _, kind, data in daemon.events(job_id):
        if kind == "state":
            seen_at[data["state"]] = time.monotonic()
            if data["state"] == "running":
                cancelled_at = time.monotonic()
                assert daemon.call("DELETE", f"/jobs/{job_id}").status_code == 202
    assert seen_at["cancelled"] - cancelled_at < 10  # not only at the next comment, which comes after 15 s


def test_many_listeners_get_all_events(daemon):
    job_id = daemon.submit(endless())
    daemon.wait(job_id, states=("running",))
    received = []

    def listen():
        import requests
        from daemon import read_events
        with requests.get(f"{daemon.url}/jobs/{job_id}/events", stream=True, timeout=60) as response:
            received.append([event[0] for event in read_events(response.iter_lines(chunk_size=1))])

    listeners = [threading.Thread(target=listen) for _ in range(150)]
    for listener in listeners:
        listener.start()
    daemon.wait_for_metric("rooflined_event_listeners", lambda value: value == 150)
    assert daemon.get("/healthz").status_code == 200  # event streams occupy no thread
    daemon.call("DELETE", f"/jobs/{job_id}")
    for listener in listeners:
        listener.join(180)
    assert len(received) == 150
    longest = max(received, key=len)
    assert all(ids == longest for ids in received) and longest == list(range(1, len(longest) + 1))
    # the daemon removes a stream shortly after its client has received the end
    daemon.wait_for_metric("rooflined_event_listeners", lambda value: value == 0)


def test_the_number_of_streams_is_limited(start):
    own_daemon = start("--connection-limit", "24")  # half of the connections may be event streams
    job_id = own_daemon.submit(endless())
    streams = []
    for _ in range(20):
        import requests
        response = requests.get(f"{own_daemon.url}/jobs/{job_id}/events", stream=True, timeout=60)
        streams.append(response)
        if response.status_code != 200:
            break
    assert [stream.status_code for stream in streams] == [200] * 12 + [503]
    refused = own_daemon.get(f"/jobs/{job_id}/events")
    assert refused.status_code == 503 and "Retry-After" in refused.headers
    for stream in streams:
        stream.close()
    own_daemon.cancel_all()
    assert own_daemon.stop() == 0


def test_comments_keep_a_stream_open(start):
    """A queued job causes no events. Comments keep its stream open for longer than the request time-out."""
    own_daemon = start("--request-timeout-s", "2")
    own_daemon.submit({"kind": "kernel", "device": "cpu", "kernel": "copy", "shape": {"n": 1000}, "variant": "scalar",
                       "samples": 1000, "pause_ms": 100})  # occupies the device for minutes, and hardly the processor
    waiting = own_daemon.submit(endless())
    comments, started = 0, time.monotonic()
    with own_daemon.get(f"/jobs/{waiting}/events", stream=True, timeout=60) as response:
        for line in response.iter_lines(chunk_size=1):
            comments += line.startswith(b":")
            if comments == 1:
                break
    assert comments == 1 and time.monotonic() - started > 10
    own_daemon.cancel_all()
    assert own_daemon.stop() == 0


def test_stopping_ends_streams(start):
    own_daemon = start()
    job_id = own_daemon.submit(endless())
    own_daemon.wait(job_id, states=("running",))
    with own_daemon.get(f"/jobs/{job_id}/events", stream=True) as response:
        lines = response.iter_lines(chunk_size=1)
        next(lines)
        assert own_daemon.stop() == 0
        for _ in lines:
            pass
