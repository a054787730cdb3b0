// A kernel's SASS with counts and samples of each instruction, beside the source of posted code with sums for each line.
import { bar, byId, createElement, numberCell } from '/lib/dom.js';
import { LongRows } from '/lib/long_rows.js';
import { collapsibleBlock } from '/lib/sections.js';
import { nextSorting, sortRows, sortableHead } from '/lib/sortable.js';
import { codeTable, CODE_FILE, lineOf } from '/lib/source.js';
import * as format from '/lib/format.js';

// Matches a metric of PC sampling and captures its stall reason. "stalled_" is optional.
const STALL = /^smsp__pcsamp_warps_issue_(?:stalled_)?(.*)$/;
const SAMPLES = 'smsp__pcsamp_sample_count';
export const DROPPED_SAMPLES = 'smsp__pcsamp_dropped_samples';
const EXECUTED = 'inst_executed';
const MAX_STALLS = 3;

const hex = (offset) => `0x${offset.toString(16).padStart(4, '0')}`;
const sourceText = (instruction) => (instruction.file === null ? '' : `${instruction.file.split('/').pop()}:${instruction.line}`);
/* Nsight Compute's words for the counts of its source page. */
const COUNT_LABELS = { inst_executed: 'Executed', thread_inst_executed: 'Threads executed',
  thread_inst_executed_true: 'Threads executed, predicated on' };
const countLabel = (name) => COUNT_LABELS[name]
  ?? name.replace(/^(smsp__sass_|sass__|smsp__pcsamp_|smsp__)/, '').replaceAll('_', ' ');

const isStall = (name) => STALL.test(name) && !name.endsWith('_not_issued');

/** Returns the number of warp samples at an instruction, or the sum over stall reasons if only these were stored. */
const samplesOf = ({ counts }) => counts[SAMPLES] ?? Object.entries(counts).filter(([name]) => isStall(name))
  .reduce((sum, [, count]) => sum + count, 0);

/** Colours an element by its share of the largest number of samples. */
function withHeat(element, samples, largest) {
  if (samples > 0 && largest > 0) element.style.setProperty('--heat', (samples / largest).toFixed(3));
  return element;
}

const largestSamples = (instructions) => instructions.reduce((largest, one) => Math.max(largest, samplesOf(one)), 0);

const fixedColumns = (largest) => [
  { label: 'Offset', value: (instruction) => instruction.offset, number: true,
    cell: (instruction) => withHeat(createElement('th', { scope: 'row', class: 'mono heat' }, hex(instruction.offset)),
      samplesOf(instruction), largest) },
  { label: 'Instruction', value: (instruction) => instruction.sass ?? instruction.opcode ?? '',
    cell: (instruction) => createElement('td', { class: 'mono' }, instruction.sass ?? instruction.opcode ?? '') },
];
const sourceColumn = { label: 'Source', value: sourceText,
  cell: (instruction) => createElement('td', { class: 'quiet', title: instruction.file }, sourceText(instruction)) };

/** Returns a column of counts, with bars that show each count as a share of the kernel's largest. */
function countColumn(name, instructions) {
  const largest = instructions.reduce((largest, instruction) => Math.max(largest, instruction.counts[name] ?? 0), 0);
  return { label: countLabel(name), title: name, number: true, value: ({ counts }) => counts[name], cell: (instruction) => {
    const value = format.number(instruction.counts[name]);
    if (value === null) return numberCell(null, instruction.reason ?? 'not counted at this instruction');
    return createElement('td', { class: 'n', title: name }, createElement('span', { class: 'share', 'aria-hidden': 'true' },
      bar('', largest > 0 ? instruction.counts[name] / largest : 0)), value);
  } };
}

/** Returns the stall reasons of sampled warps, most frequent first. Skips REASON_not_issued, which counts the samples of REASON
 * in which the scheduler issued no warp. */
