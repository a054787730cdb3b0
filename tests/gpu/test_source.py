"""Posted kernels on a GPU, over HTTP: results, variants, binaries, and that a kernel's faults affect only its own job."""

import base64
import json
import os
import pathlib
import select
import struct
import subprocess
import time
import urllib.error
import urllib.request

import pytest

BUILD = pathlib.Path(os.environ.get("ROOFLINED_BUILD") or ".gpu")
CUTLASS = os.environ.get("ROOFLINED_TEST_CUTLASS")
FINAL = ("completed", "failed", "cancelled")
ADD = """extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
"""
N = 100_003


def pack_base64(form, values):
    return base64.b64encode(struct.pack(f"<{len(values)}{form}", *values)).decode()


def buffer(dtype="fp32", count=N, **extra):
    return {"buffer": {"dtype": dtype, "count": count, **extra}}


def scalar(dtype, value):
    return {"scalar": {"dtype": dtype, "value": value}}


def add_job(**changes):
    return {"kind": "source", "code": ADD, "entry": "add", "grid": [(N + 255) // 256], "block": [256], "samples": 5,
            "deadline_s": 60, "arguments": [buffer(init="range"), buffer(init="ones"), buffer(), scalar("int32", N)],
            "model": {"bytes": 12 * N}, **changes}


def one_block_job(code, arguments, **changes):
    return add_job(code=code, entry="k", grid=[1], block=[32], arguments=arguments, model=None, **changes)


class Daemon:
    def __init__(self, folder):
        state = folder / "state"
        created = subprocess.run([BUILD / "bin" / "rooflinectl", "token", "--state", state], capture_output=True, text=True,
                              check=True)
        self.token = created.stdout.split()[-1]
        self.log = folder / "log"
        command = [BUILD / "bin" / "rooflined", "--port", "0", "--state", state, "--allow-source", "--source-buffer-bytes",
                   str(1 << 42), *(["--source-includes", CUTLASS] if CUTLASS else [])]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(self.log, "wb"))
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        line = self.process.stdout.readline().decode() if ready else ""
        assert line.startswith("listening on "), self.log.read_text()
        self.url = line.split()[-1]

    def call(self, method, path, body=None):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode() if body else None, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def finish(self, body, seconds=90):
        status, response = self.call("POST", "/jobs", {key: value for key, value in body.items() if value is not None})
        assert status == 202, response
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            job = self.call("GET", f"/jobs/{response['id']}")[1]
            if job["state"] in FINAL:
                return job
            time.sleep(0.02)
        raise AssertionError(f"job {response['id']} did not finish: {job}")

    def run(self, body):
        """Returns the runs of a job that must complete, each with its timing measurements by name as `values`."""
        job = self.finish(body)
        assert job["state"] == "completed", job
        runs = self.call("GET", f"/jobs/{job['id']}/results")[1]["runs"]
        for run, state in zip(runs, job["runs"]):
            run["values"] = {m["name"]: m["value"] for m in run["measurements"] if m["pass"] == "timing"}
            run["job"] = job["id"]
            run["log"], run["passes"] = state["log"], {p["pass"]: p["state"] for p in state["passes"]}
        return runs

    def expect_failure(self, body, *words):
        """Runs a job that must fail without a worker's death, with these words in its message."""
        job = self.finish(body)
        assert (job["state"], job["worker_deaths"]) == ("failed", 0), job
        for word in words:
            assert word in job["problem"]["message"], job["problem"]
        return job

    def devices(self):
        return {device["id"]: device for device in self.call("GET", "/devices")[1]["items"]}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    started = Daemon(tmp_path_factory.mktemp("daemon"))
    if started.devices().get("gpu0", {}).get("state") not in ("idle", "busy", "starting"):
        started.process.terminate()
        pytest.skip("no GPU")
    yield started
    started.process.terminate()
    started.process.wait(15)


