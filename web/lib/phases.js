// The table of the phases inside a launch: times over all blocks and all steps with timestamps. The means add up to a step.
import { byId, createElement, numberCell } from '/lib/dom.js';
import { shareCell } from '/lib/share_cell.js';
import * as format from '/lib/format.js';

const columns = [['Phase'], ['Part of'], ['Share', 'n'], ['Mean', 'n'], ['Min', 'n'], ['Max', 'n']];

const phaseRow = (phase) => createElement('tr', {},
  createElement('th', { scope: 'row' }, phase.name), createElement('td', {}, phase.phase ?? ''), shareCell(phase),
  numberCell(format.us(phase.mean_us)), numberCell(format.us(phase.min_us)), numberCell(format.us(phase.max_us)));

const sumRow = (phases) =>
  createElement(
    'tr',
    { class: 'sum' },
    createElement('th', { scope: 'row' }, 'step'),
    createElement('td', {}),
    createElement('td', {}),
    numberCell(format.us(phases.reduce((us, phase) => us + phase.mean_us, 0))),
    createElement('td', {}),
    createElement('td', {}),
  );

/** Describes the alignment of phases on the timeline. clockError: the measurement phase_clock_error_us, or undefined. */
function describeAlignment(clockError) {
  if (clockError === undefined) return '';
  if (clockError.value === null) return `Not on the timeline: ${clockError.reason}.`;
  return `On the timeline: block 0, aligned within ±${format.us(clockError.value)}.`;
}

const microbatchNote = (microbatches) =>
  microbatches > 1
    ? `A step has ${format.count(microbatches)} microbatches. Only the last one of each phase has a timestamp; \
the time of earlier ones counts to the next phase. `
    : '';

const describeTimes = (
  [{ steps, blocks }],
  microbatches,
  clockError,
) => `Times of one step in one block, over ${format.count(blocks)} blocks and the first \
${format.count(steps)} steps of the launch. ${microbatchNote(microbatches)}${describeAlignment(clockError)}`;

export function drawPhases(phases, microbatches, clockError) {
  byId('phases').hidden = phases.length === 0;
  if (phases.length === 0) return;
  byId('phase-note').textContent = describeTimes(phases, microbatches, clockError);
  byId('phase-table').replaceChildren(
    createElement(
      'thead',
      {},
      createElement('tr', {}, ...columns.map(([label, name]) => createElement('th', { scope: 'col', class: name }, label))),
    ),
    createElement('tbody', {}, ...phases.map(phaseRow), sumRow(phases)),
  );
}
