"""Tests reports, comparisons of runs, and CSV in ncu's format. The metrics are those that ncu printed for the same kernels."""

import collections
import csv
import io
import json
import pathlib
import re
import sqlite3
import sys

import pytest

from daemon import endless
from report_fixture import Rows, ncu_details, ncu_raw, number

SOURCE = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(SOURCE / "schema"))
import catalogue  # noqa: E402

SECTIONS = catalogue.load(SOURCE / "schema/metrics")
CATALOGUE = catalogue.raw_metrics(SECTIONS)
ONLY_RAW = {name for name, (_, sections) in CATALOGUE.items()
            if not any(section["tables"] for index, section in enumerate(SECTIONS) if sections & 1 << index)}
NOT_COLLECTED = catalogue.unavailable(SECTIONS)

# Rows of ncu's details page that the report leaves out, and why.
LEFT_OUT = {
    "Access Size": "an attribute of one instruction; ncu's sum over all instructions is 0",
    "Access Operation": "as Access Size",
    "Address Space": "as Access Size",
    "Enabled TPC IDs": "a text, not a number",
    "Tensor Operations Per Cycle": "a sum over all types of operations; the report has one row for each type",
}


@pytest.fixture(scope="module")
def rows(daemon):
    return Rows(daemon)


def collected(kernel="relu"):
    """Returns every metric of the reference; where CUPTI's name differs from the name on ncu's page, under both names."""
    raw = {name: "ncu printed no number" if value is None else value for name, value in ncu_raw(kernel).items()}
    parts = {"numa__cpu_affinity": "0-15", "numa__dev_display_name_all": "NVIDIA H200", "numa__id_cpu": "0",
             "numa__id_memory": "0"}
    raw |= {f"{name}:{part}": 1.0 for name, part in parts.items()}
    raw["smsp__thread_inst_executed.sum"] = raw["thread_inst_executed"]
    raw["smsp__thread_inst_executed_pred_on.sum"] = raw["thread_inst_executed_true"]
    return raw


@pytest.fixture(scope="module")
def reference(rows):
    return rows.run([{"metrics": collected()}])


def read_csv(response):
    assert response.headers["Content-Type"] == "text/csv"
    return list(csv.reader(io.StringIO(response.text, newline=""), strict=True))


def details(daemon, run, which="all"):
    lines = read_csv(daemon.get(f"/runs/{run}/report?format=csv&page=details&print_details={which}"))
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def ncu_rows(kernel="relu"):
    """Returns {(section, row): {(unit, value)}}; ncu's tables repeat rows."""
    found = collections.defaultdict(set)
    for line in ncu_details(kernel):
        found[line["section"], line["row"]].add((line["unit"], line["value"]))
    return found


def same(name, ours, theirs):
    """Compares two (unit, value) pairs to the two decimals that the raw page has."""
    if ours[1] == theirs[1] == "n/a":
        return True
    if ours[0] != theirs[0] and "membar" not in name:  # ncu's unit of this stall's samples is byte
        return False
    a, b = number(ours[1]), number(theirs[1])
    if a is None or b is None:
        return ours[1] == theirs[1]
    return abs(a - b) <= max(0.021, 1e-12 * abs(b))


@pytest.mark.parametrize("kernel", ["relu", "stride"])
def test_every_row_of_ncu_is_reproduced(daemon, rows, kernel):
    run = rows.run([{"metrics": collected(kernel)}])
    ours = collections.defaultdict(list)
    for line in details(daemon, run):
        ours[line["Section Name"], line["Metric Name"]].append((line["Metric Unit"], line["Metric Value"]))
    reference = {key: values for key, values in ncu_rows(kernel).items() if key[1] not in LEFT_OUT}
    assert [key for key in reference if key not in ours] == []
    different = [(key, value, reference[key]) for key in reference for value in ours[key]
             if key[1].split(" ")[0] != "Executed" and not any(same(key[1], value, theirs) for theirs in reference[key])]
    assert different == []
    assert sum(value in reference[key] for key in reference for value in ours[key]) > 1050


EXACT = ["Grid Size", "Block Size", "Registers Per Thread", "Threads", "Waves Per SM", "Block Limit Warps",
         "Theoretical Occupancy", "Executed Instructions", "Branch Instructions Ratio",
         "Predicated-On Thread Instructions Executed", "Cluster Scheduling Policy", "Function Cache Configuration",
         "Theoretical L2 Cache Bytes Accessible", "Theoretical DRAM Bytes Accessible", "L2 Persisting Size",
         "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]


@pytest.mark.parametrize("name", EXACT)
def test_deterministic_rows_are_equal(daemon, reference, name):
    theirs = {key: values for key, values in ncu_rows().items() if key[1] == name}
    assert theirs
    lines = details(daemon, reference)
    for (section, _), values in theirs.items():
        ours = {(x["Metric Unit"], x["Metric Value"]) for x in lines if (x["Section Name"], x["Metric Name"]) == (section, name)}
        assert ours == values


COLUMNS = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
           "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type",
           "Rule Description", "Estimated Speedup Type", "Estimated Speedup"]


