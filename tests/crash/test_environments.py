"""Tests the daemon in faulty environments: workers that die or hang, full disks, unusable folders and files, changed clocks."""

import concurrent.futures
import contextlib
import ctypes
import gzip
import os
import re
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import pytest
import requests
from digits import idx, mnist
from harness import BUILD, PROGRAM, SOURCE, STOP_LIMIT_S, assert_sound, endless, job, wait_until

# --- workers --------------------------------------------------------------------------------------------------------


def kill_worker_of(daemon, number, except_pids=()):
    """Kills a worker during job `number`, but none of except_pids. Returns the worker's process id."""
    daemon.wait_for_progress(number)
    worker = wait_until(lambda: [pid for pid in daemon.processes() if pid not in except_pids], 60, "a worker")[0]
    os.kill(worker, signal.SIGKILL)
    return worker


def test_a_job_survives_one_death_of_its_worker(start):
    daemon = start()
    number = daemon.submit(job(epochs=15, max_images=640))
    kill_worker_of(daemon, number)
    ended_job = daemon.wait_for(number, seconds=300)
    assert ended_job["state"] == "completed", ended_job
    assert daemon.rows("SELECT worker_deaths FROM jobs WHERE id = ?", number) == [(1,)]
    assert daemon.rows("SELECT count(*) FROM events WHERE type = 'pass' AND data LIKE '%SIGKILL%'") == [(1,)]
    assert_sound(daemon)


def test_a_second_death_fails_the_job(start):
    daemon = start()
    number = daemon.submit(endless())
    first = kill_worker_of(daemon, number)
    kill_worker_of(daemon, number, except_pids=(first,))
    ended_job = daemon.wait_for(number)
    assert ended_job["state"] == "failed"
    assert "the worker was killed by SIGKILL" in ended_job["problem"]["message"], ended_job["problem"]
    daemon.run()
    assert_sound(daemon)


def test_a_hung_worker_is_killed_at_the_deadline(start):
    daemon = start()
    number = daemon.submit(endless(deadline_s=10))
    daemon.wait_for_progress(number)
    worker = daemon.worker()
    os.kill(worker, signal.SIGSTOP)
    ended_job = daemon.wait_for(number)
    assert ended_job["state"] == "failed"
    assert "deadline" in ended_job["problem"]["message"]
    daemon.run()
    assert worker not in daemon.processes()


def test_a_stopped_worker_is_noticed_by_its_missing_heartbeats(start):
    """The daemon notices the stopped worker after 30 s, long before the job's deadline of an hour. The pass then runs again."""
    daemon = start()
    number = daemon.submit(endless())
    daemon.wait_for_progress(number)
    worker = daemon.worker()
    os.kill(worker, signal.SIGSTOP)
    wait_until(lambda: daemon.job(number)["worker_deaths"] == 1, 120, "the death of the worker")
    ((event,),) = daemon.rows("SELECT data FROM events WHERE type = 'pass'")
    assert 'it sent no frame for 30 s; its last heartbeat was in the stage' in event
    assert worker not in daemon.processes()
    assert daemon.call("DELETE", f"/jobs/{number}").status_code == 202


def stop_main_thread(pid):
    """Stops the main thread of a process, but none of its other threads, until the process ends. It is not stopped while it
    writes a frame: then it would hold the lock that the heartbeat thread needs."""
    seize, interrupt, resume = 0x4206, 0x4207, 7
    wait_for_threads = 0x40000000  # __WALL
    computing = ("-1", {"x86_64": "202", "aarch64": "98"}[os.uname().machine])  # no system call, or futex
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def trace(request):
        if libc.ptrace(request, pid, None, None) != 0:
            pytest.skip(f"can't trace a process: {os.strerror(ctypes.get_errno())}")

    def stops_computing():
        trace(interrupt)
        os.waitpid(pid, wait_for_threads)
        with open(f"/proc/{pid}/syscall", encoding="ascii") as system_call:
            if system_call.read().split()[0] in computing:
                return True
        trace(resume)
        return False

    trace(seize)
    wait_until(stops_computing, 10, "the main thread to compute")

    def reap():  # the kernel reports the exit to the daemon only after the tracer has waited for it
        while os.WIFSTOPPED(os.waitpid(pid, wait_for_threads)[1]):
            pass

    threading.Thread(target=reap, daemon=True).start()