def run_add(daemon, **changes):
    expected = {"argument": 2, "values": pack_base64("f", [i + 1 for i in range(N)]), "tolerance": 0}
    (run,) = daemon.run(add_job(expected=expected, **changes))
    assert run["values"]["relative_error"] == 0
    return run


def test_sum_of_vectors(daemon):
    first, second = run_add(daemon), run_add(daemon, samples=6)
    values = first["values"]
    assert first["engine"] == "nvrtc" and len(first["samples"]) == 10
    assert values["registers_per_thread"] > 0 and values["spill_store_bytes"] == 0 and values["compile_ms"] > 0
    assert values["achieved_bytes_per_s"] == pytest.approx(12 * N / values["time_cold_us_median"] * 1e6)
    assert (values["compile_cached"], second["values"]["compile_cached"]) == (0, 1)
    assert second["values"]["compile_ms"] < values["compile_ms"]
    assert "Used" in first["log"]


def test_a_wrong_result_fails(daemon):
    wrong_values = pack_base64("f", [i + 2 for i in range(N)])
    daemon.expect_failure(add_job(expected={"argument": 2, "values": wrong_values}), "result is wrong")


def test_variants(daemon):
    code = """extern "C" __global__ void k(float *x) {
  float v[COUNT];
#pragma unroll
  for (int i = 0; i < COUNT; i++) v[i] = sinf(x[i * 7 + threadIdx.x]) / (SCALE + i);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < COUNT; i++) x[i * 5 + threadIdx.x] = v[COUNT - 1 - i] * v[i];
}"""
    options = ["-DSCALE=1", "-lineinfo", "-DCOUNT=(64/LESS)"]
    runs = daemon.run(one_block_job(code, [buffer(count=4096)], options=options, variants=[
        {"defines": ["LESS=1"]}, {"name": "fast", "fast_math": True, "defines": ["LESS=1"]},
        {"name": "few", "max_registers": 32, "defines": ["LESS=1"]},
        {"name": "bounds", "launch_bounds": [1024, 2], "defines": ["LESS=1"]}, {"name": "small", "defines": ["LESS=16"]}]))
    assert [run["variant"] for run in runs] == ["LESS=1", "fast", "few", "bounds", "small"]
    registers = [run["values"]["registers_per_thread"] for run in runs]
    spilled = [run["values"]["spill_store_bytes"] for run in runs]
    assert registers[0] > 32 and registers[2] <= 32 and registers[3] <= 32 and registers[4] < registers[0]
    assert spilled[0] == 0 and spilled[2] > 0 and spilled[3] > 0 and runs[2]["values"]["local_bytes_per_thread"] > 0
    assert len({run["params"]["code_sha256"] for run in runs}) == 1


def test_every_dtype_and_init(daemon):
    """The kernel counts the elements with a wrong value."""
    types = {"fp64": "double", "fp32": "float", "fp16": "__half", "bf16": "__nv_bfloat16", "int8": "signed char",
             "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short", "int32": "int", "uint32": "unsigned",
             "int64": "long long", "uint64": "unsigned long long"}
    includes = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
    for dtype, name in types.items():
        code = includes + f"""template <class T>
__global__ void k(const T *zeros, const T *ones, const T *range, T value, int *wrong) {{
  for (int i = threadIdx.x; i < 100; i += 32)
    if ((double)zeros[i] != 0 || (double)ones[i] != 1 || (double)range[i] != i || (double)value != 77) atomicAdd(wrong, 1);
}}"""
        daemon.run(one_block_job(code, [buffer(dtype, 100), buffer(dtype, 100, init="ones"), buffer(dtype, 100, init="range"),
                                scalar(dtype, 77), buffer("int32", 1)], samples=1,
                         expected={"argument": 4, "values": pack_base64("i", [0])}) | {"entry": f"k<{name}>"})


