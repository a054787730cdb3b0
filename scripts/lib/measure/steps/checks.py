"""Tests that need a GPU: those of CTest, ncu beside us, the sanitizer's tools, code compiled from old PTX."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time

from summary import inside

from .. import comparison
from ..daemon import Daemon, Failed
from ..host import SOURCE, Skip
from ..runner import check
from . import programs
from .training import engines

TEST_SECONDS = 300
SIDE_BY_SIDE = 8  # programs of which nothing is timed
OUTCOMES = {0: "passed", programs.CANNOT: "skipped", None: "cut off"}


def device(context):
    with Daemon(context.host, context.log("daemon.log")) as daemon:
        yield {"facts": daemon.wait_for_device(), "cores": os.cpu_count(), "host": " ".join(os.uname()[i] for i in (0, 2, 4))}
    if context.host.gpu:
        status, output = programs.run(context, [context.host.tool("nvidia-smi"), "-q"], "nvidia-smi.txt")
        yield check("nvidia-smi answers", status == 0, programs.last_line(output))


def listed(context, wanted):
    """(name, command) of the GPU tests of the build whose names are wanted."""
    path = context.host.build / "tests.tsv"
    if not path.exists():
        raise Skip(f"no {path}: scripts/gpu-pack.sh writes it")
    for text in path.read_text().splitlines():
        name, *command = text.split("\t")
        if wanted(name):
            yield name, command


def python_of(command):
    """By whichever Python of this host has pytest."""
    for python in (command[0], sys.executable):
        if subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode == 0:
            return [python, *command[1:]]
    return None


# Tests that neither time nor count anything; those of the training engines run once for each engine.
NUMERICS = ("gpu_numerics", "gpu_training", "gpu_phase_timestamps", "gpu_kernels", "gpu_conv2")
BY_ENGINE = ("gpu_numerics", "gpu_training")


def prepared(context, name, command, more):
    """The test's commands by their names; None where this host can't run it."""
    if "pytest" in command and (command := python_of(command)) is None:
        return {name: None}
    if command[0].endswith("python3") and "pytest" not in command:
        command = [sys.executable, command[1], *more, *command[2:]]
    return {f"{name} {engine}": [*command, engine] for engine in engines(context.host)} if name in BY_ENGINE else {name: command}


def run_test(context, name, command):
    if command is None:
        return {"test": name, "outcome": "skipped", "said": "no pytest here"}
    begin = time.monotonic()
    status, output = programs.run(context, command, f"{name.replace(' ', '_')}.log", TEST_SECONDS, cwd=SOURCE)
    outcome = OUTCOMES.get(status, "failed")
    return {"test": name, "outcome": outcome, "seconds": round(time.monotonic() - begin, 1),
            "said": programs.last_line(output)[:300], "inside": inside(output) or {outcome: 1}}


def run_tests(context, wanted, more=lambda name: [], beside=1):
    """A row for each test, with what it counted of itself. more(name): arguments put behind the program's script; beside: so many
    at once."""
    outcomes, said = set(), ""
    commands = [one for name, command in listed(context, wanted) for one in prepared(context, name, command, more(name)).items()]
    with concurrent.futures.ThreadPoolExecutor(beside) as pool:
        for row in pool.map(lambda one: run_test(context, *one), commands):
            outcomes.add(row["outcome"])
            said = row["said"]
            yield row
            yield check(row["test"], row["outcome"] in ("passed", "skipped"), said)
    if outcomes <= {"skipped"}:
        raise Skip(said)


BESIDE_NCU = "cupti_ncu_"
CONSTANT_SUBJECTS = ("gallery", "families", "libraries")


def is_agreement(name):
    return name.startswith(BESIDE_NCU)


def tests(context):
    yield from run_tests(context, lambda name: not is_agreement(name) and name not in (*NUMERICS, "gpu_verdicts"))


def numerics(context):
    yield from run_tests(context, lambda name: name in NUMERICS, beside=SIDE_BY_SIDE)


def one_test(context, name):
    yield from run_tests(context, lambda one: one == name)


def rules(context):
    yield from run_tests(context, lambda name: name == "gpu_verdicts")


def agreement(context):
    """Every number of the kernels that are always the same comes back in one table; those of the training depend on what
    libraries choose."""
    kernels, metrics, tables = 0, 0, []
    for row in run_tests(context, is_agreement, lambda name: ["--out", str(context.log(name))]):
        yield row
        found = context.log(row.get("test", "")) / "comparison.csv"
        if "test" in row and found.exists():
            subject = row["test"].removeprefix(BESIDE_NCU)
            tables += [found] if subject in CONSTANT_SUBJECTS else []
            for one in comparison.compared(found):
                yield {"subject": subject, **one}
                kernels += "words" in one
                metrics = max(metrics, one.get("numbers", 0))
    comparison.join(tables, context.log("agreement.csv"))
    yield check("at least 14 kernels and 100 metrics", kernels >= 14 and metrics >= 100, f"{kernels} kernels, {metrics} metrics")


# A whole step and a smaller one, each launch by itself, as the tools want it.
SMALL_TRAINING = ["images=24", "batch=16", "epochs=1", "warmup=0", "eager=1"]
CONV2_BATCHES = ["3", "133"]  # fewer and more images than its kernels take side by side
FOUND = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")
REFUSED = re.compile(r"no cuBLASLt|NOT_SUPPORTED|out of memory|not supported", re.I)
TOOLS = ("racecheck", "memcheck", "synccheck")  # the slowest first
KERNEL_BYTES = "530000"  # what a case of a family may move: the longest rows of two bytes, which a cluster shares, are among them
SANITIZER_SECONDS = 90


def sanitized(host):
    """(what, command), small shapes; of the families every type, variant and awkward shape that is not too large"""
    for engine in engines(host):
        for precision in ("fp32", "tf32", "fp16"):
            yield f"train {engine} {precision}", [host.test_program("bench_train"), f"engine={engine}", f"precision={precision}",
                                                  *SMALL_TRAINING]
    yield "conv2 kernels", [host.test_program("test_gpu_conv2"), *CONV2_BATCHES]
    for family in ("copy relu residual_add silu_mul bias_gelu rope softmax rmsnorm layernorm transpose reduction").split():
        yield f"kernel {family}", [host.test_program("test_gpu_kernels"), KERNEL_BYTES, family]


def sanitizer(context):
    host = context.host
    host.need_gpu()
    tool = host.tool("compute-sanitizer")
    choices = context.log("choices")
    choices.mkdir(exist_ok=True)
    environment = {**host.environment, "ROOFLINED_CACHE_DIR": str(choices)}
    subjects = list(sanitized(host))

    def choose(what, command):
        """Engines time what libraries have: without a tool, once for all of them."""
        if what.startswith("train"):
            programs.run(context, command, f"chosen-{what.replace(' ', '_')}.log", SANITIZER_SECONDS, environment, SOURCE)

    def row(which, what, command):
        begin = time.monotonic()
        status, output = programs.run(context, [tool, "--tool", which, "--error-exitcode", "9", *command],
                                      f"{which}-{what.replace(' ', '_')}.log", SANITIZER_SECONDS, environment, SOURCE)
        counts = [int(a or b) for a, b in FOUND.findall(output)]
        return {"subject": what, "tool": which, "status": status, "found": sum(counts) if counts else None,
                "refused": bool(REFUSED.search(output)), "seconds": round(time.monotonic() - begin, 1),
                "said": "cut off" if status is None else programs.last_line(output)[:200]}

    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(lambda subject: choose(*subject), subjects))
        for done in pool.map(lambda run: row(*run), [(which, *subject) for which in TOOLS for subject in subjects]):
            yield done
            if looked(done):
                yield check(f"{done['tool']} of {done['subject']}", done["status"] == 0 and done["found"] == 0, done["said"])


def looked(row):
    """Whether anything can be said: not where a library has no algorithm under the tool, or the program can't be run here."""
    return row["status"] in (None, 0, 9) or not (row["status"] == programs.CANNOT or row["refused"])


