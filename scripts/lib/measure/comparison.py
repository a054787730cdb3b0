"""comparison.csv of tests/gpu/cupti/compare_ncu.py: a metric a row, and for each kernel our median, ncu's, how far they are apart
and a word."""
import collections
import csv

WHAT = ("ours", "ncu", "apart_ratio", "verdict")


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def kernels_of(table):
    return [name.removesuffix("_verdict") for name in table[0] if name.endswith("_verdict")] if table else []


def compared(path):
    """A kernel's numbers by their words, and each number that differs."""
    table = read(path)
    for kernel in kernels_of(table):
        numbers = [(row[f"{kernel}_verdict"], int(row["runs"]) > 1) for row in table if row[f"{kernel}_verdict"]]
        words = collections.Counter(word for word, _ in numbers)
        yield {"kernel": kernel, "numbers": len(numbers), "words": dict(sorted(words.items())),
               "repeated": sum(again for _, again in numbers), "repeated_differ": numbers.count(("DIFFERS", True))}
        for row in table:
            if row[f"{kernel}_verdict"] == "DIFFERS":
                yield {"kernel": kernel, "metric": row["metric"], "runs": int(row["runs"]),
                       **{what: row[f"{kernel}_{what}"] for what in ("ours", "ncu", "apart_ratio")}}


def join(paths, to):
    """One table of several, whose kernels have different names; runs: the least of them."""
    tables = [read(path) for path in paths]
    columns = [f"{kernel}_{what}" for table in tables for kernel in kernels_of(table) for what in WHAT]
    rows = {}
    for row in (row for table in tables for row in table):
        joined = rows.setdefault(row["metric"], {"runs": row["runs"]})
        joined.update(row, runs=min(joined["runs"], row["runs"], key=int))
    with open(to, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["metric", "runs", *columns], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[metric] for metric in sorted(rows))
