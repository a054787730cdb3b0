#!/usr/bin/env python3
"""scripts/tables.py RESULTS.JSON [--into PAGE.md ...]: what scripts/gpu-test.sh measured, as the tables of docs/measurements.

Prints all of it. With --into it writes them into the pages, each between its marks <!-- STEP --> and <!-- /STEP -->, so that no
number is typed by hand: README.md docs/*.md docs/measurements/*.md are all that have some."""
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
    asked = parser.parse_args()
    found = json.loads(asked.results.read_text())
    for page in asked.into or ():
        page.write_text(fill_page(page.read_text(), found["steps"]))
    if not asked.into:
        print(summary(found["commit"], found["steps"]), end="")


main()
