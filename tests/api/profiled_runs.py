"""Inserts two profiled runs for the tests of clients into the database of a running daemon. profiled_runs.py STATE_FOLDER
prints their ids as JSON."""

import json
import math
import pathlib
import sys
import types

from report_fixture import Rows, ncu_raw

LIBRARY = "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT"
HOSTILE = 'void scale<Op<"a&b">, <img src=x onerror=console.error(1)>>(float *, const float *)'


def stalls(**counts):
    return {f"smsp__pcsamp_warps_issue_stalled_{reason}": count for reason, count in counts.items()}


INSTRUCTIONS = [
    {"offset": 0, "opcode": "LDG", "sass": "LDG.E.128 R4, desc[UR4][R2.64] ;", "file": "relu.cu", "line": 12,
     "counts": json.dumps({"inst_executed": 131072,
                           **stalls(wait=3, long_scoreboard=36, lg_throttle=1, lg_throttle_not_issued=1)})},
    {"offset": 16, "opcode": "HMNMX2", "sass": "HMNMX2 R4, R4, RZ, !PT ;", "file": "relu.cu", "line": 13,
     "counts": json.dumps({"inst_executed": 131072})},
    {"offset": 32, "opcode": "EXIT", "sass": "EXIT ;", "counts": "{}"},
]


SPILLS = {"smsp__sass_inst_executed_op_local_ld.sum": 4e5, "smsp__sass_inst_executed_op_local_st.sum": 1e5,
          "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": 4e6}


def spilling(offset, opcode, line, executed):
    return {"offset": offset, "opcode": opcode, "sass": f"{opcode} R1 ;", "file": "spill.cu", "line": line,
            "counts": json.dumps({"inst_executed": executed, **stalls(wait=executed // 50)})}


def metrics(kernel):
    return {name: "ncu printed no number" if value is None else value for name, value in ncu_raw(kernel).items()}


def series():
    load = [("sm_active_pct", 2000.0 * i, None if i == 7 else 50 + 40 * math.sin(i / 3)) for i in range(24)]
    return load + [("occupancy_by_registers", float(n), max(8.0, 64.0 - 8 * (n // 40))) for n in range(16, 256, 8)]


def insert(state):
    """Returns {"a", "b": run ids, "hostile": name of a's second kernel, which has HTML in it; "library": id of a run with
    a kernel of cuBLAS; "spills": id of a run whose kernel spills registers at two lines}. Runs a and b have a kernel relu,
    with different code."""
    rows = Rows(types.SimpleNamespace(state=pathlib.Path(state)))
    rates = {"dram_read_bytes_per_s": 4.2e12, "l2_read_bytes_per_s": 9e12, "fp32_operations_per_s": 6e13}
    rows.run([], workload="ceilings", measurements=rates)
    relu = {"metrics": {**metrics("relu"), "smsp__pcsamp_dropped_samples": 1250}, "series": series(),
            "instructions": INSTRUCTIONS, "code_sha256": "a" * 64}
    stride = {"metrics": metrics("stride"), "code_sha256": "b" * 64}
    a = rows.run([relu, {**stride, "name": HOSTILE, "launch": "scale"}])
    b = rows.run([stride], variant="vector")
    library = rows.run([{**stride, "name": LIBRARY, "launch": None}], workload="gemm")
    instructions = [spilling(0, "STL.64", 7, 100), spilling(16, "LDL", 9, 150), spilling(32, "LDL.LU", 7, 200),
                    spilling(48, "LDG.E", 11, 900)]
    spills = rows.run([{"metrics": {**metrics("relu"), **SPILLS}, "instructions": instructions}])
    return {"a": a, "b": b, "hostile": HOSTILE, "library": library, "spills": spills}


if __name__ == "__main__":
    print(json.dumps(insert(sys.argv[1])))
