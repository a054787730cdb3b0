"""Tests that slow requests of one kind delay no other kind, that queues are bounded, and that the daemon stops without waiting
for queries."""

import contextlib
import pathlib
import re
import resource
import select
import selectors
import signal
import socket
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from daemon import endless, job, read_events
from report_fixture import Rows

HISTORY = "/history?metric=time_cold_us_median&limit=10000"


def send(daemon, path):
    raw = socket.create_connection((daemon.host, daemon.port), timeout=60)
    raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    return raw


def receive(raw):
    with raw:
        answer = b""
        while chunk := raw.recv(1 << 16):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), body


@pytest.fixture(scope="module")
def daemon_with_history(start):
    """A daemon with 400 runs. Reading their history takes so long that many requests for it are queued."""
    started = start("--request-deadline-s", "600")
    rows = Rows(started)
    job_id = rows.job()
    for _ in range(400):
        rows.run([], job=job_id)
    return started


def instant_2100(ns):
    return f"2100-01-01T00:00:00.{ns:09}Z"  # different requests with the same reply, so that none is answered from the cache


def test_requests_beyond_a_full_queue_are_refused_and_delay_no_other_kind(daemon_with_history):
    flood = [send(daemon_with_history, f"{HISTORY}&to={instant_2100(i)}") for i in range(600)]
    for path in ("/healthz", "/readyz", "/metrics", "/devices", "/jobs/1/comparison"):
        assert daemon_with_history.get(path).status_code == 200
    job_id = daemon_with_history.submit(job())
    waiting = select.poll()
    for raw in flood:
        waiting.register(raw, select.POLLIN)
    assert len(waiting.poll(0)) < len(flood), "the other requests waited for the flood"
    answers = [receive(raw) for raw in flood]
    refused = [(head, body) for status, head, body in answers if status == 503]
    assert {status for status, _, _ in answers} == {200, 503}
    assert all('"code":"busy"' in body.decode() and "Retry-After: 1" in head for head, body in refused)
    daemon_with_history.wait(job_id)


def test_the_daemon_stops_without_waiting_for_queued_requests(start):
    own_daemon = start()
    rows = Rows(own_daemon)
    job_id = rows.job()
    for _ in range(300):
        rows.run([], job=job_id)
    own_daemon.submit(endless())
    events = send(own_daemon, "/jobs/2/events")
    flood = [send(own_daemon, f"{HISTORY}&to={instant_2100(i)}") for i in range(100)]
    begin = time.monotonic()
    assert own_daemon.stop() == 0
    assert time.monotonic() - begin < 10
    for raw in [*flood, events]:
        with contextlib.suppress(ConnectionResetError):
            raw.recv(1 << 16)
        raw.close()


def test_connections_of_clients_that_left_while_queued_are_closed(daemon_with_history):
    for _ in range(3):
        for raw in [send(daemon_with_history, f"{HISTORY}&to={instant_2100(i)}") for i in range(100)]:
            raw.close()
    assert daemon_with_history.get("/jobs").status_code == 200
    daemon_with_history.wait_for_metric("rooflined_http_connections", lambda value: value <= 10)


def count_replies(daemon, route, status):
    found = re.search(rf'http_requests_total{{route="{route}",status="{status}"}} (\d+)', daemon.get("/metrics").text)
    return int(found[1]) if found else 0


def suspend(process):
    """Sends SIGSTOP and waits until all threads of the process have stopped."""
    process.send_signal(signal.SIGSTOP)
    threads = list(pathlib.Path(f"/proc/{process.pid}/task").iterdir())
    while any((thread / "stat").read_text().rpartition(") ")[2][0] != "T" for thread in threads):
        time.sleep(0.001)


def test_requests_of_clients_that_left_are_dropped(daemon_with_history):
    """SIGSTOP stops the daemon until the clients have been gone for longer than the grace of 0.1 s. Replies that the daemon made
    before the stop do not count. Requests that it read only after the stop may get replies, so some replies are allowed."""
    # Waits until no request of another test is left.
    daemon_with_history.wait_for_metric("rooflined_http_connections", lambda value: value <= 1)
    before = count_replies(daemon_with_history, "getHistory", 200)
    clients = [send(daemon_with_history, f"{HISTORY}&to={instant_2100(1000 + i)}") for i in range(60)]
    time.sleep(0.03)
    suspend(daemon_with_history.process)
    answered = len(select.select(clients, [], [], 0)[0])
    for raw in clients:
        raw.close()
    time.sleep(0.2)
    daemon_with_history.process.send_signal(signal.SIGCONT)
    assert daemon_with_history.get(f"{HISTORY}&to={instant_2100(2000)}").status_code == 200
    daemon_with_history.wait_for_metric("rooflined_http_connections", lambda value: value <= 5)
    made_replies = count_replies(daemon_with_history, "getHistory", 200) - before - 1
    assert made_replies - answered < 30, f"{made_replies} replies, {answered} of them before the clients left"


