// The machine code of a kernel with what was counted and sampled at each instruction; of posted code beside its text, where the
// same is summed by line.
import { bar, find, make, numberCell } from '/lib/dom.js';
import { fold, tableOf } from '/lib/sections.js';
import { codeTable, lineOf } from '/lib/source.js';
import * as show from '/lib/format.js';

const STALL = /^smsp__pcsamp_warps_issue_(?:stalled_)?(.*)$/;
const SAMPLES = 'smsp__pcsamp_sample_count';
const EXECUTED = 'inst_executed';
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

/** Why sampled warps stood at the instructions, most frequent first. */
function stallsOf(instructions) {
  const sums = new Map();
  for (const [name, count] of instructions.flatMap((one) => Object.entries(one.counts))) {
    const reason = name.endsWith('_not_issued') ? null : STALL.exec(name)?.[1].replaceAll('_', ' ');
    if (reason && count > 0) sums.set(reason, (sums.get(reason) ?? 0) + count);
  }
  return [...sums].sort(([, a], [, b]) => b - a).map(([reason, count]) => `${reason} ${show.plain(count)}`);
}

/** The most frequent reasons; all in the title. */
const stallColumn = { label: 'Stalls', cell: (one) => {
  const stalls = stallsOf([one]);
  return make('td', { class: 'quiet', title: stalls.join('\n') || null }, stalls.slice(0, MOST_STALLS).join(' · '));
} };

function columnsOf(instructions) {
  const names = [...new Set(instructions.flatMap((one) => Object.keys(one.counts)))];
  return [...fixed, ...names.filter((name) => !STALL.test(name)).map((name) => countColumn(name, instructions)),
    ...(names.some((name) => STALL.test(name)) ? [stallColumn] : [])];
}

const listOf = (instructions, columns) => tableOf('Instructions', columns, instructions);

/* --- beside the source ----------------------------------------------------------------------------------------------- */

/** What was counted, by line of the posted code. */
function sumsOf(instructions, name) {
  const sums = new Map();
  for (const one of instructions.filter((each) => lineOf(each) !== null && each.counts[name] > 0)) {
    sums.set(lineOf(one), (sums.get(lineOf(one)) ?? 0) + one.counts[name]);
  }
  return sums;
}

const sourceColumns = (instructions) => [
  { label: 'Samples', title: SAMPLES, sums: sumsOf(instructions, SAMPLES) },
  { label: 'Executed', title: EXECUTED, sums: sumsOf(instructions, EXECUTED) },
].filter(({ sums }) => sums.size > 0);

/** Text and machine code; a line that is picked shows its instructions alone, and all when it is picked again. */
function halves(instructions, code) {
  const columns = columnsOf(instructions); // bars are shares of the whole kernel's
  const list = make('div');
  const status = make('p', { class: 'quiet', role: 'status' });
  const joined = instructions.some((one) => lineOf(one) !== null);
  const hint = joined ? 'a line that is chosen shows its own' : 'of which lines is not known: the option -lineinfo tells it';
  let picked = null;
  const pick = (line) => {
    picked = line === picked ? null : line;
    const shown = picked === null ? instructions : instructions.filter((one) => lineOf(one) === picked);
    for (const row of text.querySelectorAll('[data-line]')) {
      row.setAttribute('aria-selected', String(Number(row.dataset.line) === picked));
    }
    status.textContent = picked === null ? `${show.count(shown.length)} instructions; ${hint}`
      : [`${show.count(shown.length)} instructions of line ${picked}`, ...stallsOf(shown)].join(' · ');
    list.replaceChildren(listOf(shown, columns));
  };
  const text = codeTable(code, { columns: sourceColumns(instructions), pick });
  pick(null);
  return [status, make('div', { class: 'halves' }, text, list)];
}

/** code: the text that they are of, null where that is not known. */
export function drawInstructions(instructions, code) {
  find('instructions').hidden = instructions.length === 0;
  find('instructions-title').textContent = code === null ? 'Instructions' : 'Source';
  const block = () => fold({ class: 'panel block' }, [make('strong', {}, `${show.count(instructions.length)} instructions`)],
    () => [listOf(instructions, columnsOf(instructions))]);
  find('instruction-table').replaceChildren(...(code === null ? [block()] : halves(instructions, code)));
}
