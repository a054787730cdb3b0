// Tables with a column for each run of a job.
import { createElement } from '/lib/dom.js';

const legendKey = (index) => createElement('span', { class: `key run-${index % 4}`, 'aria-hidden': 'true' });

/** Returns a name with line-break opportunities after its underscores, as nodes. */
export const breakable = (name) => name.split(/(?<=_)/).flatMap((part) => [part, createElement('wbr')]);

/** Fills a table with a column for each run. */
export function fillRunTable(table, rowHeading, runs, rows) {
  table.replaceChildren(
    createElement('thead', {}, createElement('tr', {}, createElement('th', { scope: 'col' }, rowHeading),
      ...runs.map((run, index) => createElement('th', { scope: 'col' }, legendKey(index), run.variant)))),
    createElement('tbody', {}, ...rows));
}