def test_print_details_selects_header_and_body(daemon, reference):
    header, body, whole = (details(daemon, reference, which) for which in ("header", "body", "all"))
    assert list(header[0]) == COLUMNS
    assert list(whole[0]) == list(body[0]) == [*COLUMNS[:12], "Body Item Label", *COLUMNS[12:]]
    labels = {line["Metric Name"]: line["Body Item Label"] for line in whole}
    assert labels["SM: Issue Active"] == "Compute Throughput Breakdown" and labels["Duration"] == ""

    def metrics(lines):
        return [line["Metric Name"] for line in lines if line["Metric Name"]]

    assert len(metrics(header)) + len(metrics(body)) == len(metrics(whole))
    assert "Duration" in metrics(header) and "SM: Issue Active" in metrics(body) and "SM: Issue Active" not in metrics(header)
    lines = read_csv(daemon.get(f"/runs/{reference}/report?format=csv"))
    assert lines == [list(header[0]), *(list(line.values()) for line in header)]
    first = header[0]
    assert (first["ID"], first["Kernel Name"]) == ("0", "relu(const __half *, __half *, unsigned long)")
    assert (first["Block Size"], first["Grid Size"]) == ("(128, 1, 1)", "(32768, 1, 1)")
    assert (first["CC"], first["Device"], first["Stream"]) == ("9.0", "0", "7")


def with_parts(findings):
    return [rule for finding in findings for rule in (finding, *finding["parts"])]


def test_the_details_page_has_the_findings(daemon, reference):
    lines = [line for line in details(daemon, reference) if line["Rule Name"]]
    (kernel,) = daemon.get(f"/runs/{reference}/report").json()["kernels"]
    findings = with_parts(kernel["findings"])
    assert sorted(line["Rule Name"] for line in lines) == sorted(finding["rule"] for finding in findings)
    types = {"info": "INF", "warning": "WRN", "optimization": "OPT"}
    for line in lines:
        (finding,) = [f for f in findings if f["rule"] == line["Rule Name"]]
        assert (line["Section Name"], line["Rule Type"], line["Rule Description"]) == (
            finding["section"], types[finding["kind"]], finding["message"])
        assert line["Estimated Speedup Type"] == (finding.get("scope") or "") and not line["Metric Name"]
        assert (line["Estimated Speedup"] != "") == (finding.get("speedup_pct") is not None)


def test_a_report_can_have_verdicts_alone(daemon, reference):
    whole, short = (daemon.get(f"/runs/{reference}/report?detail={detail}") for detail in ("full", "verdicts"))
    assert len(short.content) < len(whole.content) / 10
    (kernel,), (brief,) = whole.json()["kernels"], short.json()["kernels"]
    assert kernel["sections"] and kernel["instructions"] is not None
    assert (brief["sections"], brief["series"], brief["instructions"]) == (None, [], [])
    assert brief["reason"] == "the request asks for verdicts alone"
    for member in ("name", "verdict", "findings", "roofline", "library"):
        assert brief[member] == kernel[member], member
    assert daemon.get(f"/runs/{reference}/report?detail=names").status_code == 400


def test_a_cause_has_one_finding(daemon, reference):
    (kernel,) = daemon.get(f"/runs/{reference}/report").json()["kernels"]
    findings = kernel["findings"]
    assert len({finding["cause"] for finding in findings}) == len(findings)
    assert any(finding["parts"] for finding in findings)
    assert sum(finding["speedup_pct"] for finding in findings if finding["scope"] == "global") <= 100
    (waits,) = [finding for finding in findings if finding["cause"] == "memory_latency"]
    assert "issue_slots" in {part["rule"] for part in waits["parts"]}


def test_a_finding_names_its_lines(daemon, rows):
    def instruction(offset, opcode, line, executed):
        return {"offset": offset, "opcode": opcode, "sass": f"{opcode} R1", "file": "spill.cu" if line else None, "line": line,
                "counts": json.dumps({"inst_executed": executed})}

    instructions = [instruction(0, "STL.64", 7, 100), instruction(16, "LDL", 9, 150), instruction(32, "LDL.LU", 7, 200),
                    instruction(48, "LDG.E", 11, 900), instruction(64, "LDL", None, 900), instruction(80, "LDLX", 12, 900)]
    local = {**collected(), "smsp__sass_inst_executed_op_local_ld.sum": 4e5, "smsp__sass_inst_executed_op_local_st.sum": 1e5,
             "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": 4e6}
    run = rows.run([{"metrics": local, "instructions": instructions}])

    (kernel,) = daemon.get(f"/runs/{run}/report?kernel=0").json()["kernels"]
    lines = {rule["rule"]: rule["lines"] for rule in with_parts(kernel["findings"])}
    assert lines["local_memory"] == [{"file": "spill.cu", "line": 7, "executed": 300},
                                     {"file": "spill.cu", "line": 9, "executed": 150}]
    assert lines["issue_slots"] == []  # the rule names no opcodes


def test_the_raw_page_equals_ncu(daemon, reference):
    names, units, values = read_csv(daemon.get(f"/runs/{reference}/report?format=csv&page=raw"))
    assert names[:11] == COLUMNS[:11]
    assert names[11:] == sorted(set(names[11:])) and set(collected()) <= set(names) and units[:11] == [""] * 11
    ours = dict(zip(names, zip(units, values, strict=True), strict=True))
    with_unit = 0
    for name, value in ncu_raw().items():
        if value is None:
            assert ours[name][1] == "n/a"
        else:
            assert number(ours[name][1]) == pytest.approx(value, rel=1e-14, abs=0.005)
            with_unit += ours[name][0] != ""
    assert with_unit > 500
    assert ours["gpu__time_duration.sum"] == ("ns",
                                              "22,336") and ours["launch__cluster_scheduling_policy"] == ("", "PolicySpread")


