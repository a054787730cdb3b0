"""Tests jobs of the kind kernel: their results, and refused requests."""

import statistics

import pytest
from daemon import DOCUMENT


def kernel(**changes):
    return {"kind": "kernel", "kernel": "relu", "dtype": "fp16", "shape": {"n": 10007}, "samples": 5, "device": "cpu", **changes}


def test_a_job_has_a_run_for_each_variant(daemon):
    job_id = daemon.run(kernel(passes=["timing", "activity", "counters"]))
    job = daemon.get(f"/jobs/{job_id}").json()
    assert (job["kind"], job["state"], job["problem"]) == ("kernel", "completed", None)
    assert job["request"]["shape"] == {"n": 10007} and job["request"]["seed"] == 1
    runs = daemon.get(f"/jobs/{job_id}/results").json()["runs"]
    assert [(run["workload"], run["variant"]) for run in runs] == [("relu", "scalar"), ("relu", "vector")]
    for run in runs:
        assert run["engine"] == "cpu" and run["dataset"] is None and run["images_per_epoch"] is None and run["epochs"] == []
        assert run["params"]["shape"] == {"n": 10007} and run["floor_bytes"] == 4 * 10007
        assert [(s["mode"], s["ordinal"]) for s in run["samples"]] == [(mode, i) for mode in ("cold", "warm") for i in range(5)]
        values = {m["name"]: m["value"] for m in run["measurements"] if m["pass"] == "timing"}
        cold = [s["device_us"] for s in run["samples"] if s["mode"] == "cold"]
        assert values["time_cold_us_median"] == pytest.approx(statistics.median(cold))
        assert values["achieved_bytes_per_s"] == pytest.approx(4 * 10007 / values["time_cold_us_median"] * 1e6)
        assert values["relative_error"] == 0 and values["checked_ratio"] == 1
        assert values["time_cold_us_spread_ratio"] >= 0 and values["time_warm_us_spread_ratio"] >= 0
        assert {"sm_clock_least_mhz", "memory_clock_mhz", "temperature_c_most", "power_w_most", "throttled_ratio"} <= set(values)
        for measurement in run["measurements"]:
            assert (measurement["value"] is None) == (measurement["reason"] is not None), measurement
        assert run["summary"]["epoch_ms_median"] is None and run["summary"]["unavailable"]["epoch_ms_median"]
        states = {p["pass"]: p["state"] for p in run["passes"]}
        assert states == {"timing": "completed", "activity": "completed", "counters": "unavailable"}
    items = daemon.get(f"/jobs/{job_id}/kernels?pass=activity").json()["items"]
    assert [(item["launch"], item["launches"]) for item in items] == [("relu", 5), ("relu", 5)]
    assert daemon.get(f"/jobs/{job_id}/comparison").json() == {"items": []}
    (listed,) = [item for item in daemon.get("/jobs?limit=500").json()["items"] if item["id"] == job_id]
    assert (listed["workload"], listed["dtype"], listed["shape"], listed["batch_size"]) == ("relu", "fp16", {"n": 10007}, None)
    points = daemon.get("/history?metric=time_cold_us_median&workload=relu").json()["items"]
    assert {point["variant"] for point in points if point["job"] == job_id} == {"scalar", "vector"}


def test_workloads_lists_the_documented_kernels(daemon):
    items = {item["kernel"]: item for item in daemon.get("/workloads").json()["items"]}
    described = DOCUMENT["components"]["schemas"]["KernelJob"]["properties"]
    assert list(items) == described["kernel"]["enum"]
    assert items["transpose"]["variants"] == [{"name": "naive", "gpu_only": False}, {"name": "shared", "gpu_only": False},
                                              {"name": "padded", "gpu_only": True}]
    assert items["gemm"]["dtypes"] == ["fp64", "fp32", "tf32", "fp16", "bf16"] and "tf32" not in items["relu"]["dtypes"]
    assert items["lombscargle"]["builds"][0] == "fatbin" and items["relu"]["builds"] == []
    assert list(items["gemm"]["shape"]["properties"]) == items["gemm"]["shape"]["required"] == ["m", "n", "k"]
    assert items["attention"]["shape"]["properties"]["causal"]["type"] == "boolean"


