// A kernel's SASS with counts and samples of each instruction, beside the source of posted code with sums for each line.
import { bar, byId, createElement, numberCell } from '/lib/dom.js';
import { collapsibleBlock, tableOf } from '/lib/sections.js';
import { codeTable, lineOf } from '/lib/source.js';
import * as format from '/lib/format.js';

// A metric of PC sampling with its stall reason. A name without "stalled_" is accepted too.
const STALL = /^smsp__pcsamp_warps_issue_(?:stalled_)?(.*)$/;
const SAMPLES = 'smsp__pcsamp_sample_count';
const EXECUTED = 'inst_executed';
const MAX_STALLS = 3;

const hex = (offset) => `0x${offset.toString(16).padStart(4, '0')}`;
const sourceText = (instruction) => (instruction.file === null ? '' : `${instruction.file.split('/').pop()}:${instruction.line}`);
const shortName = (name) => name.replace(/^(smsp__sass_|sass__|smsp__pcsamp_|smsp__)/, '');

const fixedColumns = [
  { label: 'Offset', cell: (instruction) => createElement('th', { scope: 'row', class: 'mono' }, hex(instruction.offset)) },
  { label: 'Instruction',
    cell: (instruction) => createElement('td', { class: 'mono' }, instruction.sass ?? instruction.opcode ?? '') },
  { label: 'Source',
    cell: (instruction) => createElement('td', { class: 'quiet', title: instruction.file }, sourceText(instruction)) },
];

/** A column of counts with bars that show the share of the kernel's largest. */
function countColumn(name, instructions) {
  const largest = instructions.reduce((largest, instruction) => Math.max(largest, instruction.counts[name] ?? 0), 0);
  return { label: shortName(name), number: true, cell: (instruction) => {
    const value = format.number(instruction.counts[name]);
    if (value === null) return numberCell(null, instruction.reason ?? 'not counted at this instruction');
    return createElement('td', { class: 'n', title: name }, createElement('span', { class: 'share', 'aria-hidden': 'true' },
      bar('', largest > 0 ? instruction.counts[name] / largest : 0)), value);
  } };
}

/** Returns the stall reasons of sampled warps, most frequent first. A sample without an issued warp counts also under
    REASON_not_issued, which is skipped here. */
function stallsOf(instructions) {
  const sums = new Map();
  for (const [name, count] of instructions.flatMap((instruction) => Object.entries(instruction.counts))) {
    const reason = name.endsWith('_not_issued') ? null : STALL.exec(name)?.[1].replaceAll('_', ' ');
    if (reason && count > 0) sums.set(reason, (sums.get(reason) ?? 0) + count);
  }
  return [...sums].sort(([, a], [, b]) => b - a).map(([reason, count]) => `${reason} ${format.number(count)}`);
}

/** A column with the most frequent stall reasons; the title has all. */
const stallColumn = { label: 'Stalls', cell: (instruction) => {
  const stalls = stallsOf([instruction]);
  return createElement('td', { class: 'quiet', title: stalls.join('\n') || null }, stalls.slice(0, MAX_STALLS).join(' · '));
} };

function columnsOf(instructions) {
  const names = [...new Set(instructions.flatMap((instruction) => Object.keys(instruction.counts)))];
  return [...fixedColumns, ...names.filter((name) => !STALL.test(name)).map((name) => countColumn(name, instructions)),
    ...(names.some((name) => STALL.test(name)) ? [stallColumn] : [])];
}

const instructionTable = (instructions, columns) => tableOf('Instructions', columns, instructions);

/* --- source and SASS -------------------------------------------------------------------------------------------------- */

/** Sums a count by line of the posted code. */
function sumsByLine(instructions, name) {
  const sums = new Map();
  for (const instruction of instructions.filter((instruction) => lineOf(instruction) !== null && instruction.counts[name] > 0)) {
    sums.set(lineOf(instruction), (sums.get(lineOf(instruction)) ?? 0) + instruction.counts[name]);
  }
  return sums;
}

const sourceColumns = (instructions) => [
  { label: 'Samples', title: SAMPLES, sums: sumsByLine(instructions, SAMPLES) },
  { label: 'Executed', title: EXECUTED, sums: sumsByLine(instructions, EXECUTED) },
].filter(({ sums }) => sums.size > 0);

/** Source and SASS side by side. Selecting a line shows only its instructions; selecting it again shows all. */
function sideBySide(instructions, code) {
  const columns = columnsOf(instructions); // bars relate to the whole kernel
  const tableHolder = createElement('div');
  const statusLine = createElement('p', { class: 'quiet', role: 'status' });
  const hasLines = instructions.some((instruction) => lineOf(instruction) !== null);
  const hint = hasLines ? 'select a line to see its instructions' : 'their lines are unknown: compile with -lineinfo';
  let selectedLine = null;
  const lines = codeTable(code, { columns: sourceColumns(instructions), selectLine });
  function selectLine(line) {
    selectedLine = line === selectedLine ? null : line;
    const visible = selectedLine === null ? instructions
      : instructions.filter((instruction) => lineOf(instruction) === selectedLine);
    for (const row of lines.querySelectorAll('[data-line]')) {
      row.setAttribute('aria-selected', String(Number(row.dataset.line) === selectedLine));
    }
    statusLine.textContent = selectedLine === null ? `${format.count(visible.length)} instructions; ${hint}`
      : [`${format.count(visible.length)} instructions of line ${selectedLine}`, ...stallsOf(visible)].join(' · ');
    tableHolder.replaceChildren(instructionTable(visible, columns));
  }
  selectLine(null);
  return [statusLine, createElement('div', { class: 'halves' }, lines, tableHolder)];
}

/** code: the source text, or null. */
export function drawInstructions(instructions, code) {
  byId('instructions').hidden = instructions.length === 0;
  byId('instructions-title').textContent = code === null ? 'Instructions' : 'Source';
  const block = () =>
    collapsibleBlock({ class: 'panel block' }, [createElement('strong', {}, `${format.count(instructions.length)} instructions`)],
      () => [instructionTable(instructions, columnsOf(instructions))]);
  byId('instruction-table').replaceChildren(...(code === null ? [block()] : sideBySide(instructions, code)));
}
