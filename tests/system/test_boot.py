"""Tests the installed daemon under systemd, in a system that boots: the unit's start at boot, its sandbox, restarts after a kill
and a hang, and jobs that survive restarts. The tests share one system and run in their order."""
import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import re
import secrets
import shutil
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "client"))
from test_regress import RECORDED, FakeDaemon, submitting  # noqa: E402
from test_regress_daemon import TINY  # noqa: E402

from system_daemon import (BUILD, ENDLESS, SHORT, UNIT, daemon_answers, assert_completes, booted_system, ctl, job,  # noqa: E402
                           main_pid, submit, wait_for)


def install(system):
    """Installs this build in /usr/local and enables the daemon, which then starts at boot."""
    subprocess.run(["cmake", "--install", BUILD, "--prefix", "/usr/local"], env={**os.environ, "DESTDIR": str(system.root)},
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["systemctl", f"--root={system.root}", "enable", UNIT], check=True)


@pytest.fixture(scope="module")
def machine():
    with booted_system(install) as system:
        yield system


def end_main_process(machine, *command):
    """Runs a command that ends the daemon while one job runs and another is queued. The restarted daemon must continue both."""
    running, queued = submit(machine, ENDLESS), submit(machine, SHORT)
    wait_for(machine, running, "running")
    before, restarts = main_pid(machine), int(machine.property(UNIT, "NRestarts"))
    machine.run(*command)
    machine.wait_until(lambda: main_pid(machine) not in (0, before) and daemon_answers(machine), 120, "the daemon restarts")
    assert int(machine.property(UNIT, "NRestarts")) == restarts + 1
    wait_for(machine, running, "running")
    assert job(machine, queued)["state"] == "queued"  # the first job still occupies the device
    ctl(machine, "cancel", str(running))
    wait_for(machine, running, "cancelled")
    assert_completes(machine, queued)


def status_of(machine, pid):
    text = machine.run("cat", f"/proc/{pid}/status").stdout
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def test_systemd_accepts_the_units(machine):
    for unit in ("rooflined.service", "rooflined-regress@mnist.service", "rooflined-regress@mnist.timer",
                 "rooflined-notify@x.service"):
        ended = machine.run("systemd-analyze", "verify", "--man=no", unit, check=False)
        assert (ended.returncode, ended.stdout + ended.stderr) == (0, "")


def test_daemon_starts_at_boot_and_answers(machine):
    machine.wait_until(lambda: daemon_answers(machine), 120, "the daemon answers")
    assert machine.property(UNIT, "ActiveState") == "active"
    assert re.search(r"^cpu +cpu +idle", ctl(machine, "devices"), re.M)
    assert "listens on http://127.0.0.1:8731, state in /var/lib/rooflined" in machine.journal("-o", "cat", "-u", UNIT)
    assert_completes(machine, submit(machine, SHORT))


