"""Tests regression suites over HTTP, on the CPU device."""

import contextlib
import itertools
import json
import sqlite3
import statistics
import time

import pytest

from daemon import SOURCE
from suite_runs import METRIC, run, start, suite, wait, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("suites") / "suites.d"


@pytest.fixture(scope="module")
def suite_daemon(start, folder):
    """A daemon with the suite tiny."""
    write(folder, suite())
    return start("--suites", str(folder))


@pytest.fixture(scope="module")
def first_run(suite_daemon):
    """The first run of the suite, which has nothing to compare with."""
    return run(suite_daemon, "tiny")


def check_problem(response, status, code, pointer=None):
    assert response.status_code == status, response.text
    assert response.json()["code"] == code
    assert response.json().get("pointer") == pointer
    return response.json()["detail"]


def test_the_first_run_has_no_baseline(suite_daemon, first_run):
    assert (first_run["state"], first_run["verdict"]) == ("completed", "incomparable"), first_run["reason"]
    assert first_run["baseline"] == {"name": None, "request": None, "order_seed": None, "runs": []}
    assert [(job["role"], job["block"], job["state"]) for job in first_run["jobs"]] == [
        ("block", i, "completed") for i in range(5)]
    values = [value["value"] for value in first_run["values"]]
    assert len(values) == 5 and min(values) > 0
    [verdict] = first_run["verdicts"]
    assert (verdict["metric"], verdict["verdict"], verdict["blocks_current"]) == (METRIC, "incomparable", 5)
    assert verdict["current_median"] == pytest.approx(statistics.median(values))
    assert first_run["progress"] == {"done": 5, "of": 5, "job": None, "role": None}


def test_every_block_is_a_job_in_a_new_process(suite_daemon, first_run):
    for item, value in zip(first_run["jobs"], first_run["values"]):
        request = suite_daemon.get(f"/jobs/{item['job']}").json()["request"]
        assert (request["fresh_worker"], request["device"]) == (True, "cpu")
        results = suite_daemon.get(f"/jobs/{item['job']}/results").json()
        [measured] = [m for m in results["runs"][0]["measurements"] if m["name"] == "time_cold_us_median"]
        assert measured["value"] == value["value"]
    assert suite_daemon.log_text().count("cpu: started the worker, process") >= 5


def test_the_list_of_jobs_says_which_suite_run_submitted_them(suite_daemon, first_run):
    steps = {step["job"]: step for step in first_run["jobs"]}
    listed = {item["id"]: item["suite_run"] for item in suite_daemon.get("/jobs?limit=500").json()["items"]}
    suite_jobs, client_jobs = (
        {item["id"] for item in suite_daemon.get(f"/jobs?limit=500&in_suite={text}&kind=kernel").json()["items"]}
        for text in ("true", "false"))
    assert suite_jobs and {id for id in suite_jobs | client_jobs if listed.get(id)} == suite_jobs
    for job_id, step in steps.items():
        assert listed[job_id] == {"id": first_run["id"], "suite": first_run["suite"], "role": step["role"],
                                  "block": step["block"]}


def test_jobs_of_clients_are_repetitions_of_blocks(suite_daemon, first_run):
    """fresh_worker is no parameter of a run, so that a client's job counts as a repetition of the blocks."""
    number = suite_daemon.run({"device": "cpu", **suite()["jobs"][0]["request"]})
    [client_run] = suite_daemon.get(f"/jobs/{number}/results").json()["runs"]
    points = suite_daemon.get(f"/history?metric=time_cold_us_median&like={client_run['run']}").json()["items"]
    assert {point["job"] for point in points} >= {item["job"] for item in first_run["jobs"]} | {number}


