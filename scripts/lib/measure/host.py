"""What a sitting runs on: the device, and the programs of a build that was carried here or made here."""
import os
import pathlib
import shutil
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[3]


class Skip(Exception):
    """A step that can't be run here, and why."""


def gpus():
    """What CUDA_VISIBLE_DEVICES calls the GPUs of this host."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    try:
        listed = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True)
    except OSError:
        return []
    return listed.stdout.split() if listed.returncode == 0 else []


class Host:
    """device: cpu, gpu0, ...; build: the folder with bin/ and tests/; gpu: the only one of several that programs see, as gpu0."""

    def __init__(self, device, build, gpu=None):
        self.device, self.build = device, pathlib.Path(build).resolve()
        self.chosen = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
        self.mnist = next((str(folder) for folder in (os.environ.get("ROOFLINED_MNIST_DIR"), self.build / "mnist",
                                                      SOURCE.parent / "shared" / "mnist")
                           if folder and list(pathlib.Path(folder).glob("*.gz"))), None)
        self.environment = {**os.environ, **self.chosen, "ROOFLINED_BUILD": str(self.build), "ROOFLINED_SOURCE": str(SOURCE)}
        if self.mnist:
            self.environment["ROOFLINED_MNIST_DIR"] = self.mnist
        if (self.build / "lib").is_dir():  # for our programs alone: those of the host have their own
            folders = [str(self.build / "lib"), "/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64",
                       os.environ.get("LD_LIBRARY_PATH")]
            self.environment["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))

    @property
    def gpu(self):
        return self.device.startswith("gpu")

    @property
    def commit(self):
        kept = self.build / "commit"
        if kept.exists():
            return kept.read_text().strip()
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
        """A program of the CUDA toolkit."""
        path = shutil.which(name) or f"/usr/local/cuda/bin/{name}"
        if not os.access(path, os.X_OK):
            raise Skip(f"no {name} here")
        return path

    def need_gpu(self):
        if not self.gpu:
            raise Skip("needs a GPU")
