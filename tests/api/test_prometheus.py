"""Tests GET /metrics: the text format, the names in docs/prometheus.md, and that counters count."""

import re

import pytest
from daemon import SOURCE, endless, job

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
VALUE = r'"(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({NAME}={VALUE}(?:,{NAME}={VALUE})*)\}})? (-?(?:\d+(?:\.\d+)?(?:e[+-]\d+)?|\+Inf))")
LABEL = re.compile(rf"({NAME})=({VALUE})")
UNITS = ("_seconds", "_bytes", "_ratio")


def parse(text):
    """Returns {metric: (type, {(name of the sample, labels): value})}. Checks the grammar: HELP, TYPE, then all samples of the
    metric."""
    assert text.endswith("\n")
    families, name, kind = {}, None, None
    lines = iter(text[:-1].split("\n"))
    for line in lines:
        if line.startswith("#"):
            help_line = re.fullmatch(rf"# HELP ({NAME}) (\S.*\.)", line)
            assert help_line, line
            name = help_line[1]
            assert name not in families, f"{name} appears twice"
            type_line = re.fullmatch(rf"# TYPE {name} (counter|gauge|histogram)", next(lines))
            assert type_line, f"{name} has no TYPE after its HELP"
            kind = type_line[1]
            families[name] = kind, {}
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample and name, line
        tails = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        assert sample[1] in [name + tail for tail in tails], f"{line} stands below {name}"
        labels = tuple(sorted(LABEL.findall(sample[2] or "")))
        assert len({label for label, _ in labels}) == len(labels)
        key = sample[1], labels
        assert key not in families[name][1], f"{line} appears twice"
        families[name][1][key] = float(sample[3])
    return families


def check_histogram(name, samples):
    for labels in {tuple(pair for pair in labels if pair[0] != "le") for _, labels in samples}:
        buckets = [(float(dict(all_labels)["le"].strip('"')), count) for (sample, all_labels), count in samples.items()
                   if sample == f"{name}_bucket" and tuple(pair for pair in all_labels if pair[0] != "le") == labels]
        assert buckets == sorted(buckets) and buckets[-1][0] == float("inf"), f"{name}{labels}"
        counts = [count for _, count in buckets]
        assert counts == sorted(counts) and counts[-1] == samples[f"{name}_count", labels]
        assert (samples[f"{name}_sum", labels] > 0) <= (counts[-1] > 0)


class Metrics:
    """The samples of one reply to GET /metrics."""

    def __init__(self, daemon):
        answer = daemon.get("/metrics")
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        self.families = parse(answer.text)

    def __call__(self, name, **labels):
        """Returns a sample's value; 0 for a reply counter that does not exist yet."""
        key = f"rooflined_{name}", tuple(sorted((label, f'"{value}"') for label, value in labels.items()))
        for _, samples in self.families.values():
            if key in samples:
                return samples[key]
        assert name == "http_requests_total", f"there is no {key}"
        return 0


def test_families_have_the_right_names_and_values(daemon, finished):
    assert finished
    for name, (kind, samples) in Metrics(daemon).families.items():
        assert name.startswith("rooflined_") and samples, name
        assert name.endswith("_total") == (kind == "counter"), name
        assert all(value >= 0 for value in samples.values()), name
        if kind == "histogram":
            assert name.endswith(UNITS)
            check_histogram(name, samples)


def test_every_name_is_documented(daemon):
    page = (SOURCE / "docs" / "prometheus.md").read_text()
    rows = re.findall(r"^\| `(rooflined_\w+)` \| (\w+) \|([^|]*)\|", page, re.MULTILINE)
    documented = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    served = {name: (kind, {label for _, labels in samples for label, _ in labels} - {"le"})
              for name, (kind, samples) in Metrics(daemon).families.items()}
    assert documented == served and len(rows) == len(documented)


def test_a_job_increments_its_counters(daemon):
    before = Metrics(daemon)
    daemon.run(job())
    after = Metrics(daemon)

    def increase(name, **labels):
        return after(name, **labels) - before(name, **labels)

    assert increase("jobs_submitted_total", kind="train") == 1
    assert increase("jobs_finished_total", kind="train", state="completed") == 1
    assert increase("jobs_finished_total", kind="train", state="failed") == 0
    assert increase("jobs_finished_total", kind="kernel", state="completed") == 0
    for name in ("job_wait_seconds", "job_run_seconds"):
        assert increase(f"{name}_count", kind="train") == 1 and increase(f"{name}_sum", kind="train") > 0
        assert increase(f"{name}_bucket", kind="train", le="+Inf") == 1
    frames = increase("worker_frames_total", device="cpu")
    assert frames >= 3 and increase("worker_received_bytes_total", device="cpu") >= 12 * frames  # a header has 12 bytes
    assert increase("http_requests_total", route="submitJob", status="202") == 1
    assert increase("http_requests_total", route="getMetrics", status="200") >= 1
    assert increase("http_request_duration_seconds_count") >= 3


def test_queued_and_cancelled_jobs_are_counted(daemon):
    before = Metrics(daemon)
    running = daemon.submit(endless())
    daemon.wait(running, states=("running",))
    waiting = daemon.submit(endless())
    during = Metrics(daemon)
    assert (during("jobs", state="running"), during("jobs", state="queued")) == (1, 1)
    assert during("device_state", device="cpu", state="idle") == 0
    with daemon.get(f"/jobs/{running}/events", stream=True):
        assert Metrics(daemon)("event_listeners") == 1
        daemon.call("DELETE", f"/jobs/{waiting}")
        daemon.call("DELETE", f"/jobs/{running}")
    after = Metrics(daemon)
    assert (after("jobs", state="running"), after("jobs", state="queued")) == (0, 0)
    cancelled = dict(kind="train", state="cancelled")
    assert after("jobs_finished_total", **cancelled) - before("jobs_finished_total", **cancelled) == 2
    for name in ("job_wait_seconds_count", "job_run_seconds_count"):  # the queued one never ran
        assert after(name, kind="train") - before(name, kind="train") == 1


@pytest.mark.parametrize("path, labels", [
    ("/jobs/999999999", dict(route="getJob", status="404")),
    ("/jobs?limit=0", dict(route="listJobs", status="400")),
    ("/nowhere/at/all", dict(route="getFile", status="404")),
])
def test_replies_are_counted_by_route_and_status(daemon, path, labels):
    before = Metrics(daemon)("http_requests_total", **labels)
    daemon.get(path)
    assert Metrics(daemon)("http_requests_total", **labels) == before + 1


def test_login_sessions_are_counted(start):
    guarded = start("--require-token", token=True)
    assert Metrics(guarded)("sessions") == 0
    answer = guarded.call("POST", "/login", {"token": guarded.token})
    assert answer.status_code in (200, 204)
    assert Metrics(guarded)("sessions") == 1
    guarded.call("POST", "/logout", headers={"Cookie": answer.headers["Set-Cookie"].split(";")[0]})
    assert Metrics(guarded)("sessions") == 0
    assert guarded.stop() == 0


def test_sizes_and_limits_are_reported(daemon):
    metrics = Metrics(daemon)
    assert metrics("database_bytes", file="database") == (daemon.state / "rooflined.db").stat().st_size
    assert metrics("database_bytes", file="log") == (daemon.state / "rooflined.db-wal").stat().st_size
    assert metrics("queue_limit") == 1000
    assert metrics("retention_removed_rows_total", what="jobs") == 0
