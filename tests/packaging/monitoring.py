#!/usr/bin/python3
"""Checks the examples for Prometheus and Grafana: promtool accepts the alert rules and their tests pass, every query of the
dashboard parses, and alerts and dashboard use only metrics of docs/prometheus.md. (tests/api/test_prometheus.py checks that GET
/metrics has these metrics.) If promtool is not installed, it is downloaded with Debian's package; without a network the test is
skipped."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = SOURCE / "docs/examples"


def run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
    return done.returncode, done.stdout


def find_promtool(folder):
    """Returns the path of promtool. If it is not installed, takes it from Debian's package, without installing the package's
    service. Returns None if the package cannot be downloaded."""
    if shutil.which("promtool"):
        return shutil.which("promtool")
    if run("apt-get", "download", "prometheus", cwd=folder)[0] != 0:
        return None
    (package,) = folder.glob("prometheus_*.deb")
    assert run("dpkg", "-x", package, folder / "root", cwd=folder)[0] == 0
    return folder / "root/usr/bin/promtool"


def documented_metrics():
    table = (SOURCE / "docs/prometheus.md").read_text()
    return {name: kind for name, kind in re.findall(r"^\| `(rooflined_\w+)` \| (\w+) ", table, re.M)}


def check_names(queries):
    metrics = documented_metrics()
    for query in queries:
        for name in re.findall(r"rooflined_\w+", query):
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            assert name in metrics or metrics.get(base) == "histogram", f"{name} of {query} is not in docs/prometheus.md"
        for name in re.findall(r"(?:rate|increase)\((rooflined_\w+)", query):
            kind = metrics.get(name) or metrics[re.sub(r"_(bucket|sum|count)$", "", name)]
            assert kind != "gauge", f"{query} takes the rate of a gauge"


def dashboard_queries():
    dashboard = json.loads((EXAMPLES / "grafana-dashboard.json").read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels), "panels overlap"
    return [target["expr"] for panel in panels for target in panel["targets"]]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        queries = dashboard_queries()
        alerts = (EXAMPLES / "prometheus-alerts.yml").read_text()
        check_names(queries + re.findall(r"expr: (.*)", alerts))
        promtool = find_promtool(folder)
        if promtool is None:
            print("skipped: apt-get cannot download Debian's package prometheus, which has promtool")
            return 77
        shutil.copy(EXAMPLES / "prometheus-alerts.yml", folder / "alerts.yml")
        shutil.copy(SOURCE / "tests/data/prometheus_alerts_test.yml", folder / "test.yml")
        filled = [query.replace("$__rate_interval", "5m").replace("$instance", ".*") for query in queries]
        rules = [{"record": f"panel_{i}", "expr": query} for i, query in enumerate(filled)]
        (folder / "dashboard.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
        for command in (["check", "rules", "alerts.yml"], ["check", "rules", "dashboard.yml"], ["test", "rules", "test.yml"]):
            code, output = run(promtool, *command, cwd=folder)
            assert code == 0, f"promtool {' '.join(command)}:\n{output}"
            assert command[0] == "test" or f"{len(rules) if command[2] == 'dashboard.yml' else 6} rules found" in output, output
    return 0


sys.exit(main())
