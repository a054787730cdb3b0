"""Last of the suite: what the document promises and nobody tried is a hole in the suite."""

import pathlib

import pytest

# A broken machine brings the one about, a full disk the other, which needs the right to mount; the unit tests make both.
UNTRIED_CODES = {"internal", "storage_full"}


def test_every_route_and_status_was_exercised(request, contract):
    files = {item.path.name for item in request.session.items}
    every = {path.name for path in pathlib.Path(__file__).parent.glob("test_*.py")}
    if files != every or request.config.option.keyword:
        pytest.skip("only a part of the suite was run")
    assert contract.never_seen() == set()
    codes = set(contract.document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"])
    assert codes - contract.codes <= UNTRIED_CODES
