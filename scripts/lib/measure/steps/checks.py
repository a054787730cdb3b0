"""Steps that run tests on a GPU: the tests of CTest, the comparison with ncu, compute-sanitizer, and programs that the driver
compiles from PTX for compute capability 8.0."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time

from summary import count_inner_tests

from .. import comparison
from ..daemon import Daemon, Failed
from ..host import SOURCE, Skip
from ..runner import EXIT_SKIPPED, check
from . import programs
from .training import engines

TEST_TIMEOUT_S = 300
PARALLEL_PROGRAMS = 8  # maximum number of concurrent programs; only programs that time nothing run concurrently
OUTCOMES = {0: "passed", EXIT_SKIPPED: "skipped", None: "cut off"}


def device(context):
    with Daemon(context.host, context.log_path("daemon.log")) as daemon:
        yield {"properties": daemon.wait_for_device(), "cores": os.cpu_count(),
               "host": " ".join(os.uname()[i] for i in (0, 2, 4))}
    if context.host.is_gpu:
        status, output = programs.run(context, [context.host.tool("nvidia-smi"), "-q"], "nvidia-smi.txt")
        yield check("nvidia-smi answers", status == 0, programs.last_line(output))


def gpu_tests(context, is_selected):
    """Yields (name, command) of the build's GPU tests that is_selected(name) accepts."""
    path = context.host.build / "tests.tsv"
    if not path.exists():
        raise Skip(f"no {path}: scripts/gpu-pack.sh writes it")
    for line in path.read_text().splitlines():
        name, *command = line.split("\t")
        if is_selected(name):
            yield name, command


def with_pytest(command):
    """Returns the command with a Python interpreter of this host that has pytest; None if no interpreter has it."""
    for python in (command[0], sys.executable):
        if subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode == 0:
            return [python, *command[1:]]
    return None


# Tests that neither measure times nor use counters. Those in TESTS_BY_ENGINE run once for each training engine.
NUMERICS_TESTS = ("gpu_numerics", "gpu_training", "gpu_phase_timestamps", "gpu_kernels", "gpu_conv2")
TESTS_BY_ENGINE = ("gpu_numerics", "gpu_training")


def test_commands(context, name, command, script_options):
    """Returns {name: command} with one run of the test, or with a run for each training engine. The command is None if this host
    cannot run it. script_options: arguments inserted after the script of a Python test."""
    if "pytest" in command and (command := with_pytest(command)) is None:
        return {name: None}
    if command[0].endswith("python3") and "pytest" not in command:
        command = [sys.executable, command[1], *script_options, *command[2:]]
    if name not in TESTS_BY_ENGINE:
        return {name: command}
    return {f"{name} {engine}": [*command, engine] for engine in engines(context.host)}


def run_test(context, name, command):
    if command is None:
        return {"test": name, "outcome": "skipped", "output": "no pytest on this host"}
    begin = time.monotonic()
    status, output = programs.run(context, command, f"{name.replace(' ', '_')}.log", TEST_TIMEOUT_S, cwd=SOURCE)
    outcome = OUTCOMES.get(status, "failed")
    return {"test": name, "outcome": outcome, "seconds": round(time.monotonic() - begin, 1),
            "output": programs.last_line(output)[:300], "inside": count_inner_tests(output) or {outcome: 1}}


def run_tests(context, is_selected, script_options=lambda name: [], parallel=1):
    """Yields a row and a check for each test. script_options(name): arguments inserted after the script of a Python test;
    parallel: tests that run at once."""
    outcomes, last_line = set(), ""
    commands = [item for name, command in gpu_tests(context, is_selected)
                for item in test_commands(context, name, command, script_options(name)).items()]
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        for row in pool.map(lambda item: run_test(context, *item), commands):
            outcomes.add(row["outcome"])
            last_line = row["output"]
            yield row
            yield check(row["test"], row["outcome"] in ("passed", "skipped"), last_line)
    if outcomes <= {"skipped"}:
        raise Skip(last_line)


NCU_PREFIX = "cupti_ncu_"
SUBJECTS_WITH_FIXED_KERNELS = ("gallery", "operators", "libraries")  # their kernels are the same in every session


def is_agreement(name):
    return name.startswith(NCU_PREFIX)


def tests(context):
    yield from run_tests(context, lambda name: not is_agreement(name) and name not in (*NUMERICS_TESTS, "gpu_rules"))


def numerics(context):
    yield from run_tests(context, lambda name: name in NUMERICS_TESTS, parallel=PARALLEL_PROGRAMS)


def one_test(context, name):
    yield from run_tests(context, lambda candidate: candidate == name)


def rules(context):
    yield from run_tests(context, lambda name: name == "gpu_rules")


