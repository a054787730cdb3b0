#!/usr/bin/env python3
"""Compares rooflined's metrics ("ours") with Nsight Compute's for the same kernels. The tools run one after the other.

  compare_ncu.py [--out DIR] [--ratio 0.03] [--sets auto,auto,auto,auto] [--gap-mib 0] PROBE [PROBE-ARGUMENT...]

For each set, the program runs `PROBE recount SET`, and `ncu PROBE run` for the same metrics. A metric that differs is collected
again with each later set, also when the set does not contain it, so that its spread over the runs is known. --gap-mib 0,6,14,18
sets $PROBE_GAP_MIB of both programs to these values in turn, so that the buffers have other addresses with each set. Kernels are
matched by function, grid and block. Where a library chooses kernels by timing, kernels that did not appear in at least two runs
of each tool are left out and listed. The verdict on a metric of a kernel:
  equal          the program determines the value (a count or a launch attribute), and it is the same in every run of both tools,
                 to the decimals that ncu prints
  derived        we derived 0 from the code, and ncu collects 0
  agrees         the medians differ by at most RATIO, or would if ncu printed more than two decimals
  within spread  the ranges over the runs overlap, or the medians differ no more than ncu's own runs
  short          times of a kernel, and rates over its time, that differ by no more than START_NS, the difference between the
                 tools' fixed costs: for a short kernel this is more than RATIO of its duration
  small          percentages that differ by less than SMALL_POINTS; ratios, traffic or hit rates of kernels that move less than
                 SMALL_BYTES, most of which is code and constants; counts below SMALL_COUNT, also as rates
  known          bytes written that differ by up to KNOWN_WRITE_BYTES: dirty lines that the flush leaves in L2 are written back
                 during the kernel, and lines that are dirty at its end are written later. Metrics of bytes read and written
                 together get this verdict too, if their parts for reads agree
  full L2        requests inside L2 and L2's throughput that differ by up to FULL_L2_RATIO: before a kernel, ncu empties L2, and
                 we fill it with clean lines, which causes more requests. With our flush, ncu counts the same
  carveout       the shared-memory carveout and the number of blocks that fit: the driver keeps the carveout of the previous
                 kernel, and each tool launches different work between two kernels
  code           instruction and constant caches and the stalls on them, which depend on the timing of blocks that start together
  sampled        PC samples: a stall reason's share differs by less than SAMPLED_POINTS percentage points, or by less than
                 SAMPLED_DEVIATIONS standard deviations of a share of that many samples
  varies         any metric of a kernel whose number of instructions differs between runs, for example because blocks wait for
                 each other in loops
  no value       neither tool has a value
  only ours, only ncu   only one tool has a value
  DIFFERS        everything else; --allow is the fraction of all metrics that may differ
Writes comparison.md, comparison.csv (every metric of every kernel) and the first run's values to DIR. Exit codes: 0: no more than
--allow differ, 1: more differ, 77: cannot run here."""
import argparse
import collections
import csv
import io
import itertools
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

INSTRUCTIONS = "smsp__inst_executed.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_"  # neither tool counts these exactly
EXACT_METRICS = re.compile(
    r"launch__|device__|sm__maximum_warps|smsp__maximum_warps|smsp__inst_executed(_op_\w+|_pipe_\w+)?\.sum$|"
    r"smsp__thread_inst_executed\w*\.sum$|smsp__sass_\w+\.sum$|l1tex__t_requests_pipe_\w+\.sum$|"
    r"l1tex__t_sectors_pipe_(?!\w*lookup)\w+\.sum$")
ENUM_VALUES = {"CachePreferNone": 0, "CachePreferShared": 1, "CachePreferL1": 2, "CachePreferEqual": 3, "PolicyDefault": 0,
               "PolicySpread": 1, "PolicyLoadBalancing": 2}
