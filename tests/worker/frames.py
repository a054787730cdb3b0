"""Encodes and decodes the frames of daemon/wire/wire.h, and runs a worker process that exchanges them."""
import collections
import json
import math
import os
import pathlib
import select
import struct
import subprocess
import time

# A packed build (scripts/gpu-pack.sh) lies in .gpu instead of build/.
BUILD = pathlib.Path(os.environ.get("ROOFLINED_BUILD") or (".gpu" if pathlib.Path(".gpu/bin").is_dir() else "build/dev"))
VERSION = 10
HEADER = struct.Struct("<4sBBHI")
ROW = struct.Struct("<qq15IQ3IHBB2IB")  # rl_activity_row
METRIC = struct.Struct("<q128sd192s")  # rl_kernel_metric
TYPES = (None, "HELLO", "REQUEST", "CANCEL", "METADATA", "PROGRESS", "EPOCH", "MEASUREMENT", "KERNEL", "METRIC", "NAME", "ROWS",
         "DONE", "UNAVAILABLE", "FAILED", "CANCELLED", "SAMPLE", "INSTRUCTION", "POINT",
         "SOURCE", "LOG", "PHASE", "RELEASE", "RELEASED", "HEARTBEAT", "OPEN")
END_TYPES = ("DONE", "UNAVAILABLE", "FAILED", "CANCELLED")
Frame = collections.namedtuple("Frame", "type payload")


def pack(kind, payload=b""):
    return HEADER.pack(b"RLFW", VERSION, TYPES.index(kind), 0, len(payload)) + payload


def unpack(data):
    """Returns the frames in data, which must contain only complete frames."""
    frames = []
    while data:
        magic, version, kind, zero, length = HEADER.unpack_from(data)
        assert (magic, version, zero) == (b"RLFW", VERSION, 0), data[:64]
        payload, data = data[HEADER.size:HEADER.size + length], data[HEADER.size + length:]
        assert len(payload) == length
        frames.append(decode(kind, payload))
    return frames


def decode(kind, payload):
    name = TYPES[kind]
    if name in ("NAME", "LOG"):
        return Frame(name, payload.decode())
    if name == "ROWS":
        assert len(payload) % ROW.size == 0
        return Frame(name, list(ROW.iter_unpack(payload)))
    if name == "METRIC":
        assert len(payload) % METRIC.size == 0
        return Frame(name, [decode_metric(*fields) for fields in METRIC.iter_unpack(payload)])
    return Frame(name, json.loads(payload) if payload else None)


def decode_metric(ordinal, name, value, reason):
    return {"ordinal": ordinal, "metric": name.split(b"\0")[0].decode(), "value": None if math.isnan(value) else value,
            "reason": reason.split(b"\0")[0].decode()}


class Worker:
    """A worker process. As a context manager it kills the process at the end."""

    def __init__(self, program, *arguments, env=None, hello=True):
        self.process = subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, "ROOFLINED_THREADS": "1", **(env or {})})
        os.set_blocking(self.process.stdout.fileno(), False)
        self.buffer = b""
        self.hello = self.read() if hello else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                pass

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def request(self, workload, params, pass_name="timing"):
        request = {"workload": workload, "params": params, "pass": pass_name, "opening_overlapped": False}
        self.write(pack("REQUEST", json.dumps(request).encode()))

    def cancel(self):
        self.write(pack("CANCEL"))

    def release(self):
        self.write(pack("RELEASE"))
        return self.until("RELEASED")

    def read(self, timeout=120):
        """Returns the next frame other than HEARTBEAT; None if the worker closed its pipe after a complete frame."""
        end = time.monotonic() + timeout
        while True:
            frame = self.read_any(max(0, end - time.monotonic()))
            if frame is None or frame.type != "HEARTBEAT":
                return frame

    def read_any(self, timeout=120):
        end = time.monotonic() + timeout
        while True:
            if len(self.buffer) >= HEADER.size:
                magic, version, kind, zero, length = HEADER.unpack_from(self.buffer)
                assert (magic, version, zero) == (b"RLFW", VERSION, 0), f"not a frame: {self.buffer[:64]!r}"
                if len(self.buffer) >= HEADER.size + length:
                    payload = self.buffer[HEADER.size:HEADER.size + length]
                    self.buffer = self.buffer[HEADER.size + length:]
                    return decode(kind, payload)
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            assert ready, "no frame was received in time"
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            if not data:
                assert not self.buffer, f"the last frame is truncated: {self.buffer[:64]!r}"
                return None
            self.buffer += data

    def until(self, *types, timeout=120):
        """Returns all frames up to the first frame of one of these types, which is included."""
        frames = []
        while True:
            frame = self.read(timeout)
            assert frame, f"the worker closed its pipe after {[f.type for f in frames]}"
            frames.append(frame)
            if frame.type in types:
                return frames

    def execute(self, workload, params, pass_name="timing", timeout=300):
        """Sends a request and returns its frames."""
        self.request(workload, params, pass_name)
        return self.until(*END_TYPES, timeout=timeout)

    def end(self, timeout=60):
        """Closes the input of the worker and returns its exit status."""
        self.process.stdin.close()
        return self.process.wait(timeout)


def payloads(frames, kind):
    return [frame.payload for frame in frames if frame.type == kind]


def measurements(frames):
    return {m["name"]: m["value"] for m in payloads(frames, "MEASUREMENT")}
