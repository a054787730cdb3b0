"""Tests jobs of the kind source: authorization, refused requests, and how the daemon runs posted code. fake_gpu_worker.py
replaces the worker of a GPU. The job's `entry` selects what this worker replies."""

import base64
import json
import pathlib
import stat
import time

import pytest
from daemon import BUILD, SOURCE, job

CODE = """extern "C" __global__ void add(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
"""


def source(**changes):
    return {"kind": "source", "code": CODE, "entry": "add", "grid": [4], "block": [64],
            "arguments": [{"buffer": {"dtype": "fp32", "count": 256, "init": "range"}},
                          {"scalar": {"dtype": "int32", "value": 256}}], **changes}


@pytest.fixture(scope="module")
def source_daemon(start):
    """A daemon without a GPU that allows posted code."""
    return start("--allow-source", token=True)


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def is_running(pid):
    try:
        return b"fake_gpu_worker" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.fixture(scope="module")
def start_with_gpu(start, tmp_path_factory):
    """Starts a daemon with a CPU and a gpu0 whose worker is fake_gpu_worker.py. .notes() returns the requests that it received,
    .workers() the running processes of gpu0 by role."""
    folder = tmp_path_factory.mktemp("workers")
    program = folder / "rooflined-worker-cuda"
    script = pathlib.Path(__file__).parent / "fake_gpu_worker.py"
    program.write_text(f'#!/bin/sh\nexec /usr/bin/python3 {script} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (folder / "rooflined-worker-cpu").symlink_to(BUILD / "bin" / "rooflined-worker-cpu")

    def start_daemon(*settings):
        notes = tmp_path_factory.mktemp("notes") / "notes"
        starts = notes.with_name("notes.starts")
        env = {"FAKE_WORKER_NOTES": str(notes), "FAKE_WORKER_PATH": str(SOURCE / "tests" / "worker")}
        started = start("--allow-source", "--workers", str(folder), "--devices", "all", "--source-buffer-bytes", "4096",
                        *settings, token=True, env=env)
        started.notes = lambda: read_lines(notes)
        started.workers = lambda: {line["role"]: line["pid"] for line in read_lines(starts) if is_running(line["pid"])}
        return started

    return start_daemon


@pytest.fixture(scope="module")
def gpu_daemon(start_with_gpu):
    return start_with_gpu()


# --- authorization -------------------------------------------------------------------------------------------------------------


def test_posted_code_is_refused_by_default(start):
    closed = start(token=True)
    response = closed.call("POST", "/jobs", source())
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")
    assert "allow_source = true" in response.json()["detail"]
    assert closed.call("POST", "/jobs", {"kind": "source"}).status_code == 403  # before the request's fields are checked


@pytest.mark.parametrize("header", ["", "Bearer wrong", "Basic eDp5"])
def test_a_token_is_needed_also_on_loopback(source_daemon, header):
    assert source_daemon.call("GET", "/jobs", headers={"Authorization": header}).status_code == 200
    response = source_daemon.call("POST", "/jobs", source(), headers={"Authorization": header})
    assert (response.status_code, response.json()["code"]) == (401, "unauthorized")
    assert "rooflinectl token" in response.json()["detail"] and response.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_login_session_may_post_code(source_daemon):
    login = source_daemon.call("POST", "/login", {"token": source_daemon.token}, headers={"Authorization": ""})
    cookie = {"Authorization": "", "Cookie": login.headers["Set-Cookie"].split(";")[0]}
    source_daemon.session.cookies.clear()
    # The daemon authorizes the session: it refuses the job only because there is no GPU.
    assert source_daemon.call("POST", "/jobs", source(), headers=cookie).json()["pointer"] == "/device"


def test_posted_code_needs_a_gpu(source_daemon):
    response = source_daemon.call("POST", "/jobs", source())
    assert (response.status_code, response.json()["pointer"]) == (400, "/device")
    assert "GPU" in response.json()["detail"]
    assert source_daemon.call("POST", "/jobs", source(device="cpu")).json()["pointer"] == "/device"
    assert source_daemon.call("POST", "/jobs", source(device="gpu7")).json()["pointer"] == "/device"
    job_id = source_daemon.run(job())  # other kinds of jobs run
    assert source_daemon.get(f"/jobs/{job_id}/source").status_code == 404


# --- refused requests ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change, pointer", [
    ({"code": ""}, "/code"),
    ({"code": "x" * (256 * 1024 + 1)}, "/code"),
    ({"binary": base64.b64encode(b"\x7fELF").decode()}, "/binary"),
    ({"code": None, "binary": base64.b64encode(b"\x7fELF" + bytes(100)).decode()}, "/binary"),
    ({"entry": "add(1); int x"}, "/entry"),
    ({"block": [64, 64]}, "/block"),
    ({"arguments": [{"buffer": {"dtype": "fp32", "count": 0}}]}, "/arguments/0/buffer/count"),
    ({"arguments": [{"buffer": {"dtype": "fp32", "count": 1 << 40}}]}, "/arguments"),
    ({"arguments": [{"scalar": {"dtype": "int8", "value": 300}}]}, "/arguments/0/scalar/value"),
    ({"options": ["-lineinfo", "-I/etc"]}, "/options/1"),
    ({"options": ["--pre-include=/etc/passwd"]}, "/options/0"),
    ({"variants": [{"defines": ["A B=1"]}]}, "/variants/0/defines/0"),
    ({"expected": {"argument": 1, "values": "AAAA"}}, "/expected/argument"),
])
def test_invalid_source_jobs_are_refused(source_daemon, change, pointer):
    response = source_daemon.call("POST", "/jobs", source(**change))
    assert (response.status_code, response.json()["pointer"]) == (400, pointer)


