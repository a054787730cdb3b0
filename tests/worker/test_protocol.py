"""The worker program without a daemon: the frames that it sends, and when it exits."""
import pathlib
import select
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from frames import BUILD, HEADER, END_TYPES, TYPES, VERSION, Worker, measurements, payloads, pack, unpack  # noqa: E402

FAKE = str(BUILD / "tests" / "fake-worker")
SLOW = {"steps": 100000 - 1, "sleep_us": 1000, "epochs": 1, "warmup": 0}


def fake_worker(role="any"):
    return Worker(FAKE, "--device", "cpu", "--role", role)


def test_hello_is_sent_first_and_once():
    with fake_worker("unprofiled") as worker:
        hello = worker.hello.payload
        assert worker.hello.type == "HELLO"
        assert (hello["protocol"], hello["device"], hello["role"], hello["usable"]) == (VERSION, "cpu", "unprofiled", True)
        assert hello["properties"]["threads"] == 1 and hello["properties"]["memory_bytes"] > 1e8
        assert hello["program"] == "fake-worker" and hello["commit"]
        assert "HELLO" not in [frame.type for frame in worker.execute("fake", {})]


def test_list_sends_hello_quickly():
    start = time.monotonic()
    done = subprocess.run([FAKE, "--list"], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    (hello,) = unpack(done.stdout)
    assert done.returncode == 0 and hello.type == "HELLO" and hello.payload["usable"]
    assert time.monotonic() - start < 5


def test_frames_are_sent_in_the_order_of_the_protocol():
    with fake_worker() as worker:
        for pass_name, results in (("timing", ("EPOCH", "MEASUREMENT")), ("activity", ("MEASUREMENT", "KERNEL", "NAME", "ROWS"))):
            frames = worker.execute("fake", {"steps": 300, "sleep_us": 1000}, pass_name)
            kinds = [frame.type for frame in frames]
            assert kinds[0] == "METADATA" and kinds.count("METADATA") == 1
            assert kinds[-1] == "DONE" and sum(kind in END_TYPES for kind in kinds) == 1
            order = [kind for i, kind in enumerate(kinds) if i == 0 or kinds[i - 1] != kind]
            assert order == ["METADATA", "PROGRESS", *results, "DONE"]


def test_heartbeats_carry_the_stage_and_the_last_check_point():
    with fake_worker() as worker:
        worker.request("fake", SLOW)
        frame = worker.read_any()
        while frame.type != "HEARTBEAT" or frame.payload["idle_ms"] >= 1000:  # a heartbeat after a pause of the machine has more
            frame = worker.read_any()
        assert frame.payload["stage"] == "epoch"
        assert frame.payload["limit_ms"] > 1000
        worker.cancel()
        worker.until("CANCELLED")
        with pytest.raises(AssertionError):
            worker.read_any(6)  # an idle worker sends none


def test_rows_refer_to_earlier_names():
    with fake_worker() as worker:
        frames = worker.execute("fake", {"steps": 20}, "activity")
        names = payloads(frames, "NAME")
        rows = [row for rows in payloads(frames, "ROWS") for row in rows]
        assert len(rows) == 40
        assert [names[row[3]] for row in rows[:4]] == ["gather", "descend"] * 2
        assert all(row[0] <= row[1] for row in rows)
        assert {row[18:24] for row in rows} == {(worker.process.pid, worker.process.pid, 0, 0, 0, 0)}  # process, thread, ...
        assert measurements(frames)["completeness_ratio"] == 1


def test_a_launch_with_timestamps_has_phases():
    with fake_worker() as worker:
        frames = worker.execute("fake", {"steps": 20, "whole": True}, "activity")
        names, (launch, *phases) = payloads(frames, "NAME"), [row for rows in payloads(frames, "ROWS") for row in rows]
        expected = [(name, step) for step in (1, 2, 3, 4) for name in ("gather", "descend")]
        assert [(names[row[3]], row[7]) for row in phases] == expected
        assert all(launch[0] <= row[0] <= row[1] <= launch[1] and row[4:7] == launch[4:7] for row in phases)
        fields = ("ordinal", "position", "name", "phase", "steps", "blocks")
        assert [tuple(phase[field] for field in fields) for phase in payloads(frames, "PHASE")] == [
            (0, 0, "gather", "data", 4, 2), (0, 1, "descend", "optimizer", 4, 2)]
        assert measurements(frames)["phase_clock_error_us"] >= 0
        plain = worker.execute("fake", {"steps": 20}, "activity")
        assert not payloads(plain, "PHASE") and "phase_clock_error_us" not in measurements(plain)


def test_the_same_seed_gives_the_same_bits():
    with fake_worker() as worker:
        first, second = (payloads(worker.execute("fake", {"epochs": 3}), "EPOCH") for _ in range(2))
        assert [e["train_loss"] for e in first] == [e["train_loss"] for e in second]
        assert len({e["train_loss"] for e in first}) == 3  # it trains; the warm-up epoch has the loss of the first measured one


def test_cancelling_in_the_middle_of_an_epoch():
    with fake_worker() as worker:
        for _ in range(2):
            worker.request("fake", SLOW)
            worker.until("PROGRESS")
            time.sleep(0.3)
            start = time.monotonic()
            worker.cancel()
            frames = worker.until(*END_TYPES)
            assert frames[-1].type == "CANCELLED" and time.monotonic() - start < 1
            assert not payloads(frames, "EPOCH")
        assert worker.execute("fake", {})[-1].type == "DONE"


def test_a_late_cancel_does_not_touch_the_next_request():
    with fake_worker() as worker:
        assert worker.execute("fake", {})[-1].type == "DONE"
        worker.cancel()
        assert worker.execute("fake", {})[-1].type == "DONE"


def test_release_is_acknowledged_between_requests():
    with fake_worker() as worker:
        for _ in range(2):
            assert [frame.type for frame in worker.release()] == ["RELEASED"]
            assert worker.execute("fake", {})[-1].type == "DONE"


@pytest.mark.parametrize("busy", (False, True))
def test_the_worker_exits_at_end_of_file(busy):
    with fake_worker() as worker:
        if busy:
            worker.request("fake", SLOW)
            worker.until("PROGRESS")
        start = time.monotonic()
        assert worker.end() == 0
        assert time.monotonic() - start < 3  # a sanitizer needs a second to exit


def test_output_of_an_engine_goes_to_standard_error():
    with fake_worker() as worker:
        frames = worker.execute("fake", {"prints": True, "steps": 10, "epochs": 1, "warmup": 0})
        assert frames[-1].type == "DONE" and len(payloads(frames, "EPOCH")) == 1
        worker.end()
        assert worker.process.stderr.read().count(b"not a frame\n") == 11  # ten steps, and the one in which launches are counted


def test_progress_is_sent_at_most_five_times_a_second():
    with fake_worker() as worker:
        start = time.monotonic()
        frames = worker.execute("fake", {"steps": 1500, "sleep_us": 600, "epochs": 1, "warmup": 0})
        seconds = time.monotonic() - start
        progress = payloads(frames, "PROGRESS")
        assert 2 <= len(progress) <= 2 + 5 * seconds
        steps = [p["step"] for p in progress if p["phase"] == "epoch" and p["step"] >= 0]
        assert steps == sorted(steps) and all(p["steps"] == 1500 for p in progress if p["step"] >= 0)


@pytest.mark.parametrize("workload, params, pointer", (
    ("nothing", {}, "/workload"), ("fake", {"steps": 100000}, "/steps"), ("fake", {"wings": 2}, "/wings"),
    ("fake", {"engine": "none"}, "/engine"), ("fake", {"steps": "many"}, "/steps")))
def test_a_bad_request_fails_and_the_next_is_served(workload, params, pointer):
    with fake_worker() as worker:
        (failed,) = worker.execute(workload, params)
        assert failed.type == "FAILED" and failed.payload["domain"] == "input"
        assert failed.payload["message"].endswith(f" (at {pointer})")
        assert worker.execute("fake", {})[-1].type == "DONE"


def test_a_failed_launch_has_no_results_and_the_next_request_is_served():
    with fake_worker() as worker:
        frames = worker.execute("fake", {"fail_at": 7, "steps": 5, "epochs": 2, "warmup": 0})  # in the second epoch
        assert frames[-1].type == "FAILED" and "gather: the launch broke" in frames[-1].payload["message"]
        assert not payloads(frames, "EPOCH") and not payloads(frames, "MEASUREMENT")
        assert worker.execute("fake", {})[-1].type == "DONE"


def test_counters_are_unavailable_with_a_reason():
    with fake_worker("profiled") as worker:
        frames = worker.execute("fake", {}, "counters")
        assert [frame.type for frame in frames if frame.type != "PROGRESS"] == ["METADATA", "UNAVAILABLE"]
        assert "no hardware counters" in frames[-1].payload["message"]


def test_a_role_refuses_other_passes():
    with fake_worker("unprofiled") as worker:
        assert worker.execute("fake", {}, "activity")[-1].type == "FAILED"
        assert worker.execute("fake", {}, "timing")[-1].type == "DONE"
    with fake_worker("profiled") as worker:
        assert worker.execute("fake", {}, "timing")[-1].type == "FAILED"


@pytest.mark.parametrize("data", (
    b"GET / HTTP/1.1\r\n\r\n", pack("DONE"), HEADER.pack(b"RLFW", VERSION, TYPES.index("REQUEST"), 0, 1 << 30),
    HEADER.pack(b"RLFW", VERSION + 1, TYPES.index("CANCEL"), 0, 0), pack("REQUEST", b"{}"), pack("REQUEST", b"not JSON")))
def test_the_worker_exits_on_an_invalid_frame(data):
    with fake_worker() as worker:
        worker.write(data)
        assert worker.process.wait(60) == 5
        assert worker.process.stderr.read()


@pytest.mark.parametrize("data", (
    pack("REQUEST", b'{"workload":"fake","params":{},"pass":"timing","opening_overlapped":false}'), pack("RELEASE")))
def test_the_worker_exits_on_a_concurrent_command(data):
    with fake_worker() as worker:
        worker.request("fake", SLOW)
        worker.until("PROGRESS")
        worker.write(data)
        assert worker.process.wait(60) == 5


def test_a_kill_in_a_launch_ends_the_worker():
    with fake_worker() as worker:
        worker.request("fake", {"die_at": 3})
        assert worker.process.wait(60) == -signal.SIGKILL


def test_sigint_is_ignored():
    with fake_worker() as worker:
        worker.process.send_signal(signal.SIGINT)
        assert worker.execute("fake", {})[-1].type == "DONE"


def test_a_waiting_worker_opens_the_device_after_an_open_frame():
    with Worker(FAKE, "--device", "cpu", "--role", "any", "--wait", hello=False) as worker:
        ready, _, _ = select.select([worker.process.stdout], [], [], 0.3)
        assert not ready
        worker.write(pack("OPEN"))
        assert worker.read().type == "HELLO" and worker.execute("fake", {})[-1].type == "DONE"
        worker.write(pack("OPEN"))
        assert worker.process.wait(60) == 5
    with Worker(FAKE, "--device", "cpu", "--role", "any", "--wait", hello=False) as worker:
        worker.write(pack("RELEASE"))
        assert worker.process.wait(60) == 5


@pytest.mark.parametrize("arguments", (
    (), ("--role", "any"), ("--device", "cpu", "--list"), ("--device", "cpu", "--role", "none"), ("--device", "gpu0"),
    ("--device", "cpu1"), ("--device", "cpu", "more"), ("--wings",)))
def test_wrong_arguments_are_refused_on_standard_error(arguments):
    done = subprocess.run([FAKE, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    assert done.returncode == 2 and done.stdout == b"" and done.stderr


@pytest.mark.parametrize("level", ("debug", "info"))
def test_the_log_has_the_stages_of_a_request_at_level_debug(level):
    with Worker(FAKE, "--device", "cpu", env={"ROOFLINED_LOG_LEVEL": level}) as worker:
        for _ in range(2):  # the lines of the first request are written before the second begins
            worker.execute("fake", {})
        worker.end()
        lines = [line.split(": ", 1)[1] for line in worker.process.stderr.read().decode().splitlines()]
    stages = [line for line in lines if line.startswith("stage ") or line in ("the instance is open", "the results are sent")]
    if level == "info":
        assert stages == []
    else:
        first = stages[:stages.index("stage open", 1)]
        assert first[:2] == ["stage open", "the instance is open"] and first[-1] == "the results are sent"


def test_an_unusable_device_has_a_reason():
    with Worker(FAKE, "--device", "cpu", env={"ROOFLINED_THREADS": "none"}) as worker:
        assert not worker.hello.payload["usable"]
        assert "ROOFLINED_THREADS" in worker.hello.payload["reason"]
        assert worker.process.wait(60) == 3
