"""Tests the webhook with a real HTTP server that fails, hangs and recovers, while the daemon is stopped and killed."""

import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time

import jsonschema
import pytest
from free_port import free_port
from harness import PROGRAM, SOURCE, STOP_LIMIT_S, wait_until

KEY = os.urandom(32)
METRIC = "copy/scalar/time_warm_us_median"
DAY_NS = 86400 * 10**9
SUITE = {"name": "nightly", "blocks": 5, "canary": False, "profile": False,
         "metrics": [{"job": "copy", "metric": "time_warm_us_median", "threshold_ratio": 1}],
         "jobs": [{"name": "copy", "request": {"kind": "kernel", "kernel": "copy", "shape": {"n": 256}, "variant": "scalar",
                                               "samples": 3}}]}


class Receiver:
    """An HTTP server. It replies to post n by replies[n], and to later posts by the last reply. A reply is a status, or a
    function that gets the request handler."""

    def __init__(self, *replies, port=0):
        self.replies, self.posts, self.finished = list(replies), [], threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.posts.append((time.monotonic(), self.path, self.headers, body))
                reply = receiver.replies[min(len(receiver.posts), len(receiver.replies)) - 1]
                with contextlib.suppress(OSError):  # the daemon may have closed the connection
                    reply(self) if callable(reply) else self.answer(reply)

            def do_GET(self):
                receiver.posts.append((time.monotonic(), "GET " + self.path, self.headers, b""))
                self.answer(200)

            def answer(self, status, **headers):
                self.send_response(status)
                for name, value in {"content-length": "0", **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook?from=test"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.finished.set()
        self.server.shutdown()
        self.server.server_close()

    def hang(self, handler):
        self.finished.wait(60)

    def wait_for_posts(self, count, seconds=180):
        wait_until(lambda: len(self.posts) >= count, seconds, f"post {count}")
        return self.posts[:count]


@pytest.fixture
def receive():
    receivers = []

    def open_receiver(*replies, **more):
        receivers.append(Receiver(*replies, **more))
        return receivers[-1]

    yield open_receiver
    for receiver in receivers:
        receiver.close()


def verify(post):
    """Checks the signature as the Standard Webhooks specification states it; returns the id and the event."""
    _, path, headers, body = post
    assert path == "/hook?from=test" and headers["content-type"] == "application/json"
    assert headers["user-agent"].startswith("rooflined/") and "expect" not in headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == expected
    assert abs(time.time() - int(headers["webhook-timestamp"])) < 60
    return headers["webhook-id"], json.loads(body)


def webhook_options(folder, url, secret=None):
    (folder / "key").write_text(f"whsec_{base64.b64encode(KEY).decode()}\n")
    return ["--webhook-url", url, "--webhook-secret-file", secret or str(folder / "key"), "--webhook-retry-s", "1"]


def insert_events(state, count=1, age_ns=0, **columns):
    """Inserts pending events like those of a suite run that ended age_ns ago. The daemon must have stopped."""
    now = time.time_ns() - age_ns
    with contextlib.closing(sqlite3.connect(state / "rooflined.db")) as base, base:
        sql = """INSERT INTO suite_runs (suite, definition, definition_sha256, jobs_sha256, device, state, created_ns,
            planned_jobs) VALUES ('nightly', '{}', '', '{}', 'cpu', 'completed', ?, 1) RETURNING id"""
        [run] = base.execute(sql, (now,)).fetchone()
        for i in range(count):
            row = {"event_id": f"msg_{os.urandom(16).hex()}", "suite_run_id": run, "type": "regression.confirmed",
                   "body": json.dumps({"type": "regression.confirmed", "data": {"number": i, "text": "µ"}}), "created_ns": now,
                   "next_attempt_ns": now, **columns}
            base.execute(f"INSERT INTO webhook_events ({','.join(row)}) VALUES ({','.join('?' * len(row))})", list(row.values()))


@pytest.fixture
def daemon_with_events(start, tmp_path):
    """daemon_with_events(url, ...) starts a daemon that finds events in its database."""
    def start_with_events(url, env=None, secret=None, options=(), **more):
        if not (tmp_path / "state/rooflined.db").exists():
            start().stop()
        insert_events(tmp_path / "state", **more)
        return start(*webhook_options(tmp_path, url, secret), *options, env=env)

    return start_with_events


def states(daemon):
    return daemon.rows("SELECT state, attempts, last_error FROM webhook_events ORDER BY id")


def wait_for_state(daemon, state):
    wait_until(lambda: {row[0] for row in states(daemon)} == {state}, 60, f"events that are {state}")
    return states(daemon)


def metric(daemon, name):
    return int(re.search(rf"^rooflined_webhook_{re.escape(name)} (\d+)$", daemon.call("GET", "/metrics").text, re.M)[1])


def test_a_good_receiver_gets_each_event_once(daemon_with_events, receive):
    receiver = receive(204)
    daemon = daemon_with_events(receiver.url, count=3)
    events = [verify(post) for post in receiver.wait_for_posts(3)]
    assert wait_for_state(daemon, "delivered") == [("delivered", 1, None)] * 3
    assert sorted(event["data"]["number"] for _, event in events) == [0, 1, 2] and len({number for number, _ in events}) == 3
    assert metric(daemon, "events_pending") == 0 and metric(daemon, 'events_total{result="delivered"}') == 3
    time.sleep(0.5)
    assert len(receiver.posts) == 3
    [run] = {row[0] for row in daemon.rows("SELECT suite_run_id FROM webhook_events")}
    assert run == 1


def test_failures_are_repeated_with_the_same_id_and_growing_pauses(daemon_with_events, receive):
    receiver = receive(500, 404, lambda handler: handler.answer(301, location="/elsewhere"), 200)
    daemon = daemon_with_events(receiver.url)
    posts = receiver.wait_for_posts(4)
    assert wait_for_state(daemon, "delivered") == [("delivered", 4, None)]
    assert len({verify(post)[0] for post in posts}) == 1 and len({post[3] for post in posts}) == 1
    pauses = [later[0] - earlier[0] for earlier, later in zip(posts, posts[1:])]
    for pause, step in zip(pauses, (1, 2, 4)):  # the daemon pauses for a random time between half of the step and the whole step
        assert step / 2 - 0.05 <= pause <= step + 1, pauses
    assert metric(daemon, "failed_attempts_total") == 3


def test_a_receiver_can_ask_for_a_pause_or_for_no_more(daemon_with_events, receive):
    receiver = receive(lambda handler: handler.answer(503, retry_after="3"), 410)
    daemon = daemon_with_events(receiver.url)
    (first, *_), (second, *_) = receiver.wait_for_posts(2)
    assert 2.9 <= second - first <= 5  # without the reply's pause: 1 s
    assert wait_for_state(daemon, "given_up") == [("given_up", 2, "The reply's status is 410")]
    assert metric(daemon, 'events_total{result="given_up"}') == 1 and metric(daemon, "events_pending") == 0
    assert "webhook: gave up msg_" in daemon.log_text() and receiver.url not in daemon.log_text()


def test_events_are_given_up_after_three_days(daemon_with_events, receive):
    receiver = receive(500)
    daemon = daemon_with_events(receiver.url, age_ns=3 * DAY_NS + 10**9)
    assert wait_for_state(daemon, "given_up") == [("given_up", 1, "The reply's status is 500")]
    assert len(receiver.posts) == 1


def test_a_hanging_receiver_delays_nothing_but_its_events(daemon_with_events, receive):
    """A post hangs until the time limit of 10 s. A job ends before that, and the next post is delivered."""
    receiver = receive(None)
    receiver.replies = [receiver.hang]
    daemon = daemon_with_events(receiver.url)
    for number in range(1, 4):  # on a busy machine a job can take longer than a post
        receiver.wait_for_posts(number)
        daemon.run()
        if len(receiver.posts) == number:
            break
    assert len(receiver.posts) == number, "a job waited for the receiver"
    receiver.replies = [receiver.hang] * number + [200]
    (first, *_), (second, *_) = receiver.wait_for_posts(number + 1)[-2:]
    assert 10 <= second - first <= 13
    assert wait_for_state(daemon, "delivered")[0][1] == len(receiver.posts)
    assert len({verify(post)[0] for post in receiver.posts}) == 1


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A private certificate authority, and the certificate and key of a server that it has signed: files of the folder."""
    folder = tmp_path_factory.mktemp("authority")
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:0.0.0.0\n")
    for command in (["req", "-x509", *new_key, "-days", "2", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=our authority"],
                    ["req", *new_key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=receiver"],
                    ["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                     "-extfile", "names", "-out", "server.pem"]):
        subprocess.run(["openssl", *command], check=True, capture_output=True, cwd=folder)
    return folder


def serve_tls(receiver, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)
    receiver.server.handle_error = lambda *_: None


def wait_for_refusal(daemon, receiver, text):
    wait_until(lambda: states(daemon)[0][1] > 0, 60, "an attempt")
    [(state, _, error)] = states(daemon)
    assert state == "pending" and text in error and receiver.posts == [], (state, error)


def test_an_unknown_certificate_is_refused(daemon_with_events, receive, authority):
    """Nothing is posted to a server that can't prove its name."""
    receiver = receive(200)
    serve_tls(receiver, authority)
    wait_for_refusal(daemon_with_events(f"https://localhost:{receiver.port}/"), receiver, "certificate")


def test_a_private_authority_is_trusted_for_its_names(daemon_with_events, receive, authority):
    """The daemon trusts the authority in the file. The server's certificate is valid for localhost, but not for 127.0.0.1."""
    receiver = receive(200)
    serve_tls(receiver, authority)
    more = ("--webhook-ca-file", str(authority / "ca.pem"))
    daemon = daemon_with_events(f"https://127.0.0.1:{receiver.port}/hook?from=test", options=more)
    wait_for_refusal(daemon, receiver, "certificate")
    daemon.stop()
    daemon = daemon_with_events(f"https://localhost:{receiver.port}/hook?from=test", count=0, options=more)
    verify(receiver.wait_for_posts(1)[0])
    wait_for_state(daemon, "delivered")


@pytest.fixture
def proxy(tmp_path):
    """Starts a forward proxy on loopback, which may connect to every port. Yields the environment variables that select the
    proxy, and its log file."""
    program = shutil.which("tinyproxy") or pytest.skip("tinyproxy is not installed")
    port = free_port()
    log = tmp_path / "proxy.log"
    (tmp_path / "proxy.conf").write_text(f'Port {port}\nListen 127.0.0.1\nTimeout 30\nMaxClients 20\nAllow 127.0.0.1\n'
                                         f'LogLevel Connect\nLogFile "{log}"\n')
    process = subprocess.Popen([program, "-d", "-c", tmp_path / "proxy.conf"], stdout=subprocess.DEVNULL)
    wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, 60, "the proxy")
    yield {"http_proxy": f"http://127.0.0.1:{port}", "https_proxy": f"http://127.0.0.1:{port}"}, log
    process.terminate()
    process.wait(60)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_events_are_sent_through_a_proxy(daemon_with_events, receive, authority, proxy, scheme):
    """Uses the address 0.0.0.0, which reaches this machine but is not a loopback address: the daemon connects to loopback
    addresses without a proxy."""
    environment, log = proxy
    receiver = receive(200)
    if scheme == "https":
        serve_tls(receiver, authority)
    daemon = daemon_with_events(f"{scheme}://0.0.0.0:{receiver.port}/hook?from=test", env=environment,
                                options=("--webhook-ca-file", str(authority / "ca.pem")))
    verify(receiver.wait_for_posts(1)[0])
    wait_for_state(daemon, "delivered")
    request = f"CONNECT 0.0.0.0:{receiver.port}" if scheme == "https" else f"POST http://0.0.0.0:{receiver.port}/hook"
    assert request in log.read_text()


