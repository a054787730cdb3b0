"""Inserts runs into a daemon's database as a GPU worker would have stored them. These tests run without a GPU."""

import csv
import json
import math
import pathlib
import sqlite3
import time

STATEMENTS = pathlib.Path(__file__).parents[2] / "schema/sql/statements"
REFERENCE = pathlib.Path(__file__).parents[1] / "reference"
CHOICES = {"PolicySpread": 1, "CachePreferNone": 0}  # names that ncu prints for values of enumerations
PROPERTIES = {"name": "NVIDIA H200", "uuid": "GPU-0", "compute_capability": "9.0"}


def number(text):
    """Converts a text of ncu's pages to a number; returns None if the text is not a number."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return CHOICES.get(text)
    return value if math.isfinite(value) else None


def ncu_raw(kernel="relu"):
    """Returns {metric: value} of ncu's raw page, in base units."""
    with open(REFERENCE / "ncu_2025.3_h200_raw.csv", newline="") as lines:
        return {row["metric"]: number(row[kernel]) for row in csv.DictReader(lines)}


def ncu_details(kernel="relu"):
    """Returns the rows of the details page of the same profile (section, label, row, unit, value), without the occupancy curves,
    which the daemon stores as series."""
    with open(REFERENCE / "ncu_2025.3_h200_details.csv", newline="") as lines:
        return [row for row in csv.DictReader(lines) if row["kernel"] == kernel
                and not row["label"].startswith("Impact of Varying")]


