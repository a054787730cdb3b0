// The table of a job's kernels: by run and pass, searchable by name, sortable by every column.
import { bar, byId, createElement, numberCell } from '/lib/dom.js';
import * as format from '/lib/format.js';

const nameOf = (kernel) => kernel.launch || kernel.name;

let kernels = [];

/** A report shows the counters pass if it has kernels, else the activity pass. */
const isReported = (kernel) => kernel.pass === 'counters'
  || !kernels.some((one) => one.run === kernel.run && one.pass === 'counters');

// Columns of both passes, then of each pass. value: sort key.
const common = [{ label: 'Kernel', value: nameOf, cell: (kernel) => createElement('td', { class: 'name', title: kernel.name },
  isReported(kernel)
    ? createElement('a', { href: `/report.html?run=${kernel.run}&kernel=${kernel.ordinal}` }, nameOf(kernel)) : nameOf(kernel)) },
  { label: 'Phase', value: (kernel) => kernel.phase, cell: (kernel) => createElement('td', {}, kernel.phase || '') }];
const number = (label, field, write) =>
  ({ label, number: true, value: (kernel) => kernel[field], cell: (kernel) => numberCell(write(kernel[field]), kernel.reason) });
export const shareCell = (kernel) => {
  const text = format.percent(kernel.share_ratio);
  if (text === null) return numberCell(null, kernel.reason);
  return createElement(
    'td',
    { class: 'n' },
    createElement('span', { class: 'share', 'aria-hidden': 'true' }, bar('', kernel.share_ratio)),
    text,
  );
};
const launchShape = [
  {
    label: 'Grid',
    number: true,
    value: (kernel) => kernel.grid?.reduce((a, b) => a * b) ?? null,
    cell: (kernel) => numberCell(format.shape(kernel.grid), kernel.reason),
  },
  {
    label: 'Block',
    number: true,
    value: (kernel) => kernel.block?.reduce((a, b) => a * b) ?? null,
    cell: (kernel) => numberCell(format.shape(kernel.block), kernel.reason),
  },
  number('Registers', 'registers_per_thread', format.count),
  number('Occupancy limit', 'theoretical_occupancy_ratio', format.percent),
];
const activity = [
  { label: 'Share', number: true, value: (kernel) => kernel.share_ratio, cell: shareCell },
  number('Total', 'total_us', format.us),
  number('Launches', 'launches', format.count),
  number('Median', 'median_us', format.us),
  number('Min', 'min_us', format.us),
  number('Max', 'max_us', format.us),
  ...launchShape,
];

export const METRICS_LIMIT = 16;

/** A column for each hardware metric, if there are at most METRICS_LIMIT; the report shows more. */
function metricColumns(kernels) {
  if (kernels.some((kernel) => kernel.metrics === null)) return [];
  const names = [...new Set(kernels.flatMap((kernel) => kernel.metrics.map((one) => one.metric)))].sort();
  if (names.length > METRICS_LIMIT) return [];
  const of = (kernel, name) => kernel.metrics.find((one) => one.metric === name);
  return names.map((name) => ({ label: name, number: true, value: (kernel) => of(kernel, name)?.value ?? null,
    cell: (kernel) => numberCell(format.byName(name, of(kernel, name)?.value), of(kernel, name)?.reason || kernel.reason) }));
}

const columnsOf = (pass, kernels) => [...common,
  ...(pass === 'counters' ? [...metricColumns(kernels), ...launchShape] : activity)];

let sorted = { column: 2, down: true };

function compare(column) {
  return (a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (x === null || y === null) return (x === null) - (y === null); // missing values come last in both directions
    return (column.number ? x - y : String(x).localeCompare(String(y))) * (sorted.down ? -1 : 1);
  };
}

function draw() {
  const run = Number(byId('kernel-run').value);
  const pass = byId('kernel-pass').value;
  const wanted = byId('kernel-find').value.toLowerCase();
  const ofRun = kernels.filter((kernel) => kernel.run === run && kernel.pass === pass);
  const columns = columnsOf(pass, ofRun);
  const shown = ofRun.filter((kernel) => `${kernel.launch} ${kernel.name} ${kernel.phase}`.toLowerCase().includes(wanted));
  if (sorted.column >= columns.length) sorted = { column: 2, down: true };
  if (columns[sorted.column]) shown.sort(compare(columns[sorted.column]));
  byId('kernel-count').textContent = `${shown.length} of ${ofRun.length}`;
  byId('kernel-table').replaceChildren(
    createElement(
      'thead',
      {},
      createElement(
        'tr',
        {},
        ...columns.map((column, index) =>
          createElement(
            'th',
            {
              scope: 'col',
              class: column.number ? 'n' : null,
              'aria-sort': index === sorted.column ? (sorted.down ? 'descending' : 'ascending') : null,
            },
            createElement('button', { type: 'button', click: () => sortBy(index, column) }, column.label),
          ),
        ),
      ),
    ),
    createElement(
      'tbody',
      {},
      ...shown.map((kernel) => createElement('tr', {}, ...columns.map((column) => column.cell(kernel)))),
    ),
  );
}

function sortBy(index, column) {
  sorted = { column: index, down: index === sorted.column ? !sorted.down : Boolean(column.number) };
  draw();
  byId('kernel-table').querySelectorAll('th button')[index].focus();
}

function options(select, entries) {
  const chosen = select.value;
  select.replaceChildren(...entries.map(([value, label]) => createElement('option', { value }, label)));
  if (entries.some(([value]) => String(value) === chosen)) select.value = chosen;
}

export function drawKernels(runs, all) {
  kernels = all;
  byId('kernels').hidden = kernels.length === 0;
  if (kernels.length === 0) return;
  const counted = runs.filter((run) => kernels.some((kernel) => kernel.run === run.run));
  options(byId('kernel-run'), counted.map((run) => [run.run, run.variant]));
  options(byId('kernel-pass'), [...new Set(kernels.map((kernel) => kernel.pass))].map((pass) => [pass, pass]));
  draw();
}

for (const name of ['kernel-run', 'kernel-pass']) byId(name).addEventListener('change', draw);
byId('kernel-find').addEventListener('input', draw);