def test_a_hung_main_thread_is_noticed(start):
    """The worker's heartbeat thread still runs. The daemon ends the worker, and the pass runs again."""
    daemon = start()
    number = daemon.submit(endless())
    daemon.wait_for_progress(number, "epoch")
    worker = daemon.worker()
    stop_main_thread(worker)
    begin = time.monotonic()
    wait_until(lambda: daemon.job(number)["worker_deaths"] == 1, 120, "the death of the worker")
    assert time.monotonic() - begin > 25
    ((event,),) = daemon.rows("SELECT data FROM events WHERE type = 'pass'")
    assert 'its main thread hangs in the stage \\"epoch\\": no progress for' in event, event
    assert daemon.call("DELETE", f"/jobs/{number}").status_code == 202


def test_a_hung_worker_is_killed_by_a_cancel(start):
    daemon = start()
    number = daemon.submit(endless())
    daemon.wait_for_progress(number)
    os.kill(daemon.worker(), signal.SIGSTOP)
    assert daemon.call("DELETE", f"/jobs/{number}").status_code in (200, 202, 204)
    daemon.run()  # the next job gets a new worker
    assert daemon.job(number)["state"] == "cancelled"


# --- stopping ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_takes_at_most_two_seconds_and_the_job_is_resumed(start, number):
    first = start()
    resumed = first.submit(job(epochs=40, max_images=640))
    waiting = first.submit(job())
    first.wait_for_progress(resumed)
    status, duration_s = first.signal(number)
    assert status == 0
    assert duration_s < STOP_LIMIT_S
    assert first.rows("SELECT state FROM jobs WHERE id = ?", resumed) == [("interrupted",)]
    assert not first.processes()
    second = start()
    for job_id in (resumed, waiting):
        assert second.wait_for(job_id, seconds=300)["state"] == "completed"
    assert_sound(second)


def test_a_hangup_does_not_stop_the_daemon(start):
    daemon = start()
    for _ in range(2):
        daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "SIGHUP: ignored" in daemon.log_text(), 60, "the log line")
    daemon.run()
    assert daemon.stop()[0] == 0


def test_a_large_deletion_does_not_delay_a_stop(start):
    first = start()
    first.run(passes=["activity"])
    first.stop()
    with sqlite3.connect(first.state / "rooflined.db") as base:
        base.execute("UPDATE passes SET finished_ns = finished_ns - 10 * 86400000000000")
        base.execute('''WITH RECURSIVE n(i) AS (SELECT 1000000 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000)
            INSERT INTO activity SELECT (SELECT min(id) FROM passes WHERE activity_kept = 1), 0, i, i, 0, 0, 0, 0 FROM n''')
    base.close()
    second = start("--activity-days", "1")
    wait_until(lambda: re.search(r'removed_rows_total{what="activity"} [1-9]', second.call("GET", "/metrics").text), 120,
               "retention")
    status, duration_s = second.stop()
    assert status == 0
    assert duration_s < STOP_LIMIT_S
    assert second.rows("SELECT count(*) > 0 FROM activity") == [(1,)], "the deletion was complete before the stop"


def test_event_streams_do_not_delay_a_stop(start):
    daemon = start()
    number = daemon.submit(endless())
    streams = [daemon.call("GET", f"/jobs/{number}/events", stream=True) for _ in range(5)]
    assert all(stream.status_code == 200 for stream in streams)
    status, duration_s = daemon.stop()
    assert status == 0
    assert duration_s < STOP_LIMIT_S


