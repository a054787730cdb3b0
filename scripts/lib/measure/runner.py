"""Runs steps, each in its own process with a time limit, and stores their results.

On a GPU, steps run one after the other; steps that neither time nor count anything may share it. Each GPU of a machine has a
separate Host (host.py). Several GPUs run steps concurrently, but only one step at a time uses hardware counters, because all
GPUs of the machine share them.

A step is a generator of rows (dictionaries). A row with "check" and "holds" is a verified claim: a step in which one does not
hold has failed. A row with "target" and "met" compares a measurement with the value that we want: a step with an unmet target
is complete. All other rows are measurements.
Rows are written as they are produced, so a step that reaches its time limit keeps its rows. Results stores the rows of all
steps as one JSON document."""
import collections
import json
import os
import pathlib
import signal
import sys
import tarfile
import time
import traceback

from .host import Skip

UNMET = "unmet"  # state of a step that measured everything, but a target is not met
DONE_STATES = ("passed", UNMET, "skipped")  # a step in one of these states is not run again
EXIT_SKIPPED = 77  # of the process of a step
EXIT_FAILED, EXIT_UNMET = 1, 3  # of a session: a step failed or was cut off; no step failed, but a target is not met


def check(claim, holds, measured=None):
    """Returns the row of a verified claim. measured: the value on which the result of the check depends."""
    return {"check": claim, "holds": bool(holds), "measured": measured}


def target(claim, met, measured):
    """Returns the row of a target, such as the duration that an epoch should have."""
    return {"target": claim, "met": bool(met), "measured": measured}


# shares_gpu: the step may run beside other steps with shares_gpu on one GPU. uses_counters: no other step, on any GPU of the
# machine, may use counters at the same time.
Step = collections.namedtuple("Step", "name run expected_s limit_s summary shares_gpu uses_counters", defaults=(False, False))


class Context:
    """The argument of a step. logs: folder for its logs; deadline: time.monotonic() at which the step should have ended;
    earlier_rows: the step's rows from an earlier session."""

    def __init__(self, host, logs, deadline, earlier_rows):
        self.host, self.logs, self.deadline, self.earlier_rows = host, logs, deadline, earlier_rows

    def remaining_s(self):
        return self.deadline - time.monotonic()

    def log_path(self, name):
        """Returns the path of a file or folder in the step's folder of logs."""
        return self.logs / name


class Results:
    """The results of all steps, written to path after every step. Results that the file already has are kept if they are from
    this commit. Of other commits' results, only the rows marked "lasting" are kept: these do not depend on our code."""

    def __init__(self, path, commit):
        self.path, self.commit, self.steps = pathlib.Path(path), commit, {}
        for name, step in json.loads(self.path.read_text())["steps"].items() if self.path.exists() else ():
            lasting = [row for row in step["rows"] if row.get("lasting")]
            if step["commit"] == commit:
                self.steps[name] = step
            elif lasting:
                self.steps[name] = {**step, "state": "not run", "reason": "rows kept from another commit", "rows": lasting}

    def rows(self, name):
        return self.steps.get(name, {}).get("rows", [])

    def is_done(self, name):
        return self.steps.get(name, {}).get("state") in DONE_STATES

    def record(self, name, state, reason="", seconds=0.0, rows=()):
        self.steps[name] = {"state": state, "reason": reason, "seconds": round(seconds, 1), "commit": self.commit,
                            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "rows": list(rows)}
        text = json.dumps({"commit": self.commit, "steps": self.steps}, indent=1)
        temporary = self.path.with_suffix(".new")
        temporary.write_text(text + "\n")
        temporary.replace(self.path)


def run_in_child(step, context, rows_file):
    """Runs the step in a forked process. Does not return."""
    status = 1
    try:
        os.environ.update(context.host.gpu_environment)
        with open(context.log_path("log.txt"), "ab", buffering=0) as log, open(rows_file, "a", encoding="utf-8") as out:
            for descriptor in (1, 2):
                os.dup2(log.fileno(), descriptor)
            for row in step.run(context):
                out.write(json.dumps(row) + "\n")
                out.flush()
        status = 0
    except Skip as reason:
        context.log_path("reason").write_text(str(reason))
        status = EXIT_SKIPPED
    except BaseException as failure:  # every exception is a failure of the step
        context.log_path("reason").write_text(f"{type(failure).__name__}: {failure}"[:2000])
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(status)