def is_collected(name):
    return name not in NOT_COLLECTED


def is_collected_without_tensor_instructions(name):
    """Returns true if a worker stores the metric for a kernel without tensor instructions. For such a kernel the worker omits the
    rollups of tensor counters that only the raw page shows."""
    is_tensor_rollup = name in ONLY_RAW and name.startswith("sm__ops_path_tensor") and ".peak_sustained" not in name
    return is_collected(name) and not is_tensor_rollup


@pytest.mark.parametrize("is_stored", (is_collected, is_collected_without_tensor_instructions))
@pytest.mark.parametrize("kernel, grid, block", (("relu", 32768, 128), ("stride", 16384, 256)))
def test_the_raw_page_computes_what_follows_from_collected_metrics(daemon, rows, kernel, grid, block, is_stored):
    """A run has only metrics that a worker stores. The metrics that the page adds agree with ncu within the two decimals that ncu
    prints."""
    known = ncu_raw(kernel)
    counted = {name: value for name, value in collected(kernel).items() if name.split(":")[0] in CATALOGUE and is_stored(name)}
    run = rows.run([{"metrics": counted, "grid_x": grid, "block_x": block}])
    names, units, values = read_csv(daemon.get(f"/runs/{run}/report?format=csv&page=raw"))
    added = {name: number(value) for name, value in list(zip(names, values, strict=True))[11:] if name not in counted}
    compared = [name for name in added if known.get(name) is not None and name not in NOT_COLLECTED]
    for name in compared:
        # ncu computes a rate with a separate measurement of the time
        tolerance = 2e-3 if name.endswith("per_second") else 1e-3
        assert added[name] == pytest.approx(known[name], rel=tolerance, abs=0.0051), name
    assert len(compared) > 140
    assert {name for name in known if name not in counted and name not in added} == set()


def test_rollups_of_a_counter_that_counted_something_are_not_zero(daemon, rows):
    """A worker that knew fewer names has counted two kernels. For the kernel without tensor instructions, the page prints the
    missing rollups as 0; for the kernel with such instructions they are unknown."""
    counter = "sm__ops_path_tensor_src_fp16"
    metrics = {"launch__context_id": 1.0, f"{counter}.min": 0.0, f"{counter}.avg.peak_sustained": 0.0}
    run = rows.run([{"metrics": {**metrics, f"{counter}.avg.pct_of_peak_sustained_elapsed": part}} for part in (0.0, 12.5)])
    names, units, *kernels = read_csv(daemon.get(f"/runs/{run}/report?format=csv&page=raw"))
    for values, zero in zip(kernels, ("0", "n/a"), strict=True):
        row = dict(zip(names, values, strict=True))
        assert row[f"{counter}.max"] == row[f"{counter}.avg"] == zero and row[f"{counter}.max.peak_sustained"] == "n/a"
        assert row["launch__kernel_name"] == "n/a"


def test_a_page_without_metrics_of_the_raw_page_lacks_its_names(daemon, rows):
    run = rows.run([{"metrics": {"gpu__time_duration.sum": 1000.0, "lts__t_sectors.max": 3.0}}])
    names = read_csv(daemon.get(f"/runs/{run}/report?format=csv&page=raw"))[0]
    assert "launch__context_id" not in names and len(names) < 30


def test_the_documentation_counts_the_names_of_the_raw_page():
    page = (SOURCE / "docs/raw-page.md").read_text()
    groups = {group["reason"]: len(group["names"]) for section in SECTIONS for group in section.get("unavailable", [])}
    assert {reason: int(count) for reason, count in re.findall(r"^\| ([^|]+) \| (\d+) \| `", page, re.M)} == groups
    assert f"{len(ncu_raw())} metrics" in page


def test_csv_quotes_text(daemon, rows):
    name = 'void f<"a, b">(int,\n char)'
    run = rows.run([{"name": name, "metrics": {"launch__grid_size": 1.0}}], workload='"quoted", by, commas')
    for page in ("details", "raw"):
        lines = read_csv(daemon.get(f"/runs/{run}/report?format=csv&page={page}"))
        assert lines[-1][4] == name and lines[-1][2] == '"quoted", by, commas'


def rows_of(kernel, section):
    (found,) = [s for s in kernel["sections"] if s["id"] == section]
    return {row["name"]: row for table in found["tables"] for row in table["rows"]}


@pytest.mark.parametrize(("profile", "cache"), [({}, "full"), ({"cache": "full"}, "full"), ({"cache": "empty"}, "empty")])
def test_a_report_says_what_was_in_l2_before_each_kernel(daemon, rows, profile, cache):
    run = rows.run([{"metrics": {"lts__throughput.avg.pct_of_peak_sustained_elapsed": 20.0}}],
                   profile={"sections": ["SpeedOfLight"], **profile})
    report = daemon.get(f"/runs/{run}/report").json()
    assert report["cache"] == cache
    note = rows_of(report["kernels"][0], "SpeedOfLight")["L2 Cache Throughput"]["note"]
    assert ("Here L2 is full" in note) == (cache == "full")
    assert daemon.get(f"/compare?a={run}&b={run}").json()["a"]["cache"] == cache