def test_systemd_is_notified(start, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(60)
        daemon = start(env={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"})
        ready = systemd.recv(4096).decode()
        assert "READY=1" in ready and f"STATUS=listening on {daemon.url}" in ready
        assert [systemd.recv(4096) for _ in range(2)] == [b"WATCHDOG=1"] * 2
        daemon.process.send_signal(signal.SIGTERM)
        message = systemd.recv(4096)
        while message == b"WATCHDOG=1":
            message = systemd.recv(4096)
        assert message == b"STOPPING=1"
        assert daemon.process.wait(60) == 0


def test_the_watchdog_is_notified_while_clients_hold_connections(start, tmp_path):
    """The daemon closes waiting connections, so that the probe of the watchdog and other clients are served."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd, contextlib.ExitStack() as clients:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(60)
        daemon = start("--connection-limit", "4", "--request-timeout-s", "600",
                       env={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"})
        port = int(daemon.url.rpartition(":")[2])
        idle = [clients.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(8)]
        assert requests.get(f"{daemon.url}/healthz", timeout=60).status_code == 200
        message = b""
        while message != b"WATCHDOG=1":  # skips READY=1
            message = systemd.recv(4096)
        assert [systemd.recv(4096) for _ in range(10)] == [b"WATCHDOG=1"] * 10
        for client in idle:
            client.close()
        assert requests.get(f"{daemon.url}/healthz", timeout=60).status_code == 200


@contextlib.contextmanager
def paused_job(daemon):
    """Submits a job, yields its number while its worker is stopped, then continues the worker. What the block changes therefore
    takes effect before the job ends, however slow this program is."""
    number = daemon.submit(job(epochs=15, max_images=64))
    worker = daemon.worker()
    os.kill(worker, signal.SIGSTOP)
    try:
        yield number
    finally:
        os.kill(worker, signal.SIGCONT)


@contextlib.contextmanager
def storing_job(daemon):
    """Yields the number of a job whose results wait to be stored because another program holds the lock."""
    with contextlib.ExitStack() as lock:
        with paused_job(daemon) as number:
            lock.enter_context(locked_database(daemon))
        daemon.wait_for(number, "storing")
        yield number


@contextlib.contextmanager
def locked_database(daemon, mode="NORMAL"):
    """Holds the write lock of the database until the end of the block, as another program would. In the mode EXCLUSIVE, no other
    program can read either."""
    with contextlib.closing(sqlite3.connect(daemon.state / "rooflined.db", isolation_level=None)) as base:
        base.execute(f"PRAGMA locking_mode = {mode}")
        base.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            base.execute("ROLLBACK")


def test_the_watchdog_is_notified_while_requests_wait_for_a_lock(start, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd, concurrent.futures.ThreadPoolExecutor(12) as pool:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(60)
        daemon = start(env={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"})
        systemd.recv(4096)  # READY=1
        with locked_database(daemon):
            posts = [pool.submit(requests.post, f"{daemon.url}/jobs", json=job(), timeout=120) for _ in range(36)]
            assert [systemd.recv(4096) for _ in range(10)] == [b"WATCHDOG=1"] * 10
            assert {post.result().status_code for post in posts} == {503}
        assert "the watchdog was not notified" not in daemon.log_text()


def test_a_stop_takes_two_seconds_while_another_program_holds_the_lock(start):
    first = start()
    number = first.submit(endless())
    first.wait_for_progress(number)
    with locked_database(first):
        status, duration_s = first.stop()
    assert status == 0
    assert duration_s < STOP_LIMIT_S
    assert not first.processes()
    second = start()
    assert second.wait_for(number, "running")["worker_deaths"] == 0
    assert_sound(second)


@pytest.mark.parametrize("mode", ["NORMAL", "EXCLUSIVE"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_a_start_that_waits_for_the_lock(start, mode, number):
    first = start()
    first.stop()
    with locked_database(first, mode):
        second = start(wait=False)
        time.sleep(1)
        assert second.process.poll() is None, "the start does not wait for the lock"
        status, duration_s = second.signal(number)
    assert status == 0 and duration_s < 1
    assert "stopped during the start: " in second.log_text() and "holds the database locked" in second.log_text()
    third = start()
    assert third.run()["state"] == "completed"


def test_a_start_without_a_stop_waits_five_seconds_for_the_lock(start):
    first = start()
    first.stop()
    with locked_database(first, "EXCLUSIVE"):
        second = start(wait=False)
        assert second.process.wait(60) == 1
    assert "stopped" not in second.log_text() and "holds the database locked" in second.log_text()


def test_results_wait_for_the_lock_of_another_program(start):
    """A finished pass is stored after the lock is released, however long it was held."""
    daemon = start()
    with storing_job(daemon) as number:
        ready = daemon.call("GET", "/readyz")
        assert (ready.status_code, ready.json()["code"]) == (503, "storage_locked")
        assert f"the results of job {number} wait to be stored" in ready.json()["detail"]
        assert [item["state"] for item in daemon.call("GET", "/jobs?state=running").json()["items"]] == ["storing"]
        time.sleep(8)
        assert daemon.job(number)["state"] == "storing"
    ended_job = daemon.wait_for(number)
    assert ended_job["state"] == "completed" and ended_job["worker_deaths"] == 0
    assert daemon.call("GET", "/readyz").status_code == 200
    assert_sound(daemon)


def stop_while_storing(start, *options, state=None):
    """Stops a daemon whose job is storing because another program holds the lock. Returns (the stopped daemon, job number)."""
    daemon = start(*options, state=state)
    with storing_job(daemon) as number:
        status, duration_s = daemon.stop()
    assert status == 0
    assert duration_s < STOP_LIMIT_S
    return daemon, number


def test_results_survive_a_stop_while_another_program_holds_the_lock(start):
    first, number = stop_while_storing(start)
    assert first.rows("SELECT count(*) FROM epochs") == [(0,)]
    second = start()
    ended_job = second.job(number)
    assert (ended_job["state"], ended_job["daemon_deaths"], ended_job["worker_deaths"]) == ("completed", 0, 0)
    assert "the results of its timing pass are stored" in second.log_text()
    assert not second.processes(), "the pass ran again"
    assert_sound(second)


def wait_for_spill_file(daemon):
    """Waits until the spill file has results and, after them, the checksum, which begins at byte 88 of the header."""
    def is_complete():
        header = (daemon.state / "spill-cpu").read_bytes()[:96]
        return header[:7] == b"RLSPILL" and header[88:] != bytes(8)

    wait_until(is_complete, 60, "a spill file")


def rows_worker(folder, rows):
    """Returns the options and the environment of a daemon whose worker (fake_worker.c) sends this number of activity rows: the
    first of them at once, the others when the returned file exists."""
    workers, gate = folder / "workers", folder / "gate"
    workers.mkdir()
    (workers / "rooflined-worker-cpu").symlink_to(BUILD / "tests" / "fake_worker")
    return ("--workers", str(workers)), {"FAKE_WORKER": "rows-gated", "FAKE_ROWS": str(rows), "FAKE_GATE": str(gate)}, gate


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_finished_pass_whose_rows_are_partly_stored_survives(start, tmp_path, end):
    """The daemon stores slices of the rows while the worker sends them. Then another program takes the lock, the pass ends, and
    the daemon ends. The next start stores the rest and does not run the pass again."""
    rows = 150000
    options, env, gate = rows_worker(tmp_path, rows)
    daemon = start(*options, env=env)
    number = daemon.submit(job(passes=["activity"]))
    wait_until(lambda: daemon.rows("SELECT max(activity_stored) FROM passes")[0][0], 60, "a stored slice")
    with locked_database(daemon):
        gate.touch()
        daemon.wait_for(number, "storing")
        [(stored,)] = daemon.rows("SELECT max(activity_stored) FROM passes")
        if end == "stop":
            status, duration_s = daemon.stop()
            assert status == 0 and duration_s < STOP_LIMIT_S
        else:
            wait_for_spill_file(daemon)
            daemon.kill()
    assert 0 < stored < rows
    second = start(*options, env=env)
    assert second.wait_for(number)["state"] == "completed"
    assert not second.processes(), "the pass ran again"
    assert second.rows("SELECT count(*), count(DISTINCT start_ns) FROM v_activity") == [(rows, rows)]
    assert_sound(second)


def test_results_survive_a_kill_while_another_program_holds_the_lock(start):
    daemon = start()
    with storing_job(daemon) as number:
        wait_for_spill_file(daemon)
        daemon.kill()
    second = start()
    assert second.job(number)["state"] == "completed"
    assert_sound(second)


def test_a_start_under_the_lock_of_another_program_fails_with_the_reason(start):
    """The start waits 5 s for the lock and then fails; systemd would repeat it after 2 s. A start after the lock was released
    stores the spilled results."""
    first, number = stop_while_storing(start)
    with locked_database(first):
        begin = time.monotonic()
        status, output = refused_start("--state", str(first.state), "--devices", "cpu")
        duration_s = time.monotonic() - begin
    assert status == 1 and 5 <= duration_s < 20
    assert "another program holds the database locked: end it, then try again" in output
    assert start().job(number)["state"] == "completed"


def test_retention_is_repeated_soon_after_a_lock(start):
    daemon = start("--job-days", "1")
    with contextlib.closing(sqlite3.connect(daemon.state / "rooflined.db")) as base:
        base.execute("INSERT INTO jobs (kind, device, state, request, deadline_s, created_ns, started_ns, finished_ns) "
                     "VALUES ('kernel', 'cpu', 'completed', '{}', 60, 1, 1, 1)")
        base.commit()
    with locked_database(daemon):
        wait_until(lambda: "can't clean up the database: " in daemon.log_text(), 120, "the first clean-up, after 10 s")
    wait_until(lambda: daemon.rows("SELECT count(*) FROM jobs") == [(0,)], 60, "the deletion of a job of 1970")


def test_a_damaged_spill_file_is_detected_and_the_pass_runs_again(start):
    first, number = stop_while_storing(start)
    with open(first.state / "spill-cpu", "r+b") as file:
        file.seek(5000)
        byte = file.read(1)
        file.seek(5000)
        file.write(bytes([byte[0] ^ 1]))
    second = start()
    assert "its checksum is wrong; its pass runs again" in second.log_text()
    assert second.wait_for(number)["state"] == "completed"
    assert_sound(second)


# --- folders and disks --------------------------------------------------------------------------------------------------


def refused_start(*options, env=None):
    """Starts a daemon that must refuse to start; returns (exit status, output)."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ROOFLINED_")}
    ended = subprocess.run([str(PROGRAM), "--port", "0", *options], capture_output=True, text=True, timeout=120,
                           env={**clean, **(env or {})})
    assert "listening" not in ended.stdout
    return ended.returncode, ended.stderr


def test_a_second_daemon_on_the_same_folder_is_refused(start):
    daemon = start()
    status, output = refused_start("--state", str(daemon.state))
    assert status == 1
    assert str(daemon.state) in output and str(daemon.process.pid) in output
    daemon.run()
    (daemon.state / "lock").unlink()
    status, output = refused_start("--state", str(daemon.state))
    assert status == 1 and f"{daemon.state} is in use" in output
    daemon.run()


def test_an_unwritable_state_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    status, output = refused_start("--state", str(tmp_path / "file" / "state"))
    assert status == 1
    assert str(tmp_path / "file" / "state") in output
    if os.geteuid() != 0:  # root may write anywhere
        (tmp_path / "locked").mkdir(mode=0o500)
        status, output = refused_start("--state", str(tmp_path / "locked" / "state"))
        assert status == 1 and "locked" in output


@pytest.fixture
def small_disk(request, tmp_path):
    folder, size = tmp_path / "disk", getattr(request, "param", "4m")
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"can't mount a small tmpfs: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk):
    """Appends to the file `filler` until the disk is full."""
    with open(disk / "filler", "ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def test_a_full_disk_is_reported_and_survived(start, small_disk):
    daemon = start(state=small_disk / "state")
    daemon.run()
    fill(small_disk)
    refusals = []
    for _ in range(300):  # the database file may still have free pages
        answer = daemon.call("POST", "/jobs", json=endless())
        if answer.status_code != 202:
            refusals.append(answer)
            break
    assert refusals, "a full disk accepted 300 jobs"
    assert (refusals[0].status_code, refusals[0].json()["code"]) == (503, "storage_full"), refusals[0].text
    assert refusals[0].headers["Content-Type"].startswith("application/problem+json")
    assert daemon.call("GET", "/healthz").status_code == 200
    assert_not_ready(daemon, "storage_full")
    (small_disk / "filler").unlink()
    assert daemon.call("GET", "/readyz").status_code == 200
    listed = daemon.call("GET", "/jobs?limit=500").json()["items"]
    for item in listed:
        if item["state"] in ("queued", "running"):
            assert daemon.call("DELETE", f"/jobs/{item['id']}").status_code in (200, 202, 204)
    daemon.run()
    assert_sound(daemon)
    daemon.stop()


def assert_not_ready(daemon, code):
    """Checks that /readyz answers 503 with this code. Returns its detail."""
    ready = daemon.call("GET", "/readyz")
    assert (ready.status_code, ready.json().get("code")) == (503, code), ready.text
    return ready.json()["detail"]


def test_a_daemon_on_a_full_disk_is_not_ready_until_there_is_space(start, small_disk):
    """Also before a job was refused: the pages that are still free in the database hide the full disk from the first jobs."""
    daemon = start(state=small_disk / "state")
    assert daemon.call("GET", "/readyz").status_code == 200
    files = set(os.listdir(small_disk / "state"))
    fill(small_disk)
    assert "Free space in the file system of the daemon's state folder" in assert_not_ready(daemon, "storage_full")
    time.sleep(2)  # the idle device asks for a job every second, which writes nothing
    assert_not_ready(daemon, "storage_full")
    assert daemon.call("GET", "/healthz").status_code == 200
    (small_disk / "filler").unlink()
    assert daemon.call("GET", "/readyz").status_code == 200
    assert set(os.listdir(small_disk / "state")) == files
    daemon.stop()


def test_a_daemon_whose_files_reached_the_size_limit_is_not_ready(start, tmp_path):
    """RLIMIT_FSIZE: the daemon survives the write that fails, and is ready after a write that succeeds."""
    daemon = start(state=tmp_path / "state")
    daemon.run()
    unlimited = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (1, unlimited[1]))
    assert daemon.call("GET", "/readyz").status_code == 200
    assert daemon.call("POST", "/jobs", json=endless()).status_code == 500
    assert "the last write to the database failed" in assert_not_ready(daemon, "unavailable")
    time.sleep(2)  # the idle device asks for a job every second; this transaction succeeds, but writes nothing
    assert_not_ready(daemon, "unavailable")
    assert daemon.call("GET", "/healthz").status_code == 200
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, unlimited)
    assert daemon.call("POST", "/jobs", json=endless()).status_code == 202
    assert daemon.call("GET", "/readyz").status_code == 200
    daemon.stop()


