"""Tests ceilings jobs, GET /ceilings, and the floors that later jobs get from the ceilings."""

import contextlib
import datetime
import os
import re
import sqlite3
import subprocess
import sys
import time

import pytest
from daemon import job

KERNEL = {"kind": "kernel", "kernel": "copy", "dtype": "fp32", "shape": {"n": 100003}, "variant": "vector", "samples": 3,
          "device": "cpu"}


def ceilings(**changes):
    return {"kind": "ceilings", "device": "cpu", "samples": 2, **changes}


def timing(run):
    return {m["name"]: m for m in run["measurements"] if m["pass"] == "timing"}


@pytest.fixture(scope="module")
def new_daemon(start):
    """A daemon without the ceilings of other tests."""
    return start()


def test_without_ceilings_there_is_no_floor(new_daemon):
    assert new_daemon.get("/ceilings").json() == {"items": []}
    (run,) = new_daemon.get(f"/jobs/{new_daemon.run(job())}/results").json()["runs"]
    floor = timing(run)["floor_ms"]
    assert floor["value"] is None and "ceilings" in floor["reason"]
    assert run["floor_precision"] == "fp32" and 0 < run["floor_written_bytes"] < run["floor_bytes"]
    (run,) = new_daemon.get(f"/jobs/{new_daemon.run(KERNEL)}/results").json()["runs"]
    for name in ("floor_cold_us", "floor_warm_us"):
        assert timing(run)[name]["value"] is None and "ceilings" in timing(run)[name]["reason"]
    assert not any(sample["suspect"] for sample in run["samples"])


def test_ceilings_are_measured_and_listed(new_daemon):
    job_id = new_daemon.run(ceilings(passes=["timing", "activity", "counters"]))
    answer = new_daemon.get(f"/jobs/{job_id}").json()
    assert (answer["kind"], answer["request"]["samples"], answer["request"]["seed"]) == ("ceilings", 2, 1)
    (run,) = new_daemon.get(f"/jobs/{job_id}/results").json()["runs"]
    assert (run["workload"], run["variant"], run["floor_operations"]) == ("ceilings", "best", None)
    assert "floor_ms" not in timing(run) and run["epochs"] == run["samples"] == []
    (item,) = new_daemon.get("/ceilings").json()["items"]
    assert (item["job"], item["run"], item["device"]) == (job_id, run["run"], "cpu")
    assert item["age_s"] >= 0 and not item["stale"] and item["stale_reason"] is None
    assert item["device_identity"].endswith(", 1 threads") and item["commit"]
    rates = {rate["name"]: rate for rate in item["rates"]}
    assert rates["fp32_operations_per_s"]["value"] > 1e8 and rates["dram_copy_bytes_per_s"]["value"] > 1e7
    assert rates["tensor_fp16_operations_per_s"]["value"] is None and rates["tensor_fp16_operations_per_s"]["reason"]
    for reading in item["rates"] + item["conditions"]:
        assert (reading["value"] is None) == (reading["reason"] is not None), reading
        assert reading == {key: timing(run)[reading["name"]][key] for key in ("name", "value", "reason")}
    assert {"sm_clock_least_mhz", "temperature_c_most", "throttled_ratio"} <= {reading["name"] for reading in item["conditions"]}
    assert [item["job"] for item in new_daemon.get("/ceilings?device=cpu").json()["items"]] == [job_id]
    assert new_daemon.get("/ceilings?device=gpu0").json() == {"items": []}


def test_the_cached_list_has_the_current_age(new_daemon):
    """Equal requests within a second get the same body, whose age_s is at most a second out of date."""
    ages, started = set(), time.time()
    while len(ages) < 4:
        begin = time.time()
        answer = new_daemon.call("GET", "/ceilings?device=cpu")
        (item,) = answer.json()["items"]
        measured = datetime.datetime.fromisoformat(item["at"][:26] + "+00:00").timestamp()
        assert begin - measured - 2 <= item["age_s"] <= time.time() - measured + 1
        ages.add((item["age_s"], answer.headers["ETag"]))
        assert len(ages) <= time.time() - started + 2, ages
        time.sleep(0.01)
    statuses = {new_daemon.call("GET", "/ceilings?device=cpu", headers={"If-None-Match": answer.headers["ETag"]}).status_code
                for answer in (new_daemon.call("GET", "/ceilings?device=cpu") for _ in range(5))}
    assert 304 in statuses


def test_floors_follow_from_the_ceilings(new_daemon):
    (item,) = new_daemon.get("/ceilings").json()["items"]
    rate = {rate["name"]: rate["value"] for rate in item["rates"]}["fp32_operations_per_s"]
    (run,) = new_daemon.get(f"/jobs/{new_daemon.run(job())}/results").json()["runs"]
    assert timing(run)["floor_ms"]["value"] >= run["floor_operations"] / rate * 1e3 * 0.999
    (run,) = new_daemon.get(f"/jobs/{new_daemon.run(KERNEL)}/results").json()["runs"]
    for mode in ("cold", "warm"):
        floor = timing(run)[f"floor_{mode}_us"]
        assert (floor["value"] is None) == (floor["reason"] is not None)


def change(daemon, statement, *values):
    """Executes a statement on the daemon's database, and returns the number of changed rows."""
    with contextlib.closing(sqlite3.connect(daemon.state / "rooflined.db", timeout=60)) as database, database:
        return database.execute(statement, values).rowcount


def divide_ceilings(daemon):
    assert change(daemon, "UPDATE measurements SET value = value / 1e9 WHERE name LIKE '%per_s'") > 6