class Rows:
    """Inserts rows into the database of a daemon. Keyword arguments are names of columns."""

    def __init__(self, daemon):
        self.db = sqlite3.connect(daemon.state / "rooflined.db", timeout=30)

    def insert(self, table, **columns):
        names = ", ".join(f'"{name}"' for name in columns)
        values = ", ".join("?" * len(columns))
        return self.db.execute(f"INSERT INTO {table} ({names}) VALUES ({values})", list(columns.values())).lastrowid

    def job(self, **columns):
        """Inserts a completed job without runs and returns its id; columns replace the defaults."""
        now = time.time_ns()
        return self.insert("jobs", **{"kind": "kernel", "device": "gpu0", "state": "completed", "request": "{}", "deadline_s": 60,
                                      "created_ns": now, "started_ns": now, "finished_ns": now, **columns})

    def run(self, kernels, workload="relu", variant="scalar", floor=(16777216.0, 4194304.0), capability="9.0", profile=None,
            measurements=None, uuid=PROPERTIES["uuid"], trace=None, job=None, params=None, samples=None, log=None,
            commit="0" * 40, precision=None):
        """Inserts a completed run and returns its id.
        kernels: the kernels of the counters pass. Each is a dict with columns of the table kernels, and with "metrics" {name:
        value, reason or (value, reason)}, "series" [(name, x, value)], "instructions" [dict], "phases" [dict]
        floor: bytes and operations; precision: of the operations; capability, uuid: properties of the device
        commit: commit of the worker
        profile: the job's profile request; measurements: {name: value} of the timing pass; samples: {mode: [us]}
        trace: (kernels, activities) of an activity pass; activities are dicts with a "name" and the name of their "kind"
        job: id of the job that the run belongs to; None: a new job; log: the compiler's log"""
        now = time.time_ns()
        properties = {**PROPERTIES, "compute_capability": capability, "uuid": uuid}
        job = job or self.job(profile=profile and json.dumps(profile))
        ordinal = self.db.execute("SELECT count(*) FROM runs WHERE job_id = ?", [job]).fetchone()[0]
        run = self.insert("runs", job_id=job, ordinal=ordinal, workload=workload, variant=variant,
                          params=json.dumps(params or {}), nondefault_params=json.dumps(params or {}), engine="cuda",
                          floor_bytes=floor[0], floor_operations=floor[1], floor_precision=precision, log=log)
        self.db.execute("INSERT OR IGNORE INTO devices (properties) VALUES (?)", [json.dumps(properties)])
        device = self.db.execute("SELECT id FROM devices WHERE properties = ?", [json.dumps(properties)]).fetchone()[0]
        passes = {name: self.insert("passes", job_id=job, run_id=run, ordinal=ordinal, name=name, state="completed",
                                    started_ns=now, finished_ns=now, device_id=device, git_commit=commit,
                                    measures_ceilings=int(workload == "ceilings" and ordinal == 0))
                  for ordinal, name in ((0, "timing"), (1, "activity"), (2, "counters")) if trace or name != "activity"}
        for name, value in (measurements or {"time_cold_us_median": 22.5}).items():
            self.insert("measurements", pass_id=passes["timing"], name=name, value=value)
        for mode, times in (samples or {}).items():
            for ordinal, us in enumerate(times):
                self.insert("samples", pass_id=passes["timing"], mode=mode, ordinal=ordinal, device_us=us)
        for ordinal, kernel in enumerate(kernels):
            self._kernel(passes["counters"], ordinal, dict(kernel))
        if trace:
            self._trace(passes["activity"], *trace)
        self.summarize(run)
        return run

    def summarize(self, run):
        """Stores the summaries that the daemon stores when it commits a pass. Call it after a change of the run's rows."""
        for name in ("run_summary_store", "configuration_insert", "history_series_insert", "history_store"):
            self.db.execute((STATEMENTS / f"{name}.sql").read_text(), {"run": run})
        self.db.commit()

    def job_of(self, run):
        return self.db.execute("SELECT job_id FROM runs WHERE id = ?", [run]).fetchone()[0]

    def _trace(self, activity, kernels, rows):
        for ordinal, kernel in enumerate(kernels):
            self._kernel(activity, ordinal, dict(kernel))
        kinds = dict(self.db.execute("SELECT name, kind FROM activity_kinds"))
        names = list(dict.fromkeys(row["name"] for row in rows))
        for ordinal, name in enumerate(names):
            self.insert("names", pass_id=activity, ordinal=ordinal, name=name)
        shared = ("stream", "graph_node", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers",
                  "static_shared_bytes", "dynamic_shared_bytes", "bytes", "process", "thread", "device", "context",
                  "source_memory", "destination_memory", "call_stream", "event")
        entries = {}
        for ordinal, row in enumerate(rows):
            values = (names.index(row["name"]), *(row.get(column, 0) for column in shared))
            if values not in entries:
                entries[values] = len(entries)
                self.insert("activity_dictionary", pass_id=activity, entry=entries[values], name=values[0],
                            **dict(zip(shared, values[1:])))
            duration = row["end_ns"] - row["start_ns"]
            group = 16 * max(0, (duration.bit_length() - 9) // 2) + kinds[row["kind"]]
            self.insert("activity", pass_id=activity, activity_group=group, start_ns=row["start_ns"], ordinal=ordinal,
                        duration_ns=duration, entry=entries[values], correlation=row.get("correlation", 0),
                        step=row.get("step", 0))
        self.db.execute("INSERT INTO activity_groups SELECT pass_id, activity_group, activity_group % 16, count(*), "
                        "max(duration_ns), NULL FROM activity WHERE pass_id = ? GROUP BY activity_group", [activity])
        self.db.execute("UPDATE passes SET activity_rows = ?, activity_kept = 1, activity_stored = 1 WHERE id = ?",
                        [len(rows), activity])

    def _kernel(self, counters, ordinal, kernel):
        metrics, series = kernel.pop("metrics", {}), kernel.pop("series", [])
        instructions, phases = kernel.pop("instructions", []), kernel.pop("phases", [])
        kernel = {"launch": "relu", "name": "relu(const __half *, __half *, unsigned long)", "launches": 1, "grid_x": 32768,
                  "grid_y": 1, "grid_z": 1, "block_x": 128, "block_y": 1, "block_z": 1, **kernel}
        number = self.insert("kernels", pass_id=counters, ordinal=ordinal, **kernel)
        for name, value in metrics.items():
            value, reason = value if isinstance(value, tuple) else (None, value) if isinstance(value, str) else (value, None)
            self.insert("kernel_metrics", kernel_id=number, metric=name, value=value, reason=reason)
        for name, x, value in series:
            self.insert("series", kernel_id=number, name=name, x=x, value=value)
        for position, phase in enumerate(phases):
            self.insert("phases", kernel_id=number, position=position, **phase)
        for instruction in instructions:
            self.insert("instructions", kernel_id=number, **{"counts": "{}", **instruction})