def test_results_wait_for_free_disk_space(start, small_disk):
    """Results also survive a stop, because the blocks of the spill file were allocated when the daemon started."""
    first = start("--spill-bytes", "1000000", state=small_disk / "state")
    with paused_job(first) as number:
        fill(small_disk)
    first.wait_for(number, "storing")
    time.sleep(8)
    ready = first.call("GET", "/readyz")
    assert (ready.status_code, ready.json()["code"]) == (503, "storage_full")
    assert first.stop()[0] == 0
    (small_disk / "filler").unlink()
    second = start("--spill-bytes", "1000000", state=small_disk / "state")
    assert second.job(number)["state"] == "completed"
    assert not second.processes(), "the pass ran again"
    assert_sound(second)
    second.stop()


@pytest.mark.parametrize("small_disk", ["32m"], indirect=True)
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_pass_whose_rows_fill_the_disk_survives(start, small_disk, tmp_path, end):
    """The first slices are stored, and the spill file takes the rest. Then there is space for a few more slices, but not for all,
    and the daemon ends. A start on the full disk fails and stores nothing; a start on a disk with space stores the rest."""
    rows = 150000
    options, env, gate = rows_worker(tmp_path, rows)
    options += ("--spill-bytes", "20000000")
    first = start(*options, state=small_disk / "state", env=env)
    stored_rows = lambda: first.rows("SELECT count(*) FROM activity")[0][0]  # noqa: E731
    number = first.submit(job(passes=["activity"]))
    wait_until(stored_rows, 60, "a stored slice")
    fill(small_disk)
    gate.touch()
    first.wait_for(number, "storing")
    wait_for_spill_file(first)
    before = stored_rows()
    os.truncate(small_disk / "filler", (small_disk / "filler").stat().st_size - (1 << 20))
    wait_until(lambda: stored_rows() > before, 60, "another stored slice")
    fill(small_disk)
    assert 0 < before < stored_rows() < rows
    assert first.job(number)["state"] == "storing"
    first.stop() if end == "stop" else first.kill()
    status, output = refused_start("--state", str(first.state), "--devices", "cpu", *options, env=env)
    assert status == 1 and "the disk is full: free some space, then try again" in output
    (small_disk / "filler").unlink()
    second = start(*options, state=small_disk / "state", env=env)
    assert second.job(number)["state"] == "completed"
    assert not second.processes(), "the pass ran again"
    assert second.rows("SELECT count(*), count(DISTINCT start_ns) FROM v_activity") == [(rows, rows)]
    assert_sound(second)
    second.stop()


