"""Tests the routes about devices, health and readiness, openapi.json, and the files of the web page."""

import gzip
import json
import os
import signal
import socket
import subprocess
import time

import pytest
import requests
from daemon import BUILD, DOCUMENT, SOURCE, endless, job


def wait_until(holds, seconds=180):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def raw_get(daemon, path, encoding):
    with requests.get(daemon.url + path, headers={"Accept-Encoding": encoding}, stream=True, timeout=60) as response:
        return response.headers, response.raw.read(decode_content=False)


def test_a_healthy_daemon_is_ready(daemon):
    health = daemon.get("/healthz").json()
    assert health["status"] == "ok" and health["version"]
    assert daemon.get("/readyz").json() == {"status": "ready", "devices": 1}


def test_the_daemon_is_ready_while_the_worker_starts(start, tmp_path):
    worker = tmp_path / "rooflined-worker-cpu"
    worker.write_text(f'#!/bin/sh\n[ "$1" = --list ] && exec {BUILD}/bin/rooflined-worker-cpu --list\nexec sleep 1000\n')
    worker.chmod(0o755)
    own_daemon = start("--workers", str(tmp_path))
    own_daemon.submit(job())
    own_daemon.wait_for_metric('rooflined_device_state{device="cpu",state="starting"}', lambda value: value == 1)
    assert own_daemon.get("/readyz").json() == {"status": "ready", "devices": 1}
    assert own_daemon.stop() == 0


def test_a_stop_during_the_start_is_quick(start, tmp_path):
    """Worker programs that do not answer delay a start by 20 s each, but not a stop. The queued job stays."""
    folder = tmp_path / "workers"
    folder.mkdir()
    for kind in ("cpu", "cuda", "other"):
        worker = folder / f"rooflined-worker-{kind}"
        worker.write_text(f"#!/bin/sh\ntouch {tmp_path}/listed\nexec sleep 1000\n")
        worker.chmod(0o755)
    own_daemon = start(state=tmp_path / "state")
    own_daemon.submit(endless())
    queued = own_daemon.submit(endless())
    assert own_daemon.stop() == 0
    for number in (signal.SIGTERM, signal.SIGINT):
        (tmp_path / "listed").unlink(missing_ok=True)
        with subprocess.Popen([*own_daemon.command, "--workers", str(folder)], stdout=subprocess.PIPE,
                              stderr=own_daemon.log) as process:
            wait_until((tmp_path / "listed").exists)
            began = time.monotonic()
            process.send_signal(number)
            assert process.wait(60) == 0
            assert time.monotonic() - began < 10  # the daemon needs about 0.1 s; it would wait 60 s for the worker programs
            assert process.stdout.read() == b""
    own_daemon._start()
    assert own_daemon.get(f"/jobs/{queued}").json()["state"] == "queued"
    own_daemon.cancel_all()
    assert own_daemon.stop() == 0


def test_a_device_shows_its_job(daemon):
    (device,) = daemon.get("/devices").json()["items"]
    assert (device["id"], device["kind"]) == ("cpu", "cpu")
    assert device["properties"]
    job_id = daemon.submit(endless())
    daemon.wait(job_id, states=("running",))
    (busy,) = daemon.get("/devices").json()["items"]
    assert busy["state"] in ("starting", "busy") and busy["job"] == job_id
    daemon.cancel_all()


@pytest.mark.parametrize("message, reason", [(r"no \377 here", "no ? here"),
                                             (r"\303\251" * 200, "é?")])  # cut in the middle of a character
def test_the_reason_of_an_unusable_device_is_utf8(start, tmp_path, message, reason):
    worker = tmp_path / "rooflined-worker-cuda"
    worker.write_text(f"#!/bin/sh\nprintf '{message}\\n' >&2\nexit 1\n")
    worker.chmod(0o755)
    own_daemon = start("--workers", str(tmp_path), "--devices", "all")
    (device,) = own_daemon.get("/devices").json()["items"]
    assert device["reason"].startswith("rooflined-worker-cuda lists no device; it exited with 1: ")
    assert device["reason"].endswith(reason)
    assert own_daemon.stop() == 0


def test_the_daemon_serves_openapi_json(daemon):
    response = daemon.get("/openapi.json")
    assert response.json() == DOCUMENT
    headers, body = raw_get(daemon, "/openapi.json", "gzip")
    assert headers["Content-Encoding"] == "gzip" and json.loads(gzip.decompress(body)) == DOCUMENT
    repeated = daemon.get("/openapi.json", headers={"If-None-Match": response.headers["ETag"]})
    assert (repeated.status_code, repeated.content) == (304, b"")


