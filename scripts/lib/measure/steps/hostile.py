"""A thousand malicious or malformed posts in a row: each ends as expected, nothing leaks, an ordinary kernel stays as fast."""
import base64
import os
import random
import statistics
import struct
import subprocess
import time
import urllib.error

from ..daemon import Daemon, Failed, measurement
from ..host import SOURCE, Skip
from ..runner import check
from .reports import DeviceMemory, process_memory

POSTS, ORDINARY_EVERY = 1000, 10
MAX_DRIFT_RATIO, MAX_GROWTH_RATIO, MAX_DAEMON_GROWTH_BYTES = 0.01, 0.01, 8 << 20
ELEMENTS, ATTACK_ELEMENTS = 1 << 22, 100_003
EXPECTED = base64.b64encode(struct.pack(f"<{ATTACK_ELEMENTS}f", *[2.0 * i for i in range(ATTACK_ELEMENTS)])).decode()
ATTACKS = SOURCE / "tests" / "attacks"

ORDINARY = """extern "C" __global__ void k(const float *x, float *y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * x[i];
}"""

# Kernels that are mutated: each is correct with the arguments of attack_job.
REAL_KERNELS = [ORDINARY, """#include <cuda_fp16.h>
template <int N> __device__ float reduce(float v) {
#pragma unroll
  for (int lane = N / 2; lane > 0; lane /= 2) v += __shfl_xor_sync(0xffffffff, v, lane);
  return v;
}
extern "C" __global__ void k(const float *x, float *y, int n) {
  __shared__ float sums[8];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = reduce<32>(i < n ? x[i] : 0);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (i < n) y[i] = 2 * x[i] + 0 * __half2float(__float2half(sums[threadIdx.x / 32]));
}
""", """#include <cuda/std/array>
extern "C" __global__ void k(const float *x, float *y, int n) {
  cuda::std::array<float, 16> values = {};
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
    for (int j = 0; j < 16; j++) values[j] = x[i] * (j + 1);
    y[i] = values[1];
  }
}
"""]

