"""Tests rooflinectl with the real daemon and the CPU worker: every command, every exit code, output as text and as JSON."""
import contextlib
import csv
import http.server
import json
import lzma
import os
import pathlib
import pty
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

import pytest
import requests
from client_daemon import BUILD, Daemon

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "api"))
import posted_runs  # noqa: E402
import profiled_runs  # noqa: E402
import ranged_run  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# Training that takes about a second per epoch under a sanitizer.
QUICK = ["--epochs", "2", "--warmup-epochs", "0", "--max-images", "512", "--dataset", "synthetic", "--device", "cpu"]
LONG = ["--epochs", "1000", "--warmup-epochs", "0", "--dataset", "synthetic", "--device", "cpu"]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    started = Daemon(tmp_path_factory.mktemp("daemon") / "state")
    yield started
    started.stop()


def start(*arguments, url=None, **environment):
    env = {**os.environ, **environment, "ROOFLINED_URL": url or "http://127.0.0.1:9"}
    return subprocess.Popen([BUILD / "bin/rooflinectl", *arguments], env=env, text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ctl(*arguments, url=None, stdin="", code=0, **environment):
    process = start(*arguments, url=url, **environment)
    out, err = process.communicate(stdin, timeout=200)
    assert process.returncode == code, f"exit {process.returncode}, not {code}\n{out}\n{err}"
    return out, err


@pytest.fixture(scope="module")
def finished(daemon):
    """The JSON document that `run --json` prints for one job."""
    out, _ = ctl("--json", "run", *QUICK, "--passes", "timing,activity,counters", url=daemon.url)
    return json.loads(out)


def wait_until_running(daemon, job):
    deadline = time.monotonic() + 180
    while json.loads(ctl("--json", "show", str(job), url=daemon.url)[0])["state"] != "running":
        assert time.monotonic() < deadline, "the job never started"
        time.sleep(0.05)


def submit(daemon, *options):
    request = {"kind": "train"}
    for name, value in zip(options[::2], options[1::2]):
        field = name.removeprefix("--").replace("-", "_")
        request[field] = value.split(",") if field in ("precisions", "passes") else int(value) if value.isdigit() else value
    out, _ = ctl("submit", "-", url=daemon.url, stdin=json.dumps(request))
    return int(out)


def test_run_json_is_one_document(finished):
    assert finished["job"]["state"] == "completed"
    runs = finished["results"]["runs"]
    assert [run["variant"] for run in runs] == ["fp32", "fp16"]
    assert all(len(run["epochs"]) == 2 and run["summary"]["epoch_ms_median"] > 0 for run in runs)
    assert len(finished["comparison"]["items"]) == 1


def test_show_prints_the_comparison_within_80_columns(daemon, finished):
    out, _ = ctl("show", str(finished["job"]["id"]), url=daemon.url)
    head = out.splitlines()
    table = [line for line in head if re.match(r"(epoch time|images/s|peak memory|test accuracy)", line)]
    assert len(table) == 5
    assert max(len(line) for line in table) <= 80
    ratio = finished["comparison"]["items"][0]["speedup_ratio"]
    assert f"{ratio:.2f}×" in next(line for line in table if "median" in line)
    assert "synthetic (partial)" in out


def test_show_prints_the_reason_of_missing_counters(daemon, finished):
    out, _ = ctl("show", str(finished["job"]["id"]), url=daemon.url)
    assert re.search(r"— fp32, counters pass: \S+", out)


def test_run_prints_progress_on_stderr_and_the_table_on_stdout(daemon):
    out, err = ctl("run", *QUICK, "--precisions=fp32", url=daemon.url)
    assert "epoch time, median" in out and "fp32 timing" in err
    assert "fp32 timing: completed" in err


def test_list_and_devices(daemon, finished):
    out, _ = ctl("list", url=daemon.url)
    row = next(line for line in out.splitlines() if line.split()[0] == str(finished["job"]["id"]))
    fp32, fp16 = (run["run"] for run in finished["results"]["runs"])
    assert row.split()[1:5] == ["train", "completed", "cpu", "6/6"]
    assert row.endswith(f" batch 64            mnist_cnn: {fp32} fp32, {fp16} fp16")
    assert max(map(len, out.splitlines())) <= 110
    out, _ = ctl("devices", url=daemon.url)
    assert re.search(r"^cpu +cpu +(idle|busy) ", out, re.M)
    devices = json.loads(ctl("devices", "--json", url=daemon.url)[0])["items"]
    assert devices[0]["id"] == "cpu" and devices[0]["properties"]["name"]


@pytest.mark.parametrize("kernel, dtype, sizes, cell", (
    ("softmax", "fp16", "rows=64,columns=32", "fp16 64×32"),
    ("attention", "fp32", "batch=1,heads=2,kv_heads=2,sequence=16,head_size=8,causal=true", "fp32 1×2×2×16×8 ca…"),
    ("conv", "fp32", "images=1,height=8,width=8,channels=4,filters=4,kernel=3,stride=1,padding=1",
     "fp32 1×8×8×4×4×3×1…")))
def test_list_prints_sizes(daemon, kernel, dtype, sizes, cell):
    ctl("run", "--kernel", kernel, "--dtype", dtype, "--shape", sizes, "--samples", "1", "--device", "cpu", url=daemon.url)
    header, newest = ctl("list", url=daemon.url)[0].splitlines()[:2]
    column = header.index("sizes")
    assert newest[column:column + 20] == cell.ljust(20) and newest[column + 20:].startswith(f"{kernel}: ")
    assert header[column:] == "sizes               runs" and len(newest[:column + 20]) == 80


def test_kernels_prints_the_kernels_of_a_job(daemon, finished):
    out, _ = ctl("kernels", str(finished["job"]["id"]), url=daemon.url)
    assert re.search(r"^fp32 +activity .*conv", out, re.M), out
    items = json.loads(ctl("--json", "kernels", str(finished["job"]["id"]), url=daemon.url)[0])["items"]
    assert all(item["launches"] > 0 for item in items if item["pass"] == "activity")
    fused = json.loads(ctl("--json", "submit", "-", stdin='{"kind":"train","epochs":1000}', url=daemon.url)[0])["id"]
    assert "no kernels" in ctl("kernels", str(fused), url=daemon.url)[0]
    ctl("cancel", str(fused), url=daemon.url)


def test_posted_code_needs_permission_and_a_token(daemon, tmp_path):
    code = tmp_path / "add.cu"
    code.write_text('extern "C" __global__ void add(float *x, int n) { x[threadIdx.x] += n; }\n')
    command = ["run", "--code", str(code), "--entry", "add", "--grid", "1", "--block=32,2"]
    _, err = ctl(*command, url=daemon.url, code=2)
    assert "allow_source = true" in err
    source_daemon = Daemon(tmp_path / "state", "--allow-source")
    try:
        _, err = ctl(*command, url=source_daemon.url, code=2)
        assert "rooflinectl token" in err
        token = ctl("token", "--state", str(tmp_path / "state"))[0].split()[-1]
        for arguments, pointer in (("fp32[64]=range,fp16[8],int32=-4", "/device"), ("fp32[0]", "/arguments/0/buffer/count"),
                                 ("fp32[4]=twos", "/arguments/0/buffer/init"), ("fp32[4],int8=400", "/arguments/1/scalar/value")):
            _, err = ctl(*command, "--arguments", arguments, url=source_daemon.url, code=2, ROOFLINED_TOKEN=token)
            assert f"(at {pointer})" in err, err
        for wrong in ("fp32", "fp32[4", "fp32[4]x", "int32=", "int32=x", "fp32[4],"):
            _, err = ctl(*command, "--arguments", wrong, url=source_daemon.url, code=2, ROOFLINED_TOKEN=token)
            assert "needs arguments like" in err, err
    finally:
        source_daemon.stop()


def test_run_prints_the_table_of_a_kernel_job(daemon):
    out, err = ctl("run", "--kernel", "silu_mul", "--dtype", "bf16", "--shape", "n=5000", "--samples", "5", "--device", "cpu",
                   url=daemon.url)
    assert "scalar timing: completed" in err
    head = next(line for line in out.splitlines() if "scalar" in line)
    assert head.split() == ["scalar", "vector"]
    for label in ("cold, median", "cold, min", "warm, median", "warm, min", "bytes moved, cold", "relative error"):
        assert re.search(rf"^{label} +[0-9]", out, re.M), out
    assert "silu_mul bf16 n=5000 · engine cpu" in out and "epoch" not in out
    assert max(map(len, out.splitlines())) <= 80
    _, err = ctl("run", "--kernel", "relu", "--shape", "m=5", url=daemon.url, code=2)
    assert "/shape/m" in err


def test_a_shape_has_booleans(daemon):
    shape = "batch=1,heads=2,kv_heads=1,sequence=33,head_size=16,causal=true"
    out, _ = ctl("run", "--kernel", "attention", "--shape", shape, "--variant", "heuristic", "--samples", "1", "--device", "cpu",
                 url=daemon.url)
    assert "attention fp32 " + shape.replace(",", " ") in out
    _, err = ctl("run", "--kernel", "attention", "--shape", shape.replace("true", "maybe"), url=daemon.url, code=2)
    assert "--shape" in err


def test_a_layer_prints_the_gain_of_each_variant(daemon):
    size = ("--tokens", "5", "--hidden", "16", "--heads", "2", "--ffn", "24", "--samples", "2", "--device", "cpu")
    out, _ = ctl("run", "--kind", "layer", *size, url=daemon.url)
    assert "transformer_layer fp16 · prefill of 1 × 5 tokens · hidden 16 · heads 2 · ffn 24 · causal" in out
    rows = {line.split()[0]: line for line in out.splitlines() if line.startswith(("baseline", "fused"))}
    assert list(rows) == ["baseline", "fused"] and all(row.count("µs") == 3 for row in rows.values())
    assert rows["baseline"].split()[-2] == "—" and rows["fused"].split()[-3:-1] == ["%", "baseline"]
    decode = ctl("run", "--kind", "layer", *size[2:], "--tokens", "1", "--cached-tokens", "7", "--variants", '["fused"]',
                 "--causal", "false", url=daemon.url)[0]
    assert "decode of 1 × 1 tokens after 7 cached · hidden 16 · heads 2 · ffn 24\n" in decode


def test_ceilings_are_measured_and_listed(daemon):
    assert "run --kind ceilings" in ctl("ceilings", url=daemon.url)[0]
    out, _ = ctl("run", "--kind", "ceilings", "--samples", "2", "--device", "cpu", url=daemon.url)
    listed, _ = ctl("ceilings", url=daemon.url)
    for text in (out, listed):
        assert re.search(r"^dram_read +[0-9.]+ GB/s$", text, re.M) and re.search(r"^fp32 +[0-9.]+ [GT]FLOP/s$", text, re.M), text
        assert re.search(r"^tensor_fp16 +—  \S", text, re.M) and max(map(len, text.splitlines())) <= 80, text
    assert re.match(r"cpu .* · job \d+, \d+ s ago$", listed.splitlines()[0])
    (item,) = json.loads(ctl("--json", "ceilings", url=daemon.url)[0])["items"]
    assert item["device"] == "cpu"


def test_disturbed_ceilings_say_so(daemon):
    """Ceilings are disturbed if other processes used more than 5 % of the processors' time, or than half a processor."""
    (item,) = json.loads(ctl("--json", "ceilings", url=daemon.url)[0])["items"]
    warning = ("! other processes, interrupts or the hypervisor used 4.7 % of the processors'\n  time (6.0 processors) during "
               "the measurement, so the rates may be too low:\n  measure them again while nothing else runs (rooflinectl run "
               "--kind ceilings\n  --device cpu)\n")
    for ratio, processors, expected in ((0.05, 0.5, ""), (0.047, 6, warning)):
        with contextlib.closing(sqlite3.connect(daemon.state / "rooflined.db", timeout=60)) as database, database:
            database.execute("UPDATE measurements SET value = ? WHERE name = 'other_processes_cpu_time_ratio'", [ratio])
            database.execute("UPDATE measurements SET value = ? WHERE name = 'other_processes_busy_processors'", [processors])
        time.sleep(1.1)  # equal requests within a second get the same body
        for out in (ctl("ceilings", url=daemon.url)[0], ctl("show", str(item["job"]), url=daemon.url)[0]):
            assert ("! other processes" in out) == (expected != "") and expected in out, out
            assert max(map(len, out.splitlines())) <= 80


@pytest.fixture(scope="module")
def profiled(daemon):
    return profiled_runs.insert(daemon.state)


def test_the_short_report_begins_with_verdicts_and_fits_60_lines(daemon, profiled):
    run = str(profiled["a"])
    out, _ = ctl("report", run, url=daemon.url)
    lines = out.splitlines()
    assert len(lines) <= 60 and max(map(len, lines)) <= 100 and "\033" not in out
    kernels = json.loads(ctl("report", "--json", run, url=daemon.url)[0])["kernels"]
    durations = {kernel["ordinal"]: kernel["roofline"]["duration_s"] for kernel in kernels}
    listed = [int(line.split()[0]) for line in lines if re.match(r"^\d+ .* · [0-9.]+ [mµ]s$", line)]
    assert listed == sorted(durations, key=lambda ordinal: -durations[ordinal])
    words = " ".join(out.split())
    for kernel in kernels:
        assert kernel["verdict"]["message"] in words
    gains = {f"kernel {kernel['ordinal']}: {finding['title']}": finding["speedup_pct"] / 100 * durations[kernel["ordinal"]]
             for kernel in kernels for finding in kernel["findings"]
             if finding["speedup_pct"] is not None and finding["scope"] == "global"}
    printed = [gains[title] for title in re.findall(r"^[!·] (kernel \d+: .*?) \(", out, re.M) if title in gains]
    assert printed == sorted(printed, reverse=True) and len(printed) > 0
    assert words.index(kernels[listed[0]]["verdict"]["message"]) < words.index("! kernel")
    assert re.search(rf"^Not shown: (.*, )?tables of numbers \(rooflinectl report {run} --all\)$", lines[-1])
    assert "Speed Of Light" not in out


def test_a_long_warning_takes_lines_from_the_short_report(daemon, profiled):
    """Without the warning, the report has 57 lines. The warning has four."""
    processes = [(f"other_process_419430{i}_memory_bytes", (143771 - i) * 2**20) for i in range(5)]

    def change(statement, rows):
        with contextlib.closing(sqlite3.connect(daemon.state / "rooflined.db", timeout=60)) as database, database:
            (ceilings,), = database.execute("SELECT max(pass_id) FROM v_other_processes WHERE measures_ceilings = 1 "
                                            "AND device GLOB 'gpu*'")
            database.executemany(statement, [(ceilings, *row) for row in rows])
        time.sleep(1.1)  # equal requests within a second get the same body

    change("INSERT INTO measurements (pass_id, name, value) VALUES (?, ?, ?)", processes)
    try:
        out, _ = ctl("report", str(profiled["a"]), url=daemon.url)
    finally:
        change("DELETE FROM measurements WHERE pass_id = ? AND name = ?", [(name,) for name, _ in processes])
    assert len(out.splitlines()) <= 60, out
    warning = out[out.index("! other processes"):out.index("\n\n")]
    words = " ".join(warning.split())
    assert warning.count("\n") == 3 and "pid 4194300 (143771 MiB), pid 4194301" in words
    assert "pid 4194302 (143769 MiB) and 2 more)" in words and "4194303" not in words
    assert re.search(r"^Not shown: \d+ findings", out, re.M)


def test_the_short_report_of_a_training_run(daemon, finished):
    run = finished["results"]["runs"][1]["run"]
    out, _ = ctl("report", str(run), url=daemon.url)
    assert len(out.splitlines()) <= 60 and "\nTimeline\n" in out
    assert re.search(r"^fp16, traced epoch of [0-9.]+ [mµ]?s: kernels without a verdict", out, re.M), out


def test_list_names_posted_kernels(daemon):
    posted = posted_runs.insert(daemon.state)
    rows = {int(line.split()[0]): line for line in ctl("list", url=daemon.url)[0].splitlines()[1:]}
    assert rows[posted["job"]].endswith(f" adds.cu · add: {posted['run']} default")
    assert re.search(r" add: \d+ default, \d+ fast_math$", rows[posted["failed"]])
    assert re.search(r"^add \(adds\.cu\) · engine cuda", ctl("show", str(posted["job"]), url=daemon.url)[0], re.M)


def test_report_finds_the_only_run_of_a_job(daemon, profiled, finished):
    run = str(profiled["a"])
    job = json.loads(ctl("report", "--json", run, url=daemon.url)[0])["job"]
    by_job = ctl("report", "--job", str(job), url=daemon.url)
    assert by_job == ctl("report", run, url=daemon.url)
    fp32, fp16 = (run["run"] for run in finished["results"]["runs"])
    _, err = ctl("report", "--job", str(finished["job"]["id"]), url=daemon.url, code=2)
    assert f"the runs {fp32} fp32, {fp16} fp16; print one with: rooflinectl report {fp32}" in err
    _, err = ctl("report", "--job", "999999", url=daemon.url, code=2)
    assert "Job 999999 not found" in err
    assert "not both" in ctl("report", run, "--job", str(job), url=daemon.url, code=2)[1]
    assert "a job's number after --job" in ctl("report", "--job", "x", url=daemon.url, code=2)[1]
    assert "rooflinectl list" in ctl("report", url=daemon.url, code=2)[1]


def run_on_a_terminal(*arguments, url, **variables):
    """Returns what rooflinectl writes to a terminal."""
    terminal, standard_output = pty.openpty()
    environment = {**os.environ, "ROOFLINED_URL": url, "TERM": "xterm", **variables}
    if "NO_COLOR" not in variables:
        environment.pop("NO_COLOR", None)
    with subprocess.Popen([BUILD / "bin/rooflinectl", *arguments], stdout=standard_output, env=environment) as process:
        os.close(standard_output)
        written = b""
        with contextlib.suppress(OSError):  # EIO: the program has closed the terminal
            while part := os.read(terminal, 65536):
                written += part
    os.close(terminal)
    assert process.returncode == 0
    return written.decode()


def test_a_terminal_gets_colour_unless_it_is_refused(daemon, profiled):
    run = str(profiled["a"])
    plain, _ = ctl("report", run, url=daemon.url)
    coloured = run_on_a_terminal("report", run, url=daemon.url)
    assert "\033[1m" in coloured and re.sub(r"\033\[[0-9]+m", "", coloured).replace("\r\n", "\n") == plain
    assert run_on_a_terminal("report", run, url=daemon.url, NO_COLOR="1").replace("\r\n", "\n") == plain
    assert "\033" not in run_on_a_terminal("report", run, url=daemon.url, TERM="dumb")


def test_watch_ends_with_the_job(daemon):
    job = str(submit(daemon, *QUICK))
    out, _ = ctl("show", job, "--watch", url=daemon.url)
    last, _ = ctl("show", job, url=daemon.url)
    assert out.endswith(last) and f"job {job} completed" in last
    run = requests.get(f"{daemon.url}/jobs/{job}/results", timeout=60).json()["runs"][0]["run"]
    assert ctl("report", str(run), "--watch", url=daemon.url)[0] == ctl("report", str(run), url=daemon.url)[0]


def test_report_all_prints_every_finding(daemon, profiled):
    run = str(profiled["a"])
    out, _ = ctl("report", "--all", run, url=daemon.url)
    assert out.endswith("\n— no timeline: the job did not ask for the activity pass\n")
    kernels = json.loads(ctl("report", "--json", run, url=daemon.url)[0])["kernels"]
    assert profiled["hostile"] in out and "grid 32768×1×1 · block 128×1×1 · duration 22.34 µs" in out
    for kernel in kernels:
        verdict = kernel["verdict"]
        assert f"{verdict['message']} {verdict['advice']}" in " ".join(out.split())
        for finding in kernel["findings"]:
            assert re.search(rf"^[!·] {re.escape(finding['title'])} \({finding['section']}[,)]", out, re.M)
            assert " ".join(finding["message"].split()) in " ".join(out.split())
            for part in finding["parts"]:
                assert re.search(rf"^  [!·] {re.escape(part['title'])} \({part['section']}\)$", out, re.M)
                assert " ".join(part["message"].split()) in " ".join(out.split())
        assert all(f"{section['name']} ({section['id']})" in out for section in kernel["sections"])
    for row in (r"Duration +22\.34 µs", r"DRAM Frequency +3\.20 GHz", r"Elapsed Cycles +33 496 cycle",
                r"Memory Throughput +9\.87 %", r"Cluster Scheduling Policy +PolicySpread",
                r"Static Shared Memory Per Block +0 byte/block"):
        assert re.search(rf"^{row}$", out, re.M), row
    (missing,) = [row for section in kernels[0]["sections"] if section["id"] == "SpeedOfLight" for table in section["tables"]
                  for row in table["rows"] if row["name"] == "SM: Pipe Tma Cycles Active"]
    assert missing["name"] not in out  # tables below the header are not printed


def test_a_library_kernel_gets_its_advice(daemon, profiled):
    run = str(profiled["library"])
    out, _ = ctl("report", run, url=daemon.url)
    (kernel,) = json.loads(ctl("report", "--json", run, url=daemon.url)[0])["kernels"]
    assert f"{kernel['verdict']['message']} {kernel['library']['advice']}" in " ".join(out.split())


def test_report_of_one_kernel_and_section(daemon, profiled):
    out, _ = ctl("report", "--kernel", "1", str(profiled["a"]), "--section", "Occupancy", url=daemon.url)
    assert "\n1 void scale" in out and "\n0 relu" not in out and "Speed Of Light" not in out
    assert re.search(r"^Achieved Occupancy +81\.22 %$", out, re.M) and "SchedulerStats" not in out
    out, _ = ctl("report", str(profiled["a"]), "--kernel", "0", "--section", "SpeedOfLight", url=daemon.url)
    assert re.search(r"^Compute Throughput Breakdown$", out, re.M) and re.search(r"^SM: Issue Active +[0-9.]+ %$", out, re.M)


def test_export_writes_a_file(daemon, finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    number, runs = finished["job"]["id"], [run["run"] for run in finished["results"]["runs"]]
    command = ("export", str(number), "--format", "csv", "--run", str(runs[1]))
    out, err = ctl(*command, url=daemon.url)
    assert (out, err) == (f"job-{number}-run-{runs[1]}.csv\n", "")  # no progress without a terminal
    assert os.listdir(tmp_path) == [out.strip()]
    lines = (tmp_path / out.strip()).read_text().splitlines()
    assert lines[0].startswith("job,run,kind,name,") and lines[1].startswith(f"{number},{runs[1]},span,")
    assert ctl(*command, "-o", "-", url=daemon.url)[0].splitlines() == lines
    assert ctl(*command, "-o", "named", url=daemon.url)[0] == "named\n" and (tmp_path / "named").read_text().splitlines() == lines
    (tmp_path / "named").write_text("old")
    for more, code, text in ((("--run", "999999"), 2, f"Job {number} has no run 999999"), (("--format", "pdf"), 2, "format"),
                             (("-o", "no/folder"), 1, "no/folder")):
        assert text in ctl(*command, "-o", "named", *more, url=daemon.url, code=code)[1]
    assert "runs" in ctl("export", str(number), "--format", "csv", url=daemon.url, code=2)[1]  # the job has two runs
    ctl(*command, "-o", "named", code=4)
    assert sorted(os.listdir(tmp_path)) == sorted([out.strip(), "named"]) and (tmp_path / "named").read_text() == "old"
    for wrong in ((str(number),), ("--format", "csv"), ("x", "--format", "csv"), (str(number), "--format", "csv", "--all")):
        ctl("export", *wrong, url=daemon.url, code=2)


def cut_replies():
    """Starts a server that breaks each reply off in the middle. Returns the server's URL."""
    class Cut(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                             b'Content-Disposition: attachment; filename="../../etc/name"\r\n\r\n4\r\nhalf\r\n')
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cut)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def test_an_export_that_is_cut_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for more in ((), ("-o", "file")):
        assert "ended its reply early" in ctl("export", "1", "--format", "nsys", *more, url=cut_replies(), code=1)[1]
    assert os.listdir(tmp_path) == []


def test_report_prints_csv(daemon, profiled):
    raw = list(csv.reader(ctl("report", str(profiled["a"]), "--page", "raw", url=daemon.url)[0].splitlines()))
    assert len(raw) == 4 and len(raw[0]) > 800 and raw[2][raw[0].index("launch__grid_dim_x")] == "32,768"
    assert "details or raw" in ctl("report", str(profiled["a"]), "--page", "all", url=daemon.url, code=2)[1]
    out, _ = ctl("report", str(profiled["a"]), "--kernel", "1", "--csv", url=daemon.url)
    header, *lines = csv.reader(out.splitlines(), strict=True)
    assert {line[header.index("Kernel Name")] for line in lines} == {profiled["hostile"]} and len(lines) > 500


def test_a_report_without_counters_has_the_reason(daemon, finished):
    run = finished["results"]["runs"][0]
    out, _ = ctl("report", str(run["run"]), "--all", url=daemon.url)
    reason = next(entry["reason"] for entry in run["passes"] if entry["pass"] == "counters")
    assert f"— no sections: {reason}" in out and "grid" not in out
    verdict = json.loads(ctl("report", "--json", str(run["run"]), url=daemon.url)[0])["kernels"][0]["verdict"]
    assert verdict["bound"] is None and f"\n{verdict['message']}\n" in out
    _, err = ctl("report", str(run["run"]), "--section", "Occupancy", url=daemon.url, code=2)
    assert f"no section Occupancy: {reason}" in err
    out, _ = ctl("compare", str(run["run"]), str(run["run"]), url=daemon.url)
    assert "— neither run has a counters pass" in out
    assert re.search(r"^peak memory +1\.00×$", out, re.M) and re.search(r"^test accuracy +\+0\.00 pt$", out, re.M)
    assert "cold cache" not in out


def test_compare_says_why_runs_have_no_numbers_in_common(daemon, profiled, finished):
    out, _ = ctl("compare", str(finished["results"]["runs"][0]["run"]), str(profiled["a"]), url=daemon.url)
    assert "\n— no numbers: the runs are of different workloads\n" in out


def test_compare_prints_both_runs(daemon, profiled):
    a, b = str(profiled["a"]), str(profiled["b"])
    out, _ = ctl("compare", a, b, url=daemon.url)
    assert f"A run {a} · relu scalar on NVIDIA H200" in out and f"B run {b} · relu vector on NVIDIA H200" in out
    assert "the machine code differs" in out and f"{profiled['hostile']}\nonly in A" in out
    pair = next(pair for pair in json.loads(ctl("--json", "compare", a, b, url=daemon.url)[0])["kernels"] if pair["a"]
                and pair["b"])
    for changed in pair["findings"]:
        mark = {"new": "+", "resolved": "-", "unchanged": "=", "unknown": "?"}[changed["change"]]
        assert f"\n{mark} {(changed['a'] or changed['b'])['title']} (" in out
    assert {changed["change"] for changed in pair["findings"]} >= {"new", "resolved"}
    words = " ".join(out.split())
    for side in ("a", "b"):
        kernels = json.loads(ctl("report", "--json", str(profiled[side]), url=daemon.url)[0])["kernels"]
        [verdict] = [kernel["verdict"]["message"] for kernel in kernels if kernel["ordinal"] == pair[side]["ordinal"]]
        assert f"{side.upper()}: {verdict}" in words
    headings = [f"{section['name']} ({section['id']})" for section in pair["sections"]]
    complete, _ = ctl("compare", a, b, "--all", url=daemon.url)
    assert len(headings) > 3 and all(f"\n{heading}\n" in complete for heading in headings)
    assert [heading for heading in headings if f"\n{heading}\n" in out] == headings[:1] and "Not shown" not in complete
    assert out.endswith(f"\nNot shown: further tables of numbers (rooflinectl compare {a} {b} --all)\n")
    assert re.search(r"^Duration +22\.3\d µs +3[23]\.\d\d µs +\+47\.7 %$", out, re.M)
    chosen, _ = ctl("compare", a, "--kernel", "1", b, "--kernel-b", "0", url=daemon.url)
    assert chosen.count("machine code") == 1 and profiled["hostile"] in chosen and "only in" not in chosen
    same, _ = ctl("compare", a, a, url=daemon.url)
    assert same.count("the same machine code") == 2 and not re.search(r"^[+-] ", same, re.M)


def test_timelines_are_printed_and_compared(daemon):
    a, b = (ranged_run.insert(daemon.state, kernel_us)["run"] for kernel_us in (30, 20))
    out, _ = ctl("report", str(a), "--all", url=daemon.url)
    assert re.search(r"^idle_host_work +25\.00 µs +27\.78 % +1  25\.00 µs before gemm$", out, re.M), out
    assert re.search(r"^epoch +1 +90\.00 µs +100\.00 % +30\.00 µs +30\.00 µs  idle_host_work 25\.00 µs$", out, re.M), out
    assert re.search(r"^forward +1 +60\.00 µs +66\.67 % +30\.00 µs", out, re.M) and "(outside of ranges)" not in out, out
    assert "launch queue: median 0, maximum 1; empty for 96.67 % of the window (device idle: 27.00 µs)" in out
    assert re.search(r"^critical path\nkernels +30\.00 µs +33\.33 %\nlaunches +5\.00 µs +5\.56 %\n"
                     r"host_work +55\.00 µs +61\.11 %\n  gemm +30\.00 µs +33\.33 %$", out, re.M), out
    block, _ = ctl("report", str(a), "--section", "Timeline", url=daemon.url)
    assert block.startswith("\nTimeline\n") and out.endswith(block), block
    out, _ = ctl("compare", str(a), str(b), url=daemon.url)
    assert re.search(r"^window +90\.00 µs +80\.00 µs +-10\.00 µs$", out, re.M), out
    assert re.search(r"^gemm +60\.00 µs +40\.00 µs +-20\.00 µs  shorter$", out, re.M), out
    assert re.search(r"^idle_host_work before gemm +25\.00 µs +35\.00 µs +10\.00 µs  longer$", out, re.M), out
    assert max(map(len, out.splitlines())) <= 100


def test_the_short_report_of_a_trace_with_many_ranges_has_its_findings(tmp_path):
    """The trace of a training step with torch.profiler has more NVTX ranges than the report has lines."""
    imports = Daemon(tmp_path)
    try:
        out, _ = ctl("--json", "import", str(SOURCE / "tests/data/traces/training.json.gz"), url=imports.url)
        run = json.loads(ctl("--json", "list", url=imports.url)[0])["items"][0]["runs"][0]["id"]
        timeline = json.loads(ctl("--json", "report", str(run), url=imports.url)[0])["timeline"]
        out, _ = ctl("report", str(run), url=imports.url)
    finally:
        imports.stop()
    titles = [finding["title"] for finding in timeline["findings"]]
    assert len(titles) >= 4 and re.findall(r"^[!·] (.*?) \(Timeline", out, re.M) == titles, out
    assert len(out.splitlines()) <= 60 and out.index(titles[-1]) < out.index("NVTX range")


def test_independent_launches_are_printed(tmp_path):
    (tmp_path / "rooflined.db").write_bytes(lzma.decompress((SOURCE / "tests/data/h200.sqlite.xz").read_bytes()))
    h200 = Daemon(tmp_path)
    try:
        jobs = json.loads(ctl("--json", "list", url=h200.url)[0])["items"]
        first = {job["name"]: str(job["runs"][0]["id"]) for job in jobs}
        decode, _ = ctl("report", first["Layer, decode"], "--all", url=h200.url)
        timeline = requests.get(f"{h200.url}/runs/{first['Layer, decode']}/timeline/findings", timeout=20).json()
        prefill, _ = ctl("report", first["Layer, prefill of 2048 tokens"], "--all", url=h200.url)
        training, _ = ctl("report", first["MNIST, main job"], "--all", url=h200.url)
    finally:
        h200.stop()
    group, = timeline["independent_launches"]["groups"]
    sequence_us, concurrent_us = (group[name] / 1000 for name in ("time_ns", "concurrent_ns"))
    q_us, q_pct = group["launches"][0]["time_ns"] / 1000, 100 * group["launches"][0]["memory_ratio"]
    assert re.search(rf"^independent launches, times of all steps: {sequence_us:.1f} µs in sequence, "
                     rf"about {concurrent_us:.1f} µs concurrently\n"
                     rf"  q: {q_us:.2f} µs, 96 blocks of the 132 that fit, {q_pct:.2f} % of the DRAM read bandwidth\n"
                     r"  k: .*\n  v: ", decode, re.M), decode
    assert "Successive launches are independent" in decode and "\n  q; k; v\n" in decode
    idle = next(finding for finding in timeline["findings"] if finding["rule"] == "timeline_host_work")["intervals"][1]
    assert re.search(rf"^  {(idle['end_ns'] - idle['start_ns']) / 1000:#.4g} µs idle at {idle['start_ns'] / 1000:#.4g} µs, "
                     r"before cudnn_generated_\w+$", decode, re.M), decode
    assert "independent launches" not in prefill
    assert "\n— independent launches are unknown: launches of the workload mnist_cnn do not declare" in training


def test_errors_name_the_field(daemon):
    _, err = ctl("run", "--epochs", "0", url=daemon.url, code=2)
    assert "/epochs" in err
    _, err = ctl("run", "--device", "gpu9", url=daemon.url, code=2)
    assert "/device" in err
    _, err = ctl("submit", "-", url=daemon.url, stdin="{", code=2)
    assert "JSON" in err


@pytest.mark.parametrize("arguments", [["run", "--epochs", "x"], ["run", "--fresh-worker", "1"],
                                       ["run", "--colour", "red"], ["show"], ["show", "one"],
                                       ["cancel", "-1"],
                                       ["nothing"], [], ["list", "more"], ["submit"], ["submit", "/does/not/exist"],
                                       ["report"], ["report", "x"], ["report", "1", "2"], ["report", "1", "--kernel"],
                                       ["report", "1", "--kernel", "-1"],
                                       ["report", "1", "--section"], ["report", "1", "--section", "None"],
                                       ["report", "1", "--kernel", "99"],
                                       ["report", "1", "--csv", "--json"], ["report", "1", "--watch", "--json"],
                                       ["show", "1", "--watch", "--json"], ["report", "999999"], ["compare", "1"],
                                       ["compare", "1", "x"],
                                       ["compare", "1", "999999"], ["compare", "1", "1", "1"], ["compare", "1", "1", "--kernel"],
                                       ["compare", "1", "1", "--kernel", "-1"], ["compare", "1", "1", "--kernel-b", "99"]])
def test_invalid_command_lines_exit_with_2(daemon, arguments):
    _, err = ctl(*arguments, url=daemon.url, code=2)
    assert err or not arguments


@pytest.mark.parametrize("arguments, step", [
    (["show", "999999"], "`rooflinectl list` prints the jobs"), (["report", "999999"], "`rooflinectl list` prints the jobs"),
    (["regress", "unknown"], "`rooflinectl suites` the suites"), (["show"], "rooflinectl list"),
    (["compare", "1"], "rooflinectl list"), (["show", "one"], "not one"), (["show", "1", "2"], "one job, not 2 too"),
    (["report", "1", "2"], "rooflinectl report --help"), (["report", "1", "--colour"], "rooflinectl report --help"),
    (["export", "1"], "rooflinectl export --help"), (["backup", "--colour"], "rooflinectl backup --help"),
    (["lst"], "rooflinectl help")])
def test_an_error_says_what_to_do_next(daemon, arguments, step):
    _, err = ctl(*arguments, url=daemon.url, code=2)
    assert step in err


@pytest.mark.parametrize("command", ["run", "report", "compare", "list", "token"])
def test_help_of_a_command_needs_no_daemon(command):
    out, err = ctl(command, "--help")
    assert out.startswith(f"rooflinectl {command} ") and not err
    assert ctl("--help", command)[0] == ctl("help", command)[0] == ctl(command, "1", "--epochs", "--help")[0] == out
    assert out.split("\n", 2)[2].strip() in ctl("--help")[0]


def test_help_refuses_an_unknown_command():
    assert "nothing" in ctl("nothing", "--help", code=2)[1] and "nothing" in ctl("help", "nothing", code=2)[1]
    assert ctl("help")[0] == ctl("--help")[0] == ctl(code=2)[0]


# The kernels of a sequence are an array of objects, which only a file can hold. The option --kernels is a pattern of names.
WITHOUT_OPTION = {"SequenceJob": {"kernels"}}


def test_every_field_of_a_job_has_an_option():
    schemas = json.loads((SOURCE / "schema" / "openapi.json").read_text())
    kinds = schemas["paths"]["/jobs"]["post"]["requestBody"]["content"]["application/json"]["schema"]["oneOf"]
    options = set(re.findall(r"^  --([a-z-]+)", ctl("run", "--help")[0], re.MULTILINE))
    for kind in (reference["$ref"].rsplit("/", 1)[1] for reference in kinds):
        fields = set(schemas["components"]["schemas"][kind]["properties"]) - WITHOUT_OPTION.get(kind, set())
        assert {field for field in fields if field.removesuffix("_s").replace("_", "-") not in options} == set(), kind


def test_options_select_counters(daemon):
    kernel = ["--kernel", "relu", "--dtype", "fp16", "--shape", "n=1000", "--variant", "scalar", "--device", "cpu"]
    profile = ["--set", "detailed", "--sections", "Occupancy", "--metrics", "sm__inst_executed.sum"]
    out, _ = ctl("--json", "run", *kernel, *profile, url=daemon.url)
    request = json.loads(out)["job"]["request"]
    assert (request["set"], request["sections"], request["metrics"]) == ("detailed", ["Occupancy"], ["sm__inst_executed.sum"])
    assert request["passes"] == ["timing", "counters"]
    out, _ = ctl("--json", "run", *kernel, "--fresh-worker", "true", url=daemon.url)
    assert json.loads(out)["job"]["request"]["fresh_worker"] is True


def test_an_unknown_job_exits_with_2(daemon):
    for command in ("show", "watch", "cancel", "kernels"):
        ctl(command, "999999", url=daemon.url, code=2)


def test_label_changes_name_and_tags(daemon, finished):
    job = str(finished["job"]["id"])
    out, _ = ctl("label", job, "--name", "before the change", "--tags=a,b-1", url=daemon.url)
    assert out == f"job {job} is labelled\n"
    out, _ = ctl("list", url=daemon.url)
    assert "before the change" in out
    request = json.loads(ctl("--json", "label", job, "--name", "", url=daemon.url)[0])["request"]
    assert (request["name"], request["tags"]) == ("", ["a", "b-1"])
    assert json.loads(ctl("--json", "label", job, "--tags", "", url=daemon.url)[0])["request"]["tags"] == []
    for arguments in (["label"], ["label", job], ["label", job, "--epochs", "2"], ["label", "x", "--name", "y"]):
        ctl(*arguments, url=daemon.url, code=2)
    _, err = ctl("label", job, "--tags", "a b", url=daemon.url, code=2)
    assert "letters, digits" in err


def test_a_cancelled_run_exits_with_3(daemon):
    follower = start("run", *LONG, url=daemon.url)
    job = int(re.search(r"job (\d+)", follower.stderr.readline()).group(1))
    wait_until_running(daemon, job)
    out, _ = ctl("cancel", str(job), url=daemon.url)
    assert "cancelled" in out
    follower.communicate(timeout=120)
    assert follower.returncode == 3
    _, err = ctl("cancel", str(job), url=daemon.url, code=2)
    assert "finished" in err


def test_interrupt_leaves_the_job_running(daemon):
    follower = start("run", *LONG, url=daemon.url)
    job = int(re.search(r"job (\d+)", follower.stderr.readline()).group(1))
    wait_until_running(daemon, job)
    follower.send_signal(signal.SIGINT)
    _, err = follower.communicate(timeout=120)
    assert follower.returncode == 130
    assert f"rooflinectl watch {job}" in err and f"rooflinectl cancel {job}" in err
    assert json.loads(ctl("--json", "show", str(job), url=daemon.url)[0])["state"] == "running"
    ctl("cancel", str(job), url=daemon.url)


def test_an_unreachable_daemon_exits_with_4():
    for command in (["list"], ["run"], ["watch", "1"]):
        _, err = ctl(*command, code=4)
        assert "rooflined" in err


def test_a_failed_job_exits_with_1(tmp_path):
    """The job requires MNIST files that do not exist."""
    (tmp_path / "none").mkdir()
    failing = Daemon(tmp_path / "state", "--mnist-dir", str(tmp_path / "none"))
    try:
        out, _ = ctl("run", "--dataset", "files", "--precisions", "fp32", url=failing.url, code=1)
        assert re.search(r"job \d+ failed", out)
    finally:
        failing.stop()


def test_run_continues_after_a_restart_of_the_daemon(tmp_path):
    first = Daemon(tmp_path / "state")
    port = first.url.rsplit(":", 1)[1]
    follower = start("run", "--precisions", "fp32", "--epochs", "3", "--warmup-epochs", "0", "--max-images", "6400", "--dataset",
                     "synthetic", "--device", "cpu", "--json", url=first.url)
    second = None
    try:
        deadline = time.monotonic() + 180
        while '"running"' not in ctl("--json", "list", url=first.url)[0]:
            assert time.monotonic() < deadline and follower.poll() is None
            time.sleep(0.05)
        first.stop(signal.SIGKILL)
        second = Daemon(tmp_path / "state", "--port", port)
        out, _ = follower.communicate(timeout=200)
        assert follower.returncode == 0
        assert json.loads(out)["job"]["state"] == "completed"
    finally:
        first.stop(signal.SIGKILL)
        if second:
            second.stop()


def read_message(connection):
    """Reads an HTTP message with a Content-Length."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(65536)
    head, body = head.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"content-length: (\d+)", head, re.I).group(1))
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def relay_without_first_reply(listener, port, requests_seen):
    """Drops the daemon's first reply, as if the daemon were killed after its commit; relays the second."""
    for number in range(2):
        client, _ = listener.accept()
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            requests_seen.append(read_message(client))
            server.sendall(requests_seen[-1])
            reply = read_message(server)
            if number == 1:
                client.sendall(reply)


def test_a_submission_whose_reply_is_lost_is_sent_again_and_runs_once(daemon, tmp_path):
    body = tmp_path / "job.json"
    body.write_text(json.dumps({"kind": "train", "precisions": ["fp32"], "epochs": 1, "max_images": 640, "dataset": "synthetic",
                                "device": "cpu"}))
    before = {job["id"] for job in json.loads(ctl("--json", "list", url=daemon.url)[0])["items"]}
    seen = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        relay = threading.Thread(target=relay_without_first_reply, args=(listener, int(daemon.url.rsplit(":", 1)[1]), seen),
                                 daemon=True)
        relay.start()
        out, _ = ctl("submit", str(body), url=f"http://127.0.0.1:{listener.getsockname()[1]}")
        relay.join(60)
    after = {job["id"] for job in json.loads(ctl("--json", "list", url=daemon.url)[0])["items"]}
    assert after - before == {int(out)}
    assert seen[0] == seen[1] and b"Idempotency-Key: " in seen[0]


def test_backup_works_while_the_daemon_runs(daemon, finished, tmp_path):
    ctl("backup", "--state", str(daemon.state), str(tmp_path / "copy.db"))
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert copy.execute("SELECT count(*) FROM v_comparisons WHERE job = ?", (finished["job"]["id"],)).fetchone() == (1,)
    ctl("backup", "--state", str(daemon.state), str(tmp_path / "copy.db"), code=1)
    ctl("backup", code=2)


def test_a_token_gives_access_to_a_daemon_that_requires_one(tmp_path):
    state = tmp_path / "state"
    token = ctl("token", "--state", str(state), "laptop")[0].strip()
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", token)
    other = json.loads(ctl("--json", "token", "--state", str(state))[0])["token"]
    assert other != token
    with open(state / "rooflined.db", "rb") as database:
        assert token.encode() not in database.read()
    guarded = Daemon(state, "--require-token")
    try:
        _, err = ctl("list", url=guarded.url, code=2)
        assert "ROOFLINED_TOKEN" in err
        ctl("list", url=guarded.url, ROOFLINED_TOKEN="x" * 43, code=2)
        ctl("list", url=guarded.url, ROOFLINED_TOKEN=token)
        ctl("--token", other, "devices", url=guarded.url)
    finally:
        guarded.stop()


def test_a_systemd_credential_is_the_token_unless_another_is_given(tmp_path):
    token = ctl("token", "--state", str(tmp_path / "state"))[0].strip()
    credential = tmp_path / "rooflined-token"
    guarded = Daemon(tmp_path / "state", "--require-token")
    try:
        ctl("list", url=guarded.url, code=2, CREDENTIALS_DIRECTORY=str(tmp_path))  # there is no such file
        for text, code in (("\n", 2), (f"{token}\n", 0), (f"  {token}", 0), (token[:-1] + "\n", 2)):
            credential.write_text(text)
            ctl("list", url=guarded.url, code=code, CREDENTIALS_DIRECTORY=str(tmp_path))
        ctl("list", url=guarded.url, CREDENTIALS_DIRECTORY=str(tmp_path), ROOFLINED_TOKEN=token)
        ctl("--token", token, "list", url=guarded.url, CREDENTIALS_DIRECTORY=str(tmp_path))
        credential.write_text("x" * 300)
        _, err = ctl("list", url=guarded.url, code=1, CREDENTIALS_DIRECTORY=str(tmp_path))
        assert f"{credential}: a token has fewer than 256 characters" in err
    finally:
        guarded.stop()


def test_tokens_are_listed_and_revoked_while_the_daemon_runs(tmp_path):
    state = ("--state", str(tmp_path / "state"))
    lost = ctl("token", *state, "laptop")[0].strip()
    kept = ctl("token", *state)[0].strip()
    guarded = Daemon(tmp_path / "state", "--require-token")
    try:
        login = requests.post(f"{guarded.url}/login", json={"token": lost}, timeout=60)
        session = {"Cookie": login.headers["Set-Cookie"].split(";")[0]}
        assert requests.get(f"{guarded.url}/jobs", headers=session, timeout=60).status_code == 200
        listed = json.loads(ctl("--json", "token", "list", *state)[0])["items"]
        assert [item["name"] for item in listed] == ["laptop", "token"]
        assert re.fullmatch(r"laptop +\d{4}-\d\d-\d\dT[\d:]{8}Z\ntoken .*Z\n", ctl("token", "list", *state)[0])
        assert json.loads(ctl("--json", "token", "revoke", "laptop", *state)[0]) == {"revoked": 1}
        ctl("list", url=guarded.url, ROOFLINED_TOKEN=lost, code=2)
        assert requests.get(f"{guarded.url}/jobs", headers=session, timeout=60).status_code == 401
        ctl("list", url=guarded.url, ROOFLINED_TOKEN=kept)
        assert "no token laptop" in ctl("token", "revoke", "laptop", *state, code=2)[1]
        assert "needs the name" in ctl("token", "revoke", *state, code=2)[1]
        assert "an argument too many: laptop; rooflinectl token --help" in ctl("token", "list", "laptop", *state, code=2)[1]
        assert json.loads(ctl("--json", "token", "list", *state)[0])["items"][0]["name"] == "token"
    finally:
        guarded.stop()


def test_concurrent_followers_see_the_same_state(daemon):
    job = submit(daemon, *QUICK)
    states = []

    def follow():
        states.append(json.loads(ctl("--json", "watch", str(job), url=daemon.url)[0])["job"]["state"])

    followers = [threading.Thread(target=follow) for _ in range(8)]
    for follower in followers:
        follower.start()
    for follower in followers:
        follower.join()
    assert states == ["completed"] * 8


@pytest.mark.parametrize("command", [["list"], ["list", "--json"], ["--help"], ["--version"]])
def test_a_full_output_device_is_an_error(daemon, command):
    with open("/dev/full", "w") as full:
        ended = subprocess.run([BUILD / "bin/rooflinectl", *command], env={**os.environ, "ROOFLINED_URL": daemon.url},
                               stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, "rooflinectl: can't write to standard output: No space left on device\n")
