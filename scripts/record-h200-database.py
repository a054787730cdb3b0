#!/usr/bin/env python3
"""scripts/record-h200-database.py OUT.sqlite.xz [DEVICE BUILD]: records a database with the numbers of a GPU, from which
tests/web/gpu_pages.test.mjs and scripts/screenshots.sh show the page (tests/data/h200.sqlite.xz). Runs jobs of every kind and
suites on a device, which takes about 2.5 minutes on an H200 with the build that scripts/gpu-pack.sh packed.
"""
import lzma
import pathlib
import sqlite3
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "lib"))
from measure.daemon import Daemon, Failed  # noqa: E402
from measure.host import Host  # noqa: E402
from measure.steps.suites import run_suite, shipped_definition  # noqa: E402

ALL_PASSES = ["timing", "activity", "counters"]

TRANSPOSE = r"""// Transposes a matrix of n x n floats in tiles of 32 x 32 through shared memory.
#ifndef PAD
#define PAD 0 // columns added to a row of the tile; 1 avoids bank conflicts
#endif

extern "C" __global__ void transpose(const float *x, float *y, int n) {
  __shared__ float tile[32][32 + PAD];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    tile[threadIdx.y + i][threadIdx.x] = x[(size_t)(row + i) * n + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    y[(size_t)(row + i) * n + column] = tile[threadIdx.x][threadIdx.y + i];
}
"""
N = 8192  # rows and columns of the transposed matrix


def source_job(code, entry, grid, block, arguments, **fields):
    return {"kind": "source", "code": code, "entry": entry, "grid": grid, "block": block, "arguments": arguments, **fields}


def buffer(dtype, count, init):
    return {"buffer": {"dtype": dtype, "count": count, "init": init}}


