"""Posted kernels that cheat (tests/attacks), on a GPU over HTTP: each is refused, fails, or computes in every launch.
The comment at the top of each kernel names the trick, where it was seen, and the verdict."""

import pathlib

import pytest

from test_source import N, buffer, daemon, pack_base64, scalar  # noqa: F401  (daemon is a fixture)

ATTACKS = pathlib.Path(__file__).resolve().parents[1] / "attacks"
RESULT = [2.0 * i for i in range(N)]  # of the input 0, 1, 2 ...
WRONG = ("result_changed", "result is wrong")
# Words of which the job's problem has at least one; None: the job completes, so every launch was correct.
VERDICTS = {
    "counted_launches": None,
    "late_zeros": None,
    "late_zeros_by_clock": WRONG,
    "stale_output": None,
    "trusts_output": WRONG,
    "cached_answer": None,
    "heap_answer": None,
    "writes_input": ("argument 0, whose access is",),
    "writes_input_late": ("argument 0, whose access is",),
    "behind_the_buffer": ("outside of the buffer of argument 1",),
    "before_the_buffer": ("outside of the buffer of argument 1",),
    "one_past_the_end": ("outside of the buffer of argument 1",),
    "finds_expected": WRONG,
    "half_the_work": WRONG,
    "every_seventh": WRONG,
    "nan_output": WRONG,
    "child_kernel": ("device-side kernel launch",),
    "just_wrong": WRONG,
    "endless_after_check": ("deadline",),
    "honest_rounding": None,
    "honest_atomics": None,
    "honest_counter": None,
}
# These jobs fail with one of these words or complete, depending on the content of shared memory.
MAY_COMPLETE = {"shared_residue": WRONG}
SCRATCH = {"late_zeros": buffer("int32", 1), "honest_atomics": buffer("fp32", 1)}


def attack_job(name, **changes):
    arguments = [buffer(init="range", access="in"), buffer(access="out"), scalar("int32", N)]
    arguments += [SCRATCH[name]] if name in SCRATCH else []
    return {"kind": "source", "code": (ATTACKS / f"{name}.cu").read_text(), "entry": "k", "grid": [(N + 255) // 256],
            "block": [256], "samples": 100, "deadline_s": 20, "arguments": arguments,
            "expected": {"argument": 1, "values": pack_base64("f", RESULT)}, **changes}


def test_every_attack_has_a_verdict():
    assert {path.stem for path in ATTACKS.glob("*.cu")} == set(VERDICTS) | set(MAY_COMPLETE)


@pytest.mark.parametrize("name", VERDICTS)
def test_attack(daemon, name):  # noqa: F811
    expected_words = VERDICTS[name]
    if expected_words is None:
        (run,) = daemon.run(attack_job(name))
        assert run["values"]["checked_launches"] == 2 * (34 + 100), run["values"]
        assert run["values"]["unrestored_variable_bytes"] == 0
        return
    job = daemon.finish(attack_job(name, deadline_s=4 if name == "endless_after_check" else 20))
    assert job["state"] == "failed", job
    assert any(word in job["problem"]["message"] for word in expected_words), job["problem"]


@pytest.mark.parametrize("name", MAY_COMPLETE)
def test_attack_that_may_be_harmless(daemon, name):  # noqa: F811
    job = daemon.finish(attack_job(name))
    assert job["state"] == "completed" or any(word in job["problem"]["message"] for word in MAY_COMPLETE[name]), job
