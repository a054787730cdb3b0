"""Tests the formats of rooflinectl regress with recorded and random suite runs: JUnit against its schema, the JSON formats
against their definitions, the CSV as Otava reads it, and Markdown, whose structure hostile names cannot change."""
import copy
import csv
import datetime
import io
import json
import os
import pathlib
import random
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import jsonschema
import pytest

PROGRAM = pathlib.Path(os.environ["ROOFLINED_BUILD"]) / "tests/suite_outputs"
DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
RECORDED = json.loads((DATA / "suite_run.json").read_text())
VERDICTS = ("faster", "same", "slower", "inconclusive", "incomparable")
HOSTILE = ["a|b", "]]>", "<b>&amp;</b>", '"quoted", \'twice\'', "line\nbreak", "tab\tand\rreturn", "``` fence", "`",
           "@someone #12 !", "![x](http://127.0.0.1/)", "\x01\x1b[31mred\x7f", "ünï\U0001f600", "\ufffe", "=1+1",
           "void k<float, 4>(a*)", "\\|", "--", "</testsuite>", "<!-- -->", "%s%n"]
BMF = {"type": "object", "patternProperties": {".+": {"type": "object", "patternProperties": {".+": {
    "type": "object", "required": ["value"], "additionalProperties": False,
    "properties": {"value": {"type": "number"}, "lower_value": {"type": "number"}, "upper_value": {"type": "number"}}}}}}}
GITHUB = {"type": "array", "items": {"type": "object", "required": ["name", "unit", "value"], "additionalProperties": False,
                                     "properties": {
    "name": {"type": "string"}, "unit": {"type": "string"}, "value": {"type": "number"}, "range": {"type": "string"},
    "extra": {"type": "string"}}}}


def write(name, run):
    text = run if isinstance(run, bytes) else json.dumps(run).encode()
    return subprocess.run([PROGRAM, name], input=text, stdout=subprocess.PIPE, check=True, timeout=120).stdout.decode()


def read_junit(run):
    text = write("junit", run)
    checked = subprocess.run(["xmllint", "--noout", "--nonet", "--schema", DATA / "junit.xsd", "-"], input=text.encode(),
                             stderr=subprocess.PIPE, timeout=120, check=False)
    assert checked.returncode == 0, checked.stderr.decode() + text
    return ElementTree.fromstring(text).find("testsuite")


def make_metric(key, verdict, median, **changed):
    return {**copy.deepcopy(RECORDED["verdicts"][1]), "metric": key, "verdict": verdict, "current_median": median, **changed}


def random_run(generator):
    """Returns a suite run in which every text is hostile."""
    run = copy.deepcopy(RECORDED)
    text = lambda: "".join(generator.choice(HOSTILE) for _ in range(generator.randint(1, 3)))  # noqa: E731
    run.update(device_name=text(), driver=text(), git_commit=text(), reason=text(),
               quarantine_reason=generator.choice([None, text()]))
    run["verdicts"] = [make_metric(f"{text()}/{text()}/m{i}_ms", generator.choice(VERDICTS), generator.uniform(1e-9, 1e12),
                                   reason=text(), direction=generator.choice(["lower", "higher"]),
                                   causes=[{"class": "code", "subject": text(), "difference_us": 1.5, "share_ratio": 1.0,
                                            "text": text()}])
                       for i in range(generator.randint(1, 8))]
    run["verdict"] = generator.choice(run["verdicts"])["verdict"]
    run["values"] = [{"metric": metric["metric"], "role": "block", "block": 0, "value": metric["current_median"],
                      "dropped_reason": None} for metric in run["verdicts"]]
    return run


RANDOM = [random_run(random.Random(os.urandom(8))) for _ in range(40)]


