// The table of all kernels of a report: what each takes, what bounds it, and what could be saved.
import { createElement, numberCell, byId } from '/lib/dom.js';
import { shareCell } from '/lib/share_cell.js';
import { nextSorting, sortRows, sortableHead } from '/lib/sortable.js';
import { distinctLabel } from '/lib/timeline/names.js';
import * as format from '/lib/format.js';

const durationOf = ({ roofline }) => (roofline.duration_s === null ? null : roofline.duration_s * 1e6);

/** Returns the largest estimate of the time that a finding could save, in percent of the kernel's; null: no finding has one. */
const savingOf = ({ findings }) => findings.reduce((most, { scope, speedup_pct: percent }) =>
  (scope === 'global' && percent > (most ?? 0) ? percent : most), null);

const percentCell = (value, reason) => numberCell(value === null ? null : `≤ ${value.toFixed(0)} %`, reason);

function columnsOf(run, kernels) {
  const total = kernels.reduce((sum, kernel) => sum + (durationOf(kernel) ?? 0), 0);
  const shareOf = (kernel) => (total > 0 && durationOf(kernel) !== null ? durationOf(kernel) / total : null);
  const labelOf = (kernel) => distinctLabel(kernel, kernels);
  return [
    { label: '#', number: true, value: ({ ordinal }) => ordinal, cell: ({ ordinal }) => numberCell(String(ordinal)) },
    { label: 'Kernel', value: labelOf, cell: (kernel) => createElement('th', { scope: 'row', class: 'name', title: kernel.name },
      createElement('a', { href: `/report.html?run=${run}&kernel=${kernel.ordinal}` }, labelOf(kernel))) },
    { label: 'Duration', number: true, value: durationOf,
      cell: (kernel) => numberCell(format.us(durationOf(kernel)), kernel.reason) },
    { label: 'Share', number: true, value: shareOf,
      cell: (kernel) => shareCell({ share_ratio: shareOf(kernel), reason: 'the duration is unknown' }) },
    { label: 'Verdict', value: ({ verdict }) => verdict.message,
      cell: ({ verdict }) => createElement('td', { class: 'words' }, verdict.message) },
    { label: 'Est. time saved', number: true, value: savingOf,
      cell: (kernel) => percentCell(savingOf(kernel), 'no finding has an estimate for the whole kernel') },
  ];
}

let sorting = { column: 2, down: true };

/** Draws the table if the run has several kernels and a duration of one is known. current: the ordinal of the kernel that the
 * report shows. */
export function drawKernelVerdicts(run, kernels, current) {
  byId('kernels').hidden = kernels.length < 2 || kernels.every((kernel) => durationOf(kernel) === null);
  if (byId('kernels').hidden) return;
  const columns = columnsOf(run, kernels);
  const draw = () => byId('kernel-verdicts').replaceChildren(
    sortableHead(columns, sorting, (index) => {
      sorting = nextSorting(columns, sorting, index);
      draw();
      byId('kernel-verdicts').querySelectorAll('th button')[index].focus();
    }),
    createElement('tbody', {}, ...sortRows(columns, kernels, sorting).map((kernel) => createElement('tr',
      { 'aria-selected': String(kernel.ordinal === current) }, ...columns.map(({ cell }) => cell(kernel))))));
  draw();
}
