// The machine code of a kernel with what was counted and sampled at each instruction.
import { bar, find, make, numberCell } from '/lib/dom.js';
import { tableOf } from '/lib/sections.js';
import * as show from '/lib/format.js';

const hex = (offset) => `0x${offset.toString(16).padStart(4, '0')}`;
const sourceOf = (one) => (one.file === null ? '' : `${one.file.split('/').pop()}:${one.line}`);

const fixed = [
  { label: 'Offset', cell: (one) => make('th', { scope: 'row', class: 'mono' }, hex(one.offset)) },
  { label: 'Instruction', cell: (one) => make('td', { class: 'mono' }, one.sass ?? one.opcode ?? '') },
  { label: 'Source', cell: (one) => make('td', { class: 'quiet', title: one.file }, sourceOf(one)) },
];

/** A count with a bar: its share of the kernel's largest. */
function countColumn(name, instructions) {
  const largest = Math.max(...instructions.map((one) => one.counts[name] ?? 0));
  return { label: name, number: true, cell: (one) => {
    const value = show.plain(one.counts[name]);
    if (value === null) return numberCell(null, one.reason ?? 'not counted at this instruction');
    return make('td', { class: 'n' }, make('span', { class: 'share', 'aria-hidden': 'true' }, bar('', largest > 0 ? one.counts[name] / largest : 0)), value);
  } };
}

export function drawInstructions(instructions) {
  find('instructions').hidden = instructions.length === 0;
  const names = [...new Set(instructions.flatMap((one) => Object.keys(one.counts)))];
  find('instruction-table').replaceChildren(tableOf('Instructions', [...fixed, ...names.map((name) => countColumn(name, instructions))], instructions));
}
