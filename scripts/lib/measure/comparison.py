"""Reads comparison.csv of tests/gpu/cupti/compare_ncu.py. It has one row per metric, and for each kernel the columns of COLUMNS:
our median, ncu's median, their relative difference and a verdict."""
import collections
import csv

COLUMNS = ("ours", "ncu", "difference_ratio", "verdict")


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def kernels_of(table):
    return [name.removesuffix("_verdict") for name in table[0] if name.endswith("_verdict")] if table else []


def summarise(path):
    """Yields for each kernel a row with the number of its metrics by verdict ("words"), then a row for each metric that differs.
    "repeated" counts the metrics that were collected in more than one run."""
    table = read(path)
    for kernel in kernels_of(table):
        verdicts = [(row[f"{kernel}_verdict"], int(row["runs"]) > 1) for row in table if row[f"{kernel}_verdict"]]
        counts = collections.Counter(verdict for verdict, _ in verdicts)
        yield {"kernel": kernel, "numbers": len(verdicts), "words": dict(sorted(counts.items())),
               "repeated": sum(repeated for _, repeated in verdicts), "repeated_differ": verdicts.count(("DIFFERS", True))}
        for row in table:
            if row[f"{kernel}_verdict"] == "DIFFERS":
                yield {"kernel": kernel, "metric": row["metric"], "runs": int(row["runs"]),
                       **{column: row[f"{kernel}_{column}"] for column in ("ours", "ncu", "difference_ratio")}}


def join_tables(paths, output):
    """Writes one table from several whose kernels have different names. "runs" of a metric is the minimum over the tables."""
    tables = [read(path) for path in paths]
    columns = [f"{kernel}_{column}" for table in tables for kernel in kernels_of(table) for column in COLUMNS]
    rows = {}
    for row in (row for table in tables for row in table):
        joined = rows.setdefault(row["metric"], {"runs": row["runs"]})
        joined.update(row, runs=min(joined["runs"], row["runs"], key=int))
    with open(output, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["metric", "runs", *columns], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[metric] for metric in sorted(rows))