# Metrics that do not belong to a kernel, or that ncu computes in a section and does not accept by name.
NOT_IN_NCU = re.compile(r"^(code__|numa__|nvlink__|c2clink__|nvlrx__|nvltx__|ctc__|pcie__|derived__(avg|derivative|memory)_)|:")
TIME = "gpu__time_duration.sum"
TRAFFIC, WRITTEN = "dram__bytes.sum", "dram__bytes_write.sum"
SAMPLE_COUNT, SAMPLED_METRICS = "smsp__pcsamp_sample_count", re.compile("smsp__pcsamp_(warps|sample|aggregated|interval|buffer)")
START_NS = 400
ROUNDING_ERROR = 0.00501
CODE_CACHES = re.compile(r"icc_|gcc|imc_|idc__|no_instruction")
SAMPLED_POINTS, SAMPLED_DEVIATIONS = 3, 3
MAX_NAMES_BYTES = 2000  # of the metrics of one profile, which are collected together
SMALL_POINTS, SMALL_BYTES, SMALL_COUNT = 0.5, 65536, 4096
KNOWN_WRITE_BYTES = 4 << 20
READ_AND_WRITTEN = re.compile(r"(dram__bytes\.sum|dram__cycles_active|gpu__dram_throughput|fbpa__dram_sectors)\b")
FULL_L2 = re.compile(r"lts__(t_requests|t_requests_srcunit_ltcfabric|t_tag_requests|throughput)\.|"
                     r"gpu__compute_memory_access_throughput(_internal_activity)?\.")
FULL_L2_RATIO = 0.4
CARVEOUT, BLOCKS_BY_SHARED = "launch__shared_mem_config_size", "launch__occupancy_limit_shared_mem"


def function_name(name):
    """Returns the name without namespaces, template arguments and parameters, which the tools print differently."""
    name = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", name)
    return name.removeprefix("void ").split("<")[0].split("(")[0].split("::")[-1]


def parse_numbers(text):
    return tuple(int(n) for n in re.findall(r"\d+", text))


def parse_number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return ENUM_VALUES.get(text, math.nan)


class Run:
    """Metrics of one run. kernels: (function, grid, block, occurrence in the step) -> (launch, {metric: value}). derived: by
    kernel, the metrics that we derived from the code."""

    def __init__(self, text):
        self.text, self.kernels, self.derived, self.occurrences = text, {}, {}, collections.Counter()

    def add(self, name, grid, block, launch, values, derived=()):
        key = (function_name(name), grid, block)
        key = (*key, self.occurrences[key])
        self.kernels[key], self.derived[key] = (launch, values), set(derived)
        self.occurrences[key[:3]] += 1

    def extend(self, other):
        """Adds the other run's metrics of the same kernels that this run does not have."""
        for key, (_, values) in other.kernels.items():
            if key in self.kernels:
                self.kernels[key] = (self.kernels[key][0], {**values, **self.kernels[key][1]})

    def metrics(self):
        """Returns the metrics with a value for any kernel; ncu refuses names that the chip does not have."""
        return list(dict.fromkeys(metric for _, values in self.kernels.values() for metric, value in values.items()
                                  if not math.isnan(value) and not NOT_IN_NCU.search(metric)))


def collect(probe, metrics, arguments):
    process = subprocess.run([probe, "recount", metrics, *arguments], capture_output=True, text=True)
    if process.returncode == 77:
        print(process.stdout.strip())
        sys.exit(77)
    if process.returncode != 0:
        sys.exit(f"{probe} recount: {process.stderr.strip() or process.stdout.strip()}")
    run = Run(process.stdout)
    kernels = {}
    for ordinal, launch, name, grid, block, metric, reason, value in csv.reader(io.StringIO(process.stdout)):
        kernel = kernels.setdefault(int(ordinal), {"name": name, "grid": parse_numbers(grid), "block": parse_numbers(block),
                                                   "launch": launch, "values": {}, "derived": []})
        kernel["values"][metric] = parse_number(value)
        if reason.startswith("not counted"):
            kernel["derived"].append(metric)
    for kernel in kernels.values():
        run.add(**kernel)
    return run


def split_into_profiles(names):
    """Splits the names into lists that fit into a profile."""
    parts = []
    for name in names:
        if not parts or len(",".join([*parts[-1], name])) > MAX_NAMES_BYTES:
            parts.append([])
        parts[-1].append(name)
    return [",".join(part) for part in parts]


def collect_with_repeats(probe, metric_set, arguments, repeated):
    """Collects the set, and the metrics of `repeated` that the set does not contain."""
    run = collect(probe, metric_set, arguments)
    collected = set(run.metrics())
    for names in split_into_profiles(name for name in repeated if name not in collected):
        run.extend(collect(probe, names, arguments))
    return run


