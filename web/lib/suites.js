// Shared by the pages of suites: verdicts, durations, and the differences between the conditions of two runs.
import { stateBadge } from '/lib/dom.js';
import * as format from '/lib/format.js';

/** Shows the verdict of a run that has ended, else its state. */
export const verdictBadge = ({ state, verdict }) => stateBadge(verdict ?? state);

/** Returns the estimated duration of a suite run: "about 15 s", or "at most 8 min" if only the time budget is known; null if no
 * device can run the suite. */
export const describeDuration = ({ estimated_s: seconds, estimate_basis: basis }) => (seconds === null ? null
  : `${basis === 'time_budget' ? 'at most' : 'about'} ${format.duration(seconds)}`);

export const endedStates = ['completed', 'failed', 'cancelled'];

/** Splits a metric's key JOB/VARIANT/NAME. */
export function parseMetricKey(key) {
  const [job, variant, ...name] = key.split('/');
  return { job, variant, name: name.join('/') };
}

const commitText = (commit) => commit.slice(0, 12);
// The conditions of a suite run, and of a point of the history: [field, name, formatter].
const conditions = [['device_name', 'device'], ['driver', 'driver'], ['clock_setting', 'clock setting'],
  ['sm_clock_max_mhz', 'SM clock limit', (mhz) => format.quantity(mhz, 'MHz')], ['git_commit', 'commit', commitText]];

/** Returns texts such as "driver 550.54 → 560.28" for the conditions that differ between two runs; none if `before` is
 * missing. */
export const changedConditions = (before, after) => (before ? conditions.filter(([name]) => before[name] !== after[name]) : [])
  .map(([name, label, textOf = String]) => `${label} ${[before, after].map((run) =>
    ((run[name] ?? null) === null ? 'unknown' : textOf(run[name]))).join(' → ')}`);
