#!/usr/bin/env python3
"""Compares our counters with Nsight Compute's for the same kernels, in one sitting.

  compare_ncu.py [--out DIR] [--ratio 0.03] [--runs 4] PROBE [PROBE-ARGUMENT...]

Runs `PROBE count` and `ncu PROBE run` in turns. Kernels are matched by function, grid and block; where a library chooses its
kernels by timing, those that did not appear in at least two runs of both are left out, and said to be. A metric of a kernel
  is equal       a count that is the same in every run of both;
  agrees         the medians lie within RATIO of each other;
  within spread  the ranges over the runs overlap, or the medians are as near as ncu's own runs are to each other;
  short          a time, or what is taken over it, of a kernel so short that START_NS, the difference of the tools' fixed costs, is
                 more than RATIO of it, and apart by no more than that;
  small          percentages less than SMALL_POINTS apart; traffic, or a hit rate, of less than SMALL_BYTES, where code and constants
                 are most of it;
  known          bytes written, up to KNOWN_WRITE_BYTES more with ncu: its flush leaves dirty lines, which are written back while the
                 kernel runs, and what is still dirty in L2 at its end is written later;
  varies         anything of a kernel whose number of instructions differs from run to run, as when blocks wait for each other;
  DIFFERS        otherwise.
Writes comparison.md and the first run's values to DIR. Exit code: 0 nothing differs, 1 something does, 77 can't be run here."""
import argparse
import collections
import csv
import io
import math
import os
import re
import shutil
import statistics
import subprocess
import sys

EXACT = {"smsp__inst_executed.sum"}
TIME = "gpu__time_duration.sum"
TRAFFIC, WRITTEN = "dram__bytes.sum", "dram__bytes_write.sum"
START_NS = 400
SMALL_POINTS, SMALL_BYTES = 0.5, 65536
KNOWN_WRITE_BYTES = 4 << 20


def function(name):
    """Without template and call arguments, which the tools write differently."""
    return name.removeprefix("void ").split("<")[0].split("(")[0]


def numbers(text):
    return tuple(int(n) for n in re.findall(r"\d+", text))


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return math.nan


class Run:
    """kernels: (function, grid, block, how often that was seen before in the step) -> (launch, {metric: value})"""

    def __init__(self, text):
        self.text, self.kernels, self.seen = text, {}, collections.Counter()

    def add(self, name, grid, block, launch, values):
        key = (function(name), grid, block)
        self.kernels[(*key, self.seen[key])] = (launch, values)
        self.seen[key] += 1


def count(probe, arguments):
    done = subprocess.run([probe, "count", *arguments], capture_output=True, text=True)
    if done.returncode == 77:
        print(done.stdout.strip())
        sys.exit(77)
    if done.returncode != 0:
        sys.exit(f"{probe} count: {done.stderr.strip() or done.stdout.strip()}")
    run = Run(done.stdout)
    kernels = {}
    for ordinal, launch, name, grid, block, metric, value in csv.reader(io.StringIO(done.stdout)):
        kernels.setdefault(int(ordinal), (name, numbers(grid), numbers(block), launch, {}))[4][metric] = number(value)
    for kernel in kernels.values():
        run.add(*kernel)
    return run


