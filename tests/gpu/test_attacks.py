"""Posts the kernels of tests/attacks, most of which try to appear fast with wrong results, to a daemon with a GPU. Each is
refused, or its job fails, or its job completes because every launch computed the right result.
The comment at the top of each kernel names the trick, where it was seen, and the verdict."""

import json
import pathlib

import pytest

from test_source import N, buffer, daemon, pack_base64, scalar  # noqa: F401  (daemon is a fixture)

ATTACKS = pathlib.Path(__file__).resolve().parents[1] / "attacks"
# For each of the two cache states, cold and warm, there are 34 warm-up launches and 100 samples.
CHECKED_LAUNCHES = 2 * (34 + 100)
RESULT = [2.0 * i for i in range(N)]  # correct output for the input 0, 1, 2 ...
# Properties of each attack. `words`: the message of the failed job contains one of these words. `may_complete`: the job may also
# complete. `scratch`: the attack has a fourth argument, a buffer of one element of this type.
VERDICTS = json.loads((ATTACKS / "verdicts.json").read_text())
TWICE = """extern "C" __global__ void twice(const float *x, float *y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * x[i];
}"""
RANDOM = [buffer(init="uniform", access="in"), buffer(access="out"), scalar("int32", N)]
BY_REFERENCE = {"arguments": RANDOM, "expected": {"argument": 1, "reference": {"code": TWICE, "entry": "twice"}}}
CHANGES = {"knows_the_seed": BY_REFERENCE, "endless_after_check": {"deadline_s": 4}}


def attack_job(name, **changes):
    arguments = [buffer(init="range", access="in"), buffer(access="out"), scalar("int32", N)]
    arguments += [buffer(VERDICTS[name]["scratch"], 1)] if "scratch" in VERDICTS[name] else []
    return {"kind": "source", "code": (ATTACKS / f"{name}.cu").read_text(), "entry": "k", "grid": [(N + 255) // 256],
            "block": [256], "samples": 100, "deadline_s": 20, "arguments": arguments,
            "expected": {"argument": 1, "values": pack_base64("f", RESULT)}, **changes}


def test_every_attack_has_a_verdict():
    assert {path.stem for path in ATTACKS.glob("*.cu")} == set(VERDICTS)


@pytest.mark.parametrize("name", VERDICTS)
def test_attack(daemon, name):  # noqa: F811
    verdict = VERDICTS[name]
    job = daemon.finish(attack_job(name, **CHANGES.get(name, {})))
    if job["state"] == "completed":
        assert verdict["may_complete"], job
        (run,) = daemon.call("GET", f"/jobs/{job['id']}/results")[1]["runs"]
        values = {item["name"]: item["value"] for item in run["measurements"]}
        assert values["checked_launches"] == CHECKED_LAUNCHES, values
    else:
        assert job["state"] == "failed", job
        assert any(word in job["problem"]["message"] for word in verdict["words"]), job["problem"]


def test_every_timed_launch_has_other_inputs(daemon):  # noqa: F811
    """Without the fresh inputs, the kernel that knows the seed is right in every launch."""
    for name, init in (("honest_rounding", "normal"), ("stale_output", "uniform")):
        arguments = [buffer(init=init, access="in"), *RANDOM[1:]]
        (run,) = daemon.run(attack_job(name, **{**BY_REFERENCE, "arguments": arguments}))
        assert run["values"]["checked_launches"] == CHECKED_LAUNCHES and run["values"]["relative_error"] < 1e-6
    job = daemon.finish(attack_job("writes_input", **BY_REFERENCE))
    assert job["state"] == "failed" and "argument 0, whose access is" in job["problem"]["message"], job["problem"]
    same_inputs = [buffer(access="in", bytes=pack_base64("f", [float(i) for i in range(1000)]), count=1000), *RANDOM[1:]]
    same_inputs[1:] = [buffer(access="out", count=1000), scalar("int32", 1000)]
    daemon.run(attack_job("stale_output", **{**BY_REFERENCE, "arguments": same_inputs, "grid": [4]}))
    assert daemon.run(attack_job("stale_output", **BY_REFERENCE, passes=["timing", "activity", "counters"]))


def test_references_that_cannot_run_are_refused(daemon):  # noqa: F811
    for reference, words in [({"code": "nonsense;", "entry": "twice"}, ("/expected/reference/code",)),
                             ({"code": TWICE, "entry": "thrice"}, ("/expected/reference", "thrice")),
                             ({"code": TWICE.replace(", int n", ", long n"), "entry": "twice"}, ("/expected/reference/entry",)),
                             ({"code": TWICE, "entry": "twice", "dynamic_shared_bytes": 1 << 20},
                              ("/expected/reference/dynamic_shared_bytes",))]:
        job = daemon.finish(attack_job("stale_output", **{**BY_REFERENCE, "expected": {"argument": 1, "reference": reference}}))
        assert job["state"] == "failed" and all(word in job["problem"]["message"] for word in words), job["problem"]
    nan_reference = {"code": TWICE.replace("2 * x[i]", "nanf(\"\")"), "entry": "twice"}
    job = daemon.finish(attack_job("stale_output", **{**BY_REFERENCE, "expected": {"argument": 1, "reference": nan_reference}}))
    assert job["state"] == "failed" and "wrong" in job["problem"]["message"], job["problem"]


def test_persistent_lines_of_l2_buy_no_time(daemon):  # noqa: F811
    elements = 1 << 22  # 16 MiB, a third of L2
    arguments = [buffer(count=elements, init="range", access="in"), buffer(count=elements, access="out"),
                 scalar("int32", elements)]
    times = []
    for name, entry in (("persistent_l2", "k"), (None, "twice")):
        code = (ATTACKS / f"{name}.cu").read_text() if name else TWICE
        job = attack_job("persistent_l2", code=code, entry=entry, arguments=arguments, grid=[132 * 8], expected=None)
        times.append(min(daemon.run(job)[0]["values"]["time_cold_us_median"] for _ in range(3)))
    assert times[0] > 0.95 * times[1], times
