// The peak memory of a job's runs by purpose.
import { byId } from '/lib/dom.js';
import { stackedBars } from '/lib/stacked_bars.js';
import * as format from '/lib/format.js';

const purposes = [['Weights', 'memory_weights_bytes'], ['Activations', 'memory_activations_bytes'],
  ['Workspace', 'memory_workspace_bytes'], ['Dataset', 'memory_dataset_bytes'], ['CUDA context', 'context_memory_bytes']];

function partsOf(run) {
  const valueOf = (name) => run.measurements.find((one) => one.pass === 'timing' && one.name === name)?.value ?? null;
  return purposes.map(([name, metric]) => ({ name, value: valueOf(metric) })).filter(({ value }) => value > 0);
}

/** Draws the section, if at least one run has memory for several purposes. */
export function drawMemoryPurposes(runs) {
  const split = runs.map((run) => ({ name: run.variant, parts: partsOf(run) })).filter(({ parts }) => parts.length > 0);
  byId('memory-purposes').hidden = runs[0]?.workload === 'ceilings' || !split.some(({ parts }) => parts.length > 1);
  if (!byId('memory-purposes').hidden) byId('memory-bars').replaceChildren(...stackedBars(split, 'Purpose', format.bytes));
}
