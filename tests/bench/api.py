#!/usr/bin/env python3
"""Measures a daemon that has a large database (made by grow_database) while a job streams results to it: with wrk the speed of
each route, and with prober the latency of /healthz and POST /jobs during attacks by other clients."""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import typing

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CONNECTIONS, THREADS = 16, 2  # of wrk
STREAM_ROWS, PASS_ROWS = 100_000, 2_000_000  # activity rows of a job that streams results, and of the attack long_pass
TIMELINE_WINDOW_NS = 45_000
HEALTH_TARGET_MS, POST_TARGET_MS = 50, 200


def log(text):
    print(text, file=sys.stderr, flush=True)


# --- the daemon -----------------------------------------------------------------------------------------------------------


class Daemon:
    """A daemon of the build, with a copy of the large database and a worker that streams results. grown: the object that
    grow_database printed."""

    def __init__(self, build, state, folder):
        self.folder = pathlib.Path(folder)
        self.grown = json.loads((state / "grown.json").read_text())
        self.state = self.folder / "state"
        shutil.copytree(state, self.state, ignore=shutil.ignore_patterns("grown.json", "lock"))
        self.workers = self.folder / "workers"
        self.workers.mkdir()
        for kind in ("cpu", "cuda"):
            (self.workers / f"rooflined-worker-{kind}").symlink_to(build / "tests" / "stream_worker")
        self.program = build / "bin" / "rooflined"
        self.start()

    def start(self):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ROOFLINED_")}
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(
            [self.program, "--port", "0", "--state", self.state, "--workers", self.workers, "--queue-limit", "1000000",
             "--refresh-ceilings=false", "--log-level", "warning"],
            stdout=subprocess.PIPE, stderr=self.log, env=environment)
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        line = self.process.stdout.readline().decode() if ready else ""
        if not line.startswith("listening on "):
            sys.exit(f"the daemon did not start:\n{(self.folder / 'log').read_text()}")
        self.port = int(line.rsplit(":", 1)[1])
        self.post_job("gpu0")  # runs until the end, so that the prober's jobs stay queued
        self.streaming = threading.Event()
        self.streaming.set()
        self.stopping = threading.Event()
        self.streamer = threading.Thread(target=self._stream, daemon=True)
        self.streamer.start()

    def request(self, method, path, body=None, timeout=30):
        """Returns (status, body)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            response = connection.getresponse()
            return response.status, response.read()

    def get(self, path, **request_options):
        status, body = self.request("GET", path, **request_options)
        if status != 200:
            raise RuntimeError(f"GET {path}: {status} {body[:300]!r}")
        return json.loads(body)

    def post_job(self, device, rows=1):
        passes = ["timing", "activity"] if device == "cpu" else ["timing"]
        status, body = self.request("POST", "/jobs", json.dumps(
            {"kind": "train", "device": device, "precisions": ["fp32"], "passes": passes, "seed": rows}))
        if status != 202:
            raise RuntimeError(f"POST /jobs: {status} {body[:300]!r}")
        return json.loads(body)["id"]

    def wait_for(self, job, seconds=300):
        """Waits until the job has ended, and returns it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException, RuntimeError):
                document = self.get(f"/jobs/{job}", timeout=5)
                if document["state"] in ("completed", "failed", "cancelled"):
                    return document
            time.sleep(0.1)
        raise RuntimeError(f"job {job} did not end within {seconds} s")

    def _stream(self):
        """Runs jobs that stream results, one after another."""
        while not self.stopping.is_set():
            try:
                if self.streaming.wait(0.1):
                    self.wait_for(self.post_job("cpu", STREAM_ROWS))
            except (OSError, http.client.HTTPException, RuntimeError):
                time.sleep(0.5)  # the daemon refuses the job during the attack

    def pause_stream(self):
        """Pauses streaming and waits until no job streams, so that the next job starts at once."""
        self.streaming.clear()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and any(
                self.get(f"/jobs?device=cpu&state={state}")["items"] for state in ("running", "queued")):
            time.sleep(0.2)

    def memory_mb(self):
        """Returns the peak resident memory (VmHWM)."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1000
        return float("nan")

    def open_sockets(self):
        links = pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir()
        count = 0
        for link in links:
            with contextlib.suppress(OSError):
                count += os.readlink(link).startswith("socket:")
        return count

    def stop(self):
        self.stopping.set()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            log("the daemon did not stop within 5 s")
            self.process.kill()
            self.process.wait()
        self.streamer.join(60)
        self.process.stdout.close()
        self.log.close()


# --- speed ----------------------------------------------------------------------------------------------------------------


class Route(typing.NamedTuple):
    """A route to measure: first with single_path only, then with random paths of `paths`. requests_per_s and p99_ms are targets;
    0 means that there is none."""
    name: str
    requests_per_s: float
    p99_ms: float
    single_path: str
    paths: list


def page_paths(daemon, filters):
    """Returns the paths of the first pages of GET /jobs, at most 31."""
    paths, cursor = [f"/jobs?{filters}"], None
    for _ in range(30):
        page = daemon.get("/jobs?limit=500" + (f"&{filters}" if filters else "") + (f"&cursor={cursor}" if cursor else ""))
        cursor = page.get("next_cursor")
        if cursor is None:
            break
        paths.append(f"/jobs?{filters}{'&' if filters else ''}cursor={cursor}")
    return paths


def query_ids(daemon, sql, *values):
    with contextlib.closing(sqlite3.connect(f"file:{daemon.state}/rooflined.db?mode=ro", uri=True)) as database:
        return [row[0] for row in database.execute(sql, values)]


def make_routes(daemon, names):
    grown = daemon.grown
    ids = range(1, grown["jobs"] + 1)
    is_selected = lambda name: not names or any(name.startswith(prefix) for prefix in names)  # noqa: E731
    filters = {"no filter": "", "kind": "kind=kernel", "state": "state=failed", "device": "device=gpu1",
               "rare device": "device=gpu3", "kind, state, device": "kind=train&state=completed&device=gpu1"}
    routes = [Route("healthz", 0, 0, "/healthz", [])]
    if is_selected("jobs"):
        for name, text in filters.items():
            paths = page_paths(daemon, text)
            routes.append(Route(f"jobs, {name}", 2000, 30, paths[0], paths))
            if name == "no filter":
                routes.append(Route("jobs, deep page", 2000, 30, paths[-1], []))
    for name, key, suffix in (("job", "train_job", ""), ("results", "train_job", "/results"),
                            ("comparison", "train_job", "/comparison"), ("kernels", "train_job", "/kernels")):
        full = set(range(grown["full_job"], grown["jobs"] + 1, 100)) if name == "kernels" else set()
        paths = [f"/jobs/{id}{suffix}" for id in ids if id not in full]
        routes.append(Route(name, 8000, 20, f"/jobs/{grown[key]}{suffix}", paths))
    if is_selected("history"):
        equal_runs = query_ids(daemon, "SELECT r.id FROM runs a JOIN jobs b ON b.id = a.job_id JOIN runs r ON"
                               " r.variant = a.variant AND r.nondefault_params = a.nondefault_params JOIN jobs j ON"
                               " j.id = r.job_id AND j.device = b.device AND j.state = 'completed' WHERE a.id = ?"
                               " ORDER BY r.id LIMIT 2000", grown["train_run"])
        path = "/history?metric=epoch_ms_median&limit=1000&like="
        routes.append(Route("history, 1,000 points", 500, 50, f"{path}{equal_runs[0]}", [path + str(run) for run in equal_runs]))
    if is_selected("report"):
        runs = query_ids(daemon, "SELECT p.run_id FROM passes p JOIN jobs j ON j.id = p.job_id WHERE p.ordinal = 2 AND p.state ="
                         " 'completed' AND j.kind = 'kernel' AND j.request NOT LIKE '%\"set\":\"full\"%' LIMIT 3000")
        routes.append(Route("report", 300, 0, f"/runs/{grown['kernel_run']}/report", [f"/runs/{run}/report" for run in runs]))
        routes.append(Route("report, set full", 0, 0, f"/runs/{grown['full_run']}/report", []))
    path, last = f"/jobs/{grown['trace_job']}/timeline", grown["trace_end_ns"] - TIMELINE_WINDOW_NS
    starts = [random.randrange(last) for _ in range(10000)]
    routes.append(Route("timeline window", 500, 0, f"{path}?from={last // 2}&to={last // 2 + TIMELINE_WINDOW_NS}",
                        [f"{path}?from={start}&to={start + TIMELINE_WINDOW_NS}" for start in starts]))
    return [route for route in routes if is_selected(route.name)]


def run_wrk(daemon, paths, seconds):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(paths) + "\n")
        file.flush()
        result = subprocess.run(["wrk", f"-t{THREADS}", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "30s", "-s",
                                 SOURCE / "tests/bench/paths.lua", f"http://127.0.0.1:{daemon.port}", "--", file.name],
                                capture_output=True, text=True, check=True)
    return json.loads(result.stdout.splitlines()[-1])


def median_body_bytes(daemon, paths):
    """Returns the median size of the bodies of up to 20 of the paths."""
    sizes = []
    for path in random.sample(paths, min(len(paths), 20)):
        status, body = daemon.request("GET", path)
        if status != 200:
            raise RuntimeError(f"GET {path}: {status}")
        sizes.append(len(body))
    return int(statistics.median(sizes))


def measure_route(daemon, route, path_count, paths, seconds):
    size = median_body_bytes(daemon, paths)
    run_wrk(daemon, paths, 1)  # fills caches
    result = run_wrk(daemon, paths, seconds)
    rate = result["requests"] / result["seconds"]
    bad = result["refused"] + result["lost"] + result["timed_out"]
    met = rate >= max(route.requests_per_s, 1) and (route.p99_ms == 0 or result["p99_ms"] < route.p99_ms) and bad == 0
    target = ", ".join(([f"≥ {route.requests_per_s:,.0f}"] if route.requests_per_s else []) +
                      ([f"p99 < {route.p99_ms:.0f} ms"] if route.p99_ms else []))
    verdict = ("" if not target else "ok" if met else "missed") + (f" ({bad} failed)" if bad else "")
    times = [f"{result[key]:,.1f}" if result["requests"] else f"> {seconds * 1000:,}" for key in ("p50_ms", "p99_ms")]
    return f"| {route.name} | {path_count} | {target or '–'} | {rate:,.1f} | {times[0]} | {times[1]} | {size:,} | {verdict} |"


def measure_speed(daemon, names, seconds):
    print("| route | paths | target | requests/s | p50, ms | p99, ms | body, bytes | |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | --- |")
    for route in make_routes(daemon, names):
        for path_count, paths in (("one", [route.single_path]), (f"{len(route.paths):,}", route.paths)):
            if paths and not (path_count == "1" and paths == [route.single_path]):
                print(measure_route(daemon, route, path_count, paths, seconds), flush=True)
                log(f"{route.name}, {path_count}: peak resident memory {daemon.memory_mb():.0f} MB")
    print()


# --- attacks --------------------------------------------------------------------------------------------------------------
# Each attack lasts at least `seconds` and returns a note for the last column of the table.


def send_request(daemon, path):
    client = socket.create_connection(("127.0.0.1", daemon.port), timeout=30)
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return client


def no_attack(daemon, seconds):
    time.sleep(seconds)
    return ""


def abandoned_traces(daemon, seconds):
    """Sends 100 requests for the longest trace, and closes each connection after 50 ms."""
    begin = time.monotonic()
    path = f"/jobs/{daemon.grown['trace_job']}/export?format=csv"
    for _ in range(100):
        with contextlib.suppress(OSError):
            client = send_request(daemon, path)
            time.sleep(0.05)
            client.close()
    time.sleep(max(0, begin + seconds - time.monotonic()))
    return ""


def long_histories(daemon, seconds):
    """Runs four clients that request /history?limit=10000 again and again."""
    end = time.monotonic() + seconds
    statuses = []

    def loop():
        while time.monotonic() < end:
            with contextlib.suppress(OSError, http.client.HTTPException):
                statuses.append(daemon.request("GET", "/history?metric=epoch_ms_median&limit=10000")[0])

    clients = [threading.Thread(target=loop) for _ in range(4)]
    for client in clients:
        client.start()
    time.sleep(seconds)
    for client in clients:
        client.join()
    return f"{statuses.count(200)} long answers, {len(statuses) - statuses.count(200)} refused"


def locked_database(daemon, seconds):
    """Holds the write lock of the database, as another program could, while six clients post jobs."""
    database = sqlite3.connect(daemon.state / "rooflined.db", isolation_level=None, timeout=30)
    database.execute("BEGIN IMMEDIATE")
    times = []

    def post():
        begin = time.monotonic()
        with contextlib.suppress(OSError, http.client.HTTPException, RuntimeError):
            daemon.post_job("gpu0")
        times.append(time.monotonic() - begin)

    clients = [threading.Thread(target=post) for _ in range(6)]
    for client in clients:
        client.start()
    time.sleep(seconds)
    database.execute("ROLLBACK")
    database.close()
    for client in clients:
        client.join()
    return f"the slowest of the six took {max(times):.1f} s"


def partial_requests(daemon, seconds):
    """Opens 300 connections, and closes each after a part of a request."""
    begin, before = time.monotonic(), daemon.open_sockets()
    for _ in range(300):
        with contextlib.suppress(OSError):
            client = socket.create_connection(("127.0.0.1", daemon.port), timeout=5)
            client.sendall(b"GET /jobs HTTP/1.1\r\nHost: 127")
            client.close()
    time.sleep(1)
    left = max(0, daemon.open_sockets() - before)
    time.sleep(max(0, begin + seconds - time.monotonic()))
    return f"{left} still open after 1 s"


def slow_senders(daemon, seconds):
    """Keeps 1,200 connections open, 100 of which send a request slowly: a byte every 0.5 s."""
    end, clients = time.monotonic() + seconds, []
    for _ in range(1200):
        with contextlib.suppress(OSError):
            clients.append(socket.create_connection(("127.0.0.1", daemon.port), timeout=1))
    while time.monotonic() < end:
        for client in clients[:100]:
            with contextlib.suppress(OSError):
                client.sendall(b"G")
        time.sleep(0.5)
    for client in clients:
        client.close()
    return f"{len(clients)} connected"


def long_pass(daemon, seconds):
    """Runs a pass of 2,000,000 rows, which the worker sends as fast as the daemon reads them."""
    daemon.pause_stream()
    begin = time.monotonic()
    job = daemon.wait_for(daemon.post_job("cpu", PASS_ROWS), 200)
    elapsed = time.monotonic() - begin  # not the job's finished_at, which is the time at which storing the pass began
    daemon.streaming.set()
    time.sleep(max(0, begin + seconds - time.monotonic()))
    return f"{job['state']} after {elapsed:.1f} s, {PASS_ROWS / elapsed:,.0f} rows/s"


# Name for --attacks: (name in the table, function).
ATTACKS = {"none": ("no attack", no_attack), "traces": ("100 abandoned requests for a trace of a million rows", abandoned_traces),
           "histories": ("four clients looping /history?limit=10000", long_histories),
           "lock": ("six POSTs while another program holds the write lock", locked_database),
           "partial": ("300 clients that close after a partial request", partial_requests),
           "slow": ("1,200 open connections, 100 slow senders", slow_senders),
           "pass": ("a pass of 2,000,000 rows arrives", long_pass)}


def format_latency(result, target_ms):
    unanswered = f", {result['failed']} without answer" if result["failed"] else ""
    refused = f", {result['unavailable']} × 503" if result["unavailable"] else ""
    met = result["p99_ms"] <= target_ms and not result["failed"]
    return f"{result['p99_ms']:,.0f} (max {result['max_ms']:,.0f}{refused}{unanswered}) {'ok' if met else 'missed'}"


def measure_attack(daemon, build, name, attack, seconds):
    prober = subprocess.Popen([build / "tests" / "prober", str(daemon.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True)
    time.sleep(0.5)
    try:
        note = attack(daemon, seconds)
    finally:
        output, _ = prober.communicate()
    results = json.loads(output)
    cells = [format_latency(result, HEALTH_TARGET_MS if result["name"].startswith("healthz") else POST_TARGET_MS)
             for result in results]
    print(f"| {name} | {' | '.join(cells)} | {note} |", flush=True)


def measure_attacks(daemon, build, names, seconds):
    """Starts a new daemon for each attack. Returns the largest peak of these daemons' memory, in MB."""
    peak_mb = 0
    print(f"| p99, ms; targets {HEALTH_TARGET_MS} and {POST_TARGET_MS} | /healthz, kept connection | /healthz, new connections |"
          " POST /jobs, kept connection | POST /jobs, new connections | |")
    print("| --- | --- | --- | --- | --- | --- |")
    for key, (name, attack) in ATTACKS.items():
        if not names or key in names:
            log(name)
            daemon.stop()
            daemon.start()
            measure_attack(daemon, build, name, attack, seconds)
            peak_mb = max(peak_mb, daemon.memory_mb())
    print()
    return peak_mb