function stallsOf(instructions) {
  const sums = new Map();
  for (const [name, count] of instructions.flatMap((instruction) => Object.entries(instruction.counts))) {
    const reason = name.endsWith('_not_issued') ? null : STALL.exec(name)?.[1].replaceAll('_', ' ');
    if (reason && count > 0) sums.set(reason, (sums.get(reason) ?? 0) + count);
  }
  return [...sums].sort(([, a], [, b]) => b - a).map(([reason, count]) => `${reason} ${format.number(count)}`);
}

const samplesColumn = { label: 'Samples', title: SAMPLES, number: true, value: samplesOf, cell: (instruction) =>
  createElement('td', { class: 'n' }, samplesOf(instruction) > 0 ? format.count(samplesOf(instruction)) : '') };

/** The column with the most frequent stall reasons; a cell's title has all of them. */
const stallColumn = { label: 'Stalls', number: true, isText: true, value: samplesOf, cell: (instruction) => {
  const stalls = stallsOf([instruction]);
  return createElement('td', { class: 'quiet stalls', title: stalls.join('\n') || null },
    stalls.slice(0, MAX_STALLS).join(' · '));
} };

function columnsOf(instructions) {
  const names = [...new Set(instructions.flatMap((instruction) => Object.keys(instruction.counts)))];
  return [...fixedColumns(largestSamples(instructions)),
    ...(names.some((name) => STALL.test(name)) ? [samplesColumn, stallColumn] : []),
    ...(instructions.some(({ file }) => file !== null) ? [sourceColumn] : []),
    ...names.filter((name) => !STALL.test(name) && name !== SAMPLES).map((name) => countColumn(name, instructions))];
}

let sorting = { column: 0, down: false };

/** Creates a table of instructions that is sortable by every column. */
function instructionTable(instructions, columns) {
  const table = createElement('table');
  const holder = createElement('div', { class: 'scroll rows instructions', tabindex: 0, role: 'group',
    'aria-label': 'Instructions' }, table);
  const rowOf = (instruction) => createElement('tr', {}, ...columns.map(({ cell }) => cell(instruction)));
  const rows = new LongRows(holder, columns, rowOf);
  function draw(focused = null) {
    table.replaceChildren(sortableHead(columns, sorting, sortBy), rows.body);
    rows.show(sortRows(columns, instructions, sorting));
    if (focused !== null) table.querySelectorAll('th button')[focused].focus();
  }
  function sortBy(index) {
    sorting = nextSorting(columns, sorting, index);
    draw(index);
  }
  draw();
  return holder;
}

/* --- source and SASS -------------------------------------------------------------------------------------------------- */

/** Sums a number of each instruction by line of the posted code. */
function sumsByLine(instructions, numberOf) {
  const sums = new Map();
  for (const instruction of instructions.filter((one) => lineOf(one) !== null && numberOf(one) > 0)) {
    sums.set(lineOf(instruction), (sums.get(lineOf(instruction)) ?? 0) + numberOf(instruction));
  }
  return sums;
}

const sourceColumns = (instructions) => [
  { label: 'Samples', title: SAMPLES, sums: sumsByLine(instructions, samplesOf), isHeat: true },
  { label: 'Executed', title: EXECUTED, sums: sumsByLine(instructions, ({ counts }) => counts[EXECUTED]) },
].filter(({ sums }) => sums.size > 0);

const baseName = (file) => file?.split('/').pop();
const isAt = ({ file, line }) => (instruction) => baseName(instruction.file) === baseName(file) && instruction.line === line;

let selectSourceLine = () => {}; // selects a source line in the table of the drawn kernel

/** Shows the instructions of a source line, such as one that a finding names, and scrolls to them. sourceLine: {file, line}. */
export function showLine(sourceLine) {
  for (const block of byId('instruction-table').querySelectorAll('details')) block.open = true;
  selectSourceLine(sourceLine, true);
}