def test_random_inits(daemon):
    code = """extern "C" __global__ void k(const double *u, const double *n, const double *other, double *moments, int count) {
  double sums[5] = {};
  for (int i = threadIdx.x; i < count; i += 32) {
    sums[0] += u[i], sums[1] += u[i] * u[i], sums[2] += n[i], sums[3] += n[i] * n[i];
    sums[4] += (u[i] < 0 || u[i] >= 1 || u[i] == other[i]);
  }
  for (int s = 0; s < 5; s++) atomicAdd(moments + s, sums[s] / count);
}"""
    count = 1 << 18
    uniform = buffer("fp64", count, init="uniform", seed=int(time.time()))
    expected = {"argument": 3, "values": pack_base64("d", [1 / 2, 1 / 3, 0, 1, 0]), "tolerance": 0.01}
    (run,) = daemon.run(one_block_job(code, [uniform, buffer("fp64", count, init="normal"), uniform, buffer("fp64", 5),
                                     scalar("int32", count)],
                              expected=expected))
    assert run["values"]["relative_error"] > 0


def compile_cubin(code, entry):
    compiled = subprocess.run([BUILD / "bin" / "rooflined-nvrtc", "sm_90a", entry], input=code.encode(), capture_output=True,
                              check=True).stdout
    _, status, symbol, log, image = struct.unpack_from("<4sIIII", compiled)
    assert status == 0
    return compiled[20 + symbol + log:]


def make_fatbin(*entries):
    """Returns a fatbin of (is_ptx, architecture, contents)."""
    body = b""
    for is_ptx, architecture, contents in entries:
        contents += bytes(-len(contents) % 8)
        body += struct.pack("<HHIQIIIIIIQQQ", 1 if is_ptx else 2, 0x101, 64, len(contents), 0, 0, 0, architecture, 0, 0, 0, 0, 0)
        body += contents
    return struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(body)) + body


