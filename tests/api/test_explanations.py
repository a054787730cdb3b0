"""GET /jobs/{id}/comparison explains training runs: a job of the CPU, and rows like those that a GPU worker produces."""

import json

import pytest

from report_fixture import Rows

BUSY = {"epoch_traced_ms": 40.0, "device_busy_ratio": 0.975}
MEMORY = {"memory_dataset_bytes": 5.5e7, "memory_weights_bytes": 6.4e6, "memory_activations_bytes": 2.4e7,
          "memory_workspace_bytes": 4.2e6}
VERDICT = {"gpu__time_duration.sum": 1e6, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
           "sm__throughput.avg.pct_of_peak_sustained_elapsed": 20.0, "sm__issue_active.avg.pct_of_peak_sustained_elapsed": 20.0}
ARITHMETIC = {**VERDICT, "sm__throughput.avg.pct_of_peak_sustained_elapsed": 90.0,
              "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed": 90.0}
INSTRUCTIONS = [("HADD2.F32", "HADD2.F32 R4, -RZ, R5.H0_H0 ;", 30),
                ("F2FP.F16.F32.PACK_AB", "F2FP.F16.F32.PACK_AB R4, R5, R6 ;", 10),
                ("HADD2.F32", "HADD2.F32 R4, R7, R5.H0_H0 ;", 60),
                ("FFMA", "FFMA R1, R2, R3, R4 ;", 100)]


@pytest.fixture(scope="module")
def gpu_daemon(start):
    """A daemon whose database has the runs of a GPU. Other tests must not see these runs, so it is not the shared daemon."""
    own = start()
    yield own
    own.stop()


@pytest.fixture(scope="module")
def rows(gpu_daemon):
    return Rows(gpu_daemon)


def kernel(launch, us, **columns):
    return {"launch": launch, "name": f"{launch}_kernel", "total_us": us, "launches": 938, **columns}


def insert_training_run(rows, job, variant, epoch_ms, traced, counted):
    """Inserts a training run with its three passes. traced: kernels of the activity pass. counted: (launch, metrics, further
    columns) of each kernel of the counters pass."""
    run = rows.run([{**kernel(name, 1.0), "metrics": metrics, **more} for name, metrics, more in counted], workload="mnist_cnn",
                   variant=variant, job=job, params={"precision": variant}, measurements=MEMORY, trace=(traced, []))
    passes = dict(rows.db.execute("SELECT name, id FROM passes WHERE run_id = ?", [run]))
    for name, value in BUSY.items():
        rows.insert("measurements", pass_id=passes["activity"], name=name, value=value)
    for epoch in range(3):
        rows.insert("epochs", pass_id=passes["timing"], epoch=epoch, warmup=epoch == 0, device_ms=epoch_ms, images=60000,
                    skipped_steps=10 - epoch if variant == "fp16" else None, throttle_reasons="",
                    unavailable=json.dumps({} if variant == "fp16" else {"skipped_steps": "no loss scaling"}))
    rows.db.execute("UPDATE runs SET steps_per_epoch = 938 WHERE id = ?", [run])
    rows.summarize(run)
    return run


@pytest.fixture(scope="module")
def job(rows):
    """Inserts a job. fp32 takes 40 ms, of which conv2 takes 30 by FMAs; fp16 takes 20 ms in one launch with phases."""
    job = rows.job(kind="train")
    fp32 = insert_training_run(rows, job, "fp32", 40.0, [kernel("conv2_forward", 30000.0), kernel("adam", 9000.0)],
                               [("conv2_forward", ARITHMETIC, {}), ("adam", VERDICT, {})])
    instructions = [{"offset": 16 * i, "opcode": opcode, "sass": sass, "counts": json.dumps({"inst_executed": count})}
                    for i, (opcode, sass, count) in enumerate(INSTRUCTIONS)]
    shares = (("conv2_forward", 0.25), ("rows_barrier", 0.25), ("adam", 0.5))
    phases = [{"name": name, "steps": 32, "blocks": 128, "share_ratio": share} for name, share in shares]
    traced = kernel("persistent_epoch", 39000.0, name="recording_kernel", phases=phases)
    fp16 = insert_training_run(rows, job, "fp16", 20.0, [traced],
                               [("persistent_epoch", VERDICT, {"instructions": instructions})])
    return {"job": job, "fp32": fp32, "fp16": fp16}


def sentences(daemon, job):
    explanation = daemon.get(f"/jobs/{job}/comparison").json()["items"][0]["explanation"]
    for sentence in explanation:
        assert (sentence["text"] is None) == (sentence["reason"] is not None), sentence
        for value in sentence["values"]:
            assert (value["value"] is None) == (value["reason"] is not None), value
    return {(sentence["topic"], sentence["run"]): sentence for sentence in explanation}


def values(sentence):
    return {value["name"]: value["value"] for value in sentence["values"]}


def test_an_epoch_by_verdicts_and_phases(gpu_daemon, job):
    sentence_of = sentences(gpu_daemon, job["job"])
    fp32, fp16 = sentence_of["epoch", job["fp32"]], sentence_of["epoch", job["fp16"]]
    assert values(fp32) == {"arithmetic": 30, "memory": 0, "latency": 9, "too_small": 0, "exchange": None,
                            "launch": pytest.approx(1), "copy": 0, "unknown": 0}
    assert fp32["links"][0] == {"run": job["fp32"], "launch": "conv2_forward", "phase": None, "kernel": 0, "bound": "pipeline",
                                "note": None, "time_ms": 30}
    assert values(fp16)["exchange"] == 9.75 and values(fp16)["latency"] == 29.25 and values(fp16)["arithmetic"] == 0
    assert fp16["links"][0]["launch"] == "persistent_epoch" and fp16["links"][0]["phase"] == "adam"
    assert fp16["links"][0]["kernel"] == 0 and fp16["links"][0]["bound"] == "latency"