def count_with_ncu(ncu, probe, arguments, metrics):
    done = subprocess.run([ncu, "--profile-from-start", "off", "--cache-control", "all", "--clock-control", "none", "--metrics",
                           ",".join(metrics), "--csv", "--page", "raw", "--print-units", "base", "--kernel-name-base",
                           "demangled", probe, "run", *arguments], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode != 0 or len(lines) < 3:
        sys.exit(f"ncu: {done.stderr.strip()} {done.stdout.strip()[-2000:]}")
    run = Run("\n".join(lines) + "\n")
    for row in list(csv.DictReader(lines))[1:]:  # the first holds the units
        run.add(row["Kernel Name"], numbers(row["Grid Size"]), numbers(row["Block Size"]), "",
                {metric: number(row.get(metric, "")) for metric in metrics})
    return run


def apart(a, b):
    return 0.0 if a == b else abs(a - b) / max(abs(a), abs(b))


def verdict(metric, ours, theirs, ratio, typical):
    """The word above, and how far the medians are apart. typical(which, metric): the median of another metric of the kernel."""
    if any(math.isnan(v) for v in ours + theirs):
        return ("no value" if all(math.isnan(v) for v in ours + theirs) else "DIFFERS"), math.nan
    mine, other = statistics.median(ours), statistics.median(theirs)
    distance = apart(mine, other)
    if metric in EXACT and len(set(ours)) == 1 and len(set(theirs)) == 1:
        return ("equal" if ours[0] == theirs[0] else "DIFFERS"), distance
    if distance <= ratio:
        return "agrees", distance
    overlap = min(ours) <= max(theirs) and min(theirs) <= max(ours)
    if overlap or distance <= apart(min(theirs), max(theirs)):
        return "within spread", distance
    counted = metric.startswith("dram__bytes") and metric.endswith(".sum") or metric in EXACT or "hit_rate" in metric
    duration = max(typical("ours", TIME), typical("ncu", TIME))
    if not counted and distance <= START_NS / duration:
        return "short", distance
    few = typical("ours", TRAFFIC) < SMALL_BYTES and (metric.startswith("dram__bytes") or "hit_rate" in metric)
    if few or (".pct" in metric and abs(mine - other) < SMALL_POINTS):
        return "small", distance
    if metric.startswith(WRITTEN) and 0 <= typical("ncu", WRITTEN) - typical("ours", WRITTEN) < KNOWN_WRITE_BYTES:
        return "known", distance
    return "DIFFERS", distance


def waits(values):
    return any(len({found[metric] for found in runs}) > 1 for runs in values.values() for metric in EXACT)


def show(values):
    return " / ".join("–" if math.isnan(v) else f"{v:.6g}" for v in values)


def compare(key, ours, theirs, metrics, ratio):
    """Rows of the table for one kernel: (metric, ours, ncu's, distance, word)."""
    values = {"ours": [run.kernels[key][1] for run in ours if key in run.kernels],
              "ncu": [run.kernels[key][1] for run in theirs if key in run.kernels]}
    if min(len(found) for found in values.values()) < 2:
        return None
    typical = lambda which, metric: statistics.median(found.get(metric, math.nan) for found in values[which])
    rows = []
    for metric in metrics:
        mine, other = ([found[metric] for found in values[which]] for which in ("ours", "ncu"))
        word, distance = verdict(metric, mine, other, ratio, typical)
        if word == "DIFFERS" and waits(values):
            word = "varies"
        rows.append((metric, show(mine), show(other), "–" if math.isnan(distance) else f"{100 * distance:.2f} %", word))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("probe")
    parser.add_argument("--out")
    parser.add_argument("--ratio", type=float, default=0.03)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    ncu = shutil.which("ncu") or next((p for p in ["/usr/local/cuda/bin/ncu"] if os.path.exists(p)), None)
    if ncu is None:
        print("skipped: ncu is not installed")
        sys.exit(77)

    ours, theirs = [], []
    for _ in range(options.runs):
        ours.append(count(options.probe, options.arguments))
        metrics = list(next(iter(ours[0].kernels.values()))[1])
        theirs.append(count_with_ncu(ncu, options.probe, options.arguments, metrics))

    lines = ["| kernel | metric | ours | ncu | apart | |", "| --- | --- | --- | --- | --- | --- |"]
    tally, compared, left_out = collections.Counter(), 0, []
    for key in dict.fromkeys(key for run in ours for key in run.kernels):
        launch = next(run.kernels[key][0] for run in ours if key in run.kernels)
        rows = compare(key, ours, theirs, metrics, options.ratio)
        if rows is None:
            left_out.append(f"{launch}: {key[0][:60]}")
            continue
        compared += 1
        for metric, mine, other, distance, word in rows:
            tally[word] += 1
            lines.append(f"| {launch}: {key[0][:60]} | {metric} | {mine} | {other} | {distance} | {word} |")
    lines += ["", f"{compared} kernels compared, {len(left_out)} left out" + "".join(f"; {name}" for name in left_out),
              "", "verdicts: " + ", ".join(f"{n} {word}" for word, n in sorted(tally.items()))]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        os.makedirs(options.out, exist_ok=True)
        for name, content in [("comparison.md", text), ("ours.csv", ours[0].text), ("ncu.csv", theirs[0].text)]:
            with open(os.path.join(options.out, name), "w", encoding="utf-8") as file:
                file.write(content)
    sys.exit(1 if tally["DIFFERS"] or compared == 0 else 0)


if __name__ == "__main__":
    main()
