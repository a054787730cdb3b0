// Stacked bars, one for each run on a common scale, and a table of the parts' values.
import { bar, createElement, headOf, numberCell } from '/lib/dom.js';
import * as format from '/lib/format.js';

const PART_COLOURS = 8;
const key = (index) => createElement('span', { class: `key part-${index % PART_COLOURS}`, 'aria-hidden': 'true' });

const sumOf = (parts) => parts.reduce((sum, { value }) => sum + value, 0);

function stack({ name, parts }, names, scale, formatValue) {
  const segment = ({ name: part, value }) => {
    const element = bar(`part part-${names.indexOf(part) % PART_COLOURS}`, value / scale);
    element.title = [part, formatValue?.(value), format.percent(value / sumOf(parts))].filter(Boolean).join(', ');
    return element;
  };
  return createElement('div', { class: 'stack' }, createElement('span', { class: 'of' }, name),
    createElement('span', { class: 'stack-track' }, ...parts.filter(({ value }) => value > 0).map(segment)),
    formatValue ? createElement('span', { class: 'bar-value' }, formatValue(sumOf(parts))) : null);
}

/** Returns [bars, table]. runs: [{name, parts: [{name, value}]}], values at least 0; label: heading of the parts' column;
 * formatValue: null if only the shares are meaningful. */
export function stackedBars(runs, label, formatValue = null) {
  const names = [...new Set(runs.flatMap(({ parts }) => parts.map(({ name }) => name)))];
  const scale = Math.max(...runs.map(({ parts }) => sumOf(parts)));
  const cells = (part) => runs.flatMap(({ parts }) => {
    const partOfRun = parts.find(({ name }) => name === part);
    const cell = (text) => numberCell(partOfRun ? text() : null, 'this run has no such part');
    return [...(formatValue ? [cell(() => formatValue(partOfRun.value))] : []),
      cell(() => format.percent(partOfRun.value / sumOf(parts)))];
  });
  const shareHead = formatValue ? [['Share', 'n']] : [];
  const table = createElement('table', {}, headOf([[label], ...runs.flatMap(({ name }) => [[name, 'n'], ...shareHead])]),
    createElement('tbody', {}, ...names.map((part, index) => createElement('tr', {},
      createElement('th', { scope: 'row' }, key(index), part), ...cells(part)))));
  return [createElement('div', { class: 'stacks', 'aria-hidden': 'true' },
    ...runs.map((run) => stack(run, names, scale, formatValue))),
  createElement('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': label }, table)];
}
