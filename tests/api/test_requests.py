"""Tests that invalid HTTP requests get the exact status, code, and pointer or parameter in the problem document."""

import json
import socket

import pytest
from daemon import job

JOBS = "/jobs"


def assert_problem(response, status, code, **members):
    problem = response.json()
    assert (response.status_code, problem["code"]) == (status, code), problem
    for name, value in members.items():
        assert problem[name] == value, problem


@pytest.mark.parametrize("body", [
    b"", b"{", b'{"kind":"train"', b"nonsense", b'{"kind":"train"} x', b'{"kind":"train",}', b"\xff\xfe", b'{"kind":"tr\x00ain"}',
    b"[" * 40 + b"]" * 40, b'{"a":' * 100000,
    b'{"kind":"train","kernels":"\xff\xfe"}', b'{"kind":"train","engine":"auto\\u0000junk"}',
    b'{"kind":"train","eng\\u0000ine":1}', b'{"kind":"train","device":"\xed\xa0\x80"}', b'{"kind":"train","device":"\\ud800"}',
])
def test_malformed_json_is_refused(daemon, body):
    assert_problem(daemon.call("POST", JOBS, body), 400, "bad_json", pointer="")


@pytest.mark.parametrize("change, pointer", [
    ({"kind": "dance"}, "/kind"),
    ({"kind": 1}, "/kind"),
    ({"kind": None}, "/kind"),
    ({"batch_size": 0}, "/batch_size"),
    ({"batch_size": 1e9}, "/batch_size"),
    ({"batch_size": 64.5}, "/batch_size"),
    ({"batch_size": "64"}, "/batch_size"),
    ({"batch_size": None}, "/batch_size"),
    ({"batch_size": [64]}, "/batch_size"),
    ({"batch_size": True}, "/batch_size"),
    ({"epochs": -1}, "/epochs"),
    ({"seed": 1e300}, "/seed"),
    ({"learning_rate": 0}, "/learning_rate"),
    ({"learning_rate": 1e-10}, "/learning_rate"),
    ({"learning_rate": "fast"}, "/learning_rate"),
    ({"precisions": []}, "/precisions"),
    ({"precisions": "fp32"}, "/precisions"),
    ({"precisions": ["fp32", "fp32"]}, "/precisions/1"),
    ({"precisions": ["fp32", "fp128"]}, "/precisions/1"),
    ({"passes": ["timing", 5]}, "/passes/1"),
    ({"engine": "warp"}, "/engine"),
    ({"dataset": {}}, "/dataset"),
    ({"device": "gpu77"}, "/device"),
    ({"device": "a" * 100}, "/device"),
    ({"device": "cpu\u0007"}, "/device"),
    ({"name": "   "}, "/name"),
    ({"name": "\u00a0"}, "/name"),
    ({"name": "\u2003\u200b\t"}, "/name"),
    ({"unknown": 1}, "/unknown"),
    ({"a/b~c": 1}, "/a~1b~0c"),
])
def test_invalid_fields_are_refused(daemon, change, pointer):
    before = daemon.get("/jobs?limit=1").json()["items"]
    body = job(**change)
    if pointer == "/device" or change.get("device"):
        body.pop("engine", None)
    assert_problem(daemon.call("POST", JOBS, body), 400, "invalid_field", pointer=pointer)
    assert daemon.get("/jobs?limit=1").json()["items"] == before


@pytest.mark.parametrize("change, detail", [
    ({"epoch": 3}, 'unknown field "epoch"; did you mean epochs?'),
    ({"precision": ["fp32"]}, 'unknown field "precision"; did you mean precisions?'),
    ({"batchsize": 3}, 'unknown field "batchsize"; did you mean batch_size?'),
    ({"colour": 3}, 'unknown field "colour"'),
    ({"x": 3}, 'unknown field "x"'),
    ({"epochs": 10 ** 17}, "epochs must be between 1 and 1000"),
    ({"epochs": 1.5}, "epochs must be a whole number"),
    ({"kind": "dance"}, "kind must be one of: train, kernel, layer, ceilings, source"),
])
def test_errors_say_what_is_accepted(daemon, change, detail):
    answer = daemon.call("POST", JOBS, job(**change))
    assert answer.status_code == 400 and answer.json()["detail"] == detail


@pytest.mark.parametrize("device", [{"device": "cpu"}, {}])
def test_training_that_no_engine_of_the_cpu_supports(daemon, device):
    """The daemon refuses the request at submission, also if it names no device and the daemon selects the CPU."""
    properties = daemon.get("/openapi.json").json()["components"]["schemas"]["TrainJob"]["properties"]
    before = daemon.get("/jobs?limit=1").json()["items"]
    gpu_engines = set(properties["engine"]["enum"]) - {"auto", "reference", "blas", "fused"}
    assert {"cudnn", "persistent"} <= gpu_engines
    for engine in gpu_engines:
        body = {"kind": "train", "engine": engine, **device}
        assert_problem(daemon.call("POST", JOBS, body), 400, "invalid_field", pointer="/engine")
    for engine in ("auto", "fused"):
        body = {"kind": "train", "engine": engine, "precisions": ["fp32", "tf32", "fp16"], **device}
        assert_problem(daemon.call("POST", JOBS, body), 400, "invalid_field", pointer="/precisions")
    assert daemon.get("/jobs?limit=1").json()["items"] == before


