"""Tests tokens, login sessions, TLS, and a daemon that listens on addresses beyond loopback."""

import contextlib
import select
import socket
import subprocess
import time

import pytest
import requests
from daemon import endless, job, make_token, revoke_token, rooflinectl


@pytest.fixture(scope="module")
def token_daemon(start):
    """A daemon that requires a token; its client sends one unless a test sets the header Authorization."""
    return start("--require-token", token=True)


PROTECTED = [("POST", "/jobs"), ("GET", "/jobs"), ("GET", "/jobs/1"), ("PATCH", "/jobs/1"), ("DELETE", "/jobs/1"),
             ("GET", "/jobs/1/source"), ("GET", "/jobs/1/events"), ("GET", "/jobs/1/results"),
             ("GET", "/jobs/1/kernels"), ("GET", "/jobs/1/timeline"), ("GET", "/jobs/1/comparison"), ("GET", "/history?metric=x"),
             ("GET", "/jobs/1/export?format=csv"),
             ("GET", "/runs/1/report"), ("GET", "/runs/1/timeline/findings"), ("GET", "/runs/1/timeline/lanes"),
             ("GET", "/runs/1/timeline/statistics"), ("GET", "/runs/1/timeline/search?name=x"), ("GET", "/compare?a=1&b=1"),
             ("GET", "/compare/timeline?a=1&b=1"),
             ("GET", "/sections"), ("GET", "/ceilings"),
             ("GET", "/workloads"), ("GET", "/devices"), ("GET", "/metrics"), ("GET", "/openapi.json")]


@pytest.mark.parametrize("method, path", PROTECTED)
@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic eDp5", "Bearer " + "A" * 43,
                                    "Bearer " + "A" * 5000])
def test_missing_or_wrong_tokens_are_refused(token_daemon, method, path, header):
    response = token_daemon.call(method, path, body=job() if method == "POST" else None, headers={"Authorization": header})
    assert (response.status_code, response.json()["code"]) == (401, "unauthorized")
    assert response.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_valid_token_is_accepted(token_daemon):
    assert token_daemon.get("/jobs").status_code == 200
    assert token_daemon.get("/jobs", headers={"Authorization": f"bearer  {token_daemon.token}"}).status_code == 200
    job_id = token_daemon.run(job())
    assert token_daemon.get(f"/jobs/{job_id}/results").status_code == 200


def test_the_database_has_only_the_hash(token_daemon):
    files = [path for path in token_daemon.state.rglob("*") if path.is_file()]
    assert token_daemon.state / "rooflined.db" in files
    assert not [path for path in files if token_daemon.token.encode() in path.read_bytes()]


def test_public_routes_need_no_token(token_daemon):
    for path in ("/healthz", "/readyz", "/", "/index.html"):
        assert token_daemon.get(path, headers={"Authorization": ""}).status_code == 200


def test_a_login_session_lasts_until_logout(token_daemon):
    no_token = {"Authorization": ""}
    login = token_daemon.call("POST", "/login", {"token": token_daemon.token}, headers=no_token)
    assert login.status_code == 204
    cookie = login.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie and token_daemon.token not in cookie
    assert "Secure" not in cookie  # without TLS
    session = {**no_token, "Cookie": cookie.split(";")[0]}
    token_daemon.session.cookies.clear()
    assert token_daemon.get("/jobs", headers=session).status_code == 200
    assert token_daemon.get("/jobs", headers={**no_token, "Cookie": "rooflined_session=" + "A" * 43}).status_code == 401
    logout = token_daemon.call("POST", "/logout", headers=session)
    assert logout.status_code == 204 and "Max-Age=0" in logout.headers["Set-Cookie"]
    token_daemon.session.cookies.clear()
    assert token_daemon.get("/jobs", headers=session).status_code == 401
    assert token_daemon.call("POST", "/logout", headers=no_token).status_code == 204


def test_logins_of_one_token_end_no_session_of_another(token_daemon):
    def log_in(token):
        login = token_daemon.call("POST", "/login", {"token": token}, headers={"Authorization": ""})
        token_daemon.session.cookies.clear()
        return {"Authorization": "", "Cookie": login.headers["Set-Cookie"].split(";")[0]}

    alice = log_in(token_daemon.token)
    bobs_token = make_token(token_daemon.state, "bob-with-many-logins")
    bob = [log_in(bobs_token) for _ in range(65)]  # one more than the daemon keeps
    assert [token_daemon.get("/jobs", headers=session).status_code for session in (alice, bob[0], bob[-1])] == [200, 401, 200]
    revoke_token(token_daemon.state, "bob-with-many-logins")


