// The machine code of a kernel with what was counted and sampled at each instruction.
import { bar, find, make, numberCell } from '/lib/dom.js';
import { fold, tableOf } from '/lib/sections.js';
import * as show from '/lib/format.js';

const STALL = /^smsp__pcsamp_warps_issue_(?:stalled_)?(.*)$/;
const MOST_STALLS = 3;

const hex = (offset) => `0x${offset.toString(16).padStart(4, '0')}`;
const sourceOf = (one) => (one.file === null ? '' : `${one.file.split('/').pop()}:${one.line}`);
const shortName = (name) => name.replace(/^(smsp__sass_|sass__|smsp__pcsamp_|smsp__)/, '');

const fixed = [
  { label: 'Offset', cell: (one) => make('th', { scope: 'row', class: 'mono' }, hex(one.offset)) },
  { label: 'Instruction', cell: (one) => make('td', { class: 'mono' }, one.sass ?? one.opcode ?? '') },
  { label: 'Source', cell: (one) => make('td', { class: 'quiet', title: one.file }, sourceOf(one)) },
];

/** A count with a bar: its share of the kernel's largest. */
function countColumn(name, instructions) {
  const largest = instructions.reduce((most, one) => Math.max(most, one.counts[name] ?? 0), 0);
  return { label: shortName(name), number: true, cell: (one) => {
    const value = show.plain(one.counts[name]);
    if (value === null) return numberCell(null, one.reason ?? 'not counted at this instruction');
    return make('td', { class: 'n', title: name }, make('span', { class: 'share', 'aria-hidden': 'true' },
      bar('', largest > 0 ? one.counts[name] / largest : 0)), value);
  } };
}

/** Why sampled warps stood at the instruction, most frequent first; all reasons in the title. */
const stallColumn = { label: 'Stalls', cell: (one) => {
  const stalls = Object.entries(one.counts)
    .filter(([name, count]) => STALL.test(name) && !name.endsWith('_not_issued') && count > 0)
    .sort(([, a], [, b]) => b - a).map(([name, count]) => `${STALL.exec(name)[1].replaceAll('_', ' ')} ${show.plain(count)}`);
  return make('td', { class: 'quiet', title: stalls.join('\n') || null }, stalls.slice(0, MOST_STALLS).join(' · '));
} };

function columnsOf(instructions) {
  const names = [...new Set(instructions.flatMap((one) => Object.keys(one.counts)))];
  return [...fixed, ...names.filter((name) => !STALL.test(name)).map((name) => countColumn(name, instructions)),
    ...(names.some((name) => STALL.test(name)) ? [stallColumn] : [])];
}

export function drawInstructions(instructions) {
  find('instructions').hidden = instructions.length === 0;
  find('instruction-table').replaceChildren(fold({ class: 'panel block' },
    [make('strong', {}, `${show.count(instructions.length)} instructions`)],
    () => [tableOf('Instructions', columnsOf(instructions), instructions)]));
}
