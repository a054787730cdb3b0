#!/usr/bin/env python3
"""scripts/tables.py RESULTS.JSON [--into PAGE.md ...]: prints the results of scripts/gpu-test.sh as Markdown tables.

With --into it writes each table into the pages instead, between <!-- STEP --> and <!-- /STEP -->, so that no number is typed by
hand. Pages with such tables: README.md docs/*.md docs/measurements/*.md."""
import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from measure.tables import fill_page, summary  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path, nargs="+")
    options = parser.parse_args()
    results = json.loads(options.results.read_text())
    for page in options.into or ():
        page.write_text(fill_page(page.read_text(), results["steps"]))
    if not options.into:
        print(summary(results["commit"], results["steps"]), end="")


main()