def ptx80(context):
    """The programs of a build that carries nothing but PTX for 8.0: the driver compiles it for the device at hand. Libraries keep
    their code."""
    host = context.host
    host.need_gpu()
    folder = host.build / "ptx80"
    if not folder.is_dir():
        raise Skip(f"no {folder}: scripts/gpu-pack.sh takes it from build/ptx80")
    cache = context.log("compiled")  # so that nothing compiled earlier is taken
    environment = {**host.environment, "CUDA_CACHE_PATH": str(cache)}
    status, output = programs.run(context, [str(folder / "test_gpu_conv2")], "conv2.log", environment=environment)
    if status == programs.CANNOT:
        raise Skip(programs.last_line(output))
    yield check("conv2's kernels against their reference", status == 0, programs.last_line(output)[:200])
    for engine in engines(host):
        for precision in ("fp32", "tf32", "fp16"):
            row = {"engine": engine, "precision": precision}
            try:
                command = [str(folder / "bench_train"), f"engine={engine}", f"precision={precision}", "epochs=3"]
                row |= programs.json_lines(context, command, f"{engine}-{precision}.log", environment=environment)[-1]
                yield row
                yield check(f"{engine} {precision} from PTX 8.0 learns", row["test_accuracy_ratio"] >= 0.98,
                            row["test_accuracy_ratio"])
            except Skip as reason:
                yield {**row, "refused": str(reason)}
            except Failed as failure:
                yield check(f"{engine} {precision} from PTX 8.0 learns", False, str(failure))
    shutil.rmtree(cache, ignore_errors=True)