@pytest.mark.parametrize("name", ["relu", "transpose", "gemm", "conv_wgrad"])
def test_listed_dtypes_are_accepted_and_sizes_above_the_maximum_refused(daemon, name):
    (item,) = [item for item in daemon.get("/workloads").json()["items"] if item["kernel"] == name]
    sizes = item["shape"]["properties"]
    smallest_shape = {size: max(field["minimum"], 1) for size, field in sizes.items()}
    variant = next(variant["name"] for variant in item["variants"] if not variant["gpu_only"])
    shape = {**smallest_shape, **({"padding": 0} if "padding" in sizes else {})}
    body = kernel(kernel=name, shape=shape, variant=variant, samples=1)
    for dtype in item["dtypes"]:
        assert daemon.wait(daemon.submit({**body, "dtype": dtype}))["state"] == "completed"
    for size, field in sizes.items():
        response = daemon.call("POST", "/jobs", {**body, "shape": {**body["shape"], size: field["maximum"] + 1}})
        assert (response.status_code, response.json()["pointer"]) == (400, f"/shape/{size}")


@pytest.mark.parametrize("size, pointer", (("q", "/shape/q"), ("a/b~", "/shape/a~1b~0"), ("\u00e9" * 70, None)))
def test_an_unknown_size_is_named_with_the_kernel(daemon, size, pointer):
    response = daemon.call("POST", "/jobs", kernel(kernel="softmax", shape={"rows": 2, "columns": 2, size: 1}))
    problem = response.json()
    assert response.status_code == 400 and problem["code"] == "invalid_field"
    assert problem["detail"].startswith('Unknown size "') and problem["detail"].endswith(" for softmax; expected rows, columns")
    assert pointer in (None, problem["pointer"])


def test_only_the_requested_variant_runs(daemon):
    job_id = daemon.run(kernel(kernel="bias_gelu", dtype="bf16", shape={"rows": 3, "columns": 77}, variant="vector"))
    (run,) = daemon.get(f"/jobs/{job_id}/results").json()["runs"]
    assert run["variant"] == "vector" and run["params"]["dtype"] == "bf16"
    values = {m["name"]: m["value"] for m in run["measurements"]}
    assert 0 < values["relative_error"] <= values["relative_error_limit"]


CONV = {"images": 2, "height": 9, "width": 7, "channels": 3, "filters": 5, "kernel": 3, "stride": 2, "padding": 1}
ATTENTION = {"batch": 1, "heads": 4, "kv_heads": 2, "sequence": 65, "head_size": 24, "causal": True}


