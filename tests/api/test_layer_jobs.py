"""Tests layer jobs on the CPU: a run for each variant, with costs, results and launches; and refused requests."""

import pytest

SMALL = {"batch": 2, "tokens": 9, "hidden": 48, "heads": 3, "ffn": 65}


def layer(**changes):
    return {"kind": "layer", **SMALL, "samples": 3, "device": "cpu", **changes}


def test_each_variant_of_the_device_is_a_run(daemon):
    job_id = daemon.run(layer(passes=["timing", "activity"]))
    job = daemon.get(f"/jobs/{job_id}").json()
    assert (job["request"]["tokens"], job["request"]["cached_tokens"], job["request"]["dtype"]) == (9, 0, "fp16")
    runs = daemon.get(f"/jobs/{job_id}/results").json()["runs"]
    assert [(run["workload"], run["variant"], run["engine"]) for run in runs] == [
        ("transformer_layer", "baseline", "cpu"), ("transformer_layer", "fused", "cpu")]
    weights, rows, pairs = 4 * 48 * 48 + 3 * 48 * 65, 18, 9 * 10 / 2
    for run, launches in zip(runs, (14, 8), strict=True):
        assert run["floor_operations"] == 2 * rows * weights + 4 * 2 * pairs * 48
        assert run["floor_bytes"] == 2 * (weights + 4 * 48 + 4 * rows * 48) and run["floor_written_bytes"] == 2 * 3 * rows * 48
        assert run["floor_precision"] == "fp16" and len(run["samples"]) == 6
        values = {m["name"]: m["value"] for m in run["measurements"] if m["pass"] == "timing"}
        assert values["launches_per_step"] == launches and 0 < values["relative_error"] <= values["relative_error_limit"]
        assert values["checked_ratio"] == pytest.approx(16 / 18)
    items = daemon.get(f"/jobs/{job_id}/kernels?pass=activity").json()["items"]
    fused = [(item["launch"], item["phase"], item["launches"]) for item in items if item["variant"] == "fused"]
    assert fused == [("norm1", "attention", 3), ("qkv", "attention", 3), ("rope", "attention", 3), ("attention", "attention", 3),
                     ("o_residual", "attention", 3), ("norm2", "feed_forward", 3), ("gate_up_silu", "feed_forward", 3),
                     ("down_residual", "feed_forward", 3)]


def test_a_decode_step_runs_in_bf16(daemon):
    job_id = daemon.run(layer(tokens=1, cached_tokens=30, dtype="bf16", causal=False, variants=["fused"], pause_ms=2))
    (run,) = daemon.get(f"/jobs/{job_id}/results").json()["runs"]
    assert run["params"]["pause_ms"] == 2
    assert (run["variant"], run["floor_precision"]) == ("fused", "bf16")
    assert run["floor_operations"] == 2 * 2 * (4 * 48 * 48 + 3 * 48 * 65) + 4 * 2 * 31 * 48


@pytest.mark.parametrize("change, pointer", [
    ({"variants": ["graph"]}, "/variants"),  # exists only on GPUs
    ({"variants": ["baseline", "tuned"]}, "/variants"),
    ({"variants": ["fastest"]}, "/variants/0"),
    ({"variants": []}, "/variants"),
    ({"variant": "fused"}, "/variant"),
    ({"heads": 5}, "/heads"),  # does not divide 48
    ({"hidden": 45}, "/heads"),  # heads of 15 elements
    ({"hidden": 0}, "/hidden"),
    ({"tokens": 0}, "/tokens"),
    ({"tokens": 131072, "batch": 1024}, "/tokens"),
    ({"hidden": 32768, "heads": 128, "ffn": 131072}, "/ffn"),
    ({"cached_tokens": -1}, "/cached_tokens"),
    ({"causal": 1}, "/causal"),
    ({"dtype": "fp32"}, "/dtype"),
    ({"samples": 0}, "/samples"),
    ({"pause_ms": 101}, "/pause_ms"),
    ({"layers": 2}, "/layers")])
def test_invalid_layer_jobs_are_refused(daemon, change, pointer):
    response = daemon.call("POST", "/jobs", layer(**change))
    assert (response.status_code, response.json()["pointer"]) == (400, pointer)
