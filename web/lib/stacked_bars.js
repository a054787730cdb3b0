// Stacked bars, one for each run on a common scale, and a table of the parts' values.
import { bar, createElement, headOf, numberCell } from '/lib/dom.js';
import * as format from '/lib/format.js';

export const PART_COLOURS = 7;

/** Returns a map from the name of a part to the CSS class of its colour. The part that sums up the rest has its own class. */
function colourClasses(runs) {
  const parts = runs.flatMap((run) => run.parts), rest = parts.find(({ isRest }) => isRest)?.name;
  const names = [...new Set(parts.map(({ name }) => name))].filter((name) => name !== rest);
  const classes = new Map(names.map((name, index) => [name, `part-${index % PART_COLOURS}`]));
  return rest === undefined ? classes : classes.set(rest, 'part-rest');
}

const sumOf = (parts) => parts.reduce((sum, { value }) => sum + value, 0);

function stack({ name, parts }, classes, scale, formatValue) {
  const segment = ({ name: part, value }) => {
    const element = bar(`part ${classes.get(part)}`, value / scale);
    element.title = [part, formatValue?.(value), format.percent(value / sumOf(parts))].filter(Boolean).join(', ');
    return element;
  };
  return createElement('div', { class: 'stack' }, createElement('span', { class: 'of' }, name),
    createElement('span', { class: 'stack-track' }, ...parts.filter(({ value }) => value > 0).map(segment)),
    formatValue ? createElement('span', { class: 'bar-value' }, formatValue(sumOf(parts))) : null);
}

/** Returns [bars, table]. runs: [{name, parts: [{name, value, isRest}]}], values at least 0, at most PART_COLOURS names besides
 * that of the rest; label: heading of the parts' column; formatValue: null if only the shares are meaningful. */
export function stackedBars(runs, label, formatValue = null) {
  const classes = colourClasses(runs);
  const scale = Math.max(...runs.map(({ parts }) => sumOf(parts)));
  const cells = (part) => runs.flatMap(({ parts }) => {
    const partOfRun = parts.find(({ name }) => name === part);
    const cell = (text) => numberCell(partOfRun ? text() : null, 'this run has no such part');
    return [...(formatValue ? [cell(() => formatValue(partOfRun.value))] : []),
      cell(() => format.percent(partOfRun.value / sumOf(parts)))];
  });
  const shareHead = formatValue ? [['Share', 'n']] : [];
  const table = createElement('table', {}, headOf([[label], ...runs.flatMap(({ name }) => [[name, 'n'], ...shareHead])]),
    createElement('tbody', {}, ...[...classes].map(([part, colour]) => createElement('tr', {},
      createElement('th', { scope: 'row', class: 'name', title: part },
        createElement('span', { class: `key ${colour}`, 'aria-hidden': 'true' }), part), ...cells(part)))));
  return [createElement('div', { class: 'stacks', 'aria-hidden': 'true' },
    ...runs.map((run) => stack(run, classes, scale, formatValue))),
  createElement('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': label }, table)];
}
