"""scripts/gpu-test.sh --out DIR [--steps A,B,...] [--budget-s N] [--keep FILE] [--device gpu0|gpu1|cpu] [--build DIR]

Runs the measurement steps, by default all of them by priority, without a network and from a packed build (scripts/gpu-pack.sh).
Writes to DIR: results.json (every number of every step), logs.tar.gz and summary.md. scripts/tables.py makes the tables of
docs/measurements from results.json. A step whose expected duration exceeds the remaining budget is recorded as "not run".
--device gpu0, the default, runs steps concurrently on all visible GPUs, and --device gpu1 runs them only on the second. The
exit status is 1 when a step failed, and 3 when none failed but a measurement missed its target (state "unmet").

--keep FILE takes over from FILE the results of the steps that this commit completed, and writes all results to FILE at the end,
so the same command continues an earlier session."""
import argparse
import pathlib
import shutil
import sys

from . import runner
from .host import Skip, hosts_of
from .steps import STEPS, find
from .tables import summary


def parse_options():
    step_list = "\n".join(f"  {step.name:14} {step.expected_s:4} s  {step.summary}" for step in STEPS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     prog="gpu-test.sh",
                                     epilog=f"steps:\n{step_list}\n  test:NAME             one of the GPU tests")
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", default=",".join(step.name for step in STEPS))
    parser.add_argument("--budget-s", type=float, default=1e6)
    parser.add_argument("--keep")
    parser.add_argument("--device", default="gpu0")
    parser.add_argument("--build")
    return parser.parse_args()


def main():
    options = parse_options()
    steps = {name: find(name) for name in options.steps.split(",")}
    if None in steps.values():
        sys.exit(f"no step is called {', '.join(name for name, step in steps.items() if step is None)}: see --help")
    build = options.build or (".gpu" if options.device.startswith("gpu") else "build/dev")
    try:
        hosts = hosts_of(options.device, build)
    except Skip as reason:
        sys.exit(str(reason))
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    results_file = out / "results.json"
    if options.keep and pathlib.Path(options.keep).exists():
        shutil.copy(options.keep, results_file)
    results = runner.Results(results_file, hosts[0].commit)
    status = runner.run_steps(list(steps.values()), hosts, out, options.budget_s, results)
    shutil.rmtree(out / "logs", ignore_errors=True)  # logs.tar.gz has them
    (out / "summary.md").write_text(summary(results.commit, results.steps))
    if options.keep:
        shutil.copy(results_file, options.keep)
    return status


sys.exit(main())
