"""Formats results as Markdown: one table for each step, as in docs/measurements."""
import re
import statistics

from .markdown import MISSING, number, percent, pivot_table, points, scaled, table


def device(rows):
    properties = next((row["properties"] for row in rows if "properties" in row), {})
    return table(["property", "value"], [[name, str(value)] for name, value in properties.items()])


def ceilings(rows):
    units = {"bytes_per_s": ("GB/s", 1e9), "operations_per_s": ("TFLOP/s", 1e12)}
    jobs = {}
    for row in rows:
        if row.get("value") is not None:
            unit, divisor = next((scale for suffix, scale in units.items() if row["name"].endswith(suffix)), ("", 1))
            jobs.setdefault((row["name"], unit), []).append(number(row["value"] / divisor, 4))
    return table(["rate", "unit", "jobs, one after another"],
                 [[name, unit, ", ".join(values)] for (name, unit), values in jobs.items()])


def job(rows):
    return table(["precision", "engine", "epoch, median ms", "least ms", "images/s", "peak memory, MB", "accuracy",
                  "launches a step"],
                 [[row["variant"], row["engine"], row["summary"]["epoch_ms_median"], row["summary"]["epoch_ms_min"],
                   row["summary"]["images_per_s"], scaled(row["summary"]["peak_memory_bytes"], 1e6),
                   percent(row["summary"]["test_accuracy_ratio"]), row["summary"]["launches_per_step"]]
                  for row in rows if "summary" in row])


def client_output(rows):
    """Returns the job as rooflinectl prints it, without the explanation, whose lines are indented by two spaces."""
    tables = (re.split(r"\n\n  (?=\S)", row["shown"])[0].rstrip() for row in rows if "shown" in row)
    return "\n".join(f"```\n{text}\n```" for text in tables)


def training(rows):
    # Rows from HTTP and from bench_train name the median differently.
    epochs = [{"median": row.get("epoch_ms_median", row.get("epoch_device_ms_median")), **row} for row in rows if "by" in row]
    return pivot_table(["ms an epoch, median", "engine", "batch"], epochs, lambda row: (row["by"], row["engine"], row["batch"]),
                       lambda row: row["precision"], lambda row: number(row["median"]))


def targets(rows):
    return table(["batch", "precision", "best engine", "ms an epoch", "target", "met", "next target"],
                 [[row["batch"], row["precision"], row["best_engine"] or MISSING, row["best_ms"], row["target_ms"],
                   "yes" if row["met"] else "**no**", row["next_target_ms"]]
                  for row in rows if "target_ms" in row])


def parts(rows):
    """Formats the durations of the single launches of a step. For a launch that runs a whole epoch, formats those of its
    phases."""
    cells = [{"column": f"{row['engine']} {row['precision']}", "name": name, "us": us} for row in rows
             for name, us in row.get("parts_us", {}).items()]
    return pivot_table(["µs"], cells, lambda cell: (cell["name"],), lambda cell: cell["column"], lambda cell: number(cell["us"]))


def speed(rows):
    return table(["kernels", "set", "median s", "least s", "most s", "first s", "at most s", "ncu s"],
                 [[row["kernels"], row["set"], row["median_s"], row["least_s"], row["most_s"], row["first_s"],
                   row["at_most_s"], row.get("ncu_s")] for row in rows if "median_s" in row])


def posted(rows):
    return table(["passes", "pause s", "median s", "least s", "most s", "first s", "at most s"],
                 [[row["passes"], row["pause_s"], row["median_s"], row["least_s"], row["most_s"], row["first_s"],
                   row["at_most_s"]] for row in rows if "median_s" in row])


def memory(rows):
    purposes = ("weights", "activations", "workspace", "besides_dataset", "dataset")
    return table(["engine", "precision", "batch", *(f"{purpose.replace('_', ' the ').replace('the dataset', 'the data set')}, MB"
                                                    for purpose in purposes)],
                 [[row["engine"], row["precision"], row["batch"], *(scaled(row[f"{purpose}_bytes"], 1e6) for purpose in purposes)]
                  for row in rows if "peak_bytes" in row])


