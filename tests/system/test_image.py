"""Tests the container image. buildah builds it from the second stage of the Dockerfile, without CUDA, with the package of this
build and a base image of this host's release. The daemon in the image starts, is healthy, runs the main job and stops. Needs
root."""
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess

import pytest
from machine import CLONE_NEWNET, enter_network, libraries_of, reason_to_skip, root_archive
from system_daemon import BUILD

SOURCE = pathlib.Path(os.environ["ROOFLINED_SOURCE"])
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
MAIN_JOB = ["--device", "cpu", "--dataset", "synthetic", "--max-images", "128", "--epochs", "1", "--warmup-epochs", "0",
            "--precisions", "fp32,fp16"]


def enter_new_network():
    """Gives this process a network with only a loopback device. Otherwise a container with chroot isolation would use the host's
    network."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        raise OSError("unshare")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def enter_network_of(pid):
    with open(f"/proc/{pid}/ns/net", "rb") as network:
        enter_network(network)


class Buildah:
    """Runs buildah, with its images and containers in a folder."""

    def __init__(self, folder):
        configuration = folder / "storage.conf"
        configuration.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n')
        self.environment = {**os.environ, "CONTAINERS_STORAGE_CONF": str(configuration), "STORAGE_DRIVER": "vfs",
                            "BUILDAH_ISOLATION": "chroot"}

    def __call__(self, *arguments, check=True, **options):
        ended = subprocess.run(["buildah", *map(str, arguments)], env=self.environment, capture_output=True, text=True, **options)
        output = ended.stdout + ended.stderr
        assert not check or ended.returncode == 0, f"buildah {arguments[0]}: exit {ended.returncode}\n{output}"
        return ended

    def make_image(self, name, *files):
        """Makes an image of files: (source, destination)."""
        container = self("from", "scratch").stdout.strip()
        for source, destination in files:
            self("add", "--quiet", container, source, destination)
        self("commit", "--quiet", "--rm", container, name)


def second_stage():
    """Returns the Dockerfile without its first stage. The name of the first stage, from which the second stage copies files, then
    stands for a build context."""
    lines = (SOURCE / "Dockerfile").read_text().splitlines(keepends=True)
    stages = [number for number, line in enumerate(lines) if line.startswith("FROM ")]
    assert len(stages) == 2 and lines[stages[0]].endswith(" AS build\n")
    return "".join(lines[:stages[0]] + lines[stages[1]:])


@pytest.fixture(scope="module")
def buildah(tmp_path_factory):
    if reason := reason_to_skip():
        pytest.skip(reason)
    if shutil.which("buildah") is None:
        pytest.skip("buildah is not installed")
    folder = tmp_path_factory.mktemp("image")
    engine = Buildah(folder)
    if (tried := engine("from", "scratch", check=False)).returncode != 0:
        pytest.skip(f"buildah does not work here: {tried.stderr.strip().splitlines()[-1]}")
    yield engine
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def image(buildah, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder], check=True, stdout=subprocess.DEVNULL)
    (package,) = folder.glob("rooflined_*.deb")
    programs = [path for path in (BUILD / "bin").iterdir() if path.name.startswith("rooflin")]
    buildah.make_image("localhost/base", (root_archive(libraries_of(programs)), "/"))
    buildah.make_image("localhost/packages", (package, "/packages/"))
    (folder / "Dockerfile").write_text(second_stage())
    buildah("build", "--format", "docker", "--layers=false", "--build-arg", "RUNTIME_IMAGE=localhost/base",
            "--build-arg", "CUDA_PACKAGES=", "--build-context", "build=container-image://localhost/packages",
            "-t", "localhost/rooflined", "-f", folder / "Dockerfile", folder)
    return "localhost/rooflined"


def test_image_starts_runs_the_main_job_and_stops(buildah, image):
    settings = json.loads(buildah("inspect", "--type", "image", image).stdout)["Docker"]["config"]
    assert settings["User"] == "rooflined" and settings["StopSignal"] == "SIGTERM"
    assert settings["Healthcheck"]["Test"][0] == "CMD"
    container = buildah("from", "--ulimit", "nofile=8192:8192", image).stdout.strip()  # the default is 1024
    command = ["buildah", "run", container, "--"]

    refused = buildah(*command[1:], *settings["Entrypoint"], check=False, timeout=180)
    assert refused.returncode == 78 and "token" in refused.stderr, refused  # the image listens on all addresses
    token = buildah(*command[1:], "rooflinectl", "token").stdout.split()[-1]
    with subprocess.Popen([*command, *settings["Entrypoint"]], env=buildah.environment, text=True, stdout=subprocess.PIPE,
                          preexec_fn=enter_new_network) as daemon:
        try:
            assert daemon.stdout.readline().startswith("listening on http://0.0.0.0:8731")
            inside = {"preexec_fn": lambda: enter_network_of(daemon.pid)}
            buildah(*command[1:], *settings["Healthcheck"]["Test"][1:], **inside)
            shown = buildah(*command[1:], "rooflinectl", "--token", token, "run", *MAIN_JOB, **inside).stdout
            assert "launches per step" in shown and "fp16" in shown
            stop = "stat -c %U /var/lib/rooflined/rooflined.db; kill $(cat /var/lib/rooflined/lock)"
            assert buildah(*command[1:], "sh", "-c", stop).stdout.strip() == "rooflined"
            assert daemon.wait(60) == 0
        finally:
            daemon.kill()
