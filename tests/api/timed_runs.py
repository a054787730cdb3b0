"""Inserts a kernel job of three variants with times and floors into the database of a running daemon. timed_runs.py
STATE_FOLDER prints the job's id."""

import json
import pathlib
import statistics
import sys
import types

from report_fixture import Rows

FLOOR_US = {"cold": 19.38, "warm": 8.0}
COLD_US = {"scalar": [24.0, 80.0, 26.0, 25.0, 27.0], "vector": [20.6, 20.2, 20.4, 20.0, 20.8], "capped_registers": [9.0] * 5}
WARM_US = [10.0, 11.0, 12.0, 13.0, 14.0]
PARAMS = {"dtype": "fp16", "shape": {"n": 4194304}}
TOO_FAST = "9 us is less than the floor of 19.38 us"


def measurements(cold):
    return {**{f"floor_{mode}_us": us for mode, us in FLOOR_US.items()}, "sm_clock_least_mhz": 1965, "sm_clock_most_mhz": 1980,
            "share_cold_of_dram_copy_ratio": FLOOR_US["cold"] / statistics.median(cold),
            "share_warm_of_l2_copy_ratio": FLOOR_US["warm"] / statistics.median(WARM_US),
            "time_cold_us_spread_ratio": 0.057, "time_cold_us_median": statistics.median(cold),
            "time_warm_us_median": statistics.median(WARM_US)}


def insert_job(state_folder):
    """Inserts the job and returns its id. Every cold sample of the last variant is suspect."""
    rows = Rows(types.SimpleNamespace(state=pathlib.Path(state_folder)))
    job = rows.job()
    for variant, cold in COLD_US.items():
        run = rows.run([], variant=variant, job=job, params={**PARAMS, "variant": variant}, measurements=measurements(cold),
                       samples={"cold": cold, "warm": WARM_US})
    rows.db.execute("UPDATE samples SET suspect = 1, suspect_reason = ? WHERE mode = 'cold' AND pass_id IN "
                    "(SELECT id FROM passes WHERE run_id = ?)", [TOO_FAST, run])
    rows.db.execute("UPDATE passes SET suspect_cause = 'Likely cause: the ceilings.' WHERE run_id = ?", [run])
    rows.summarize(run)
    return job


if __name__ == "__main__":
    print(insert_job(sys.argv[1]))