ADD_SEVEN = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {
  .reg .b64 %p; .reg .f32 %f;
  ld.param.u64 %p, [c]; cvta.to.global.u64 %p, %p; mov.f32 %f, 0f40E00000; st.global.f32 [%p], %f; ret;
}
"""


def test_binaries(daemon):
    cubin = compile_cubin(ADD, "add")
    binary = add_job(binary=base64.b64encode(cubin).decode(), code=None,
                 expected={"argument": 2, "values": pack_base64("f", [i + 1 for i in range(N)])})
    (run,) = daemon.run(binary)
    assert run["values"]["compile_ms"] is None and run["values"]["registers_per_thread"] > 0
    seven = {"code": None, "grid": [1], "block": [1],
             "expected": {"argument": 2, "values": pack_base64("f", [7.0] + [0.0] * (N - 1))}}
    daemon.run(add_job(binary=base64.b64encode(ADD_SEVEN).decode(), **seven))
    wrong = ADD_SEVEN.replace(b"mov.f32", b"muv.f32")
    daemon.expect_failure(add_job(binary=base64.b64encode(wrong).decode(), code=None), "/binary")
    daemon.expect_failure(add_job(binary=base64.b64encode(cubin).decode(), code=None, entry="subtract"), "/entry")
    # The cubin for the device is preferred to PTX, and PTX to a cubin for another device.
    daemon.run({**binary, "binary": base64.b64encode(make_fatbin((True, 80, ADD_SEVEN), (False, 90, cubin))).decode()})
    daemon.run(add_job(binary=base64.b64encode(make_fatbin((False, 80, cubin), (True, 80, ADD_SEVEN))).decode(), **seven))
    other = add_job(binary=base64.b64encode(make_fatbin((False, 80, cubin))).decode(), code=None)
    daemon.expect_failure(other, "neither a cubin nor PTX for sm_90")


# Each computes in its first launch only, unless its variables, of every linkage, are restored.
COUNTED = """static __device__ int launches;
__device__ int total = 5;
namespace { __device__ double hidden; }
extern "C" __global__ void k(float *x) {
  static __device__ int inner;
  if (launches == 0 && total == 5 && hidden == 0 && inner == 0) *x = 7;
  launches++, total++, hidden++, inner++;
}
"""
STATIC_ONLY = "static __device__ int launches = 3; " \
              'extern "C" __global__ void k(float *x) { if (launches == 3) *x = 7; launches++; }'
COUNTED_PTX = b""".version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 launches;
.visible .global .align 4 .u32 total = 5;
.visible .entry k(.param .u64 x) {
  .reg .b64 %p; .reg .f32 %f; .reg .u32 %l, %t; .reg .pred %q;
  ld.param.u64 %p, [x]; cvta.to.global.u64 %p, %p; ld.global.u32 %l, [launches]; ld.global.u32 %t, [total];
  add.u32 %t, %t, %l; setp.eq.u32 %q, %t, 5; mov.f32 %f, 0f40E00000;
  @%q st.global.f32 [%p], %f;
  add.u32 %l, %l, 1; st.global.u32 [launches], %l; st.global.u32 [total], %l; ret;
}
"""


def test_variables_are_restored_before_every_launch(daemon):
    job = {"samples": 20, "expected": {"argument": 0, "values": pack_base64("f", [7.0])}}
    arguments = [buffer(count=1, access="out")]
    for code in (COUNTED, STATIC_ONLY):
        cubin = compile_cubin(code, "k")
        (run,) = daemon.run(one_block_job(code, arguments, **job))
        assert run["values"]["restored_variable_bytes"] >= 4
        for binary in (cubin, make_fatbin((False, 90, cubin))):
            (run,) = daemon.run(one_block_job(None, arguments, binary=base64.b64encode(binary).decode(), **job))
            assert run["values"]["restored_variable_bytes"] >= 4
    for binary in (COUNTED_PTX, make_fatbin((True, 80, COUNTED_PTX))):
        (run,) = daemon.run(one_block_job(None, arguments, binary=base64.b64encode(binary).decode(), **job))
        assert run["values"]["restored_variable_bytes"] == 8


CUTE_LAYOUT = """#include <cute/tensor.hpp>
extern "C" __global__ void k(const float *x, float *y, int n) {
  using namespace cute;
  Tensor in = make_tensor(make_gmem_ptr(x), make_layout(n));
  Tensor out = make_tensor(make_gmem_ptr(y), make_layout(n));
  for (int i = threadIdx.x; i < n; i += blockDim.x) out(i) = 2 * in(i);
}
"""


@pytest.mark.skipif(not CUTLASS, reason="ROOFLINED_TEST_CUTLASS does not name CUTLASS's include folder")
def test_cutlass(daemon):
    (run,) = daemon.run(one_block_job(CUTE_LAYOUT, [buffer(count=64, init="ones", access="in"), buffer(count=64, access="out"),
                                                    scalar("int32", 64)],
                                      expected={"argument": 1, "values": pack_base64("f", [2.0] * 64)}))
    assert run["values"]["relative_error"] == 0


TILE = 32
COPY_TILE = """#include <cuda.h>
#include <cuda/barrier>
#include <cstdint>
namespace tma = cuda::device::experimental;
extern "C" __global__ void k(const __grid_constant__ CUtensorMap map, float *to, int width, float *x) {
  __shared__ alignas(1024) float tile[32][32];
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (threadIdx.x == 0) { init(&ready, blockDim.x); tma::fence_proxy_async_shared_cta(); }
  __syncthreads();
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  if (threadIdx.x == 0) {
    tma::cp_async_bulk_tensor_2d_global_to_shared(&tile, &map, blockIdx.x * 32, blockIdx.y * 32, ready);
    token = cuda::device::barrier_arrive_tx(ready, 1, sizeof tile);
  } else token = ready.arrive();
  ready.wait(std::move(token));
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
    int row = i / 32, chunk = i % 32 / 4 ^ (SWIZZLED ? row % 8 : 0);
    to[(blockIdx.y * 32 + row) * width + blockIdx.x * 32 + i % 32] = tile[row][chunk * 4 + i % 4];
  }
}
"""


@pytest.mark.parametrize("swizzle", ["none", "128"])
def test_a_tensor_map_describes_tiles_of_a_buffer(daemon, swizzle):
    """The kernel copies a matrix of 61 x 100 floats, whose rows are 256 bytes apart, by tiles; elements outside are 0."""
    columns, rows, stride, width, height = 61, 100, 64, 64, 128
    source = [float(i) for i in range(stride * rows)]
    copied = [source[r * stride + c] if r < rows and c < columns else 0.0 for r in range(height) for c in range(width)]
    tensor_map = {"argument": 3, "shape": [columns, rows], "box": [TILE, TILE], "strides_bytes": [4 * stride], "swizzle": swizzle}
    arguments = [{"tensor_map": tensor_map}, buffer(count=width * height, access="out"), scalar("int32", width),
                 buffer(count=stride * rows, init="range", access="in")]
    code = COPY_TILE.replace("SWIZZLED", str(int(swizzle != "none")))
    (run,) = daemon.run({**one_block_job(code, arguments, expected={"argument": 1, "values": pack_base64("f", copied)}),
                         "grid": [width // TILE, height // TILE], "block": [128]})
    assert run["values"]["relative_error"] == 0


CLUSTER_RANK = """#include <cooperative_groups.h>
extern "C" __global__ void DECLARED k(int *x) {
  auto cluster = cooperative_groups::this_cluster();
  __shared__ int rank;
  if (threadIdx.x == 0) rank = cluster.block_rank();
  cluster.sync();
  int other = *cluster.map_shared_rank(&rank, cluster.num_blocks() - 1 - cluster.block_rank());
  cluster.sync();
  if (threadIdx.x == 0) x[blockIdx.x] = 100 * cluster.num_blocks() + other;
}"""


@pytest.mark.parametrize(("declared", "cluster", "size"), [("", [4], 4), ("__cluster_dims__(2)", None, 2),
                                                           ("__cluster_dims__(2)", [2], 2), ("", [16], 16), ("", None, 1)])
def test_clusters(daemon, declared, cluster, size):
    expected = {"argument": 0, "values": pack_base64("i", [100 * size + size - 1 - i % size for i in range(32)])}
    daemon.run({**one_block_job(CLUSTER_RANK.replace("DECLARED", declared), [buffer("int32", 32)], expected=expected,
                                cluster=cluster), "grid": [32]})


def test_clusters_that_are_not_those_of_the_kernel_are_refused(daemon):
    declared = CLUSTER_RANK.replace("DECLARED", "__cluster_dims__(2)")
    job = one_block_job(declared, [buffer("int32", 32)])
    daemon.expect_failure({**job, "grid": [3]}, "/grid/0", "clusters of 2 blocks")
    daemon.expect_failure({**job, "grid": [4], "cluster": [4]}, "/cluster", "2 x 1 x 1")


def test_a_cooperative_grid_synchronizes(daemon):
    code = """#include <cooperative_groups.h>
