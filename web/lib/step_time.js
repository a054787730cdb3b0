// The time of a step or an iteration, divided into parts. If a launch records phases, the parts are these phases. Otherwise the
// parts are the time without a kernel, and the kernels by training phase; by launch or symbol if no phase is known.
import { byId } from '/lib/dom.js';
import { PART_COLOURS, stackedBars } from '/lib/stacked_bars.js';
import { shortName } from '/lib/timeline/names.js';

const IDLE = 'no kernel', OTHERS = 'others';

/** Sums values by name; the largest first. */
function sumByName(items) {
  const sums = new Map();
  for (const { name, value } of items) sums.set(name, (sums.get(name) ?? 0) + value);
  return [...sums].map(([name, value]) => ({ name, value })).sort((a, b) => b.value - a.value);
}

const phasesOf = (kernels) => kernels.flatMap(({ phases }) => phases).filter(({ share_ratio: share }) => share > 0);

/** Returns the phases of a run's step, or else its kernels, with their shares of the step. */
function itemsOf(kernels) {
  const phases = phasesOf(kernels);
  if (phases.length > 0) return phases.map((phase) => ({ name: phase.phase ?? phase.name, value: phase.share_ratio }));
  return kernels.filter(({ share_ratio: share }) => share > 0)
    .map((kernel) => ({ name: kernel.phase || kernel.launch || shortName(kernel.name), value: kernel.share_ratio }));
}

/** Returns the parts of a run's step: the sums of the items with these names, that of the others, and the time without a
 * kernel. */
function partsOf(items, names, hasPhases) {
  const isNamed = ({ name }) => names.has(name);
  const others = items.filter((item) => !isNamed(item)).reduce((sum, { value }) => sum + value, 0);
  const parts = [...sumByName(items.filter(isNamed)), ...(others > 0 ? [{ name: OTHERS, value: others }] : [])];
  const idle = 1 - parts.reduce((sum, { value }) => sum + value, 0);
  return hasPhases || parts.length === 0 || idle < 0.001 ? parts : [...parts, { name: IDLE, value: idle, isRest: true }];
}

/** Draws the section. kernels: the kernels of all passes; only those of the activity pass have times. */
export function drawStepTime(runs, kernels) {
  const steps = runs.map((run) => {
    const traced = kernels.filter((kernel) => kernel.run === run.run && kernel.pass === 'activity');
    return { name: run.variant, items: itemsOf(traced), hasPhases: phasesOf(traced).length > 0 };
  });
  const sums = sumByName(steps.flatMap(({ items }) => items)); // of all runs, because a name has the same colour in each
  const shown = sums.length > PART_COLOURS ? sums.slice(0, PART_COLOURS - 1) : sums;
  const names = new Set(shown.map(({ name }) => name));
  const split = steps.map(({ name, items, hasPhases }) => ({ name, parts: partsOf(items, names, hasPhases) }))
    .filter(({ parts }) => parts.length > 0);
  byId('step-time').hidden = split.length === 0;
  if (split.length > 0) byId('step-time-bars').replaceChildren(...stackedBars(split, 'Part'));
}
