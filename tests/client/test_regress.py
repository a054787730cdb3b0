"""Tests rooflinectl regress, baseline and suites (options, progress, exit codes and files) against a server that replies with
recorded documents."""
import contextlib
import csv
import http.server
import json
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

CTL = pathlib.Path(os.environ["ROOFLINED_BUILD"]) / "bin/rooflinectl"
DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
RECORDED = json.loads((DATA / "suite_run.json").read_text())
RUNNING = {**RECORDED, "state": "running", "verdict": None, "verdicts": [], "finished_at": None, "elapsed_s": 12.2,
           "progress": {"done": 3, "of": 9, "job": 41, "role": "canary_before"}}


class FakeDaemon(http.server.ThreadingHTTPServer):
    """Replies to the request "METHOD PATH" with the next of its (status, document) pairs, and repeats the last pair. A document
    that is a text is an event stream."""
    daemon_threads = True

    def __init__(self, replies, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.replies, self.requests, self.tokens = {request: list(each) for request, each in replies.items()}, [], []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def reply(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = f"{self.command} {self.path}"
        self.server.requests.append((request, json.loads(body) if body else None))
        self.server.tokens.append(self.headers.get("Authorization"))
        replies = self.server.replies.get(request, [(404, {"title": "Not found", "detail": request})])
        status, document = replies.pop(0) if len(replies) > 1 else replies[0]
        text = (document if isinstance(document, str) else json.dumps(document)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = reply

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(replies, port=0):
    daemon = FakeDaemon(replies, port)
    try:
        yield daemon
    finally:
        daemon.close()


def submitting(*documents, suite="mnist", estimated_s=96.5, basis="runs"):
    return {f"POST /suites/{suite}/runs": [(202, {"id": 17, "state": "queued", "estimated_s": estimated_s,
                                                  "estimate_basis": basis})],
            "GET /suite-runs/17": [(200, document) for document in documents]}


def start(*arguments, url, **options):
    return subprocess.Popen([CTL, *arguments], env={**os.environ, "ROOFLINED_URL": url}, text=True, stdout=subprocess.PIPE,
                            stderr=options.pop("stderr", subprocess.PIPE), **options)


def ctl(*arguments, url="http://127.0.0.1:9", code=0):
    process = start(*map(str, arguments), url=url)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, f"exit {process.returncode}, not {code}\n{out}\n{err}"
    return out, err


@pytest.mark.parametrize("state, verdict, code", [
    ("completed", "same", 0), ("completed", "faster", 0), ("completed", "slower", 1), ("failed", None, 1), ("cancelled", None, 3),
    ("completed", "inconclusive", 5), ("completed", "incomparable", 6), ("completed", None, 5), ("completed", "new", 5),
    ("failed", "same", 1), ("cancelled", "same", 3)])
def test_the_verdict_determines_the_exit_code(state, verdict, code):
    with serving(submitting(RUNNING, {**RECORDED, "state": state, "verdict": verdict})) as daemon:
        out, err = ctl("regress", "mnist", url=daemon.url, code=code)
    assert daemon.requests[0] == ("POST /suites/mnist/runs", {})
    assert err.splitlines() == ["suite run 17 of mnist takes about 96 s, like its last runs",
                                "mnist: canary before, 3 of 9 jobs"]
    shown = state if state != "completed" else verdict if code != 5 else "inconclusive"
    assert f"\nmnist: {shown}\n" in out


def test_a_line_for_each_change():
    progress = [{**RUNNING, "elapsed_s": at, "progress": {"done": done, "of": 9, "job": 41, "role": "block"}}
                for at, done in ((1, 1), (2, 1), (3, 2), (4, 2))]
    with serving(submitting(*progress, RECORDED, estimated_s=None, basis=None)) as daemon:
        _, err = ctl("regress", "mnist", url=daemon.url, code=1)
    assert err.splitlines() == ["suite run 17 of mnist", "mnist: block, 1 of 9 jobs", "mnist: block, 2 of 9 jobs"]


def test_progress_follows_the_event_stream():
    """Events that the run's document already counts print nothing. After a stream has ended early, a second stream continues."""
    def event(number, kind, **data):
        return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"

    def job(number, role, state):
        return event(number, "job", role=role, block=number // 2, job_name="train", state=state)

    begun = [event(1, "state", state="queued"), event(2, "state", state="running"), job(3, "block", "submitted")]
    streams = ["".join(begun) + job(4, "block", "completed") + job(5, "block", "submitted") + job(6, "block", "completed"),
               job(7, "confirmation", "submitted") + job(8, "confirmation", "failed") + event(9, "state", state="completed")]
    first = {**RUNNING, "progress": {"done": 1, "of": 2, "job": 41, "role": "block"}}
    second = {**RUNNING, "progress": {"done": 2, "of": 2, "job": None, "role": "block"}}
    with serving({**submitting(first, second, RECORDED),
                  "GET /suite-runs/17/events": [(200, stream) for stream in streams]}) as daemon:
        _, err = ctl("regress", "mnist", url=daemon.url, code=1)
    assert err.splitlines()[1:] == ["mnist: block, 1 of 2 jobs", "mnist: block, 2 of 2 jobs", "mnist: confirmation, 2 of 2 jobs",
                                    "mnist: confirmation, 3 of 3 jobs"]
    requests = [request for request, _ in daemon.requests]
    assert requests.count("GET /suite-runs/17") == 3 and requests.count("GET /suite-runs/17/events") == 2


@pytest.mark.parametrize("basis, text", [
    ("runs", "about 90 s, like its last runs"), ("jobs", "about 90 s, like the last equal jobs"),
    ("similar_jobs", "about 90 s, if each job takes as long as the last job of its kind"),
    ("time_budget", "at most 90 s, its time budget")])
def test_the_basis_of_an_estimate_is_printed(basis, text):
    with serving(submitting(RECORDED, estimated_s=90, basis=basis)) as daemon:
        assert ctl("regress", "mnist", url=daemon.url, code=1)[1].splitlines()[0] == f"suite run 17 of mnist takes {text}"


def test_a_progress_line_on_a_terminal():
    leader, follower = pty.openpty()
    with serving(submitting(RUNNING, RUNNING, RECORDED)) as daemon:
        process = start("regress", "mnist", url=daemon.url, stderr=follower)
        out, _ = process.communicate(timeout=120)
    os.close(follower)
    text = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while chunk := os.read(leader, 65536):
            text += chunk
    os.close(leader)
    assert process.returncode == 1 and "mnist: slower" in out
    drawn = text.decode().split("\r")
    bar = "██████░░░░░░░░░░░░░░ mnist: canary before, 3 of 9 jobs, 12 s of about 96 s"
    assert sum(line.rstrip() == bar for line in drawn) == 2, drawn
    assert max(map(len, drawn)) <= 80
    assert text.decode().endswith("\r")  # the line is cleared


def test_json_is_the_document_of_the_api(tmp_path):
    with serving(submitting(RUNNING, RECORDED)) as daemon:
        out, err = ctl("--json", "regress", "mnist", "--output", f"junit={tmp_path}/junit.xml", url=daemon.url, code=1)
    assert json.loads(out) == RECORDED and not err and (tmp_path / "junit.xml").read_text().startswith("<?xml")


def test_options_become_the_request(tmp_path):
    definition = {"name": "tiny", "blocks": 3, "jobs": [{"name": "a", "request": {"kind": "kernel"}}], "metrics": []}
    (tmp_path / "tiny.json").write_text(json.dumps(definition))
    with serving(submitting(RECORDED, suite="tiny")) as daemon:
        ctl("regress", "--suite", tmp_path / "tiny.json", "--against=v1", "--device", "cpu", url=daemon.url, code=1)
        ctl("regress", "tiny", f"--suite={tmp_path}/tiny.json", url=daemon.url, code=1)
        ctl("regress", "tiny", "--against-build=v1", "--against-engine", "blas", "--against-variant", "fp16", url=daemon.url,
            code=1)
    posted = [body for request, body in daemon.requests if request == "POST /suites/tiny/runs"]
    assert posted == [{"definition": definition, "against": "v1", "device": "cpu"}, {"definition": definition},
                      {"against_request": {"worker_build": "v1", "engine": "blas", "variant": "fp16"}}]


def test_an_existing_run_is_followed_and_cancelled():
    with serving({**submitting(RUNNING, RECORDED), "DELETE /suite-runs/17": [(202, {"id": 17})]}) as daemon:
        out, err = ctl("regress", "--run", "17", url=daemon.url, code=1)
        assert "mnist: slower" in out and "takes" not in err
        out, _ = ctl("regress", "--cancel", "17", url=daemon.url)
    assert out == "suite run 17 is cancelled\n"
    requests = [request for request, _ in daemon.requests if not request.endswith("/events")]
    assert requests == ["GET /suite-runs/17"] * 2 + ["DELETE /suite-runs/17"]


@pytest.mark.parametrize("arguments, message", [
    ([], "name of a suite"), (["MNIST"], "not a valid name of a suite"), (["../jobs"], "not a valid name of a suite"),
    (["a" * 65], "not a valid name"),
    (["mnist", "kernels"], "an argument too many: kernels"), (["mnist", "--colour", "red"], "no option --colour"),
    (["mnist", "--against"], "needs a value"),
    (["mnist", "--output", "yaml"], "junit, github, github-bigger, bmf, otava, markdown"),
    (["mnist", "--output", "junit", "--output", "bmf"], "standard output"),
    (["--json", "mnist", "--output", "bmf"], "standard output"),
    (["mnist", "--output", "junit=/does/not/exist/x.xml"], "/does/not/exist/x.xml"), (["--run", "x"], "a suite run's number"),
    (["mnist", "--run", "3"], "take no suite"), (["--run", "3", "--cancel", "3"], "take no suite"),
    (["--run", "3", "--against", "v1"], "take no suite"), (["--suite", "/does/not/exist.json"], "/does/not/exist.json")])
def test_wrong_command_lines_send_nothing(arguments, message):
    with serving({}) as daemon:
        _, err = ctl("regress", *arguments, url=daemon.url, code=2)
    assert message in err and daemon.requests == []


@pytest.mark.parametrize("text, message", [('{\n"name": "x",\n"blocks": 3,\n}\n', "line 4"), ("[]", "names no suite"),
                                           ('{"name": 5}', "names no suite"), ('{"name": "A b"}', "not a valid name of a suite")])
def test_a_malformed_suite_file_names_its_line(tmp_path, text, message):
    (tmp_path / "bad.json").write_text(text)
    _, err = ctl("regress", "--suite", tmp_path / "bad.json", code=2)
    assert message in err and ("bad.json" in err or "not a valid name" in err)


def test_refusals_of_the_daemon_exit_with_2():
    problem = {"title": "Invalid request", "detail": "must be from 3 to 30", "pointer": "/definition/blocks"}
    with serving({"POST /suites/mnist/runs": [(400, problem)]}) as daemon:
        _, err = ctl("regress", "mnist", url=daemon.url, code=2)
        assert "(at /definition/blocks)" in err
        ctl("regress", "nothing", url=daemon.url, code=2)
        ctl("regress", "--run", "99", url=daemon.url, code=2)
    for command in (["regress", "mnist"], ["regress", "--run", "1"], ["suites"], ["baseline", "list", "mnist"]):
        ctl(*command, code=4)


# --- files ---------------------------------------------------------------------------------------------------------------------


def test_every_output_is_written(tmp_path):
    formats = ["junit", "github", "github-bigger", "bmf", "otava"]
    files = [argument for name in formats for argument in ("--output", f"{name}={tmp_path}/{name}")]
    with serving(submitting(RECORDED)) as daemon:
        out, err = ctl("regress", "mnist", *files, "--output", "markdown", url=daemon.url, code=1)
    assert out.startswith("### `mnist`: slower") and "mnist: slower\n" in err  # the output replaces the table
    assert all((tmp_path / name).stat().st_size > 100 for name in formats)
    assert "no row" not in err


def test_otava_adds_a_row_for_each_run(tmp_path):
    other = {**RECORDED, "id": 18, "finished_at": "2026-11-21T21:54:35.3Z"}
    unmeasured = {**RECORDED, "id": 19, "verdicts": [{**metric, "current_median": None} for metric in RECORDED["verdicts"]]}
    renamed = {**RECORDED, "id": 20, "verdicts": RECORDED["verdicts"][:2]}
    table, errors = tmp_path / "history.csv", []
    for run, code in ((RECORDED, 1), (other, 1), (unmeasured, 1), (renamed, 2)):
        with serving({"GET /suite-runs/17": [(200, run)]}) as daemon:
            _, err = ctl("regress", "--run", "17", "--output", f"otava={table}", url=daemon.url, code=code)
            errors.append(err)
    with open(table, newline="") as opened:
        rows = list(csv.DictReader(opened, strict=True))
    assert [row["run"] for row in rows] == ["17", "18"]
    assert "no row: the run has no value of train/fp32/epoch_ms_median" in errors[2] and "other columns" in errors[3]


def test_a_full_disk_is_reported_and_other_outputs_are_written(tmp_path):
    with serving({"GET /suite-runs/17": [(200, {**RECORDED, "verdict": "same"})]}) as daemon:
        out, err = ctl("regress", "--run", "17", "--output", "junit=/dev/full", "--output", f"bmf={tmp_path}/bmf", url=daemon.url,
                       code=1)
    assert "No space left" in err and json.loads((tmp_path / "bmf").read_text()) and "mnist: same" in out


# --- interruption and restart --------------------------------------------------------------------------------------------------


def test_interrupt_leaves_the_run_running():
    with serving(submitting(RUNNING)) as daemon:
        process = start("regress", "mnist", url=daemon.url)
        assert "takes about" in process.stderr.readline() and "3 of 9" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and not out
    assert "Suite run 17 continues" in err and "regress --run 17" in err and "regress --cancel 17" in err
    assert not any(request.startswith("DELETE") for request, _ in daemon.requests)


def test_a_restart_of_the_daemon_is_survived():
    with serving(submitting(RUNNING)) as first:
        process = start("regress", "mnist", url=first.url)
        assert "takes about" in process.stderr.readline() and "3 of 9" in process.stderr.readline()
    time.sleep(2)
    with serving({"GET /suite-runs/17": [(503, {"title": "Starting"}), (200, RUNNING), (200, RECORDED)]}, first.server_port):
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 1 and "mnist: slower" in out


def test_a_daemon_that_stays_away_is_given_up_after_30_s():
    with serving(submitting(RUNNING)) as first:
        process = start("regress", "mnist", url=first.url)
        assert "takes about" in process.stderr.readline() and "3 of 9" in process.stderr.readline()
        began = time.monotonic()
    process.communicate(timeout=120)
    assert process.returncode == 4 and 30 <= time.monotonic() - began < 60


# --- baselines and suites ------------------------------------------------------------------------------------------------------


def test_promote_takes_the_last_completed_run():
    runs = {"items": [{"id": 21, "state": "running"}, {"id": 20, "state": "failed"}, {"id": 19, "state": "completed"},
                      {"id": 18, "state": "completed"}]}
    promoted = {"POST /suites/mnist/baselines": [(201, {"name": "v1", "run": 19})]}
    with serving({"GET /suites/mnist/runs?limit=100": [(200, runs)], **promoted}) as daemon:
        assert ctl("baseline", "promote", "mnist", "v1", url=daemon.url)[0] == "suite run 19 is baseline v1 of mnist\n"
        assert json.loads(ctl("--json", "baseline", "promote", "mnist", "v2", "--run", "18", url=daemon.url)[0])["name"] == "v1"
    assert [body for _, body in daemon.requests if body] == [{"name": "v1", "run": 19}, {"name": "v2", "run": 18}]
    with serving({"GET /suites/mnist/runs?limit=100": [(200, {"items": runs["items"][:2]})], **promoted}) as daemon:
        assert "no completed run" in ctl("baseline", "promote", "mnist", "v1", url=daemon.url, code=2)[1]
    refusals = [(409, {"title": "Conflict", "detail": "v1 exists"}),
                (422, {"title": "Not eligible", "detail": "run 18 was throttled"})]
    with serving({"POST /suites/mnist/baselines": refusals}) as daemon:
        assert "v1 exists" in ctl("baseline", "promote", "mnist", "v1", "--run", "18", url=daemon.url, code=2)[1]
        assert "throttled" in ctl("baseline", "promote", "mnist", "v1", "--run", "18", url=daemon.url, code=2)[1]


def test_baselines_are_listed():
    items = {"items": [{"name": "v2", "run": 21, "created_at": "2026-11-21T10:00:00Z"},
                       {"name": "v1", "run": 7, "created_at": "2026-11-01T09:30:00Z"}]}
    with serving({"GET /suites/mnist/baselines": [(200, items)]}) as daemon:
        lines = ctl("baseline", "list", "mnist", url=daemon.url)[0].splitlines()
        assert json.loads(ctl("baseline", "list", "mnist", "--json", url=daemon.url)[0]) == items
    assert [line.split()[:3] for line in lines[1:]] == [["v2", "21", "2026-11-21T10:00"], ["v1", "7", "2026-11-01T09:30"]]


@pytest.mark.parametrize("arguments", [[], ["promote"], ["promote", "mnist"], ["promote", "mnist", "V1"], ["list"],
                                       ["list", "a/b"],
                                       ["list", "mnist", "v1"], ["promote", "mnist", "v1", "v2"], ["drop", "mnist", "v1"],
                                       ["promote", "mnist", "v1", "--run"], ["promote", "mnist", "v1", "--run", "0"],
                                       ["list", "mnist", "--run", "3"], ["list", "mnist", "--all"]])
def test_wrong_baseline_commands_send_nothing(arguments):
    with serving({}) as daemon:
        assert ctl("baseline", *arguments, url=daemon.url, code=2)[1] and daemon.requests == []


def test_suites_are_listed_with_their_problems():
    items = [{"name": "mnist", "summary": "Training of the MNIST CNN", "device": "gpu0", "blocks": 7, "time_budget_s": 180,
              "estimated_s": 95, "jobs": 1, "metrics": 6, "problem": None,
              "last_run": {"id": 17, "state": "completed", "verdict": "inconclusive", "finished_at": "2026-11-20T21:54:35Z"}},
             {"name": "kernels", "summary": "Every kernel", "blocks": 5, "estimated_s": 480, "estimate_basis": "time_budget",
              "jobs": 9, "metrics": 9,
              "problem": None, "last_run": None},
             {"name": "broken", "problem": {"file": "/etc/rooflined/suites.d/broken.json", "line": 4, "pointer": "/blocks",
                                            "message": "must be from 3 to 30"}}]
    with serving({"GET /suites": [(200, {"items": items})]}) as daemon:
        out, _ = ctl("suites", url=daemon.url)
        assert json.loads(ctl("suites", "--json", url=daemon.url)[0]) == {"items": items}
        ctl("suites", "more", url=daemon.url, code=2)
    assert re.search(r"^mnist +7 +6 +95 s  inconclusive Training of the MNIST CNN$", out, re.M)
    assert re.search(r"^kernels +5 +9 +≤ 8 min  — +Every kernel$", out, re.M)
    assert re.search(r"^broken +malformed: line 4 · /blocks\n  must be from 3 to 30$", out, re.M)


def test_help_lists_options_formats_and_exit_codes():
    out, _ = ctl("regress", "--help")
    for word in ("--suite FILE", "--against NAME", "--output FORMAT[=FILE]", "junit", "otava", "markdown"):
        assert word in out
    assert re.search(r"^  5 +regress: inconclusive$", ctl("--help")[0], re.M) and max(map(len, out.splitlines())) <= 80


def test_an_unreachable_daemon_exits_with_4():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        ctl("regress", "mnist", url=f"http://127.0.0.1:{closed.getsockname()[1]}", code=4)