def test_a_start_on_a_full_disk_fails_with_the_reason(start, small_disk):
    first = start("--spill-bytes", "1000000", state=small_disk / "state")
    number = first.submit(job(epochs=15, max_images=640))
    first.wait_for_progress(number)
    fill(small_disk)
    first.wait_for(number, "storing")
    assert first.stop()[0] == 0
    status, output = refused_start("--state", str(first.state), "--devices", "cpu", "--spill-bytes", "1000000")
    assert status == 1 and "the disk is full: free some space, then try again" in output
    (small_disk / "filler").unlink()
    second = start("--spill-bytes", "1000000", state=small_disk / "state")
    assert second.job(number)["state"] == "completed"
    second.stop()


def test_a_disk_without_space_for_spill_files_is_survived(start, small_disk):
    daemon = start(state=small_disk / "state")  # 64 MiB do not fit
    assert "wait in memory only" in daemon.log_text()
    number = daemon.submit(job(epochs=15, max_images=640))
    daemon.wait_for_progress(number)
    fill(small_disk)
    daemon.wait_for(number, "storing")
    (small_disk / "filler").unlink()
    assert daemon.wait_for(number)["state"] == "completed"
    assert_sound(daemon)
    daemon.stop()


# --- the data set ---------------------------------------------------------------------------------------------------------


