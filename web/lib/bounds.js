// What bounds the longest kernel of each run of a job: the verdicts of the runs' reports.
import { get } from '/lib/api.js';
import { byId, createElement } from '/lib/dom.js';
import { distinctLabel } from '/lib/timeline/names.js';
import * as format from '/lib/format.js';

const MAX_RUNS = 8;
const durationOf = ({ roofline }) => roofline.duration_s ?? 0;
const isCounted = ({ passes }) => passes.some(({ pass, state }) => pass === 'counters' && state === 'completed');

/** Returns {run, variant, label, share, verdict} of the longest kernel of a run's report, or null if the report has no kernel.
 * share: the kernel's share of the time of all kernels; null if it is the only one. */
function boundOf({ id, variant }, { kernels }) {
  if (kernels.length === 0) return null;
  const longest = kernels.reduce((most, kernel) => (durationOf(kernel) > durationOf(most) ? kernel : most));
  const total = kernels.reduce((sum, kernel) => sum + durationOf(kernel), 0);
  return { run: id, variant, label: distinctLabel(longest, kernels), verdict: longest.verdict,
    share: kernels.length > 1 && total > 0 ? durationOf(longest) / total : null };
}

/** Fetches the verdicts of the runs whose kernels were counted. Leaves out runs whose report can't be read. */
export async function fetchBounds(runs) {
  const counted = runs.filter(isCounted).slice(0, MAX_RUNS);
  const reports = await Promise.allSettled(counted.map(({ id }) => get(`/runs/${id}/report?detail=verdicts`)));
  return counted.map((run, index) => (reports[index].status === 'fulfilled' ? boundOf(run, reports[index].value) : null))
    .filter((bound) => bound !== null);
}

const itemOf = ({ run, variant, label, share, verdict }) => createElement('li', {},
  createElement('a', { href: `/report.html?run=${run}` }, variant), ' ',
  createElement('code', {}, label), share === null ? ' ' : ` (${format.percent(share)} of the kernels’ time) `,
  createElement('strong', {}, verdict.message), ' ', verdict.advice ?? '');

/** Draws the section; hides it if no kernel was counted. */
export function drawBounds(bounds) {
  byId('bounds').hidden = bounds.length === 0;
  byId('bounds').querySelector('ul').replaceChildren(...bounds.map(itemOf));
}
