"""Every step of a sitting, the most wanted first. Expected seconds are those of an H200; a step is ended at its limit."""
import functools

from ..runner import Step
from . import checks, kernels, reports, training

STEPS = [
    Step("device", checks.device, 2, 30, "what the device is"),
    Step("ceilings", kernels.ceilings, 5, 60, "what the device can do at best; floors of later jobs follow from them"),
    Step("job", training.job, 15, 120, "the main job over HTTP, all passes"),
    Step("training", training.epochs, 70, 300, "epochs of every engine, precision and batch, over HTTP and by bench_train"),
    Step("speed", reports.speed, 60, 200, "reports from POST to stored, beside ncu"),
    Step("memory", training.memory, 20, 90, "device memory of the job by purpose"),
    Step("perf_phases", training.phases, 25, 120, "where a training step's time goes, by launch"),
    Step("lombscargle", kernels.lombscargle, 30, 150, "every version, type and build of the periodogram"),
    Step("bandwidth", kernels.bandwidth, 60, 240, "every family against the best copy; small sizes cold and warm"),
    Step("tests", checks.tests, 240, 560, "the GPU tests of CTest, each by its name"),
    Step("rules", checks.rules, 30, 120, "every rule against the kernel that is made for it"),
    Step("baselines", training.baselines, 240, 480, "PyTorch eager, graph, compiled + graph"),
    Step("accuracy", training.accuracy, 30, 560, "accuracy after 1, 5 and 10 epochs beside PyTorch, seed by seed"),
    Step("agreement", checks.agreement, 120, 420, "our counters against ncu's, metric by metric"),
    Step("sanitizer", checks.sanitizer, 60, 420, "compute-sanitizer: memcheck, racecheck, synccheck"),
    Step("ptx80", checks.ptx80, 30, 150, "training by code that the driver compiled from PTX for 8.0"),
    Step("soak", reports.soak, 450, 580, "1000 basic profiles in a row on one worker"),
]


def find(name):
    """The step of that name, or test:NAME, one GPU test by itself; None when there is none."""
    kind, _, test = name.partition(":")
    if kind == "test" and test:
        return Step(name, functools.partial(checks.one_test, name=test), 10, checks.TEST_SECONDS, f"the GPU test {test}")
    return next((step for step in STEPS if step.name == name), None)
