"""Programs of the build, run for what they print."""
import json
import subprocess

from ..daemon import Failed
from ..host import Skip

CANNOT = 77  # a program's exit status where it can't be run, with the reason in its last line


def run(context, command, name, seconds=None, environment=None, cwd=None):
    """(exit status, output); the output is kept in the step's folder under `name`. None as status: it ran past its seconds."""
    with open(context.log(name), "wb") as log:
        try:
            status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=cwd,
                                    env=environment or context.host.environment,
                                    timeout=max(1, min(seconds or 1e9, context.left_s()))).returncode
        except subprocess.TimeoutExpired:
            status = None
    return status, context.log(name).read_text(errors="replace")


def last_line(output):
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")


def json_lines(context, command, name, **more):
    """What the program prints as JSON objects, a line each."""
    status, output = run(context, command, name, **more)
    if status == CANNOT:
        raise Skip(last_line(output))
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{") and line.endswith("}")]
    if status != 0 or not rows:
        raise Failed(f"{name}: exit status {status}: {last_line(output)}")
    return rows
