"""Inserts source jobs into the database of a running daemon: one that did not compile, one with counters for each instruction,
and one of a posted binary. posted_runs.py STATE_FOLDER prints their ids as JSON."""

import json
import pathlib
import sys
import types

from report_fixture import Rows

CODE = """extern "C" __global__ void add(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] += <b>1</b>;
}
"""
LOG = """code.cu(4): error: expected an expression
      x[i] += <b>1</b>;
              ^

code.cu(2): warning #177-D: variable "i" was declared but never referenced

1 error detected in the compilation of "code.cu".
"""
HEADER = "/usr/local/cuda/include/cuda_fp16.hpp"


def instruction(index, sass, location, executed, samples):
    file, line = location
    counts = {"inst_executed": executed, "smsp__pcsamp_sample_count": samples,
              "smsp__pcsamp_warps_issue_stalled_long_scoreboard": samples,
              "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued": samples - 1,
              "smsp__pcsamp_warps_issue_stalled_wait": 5 if samples == 90 else 0}
    return {"offset": 16 * index, "opcode": sass.split()[0].split(".")[0], "sass": sass, "file": file, "line": line,
            "counts": json.dumps(counts)}


INSTRUCTIONS = [instruction(*row) for row in (
    (0, "S2R R0, SR_CTAID.X ;", ("code.cu", 2), 64, 3), (1, "IMAD R0, R0, c[0x0][0x0], R3 ;", ("code.cu", 2), 64, 4),
    (2, "LDG.E R5, desc[UR4][R2.64] ;", ("code.cu", 4), 64, 90), (3, "FADD R5, R5, 1 ;", (HEADER, 4), 64, 10),
    (4, "STG.E desc[UR4][R2.64], R5 ;", ("code.cu", 4), 32, 5), (5, "EXIT ;", (None, None), 64, 0))]


def insert_posted_job(rows, sha, text, labels={}, **columns):
    launch = {"entry": "add", "grid": [4, 1, 1], "block": [64, 1, 1]}
    rows.insert("sources", sha256=sha, text=json.dumps({**launch, "dynamic_shared_bytes": 0, **text}))
    return rows.job(kind="source", source=sha, request=json.dumps({**launch, **labels}), **columns)


def long_kernel(count=10000):
    """Instructions of a kernel whose table has more rows than the page keeps in its document. One of them is a BAR."""
    sass = [f"FADD R{i % 255}, R5, {i} ;" for i in range(count)]
    sass[count // 2] = "BAR.SYNC 0x0 ;"
    return [instruction(i, text, ("code.cu", 2 + i % 3), 64, 1 + i % 90) for i, text in enumerate(sass)]


def insert(state):
    """Returns {"failed", "job", "binary": ids of the three jobs, "run": id of the run of "job", "long_run": id of a further job's
    run, whose kernel has 10,000 instructions}."""
    rows = Rows(types.SimpleNamespace(state=pathlib.Path(state)))
    failed = insert_posted_job(rows, "1" * 64, {"code": CODE}, state="failed", problem_domain="input", problem_code=0,
                               problem_message="code.cu(4): error: expected an expression (at /code)")
    for ordinal, variant in enumerate(("default", "fast_math")):
        rows.insert("runs", job_id=failed, ordinal=ordinal, workload="source", variant=variant, params="{}",
                    nondefault_params="{}", log=LOG)
    job = insert_posted_job(rows, "2" * 64, {"code": CODE}, {"name": "adds.cu", "tags": ["night"]})
    kernel = {"launch": "add", "name": "add", "instructions": INSTRUCTIONS}
    run = rows.run([kernel], workload="source", variant="default", job=job, samples={"cold": [22.0, 22.5, 23.0]})
    binary = insert_posted_job(rows, "3" * 64, {"binary": "AAAA"})
    rows.run([kernel], workload="source", variant="default", job=binary)
    long_job = insert_posted_job(rows, "4" * 64, {"code": CODE})
    long_run = rows.run([{**kernel, "instructions": long_kernel()}], workload="source", variant="default", job=long_job)
    return {"failed": failed, "job": job, "binary": binary, "run": run, "long_run": long_run}


if __name__ == "__main__":
    print(json.dumps(insert(sys.argv[1])))