/** Creates a table of instructions with a status line. If the user selects a source line, the table shows only its instructions;
 * if the user selects it again, all. If the user enters a text, the table shows only the instructions that contain it, because
 * the browser's search does not find rows out of view (lib/long_rows.js). lines: the table of the source, or null; hint: text
 * after the status line. */
function selectableTable(instructions, lines, hint) {
  const columns = columnsOf(instructions); // computed from all instructions: bars show shares of the whole kernel
  const holder = createElement('div');
  const status = createElement('p', { class: 'quiet', role: 'status' });
  const showAll = createElement('button', { type: 'button', class: 'plain small', click: () => select(null) },
    'Show all instructions');
  const find = createElement('input', { type: 'search', placeholder: 'instruction', 'aria-label': 'Find instructions',
    input: () => draw() });
  let selected = null;
  function select(sourceLine, mustScroll = false) {
    selected = sourceLine && selected && !mustScroll && isAt(sourceLine)(selected) ? null : sourceLine;
    if (mustScroll) find.value = '';
    draw();
    if (mustScroll) (lines?.querySelector('[aria-selected="true"]') ?? status).scrollIntoView({ block: 'center' });
  }
  function draw() {
    const text = find.value.toLowerCase();
    const visible = instructions.filter((instruction) => (selected === null || isAt(selected)(instruction))
      && (instruction.sass ?? instruction.opcode ?? '').toLowerCase().includes(text));
    for (const row of lines?.querySelectorAll('[data-line]') ?? []) {
      row.setAttribute('aria-selected', String(selected !== null && lineOf(selected) === Number(row.dataset.line)));
    }
    const name = selected && (lines && lineOf(selected) !== null ? `line ${selected.line}`
      : `${baseName(selected.file)}:${selected.line}`);
    const count = `${format.count(visible.length)} instruction${visible.length === 1 ? '' : 's'}`;
    status.textContent = selected === null ? `${count}${hint}`
      : [`${count} of ${name}`, ...stallsOf(visible)].join(' · ');
    showAll.hidden = selected === null;
    holder.replaceChildren(instructionTable(visible, columns));
  }
  select(null);
  selectSourceLine = select;
  return { holder, status: createElement('div', { class: 'status-line' }, status, showAll, find), select };
}

function sideBySide(instructions, code) {
  const hasLines = instructions.some((instruction) => lineOf(instruction) !== null);
  const hint = hasLines ? '; select a line to see its instructions' : '; their lines are unknown: compile with -lineinfo';
  let table = null;
  const lines = codeTable(code, { columns: sourceColumns(instructions),
    selectLine: (line) => table.select({ file: CODE_FILE, line }) });
  table = selectableTable(instructions, lines, hint);
  return [table.status, createElement('div', { class: 'halves' }, lines, table.holder)];
}

function instructionBlock(instructions) {
  const { holder, status } = selectableTable(instructions, null, '');
  return collapsibleBlock({ class: 'panel block' },
    [createElement('strong', {}, `${format.count(instructions.length)} instructions`)], () => [status, holder]);
}

/** Returns a note that samples were dropped, so that the samples of an instruction are not its share of the kernel's time. */
const droppedNotes = (dropped) => (dropped > 0 ? [createElement('p', { class: 'quiet' },
  `The hardware dropped ${format.count(dropped)} samples of this launch, and their instructions are unknown: the shares are \
those of the other samples.`)] : []);

/** Draws the section of instructions. code: the source text, or null; dropped: the number of dropped samples, or null if it is
 * not known. */
export function drawInstructions(instructions, code, dropped) {
  sorting = { column: 0, down: false };
  byId('instructions').hidden = instructions.length === 0;
  byId('instructions-title').textContent = code === null ? 'Instructions' : 'Source';
  byId('instruction-table').replaceChildren(...droppedNotes(dropped), ...(code === null ? [instructionBlock(instructions)]
    : sideBySide(instructions, code)));
}