def test_a_missing_value_has_a_reason(daemon, rows):
    run = rows.run([{"metrics": {"gpu__time_duration.sum": 21824.0, "sm__cycles_active.avg": "the counter is taken",
                                 "sass__inst_executed_per_opcode": 30.0, "sass__inst_executed_per_opcode:FADD": 10.0,
                                 "sass__inst_executed_per_opcode:LDG": 20.0, "launch__func_cache_config": 2.0,
                                 "smsp__inst_executed.sum": 0.0, "smsp__inst_executed_op_branch.sum": 5.0,
                                 "l1tex__t_requests_pipe_tex_mem_texture.sum": (0.0, "not counted: no such instruction")}}])
    report = daemon.get(f"/runs/{run}/report").json()
    (kernel,) = report["kernels"]
    speed = rows_of(kernel, "SpeedOfLight")
    assert report["cache"] is None and "ncu empties L2" in speed["L2 Cache Throughput"]["note"]
    assert speed["Duration"] == {"name": "Duration", "unit": "ns", "metric": "gpu__time_duration.sum", "value": 21824,
                                 "reason": None}
    assert (speed["SM Active Cycles"]["value"], speed["SM Active Cycles"]["reason"]) == (None, "the counter is taken")
    assert speed["SM Frequency"]["reason"] == "gpc__cycles_elapsed.avg.per_second was not collected"
    mix = rows_of(kernel, "InstructionStats")["Executed Warp-Level Instructions By Basic SASS Opcode"]
    assert mix["value"] == 30 and mix["parts"] == [{"name": "LDG", "value": 20}, {"name": "FADD", "value": 10}]
    assert [line["Metric Value"] for line in details(daemon, run) if line["Metric Name"] == mix["name"]] == ["30 (20; 10)"]
    assert rows_of(kernel, "LaunchStats")["Function Cache Configuration"]["text"] == "CachePreferL1"
    assert rows_of(kernel, "SourceCounters")["Branch Instructions Ratio"]["reason"] == "not defined: a divisor is 0"
    textures = rows_of(kernel, "MemoryWorkloadAnalysis_Tables")["l1tex__t_requests_pipe_tex_mem_texture.sum"]
    assert (textures["value"], textures["reason"]) == (0, "not counted: no such instruction")
    (listed,) = daemon.get(f"/jobs/{report['job']}/kernels?pass=counters").json()["items"]
    assert {"metric": textures["metric"], "value": 0, "reason": textures["reason"]} in listed["metrics"]


@pytest.mark.parametrize("requested", [["SchedulerStats", "SpeedOfLight"], []])
def test_a_report_has_the_requested_sections(daemon, rows, requested):
    metrics = {"launch__grid_size": 1.0, "gpu__time_duration.sum": 5.0}
    run = rows.run([{"metrics": metrics}], profile={"sections": requested, "metrics": list(metrics), "kernels": "", "launch": -1})
    (kernel,) = daemon.get(f"/runs/{run}/report").json()["kernels"]
    assert sorted(section["id"] for section in kernel["sections"]) == requested and kernel["reason"] is None
    assert {line["Section Name"] for line in details(daemon, run)
            if line["Metric Name"]} == {s["name"] for s in kernel["sections"]}


def test_the_roofline_follows_from_counters_and_model(daemon, rows):
    sm = "sm__cycles_elapsed.avg.per_second"
    run = rows.run([{"metrics": {"gpu__time_duration.sum": 1e6, "dram__bytes.sum.per_second": 2e12, sm: 1e9,
                                 "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed": 100.0,
                                 "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed": 0.0,
                                 "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed": 450.0}}],
                   floor=(1e9, 1e8))
    roofline = daemon.get(f"/runs/{run}/report").json()["kernels"][0]["roofline"]
    assert roofline["counted"] is True and roofline["duration_s"] == pytest.approx(1e-3)
    assert roofline["model"] == {"bytes": 1e9, "operations": 1e8, "intensity": pytest.approx(0.1),
                                 "bytes_per_s": pytest.approx(1e12), "operations_per_s": pytest.approx(1e11)}
    fp32 = {point["level"]: point for point in roofline["points"] if point["unit"] == "fp32"}
    assert fp32["dram"]["intensity"] == pytest.approx((100 + 2 * 450) * 1e9 / 2e12)
    assert {point["unit"] for point in roofline["points"]} == {"fp32"}


def test_the_roofline_uses_measured_ceilings(daemon, rows):
    """The report uses the latest ceilings of the same device."""
    for rate in (1e12, 4e12):
        rows.run([], workload="ceilings", measurements={"dram_read_bytes_per_s": rate, "fp32_operations_per_s": 6e13})
    rows.run([], workload="ceilings", measurements={"dram_read_bytes_per_s": 9e12}, uuid="GPU-1")
    run = rows.run([{"metrics": {"gpu__time_duration.sum": 1e6, "dram__bytes.sum.per_second": 2e12}}])
    roofline = daemon.get(f"/runs/{run}/report").json()["kernels"][0]["roofline"]
    measured = {roof["name"]: roof["measured_per_s"] for roof in roofline["levels"] + roofline["units"]}
    assert (measured["dram"], measured["fp32"], measured["l2"]) == (4e12, 6e13, None)
    (dram,) = [roof for roof in roofline["levels"] if roof["name"] == "dram"]
    assert (dram["of_measured_ratio"], dram["of_theoretical_ratio"]) == (0.5, None)