def test_a_request_after_its_deadline_is_refused(start):
    """SIGSTOP stops the daemon for longer than the deadline while requests are queued or run. The deadline has passed when the
    daemon continues. Each attempt stops it a little later, until a request is late."""
    own_daemon = start("--request-deadline-s", "1")
    rows = Rows(own_daemon)
    job_id = rows.job()
    for _ in range(200):
        rows.run([], job=job_id)
    late = []
    for attempt in range(20):
        with ThreadPoolExecutor(60) as threads:
            urls = [f"{own_daemon.url}{HISTORY}&to={instant_2100(100 * attempt + i)}" for i in range(60)]
            flood = [threads.submit(requests.get, url, timeout=60) for url in urls]
            time.sleep(0.005 * attempt)
            own_daemon.process.send_signal(signal.SIGSTOP)
            time.sleep(1.2)
            own_daemon.process.send_signal(signal.SIGCONT)
        answers = [request.result() for request in flood]
        assert {answer.status_code for answer in answers} <= {200, 503}
        late = [answer for answer in answers if answer.status_code == 503]
        if late:
            break
    assert late and all(answer.json()["code"] == "deadline_exceeded" for answer in late)
    for answer in late:
        own_daemon.contract.check("GET", answer.request.url, None, answer)
        assert answer.headers["Retry-After"] == "5"
    assert any(own_daemon.get(HISTORY).status_code == 200 for _ in range(60))  # a pause of the machine can make a request late
    assert own_daemon.stop() == 0


def test_pools_serve_head_and_keepalive_requests(daemon_with_history):
    with requests.Session() as session:
        for _ in range(20):
            head = session.head(daemon_with_history.url + "/jobs/1/comparison")
            response = session.get(daemon_with_history.url + "/jobs/1/comparison")
            assert (head.status_code, head.content) == (200, b"") and head.headers["Content-Length"] == str(len(response.content))
            assert session.get(daemon_with_history.url + "/jobs/999999").status_code == 404
            assert session.head(daemon_with_history.url + HISTORY).status_code == 200


def wait_for_events(daemon, job_id, count):
    until = time.monotonic() + 120
    while time.monotonic() < until:
        with contextlib.closing(sqlite3.connect(f"file:{daemon.state / 'rooflined.db'}?mode=ro", uri=True)) as database:
            if database.execute("SELECT count(*) FROM events WHERE job_id = ?", [job_id]).fetchone()[0] >= count:
                return
        time.sleep(0.1)
    raise AssertionError(f"job {job_id} has fewer than {count} events")


def test_streams_share_what_they_read(start):
    """Streams begin at the first or the second event of a running job. Each stream gets all events from there on."""
    own_daemon = start()
    job_id = own_daemon.submit(endless())
    own_daemon.wait(job_id, states=("running",))
    received = []

    def follow(after):
        headers = {"Last-Event-ID": str(after)} if after else {}
        with requests.get(f"{own_daemon.url}/jobs/{job_id}/events", stream=True, headers=headers, timeout=60) as response:
            received.append((after, [event[0] for event in read_events(response.iter_lines(chunk_size=1))]))

    threads = [threading.Thread(target=follow, args=(i % 2,)) for i in range(60)]
    for thread in threads:
        thread.start()
        time.sleep(0.02)
    wait_for_events(own_daemon, job_id, 4)
    own_daemon.call("DELETE", f"/jobs/{job_id}")
    for thread in threads:
        thread.join(180)
    assert len(received) == len(threads)
    last = max(ids[-1] for _, ids in received)
    assert last > 3 and all(ids == list(range(after + 1, last + 1)) for after, ids in received)
    assert own_daemon.stop() == 0


def test_a_thousand_streams_get_all_events(start):
    """Each of 1000 streams gets all events of a running job, in order, while other requests are answered without delay."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    own_daemon = start("--connection-limit", "2200")
    job_id = own_daemon.submit(endless())
    own_daemon.wait(job_id, states=("running",))
    received, slowest = {}, 0
    with selectors.DefaultSelector() as selector:
        for _ in range(1000):
            raw = send(own_daemon, f"/jobs/{job_id}/events")
            selector.register(raw, selectors.EVENT_READ)
            received[raw] = b""
        own_daemon.wait_for_metric("rooflined_event_listeners", lambda value: value == 1000)
        for _ in range(10):
            begin = time.monotonic()
            assert own_daemon.get("/healthz").status_code == 200
            slowest = max(slowest, time.monotonic() - begin)
            time.sleep(0.1)
        wait_for_events(own_daemon, job_id, 3)
        own_daemon.call("DELETE", f"/jobs/{job_id}")
        while selector.get_map():
            for key, _ in selector.select(60):
                chunk = key.fileobj.recv(1 << 16)
                received[key.fileobj] += chunk
                if not chunk:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
    streams = [[int(number) for number in re.findall(rb"^id: (\d+)$", text, re.M)] for text in received.values()]
    longest = max(streams, key=len)
    assert longest == list(range(1, len(longest) + 1)) and len(longest) > 3
    assert all(stream == longest for stream in streams) and slowest < 5
    assert own_daemon.stop() == 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_stream_from_an_event_beyond_the_last_has_no_events(daemon, finished):
    assert daemon.get(f"/jobs/{finished}/events", headers={"Last-Event-ID": "1000000"}).status_code == 204
    job_id = daemon.submit(endless())
    raw = socket.create_connection((daemon.host, daemon.port), timeout=60)
    raw.sendall(f"GET /jobs/{job_id}/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 1000000\r\n\r\n".encode())
    assert raw.recv(4096).startswith(b"HTTP/1.1 200 ")
    events = []
    follower = threading.Thread(target=lambda: events.extend(event[0] for event in daemon.events(job_id)))
    follower.start()
    daemon.wait(job_id, states=("running",))
    daemon.call("DELETE", f"/jobs/{job_id}")
    follower.join(180)
    assert events == list(range(1, len(events) + 1)) and len(events) >= 3
    while chunk := raw.recv(4096):
        assert b"id:" not in chunk
        if chunk.endswith(b"0\r\n\r\n"):
            break
    raw.close()