def expected_xml(text):
    """Returns the text with U+FFFD in place of the characters that XML 1.0 forbids."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


# --- JUnit ---------------------------------------------------------------------------------------------------------------------


def test_junit_fails_what_is_slower_and_passes_nothing_that_is_unknown():
    suite = read_junit(RECORDED)
    assert suite.attrib == {"package": "rooflined", "id": "0", "name": "mnist", "timestamp": "2026-11-20T21:53:00", "errors": "2",
                            "hostname": "localhost", "tests": "6", "failures": "1", "time": "95.200"}
    outcomes = {case.get("name"): [(child.tag, child.get("type")) for child in case] for case in suite.iter("testcase")}
    assert outcomes == {"train/fp32/epoch_ms_median": [("failure", "slower")], "train/fp16/epoch_ms_median": [],
                        "train/fp32/images_per_s": [], "train/fp32/peak_memory_bytes": [],
                        "train/fp16/test_accuracy_ratio": [("error", "inconclusive")],
                        "gemm/library/time_cold_us_median": [("error", "incomparable")]}
    failure = suite.find(".//failure")
    assert failure.get("message") == RECORDED["verdicts"][0]["reason"]
    assert "void conv1_wgrad<float, 4>(float const*, float*): Other machine code" in failure.text
    assert "not attributed" in failure.text
    assert abs(sum(float(case.get("time")) for case in suite.iter("testcase")) - 95.2) < 0.01


@pytest.mark.parametrize("run", RANDOM)
def test_junit_keeps_hostile_text(run):
    suite = read_junit(run)
    cases = list(suite.iter("testcase"))
    assert [case.get("name") for case in cases] == [expected_xml(metric["metric"]) for metric in run["verdicts"]]
    for case, metric in zip(cases, run["verdicts"]):
        passes = metric["verdict"] in ("same", "faster")
        assert len(case) == (0 if passes else 1)
        if not passes:
            assert case[0].get("message") == expected_xml(metric["reason"])
            assert expected_xml(metric["causes"][0]["text"]) in case[0].text
    properties = {item.get("name"): item.get("value") for item in suite.iter("property")}
    assert properties["device"] == expected_xml(run["device_name"])
    count = lambda *names: str(sum(metric["verdict"] in names for metric in run["verdicts"]))  # noqa: E731
    assert (suite.get("failures"), suite.get("errors")) == (count("slower"), count("inconclusive", "incomparable"))


def test_junit_of_bytes_that_are_not_utf8():
    broken = json.dumps({**RECORDED, "device_name": "PLACE"}).encode().replace(b"PLACE", b"a\xff\xc3(\xed\xa0\x80b")
    names = {item.get("name"): item.get("value") for item in read_junit(broken).iter("property")}
    assert re.fullmatch("a\ufffd+\\(\ufffd+b", names["device"])


@pytest.mark.parametrize("state, verdict, verdicts, reason", [
    ("failed", None, [], "The job train failed."), ("cancelled", None, [], ""), ("completed", "inconclusive", [], "quarantined"),
    ("failed", None, RECORDED["verdicts"][1:2], "The job train failed."), ("completed", "made-up", [], ""),
    ("failed", "same", RECORDED["verdicts"][1:2], "The daemon lost it.")])
def test_a_run_without_a_verdict_passes_nowhere(state, verdict, verdicts, reason):
    run = {**RECORDED, "state": state, "verdict": verdict, "verdicts": verdicts, "reason": reason, "started_at": None,
           "elapsed_s": None}
    suite = read_junit(run)
    (error,) = suite.iter("error")
    assert suite.get("errors") == "1" and error.get("message") == (reason or (state if state != "completed" else "inconclusive"))
    assert suite.get("timestamp") == "2026-11-20T21:52:58" and suite.get("time") == "0.000"
    markdown, table = write("markdown", run), write("table", run)
    shown = "inconclusive" if state == "completed" else state
    assert markdown.startswith(f"### `mnist`: {shown}\n")
    assert table.splitlines()[-2:] == [f"mnist: {shown}", f"  {reason or shown}"]
    for text in (markdown, table):
        assert (reason or shown) in text


# --- the table -----------------------------------------------------------------------------------------------------------------


def test_the_table_prints_a_reason_of_several_metrics_once():
    reason = "There is no baseline of this metric."
    cause = {"class": "device", "subject": "clocks", "difference_us": 1.5, "share_ratio": 1.0, "text": "The clocks fell."}
    run = {**RECORDED, "verdicts": [
        make_metric("copy/a_ms", "incomparable", 1.0, reason=reason, causes=[]),
        make_metric("copy/b_ms", "slower", 1.0, reason=reason, causes=[]),
        make_metric("relu/a_ms", "incomparable", 1.0, reason=reason, causes=[]),
        make_metric("relu/b_ms", "incomparable", 1.0, reason=reason, causes=[cause]),
        make_metric("relu/c_ms", "incomparable", 1.0, reason="Another driver.", causes=[])]}
    table = write("table", run)
    headings = re.findall(r"^(\w+: .*)\n  (.*)$", table, re.M)[:4]
    assert headings == [("slower: copy/b_ms", reason), ("incomparable: 2 metrics", reason), ("incomparable: relu/b_ms", reason),
                        ("incomparable: relu/c_ms", "Another driver.")]
    assert table.count("The clocks fell.") == 1


def test_the_table_prints_a_large_interval_completely():
    run = {**RECORDED, "verdicts": [make_metric("tile/default/time_cold_us_median", "slower", 1.266, interval_ratio=[1.26, 1.272],
                                                causes=[])]}
    assert "[+126, +127] slower" in write("table", run)


def test_a_cause_says_how_much_of_the_change_it_explains():
    causes = [
        {"class": "code", "subject": "conv1", "difference_us": -10040.2, "share_ratio": 1.6027, "text": "conv1 takes less."},
        {"class": "noise", "subject": "adam", "difference_us": 3700.0, "share_ratio": -0.2, "text": "Equal code."},
        {"class": "device", "subject": "clocks", "difference_us": None, "share_ratio": None, "text": "The clocks fell."}]
    run = {**RECORDED, "verdicts": [make_metric("train/fp32/epoch_ms_median", "slower", 1.0, causes=causes)]}
    for name in ("table", "markdown", "junit"):
        text = write(name, run).replace("`", "")
        for cause in ("-10.04 ms (160 % of the change), code: conv1 takes less.",
                      "+3.70 ms (against the change), noise: adam: Equal code.", "device: clocks: The clocks fell."):
            assert cause in text, (name, text)


# --- JSON formats --------------------------------------------------------------------------------------------------------------


def test_github_action_benchmark_has_a_file_for_each_direction():
    smaller, bigger = json.loads(write("github", RECORDED)), json.loads(write("github-bigger", RECORDED))
    for points, direction in ((smaller, "lower"), (bigger, "higher")):
        jsonschema.validate(points, GITHUB)
        expected = {metric["metric"]: metric["current_median"] for metric in RECORDED["verdicts"]
                    if metric["direction"] == direction}
        assert {point["name"]: point["value"] for point in points} == expected
    units = {point["name"].rsplit("/", 1)[1]: point["unit"] for point in smaller + bigger}
    assert units == {"epoch_ms_median": "ms", "peak_memory_bytes": "byte", "time_cold_us_median": "µs",
                     "images_per_s": "images/s", "test_accuracy_ratio": "1"}
    ranges = {point["name"]: point["range"] for point in smaller}
    assert ranges["train/fp16/epoch_ms_median"] == "± 0.4"  # without the block of 400 ms, which was dropped
    assert smaller[0]["extra"].startswith("slower: +10.3 % against the baseline") and "NVIDIA H200" in smaller[0]["extra"]


def test_the_bencher_format_follows_its_schema():
    benchmarks = json.loads(write("bmf", RECORDED))
    jsonschema.validate(benchmarks, BMF)
    assert benchmarks["mnist/train/fp16"]["epoch_ms_median"] == {"value": 131.2, "lower_value": 130.8, "upper_value": 131.6}
    assert set(benchmarks) == {"mnist/train/fp32", "mnist/train/fp16", "mnist/gemm/library"}


@pytest.mark.parametrize("run", RANDOM)
def test_json_formats_keep_hostile_names_and_exact_values(run):
    points = json.loads(write("github", run)) + json.loads(write("github-bigger", run))
    expected = {metric["metric"]: metric["current_median"] for metric in run["verdicts"]}
    close = lambda value: pytest.approx(value, rel=1e-15)  # noqa: E731 - cJSON may print a number's neighbour
    assert {point["name"]: point["value"] for point in points} == close(expected)
    benchmarks = json.loads(write("bmf", run))
    jsonschema.validate(benchmarks, BMF)
    values = {f"{name}/{measure}": metric["value"] for name, metrics in benchmarks.items() for measure, metric in metrics.items()}
    assert values == {f"mnist/{key}": close(value) for key, value in expected.items()}


def test_a_value_that_was_not_measured_is_absent_not_zero():
    run = {**RECORDED, "verdicts": [make_metric("train/fp16/epoch_ms_median", "inconclusive", None, interval_ratio=[-0.1, None]),
                                    make_metric("train/fp32/epoch_ms_median", "same", 2.5)]}
    assert [point["name"] for point in json.loads(write("github", run))] == ["train/fp32/epoch_ms_median"]
    assert list(json.loads(write("bmf", run))) == ["mnist/train/fp32"]
    assert write("otava", run).count("\n") == 1  # the header alone
    assert "| — | " in write("markdown", run) and "[-10.0, ?]" in write("markdown", run)


# --- Otava ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [RECORDED, *RANDOM])
def test_otava_reads_the_table(run):
    text = write("otava", run)
    assert text.count("\n") == 2
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=",", quotechar='"', strict=True))
    header, row = rows
    metrics = [re.sub("[\r\n]", " ", metric["metric"]) for metric in run["verdicts"]]
    assert header == ["time", "run", "commit", "device", "driver", "verdict", *metrics] and len(row) == len(header)
    assert datetime.datetime.strptime(row[0], "%Y-%m-%d %H:%M:%S %z").isoformat() == "2026-11-20T21:54:35+00:00"
    assert [float(cell) for cell in row[6:]] == [metric["current_median"] for metric in run["verdicts"]]
    assert row[1] == "17" and row[5] == run["verdict"]


# --- Markdown and the table ----------------------------------------------------------------------------------------------------


def split_row(line):
    """Returns the cells of a row of a GFM table. A | ends a cell unless a backslash precedes it."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_markdown_has_a_row_for_each_metric():
    lines = write("markdown", RECORDED).splitlines()
    rows = [split_row(line) for line in lines if line.startswith("|")]
    assert rows[2] == ["`train/fp32/epoch_ms_median`", "263.9 ms", "291.2 ms", "+10.3 %", "[+9.9, +10.8]", "**slower**"]
    assert [row[5] for row in rows[3:]] == ["same", "faster", "same", "**inconclusive**", "**incomparable**"]
    assert any("code: `void conv1_wgrad<float, 4>(float const*, float*)`: Other" in line for line in lines)