def test_several_kernels_have_no_model(daemon, rows):
    run = rows.run([{"metrics": {"gpu__time_duration.sum": 1e6}}] * 2)
    for kernel in daemon.get(f"/runs/{run}/report").json()["kernels"]:
        assert kernel["roofline"]["model"]["bytes"] is None  # the model covers both kernels together


def test_a_kernel_has_series_and_instructions(daemon, rows):
    run = rows.run([{"metrics": {"launch__grid_size": 1.0},
                     "series": [("load", 0.0, 1.5), ("load", 1000.0, None), ("occupancy_by_registers", 8.0, 1.0)],
                     "instructions": [{"offset": 16, "opcode": "EXIT", "sass": "EXIT ;"},
                                      {"offset": 0, "counts": json.dumps({"inst_executed": 4}), "file": "k.cu", "line": 3}]}])
    (kernel,) = daemon.get(f"/runs/{run}/report").json()["kernels"]
    assert kernel["series"] == [{"name": "load", "points": [[0, 1.5], [1000, None]]},
                                {"name": "occupancy_by_registers", "points": [[8, 1]]}]
    assert [i["offset"] for i in kernel["instructions"]] == [0, 16]
    assert kernel["instructions"][0]["counts"] == {"inst_executed": 4} and kernel["instructions"][0]["line"] == 3


@pytest.mark.parametrize("capability, present", [("9.0", True), ("8.0", False), ("99.0", True)])
def test_rows_of_other_chips_are_left_out(daemon, rows, capability, present):
    run = rows.run([{"metrics": {"sm__throughput.avg.pct_of_peak_sustained_elapsed": 50.0}}], capability=capability)
    (kernel,) = daemon.get(f"/runs/{run}/report").json()["kernels"]
    assert ("SM: Pipe Tma Cycles Active" in rows_of(kernel, "SpeedOfLight")) == present


def test_a_report_can_have_one_kernel(daemon, rows):
    run = rows.run([{"launch": f"k{i}", "metrics": {f"metric_{j}": float(j) for j in range(300)}} for i in range(40)])
    whole = daemon.get(f"/runs/{run}/report").json()
    assert [kernel["ordinal"] for kernel in whole["kernels"]] == list(range(40))
    part = daemon.get(f"/runs/{run}/report?kernel=17").json()
    assert part["kernels"] == [whole["kernels"][17]] and part["kernels"][0]["launch"] == "k17"
    assert daemon.get(f"/runs/{run}/report?kernel=40").json()["kernels"] == []
    raw = read_csv(daemon.get(f"/runs/{run}/report?format=csv&page=raw"))
    assert len(raw) == 42 and raw[41][0] == "39" and len(set(map(len, raw))) == 1


def test_a_run_without_counters_has_a_reason(daemon, finished):
    run = daemon.get(f"/jobs/{finished}/results").json()["runs"][0]
    report = daemon.get(f"/runs/{run['run']}/report").json()
    reason = next(entry["reason"] for entry in run["passes"] if entry["pass"] == "counters")
    assert (report["job"], report["variant"], report["device"], report["counters_reason"]) == (finished, "fp32", "cpu", reason)
    assert report["kernels"] and all(kernel["pass"] == "activity" for kernel in report["kernels"])
    for kernel in report["kernels"]:
        assert (kernel["sections"], kernel["reason"]) == (None, reason)


def test_a_run_of_a_job_that_ended_early_has_this_reason(daemon):
    job_id = daemon.submit({"kind": "train", "epochs": 1000, "device": "cpu"})
    daemon.call("DELETE", f"/jobs/{job_id}")
    daemon.wait(job_id)
    run = daemon.get(f"/jobs/{job_id}").json()["runs"][0]["id"]
    reason = "the job was cancelled before a pass of this run was completed"
    assert daemon.get(f"/runs/{run}/report").json()["counters_reason"] == reason


def test_every_answer_gives_the_same_reason_for_a_pass_that_never_ran(daemon):
    """A job that ended does not call its passes pending: neither its results, nor its timeline, nor its comparison."""
    job_id = daemon.submit({"kind": "train", "epochs": 1000, "device": "cpu", "precisions": ["fp32", "fp16"],
                            "passes": ["timing", "activity", "counters"]})
    daemon.call("DELETE", f"/jobs/{job_id}")
    daemon.wait(job_id)
    run = daemon.get(f"/jobs/{job_id}").json()["runs"][0]["id"]
    reason = {name: f"the job was cancelled before the {name} pass of this run was completed"
              for name in ("timing", "activity", "counters")}
    unavailable = daemon.get(f"/jobs/{job_id}/results").json()["runs"][0]["summary"]["unavailable"]
    assert (unavailable["epoch_ms_median"], unavailable["launch_gap_ratio"]) == (reason["timing"], reason["activity"])
    assert daemon.get(f"/runs/{run}/report").json()["counters_reason"] == reason["counters"]
    assert daemon.get(f"/runs/{run}/timeline/findings").json()["reason"] == reason["activity"]
    explanation = json.dumps(daemon.get(f"/jobs/{job_id}/comparison").json())
    assert "pass is pending" not in explanation and reason["counters"] in explanation


