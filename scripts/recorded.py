#!/usr/bin/env python3
"""scripts/recorded.py RESULTS.json >tests/data/recorded/NAME.csv: prints the values that the steps recorded_mnist and
recorded_kernels of scripts/gpu-test.sh measured, as tests/measure/false_alarms.c reads them. A line has the columns suite,
metric, block and value; the value of a dropped block is empty."""
import json
import sys


def condition_lines(steps):
    """Returns comment lines with the device, its UUID and driver if it has them, the commit and the time."""
    def line(step, row):
        known = [row["device_name"], row["uuid"], row["driver"] and f"driver {row['driver']}"]
        return f"# {', '.join(filter(None, known))}; commit {step['commit']}, {step['at']}"

    return sorted({line(step, row) for step in steps for row in step["rows"] if "part" in row})


def block_values(steps):
    """Yields (suite, metric, block, value) in the order of the blocks; the value of a dropped block is None."""
    values_by_metric = {}
    for row in (row for step in steps for row in step["rows"] if "part" in row):
        for metric, roles in sorted(row["values"].items()):
            values_by_metric.setdefault((row["suite"], metric), []).extend(roles["block"])
    for (suite, metric), values in values_by_metric.items():
        for block, value in enumerate(values):
            yield suite, metric, block, value


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        found = json.load(file)["steps"]
    steps = [found[name] for name in sorted(found) if name.startswith("recorded_")]
    if not steps:
        sys.exit(f"{sys.argv[1]} has no step recorded_mnist or recorded_kernels")
    print(*condition_lines(steps), "suite,metric,block,value", sep="\n")
    for suite, metric, block, value in block_values(steps):
        print(suite, metric, block, "" if value is None else f"{value:.9g}", sep=",")


if __name__ == "__main__":
    main()
