"""Fails when the suite did not exercise a documented route, status or problem code. Runs last, or, if CTest runs the suite in
parts, after them, with the files of their coverage in $ROOFLINED_API_PARTS (separated by colons)."""

import os
import pathlib

import pytest

# `internal` needs a fault of the machine; storage_full needs a full disk, which test_limits.py can make only if it may mount a
# file system. The unit tests cover both.
OPTIONAL_CODES = {"internal", "storage_full"}


def test_every_route_and_status_was_exercised(request, contract):
    parts = os.environ.get("ROOFLINED_API_PARTS")
    selected = {item.path.name for item in request.session.items}
    existing = {path.name for path in pathlib.Path(__file__).parent.glob("test_*.py")}
    if not parts and (selected != existing or request.config.option.keyword):
        pytest.skip("only a part of the suite was run")
    for file in parts.split(":") if parts else ():
        contract.add_coverage(pathlib.Path(file))
    assert contract.never_seen() == set()
    codes = set(contract.document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"])
    assert codes - contract.problem_codes <= OPTIONAL_CODES