def test_the_second_run_is_compared_with_the_first(suite_daemon, first_run):
    second = run(suite_daemon, "tiny")
    assert (second["state"], second["verdict"]) == ("completed", "same"), second["reason"]
    assert second["baseline"]["runs"] == [first_run["id"]]
    [verdict] = second["verdicts"]
    assert verdict["baseline_median"] == first_run["verdicts"][0]["current_median"]
    assert verdict["effect_ratio"] == pytest.approx(verdict["current_median"] / verdict["baseline_median"] - 1)
    assert second["estimated_s"] == pytest.approx(first_run["elapsed_s"], rel=0.01)
    listing = suite_daemon.get("/suites/tiny/runs").json()["items"]
    assert [item["id"] for item in listing][:2] == [second["id"], first_run["id"]]
    assert listing[0]["counts"] == {"faster": 0, "same": 1, "slower": 0, "inconclusive": 0, "incomparable": 0}
    assert set(listing[0]) < set(second) and all(second[key] == value for key, value in listing[0].items())


def rank_test(current, baseline):
    """Returns the p-value of the exact two-sided Mann-Whitney test: of all ways to divide the ranks into two groups of these
    sizes, twice the share whose rank sum is at most the observed sum, or at least the observed sum, whichever is smaller. Equal
    values have their mean rank; then the distribution need not be symmetric."""
    values = sorted(current + baseline)
    ranks = [values.index(value) + 1 + (values.count(value) - 1) / 2 for value in current + baseline]
    observed = sum(ranks[:len(current)])
    sums = [sum(division) for division in itertools.combinations(ranks, len(current))]
    tails = sum(value <= observed for value in sums), sum(value >= observed for value in sums)
    return min(1, 2 * min(tails) / len(sums))


def test_the_rank_test_of_these_tests_agrees_with_a_division_counted_by_hand():
    """Ranks of 1 2 2 3: 1, 2.5, 2.5, 4. The sums of pairs are 3.5 3.5 5 5 6.5 6.5; {1, 2} has 3.5: 2 of 6 are at most 3.5."""
    assert rank_test([1, 2], [2, 3]) == pytest.approx(2 * 2 / 6)


def test_a_verdict_can_be_recomputed_from_the_database(suite_daemon, first_run):
    number = run(suite_daemon, "tiny")["id"]
    with contextlib.closing(sqlite3.connect(suite_daemon.state / "rooflined.db", timeout=60)) as database:
        def values(runs, role):
            marks = ",".join("?" * len(runs))
            return [value for value, in database.execute(
                f"SELECT value FROM suite_values WHERE suite_run_id IN ({marks}) AND role = ? AND dropped_reason IS NULL",
                [*runs, role])]

        [(text, version)] = database.execute(
            "SELECT judgement, method_version FROM suite_verdicts WHERE suite_run_id = ?", [number])
        stored = json.loads(text)
        current, baseline = values([number], "block"), values(stored["baseline_runs"], "block")
        history = [statistics.median(values([earlier], "block")) for earlier in stored["baseline_runs"]]
    assert stored["method_version"] == version and first_run["id"] in stored["baseline_runs"]
    assert (stored["blocks_current"], stored["blocks_baseline"]) == (len(current), len(baseline))
    assert stored["history"][-len(history):] == pytest.approx(history)
    assert stored["effect_ratio"] == pytest.approx(statistics.median(current) / statistics.median(baseline) - 1)
    assert stored["p_value"] == pytest.approx(rank_test(current, baseline)) == stored["q_value"]


def test_every_shipped_suite_is_served(start):
    shipped = {path.stem for path in (SOURCE / "daemon/suite/suites.d").glob("*.json")}
    listed = {item["name"]: item for item in start().get("/suites").json()["items"]}
    assert {"mnist", "kernels", "layer"} <= shipped <= set(listed)
    assert all(listed[name]["problem"] is None for name in shipped)


def test_runs_are_listed_in_pages(suite_daemon, first_run):
    page = suite_daemon.get("/suites/tiny/runs?limit=1").json()
    assert len(page["items"]) == 1
    if page["next_cursor"] is not None:
        rest = suite_daemon.get(f"/suites/tiny/runs?cursor={page['next_cursor']}").json()
        assert rest["items"][0]["id"] < page["items"][0]["id"]
    assert suite_daemon.get("/suites/tiny/runs?cursor=j1").status_code == 400
    etag = suite_daemon.get("/suites/tiny/runs").headers["ETag"]
    assert suite_daemon.get("/suites/tiny/runs", headers={"If-None-Match": etag}).status_code == 304