def test_bodies_without_object_and_missing_or_repeated_keys(daemon):
    for body in (b"[]", b"null", b'"train"', b"17"):
        assert daemon.call("POST", JOBS, body).status_code == 400
    assert_problem(daemon.call("POST", JOBS, {}), 400, "invalid_field", pointer="/kind")
    assert_problem(daemon.call("POST", JOBS, b'{"kind":"train","epochs":1,"epochs":2}'), 400, "invalid_field", pointer="/epochs")


@pytest.mark.parametrize("kind", [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonp",
                                  "multipart/form-data; boundary=x"])
@pytest.mark.parametrize("path", ["/jobs", "/login"])
def test_other_content_types_are_refused(daemon, kind, path):
    headers = {"Content-Type": kind} if kind is not None else {"Content-Type": None}
    assert_problem(daemon.call("POST", path, json.dumps(job()).encode(), headers=headers), 415, "unsupported_media_type")


def test_a_content_type_may_have_a_charset(daemon):
    job_id = daemon.submit(job(), headers={"Content-Type": "Application/JSON; charset=utf-8"})
    daemon.wait(job_id)


@pytest.mark.parametrize("method, path, allow", [
    ("PUT", "/jobs", "POST, GET, HEAD, OPTIONS"),
    ("PUT", "/jobs/1", "GET, HEAD, PATCH, DELETE, OPTIONS"),
    ("POST", "/jobs/1/events", "GET, HEAD, OPTIONS"),
    ("DELETE", "/healthz", "GET, HEAD, OPTIONS"),
    ("GET", "/login", "POST, OPTIONS"),
    ("HEAD", "/logout", "POST, OPTIONS"),
    ("DELETE", "/index.html", "GET, HEAD, OPTIONS"),
])
def test_other_methods_are_refused(daemon, method, path, allow):
    response = daemon.call(method, path)
    assert (response.status_code, response.headers["Allow"]) == (405, allow)
    if method != "HEAD":
        assert_problem(response, 405, "method_not_allowed")


def test_options_lists_the_methods(daemon):
    response = daemon.call("OPTIONS", "/jobs/5")
    assert (response.status_code, response.headers["Allow"]) == (204, "GET, HEAD, PATCH, DELETE, OPTIONS")
    assert "Access-Control-Allow-Origin" not in response.headers
    assert daemon.call("OPTIONS", "/nowhere").status_code == 404


def test_head_is_get_without_the_body(daemon):
    for path in ("/jobs", "/healthz", "/openapi.json", "/index.html"):
        response, head = daemon.get(path), daemon.call("HEAD", path)
        assert head.status_code == 200 and head.content == b""
        assert head.headers["Content-Type"] == response.headers["Content-Type"]
        assert (head.headers["Content-Length"] == response.headers["Content-Length"]
                or "chunked" in response.headers.get("Transfer-Encoding", ""))


@pytest.mark.parametrize("path", ["/jobs/0", "/jobs/999999999", "/jobs/999999999/events", "/jobs/999999999/results",
                                  "/jobs/999999999/kernels", "/jobs/999999999/timeline", "/jobs/999999999/comparison", "/jobs/x",
                                  "/jobs/-1", "/jobs/1.0", "/jobs/99999999999999999999", "/jobs/", "/jobs//events", "/nowhere",
                                  "/JOBS", "/jobs/1/nothing"])
def test_unknown_paths_are_refused(daemon, path):
    assert_problem(daemon.get(path), 404, "not_found")
    if path.startswith("/jobs/9999") and path.count("/") == 2 and len(path) < 20:
        assert_problem(daemon.call("DELETE", path), 404, "not_found")