extern "C" __global__ void k(int *x, int *sums) {
  auto grid = cooperative_groups::this_grid();
  if (threadIdx.x == 0) atomicAdd(x, 1);
  grid.sync();
  if (threadIdx.x == 0) sums[blockIdx.x] = *(volatile int *)x;
}"""
    job = one_block_job(code, [buffer("int32", 1), buffer("int32", 64, access="out")], cooperative=True,
                        expected={"argument": 1, "values": pack_base64("i", [64] * 64)})
    daemon.run({**job, "grid": [64]})
    daemon.expect_failure({**job, "grid": [1 << 20]}, "/grid", "cooperative launch")


def test_arguments_that_are_not_the_parameters_are_refused(daemon):
    code = 'extern "C" __global__ void k(float *x, int n, double d) { x[n] = d; }'
    full = [buffer(count=4), scalar("int32", 1), scalar("fp64", 2)]
    daemon.run(one_block_job(code, full))
    daemon.expect_failure(one_block_job(code, full[:2]), "/arguments", "3 parameters")
    daemon.expect_failure(one_block_job(code, full + [scalar("fp64", 2)]), "/arguments", "3 parameters")
    daemon.expect_failure(one_block_job(code, [full[0], scalar("int64", 1), full[2]]), "/arguments/1", "4 bytes")
    structure = 'struct s { char bytes[4000]; };\nextern "C" __global__ void k(s all, char *x) { *x = all.bytes[3999]; }'
    daemon.expect_failure(one_block_job(structure, [scalar("int8", 1), buffer("int8", 1)]), "/arguments/0", "4000 bytes")


def test_every_pass_sees_the_posted_buffers(daemon):
    """The kernel does its work only on unmodified buffers: a replay on modified ones would count almost no instructions."""
    code = """extern "C" __global__ void k(int *x) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (x[i] != i) return;
  volatile int *element = x + i;
  for (int n = 0; n < 1000; n++) *element = *element + 1;
  *element = -1;
}"""
    body = one_block_job(code, [buffer("int32", 32 * 1024, init="range")],
                     passes=["timing", "activity", "counters"]) | {"grid": [1024]}
    (run,) = daemon.run(body)
    assert run["passes"]["timing"] == "completed" and run["passes"]["activity"] in ("completed", "unavailable"), run["passes"]
    assert run["passes"]["counters"] in ("completed", "unavailable")
    if run["passes"]["counters"] == "completed":
        (kernel,) = daemon.call("GET", f"/jobs/{run['job']}/kernels?pass=counters")[1]["items"]
        counted = {m["metric"]: m["value"] for m in kernel["metrics"]}["smsp__inst_executed.sum"]
        assert 1024 * 2000 < counted < 1024 * 20000, counted


def full_report(daemon, body, arguments):
    """Returns value and reason of each metric of the job's kernel."""
    job = one_block_job('extern "C" __global__ void k(float *x) { %s }' % body, arguments, passes=["counters"], set="full")
    (run,) = daemon.run({**job, "grid": [64]})
    if run["passes"]["counters"] != "completed":
        pytest.skip(f"no counters: {run['passes']}")
    (kernel,) = daemon.call("GET", f"/jobs/{run['job']}/kernels?pass=counters")[1]["items"]
    metrics = {item["metric"]: (item["value"], item.get("reason")) for item in kernel["metrics"]}
    assert len(metrics) == len(kernel["metrics"]), "a metric was stored twice"
    return metrics


