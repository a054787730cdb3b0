"""scripts/gpu-test.sh --out DIR [--steps A,B,...] [--budget-s N] [--keep FILE] [--device gpu0|cpu] [--build DIR]

Runs what needs a device, from a carried build (scripts/gpu-pack.sh) and without a network, the most wanted first. DIR gets
results.json, every number of every step, logs.tar.gz and summary.md; scripts/tables.py makes the tables of docs/measurements of
the first. The exit status says whether a step failed. A step that would not fit into the budget is not begun, and said not to
have been run. With --keep FILE what passed there, of the same commit, is not run again: the same command a second time goes on
where the first stopped. On several GPUs steps run side by side."""
import argparse
import pathlib
import shutil
import sys

from . import runner
from .host import Host, gpus
from .steps import STEPS, find
from .tables import summary


def options():
    listed = "\n".join(f"  {s.name:14} {s.expected_s:4} s  {s.what}" for s in STEPS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     prog="gpu-test.sh",
                                     epilog=f"steps:\n{listed}\n  test:NAME             one of the GPU tests")
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", default=",".join(step.name for step in STEPS))
    parser.add_argument("--budget-s", type=float, default=1e6)
    parser.add_argument("--keep")
    parser.add_argument("--device", default="gpu0")
    parser.add_argument("--build")
    return parser.parse_args()


def main():
    asked = options()
    steps = {name: find(name) for name in asked.steps.split(",")}
    if None in steps.values():
        sys.exit(f"no step is called {', '.join(name for name, step in steps.items() if step is None)}: see --help")
    build = asked.build or (".gpu" if asked.device.startswith("gpu") else "build/dev")
    several = gpus() if asked.device == "gpu0" else []
    hosts = [Host(asked.device, build, gpu) for gpu in several] if len(several) > 1 else [Host(asked.device, build)]
    out = pathlib.Path(asked.out)
    out.mkdir(parents=True, exist_ok=True)
    results = out / "results.json"
    if asked.keep and pathlib.Path(asked.keep).exists():
        shutil.copy(asked.keep, results)
    kept = runner.Found(results, hosts[0].commit)
    well = runner.run(list(steps.values()), hosts, out, asked.budget_s, kept)
    shutil.rmtree(out / "logs", ignore_errors=True)  # they are in logs.tar.gz
    (out / "summary.md").write_text(summary(kept.commit, kept.steps))
    if asked.keep:
        shutil.copy(results, asked.keep)
    return 0 if well else 1


sys.exit(main())