def transpose_job(**fields):
    return source_job(TRANSPOSE, "transpose", [N // 32, N // 32], [32, 8],
                      [buffer("fp32", N * N, "uniform"), buffer("fp32", N * N, "zeros"),
                       {"scalar": {"dtype": "int32", "value": N}}],
                      model={"bytes": 8 * N * N, "operations": 0}, **fields)


HISTOGRAM = r"""extern "C" __global__ void histogram(const int *values, unsigned *bins, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[values[i] & 15], 1u);
}
"""
CHASE = r"""extern "C" __global__ void chase(const int *next, int *out, int steps) {
  unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < steps; i++) at = (next[at] * 1103515245u + 12345u) & 0xffffff; // each load needs the one before
  out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}
"""

SEQUENCE = [
    {"kernel": "layernorm", "dtype": "bf16", "shape": {"rows": 4096, "columns": 4096}, "variant": "vector"},
    {"kernel": "gemm", "dtype": "bf16", "shape": {"m": 4096, "n": 4096, "k": 4096}, "variant": "heuristic"},
    {"kernel": "rope", "dtype": "bf16", "shape": {"tokens": 4096, "heads": 32, "head_size": 128}, "variant": "vector"},
    {"kernel": "attention", "dtype": "bf16", "variant": "heuristic",
     "shape": {"batch": 1, "heads": 16, "kv_heads": 16, "sequence": 2048, "head_size": 128, "causal": True}},
    {"kernel": "residual_add", "dtype": "bf16", "shape": {"n": 16777216}, "variant": "vector"},
    {"kernel": "bias_gelu", "dtype": "fp32", "shape": {"rows": 4096, "columns": 4096}, "variant": "scalar"},
    {"kernel": "softmax", "dtype": "fp32", "shape": {"rows": 8192, "columns": 4096}, "variant": "vector"},
    {"kernel": "transpose", "dtype": "fp32", "shape": {"rows": 4096, "columns": 4096}, "variant": "naive"},
    {"kernel": "reduction", "dtype": "fp32", "shape": {"rows": 64, "columns": 1048576}, "variant": "scalar"},
    {"kernel": "relu", "dtype": "fp16", "shape": {"n": 65536}, "variant": "scalar"},
]

JOBS = [
    {"kind": "ceilings", "name": "Ceilings after the driver update"},
    {"kind": "train", "precisions": ["fp32", "fp16"], "epochs": 5, "passes": ALL_PASSES, "set": "full", "name": "MNIST, main job",
     "tags": ["mnist", "nightly"]},
    {"kind": "kernel", "kernels": SEQUENCE, "passes": ALL_PASSES, "set": "full", "name": "Ten kernels of our model",
     "tags": ["model"]},
    transpose_job(variants=[{"name": "conflicts"}, {"name": "padded", "defines": ["PAD=1"]}], options=["-lineinfo"], set="full",
                  passes=ALL_PASSES, name="transpose.cu: padding of the tile", tags=["transpose"]),
    {"kind": "train", "precisions": ["fp32", "tf32", "fp16"], "epochs": 3, "engine": "cudnn", "passes": ALL_PASSES,
     "set": "basic", "name": "MNIST with cuDNN, one launch a layer", "tags": ["mnist", "cudnn"]},
    {"kind": "layer", "tokens": 2048, "passes": ["timing", "activity"], "samples": 5, "name": "Layer, prefill of 2048 tokens",
     "tags": ["layer", "prefill"]},
    {"kind": "layer", "tokens": 1, "cached_tokens": 2047, "samples": 5, "variants": ["baseline", "best"],
     "passes": ALL_PASSES, "set": "detailed", "name": "Layer, decode", "tags": ["layer", "decode"]},
    {"kind": "kernel", "kernel": "softmax", "dtype": "bf16", "shape": {"rows": 8192, "columns": 4096}, "set": "full",
     "name": "softmax bf16", "tags": ["softmax"]},
    {"kind": "kernel", "kernel": "gemm", "dtype": "fp16", "shape": {"m": 2048, "n": 4096, "k": 4096}, "set": "full",
     "variant": "searched"},
    source_job(HISTOGRAM, "histogram", [1056], [256], [buffer("int32", 1 << 24, "range"), buffer("int32", 16, "zeros"),
                                                       {"scalar": {"dtype": "int32", "value": 1 << 24}}],
               set="full", name="histogram.cu", tags=["atomics"]),
    source_job(CHASE, "chase", [528], [128], [buffer("int32", 1 << 24, "range"), buffer("int32", 528 * 128, "zeros"),
                                              {"scalar": {"dtype": "int32", "value": 512}}], set="full", name="chase.cu"),
    source_job(TRANSPOSE.replace("__syncthreads()", "__sync_threads()"), "transpose", [1], [32],  # does not compile
               [buffer("fp32", 1024, "uniform")], name="transpose.cu, second try"),
    {"kind": "kernel", "kernel": "relu", "dtype": "fp16", "shape": {"n": 4194304}, "set": "detailed"},
]


def transpose_suite(pad):
    """Returns the suite with this many columns of padding; 0 makes the kernel slower by bank conflicts."""
    request = {**transpose_job(samples=10), "code": TRANSPOSE.replace("#define PAD 0 //", f"#define PAD {pad} //")}
    return {"name": "transpose", "summary": "The transposition of our model", "blocks": 6, "time_budget_s": 60,
            "jobs": [{"name": "tile", "request": request}],
            "metrics": [{"job": "tile", "metric": "time_cold_us_median", "threshold_ratio": 0.02}]}


MNIST = ("mnist", {**shipped_definition("mnist"), "blocks": 7})
SUITES = [("transpose", transpose_suite(1)), MNIST, ("transpose", transpose_suite(1)), MNIST, ("transpose", transpose_suite(0))]


def run(label, action):
    """Runs one job or suite, and prints its duration and outcome. Continues after a failure, because one job is meant to fail."""
    begin = time.monotonic()
    try:
        action()
        outcome = "completed"
    except Failed as failure:
        outcome = f"failed: {str(failure)[:300]}"
    print(f"{time.monotonic() - begin:6.1f} s  {label}: {outcome}", flush=True)


def write_database(state, out):
    """Writes the daemon's database without its tokens and without the jobs of suites, which fill the list of jobs."""
    with tempfile.TemporaryDirectory() as folder:
        copy = f"{folder}/copy.sqlite"
        connection = sqlite3.connect(f"{state}/rooflined.db")
        connection.execute("VACUUM INTO ?", (copy,))
        connection.close()
        connection = sqlite3.connect(copy, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM tokens")
        connection.execute("DELETE FROM jobs WHERE id IN (SELECT job_id FROM suite_jobs)")
        connection.execute("DELETE FROM sources WHERE sha256 NOT IN (SELECT source FROM jobs WHERE source IS NOT NULL)")
        connection.execute("VACUUM")
        connection.close()
        out.write_bytes(lzma.compress(pathlib.Path(copy).read_bytes(), preset=9 | lzma.PRESET_EXTREME))


def main(out, device="gpu0", build=".gpu"):
    host = Host(device, build)
    with Daemon(host, pathlib.Path(out).with_suffix(".log"), "--allow-source", "--source-buffer-bytes", str(1 << 30),
                token=True) as daemon:
        for body in JOBS:
            run(body.get("name", body["kind"]), lambda body=body: daemon.run_job(body, timeout_s=60))
        for name, definition in SUITES:
            run(f"suite {name}", lambda name=name, definition=definition: run_suite(daemon, host, name, definition))
        write_database(daemon.state, pathlib.Path(out))


main(*sys.argv[1:])
