"""compare_ncu.py with a fake probe and a fake ncu."""
import csv
import os
import pathlib
import subprocess
import sys

COMPARE = pathlib.Path(__file__).resolve().parents[1] / "gpu" / "cupti" / "compare_ncu.py"
OURS = """0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,gpu__time_duration.sum,"",20000
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,dram__bytes.sum,"",%(bytes)s
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,dram__bytes_write.sum,"",%(written)s
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,smsp__inst_executed.sum,"",%(executed)s
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,smsp__inst_executed_op_texture.sum,"%(texture_reason)s",0
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,launch__occupancy_cluster_pct,"",23.484848
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,smsp__warps_eligible.avg.per_cycle_active,"",0.2355
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,lts__t_sectors_data_ecc.sum.per_second,"",3e6
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,smsp__pcsamp_sample_count,"",500
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,smsp__pcsamp_warps_issue_stalled_wait,"",%(waits)s
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,lts__t_requests.sum,"",%(requests)s
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,launch__shared_mem_config_size,"",%(carveout_bytes)s
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,launch__occupancy_limit_shared_mem,"",%(resident_blocks)s
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,derived__ours_alone,"",7
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,launch__tpc_enabled,"no number",
"""
NCU = """#!%(python)s
import sys
names = sys.argv[sys.argv.index("--metrics") + 1].split(",")
if "derived__ours_alone" in names:
    print("==ERROR== Failed to find metric derived__ours_alone")
    sys.exit(1)
assert "launch__tpc_enabled" not in names  # has no value
values = {"gpu__time_duration.sum": "20,100", "dram__bytes.sum": "1,010,000", "dram__bytes_write.sum": "200,000",
          "smsp__inst_executed.sum": "500", "smsp__inst_executed_op_texture.sum": "%(textures)s",
          "launch__occupancy_cluster_pct": "23.48",
          "smsp__warps_eligible.avg.per_cycle_active": "0.23", "lts__t_sectors_data_ecc.sum.per_second": "0",
          "lts__t_requests.sum": "100,000", "launch__shared_mem_config_size": "102,400",
          "launch__occupancy_limit_shared_mem": "8",
          "smsp__pcsamp_sample_count": "200", "smsp__pcsamp_warps_issue_stalled_wait": "20"}
print("==PROF== Connected")
print(",".join('"%%s"' %% name for name in ["Kernel Name", "Block Size", "Grid Size", *names]))
print(",".join('""' for _ in range(3 + len(names))))
for grid in %(grids)s:
    launch = ["gallery_copy(const float4 *)", "(256, 1, 1)", grid]
    print(",".join('"%%s"' %% cell for cell in [*launch, *(values[name] for name in names)]))
"""


# The fake probe prints the metrics that it is asked for: all of them for "full", the duration only for "auto".
PROBE = """#!/bin/sh
[ $1 = recount ] || exit 2
case $2 in full) names=.;; auto) names=time_duration;; *) names=$(echo $2 | tr , '|');; esac
grep -E "$names" <<X
%sX
"""