def test_a_first_report_counts_the_special_instructions_of_the_code(daemon):
    """The counters of special instructions are collected when the SASS is known, after the others. Each kernel is new to the
    worker. One has atomics and local memory, the other has neither."""
    number = time.time_ns() % 1000000
    plain = full_report(daemon, f"x[blockIdx.x * 32 + threadIdx.x] = {number};", [buffer(count=2048)])
    special = full_report(daemon, f"""float v[64]; v[threadIdx.x] = {number}; v[63 - threadIdx.x] = x[threadIdx.x];
        for (int i = 0; i < 64; i += int(x[0]) + 1) v[i * 7 % 64] += v[int(x[1] + i) % 64];
        atomicAdd(x + 32 + threadIdx.x, v[int(x[2])]);""", [buffer(count=2048)])
    names, other_names = ({name for name in metrics if not name.startswith("sass__")} for metrics in (plain, special))
    assert names == other_names
    atomics = "smsp__inst_executed_op_global_red.sum"
    assert special[atomics][0] == 64 and special["l1tex__t_requests_pipe_lsu_mem_local_op_st.sum"][0] > 0
    assert plain[atomics][0] == 0 and "no atomic instruction" in plain[atomics][1]
    texture = "smsp__inst_executed_op_texture.sum"
    assert special[texture] == plain[texture] == (0, special[texture][1]) and "no texture" in special[texture][1]
    assert 64 * 5 < plain["smsp__inst_executed.sum"][0] < special["smsp__inst_executed.sum"][0]


