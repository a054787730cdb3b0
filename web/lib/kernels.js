// The kernels of a job as one table: choose the run and the pass, find by name, sort by any column, open a report.
import { bar, find, make, numberCell } from '/lib/dom.js';
import * as show from '/lib/format.js';

const nameOf = (kernel) => kernel.launch || kernel.name;

let kernels = [];

/** A run's report is of its counters pass where that saw kernels, else of its activity pass. */
const isReported = (kernel) => kernel.pass === 'counters'
  || !kernels.some((one) => one.run === kernel.run && one.pass === 'counters');

// What both passes have, then what each adds. value: what sorting compares.
const common = [{ label: 'Kernel', value: nameOf, cell: (kernel) => make('td', { class: 'name', title: kernel.name },
  isReported(kernel)
    ? make('a', { href: `/report.html?run=${kernel.run}&kernel=${kernel.ordinal}` }, nameOf(kernel)) : nameOf(kernel)) },
  { label: 'Phase', value: (kernel) => kernel.phase, cell: (kernel) => make('td', {}, kernel.phase || '') }];
const number = (label, field, write) =>
  ({ label, number: true, value: (kernel) => kernel[field], cell: (kernel) => numberCell(write(kernel[field]), kernel.reason) });
export const shareCell = (kernel) => {
  const text = show.percent(kernel.share_ratio);
  if (text === null) return numberCell(null, kernel.reason);
  return make('td', { class: 'n' }, make('span', { class: 'share', 'aria-hidden': 'true' }, bar('', kernel.share_ratio)), text);
};
const launchShape = [
  { label: 'Grid', number: true, value: (kernel) => kernel.grid?.reduce((a, b) => a * b) ?? null,
    cell: (kernel) => numberCell(show.shape(kernel.grid), kernel.reason) },
  { label: 'Block', number: true, value: (kernel) => kernel.block?.reduce((a, b) => a * b) ?? null,
    cell: (kernel) => numberCell(show.shape(kernel.block), kernel.reason) },
  number('Registers', 'registers_per_thread', show.count), number('Occupancy limit', 'theoretical_occupancy_ratio', show.percent),
];
const activity = [
  { label: 'Share', number: true, value: (kernel) => kernel.share_ratio, cell: shareCell }, number('Total', 'total_us', show.us),
  number('Launches', 'launches', show.count), number('Median', 'median_us', show.us), number('Min', 'min_us', show.us),
  number('Max', 'max_us', show.us), ...launchShape,
];

export const MOST_METRICS = 16;

/** A column for each hardware metric that any of the kernels has, while they are few: of hundreds the report is the place. */
function metricColumns(kernels) {
  if (kernels.some((kernel) => kernel.metrics === null)) return [];
  const names = [...new Set(kernels.flatMap((kernel) => kernel.metrics.map((one) => one.metric)))].sort();
  if (names.length > MOST_METRICS) return [];
  const of = (kernel, name) => kernel.metrics.find((one) => one.metric === name);
  return names.map((name) => ({ label: name, number: true, value: (kernel) => of(kernel, name)?.value ?? null,
    cell: (kernel) => numberCell(show.byName(name, of(kernel, name)?.value), of(kernel, name)?.reason || kernel.reason) }));
}

const columnsOf = (pass, kernels) => [...common,
  ...(pass === 'counters' ? [...metricColumns(kernels), ...launchShape] : activity)];

let sorted = { column: 2, down: true };

function compare(column) {
  return (a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (x === null || y === null) return (x === null) - (y === null); // what is not known comes last either way
    return (column.number ? x - y : String(x).localeCompare(String(y))) * (sorted.down ? -1 : 1);
  };
}

function draw() {
  const run = Number(find('kernel-run').value);
  const pass = find('kernel-pass').value;
  const wanted = find('kernel-find').value.toLowerCase();
  const ofRun = kernels.filter((kernel) => kernel.run === run && kernel.pass === pass);
  const columns = columnsOf(pass, ofRun);
  const shown = ofRun.filter((kernel) => `${kernel.launch} ${kernel.name} ${kernel.phase}`.toLowerCase().includes(wanted));
  if (sorted.column >= columns.length) sorted = { column: 2, down: true };
  if (columns[sorted.column]) shown.sort(compare(columns[sorted.column]));
  find('kernel-count').textContent = `${shown.length} of ${ofRun.length}`;
  find('kernel-table').replaceChildren(
    make('thead', {},
      make('tr', {}, ...columns.map((column, index) => make('th', { scope: 'col', class: column.number ? 'n' : null,
      'aria-sort': index === sorted.column ? (sorted.down ? 'descending' : 'ascending') : null },
    make('button', { type: 'button', click: () => sortBy(index, column) }, column.label))))),
    make('tbody', {}, ...shown.map((kernel) => make('tr', {}, ...columns.map((column) => column.cell(kernel))))));
}

function sortBy(index, column) {
  sorted = { column: index, down: index === sorted.column ? !sorted.down : Boolean(column.number) };
  draw();
  find('kernel-table').querySelectorAll('th button')[index].focus();
}

function options(select, entries) {
  const chosen = select.value;
  select.replaceChildren(...entries.map(([value, label]) => make('option', { value }, label)));
  if (entries.some(([value]) => String(value) === chosen)) select.value = chosen;
}

export function drawKernels(runs, all) {
  kernels = all;
  find('kernels').hidden = kernels.length === 0;
  if (kernels.length === 0) return;
  const counted = runs.filter((run) => kernels.some((kernel) => kernel.run === run.run));
  options(find('kernel-run'), counted.map((run) => [run.run, run.variant]));
  options(find('kernel-pass'), [...new Set(kernels.map((kernel) => kernel.pass))].map((pass) => [pass, pass]));
  draw();
}

for (const name of ['kernel-run', 'kernel-pass']) find(name).addEventListener('change', draw);
find('kernel-find').addEventListener('input', draw);
