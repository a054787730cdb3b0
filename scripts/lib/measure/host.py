"""One device of a measurement session, and the programs of a build that measure it."""
import os
import pathlib
import re
import shutil
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[3]


class Skip(Exception):
    """Raised when a step cannot run on this host; its text is the reason."""


def visible_gpus():
    """Returns the names of this host's GPUs as CUDA_VISIBLE_DEVICES accepts them."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    try:
        query = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True)
    except OSError:
        return []
    return query.stdout.split() if query.returncode == 0 else []


def hosts_of(device, build):
    """Returns the Hosts of --device: "cpu" is one, "gpu0" is one for each visible GPU, and "gpu1", "gpu2", ... is that GPU alone,
    which its programs and its daemon then see as their only GPU, gpu0. Raises Skip if the device is malformed or there is no such
    GPU."""
    if not re.fullmatch("cpu|gpu[0-9]+", device):
        raise Skip(f'--device "{device}" is not cpu, gpu0, gpu1, ...')
    if not device.startswith("gpu"):
        return [Host(device, build)]
    gpus, index = visible_gpus(), int(device.removeprefix("gpu"))
    if index == 0:
        return [Host(device, build, gpu) for gpu in gpus] or [Host(device, build)]
    if index >= len(gpus):
        raise Skip(f"there is no {device}: this machine has {len(gpus)} GPUs")
    return [Host("gpu0", build, gpus[index])]


class Host:
    """One device of this machine and the programs that measure it. Several GPUs of a machine are several Hosts.

    device is the daemon's name of the device to measure (cpu, gpu0, ...), build the folder that has bin/ and tests/, and
    visible_gpu the only GPU that programs may use, as CUDA_VISIBLE_DEVICES names it; None means all GPUs."""

    def __init__(self, device, build, visible_gpu=None):
        self.device, self.build = device, pathlib.Path(build).resolve()
        self.gpu_environment = {} if visible_gpu is None else {"CUDA_VISIBLE_DEVICES": visible_gpu}
        self.mnist = next((str(folder) for folder in (os.environ.get("ROOFLINED_MNIST_DIR"), self.build / "mnist",
                                                      SOURCE.parent / "shared" / "mnist")
                           if folder and list(pathlib.Path(folder).glob("*.gz"))), None)
        self.environment = {**os.environ, **self.gpu_environment, "ROOFLINED_BUILD": str(self.build),
                            "ROOFLINED_SOURCE": str(SOURCE)}
        if self.mnist:
            self.environment["ROOFLINED_MNIST_DIR"] = self.mnist
        if (self.build / "lib").is_dir():  # packed libraries, which only our programs use, not programs of the host
            folders = [str(self.build / "lib"), "/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64",
                       os.environ.get("LD_LIBRARY_PATH")]
            self.environment["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))

    @property
    def is_gpu(self):
        return self.device.startswith("gpu")

    @property
    def commit(self):
        commit_file = self.build / "commit"
        if commit_file.exists():
            return commit_file.read_text().strip()
        return subprocess.run(["git", "-C", SOURCE, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
                              capture_output=True, text=True).stdout.strip() or None

    def program(self, name, folder="bin"):
        path = self.build / folder / name
        if not os.access(path, os.X_OK):
            raise Skip(f"{path} was not built")
        return str(path)

    def test_program(self, name):
        return self.program(name, "tests")

    def tool(self, name):
        """Returns the path of a program of the CUDA toolkit."""
        path = shutil.which(name) or f"/usr/local/cuda/bin/{name}"
        if not os.access(path, os.X_OK):
            raise Skip(f"this host has no {name}")
        return path

    def query_gpu(self, fields):
        """Returns the values that nvidia-smi prints for these fields of the GPU; None if it fails."""
        device = self.gpu_environment.get("CUDA_VISIBLE_DEVICES", self.device.removeprefix("gpu"))
        try:
            query = subprocess.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader", "-i", device],
                                   capture_output=True, text=True)
        except OSError:
            return None
        return query.stdout.strip() if query.returncode == 0 else None

    def require_gpu(self):
        if not self.is_gpu:
            raise Skip("needs a GPU")
