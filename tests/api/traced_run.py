"""Inserts a traced run into the database of a running daemon. The run's epoch is one launch with phase timestamps. traced_run.py
STATE_FOLDER prints the ids of the run and of its job as JSON."""

import json
import pathlib
import sys
import types

from report_fixture import Rows

STEPS, BLOCKS, ROUNDS, EPOCH_NS, FIRST_NS = 4, 128, 2, 400_000, 12_000
PHASES = (("conv1_forward", "forward", 3_000), ("conv2_forward", "forward", 2_500), ("head", "forward", 900),
          ("conv2_input_gradient", "backward", 6_000), ("conv1_backward", "backward", 1_400), ("adam", "optimizer", 1_600),
          ("update_barrier", "optimizer", 1_200))
STEP_NS = sum(ns for *_, ns in PHASES)
SHUFFLE, EPOCH = "shuffle(unsigned int *)", "void persistent_epoch<recording<half_tile_format>>(rl_persistent_args)"
LAUNCH = {"stream": 7, "correlation": 41}


def kernel(launch, phase, name, us, share, **extra):
    return {"launch": launch, "phase": phase, "name": name, "total_us": us, "min_us": us, "median_us": us, "max_us": us,
            "share_ratio": share, **extra}


def kernels():
    phases = [{"name": name, "phase": phase, "steps": STEPS, "blocks": BLOCKS, "mean_us": ns / 1e3, "min_us": ns / 2e3,
               "max_us": ns / 5e2, "share_ratio": ns / STEP_NS} for name, phase, ns in PHASES]
    return [kernel("shuffle", "data", SHUFFLE, 2.0, 0.005),
            kernel("persistent_epoch", "kernel", EPOCH, EPOCH_NS / 1e3, 0.99, phases=phases)]


def shape(blocks, threads):
    return {"grid_x": blocks, "grid_y": 1, "grid_z": 1, "block_x": threads, "block_y": 1, "block_z": 1}


def rows():
    """Returns the activities: a call, a kernel and a memset before the launch, the launch, and the phases of each step."""
    activities = [{"kind": "runtime", "name": "cudaGraphLaunch", "start_ns": 500, "end_ns": 4_000, "correlation": 41},
                  {"kind": "kernel", "name": SHUFFLE, "start_ns": 6_000, "end_ns": 8_000, "stream": 7, **shape(1, 1024)},
                  {"kind": "memset", "name": "memset", "start_ns": 8_500, "end_ns": 9_000, "bytes": 64, **LAUNCH},
                  {"kind": "kernel", "name": EPOCH, "start_ns": 10_000, "end_ns": 10_000 + EPOCH_NS, **LAUNCH,
                   **shape(BLOCKS, 384)}]
    start = FIRST_NS
    for step in range(STEPS):
        for name, _, ns in PHASES:
            activities.append({"kind": "phase", "name": name, "start_ns": start, "end_ns": start + ns, "step": step + 1,
                               **LAUNCH})
            start += ns
    return activities


def insert(state):
    fixture = Rows(types.SimpleNamespace(state=pathlib.Path(state)))
    run = fixture.run([], workload="mnist_cnn", variant="fp16", trace=(kernels(), rows()))
    job, activity = fixture.db.execute("SELECT job_id, id FROM passes WHERE run_id = ? AND name = 'activity'", [run]).fetchone()
    for name, value in (("phase_clock_error_us", 1.25), ("phase_rounds", ROUNDS)):
        fixture.insert("measurements", pass_id=activity, name=name, value=value)
    fixture.summarize(run)
    return {"run": run, "job": job}


if __name__ == "__main__":
    print(json.dumps(insert(sys.argv[1])))
