"""Runs steps, each in a process of its own and within its time, and keeps what they found. A GPU runs one step after the other,
or side by side several of which nothing is timed or counted; of several GPUs each takes a step when it is free, but one alone may
count: counters are the host's.

A step is a generator of rows (dictionaries). A row with "check" and "holds" is a claim that was tested; the others are what was
measured. Rows are kept as they come, so that a step that runs out of time leaves what it had. `Found` is all of it, as one JSON
document."""
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

KEEPS = ("passed", "skipped")  # what need not be run again


def check(what, holds, seen=None):
    return {"check": what, "holds": bool(holds), "seen": seen}


Step = collections.namedtuple("Step", "name run expected_s limit_s what shares counts",
                              defaults=(False, False))  # shares: a GPU with others that do; counts: by the hardware's counters


class Context:
    """What a step is given: the host, a folder for its logs, until when it may run, and its rows of an earlier sitting."""

    def __init__(self, host, logs, until, earlier):
        self.host, self.logs, self.until, self.earlier = host, logs, until, earlier

    def left_s(self):
        return self.until - time.monotonic()

    def log(self, name):
        return self.logs / name


class Found:
    """path: where it is kept, written anew after every step. What is there already is taken over: of another commit only the rows
    that say that they are "lasting", as what has nothing to do with our code."""

    def __init__(self, path, commit):
        self.path, self.commit, self.steps = pathlib.Path(path), commit, {}
        for name, step in json.loads(self.path.read_text())["steps"].items() if self.path.exists() else ():
            lasting = [row for row in step["rows"] if row.get("lasting")]
            if step["commit"] == commit:
                self.steps[name] = step
            elif lasting:
                self.steps[name] = {**step, "state": "not run", "reason": "kept of another commit", "rows": lasting}

    def rows(self, name):
        return self.steps.get(name, {}).get("rows", [])

    def has(self, name):
        return self.steps.get(name, {}).get("state") in KEEPS

    def put(self, name, state, reason="", seconds=0.0, rows=()):
        self.steps[name] = {"state": state, "reason": reason, "seconds": round(seconds, 1), "commit": self.commit,
                            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "rows": list(rows)}
        text = json.dumps({"commit": self.commit, "steps": self.steps}, indent=1)
        new = self.path.with_suffix(".new")
        new.write_text(text + "\n")
        new.replace(self.path)


def child(step, context, rows_file):
    """In the forked process: never returns."""
    status = 1
    try:
        os.environ.update(context.host.chosen)
        with open(context.log("log.txt"), "ab", buffering=0) as log, open(rows_file, "a", encoding="utf-8") as out:
            for descriptor in (1, 2):
                os.dup2(log.fileno(), descriptor)
            for row in step.run(context):
                out.write(json.dumps(row) + "\n")
                out.flush()
        status = 0
    except Skip as reason:
        context.log("reason").write_text(str(reason))
        status = 77
    except BaseException as failure:  # whatever it is, it is the step's
        context.log("reason").write_text(f"{type(failure).__name__}: {failure}"[:2000])
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(status)


def end_group(leader):
    """First asks, so that a daemon can end its workers."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(leader, number)
        except ProcessLookupError:
            return
        time.sleep(0.5)


class Run:
    """A step that has begun."""

    def __init__(self, step, host, logs, seconds, earlier):
        self.step, self.host, self.logs, self.seconds = step, host, logs, seconds
        logs.mkdir(parents=True, exist_ok=True)
        self.rows_file, self.reason_file = logs / "rows.jsonl", logs / "reason"
        self.reason_file.unlink(missing_ok=True)
        self.rows_file.write_text("")
        self.begun, self.status, self.process = time.monotonic(), None, None
        context = Context(host, logs, self.begun + seconds * 0.95 - 1, earlier)
        self.process = os.fork()
        if self.process == 0:
            os.setsid()
            child(step, context, self.rows_file)

    def over(self):
        if self.status is None:
            ended, code = os.waitpid(self.process, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(code) if ended else None
        return self.status is not None or time.monotonic() > self.begun + self.seconds

    def end(self):
        """Everything that it started goes with it, also when the sitting itself is ended. Returns (state, reason, rows)."""
        end_group(self.process)
        if self.status is None:
            os.waitpid(self.process, 0)
        rows = [json.loads(line) for line in self.rows_file.read_text().splitlines() if line.endswith("}")]
        self.rows_file.unlink()
        reason = self.reason_file.read_text() if self.reason_file.exists() else ""
        broken = [row["check"] for row in rows if row.get("holds") is False]
        if self.status is None:
            return "cut off", f"after {self.seconds:.0f} s", rows
        if self.status == 77:
            return "skipped", reason, rows
        if self.status != 0 or broken:
            return "failed", reason or "; ".join(broken), rows
        if any(row.get("partial") for row in rows):
            return "partial", next(row["partial"] for row in rows if row.get("partial")), rows
        return "passed", "", rows


def next_step(host, waiting, running):
    """What the host may take on beside what it does."""
    beside, counting = [run.step for run in running if run.host is host], any(run.step.counts for run in running)
    if not all(step.shares for step in beside):
        return None
    return next((step for step in waiting if (step.shares or not beside) and not (step.counts and counting)), None)


def run(steps, hosts, out, budget_s, kept, say=print):
    """Runs the steps that `kept` (a Found) has not passed yet, as many as the budget allows; returns True when none failed."""
    begin, logs, running = time.monotonic(), pathlib.Path(out) / "logs", []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    waiting = [step for step in steps if not kept.has(step.name)]
    for step in steps:
        if kept.has(step.name):
            say(f"{step.name:14} {kept.steps[step.name]['state']:8} before")

    def record(step, state, reason, seconds, rows):
        kept.put(step.name, state, reason, seconds, rows)
        say(f"{step.name:14} {state:8} {seconds:6.1f} s  {reason[:200]}")
        pack(logs, pathlib.Path(out) / "logs.tar.gz")

    try:
        while waiting or running:
            for host in hosts:
                while (step := next_step(host, waiting, running)) is not None:
                    waiting.remove(step)
                    left = budget_s - (time.monotonic() - begin)
                    if left < step.expected_s:
                        record(step, "not run", f"takes about {step.expected_s} s, {left:.0f} s of the budget are left", 0,
                               kept.rows(step.name))
                    else:
                        running.append(Run(step, host, logs / step.name, min(step.limit_s, left), kept.rows(step.name)))
            for one in [one for one in running if one.over()]:
                running.remove(one)
                seconds = time.monotonic() - one.begun
                state, reason, rows = one.end()
                record(one.step, state, reason, seconds, rows)
            time.sleep(0.02)
    finally:
        for one in running:
            one.end()
    return not any(kept.steps[step.name]["state"] in ("failed", "cut off") for step in steps)


def pack(folder, archive):
    if folder.is_dir():
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(folder, arcname="logs")
