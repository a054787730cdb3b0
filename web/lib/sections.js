// Sections of a report or of a comparison: blocks that open, their tables, and the findings that point to them.
import { make } from '/lib/dom.js';
import * as show from '/lib/format.js';

/** A block that opens; what it holds is made when it first does. draw answers its children. */
export function fold(attributes, heading, draw) {
  const block = make('details', attributes, make('summary', {}, ...heading));
  block.addEventListener('toggle', () => { if (block.open && block.childElementCount === 1) block.append(...draw()); });
  return block;
}

/** columns: [{label, number, cell(row)}], where a cell is a td or th. */
export function tableOf(label, columns, rows) {
  return make('div', { class: 'scroll rows', tabindex: 0, role: 'group', 'aria-label': label }, make('table', {},
    make('thead', {},
      make('tr', {}, ...columns.map((column) => make('th', { scope: 'col', class: column.number ? 'n' : null }, column.label)))),
    make('tbody', {}, ...rows.map((row) => make('tr', {}, ...columns.map((column) => column.cell(row)))))));
}

/** Name of a row; its metric's name, and the parts that its value is the sum of. */
export const nameColumn = { label: 'Metric', cell: (row) => make('th',
  { scope: 'row', title: row.metric || null, class: 'wrap' }, row.name,
  row.parts ? make('span', { class: 'parts quiet' },
    row.parts.map((part) => `${part.name} ${show.plain(part.value) ?? '—'}`).join(' · ')) : null) };

function named(table, columnsOf, overview) {
  const first = overview(table);
  const rows = fold({}, [first ? 'Every counter' : table.name, make('span', { class: 'quiet' }, ` ${table.rows.length}`)],
    () => [tableOf(table.name, columnsOf(table), table.rows)]);
  return first ? [make('h3', {}, table.name), first, rows] : [rows];
}

const tables = (section, columnsOf, overview) => section.tables.flatMap((table) =>
  (table.name === '' ? [tableOf(section.name, columnsOf(table), table.rows)] : named(table, columnsOf, overview)));

export const anchor = (section) => `section-${section}`;

/** columnsOf(table): as tableOf takes them; badge(section): a few words behind its name, or null; overview(table): what stands
 * above a table that opens, or null. */
export const sectionBlocks = (sections, columnsOf, badge, overview = () => null) =>
  sections.map((section) => fold({ class: 'panel block', id: anchor(section.id) },
  [make('strong', {}, section.name), badge(section)], () => tables(section, columnsOf, overview)));

/** Show the section that the address points to. */
export function openTarget() {
  const block = document.getElementById(location.hash.slice(1));
  if (!(block instanceof HTMLDetailsElement)) return;
  block.open = true;
  block.scrollIntoView();
}
addEventListener('hashchange', openTarget);

const kinds = { info: 'Note', warning: 'Warning', optimization: 'Optimization' };

/** One finding; change: how it differs between two runs, if it is of a comparison. */
export function findingItem(finding, change = null) {
  const estimate = show.quantity(finding.speedup_pct, '%');
  const local = finding.scope === 'local';
  return make('li', { 'data-kind': finding.kind, 'data-change': change },
    make('p', { class: 'finding-head' }, make('span', { class: 'tag' }, change ?? kinds[finding.kind]),
      make('strong', {}, finding.title),
      estimate === null ? null : make('span',
        { class: 'speedup', title: local ? 'Of a part of the kernel’s time' : 'Of the kernel’s time, at most' },
        `${local ? 'local' : 'up to'} ${estimate}`)),
    make('p', {}, finding.message),
    make('a', { href: `#${anchor(finding.section)}`,
      click: (event) => { if (event.currentTarget.hash === location.hash) openTarget(); } }, finding.section));
}
