"""Tests rooflinectl regress and bisect with the real daemon and the CPU worker, on a suite of one kernel. A preloaded library
(slow_worker.c) makes the worker slower by the delay in a file."""
import contextlib
import csv
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
import yaml
from client_daemon import BUILD, Daemon
from repositories import git, make_repository

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from free_port import free_port  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parents[2]
KEY = "copy/scalar/time_warm_us_median"
# The delays FAST_US and SLOW_US make up most of each sample's time, so that other programs on the machine change no verdict.
TINY = {"name": "tiny", "summary": "One kernel", "blocks": 6, "time_budget_s": 300, "canary": False, "profile": False,
        "jobs": [{"name": "copy", "request": {"kind": "kernel", "kernel": "copy", "dtype": "fp32", "shape": {"n": 256},
                                              "variant": "scalar", "samples": 5}}],
        "metrics": [{"job": "copy", "metric": "time_warm_us_median", "direction": "lower", "threshold_ratio": 1}]}
FAST_US, SLOW_US = 1000, 16000


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("daemon")
    (folder / "suites.d").mkdir()
    (folder / "suites.d/tiny.json").write_text(json.dumps(TINY, indent=1))
    (folder / "suites.d/broken.json").write_text('{\n"name": "broken",\n"blocks": 99\n}\n')
    delay_file = folder / "slow_us"
    delay_file.touch()
    started = Daemon(folder / "state", "--suites", str(folder / "suites.d"),
                     environment={"LD_PRELOAD": str(BUILD / "tests/slow_worker.so"), "SLOW_WORKER_FILE": str(delay_file)})
    started.delay_file = delay_file
    yield started
    started.stop()


@pytest.fixture
def fast_daemon(daemon):
    daemon.delay_file.write_text(str(FAST_US))
    return daemon