def test_a_slower_request_is_found_and_confirmed(suite_daemon, folder, first_run):
    """Divides the baseline's values in the database, as if the worker had become slower since then."""
    write(folder, suite("planted", profile=True))
    base = run(suite_daemon, "planted")
    assert base["state"] == "completed"
    database = sqlite3.connect(suite_daemon.state / "rooflined.db", timeout=60)
    with database:
        database.execute("UPDATE suite_values SET value = value / 1000 WHERE suite_run_id IN "
                         "(SELECT id FROM suite_runs WHERE suite = 'planted')")
    database.close()
    found = run(suite_daemon, "planted")
    assert (found["verdict"], found["counts"]["slower"]) == ("slower", 1), found["reason"]
    [verdict] = found["verdicts"]
    assert verdict["confirmed"] is True and verdict["blocks_confirmation"] == 5 and verdict["p_value"] < 0.01
    assert [job["block"] for job in found["jobs"] if job["role"] == "confirmation"] == list(range(5))
    difference_us = verdict["current_median"] - verdict["baseline_median"]
    assert sum(cause["difference_us"] for cause in verdict["causes"]) == pytest.approx(difference_us, rel=1e-9)
    assert {cause["class"] for cause in verdict["causes"]} == {"noise"}, "the same worker measured both"
    after = run(suite_daemon, "planted", {"definition": suite("planted", time_budget_s=1)})
    assert found["id"] not in after["baseline"]["runs"]


def test_a_run_becomes_a_named_baseline(suite_daemon, folder, first_run):
    def promote(name, number, suite_name="tiny"):
        return suite_daemon.call("POST", f"/suites/{suite_name}/baselines", {"name": name, "run": number})

    check_problem(promote("V 1", first_run["id"]), 400, "invalid_field", "/name")
    check_problem(promote("v1", 999), 404, "not_found", "/run")
    check_problem(promote("v1", 1, "none"), 404, "not_found")
    assert suite_daemon.get("/suites/tiny/baselines").json() == {"items": []}
    assert promote("v1", first_run["id"]).status_code == 201
    check_problem(promote("v1", first_run["id"]), 409, "baseline_exists", "/name")
    [item] = suite_daemon.get("/suites/tiny/baselines").json()["items"]
    assert (item["name"], item["run"], item["device"]) == ("v1", first_run["id"], "cpu")
    etag = suite_daemon.get("/suites/tiny/baselines").headers["ETag"]
    assert suite_daemon.get("/suites/tiny/baselines", headers={"If-None-Match": etag}).status_code == 304
    check_problem(suite_daemon.call("POST", "/suites/tiny/runs", {"against": "v2"}), 404, "not_found", "/against")
    held = run(suite_daemon, "tiny", {"against": "v1"})
    assert (held["baseline"]["name"], held["baseline"]["runs"]) == ("v1", [first_run["id"]])
    assert held["verdict"] == "same", held["reason"]
    database = sqlite3.connect(suite_daemon.state / "rooflined.db", timeout=60)
    with pytest.raises(sqlite3.IntegrityError, match="immutable"):
        database.execute("UPDATE baselines SET suite_run_id = suite_run_id")
    database.close()