def truncate(folder):
    file = folder / "train-images-idx3-ubyte"
    file.write_bytes(file.read_bytes()[:-1])


def corrupt_magic(folder):
    file = folder / "train-labels-idx1-ubyte"
    file.write_bytes(b"\0\0\7\1" + file.read_bytes()[4:])


def mismatch_counts(folder):
    (folder / "train-labels-idx1-ubyte").write_bytes(idx((2047,), bytes(2047)))


def cut_gzip(folder):
    file = folder / "train-images-idx3-ubyte"
    packed = gzip.compress(file.read_bytes())
    file.unlink()
    (folder / "train-images-idx3-ubyte.gz").write_bytes(packed[: len(packed) // 2])


def remove(folder):
    (folder / "t10k-images-idx3-ubyte").unlink()


def bad_label(folder):
    (folder / "train-labels-idx1-ubyte").write_bytes(idx((2048,), bytes([10] * 2048)))


@pytest.mark.parametrize("damage, name", [
    (truncate, "train-images"), (corrupt_magic, "train-labels"), (mismatch_counts, "train"), (cut_gzip, "train-images"),
    (remove, "t10k-images"), (bad_label, "label")], ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_data_set_fails_its_job(start, tmp_path, damage, name):
    folder = mnist(tmp_path / "mnist")
    damage(folder)
    daemon = start("--mnist-dir", str(folder))
    ended_job = daemon.wait_for(daemon.submit(job(max_images=0)))
    assert ended_job["state"] == "failed", ended_job
    assert name in ended_job["problem"]["message"], ended_job["problem"]
    assert daemon.call("GET", "/healthz").status_code == 200


def test_a_configured_folder_without_files_fails_its_job(start, tmp_path):
    daemon = start("--mnist-dir", str(tmp_path / "unmounted"))
    ended_job = daemon.wait_for(daemon.submit(job(dataset="auto")))
    assert ended_job["state"] == "failed", ended_job
    assert f"{tmp_path}/unmounted, which does not exist" in ended_job["problem"]["message"]
    assert daemon.wait_for(daemon.submit(job(dataset="synthetic")))["state"] == "completed"


def test_a_custom_data_set_is_used(start, tmp_path):
    daemon = start("--mnist-dir", str(mnist(tmp_path / "mnist")))
    daemon.run(max_images=0)
    assert daemon.rows("SELECT dataset FROM runs") == [("custom",)]


# --- clocks ---------------------------------------------------------------------------------------------------------------


def test_a_clock_set_back_changes_no_duration_and_no_order(start, tmp_path):
    shift = tmp_path / "shift"
    shift.write_text("0")
    env = {"LD_PRELOAD": str(BUILD / "tests" / "clock_shift.so"), "CLOCK_SHIFT_FILE": str(shift),
           "ASAN_OPTIONS": "verify_asan_link_order=0"}
    daemon = start(env=env)
    before = daemon.run()
    running = daemon.submit(job(epochs=15, max_images=640, deadline_s=300))
    daemon.wait_for_progress(running)
    shift.write_text(str(-86400))
    assert daemon.wait_for(running, seconds=300)["state"] == "completed"  # the deadline did not move
    after = daemon.run()
    assert after["finished_at"] < before["finished_at"], "the clock was not set back"
    listed = [item["id"] for item in daemon.call("GET", "/jobs").json()["items"]]
    assert listed == sorted(listed, reverse=True), "the list must be in the order of acceptance, not of the clock"
    assert daemon.rows("SELECT count(*) FROM epochs WHERE NOT (host_ms > 0 AND host_ms < 600000)") == [(0,)]
    assert_sound(daemon)
    daemon.stop()
    shift.write_text(str(-2 * 86400))
    restarted = start(env=env)
    restarted.run()
    assert_sound(restarted)


# --- configuration --------------------------------------------------------------------------------------------------------


def test_the_example_configuration_names_every_setting_with_its_default(tmp_path):
    example = (SOURCE / "systemd" / "rooflined.conf").read_text()
    commented = dict(re.findall(r"^;(\w+) =[ ]?(.*)$", example, re.M))
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ROOFLINED_")}

    def effective_settings(text):
        (tmp_path / "conf").write_text(text)
        printed = subprocess.run([str(PROGRAM), "--config", str(tmp_path / "conf"), "--print-config"], capture_output=True,
                                 text=True, check=True, env=clean).stdout
        return re.findall(r"^# (.*)\n(\w+) = (.*)$", printed, re.M)

    assert set(commented) == {name for _, name, _ in effective_settings("")}
    assert effective_settings(re.sub(r"^;", "", example, flags=re.M)) == effective_settings("")
    for summary, name, _ in effective_settings(""):
        assert f"# {summary}\n;{name} =" in example


def test_one_worker_program_is_enough(tmp_path):
    """A GPU host may have only the CUDA worker. Here /bin/false replaces it."""
    shutil.copy2(PROGRAM, tmp_path / "rooflined")
    shutil.copy2("/bin/false", tmp_path / "rooflined-worker-strange")
    process = subprocess.Popen([tmp_path / "rooflined", "--port", "0", "--state", tmp_path / "state"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().split()[-1]
        (device,) = requests.get(f"{url}/devices", timeout=60).json()["items"]
        assert device["id"] == "strange" and device["state"] == "unusable" and "rooflined-worker-strange" in device["reason"]
    finally:
        process.terminate()
        process.wait(60)


def test_an_invalid_configuration_exits_with_78(tmp_path):
    (tmp_path / "conf").write_text("[rooflined]\nport = none\n")
    status, output = refused_start("--config", str(tmp_path / "conf"))
    assert status == 78
    assert f"{tmp_path}/conf:2" in output
    assert refused_start("--no-such-option")[0] == 78
    assert refused_start("--state", str(tmp_path / "state"), "--address", "0.0.0.0")[0] == 78