def perf_phases(rows):
    """Formats the microseconds by which each launch, with all its kernels, delays the end of a step."""
    sums = {}
    for row in rows:
        if "later_us" in row:
            key = row["batch"], row["launch"] or row["kernel"], f"{row['engine']} {row['precision']}"
            sums[key] = sums.get(key, 0) + row["later_us"] / row["steps"]
    for row in rows:
        if "traced_ms" in row:
            for name in ("traced", "epoch"):
                sums[row["batch"], f"*{name} / steps*",
                     f"{row['engine']} {row['precision']}"] = 1e3 * row[f"{name}_ms"] / row["steps"]
    cells = [{"batch": batch, "launch": launch, "column": column, "us": us} for (batch, launch, column), us in sums.items()]
    return pivot_table(["batch", "µs a step"], sorted(cells, key=lambda row: row["batch"]),
                       lambda row: (row["batch"], row["launch"]), lambda row: row["column"], lambda row: number(row["us"]))


def traced(rows):
    jobs = {}
    for row in rows:
        if "perturbation_ratio" in row:
            jobs.setdefault((row["engine"], row["precision"], row["batch"]), []).append(row)
    ratios = {key: sorted(row["perturbation_ratio"] for row in group) for key, group in jobs.items()}
    return table(["engine", "precision", "batch", "jobs", "untraced ms, median", "ratio, median", "least", "most"],
                 [[*key, len(group), statistics.median(row["epoch_untraced_ms"] for row in group),
                   *(number(ratio, 4) for ratio in (statistics.median(ratios[key]), ratios[key][0], ratios[key][-1]))]
                  for key, group in jobs.items()])


def lombscargle(rows):
    return table(["version", "type", "build", "registers", "first ms", "compile ms", "median ms", "speed-up", "error"],
                 [[row["version"], row["dtype"], row["build"], row["registers"], row["first_ms"], row.get("compile_ms"),
                   number(row["median_ms"], 4), row["speed_up"], f"{row['error']:.2e}"] for row in rows if "version" in row])


def bandwidth(rows):
    copies = [row["best_copy_bytes_per_s"] for row in rows if "best_copy_bytes_per_s" in row]
    best = {}
    for row in rows:
        if row.get("size") == "large":
            key = row["kernel"], shape_of(row), row["dtype"]
            best[key] = max(best.get(key, (0, "")), (row["bytes_per_s"], row["variant"]))
    cells = [{"key": key[:2], "dtype": key[2], "text": f"{rate / 1e9:.0f} ({percent(rate / max(copies), 1)}, {variant})"}
             for key, (rate, variant) in best.items()]
    large = pivot_table(["GB/s (of the best copy)", "columns"], cells, lambda row: row["key"], lambda row: row["dtype"],
                        lambda row: row["text"])
    small = [row for row in rows if row.get("size") == "small"]
    small = pivot_table(["fp16, µs cold / warm", "columns"], small, lambda row: (row["kernel"], shape_of(row)),
                        lambda row: f"{row['buffer_bytes'] >> 10} KiB",
                        lambda row: f"{number(row['cold_us'])} / {number(row['warm_us'])}")
    copy = "best copy, GB/s: " + ", ".join(f"{rate / 1e9:.0f}" for rate in copies) if copies else ""
    return "\n\n".join(part for part in (copy, large, small) if part)


def shape_of(row):
    return str(row["shape"].get("columns", MISSING)) if row["size"] == "large" else MISSING


def tests(rows):
    return table(["test", "outcome", "s", "inside: passed", "failed", "skipped"],
                 [[row["test"], row["outcome"], row.get("seconds"),
                   *(row.get("inside", {}).get(word, 0) for word in ("passed", "failed", "skipped"))]
                  for row in rows if "test" in row])


def baselines(rows):
    epochs = [row for row in rows if "framework" in row]
    times = pivot_table(["ms an epoch, median", "variant"], epochs,
                        lambda row: (row["framework"], row.get("variant", row.get("engine"))), lambda row: row["precision"],
                        lambda row: number(row["epoch_device_ms_median"]))
    ratios = table(["precision", "times as fast as PyTorch's compiled graph"],
                   [[row["precision"], row["times_faster_than_compile"]] for row in rows if "times_faster_than_compile" in row])
    return "\n\n".join(part for part in (times, ratios) if part)


