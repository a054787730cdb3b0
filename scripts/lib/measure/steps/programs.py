"""Runs programs of the build and reads their output."""
import json
import subprocess

from ..daemon import Failed
from ..host import Skip
from ..runner import EXIT_SKIPPED


def run(context, command, log_name, timeout_s=None, environment=None, cwd=None):
    """Returns (exit status, output) and keeps the output as a log of the step. The status is None when the program timed out."""
    with open(context.log_path(log_name), "wb") as log:
        try:
            status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=cwd,
                                    env=environment or context.host.environment,
                                    timeout=max(1, min(timeout_s or 1e9, context.remaining_s()))).returncode
        except subprocess.TimeoutExpired:
            status = None
    return status, context.log_path(log_name).read_text(errors="replace")


def last_line(output):
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")


def json_lines(context, command, log_name, **options):
    """Runs a program that prints one JSON object a line and returns the objects. Raises Skip with the last line when the program
    exits with EXIT_SKIPPED."""
    status, output = run(context, command, log_name, **options)
    if status == EXIT_SKIPPED:
        raise Skip(last_line(output))
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{") and line.endswith("}")]
    if status != 0 or not rows:
        raise Failed(f"{log_name}: exit status {status}: {last_line(output)}")
    return rows
