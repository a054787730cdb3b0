"""Tests kernel jobs of several kernels: such a job has one run with one time for all launches, and counters and activity for each
launch."""

import json

import pytest
from daemon import SOURCE

KERNELS = [{"kernel": "rmsnorm", "dtype": "fp16", "shape": {"rows": 33, "columns": 65}},
           {"kernel": "relu", "dtype": "fp16", "shape": {"n": 1003}, "variant": "vector"},
           {"kernel": "relu", "dtype": "fp16", "shape": {"n": 17}}]


def sequence(**changes):
    return {"kind": "kernel", "kernels": KERNELS, "samples": 4, "device": "cpu", **changes}


def test_a_sequence_has_one_run_of_all_launches(daemon):
    job_id = daemon.run(sequence(passes=["timing", "activity"]))
    request = daemon.get(f"/jobs/{job_id}").json()["request"]
    variants = [(kernel["kernel"], kernel["variant"]) for kernel in request["kernels"]]
    assert variants == [("rmsnorm", "scalar"), ("relu", "vector"), ("relu", "scalar")]
    (run,) = daemon.get(f"/jobs/{job_id}/results").json()["runs"]
    assert (run["workload"], run["variant"], run["engine"]) == ("sequence", "sequence", "cpu")
    assert run["floor_bytes"] == 2 * (2 * 33 * 65 + 65) + 2 * 2 * (1003 + 17) and run["floor_precision"] == "fp16"
    assert [(s["mode"], s["ordinal"]) for s in run["samples"]] == [(mode, i) for mode in ("cold", "warm") for i in range(4)]
    values = {m["name"]: m["value"] for m in run["measurements"] if m["pass"] == "timing"}
    assert values["launches_per_step"] == 3 and 0 < values["relative_error"] <= values["relative_error_limit"]
    items = daemon.get(f"/jobs/{job_id}/kernels?pass=activity").json()["items"]
    assert [(item["launch"], item["launches"]) for item in items] == [("rmsnorm", 4), ("relu", 4), ("relu_2", 4)]


def test_the_documented_example_is_accepted(daemon):
    example = json.loads((SOURCE / "docs" / "examples" / "transformer_layer.json").read_text())
    job_id = daemon.submit({**example, "device": "cpu"})
    assert len(daemon.get(f"/jobs/{job_id}").json()["request"]["kernels"]) == 7
    daemon.call("DELETE", f"/jobs/{job_id}")


@pytest.mark.parametrize("change, pointer", [
    ({"kernels": []}, "/kernels"),
    ({"kernels": "all"}, "/kernels"),
    ({"kernels": [KERNELS[1]] * 33}, "/kernels"),
    ({"kernels": [KERNELS[1], 3]}, "/kernels/1"),
    ({"kernels": [KERNELS[1], {"kernel": "knead", "shape": {"n": 1}}]}, "/kernels/1/kernel"),
    ({"kernels": [{"kernel": "relu"}]}, "/kernels/0/shape"),
    ({"kernels": [{**KERNELS[1], "shape": {"n": 0}}]}, "/kernels/0/shape/n"),
    ({"kernels": [{**KERNELS[1], "dtype": "tf32"}]}, "/kernels/0/dtype"),
    ({"kernels": [{**KERNELS[1], "variant": "best"}]}, "/kernels/0/variant"),
    ({"kernels": [KERNELS[1], {"kernel": "transpose", "shape": {"rows": 3, "columns": 5}, "variant": "padded"}]},
     "/kernels/1/variant"),  # variant "padded" exists only on GPUs
    ({"kernels": [{**KERNELS[1], "seed": 3}]}, "/kernels/0/seed"),
    ({"kernel": "relu"}, "/kernels"),
    ({"samples": 0}, "/samples")])
def test_invalid_sequence_jobs_are_refused(daemon, change, pointer):
    response = daemon.call("POST", "/jobs", sequence(**change))
    assert (response.status_code, response.json()["pointer"]) == (400, pointer)
