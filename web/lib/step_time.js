// The time of a step or an iteration, divided into parts. If a launch records phases, the parts are these phases. Otherwise the
// parts are the time without a kernel, and the kernels by training phase; by launch or symbol if no phase is known.
import { byId } from '/lib/dom.js';
import { stackedBars } from '/lib/stacked_bars.js';
import { shortName } from '/lib/timeline/names.js';

const MAX_PARTS = 8;
const IDLE = 'no kernel';

/** Sums values by name, the largest first. If there are more than MAX_PARTS names, the smallest are added up in one part. */
function partsOf(items) {
  const sums = new Map();
  for (const { name, value } of items) sums.set(name, (sums.get(name) ?? 0) + value);
  const sorted = [...sums].map(([name, value]) => ({ name, value })).sort((a, b) => b.value - a.value);
  if (sorted.length <= MAX_PARTS) return sorted;
  const rest = sorted.slice(MAX_PARTS - 1);
  return [...sorted.slice(0, MAX_PARTS - 1), { name: 'others', value: rest.reduce((sum, { value }) => sum + value, 0) }];
}

/** Returns the parts of a run's step, with their shares of the step. */
function stepOf(kernels) {
  const phases = kernels.flatMap(({ phases: found }) => found).filter(({ share_ratio: share }) => share > 0);
  if (phases.length > 0) return partsOf(phases.map((phase) => ({ name: phase.phase ?? phase.name, value: phase.share_ratio })));
  const timed = kernels.filter(({ share_ratio: share }) => share > 0);
  const parts = partsOf(timed.map((kernel) => ({ name: kernel.phase || kernel.launch || shortName(kernel.name),
    value: kernel.share_ratio })));
  const idle = 1 - parts.reduce((sum, { value }) => sum + value, 0);
  return parts.length === 0 || idle < 0.001 ? parts : [...parts, { name: IDLE, value: idle }];
}

/** Draws the section. kernels: the kernels of all passes; only those of the activity pass have times. */
export function drawStepTime(runs, kernels) {
  const split = runs.map((run) => ({ name: run.variant,
    parts: stepOf(kernels.filter((kernel) => kernel.run === run.run && kernel.pass === 'activity')) }))
    .filter(({ parts }) => parts.length > 0);
  byId('step-time').hidden = split.length === 0;
  if (split.length > 0) byId('step-time-bars').replaceChildren(...stackedBars(split, 'Part'));
}