@pytest.mark.parametrize("body, status", [({"token": "wrong"}, 401), ({"token": ""}, 401), ({}, 400), ({"token": 5}, 400),
                                          (b"{", 400),
                                          ({"token": "x" * 5000}, 413), ({"token": "x" * 200}, 400),
                                          ({"token": "a", "user": "b"}, 400)])
def test_bad_logins_are_refused(token_daemon, body, status):
    response = token_daemon.call("POST", "/login", body, headers={"Authorization": ""})
    assert response.status_code == status
    assert "Set-Cookie" not in response.headers


def refusal_of_start(start, *options, **extra):
    """Starts a daemon, which must exit, and returns the reason."""
    with pytest.raises(RuntimeError) as refusal:
        start(*options, **extra)
    return str(refusal.value)


def test_addresses_beyond_loopback_need_tls_and_a_token(start, certificate, tmp_path):
    tls = ("--tls-certificate", str(certificate[0]), "--tls-key", str(certificate[1]))
    assert "tls_certificate" in refusal_of_start(start, "--address", "0.0.0.0", token=True)
    assert "rooflinectl token" in refusal_of_start(start, "--address", "0.0.0.0", "--behind-proxy")
    assert "rooflinectl token" in refusal_of_start(start, "--address", "0.0.0.0", *tls)
    assert "need each other" in refusal_of_start(start, *tls[:2])
    assert "opened" in refusal_of_start(start, "--tls-certificate", str(tmp_path / "none"), "--tls-key", str(tmp_path / "none"))
    assert "pair" in refusal_of_start(start, "--tls-certificate", str(certificate[1]), "--tls-key", str(certificate[0]))


def test_one_address_cannot_take_every_connection(start, certificate):
    own_daemon = start("--address", "0.0.0.0", "--connection-limit", "16", "--request-timeout-s", "600",
                       "--tls-certificate", str(certificate[0]), "--tls-key", str(certificate[1]), token=True)
    with contextlib.ExitStack() as clients:
        same_address = [clients.enter_context(socket.create_connection(("127.0.0.1", own_daemon.port), timeout=60))
                        for _ in range(8)]

        def closed_by_daemon(connections, seconds):
            """Returns the readable connections: before the handshake the daemon sends nothing, so only an end can be read."""
            return select.select(connections, [], [], seconds)[0]

        until = time.monotonic() + 180
        while len(closed_by_daemon(same_address, 0)) < 4:  # one address may hold a quarter of the connection limit
            assert time.monotonic() < until, "too many connections from one address"
            time.sleep(0.02)
        closed = closed_by_daemon(same_address, 0)  # not always the last four: several threads accept connections
        kept = [client for client in same_address if client not in closed]
        other_address = clients.enter_context(socket.create_connection(("127.0.0.1", own_daemon.port), timeout=60,
                                                                       source_address=("127.0.0.2", 0)))
        assert len(kept) == 4 and closed_by_daemon([*kept, other_address], 1) == []


def test_tls_daemon_answers_only_https(start, certificate):
    own_daemon = start("--address", "0.0.0.0", "--tls-certificate", str(certificate[0]), "--tls-key", str(certificate[1]),
                       token=True)
    assert own_daemon.url.startswith("https://")
    own_daemon.url = f"https://localhost:{own_daemon.port}"
    own_daemon.session.verify = str(certificate[0])
    assert own_daemon.get("/jobs").status_code == 200
    assert own_daemon.get("/jobs", headers={"Authorization": ""}).status_code == 401
    assert own_daemon.get("/index.html").status_code == 200
    login = own_daemon.call("POST", "/login", {"token": own_daemon.token})
    assert "; Secure" in login.headers["Set-Cookie"]
    job_id = own_daemon.submit(job())
    with own_daemon.get(f"/jobs/{job_id}/events", stream=True) as response:
        assert b'"completed"' in b"".join(response.iter_content(None))
    with pytest.raises(requests.RequestException):
        requests.get(f"http://localhost:{own_daemon.port}/healthz", timeout=5)
    assert own_daemon.stop() == 0