def test_a_proxy_is_no_receiver(daemon_with_events, receive, authority, proxy):
    """The proxy replies to CONNECT with 200, which is not a reply of the receiver. The daemon then refuses the receiver's
    certificate, so nothing is delivered."""
    receiver = receive(200)
    serve_tls(receiver, authority)
    wait_for_refusal(daemon_with_events(f"https://0.0.0.0:{receiver.port}/", env=proxy[0]), receiver, "certificate")
    assert "CONNECT" in proxy[1].read_text()


def test_loopback_needs_no_proxy(daemon_with_events, receive):
    receiver = receive(200)
    daemon = daemon_with_events(receiver.url, env={"http_proxy": "http://127.0.0.1:9"})
    wait_for_state(daemon, "delivered")


def flood(handler):
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b"x" * 65536)


def flood_headers(handler):
    handler.send_response_only(200)
    while True:
        handler.wfile.write(b"x-more: " + b"y" * 1000 + b"\r\n")


def test_endless_replies_are_cut_off(daemon_with_events, receive):
    """A reply whose body never ends delivers the event, because the daemon has received its status. A reply whose headers never
    end does not deliver it."""
    receiver = receive(flood_headers, flood)
    daemon = daemon_with_events(receiver.url)
    (first, *_), (second, *_) = receiver.wait_for_posts(2)
    assert second - first < 3, "the time limit ended the first post"
    assert wait_for_state(daemon, "delivered") == [("delivered", 2, None)]
    resident = int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{daemon.process.pid}/status").read())[1])
    assert resident < 200 * 1024, "KiB"


