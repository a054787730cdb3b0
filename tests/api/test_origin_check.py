"""Tests the checks of the headers Host, Origin and Sec-Fetch-Site, and the security headers of responses."""

import http.client

import pytest
from daemon import job


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8731", "127.0.0.1.evil.example", "10.1.2.3", "[::2]",
                                  "localhost:99999999", "a b"])
def test_foreign_hosts_are_refused(daemon, host):
    for method, path in (("GET", "/jobs"), ("GET", "/"), ("GET", "/healthz"), ("OPTIONS", "/jobs"), ("GET", "/nowhere")):
        response = daemon.call(method, path, headers={"Host": host})
        assert (response.status_code, response.json()["code"]) == (421, "foreign_host")
    response = daemon.call("POST", "/jobs", job(), headers={"Host": host})
    assert response.status_code == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.1.2.3:8080", "[::1]:8731"])
def test_own_hosts_are_accepted(daemon, host):
    assert daemon.get("/healthz", headers={"Host": host}).status_code == 200


def test_requests_with_no_or_two_hosts_are_refused(daemon):
    for hosts in ([], ["localhost", "localhost"]):
        connection = http.client.HTTPConnection(daemon.host, daemon.port, timeout=60)
        connection.putrequest("GET", "/healthz", skip_host=True)
        for host in hosts:
            connection.putheader("Host", host)
        connection.endheaders()
        assert connection.getresponse().status in (400, 421)
        connection.close()


def test_allowed_hosts_are_accepted(start):
    own_daemon = start("--allowed-hosts", "gpu.lan, box", "--devices", "cpu")
    assert own_daemon.get("/healthz", headers={"Host": "GPU.lan:8731"}).status_code == 200
    assert own_daemon.get("/healthz", headers={"Host": "box"}).status_code == 200
    assert own_daemon.get("/healthz", headers={"Host": "lan"}).status_code == 421
    assert own_daemon.stop() == 0


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "https://localhost.evil.example"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"}, {"Origin": "ftp://localhost"},
])
def test_pages_of_other_sites_are_refused(daemon, headers):
    before = daemon.get("/jobs?limit=1").json()
    for method, path in (("GET", "/jobs"), ("DELETE", "/jobs/1"), ("OPTIONS", "/jobs"), ("GET", "/index.html")):
        response = daemon.call(method, path, headers=headers)
        assert (response.status_code, response.json()["code"]) == (403, "forbidden")
    assert daemon.call("POST", "/jobs", job(), headers=headers).status_code == 403
    assert daemon.get("/jobs?limit=1").json() == before


def test_the_own_page_is_accepted(daemon):
    headers = {"Origin": f"http://{daemon.host}:{daemon.port}", "Sec-Fetch-Site": "same-origin"}
    assert daemon.get("/jobs", headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/", "/jobs", "/nowhere", "/metrics", "/openapi.json"])
def test_replies_have_security_headers(daemon, path):
    headers = daemon.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "object-src 'none'" in policy
    assert "unsafe" not in policy and "*" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in headers