def collect_with_ncu(ncu, probe, arguments, wanted, refused):
    """Collects the metrics `wanted` except those in `refused`, the set of metrics that ncu does not know. Adds the metrics that
    ncu names in its errors to `refused`."""
    while True:
        metrics = [metric for metric in wanted if metric not in refused]
        process = subprocess.run([ncu, "--profile-from-start", "off", "--cache-control", "all", "--clock-control", "none",
                               "--metrics", ",".join(metrics), "--csv", "--page", "raw", "--print-units", "base",
                               "--kernel-name-base", "demangled", probe, "run", *arguments], capture_output=True, text=True)
        lines = [line for line in process.stdout.splitlines() if line.startswith('"')]
        if process.returncode == 0 and len(lines) >= 3:
            break
        errors = [line for line in (process.stderr + process.stdout).splitlines() if line.startswith("==ERROR==")]
        named = {word.strip(".") for line in errors for word in re.findall(r"[\w.:]+", line)} & set(metrics)
        if not named:
            sys.exit(f"ncu: {process.stderr.strip()} {process.stdout.strip()[-2000:]}")
        print(f"ncu refuses {', '.join(sorted(named))}")
        refused |= named
    run = Run("\n".join(lines) + "\n")
    for row in list(csv.DictReader(lines))[1:]:  # the first row has the units
        run.add(row["Kernel Name"], parse_numbers(row["Grid Size"]), parse_numbers(row["Block Size"]), "",
                {metric: parse_number(row.get(metric, "")) for metric in wanted})
    return run


def relative_difference(a, b):
    return 0.0 if a == b else abs(a - b) / max(abs(a), abs(b))


def shares_agree(part, whole, other_part, other_whole):
    """Returns True when two shares of PC samples differ by no more than chance explains, as samples of one population."""
    pooled = (part + other_part) / (whole + other_whole)
    deviation = math.sqrt(max(0, pooled * (1 - pooled)) * (1 / whole + 1 / other_whole))
    return abs(part / whole - other_part / other_whole) < max(SAMPLED_POINTS / 100, SAMPLED_DEVIATIONS * deviation)


def explained_by_writes(metric, our_median, ncu_median, ratio, median_of):
    """Returns True when the difference in bytes written explains the difference of the medians."""
    traffic, written = ([median_of(tool, name) for tool in ("ours", "ncu")] for name in (TRAFFIC, WRITTEN))
    if not abs(written[0] - written[1]) < KNOWN_WRITE_BYTES:
        return False
    medians = zip((our_median, ncu_median), traffic, written)
    # The part of each median that comes from reads.
    read = [value * (1 - written_bytes / max(1, all_bytes)) for value, all_bytes, written_bytes in medians]
    if metric.startswith((WRITTEN, "dram__sectors_write")):
        return True
    return bool(READ_AND_WRITTEN.match(metric)) and relative_difference(*read) <= ratio


def judge(metric, ours, theirs, ratio, median_of):
    """Returns the verdict and the relative difference of the medians. ours, theirs: one value per run of our program and of ncu.
    median_of(tool, metric): the median of another metric of the kernel."""
    missing = [all(math.isnan(v) for v in values) for values in (ours, theirs)]
    if any(missing):
        return "no value" if all(missing) else "only ncu" if missing[0] else "only ours", math.nan
    our_median, ncu_median = median(ours), median(theirs)
    difference = relative_difference(our_median, ncu_median)
    if SAMPLED_METRICS.match(metric):
        samples = median_of("ours", SAMPLE_COUNT), median_of("ncu", SAMPLE_COUNT)
        agree = "_warps_" not in metric or shares_agree(our_median, samples[0], ncu_median, samples[1])
        return "sampled" if agree else "DIFFERS", difference
    if metric in (CARVEOUT, BLOCKS_BY_SHARED) and median_of("ours", CARVEOUT) != median_of("ncu", CARVEOUT):
        return "carveout", difference
    if EXACT_METRICS.match(metric) and len(set(ours)) == 1 and len(set(theirs)) == 1:
        is_rounded = not our_median.is_integer() and abs(our_median - ncu_median) <= ROUNDING_ERROR
        if relative_difference(ours[0], theirs[0]) < 1e-9 or is_rounded:
            return "equal", difference
        if not metric.startswith(SECTORS) or difference > ratio:
            return "DIFFERS", difference
    if abs(our_median - ncu_median) <= ratio * max(abs(our_median), abs(ncu_median)) + ROUNDING_ERROR:
        return "agrees", difference
    overlap = min(ours) <= max(theirs) and min(theirs) <= max(ours)
    if overlap or difference <= relative_difference(min(theirs), max(theirs)):
        return "within spread", difference
    duration = max(median_of("ours", TIME), median_of("ncu", TIME))
    is_byte_count = metric.startswith("dram__bytes") and metric.endswith(".sum")
    depends_on_time = not (is_byte_count or EXACT_METRICS.match(metric) or "hit_rate" in metric)
    if depends_on_time and difference <= START_NS / duration:
        return "short", difference
    moved = max(median_of("ours", TRAFFIC), median_of("ncu", TRAFFIC))
    moves_few_bytes = moved < SMALL_BYTES and re.search("^(dram|lts|fbpa)__|hit_rate", metric)
    seconds = duration * 1e-9 if metric.endswith(".sum.per_second") else 1
    largest_count = max(abs(our_median), abs(ncu_median)) * seconds
    is_small_count = metric.endswith((".sum", ".sum.per_second")) and largest_count < SMALL_COUNT
    if moves_few_bytes or is_small_count or ("pct" in metric and abs(our_median - ncu_median) < SMALL_POINTS):
        return "small", difference
    if CODE_CACHES.search(metric):
        return "code", difference
    if FULL_L2.match(metric) and our_median > ncu_median and difference <= FULL_L2_RATIO:
        return "full L2", difference
    if explained_by_writes(metric, our_median, ncu_median, ratio, median_of):
        return "known", difference
    return "DIFFERS", difference