@pytest.mark.parametrize("job_state, counters, timing, reason", [
    ("failed", None, "pending", "the job failed before a pass of this run was completed; GET /jobs/{job} says why"),
    ("failed", None, "completed", "the job did not ask for the counters pass"),
    ("failed", "pending", "completed",
     "the job failed before the counters pass of this run was completed; GET /jobs/{job} says why"),
    ("cancelled", "pending", "completed", "the job was cancelled before the counters pass of this run was completed"),
    ("failed", "unavailable", "pending", "no counters here"),
    ("running", "running", "completed", "the counters pass is running"),
    ("queued", "pending", "completed", "the counters pass is pending"),
    ("completed", "completed", "completed", None)])
def test_the_reason_of_missing_counters(job_state, counters, timing, reason):
    """The query of the report and the view of the reason, on one row of each table that they read."""
    database = sqlite3.connect(":memory:")
    database.create_function("utc_text", 1, lambda ns: None)
    database.create_function("stored_json", 1, lambda text: text)
    for table, columns in {
            "jobs": "id, kind, device, profile, state", "kernels": "pass_id", "measurements": "pass_id, name, value, reason",
            "runs": "id, job_id, workload, variant, params, engine, floor_bytes, floor_operations, floor_precision",
            "passes": "id INTEGER PRIMARY KEY, run_id, ordinal, name, state, reason, git_commit, finished_ns, device_id",
            "devices": "id, properties, identity, driver, sm_clock_max_mhz, memory_clock_max_mhz, clock_setting",
            "precision_rates": "precision, name", "v_ceilings": "name, value, reason, device_identity, driver",
            "v_ceiling_passes": "run, device, device_identity, driver, sm_clock_max_mhz, memory_clock_max_mhz, clock_setting, "
                                "disturbed_reason",
    }.items():
        database.execute(f"CREATE TABLE {table} ({columns})")
    database.execute("INSERT INTO jobs (id, kind, state) VALUES (3, 'kernel', ?)", [job_state])
    database.execute("INSERT INTO runs (id, job_id) VALUES (5, 3)")
    view, = re.findall(r"^CREATE VIEW v_pass_reasons AS.*?;$", (SOURCE / "schema/sql/views.sql").read_text(), re.M | re.S)
    database.execute(view)
    for ordinal, name, state in ((0, "timing", timing), (2, "counters", counters)):
        if state:
            database.execute("INSERT INTO passes (run_id, ordinal, name, state, reason) VALUES (5, ?, ?, ?, ?)",
                             [ordinal, name, state, "no counters here" if state == "unavailable" else None])
    query = (SOURCE / "schema/sql/queries/report_run.sql").read_text()
    found = json.loads(database.execute(query, {"run": 5}).fetchone()[0])["counters_reason"]
    assert found == (reason and reason.format(job=3))


def test_a_run_without_recorded_kernels_has_a_reason(daemon):
    job_id = daemon.run({"kind": "kernel", "kernel": "relu", "dtype": "fp32", "shape": {"n": 100}, "samples": 2, "device": "cpu"})
    run = daemon.get(f"/jobs/{job_id}/results").json()["runs"][0]["run"]
    (kernel,) = daemon.get(f"/runs/{run}/report").json()["kernels"]
    assert (kernel["name"], kernel["pass"], kernel["sections"]) == ("relu", None, None)
    assert kernel["reason"] == "the job did not ask for the counters pass"
    assert kernel["roofline"]["counted"] is False and kernel["roofline"]["duration_s"] > 0
    assert kernel["roofline"]["model"]["bytes"] == 800 and kernel["roofline"]["model"]["bytes_per_s"] > 0
    assert daemon.get(f"/runs/{run}/report?kernel=1").json()["kernels"] == []
    assert len(read_csv(daemon.get(f"/runs/{run}/report?format=csv"))) == 1


def test_without_counters_operations_are_compared_with_the_rate_of_their_precision(daemon, rows):
    """A GEMM of 4096 × 4096 × 4096 takes 184 µs. Without counters of its kernel, its report says which share of the ceilings the
    model reaches."""
    rows.run([], workload="ceilings", uuid="GPU-rates", measurements={
        "dram_read_bytes_per_s": 4.2e12, "fp32_operations_per_s": 6.5e13, "tensor_fp16_operations_per_s": 8.79e14})

    def classification(precision, trace=None):
        run = rows.run([], workload="gemm", floor=(3 * 2 * 4096.0**2, 2 * 4096.0**3), precision=precision, uuid="GPU-rates",
                       measurements={"time_cold_us_median": 184.0}, trace=trace)
        return daemon.get(f"/runs/{run}/report").json()["kernels"][0]["roofline"]["classification"]

    fp16 = classification("fp16")
    assert (fp16["bound"], fp16["compute_pct"]) == ("compute", pytest.approx(100 * 2 * 4096**3 / 184e-6 / 8.79e14))
    assert classification("fp32")["compute_pct"] == pytest.approx(100 * 2 * 4096**3 / 184e-6 / 6.5e13)
    unknown = classification("fp64")
    assert (unknown["bound"], unknown["compute_pct"]) == ("unknown", None)
    assert unknown["why"].endswith("compute: the device has no measured rate for the precision of these operations")
    traced = [{"name": name, "launch": name, "total_us": 90.0} for name in ("gemm", "reduce")]
    of_both = classification("fp16", trace=(traced, []))  # the model counts the operations of both kernels
    assert (of_both["bound"], of_both["memory_pct"], of_both["compute_pct"]) == ("unknown", None, None)


