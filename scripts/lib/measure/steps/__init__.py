"""Every step of a sitting, the most wanted first. Expected seconds are those of an H200; a step is ended at its limit."""
import functools

from ..runner import Step
from . import checks, kernels, pytorch, reports, training

STEPS = [
    Step("device", checks.device, 1, 30, "what the device is"),
    Step("ceilings", kernels.ceilings, 3, 60, "what the device can do at best; floors of later jobs follow from them"),
    Step("job", training.job, 7, 120, "the main job over HTTP, all passes", counts=True),
    Step("training", training.epochs, 50, 300, "epochs of every engine, precision and batch, over HTTP and by bench_train"),
    Step("memory", training.memory, 20, 90, "device memory of the job by purpose"),
    Step("perf_phases", training.phases, 25, 120, "where a training step's time goes, by launch"),
    Step("lombscargle", kernels.lombscargle, 9, 150, "every version, type and build of the periodogram",
         counts=True),  # first passes wait for whoever counts on another GPU
    Step("rules", checks.rules, 12, 120, "every rule against the kernel that is made for it", counts=True),
    Step("tests", checks.tests, 60, 400, "the GPU tests of CTest, each by its name", counts=True),
    Step("numerics", checks.numerics, 40, 300, "those GPU tests of which nothing is timed, an engine each", shares=True),
    Step("accuracy", pytorch.accuracy, 100, 400, "accuracy after 1, 5 and 10 epochs beside PyTorch, seed by seed", shares=True),
    Step("sanitizer", checks.sanitizer, 130, 300, "compute-sanitizer: memcheck, racecheck, synccheck", shares=True),
    Step("ptx80", checks.ptx80, 50, 150, "training by code that the driver compiled from PTX for 8.0", shares=True),
    Step("baselines", pytorch.baselines, 300, 400, "PyTorch eager, graph, compiled + graph"),
    Step("speed", reports.speed, 60, 200, "reports from POST to stored, beside ncu", counts=True),
    Step("agreement", checks.agreement, 300, 450, "our counters against ncu's, metric by metric", counts=True),
    Step("bandwidth", kernels.bandwidth, 62, 240, "every family against the best copy; small sizes cold and warm"),
    Step("soak", reports.soak, 390, 580, "1000 basic profiles in a row on one worker", counts=True),
]


def find(name):
    """The step of that name, or test:NAME, one GPU test by itself; None when there is none."""
    kind, _, test = name.partition(":")
    if kind == "test" and test:
        return Step(name, functools.partial(checks.one_test, name=test), 10, checks.TEST_SECONDS, f"the GPU test {test}")
    return next((step for step in STEPS if step.name == name), None)
