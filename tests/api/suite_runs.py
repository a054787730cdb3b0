"""Defines suites that tests run on the CPU device, and functions that start suite runs and wait for them."""

import json
import time

METRIC = "relu/vector/time_cold_us_median"
ENDED = ("completed", "failed", "cancelled")


def suite(name="tiny", n=4096, **changes):
    """Returns a suite of one kernel whose blocks take a fraction of a second. Its threshold is far above the noise of a busy
    machine."""
    body = {"name": name, "summary": "One small kernel", "blocks": 5, "profile": False,
            "jobs": [{"name": "relu", "request": {"kind": "kernel", "kernel": "relu", "shape": {"n": n}, "variant": "vector",
                                                  "samples": 3}}],
            "metrics": [{"job": "relu", "metric": "time_cold_us_median", "threshold_ratio": 10}]}
    return {**body, **changes}


def write(folder, definition, name=None):
    folder.mkdir(exist_ok=True)
    text = definition if isinstance(definition, str) else json.dumps(definition, indent=1)
    (folder / f"{name or definition['name']}.json").write_text(text)


def start(daemon, name, body=None, **request_options):
    response = daemon.call("POST", f"/suites/{name}/runs", body or {}, **request_options)
    assert response.status_code == 202, response.text
    return response.json()["id"]


def wait(daemon, number, seconds=600, states=ENDED):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        answer = daemon.get(f"/suite-runs/{number}").json()
        if answer["state"] in states:
            return answer
        time.sleep(0.1)
    raise AssertionError(f"suite run {number} is still {answer['state']}: {answer['progress']}")


def run(daemon, name, body=None):
    return wait(daemon, start(daemon, name, body))
