"""Inserts a run into the database of a running daemon. The run has nested NVTX ranges, and the host launches its second kernel
late. ranged_run.py STATE_FOLDER prints the ids of the run and of its job as JSON."""

import json
import pathlib
import sys
import types

from report_fixture import Rows

SHAPE = {f"{side}_{axis}": 1 for side in ("grid", "block") for axis in "xyz"}


def rows(kernel_us):
    calls = [{"kind": "runtime", "name": "cudaLaunchKernel_v7000", "start_ns": start, "end_ns": start + 2_000,
              "correlation": number} for number, start in ((1, 0), (2, 60_000))]
    kernels = [{"kind": "kernel", "name": "gemm", "start_ns": start, "end_ns": start + kernel_us * 1000, "stream": 7,
                "correlation": number, **SHAPE} for number, start in ((1, 5_000), (2, 65_000))]
    return [*calls, *kernels, {"kind": "range", "name": "epoch", "start_ns": 0, "end_ns": 90_000},
            {"kind": "range", "name": "forward", "start_ns": 50_000, "end_ns": 80_000}]


def insert(state, kernel_us=30, kernels=()):
    """kernels: the rows of the activity pass's kernels."""
    fixture = Rows(types.SimpleNamespace(state=pathlib.Path(state)))
    run = fixture.run([{}], trace=(kernels, rows(kernel_us)))
    job = fixture.job_of(run)
    fixture.db.close()
    return {"run": run, "job": job}


if __name__ == "__main__":
    print(json.dumps(insert(sys.argv[1])))