# name, code, members of the request, words of which the error message has at least one; (): any end. The entry is k, the
# arguments are those of attack_job.
PARAMETERS = "(const float *x, float *y, int n)"
HOSTILE = [
    ("endless loop", "while (true) __nanosleep(1000);", {"deadline_s": 1}, ("deadline",)),
    ("endless busy loop", "volatile int i = 0; while (true) i = i + 1;", {"deadline_s": 1}, ("deadline",)),
    ("one endless thread", "if (blockIdx.x == 0 && threadIdx.x == 7) while (true) __nanosleep(1000); y[0] = 0;",
     {"deadline_s": 1}, ("deadline",)),
    ("barrier that not all threads reach", "if (threadIdx.x < 7) { volatile float v = x[0]; while (v != 1e30f) v = x[0]; }"
     " __syncthreads();", {"deadline_s": 1}, ("deadline",)),
    ("write to address 0", "*(int *)0 = 1;", {}, ("illegal memory access",)),
    ("write to a random address", "*(int *)(0x7f0012345000ull + 4096ull * threadIdx.x * 1237) = 1;", {},
     ("illegal memory access",)),
    ("far out of bounds", "y[1ull << 40] = 1;", {}, ("illegal memory access",)),
    ("misaligned address", "*(double *)((char *)y + 1) = 1;", {}, ("misaligned address",)),
    ("write outside of shared memory", "extern __shared__ int s[]; s[(1 << 24) + threadIdx.x] = 1; y[0] = s[n];", {},
     ("illegal", "invalid", "out of range")),
    ("trap", 'asm volatile("trap;");', {}, ("launch failure", "illegal instruction")),
    ("assertion", "", {"code": "#include <cassert>\n" 'extern "C" __global__ void k' + PARAMETERS + " { assert(n < 0); }"},
     ("assert",)),
    ("endless recursion", "", {"code": "__device__ __noinline__ float f(float v, int n) {\n"
                                       "  return n < 0 ? v : f(v + 1, n + 1) * v;\n}\n"
                                       'extern "C" __global__ void k' + PARAMETERS + " { y[0] = f(x[0], n); }"}, ()),
    ("printf flood", 'for (int i = 0; i < 10000; i++) printf("%d %s\\n", i, "text");', {"deadline_s": 10}, ()),
    ("heap exhaustion", "for (int i = 0; i < 100000; i++) if (malloc(1 << 20) == nullptr) break; y[0] = 0;",
     {"deadline_s": 5}, ()),
    ("64 KB of shared memory too many", "y[0] = 0;", {"dynamic_shared_bytes": (227 + 64) << 10}, ("/dynamic_shared_bytes",)),
    ("1 MB of shared memory", "y[0] = 0;", {"dynamic_shared_bytes": 1 << 20}, ("/dynamic_shared_bytes",)),
    ("largest grid", "if (blockIdx.x == 0) y[0] = 0;", {"grid": [2147483647], "block": [1], "samples": 1, "deadline_s": 2}, ()),
    ("cooperative grid that is not resident", "y[0] = 0;", {"cooperative": True, "grid": [1 << 24]}, ("/grid",)),
    ("cluster of 16 blocks with 200 KB each", "y[0] = 0;",
     {"cluster": [16], "grid": [16], "dynamic_shared_bytes": 200 << 10}, ()),
    ("missing argument", "y[0] = 0;", {"arguments": []}, ("/arguments", "/expected/argument")),
    ("child kernel", "k<<<1, 1>>>(x, y, n);", {}, ("device-side kernel launch", "/code")),
    ("syntax error", "y[0] = ;", {}, ("/code",)),
    ("include of a host file", "\n#include \"/etc/passwd\"\n", {}, ("/code",)),
    ("template recursion", "", {"code": "template <int N> struct r { static constexpr int v = r<N + 1>::v + r<N + 2>::v; };\n"
                                        'extern "C" __global__ void k' + PARAMETERS + " { y[0] = r<0>::v; }"}, ("/code",)),
    ("large array", "", {"code": "__device__ char huge[1ull << 42];\n"
                                 'extern "C" __global__ void k' + PARAMETERS + " { y[0] = huge[n]; }"}, ()),
    ("wrong entry", "y[0] = 0;", {"entry": "other"}, ("/code", "/entry", "other")),
    ("binary of noise", None, {"binary": base64.b64encode(b"\x7fELF" + bytes(range(256)) * 8).decode()}, ()),
    ("noise as PTX", None,
     {"binary": base64.b64encode(b".version 8.0\n.target sm_80\n.visible .entry k() { noise; }\n").decode()},
     ("/binary", "load")),
    ("deep braces", "{" * 2000 + "}" * 2000, {}, ()),
    ("NUL in the middle", "y[0] = 0; \u0001 y[1] = 0;", {}, ()),
]
REGISTERS = 'extern "C" __global__ void k' + PARAMETERS + """ {
  float v[240];
#pragma unroll
  for (int i = 0; i < 240; i++) v[i] = x[i * 7 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 240; i++) y[i * 5 + threadIdx.x] = v[239 - i] * v[i];
}"""


def buffer(access, count, **members):
    return {"buffer": {"dtype": "fp32", "count": count, "access": access, **members}}