def test_the_speedup_and_its_limit_are_explained(gpu_daemon, job):
    sentence_of = sentences(gpu_daemon, job["job"])
    speedup, limit = sentence_of["speedup", None], sentence_of["limit", None]
    assert speedup["text"].startswith("fp16 is 2.00× as fast as fp32 (40.00 ms → 20.00 ms an epoch). Largest differences: "
                                      "conv2_forward 30.00 ms → 9.75 ms (3.08×)")
    assert values(speedup) == {"speedup": 2, "saved": 20}
    assert values(limit)["little_gain"] == pytest.approx(19.5 + 9.75 + 1)
    assert [link["phase"] for link in limit["links"]] == ["adam", "rows_barrier"]


def test_memory_and_conversions_of_fp16_are_explained(gpu_daemon, job):
    sentence_of = sentences(gpu_daemon, job["job"])
    assert values(sentence_of["conversions", job["fp16"]]) == {"conversions": 0.2}
    assert sentence_of["scaling", job["fp16"]]["text"] == "Loss scaling skipped 17 of 1876 steps of the measured epochs."
    assert sentence_of["weights", job["fp16"]]["text"].startswith("FP32 master weights stay beside the FP16 copies")
    assert sentence_of["arithmetic", None]["reason"].startswith("fp32: no ceilings of this device")


@pytest.mark.parametrize("traced, counted, bounds, note", [
    ([8, 4], [4, 8], {8: "latency", 4: "pipeline"}, None),  # streams changed the order of execution
    ([8, 4], [4], {8: "unknown", 4: "pipeline"}, "the counters pass measured the kernel only with another grid, block or shared"),
    ([8], [8, 4], {8: "unknown"}, "the counters pass measured the kernel also with a grid, block or shared"),
    ([8, 4], [8, 4, 2], {8: "unknown"}, "the counters pass measured the kernel also with a grid, block or shared"),
    ([8], [8, 8], {8: "latency"}, "counters of the first of 2 executions with equal grid, block and shared memory"),
    ([8], [8], {8: "latency"}, None),
], ids=["both counted", "one counted", "one sum", "one more counted", "equal grids", "one execution"])
def test_executions_of_one_kernel_have_their_own_verdicts(gpu_daemon, rows, traced, counted, bounds, note):
    """conv2_backward runs one kernel up to twice in a step. Each execution shows its own verdict, or why it has none."""
    job = rows.job(kind="train")
    time_of = {grid: 10000.0 + grid for grid in (8, 4)}
    metrics_of = {8: VERDICT, 4: ARITHMETIC, 2: VERDICT}
    for variant, epoch_ms in (("fp32", 40.0), ("fp16", 20.0)):
        insert_training_run(rows, job, variant, epoch_ms,
                            [kernel("conv2_backward", time_of[grid], grid_x=grid) for grid in traced],
                            [("conv2_backward", metrics_of[grid], {"grid_x": grid}) for grid in counted])
    epoch = next(sentence for (topic, _), sentence in sentences(gpu_daemon, job).items() if topic == "epoch")
    found = {round(1000 * link["time_ms"]) - 10000: link for link in epoch["links"]}
    assert {grid: link["bound"] for grid, link in found.items()} == bounds
    assert {grid: link["kernel"] for grid, link in found.items()} == {
        grid: None if bound == "unknown" else counted.index(grid) for grid, bound in bounds.items()}
    assert (found[8]["note"] or "").startswith(note or "") and (found[8]["note"] is None) == (note is None)
    assert ("No verdict: " in epoch["text"]) == ("unknown" in bounds.values())


def test_two_runs_of_any_jobs_are_explained(gpu_daemon, job):
    comparison = gpu_daemon.get(f"/compare?a={job['fp16']}&b={job['fp32']}").json()["comparison"]
    sentence_of = {sentence["topic"]: sentence for sentence in comparison["explanation"]}
    assert sentence_of["speedup"]["text"].startswith("fp32 takes 2.00× the time of fp16") and "weights" not in sentence_of
    assert sentence_of["limit"]["reason"] == "the epoch is not faster"


def test_runs_that_train_nothing_are_not_explained(gpu_daemon, rows):
    first, second = rows.run([]), rows.run([], variant="vector")
    comparison = gpu_daemon.get(f"/compare?a={first}&b={second}").json()["comparison"]
    assert comparison["explanation"] is None
    assert comparison["unavailable"]["explanation"] == "only runs of training jobs are explained"


def test_a_job_of_the_cpu_is_explained(daemon, finished):
    sentence_of = {topic: sentence for (topic, _), sentence in sentences(daemon, finished).items()}
    assert "without a verdict" in sentence_of["epoch"]["text"] and "No verdict: " in sentence_of["epoch"]["text"]
    assert values(sentence_of["epoch"])["arithmetic"] is None and values(sentence_of["epoch"])["unknown"] > 0
    assert values(sentence_of["speedup"])["speedup"] > 0 and "Memory of fp16 beside fp32: " in sentence_of["memory"]["text"]
    assert sentence_of["conversions"]["reason"].startswith("fp16: ")