@pytest.mark.parametrize("run", RANDOM)
def test_markdown_is_not_broken_by_hostile_text(run):
    text = write("markdown", run)
    lines = text.split("\n")
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 2 + len(run["verdicts"])  # no line break of a name adds a row
    assert not re.search("[\x00-\x09\x0b-\x1f]", text)
    outside = re.sub(r"(?<![`\\])(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", text)  # code spans removed
    assert not re.search(r"(?<!\\)[<>](?!!-- -->|-- -->)", re.sub(r"<!-- -->", "", outside)), outside
    assert not re.search(r"@(?!<!-- -->)|(?<!\\)!\[", outside), outside


@pytest.mark.parametrize("run", [RECORDED, *RANDOM])
def test_the_table_is_80_columns_wide_and_does_not_control_the_terminal(run):
    text = write("table", run)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f]", text)
    if run is RECORDED:
        assert max(map(len, text.splitlines())) <= 80
    assert all(any(line.endswith(" " + metric["verdict"]) for line in text.split("\n")) for metric in run["verdicts"])


def test_the_table_of_the_recorded_run():
    text = write("table", RECORDED)
    assert "against baseline v1 of suite run 12\n" in text
    assert re.search(r"^train/fp32/epoch_ms_median\n +263\.9 ms +291\.2 ms +\+10\.3 % +\[\+9\.9, \+10\.8\] slower$", text, re.M)
    assert re.search(r"^gemm/library/time_cold_us_median\n +— +12\.4\d µs +— +— incomparable$", text, re.M)
    assert "\nslower: train/fp32/epoch_ms_median\n  The median is 10.4 % higher" in text
    assert "+21.40 ms (79 % of the change), code: void conv1_wgrad<float, 4>" in text
    assert text.endswith("\nmnist: slower\n")


def test_a_rolling_baseline_names_its_runs():
    run = {**RECORDED, "baseline": {"name": None, "runs": [9, 10, 12]}, "quarantine_reason": "The canary is 3 % slower."}
    text = write("table", run)
    assert "against suite runs 9 10 12\n" in text and text.endswith("quarantined:\n  The canary is 3 % slower.\n")
    assert "Quarantined: The canary is 3 % slower." in write("markdown", run)