def start(*arguments, url):
    return subprocess.Popen([BUILD / "bin/rooflinectl", *map(str, arguments)], env={**os.environ, "ROOFLINED_URL": url},
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ctl(*arguments, url, code=0):
    process = start(*arguments, url=url)
    out, err = process.communicate(timeout=900)
    assert process.returncode == code, f"exit {process.returncode}, not {code}\n{out}\n{err}"
    return out, err


def regress(*arguments, url, code):
    """Runs a suite. Repeats a run that is inconclusive, which happens when other programs use the processor."""
    for _ in range(5):
        process = start("regress", *arguments, url=url)
        out, err = process.communicate(timeout=300)
        if process.returncode != 5:
            break
    assert process.returncode == code, f"exit {process.returncode}, not {code}\n{out}\n{err}"
    return out


@pytest.fixture(scope="module")
def baseline(daemon):
    """The id of the first suite run whose blocks differ by less than the threshold. The fixture makes this run the baseline
    v1."""
    daemon.delay_file.write_text(str(FAST_US))
    out, err = ctl("regress", "tiny", "--output", f"junit={daemon.state.parent}/first.xml", url=daemon.url, code=6)
    assert re.search(r"^suite run \d+ of tiny takes at most 5 min, its time budget$", err, re.M) and "tiny: block, 1 of " in err
    assert f"\nincomparable: {KEY}\n" in out and out.endswith("\ntiny: incomparable\n")
    assert ElementTree.parse(daemon.state.parent / "first.xml").find(".//error").get("type") == "incomparable"
    run = int(re.match(r"suite run (\d+)", out).group(1))
    for _ in range(5):  # on a busy machine a block can be an outlier; the daemon then refuses the run as a baseline
        show = start("regress", "--json", "--run", run, url=daemon.url)
        values = [value["value"] for value in json.loads(show.communicate(timeout=300)[0])["values"]]
        if max(values) < 2 * min(values):
            break
        second_follower = start("regress", "tiny", url=daemon.url)
        run = int(re.match(r"suite run (\d+)", second_follower.communicate(timeout=300)[0]).group(1))
    out, _ = ctl("baseline", "promote", "tiny", "v1", "--run", run, url=daemon.url)
    assert out == f"suite run {run} is baseline v1 of tiny\n"
    return run


def test_suites_lists_malformed_files(fast_daemon):
    out, _ = ctl("suites", url=fast_daemon.url)
    assert re.search(r"^tiny +6 +1 +\S+ ", out, re.M), out
    assert re.search(r"^broken +malformed: line 3 · /blocks$", out, re.M), out
    _, err = ctl("regress", "broken", url=fast_daemon.url, code=2)
    assert "blocks" in err
    ctl("regress", "unknown", url=fast_daemon.url, code=2)


def test_a_slower_worker_makes_the_suite_slower(fast_daemon, baseline, tmp_path):
    fast_daemon.delay_file.write_text(str(SLOW_US))
    formats = ["junit", "github", "github-bigger", "bmf", "otava", "markdown"]
    files = [argument for name in formats for argument in ("--output", f"{name}={tmp_path}/{name}")]
    out = regress("tiny", "--against", "v1", *files, url=fast_daemon.url, code=1)
    assert f"\nslower: {KEY}\n" in out and out.endswith("\ntiny: slower\n")
    run = int(re.match(r"suite run (\d+)", out).group(1))
    document = json.loads(ctl("regress", "--json", "--run", run, url=fast_daemon.url, code=1)[0])
    (verdict,) = document["verdicts"]
    assert verdict["confirmed"] is True and verdict["current_median"] > SLOW_US > verdict["baseline_median"]
    checked = subprocess.run(["xmllint", "--noout", "--schema", SOURCE / "tests/data/junit.xsd", tmp_path / "junit"],
                             stderr=subprocess.PIPE, check=False)
    assert checked.returncode == 0, checked.stderr
    failure = ElementTree.parse(tmp_path / "junit").find(".//failure")
    assert failure.get("type") == "slower" and failure.get("message") == verdict["reason"]
    (point,) = json.loads((tmp_path / "github").read_text())
    assert (point["name"], point["unit"], point["value"]) == (KEY, "µs", pytest.approx(verdict["current_median"], rel=1e-15))
    assert json.loads((tmp_path / "github-bigger").read_text()) == []
    assert list(json.loads((tmp_path / "bmf").read_text())) == ["tiny/copy/scalar"]
    (row,) = csv.DictReader((tmp_path / "otava").read_text().splitlines())
    assert float(row[KEY]) == verdict["current_median"] and row["verdict"] == "slower"
    assert (tmp_path / "markdown").read_text().startswith("### `tiny`: slower\n")


def test_the_jobs_of_suite_runs_are_listed_on_request(fast_daemon, baseline):
    run = json.loads(ctl("regress", "--run", baseline, "--json", url=fast_daemon.url, code=6)[0])
    suite_jobs = {job["job"] for job in run["jobs"]}
    shown, complete = ({job["id"] for job in json.loads(ctl("list", *options, "--json", url=fast_daemon.url)[0])["items"]}
                       for options in ([], ["--all"]))
    assert not suite_jobs & shown and suite_jobs & complete  # list shows the last jobs


def test_a_baseline_is_immutable(fast_daemon, baseline):
    _, err = ctl("baseline", "promote", "tiny", "v1", "--run", baseline, url=fast_daemon.url, code=2)
    assert "v1" in err
    ctl("baseline", "promote", "tiny", "v9", "--run", 999999, url=fast_daemon.url, code=2)
    listed = ctl("baseline", "list", "tiny", url=fast_daemon.url)[0].splitlines()
    assert listed[1].split()[:2] == ["v1", str(baseline)]
    _, err = ctl("regress", "tiny", "--against", "none", url=fast_daemon.url, code=2)
    assert "(at /against)" in err


def test_a_run_with_too_few_blocks_is_inconclusive(daemon, baseline, tmp_path):
    """The time budget ends before there are enough blocks for a significant difference: a block takes longer than the budget."""
    daemon.delay_file.write_text("150000")
    (tmp_path / "tiny.json").write_text(json.dumps({**TINY, "time_budget_s": 1}))
    out, _ = ctl("regress", "--suite", tmp_path / "tiny.json", "--against", "v1", "--output", f"junit={tmp_path}/x",
                 url=daemon.url, code=5)
    assert out.endswith("\ntiny: inconclusive\n")
    assert ElementTree.parse(tmp_path / "x").find(".//error").get("type") == "inconclusive"


def test_a_malformed_definition_names_its_field(fast_daemon, tmp_path):
    (tmp_path / "tiny.json").write_text(json.dumps({**TINY, "blocks": 1}))
    _, err = ctl("regress", "--suite", tmp_path / "tiny.json", url=fast_daemon.url, code=2)
    assert "(at /definition/blocks)" in err


def begin_suite_run(daemon):
    """Starts a suite run and waits for its first block."""
    follower = start("regress", "tiny", "--against", "v1", url=daemon.url)
    run = int(re.match(r"suite run (\d+)", follower.stderr.readline()).group(1))
    while "block" not in follower.stderr.readline():
        assert follower.poll() is None
    return follower, run


def test_a_cancelled_run_exits_with_3(fast_daemon, baseline):
    fast_daemon.delay_file.write_text(str(SLOW_US))  # so that the run does not end before it is cancelled
    follower, run = begin_suite_run(fast_daemon)
    assert "is cancelled" in ctl("regress", "--cancel", run, url=fast_daemon.url)[0]
    out, _ = follower.communicate(timeout=120)
    assert follower.returncode == 3 and "\ntiny: cancelled\n" in out
    ctl("regress", "--cancel", run, url=fast_daemon.url, code=2)
    ctl("regress", "--run", run, url=fast_daemon.url, code=3)


def test_ctrl_c_leaves_the_run_running(fast_daemon, baseline):
    follower, run = begin_suite_run(fast_daemon)
    follower.send_signal(signal.SIGINT)
    _, err = follower.communicate(timeout=120)
    assert follower.returncode == 130 and f"regress --run {run}" in err
    ended = start("regress", "--run", run, url=fast_daemon.url)
    out, _ = ended.communicate(timeout=300)
    assert ended.returncode in (0, 5) and out.startswith(f"suite run {run} ")
    out = out if ended.returncode == 0 else regress("tiny", "--against", "v1", url=fast_daemon.url, code=0)
    assert out.endswith("\ntiny: same\n") and f"against baseline v1 of suite run {baseline}\n" in out
    assert ctl("suites", url=fast_daemon.url)[0].count(" same ") == 1


def test_a_killed_daemon_is_waited_for(fast_daemon, baseline):
    follower, run = begin_suite_run(fast_daemon)
    fast_daemon.restart_after_kill()
    out, err = follower.communicate(timeout=300)
    assert follower.returncode in (0, 5) and out.startswith(f"suite run {run} "), out + err
    document = json.loads(ctl("regress", "--json", "--run", run, url=fast_daemon.url, code=follower.returncode)[0])
    assert document["state"] == "completed" and document["verdicts"][0]["blocks_current"] >= TINY["blocks"] - 1


# --- repositories ------------------------------------------------------------------------------------------------------------


def make_commits(folder, delays, suite):
    return make_repository(folder, [{"perf/suite.json": json.dumps(suite), "delay_us": str(delay)} for delay in delays])


def test_bisect_finds_the_first_slower_commit(fast_daemon, tmp_path):
    commits = make_commits(tmp_path / "tree", [FAST_US, SLOW_US, SLOW_US], {**TINY, "name": "bisected"})
    out, err = ctl("bisect", "--suite", "perf/suite.json", "--good", commits[0], "--bad", "main",
                   "--repository", tmp_path / "tree", "--build", f"cp delay_us {fast_daemon.delay_file}", url=fast_daemon.url)
    assert out.startswith(f"the first slower commit: {commits[1][:12]} change 1\n"), out + err
    assert f"\nslower: {KEY}\n" in out and git(tmp_path / "tree", "worktree", "list").count("\n") == 0


def test_the_example_workflow_reports_the_slower_head(tmp_path):
    """Executes the commands of the workflow, except those that install packages, as a runner of GitHub does. The head commit is
    slower than the base commit."""
    workflow = yaml.safe_load((SOURCE / "docs/examples/github-workflow.yml").read_text())
    assert workflow[True] == "pull_request"  # YAML 1.1 reads the key `on` as a boolean
    job = workflow["jobs"]["regress"]
    commits = make_commits(tmp_path / "tree", [FAST_US, SLOW_US], {**TINY, "name": "pull-request"})
    delay_file, tools = tmp_path / "slow_us", tmp_path / "tools"
    tools.mkdir()
    # A checkout of a commit sets the worker's delay to that of the commit.
    (tools / "git").write_text(f'#!/bin/sh\n/usr/bin/git "$@" && cp delay_us {delay_file}\n')
    (tools / "git").chmod(0o755)
    environment = {**os.environ, **job["env"], "BASE": commits[0], "HEAD": commits[1], "RUNNER_TEMP": str(tmp_path),
                   "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "ROOFLINED_URL": f"http://127.0.0.1:{free_port()}",
                   "PATH": f"{tools}:{BUILD / 'bin'}:{os.environ['PATH']}", "SLOW_WORKER_FILE": str(delay_file),
                   "LD_PRELOAD": str(BUILD / "tests/slow_worker.so")}
    assert set(job["env"]) == {"DEVICE", "SUITE", "BASE", "HEAD", "ROOFLINED_URL"}
    codes = {}
    script = [(step["name"], step["run"]) for step in job["steps"] if "run" in step and "apt-get" not in step["run"]]
    try:
        for name, text in script:
            log = open(tmp_path / "steps.log", "ab")
            codes[name] = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], cwd=tmp_path / "tree", env=environment,
                                         stdout=log, stderr=log, timeout=900, check=False).returncode
        assert list(codes.values()) == [0, 0, 1], (codes, (tmp_path / "steps.log").read_text())
        assert (tmp_path / "summary.md").read_text().startswith("### `pull-request`: slower\n")
        assert ElementTree.parse(tmp_path / "junit.xml").find(".//failure") is not None
    finally:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int((tmp_path / "rooflined/lock").read_text()), signal.SIGTERM)
            fcntl.flock(os.open(tmp_path / "rooflined", os.O_RDONLY), fcntl.LOCK_EX)  # the daemon holds it until it ends
