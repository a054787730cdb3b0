"""Tests rooflinectl bisect on real git repositories. The server judges a suite by its summary, which the build reads from the
file `speed` of the tree: a number (larger is slower), or the verdict that the server must return."""
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import threading

import pytest
from repositories import git, make_repository

CTL = pathlib.Path(os.environ["ROOFLINED_BUILD"]) / "bin/rooflinectl"
RECORDED = json.loads((pathlib.Path(__file__).resolve().parents[1] / "data/suite_run.json").read_text())
BUILD = 'test "$(cat speed)" != broken && printf \'{"name": "tiny", "summary": "%s"}\' "$(cat speed)" >suite.json && echo built'


class FakeDaemon(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url, self.runs, self.baselines, self.inconclusive = f"http://127.0.0.1:{self.server_port}", [], {}, {}
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def judge(self, speed, against):
        if not speed.isdigit():
            return speed
        if self.inconclusive.get(speed, 0) > 0:
            self.inconclusive[speed] -= 1
            return "inconclusive"
        return "incomparable" if against is None else "slower" if int(speed) > int(self.baselines[against]) else "same"

    def answer(self, method, path, body):
        if path == "/suites":
            return 200, {"items": []}
        if method == "GET":
            return 200, self.runs[int(path.rsplit("/", 1)[1]) - 1]
        if path.endswith("/baselines"):
            self.baselines[body["name"]] = self.runs[body["run"] - 1]["summary"]
            return 201, body
        speed, against = body["definition"]["summary"], body.get("against")
        verdict = self.judge(speed, against)
        state = verdict if verdict in ("failed", "running") else "completed"
        if verdict == "malformed":
            return 400, {"title": "Invalid request", "detail": "must be an object", "pointer": "/definition"}
        self.runs.append({**RECORDED, "id": len(self.runs) + 1, "suite": "tiny", "state": state, "verdict": verdict,
                          "summary": speed, "reason": f"because of {speed}"})
        return 202, {"id": len(self.runs), "estimated_s": 3}


class Handler(http.server.BaseHTTPRequestHandler):
    def reply(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, document = self.server.answer(self.command, self.path, json.loads(body) if body else None)
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = reply

    def log_message(self, *_):
        pass


@pytest.fixture
def daemon():
    started = FakeDaemon()
    yield started
    started.shutdown()
    started.server_close()


def make_commits(folder, speeds):
    return make_repository(folder, [{"speed": str(speed)} for speed in speeds])


def start(daemon, repository, good, bad, *options, build=BUILD):
    words = [CTL, "bisect", "--suite", "suite.json", "--good", good, "--bad", bad, "--build", build, "--repository", repository]
    environment = {**os.environ, "ROOFLINED_URL": daemon.url, "TMPDIR": str(repository.parent)}
    return subprocess.Popen([*words, *options], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def bisect(daemon, repository, good, bad, *options, code=0, build=BUILD):
    process = start(daemon, repository, good, bad, *options, build=build)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, f"exit {process.returncode}, not {code}\n{out}\n{err}"
    assert_unchanged(repository)
    return out, err


def assert_unchanged(repository):
    """Checks that no worktree, no temporary folder and no state of git bisect is left."""
    assert git(repository, "worktree", "list").count("\n") == 0 and git(repository, "status", "--porcelain") == ""
    assert [entry for entry in repository.parent.iterdir() if entry.name.startswith("rooflinectl-")] == []
    assert not (repository / ".git/BISECT_LOG").exists()


@pytest.mark.parametrize("first_slower", range(1, 8))
def test_every_position_is_found(daemon, tmp_path, first_slower):
    commits = make_commits(tmp_path / "tree", [10 if number < first_slower else 12 for number in range(8)])
    out, err = bisect(daemon, tmp_path / "tree", commits[0], "main")
    assert out.startswith(f"the first slower commit: {commits[first_slower][:12]} change {first_slower}\n\nsuite run ")
    assert "tiny: slower" in out and "built" in err
    assert len(daemon.runs) <= 2 + 3  # the ends, and log2 of the commits between them
    (baseline,) = daemon.baselines
    assert baseline == f"bisect-{commits[0][:12]}-1"


def test_json_lists_the_steps(daemon, tmp_path):
    commits = make_commits(tmp_path / "tree", [5, 5, 5, 9, 9])
    out, _ = bisect(daemon, tmp_path / "tree", commits[0], commits[4], "--json")
    document = json.loads(out)
    assert document["first_slower"] == commits[3] and document["baseline"] in daemon.baselines
    outcomes = {step["commit"]: step["outcome"] for step in document["steps"]}
    assert outcomes[commits[0]] == "the baseline" and outcomes[commits[3]] == outcomes[commits[4]] == "slower"
    assert outcomes[commits[2]] == "same" and all(step["suite_run"] > 0 for step in document["steps"])


@pytest.mark.parametrize("speed, message", [("broken", "the build failed"), ("failed", "because of failed"),
                                            ("incomparable", "because of incomparable"), ("malformed", "must be an object")])
def test_a_commit_that_can_not_be_judged_is_skipped(daemon, tmp_path, speed, message):
    commits = make_commits(tmp_path / "tree", [5, 5, 5, speed, 9, 9, 9])
    git(tmp_path / "tree", "checkout", "--quiet", "-b", "other", commits[2])
    out, err = bisect(daemon, tmp_path / "tree", commits[0], commits[6], code=5)
    assert f"{commits[3][:12]} is skipped" in err and message in err
    assert commits[3] in err and commits[4] in err and "first bad commit could be any of" in err
    assert "Only skipped commits" in out


def test_an_inconclusive_run_is_repeated(daemon, tmp_path):
    commits = make_commits(tmp_path / "tree", [5, 5, 6, 9])
    daemon.inconclusive = {"6": 3}
    out, err = bisect(daemon, tmp_path / "tree", commits[0], commits[3])
    assert commits[2][:12] in out and err.count("; repeating") == 3
    daemon.inconclusive = {"6": 4}
    _, err = bisect(daemon, tmp_path / "tree", commits[0], commits[3], code=5)
    assert f"{commits[2][:12]} is skipped: because of 6" in err


def test_a_bad_commit_that_is_not_slower(daemon, tmp_path):
    commits = make_commits(tmp_path / "tree", [5, 9, 5])
    _, err = bisect(daemon, tmp_path / "tree", commits[0], commits[2], code=5)
    assert "is not slower than the good commit" in err


def test_the_build_gets_the_commit_and_a_clean_tree(daemon, tmp_path):
    commits = make_commits(tmp_path / "tree", [5, 5, 9, 9])
    log = tmp_path / "log"
    build = f'echo "$ROOFLINED_COMMIT $(git rev-parse HEAD) $(ls | tr "\\n" " ")" >>{log}; echo 7 >number; touch left; {BUILD}'
    bisect(daemon, tmp_path / "tree", commits[0], commits[3], build=build)
    lines = [line.split() for line in log.read_text().splitlines()]
    assert [line[0] for line in lines][:2] == [commits[0], commits[3]]
    assert all(line[0] == line[1] and line[2:] == ["number", "speed"] for line in lines)


def test_ctrl_c_ends_the_build_and_removes_the_tree(daemon, tmp_path):
    commits = make_commits(tmp_path / "tree", [5, 5, 9])
    build = f"echo $$ >{tmp_path}/pid; echo started >&2; sleep 60"
    process = start(daemon, tmp_path / "tree", commits[0], commits[2], build=build)
    for line in process.stderr:
        if line == "started\n":
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130 and daemon.runs == []
    assert_unchanged(tmp_path / "tree")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_ctrl_c_during_a_suite_run(daemon, tmp_path):
    commits = make_commits(tmp_path / "tree", ["running", 5])
    process = start(daemon, tmp_path / "tree", commits[0], commits[1])
    for line in process.stderr:
        if line.startswith("tiny:"):
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130 and "Suite run 1 continues" in err
    assert_unchanged(tmp_path / "tree")


def test_wrong_options_are_refused(daemon, tmp_path):
    repository = tmp_path / "tree"
    commits = make_commits(repository, [5, 9])
    git(repository, "branch", "aside", commits[0])
    for good, bad in ((commits[1], commits[0]), (commits[0], commits[0]), ("nothing", "main"), ("main", "-x"), ("--all", "main")):
        out, err = bisect(daemon, repository, good, bad, code=2)
        assert not out and re.search("is not a commit of|is not an ancestor of", err)
    _, err = bisect(daemon, repository, commits[0], "main", "--colour", "red", code=2)
    assert "--colour" in err
    for missing in (["--suite", "s"], ["--good", "a", "--bad", "b"], ["--suite"]):
        assert subprocess.run([CTL, "bisect", *missing], stderr=subprocess.PIPE, check=False, timeout=120).returncode == 2
    _, err = bisect(daemon, repository, commits[0], "main", code=2, build="false")
    assert "the good commit can't be built" in err
    process = start(daemon, tmp_path, commits[0], "main")
    assert process.communicate(timeout=120) and process.returncode == 2
    assert daemon.runs == []
