// The table of a job's kernels: by run and pass, searchable by name, sortable by every column.
import { byId, createElement, numberCell } from '/lib/dom.js';
import { shareCell } from '/lib/share_cell.js';
import { nextSorting, sortRows, sortableHead } from '/lib/sortable.js';
import { distinctLabel } from '/lib/timeline/names.js';
import * as format from '/lib/format.js';

let kernels = [];
let labels = new Map(); // kernel id -> label, of the shown kernels

const kernelLabel = (kernel) => labels.get(kernel.id);

/** Returns whether the report shows this kernel. The report shows the kernels of the counters pass, or of the activity pass if
 * the counters pass has none. */
const isReported = (kernel) => kernel.pass === 'counters'
  || !kernels.some((other) => other.run === kernel.run && other.pass === 'counters');

// Columns of the tables of both passes, then of one pass each. value: the key to sort by.
const commonColumns = [{ label: 'Kernel', value: kernelLabel,
  cell: (kernel) => createElement('td', { class: 'name', title: kernel.name },
  isReported(kernel)
    ? createElement('a', { href: `/report.html?run=${kernel.run}&kernel=${kernel.ordinal}` }, kernelLabel(kernel))
    : kernelLabel(kernel)) },
  { label: 'Phase', value: (kernel) => kernel.phase, cell: (kernel) => createElement('td', {}, kernel.phase || '') }];
const numberColumn = (label, field, formatValue) =>
  ({ label, number: true, value: (kernel) => kernel[field],
    cell: (kernel) => numberCell(formatValue(kernel[field]), kernel.reason) });
const launchColumns = [
  {
    label: 'Grid',
    number: true,
    value: (kernel) => kernel.grid?.reduce((a, b) => a * b) ?? null,
    cell: (kernel) => numberCell(format.dimensions(kernel.grid), kernel.reason),
  },
  {
    label: 'Block',
    number: true,
    value: (kernel) => kernel.block?.reduce((a, b) => a * b) ?? null,
    cell: (kernel) => numberCell(format.dimensions(kernel.block), kernel.reason),
  },
  numberColumn('Registers', 'registers_per_thread', format.count),
  numberColumn('Occupancy limit', 'theoretical_occupancy_ratio', format.percent),
];
const activityColumns = [
  { label: 'Share', number: true, value: (kernel) => kernel.share_ratio, cell: shareCell },
  numberColumn('Total', 'total_us', format.us),
  numberColumn('Launches', 'launches', format.count),
  numberColumn('Median', 'median_us', format.us),
  numberColumn('Min', 'min_us', format.us),
  numberColumn('Max', 'max_us', format.us),
  ...launchColumns,
];

export const METRICS_LIMIT = 16;

/** Returns a column for each hardware metric; none if there are more than METRICS_LIMIT, which only the report shows. */
function metricColumns(kernels) {
  if (kernels.some((kernel) => kernel.metrics === null)) return [];
  const names = [...new Set(kernels.flatMap((kernel) => kernel.metrics.map(({ metric }) => metric)))].sort();
  if (names.length > METRICS_LIMIT) return [];
  const findMetric = (kernel, name) => kernel.metrics.find(({ metric }) => metric === name);
  return names.map((name) => ({ label: name, number: true, value: (kernel) => findMetric(kernel, name)?.value ?? null,
    cell: (kernel) =>
      numberCell(format.metricValue(name, findMetric(kernel, name)?.value),
        findMetric(kernel, name)?.reason || kernel.reason) }));
}

const columnsOf = (pass, kernels) => [...commonColumns,
  ...(pass === 'counters' ? [numberColumn('Duration', 'counted_duration_us', format.us), ...metricColumns(kernels),
    ...launchColumns] : activityColumns)];

let sorting = { column: 2, down: true };

function draw() {
  const run = Number(byId('kernel-run').value);
  const pass = byId('kernel-pass').value;
  const searchText = byId('kernel-find').value.toLowerCase();
  const kernelsOfRun = kernels.filter((kernel) => kernel.run === run && kernel.pass === pass);
  const columns = columnsOf(pass, kernelsOfRun);
  labels = new Map(kernelsOfRun.map((kernel) => [kernel.id, distinctLabel(kernel, kernelsOfRun)]));
  const matching = kernelsOfRun.filter((kernel) =>
    `${kernel.launch} ${kernel.name} ${kernel.phase}`.toLowerCase().includes(searchText));
  if (sorting.column >= columns.length) sorting = { column: 2, down: true };
  byId('kernel-count').textContent = `${matching.length} of ${kernelsOfRun.length}`;
  byId('kernel-table').replaceChildren(sortableHead(columns, sorting, (index) => sortBy(columns, index)),
    createElement('tbody', {}, ...sortRows(columns, matching, sorting)
      .map((kernel) => createElement('tr', {}, ...columns.map((column) => column.cell(kernel))))));
}

function sortBy(columns, index) {
  sorting = nextSorting(columns, sorting, index);
  draw();
  byId('kernel-table').querySelectorAll('th button')[index].focus();
}

function fillOptions(select, entries) {
  const chosen = select.value;
  select.replaceChildren(...entries.map(([value, label]) => createElement('option', { value }, label)));
  if (entries.some(([value]) => String(value) === chosen)) select.value = chosen;
}

export function drawKernels(runs, allKernels) {
  kernels = allKernels;
  byId('kernels').hidden = kernels.length === 0;
  if (kernels.length === 0) return;
  const runsWithKernels = runs.filter((run) => kernels.some((kernel) => kernel.run === run.run));
  fillOptions(byId('kernel-run'), runsWithKernels.map((run) => [run.run, run.variant]));
  fillOptions(byId('kernel-pass'), [...new Set(kernels.map((kernel) => kernel.pass))].map((pass) => [pass, pass]));
  draw();
}

for (const name of ['kernel-run', 'kernel-pass']) byId(name).addEventListener('change', draw);
byId('kernel-find').addEventListener('input', draw);
