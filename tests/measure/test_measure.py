"""What runs on a GPU host once must be right before it gets there: statistics against known values, time limits, partial results,
tables, and a few steps over the real daemon of this build on the CPU."""

import json
import os
import pathlib
import random
import subprocess
import sys
import time
import types

import pytest

SOURCE = pathlib.Path(os.environ.get("ROOFLINED_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("ROOFLINED_BUILD", SOURCE / "build" / "dev"))
sys.path.insert(0, str(SOURCE / "scripts" / "lib"))

from measure import comparison, markdown, numbers, runner, steps, tables  # noqa: E402
from measure.host import Host, Skip  # noqa: E402
from measure.steps import STEPS, checks, kernels, pytorch, reports, training  # noqa: E402


@pytest.mark.parametrize("probability, freedom, t", [(0.975, 1, 12.7062047), (0.975, 2, 4.3026527), (0.975, 9, 2.2621572),
                                                     (0.975, 18, 2.1009220),
                                                     (0.95, 5, 2.0150484), (0.995, 30, 2.7499957), (0.975, 1e7, 1.9599640),
                                                     (0.5, 7, 0)])
def test_student_quantiles_of_the_tables(probability, freedom, t):
    assert numbers.student_quantile(probability, freedom) == pytest.approx(t, abs=2e-6)


def test_student_distribution_is_symmetric_and_inverted_by_its_quantile():
    for freedom in (1, 3.7, 12, 200):
        for t in (0.1, 1.0, 4.5):
            assert numbers.student_cdf(t, freedom) + numbers.student_cdf(-t, freedom) == pytest.approx(1)
            assert numbers.student_quantile(numbers.student_cdf(t, freedom), freedom) == pytest.approx(t, rel=1e-6)


def test_welch_interval_of_a_known_example():
    """R's `t.test(extra ~ group, data = sleep)`: df = 17.776, -3.3654832 to 0.2054832."""
    found = numbers.difference_of_means([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
                                        [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
    assert found["difference"] == pytest.approx(-1.58)
    assert found["freedom"] == pytest.approx(17.776, abs=5e-4)
    assert (found["low"], found["high"]) == (pytest.approx(-3.3654832, abs=5e-7), pytest.approx(0.2054832, abs=5e-7))


def test_welch_is_students_test_where_variances_and_sizes_are_equal():
    found = numbers.difference_of_means([1, 2, 3], [2, 3, 4])
    assert found["freedom"] == pytest.approx(4)
    assert found["high"] - found["difference"] == pytest.approx(2.7764451 * (2 / 3) ** 0.5)


def test_welch_interval_holds_the_truth_as_often_as_it_says():
    draw = random.Random(os.urandom(8))
    inside = 0
    for _ in range(1000):
        found = numbers.difference_of_means([draw.gauss(0.3, 1) for _ in range(10)], [draw.gauss(0, 3) for _ in range(10)])
        inside += found["low"] <= 0.3 <= found["high"]
    assert 910 <= inside <= 985


def test_no_interval_of_a_single_value():
    assert numbers.difference_of_means([1.0], [0.5, 0.7])["low"] is None
    assert numbers.difference_of_means([1, 1], [1, 1])["high"] == 0


def test_line_through_growth_and_through_noise():
    exact = numbers.line([100, 200, 300], [10, 11, 12])
    assert exact["begin"] == pytest.approx(10) and exact["end"] == pytest.approx(12)
    assert exact["growth_ratio"] == pytest.approx(0.2) and exact["low"] == pytest.approx(0.2)
    flat = numbers.line(range(100), [50 + (-1) ** i for i in range(100)])
    assert flat["low"] < 0 < flat["high"] and abs(flat["growth_ratio"]) < 0.01


def sample(jobs, daemon, worker, device):
    return {"jobs": jobs, "daemon": {"rss_bytes": daemon}, "worker": {"rss_bytes": worker}, "device_bytes": device}


def test_soak_finds_growth_and_drift():
    steady = [sample(n, 20e6, 90e6, 5e8) for n in range(100, 1001, 10)]
    growing = [sample(n, 20e6 + 2000 * n, 90e6, None) for n in range(100, 1001, 10)]
    times = [(n, 22 + 0.1 * (n % 3)) for n in range(100, 1001)]
    assert [holds for *_, holds in reports.soak_fits(steady, times)] == [True, None, None, True, True]
    verdicts = {name: holds for name, _, _, holds in reports.soak_fits(growing, [(n, 22 + n / 1000) for n, _ in times])}
    assert verdicts == {"growth of host memory": False, "growth of the daemon's part": None, "growth of the worker's part": None,
                        "drift of a kernel's time": False}


def test_accuracy_is_compared_by_precision_and_epoch():
    rows = [{"who": who, "precision": "fp32", "seed": seed, "accuracy": [0.98 + base + seed * 1e-5] * 10}
            for who, base in (("ours", 0.0), ("pytorch", 0.004)) for seed in range(10)]
    found = list(pytorch.compared_accuracy(rows, ("fp32", "fp16")))
    assert [row["after"] for row in found if "after" in row] == [1, 5, 10]
    assert found[0]["difference"] == pytest.approx(-0.004) and found[0]["seeds"] == [10, 10]
    assert not any(row["holds"] for row in found if "check" in row)
    assert next(pytorch.compared_accuracy(rows[:10], ("fp32",)))["ours_mean"] == pytest.approx(0.980045)


def test_only_what_is_missing_is_trained(monkeypatch):
    """PyTorch goes through the missing seeds of a precision at once, and its rows outlast a commit of ours."""
    asked = []

    def printed(context, command, name):
        asked.append(command)
        yield from ({"precision": command[1], "seed": int(seed), "accuracy": [0.98] * 10} for seed in command[-1].split(","))

    monkeypatch.setattr(pytorch, "torch_command", lambda context, *options: list(options))
    monkeypatch.setattr(pytorch, "lines_as_they_come", printed)
    wanted = [("fp32", 3), ("fp32", 4), ("fp16", 1)]
    assert list(pytorch.torch_accuracy(types.SimpleNamespace(left_s=lambda: 5), wanted)) == [] and not asked
    rows = list(pytorch.torch_accuracy(types.SimpleNamespace(left_s=lambda: 500), wanted))
    assert [(row["precision"], row["seed"]) for row in rows] == wanted and all(row["lasting"] for row in rows)
    assert [(command[1], command[-1]) for command in asked] == [("fp32", "3,4"), ("fp16", "1")]


def test_what_a_kernel_adds_to_a_step_adds_up():
    """b begins before a has ended, and c is over before b is."""
    spans = [("b", 1500, 4000), ("a", 1000, 3000), ("c", 2000, 3500), ("a", 4200, 5000)]
    activities = [{"kind": "kernel", "name": name, "start_ns": start, "end_ns": end} for name, start, end in spans]
    activities.append({"kind": "memset", "name": "m", "start_ns": 0, "end_ns": 9000})
    assert training.later_by_kernel(activities) == {"a": pytest.approx(3), "b": pytest.approx(0.5), "c": pytest.approx(0.5)}
    assert training.later_by_kernel([]) == {}


def test_the_best_variant_counts_against_the_best_copy():
    rows = [{"best_copy_bytes_per_s": 4.0e12}, {"best_copy_bytes_per_s": 4.2e12}]
    rows += [{"size": "large", "kernel": "relu", "dtype": "fp16", "shape": {"rows": 2, "columns": 8}, "variant": name,
              "bytes_per_s": rate}
             for name, rate in (("scalar", 1e12), ("vector", 4.1e12))]
    assert kernels.best_of_copy(rows) == {("relu", "fp16", 8): pytest.approx(4.1 / 4.2)}


# --- the runner ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def host():
    return Host("cpu", BUILD)


def play(host, folder, steps, budget=60, said=None):
    kept = runner.Found(folder / "results.json", "abc")
    well = runner.run(steps, host if isinstance(host, list) else [host], folder, budget, kept,
                      say=(said.append if said is not None else lambda _: None))
    return well, json.loads((folder / "results.json").read_text())["steps"]


def step(name, run, expected=0, limit=30, shares=False, counts=False):
    return runner.Step(name, run, expected, limit, "", shares, counts)


def test_a_step_passes_fails_is_skipped_or_breaks(host, tmp_path):
    def refuses(context):
        raise Skip("not here")
        yield

    def breaks(context):
        yield {"kept": 1}
        raise ValueError("of no use")

    well, found = play(host, tmp_path, [step("good", lambda c: iter([{"a": 1}, runner.check("holds", True)])),
                                        step("bad", lambda c: iter([runner.check("two is three", False, 2)])),
                                        step("absent", refuses), step("broken", breaks)])
    assert not well
    assert {name: (one["state"], one["reason"]) for name, one in found.items()} == {
        "good": ("passed", ""), "bad": ("failed", "two is three"), "absent": ("skipped", "not here"),
        "broken": ("failed", "ValueError: of no use")}
    assert found["broken"]["rows"] == [{"kept": 1}]
    assert (tmp_path / "logs.tar.gz").exists()


def test_a_step_that_hangs_is_ended_with_its_children_and_keeps_its_rows(host, tmp_path):
    def hangs(context):
        child = subprocess.Popen(["sleep", "1000"])
        yield {"child": child.pid}
        child.wait()

    well, found = play(host, tmp_path, [step("hangs", hangs, limit=2), step("next", lambda c: iter([{"b": 1}]))])
    assert not well and found["hangs"]["state"] == "cut off" and found["next"]["state"] == "passed"
    child = found["hangs"]["rows"][0]["child"]
    stat = pathlib.Path(f"/proc/{child}/stat")
    assert not stat.exists() or stat.read_text().split()[2] == "Z"


def test_the_budget_keeps_steps_from_being_begun(host, tmp_path):
    said = []
    well, found = play(host, tmp_path, [step("long", lambda c: iter([{}]), expected=500),
                                        step("short", lambda c: iter([{}]), expected=1)], 10, said)
    assert well and found["long"]["state"] == "not run" and "500 s" in found["long"]["reason"]
    assert found["short"]["state"] == "passed" and len(said) == 2


def meets(name, other):
    """Ends well if the other one runs at the same time."""
    def run(context):
        met = context.logs.parent / f"{name}-is-here"
        met.touch()
        until = time.monotonic() + 5
        while time.monotonic() < until and not (context.logs.parent / f"{other}-is-here").exists():
            time.sleep(0.01)
        yield runner.check("met", time.monotonic() < until, os.environ.get("CUDA_VISIBLE_DEVICES"))
    return run


def test_steps_share_a_gpu_only_if_all_of_them_may(host, tmp_path):
    together = [step("a", meets("a", "b"), shares=True), step("alone", lambda c: iter([{}])),
                step("b", meets("b", "a"), shares=True)]
    assert play(host, tmp_path / "shared", together)[0]
    assert not play(host, tmp_path / "apart", [step("a", meets("a", "b")), step("b", meets("b", "a"), shares=True)])[0]


def test_each_of_several_gpus_takes_steps_but_one_alone_counts(tmp_path):
    hosts = [Host("cpu", BUILD, gpu) for gpu in ("GPU-1", "GPU-2")]
    well, found = play(hosts, tmp_path / "both", [step("a", meets("a", "b"), counts=True), step("b", meets("b", "a"))])
    assert well and {one["rows"][0]["seen"] for one in found.values()} == {"GPU-1", "GPU-2"}
    assert not play(hosts, tmp_path / "counted", [step("a", meets("a", "b"), counts=True),
                                                  step("b", meets("b", "a"), counts=True)])[0]


def test_a_step_knows_how_long_it_may_run(host, tmp_path):
    _, found = play(host, tmp_path, [step("asks", lambda c: iter([{"left": c.left_s()}]), limit=1000)], budget=20)
    assert 10 < found["asks"]["rows"][0]["left"] < 20


def test_a_second_sitting_goes_on(host, tmp_path):
    begun = []

    def grows(context):
        rows = context.earlier + [{"row": len(context.earlier)}]
        yield from rows
        if len(rows) < 3:
            yield {"partial": "some are left"}

    def grow(context):
        context.earlier = [row for row in context.earlier if "row" in row]
        return grows(context)

    once = step("once", lambda c: iter([{"at": time.monotonic()}]))
    for _ in range(3):
        _, found = play(host, tmp_path, [once, step("grows", grow)])
        begun.append(found["once"]["rows"])
    assert begun[0] == begun[1] == begun[2]
    assert found["grows"]["state"] == "passed" and [row["row"] for row in found["grows"]["rows"]] == [0, 1, 2]
    assert runner.Found(tmp_path / "results.json", "another commit").steps == {}


def test_what_is_not_ours_outlasts_a_commit(host, tmp_path):
    play(host, tmp_path, [step("both", lambda c: iter([{"ours": 1}, {"theirs": 2, "lasting": True}]))])
    kept = runner.Found(tmp_path / "results.json", "another commit")
    assert kept.rows("both") == [{"theirs": 2, "lasting": True}] and not kept.has("both")


# --- tables -------------------------------------------------------------------------------------------------------------------


def test_every_step_has_its_table():
    assert {one.name for one in STEPS} | {"test"} == set(tables.TABLES)
    assert all(show([]) is not None for show in tables.TABLES.values())


def test_numbers_keep_their_digits():
    assert [markdown.number(v) for v in (None, 0, 11.0, 66.2345, 0.38712, 4262.5, 2.81e-7, 1.0 / 3)] == \
        ["–", "0", "11", "66.2", "0.387", "4262", "2.81e-07", "0.333"]


def test_a_page_is_filled_between_its_marks():
    steps = {"speed": {"rows": [{"kernels": 1, "set": "full", "median_s": 1.25, "least_s": 1.2, "most_s": 1.3, "first_s": 5.0,
                                 "at_most_s": 1.4, "ncu_s": 6.2}], "state": "passed", "seconds": 3, "reason": "",
                       "commit": "abc", "at": "now"}}
    page = "before\n<!-- speed -->\nold\n<!-- /speed -->\nafter <!-- soak -->x<!-- /soak -->\n"
    once = tables.filled(page, steps)
    assert "| 1 | full | 1.25 | 1.20 | 1.30 | 5 | 1.40 | 6.20 |" in once and "old" not in once
    assert "<!-- speed -->\nCommit abc, now.\n\n|" in once  # several sittings may have filled a page
    assert once.startswith("before\n") and once.endswith("after <!-- soak -->x<!-- /soak -->\n")
    assert tables.filled(once, steps) == once
    assert "## speed" in tables.summary("abc", steps)


def test_the_best_engine_is_held_to_the_bars():
    rows = [{"engine": engine, "batch": 64, "precision": "fp16", "epoch_ms_median": ms}
            for engine, ms in (("fused", 35.3), ("persistent", 19.5))]
    found = list(training.compare_with_targets(rows))
    assert [row["holds"] for row in found if "check" in row] == [False, False, True, False]
    steps = {"training": {"rows": found, "commit": "abc", "at": "now"}}
    assert "| 64 | fp16 | persistent | 19.5 | 20 | yes | 11 |" in tables.filled("<!-- targets -->\n<!-- /targets -->\n", steps)


def test_training_times_of_both_ways_are_side_by_side():
    rows = [{"by": "http", "engine": "fused", "batch": 64, "precision": "fp32", "epoch_ms_median": 66.2},
            {"by": "bench_train", "engine": "fused", "batch": 64, "precision": "fp16", "epoch_device_ms_median": 36.3}]
    assert tables.training(rows).splitlines() == ["| ms an epoch, median | engine | batch | fp32 | fp16 |",
                                                  "| --- | --- | --- | --- | --- |", "| http | fused | 64 | 66.2 | – |",
                                                  "| bench_train | fused | 64 | – | 36.3 |"]


def test_comparisons_with_ncu_are_read(tmp_path):
    (tmp_path / "comparison.csv").write_text("metric,runs,copy_ours,copy_ncu,copy_apart_ratio,copy_verdict\n"
                                             "a.sum,5,1,1,0.0,equal\nb.sum,5,3,4,0.25,DIFFERS\nc.sum,5,1,1,0.0,equal\n")
    found = list(comparison.compared(tmp_path / "comparison.csv"))
    assert found[0] == {"kernel": "copy", "numbers": 3, "words": {"DIFFERS": 1, "equal": 2}, "repeated": 3, "repeated_differ": 1}
    assert [row["metric"] for row in found[1:]] == ["b.sum"]
    shown = tables.agreement([{"subject": "tiny", **row} for row in found]).splitlines()
    assert shown[2:4] == ["| tiny | copy | 3 | 3 | 1 | 1 | 2 |", "| all | 1 | 3 | 3 | 1 | 1 | 2 |"]
    assert shown[-1] == "| b.sum | 5 | copy 25.0 % |"


def test_comparisons_with_ncu_become_one_table(tmp_path):
    (tmp_path / "a.csv").write_text("metric,runs,copy_ours,copy_ncu,copy_apart_ratio,copy_verdict\nb.sum,10,1,1,0.0,equal\n")
    (tmp_path / "b.csv").write_text("metric,runs,gemm_ours,gemm_ncu,gemm_apart_ratio,gemm_verdict\n"
                                    "b.sum,5,3,4,0.25,DIFFERS\na.sum,5,,,,no value\n")
    comparison.join([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "all.csv")
    _, *rows = (tmp_path / "all.csv").read_text().splitlines()
    assert rows == ["a.sum,5,,,,,,,,no value", "b.sum,5,1,1,0.0,equal,3,4,0.25,DIFFERS"]


# --- steps of a GPU, with programs that only print ----------------------------------------------------------------------------

TRAINED = """{"name":"NVIDIA H200"}
files: open 10 ms, plan 3 ms, deterministic
  fc1_forward       2.91 us  cuBLASLt, 6 parts
epoch 0: device 36.300 ms
{"engine":"${1#engine=}","precision":"${2#precision=}","batch":64,"epochs":10,"epoch_device_ms_median":36.300,"launches":8444,\
"test_accuracy_ratio":0.9883,"peak_bytes":1}
  conv2_forward     4.43 us
  together          37.60 us"""
PRINTS = {
    "bench_train": "[ $2 = precision=fp32 ] && [ $1 = engine=cudnn ] && { echo skipped: in fp16 alone; exit 77; }\n"
                   f"cat <<X\n{TRAINED}\nX",
    "test_gpu_training": "echo \"$1\"; echo '[  PASSED  ] 6 test(s).'",
    "test_gpu_conv2": "echo '[  PASSED  ] 3 test(s).'",
    "test_gpu_kernels": "echo \"$1\"; echo '[  PASSED  ] 1 test(s).'",
    "test_broken": "echo '[  FAILED  ] 1 test(s).'; exit 1",
    "test_absent": "echo 'skipped: no GPU'; exit 77",
    "measure_kernels": "echo '{\"best_copy_bytes_per_s\":4}'; "
                       "echo '{\"size\":\"large\",\"kernel\":\"relu\",\"dtype\":\"fp16\",\"variant\":\"vector\","
                       "\"shape\":{\"n\":8},\"buffer_bytes\":16,\"cold_us\":1,\"bytes_per_s\":3.9,\"open_ms\":1}'",
    "bench_lombscargle": "".join(f"echo '{{\"version\":\"{version}\",\"dtype\":\"fp32\",\"build\":\"{build}\",\"registers\":32,"
                                 f"\"first_ms\":0.3,\"compile_ms\":0.1,\"median_ms\":{ms},\"speed_up\":9,\"error\":{error}}}'\n"
                                 for build in ("fatbin", "nvrtc_cached, again")
                                 for version, ms, error in (("typed", 0.22, 5e-7), ("uniform", 0.0073, 2.8e-7))),
}
SANITIZER = 'shift 4; "$@" || exit; echo "========= ERROR SUMMARY: 0 errors"'


class PrintedGpu(Host):
    gpu = True

    def tool(self, name):
        return self.test_program(name)


@pytest.fixture
def printed(tmp_path):
    for folder, programs in (("tests", {**PRINTS, "compute-sanitizer": SANITIZER}), ("ptx80", PRINTS)):
        (tmp_path / "build" / folder).mkdir(parents=True)
        for name, text in programs.items():
            path = tmp_path / "build" / folder / name
            path.write_text(f"#!/bin/bash\n{text}\n")
            path.chmod(0o755)
    (tmp_path / "build" / "tests.tsv").write_text("".join(f"{name}\t{tmp_path}/build/tests/test_{name}\n"
                                                          for name in ("absent", "gpu_conv2", "broken", "gpu_training")))
    return PrintedGpu("gpu0", tmp_path / "build")


def test_steps_of_a_gpu_read_what_programs_print(printed, tmp_path):
    names = ("tests", "numerics", "bandwidth", "lombscargle", "sanitizer", "ptx80")
    wanted = [step(one.name, one.run) for one in STEPS if one.name in names]
    well, found = play(printed, tmp_path, wanted)
    states = {name: (one["state"], one["reason"]) for name, one in found.items()}
    assert states == {"lombscargle": ("passed", ""), "bandwidth": ("passed", ""), "tests": ("failed", "broken"),
                      "numerics": ("passed", ""), "sanitizer": ("passed", ""), "ptx80": ("passed", "")}
    outcomes = {name: [(row["test"], row["outcome"]) for row in found[name]["rows"] if "test" in row]
                for name in ("tests", "numerics")}
    assert outcomes["tests"] == [("absent", "skipped"), ("broken", "failed")]
    assert outcomes["numerics"] == [("gpu_conv2", "passed"),
                                    *((f"gpu_training {engine}", "passed") for engine in training.engines(printed))]
    assert tables.ptx80(found["ptx80"]["rows"]).splitlines()[0] == "| accuracy after four epochs | fp32 | tf32 | fp16 |"
    assert "| fused | 98.83 % | 98.83 % | 98.83 % |" in tables.ptx80(found["ptx80"]["rows"])
    assert "| cudnn | – | 98.83 %" in tables.ptx80(found["ptx80"]["rows"])
    assert sum(row.get("found") == 0 for row in found["sanitizer"]["rows"]) > 30
    assert tables.summary("abc", found).count("## ") == 6


def test_what_a_sanitizer_did_not_finish_is_not_passed_over():
    cases = [(0, False), (9, True), (None, False), (1, False)]
    said = [checks.looked({"status": status, "refused": refused}) for status, refused in cases]
    unsaid = [checks.looked({"status": status, "refused": refused}) for status, refused in [(77, False), (1, True)]]
    assert (said, unsaid) == ([True] * 4, [False] * 2)


def test_one_test_by_its_name(printed, tmp_path):
    well, found = play(printed, tmp_path, [steps.find("test:gpu_conv2"), steps.find("test:absent")])
    assert well and {name: one["state"] for name, one in found.items()} == {"test:gpu_conv2": "passed", "test:absent": "skipped"}
    assert "| gpu_conv2 | passed |" in tables.summary("abc", found)
    assert steps.find("test:") is None and steps.find("dance") is None


def test_a_bench_of_each_training_follows_the_jobs(printed, tmp_path):
    context = runner.Context(printed, tmp_path, time.monotonic() + 60, [])
    rows = list(training.bench_epochs(context, [{"engine": "fused", "precision": "fp16", "batch": 512}]))
    assert [(row["by"], row["engine"], row["batch"], row["epoch_device_ms_median"])
            for row in rows] == [("bench_train", "fused", 512, 36.3)]
    assert rows[0]["parts_us"] == {"conv2_forward": 4.43, "together": 37.6}
    steps = {"training": {"rows": rows, "commit": "abc", "at": "now"}}
    filled = tables.filled("<!-- parts -->\n<!-- /parts -->\n", steps)
    assert "| µs | fused fp16 |\n| --- | --- |\n| conv2_forward | 4.43 |" in filled


def test_a_counted_time_is_in_microseconds():
    assert reports.counted_us({"metrics": [{"metric": "a", "value": 1},
                                           {"metric": "gpu__time_duration.sum", "value": 22100.0}]}) == pytest.approx(22.1)


# --- over the real daemon -----------------------------------------------------------------------------------------------------


def test_steps_over_the_daemon_on_the_cpu(tmp_path):
    command = [str(SOURCE / "scripts" / "gpu-test.sh"), "--device", "cpu", "--build", str(BUILD), "--out", str(tmp_path / "out"),
               "--keep", str(tmp_path / "kept.json"), "--steps", "device,speed,rules"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["logs.tar.gz", "results.json", "summary.md"]
    found = json.loads((tmp_path / "kept.json").read_text())["steps"]
    assert {name: one["state"] for name, one in found.items()} == {"device": "passed", "speed": "passed", "rules": "skipped"}
    assert all(0 < row["least_s"] <= row["median_s"] <= row["most_s"] for row in found["speed"]["rows"])
    assert all(row["spent_ms"] == {"rest": pytest.approx(row["median_s"] * 1e3, abs=0.1)} for row in found["speed"]["rows"])
    shown = subprocess.run([sys.executable, str(SOURCE / "scripts" / "tables.py"), str(tmp_path / "kept.json")],
                           capture_output=True, text=True)
    assert shown.returncode == 0 and shown.stdout.count("| full |") == 2
    again = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert again.returncode == 0 and again.stdout.count("before") == 3


def test_an_unknown_step_is_named(tmp_path):
    done = subprocess.run([str(SOURCE / "scripts" / "gpu-test.sh"), "--out", str(tmp_path), "--steps", "device,dance"],
                          capture_output=True, text=True)
    assert done.returncode != 0 and "dance" in done.stderr