def test_a_stop_waits_for_no_receiver_and_the_next_start_delivers(daemon_with_events, start, receive, tmp_path):
    receiver = receive(None, 200)
    receiver.replies[0] = receiver.hang
    daemon = daemon_with_events(receiver.url)
    receiver.wait_for_posts(1)
    status, duration_s = daemon.signal(signal.SIGTERM)
    assert status == 0 and duration_s < STOP_LIMIT_S, (status, duration_s)
    assert states(daemon) == [("pending", 0, None)]
    restarted = start(*webhook_options(tmp_path, receiver.url))
    first, second = receiver.wait_for_posts(2)
    assert wait_for_state(restarted, "delivered") and verify(first)[0] == verify(second)[0]


@pytest.mark.parametrize("settings, expected", [
    ("webhook_url = ftp://example.org\nwebhook_secret_file = KEY", "conf:2: webhook_url must be http"),
    ("webhook_url = http://example.org", "need each other"),
    ("webhook_url = http://example.org\nwebhook_secret_file = KEY.missing", "key.missing: No such file"),
    ("webhook_url = http://example.org\nwebhook_secret_file = SHORT", "short:1: the key must be whsec_ and 24 to 64 bytes"),
    ("webhook_url = http://example.org\nwebhook_secret_file = key", "$CREDENTIALS_DIRECTORY"),
    ("webhook_url = http://example.org\nwebhook_secret_file = KEY\nwebhook_ca_file = KEY.pem", "key.pem: No such file"),
])
def test_wrong_settings_are_refused(tmp_path, settings, expected):
    webhook_options(tmp_path, "")
    (tmp_path / "short").write_text("whsec_" + base64.b64encode(b"x" * 23).decode())
    text = settings.replace("KEY", str(tmp_path / "key")).replace("SHORT", str(tmp_path / "short"))
    (tmp_path / "conf").write_text(f"[rooflined]\n{text}\n")
    clean = {name: value for name, value in os.environ.items() if name != "CREDENTIALS_DIRECTORY"}
    refused = subprocess.run([PROGRAM, "--config", tmp_path / "conf", "--port", "0", "--state", tmp_path / "refused"],
                             capture_output=True, text=True, env=clean, timeout=120)
    assert refused.returncode == 78 and expected in refused.stderr, refused