def accuracy(rows):
    return table(["precision", "after epochs", "seeds ours / PyTorch", "ours", "PyTorch", "difference, points", "95 % interval"],
                 [[row["precision"], row["after"], " / ".join(map(str, row["seeds"])), percent(row["ours_mean"], 3),
                   percent(row.get("pytorch_mean"), 3), points(row.get("difference")),
                   MISSING if row.get("low") is None else f"{points(row['low'])} to {points(row['high'])}"]
                  for row in rows if "ours_mean" in row])


def agreement(rows):
    """Formats two tables. The first counts the verdicts by kernel, and separately the verdict DIFFERS among metrics that were
    collected repeatedly. The second has the metrics that differ."""
    kernels = [row for row in rows if "words" in row]
    verdicts = sorted({verdict for row in kernels for verdict in row["words"]})

    def line(subject, kernel, summed):
        sums = [sum(row[column] for row in summed) for column in ("numbers", "repeated", "repeated_differ")]
        return [subject, kernel, *sums, *(sum(row["words"].get(verdict, 0) for row in summed) for verdict in verdicts)]

    counts = [line(row["subject"], row["kernel"], [row]) for row in kernels]
    counts += [line("all", len(kernels), kernels)] if kernels else []
    differences = {}
    for row in rows:
        if "metric" in row:
            text = f"{row['kernel']} {percent(float(row['difference_ratio']), 1)}"
            differences.setdefault((row["metric"], row["runs"]), []).append(text)
    return "\n\n".join(part for part in (
        table(["subject", "kernel", "numbers", "repeated", "of these DIFFERS", *verdicts], counts),
        table(["metric that differs", "runs", "kernels and relative differences"],
              [[*metric, ", ".join(kernels_differing)] for metric, kernels_differing in sorted(differences.items())])) if part)


def sanitizer(rows):
    def findings(row):
        return f"{row['found']} ({row['seconds']} s)" if row["status"] in (0, 9) else f"{MISSING} ({row['output'][:60]})"

    return pivot_table(["errors or hazards"], [row for row in rows if "tool" in row], lambda row: (row["subject"],),
                       lambda row: row["tool"], findings)


def ptx80(rows):
    return pivot_table(["accuracy after four epochs"], [row for row in rows if "engine" in row], lambda row: (row["engine"],),
                       lambda row: row["precision"],
                       lambda row: percent(row["test_accuracy_ratio"]) if "refused" not in row else MISSING)


def suites(rows):
    return table(["suite", "s", "estimated before the run, s"],
                 [[row["suite"], row["seconds"], row["estimated_s"]] for row in rows if "suite" in row])


def unchanged(rows):
    """Formats the verdicts and effects of each metric over all runs that had a baseline."""
    runs = [row for row in rows if "metrics" in row]
    by_metric = {}
    for metric in (metric for row in runs for metric in row["metrics"] if metric["verdict"] != "incomparable"):
        by_metric.setdefault(metric["metric"], []).append(metric)

    def line(name, metrics):
        effects = sorted(abs(metric["effect_ratio"]) for metric in metrics if metric["effect_ratio"] is not None)
        verdicts = [sum(metric["verdict"] == verdict for metric in metrics)
                    for verdict in ("same", "inconclusive", "slower", "faster")]
        return [name, len(metrics), *verdicts, *(percent(effect, 2) if effect is not None else MISSING
                                                 for effect in (statistics.median(effects) if effects else None,
                                                                effects[-1] if effects else None))]

    counts = table(["metric", "runs", "same", "inconclusive", "slower", "faster", "median of the effects' sizes", "largest"],
                   [line(name, metrics) for name, metrics in sorted(by_metric.items())])
    quarantined = sum(row["quarantine_reason"] is not None for row in runs)
    seconds = [row["seconds"] for row in runs]
    return f"{len(runs)} runs, {quarantined} of them quarantined; median {number(statistics.median(seconds))} s a run.\n\n" \
           f"{counts}" if runs else ""