def test_a_dropped_block_is_measured_again(suite_daemon):
    """Marks the value of the first block as throttled while the run continues."""
    metric = {"job": "relu", "metric": "time_cold_us_median", "threshold_ratio": 9}
    body = suite("patched", n=1 << 20, blocks=12, metrics=[metric])
    number = start(suite_daemon, "patched", {"definition": body})
    database = sqlite3.connect(suite_daemon.state / "rooflined.db", timeout=60)
    changes, until = 0, time.monotonic() + 300
    while changes == 0 and time.monotonic() < until:
        with database:
            changes = database.execute("UPDATE suite_values SET dropped_reason = 'GPU throttled during timing (heat)' "
                                       "WHERE suite_run_id = ? AND block = 0", [number]).rowcount
    database.close()
    found = wait(suite_daemon, number)
    assert [job["block"] for job in found["jobs"]] == list(range(13)) and found["progress"]["done"] == 13
    [verdict] = found["verdicts"]
    assert (verdict["blocks_current"], verdict["blocks_dropped"]) == (12, 1)


def test_an_estimate_before_the_first_run(suite_daemon, folder):
    """At first the estimate is the time budget. Then it follows from the last job of the kind, from the last equal job, and from
    the suite's last run."""
    def estimate(definition):
        write(folder, definition)
        found = suite_daemon.get(f"/suites/{definition['name']}").json()
        return found["estimated_s"], found["estimate_basis"]

    training = {"kind": "train", "precisions": ["fp32"], "epochs": 1, "warmup_epochs": 0, "max_images": 64}
    metric = {"job": "train", "metric": "epoch_ms_median", "threshold_ratio": 3}
    planned = suite("planned", jobs=[{"name": "train", "request": training}], metrics=[metric], time_budget_s=77)
    assert estimate(planned) == (77, "time_budget")

    def seconds_of(request):
        number = suite_daemon.run({"device": "cpu", **request})
        with contextlib.closing(sqlite3.connect(suite_daemon.state / "rooflined.db", timeout=60)) as database:
            [(seconds,)] = database.execute("SELECT (finished_ns - started_ns) / 1e9 FROM jobs WHERE id = ?", [number])
        return seconds

    for request, basis in (({**training, "seed": 2}, "similar_jobs"), (training, "jobs")):
        seconds = seconds_of(request)
        assert estimate(planned) == (pytest.approx(5 * seconds), basis)
    assert estimate({**planned, "profile": True})[0] == pytest.approx(7 / 5 * estimate(planned)[0])
    repeated = [{"name": f"train_{number}", "request": training} for number in range(20)]
    large = {**planned, "jobs": [*planned["jobs"], *repeated], "blocks": 30}
    assert estimate({**large, "time_budget_s": 1}) == (1, "time_budget")
    estimate(planned)
    accepted = suite_daemon.call("POST", "/suites/planned/runs", {}).json()
    assert accepted["estimate_basis"] == "jobs"
    ended_run = wait(suite_daemon, accepted["id"])
    assert (ended_run["estimated_s"], ended_run["estimate_basis"]) == (accepted["estimated_s"], "jobs")
    assert estimate(planned) == (pytest.approx(ended_run["elapsed_s"], rel=0.01), "runs")


@contextlib.contextmanager
def changed_value(daemon, table, column, value, where):
    """Changes one value in the database, and at the end changes it back."""
    database = sqlite3.connect(daemon.state / "rooflined.db", timeout=60)
    [(before,)] = database.execute(f"SELECT {column} FROM {table} WHERE {where}")
    with database:
        database.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", [value])
    yield
    with database:
        database.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", [before])
    database.close()


@pytest.mark.parametrize("column, value, block, reason", [
    ("dropped_reason", "suspect: below the floor", 1, "block 1: suspect: below the floor"),
    ("dropped_reason", "GPU throttled during timing (SW power cap)", 4, "block 4: GPU throttled during timing (SW power cap)"),
    ("other_processes", "pid 4711 (1200 MiB)", 2, f"while block 2 of {METRIC} was measured: pid 4711 (1200 MiB)"),
    ("value", 1e9, 3, f"block 3 of {METRIC} is an outlier"),
])
def test_a_run_with_a_bad_block_is_no_baseline(suite_daemon, first_run, column, value, block, reason):
    with changed_value(suite_daemon, "suite_values", column, value, f"suite_run_id = {first_run['id']} AND block = {block}"):
        answer = suite_daemon.call("POST", "/suites/tiny/baselines", {"name": "bad", "run": first_run["id"]})
    assert reason in check_problem(answer, 422, "not_eligible", "/run")