def test_times_below_the_floor_are_suspect(new_daemon):
    """The stored ceilings are divided by 1e9, so that all times are below their floors."""
    divide_ceilings(new_daemon)
    (run,) = new_daemon.get(f"/jobs/{new_daemon.run(job())}/results").json()["runs"]
    (epoch,) = run["epochs"]
    assert epoch["suspect"] and run["summary"]["suspect"]
    assert re.fullmatch(r"[\d.]+ m?s is faster than its floor of [\d.]+ s: [\d.e]+ operations in fp32 at [\d.]+ \wFLOP/s",
                        epoch["suspect_reason"])
    job_id = new_daemon.run({**KERNEL, "shape": {"n": 10000019}})
    (run,) = new_daemon.get(f"/jobs/{job_id}/results").json()["runs"]
    assert all(sample["suspect"] for sample in run["samples"] if sample["mode"] == "cold") and run["summary"]["suspect"]
    points = new_daemon.get("/history?metric=time_cold_us_median&workload=copy").json()["items"]
    assert {point["job"]: point["suspect"] for point in points}[job_id]


@contextlib.contextmanager
def busy_processors():
    """Keeps every processor that the daemon may use busy with another process."""
    def pin(processor):
        return lambda: os.sched_setaffinity(0, {processor})
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=pin(processor))
            for processor in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def disturbed_reason(daemon, ceilings_id):
    """Returns the reason for which the newest ceilings may be too low, which all documents about them share."""
    time.sleep(1.1)  # equal requests within a second get the same body
    (run,) = daemon.get(f"/jobs/{ceilings_id}/results").json()["runs"]
    (item,) = daemon.get("/ceilings").json()["items"]
    assert (item["job"], item["disturbed_reason"]) == (ceilings_id, run["disturbed_reason"])
    return run["disturbed_reason"]


def suspect_summary(daemon):
    """Runs a training job whose epoch is below its floor. Returns its summary; its comparison and report agree with it."""
    job_id = daemon.run(job(precisions=["fp32", "fp16"]))
    summary = daemon.get(f"/jobs/{job_id}/results").json()["runs"][1]["summary"]
    (pair,) = daemon.get(f"/jobs/{job_id}/comparison").json()["items"]
    assert summary["suspect"] and pair["candidate"]["suspect_cause"] == summary["suspect_cause"]
    assert "faster than its floor" in pair["candidate"]["suspect_reason"] and pair["speedup_ratio"] is None
    reasons = [sentence["reason"] for sentence in pair["explanation"] if sentence["topic"] in ("speedup", "limit")]
    assert reasons == ["fp32 and fp16 are suspect"] * 2
    return summary


def test_the_cause_of_times_below_the_floor(new_daemon):
    """While other processes keep the processors busy, ceilings are disturbed, and then they are the likely cause. Ceilings at
    both thresholds, 5 % of the processors' time and half a processor, are not, and no cause is likely."""
    with busy_processors():
        ceilings_id = new_daemon.run(ceilings())
    (run,) = new_daemon.get(f"/jobs/{ceilings_id}/results").json()["runs"]
    assert timing(run)["other_processes_cpu_time_ratio"]["value"] > 0.25
    divide_ceilings(new_daemon)
    use = (r"other processes, interrupts or the hypervisor used \d+\.\d % of the processors' time \(\d+\.\d+ processors\) "
           "during the measurement")
    command = r"\(rooflinectl run --kind ceilings --device cpu\)"
    assert re.fullmatch(f"{use}, so the rates may be too low: measure them again while nothing else runs "
                        f"{command}", disturbed_reason(new_daemon, ceilings_id))
    summary = suspect_summary(new_daemon)
    assert re.fullmatch(f"Likely cause: the ceilings of job {ceilings_id} are too low, because {use}. Measure the ceilings "
                        f"again while nothing else runs {command}, then run this job again.",
                        summary["suspect_cause"])
    set_value = "UPDATE measurements SET value = ? WHERE name = ?"
    for ratio, processors, is_disturbed in ((0.0501, 0.1, True), (0.004, 0.51, True), (0.05, 0.5, False)):
        change(new_daemon, set_value, ratio, "other_processes_cpu_time_ratio")
        change(new_daemon, set_value, processors, "other_processes_busy_processors")
        assert (disturbed_reason(new_daemon, ceilings_id) is not None) == is_disturbed
        cause = suspect_summary(new_daemon)["suspect_cause"]
        assert ("Measure the ceilings again" in cause) == is_disturbed
        assert ("Check that the run does all of its work" in cause) != is_disturbed
        assert ("Likely cause" in cause) == is_disturbed


@pytest.mark.parametrize("change, pointer", [
    ({"samples": 0}, "/samples"), ({"samples": 1001}, "/samples"), ({"seed": -1}, "/seed"), ({"kernel": "copy"}, "/kernel"),
    ({"passes": []}, "/passes"), ({"device": "gpu9"}, "/device"), ({"deadline_s": -1}, "/deadline_s")])
def test_invalid_ceilings_jobs_are_refused(new_daemon, change, pointer):
    response = new_daemon.call("POST", "/jobs", ceilings(**change))
    assert (response.status_code, response.json()["pointer"]) == (400, pointer)


def test_unknown_parameters_are_refused(new_daemon):
    for query in ("devices=cpu", "device=" + "x" * 40):
        response = new_daemon.get(f"/ceilings?{query}")
        assert (response.status_code, response.json()["code"]) == (400, "invalid_parameter")
