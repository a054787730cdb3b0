"""All measurement steps by priority. expected_s is the duration on an H200; a step is ended after limit_s."""
import functools

from ..runner import Step
from . import checks, hostile, kernels, layer, pytorch, reports, suites, training

STEPS = [
    Step("device", checks.device, 1, 30, "properties of the device"),
    Step("ceilings", kernels.ceilings, 3, 60, "peak rates of the device; the floors of later jobs follow from them"),
    Step("job", training.job, 7, 120, "a training job in FP32 and FP16 over HTTP, with all passes", uses_counters=True),
    Step("training", training.epochs, 50, 300, "epochs of every engine, precision and batch size, over HTTP and by bench_train"),
    Step("memory", training.memory, 20, 90, "device memory of the job by purpose"),
    Step("perf_phases", training.phases, 25, 120, "duration of a training step by launch"),
    Step("traced", training.traced, 55, 150, "how much longer a traced epoch takes; nothing else should run on the host"),
    Step("lombscargle", kernels.lombscargle, 9, 150,
         "every version, data type and build (fatbin or NVRTC) of the Lomb-Scargle periodogram",
         uses_counters=True),  # the first pass takes longer while another GPU uses counters
    Step("rules", checks.rules, 12, 120, "every rule on a kernel that triggers it and on one that does not", uses_counters=True),
    Step("tests", checks.tests, 220, 400, "the GPU tests of CTest, one after another", uses_counters=True),
    Step("numerics", checks.numerics, 40, 300, "GPU tests without time measurements, for each engine", shares_gpu=True),
    Step("accuracy", pytorch.accuracy, 100, 400, "our and PyTorch's accuracy after 1, 5 and 10 epochs, by seed", shares_gpu=True),
    Step("sanitizer", checks.sanitizer, 130, 300, "compute-sanitizer: memcheck, racecheck, synccheck", shares_gpu=True),
    Step("ptx80", checks.ptx80, 50, 150, "training with code that the driver compiles from PTX of compute capability 8.0",
         shares_gpu=True),
    Step("baselines", pytorch.baselines, 300, 400, "epochs of PyTorch: eager, CUDA graph, compiled CUDA graph"),
    Step("speed", reports.speed, 60, 200, "duration of our reports, from POST until stored, and of ncu's", uses_counters=True),
    Step("posted", reports.posted, 110, 200, "duration of jobs with posted kernels, from POST until stored", uses_counters=True),
    Step("agreement", checks.agreement, 300, 450, "our counters compared with ncu's, by metric", uses_counters=True),
    Step("bandwidth", kernels.bandwidth, 62, 240,
         "bandwidth of every kernel operator relative to the fastest copy; small sizes with cold and warm caches"),
    Step("layer", layer.layer, 280, 500, "the transformer layer in each variant, its timeline, and the layer in PyTorch"),
    Step("decode", functools.partial(layer.layer, phases=("decode",)), 120, 300, "step layer, but only decoding of one token"),
    Step("suites", suites.suites, 150, 400, "the shipped regression suites, once each"),
    Step("slowed", suites.slowed, 125, 500, "intentionally slowed kernels: verdicts and causes", uses_counters=True),
    Step("neighbour", suites.neighbour, 80, 140, "a suite while another process lowers the clocks: verdicts and causes",
         uses_counters=True),
    Step("suite_cost", suites.suite_cost, 40, 400, "processor time of the daemon for a job of a suite and of a client"),
    Step("recorded_mnist", functools.partial(suites.record_blocks, name="mnist"), 60, 110,
         "values of the blocks of suite mnist, with unchanged code"),
    Step("recorded_kernels", functools.partial(suites.record_blocks, name="kernels"), 60, 260,
         "values of the blocks of suite kernels, with unchanged code"),
    Step("unchanged", suites.unchanged, 120, 580, "runs of a regression suite in which nothing changed"),
    Step("check_cost", reports.check_cost, 60, 180, "times of posted kernels with the checks after each launch, and without"),
    Step("hostile", hostile.hostile, 440, 590,
         "up to 1000 malicious or malformed posts in a row: how each ends, leaks, and the time of an ordinary kernel"),
    Step("soak", reports.soak, 390, 580, "1000 basic profiles in a row on one worker", uses_counters=True),
]


def find(name):
    """Returns the step of this name, or for test:NAME a step that runs one GPU test; None when there is none."""
    kind, _, test = name.partition(":")
    if kind == "test" and test:
        return Step(name, functools.partial(checks.one_test, name=test), 10, checks.TEST_TIMEOUT_S, f"the GPU test {test}")
    return next((step for step in STEPS if step.name == name), None)