def test_sandbox_holds(machine):
    status = status_of(machine, main_pid(machine))
    assert all(int(uid) >= 61184 for uid in status["Uid"].split()), "the daemon's user is not dynamic"
    assert [int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")] == [0, 0, 0, 0]
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")
    inside = ("nsenter", "-t", str(main_pid(machine)), "-m", "sh", "-c")
    for folder in ("/usr", "/etc", "/var"):
        assert "Read-only" in machine.run(*inside, f"touch {folder}/x", check=False).stderr
    machine.run("systemd-analyze", "security", "--no-pager", "--threshold=20", UNIT)
    assert (machine.root / "var/lib/private/rooflined/rooflined.db").stat().st_mode & 0o777 == 0o600


def test_killed_daemon_restarts_and_continues_its_jobs(machine):
    end_main_process(machine, "systemctl", "kill", "-s", "KILL", UNIT)  # the daemon and its workers
    assert "Failed with result 'signal'" in machine.journal("-o", "cat", "-u", UNIT)


def test_watchdog_ends_a_hung_daemon(machine):
    drop_in = f"/etc/systemd/system/{UNIT}.d/watchdog.conf"
    machine.write(drop_in, "[Service]\nWatchdogSec=10\n")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", UNIT)
    end_main_process(machine, "systemctl", "kill", "--kill-who=main", "-s", "STOP", UNIT)
    assert "Failed with result 'watchdog'" in machine.journal("-o", "cat", "-u", UNIT)
    (machine.root / drop_in.lstrip("/")).unlink()
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", UNIT)


def test_invalid_configuration_is_not_retried(machine):
    machine.write("/etc/rooflined/rooflined.conf", "[rooflined]\nprot = 1\n")
    assert machine.run("systemctl", "restart", UNIT, check=False).returncode != 0
    assert machine.property(UNIT, "ActiveState") == "failed"
    assert machine.property(UNIT, "ExecMainStatus") == "78"
    assert re.search(r"rooflined\.conf.*prot", machine.journal("-o", "cat", "-u", UNIT))
    time.sleep(3)  # longer than RestartSec
    assert machine.property(UNIT, "ActiveState") == "failed"
    (machine.root / "etc/rooflined/rooflined.conf").unlink()
    machine.run("systemctl", "start", UNIT)
    assert daemon_answers(machine)


def insert_event(database):
    """Inserts an event of a suite run that the webhook has not delivered yet."""
    with contextlib.closing(sqlite3.connect(database)) as base, base:
        base.execute("""INSERT INTO suite_runs (suite, definition, definition_sha256, jobs_sha256, device, state, created_ns,
            planned_jobs) VALUES ('mnist', '{}', '', '{}', 'cpu', 'completed', 1, 1)""")
        base.execute("""INSERT INTO webhook_events (event_id, suite_run_id, type, body, created_ns, next_attempt_ns)
            VALUES ('msg_boot', last_insert_rowid(), 'regression.fixed', '{}', 1, 1)""")


def test_webhook_delivers_from_the_sandbox_with_a_credential(machine):
    """The secret is a file that only root can read."""
    posts = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            posts.append((self.headers, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

    key, drop_in = os.urandom(32), f"/etc/systemd/system/{UNIT}.d/webhook.conf"
    with machine.network():
        server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        machine.write("/etc/rooflined/webhook-secret", f"whsec_{base64.b64encode(key).decode()}\n")
        (machine.root / "etc/rooflined/webhook-secret").chmod(0o600)
        machine.write(drop_in, "[Service]\nLoadCredential=webhook-secret:/etc/rooflined/webhook-secret\n")
        machine.write("/etc/rooflined/rooflined.conf", "[rooflined]\nwebhook_secret_file = webhook-secret\n"
                      f"webhook_url = http://localhost:{server.server_port}/\n")
        machine.run("systemctl", "daemon-reload")
        machine.run("systemctl", "stop", UNIT)
        insert_event(machine.root / "var/lib/private/rooflined/rooflined.db")
        machine.run("systemctl", "start", UNIT)
        machine.wait_until(lambda: posts, 120, "the webhook's post")
        server.shutdown()
    headers, body = posts[0]
    signed = hmac.new(key, b"msg_boot." + headers["webhook-timestamp"].encode() + b"." + body, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(signed).decode()
    for path in ("/etc/rooflined/rooflined.conf", "/etc/rooflined/webhook-secret", drop_in):
        (machine.root / path.lstrip("/")).unlink()
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", UNIT)
    assert daemon_answers(machine)


REGRESS, TIMER = "rooflined-regress@mnist.service", "rooflined-regress@mnist.timer"
URL_DROP_IN = "/etc/systemd/system/rooflined-regress@.service.d/url.conf"


def set_timer(machine, calendar, timer=TIMER):
    """Replaces the time of a timer and starts the timer. While the timer is active, systemd remembers how its service ended."""
    machine.write(f"/etc/systemd/system/{timer}.d/time.conf",
                  f"[Timer]\nOnCalendar=\nOnCalendar={calendar}\nRandomizedDelaySec=0\nAccuracySec=100ms\n")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", timer)


def set_url(machine, url):
    machine.write(URL_DROP_IN, f"[Service]\nEnvironment=ROOFLINED_URL={url}\n")
    machine.run("systemctl", "daemon-reload")


@contextlib.contextmanager
def suite_run_ends_as(machine, **document):
    """Makes the service REGRESS send its requests to a server whose suite run has ended: the server replies with RECORDED,
    changed by `document`. Yields the server."""
    with machine.network():
        server = FakeDaemon(submitting({**RECORDED, **document}))
    try:
        set_url(machine, server.url)
        yield server
    finally:
        server.close()


def entries(machine, *options):
    fields = "PRIORITY,MESSAGE,SUITE,SUITE_RUN_ID,STATE,VERDICT,JOB_ID"
    lines = machine.journal("-o", "json", f"--output-fields={fields}", *options).splitlines()
    return [json.loads(line) for line in lines]


def start_regress(machine, service=REGRESS):
    """Runs the service. Returns its exit status, whether it failed, and the entries of the notification."""
    machine.run("systemctl", "start", service, check=False, seconds=900)
    invocation = machine.property(service, "InvocationID")
    failed = machine.property(service, "ActiveState") == "failed"

    def notified():
        return [entry for entry in entries(machine, "-t", "rooflined-notify") if invocation in entry["MESSAGE"]]

    if failed:
        machine.wait_until(notified, 60, "the notification")
    return int(machine.property(service, "ExecMainStatus")), failed, notified()


def test_timer_is_nightly(machine):
    machine.run("systemctl", "start", TIMER)
    settings = machine.run("systemctl", "show", TIMER).stdout
    assert {"Persistent=yes", "FixedRandomDelay=yes", "RandomizedDelayUSec=1h"} <= set(settings.splitlines())
    assert "OnCalendar=*-*-* 02:00:00 ;" in settings
    set_timer(machine, "2099-01-01")


@pytest.mark.parametrize("state, verdict, status, priority, failed", [
    ("completed", "same", 0, "6", False), ("completed", "slower", 1, "3", True), ("completed", "inconclusive", 5, "4", False),
    ("completed", "incomparable", 6, "4", False), ("cancelled", None, 3, "3", True)])
def test_verdict_of_a_suite_decides_the_service(machine, state, verdict, status, priority, failed):
    jobs = [{"role": "block", "job": number} for number in (41, None, 42)]  # None: retention has deleted the job
    number = secrets.randbelow(10**9)
    with suite_run_ends_as(machine, id=number, state=state, verdict=verdict, reason="Because.", jobs=jobs):
        was_status, was_failed, notices = start_regress(machine)
    assert (was_status, was_failed) == (status, failed)
    (entry,) = entries(machine, f"SUITE_RUN_ID={number}")
    fields = {name: value for name, value in entry.items() if not name.startswith("_")}
    fields["JOB_ID"].sort()
    expected = {"MESSAGE": f"suite mnist, run {number}: {verdict or state}: Because.", "PRIORITY": priority, "SUITE": "mnist",
                "SUITE_RUN_ID": str(number), "STATE": state, "VERDICT": verdict, "JOB_ID": ["41", "42"]}
    assert fields == {name: value for name, value in expected.items() if value is not None}
    assert [notice["PRIORITY"] for notice in notices] == ["3"] * failed
    assert all(notice["MESSAGE"].startswith(f"{REGRESS} failed (exit-code, exit status {status})") for notice in notices)


def test_service_without_daemon_fails(machine):
    set_url(machine, "http://127.0.0.1:9")
    status, failed, notices = start_regress(machine)
    assert (status, failed, len(notices)) == (4, True, 1)


def test_service_sends_the_token_of_its_credential(machine):
    for text, header in ((None, None), ("\n", None), ("secret\n", "Bearer secret")):
        if text is not None:
            machine.write("/etc/rooflined/regress-token", text)
            (machine.root / "etc/rooflined/regress-token").chmod(0o600)
        with suite_run_ends_as(machine, verdict="same") as daemon:
            assert start_regress(machine)[:2] == (0, False)
        assert daemon.tokens == [header, header]
    (machine.root / "etc/rooflined/regress-token").unlink()


def test_timer_starts_the_service(machine):
    machine.run("systemctl", "enable", TIMER)
    with suite_run_ends_as(machine, verdict="slower"):
        before = machine.property(REGRESS, "InvocationID")
        set_timer(machine, "*:*:0/2")
        machine.wait_until(lambda: machine.property(REGRESS, "InvocationID") != before, 120, "the timer starts the service")
        machine.run("systemctl", "disable", "--now", TIMER)
        machine.wait_until(lambda: machine.property(REGRESS, "ActiveState") == "failed", 120, "the service fails")
    assert (machine.root / f"var/lib/systemd/timers/stamp-{TIMER}").exists()  # Persistent= makes this file


FAST_US, SLOW_US, BLOCKS = 500, 5000, 5


def make_worker_slow(machine, delay_us):
    machine.write("/etc/rooflined/slow_us", str(delay_us))


def last_verdict(machine):
    """Returns the fields of the newest journal entry of the suite `tiny`."""
    return entries(machine, "SUITE=tiny")[-1]


def test_a_slower_worker_fails_the_nightly_suite(machine):
    """The timer starts a suite, which the installed daemon runs on the CPU. Then the daemon's worker becomes slower, and the
    suite runs again. A run that is inconclusive, which happens on a busy machine, is repeated."""
    service, timer = "rooflined-regress@tiny.service", "rooflined-regress@tiny.timer"
    drop_in = f"/etc/systemd/system/{UNIT}.d/slow.conf"
    shutil.copy(BUILD / "tests/slow_worker.so", machine.root / "usr/local/lib/slow_worker.so")
    make_worker_slow(machine, FAST_US)
    machine.write("/etc/rooflined/suites.d/tiny.json", json.dumps({**TINY, "blocks": BLOCKS}))
    machine.write(drop_in, "[Service]\nEnvironment=LD_PRELOAD=/usr/local/lib/slow_worker.so\n"
                  "Environment=SLOW_WORKER_FILE=/etc/rooflined/slow_us\n")
    (machine.root / URL_DROP_IN.lstrip("/")).unlink()
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", UNIT)
    set_timer(machine, "*:*:0/2", timer)
    machine.wait_until(lambda: machine.property(service, "ActiveState") == "activating", 120, "the timer starts the service")
    set_timer(machine, "2099-01-01", timer)
    machine.wait_until(lambda: machine.property(service, "ActiveState") in ("inactive", "failed"), 600, "the suite ends")
    first = last_verdict(machine)
    assert (first["VERDICT"], first["PRIORITY"], len(first["JOB_ID"])) == ("incomparable", "4", BLOCKS)
    assert (int(machine.property(service, "ExecMainStatus")), machine.property(service, "ActiveState")) == (6, "inactive")
    make_worker_slow(machine, SLOW_US)
    for _ in range(4):
        status, failed, notices = start_regress(machine, service)
        if status != 5:
            break
    found = last_verdict(machine)
    assert (status, failed, len(notices)) == (1, True, 1), found
    assert (found["VERDICT"], found["PRIORITY"], len(found["JOB_ID"])) == ("slower", "3", 2 * BLOCKS)
    assert notices[0]["MESSAGE"].startswith(f"{service} failed (exit-code, exit status 1)")
