"""Runs last: fails when the suite did not exercise a documented route, status or problem code."""

import pathlib

import pytest

# `internal` needs a fault of the machine; storage_full needs a full disk, which test_limits.py can make only if it may mount a
# file system. The unit tests cover both.
OPTIONAL_CODES = {"internal", "storage_full"}


def test_every_route_and_status_was_exercised(request, contract):
    selected = {item.path.name for item in request.session.items}
    existing = {path.name for path in pathlib.Path(__file__).parent.glob("test_*.py")}
    if selected != existing or request.config.option.keyword:
        pytest.skip("only a part of the suite was run")
    assert contract.never_seen() == set()
    codes = set(contract.document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"])
    assert codes - contract.problem_codes <= OPTIONAL_CODES