def terminate_group(leader):
    """Ends a process group. SIGTERM comes first, so that a daemon can end its workers."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(leader, signal_number)
        except ProcessLookupError:
            return
        time.sleep(0.5)


class RunningStep:
    """A step that runs in a separate process."""

    def __init__(self, step, host, logs, limit_s, earlier_rows):
        self.step, self.host, self.logs, self.limit_s = step, host, logs, limit_s
        logs.mkdir(parents=True, exist_ok=True)
        self.rows_file, self.reason_file = logs / "rows.jsonl", logs / "reason"
        self.reason_file.unlink(missing_ok=True)
        self.rows_file.write_text("")
        self.begin, self.status, self.process = time.monotonic(), None, None
        context = Context(host, logs, self.begin + limit_s * 0.95 - 1, earlier_rows)
        self.process = os.fork()
        if self.process == 0:
            os.setsid()
            run_in_child(step, context, self.rows_file)

    def has_ended(self):
        """Whether the process has exited or exceeded its limit."""
        if self.status is None:
            ended, code = os.waitpid(self.process, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(code) if ended else None
        return self.status is not None or time.monotonic() > self.begin + self.limit_s

    def finish(self):
        """Ends the process with all its children and returns (state, reason, rows)."""
        terminate_group(self.process)
        if self.status is None:
            os.waitpid(self.process, 0)
        rows = [json.loads(line) for line in self.rows_file.read_text().splitlines() if line.endswith("}")]
        self.rows_file.unlink()
        reason = self.reason_file.read_text() if self.reason_file.exists() else ""
        failed_checks = [row["check"] for row in rows if row.get("holds") is False]
        if self.status is None:
            return "cut off", f"after {time.monotonic() - self.begin:.0f} s", rows
        if self.status == EXIT_SKIPPED:
            return "skipped", reason, rows
        if self.status != 0 or failed_checks:
            return "failed", reason or "; ".join(failed_checks), rows
        if any(row.get("partial") for row in rows):
            return "partial", next(row["partial"] for row in rows if row.get("partial")), rows
        unmet = [f"{row['target']}: {row['measured']}" for row in rows if "target" in row and not row["met"]]
        return (UNMET, "; ".join(unmet), rows) if unmet else ("passed", "", rows)


def next_step(host, waiting, running):
    """Returns the first waiting step that the host can start beside the running ones; None if there is none."""
    on_host = [item.step for item in running if item.host is host]
    counters_in_use = any(item.step.uses_counters for item in running)
    if not all(step.shares_gpu for step in on_host):
        return None
    return next((step for step in waiting if (step.shares_gpu or not on_host) and not (step.uses_counters and counters_in_use)),
                None)


def run_steps(steps, hosts, out, budget_s, results, print_line=print):
    """Runs as many steps as the time budget allows; omits steps that an earlier session completed. Returns the exit status: 0,
    EXIT_FAILED or EXIT_UNMET."""
    begin, logs, running = time.monotonic(), pathlib.Path(out) / "logs", []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    waiting = [step for step in steps if not results.is_done(step.name)]
    for step in steps:
        if results.is_done(step.name):
            print_line(f"{step.name:14} {results.steps[step.name]['state']:8} in an earlier session")

    def record(step, state, reason, seconds, rows):
        results.record(step.name, state, reason, seconds, rows)
        print_line(f"{step.name:14} {state:8} {seconds:6.1f} s  {reason[:200]}")
        archive_logs(logs, pathlib.Path(out) / "logs.tar.gz")

    def finish(item):
        seconds = time.monotonic() - item.begin
        state, reason, rows = item.finish()
        record(item.step, state, reason, seconds, rows)

    try:
        while waiting or running:
            for host in hosts:
                while (step := next_step(host, waiting, running)) is not None:
                    waiting.remove(step)
                    remaining_s = budget_s - (time.monotonic() - begin)
                    if remaining_s < step.expected_s:
                        record(step, "not run", f"takes about {step.expected_s} s, {remaining_s:.0f} s of the budget remain", 0,
                               results.rows(step.name))
                    else:
                        running.append(RunningStep(step, host, logs / step.name, min(step.limit_s, remaining_s),
                                                   results.rows(step.name)))
            for item in [item for item in running if item.has_ended()]:
                running.remove(item)
                finish(item)
            time.sleep(0.02)
    finally:  # if a signal ends this process, the rows of the running steps are kept
        for item in running:
            finish(item)
    states = {results.steps[step.name]["state"] for step in steps}
    return EXIT_FAILED if states & {"failed", "cut off"} else EXIT_UNMET if UNMET in states else 0


def archive_logs(folder, archive):
    if folder.is_dir():
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(folder, arcname="logs")
