// Bars of a kernel: cycles between two instructions of a warp by stall reason, and executed instructions by opcode.
import { bar, byId, createElement } from '/lib/dom.js';
import * as format from '/lib/format.js';

const MAX_BARS = 12;
const STALL = /^smsp__average_warps_issue_stalled_(.*)_per_issue_active\.ratio$/;
const EXECUTED_METRIC_NAMES = ['inst_executed', 'smsp__sass_inst_executed', 'sass__inst_executed'];

// The cause of each stall reason, by the metric's name.
const stallMeanings = {
  barrier: 'CTA barrier', branch_resolving: 'branch target', dispatch_stall: 'dispatch', drain: 'stores before exit',
  gmma: 'wgmma', imc_miss: 'constant cache miss', lg_throttle: 'queue of local and global accesses',
  long_scoreboard: 'L1TEX: global, local, texture', math_pipe_throttle: 'busy math pipe', membar: 'memory fence',
  mio_throttle: 'queue of memory input/output', misc: 'other', no_instruction: 'instruction fetch',
  not_selected: 'eligible, another warp issued', selected: 'issued', short_scoreboard: 'MIO: shared memory, MUFU',
  sleeping: 'nanosleep', tex_throttle: 'queue of TEX', wait: 'fixed-latency dependency', warpgroup_arrive: 'warpgroup arrive',
};

const words = (name) => name.replaceAll('_', ' ');

/** Returns the stall reasons above zero, the largest first: [{name, note, value}]. */
function stallsOf(kernel) {
  const rows = (kernel.sections ?? []).filter(({ id }) => id === 'WarpStateStats')
    .flatMap((section) => section.tables.flatMap((table) => table.rows));
  return rows.map((row) => ({ reason: STALL.exec(row.metric ?? '')?.[1], value: row.value }))
    .filter(({ reason, value }) => reason !== undefined && value > 0)
    .map(({ reason, value }) => ({ name: words(reason), note: stallMeanings[reason] ?? '', value }))
    .sort((a, b) => b.value - a.value);
}

const executedOf = ({ counts }) => EXECUTED_METRIC_NAMES.map((name) => counts[name]).find((value) => value > 0) ?? 0;

/** Returns executed instructions by opcode without modifiers, the largest first. */
function opcodesOf({ instructions }) {
  const sums = new Map();
  for (const instruction of instructions) {
    const [opcode] = (instruction.opcode ?? '').split('.');
    if (opcode) sums.set(opcode, (sums.get(opcode) ?? 0) + executedOf(instruction));
  }
  return [...sums].filter(([, value]) => value > 0).map(([name, value]) => ({ name, note: '', value }))
    .sort((a, b) => b.value - a.value);
}

function barsOf(items, formatValue) {
  const [total, largest] = [items.reduce((sum, { value }) => sum + value, 0), items[0].value];
  const row = ({ name, note, value }) => createElement('li', {},
    createElement('span', { class: 'bar-name' }, name, note ? createElement('span', { class: 'quiet' }, note) : null),
    createElement('span', { class: 'bar-track', 'aria-hidden': 'true' }, bar('', value / largest)),
    createElement('span', { class: 'bar-value' }, formatValue(value)),
    createElement('span', { class: 'bar-value quiet' }, format.percent(value / total)));
  const rest = items.length > MAX_BARS + 1 ? items.slice(MAX_BARS) : [];
  const others = rest.length === 0 ? [] : [{ name: `${rest.length} others`, note: '',
    value: rest.reduce((sum, { value }) => sum + value, 0) }];
  return createElement('ol', { class: 'bar-list' }, ...[...items.slice(0, items.length - rest.length), ...others].map(row));
}

const figure = (title, items, formatValue) => (items.length === 0 ? null
  : createElement('figure', { class: 'panel' }, createElement('figcaption', {}, title), barsOf(items, formatValue)));

export function drawKernelBars(kernel) {
  const figures = [
    figure('Warp states: cycles between two issued instructions of a warp', stallsOf(kernel),
      (value) => format.quantity(value, 'cycle')),
    figure('Executed warp instructions by opcode', opcodesOf(kernel), format.count),
  ].filter(Boolean);
  byId('mix').hidden = figures.length === 0;
  byId('mix-charts').replaceChildren(...figures);
}
