// The pinned baseline: the kernel with which a report compares every value. It is stored in the browser.
import { get } from '/lib/api.js';
import { createElement } from '/lib/dom.js';
import * as format from '/lib/format.js';

const KEY = 'report-baseline';

/** Returns the values of a kernel's rows by metric. */
export const valuesOf = (kernel) => new Map((kernel.sections ?? []).flatMap((section) => section.tables.flatMap((table) =>
  table.rows.filter((row) => row.metric).map((row) => [row.metric, row.value]))));

/** Returns the pinned {run, kernel}, or null. */
export function pinned() {
  try {
    const { run, kernel } = JSON.parse(localStorage.getItem(KEY));
    return Number.isSafeInteger(run) && Number.isSafeInteger(kernel) ? { run, kernel } : null;
  } catch {
    return null; // nothing is pinned, or the browser forbids storage
  }
}

export const pin = (run, kernel) => localStorage.setItem(KEY, JSON.stringify({ run, kernel }));
export const unpin = () => localStorage.removeItem(KEY);

/** Gets the pinned baseline: {run, kernel, label, values}; null if none is pinned, if it is the page's own kernel, or if it no
 * longer exists. */
export async function getBaseline(run, ordinal) {
  const chosen = pinned();
  if (chosen === null || (chosen.run === run && chosen.kernel === ordinal)) return null;
  const report = await get(`/runs/${chosen.run}/report?kernel=${chosen.kernel}`).catch((problem) => {
    if (problem.status !== 404) throw problem;
    return null; // the run was deleted
  });
  const kernel = report?.kernels[0];
  if (!kernel) return null;
  return { ...chosen, label: `run ${chosen.run}: ${kernel.launch || kernel.name} (${report.workload} ${report.variant})`,
    values: valuesOf(kernel) };
}

/** Returns an element with the difference between a value and the baseline in percent; null if one of them is missing. */
export function differenceTo(baseline, metric, value) {
  const before = baseline?.values.get(metric) ?? null;
  if (before === null || value === null || value === undefined || before === 0) return null;
  return createElement('span', { class: 'difference', title: `Baseline: ${format.number(before)}` },
    format.relativeChange((value - before) / Math.abs(before)));
}
