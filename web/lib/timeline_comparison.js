// Compares the traces of two runs: their time classes, and the operations and idle times that are new, gone, longer or shorter.
import { get } from '/lib/api.js';
import { byId, createElement, headOf, numberCell } from '/lib/dom.js';
import { classNames } from '/lib/time_class_names.js';
import * as format from '/lib/format.js';

const MAX_ROWS = 24;
const timeColumns = [['A', 'n'], ['B', 'n'], ['Difference', 'n']];

const time = (ns) => format.us(ns / 1000);
const signedTime = format.signed(time);
const timeCells = (item) => [time(item.a_ns), time(item.b_ns), signedTime(item.difference_ns)].map((text) => numberCell(text));

const table = (columns, rows) => [headOf(columns), createElement('tbody', {}, ...rows)];
const nameRow = (name, item, ...cells) =>
  createElement('tr', {}, createElement('th', { scope: 'row', title: name }, createElement('span', {}, name)), ...timeCells(item),
    ...cells);

function drawClasses({ classes, window }) {
  const rows = classes.filter((item) => item.a_ns > 0 || item.b_ns > 0).map((item) => nameRow(classNames[item.class], item));
  byId('time-class-differences').replaceChildren(...table([['Class'], ...timeColumns], [...rows, nameRow('Window', window)]));
}

const differenceRow = (item) => nameRow(item.idle ? `${classNames[item.idle]}, before ${item.name}` : item.name, item,
  createElement('td', {}, createElement('span', { class: 'tag' }, item.change)));

function drawRows({ rows, rest }) {
  const listed = rows.filter((item) => item.change !== 'same').slice(0, MAX_ROWS);
  const sumOf = (side) => rest[side] + rows.filter((item) => !listed.includes(item)).reduce((sum, item) => sum + item[side], 0);
  const others = { a_ns: sumOf('a_ns'), b_ns: sumOf('b_ns'), difference_ns: sumOf('difference_ns') };
  const otherRows = others.a_ns > 0 || others.b_ns > 0 ? [nameRow('all others', others, createElement('td'))] : [];
  byId('time-differences').replaceChildren(...table([['Operation or idle time'], ...timeColumns, ['Change']],
    [...listed.map(differenceRow), ...otherRows]));
}

const describe = ({ a, b }) => [['A', a], ['B', b]].filter(([, run]) => run.incomplete_reason)
  .map(([name, run]) => `Causes of idle time of ${name} are unknown: ${run.incomplete_reason}.`).join(' ');

/** Draws the comparison of the traces of two runs, if both have one. */
export async function drawTimelineComparison(a, b) {
  const comparison = await get(`/compare/timeline?a=${a}&b=${b}`);
  byId('timelines').hidden = comparison.rows === null;
  if (comparison.rows === null) return;
  byId('timelines-note').textContent = `The traced part of each run. A time that differs by less than 1 % is the same. \
${describe(comparison)}`;
  drawClasses(comparison);
  drawRows(comparison);
}