def test_a_comparison_has_rows_of_both_runs(daemon, rows):
    slow = {"gpu__time_duration.sum": 200.0, "launch__grid_size": 0.0, "dram__bytes_read.sum": 7.0}
    fast = {"gpu__time_duration.sum": 150.0, "launch__grid_size": 4.0, "dram__bytes_read.sum": "no"}
    a = rows.run([{"metrics": slow, "code_sha256": "a" * 64}])
    b = rows.run([{"metrics": fast, "code_sha256": "b" * 64, "launch": "another"}])
    document = daemon.get(f"/compare?a={a}&b={b}").json()
    assert (document["a"]["run"], document["b"]["run"]) == (a, b)
    (pair,) = document["kernels"]  # both runs have one kernel
    assert (pair["a"]["launch"], pair["b"]["launch"], pair["same_code"]) == ("relu", "another", False)
    duration = rows_of(pair, "SpeedOfLight")["Duration"]
    assert (duration["a"], duration["b"], duration["difference"], duration["relative"]) == (200, 150, -50, -0.25)
    grid = rows_of(pair, "LaunchStats")["Grid Size"]
    assert (grid["difference"], grid["relative"], grid["reason"]) == (4, None, None)
    read = rows_of(pair, "MemoryWorkloadAnalysis_Chart")["dram__bytes_read.sum"]
    assert (read["a"], read["b"], read["difference"], read["reason"]) == (7, None, None, "no")


def test_compare_pairs_kernels_by_launch(daemon, rows):
    metrics = {"launch__grid_size": 1.0}
    a = rows.run([{"launch": name, "metrics": metrics} for name in ("fill", "step", "step", "end")])
    b = rows.run([{"launch": name, "metrics": metrics} for name in ("step", "new", "end", "step", "step")])
    pairs = daemon.get(f"/compare?a={a}&b={b}").json()["kernels"]
    paired = [tuple(side and side["ordinal"] for side in (pair["a"], pair["b"])) for pair in pairs]
    assert sorted(paired, key=str) == sorted([(0, None), (1, 0), (2, 3), (3, 2), (None, 1), (None, 4)], key=str)
    assert all(pair["same_code"] is None for pair in pairs)
    alone = rows.run([{"launch": "step", "metrics": metrics}])
    pairs = daemon.get(f"/compare?a={alone}&b={b}").json()["kernels"]
    assert [(pair["a"] and pair["a"]["ordinal"], pair["b"]["ordinal"]) for pair in pairs if pair["a"]] == [(0, 0)]


def test_a_comparison_lists_appeared_and_disappeared_findings(daemon, rows, reference):
    spilling = {**collected(), "sass__inst_executed_register_spilling": 1e6,
                "sm__warps_active.avg.pct_of_peak_sustained_active": 99.0}
    other = rows.run([{"metrics": spilling}])

    def rules(run):
        return {rule["rule"] for rule in with_parts(daemon.get(f"/runs/{run}/report").json()["kernels"][0]["findings"])}

    before, after = rules(reference), rules(other)
    assert before != after
    (pair,) = daemon.get(f"/compare?a={reference}&b={other}").json()["kernels"]
    changes = {change["rule"]: change for change in pair["findings"]}
    assert set(changes) == before | after
    for rule, change in changes.items():
        assert change["change"] == ("unchanged" if rule in before & after else "resolved" if rule in before else "new")
        assert (change["a"] is None, change["b"] is None) == (rule not in before, rule not in after)


def test_a_finding_is_new_or_resolved_only_if_the_other_run_measured_it(daemon, rows, reference):
    """Occupancy is an optimization of the reference. The other runs have not collected it, have no value for it, did nothing
    that it measures, or a better value."""
    achieved = "sm__warps_active.avg.pct_of_peak_sustained_active"
    low, metrics = {**collected(), achieved: 10.0}, collected()
    runs = {"absent": {name: value for name, value in metrics.items() if name != achieved},
            "unavailable": {**metrics, achieved: "the counters contradict each other"},
            "undefined": {**metrics, achieved: "undefined: 0/0, the kernel did nothing that this metric measures"},
            "better": {**metrics, achieved: 99.0}}
    with_finding = rows.run([{"metrics": low}])
    changes = {}
    for name, values in runs.items():
        other = rows.run([{"metrics": values}])
        for a, b in ((with_finding, other), (other, with_finding)):
            (pair,) = daemon.get(f"/compare?a={a}&b={b}").json()["kernels"]
            change = next(change["change"] for change in pair["findings"] if change["rule"] == "occupancy_achieved")
            changes.setdefault(name, []).append(change)
    assert changes == {"absent": ["unknown", "unknown"], "unavailable": ["unknown", "unknown"],
                       "undefined": ["resolved", "new"], "better": ["resolved", "new"]}


