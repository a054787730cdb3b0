"""Comparison with PyTorch: epoch times and accuracy."""
import json
import statistics
import subprocess
import sys

from ..daemon import Daemon, Failed
from ..host import SOURCE, Skip
from ..numbers import difference_of_means
from ..runner import check, target
from . import programs


def torch_command(context, *options):
    if not context.host.is_gpu:
        raise Skip("PyTorch is compared on a GPU only")
    if context.host.mnist is None:
        raise Skip("no MNIST files on this host")
    if programs.run(context, [sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], "torch.log")[0] != 0:
        raise Skip("no PyTorch with CUDA on this host")
    return [sys.executable, str(SOURCE / "tests" / "baselines" / "torch_mnist.py"), "--mnist", context.host.mnist, *options]


MIN_SPEEDUP = {"fp32": 6, "fp16": 10}  # over torch.compile with its step in a CUDA graph
TORCH_VARIANTS = (("compile", "fp32,fp16", 10), ("graph", "fp32,fp16,tf32", 10),
                  ("eager", "fp32,fp16", 1))  # variant, precisions, epochs


def baselines(context):
    """Times our epochs and directly afterwards PyTorch's. The same work counts as an epoch in both."""
    our_ms = {}
    for precision in ("fp32", "tf32", "fp16"):
        row = programs.json_lines(context, [context.host.test_program("bench_train"), f"precision={precision}", "epochs=10"],
                                  f"ours-{precision}.log")[-1]
        our_ms[precision] = row["epoch_device_ms_median"]
        yield {"framework": "rooflined", **row}
    for variant, precisions, epochs in TORCH_VARIANTS:
        command = torch_command(context, "--precisions", precisions, "--variants", variant, "--epochs", str(epochs))
        for row in stream_json_lines(context, command, f"torch-{variant}.jsonl"):
            yield row
            if variant == "compile":
                yield from compare_times(row, our_ms)


def compare_times(row, our_ms):
    precision, ratio = row["precision"], row["epoch_device_ms_median"] / our_ms[row["precision"]]
    yield {"precision": precision, "times_faster_than_compile": ratio}
    if precision in MIN_SPEEDUP:
        yield target(f"{precision}: {MIN_SPEEDUP[precision]} times as fast as PyTorch's compiled graph",
                     ratio >= MIN_SPEEDUP[precision], ratio)


def stream_json_lines(context, command, log_name):
    """Yields each JSON object as soon as a program prints it, so that the objects of a terminated program are kept."""
    with open(context.log_path(log_name), "w") as log, open(context.log_path(f"{log_name}.err"), "wb") as err:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True)
        for line in process.stdout:
            log.write(line)
            log.flush()
            if line.startswith("{"):
                yield json.loads(line)
        if process.wait() != 0:
            raise Failed(f"{log_name}: exit status {process.returncode}")


SEEDS, AFTER_EPOCHS = range(1, 11), (1, 5, 10)
# The upper end of the confidence interval of our mean accuracy minus PyTorch's must not be below this value.
MIN_UPPER_END = -0.001
TORCH_MIN_S = 20  # time to start PyTorch, to capture its graphs and to train ten epochs


def accuracy(context):
    """Yields rows {"who", "precision", "seed", "accuracy": list with the accuracy after each epoch}, and their comparison. Rows
    of an earlier session are kept; only missing trainings run."""
    host = context.host
    precisions, seeds = (("fp32", "tf32", "fp16"), SEEDS) if host.is_gpu else (("fp32",), range(1, 4))
    rows = {(row["who"], row["precision"], row["seed"]): row for row in context.earlier_rows if "accuracy" in row}
    yield from rows.values()
    wanted = [(who, precision, seed) for who in (("ours", "pytorch") if host.is_gpu else ("ours",)) for precision in precisions
              for seed in seeds]
    for who, train in (("ours", our_accuracy), ("pytorch", torch_accuracy)):
        for row in train(context, [key[1:] for key in wanted if key[0] == who and key not in rows]):
            rows[who, row["precision"], row["seed"]] = row | {"who": who}
            yield rows[who, row["precision"], row["seed"]]
    yield from compare_accuracy(rows.values(), precisions)
    missing = [key for key in wanted if key not in rows]
    if missing:
        yield {"partial": f"{len(missing)} of {len(wanted)} trainings are missing"}


def our_accuracy(context, wanted):
    """Trains with the daemon and yields a row for each wanted pair of precision and seed."""
    if not wanted:
        return
    size = {"epochs": max(AFTER_EPOCHS)} if context.host.is_gpu else {"epochs": 2, "max_images": 640}
    with Daemon(context.host, context.log_path("daemon.log")) as daemon:
        for precision, seed in wanted:
            if context.remaining_s() < 10:
                return
            run = daemon.run_results({"kind": "train", "precisions": [precision], "seed": seed, "warmup_epochs": 0,
                                      "passes": ["timing"], **size})[0]
            yield {"engine": run["engine"], "precision": precision, "seed": seed,
                   "accuracy": [epoch["test_accuracy_ratio"] for epoch in run["epochs"]]}


def torch_accuracy(context, wanted):
    """Trains with PyTorch, all wanted seeds of a precision concurrently, and yields a row for each."""
    for precision in dict.fromkeys(precision for precision, _ in wanted):
        if context.remaining_s() < TORCH_MIN_S:
            return
        seeds = ",".join(str(seed) for wanted_precision, seed in wanted if wanted_precision == precision)
        command = torch_command(context, "--precisions", precision, "--variants", "graph", "--epochs", str(max(AFTER_EPOCHS)),
                                "--accuracy-of-seeds", seeds)
        for row in stream_json_lines(context, command, f"torch-{precision}.jsonl"):
            # Results marked "lasting" are kept when our code changes: PyTorch's accuracy does not depend on it.
            yield {"lasting": True, **row}


def compare_accuracy(rows, precisions):
    """Yields our and PyTorch's mean accuracy after each number of epochs in AFTER_EPOCHS, and the confidence interval of their
    difference."""
    for precision in precisions:
        by_framework = {who: [row["accuracy"] for row in rows if (row["who"], row["precision"]) == (who, precision)]
                        for who in ("ours", "pytorch")}
        for after in AFTER_EPOCHS:
            ours, theirs = ([seed[after - 1] for seed in by_framework[who] if len(seed) >= after] for who in ("ours", "pytorch"))
            if not ours:
                continue
            row = {"precision": precision, "after": after, "seeds": [len(ours), len(theirs)], "ours_mean": statistics.fmean(ours)}
            if theirs:
                row |= {"pytorch_mean": statistics.fmean(theirs), **difference_of_means(ours, theirs)}
            yield row
            if row.get("low") is not None and len(ours) >= 10 and len(theirs) >= 10:
                yield check(f"{precision} after {after}: our accuracy minus PyTorch's: the interval's upper end is at least "
                            f"{100 * MIN_UPPER_END:.1f} points",
                            row["high"] >= MIN_UPPER_END, [row["low"], row["high"]])