def test_a_body_that_is_too_large_is_refused(source_daemon):
    values = base64.b64encode(bytes(1 << 20)).decode()
    body = source(arguments=[{"buffer": {"dtype": "uint8", "bytes": values}}])
    assert source_daemon.call("POST", "/jobs", body).status_code == 413


# --- execution -----------------------------------------------------------------------------------------------------------------


def test_variants_run_and_the_source_is_stored_once(gpu_daemon):
    body = source(variants=[{}, {"fast_math": True}], options=["-lineinfo"], model={"bytes": 2048}, samples=3)
    job_id = gpu_daemon.run(body)
    job_document = gpu_daemon.get(f"/jobs/{job_id}").json()
    request = job_document["request"]
    assert (request["kind"], request["entry"], request["grid"]) == ("source", "add", [4, 1, 1])
    assert (request["samples"], request["device"]) == (3, "")
    assert job_document["device"] == "gpu0" and [run["variant"] for run in job_document["runs"]] == ["default", "fast_math"]
    posted = gpu_daemon.get(f"/jobs/{job_id}/source")
    unchanged = gpu_daemon.get(f"/jobs/{job_id}/source", headers={"If-None-Match": posted.headers["ETag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    text = posted.json()
    assert text["code"] == CODE and text["arguments"] == body["arguments"] and text["options"] == ["-lineinfo"]
    runs = gpu_daemon.get(f"/jobs/{job_id}/results").json()["runs"]
    assert [run["params"]["index"] for run in runs] == [0, 1] and {run["params"]["source"] for run in runs} == {request["source"]}
    assert runs[0]["params"]["model_bytes"] == 2048 and runs[0]["params"]["model_operations"] is None
    received = [note for note in gpu_daemon.notes() if note["workload"] == "source"][-2:]
    assert [note["source"] for note in received] == [text, text]
    second_job = gpu_daemon.run(body)
    assert gpu_daemon.get(f"/jobs/{second_job}").json()["request"]["source"] == request["source"]


def test_compile_errors_name_the_line(gpu_daemon):
    job_id = gpu_daemon.submit(source(entry="broken"))
    job_document = gpu_daemon.wait(job_id)
    assert job_document["state"] == "failed" and job_document["worker_deaths"] == 0
    assert job_document["problem"]["domain"] == "input" and "code.cu(3): error" in job_document["problem"]["message"]
    assert job_document["runs"][0]["log"] == 'code.cu(3): error: identifier "x" is undefined\n\n1 error\n'
    assert gpu_daemon.wait(gpu_daemon.submit(source()))["state"] == "completed"


def test_a_fault_fails_only_its_own_job(gpu_daemon):
    failed = gpu_daemon.wait(gpu_daemon.submit(source(entry="faulty")))
    assert (failed["state"], failed["worker_deaths"], failed["problem"]["code"]) == ("failed", 0, 700)
    assert gpu_daemon.wait(gpu_daemon.submit(source()))["state"] == "completed"


@pytest.mark.parametrize("field, message", (
    ("images", "malformed EPOCH frame: images must be null or at most 1e+100"),
    ("dataset", 'malformed METADATA frame: dataset must be one of: mnist, custom, synthetic, ""'),
    ("dataset_sha256", "malformed METADATA frame: dataset_sha256 must be 64 hexadecimal digits, or empty"),
    ("code_sha256", "malformed KERNEL frame: code_sha256 must be 64 hexadecimal digits, or empty"),
    ("test_accuracy_ratio", "malformed EPOCH frame: test_accuracy_ratio must be between 0 and 1"),
    ("theoretical_occupancy_ratio", "malformed KERNEL frame: theoretical_occupancy_ratio must be between 0 and 1"),
    ("share_ratio", "malformed PHASE frame: share_ratio must be between 0 and 1"),
    ("pass", "pass must be one of: timing, activity, counters")))
def test_invalid_values_of_a_worker_are_not_stored(gpu_daemon, field, message):
    """The worker sends a frame with an invalid value. The daemon stores only numbers in bounds, so values that it computes from
    them are finite and valid in JSON."""
    job_id = gpu_daemon.submit(source(entry=field))
    failed = gpu_daemon.wait(job_id)
    assert (failed["state"], failed["worker_deaths"]) == ("failed", 2)
    assert message in failed["problem"]["message"]
    assert [run["epochs"] for run in gpu_daemon.get(f"/jobs/{job_id}/results").json()["runs"]] == [[]]
    assert all(kind != "progress" for _, kind, _ in gpu_daemon.events(job_id))
    gpu_daemon.run(source())  # a completed job resets the back-off of worker starts


def test_largest_valid_values_are_stored(gpu_daemon):
    job_id = gpu_daemon.run(source(entry="true"))
    (run,) = gpu_daemon.get(f"/jobs/{job_id}/results").json()["runs"]
    assert [epoch["test_accuracy_ratio"] for epoch in run["epochs"]] == [1]
    (kernel,) = gpu_daemon.get(f"/jobs/{job_id}/kernels").json()["items"]
    assert (kernel["code_sha256"], kernel["theoretical_occupancy_ratio"]) == ("c0ffee42" * 8, 1)
    assert [phase["share_ratio"] for phase in kernel["phases"]] == [1]
    assert [data["pass"] for _, kind, data in gpu_daemon.events(job_id) if kind == "progress"] == ["timing"]


def test_endless_code_ends_at_its_deadline(gpu_daemon):
    failed = gpu_daemon.wait(gpu_daemon.submit(source(entry="endless", deadline_s=1)))
    assert failed["state"] == "failed" and "deadline" in failed["problem"]["message"]
    assert gpu_daemon.wait(gpu_daemon.submit(source()))["state"] == "completed"


def test_a_worker_that_ran_posted_code_runs_no_other_job(gpu_daemon):
    gpu_daemon.run(source())
    gpu_daemon.run(source())
    gpu_daemon.run(job(device="gpu0", engine="cudnn"))
    gpu_daemon.run(job(device="gpu0", engine="cudnn"))
    gpu_daemon.run(source())
    first, second, third, fourth, fifth = [note["pid"] for note in gpu_daemon.notes()][-5:]
    assert first != second != third == fourth == fifth  # the fifth job is posted code, so its worker runs no later job
    gpu_daemon.run(job(device="gpu0", engine="cudnn"))
    assert gpu_daemon.notes()[-1]["pid"] != fifth


def test_a_worker_that_only_compiled_posted_code_runs_the_next_job(gpu_daemon):
    gpu_daemon.run(source())
    for body in (source(entry="broken"), source(entry="broken"), job(device="gpu0", engine="cudnn")):
        gpu_daemon.wait(gpu_daemon.submit(body))
    executed, *others = [note["pid"] for note in gpu_daemon.notes()][-4:]
    assert executed not in others and len(set(others)) == 1


def wait_for_workers(daemon, accepts):
    """Returns the device's processes as soon as accepts(processes)."""
    deadline = time.monotonic() + 180
    while not accepts(daemon.workers()):
        assert time.monotonic() < deadline, daemon.workers()
        time.sleep(0.02)
    return daemon.workers()


def wait_for_spares(daemon):
    """Returns the processes that wait for the next posted kernel, as soon as there is one of each role."""
    used = daemon.notes()[-1]["pid"]
    return wait_for_workers(daemon, lambda workers: len(workers) == 2 and used not in workers.values())


def test_a_worker_of_each_role_waits_for_the_next_posted_kernel(start_with_gpu):
    daemon = start_with_gpu("--spare-worker-s", "3600")
    assert daemon.workers() == {}
    daemon.run(source())
    spares = wait_for_spares(daemon)
    daemon.run(source())
    assert daemon.notes()[-1]["pid"] == spares["unprofiled"] and daemon.workers()["profiled"] == spares["profiled"]
    for entry in ("endless", "faulty"):  # a worker that was ended is replaced too
        daemon.wait(daemon.submit(source(entry=entry, deadline_s=1)))
        wait_for_spares(daemon)


def test_spare_workers_end_after_the_last_posted_kernel(start_with_gpu):
    daemon = start_with_gpu("--spare-worker-s", "4")
    daemon.run(source())
    wait_for_spares(daemon)
    wait_for_workers(daemon, lambda workers: workers == {})
    daemon.run(source())
    wait_for_spares(daemon)
    daemon.run(job(device="gpu0", engine="cudnn"))  # its worker is no longer a spare when the other one ends
    used = daemon.notes()[-1]["pid"]
    assert wait_for_workers(daemon, lambda workers: "profiled" not in workers) == {"unprofiled": used}


def test_spare_workers_give_back_device_memory(start_with_gpu):
    daemon = start_with_gpu()
    daemon.run(source())
    wait_for_spares(daemon)
    job_id = daemon.run(source(entry="large"))  # the worker runs out of memory as long as another worker is running
    runs = [note["pid"] for note in daemon.notes()][-2:]
    assert runs[0] == runs[1] and daemon.get(f"/jobs/{job_id}").json()["worker_deaths"] == 0
    wait_for_spares(daemon)
    failed = daemon.wait(daemon.submit(source(entry="too_large")))
    assert failed["state"] == "failed" and "out of memory" in failed["problem"]["message"]
    assert [note["source"]["entry"] for note in daemon.notes()][-2:] == ["too_large", "too_large"]


def test_only_the_pass_that_runs_out_of_memory_is_repeated(start_with_gpu):
    daemon = start_with_gpu()
    daemon.run(source())
    wait_for_spares(daemon)
    count = len(daemon.notes())
    daemon.run(source(entry="large", passes=["timing", "activity", "counters"]))
    timing, again, activity, counters = [note["pid"] for note in daemon.notes()[count:]]
    assert timing == again and activity == counters != timing


def test_the_timing_worker_gives_back_device_memory_before_counters(start_with_gpu):
    """The timing worker has been killed, and its process may hold device memory until it is reaped."""
    daemon = start_with_gpu()
    daemon.run(source())
    wait_for_spares(daemon)
    count = len(daemon.notes())
    job_id = daemon.run(source(entry="large_in_counters", passes=["timing", "counters"]))
    timing, counters, again = [note["pid"] for note in daemon.notes()[count:]]
    assert counters == again != timing and daemon.get(f"/jobs/{job_id}").json()["worker_deaths"] == 0


def test_total_buffer_bytes_are_bounded(gpu_daemon):
    buffers = [{"buffer": {"dtype": "fp64", "count": 256}}, {"buffer": {"dtype": "fp64", "count": 256}}]
    assert gpu_daemon.wait(gpu_daemon.submit(source(arguments=buffers)))["state"] == "completed"
    response = gpu_daemon.call("POST", "/jobs", source(arguments=buffers + [{"buffer": {"dtype": "int8", "count": 1}}]))
    assert (response.status_code, response.json()["pointer"]) == (400, "/arguments")
    assert "source_buffer_bytes" in response.json()["detail"]


def test_an_engine_that_the_worker_reports_as_unsupported_is_refused(gpu_daemon):
    body = {"kind": "train", "engine": "persistent", "precisions": ["fp32"]}
    for device in ({"device": "gpu0"}, {}):
        response = gpu_daemon.call("POST", "/jobs", {**body, **device})
        assert (response.status_code, response.json()["pointer"]) == (400, "/engine"), response.json()
        assert response.json()["detail"].startswith("gpu0 cannot run engine persistent")
