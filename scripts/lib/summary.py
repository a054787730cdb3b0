"""summary.py DIR: adds up the JUnit files and steps.tsv of DIR. Prints each skipped test with its reason, then the totals.

CTest counts a program as one test. This script counts the tests inside each program: the totals of pytest, cmocka and node. It
also prints each program that passed only at its second attempt.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ET

PYTEST_TOTALS = re.compile(
    r"^=*\s*((?:\d+ (?:passed|failed|skipped|errors?|xfailed|xpassed|warnings?|deselected)(?:, )?)+) in ", re.M)
CMOCKA_TOTALS = re.compile(r"\[  (PASSED|SKIPPED|FAILED) ?\s*\] (\d+) test\(s\)")
NODE_TOTALS = re.compile(r"^\S* ?(pass|fail|skipped) (\d+)$", re.M)
FAILED_ATTEMPT = re.compile(r"Test +#\d+: (\S+) \.*\*\*\*", re.M)
PYTEST_SKIP_REASON = re.compile(r"^SKIPPED \[\d+\] (.*)$", re.M)


def count_inner_tests(output):
    """Returns the counts of passed, failed and skipped tests that a test program printed; None when it printed none."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    found = False
    for line in PYTEST_TOTALS.findall(output):
        for number, word in re.findall(r"(\d+) (\w+)", line):
            key = "failed" if word.startswith("error") else word
            if key in counts:
                counts[key] += int(number)
                found = True
    for word, number in CMOCKA_TOTALS.findall(output):
        counts[word.lower()] += int(number)
        found = True
    for word, number in NODE_TOTALS.findall(output):
        counts[{"pass": "passed", "fail": "failed"}.get(word, word)] += int(number)
        found = True
    return counts if found and sum(counts.values()) else None


def find_second_attempts(log, passed):
    """Returns those names of `passed` for which CTest's log has a failed attempt."""
    return sorted(passed & set(FAILED_ATTEMPT.findall(log.read_text(errors="replace")))) if log.exists() else []


def main():
    folder = pathlib.Path(sys.argv[1])
    total = {"passed": 0, "failed": 0, "skipped": 0}
    skips, second_attempts = [], []
    for file in sorted(folder.glob("*.xml")):
        passed = set()
        for case in ET.parse(file).getroot().iter("testcase"):
            output = case.findtext("system-out") or ""
            failed = case.find("failure") is not None
            skipped = case.find("skipped") is not None or case.get("status") in ("notrun", "disabled")
            counts = None if skipped else count_inner_tests(output)
            if counts is None:
                counts = {"passed": int(not failed and not skipped), "failed": int(failed), "skipped": int(skipped)}
            if failed and counts["failed"] == 0:
                counts["failed"] = 1
            if case.get("status") == "run":
                passed.add(case.get("name"))
            for key, number in counts.items():
                total[key] += number
            if skipped:
                lines = [line for line in output.strip().splitlines() if line.strip()]
                skips.append(f"{file.stem}/{case.get('name')}: {lines[-1] if lines else 'no reason printed'}")
            skips += [f"{file.stem}/{case.get('name')}: {reason}" for reason in PYTEST_SKIP_REASON.findall(output)]
        second_attempts += [f"{file.stem}/{name}" for name in find_second_attempts(file.with_suffix(".log"), passed)]
    steps = folder / "steps.tsv"
    for line in steps.read_text().splitlines() if steps.exists() else []:
        name, outcome, *reason = line.split("\t")
        total[outcome] += 1
        if outcome == "skipped":
            skips.append(f"{name}: {reason[0] if reason else ''}")
    for skip in skips:
        print("skipped", skip)
    for name in second_attempts:
        print("passed at the second attempt:", name)
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")


if __name__ == "__main__":
    main()