def compare(folder, sets="full,full", executed=500, textures=0, bytes_moved=1000000, waits=50, ours=OURS, grids=("(64, 1, 1)",),
             requests=130000, carveout_bytes=102400, resident_blocks=8, written=201000):
    """Runs compare_ncu.py and returns (exit status, output, {metric: row})."""
    ours %= {"executed": executed, "bytes": bytes_moved, "waits": waits, "requests": requests, "carveout_bytes": carveout_bytes,
             "resident_blocks": resident_blocks, "written": written,
             "texture_reason": "not counted: the code has no texture instruction"}
    for name, text in [("probe", PROBE % ours), ("ncu", NCU % {"python": sys.executable, "textures": textures, "grids": grids})]:
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    done = subprocess.run([sys.executable, COMPARE, "--out", folder / "out", "--sets", sets, folder / "probe"], check=False,
                          capture_output=True, text=True, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
    with open(folder / "out" / "comparison.csv", encoding="utf-8") as table:
        return done.returncode, done.stdout, {row["metric"]: row for row in csv.DictReader(table)}


def verdicts_of(rows):
    return {metric: row["copy_verdict"] for metric, row in rows.items()}


def test_equal_values_agree(tmp_path):
    status, output, rows = compare(tmp_path)
    assert status == 0, output
    assert verdicts_of(rows) == {
        "gpu__time_duration.sum": "agrees", "dram__bytes.sum": "agrees", "dram__bytes_write.sum": "agrees",
        "smsp__inst_executed.sum": "equal",
        "smsp__inst_executed_op_texture.sum": "derived", "launch__occupancy_cluster_pct": "equal",
        "smsp__warps_eligible.avg.per_cycle_active": "agrees", "lts__t_sectors_data_ecc.sum.per_second": "small",
        "smsp__pcsamp_sample_count": "sampled", "smsp__pcsamp_warps_issue_stalled_wait": "sampled",
        "lts__t_requests.sum": "full L2", "launch__shared_mem_config_size": "equal",
        "launch__occupancy_limit_shared_mem": "equal",
        "derived__ours_alone": "only ours"}


def test_deterministic_counts_must_be_equal(tmp_path):
    verdicts = verdicts_of(compare(tmp_path)[2])
    status, _, rows = compare(tmp_path, executed=501)
    assert (status, verdicts_of(rows)) == (1, {**verdicts, "smsp__inst_executed.sum": "DIFFERS"})


def test_a_zero_implied_by_the_code_must_be_0_in_ncu(tmp_path):
    status, _, rows = compare(tmp_path, textures=1)
    assert (status, rows["smsp__inst_executed_op_texture.sum"]["copy_verdict"]) == (1, "DIFFERS")


def test_shares_of_samples_may_differ_by_sampling_error_only(tmp_path):
    """16 % of 500 samples and 10 % of 200 may differ by chance; 22 % may not."""
    verdicts = [verdicts_of(compare(tmp_path, waits=waits)[2])["smsp__pcsamp_warps_issue_stalled_wait"] for waits in (80, 110)]
    assert verdicts == ["sampled", "DIFFERS"]


def test_a_full_l2_explains_more_requests_but_not_fewer(tmp_path):
    verdicts = [verdicts_of(compare(tmp_path, requests=requests)[2])["lts__t_requests.sum"]
                for requests in (160000, 170000, 90000)]
    assert verdicts == ["full L2", "DIFFERS", "DIFFERS"]


def test_total_bytes_differ_by_the_bytes_written(tmp_path):
    """The fake ncu counts 810 000 bytes read and 200 000 written."""
    moved = [(1310000, 500000), (1310000, 200000), (12810000, 12000000)]
    verdicts = [verdicts_of(compare(tmp_path, bytes_moved=moved_bytes, written=written)[2]) for moved_bytes, written in moved]
    assert [(found["dram__bytes.sum"], found["dram__bytes_write.sum"]) for found in verdicts] == [
        ("known", "known"), ("DIFFERS", "agrees"), ("DIFFERS", "DIFFERS")]


def test_resident_blocks_may_differ_with_the_carveout(tmp_path):
    _, _, rows = compare(tmp_path, carveout_bytes=135168, resident_blocks=11)
    assert {rows[name]["copy_verdict"] for name in rows if name.startswith("launch__") and "cluster" not in name} == {"carveout"}
    _, _, rows = compare(tmp_path, resident_blocks=11)
    assert rows["launch__occupancy_limit_shared_mem"]["copy_verdict"] == "DIFFERS"


def test_a_differing_metric_is_collected_again(tmp_path):
    _, _, rows = compare(tmp_path, sets="full,auto,auto", bytes_moved=2000000)
    assert {name: (rows[name]["copy_verdict"], rows[name]["runs"]) for name in list(rows)[:3]} == {
        "gpu__time_duration.sum": ("agrees", "3"), "dram__bytes.sum": ("DIFFERS", "3"), "dram__bytes_write.sum": ("agrees", "1")}


def test_each_kernel_of_a_launch_has_its_columns(tmp_path):
    another = [line.replace("0,copy", "1,copy").replace("64 1 1,256", "32 1 1,256") for line in OURS.splitlines()]
    _, output, _ = compare(tmp_path, ours=OURS + "\n".join(another) + "\n", grids=("(64, 1, 1)", "(32, 1, 1)"))
    with open(tmp_path / "out" / "comparison.csv", encoding="utf-8") as table:
        row = next(csv.DictReader(table))
    assert (row["copy_verdict"], row["copy_2_verdict"]) == ("agrees", "agrees"), output


def test_metrics_that_ncu_refuses_are_printed(tmp_path):
    assert compare(tmp_path)[1].splitlines()[0] == "ncu refuses derived__ours_alone"
