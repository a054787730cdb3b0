// Sections of a report or a comparison: collapsible blocks with tables, and findings that link to them.
import { createElement } from '/lib/dom.js';
import * as format from '/lib/format.js';

/** A collapsible block. draw returns its children when it first opens. */
export function fold(attributes, heading, draw) {
  const block = createElement('details', attributes, createElement('summary', {}, ...heading));
  block.addEventListener('toggle', () => { if (block.open && block.childElementCount === 1) block.append(...draw()); });
  return block;
}

/** columns: [{label, number, cell(row)}]; cell returns a td or th. */
export function tableOf(label, columns, rows) {
  return createElement(
    'div',
    { class: 'scroll rows', tabindex: 0, role: 'group', 'aria-label': label },
    createElement(
      'table',
      {},
      createElement(
        'thead',
        {},
        createElement(
          'tr',
          {},
          ...columns.map((column) => createElement('th', { scope: 'col', class: column.number ? 'n' : null }, column.label)),
        ),
      ),
      createElement('tbody', {}, ...rows.map((row) => createElement('tr', {}, ...columns.map((column) => column.cell(row))))),
    ),
  );
}

/** The name of a row, with its metric as title, and the parts of its sum. */
export const nameColumn = { label: 'Metric', cell: (row) => createElement('th',
  { scope: 'row', title: row.metric || null, class: 'wrap' }, row.name,
  row.parts ? createElement('span', { class: 'parts quiet' },
    row.parts.map((part) => `${part.name} ${format.plain(part.value) ?? '—'}`).join(' · ')) : null) };

function named(table, columnsOf, overview) {
  const first = overview(table);
  const rows = fold(
    {},
    [first ? 'Every counter' : table.name, createElement('span', { class: 'quiet' }, ` ${table.rows.length}`)],
    () => [tableOf(table.name, columnsOf(table), table.rows)],
  );
  return first ? [createElement('h3', {}, table.name), first, rows] : [rows];
}

const tables = (section, columnsOf, overview) => section.tables.flatMap((table) =>
  (table.name === '' ? [tableOf(section.name, columnsOf(table), table.rows)] : named(table, columnsOf, overview)));

export const anchor = (section) => `section-${section}`;

/** columnsOf(table): columns for tableOf; badge(section): element behind the section's name, or null; overview(table): element
 * above a collapsible table, or null. */
export const sectionBlocks = (sections, columnsOf, badge, overview = () => null) =>
  sections.map((section) => fold({ class: 'panel block', id: anchor(section.id) },
  [createElement('strong', {}, section.name), badge(section)], () => tables(section, columnsOf, overview)));

/** Opens the section in the address. */
export function openTarget() {
  const block = document.getElementById(location.hash.slice(1));
  if (!(block instanceof HTMLDetailsElement)) return;
  block.open = true;
  block.scrollIntoView();
}
addEventListener('hashchange', openTarget);

const kinds = { info: 'Note', warning: 'Warning', optimization: 'Optimization' };

/** A finding. change: its difference between two runs, in a comparison. */
export function findingItem(finding, change = null) {
  const estimate = format.quantity(finding.speedup_pct, '%');
  const local = finding.scope === 'local';
  return createElement(
    'li',
    { 'data-kind': finding.kind, 'data-change': change },
    createElement(
      'p',
      { class: 'finding-head' },
      createElement('span', { class: 'tag' }, change ?? kinds[finding.kind]),
      createElement('strong', {}, finding.title),
      estimate === null
        ? null
        : createElement(
            'span',
            {
              class: 'speedup',
              title: local ? 'Share of a part of the kernel’s time' : 'Upper bound, as a share of the kernel’s time',
            },
            `${local ? 'local' : 'up to'} ${estimate}`,
          ),
    ),
    createElement('p', {}, finding.message),
    createElement(
      'a',
      {
        href: `#${anchor(finding.section)}`,
        click: (event) => {
          if (event.currentTarget.hash === location.hash) openTarget();
        },
      },
      finding.section,
    ),
  );
}