def test_the_secret_can_be_a_credential(daemon_with_events, receive, tmp_path):
    """A file name without a folder is looked up in $CREDENTIALS_DIRECTORY, to which systemd's LoadCredential= copies the file."""
    receiver = receive(200)
    daemon = daemon_with_events(receiver.url, env={"CREDENTIALS_DIRECTORY": str(tmp_path)}, secret="key")
    verify(receiver.wait_for_posts(1)[0])
    wait_for_state(daemon, "delivered")


def test_the_example_receiver_verifies_and_drops_repeats(daemon_with_events, tmp_path):
    port = free_port()
    env = {**os.environ, "WEBHOOK_SECRET": f"whsec_{base64.b64encode(KEY).decode()}", "WEBHOOK_SEEN": str(tmp_path / "seen.db")}
    example = subprocess.Popen([sys.executable, SOURCE / "docs/examples/webhook_receiver.py", str(port)], env=env, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        body = {"type": "regression.confirmed",
                "data": {"suite": "tiny", "metrics": [{"metric": "a/b/c", "effect_ratio": 0.107}]}}
        daemon = daemon_with_events(f"http://127.0.0.1:{port}/", body=json.dumps(body))
        wait_for_state(daemon, "delivered")
        [(number,)] = daemon.rows("SELECT event_id FROM webhook_events")
        for other, stamp, key, status in [(number, time.time(), KEY, 204), (number + "x", time.time(), KEY, 204),
                                          (number + "y", time.time(), b"x" * 32, 401),
                                          (number + "z", time.time() - 400, KEY, 401)]:
            signed = hmac.new(key, f"{other}.{int(stamp)}.".encode() + json.dumps(body).encode(), hashlib.sha256).digest()
            headers = {"webhook-id": other, "webhook-timestamp": str(int(stamp)),
                       "webhook-signature": "v1,AAAA v1," + base64.b64encode(signed).decode()}
            reply = daemon.session.post(f"http://127.0.0.1:{port}/", data=json.dumps(body), headers=headers, timeout=60)
            assert reply.status_code == status
    finally:
        example.terminate()
    assert example.communicate(timeout=60)[0] == 2 * "regression.confirmed tiny a/b/c +10.7 %\n"


# --- suite runs --------------------------------------------------------------------------------------------------------------


def scale_baseline(state, factor):
    """Multiplies the values of the first suite run, so that later runs are clearly slower, or clearly not slower."""
    with contextlib.closing(sqlite3.connect(state / "rooflined.db")) as base, base:
        base.execute("UPDATE suite_values SET value = value * ? WHERE suite_run_id = 1", (factor,))


def run_suite(daemon, verdict, attempts=4):
    """Runs the suite and checks its verdict. Repeats a run that is inconclusive, which happens on a busy machine."""
    number = daemon.call("POST", "/suites/nightly/runs", json={"definition": SUITE}).json()["id"]

    def ended():
        document = daemon.call("GET", f"/suite-runs/{number}").json()
        return document if document["state"] not in ("queued", "running") else None

    document = wait_until(ended, 300, "the end of the suite run")
    if document["verdict"] == "inconclusive" and attempts > 1:
        return run_suite(daemon, verdict, attempts - 1)
    assert document["verdict"] == verdict, document["reason"]
    return document


def test_a_regression_and_its_end_are_reported(start, receive, tmp_path):
    """The daemon is killed before it can deliver the first event."""
    receiver = Receiver(200)
    receiver.close()  # so that posts are refused
    daemon = start(*webhook_options(tmp_path, receiver.url))
    assert run_suite(daemon, "incomparable")["webhook_events"] == []
    scale_baseline(daemon.state, 1e-3)
    slow = run_suite(daemon, "slower")
    [event] = slow["webhook_events"]
    assert (event["type"], event["state"], event["ended_at"]) == ("regression.confirmed", "pending", None)
    schema = json.loads((SOURCE / "schema/openapi.json").read_text())["components"]["schemas"]["SuiteRun"]
    jsonschema.validate(event, schema["properties"]["webhook_events"]["items"])
    daemon.kill()
    receiver = receive(200, port=receiver.port)
    daemon = start(*webhook_options(tmp_path, receiver.url))
    number, sent = verify(receiver.wait_for_posts(1)[0])
    assert number == event["id"] and sent["type"] == "regression.confirmed" and sent["timestamp"] == event["created_at"]
    data, [verdict] = sent["data"], slow["verdicts"]
    assert (data["suite"], data["suite_run"], data["path"]) == ("nightly", slow["id"], f"/suite-runs/{slow['id']}")
    assert {name: data[name] for name in ("device", "device_name", "driver", "git_commit", "against")} == {
        name: slow[name] for name in ("device", "device_name", "driver", "git_commit", "against")}
    [item] = data["metrics"]
    assert data["metric_count"] == 1 and item["metric"] == METRIC and item["verdict"] == "slower" and item["effect_ratio"] > 10
    assert item == {name: verdict[name] for name in item}
    wait_for_state(daemon, "delivered")
    scale_baseline(daemon.state, 1e6)
    fixed = run_suite(daemon, "same")  # faster, but by less than the threshold of 100 %
    [event] = fixed["webhook_events"]
    number, sent = verify(receiver.wait_for_posts(2)[1])
    assert number == event["id"] and sent["type"] == event["type"] == "regression.fixed"
    wait_for_state(daemon, "delivered")
    [shown] = daemon.call("GET", f"/suite-runs/{fixed['id']}").json()["webhook_events"]
    assert (shown["state"], shown["next_attempt_at"], shown["last_error"]) == ("delivered", None, None) and shown["ended_at"]
    assert len(receiver.posts) == 2