@pytest.mark.parametrize("name, dtype, shape, operations", [
    ("gemm", "fp16", {"m": 1, "n": 300, "k": 129}, 2 * 300 * 129),
    ("gemm", "tf32", {"m": 65, "n": 3, "k": 33}, 2 * 65 * 3 * 33),
    ("attention", "bf16", ATTENTION, 4 * 4 * 24 * 65 * 66 // 2),
    ("attention", "fp32", {**ATTENTION, "causal": False}, 4 * 4 * 24 * 65 * 65),
    ("conv", "fp32", CONV, 2 * 2 * 13 * 10 * 3 * 5),
    ("conv_dgrad", "fp16", CONV, 2 * 2 * 13 * 10 * 3 * 5),
    ("conv_wgrad", "bf16", CONV, 2 * 2 * 13 * 10 * 3 * 5),
])
def test_matrix_products_run(daemon, name, dtype, shape, operations):
    job_id = daemon.run(kernel(kernel=name, dtype=dtype, shape=shape, samples=2))
    runs = daemon.get(f"/jobs/{job_id}/results").json()["runs"]
    assert [run["variant"] for run in runs] == ["heuristic"]  # variant "searched" exists only on GPUs
    for run in runs:
        assert run["params"]["shape"] == shape and run["floor_operations"] == operations
        assert run["engine"] == ("openblas" if name == "gemm" else "cpu")
        values = {m["name"]: m["value"] for m in run["measurements"]}
        assert 0 < values["relative_error"] <= values["relative_error_limit"] and values["checked_ratio"] == 1


@pytest.mark.parametrize("name, shape, variants", [
    ("rope", {"tokens": 3, "heads": 2, "head_size": 10}, ["scalar", "vector"]),
    ("softmax", {"rows": 7, "columns": 33}, ["scalar", "vector"]),
    ("rmsnorm", {"rows": 1, "columns": 31}, ["scalar", "vector"]),
    ("layernorm", {"rows": 31, "columns": 17}, ["scalar", "vector"]),
    ("transpose", {"rows": 5, "columns": 67}, ["naive", "shared"]),
    ("reduction", {"rows": 1, "columns": 1009}, ["scalar", "vector"]),
])
def test_kernels_on_rows_run(daemon, name, shape, variants):
    job_id = daemon.run(kernel(kernel=name, dtype="fp32", shape=shape, samples=2))
    runs = daemon.get(f"/jobs/{job_id}/results").json()["runs"]
    assert [run["variant"] for run in runs] == variants
    for run in runs:
        values = {m["name"]: m["value"] for m in run["measurements"]}
        assert run["params"]["shape"] == shape and run["floor_bytes"] > 0
        assert 0 <= values["relative_error"] <= values["relative_error_limit"] < 1e-3 and values["checked_ratio"] == 1


def test_lombscargle_variants_round_differently(daemon):
    shape = {"samples": 31, "frequencies": 1009}
    for dtype in ("fp64", "fp32"):
        job_id = daemon.run(kernel(kernel="lombscargle", dtype=dtype, shape=shape, samples=2))
        runs = daemon.get(f"/jobs/{job_id}/results").json()["runs"]
        assert [run["variant"] for run in runs] == ["template", "uniform"]
        errors = [{m["name"]: m["value"] for m in run["measurements"]}["relative_error"] for run in runs]
        assert errors[0] != errors[1] and all(0 < error < {"fp64": 1e-11, "fp32": 1e-3}[dtype] for error in errors)


@pytest.mark.parametrize("change, pointer", [
    ({"kernel": "gemm", "shape": {"m": 1, "n": 1}}, "/shape/k"),
    ({"kernel": "attention", "dtype": "tf32", "shape": ATTENTION}, "/dtype"),
    ({"kernel": "attention", "shape": {**ATTENTION, "kv_heads": 3}}, "/shape/kv_heads"),
    ({"kernel": "attention", "shape": {**ATTENTION, "causal": 1}}, "/shape/causal"),
    ({"kernel": "conv", "shape": {**CONV, "padding": 3}}, "/shape/padding"),
    ({"kernel": "conv_wgrad", "shape": {**CONV, "kernel": 11}}, "/shape/kernel"),
    ({"kernel": "knead"}, "/kernel"),
    ({"kernel": None}, "/kernel"),
    ({"dtype": "fp8"}, "/dtype"),
    ({"dtype": "tf32"}, "/dtype"),
    ({"shape": {}}, "/shape/n"),
    ({"shape": {"n": 0}}, "/shape/n"),
    ({"shape": {"n": 1.5}}, "/shape/n"),
    ({"shape": {"n": 1, "m": 1}}, "/shape/m"),
    ({"shape": {"n": 1 << 40}}, "/shape/n"),
    ({"shape": [1]}, "/shape"),
    ({"shape": "large"}, "/shape"),
    ({"kernel": "bias_gelu", "shape": {"rows": 100000, "columns": 100000}}, "/shape"),
    ({"kernel": "rope", "shape": {"tokens": 3, "heads": 2, "head_size": 5}}, "/shape/head_size"),
    ({"kernel": "rope", "shape": {"tokens": 1 << 20, "heads": 1 << 16, "head_size": 1 << 12}}, "/shape"),
    ({"kernel": "transpose", "shape": {"rows": 3}}, "/shape/columns"),
    ({"kernel": "transpose", "shape": {"rows": 3, "columns": 3}, "variant": "vector"}, "/variant"),
    ({"kernel": "softmax", "shape": {"rows": 1, "columns": 1 << 23}}, "/shape/columns"),
    ({"variant": "best"}, "/variant"),
    ({"kernel": "gemm", "shape": {"m": 1, "n": 1, "k": 1}, "variant": "searched"}, "/variant"),
    ({"kernel": "lombscargle", "dtype": "fp32", "shape": {"samples": 8, "frequencies": 8}, "variant": "launch_bounds"},
     "/variant"),
    ({"samples": 0}, "/samples"),
    ({"epochs": 1}, "/epochs"),
])
def test_invalid_kernel_jobs_are_refused(daemon, change, pointer):
    response = daemon.call("POST", "/jobs", kernel(**change))
    assert (response.status_code, response.json()["pointer"]) == (400, pointer)


def test_missing_fields_are_refused(daemon):
    for missing in ("kernel", "shape"):
        body = kernel()
        del body[missing]
        assert daemon.call("POST", "/jobs", body).json()["pointer"] == f"/{missing}"
