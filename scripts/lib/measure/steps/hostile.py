"""Posts a thousand malicious or malformed jobs in a row. Checks that each ends as expected, that nothing leaks, and that an
ordinary kernel does not become slower.

On a GPU the daemon executes the jobs. Without a GPU, the daemon executes a thousand jobs on the fake worker of tests/api, which
ends in each of the ways in which posted code can end a worker; then rooflined-nvrtc compiles the code of the malicious jobs."""
import base64
import collections
import concurrent.futures
import functools
import http.client
import json
import os
import random
import re
import shutil
import statistics
import struct
import subprocess
import time
import types
import urllib.error
import urllib.request

from ..daemon import Daemon, Failed, measurement
from ..host import SOURCE, Skip
from ..runner import check
from .reports import DeviceMemory, process_memory

POSTS, SAMPLE_EVERY, SAMPLES_AT_ENDS = 1000, 100, 9
MAX_DRIFT_RATIO, MAX_GROWTH_RATIO = 0.01, 0.01
MAX_DELAY_S = 30  # maximum time by which a job ends after its deadline; includes the start of new workers
# By which the daemon may grow for each post of the second half. It is less than what the daemon allocates for a post (its reply
# has 3.6 KB, its request more), so the loss of one such object in each post is seen. Measured: docs/measurements/h200-reports.md.
MAX_DAEMON_GROWTH_BYTES_PER_POST = 2048
ELEMENTS, ATTACK_ELEMENTS = 1 << 22, 10_007
EXPECTED = base64.b64encode(struct.pack(f"<{ATTACK_ELEMENTS}f", *[2.0 * i for i in range(ATTACK_ELEMENTS)])).decode()
ATTACKS = SOURCE / "tests" / "attacks"

# How a post is expected to end. may_complete: whether its job may complete; words: the message of a failure has at least one of
# these; None: any message is accepted.
Verdict = collections.namedtuple("Verdict", "may_complete words")
# kind: name of the sort of post, by which results are counted; request: body for POST /jobs; verdict: its expected end.
Post = collections.namedtuple("Post", "kind request verdict")

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

