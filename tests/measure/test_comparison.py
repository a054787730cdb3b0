"""compare_ncu.py with a probe and an ncu that only print."""
import csv
import os
import pathlib
import subprocess
import sys

COMPARE = pathlib.Path(__file__).resolve().parents[1] / "gpu" / "cupti" / "compare_ncu.py"
OURS = """0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,gpu__time_duration.sum,"",20000
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,dram__bytes.sum,"",1000000
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,smsp__inst_executed.sum,"",%(executed)s
0,copy,"gallery_copy(float4 const*)",64 1 1,256 1 1,smsp__inst_executed_op_texture.sum,"not counted: the code has no texture instruction",0
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
values = {"gpu__time_duration.sum": "20,100", "dram__bytes.sum": "1,010,000", "smsp__inst_executed.sum": "500",
          "smsp__inst_executed_op_texture.sum": "%(textures)s"}
print("==PROF== Connected")
print(",".join('"%%s"' %% name for name in ["Kernel Name", "Block Size", "Grid Size", *names]))
print(",".join('""' for _ in range(3 + len(names))))
print(",".join('"%%s"' %% cell for cell in ["gallery_copy(const float4 *)", "(256, 1, 1)", "(64, 1, 1)", *(values[name] for name in names)]))
"""


def compared(folder, executed=500, textures=0):
    """Exit status, what was printed, and words by metric."""
    for name, text in [("probe", f"#!/bin/sh\n[ $1 = recount ] || exit 2\ncat <<X\n{OURS % {'executed': executed}}X\n"),
                       ("ncu", NCU % {"python": sys.executable, "textures": textures})]:
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    done = subprocess.run([sys.executable, COMPARE, "--out", folder / "out", "--sets", "full,full", folder / "probe"], check=False,
                          capture_output=True, text=True, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
    with open(folder / "out" / "comparison.csv", encoding="utf-8") as table:
        return done.returncode, done.stdout, {row["metric"]: row["copy_verdict"] for row in csv.DictReader(table)}


def test_what_agrees(tmp_path):
    status, said, words = compared(tmp_path)
    assert status == 0, said
    assert words == {"gpu__time_duration.sum": "agrees", "dram__bytes.sum": "agrees", "smsp__inst_executed.sum": "equal",
                     "smsp__inst_executed_op_texture.sum": "decided", "derived__ours_alone": "only ours"}


def test_what_the_program_determines_must_be_equal(tmp_path):
    assert compared(tmp_path, executed=501)[::2] == (1, {**compared(tmp_path)[2], "smsp__inst_executed.sum": "DIFFERS"})


def test_what_the_code_decides_must_be_0_where_ncu_counts_it(tmp_path):
    status, _, words = compared(tmp_path, textures=1)
    assert (status, words["smsp__inst_executed_op_texture.sum"]) == (1, "DIFFERS")


def test_metrics_that_ncu_refuses_are_said(tmp_path):
    assert compared(tmp_path)[1].splitlines()[0] == "ncu refuses derived__ours_alone"
