"""Generates the C table of daemon/model/catalogue.h and docs/metrics.md from schema/metrics/*.json, one file per section.

    catalogue.py c OUTPUT      catalogue.py docs OUTPUT

A section has an id (from Nsight Compute, except RawPage), order, name, sets, summary, tables of rows, and optionally:

    collects     raw metrics, with units, that expressions use or only the raw page has, but no row shows directly
    rollups      groups of such metrics: each of the group's counters in each of its rollups; unit: of the counters
    unavailable  names of ncu's raw page that no pass can collect, with the reason

A row has a name, a unit and a key (both Nsight Compute's; CORRECT_UNITS corrects the unit), and optionally:

    expression  over raw metrics, if the row is not simply its key
    choices     texts for the numbers of an enumeration
    parts       "values" or "names": raw metrics "KEY:NAME" are parts of the row; ncu prints their values, or only their names
    chips       compute capabilities that have the row's counters, if not all of CHIPS do
    note        key in NOTES: why the number can differ from Nsight Compute's"""
import json
import pathlib
import re
import sys

CHIPS = ["8.0", "8.6", "8.9", "9.0", "10.0", "12.0"]
SETS = ["basic", "detailed", "full"]
# Of each note, the text for a full and for an empty L2 (option `cache` of jobs).
NOTES = {"full_l2": (
    "ncu empties L2 before the kernel. Here L2 is full of clean lines, and their evictions count too. With the "
    "option `cache` `empty` of the job, L2 is empty here too.",
    "L2 was empty before the kernel. ncu leaves some lines in L2, so that this number can be up to 9 % lower here.")}
FUNCTIONS = {"max", "min", "sum"}
# Nsight Compute gives these rows another unit than that of their values. Pattern of the key, correct unit.
CORRECT_UNITS = [(re.compile(pattern), unit) for pattern, unit in [
    (r"smsp__average_warps_issue_stalled_.*\.ratio", "cycle/inst"),  # ncu: inst
    (r"smsp__pcsamp_warps_issue_stalled_.*", "sample"),  # ncu: inst, warp, byte and branches
    (r"(derived__)?memory_l2_theoretical_sectors.*", "sector"),  # ncu: byte and sectors
    (r"(derived__)?memory_l1_wavefronts_.*", "wavefront"),  # ncu: sectors and none
    (r"memory_l1_tag_requests_.*", "request"),  # ncu: sectors
    (r"derived__smsp__inst_executed_op_branch_pct", "ratio"),  # ncu: %
    (r"(sm__icc|smsp__imc)_requests\.sum", "request"),  # ncu: cycle
]]
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:]*")
# Origins of the metrics that CUPTI's range profiler does not have, by prefix of the name.
ORIGINS = [
    ("LAUNCH", ("launch__", "derived__pct_occupancy_per_", "sm__maximum_warps_", "smsp__maximum_warps_")),
    ("DEVICE", ("device__attribute_", "numa__", "nvlink__", "c2clink__")),
    ("SAMPLING", ("smsp__pcsamp_", "profiler__pmsampler_")),
    ("SASS", ("sass__", "code__", "derived__", "memory_", "smsp__sass_inst_executed_memdesc_explicit_")),
]


def origin(name):
    return next((kind for kind, prefixes in ORIGINS if name.startswith(prefixes)), "COUNTER")


def correct_unit(row):
    return next((unit for pattern, unit in CORRECT_UNITS if pattern.fullmatch(row["key"])), row["unit"])


def expression(row):
    return row.get("expression", row["key"])


def inputs(text):
    return [name for name in NAME.findall(text) if name not in FUNCTIONS]


def load(folder):
    sections = sorted((json.loads(path.read_bytes()) for path in folder.glob("*.json")), key=lambda section: section["order"])
    if not 0 < len(sections) < 32:
        sys.exit("there must be 1 to 31 sections: a set of sections is a mask of 32 bits")
    return sections


def rollup_unit(unit, rollup):
    """Returns the unit of a counter's rollup ("max.per_second"); unit: of the counter."""
    if ".pct_of_peak" in rollup:
        return "%"
    if rollup.endswith(".per_second"):
        return "hz" if unit == "cycle" else unit and f"{unit}/s"
    is_rate = ".per_cycle" in rollup or ".peak_sustained" in rollup
    return f"{unit}/cycle" if is_rate and unit in ("byte", "inst") else unit


def rollups(section):
    """Yields (name, unit) of the metrics in a section's groups of rollups."""
    for group in section.get("rollups", []):
        for counter in group["counters"]:
            for rollup in group["rollups"]:
                yield f"{counter}.{rollup}", rollup_unit(group["unit"], rollup)


def unavailable(sections):
    """Returns {name: reason} of the metrics that no pass can collect."""
    return {name: group["reason"] for section in sections for group in section.get("unavailable", []) for name in group["names"]}


def raw_metrics(sections):
    """Returns {name: [unit, mask of sections]} of every metric that a row needs or only the raw page has."""
    metrics = {}

    def need(name, unit, section):
        known = metrics.setdefault(name, [None, 0])
        if unit is not None and known[0] not in (None, unit):
            sys.exit(f"{sections[section]['id']}: {name} has the units {known[0]!r} and {unit!r}")
        known[0] = unit if unit is not None else known[0]
        known[1] |= 1 << section

    for index, section in enumerate(sections):
        for metric in section.get("collects", []):
            need(metric["name"], metric["unit"], index)
        for name, unit in rollups(section):
            need(name, unit, index)
        for name in unavailable([section]):
            need(name, "", index)
        for table in section["tables"]:
            for row in table["rows"]:
                for name in inputs(expression(row)):
                    need(name, row["unit"] if expression(row) == row["key"] else None, index)
    missing = [name for name, (unit, _) in metrics.items() if unit is None]
    if missing:
        sys.exit("unknown unit of " + ", ".join(missing) + ": add it to a section's \"collects\"")
    return dict(sorted(metrics.items()))