def agreement(context):
    """Runs the tests that compare our counters with ncu's, and writes agreement.csv with every number of the subjects in
    SUBJECTS_WITH_FIXED_KERNELS. A training step is not among these, because its kernels depend on the algorithms that libraries
    select."""
    kernels, metrics, tables = 0, 0, []
    for row in run_tests(context, is_agreement, lambda name: ["--out", str(context.log_path(name))]):
        yield row
        table = context.log_path(row.get("test", "")) / "comparison.csv"
        if "test" in row and table.exists():
            subject = row["test"].removeprefix(NCU_PREFIX)
            tables += [table] if subject in SUBJECTS_WITH_FIXED_KERNELS else []
            for summary in comparison.summarise(table):
                yield {"subject": subject, **summary}
                kernels += "words" in summary
                metrics = max(metrics, summary.get("numbers", 0))
    comparison.join_tables(tables, context.log_path("agreement.csv"))
    yield check("at least 14 kernels and 100 metrics", kernels >= 14 and metrics >= 100, f"{kernels} kernels, {metrics} metrics")


# One full and one partial step; eager=1 launches each kernel separately, as the tools require.
SMALL_TRAINING = ["images=24", "batch=16", "epochs=1", "warmup=0", "eager=1"]
CONV2_BATCHES = ["3", "133"]  # fewer and more images than the kernels of conv2 process at once
SANITIZER_SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")
UNSUPPORTED_MESSAGE = re.compile(r"no cuBLASLt|NOT_SUPPORTED|out of memory|not supported", re.I)
SANITIZER_TOOLS = ("racecheck", "memcheck", "synccheck")  # the slowest first
MAX_CASE_BYTES = "530000"  # limit of a kernel case; includes the longest 2-byte rows, which a cluster shares
SANITIZER_TIMEOUT_S = 90


def sanitizer_subjects(host):
    """Yields (subject, command): small trainings, conv2's kernels, and each operator in all its types and variants."""
    for engine in engines(host):
        for precision in ("fp32", "tf32", "fp16"):
            yield f"train {engine} {precision}", [host.test_program("bench_train"), f"engine={engine}", f"precision={precision}",
                                                  *SMALL_TRAINING]
    yield "conv2 kernels", [host.test_program("test_gpu_conv2"), *CONV2_BATCHES]
    for operator in ("copy relu residual_add silu_mul bias_gelu rope softmax rmsnorm layernorm transpose reduction").split():
        yield f"kernel {operator}", [host.test_program("test_gpu_kernels"), MAX_CASE_BYTES, operator]


def sanitizer(context):
    host = context.host
    host.require_gpu()
    compute_sanitizer = host.tool("compute-sanitizer")
    cache = context.log_path("choices")
    cache.mkdir(exist_ok=True)
    environment = {**host.environment, "ROOFLINED_CACHE_DIR": str(cache)}
    subjects = list(sanitizer_subjects(host))

    def choose_algorithms(subject, command):
        """Runs a training without a tool, so that the timed choices of library algorithms are in the cache."""
        if subject.startswith("train"):
            programs.run(context, command, f"chosen-{subject.replace(' ', '_')}.log", SANITIZER_TIMEOUT_S, environment, SOURCE)

    def run_tool(tool, subject, command):
        begin = time.monotonic()
        status, output = programs.run(context, [compute_sanitizer, "--tool", tool, "--error-exitcode", "9", *command],
                                      f"{tool}-{subject.replace(' ', '_')}.log", SANITIZER_TIMEOUT_S, environment, SOURCE)
        counts = [int(errors or hazards) for errors, hazards in SANITIZER_SUMMARY.findall(output)]
        return {"subject": subject, "tool": tool, "status": status, "found": sum(counts) if counts else None,
                "refused": bool(UNSUPPORTED_MESSAGE.search(output)), "seconds": round(time.monotonic() - begin, 1),
                "output": "cut off" if status is None else programs.last_line(output)[:200]}

    with concurrent.futures.ThreadPoolExecutor(PARALLEL_PROGRAMS) as pool:
        list(pool.map(lambda item: choose_algorithms(*item), subjects))
        for row in pool.map(lambda item: run_tool(*item), [(tool, *subject) for tool in SANITIZER_TOOLS for subject in subjects]):
            yield row
            if is_conclusive(row):
                yield check(f"{row['tool']} of {row['subject']}", row["status"] == 0 and row["found"] == 0, row["output"])


def is_conclusive(row):
    """Returns False when a library has no algorithm under the tool, or when the program cannot run on this host."""
    return row["status"] in (None, 0, 9) or not (row["status"] == EXIT_SKIPPED or row["refused"])


def ptx80(context):
    """Runs the programs of a build that has our kernels only as PTX for compute capability 8.0, which the driver compiles.
    Libraries use their own machine code."""
    host = context.host
    host.require_gpu()
    folder = host.build / "ptx80"
    if not folder.is_dir():
        raise Skip(f"no {folder}: scripts/gpu-pack.sh packs it from build/ptx80")
    cache = context.log_path("compiled")  # an empty cache, so that the driver compiles everything in this session
    environment = {**host.environment, "CUDA_CACHE_PATH": str(cache)}
    status, output = programs.run(context, [str(folder / "test_gpu_conv2")], "conv2.log", environment=environment)
    if status == EXIT_SKIPPED:
        raise Skip(programs.last_line(output))
    yield check("conv2's kernels match their reference", status == 0, programs.last_line(output)[:200])
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