def test_the_daemon_serves_the_web_page(daemon):
    for path in ("/", "/index.html", "/index.html?job=3"):
        response = daemon.get(path)
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        assert response.content == (BUILD / "share" / "rooflined" / "web" / "index.html").read_bytes()
        assert response.headers["Cache-Control"] == "no-cache"
        repeated = daemon.get(path, headers={"If-None-Match": response.headers["ETag"]})
        assert (repeated.status_code, repeated.content) == (304, b"")


@pytest.fixture(scope="module")
def site(start, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "secret.txt").write_text("secret")
    web = folder / "web"
    (web / "lib" / "deep").mkdir(parents=True)
    files = {"index.html": "text/html; charset=utf-8", "a.js": "text/javascript; charset=utf-8",
             "a.css": "text/css; charset=utf-8", "a.svg": "image/svg+xml", "a.json": "application/json", "a.woff2": "font/woff2",
             "lib/deep/a.mjs": "text/javascript; charset=utf-8", "a.js.map": "application/json",
             "empty.css": "text/css; charset=utf-8"}
    for name in files:
        (web / name).write_text("" if name.startswith("empty") else f"this is {name}")
    (web / ".hidden.js").write_text("hidden")
    (web / "program.exe").write_text("x")
    (web / "link.txt").symlink_to(folder / "secret.txt")
    (web / "inside.js").symlink_to(web / "a.js")
    (web / "out").symlink_to(folder)
    os.mkfifo(web / "pipe.js")
    (web / "folder.js").mkdir()
    return start("--web", str(web)), files


def test_files_have_their_media_types(site):
    daemon, files = site
    for name, kind in files.items():
        response = daemon.get(f"/{name}")
        assert (response.status_code, response.headers["Content-Type"]) == (200, kind)
        assert response.text == ("" if name.startswith("empty") else f"this is {name}")


@pytest.mark.parametrize("path", [
    "/../secret.txt", "/lib/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/lib/..%2f..%2fsecret.txt",
    "//secret.txt", "/./a.js", "/lib/../a.js", "/link.txt", "/inside.js", "/out/secret.txt", "/.hidden.js", "/program.exe",
    "/pipe.js", "/folder.js", "/lib", "/lib/", "/a.js/", "/a.js%00.html/x", "/lib//deep/a.mjs", "/%5c..%5csecret.txt",
    "/" + "a" * 300 + ".js", "/" + "a/" * 400 + "a.js",
], ids=lambda path: path[:32])
def test_paths_stay_inside_the_folder(site, path):
    daemon, _ = site
    with socket.create_connection((daemon.host, daemon.port), timeout=60) as raw:  # the requests library would normalise the path
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while chunk := raw.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 404 " in head.splitlines()[0], answer
    assert json.loads(body)["code"] == "not_found"


def test_a_compressed_copy_is_sent_to_clients_that_accept_it(start, tmp_path):
    (tmp_path / "a.js").write_text("plain " * 100)
    (tmp_path / "a.js.gz").write_bytes(gzip.compress(b"plain " * 100))
    (tmp_path / "b.js").write_text("no copy")
    daemon = start("--web", str(tmp_path))
    headers, body = raw_get(daemon, "/a.js", "gzip")
    assert (headers["Content-Encoding"], headers["Content-Type"]) == ("gzip", "text/javascript; charset=utf-8")
    assert gzip.decompress(body) == b"plain " * 100
    plain_headers, plain = raw_get(daemon, "/a.js", "gzip;q=0")
    assert "Content-Encoding" not in plain_headers and plain == b"plain " * 100
    assert plain_headers["ETag"] != headers["ETag"]
    for reply in (headers, plain_headers):
        assert reply["Vary"] == "Accept-Encoding"
    assert "Content-Encoding" not in raw_get(daemon, "/b.js", "gzip")[0]
    assert daemon.get("/a.js.gz").status_code == 404
    # A copy that is older than its file is not used.
    (tmp_path / "a.js").write_text("changed")
    os.utime(tmp_path / "a.js.gz", (1, 1))
    assert raw_get(daemon, "/a.js", "gzip")[1] == b"changed"
    # A symbolic link is not sent as the compressed copy.
    (tmp_path / "b.js.gz").symlink_to(tmp_path / "a.js.gz")
    os.utime(tmp_path / "b.js", (0, 0))
    assert raw_get(daemon, "/b.js", "gzip")[1] == b"no copy"


def test_the_files_of_the_page_have_compressed_copies(daemon):
    web = BUILD / "share" / "rooflined" / "web"
    for name in ("index.html", "style.css", "theme.js", "index.js", "lib/api.js", "vendor/uPlot.esm.js", "favicon.svg"):
        headers, body = raw_get(daemon, f"/{name}", "gzip")
        assert headers["Content-Encoding"] == "gzip" and gzip.decompress(body) == (web / name).read_bytes(), name


def test_an_unchanged_file_keeps_its_etag(site):
    daemon, _ = site
    first = daemon.get("/a.css").headers["ETag"]
    assert daemon.get("/a.css").headers["ETag"] == first