# --- exports --------------------------------------------------------------------------------------------------------------


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_export(daemon, name):
    """Returns (bytes, seconds until the first byte, seconds, CPU seconds of the daemon) of a download of the longest trace."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=300)
    with contextlib.closing(connection):
        size, cpu, begin = 0, cpu_seconds(daemon.process), time.monotonic()
        connection.request("GET", f"/jobs/{daemon.grown['trace_job']}/export?format={name}")
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(f"export {name}: {response.status} {response.read()[:300]!r}")
        part, first = response.read(1), time.monotonic() - begin
        while part:
            size += len(part)
            part = response.read(1 << 20)
        return size, first, time.monotonic() - begin, cpu_seconds(daemon.process) - cpu


def measure_exports(daemon, names):
    """Measures each export format once. No job streams results meanwhile."""
    daemon.pause_stream()
    rows = daemon.grown["trace_rows"]
    print(f"| export of {rows:,} rows (target 3 s on 2 idle cores; load {os.getloadavg()[0]:.1f}) | MB | first byte, s | s | "
          "rows/s | CPU, s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in names:
        size, first, seconds, cpu = measure_export(daemon, name)
        print(f"| {name} | {size / 1e6:.1f} | {first:.2f} | {seconds:.2f} | {rows / seconds:,.0f} | {cpu:.2f} |")
    print(f"\nPeak resident memory of the daemon during the exports: {daemon.memory_mb():.0f} MB\n")
    daemon.streaming.set()


def measure_findings(daemon):
    """Measures the findings of the longest trace."""
    before, begin = cpu_seconds(daemon.process), time.monotonic()
    daemon.get(f"/runs/{daemon.grown['trace_run']}/timeline/findings")
    seconds, cpu = time.monotonic() - begin, cpu_seconds(daemon.process) - before
    print(f"Findings of {daemon.grown['trace_rows']:,} rows (target 1 s): {seconds:.2f} s, CPU {cpu:.2f} s\n")


# --- all ------------------------------------------------------------------------------------------------------------------


def make_database(build, state, options):
    if not (state / "grown.json").exists():
        log(f"growing a database in {state}")
        grown = subprocess.run([build / "tests" / "grow_database", "-j", str(options.jobs), "-r", str(options.rows),
                                "-t", str(options.rows // 5), state],
                               stdout=subprocess.PIPE, check=True)
        (state / "grown.json").write_bytes(grown.stdout)


def print_conditions(grown):
    commit = subprocess.run(["git", "-C", SOURCE, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
                            capture_output=True, text=True).stdout.strip()
    print(f"Commit {commit}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the start; {grown['jobs']:,} jobs, "
          f"{grown['activity_rows']:,} activity rows; {CONNECTIONS} connections, {THREADS} threads of wrk; a job streams results "
          "meanwhile.\n")
    print("| database | |")
    print("| --- | ---: |")
    print(f"| ingest of all traces, rows/s (target 300,000) | {grown['rows_per_s']:,.0f} |")
    print(f"| ingest of the trace of {grown['trace_rows']:,} rows, rows/s | {grown['trace_rows_per_s']:,.0f} |")
    if grown["bytes_per_row"] is not None:
        print(f"| bytes on disk of an activity row with names and indices (target 40) | {grown['bytes_per_row']:.1f} |")
    print(f"| growth of the file by a row of the trace, bytes | {grown['trace_bytes_per_row']:.1f} |")
    print(f"| time to make it, s | {grown['seconds']:.0f} |\n")


def parse_options():
    parser = argparse.ArgumentParser(prog="tests/bench/api.sh", description=__doc__)
    builds = [SOURCE / "build" / name for name in ("release", "dev")]
    default_build = next((folder for folder in builds if (folder / "tests" / "grow_database").exists()), builds[0])
    parser.add_argument("--build", type=pathlib.Path, default=default_build, help="the build (default %(default)s)")
    parser.add_argument("--state", type=pathlib.Path, help="database to use and keep; it is made if it is missing. The daemon "
                        "runs on a copy (default: a new one in memory, which is deleted)")
    parser.add_argument("--jobs", type=int, default=10_000, help="jobs of a new database (default %(default)s)")
    parser.add_argument("--rows", type=int, default=5_000_000,
                        help="its activity rows, of which a fifth are one trace (default %(default)s)")
    parser.add_argument("--routes", default="", help="beginnings of the names of routes, or \"none\" to measure no routes "
                        "(default: all)")
    parser.add_argument("--attacks", default="", help=f"names of attacks ({','.join(ATTACKS)}), or \"no\" to run no attacks "
                        "(default: all)")
    parser.add_argument("--exports", default="csv,chrome,perfetto,nsys", help="formats, or \"no\" to measure no exports "
                        "(default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=5, help="duration of a measurement of a route (default %(default)s)")
    parser.add_argument("--attack-seconds", type=int, default=12, help="minimum duration of each attack (default %(default)s)")
    return parser.parse_args()


def main():
    options = parse_options()
    build = options.build.resolve()
    base = "/dev/shm" if shutil.disk_usage("/dev/shm").free > 4 << 30 else None
    with tempfile.TemporaryDirectory(prefix="rooflined-bench-", dir=base) as folder:
        state = options.state or pathlib.Path(folder, "grown")
        make_database(build, state, options)
        daemon = Daemon(build, state, folder)
        try:
            print_conditions(daemon.grown)
            if options.exports != "no":
                measure_exports(daemon, options.exports.split(","))
            measure_findings(daemon)
            if options.routes != "none":
                measure_speed(daemon, [name for name in options.routes.split(",") if name], options.seconds)
                print(f"Peak resident memory of the daemon after the routes (target 200 MB): {daemon.memory_mb():.0f} MB\n")
            if options.attacks != "no":
                peak_mb = measure_attacks(daemon, build, [name for name in options.attacks.split(",") if name],
                                          options.attack_seconds)
                print(f"Peak resident memory of the daemon during the attacks (target 200 MB): {peak_mb:.0f} MB")
        finally:
            daemon.stop()


if __name__ == "__main__":
    main()
