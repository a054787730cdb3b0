"""The measurement scripts: statistics against known values, time limits, partial results, tables, GPU steps with fake programs,
and a few steps on the CPU with the daemon of this build."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import types

import pytest

SOURCE = pathlib.Path(os.environ.get("ROOFLINED_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("ROOFLINED_BUILD", SOURCE / "build" / "dev"))
sys.path.insert(0, str(SOURCE / "scripts" / "lib"))

from measure import comparison, markdown, numbers, runner, steps, tables  # noqa: E402
from measure.host import Host, Skip, hosts_of  # noqa: E402
from measure.steps import STEPS, checks, hostile, kernels, layer, pytorch, reports, suites, training  # noqa: E402


@pytest.mark.parametrize("probability, freedom, t", [(0.975, 1, 12.7062047), (0.975, 2, 4.3026527), (0.975, 9, 2.2621572),
                                                     (0.975, 18, 2.1009220),
                                                     (0.95, 5, 2.0150484), (0.995, 30, 2.7499957), (0.975, 1e7, 1.9599640),
                                                     (0.5, 7, 0)])
def test_student_quantiles_match_printed_tables(probability, freedom, t):
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


def test_welch_equals_students_test_for_equal_variances_and_sizes():
    found = numbers.difference_of_means([1, 2, 3], [2, 3, 4])
    assert found["freedom"] == pytest.approx(4)
    assert found["high"] - found["difference"] == pytest.approx(2.7764451 * (2 / 3) ** 0.5)


def test_welch_interval_contains_the_true_difference_in_95_percent():
    source = random.Random(os.urandom(8))
    inside = 0
    for _ in range(1000):
        found = numbers.difference_of_means([source.gauss(0.3, 1) for _ in range(10)], [source.gauss(0, 3) for _ in range(10)])
        inside += found["low"] <= 0.3 <= found["high"]
    assert 910 <= inside <= 985


def test_a_single_value_has_no_interval():
    assert numbers.difference_of_means([1.0], [0.5, 0.7])["low"] is None
    assert numbers.difference_of_means([1, 1], [1, 1])["high"] == 0


def test_line_through_growth_and_through_noise():
    exact = numbers.fit_line([100, 200, 300], [10, 11, 12])
    assert exact["begin"] == pytest.approx(10) and exact["end"] == pytest.approx(12)
    assert exact["growth_ratio"] == pytest.approx(0.2) and exact["low"] == pytest.approx(0.2)
    flat = numbers.fit_line(range(100), [50 + (-1) ** i for i in range(100)])
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
    found = list(pytorch.compare_accuracy(rows, ("fp32", "fp16")))
    assert [row["after"] for row in found if "after" in row] == [1, 5, 10]
    assert found[0]["difference"] == pytest.approx(-0.004) and found[0]["seeds"] == [10, 10]
    assert not any(row["holds"] for row in found if "check" in row)
    assert next(pytorch.compare_accuracy(rows[:10], ("fp32",)))["ours_mean"] == pytest.approx(0.980045)


def test_only_missing_seeds_are_trained(monkeypatch):
    """PyTorch trains the missing seeds of a precision at once, and its rows are kept for later commits."""
    commands = []

    def fake_output(context, command, log_name):
        commands.append(command)
        yield from ({"precision": command[1], "seed": int(seed), "accuracy": [0.98] * 10} for seed in command[-1].split(","))

    monkeypatch.setattr(pytorch, "torch_command", lambda context, *options: list(options))
    monkeypatch.setattr(pytorch, "stream_json_lines", fake_output)
    wanted = [("fp32", 3), ("fp32", 4), ("fp16", 1)]
    assert list(pytorch.torch_accuracy(types.SimpleNamespace(remaining_s=lambda: 5), wanted)) == [] and not commands
    rows = list(pytorch.torch_accuracy(types.SimpleNamespace(remaining_s=lambda: 500), wanted))
    assert [(row["precision"], row["seed"]) for row in rows] == wanted and all(row["lasting"] for row in rows)
    assert [(command[1], command[-1]) for command in commands] == [("fp32", "3,4"), ("fp16", "1")]


def test_times_added_by_kernels_sum_to_the_step():
    """b begins before a ends, and c ends before b."""
    spans = [("b", 1500, 4000), ("a", 1000, 3000), ("c", 2000, 3500), ("a", 4200, 5000)]
    activities = [{"kind": "kernel", "name": name, "start_ns": start, "end_ns": end} for name, start, end in spans]
    activities.append({"kind": "memset", "name": "m", "start_ns": 0, "end_ns": 9000})
    assert training.added_us_by_kernel(activities) == {"a": pytest.approx(3), "b": pytest.approx(0.5), "c": pytest.approx(0.5)}
    assert training.added_us_by_kernel([]) == {}


def test_the_best_variant_is_compared_with_the_best_copy():
    rows = [{"best_copy_bytes_per_s": 4.0e12}, {"best_copy_bytes_per_s": 4.2e12}]
    rows += [{"size": "large", "kernel": "relu", "dtype": "fp16", "shape": {"rows": 2, "columns": 8}, "variant": name,
              "bytes_per_s": rate}
             for name, rate in (("scalar", 1e12), ("vector", 4.1e12))]
    assert kernels.best_copy_ratios(rows) == {("relu", "fp16", 8): pytest.approx(4.1 / 4.2)}


# --- the runner ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def host():
    return Host("cpu", BUILD)


def run_steps(host, folder, steps, budget_s=60, lines=None):
    """Returns whether the session's exit status is 0, and the steps' results. Printed lines go to `lines`."""
    results = runner.Results(folder / "results.json", "abc")
    status = runner.run_steps(steps, host if isinstance(host, list) else [host], folder, budget_s, results,
                              print_line=(lines.append if lines is not None else lambda _: None))
    return status == 0, json.loads((folder / "results.json").read_text())["steps"]


def step(name, run, expected_s=0, limit_s=30, shares_gpu=False, uses_counters=False):
    return runner.Step(name, run, expected_s, limit_s, "", shares_gpu, uses_counters)


def test_a_step_passes_fails_is_skipped_or_raises(host, tmp_path):
    def refuses(context):
        raise Skip("not here")
        yield

    def raises(context):
        yield {"kept": 1}
        raise ValueError("of no use")

    passed, found = run_steps(host, tmp_path, [step("good", lambda c: iter([{"a": 1}, runner.check("holds", True)])),
                                               step("bad", lambda c: iter([runner.check("two is three", False, 2)])),
                                               step("absent", refuses), step("broken", raises)])
    assert not passed
    assert {name: (result["state"], result["reason"]) for name, result in found.items()} == {
        "good": ("passed", ""), "bad": ("failed", "two is three"), "absent": ("skipped", "not here"),
        "broken": ("failed", "ValueError: of no use")}
    assert found["broken"]["rows"] == [{"kept": 1}]
    assert (tmp_path / "logs.tar.gz").exists()


def test_an_unmet_target_does_not_fail_its_step(host, tmp_path):
    slow = step("slow", lambda c: iter([runner.check("right", True), runner.target("within 3 ms", True, 2),
                                        runner.target("within 2 ms", False, 2.5)]))
    wrong = step("wrong", lambda c: iter([runner.check("right", False), runner.target("within 2 ms", False, 2.5)]))
    results = runner.Results(tmp_path / "results.json", "abc")
    statuses = [runner.run_steps(steps, [host], tmp_path, 60, results, lambda _: None) for steps in ([slow], [slow, wrong])]
    assert statuses == [runner.EXIT_UNMET, runner.EXIT_FAILED]
    assert {name: (results.steps[name]["state"], results.steps[name]["reason"]) for name in results.steps} == {
        "slow": ("unmet", "within 2 ms: 2.5"), "wrong": ("failed", "right")}
    assert results.is_done("slow") and not results.is_done("wrong")
    assert "| within 2 ms | **no** | 2.5 |" in tables.step_text("memory", results.steps["slow"])


def test_a_hung_step_is_killed_with_its_children_and_keeps_its_rows(host, tmp_path):
    def hangs(context):
        child = subprocess.Popen(["sleep", "1000"])
        yield {"child": child.pid}
        child.wait()

    passed, found = run_steps(host, tmp_path, [step("hangs", hangs, limit_s=6), step("next", lambda c: iter([{"b": 1}]))])
    assert not passed and found["hangs"]["state"] == "cut off" and found["next"]["state"] == "passed"
    child = found["hangs"]["rows"][0]["child"]
    stat = pathlib.Path(f"/proc/{child}/stat")
    assert not stat.exists() or stat.read_text().split()[2] == "Z"


def test_a_terminated_session_keeps_the_rows_of_its_running_step(host, tmp_path):
    def signals(context):
        yield {"kept": 1}
        time.sleep(0.5)  # Python ignores what a signal handler raises inside of os.fork
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(60)

    session = os.fork()
    if session == 0:  # signals() ends this process, whose parent is pytest
        try:
            run_steps(host, tmp_path, [step("signals", signals, limit_s=60)])
        finally:
            os._exit(0)
    os.waitpid(session, 0)
    found = json.loads((tmp_path / "results.json").read_text())["steps"]["signals"]
    assert (found["state"], found["rows"]) == ("cut off", [{"kept": 1}]) and found["seconds"] < 30


def test_a_step_beyond_the_budget_is_not_started(host, tmp_path):
    lines = []
    passed, found = run_steps(host, tmp_path, [step("long", lambda c: iter([{}]), expected_s=500),
                                               step("short", lambda c: iter([{}]), expected_s=1)], 10, lines)
    assert passed and found["long"]["state"] == "not run" and "500 s" in found["long"]["reason"]
    assert found["short"]["state"] == "passed" and len(lines) == 2


def overlaps(name, other, wait_s=120):
    """Returns the function of a step that passes if the step `other` begins at most wait_s after it."""
    def run(context):
        (context.logs.parent / f"{name}-started").touch()
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline and not (context.logs.parent / f"{other}-started").exists():
            time.sleep(0.01)
        yield runner.check("overlapped", time.monotonic() < deadline, os.environ.get("CUDA_VISIBLE_DEVICES"))
    return run


def test_steps_share_a_gpu_only_if_all_of_them_allow_it(host, tmp_path):
    together = [step("a", overlaps("a", "b"), shares_gpu=True), step("alone", lambda c: iter([{}])),
                step("b", overlaps("b", "a"), shares_gpu=True)]
    assert run_steps(host, tmp_path / "shared", together)[0]
    apart = [step("a", overlaps("a", "b", 5)), step("b", overlaps("b", "a", 5), shares_gpu=True)]
    assert not run_steps(host, tmp_path / "apart", apart)[0]


def test_several_gpus_run_steps_but_only_one_uses_counters(tmp_path):
    hosts = [Host("cpu", BUILD, gpu) for gpu in ("GPU-1", "GPU-2")]
    passed, found = run_steps(hosts, tmp_path / "both",
                              [step("a", overlaps("a", "b"), uses_counters=True), step("b", overlaps("b", "a"))])
    assert passed and {result["rows"][0]["measured"] for result in found.values()} == {"GPU-1", "GPU-2"}
    assert not run_steps(hosts, tmp_path / "counted", [step("a", overlaps("a", "b", 5), uses_counters=True),
                                                       step("b", overlaps("b", "a", 5), uses_counters=True)])[0]


def test_a_device_is_the_only_gpu_of_its_programs(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    seen = {device: [(host.device, host.environment["CUDA_VISIBLE_DEVICES"]) for host in hosts_of(device, BUILD)]
            for device in ("gpu0", "gpu1")}
    assert seen == {"gpu0": [("gpu0", "GPU-a"), ("gpu0", "GPU-b")], "gpu1": [("gpu0", "GPU-b")]}
    with pytest.raises(Skip, match="no gpu2: this machine has 2 GPUs"):
        hosts_of("gpu2", BUILD)
    for device in ("gpu", "gpux", "gpu-1", "cuda0"):
        with pytest.raises(Skip, match=f'--device "{device}" is not cpu, gpu0, gpu1'):
            hosts_of(device, BUILD)


def test_a_step_knows_its_remaining_time(host, tmp_path):
    _, found = run_steps(host, tmp_path, [step("asks", lambda c: iter([{"left": c.remaining_s()}]), limit_s=1000)], budget_s=20)
    assert 10 < found["asks"]["rows"][0]["left"] < 20


def test_a_later_session_continues(host, tmp_path):
    first_rows = []

    def grows(context):
        rows = context.earlier_rows + [{"row": len(context.earlier_rows)}]
        yield from rows
        if len(rows) < 3:
            yield {"partial": "some are left"}

    def grow(context):
        context.earlier_rows = [row for row in context.earlier_rows if "row" in row]
        return grows(context)

    once = step("once", lambda c: iter([{"at": time.monotonic()}]))
    for _ in range(3):
        _, found = run_steps(host, tmp_path, [once, step("grows", grow)])
        first_rows.append(found["once"]["rows"])
    assert first_rows[0] == first_rows[1] == first_rows[2]
    assert found["grows"]["state"] == "passed" and [row["row"] for row in found["grows"]["rows"]] == [0, 1, 2]
    assert runner.Results(tmp_path / "results.json", "another commit").steps == {}


def test_lasting_rows_are_kept_for_another_commit(host, tmp_path):
    run_steps(host, tmp_path, [step("both", lambda c: iter([{"ours": 1}, {"theirs": 2, "lasting": True}]))])
    results = runner.Results(tmp_path / "results.json", "another commit")
    assert results.rows("both") == [{"theirs": 2, "lasting": True}] and not results.is_done("both")


# --- tables -------------------------------------------------------------------------------------------------------------------


def test_every_step_has_a_table():
    assert {item.name for item in STEPS} | {"test"} == set(tables.TABLES)
    assert all(make_table([]) is not None for make_table in tables.TABLES.values())


def test_numbers_have_three_significant_digits():
    assert [markdown.number(v) for v in (None, 0, 11.0, 66.2345, 0.38712, 4262.5, 2.81e-7, 1.0 / 3)] == \
        ["–", "0", "11", "66.2", "0.387", "4262", "2.81e-07", "0.333"]


def test_a_page_is_filled_between_its_comments():
    steps = {"speed": {"rows": [{"kernels": 1, "set": "full", "median_s": 1.25, "least_s": 1.2, "most_s": 1.3, "first_s": 5.0,
                                 "at_most_s": 1.4, "ncu_s": 6.2}], "state": "passed", "seconds": 3, "reason": "",
                       "commit": "abc", "at": "now"}}
    page = "before\n<!-- speed -->\nold\n<!-- /speed -->\nafter <!-- soak -->x<!-- /soak -->\n"
    once = tables.fill_page(page, steps)
    assert "| 1 | full | 1.25 | 1.20 | 1.30 | 5 | 1.40 | 6.20 |" in once and "old" not in once
    assert "<!-- speed -->\nCommit abc, now.\n\n|" in once  # blocks of a page may be from different sessions
    assert once.startswith("before\n") and once.endswith("after <!-- soak -->x<!-- /soak -->\n")
    assert tables.fill_page(once, steps) == once
    assert "## speed" in tables.summary("abc", steps)


def test_the_best_engine_is_compared_with_the_targets(monkeypatch):
    monkeypatch.setattr(training, "EPOCH_TARGETS_MS", {(64, "fp32"): (29, 23), (64, "fp16"): (16, 14)})
    rows = [{"engine": engine, "batch": 64, "precision": "fp16", "epoch_ms_median": ms}
            for engine, ms in (("fused", 35.3), ("persistent", 15.5))]
    found = list(training.compare_with_targets(rows))
    assert [row["met"] for row in found if "target" in row] == [False, True]
    steps = {"training": {"rows": found, "commit": "abc", "at": "now"}}
    assert "| 64 | fp16 | persistent | 15.5 | 16 | yes | 14 |" in tables.fill_page("<!-- targets -->\n<!-- /targets -->\n", steps)


def test_training_times_over_http_and_by_bench_train_share_a_table():
    rows = [{"by": "http", "engine": "fused", "batch": 64, "precision": "fp32", "epoch_ms_median": 66.2},
            {"by": "bench_train", "engine": "fused", "batch": 64, "precision": "fp16", "epoch_device_ms_median": 36.3}]
    assert tables.training(rows).splitlines() == ["| ms an epoch, median | engine | batch | fp32 | fp16 |",
                                                  "| --- | --- | --- | --- | --- |", "| http | fused | 64 | 66.2 | – |",
                                                  "| bench_train | fused | 64 | – | 36.3 |"]


def test_comparisons_with_ncu_are_read(tmp_path):
    (tmp_path / "comparison.csv").write_text("metric,runs,copy_ours,copy_ncu,copy_difference_ratio,copy_verdict\n"
                                             "a.sum,5,1,1,0.0,equal\nb.sum,5,3,4,0.25,DIFFERS\nc.sum,5,1,1,0.0,equal\n")
    found = list(comparison.summarise(tmp_path / "comparison.csv"))
    assert found[0] == {"kernel": "copy", "numbers": 3, "words": {"DIFFERS": 1, "equal": 2}, "repeated": 3, "repeated_differ": 1}
    assert [row["metric"] for row in found[1:]] == ["b.sum"]
    shown = tables.agreement([{"subject": "tiny", **row} for row in found]).splitlines()
    assert shown[2:4] == ["| tiny | copy | 3 | 3 | 1 | 1 | 2 |", "| all | 1 | 3 | 3 | 1 | 1 | 2 |"]
    assert shown[-1] == "| b.sum | 5 | copy 25.0 % |"


def test_comparisons_with_ncu_become_one_table(tmp_path):
    (tmp_path / "a.csv").write_text("metric,runs,copy_ours,copy_ncu,copy_difference_ratio,copy_verdict\nb.sum,10,1,1,0.0,equal\n")
    (tmp_path / "b.csv").write_text("metric,runs,gemm_ours,gemm_ncu,gemm_difference_ratio,gemm_verdict\n"
                                    "b.sum,5,3,4,0.25,DIFFERS\na.sum,5,,,,no value\n")
    comparison.join_tables([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "all.csv")
    _, *rows = (tmp_path / "all.csv").read_text().splitlines()
    assert rows == ["a.sum,5,,,,,,,,no value", "b.sum,5,1,1,0.0,equal,3,4,0.25,DIFFERS"]


# --- GPU steps with fake programs -------------------------------------------------------------------------------------------

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


class FakeGpuHost(Host):
    is_gpu = True

    def tool(self, name):
        return self.test_program(name)


@pytest.fixture
def fake_gpu_host(tmp_path):
    for folder, programs in (("tests", {**PRINTS, "compute-sanitizer": SANITIZER}), ("ptx80", PRINTS)):
        (tmp_path / "build" / folder).mkdir(parents=True)
        for name, text in programs.items():
            path = tmp_path / "build" / folder / name
            path.write_text(f"#!/bin/bash\n{text}\n")
            path.chmod(0o755)
    (tmp_path / "build" / "tests.tsv").write_text("".join(f"{name}\t{tmp_path}/build/tests/test_{name}\n"
                                                          for name in ("absent", "gpu_conv2", "broken", "gpu_training")))
    return FakeGpuHost("gpu0", tmp_path / "build")


def test_gpu_steps_read_the_output_of_programs(fake_gpu_host, tmp_path):
    names = ("tests", "numerics", "bandwidth", "lombscargle", "sanitizer", "ptx80")
    wanted = [step(item.name, item.run) for item in STEPS if item.name in names]
    passed, found = run_steps(fake_gpu_host, tmp_path, wanted)
    states = {name: (result["state"], result["reason"]) for name, result in found.items()}
    assert states == {"lombscargle": ("passed", ""), "bandwidth": ("passed", ""), "tests": ("failed", "broken"),
                      "numerics": ("passed", ""), "sanitizer": ("passed", ""), "ptx80": ("passed", "")}
    outcomes = {name: [(row["test"], row["outcome"]) for row in found[name]["rows"] if "test" in row]
                for name in ("tests", "numerics")}
    assert outcomes["tests"] == [("absent", "skipped"), ("broken", "failed")]
    assert outcomes["numerics"] == [("gpu_conv2", "passed"),
                                    *((f"gpu_training {engine}", "passed") for engine in training.engines(fake_gpu_host))]
    assert tables.ptx80(found["ptx80"]["rows"]).splitlines()[0] == "| accuracy after four epochs | fp32 | tf32 | fp16 |"
    assert "| fused | 98.83 % | 98.83 % | 98.83 % |" in tables.ptx80(found["ptx80"]["rows"])
    assert "| cudnn | – | 98.83 %" in tables.ptx80(found["ptx80"]["rows"])
    assert sum(row.get("found") == 0 for row in found["sanitizer"]["rows"]) > 30
    assert tables.summary("abc", found).count("## ") == 6


def test_an_unfinished_sanitizer_run_fails():
    cases = [(0, False), (9, True), (None, False), (1, False)]
    conclusive = [checks.is_conclusive({"status": status, "refused": refused}) for status, refused in cases]
    inconclusive = [checks.is_conclusive({"status": status, "refused": refused}) for status, refused in [(77, False), (1, True)]]
    assert (conclusive, inconclusive) == ([True] * 4, [False] * 2)


def test_a_single_test_by_name(fake_gpu_host, tmp_path):
    passed, found = run_steps(fake_gpu_host, tmp_path, [steps.find("test:gpu_conv2"), steps.find("test:absent")])
    assert passed
    assert {name: result["state"] for name, result in found.items()} == {"test:gpu_conv2": "passed", "test:absent": "skipped"}
    assert "| gpu_conv2 | passed |" in tables.summary("abc", found)
    assert steps.find("test:") is None and steps.find("dance") is None


def test_each_training_is_repeated_by_bench_train(fake_gpu_host, tmp_path):
    context = runner.Context(fake_gpu_host, tmp_path, time.monotonic() + 60, [])
    rows = list(training.bench_epochs(context, [{"engine": "fused", "precision": "fp16", "batch": 512}]))
    assert [(row["by"], row["engine"], row["batch"], row["epoch_device_ms_median"])
            for row in rows] == [("bench_train", "fused", 512, 36.3)]
    assert rows[0]["parts_us"] == {"conv2_forward": 4.43, "together": 37.6}
    steps = {"training": {"rows": rows, "commit": "abc", "at": "now"}}
    filled = tables.fill_page("<!-- parts -->\n<!-- /parts -->\n", steps)
    assert "| µs | fused fp16 |\n| --- | --- |\n| conv2_forward | 4.43 |" in filled


def test_a_counted_duration_is_in_microseconds():
    assert reports.counter_duration_us({"metrics": [{"metric": "a", "value": 1},
                                           {"metric": "gpu__time_duration.sum", "value": 22100.0}]}) == pytest.approx(22.1)


# --- with the real daemon -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict, cause, properties, holds", [
    ("slower", "code", ["dram__bytes.sum"], [True, True]), ("same", "code", ["dram__bytes.sum"], [False, True]),
    ("slower", "device", ["dram__bytes.sum"], [True, False]), ("slower", "code", ["grid"], [True, False]),
    ("slower", None, [], [True, False])])
def test_a_slowed_kernel_must_be_found_with_its_cause(verdict, cause, properties, holds):
    causes = [{"class": cause, "evidence": [{"property": name} for name in properties]}] if cause else []
    found = suites.verdict_checks("strided_6", {"verdict": verdict, "reason": "", "effect_ratio": 0.02, "causes": causes})
    assert [row["holds"] for row in found] == holds


@pytest.mark.parametrize("verdict, holds", [("slower", False), ("same", True), ("inconclusive", True)])
def test_an_unimportant_change_must_not_be_slower(verdict, holds):
    row, = suites.verdict_checks("occupancy_unimportant", {"verdict": verdict, "effect_ratio": 0.0})
    assert row["holds"] == holds


def test_changed_kernels_differ_from_the_first_only_in_their_code():
    first, changed = (suites.changes_suite(132, is_changed)["jobs"] for is_changed in (False, True))
    for before, after in zip(first, changed):
        assert before["request"].pop("code") != after["request"].pop("code")
        assert before == after


def test_table_of_unchanged_runs_counts_verdicts_without_the_first_run():
    def metric(verdict, effect):
        return {"metric": "train/fp16/epoch_ms_median", "verdict": verdict, "effect_ratio": effect}

    rows = [{"seconds": seconds, "quarantine_reason": None, "metrics": [found]}
            for seconds, found in ((3.0, metric("incomparable", None)), (2.0, metric("same", -0.002)),
                                   (4.0, metric("slower", 0.1)))]
    shown = tables.unchanged(rows)
    assert shown.startswith("3 runs, 0 of them quarantined; median 3 s a run.")
    assert "| train/fp16/epoch_ms_median | 2 | 1 | 0 | 1 | 0 | 5.10 % | 10.00 % |" in shown


@pytest.mark.parametrize("dropped, reason, classes, holds", [
    (0, "", [], [True, False]), (2, "", [], [True, True]), (0, "the clock differs, not the work.", [], [True, True]),
    (0, "", ["device", "noise"], [True, True]), (0, "", ["code", "device"], [False, True])])
def test_a_neighbour_that_draws_power_is_no_change_of_code(dropped, reason, classes, holds):
    verdict = {"metric": "arithmetic/nvrtc/time_cold_us_median", "verdict": "inconclusive", "reason": reason,
               "blocks_dropped": dropped, "causes": [{"class": name} for name in classes]}
    assert [row["holds"] for row in suites.neighbour_checks({"verdicts": [verdict]})] == holds


class FakeDaemon:
    """Answers each suite run with two blocks. In the first run, the second block was dropped."""

    def __init__(self, *_):
        self.runs = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def wait_for_device(self):
        return {"uuid": "GPU-1"}

    def request(self, path, body=None):
        if body is not None:
            self.runs += 1
            assert body["definition"]["name"] == f"mnist-{self.runs - 1}" and not body["definition"]["canary"]
            return {"id": self.runs}
        values = [{"metric": "train/fp16/epoch_ms_median", "role": "block", "block": block, "value": 10 * self.runs + block,
                   "dropped_reason": "throttled" if (self.runs, block) == (1, 1) else None} for block in (0, 1)]
        return {"state": "completed", "elapsed_s": 2.0, "device_name": "NVIDIA H200", "driver": "580",
                "values": values}


def test_recorded_values_become_a_file(monkeypatch, tmp_path):
    monkeypatch.setattr(suites, "Daemon", FakeDaemon)
    remaining = iter([50, 0])
    context = types.SimpleNamespace(host=types.SimpleNamespace(device="gpu0", is_gpu=True), log_path=lambda name: name,
                                    remaining_s=lambda: next(remaining))
    rows = list(suites.record_blocks(context, "mnist"))
    assert [row["part"] for row in rows] == [0, 1]
    assert "| train/fp16/epoch_ms_median | 3 | 1 | 20 | 110.00 % |" in tables.recorded(rows)
    (tmp_path / "results.json").write_text(json.dumps(
        {"steps": {"device": {"rows": []}, "recorded_mnist": {"commit": "abc", "at": "2026-11-28", "rows": rows}}}))
    printed = subprocess.run([sys.executable, SOURCE / "scripts" / "recorded.py", tmp_path / "results.json"], capture_output=True,
                             text=True, check=True).stdout.splitlines()
    assert printed == ["# NVIDIA H200, GPU-1, driver 580; commit abc, 2026-11-28", "suite,metric,block,value",
                       *(f"mnist,train/fp16/epoch_ms_median,{block},{value}" for block, value in enumerate((10, "", 20, 21)))]


TORCH_ANSWERS = """
import json, sys
for number, line in enumerate(sys.stdin):
    request = json.loads(line)
    subject = {"framework": "pytorch 2.11.0+cu130", "dtype": request["dtype"]}
    if number == 0:
        print(json.dumps({**subject, "variant": "eager", "cold_us": 300, "warm_us": 290}))
    print(json.dumps({**subject, "variant": "compile cudnn,separate", "cold_us": 110 + number, "warm_us": 100 + number}))
    print("{}", flush=True)