def test_each_launch_starts_from_the_posted_buffers(daemon):
    """A second launch on the same buffers would increment `next` beyond 32 and scale x beyond 1e35; both trap."""
    code = """extern "C" __global__ void k(float *x, int *next) {
  int slot = atomicAdd(next, 1);
  if (slot >= 32) asm volatile("trap;");
  x[slot] *= 1e30f;
  if (x[slot] > 1e35f) asm volatile("trap;");
}"""
    (run,) = daemon.run(one_block_job(code, [buffer(count=32, init="ones"), buffer("int32", 1)], samples=70,
                              passes=["timing", "activity", "counters"],
                              expected={"argument": 1, "values": pack_base64("i", [32]), "tolerance": 0}))
    assert run["passes"]["timing"] == "completed" and run["values"]["launches_per_step"] == 1
    assert all(state in ("completed", "unavailable") for state in run["passes"].values()), run["passes"]


def test_compile_errors(daemon):
    job = daemon.expect_failure(add_job(code=ADD.replace("c[i] =", "d[i] =")), "/code", "code.cu(3): error", '"d" is undefined')
    assert 'identifier "d" is undefined' in job["runs"][0]["log"]
    run_add(daemon)


def test_exceeded_resources(daemon):
    shared = 'extern "C" __global__ void k(float *x) { extern __shared__ float s[]; s[threadIdx.x] = 1; *x = s[0]; }'
    daemon.run(one_block_job(shared, [buffer(count=1)], dynamic_shared_bytes=200 << 10))
    daemon.expect_failure(one_block_job(shared, [buffer(count=1)], dynamic_shared_bytes=300 << 10), "/dynamic_shared_bytes")
    many = 'extern "C" __global__ __launch_bounds__(64) void k(float *x) { *x = 1; }'
    daemon.expect_failure(one_block_job(many, [buffer(count=1)]) | {"block": [128]}, "/block")
    run_add(daemon)


def test_exhausted_memory(daemon):
    daemon.expect_failure(add_job(arguments=[buffer(count=1 << 39), buffer(), buffer(), scalar("int32", N)]), "allocating")
    run_add(daemon)


@pytest.mark.parametrize("body, word", [
    ("*(volatile int *)(uintptr_t)16 = 1;", "memory access"),
    ("x[(1ll << 40) + threadIdx.x] = 1;", "memory access"),
    ("*(int *)((char *)x + 1) = 1;", "misaligned"),
    ("asm volatile(\"trap;\");", ""),
])
def test_faults(daemon, body, word):
    code = f'typedef unsigned long long uintptr_t;\nextern "C" __global__ void k(int *x) {{ {body} }}'
    begin = time.monotonic()
    job = daemon.expect_failure(one_block_job(code, [buffer("int32", 32)]), word)
    assert job["problem"]["domain"] == "cuda" and time.monotonic() - begin < 20
    run_add(daemon)


def test_endless_kernels(daemon):
    code = 'extern "C" __global__ void k(volatile int *x) { while (*x == 0) {} }'
    begin = time.monotonic()
    job = daemon.expect_failure(one_block_job(code, [buffer("int32", 1)], deadline_s=3), "deadline")
    assert job["problem"]["domain"] == "wire" and time.monotonic() - begin < 20
    run_add(daemon)


def test_printf_does_not_disturb_the_wire(daemon):
    code = 'extern "C" __device__ int printf(const char *, ...);\n' \
           'extern "C" __global__ void k(int *x) { for (int i = 0; i < 100; i++) printf("RLFW\\1\\14 %d\\n", i); *x = 1; }'
    daemon.run(one_block_job(code, [buffer("int32", 1)], samples=2))
    assert "RLFW" in daemon.log.read_text(errors="replace")


def test_other_jobs_still_run(daemon):
    job = daemon.finish({"kind": "kernel", "kernel": "relu", "dtype": "fp16", "shape": {"n": 1 << 20}, "device": "gpu0",
                         "samples": 5})
    assert job["state"] == "completed"
    run_add(daemon)
