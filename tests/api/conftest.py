"""Fixtures of the API tests: daemons, a finished job, a certificate, and the recovery of daemons after a failed test."""

import contextlib
import lzma
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from contract import Contract  # noqa: E402
from daemon import DOCUMENT, SOURCE, Daemon, job, make_token  # noqa: E402
from digits import mnist  # noqa: E402


@pytest.fixture(scope="session")
def contract():
    """The checker of requests and responses against schema/openapi.json (contract.py). At the end of the session, its coverage is
    written to the file $ROOFLINED_API_COVERAGE, if that variable is set."""
    checker = Contract(DOCUMENT)
    yield checker
    if file := os.environ.get("ROOFLINED_API_COVERAGE"):
        checker.write_coverage(pathlib.Path(file))


@pytest.fixture(scope="session")
def start(tmp_path_factory, contract):
    """start(*options, token=False, env=None, state=None) starts another daemon. It is stopped at the end of the session, unless
    the test stops it before. start.started lists all daemons in the order of their starts."""
    digits = mnist(tmp_path_factory.mktemp("digits"), test=640)

    def start_daemon(*options, token=False, env=None, state=None):
        state = state or tmp_path_factory.mktemp("daemon") / "state"
        token_text = make_token(state) if token else None
        started = Daemon(state, contract, ("--mnist-dir", str(digits), *options), env)
        started.token = token_text
        start_daemon.started.append(started)
        return started

    start_daemon.started = []
    yield start_daemon
    with contextlib.ExitStack() as cleanup:  # stops all daemons, also if one cannot be stopped
        for started in start_daemon.started:
            cleanup.callback(started.stop)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """The files of a certificate for localhost and of its key."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                    "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                   cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture(scope="session")
def daemon(start):
    """The daemon that most tests share. Each test leaves its queue empty."""
    return start()


@pytest.fixture(scope="session")
def h200(start, tmp_path_factory):
    """A daemon with the database of an H200."""
    state = tmp_path_factory.mktemp("h200")
    (state / "rooflined.db").write_bytes(lzma.decompress((SOURCE / "tests/data/h200.sqlite.xz").read_bytes()))
    return start(state=state)


@pytest.fixture(scope="session")
def finished(daemon):
    """The id of a completed job with two precisions and every pass."""
    return daemon.run(job(precisions=["fp32", "fp16"], epochs=2, passes=["timing", "activity", "counters"]))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    item.failed = report.failed or getattr(item, "failed", False)


@pytest.fixture(autouse=True)
def recover_daemons(request, start):
    """After a failed test: prints the condition of its daemons, kills those that the test started, and recovers the shared ones,
    so that later tests do not fail for the same reason."""
    before = len(start.started)
    yield
    if not getattr(request.node, "failed", False):
        return
    own = start.started[before:]
    shared = [daemon for daemon in start.started[:before] if daemon in request.node.funcargs.values()]
    for daemon in shared + own:
        print(daemon.condition())
    for daemon in own:
        daemon.kill()
    for daemon in shared:
        daemon.recover()