"""


def test_the_layer_and_torch_are_timed_in_alternation():
    times = iter([(100, 100), (100, 99), (100, 98)])

    def run_results(request):
        assert (request["variants"], request["tokens"], request["pause_ms"]) == (["best"], 2048, layer.PAUSE_MS)
        cold_us, warm_us = next(times)
        return [{"measurements": [{"pass": "timing", "name": "time_cold_us_median", "value": cold_us},
                                  {"pass": "timing", "name": "time_warm_us_median", "value": warm_us}]}]

    with subprocess.Popen([sys.executable, "-c", TORCH_ANSWERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as torch:
        rows = list(layer.compare_with_torch(types.SimpleNamespace(run_results=run_results), torch, "prefill",
                                             {"dtype": "fp16", "tokens": 2048}))
        torch.stdin.close()
    (target,) = (row for row in rows if "target" in row)
    assert target["measured"] == [1.11, pytest.approx(101 / 99)] and not target["met"]
    shown = tables.layer(rows)
    assert "| prefill | fp16 | pytorch 2.11.0, eager | 300 | 290 |" in shown
    assert "| prefill | fp16 | pytorch 2.11.0, compile cudnn,separate | 111 | 101 |" in shown
    assert "| prefill | fp16 | 1.110 | 1.020 |" in shown


@pytest.mark.parametrize(("second", "rounds"), [(100.4, 2), (100.6, 3)])
def test_a_third_round_is_left_out_if_two_agree(second, rounds):
    times = iter([100, second, 100])

    def run_results(_):
        time_us = next(times)
        return [{"measurements": [{"pass": "timing", "name": f"time_{mode}_us_median", "value": time_us}
                                  for mode in ("cold", "warm")]}]

    answers = TORCH_ANSWERS.replace(" + number", "")  # every round takes as long
    with subprocess.Popen([sys.executable, "-c", answers], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as torch:
        rows = list(layer.compare_with_torch(types.SimpleNamespace(run_results=run_results), torch, "decode", {"dtype": "bf16"}))
        torch.stdin.close()
    (ratios,) = (row["rounds"] for row in rows if "rounds" in row)
    assert len(ratios) == rounds


def test_findings_of_each_variant_are_listed():
    finding = {"rule": "timeline_launch_latency", "title": "The device waits for launch calls", "message": "…",
               "speedup_pct": 5.33, "scope": "global",
               "inputs": [{"name": "timeline__idle_launch_latency_us", "value": 51.8},
                          {"name": "timeline__idle_launch_latency_pct", "value": 5.33}]}
    local = {**finding, "title": "Successive launches are independent", "speedup_pct": 33.6, "scope": "local",
             "inputs": [{"name": "timeline__independent_launches", "value": 3},
                        {"name": "timeline__independent_pct", "value": 19.1}]}
    unestimated = {**finding, "title": "The queue is empty", "speedup_pct": None, "scope": None}
    rows = [{"phase": "decode", "dtype": "fp16", "variant": "baseline",
             "findings": [layer.describe_finding(item) for item in (finding, local, unestimated)]},
            {"phase": "decode", "dtype": "fp16", "variant": "graph", "findings": []},
            {"phase": "decode", "dtype": "bf16", "variant": "graph", "findings": []},
            {"phase": "decode", "dtype": "fp16", "variant": "fused", "findings": ["a message of an earlier version"]}]
    assert tables.layer_findings(rows).splitlines()[2:] == [
        "| decode | baseline | The device waits for launch calls | 5.3 % | 5.3 % of the window |",
        "| decode | baseline | Successive launches are independent | 19.1 % | 33.6 % of it |",
        "| decode | baseline | The queue is empty | 5.3 % | – |",
        "| decode | graph | – | – | – |"]


def test_the_share_of_small_kernels_is_their_idle_time():
    inputs = [{"name": f"timeline__small_kernels{part}", "value": value}
              for part, value in (("", 60), ("_pct", 30), ("_latency_pct", 9))]
    found = layer.describe_finding({"rule": "timeline_small_kernels", "title": "…", "message": "…", "speedup_pct": 9,
                                    "scope": "global", "inputs": inputs})
    assert (found["share_pct"], found["saving_pct"]) == (9, 9)


def test_steps_run_on_the_cpu_with_the_real_daemon(tmp_path):
    command = [str(SOURCE / "scripts" / "gpu-test.sh"), "--device", "cpu", "--build", str(BUILD), "--out", str(tmp_path / "out"),
               "--keep", str(tmp_path / "kept.json"), "--steps", "device,speed,rules"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["logs.tar.gz", "results.json", "summary.md"]
    found = json.loads((tmp_path / "kept.json").read_text())["steps"]
    states = {name: result["state"] for name, result in found.items()}
    assert states == {"device": "passed", "speed": "passed", "rules": "skipped"}
    assert all(0 < row["least_s"] <= row["median_s"] <= row["most_s"] for row in found["speed"]["rows"])
    assert all(row["spent_ms"] == {"rest": pytest.approx(row["median_s"] * 1e3, abs=0.1)} for row in found["speed"]["rows"])
    shown = subprocess.run([sys.executable, str(SOURCE / "scripts" / "tables.py"), str(tmp_path / "kept.json")],
                           capture_output=True, text=True)
    assert shown.returncode == 0 and shown.stdout.count("| full |") == 2
    again = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert again.returncode == 0 and again.stdout.count("in an earlier session") == 3


def test_an_unknown_step_is_reported(tmp_path):
    done = subprocess.run([str(SOURCE / "scripts" / "gpu-test.sh"), "--out", str(tmp_path), "--steps", "device,dance"],
                          capture_output=True, text=True)
    assert done.returncode != 0 and "dance" in done.stderr


def hostile_samples(**last):
    """Returns samples of 40 groups of posts, of which the last quarter differs by `last`."""
    usual = {"cold_us": 10.0, "daemon_bytes": 1 << 24, "daemon_descriptors": 30, "workers": 2, "device_bytes": 1 << 30,
             "temporary_files": 0, "kept_replies_bytes": 1 << 20}
    return [{"posts": 100 * number, **usual, **(last if number >= 30 else {})} for number in range(40)]


@pytest.mark.parametrize(("last", "failures"), [
    ({}, 0), ({"cold_us": 10.09}, 0), ({"cold_us": 10.11}, 1), ({"cold_us": 9.89}, 1),
    ({"daemon_bytes": (1 << 24) + 1900 * 2048}, 0), ({"daemon_bytes": (1 << 24) + 1900 * 2048 + 1}, 1),
    ({"temporary_files": 1}, 1),
    ({"daemon_bytes": 9 << 21, "kept_replies_bytes": 3 << 20}, 0),
    ({"daemon_descriptors": 31}, 1), ({"workers": 3}, 1), ({"device_bytes": 1.009 * (1 << 30)}, 0),
    ({"device_bytes": 1.011 * (1 << 30)}, 1)])
def test_leaks_and_drift_under_hostile_posts_are_found(last, failures):
    samples = hostile_samples(**last)
    assert sum(not row["holds"] for row in [*hostile.leak_checks(samples), hostile.drift_check(samples)]) == failures


@pytest.mark.parametrize(("state", "message", "may_complete", "words", "holds"), [
    ("completed", "", True, None, True), ("completed", "", False, ("/block",), False), ("completed", "", True, ("/block",), True),
    ("failed", "/block a block has", False, ("/block",), True), ("failed", "another reason", True, ("/block",), False),
    ("failed", "", True, None, False), ("failed", "result is wrong", True, (), False), ("refused", "/grid", True, None, True),
    ("interrupted", "the daemon stopped", True, None, False)])
def test_hostile_posts_end_as_expected(state, message, may_complete, words, holds):
    assert hostile.ends_as_expected(state, message, hostile.Verdict(may_complete, words)) == holds


@pytest.mark.parametrize(("state", "message", "name"), [
    ("completed", "", "completed"), ("failed", "a block has 1024 threads (at /block)", "failed: /block"),
    ("failed", "code.cu(3): error: expected a ; (at /code)", "failed: not compiled"),
    ("refused", "/grid/0 must be at least 1", "refused: /grid/0"),
    ("failed", "running: an illegal memory access was encountered", "failed: illegal address"),
    ("failed", "the job exceeded its deadline; its worker was killed", "failed: deadline")])
def test_hostile_posts_are_counted_by_their_end(state, message, name):
    assert hostile.end_of(state, message) == name


class AnsweringDaemon:
    """Accepts every job. The job of the post with number `endless` never ends; the other jobs complete."""

    def __init__(self, endless):
        self.endless, self.jobs = endless, 0
        self.host = types.SimpleNamespace(devices=["gpu0"])

    def request(self, path, body=None):
        self.jobs += body is not None
        return {"id": self.jobs, "state": "running" if self.jobs - 1 == self.endless else "completed"}


def hostile_rows(monkeypatch, endless, remaining_s=1000):
    monkeypatch.setattr(hostile, "MAX_DELAY_S", 0)
    context = types.SimpleNamespace(deadline=time.monotonic() + remaining_s, remaining_s=lambda: remaining_s)
    completes = hostile.Post("kind", {"deadline_s": 0.01}, hostile.Verdict(True, None))
    return list(hostile.post_all(context, AnsweringDaemon(endless), lambda number: completes, lambda number: {"posts": number},
                                 [], reserve_s=15))


def test_a_hostile_post_that_never_ends_is_counted_and_ends_the_posts(monkeypatch):
    rows = hostile_rows(monkeypatch, endless=130)
    assert [row["posts_so_far"] for row in rows if "posts_so_far" in row] == [100, 131]
    assert rows[-1] == runner.check("every post ends as expected", False, 1)
    kind, = (row for row in rows if "kind" in row)
    assert kind["count"] == 131 and sum(count for end, count in kind["ends"].items() if end.startswith("unanswered")) == 1


@pytest.mark.parametrize(("remaining_s", "posts", "partial"),
                         [(1000, 1000, None), (14, 100, "100 of 1000 posts fit into the time")])
def test_hostile_posts_say_how_many_were_sent(monkeypatch, remaining_s, posts, partial):
    monkeypatch.setattr(hostile, "post_share", lambda daemon, device, posts, deadline: [
        (post.kind, "completed", "", True, post.request) for post in posts])
    rows = hostile_rows(monkeypatch, endless=-1, remaining_s=remaining_s)
    assert next(row for row in rows if "posts_done" in row)["posts_done"] == posts
    assert next((row["partial"] for row in rows if "partial" in row), None) == partial
    assert rows[-1] == runner.check("every post ends as expected", True, 0)


def test_every_kind_of_hostile_post_can_be_made():
    chance = random.Random(1)
    posts = [hostile.hostile_post(number, chance) for number in range(2000)]
    assert {f"attack {name}" for name, _ in hostile.read_attacks()} <= {post.kind for post in posts}
    assert {name for name, *_ in hostile.HOSTILE} <= {post.kind for post in posts}
    assert all(post.request["deadline_s"] <= 10 for post in posts)
