#!/usr/bin/env python3
"""Prints what ncu's own rules advise for the kernels with known causes (known_causes.c), one row of a Markdown table a kernel.

  ncu_optimizations.py METRICS.csv NCU.csv [--into PAGE.md]

`test_gpu_rules METRICS.csv` writes METRICS.csv, which has the launches in the order of the step. NCU.csv has the kernels in the
same order; it is the output of `ncu --set full --csv --page details cupti_probe_rules run LAUNCH...` with all launches of
known_causes.c. A row has up to three optimisations with their estimates in percent: global ones first, then the largest, each
rule once. --into writes them into the last column of the page's table."""
import argparse
import csv
import pathlib
import re
import sys

MAX_OPTIMIZATIONS = 3
HEADER = "ncu's optimisations"
KNOWN_CAUSES = pathlib.Path(__file__).with_name("known_causes.c")


def known_launches(metrics_path):
    """Returns the names of the launches with known causes in the order of the step."""
    known = set(re.findall(r'^    \{"(\w+)"', KNOWN_CAUSES.read_text(), re.MULTILINE))
    with open(metrics_path) as lines:
        return [name for name in dict.fromkeys(row[1] for row in csv.reader(lines)) if name in known]


def optimizations_by_kernel(ncu_path):
    """Returns {rule: (is global, estimate in percent)} for each of ncu's kernels, in order. Lines of the table begin with a
    quote, ncu's messages do not."""
    kernels = {}
    with open(ncu_path) as lines:
        for row in csv.DictReader(line for line in lines if line.startswith('"')):
            found = kernels.setdefault(int(row["ID"]), {})
            if row["Rule Type"] == "OPT":
                estimate = (row["Estimated Speedup Type"] == "global", float(row["Estimated Speedup"] or 0))
                found[row["Rule Name"]] = max(estimate, found.get(row["Rule Name"], estimate))
    return [kernels[number] for number in sorted(kernels)]


def format_optimizations(found):
    best = sorted(found.items(), key=lambda item: item[1], reverse=True)[:MAX_OPTIMIZATIONS]
    return ", ".join(f"{rule}{'' if is_global else ' (local)'} {percent:.0f}" for rule, (is_global, percent) in best)


def replace_last_column(page, cells):
    """Replaces the last column of the table whose header ends in HEADER."""
    lines, in_table = page.read_text().splitlines(), False
    for i, line in enumerate(lines):
        in_table = line.startswith("|") and (in_table or HEADER in line)
        *columns, _ = line.split(" | ")
        launch = columns[0].strip("| `") if columns else ""
        if in_table and launch in cells:
            lines[i] = " | ".join([*columns, cells[launch]]) + " |"
    page.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("metrics")
    parser.add_argument("ncu")
    parser.add_argument("--into", type=pathlib.Path)
    options = parser.parse_args()
    launches, found = known_launches(options.metrics), optimizations_by_kernel(options.ncu)
    if len(launches) != len(found):
        sys.exit(f"{options.metrics} has {len(launches)} launches with known causes, {options.ncu} has {len(found)} kernels")
    cells = dict(zip(launches, map(format_optimizations, found)))
    for launch, text in cells.items():
        print(f"| `{launch}` | {text} |")
    if options.into:
        replace_last_column(options.into, cells)


if __name__ == "__main__":
    main()