def test_a_quarantined_run_is_no_baseline(suite_daemon, first_run):
    with changed_value(suite_daemon, "suite_runs", "quarantine_reason", "The canary changed.", f"id = {first_run['id']}"):
        answer = suite_daemon.call("POST", "/suites/tiny/baselines", {"name": "bad", "run": first_run["id"]})
    assert "The canary changed." in check_problem(answer, 422, "not_eligible", "/run")


def test_another_request_is_incomparable(suite_daemon, first_run):
    found = run(suite_daemon, "tiny", {"definition": suite(n=8192)})
    assert found["verdict"] == "incomparable"
    assert "definition" in found["verdicts"][0]["reason"]


def test_a_cancelled_run_delays_no_other_run(suite_daemon, folder):
    write(folder, suite("long", blocks=30))
    number = start(suite_daemon, "long")
    wait(suite_daemon, number, states=("running",))
    answer = suite_daemon.call("DELETE", f"/suite-runs/{number}")
    assert answer.status_code == 202 and answer.json()["state"] == "cancelled"
    ended = suite_daemon.get(f"/suite-runs/{number}").json()
    assert (ended["state"], ended["verdict"]) == ("cancelled", None)
    check_problem(suite_daemon.call("DELETE", f"/suite-runs/{number}"), 409, "suite_run_ended")
    check_problem(suite_daemon.call("DELETE", "/suite-runs/999"), 404, "not_found")
    check_problem(suite_daemon.get("/suite-runs/999"), 404, "not_found")
    check_problem(suite_daemon.call("POST", "/suites/long/baselines", {"name": "v1", "run": number}), 422, "not_eligible", "/run")
    # Its job does not delay the next suite run.
    assert run(suite_daemon, "tiny")["state"] == "completed"
    for item in suite_daemon.get(f"/suite-runs/{number}").json()["jobs"]:
        assert item["state"] in ("completed", "cancelled")


def test_runs_of_one_device_follow_each_other(suite_daemon, folder):
    """Two suites and a client's job at once: no job of the second run begins before the first run has ended."""
    for name in ("one", "other"):
        write(folder, suite(name))
    numbers = [start(suite_daemon, name) for name in ("one", "other")]
    client_job = suite_daemon.run({"device": "cpu", **suite()["jobs"][0]["request"]})
    runs = [wait(suite_daemon, number) for number in numbers]
    assert [found["state"] for found in runs] == ["completed", "completed"] and runs[0]["finished_at"] <= runs[1]["started_at"]
    jobs = [[suite_daemon.get(f"/jobs/{item['job']}").json() for item in found["jobs"]] for found in runs]
    assert [len(jobs_of_run) for jobs_of_run in jobs] == [5, 5]
    assert max(job["finished_at"] for job in jobs[0]) <= min(job["created_at"] for job in jobs[1])
    client_document = suite_daemon.get(f"/jobs/{client_job}").json()
    assert client_document["finished_at"] < runs[1]["finished_at"], "a client's job waits for no suite"


def test_a_changed_file_is_seen_at_once(suite_daemon, folder):
    """The cached list of suites is current even after a change of a file."""
    write(folder, suite("edited", summary="before"))
    listed = suite_daemon.call("GET", "/suites")
    assert suite_daemon.call("GET", "/suites", headers={"If-None-Match": listed.headers["ETag"]}).status_code == 304
    edited = suite_daemon.call("GET", "/suites/edited")
    assert suite_daemon.call("GET", "/suites/edited", headers={"If-None-Match": edited.headers["ETag"]}).status_code == 304
    assert edited.json()["summary"] == "before"
    write(folder, suite("edited", summary="after"))
    assert suite_daemon.get("/suites/edited").json()["summary"] == "after"
    assert [item["summary"] for item in suite_daemon.get("/suites").json()["items"] if item["name"] == "edited"] == ["after"]
    (folder / "edited.json").unlink()
    assert "edited" not in [item["name"] for item in suite_daemon.get("/suites").json()["items"]]
    assert suite_daemon.call("GET", "/suites/edited").status_code == 404


