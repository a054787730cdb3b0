"""Tests the Debian packages: with lintian, and in a system that boots, their installation, an upgrade while jobs run, removal and
purge. The tests share one system and run in their order."""
import os
import pathlib
import shutil
import sqlite3
import subprocess

import pytest
from system_daemon import (BUILD, ENDLESS, SHORT, UNIT, assert_completes, booted_system, ctl, daemon_answers, job, main_pid,
                           submit, wait_for)

NEXT_VERSION = "0.99.0-1"


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Returns the package of this build, and the same package with a later version."""
    if shutil.which("dpkg-shlibdeps") is None:
        pytest.skip("dpkg-shlibdeps is not installed")
    folder = tmp_path_factory.mktemp("packages")
    subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder], check=True)
    (package,) = folder.glob("rooflined_*.deb")
    subprocess.run(["dpkg-deb", "--raw-extract", package, folder / "next"], check=True)
    control = folder / "next/DEBIAN/control"
    lines = control.read_text().splitlines(keepends=True)
    control.write_text("".join(f"Version: {NEXT_VERSION}\n" if line.startswith("Version:") else line for line in lines))
    subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "--build", folder / "next", folder / "next.deb"], check=True)
    return package, folder / "next.deb"


@pytest.fixture(scope="module")
def machine(packages):
    def prepare(system):
        for number, package in enumerate(packages):
            shutil.copy(package, system.root / f"root/{number}.deb")

    with booted_system(prepare) as system:
        yield system


def apt(machine, *arguments):
    return machine.run("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-q", *arguments).stdout


def test_lintian_finds_no_error(packages):
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    root = ["--allow-root"] if os.geteuid() == 0 else []
    ended = subprocess.run(["lintian", *root, "--fail-on", "error", packages[0]], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_installation_enables_nothing_and_prints_the_commands(machine):
    output = apt(machine, "install", "/root/0.deb")  # without a network: every dependency is installed
    assert "systemctl enable --now rooflined.service" in output and "rooflined-regress@mnist.timer" in output
    assert machine.run("systemctl", "is-enabled", UNIT, check=False).stdout.strip() == "disabled"
    assert machine.property(UNIT, "ActiveState") == "inactive"
    assert "path=/usr/bin/rooflined ;" in machine.property(UNIT, "ExecStart")
    assert "0 timers listed" in machine.run("systemctl", "list-timers", "--all", "rooflined*").stdout
    assert (machine.root / "usr/share/doc/rooflined/docs/regressions.md").exists()


def test_upgrade_continues_jobs(machine):
    machine.run("systemctl", "enable", "--now", UNIT)
    running, queued = submit(machine, ENDLESS), submit(machine, SHORT)
    wait_for(machine, running, "running")
    before = main_pid(machine)
    output = apt(machine, "install", "/root/1.deb")
    assert "nothing is enabled" not in output
    assert machine.run("dpkg-query", "-W", "-f", "${Version}", "rooflined").stdout == NEXT_VERSION
    machine.wait_until(lambda: daemon_answers(machine), 120, "the daemon answers")
    assert main_pid(machine) not in (0, before)
    wait_for(machine, running, "running")
    assert job(machine, queued)["state"] == "queued"
    ctl(machine, "cancel", str(running))
    assert_completes(machine, queued)


def test_removal_keeps_settings_and_results(machine):
    machine.write("/etc/rooflined/rooflined.conf", "[rooflined]\nlog_level = debug\n")
    machine.run("systemctl", "enable", "--now", "rooflined-regress@mnist.timer")
    apt(machine, "remove", "rooflined")
    assert machine.property(UNIT, "ActiveState") == "inactive" and not (machine.root / "usr/bin/rooflined").exists()
    assert not list(machine.root.glob("etc/systemd/system/*.wants/rooflined*"))
    assert "rooflined" not in machine.run("systemctl", "list-timers", "--all").stdout
    assert (machine.root / "var/lib/private/rooflined/rooflined.db").exists()
    assert (machine.root / "etc/rooflined/rooflined.conf").exists()


def test_purge_leaves_a_backup_only(machine):
    output = apt(machine, "purge", "rooflined")
    (backup,) = machine.root.glob("var/backups/rooflined-*")
    assert f"are in /var/backups/{backup.name}" in output
    assert backup.stat().st_mode & 0o777 == 0o700
    assert "log_level = debug" in (backup / "settings/rooflined.conf").read_text()
    database = sqlite3.connect(f"file:{backup}/state/rooflined.db?mode=ro", uri=True)
    assert database.execute("SELECT state FROM jobs ORDER BY state").fetchall() == [("cancelled",), ("completed",)]
    database.close()
    left = [pathlib.Path(folder, name) for folder, folders, files in os.walk(machine.root) for name in folders + files
            if "rooflined" in name and backup not in pathlib.Path(folder, name).parents]
    assert left == [backup]
