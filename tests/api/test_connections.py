"""Tests that the daemon closes a connection without delay when the client leaves."""

import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import ssl
import time

import pytest
from daemon import endless, make_token
from report_fixture import Rows

HOST = b"Host: localhost\r\n"
POST = b"POST /jobs HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
CLOSE_LIMIT_S = 60  # limit for the daemon to close the connections of clients that left; its time-outs do so after 600 s
STREAM_CLOSE_LIMIT_S = 10  # limit for event streams; after 15 s the first keep-alive would fail and close the connection anyway


def connect(daemon):
    return socket.create_connection((daemon.host, daemon.port), timeout=60)


def open_sockets(daemon):
    count = 0
    for number in os.listdir(f"/proc/{daemon.process.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(f"/proc/{daemon.process.pid}/fd/{number}").startswith("socket:")
    return count


@pytest.fixture(scope="module")
def daemon_without_timeouts(start):
    """A daemon whose time-outs close no connection during a test."""
    return start("--request-timeout-s", "600", "--request-deadline-s", "600")


@pytest.fixture(scope="module")
def tls_daemon_without_timeouts(start, certificate):
    """A daemon with TLS whose time-outs close no connection during a test."""
    return start("--request-timeout-s", "600", "--request-deadline-s", "600", "--tls-certificate", str(certificate[0]),
                 "--tls-key", str(certificate[1]))


@contextlib.contextmanager
def sockets_are_closed(daemon, limit_s=CLOSE_LIMIT_S):
    """Checks that the daemon closes the connections of the clients that connect and disconnect inside the block."""
    before = open_sockets(daemon)
    yield
    until = time.monotonic() + limit_s
    while (left := open_sockets(daemon) - before) > 0:
        assert time.monotonic() < until, f"{left} connections are still open"
        time.sleep(0.02)


PARTS = [b"GET /jobs HTTP/1.1\r\nHost: 127", b"GE", b"GET /jobs HTTP/1.1\r\n" + HOST,
         POST + b"Content-Length: 100\r\n\r\n" + b'{"kind":', POST + b"Transfer-Encoding: chunked\r\n\r\n20\r\n{",
         POST.replace(b"application/json", b"text/plain") + b"Content-Length: 100\r\n\r\nrefused", b""]


@pytest.mark.parametrize("part", PARTS,
                         ids=["half-host", "half-method", "no-end", "half-body", "half-chunk", "refused", "nothing"])
def test_connections_are_closed_after_a_part_of_a_request(daemon_without_timeouts, part):
    with sockets_are_closed(daemon_without_timeouts):
        for _ in range(200):
            with connect(daemon_without_timeouts) as raw:
                raw.sendall(part)


def test_connections_are_closed_if_input_and_end_arrive_together(daemon_without_timeouts):
    """The daemon is stopped meanwhile, so that it finds the part of a request and the end of the connection at once."""
    with sockets_are_closed(daemon_without_timeouts):
        daemon_without_timeouts.process.send_signal(signal.SIGSTOP)
        try:
            for part in PARTS * 20:
                with connect(daemon_without_timeouts) as raw:
                    raw.sendall(part)
        finally:
            daemon_without_timeouts.process.send_signal(signal.SIGCONT)


def test_keepalive_connections_are_closed_when_clients_leave(daemon_without_timeouts):
    with sockets_are_closed(daemon_without_timeouts):
        for part in (b"", b"GET /he"):
            clients = [connect(daemon_without_timeouts) for _ in range(60)]
            for raw in clients:
                raw.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
                assert raw.recv(4096).startswith(b"HTTP/1.1 200 ")
            for raw in clients:
                raw.sendall(part)
                raw.close()


def test_event_streams_are_closed_when_clients_leave(daemon_without_timeouts):
    """The daemon closes the connections before the first keep-alive, whose failure would show that the client has left."""
    daemon_without_timeouts.wait(daemon_without_timeouts.submit(endless()), states=("running",))
    number = daemon_without_timeouts.submit(endless())  # is queued behind the first, so it has no events
    try:
        with sockets_are_closed(daemon_without_timeouts, STREAM_CLOSE_LIMIT_S):
            clients = [connect(daemon_without_timeouts) for _ in range(100)]
            for raw in clients:
                raw.sendall(f"GET /jobs/{number}/events HTTP/1.1\r\n".encode() + HOST + b"\r\n")
                assert raw.recv(4096).startswith(b"HTTP/1.1 200 ")
            daemon_without_timeouts.wait_for_metric("rooflined_event_listeners", lambda value: value == 100)
            for raw in clients:
                raw.close()
        daemon_without_timeouts.wait_for_metric("rooflined_event_listeners", lambda value: value == 0)
    finally:
        daemon_without_timeouts.cancel_all()


@pytest.fixture(scope="module")
def trace(daemon_without_timeouts):
    """A request whose reply, a trace, is larger than the sockets' buffers and than the largest reply that the daemon caches."""
    rows = Rows(daemon_without_timeouts)
    activities = [{"kind": "kernel", "name": "k" * 2000, "start_ns": 10 * i, "end_ns": 10 * i + 5} for i in range(20000)]
    job = rows.job_of(rows.run([], trace=([], activities)))
    return f"GET /jobs/{job}/export?format=csv HTTP/1.1\r\n".encode() + HOST + b"\r\n"


def ask_for_traces(stack, daemon, trace):
    """Returns a client that has read 512 KiB of its reply. The next part of the reply waits for one of two threads, because seven
    other clients also wait for parts of their replies."""
    clients = [stack.enter_context(connect(daemon)) for _ in range(8)]
    for raw in clients:
        raw.sendall(trace)
    received = 0
    while received < 1 << 19:
        received += len(clients[0].recv(1 << 16))
    return clients[0]


def test_streamed_replies_are_closed_when_clients_leave(daemon_without_timeouts, trace):
    """A client leaves while its connection is suspended. No other connection ends meanwhile, which would let libmicrohttpd close
    this one too."""
    for _ in range(5):
        with contextlib.ExitStack() as clients:
            first = ask_for_traces(clients, daemon_without_timeouts, trace)
            before = open_sockets(daemon_without_timeouts)
            first.close()
            until = time.monotonic() + CLOSE_LIMIT_S
            while open_sockets(daemon_without_timeouts) >= before:
                assert time.monotonic() < until, "the connection is still open"
                time.sleep(0.02)


def test_a_cut_reply_has_no_end(daemon_without_timeouts, trace):
    """A client that closes its sending side counts as gone when the next part of its reply is due. If no part was due any more,
    it gets the whole reply with its last chunk, so the test tries again."""
    for _ in range(20):
        with contextlib.ExitStack() as clients:
            first = ask_for_traces(clients, daemon_without_timeouts, trace)
            first.shutdown(socket.SHUT_WR)
            last = b""
            with contextlib.suppress(ConnectionResetError):
                while text := first.recv(1 << 16):
                    last = (last + text)[-100:]
        if not last.endswith(b"0\r\n\r\n"):
            return
        assert b",199990,199995," in last  # the last row
    pytest.fail("no reply was cut")


def ask_and_send_no_more(daemon, request):
    with connect(daemon) as raw:
        raw.sendall(request)
        raw.shutdown(socket.SHUT_WR)
        reply = b""
        while part := raw.recv(1 << 16):
            reply += part
        return reply


def test_a_client_that_sends_no_more_gets_its_reply(daemon_without_timeouts):
    """A client may close its sending side after its request and still read the reply. For a GET, the daemon ensures this only if
    a thread makes the reply within 0.1 s. Several clients send requests at once, because libmicrohttpd treats the connection that
    has been quiet longest differently."""
    body = json.dumps(endless()).encode()

    def post_and_cancel(_):
        reply = ask_and_send_no_more(daemon_without_timeouts, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
        assert reply.startswith(b"HTTP/1.1 200 ")
        posted = ask_and_send_no_more(daemon_without_timeouts, POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert posted.startswith(b"HTTP/1.1 202 ")
        number = json.loads(posted.partition(b"\r\n\r\n")[2])["id"]
        cancelled = ask_and_send_no_more(daemon_without_timeouts, b"DELETE /jobs/%d HTTP/1.1\r\n" % number + HOST + b"\r\n")
        assert cancelled.startswith(b"HTTP/1.1 202 ")
        request = b"GET /jobs/%d HTTP/1.1\r\n" % number + HOST + b"\r\n"
        tries = (ask_and_send_no_more(daemon_without_timeouts, request) for _ in range(50))
        in_time.append(any(reply.startswith(b"HTTP/1.1 200 ") for reply in tries))  # a busy thread may need more than 0.1 s

    in_time = []
    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        list(clients.map(post_and_cancel, range(100)))
    assert sum(in_time) >= 90


def test_a_new_token_is_accepted_from_a_client_that_sends_no_more(start):
    """A thread looks up each token that the daemon does not know yet, while the client has closed its sending side."""
    guarded = start("--require-token", "--request-timeout-s", "600", token=True)
    body = json.dumps(endless()).encode()
    content = b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)

    def post(token):
        return ask_and_send_no_more(guarded, b"POST /jobs HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + token + b"\r\n" +
                                    content + b"\r\n" + body)

    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        for i in range(6):
            tokens = [make_token(guarded.state, f"new-{i}-{client}").encode() for client in range(8)]
            replies = list(clients.map(post, tokens))
            assert {reply[:13] for reply in replies} == {b"HTTP/1.1 202 "}, replies
    assert post(b"x" * 43).startswith(b"HTTP/1.1 401 ")
    assert len(guarded.get("/jobs?limit=100").json()["items"]) == 48
    guarded.cancel_all()


def start_tls(raw):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(raw)


@pytest.mark.parametrize("part", [*PARTS[:4], b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"])
@pytest.mark.parametrize("sends_close_notify", [False, True])
def test_tls_connections_are_closed_when_clients_leave(tls_daemon_without_timeouts, part, sends_close_notify):
    with sockets_are_closed(tls_daemon_without_timeouts):
        for _ in range(30):
            with start_tls(connect(tls_daemon_without_timeouts)) as client:
                client.sendall(part)
                if part.startswith(b"GET /healthz"):
                    assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
                if sends_close_notify:
                    client.settimeout(0)
                    with contextlib.suppress(ssl.SSLError, BlockingIOError):
                        client.unwrap()


@pytest.mark.parametrize("part", [b"", b"\x16\x03\x01", b"\x16\x03\x01\x02\x00\x01\x00"])
def test_connections_are_closed_during_the_tls_handshake(tls_daemon_without_timeouts, part):
    with sockets_are_closed(tls_daemon_without_timeouts):
        for _ in range(100):
            with connect(tls_daemon_without_timeouts) as raw:
                raw.sendall(part)


def status(raw, request=b"GET /healthz HTTP/1.1\r\n", headers=b""):
    raw.sendall(request + HOST + headers + b"\r\n")
    return raw.recv(4096)[9:12]


@pytest.mark.parametrize("part", [b"", b"GET /jobs HTTP/1.1\r\nHost: 127", PARTS[3]])
def test_open_connections_without_a_request_leave_space(start, part):
    """Opens four times as many connections as the limit allows. No time-out closes them during the test."""
    own_daemon = start("--request-timeout-s", "600", "--connection-limit", "64")
    with contextlib.ExitStack() as clients:
        kept = clients.enter_context(connect(own_daemon))
        assert status(kept) == b"200"
        for _ in range(256):
            clients.enter_context(connect(own_daemon)).sendall(part)
        for _ in range(10):
            with connect(own_daemon) as raw:
                raw.settimeout(CLOSE_LIMIT_S)
                assert status(raw) == b"200"
        assert status(kept) == b"200"  # this client has sent a request, so the daemon closes other connections first
    assert own_daemon.stop() == 0


def test_6000_ended_connections_leave_space(start):
    own_daemon = start("--request-timeout-s", "600")
    for i in range(6000):
        with connect(own_daemon) as raw:
            raw.sendall(PARTS[i % 4])
        if i % 500 == 0:
            with connect(own_daemon) as raw:
                raw.settimeout(CLOSE_LIMIT_S)
                assert status(raw) == b"200"
    assert own_daemon.stop() == 0


def test_an_address_that_a_proxy_names_has_a_limit(start):
    """At most a quarter of the connection limit serves requests from one address. Behind a proxy, the last address in
    X-Forwarded-For counts."""
    own_daemon = start("--behind-proxy", "--require-token", "--connection-limit", "16", "--request-timeout-s", "600", token=True)
    number = own_daemon.submit(endless())
    events = f"GET /jobs/{number}/events HTTP/1.1\r\nAuthorization: Bearer {own_daemon.token}\r\n".encode()

    def ask(stack, address):
        return status(stack.enter_context(connect(own_daemon)), events, f"X-Forwarded-For: 7.7.7.7, {address}\r\n".encode())

    with contextlib.ExitStack() as clients:
        assert [ask(clients, "192.0.2.1") for _ in range(5)] == [b"200"] * 4 + [b"503"]
        assert ask(clients, "192.0.2.2") == b"200"
        for token, expected in ((make_token(own_daemon.state, "new"), b"503"), ("x" * 43, b"401")):  # checked after the body
            upload = f"POST /imports HTTP/1.1\r\nContent-Length: 0\r\nAuthorization: Bearer {token}\r\n".encode()
            raw = clients.enter_context(connect(own_daemon))
            assert status(raw, upload, b"X-Forwarded-For: 192.0.2.1\r\n") == expected
    own_daemon.wait_for_metric("rooflined_event_listeners", lambda value: value == 0)
    with contextlib.ExitStack() as clients:
        assert ask(clients, "192.0.2.1") == b"200"
    own_daemon.cancel_all()
    assert own_daemon.stop() == 0
