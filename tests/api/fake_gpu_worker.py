"""A worker program for a GPU that does not exist, to test what the daemon does with source jobs. The job's `entry` (the name of
the posted kernel) selects what the worker replies. It writes each request as a line of JSON to the file $FAKE_WORKER_NOTES, and
its process id and role to $FAKE_WORKER_NOTES.starts."""

import json
import os
import sys

sys.path.insert(0, os.environ["FAKE_WORKER_PATH"])
from frames import HEADER, ROW, TYPES, VERSION, decode, pack  # noqa: E402

MEASURES = ("evaluation_ms", "train_loss", "test_loss", "test_accuracy_ratio", "loss_scale", "skipped_steps",
            "sm_clock_before_mhz", "sm_clock_after_mhz", "memory_clock_mhz", "temperature_c", "power_w")  # of an epoch
METADATA = {"engine": "fake", "dataset": "", "dataset_sha256": "", "deterministic": False, "deterministic_note": "",
            "partial": False, "images_per_epoch": 0, "steps_per_epoch": 0, "parameters": 0, "floor_operations": None,
            "floor_bytes": None, "floor_written_bytes": None, "floor_precision": "",
            "device_properties": {"name": "fake"}, "commit": "none"}
EPOCH = {**dict.fromkeys(MEASURES, 0), "device_ms": 1, "host_ms": 1, "images": 1, "epoch": 0, "warmup": False,
         "throttle_reasons": "", "unavailable": {}}
KERNEL = {**dict.fromkeys(("ordinal", "launches", "total_us", "min_us", "median_us", "max_us", "share_ratio",
                           "registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes", "grid_x", "grid_y", "grid_z",
                           "block_x", "block_y", "block_z", "theoretical_occupancy_ratio"), 0),
          **dict.fromkeys(("launch", "phase", "name", "code_sha256", "reason"), "")}
PHASE = {**dict.fromkeys(("steps", "blocks", "mean_us", "min_us", "max_us", "share_ratio"), 1), "ordinal": 0, "position": 0,
         "name": "adam", "phase": ""}
PROGRESS = {"pass": "timing", "phase": "epoch", "epoch": 0, "epochs": 1, "step": 0, "steps": 1, "train_loss": None,
            "images_per_s": None, "eta_s": None, "test_accuracy_ratio": None}
INVALID_FRAMES = {  # entry, which is the name of the invalid field: (type of the frame, its content)
    "dataset": ("METADATA", {**METADATA, "dataset": "flowers"}),
    "dataset_sha256": ("METADATA", {**METADATA, "dataset_sha256": "c0ffee"}),
    "images": ("EPOCH", {**EPOCH, "device_ms": 5e-324, "host_ms": 5e-324, "images": 1.7e308}),
    "test_accuracy_ratio": ("EPOCH", {**EPOCH, "test_accuracy_ratio": 1.01}),
    "theoretical_occupancy_ratio": ("KERNEL", {**KERNEL, "theoretical_occupancy_ratio": -0.5}),
    "code_sha256": ("KERNEL", {**KERNEL, "code_sha256": "x" * 64}),
    "share_ratio": ("PHASE", {**PHASE, "share_ratio": 7}),
    "pass": ("PROGRESS", {**PROGRESS, "pass": "guessing"}),
}
OUT = os.dup(1)  # for frames
os.dup2(2, 1)  # so that printed text does not get between the frames

has_executed_source = False


def record(suffix="", **members):
    with open(os.environ["FAKE_WORKER_NOTES"] + suffix, "a") as file:
        file.write(json.dumps({"pid": os.getpid(), **members}) + "\n")


def is_running(pid):
    """Returns true if the process runs this program. The id of a worker that has ended may belong to another program by now."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"fake_gpu_worker" in file.read()
    except OSError:
        return False


def is_child_of_daemon(pid):
    """Returns true for a process that runs, or has been killed and not been reaped, and whose parent is this worker's."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1]) == os.getppid()
    except OSError:
        return False