def test_a_suite_counts_the_metrics_that_its_runs_judge(suite_daemon, folder):
    """A metric of the definition without a variant applies to every run of its job."""
    training = {"kind": "train", "precisions": ["fp32", "fp16"], "epochs": 1, "warmup_epochs": 0, "max_images": 64}
    metrics = [{"job": "train", "metric": name, "threshold_ratio": 9} for name in ("epoch_ms_median", "peak_memory_bytes")]
    metrics.append({"job": "train", "variant": "fp16", "metric": "epoch_ms_median", "threshold_ratio": 8})
    write(folder, suite("counted", jobs=[{"name": "train", "request": training}], metrics=metrics, blocks=6))
    found = wait(suite_daemon, start(suite_daemon, "counted", {}))
    assert {verdict["metric"] for verdict in found["verdicts"]} == {
        f"train/{variant}/{name}" for variant in ("fp32", "fp16") for name in ("epoch_ms_median", "peak_memory_bytes")}
    [listed] = [item for item in suite_daemon.get("/suites").json()["items"] if item["name"] == "counted"]
    assert listed["metrics"] == suite_daemon.get("/suites/counted").json()["metrics"] == len(found["verdicts"])
    assert sum(found["counts"].values()) == len(found["verdicts"])


def test_malformed_suites_are_listed_and_disturb_no_other(suite_daemon, folder, first_run):
    write(folder, '{"name": "comma",\n "jobs": [],\n}', "comma")
    write(folder, json.dumps(suite("other")), "misnamed")
    wrong = suite("wrong")
    wrong["jobs"][0]["request"]["shape"] = {"rows": 1}
    write(folder, wrong)
    write(folder, suite("orphan", metrics=[{"job": "gelu", "metric": "time_cold_us_median"}]))
    items = {item["name"]: item for item in suite_daemon.get("/suites").json()["items"]}
    line = json.dumps(wrong, indent=1).splitlines().index('     "rows": 1') + 1
    assert (items["comma"]["problem"]["line"], items["comma"]["problem"]["pointer"]) == (3, "")
    assert items["misnamed"]["problem"]["pointer"] == "/name"
    assert (items["wrong"]["problem"]["line"], items["wrong"]["problem"]["pointer"]) == (line, "/jobs/0/request/shape/rows")
    assert items["orphan"]["problem"]["pointer"] == "/metrics/0/job"
    assert items["tiny"]["problem"] is None and items["tiny"]["last_run"]["state"] == "completed"
    assert "3" in check_problem(suite_daemon.call("POST", "/suites/comma/runs", {}), 422, "malformed_suite")
    assert suite_daemon.get("/suites/comma").json()["definition"] is None
    assert suite_daemon.log_text().count("comma.json:3") == 1
    write(folder, suite("comma"))
    assert suite_daemon.get("/suites/comma").json()["problem"] is None


