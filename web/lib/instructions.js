// A kernel's SASS with counts and samples of each instruction, beside the source of posted code with sums for each line.
import { bar, byId, createElement, numberCell } from '/lib/dom.js';
import { fold, tableOf } from '/lib/sections.js';
import { codeTable, lineOf } from '/lib/source.js';
import * as format from '/lib/format.js';

const STALL = /^smsp__pcsamp_warps_issue_(?:stalled_)?(.*)$/;
const SAMPLES = 'smsp__pcsamp_sample_count';
const EXECUTED = 'inst_executed';
const MAX_STALLS = 3;

const hex = (offset) => `0x${offset.toString(16).padStart(4, '0')}`;
const sourceOf = (one) => (one.file === null ? '' : `${one.file.split('/').pop()}:${one.line}`);
const shortName = (name) => name.replace(/^(smsp__sass_|sass__|smsp__pcsamp_|smsp__)/, '');

const fixed = [
  { label: 'Offset', cell: (one) => createElement('th', { scope: 'row', class: 'mono' }, hex(one.offset)) },
  { label: 'Instruction', cell: (one) => createElement('td', { class: 'mono' }, one.sass ?? one.opcode ?? '') },
  { label: 'Source', cell: (one) => createElement('td', { class: 'quiet', title: one.file }, sourceOf(one)) },
];

/** A column of counts with bars that show the share of the kernel's largest. */
function countColumn(name, instructions) {
  const largest = instructions.reduce((most, one) => Math.max(most, one.counts[name] ?? 0), 0);
  return { label: shortName(name), number: true, cell: (one) => {
    const value = format.plain(one.counts[name]);
    if (value === null) return numberCell(null, one.reason ?? 'not counted at this instruction');
    return createElement('td', { class: 'n', title: name }, createElement('span', { class: 'share', 'aria-hidden': 'true' },
      bar('', largest > 0 ? one.counts[name] / largest : 0)), value);
  } };
}

/** Stall reasons of sampled warps, most frequent first. */
function stallsOf(instructions) {
  const sums = new Map();
  for (const [name, count] of instructions.flatMap((one) => Object.entries(one.counts))) {
    const reason = name.endsWith('_not_issued') ? null : STALL.exec(name)?.[1].replaceAll('_', ' ');
    if (reason && count > 0) sums.set(reason, (sums.get(reason) ?? 0) + count);
  }
  return [...sums].sort(([, a], [, b]) => b - a).map(([reason, count]) => `${reason} ${format.plain(count)}`);
}

/** A column with the most frequent stall reasons; the title has all. */
const stallColumn = { label: 'Stalls', cell: (one) => {
  const stalls = stallsOf([one]);
  return createElement('td', { class: 'quiet', title: stalls.join('\n') || null }, stalls.slice(0, MAX_STALLS).join(' · '));
} };

function columnsOf(instructions) {
  const names = [...new Set(instructions.flatMap((one) => Object.keys(one.counts)))];
  return [...fixed, ...names.filter((name) => !STALL.test(name)).map((name) => countColumn(name, instructions)),
    ...(names.some((name) => STALL.test(name)) ? [stallColumn] : [])];
}

const listOf = (instructions, columns) => tableOf('Instructions', columns, instructions);

/* --- beside the source ----------------------------------------------------------------------------------------------- */

/** Sums a count by line of the posted code. */
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

/** Source and SASS side by side. Selecting a line shows only its instructions; selecting it again shows all. */
function halves(instructions, code) {
  const columns = columnsOf(instructions); // bars relate to the whole kernel
  const list = createElement('div');
  const status = createElement('p', { class: 'quiet', role: 'status' });
  const joined = instructions.some((one) => lineOf(one) !== null);
  const hint = joined ? 'select a line to see its instructions' : 'their lines are unknown: compile with -lineinfo';
  let picked = null;
  const pick = (line) => {
    picked = line === picked ? null : line;
    const shown = picked === null ? instructions : instructions.filter((one) => lineOf(one) === picked);
    for (const row of text.querySelectorAll('[data-line]')) {
      row.setAttribute('aria-selected', String(Number(row.dataset.line) === picked));
    }
    status.textContent = picked === null ? `${format.count(shown.length)} instructions; ${hint}`
      : [`${format.count(shown.length)} instructions of line ${picked}`, ...stallsOf(shown)].join(' · ');
    list.replaceChildren(listOf(shown, columns));
  };
  const text = codeTable(code, { columns: sourceColumns(instructions), pick });
  pick(null);
  return [status, createElement('div', { class: 'halves' }, text, list)];
}

/** code: the source text, or null. */
export function drawInstructions(instructions, code) {
  byId('instructions').hidden = instructions.length === 0;
  byId('instructions-title').textContent = code === null ? 'Instructions' : 'Source';
  const block = () =>
    fold({ class: 'panel block' }, [createElement('strong', {}, `${format.count(instructions.length)} instructions`)], () => [
      listOf(instructions, columnsOf(instructions)),
    ]);
  byId('instruction-table').replaceChildren(...(code === null ? [block()] : halves(instructions, code)));
}