def other_workers():
    with open(os.environ["FAKE_WORKER_NOTES"] + ".starts") as file:
        return {json.loads(line)["pid"] for line in file} - {os.getpid()}


def is_out_of_memory(entry):
    if entry == "large_in_counters":  # a process that exits holds its device memory until it is reaped
        return role == "profiled" and any(map(is_child_of_daemon, other_workers()))
    return entry == "too_large" or entry == "large" and any(map(is_running, other_workers()))


def send(kind, message=None):
    payload = message.encode() if isinstance(message, str) else json.dumps(message).encode() if message is not None else b""
    os.write(OUT, pack(kind, payload))


def send_bytes(data):
    """Writes all of data; one write to a pipe may take only a part."""
    data = memoryview(data)
    while data:
        data = data[os.write(OUT, data):]


def send_rows(count, rows_in_frame=16000):
    """Sends activity rows of kernels. A kernel starts every 2 µs."""
    send("NAME", "void kernel()")
    for first in range(0, count, rows_in_frame):
        rows = (ROW.pack(2000 * i, 2000 * i + 1000 + i % 700, 0, 0, 7, i, 0, 0, 128, 1, 1, 256, 1, 1, 40, 0, i % 5, 0,
                         0, 0, 1, 1, 0, 0, 0, 0, 0)
                for i in range(first, min(first + rows_in_frame, count)))
        send_bytes(pack("ROWS", b"".join(rows)))


def read(size):
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            sys.exit(0)
        data += more
    return data


def fail(domain, code, message):
    send("FAILED", {"domain": domain, "code": code, "message": message, "has_executed_source": has_executed_source})


def reply_to(entry):
    if INVALID_FRAMES.get(entry, ("",))[0] != "METADATA":
        send("METADATA", METADATA)
    if entry == "endless":  # never replies, and ignores a cancel message
        os.read(0, 1)
        read(1 << 30)
    if entry in INVALID_FRAMES:
        send(*INVALID_FRAMES[entry])
    if entry.startswith("rows_"):
        send_rows(int(entry.removeprefix("rows_")))
    if entry == "true":
        send("PROGRESS", PROGRESS)
        send("EPOCH", {**EPOCH, "test_accuracy_ratio": 1})
        send("KERNEL", {**KERNEL, "code_sha256": "c0ffee42" * 8, "theoretical_occupancy_ratio": 1})
        send("PHASE", PHASE)
    send("MEASUREMENT", {"name": "registers_per_thread", "value": 12, "reason": ""})
    send("DONE")


def serve():
    global has_executed_source
    source = None
    while True:
        _, _, kind, _, length = HEADER.unpack(read(HEADER.size))
        payload = read(length)
        if TYPES[kind] == "SOURCE":
            source = json.loads(payload)
        elif TYPES[kind] == "RELEASE":
            send("RELEASED")
        elif TYPES[kind] == "REQUEST":
            request = decode(kind, payload).payload
            record(workload=request["workload"], params=request["params"], source=source)
            entry = source["entry"] if request["workload"] == "source" else "none"
            if entry == "broken":
                send("LOG", "code.cu(3): error: identifier \"x\" is undefined\n\n1 error\n")
                fail("input", 0, "code.cu(3): error: identifier \"x\" is undefined (at /code)")
                continue
            has_executed_source |= request["workload"] == "source"
            if entry == "faulty":
                fail("cuda", 700, "running: an illegal memory access was encountered")
                sys.exit(4)
            if is_out_of_memory(entry):
                fail("cuda", 2, "allocating 140 GB: out of memory (cudaErrorMemoryAllocation)")
            else:
                reply_to(entry)


role = sys.argv[sys.argv.index("--role") + 1] if "--role" in sys.argv else "any"
send("HELLO", {"protocol": VERSION, "program": "fake", "commit": "none", "device": "gpu0", "role": role, "usable": True,
               "reason": "", "properties": {"name": "fake"}, "unsupported_engines": ["persistent"]})
if "--list" not in sys.argv:
    record(".starts", role=role)
    serve()