def slowed(rows):
    def cause(row):
        if not row["causes"]:
            return MISSING
        first = row["causes"][0]
        return f"{first['class']}: {', '.join(item['property'] for item in first['evidence'])}"

    return table(["change", "before, µs", "after, µs", "effect", "verdict", "first cause: evidence"],
                 [[row["change"], row["baseline_median"], row["current_median"],
                   MISSING if row["effect_ratio"] is None else percent(row["effect_ratio"], 2), row["verdict"], cause(row)]
                  for row in rows if "change" in row])


def suite_cost(rows):
    """Formats the median of the daemon's processor time per job, by the submitter of the jobs."""
    ms_by_submitter = {name: [row["ms_per_job"] for row in rows if row["submitter"] == name] for name in ("client", "suite")}
    return table(["jobs of a", "ms of processor time a job, median", "rounds"],
                 [[name, statistics.median(values), ", ".join(map(number, values))]
                  for name, values in ms_by_submitter.items() if values])


def neighbour(rows):
    def part(cause):
        return "" if cause["difference_us"] is None else f" {cause['difference_us']:+.3g} µs"

    def classes(row):
        return ", ".join(cause["class"] + part(cause) for cause in row["causes"]) or MISSING

    def effect(ratio):
        return MISSING if ratio is None else percent(ratio, 2)

    return table(["metric", "before", "beside the neighbour", "effect", "effect on cycles", "blocks, dropped", "verdict",
                  "causes"],
                 [[row["metric"], row["baseline_median"], row["current_median"], effect(row["effect_ratio"]),
                   effect(row["cycles_effect_ratio"]), f"{row['blocks_current']}, {row['blocks_dropped']}", row["verdict"],
                   classes(row)] for row in rows if "metric" in row])


def recorded(rows):
    """Formats the number of values of each metric, and their spread: the largest value divided by the smallest, minus 1."""
    metrics = {}
    for row in rows:
        for metric, roles in row.get("values", {}).items():
            metrics.setdefault(metric, []).extend(roles.get("block", []))
    lines = []
    for metric, values in sorted(metrics.items()):
        kept = [value for value in values if value is not None]
        spread = percent(max(kept) / min(kept) - 1, 2) if kept and min(kept) > 0 else MISSING
        lines.append([metric, len(kept), len(values) - len(kept), statistics.median(kept) if kept else None, spread])
    return table(["metric", "blocks", "dropped", "median", "spread"], lines)


