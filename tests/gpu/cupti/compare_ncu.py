#!/usr/bin/env python3
"""Compares our counters with Nsight Compute's for the same kernels, in one sitting.

  compare_ncu.py [--out DIR] [--ratio 0.03] [--runs 4] PROBE [PROBE-ARGUMENT...]

Runs `PROBE count` and `ncu PROBE run` in turns; a run whose kernels are not those of the first is made again, since a library
may choose by timing. A metric of a kernel
  is equal       a count that is the same in every run of both;
  agrees         the medians lie within RATIO of each other;
  within spread  the ranges over the runs overlap, or the medians are as near as ncu's own runs are to each other;
  small          what is compared is too little for that: see SMALL below;
  known          the tools differ on purpose: see KNOWN below;
  DIFFERS        otherwise.
Writes comparison.md and the first run's values to DIR. Exit code: 0 nothing differs, 1 something does, 77 can't be run here."""
import argparse
import csv
import io
import math
import os
import shutil
import statistics
import subprocess
import sys

EXACT = {"smsp__inst_executed.sum"}
# Half a percentage point, and traffic of less than 64 KiB, where fetching code and constants is most of it.
SMALL_POINTS, SMALL_BYTES = 0.5, 65536
# ncu's flush leaves dirty lines behind, which are then written back while the kernel runs; ours only reads.
KNOWN_WRITES = "dram__bytes_write.sum"
KNOWN_WRITE_BYTES = 1 << 20


def our_counts(probe, arguments):
    done = subprocess.run([probe, "count", *arguments], capture_output=True, text=True)
    if done.returncode == 77:
        print(done.stdout.strip())
        sys.exit(77)
    if done.returncode != 0:
        sys.exit(f"{probe} count: {done.stderr.strip() or done.stdout.strip()}")
    kernels, names, launches = [], [], []
    for ordinal, launch, kernel, metric, value in csv.reader(io.StringIO(done.stdout)):
        if int(ordinal) == len(kernels):
            kernels.append({})
            names.append(kernel)
            launches.append(launch)
        kernels[-1][metric] = float(value) if value else math.nan
    return kernels, names, done.stdout, launches


def ncu_counts(ncu, probe, arguments, metrics):
    done = subprocess.run([ncu, "--profile-from-start", "off", "--cache-control", "all", "--clock-control", "none", "--metrics", ",".join(metrics), "--csv", "--page",
                           "raw", "--print-units", "base", "--kernel-name-base", "demangled", probe, "run", *arguments],
                          capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode != 0 or len(lines) < 3:
        sys.exit(f"ncu: {done.stderr.strip()} {done.stdout.strip()[-2000:]}")
    rows = list(csv.DictReader(lines))[1:]  # the first holds the units
    kernels = [{m: number(row.get(m, "")) for m in metrics} for row in rows]
    return kernels, [row["Kernel Name"] for row in rows], "\n".join(lines) + "\n"


def functions(run):
    """The kernels of a run by function, without template and call arguments, which the tools write differently."""
    return [name.removeprefix("void ").split("<")[0].split("(")[0] for name in run[1]]


def keep_same(runs, run, kernels):
    if functions(run) == kernels:
        runs.append(run)


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return math.nan


def median(runs, kernel, metric):
    return statistics.median(run[0][kernel].get(metric, math.nan) for run in runs)


def show(values):
    return " / ".join("–" if math.isnan(v) else f"{v:.6g}" for v in values)


def apart(a, b):
    return 0.0 if a == b else abs(a - b) / max(abs(a), abs(b))


def verdict(metric, ours, theirs, ratio, traffic, written):
    """The word above, and how far the medians are apart. traffic: bytes from and to DRAM; written: (ours, ncu's)."""
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
    in_bytes = metric.startswith("dram__bytes")
    if (".pct" in metric and abs(mine - other) < SMALL_POINTS) or ((in_bytes or "hit_rate" in metric) and traffic < SMALL_BYTES):
        return "small", distance
    if metric.startswith(KNOWN_WRITES) and 0 <= written[1] - written[0] < KNOWN_WRITE_BYTES:
        return "known", distance
    return "DIFFERS", distance


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

    ours, theirs = [our_counts(options.probe, options.arguments)], []
    metrics, kernels = list(ours[0][0][0]), functions(ours[0])
    for attempt in range(4 * options.runs):
        if len(theirs) < options.runs:
            keep_same(theirs, ncu_counts(ncu, options.probe, options.arguments, metrics), kernels)
        if len(ours) < options.runs:
            keep_same(ours, our_counts(options.probe, options.arguments), kernels)
    if min(len(ours), len(theirs)) < options.runs:
        sys.exit(f"only {len(theirs)} of {attempt + 1} runs of ncu, and {len(ours)} of ours, launched the kernels {kernels}")

    out = ["| kernel | metric | ours | ncu | apart | |", "| --- | --- | --- | --- | --- | --- |"]
    tally = {}
    for k in range(len(kernels)):
        launch = ours[0][3][k]
        traffic = median(ours, k, "dram__bytes.sum")
        written = median(ours, k, KNOWN_WRITES), median(theirs, k, KNOWN_WRITES)
        for metric in metrics:
            mine, other = [o[0][k][metric] for o in ours], [t[0][k][metric] for t in theirs]
            word, distance = verdict(metric, mine, other, options.ratio, traffic, written)
            tally[word] = tally.get(word, 0) + 1
            far = "–" if math.isnan(distance) else f"{100 * distance:.2f} %"
            out.append(f"| {k} {launch}: {kernels[k][:60]} | {metric} | {show(mine)} | {show(other)} | {far} | {word} |")
    text = "\n".join(out) + "\n"
    print(text)
    print("verdicts: " + ", ".join(f"{n} {word}" for word, n in sorted(tally.items())))
    if options.out:
        os.makedirs(options.out, exist_ok=True)
        for name, content in [("comparison.md", text), ("ours.csv", ours[0][2]), ("ncu.csv", theirs[0][2])]:
            with open(os.path.join(options.out, name), "w", encoding="utf-8") as file:
                file.write(content)
    sys.exit(1 if "DIFFERS" in tally else 0)


if __name__ == "__main__":
    main()
