"""Links between the pages lead somewhere, generated tables are filled, and the pages name steps that exist."""

import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ.get("ROOFLINED_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
PAGES = [SOURCE / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted((SOURCE / "docs").glob("**/*.md"))
sys.path.insert(0, str(SOURCE / "scripts" / "lib"))

from measure.steps import STEPS  # noqa: E402


def links(page):
    return [target for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()) if "://" not in target]


def test_every_link_leads_to_a_file():
    assert [f"{page.name}: {target}" for page in PAGES for target in links(page) if not (page.parent / target).exists()] == []


def test_every_page_is_listed_in_its_folder():
    for folder in (SOURCE / "docs", SOURCE / "docs" / "measurements"):
        listed = set(links(folder / "README.md"))
        assert {page.name for page in folder.glob("*.md")} - listed == {"README.md"}


def test_generated_tables_are_filled():
    for page in PAGES:
        text = page.read_text()
        blocks = dict(re.findall(r"^<!-- (\w+) -->$(.*?)^<!-- /\1 -->$", text, re.MULTILINE | re.DOTALL))
        assert sorted(blocks) == sorted(re.findall(r"^<!-- (\w+) -->$", text, re.MULTILINE)), f"{page}: a block is not closed"
        assert [name for name, filled in blocks.items() if not filled.strip()] == [], f"{page}: empty; scripts/tables.py fills it"


def test_pages_name_steps_that_exist():
    names = {step.name for step in STEPS}
    for page in PAGES:
        for steps in re.findall(r"--steps ([a-z0-9_,]+)", page.read_text()):
            assert set(steps.split(",")) <= names, page
    for line in (SOURCE / "docs" / "measurements" / "README.md").read_text().splitlines():
        steps = line.split("|")[-2].strip() if line.startswith("| [") else ""
        assert steps.startswith("(") or set(filter(None, steps.split(","))) <= names, line