def test_findings_of_a_kernel_of_one_run_are_no_changes(daemon, rows):
    runs = [rows.run([{"metrics": collected(), "launch": launch} for launch in launches]) for launches in ("pq", "pr")]
    pairs = daemon.get(f"/compare?a={runs[0]}&b={runs[1]}").json()["kernels"]
    changes = [{change["change"] for change in pair["findings"]} for pair in pairs]
    assert changes == [{"unchanged"}, {"unknown"}, {"unknown"}]


def test_a_run_equals_itself(daemon, reference):
    (pair,) = daemon.get(f"/compare?a={reference}&b={reference}").json()["kernels"]
    for section in pair["sections"]:
        for table in section["tables"]:
            assert all(row["difference"] in (0, None) for row in table["rows"])


@pytest.mark.parametrize("name, kind, library", [
    ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "kernel", "cuBLAS"),
    ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "source", None),  # posted code belongs to no library
    ("sgemm(const float *, const float *, float *)", "kernel", None),
])
def test_kernels_of_libraries_advise_the_caller(daemon, rows, name, kind, library):
    run = rows.run([{"name": name, "metrics": ncu_raw("stride")}], job=rows.job(kind=kind))
    (kernel,) = daemon.get(f"/runs/{run}/report").json()["kernels"]
    messages = [finding["message"] for leader in kernel["findings"] for finding in [leader, *leader["parts"]]]
    changes = [change["b"]["message"] for change in
               daemon.get(f"/compare?a={run}&b={run}").json()["kernels"][0]["findings"]]
    details = daemon.get(f"/runs/{run}/report?format=csv&print_details=all").text
    assert kernel["verdict"]["bound"] and messages
    for text in (*messages, *changes, details):  # "Let neighbouring threads access neighbouring addresses"
        assert not library or "neighbouring threads" not in text
    assert any("neighbouring threads" in text for text in messages) == (library is None)
    if library:
        assert kernel["library"]["name"] == library and f"A kernel of {library}, " in kernel["library"]["advice"]
        assert kernel["verdict"]["advice"] is None
    else:
        assert kernel["library"] is None and kernel["verdict"]["advice"]


def test_a_comparison_advises_the_author_of_one_kernel_and_the_caller_of_the_other(daemon, rows):
    own, library = (rows.run([{"launch": "gemm", "name": name, "metrics": ncu_raw("stride")}])
                    for name in ("sgemm(const float *, const float *, float *)", "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT"))
    for a, b in ((own, library), (library, own)):
        (pair,) = daemon.get(f"/compare?a={a}&b={b}").json()["kernels"]
        messages = {side: " ".join(change[side]["message"] for change in pair["findings"]) for side in ("a", "b")}
        assert "neighbouring threads" in messages["a" if a == own else "b"]
        assert "neighbouring threads" not in messages["a" if a == library else "b"]


def test_the_catalogue_lists_every_section(daemon):
    items = {item["id"]: item for item in daemon.get("/sections").json()["items"]}
    assert len(items) >= 22
    assert items["SpeedOfLight"]["sets"] == ["basic", "detailed", "full"]
    assert items["SchedulerStats"]["sets"] == items["RawPage"]["sets"] == ["full"]
    every = [row for item in items.values() for table in item["tables"] for row in table["rows"]]
    assert len(every) > 1000 and all(row["expression"] for row in every)
    tma = next(row for row in every if row["name"] == "SM: Pipe Tma Cycles Active")
    assert tma["chips"].startswith("9.0")


@pytest.mark.parametrize("path, status, parameter", [
    ("/runs/999999/report", 404, None),
    ("/runs/999999/report?format=csv&page=raw", 404, None),
    ("/runs/1/report?format=xml", 400, "format"),
    ("/runs/1/report?kernel=-1", 400, "kernel"),
    ("/runs/1/report?kernel=first", 400, "kernel"),
    ("/runs/1/report?page=source", 400, "page"),
    ("/runs/1/report?colour=red", 400, "colour"),
    ("/runs/x/report", 404, None),
    ("/compare", 400, "a"),
    ("/compare?a=1", 400, "b"),
    ("/compare?a=0&b=1", 400, "a"),
    ("/compare?a=1&b=999999", 404, None),
    ("/compare?a=999999&b=1", 404, None),
])
def test_invalid_report_requests_are_refused(daemon, reference, path, status, parameter):
    assert reference >= 1
    response = daemon.get(path)
    assert response.status_code == status
    assert response.json().get("parameter") == parameter


def test_an_unfinished_run_has_a_report(daemon):
    job_id = daemon.submit(endless())
    daemon.wait(job_id, states=("running",))
    (run,) = daemon.get(f"/jobs/{job_id}").json()["runs"]
    report = daemon.get(f"/runs/{run['id']}/report").json()
    assert report["kernels"][0]["sections"] is None
    queued_job = daemon.submit(endless())
    (queued,) = daemon.get(f"/jobs/{queued_job}").json()["runs"]
    reason = lambda: daemon.get(f"/runs/{queued['id']}/report").json()["ceilings_reason"]  # noqa: E731
    assert reason() == "no pass has reported its device yet"
    daemon.cancel_all()
    daemon.wait(queued_job)
    assert reason() == "the job ended before a pass reported its device"