# Hostile kernels: (name, body of kernel k, changed members of the request, words of which the error message has at least one).
# Without words the job may also complete, and fail with any message. The arguments are those of attack_job. A job with a deadline
# lasts until then, so choose() selects it less often.
PARAMETERS = "(const float *x, float *y, int n)"
FAULTS = ("illegal memory access", "illegal instruction", "launch failure", "misaligned address")
HOSTILE = [
    ("endless loop", "while (true) __nanosleep(1000);", {"deadline_s": 1}, ("deadline",)),
    ("endless busy loop", "volatile int i = 0; while (true) i = i + 1;", {"deadline_s": 1}, ("deadline",)),
    ("one endless thread", "if (blockIdx.x == 0 && threadIdx.x == 7) while (true) __nanosleep(1000); y[0] = 0;",
     {"deadline_s": 1}, ("deadline",)),
    ("barrier that not all threads reach", "if (threadIdx.x < 7) { volatile float v = x[0]; while (v != 1e30f) v = x[0]; }"
     " __syncthreads();", {"deadline_s": 1}, ("deadline", "result is wrong")),
    ("write to address 0", "*(int *)0 = 1;", {}, FAULTS),
    ("write to a random address", "*(int *)(0x7f0012345000ull + 4096ull * threadIdx.x * 1237) = 1;", {}, FAULTS),
    ("far out of bounds", "y[1ull << 40] = 1;", {}, FAULTS),
    ("misaligned address", "*(double *)((char *)y + 1) = 1;", {}, ("misaligned address",)),
    ("write outside of shared memory", "extern __shared__ int s[]; s[(1 << 24) + threadIdx.x] = 1; y[0] = s[n];", {},
     ("illegal", "invalid", "out of range")),
    ("trap", 'asm volatile("trap;");', {}, ("launch failure", "illegal instruction")),
    ("assertion", "", {"code": "#include <cassert>\n" 'extern "C" __global__ void k' + PARAMETERS + " { assert(n < 0); }"},
     ("assert",)),
    ("endless recursion", "", {"code": "__device__ __noinline__ float f(float v, int n) {\n"
                                       "  return n < 0 ? v : f(v + 1, n + 1) * v;\n}\n"
                                       'extern "C" __global__ void k' + PARAMETERS + " { y[0] = f(x[0], n); }"}, ()),
    ("printf flood", 'for (int i = 0; i < 10000; i++) printf("%d %s\\n", i, "text");', {"deadline_s": 1}, ()),
    ("heap exhaustion", "for (int i = 0; i < 100000; i++) if (malloc(1 << 20) == nullptr) break; y[0] = 0;",
     {"deadline_s": 1}, ()),
    ("64 KB of shared memory too many", "y[0] = 0;", {"dynamic_shared_bytes": (227 + 64) << 10}, ("/dynamic_shared_bytes",)),
    ("1 MB of shared memory", "y[0] = 0;", {"dynamic_shared_bytes": 1 << 20}, ("/dynamic_shared_bytes",)),
    ("largest grid", "if (blockIdx.x == 0) y[0] = 0;", {"grid": [2147483647], "block": [1], "samples": 1, "deadline_s": 1}, ()),
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


@functools.cache
def read_attacks():
    """Returns the attacks by name: may_complete and words as in Verdict; scratch is the dtype of the buffer of one element that
    some attacks have as their fourth argument."""
    return sorted(json.loads((ATTACKS / "verdicts.json").read_text()).items())


TIME_LIMITED_WEIGHT = 0.25  # how often choose() selects a job that lasts until its deadline; other jobs have the weight 1
BY_REFERENCE = {"arguments": [buffer("in", ATTACK_ELEMENTS, init="uniform"), buffer("out", ATTACK_ELEMENTS),
                              {"scalar": {"dtype": "int32", "value": ATTACK_ELEMENTS}}],
                "expected": {"argument": 1, "reference": {"code": ORDINARY, "entry": "k"}}}
ATTACK_CHANGES = {"knows_the_seed": BY_REFERENCE, "endless_after_check": {"deadline_s": 1}}


def choose(items, is_time_limited, chance):
    return chance.choices(items, [TIME_LIMITED_WEIGHT if is_time_limited(item) else 1 for item in items])[0]


def attack_post(number, chance):
    name, attack = choose(read_attacks(), lambda item: item[0] == "endless_after_check", chance)
    job = attack_job(f"// {number}\n" + (ATTACKS / f"{name}.cu").read_text(), samples=100, **ATTACK_CHANGES.get(name, {}))
    if "scratch" in attack:
        job["arguments"] = [*job["arguments"], {"buffer": {"dtype": attack["scratch"], "count": 1}}]
    return Post(f"attack {name}", job, Verdict(attack["may_complete"], attack["words"]))


def hostile_post(number, chance):
    kind = chance.randrange(10)
    if kind < 4:
        return attack_post(number, chance)
    if kind < 6:  # with a short deadline, because a fifth of the mutated kernels never end
        return Post("mutation", attack_job(mutate(chance.choice(REAL_KERNELS), chance), deadline_s=1), Verdict(True, None))
    if kind == 6:
        return Post("more registers than 1,024 threads can have", attack_job(f"// {number}\n{REGISTERS}", block=[1024]),
                    Verdict(False, ("/block",)))
    name, body, changes, words = choose(HOSTILE, lambda item: "deadline_s" in item[2], chance)
    code = None if body is None else f"// {number}\n" + f'extern "C" __global__ void k{PARAMETERS} {{ {body} }}'
    return Post(name, attack_job(**{"code": code, **changes}), Verdict(not words, words or None))


def post(daemon, device, body):
    """Returns the job's final state and its problem; ("refused", message) if the daemon does not accept the request, and
    ("unanswered", message) if the daemon does not end the job or cannot be reached."""
    try:
        return await_end(daemon, device, body)
    except (Failed, OSError, http.client.HTTPException) as failure:
        return "unanswered", f"{type(failure).__name__}: {failure}"


def await_end(daemon, device, body):
    begin = time.monotonic()
    try:
        job_id = daemon.request("/jobs", {"device": device, **body})["id"]
    except urllib.error.HTTPError as error:
        if not 400 <= error.code < 500:
            raise
        problem = json.load(error)
        return "refused", f"{problem.get('pointer', '')} {problem['detail']}"
    while (job := daemon.request(f"/jobs/{job_id}"))["state"] in ("queued", "running", "storing"):
        if time.monotonic() - begin > body["deadline_s"] + MAX_DELAY_S:
            raise Failed(f"job {job_id} is still {job['state']}")
        time.sleep(0.005)
    return job["state"], (job.get("problem") or {}).get("message", "")


def ends_as_expected(state, message, verdict):
    if state == "completed":
        return verdict.may_complete
    return (state in ("failed", "refused") and message != "" and
            (verdict.words is None or any(word in message for word in verdict.words)))


# Words of a failure's message, and the name that results.json has for this end.
ENDS = [("deadline", "deadline"), ("result_changed", "result_changed"), ("result is wrong", "wrong result"),
        ("argument 0, whose access is", "input changed"), ("illegal memory access", "illegal address"),
        ("misaligned address", "misaligned address"), ("illegal instruction", "illegal instruction"),
        ("launch failure", "launch failure"), ("/code", "not compiled"), ("out of memory", "out of memory")]


def end_of(state, message):
    """Returns a name for the end of a post: its state, and the reason if it did not complete."""
    if state == "completed":
        return state
    pointer = re.search(r"^/\S+|(?<=\(at )/\S+(?=\)$)", message)  # of a refused request, or of a job that failed
    reason = next((name for words, name in ENDS if words in message), pointer[0] if pointer else message[:60])
    return f"{state}: {reason}"


def count_descriptors(process):
    return len(os.listdir(f"/proc/{process}/fd"))


def kept_replies_bytes(daemon):
    """Returns the size of the replies that the daemon keeps for repeated requests. It is no leak, because the daemon limits
    it."""
    request = urllib.request.Request(daemon.url + "/metrics", headers=daemon.headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        lines = response.read().decode().splitlines()
    return next(int(line.split()[-1]) for line in lines if line.startswith("rooflined_body_cache_bytes "))


def leak_sample(daemon, memory, temporary, number):
    """Returns the memory, files and workers that the daemon has after `number` posts. memory: a DeviceMemory, or None."""
    used = process_memory(daemon.process.pid)
    return {"posts": number, "workers": len(daemon.worker_pids()), "daemon_bytes": used["anonymous_bytes"],
            "daemon_rss_bytes": used["rss_bytes"], "kept_replies_bytes": kept_replies_bytes(daemon),
            "daemon_descriptors": count_descriptors(daemon.process.pid),
            "temporary_files": len(os.listdir(temporary)), "device_bytes": memory.used_bytes() if memory else None}


def await_workers(daemon, count):
    """Waits up to 10 s until the daemon has `count` workers, as it starts a new one for each that has ended."""
    deadline = time.monotonic() + 10
    while len(daemon.worker_pids()) != count and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)


def ordinary_job(number):
    return attack_job(f"// {number}\n{ORDINARY}", grid=[132 * 8], samples=100, deadline_s=60, expected=None,
                      arguments=[buffer("in", ELEMENTS, init="range"), buffer("out", ELEMENTS),
                                 {"scalar": {"dtype": "int32", "value": ELEMENTS}}])


def time_ordinary(daemon, number):
    run, = daemon.run_results(ordinary_job(number))
    return measurement(run, "time_cold_us_median")


def sample(daemon, memory, temporary, number, repeats):
    """Times an ordinary kernel `repeats` times, and adds the median to a leak_sample."""
    times = [time_ordinary(daemon, f"{number} {repeat}") for repeat in range(repeats)]
    await_workers(daemon, 2 * len(daemon.host.devices))
    return {**leak_sample(daemon, memory, temporary, number), "cold_us": statistics.median(times), "cold_us_times": times}


def leak_checks(samples):
    """Yields checks that the samples of the second half of the posts show no growth. The first half fills caches: pages and
    connections of SQLite, and the heaps of the daemon's threads."""
    middle, last = samples[len(samples) // 2], samples[-1]
    growth = last["daemon_bytes"] - middle["daemon_bytes"] - (last["kept_replies_bytes"] - middle["kept_replies_bytes"])
    growth_per_post = growth / max(last["posts"] - middle["posts"], 1)
    yield check("the daemon's memory, without kept replies, grows by at most 2 KB for each post",
                growth_per_post <= MAX_DAEMON_GROWTH_BYTES_PER_POST, growth_per_post)
    for name, claim in (("daemon_descriptors", "the daemon opens no more files"), ("workers", "no more processes run"),
                        ("temporary_files", "no temporary files are left")):
        yield check(claim, last[name] <= middle[name], last[name] - middle[name])
    if last["device_bytes"] is not None:
        growth = last["device_bytes"] - samples[0]["device_bytes"]
        yield check("device memory does not grow", growth <= samples[0]["device_bytes"] * MAX_GROWTH_RATIO, growth)


def drift_check(samples):
    ratio = samples[-1]["cold_us"] / samples[0]["cold_us"] - 1
    return check("the ordinary kernel's time stays within 1 %", abs(ratio) <= MAX_DRIFT_RATIO, ratio)


def post_all(context, daemon, make_post, take_sample, samples, reserve_s):
    """Sends the posts one after the other, and yields rows: samples, posts that did not end as expected, how often which end
    occurred so far, and at last how often each kind of post ended in which way. Several GPUs execute equal shares of the posts
    concurrently. Returns the number of posts. reserve_s: time that remains for the caller when the posts end early."""
    ends, wrong, number = collections.defaultdict(collections.Counter), 0, 0
    devices = daemon.host.devices
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(devices)) as pool:
        while number < POSTS:
            posts = [make_post(number + i) for i in range(SAMPLE_EVERY)]
            shares = [pool.submit(post_share, daemon, device, posts[i::len(devices)], context.deadline - reserve_s)
                      for i, device in enumerate(devices)]
            done = [row for share in shares for row in share.result()]
            number += len(done)
            for kind, state, message, as_expected, body in done:
                ends[kind][end_of(state, message)] += 1
                if not as_expected:
                    wrong += 1
                    yield {"wrong": kind, "state": state, "message": message[:300], "code": body.get("code", "")[:2000]}
            so_far = sum(ends.values(), collections.Counter())
            yield {"posts_so_far": number, "seconds": round(time.monotonic() - begin, 1), "wrong": wrong, "ends": dict(so_far)}
            print(f"{number} of {POSTS} posts in {time.monotonic() - begin:.0f} s, {wrong} did not end as expected", flush=True)
            if any(end.startswith("unanswered") for end in so_far):
                break
            if number < POSTS and context.remaining_s() < reserve_s:
                yield {"partial": f"{number} of {POSTS} posts fit into the time"}
                break
            if number < POSTS:
                samples.append(take_sample(number))
                yield samples[-1]
    seconds = time.monotonic() - begin
    yield {"posts_done": number, "devices": devices, "posts_s": round(seconds, 1), "s_per_post": round(seconds / number, 3)}
    for kind, counts in sorted(ends.items()):
        yield {"kind": kind, "count": sum(counts.values()), "ends": dict(counts.most_common())}
    yield check("every post ends as expected", wrong == 0, wrong)
    return number


def post_share(daemon, device, posts, deadline):
    """Returns (kind, state, message, whether it ended as expected, request) of each post, as many as end before the deadline."""
    done = []
    for kind, body, verdict in posts:
        if time.monotonic() > deadline:
            break
        state, message = post(daemon, device, body)
        done.append((kind, state, message, ends_as_expected(state, message, verdict), body))
        if state == "unanswered":
            break
    return done


def temporary_folder(context, name):
    """Returns an empty folder, and the host with it as the folder of temporary files."""
    folder = context.log_path(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    host = types.SimpleNamespace(**vars(context.host), program=context.host.program)
    host.environment = {**context.host.environment, "TMPDIR": str(folder)}
    host.devices = [context.host.device]
    return folder, host


def on_gpu(context, chance):
    temporary, host = temporary_folder(context, "temporary")
    samples = []
    with Daemon(host, context.log_path("daemon.log"), "--allow-source", "--body-limit-bytes", str(16 << 20),
                token=True) as daemon:
        host.devices = sorted(item["id"] for item in daemon.request("/devices")["items"] if item["id"].startswith("gpu"))
        memory = DeviceMemory()
        for device in host.devices:  # starts the workers of each device
            daemon.run_results({**ordinary_job(0), "device": device})
        samples.append(sample(daemon, memory, temporary, 0, SAMPLES_AT_ENDS))
        yield samples[0]
        posts = yield from post_all(context, daemon, lambda number: hostile_post(number, chance),
                                    lambda number: sample(daemon, memory, temporary, number, 1), samples, reserve_s=15)
        samples.append(sample(daemon, memory, temporary, posts, SAMPLES_AT_ENDS))
        yield samples[-1]
    yield from leak_checks(samples)
    yield drift_check(samples)


# (name of a kernel that tests/api/fake_gpu_worker.py knows, how many of 100 posts have it, verdict)
FAKE_POSTS = [("add", 45, Verdict(True, ())), ("broken", 30, Verdict(False, ("/code",))),
              ("faulty", 14, Verdict(False, ("illegal memory access",))), ("rows_10000", 5, Verdict(True, ())),
              ("large", 3, Verdict(True, ())), ("too_large", 2, Verdict(False, ("out of memory",))),
              ("endless", 1, Verdict(False, ("deadline",)))]


def fake_post(number, chance):
    if chance.randrange(10) == 0:
        refused = chance.choice([{"block": [4096]}, {"grid": [0]}, {"code": ""}, {"entry": "a;b"},
                                 {"arguments": [{"scalar": {}}]}])
        return Post("refused", attack_job(**{"code": "x", **refused}), Verdict(False, None))
    entry, _, verdict = chance.choices(FAKE_POSTS, [share for _, share, _ in FAKE_POSTS])[0]
    return Post(entry, attack_job(f"// {number}", entry=entry, deadline_s=1 if entry == "endless" else 60), verdict)


def in_daemon(context, chance):
    """Sends a thousand posts to a daemon whose GPU worker is a fake."""
    temporary, host = temporary_folder(context, "daemon_temporary")
    workers, samples = context.log_path("workers"), []
    workers.mkdir(exist_ok=True)
    program = workers / "rooflined-worker-cuda"
    program.write_text(f'#!/bin/sh\nexec /usr/bin/python3 {SOURCE}/tests/api/fake_gpu_worker.py "$@"\n')
    program.chmod(0o755)
    host.environment |= {"FAKE_WORKER_NOTES": str(context.log_path("notes")),
                         "FAKE_WORKER_PATH": str(SOURCE / "tests" / "worker")}
    host.device = "gpu0"
    host.devices = ["gpu0"]
    with Daemon(host, context.log_path("daemon.log"), "--workers", str(workers), "--allow-source", "--body-limit-bytes",
                str(16 << 20), token=True) as daemon:
        def take_sample(number):
            await_workers(daemon, 2)
            return leak_sample(daemon, None, temporary, number)

        daemon.run_job(attack_job("// 0", entry="add", deadline_s=60))
        samples.append(take_sample(0))
        yield samples[0]
        posts = yield from post_all(context, daemon, lambda number: fake_post(number, chance), take_sample, samples, reserve_s=10)
        samples.append(take_sample(posts))
        yield samples[-1]
    yield from leak_checks(samples)


def in_compiler(context, chance):
    """Compiles the code of the posts. Checks that the compiler ends with an answer for each and leaves no files."""
    compiler = context.host.program("rooflined-nvrtc")
    statuses, wrong = {}, 0
    temporary, host = temporary_folder(context, "temporary")
    for number in range(POSTS):
        name, body, _ = hostile_post(number, chance)
        if context.remaining_s() < 10:
            yield {"partial": f"{number} of {POSTS} posts fit into the time"}
            break
        if "code" not in body:
            continue
        done = subprocess.run([compiler, "sm_90a", body["entry"]], input=body["code"].encode(), capture_output=True, timeout=150,
                              env=host.environment)
        answer = struct.unpack_from("<4sI", done.stdout) if len(done.stdout) >= 20 else (b"", -done.returncode)
        statuses[str(answer[1])] = statuses.get(str(answer[1]), 0) + 1
        if done.returncode != 0 or answer[0] != b"RLN1" or answer[1] > 1:
            wrong += 1
            yield {"wrong": name, "exit": done.returncode, "message": done.stderr.decode(errors="replace")[:300],
                   "code": body["code"][:2000]}
    yield {"compiled_posts": sum(statuses.values()), "compiler_statuses": statuses}
    if statuses.get("2"):
        raise Skip("the compiler can't compile here")
    yield check("the compiler answers every post", wrong == 0, wrong)
    left = len(list(temporary.iterdir()))
    yield check("the compiler leaves no files", left == 0, left)


def hostile(context):
    seed = int(os.environ.get("ROOFLINED_HOSTILE_SEED", time.time_ns() % (1 << 31)))
    chance = random.Random(seed)
    yield {"seed": seed}
    if context.host.is_gpu:
        yield from on_gpu(context, chance)
        return
    yield from in_daemon(context, chance)
    yield from in_compiler(context, chance)