def instruction_counts_vary(values):
    return any(len({found[INSTRUCTIONS] for found in runs if INSTRUCTIONS in found}) > 1 for runs in values.values())


def median(values):
    known = [v for v in values if not math.isnan(v)]
    return statistics.median(known) if known else math.nan


def compare(key, ours, theirs, metrics, ratio):
    """Returns rows for one kernel: (metric, our values, ncu's values, difference, verdict)."""
    values = {"ours": [run.kernels[key][1] for run in ours if key in run.kernels],
              "ncu": [run.kernels[key][1] for run in theirs if key in run.kernels]}
    if min(len(found) for found in values.values()) < min(2, len(ours)):
        return None

    def median_of(tool, metric):
        return median([found[metric] for found in values[tool] if metric in found])

    rows = []
    derived = set().union(*(run.derived[key] for run in ours if key in run.kernels))
    for metric in metrics:
        our_values, ncu_values = ([found[metric] for found in values[tool] if metric in found] for tool in ("ours", "ncu"))
        if not our_values or not ncu_values:
            continue
        verdict, difference = judge(metric, our_values, ncu_values, ratio, median_of)
        if metric in derived:
            verdict = "derived" if set(our_values) | set(ncu_values) == {0.0} else "DIFFERS"
        elif verdict == "DIFFERS" and instruction_counts_vary(values):
            verdict = "varies"
        rows.append((metric, our_values, ncu_values, difference, verdict))
    return rows


def format_percent(difference):
    return "–" if math.isnan(difference) else f"{100 * difference:.2f} %"


def format_values(values):
    found = [v for v in values if not math.isnan(v)]
    if not found:
        return "–"
    text = f"{statistics.median(found):.6g}"
    return text if min(found) == max(found) else f"{text} ({min(found):.6g} to {max(found):.6g})"


def format_cell(value, specification):
    return "" if math.isnan(value) else format(value, specification)


def launch_names(kernels):
    """Returns the kernels' launch names, with a number where a launch has several kernels."""
    seen, names = collections.Counter(), []
    for name in (kernel.split(":")[0] for kernel in kernels):
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return names


def write_csv(path, table):
    """Writes one row per metric: for each kernel the medians, their relative difference and the verdict."""
    kernels = list(dict.fromkeys(row[0] for row in table))
    rows = {}
    for kernel, metric, our_values, ncu_values, difference, verdict in table:
        line = rows.setdefault(metric, {"runs": min(len(our_values), len(ncu_values))})
        medians = format_cell(median(our_values), ".6g"), format_cell(median(ncu_values), ".6g")
        line[kernel] = [*medians, format_cell(difference, ".4f"), verdict]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        columns = [f"{name}_{column}" for name in launch_names(kernels)
                   for column in ("ours", "ncu", "difference_ratio", "verdict")]
        writer.writerow(["metric", "runs", *columns])
        for metric, line in rows.items():
            writer.writerow([metric, line["runs"], *(cell for kernel in kernels for cell in line.get(kernel, [""] * 4))])