def computed_rows(sections):
    """Returns {key: (section, row)}, as indices, of the first row of each key that computes its metric from others."""
    rows = {}
    for index, section in enumerate(sections):
        for position, row in enumerate(row for table in section["tables"] for row in table["rows"]):
            if expression(row) != row["key"]:
                rows.setdefault(row["key"], (index, position))
    return dict(sorted(rows.items()))


def text(value):
    return json.dumps(value)  # JSON and C quote ASCII text alike


def c_row(table, row, choices):
    fields = [table["name"], row["name"], correct_unit(row), row["unit"], row["key"], expression(row)]
    line = ", ".join(map(text, fields))
    if "choices" in row:
        line += f", .choices = {choices(row['choices'])}"
    if "chips" in row:
        line += f", .chips = {text(' '.join(row['chips']))}"
    if "parts" in row:
        line += f", .parts = RL_PARTS_{row['parts'].upper()}"
    if "note" in row:
        full, empty = NOTES[row["note"]]
        line += f", .note = {text(full)}, .empty_note = {text(empty)}"
    return "  {" + line + "},"


def c_table(sections):
    out = ['#include "model/catalogue.h"', "", f"const char rl_catalogue_chips[] = {text(' '.join(CHIPS))};", ""]
    named = {}

    def choices(texts):
        if tuple(texts) not in named:
            named[tuple(texts)] = f"choices_{len(named)}"
            out.append(f"static const char *const {named[tuple(texts)]}[] = {{{', '.join(map(text, texts))}, NULL}};")
        return named[tuple(texts)]

    for index, section in enumerate(sections):
        rows = [c_row(table, row, choices) for table in section["tables"] for row in table["rows"]]
        out += [f"static const rl_section_row rows_{index}[] = {{", *rows, "};"]
    out += ["", "const rl_section rl_sections[] = {"]
    for index, section in enumerate(sections):
        out.append(f"  {{{text(section['id'])}, {text(section['name'])}, {text(section['summary'])}, rows_{index}, "
                   f"sizeof rows_{index} / sizeof *rows_{index}}},")
    out += ["};", "const size_t rl_section_count = sizeof rl_sections / sizeof *rl_sections;"]
    names = ", ".join(text(section["id"]) for section in sections)
    out += [f"const char *const rl_section_names[] = {{{names}, NULL}};", "", "const rl_section_set rl_section_sets[] = {"]
    for name in SETS:
        mask = sum(1 << index for index, section in enumerate(sections) if name in section["sets"])
        out.append(f"  {{{text(name)}, {mask:#x}u}},")
    out += ["};", "const size_t rl_section_set_count = sizeof rl_section_sets / sizeof *rl_section_sets;",
            f"const char *const rl_section_set_names[] = {{{', '.join(map(text, SETS))}, NULL}};", "",
            "const rl_raw_metric rl_raw_metrics[] = {"]
    reasons = unavailable(sections)
    for name, (unit, mask) in raw_metrics(sections).items():
        kind, reason = ("NONE", f", {text(reasons[name])}") if name in reasons else (origin(name), "")
        out.append(f"  {{{text(name)}, {text(unit)}, RL_ORIGIN_{kind}, {mask:#x}u{reason}}},")
    out += ["};", "const size_t rl_raw_metric_count = sizeof rl_raw_metrics / sizeof *rl_raw_metrics;", "",
            "const rl_section_row *const rl_computed_rows[] = {"]
    out += [f"  &rows_{index}[{position}]," for index, position in computed_rows(sections).values()]
    out += ["};", "const size_t rl_computed_row_count = sizeof rl_computed_rows / sizeof *rl_computed_rows;", ""]
    return "\n".join(out)


DOCS_TOP = """# The report's sections and metrics

`schema/catalogue.py docs docs/metrics.md` writes this page from `schema/metrics/*.json`. `GET /sections` returns the same data.
Section identifiers, row names and metric names are those of Nsight Compute 2025.3, so that its documentation applies. Values are
in the units below, without scaling. `format=csv` scales them as ncu prints them, and has ncu's unit also where that is wrong
(`CORRECT_UNITS` in `schema/catalogue.py`). The value of a metric that could not be collected is null, with a reason.
"Computed from" is the expression of a row that is computed from several metrics. "Chips" lists the compute capabilities that have
the row's counters; an empty cell stands for all of {chips}.

| set | sections |
| --- | --- |
"""


def cell(value):
    return f"`{value}`" if value else ""


def docs(sections):
    out = [DOCS_TOP.format(chips=", ".join(CHIPS)).rstrip("\n")]
    for name in SETS:
        out.append(f"| `{name}` | {', '.join(section['id'] for section in sections if name in section['sets'])} |")
    for section in sections:
        out += ["", f"## {section['id']}: {section['name']}", "", section["summary"]]
        for table in section["tables"]:
            out += ["", f"**{table['name']}**" if table["name"] else "**Header**", "",
                    "| row | unit | metric | computed from | chips |", "| --- | --- | --- | --- | --- |"]
            for row in table["rows"]:
                fields = [row["name"], correct_unit(row), cell(row["key"]), cell(row.get("expression")),
                          ", ".join(row.get("chips", []))]
                out.append("| " + " | ".join(fields) + " |")
    return "\n".join(out) + "\n"


def main():
    kind, file = sys.argv[1:]
    sections = load(pathlib.Path(__file__).resolve().parent / "metrics")
    pathlib.Path(file).write_text({"c": c_table, "docs": docs}[kind](sections), encoding="utf-8")


if __name__ == "__main__":
    main()
