"""Inserts kernel jobs with equal parameters at several commits, and one with other parameters, into the database of a running
daemon. history_runs.py STATE_FOLDER prints their ids as JSON."""

import json
import pathlib
import sys
import types

from report_fixture import PROPERTIES, Rows

PARAMS = {"dtype": "fp16", "shape": {"rows": 4096, "columns": 1024}}
COLD_US = (30.0, 24.0, 24.6, 12.0, 21.0)
SUSPECT = 3  # index of the time that is marked suspect
DRIVERS = ("580.65",) * 4 + ("590.48",)
COMMITS = tuple(f"{digit}a5c0ffee" * 4 for digit in "12345")


def insert(state):
    """Returns {"jobs": ids of the jobs with equal parameters, oldest first; "run": id of the last one's run}."""
    rows = Rows(types.SimpleNamespace(state=pathlib.Path(state)))
    jobs = []

    def set_driver(run, driver):
        properties = json.dumps({**PROPERTIES, "driver": driver})
        rows.db.execute("INSERT OR IGNORE INTO devices (properties) VALUES (?)", [properties])
        rows.db.execute("UPDATE passes SET device_id = (SELECT id FROM devices WHERE properties = ?) WHERE run_id = ?",
                        [properties, run])
        rows.db.commit()

    def run(us, commit, params):
        job = rows.job()
        run_id = rows.run([], workload="softmax", variant="vector", job=job, params=params, commit=commit,
                        measurements={"time_cold_us_median": us, "relative_error": 0.0001}, samples={"cold": [us]})
        return job, run_id

    for us, commit, driver in zip(COLD_US, COMMITS, DRIVERS, strict=True):
        job, last = run(us, commit, PARAMS)
        set_driver(last, driver)
        jobs.append(job)
        if len(jobs) == SUSPECT + 1:
            rows.db.execute("UPDATE samples SET suspect = 1, suspect_reason = 'faster than its floor' WHERE pass_id IN "
                            "(SELECT id FROM passes WHERE run_id = ?)", [last])
            rows.summarize(last)
    run(1.0, COMMITS[0], {**PARAMS, "shape": {"rows": 1, "columns": 1024}})
    return {"jobs": jobs, "run": last}


if __name__ == "__main__":
    print(json.dumps(insert(sys.argv[1])))