def format_summary(table, left_out):
    """Formats the number of metrics by kernel and verdict, then each metric that does not agree."""
    verdicts = sorted({row[-1] for row in table})
    kernels = dict.fromkeys(row[0] for row in table)
    lines = ["| kernel | metrics | " + " | ".join(verdicts) + " |", "| --- | --- |" + " --- |" * len(verdicts)]
    for kernel in kernels:
        counts = collections.Counter(row[-1] for row in table if row[0] == kernel)
        lines.append(f"| {kernel} | {sum(counts.values())} | " + " | ".join(str(counts[verdict]) for verdict in verdicts) + " |")
    counts = collections.Counter(row[-1] for row in table)
    lines.append(f"| all {len(kernels)} | {len(table)} | " + " | ".join(str(counts[verdict]) for verdict in verdicts) + " |")
    lines += [""] + [f"left out, not in two runs of both: {name}" for name in left_out]
    lines += ["", "| kernel | metric | ours | ncu | apart | |", "| --- | --- | --- | --- | --- | --- |"]
    for kernel, metric, our_values, ncu_values, difference, verdict in table:
        if verdict not in ("equal", "derived", "agrees", "no value"):
            cells = (kernel, metric, format_values(our_values), format_values(ncu_values), format_percent(difference), verdict)
            lines.append("| " + " | ".join(cells) + " |")
    lines += ["", f"{len(kernels)} kernels compared, {len(left_out)} left out",
              "", "verdicts: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))]
    return "\n".join(lines) + "\n"


def compare_all(ours, theirs, metrics, ratio):
    """Returns (kernel, metric, our values, ncu's values, difference, verdict) of all metrics, and the kernels left out."""
    table, left_out, seen = [], [], collections.Counter()
    for key in dict.fromkeys(key for run in ours for key in run.kernels):
        launch = next(run.kernels[key][0] for run in ours if key in run.kernels)
        kernel = f"{launch}: {key[0][:60]}"
        seen[kernel] += 1
        kernel += f" #{seen[kernel] - 1}" if seen[kernel] > 1 else ""
        rows = compare(key, ours, theirs, metrics, ratio)
        if rows is None:
            left_out.append(kernel)
        else:
            table += [(kernel, *row) for row in rows]
    return table, left_out


def write_results(folder, ours, theirs, table, left_out):
    os.makedirs(folder, exist_ok=True)
    write_csv(os.path.join(folder, "comparison.csv"), table)
    for name, content in [("comparison.md", format_summary(table, left_out)), ("ours.csv", ours.text), ("ncu.csv", theirs.text)]:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("probe")
    parser.add_argument("--out")
    parser.add_argument("--ratio", type=float, default=0.03)
    parser.add_argument("--allow", type=float, default=0.02)
    parser.add_argument("--sets", default="auto,auto,auto,auto")
    parser.add_argument("--gap-mib", default="0")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    ncu = shutil.which("ncu") or next((p for p in ["/usr/local/cuda/bin/ncu"] if os.path.exists(p)), None)
    if ncu is None:
        print("skipped: ncu is not installed")
        sys.exit(77)

    os.environ.setdefault("ROOFLINED_CACHE_DIR", tempfile.mkdtemp(prefix="plans-"))  # otherwise each run plans again
    ours, theirs, metrics, refused, repeated = [], [], {}, set(), {}
    for metric_set, gap_mib in zip(options.sets.split(","), itertools.cycle(options.gap_mib.split(","))):
        os.environ["PROBE_GAP_MIB"] = gap_mib
        ours.append(collect_with_repeats(options.probe, metric_set, options.arguments, repeated))
        found = ours[-1].metrics()
        metrics.update(dict.fromkeys(found))
        theirs.append(collect_with_ncu(ncu, options.probe, options.arguments, found, refused))
        table, left_out = compare_all(ours, theirs, list(metrics), options.ratio)
        repeated.update(dict.fromkeys(row[1] for row in table if row[-1] == "DIFFERS" and not SAMPLED_METRICS.match(row[1])))
        if options.out:  # after every set, in case the session ends early
            write_results(options.out, ours[0], theirs[0], table, left_out)
    print(format_summary(table, left_out))
    sys.exit(1 if not table or sum(row[-1] == "DIFFERS" for row in table) > options.allow * len(table) else 0)


if __name__ == "__main__":
    main()
