// The phases of a step inside a launch that stamps them, as a table: over all blocks and stamped steps, adding up to a step.
import { find, make, numberCell } from '/lib/dom.js';
import { shareCell } from '/lib/kernels.js';
import * as show from '/lib/format.js';

const columns = [['Phase'], ['Part of'], ['Share', 'n'], ['Mean', 'n'], ['Min', 'n'], ['Max', 'n']];

const row = (phase) => make('tr', {},
  make('th', { scope: 'row' }, phase.name), make('td', {}, phase.phase ?? ''), shareCell(phase),
  numberCell(show.us(phase.mean_us)), numberCell(show.us(phase.min_us)), numberCell(show.us(phase.max_us)));

const sum = (phases) => make('tr', { class: 'sum' }, make('th', { scope: 'row' }, 'step'), make('td', {}), make('td', {}),
  numberCell(show.us(phases.reduce((us, phase) => us + phase.mean_us, 0))), make('td', {}), make('td', {}));

/** How the spans on the timeline were placed: {value, reason}, or undefined where that is not kept. */
function placeOf(placed) {
  if (placed === undefined) return '';
  if (placed.value === null) return `Not on the timeline: ${placed.reason}.`;
  return `On the timeline: block 0, placed to within ±${show.us(placed.value)}.`;
}

const roundsOf = (rounds) => (rounds > 1 ? `A step goes in ${show.count(rounds)} rounds: of each phase the last is stamped, and \
the time of those before counts to what is stamped next. ` : '');

const noteOf = ([{ steps, blocks }], rounds, placed) => `Of one step in one block: ${show.count(blocks)} blocks, the first \
${show.count(steps)} steps of the launch, which stamps them itself. ${roundsOf(rounds)}${placeOf(placed)}`;

export function drawPhases(phases, rounds, placed) {
  find('phases').hidden = phases.length === 0;
  if (phases.length === 0) return;
  find('phase-note').textContent = noteOf(phases, rounds, placed);
  find('phase-table').replaceChildren(
    make('thead', {}, make('tr', {}, ...columns.map(([label, name]) => make('th', { scope: 'col', class: name }, label)))),
    make('tbody', {}, ...phases.map(row), sum(phases)));
}
