"""PyTorch beside us: the times of its loops, and how well both learn."""
import json
import statistics
import subprocess
import sys

from ..daemon import Daemon, Failed
from ..host import SOURCE, Skip
from ..numbers import difference_of_means
from ..runner import check
from . import programs


def torch_command(context, *options):
    if not context.host.gpu:
        raise Skip("PyTorch is compared on a GPU")
    if context.host.mnist is None:
        raise Skip("no MNIST here")
    if programs.run(context, [sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], "torch.log")[0] != 0:
        raise Skip("no PyTorch with CUDA")
    return [sys.executable, str(SOURCE / "tests" / "baselines" / "torch_mnist.py"), "--mnist", context.host.mnist, *options]


TIMES_FASTER = {"fp32": 6, "fp16": 10}  # than torch.compile with its step in a CUDA graph
BASELINES = (("compile", "fp32,fp16", 10), ("graph", "fp32,fp16,tf32", 10),
             ("eager", "fp32,fp16", 1))  # variant, precisions, epochs


def baselines(context):
    """PyTorch's loops by our definition of an epoch, and ours right before them."""
    ours = {}
    for precision in ("fp32", "tf32", "fp16"):
        row = programs.json_lines(context, [context.host.test_program("bench_train"), f"precision={precision}", "epochs=10"],
                                  f"ours-{precision}.log")[-1]
        ours[precision] = row["epoch_device_ms_median"]
        yield {"framework": "rooflined", **row}
    for variant, precisions, count in BASELINES:
        command = torch_command(context, "--precisions", precisions, "--variants", variant, "--epochs", str(count))
        for row in lines_as_they_come(context, command, f"torch-{variant}.jsonl"):
            yield row
            if variant == "compile":
                yield from compared_times(row, ours)


def compared_times(row, ours):
    precision, ratio = row["precision"], row["epoch_device_ms_median"] / ours[row["precision"]]
    yield {"precision": precision, "times_faster_than_compile": ratio}
    if precision in TIMES_FASTER:
        yield check(f"{precision}: {TIMES_FASTER[precision]} times as fast as PyTorch's compiled graph",
                    ratio >= TIMES_FASTER[precision], ratio)


def lines_as_they_come(context, command, name):
    """JSON objects that a program prints; what it had is kept when it is ended."""
    with open(context.log(name), "w") as kept, open(context.log(f"{name}.err"), "wb") as err:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True)
        for text in process.stdout:
            kept.write(text)
            kept.flush()
            if text.startswith("{"):
                yield json.loads(text)
        if process.wait() != 0:
            raise Failed(f"{name}: exit status {process.returncode}")


SEEDS, AFTER = range(1, 11), (1, 5, 10)
NOT_WORSE = -0.001
TORCH_SECONDS = 20  # PyTorch's start, its graphs and ten epochs, at the least


def accuracy(context):
    """Rows {"who", "precision", "seed", "accuracy": after each epoch}; what an earlier sitting has is taken over."""
    host = context.host
    precisions, seeds = (("fp32", "tf32", "fp16"), SEEDS) if host.gpu else (("fp32",), range(1, 4))
    rows = {(row["who"], row["precision"], row["seed"]): row for row in context.earlier if "accuracy" in row}
    yield from rows.values()
    wanted = [(who, precision, seed) for who in (("ours", "pytorch") if host.gpu else ("ours",)) for precision in precisions
              for seed in seeds]
    for who, train in (("ours", our_accuracy), ("pytorch", torch_accuracy)):
        for row in train(context, [key[1:] for key in wanted if key[0] == who and key not in rows]):
            rows[who, row["precision"], row["seed"]] = row | {"who": who}
            yield rows[who, row["precision"], row["seed"]]
    yield from compared_accuracy(rows.values(), precisions)
    left = [key for key in wanted if key not in rows]
    if left:
        yield {"partial": f"{len(left)} of {len(wanted)} trainings are left"}


def our_accuracy(context, wanted):
    """wanted: precisions and seeds."""
    if not wanted:
        return
    small = {"epochs": max(AFTER)} if context.host.gpu else {"epochs": 2, "max_images": 640}
    with Daemon(context.host, context.log("daemon.log")) as daemon:
        for precision, seed in wanted:
            if context.left_s() < 10:
                return
            run = daemon.runs({"kind": "train", "precisions": [precision], "seed": seed, "warmup_epochs": 0,
                               "passes": ["timing"], **small})[0]
            yield {"engine": run["engine"], "precision": precision, "seed": seed,
                   "accuracy": [epoch["test_accuracy_ratio"] for epoch in run["epochs"]]}


def torch_accuracy(context, wanted):
    """All seeds of a precision side by side."""
    for precision in dict.fromkeys(precision for precision, _ in wanted):
        if context.left_s() < TORCH_SECONDS:
            return
        seeds = ",".join(str(seed) for one, seed in wanted if one == precision)
        command = torch_command(context, "--precisions", precision, "--variants", "graph", "--epochs", str(max(AFTER)),
                                "--accuracy-of-seeds", seeds)
        for row in lines_as_they_come(context, command, f"torch-{precision}.jsonl"):
            yield {"lasting": True, **row}


def compared_accuracy(rows, precisions):
    for precision in precisions:
        by = {who: [row["accuracy"] for row in rows if (row["who"], row["precision"]) == (who, precision)]
              for who in ("ours", "pytorch")}
        for after in AFTER:
            ours, theirs = ([one[after - 1] for one in by[who] if len(one) >= after] for who in ("ours", "pytorch"))
            if not ours:
                continue
            row = {"precision": precision, "after": after, "seeds": [len(ours), len(theirs)], "ours_mean": statistics.fmean(ours)}
            if theirs:
                row |= {"pytorch_mean": statistics.fmean(theirs), **difference_of_means(ours, theirs)}
            yield row
            if row.get("low") is not None and len(ours) >= 10 and len(theirs) >= 10:
                yield check(f"{precision} after {after}: the interval of the difference reaches {100 * NOT_WORSE:.1f} points",
                            row["high"] >= NOT_WORSE, [row["low"], row["high"]])