def test_invalid_suite_requests_are_refused(suite_daemon, first_run):
    def start_tiny(body):
        return suite_daemon.call("POST", "/suites/tiny/runs", body)

    check_problem(suite_daemon.get("/suites/none"), 404, "not_found")
    check_problem(suite_daemon.get("/suites/none/runs"), 404, "not_found")
    check_problem(suite_daemon.get("/suites/none/baselines"), 404, "not_found")
    check_problem(suite_daemon.get("/suites/none/history?metric=a/b/c"), 404, "not_found")
    check_problem(suite_daemon.get("/suites/tiny/history"), 400, "invalid_parameter")
    check_problem(suite_daemon.call("POST", "/suites/none/runs", {}), 404, "not_found")
    check_problem(start_tiny({"speed": 1}), 400, "invalid_field", "/speed")
    check_problem(start_tiny({"device": "gpu7"}), 400, "invalid_field", "/device")
    check_problem(start_tiny({"definition": suite("other")}), 400, "invalid_field", "/definition/name")
    check_problem(start_tiny({"definition": suite(blocks=2)}), 400, "invalid_field", "/definition/blocks")
    check_problem(start_tiny({"definition": suite(blocks=4)}), 400, "invalid_field", "/definition/blocks")
    metric = {"job": "relu", "variant": "scalar", "metric": "time_cold_us_median"}
    check_problem(start_tiny({"definition": suite(metrics=[metric])}), 400, "invalid_field",
                  "/definition/metrics/0/variant")
    body = suite()
    path = "/definition/jobs/0/request"
    body["jobs"][0]["request"]["samples"] = 0
    check_problem(start_tiny({"definition": body}), 400, "invalid_field", path + "/samples")
    body["jobs"][0]["request"] = {"kind": "kernel", "kernel": "transpose", "shape": {"rows": 8, "columns": 8},
                                  "variant": "padded"}
    check_problem(start_tiny({"definition": body}), 400, "invalid_field", path + "/variant")


def test_a_repeated_key_replays_the_suite_run(suite_daemon, first_run):
    headers = {"Idempotency-Key": "nightly"}
    number = start(suite_daemon, "tiny", headers=headers)
    repeated = suite_daemon.call("POST", "/suites/tiny/runs", {}, headers=headers)
    assert repeated.json()["id"] == number and repeated.headers["Idempotent-Replayed"] == "true"
    check_problem(suite_daemon.call("POST", "/suites/tiny/runs", {"device": "cpu"}, headers=headers), 422, "idempotency_mismatch")
    assert wait(suite_daemon, number)["state"] == "completed"


def test_a_key_of_one_suite_starts_no_run_of_another(suite_daemon, folder):
    headers = {"Idempotency-Key": "both"}
    for name in ("first", "second"):
        write(folder, suite(name))
    number = start(suite_daemon, "first", headers=headers)
    refused = suite_daemon.call("POST", "/suites/second/runs", {}, headers=headers)
    assert "another suite" in check_problem(refused, 422, "idempotency_mismatch")
    assert suite_daemon.get("/suites/second/runs").json()["items"] == []
    assert wait(suite_daemon, number)["state"] == "completed"


def test_a_repeated_key_needs_neither_the_file_nor_the_device(start, folder):
    """A client repeats its request after the suite's file was removed, and after the daemon's device has become unusable."""
    write(folder, suite("lost"))
    write(folder, suite())
    daemon = start("--suites", str(folder))
    headers = {"Idempotency-Key": "lost"}
    accepted = daemon.call("POST", "/suites/lost/runs", {"device": "cpu"}, headers=headers).json()
    wait(daemon, accepted["id"])
    (folder / "lost.json").unlink()
    assert daemon.stop() == 0
    daemon = start("--suites", str(folder), "--devices", "gpu0", state=daemon.state)
    check_problem(daemon.call("POST", "/suites/tiny/runs", {"device": "cpu"}), 400, "invalid_field", "/device")
    repeated = daemon.call("POST", "/suites/lost/runs", {"device": "cpu"}, headers=headers)
    assert (repeated.status_code, repeated.headers["Idempotent-Replayed"]) == (202, "true")
    assert repeated.json() == {**accepted, "state": "completed"}
    assert daemon.stop() == 0


def test_a_history_has_the_values_of_every_run(suite_daemon, first_run):
    answer = suite_daemon.get(f"/suites/tiny/history?metric={METRIC}")
    items = answer.json()["items"]
    assert items[0]["run"] == first_run["id"] and [item["run"] for item in items] == sorted(item["run"] for item in items)
    assert items[0]["values"] == [value["value"] for value in first_run["values"]]
    assert items[0]["median"] == pytest.approx(statistics.median(items[0]["values"]))
    assert suite_daemon.get("/suites/tiny/history?metric=relu/vector/none").json()["items"] == []
    etag = answer.headers["ETag"]
    assert suite_daemon.get(f"/suites/tiny/history?metric={METRIC}", headers={"If-None-Match": etag}).status_code == 304


