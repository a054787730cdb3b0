"""Tests the builds of workers that the configuration names, and suite runs that measure the jobs of their baseline too, in random
order with their own jobs."""

import os
import pathlib
import stat

import pytest

from suite_runs import METRIC, run, suite

BUILD = pathlib.Path(os.environ["ROOFLINED_BUILD"])
SLOW_US = 3000
# A worker that sends the HELLO of another protocol version.
OTHER_PROTOCOL = """#!/usr/bin/env python3
import json, struct, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
hello = json.dumps({"protocol": 4, "program": "old", "commit": "0", "device": words["--device"], "role": words["--role"],
                    "usable": True, "reason": ""}).encode()
sys.stdout.buffer.write(b"RLFW" + bytes([4, 1, 0, 0]) + struct.pack("<I", len(hello)) + hello)
sys.stdout.buffer.flush()
sys.stdin.read()
"""


def worker(folder, text):
    folder.mkdir()
    program = folder / "rooflined-worker-cpu"
    program.write_text(text)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture(scope="module")
def builds_daemon(start, tmp_path_factory):
    """A daemon with three further builds: one whose samples are longer by SLOW_US, one of another protocol
    version, and one whose folder does not exist."""
    folder = tmp_path_factory.mktemp("builds")
    (folder / "us").write_text(str(SLOW_US))
    slow = worker(folder / "slow", "#!/bin/sh\nexport ASAN_OPTIONS=verify_asan_link_order=0\n"
                                   f"LD_PRELOAD={BUILD}/tests/slow_worker.so SLOW_WORKER_FILE={folder}/us "
                                   f"exec {BUILD}/bin/rooflined-worker-cpu \"$@\"\n")
    old = worker(folder / "old", OTHER_PROTOCOL)
    return start("--builds", f"slow={slow},old={old},gone={folder}/gone", "--suites", str(folder))


def measure(daemon, **extra):
    number = daemon.run({"device": "cpu", **suite()["jobs"][0]["request"], **extra})
    [measured_run] = daemon.get(f"/jobs/{number}/results").json()["runs"]
    return next(m["value"] for m in measured_run["measurements"] if m["name"] == "time_cold_us_median")


def test_a_job_runs_in_the_build_that_it_names(builds_daemon):
    times = [measure(builds_daemon, worker_build="slow"), measure(builds_daemon), measure(builds_daemon, worker_build="slow")]
    assert times[0] > SLOW_US and times[2] > SLOW_US and times[1] < SLOW_US, times
    assert builds_daemon.log_text().count("worker of build slow") == 2


@pytest.mark.parametrize("build", ["fast", "slow,old", "../slow", "SLOW"])
def test_an_unknown_build_is_refused(builds_daemon, build):
    request = {"device": "cpu", **suite()["jobs"][0]["request"], "worker_build": build}
    answer = builds_daemon.call("POST", "/jobs", request)
    assert (answer.status_code, answer.json()["code"], answer.json()["pointer"]) == (400, "invalid_field", "/worker_build")
    answer = builds_daemon.call("POST", "/suites/tiny/runs", {"definition": suite(), "against_request": {"worker_build": build}})
    assert (answer.status_code, answer.json()["pointer"]) == (400, "/against_request/worker_build")


@pytest.mark.parametrize("body, pointer", [
    ({"against_request": {}}, "/against_request"), ({"against_request": "slow"}, "/against_request"),
    ({"against_request": {"device": "cpu"}}, "/against_request/device"),
    ({"against_request": {"samples": 0}}, "/against_request/samples"),
    ({"against_request": {"variant": "none"}}, "/against_request/variant"),
    ({"definition": suite(jobs=[{"name": "relu", "request": {"kind": "train", "precisions": ["fp32"]}}]),
      "against_request": {"precisions": ["fp32", "fp16"]}}, "/against_request"),
    ({"against": "v1", "against_request": {"variant": "scalar"}}, "/against"),
])
def test_wrong_requests_of_the_baseline_are_refused(builds_daemon, body, pointer):
    answer = builds_daemon.call("POST", "/suites/tiny/runs", {"definition": suite(), **body})
    assert (answer.status_code, answer.json()["pointer"]) == (404 if pointer == "/against" else 400, pointer), answer.text


def test_another_build_can_be_the_baseline(builds_daemon):
    """Compares the daemon's build with the slow one, whose blocks alternate in random order."""
    definition = suite()
    definition["jobs"][0]["request"]["worker_build"] = "slow"
    body = {"definition": definition, "against_request": {"worker_build": ""}}
    ended_run = run(builds_daemon, "tiny", body)
    assert (ended_run["state"], ended_run["verdict"]) == ("completed", "slower"), ended_run["reason"]
    assert ended_run["baseline"]["request"] == {"worker_build": ""} and isinstance(ended_run["baseline"]["order_seed"], int)
    [verdict] = ended_run["verdicts"]
    assert (verdict["metric"], verdict["blocks_baseline"], verdict["blocks_current"]) == (METRIC, 5, 5)
    assert verdict["confirmed"] is True
    assert verdict["current_median"] > SLOW_US > verdict["baseline_median"] and verdict["history"] == []
    measured = [(item["role"], item["block"]) for item in ended_run["jobs"] if item["role"] in ("block", "baseline")]
    assert [block for _, block in measured] == [i // 2 for i in range(10)]
    assert all({role for role, block in measured if block == i} == {"block", "baseline"} for i in range(5))
    for item in ended_run["jobs"]:
        request = builds_daemon.get(f"/jobs/{item['job']}").json()["request"]
        assert request["fresh_worker"] is True
        assert request["worker_build"] == ("" if item["role"].startswith("baseline") else "slow")
    confirming = [(item["role"], item["block"]) for item in ended_run["jobs"] if "confirmation" in item["role"]]
    assert [block for _, block in confirming] == [i // 2 for i in range(10)] and len(set(confirming)) == 10
    assert verdict["confirmation_median"] > SLOW_US > verdict["confirmation_baseline_median"]
    # No other run uses this run as history or as rolling baseline.
    key = f"/suites/tiny/history?metric={METRIC}"
    assert builds_daemon.get(key).json()["items"] == []


def test_another_variant_can_be_the_baseline(builds_daemon):
    """The values of the variant `scalar` are the baseline of the variant that the metric names."""
    ended_run = run(builds_daemon, "tiny", {"definition": suite(), "against_request": {"variant": "scalar"}})
    assert ended_run["state"] == "completed" and {value["metric"] for value in ended_run["values"]} == {METRIC}
    baseline = [item["job"] for item in ended_run["jobs"] if item["role"] == "baseline"]
    measured = [builds_daemon.get(f"/jobs/{number}/results").json()["runs"][0] for number in baseline]
    assert {measured_run["variant"] for measured_run in measured} == {"scalar"}
    times = [next(m["value"] for m in measured_run["measurements"] if m["name"] == "time_cold_us_median")
             for measured_run in measured]
    by_block = {value["block"]: value["value"] for value in ended_run["values"] if value["role"] == "baseline"}
    assert by_block == dict(enumerate(times))


def test_another_protocol_is_incomparable(builds_daemon):
    ended_run = run(builds_daemon, "tiny", {"definition": suite(), "against_request": {"worker_build": "old"}})
    assert (ended_run["state"], ended_run["verdict"]) == ("completed", "incomparable"), ended_run["reason"]
    assert "version 4" in ended_run["verdicts"][0]["reason"]
    assert "time budget" not in ended_run["reason"]
    assert sum(item["role"] == "baseline" for item in ended_run["jobs"]) == 2, "the baseline is measured twice"
