"""Tests GET /compare: the measurements of two runs, and how their kernels are paired."""

import math

import pytest

from report_fixture import Rows


@pytest.fixture(scope="module")
def rows(daemon):
    return Rows(daemon)


def run_of(rows, *kernels):
    """Inserts a run whose counters pass has these (launch, name) kernels in order; the grid size of each is its ordinal."""
    return rows.run([{"launch": launch, "name": name, "metrics": {"launch__grid_size": float(ordinal)}}
                     for ordinal, (launch, name) in enumerate(kernels)])


@pytest.fixture(scope="module")
def runs(rows):
    a = run_of(rows, ("conv", "pad"), ("conv", "fprop<float>"), ("pool", "max"), ("adam", "adam"), ("adam", "adam"),
               ("fill", "fill"))
    b = run_of(rows, ("conv", "fprop<half>"), ("pool", "max"), ("cast", "cast"), ("adam", "adam"), ("conv", "pad"))
    return a, b


def ordinals(answer):
    """Returns (ordinal in run a, ordinal in run b) of each pair of kernels; None: the kernel has no partner."""
    assert answer.status_code == 200, answer.text
    return [tuple(side and side["ordinal"] for side in (pair["a"], pair["b"])) for pair in answer.json()["kernels"]]


def test_kernels_are_paired_by_launch_and_name_first(daemon, runs):
    """Kernels with equal launches and names are paired first, in any order (pad). Kernels that are left over are paired by their
    launches (the two fprop)."""
    a, b = runs
    assert ordinals(daemon.get(f"/compare?a={a}&b={b}")) == [(0, 4), (1, 0), (2, 1), (None, 2), (3, 3), (4, None), (5, None)]
    assert ordinals(daemon.get(f"/compare?a={a}&b={a}")) == [(i, i) for i in range(6)]


@pytest.mark.parametrize("query, wanted", [
    ("kernel=0", [(0, 4)]),
    ("kernel=1", [(1, 0)]),
    ("kernel=5", [(5, None)]),
    ("kernel_b=2", [(None, 2)]),
    ("kernel_b=4", [(0, 4)]),
    ("kernel=2&kernel_b=1", [(2, 1)]),
    ("kernel=5&kernel_b=2", [(5, 2)]),
    ("kernel_b=0&kernel=3", [(3, 0)]),
])
def test_the_query_selects_one_pair(daemon, runs, query, wanted):
    a, b = runs
    answer = daemon.get(f"/compare?a={a}&b={b}&{query}")
    assert ordinals(answer) == wanted
    (pair,) = answer.json()["kernels"]
    (launch,) = [section for section in pair["sections"] if section["id"] == "LaunchStats"]
    (grid,) = [row for table in launch["tables"] for row in table["rows"] if row["name"] == "Grid Size"]
    assert (grid["a"], grid["b"]) == wanted[0]


def test_detail_names_omits_sections(daemon, runs):
    a, b = runs
    whole = daemon.get(f"/compare?a={a}&b={b}").json()
    names = daemon.get(f"/compare?a={a}&b={b}&detail=names")
    assert ordinals(names) == ordinals(daemon.get(f"/compare?a={a}&b={b}")) and len(names.content) < 8000
    assert all(pair["sections"] is None and pair["findings"] is None for pair in names.json()["kernels"])
    assert names.json()["comparison"] == whole["comparison"]
    assert daemon.get(f"/compare?a={a}&b={b}&detail=full").json() == whole
    assert ordinals(daemon.get(f"/compare?a={a}&b={b}&kernel=5&kernel_b=2&detail=names")) == [(5, 2)]


def test_kernels_above_most_metrics_have_no_metrics(daemon, rows):
    run = rows.run([{"metrics": {f"metric_{i}": float(i) for i in range(count)}} for count in (3, 4)])
    path = f"/jobs/{rows.job_of(run)}/kernels"

    def counts(query):
        return [item["metrics"] and len(item["metrics"]) for item in daemon.get(path + query).json()["items"]]

    assert [counts(query) for query in ("", "?most_metrics=4", "?most_metrics=3", "?most_metrics=0")] == [
        [3, 4], [3, 4], [3, None], [None, None]]


def test_two_kernels_of_one_run_are_compared(daemon, runs):
    a, _ = runs
    assert ordinals(daemon.get(f"/compare?a={a}&b={a}&kernel=2&kernel_b=5")) == [(2, 5)]
    assert ordinals(daemon.get(f"/compare?a={a}&b={a}&kernel=4")) == [(4, 4)]


def test_the_only_kernels_of_two_runs_are_paired(daemon, rows):
    one, other = run_of(rows, ("relu", "relu")), run_of(rows, ("softmax", "softmax"))
    assert ordinals(daemon.get(f"/compare?a={one}&b={other}")) == [(0, 0)]


@pytest.mark.parametrize("query, status, code, parameter", [
    ("kernel=6", 404, "not_found", None),
    ("kernel_b=5", 404, "not_found", None),
    ("kernel=0&kernel_b=5", 404, "not_found", None),
    ("kernel=9007199254740991", 404, "not_found", None),
    ("kernel=-1", 400, "invalid_parameter", "kernel"),
    ("kernel=first", 400, "invalid_parameter", "kernel"),
    ("kernel=", 400, "invalid_parameter", "kernel"),
    ("kernel=1.5", 400, "invalid_parameter", "kernel"),
    ("kernel=9007199254740994", 400, "invalid_parameter", "kernel"),
    ("kernel_b=-1", 400, "invalid_parameter", "kernel_b"),
    ("kernel_c=1", 400, "invalid_parameter", "kernel_c"),
    ("detail=more", 400, "invalid_parameter", "detail"),
])
def test_invalid_comparisons_are_refused(daemon, runs, query, status, code, parameter):
    a, b = runs
    answer = daemon.get(f"/compare?a={a}&b={b}&{query}")
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem.get("parameter")) == (status, code, parameter), problem
    if status == 404:
        assert "no kernel" in problem["detail"]