@pytest.mark.parametrize("path, parameter", [
    ("/jobs?limit=0", "limit"), ("/jobs?limit=501", "limit"), ("/jobs?limit=x", "limit"), ("/jobs?limit=", "limit"),
    ("/jobs?limit=1e1", "limit"), ("/jobs?limit=+1", "limit"), ("/jobs?limit", "limit"), ("/jobs?limit=1&limit=2", "limit"),
    ("/jobs?Limit=1", "Limit"), ("/jobs?state=done", "state"), ("/jobs?device=" + "x" * 100, "device"),
    ("/jobs?unknown=1", "unknown"),
    ("/jobs?cursor=j", "cursor"), ("/jobs?cursor=j0", "cursor"), ("/jobs?cursor=k5", "cursor"), ("/jobs?cursor=5", "cursor"),
    ("/jobs?cursor=j-5", "cursor"), ("/jobs?cursor=j9999999999999999999", "cursor"), ("/jobs?cursor=" + "j" * 200, "cursor"),
    ("/jobs?cursor=%6a1%27", "cursor"), ("/jobs/1?x=1", "x"), ("/healthz?x=1", "x"), ("/openapi.json?x", "x"),
    ("/index.html?x=1", None),
    ("/history", "metric"), ("/history?metric=", "metric"), ("/history?metric=a&from=yesterday", "from"),
    ("/history?metric=a&to=2026-13-01T00:00:00Z", "to"), ("/history?metric=a&limit=0", "limit"), ("/devices?state=idle", "state"),
])
def test_query_parameters_are_checked(daemon, path, parameter):
    response = daemon.get(path)
    if parameter is None:
        assert response.status_code == 200
    else:
        assert_problem(response, 400, "invalid_parameter", parameter=parameter)


def test_problems_quote_query_parameters_as_valid_utf8(daemon):
    assert_problem(daemon.get("/jobs?device=%ff"), 400, "invalid_parameter", parameter="device")
    assert_problem(daemon.get("/jobs?%ff%c3%a9=1"), 400, "invalid_parameter", parameter="?\u00e9")
    assert_problem(daemon.get("/jobs?" + "%c3%a9" * 90 + "=1"), 400, "invalid_parameter")


def test_query_parameters_of_the_history_are_checked(daemon):
    for query, parameter in (("like=0", "like"), ("like=x", "like"), ("limit=0", "limit"), ("from=yesterday", "from")):
        assert_problem(daemon.get(f"/history?metric=epoch_ms_median&{query}"), 400, "invalid_parameter", parameter=parameter)


def test_query_parameters_of_a_job_are_checked(daemon, finished):
    for path, parameter in (("kernels?pass=looking", "pass"), ("kernels?run=0", "run"), ("kernels?limit=2001", "limit"),
                            ("kernels?cursor=j1", "cursor"),
                            ("timeline?from=-1", "from"), ("timeline?to=x", "to"), ("timeline?from=5&to=4", "to"),
                            ("timeline?limit=0", "limit"), ("timeline?format=perfetto", "format"),
                            ("comparison?x=1", "x"), ("results?x=1", "x"), ("events?x=1", "x")):
        assert_problem(daemon.get(f"/jobs/{finished}/{path}"), 400, "invalid_parameter", parameter=parameter)


def exchange(daemon, data):
    """Returns the status, the headers, and the body of the first reply, which must be the last on its connection."""
    with socket.create_connection((daemon.host, daemon.port), timeout=60) as raw:
        raw.sendall(data)
        answer = b""
        while chunk := raw.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), body


@pytest.mark.parametrize("headers", [
    "Content-Length: 2\r\nContent-Length: 3", "Content-Length: 3\r\nContent-Length: 2\r\nContent-Length: 2",
    "Content-Length: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 5",
    "Transfer-Encoding: gzip", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
])
@pytest.mark.parametrize("method, path", [("POST", "/jobs"), ("GET", "/healthz"), ("PUT", "/nowhere")])
def test_requests_whose_end_is_not_certain(daemon, method, path, headers):
    """The daemon refuses such a request and closes its connection, so that no part of the body is taken for another request."""
    second = "GET /devices HTTP/1.1\r\nHost: localhost\r\n\r\n"
    status, head, body = exchange(daemon, f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                          f"{headers}\r\n\r\n0\r\n\r\n{second}".encode())
    assert (status, json.loads(body)["code"]) == (400, "bad_request")
    assert "application/problem+json" in head and "Connection: close" in head


@pytest.mark.parametrize("hosts", ["", "Host: localhost\r\nHost: localhost\r\n"])
def test_requests_without_exactly_one_host_are_refused(daemon, hosts):
    status, head, body = exchange(daemon, f"GET /healthz HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n".encode())
    assert (status, json.loads(body)["code"]) == (400, "bad_request")


@pytest.mark.parametrize("path", ["/jobs", "/healthz", "/index.html"])
@pytest.mark.parametrize("query", ["a&" * 500, "a=b&" * 500, "&".join(f"p{i}={i}" for i in range(65)), "&" * 5000])
def test_more_than_64_query_parameters_are_refused(daemon, path, query):
    assert_problem(daemon.get(f"{path}?{query}"), 400, "bad_request")


def test_64_query_parameters_are_parsed(daemon):
    query = "&".join(f"p{i}={i}" for i in range(64))
    assert_problem(daemon.get(f"/jobs?{query}"), 400, "invalid_parameter")
    assert daemon.get(f"/index.html?{query}").status_code == 200
