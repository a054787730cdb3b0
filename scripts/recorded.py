#!/usr/bin/env python3
"""scripts/recorded.py RESULTS.json >tests/data/recorded/NAME.csv: prints the values that the steps recorded_mnist and
recorded_kernels measured, for tests/measure/false_alarms.c. A line is suite,metric,block,value; a dropped block has no value."""
import json
import sys


def conditions(steps):
    """Returns comments: the device, its UUID and driver if it has them, the commit and the time."""
    def line(step, row):
        known = [row["device_name"], row["uuid"], row["driver"] and f"driver {row['driver']}"]
        return f"# {', '.join(filter(None, known))}; commit {step['commit']}, {step['at']}"

    return sorted({line(step, row) for step in steps for row in step["rows"] if "part" in row})


def values(steps):
    """Yields (suite, metric, block, value or None), in the order of the blocks."""
    blocks = {}
    for row in (row for step in steps for row in step["rows"] if "part" in row):
        for metric, roles in sorted(row["values"].items()):
            series = blocks.setdefault((row["suite"], metric), [])
            series.extend(roles["block"])
    for (suite, metric), series in blocks.items():
        for block, value in enumerate(series):
            yield suite, metric, block, value


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        found = json.load(file)["steps"]
    steps = [found[name] for name in sorted(found) if name.startswith("recorded_")]
    if not steps:
        sys.exit(f"{sys.argv[1]} has no step recorded_mnist or recorded_kernels")
    print(*conditions(steps), "suite,metric,block,value", sep="\n")
    for suite, metric, block, value in values(steps):
        print(suite, metric, block, "" if value is None else f"{value:.9g}", sep=",")


if __name__ == "__main__":
    main()