def test_a_run_without_counters_has_no_kernels(daemon, finished, runs):
    run = daemon.get(f"/jobs/{finished}").json()["runs"][0]["id"]
    assert daemon.get(f"/compare?a={run}&b={runs[0]}&kernel=0").status_code == 404
    assert ordinals(daemon.get(f"/compare?a={run}&b={runs[0]}")) == [(None, i) for i in range(6)]


def timed(rows, cold, warm, **columns):
    """Inserts a run with the medians of its times with cold and warm caches, in µs."""
    return rows.run([], measurements={"time_cold_us_median": cold, "time_warm_us_median": warm}, **columns)


def compare_runs(daemon, a, b):
    answer = daemon.get(f"/compare?a={a}&b={b}")
    assert answer.status_code == 200, answer.text
    return answer.json()["comparison"], answer.json()["comparison_reason"]


def test_times_of_launches_of_two_jobs(daemon, rows):
    a, b = timed(rows, 30.0, 12.0), timed(rows, 20.0, 16.0, variant="vector")
    pair, reason = compare_runs(daemon, a, b)
    assert reason is None and pair["workload"] == "relu"
    assert [(pair[side]["run"], pair[side]["variant"]) for side in ("baseline", "candidate")] == [(a, "scalar"), (b, "vector")]
    assert pair["baseline"]["job"] != pair["candidate"]["job"] and pair["baseline"]["device"] == "gpu0"
    assert (pair["speedup_cold_ratio"], pair["speedup_warm_ratio"]) == (1.5, 0.75)
    assert set(pair["unavailable"]) == {"speedup_ratio", "speedup_min_ratio", "peak_memory_ratio",
                                        "test_accuracy_difference_ratio", "explanation"}
    assert pair["unavailable"]["speedup_ratio"] == "scalar: the timing pass did not measure it"
    reverse, _ = compare_runs(daemon, b, a)
    assert math.isclose(reverse["speedup_cold_ratio"], 1 / 1.5) and math.isclose(reverse["speedup_warm_ratio"], 1 / 0.75)


def test_the_list_of_jobs_has_the_fastest_run(daemon, rows):
    job = rows.job()
    timed(rows, 30.0, 12.0, job=job)
    best = timed(rows, 20.0, 16.0, variant="vector", job=job)
    suspect = timed(rows, 1.0, 1.0, variant="capped", job=job, samples={"cold": [1.0]})
    rows.db.execute("UPDATE samples SET suspect = 1, suspect_reason = 'too fast' "
                    "WHERE pass_id IN (SELECT id FROM passes WHERE run_id = ?)", [suspect])
    rows.summarize(suspect)
    untimed = rows.job()
    rows.run([], job=untimed, measurements={"peak_memory_bytes": 1.0})
    listed = {item["id"]: item["fastest"] for item in daemon.get("/jobs?limit=500").json()["items"]}
    assert listed[job] == {"run": best, "variant": "vector", "epoch_ms_median": None, "time_cold_us_median": 20.0}
    assert listed[untimed] is None


def test_a_suspect_time_gives_no_ratio(daemon, rows):
    a = timed(rows, 30.0, 12.0)
    b = timed(rows, 20.0, 16.0, samples={"cold": [20.0, 20.5], "warm": [16.0]})
    rows.db.execute("UPDATE samples SET suspect = 1, suspect_reason = 'too fast' WHERE mode = 'cold' AND ordinal = 1 "
                    "AND pass_id IN (SELECT id FROM passes WHERE run_id = ?)", [b])
    rows.summarize(b)
    for pair, _ in (compare_runs(daemon, a, b), compare_runs(daemon, b, a)):
        assert pair["speedup_cold_ratio"] is None and pair["unavailable"]["speedup_cold_ratio"] == "scalar is suspect: too fast"
        assert pair["speedup_warm_ratio"] is not None


def test_runs_of_two_workloads_have_no_ratios(daemon, rows):
    a, b = timed(rows, 30.0, 12.0), timed(rows, 20.0, 16.0, workload="softmax")
    assert compare_runs(daemon, a, b) == (None, "the runs are of different workloads")


def test_training_runs_compare_as_in_their_job(daemon, finished):
    (pair,) = daemon.get(f"/jobs/{finished}/comparison").json()["items"]
    (fastest,) = [item["fastest"] for item in daemon.get("/jobs?limit=500").json()["items"] if item["id"] == finished]
    sides = [pair[side] for side in ("baseline", "candidate") if not pair[side]["suspect"]]
    shortest = min((side["epoch_ms_median"], side["run"]) for side in sides)
    assert (fastest["epoch_ms_median"], fastest["run"]) == shortest and fastest["time_cold_us_median"] is None
    assert compare_runs(daemon, pair["baseline"]["run"], pair["candidate"]["run"]) == (pair, None)
    same, _ = compare_runs(daemon, pair["baseline"]["run"], pair["baseline"]["run"])
    assert same["peak_memory_ratio"] == 1 and same["test_accuracy_difference_ratio"] == 0