def test_a_failing_job_ends_the_run(suite_daemon):
    body = suite("failing", jobs=[{"name": "relu", "request": {"kind": "kernel", "kernel": "relu", "shape": {"n": 1 << 28},
                                                               "variant": "scalar", "samples": 1000, "deadline_s": 1}}])
    ended = run(suite_daemon, "failing", {"definition": body})
    assert (ended["state"], ended["verdict"]) == ("failed", None), ended
    assert "relu" in ended["reason"] and len(ended["jobs"]) == 2
    assert all(value["dropped_reason"] is not None for value in ended["values"])


def test_the_time_budget_ends_the_blocks(suite_daemon):
    body = suite("hasty", n=1 << 24, blocks=30, time_budget_s=1)
    ended = run(suite_daemon, "hasty", {"definition": body})
    assert ended["state"] == "completed" and 1 <= len(ended["jobs"]) < 30
    assert "time budget" in ended["reason"]


def test_a_stream_has_all_events_of_a_run(suite_daemon, first_run):
    path = f"/suite-runs/{first_run['id']}"
    events = list(suite_daemon.events_of(path))
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
    assert [data["state"] for _, kind, data in events if kind == "state"] == ["queued", "running", "completed"]
    jobs = [(data["role"], data["block"], data["state"]) for _, kind, data in events if kind == "job"]
    assert jobs == [("block", i // 2, ("submitted", "completed")[i % 2]) for i in range(10)]
    assert [data["job"] for _, kind, data in events if kind == "job"][::2] == [item["job"] for item in first_run["jobs"]]
    assert [(kind, data.get("metric"), data["verdict"]) for _, kind, data in events[-2:]] == [
        ("verdict", METRIC, first_run["verdict"]), ("state", None, first_run["verdict"])]
    assert events[-1][2]["reason"] == first_run["reason"]
    for after in (1, len(events) - 1):
        assert list(suite_daemon.events_of(path, headers={"Last-Event-ID": str(after)})) == events[after:]
    assert suite_daemon.get(f"{path}/events", headers={"Last-Event-ID": str(len(events))}).status_code == 204
    answer = suite_daemon.get(f"{path}/events", headers={"Last-Event-ID": "x"})
    assert (answer.status_code, answer.json()["parameter"]) == (400, "Last-Event-ID")
    check_problem(suite_daemon.get("/suite-runs/999/events"), 404, "not_found")


def test_events_arrive_while_the_run_goes_on(suite_daemon, first_run):
    """A stream that is opened at once, and a stream that continues after its fifth event, together get the events that the store
    has later."""
    number = start(suite_daemon, "tiny")
    seen, states = [], []
    for event in suite_daemon.events_of(f"/suite-runs/{number}"):
        seen.append(event)
        if event[1] == "job" and event[2]["state"] == "completed" and len(states) < 2:
            states.append(suite_daemon.get(f"/suite-runs/{number}").json()["state"])
        if len(seen) == 5:
            break
    assert states == ["running"], "the events came after the run's end"
    rest = list(suite_daemon.events_of(f"/suite-runs/{number}", headers={"Last-Event-ID": "5"}))
    assert rest[-1][1:] and rest[-1][2]["state"] == "completed" and rest[0][0] == 6
    assert seen + rest == list(suite_daemon.events_of(f"/suite-runs/{number}"))


def test_the_stream_of_a_cancelled_run_ends(suite_daemon, folder):
    write(folder, suite("endless", blocks=30))
    number = start(suite_daemon, "endless")
    events = suite_daemon.events_of(f"/suite-runs/{number}")
    assert [next(events)[2]["state"] for _ in range(2)] == ["queued", "running"]
    assert suite_daemon.call("DELETE", f"/suite-runs/{number}").status_code == 202
    *_, last = events
    assert (last[1], last[2]["state"]) == ("state", "cancelled")
    assert "verdict" not in last[2]