def test_a_token_is_required_behind_a_proxy(start):
    """Behind a proxy a token is required also on loopback, because the proxy forwards requests from other hosts."""
    own_daemon = start("--behind-proxy", "--allowed-hosts", "gpu.example", token=True)
    assert own_daemon.get("/jobs", headers={"Host": "gpu.example"}).status_code == 200
    assert own_daemon.get("/jobs", headers={"Authorization": ""}).status_code == 401
    login = own_daemon.call("POST", "/login", {"token": own_daemon.token})
    assert "; Secure" in login.headers["Set-Cookie"]
    assert own_daemon.stop() == 0


def token_headers(token):
    return {"Authorization": f"Bearer {token}"}


def session_headers(daemon, token):
    login = daemon.call("POST", "/login", {"token": token})
    return {"Cookie": login.headers["Set-Cookie"].split(";")[0]}


def test_a_stream_ends_with_its_credential(start, tmp_path):
    """Streams end when their token is revoked, their session's token is revoked, or their session logs out. Streams with another
    token continue."""
    state = tmp_path / "state"
    revoked, kept = make_token(state, "revoked"), make_token(state, "kept")
    own_daemon = start("--require-token", state=state)
    revoked_session, kept_session, logged_out = (session_headers(own_daemon, token) for token in (revoked, kept, kept))
    job_id = own_daemon.submit(endless(), headers=token_headers(kept))
    own_daemon.session.cookies.clear()
    with contextlib.ExitStack() as streams:

        def listen(headers):
            stream = requests.get(f"{own_daemon.url}/jobs/{job_id}/events", stream=True, timeout=60, headers=headers)
            assert stream.status_code == 200
            return streams.enter_context(stream).iter_lines(chunk_size=1)

        ending = [listen(headers) for headers in (token_headers(revoked), revoked_session, logged_out)]
        continuing = [listen(headers) for headers in (token_headers(kept), kept_session)]
        revoke_token(state, "revoked")
        assert own_daemon.call("POST", "/logout", headers=logged_out).status_code == 204
        deadline = time.monotonic() + 55  # a stream ends when it next sends: an event, or a keep-alive comment every 15 s
        for stream in ending:
            assert all(time.monotonic() < deadline for _ in stream)
        for headers in (token_headers(revoked), revoked_session, logged_out):
            assert own_daemon.get(f"/jobs/{job_id}/events", headers=headers).status_code == 401
        assert own_daemon.call("DELETE", f"/jobs/{job_id}", headers=token_headers(kept)).status_code == 202
        for stream in continuing:
            assert any(b'"cancelled"' in line for line in stream)
    assert own_daemon.stop() == 0


def test_revoke_prints_that_streams_end(tmp_path):
    state = tmp_path / "state"
    make_token(state, "laptop")
    assert rooflinectl("token", "--state", str(state), "revoke", "laptop") == (
        "Revoked 1 token named laptop. Sessions and event streams opened with it end now; a stream without events ends within "
        "15 s.\n")


@pytest.mark.parametrize("name, reason", [("", "empty"), ("a\nb", "control"), ("\x1b[2J", "control"), ("a\x7f", "control"),
                                          ("a\x9b2J", "control"), ("caf\udce9", "UTF-8")])
def test_token_names_are_checked(tmp_path, name, reason):
    state = tmp_path / "state"
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        make_token(state, name)
    assert refusal.value.returncode == 2 and reason in refusal.value.stderr and "name of a token" in refusal.value.stderr
    assert not state.exists()


def test_token_names_may_have_letters_of_any_script(tmp_path):
    state = tmp_path / "state"
    make_token(state, "café 7")
    assert "café 7" in rooflinectl("token", "--state", str(state), "list")


def test_each_of_two_tokens_is_accepted(start, tmp_path):
    state = tmp_path / "state"
    first, second = make_token(state), make_token(state)
    own_daemon = start("--require-token", state=state)
    assert first != second
    for token in (first, second):
        assert own_daemon.get("/jobs", headers=token_headers(token)).status_code == 200
    assert own_daemon.stop() == 0