def attack_job(code, **changes):
    arguments = [buffer("in", ATTACK_ELEMENTS, init="range"), buffer("out", ATTACK_ELEMENTS),
                 {"scalar": {"dtype": "int32", "value": ATTACK_ELEMENTS}}]
    body = {"kind": "source", "code": code, "entry": "k", "grid": [(ATTACK_ELEMENTS + 255) // 256], "block": [256], "samples": 4,
            "deadline_s": 10, "arguments": arguments, "expected": {"argument": 1, "values": EXPECTED}}
    return {name: value for name, value in {**body, **changes}.items() if value is not None}


def mutate(code, chance):
    """Deletes, repeats, swaps or replaces a few words and characters of the code."""
    words = code.split(" ")
    for _ in range(chance.randint(1, 4)):
        at, other = chance.randrange(len(words)), chance.randrange(len(words))
        kind = chance.randrange(5)
        if kind == 0:
            words[at] = ""
        elif kind == 1:
            words[at] = words[at] + " " + words[at]
        elif kind == 2:
            words[at], words[other] = words[other], words[at]
        elif kind == 3 and words[at]:
            i = chance.randrange(len(words[at]))
            words[at] = words[at][:i] + chance.choice("0123456789+-*/<>=;(){}[]xyn") + words[at][i + 1:]
        else:
            words[at] = words[at].replace("i", str(chance.choice([0, -1, 1 << 20, 1 << 31])), 1)
    return " ".join(words)


def hostile_post(number, chance):
    """Returns (name, request, words of which its error message has at least one)."""
    kind = chance.randrange(10)
    if kind < 3:
        path = chance.choice(sorted(ATTACKS.glob("*.cu")))
        scratch = {"late_zeros": "int32", "honest_atomics": "fp32"}.get(path.stem)
        job = attack_job(f"// {number}\n" + path.read_text(), deadline_s=2)
        if scratch:
            job["arguments"].append({"buffer": {"dtype": scratch, "count": 1}})
        return f"attack {path.stem}", job, ()
    if kind < 6:
        return "mutation", attack_job(mutate(chance.choice(REAL_KERNELS), chance), deadline_s=2), ()
    if kind == 6:
        return "more registers than 1,024 threads can have", attack_job(f"// {number}\n{REGISTERS}", block=[1024]), ("/block",)
    name, body, changes, words = chance.choice(HOSTILE)
    code = None if body is None else f"// {number}\n" + f'extern "C" __global__ void k{PARAMETERS} {{ {body} }}'
    return name, attack_job(**{"code": code, **changes}), words


def post(daemon, body):
    """Returns the job's final state and its problem; ("refused", message) if the daemon does not accept the request."""
    begin = time.monotonic()
    try:
        job_id = daemon.request("/jobs", {"device": daemon.host.device, **body})["id"]
    except urllib.error.HTTPError as error:
        if not 400 <= error.code < 500:
            raise
        return "refused", error.read().decode()
    while (job := daemon.request(f"/jobs/{job_id}"))["state"] in ("queued", "running", "storing"):
        if time.monotonic() - begin > body["deadline_s"] + 90:
            raise Failed(f"job {job_id} is still {job['state']}")
        time.sleep(0.005)
    return job["state"], (job.get("problem") or {}).get("message", "")


def ends_as_expected(state, message, words):
    if state == "completed":
        return words == ()
    return state in ("failed", "refused") and message != "" and (words == () or any(word in message for word in words))


def count_descriptors(process):
    return len(os.listdir(f"/proc/{process}/fd"))


def ordinary_sample(daemon, memory, number):
    """Runs an ordinary kernel and returns its time and the memory, files and processes of the daemon and its workers."""
    job = attack_job(f"// {number}\n{ORDINARY}", grid=[132 * 8], samples=100, deadline_s=60, expected=None,
                     arguments=[buffer("in", ELEMENTS, init="range"), buffer("out", ELEMENTS),
                                {"scalar": {"dtype": "int32", "value": ELEMENTS}}])
    run, = daemon.run_results(job)
    time.sleep(1)  # the workers that replace those of this job have started
    workers = daemon.worker_pids()
    return {"posts": number, "cold_us": measurement(run, "time_cold_us_median"), "workers": len(workers),
            "daemon_bytes": process_memory(daemon.process.pid)["anonymous_bytes"],
            "daemon_descriptors": count_descriptors(daemon.process.pid), "device_bytes": memory.used_bytes()}


def leak_checks(samples):
    """Yields checks that the last samples use no more than the first ones."""
    quarter = max(1, len(samples) // 4)

    def minima(name):
        return min(sample[name] for sample in samples[:quarter]), min(sample[name] for sample in samples[-quarter:])

    before, after = (statistics.median(sample["cold_us"] for sample in part) for part in (samples[:quarter], samples[-quarter:]))
    yield check("the ordinary kernel's time stays within 1 %", abs(after / before - 1) <= MAX_DRIFT_RATIO, after / before - 1)
    first, last = minima("daemon_bytes")
    yield check("the daemon's memory does not grow", last - first <= MAX_DAEMON_GROWTH_BYTES, last - first)
    for name, claim in (("daemon_descriptors", "the daemon opens no more files"), ("workers", "no more processes run")):
        first, last = minima(name)
        yield check(claim, last <= first, last - first)
    if samples[0]["device_bytes"] is not None:
        first, last = minima("device_bytes")
        yield check("device memory does not grow", last <= first * (1 + MAX_GROWTH_RATIO), last - first)


def on_gpu(context, chance):
    end_states, wrong, samples = {}, [], []
    with Daemon(context.host, context.log_path("daemon.log"), "--allow-source", "--body-limit-bytes", str(16 << 20),
                token=True) as daemon:
        memory = DeviceMemory()
        for number in range(POSTS):
            if number % ORDINARY_EVERY == 0:
                samples.append(ordinary_sample(daemon, memory, number))
                yield samples[-1]
            name, body, words = hostile_post(number, chance)
            state, message = post(daemon, body)
            end_states[state] = end_states.get(state, 0) + 1
            if not ends_as_expected(state, message, words):
                wrong.append(name)
                yield {"wrong": name, "state": state, "message": message[:300], "code": body.get("code", "")[:2000]}
            if context.remaining_s() < 20:
                yield {"partial": f"{number + 1} of {POSTS} posts fit into the time"}
                break
        samples.append(ordinary_sample(daemon, memory, number + 1))
        yield samples[-1]
    yield {"posts_done": number + 1, "end_states": end_states}
    yield check("every post ends as expected", not wrong, len(wrong))
    yield from leak_checks(samples)


def in_compiler(context, chance):
    """Without a GPU, compiles the posts: the compiler ends with an answer for each and leaves nothing behind."""
    compiler = context.host.program("rooflined-nvrtc")
    statuses, wrong, temporary = {}, 0, context.log_path("temporary")
    temporary.mkdir(exist_ok=True)
    environment = {**context.host.environment, "TMPDIR": str(temporary)}
    for number in range(POSTS):
        name, body, _ = hostile_post(number, chance)
        if context.remaining_s() < 10:
            yield {"partial": f"{number} of {POSTS} posts fit into the time"}
            break
        if "code" not in body:
            continue
        done = subprocess.run([compiler, "sm_90a", body["entry"]], input=body["code"].encode(), capture_output=True, timeout=150,
                              env=environment)
        answer = struct.unpack_from("<4sI", done.stdout) if len(done.stdout) >= 20 else (b"", -done.returncode)
        statuses[str(answer[1])] = statuses.get(str(answer[1]), 0) + 1
        if done.returncode != 0 or answer[0] != b"RLN1" or answer[1] > 1:
            wrong += 1
            yield {"wrong": name, "exit": done.returncode, "message": done.stderr.decode(errors="replace")[:300],
                   "code": body["code"][:2000]}
    yield {"posts_done": sum(statuses.values()), "compiler_statuses": statuses}
    if statuses.get("2"):
        raise Skip("the compiler can't compile here")
    yield check("the compiler answers every post", wrong == 0, wrong)
    left = len(list(temporary.iterdir()))
    yield check("the compiler leaves no files", left == 0, left)


def hostile(context):
    seed = int(os.environ.get("ROOFLINED_HOSTILE_SEED", time.time_ns() % (1 << 31)))
    yield {"seed": seed}
    yield from (on_gpu if context.host.is_gpu else in_compiler)(context, random.Random(seed))