def soak(rows):
    done = next((row for row in rows if "jobs_done" in row), None)
    if done is None:
        return ""
    us = done["kernel_us"]
    tenth = max(1, len(us) // 10)
    first, last = (number(statistics.median(times)) for times in (us[:tenth], us[-tenth:]))
    summary_line = f"{done['jobs_done']} jobs in {done['seconds']:.0f} s; " \
           f"the kernel's median time {first} µs in the first tenth, {last} µs in the last."
    fits = table(["fit over all but the first tenth", "begin", "end", "growth", "95 % interval"],
                 [[f"{row['fit']}, {row['unit']}", row["begin"], row["end"], percent(row["growth_ratio"]),
                   f"{percent(row['low'])} to {percent(row['high'])}"]
                  for row in rows if "fit" in row])
    return f"{summary_line}\n\n{fits}"


def layer(rows):
    """Formats three tables: the times of our and PyTorch's variants by phase and data type, their ratios, and the share of the
    ceilings that matrix products reach."""
    def line(row):
        framework = f"{row['framework'].partition('+')[0]}, " if "framework" in row else ""
        floor_us, gained, rate = (row.get(name) for name in ("floor_us", "gained_ratio", "product_operations_per_s"))
        return [row["phase"], row["dtype"], framework + row["variant"], number(row["cold_us"], 4), number(row["warm_us"], 4),
                percent(floor_us / row["cold_us"], 1) if floor_us else MISSING, percent(gained, 1) if gained else MISSING,
                number(row["token_us"], 3) if "token_us" in row else MISSING, number(rate / 1e12, 4) if rate else MISSING,
                f"{row['error']:.1e}" if "error" in row else MISSING, row.get("clock_mhz") or MISSING]

    timed = sorted((row for row in rows if "token_us" in row), key=phase_and_type)
    timed += median_torch_rows(rows)
    times = table(["phase", "type", "variant", "cold, µs", "warm, µs", "of the floor", "gained", "a token, µs",
                   "products, TFLOP/s", "error", "least SM clock, MHz"], [line(row) for row in sorted(timed, key=phase_and_type)])
    ratios = table(["phase", "type", "best: times as fast as torch.compile, cold", "warm"],
                   [[row["phase"], row["dtype"], number(row["speedup_cold"], 4), number(row["speedup_warm"], 4)]
                    for row in sorted((row for row in rows if "speedup_cold" in row), key=phase_and_type)])
    return "\n\n".join(part for part in (times, ratios, layer_ceilings(rows)) if part)


def phase_and_type(row):
    """Returns a key that sorts prefill before decode and FP16 before BF16."""
    return row["phase"] != "prefill", row["dtype"] != "fp16"


def median_torch_rows(rows):
    """Returns a row for each phase, type and variant of PyTorch, with the medians of all rounds."""
    rounds = {}
    for row in (row for row in rows if "framework" in row and "cold_us" in row):
        rounds.setdefault((row["phase"], row["dtype"], row["variant"]), []).append(row)
    return [{**rows_of_variant[0],
             **{name: statistics.median(row[name] for row in rows_of_variant) for name in ("cold_us", "warm_us")}}
            for rows_of_variant in rounds.values()]


def layer_ceilings(rows):
    """Formats the highest known rates of matrix products, and the shares of them that the products of each variant reach in the
    phase prefill."""
    lines = []
    for ceiling in (row for row in rows if row.get("large_product_operations_per_s")):
        variants = [row for row in rows if (row.get("phase"), row.get("dtype")) == ("prefill", ceiling["dtype"]) and
                    row.get("product_operations_per_s")]
        for kind in ("large_product_operations_per_s", "tensor_operations_per_s"):
            name = "product of 8192 × 8192 × 4096" if kind.startswith("large") else "tensor cores (ceilings job)"
            lines.append([ceiling["dtype"], name, number(ceiling[kind] / 1e12, 4) if ceiling[kind] else MISSING,
                          ", ".join(f"{row['variant']} {percent(row['product_operations_per_s'] / ceiling[kind], 1)}"
                                    for row in variants if ceiling[kind])])
    return table(["type", "ceiling", "TFLOP/s", "share that the products of prefill reach"], lines)


def layer_timeline(rows):
    """Formats the share of each class of time in the window, for the FP16 runs."""
    runs = [row for row in rows if row.get("classes") and row["dtype"] == "fp16"]
    cells = [{"run": f"{row['phase']} {row['variant']}", "class": name, "share": time_ns / sum(row["classes"].values())}
             for row in runs for name, time_ns in row["classes"].items() if time_ns]
    return pivot_table(["class of time"], cells, lambda cell: (cell["class"],), lambda cell: cell["run"],
                       lambda cell: percent(cell["share"], 1))


def layer_findings(rows):
    """Formats the findings of the timeline of each variant, for the FP16 runs. A variant without findings has one line. Rows of
    earlier versions have only the messages of findings and are left out."""
    lines = []
    for row in (row for row in rows if "findings" in row and row["dtype"] == "fp16"):
        for finding in [item for item in row["findings"] if isinstance(item, dict)] or [None][:not row["findings"]]:
            told = [MISSING] * 3 if finding is None else [
                finding["title"], percent(finding["share_pct"] / 100, 1),
                MISSING if finding["saving_pct"] is None
                else f"{percent(finding['saving_pct'] / 100, 1)} of {'it' if finding['scope'] == 'local' else 'the window'}"]
            lines.append([row["phase"], row["variant"], *told])
    return table(["phase", "variant", "finding", "share of the window", "saves about"], lines)


def layer_launches(rows):
    """Formats the microseconds of each launch in the activity pass, for the FP16 runs."""
    cells = [{"launch": launch, "run": f"{row['phase']} {row['variant']}", "us": us} for row in rows
             if row.get("launches") and row["dtype"] == "fp16" for launch, us in row["launches"].items()]
    return pivot_table(["µs"], cells, lambda cell: (cell["launch"],), lambda cell: cell["run"], lambda cell: number(cell["us"]))


def interval(low, high):
    return f"{low:.3f} to {high:.3f}"


def check_cost(rows):
    return table(["program", "cache", "checked, µs", "not checked, µs", "ratio", "95 % interval", "ratios of openings",
                  "openings"],
                 [[row["program"], row["cache"], row["checked_us"], row["unchecked_us"], f"{row['ratio']:.3f}",
                   interval(row["low_ratio"], row["high_ratio"]), interval(row["least_ratio"], row["most_ratio"]),
                   row["openings"]] for row in rows if "checked_us" in row])


def hostile(rows):
    return table(["posts", "ordinary kernel, cold, µs", "daemon, MB", "files of the daemon", "workers", "device memory, MB"],
                 [[row["posts"], row["cold_us"], scaled(row["daemon_bytes"], 1e6), row["daemon_descriptors"], row["workers"],
                   row["device_bytes"] and scaled(row["device_bytes"], 1e6)] for row in rows if "cold_us" in row])


TABLES = {"device": device, "ceilings": ceilings, "job": job, "training": training, "speed": speed, "posted": posted,
          "memory": memory, "perf_phases": perf_phases, "traced": traced, "lombscargle": lombscargle, "bandwidth": bandwidth,
          "tests": tests, "numerics": tests, "test": tests, "rules": tests, "baselines": baselines, "accuracy": accuracy,
          "agreement": agreement, "layer": layer, "decode": layer, "sanitizer": sanitizer, "ptx80": ptx80, "soak": soak,
          "check_cost": check_cost, "hostile": hostile, "suites": suites, "unchanged": unchanged, "slowed": slowed,
          "neighbour": neighbour, "suite_cost": suite_cost, "recorded_mnist": recorded, "recorded_kernels": recorded}


# Further tables: name, then the step whose rows it shows, and the function that formats it.
VIEWS = {"shown": ("job", client_output), "targets": ("training", targets), "parts": ("training", parts),
         "layer_timeline": ("layer", layer_timeline), "layer_findings": ("layer", layer_findings),
         "layer_launches": ("layer", layer_launches),
         "decode_launches": ("decode", layer_launches)}


def table_of(step):
    return TABLES[step.partition(":")[0]]


def claims(rows, claim, result):
    """Returns the table of the rows that runner.check (claim "check", result "holds") or runner.target ("target", "met") made."""
    return table([claim, result, "measured"],
                 [[row[claim], "yes" if row[result] else "**no**", str(row["measured"])] for row in rows if claim in row])


def steps_table(steps):
    return table(["step", "outcome", "s", "why"],
                 [[name, step["state"], step["seconds"], step["reason"][:300].replace("|", "¦").replace("\n", " ")]
                                                   for name, step in steps.items()])


def step_text(name, step):
    parts = [f"## {name}", f"Commit {step['commit']}, {step['at']}, {step['state']}.", table_of(name)(step["rows"]),
             claims(step["rows"], "check", "holds"), claims(step["rows"], "target", "met")]
    return "\n\n".join(part for part in parts if part)


def summary(commit, steps):
    return "\n\n".join([f"# Measurements of {commit}", steps_table(steps),
                        *(step_text(name, step) for name, step in steps.items() if step["rows"])]) + "\n"


def fill_page(text, steps):
    """Returns the text of a page with a new table between <!-- NAME --> and <!-- /NAME -->, for each NAME that is a step in
    `steps`, or a table in VIEWS of such a step."""
    tables = [(name, step, table_of(name)) for name, step in steps.items()]
    tables += [(name, steps[step_name], view) for name, (step_name, view) in VIEWS.items() if step_name in steps]
    for name, step, make_table in tables:
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if begin in text and end in text and (made := make_table(step["rows"])):
            before, _, rest = text.partition(begin)
            text = f"{before}{begin}\nCommit {step['commit']}, {step['at']}.\n\n{made}\n{end}{rest.partition(end)[2]}"
    return text
