// Sections of a report or a comparison: collapsible blocks with tables, and findings that link to them.
import { createElement } from '/lib/dom.js';
import * as format from '/lib/format.js';

/** Creates a collapsible block. draw returns its children; it is called when the block first opens. */
export function collapsibleBlock(attributes, heading, draw) {
  const block = createElement('details', attributes, createElement('summary', {}, ...heading));
  block.addEventListener('toggle', () => { if (block.open && block.childElementCount === 1) block.append(...draw()); });
  return block;
}

/** Creates a table. columns: [{label, number, cell(row)}]; cell returns a td or th. */
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

/** The column with the names of rows. A cell's title is the metric. Below the name, the cell lists the parts of a sum, and gives
 * the reason if the number can differ from ncu's. */
export const nameColumn = { label: 'Metric', cell: (row) => createElement('th',
  { scope: 'row', title: row.metric || null, class: 'wrap' }, row.name,
  row.parts ? createElement('span', { class: 'parts quiet' },
    row.parts.map((part) => `${part.name} ${format.number(part.value) ?? '—'}`).join(' · ')) : null,
  row.note ? createElement('span', { class: 'parts quiet' }, row.note) : null) };

function tableWithHeading(table, columnsOf, overview) {
  const overviewTable = overview(table);
  const rows = collapsibleBlock(
    {},
    [overviewTable ? 'Every counter' : table.name, createElement('span', { class: 'quiet' }, ` ${table.rows.length}`)],
    () => [tableOf(table.name, columnsOf(table), table.rows)],
  );
  return overviewTable ? [createElement('h3', {}, table.name), overviewTable, rows] : [rows];
}

const sectionTables = (section, columnsOf, overview) => section.tables.flatMap((table) =>
  (table.name === '' ? [tableOf(section.name, columnsOf(table), table.rows)] : tableWithHeading(table, columnsOf, overview)));

export const anchorId = (section) => `section-${section}`;

/** Creates a collapsible block for each section. columnsOf(table): columns for tableOf; badge(section): element after the
 * section's name, or null; overview(table): element above a collapsible table, or null. */
export const sectionBlocks = (sections, columnsOf, badge, overview = () => null) =>
  sections.map((section) => collapsibleBlock({ class: 'panel block', id: anchorId(section.id) },
  [createElement('strong', {}, section.name), badge(section)], () => sectionTables(section, columnsOf, overview)));

/** Opens the section that the URL's fragment names. */
export function openTarget() {
  const block = document.getElementById(location.hash.slice(1));
  if (!(block instanceof HTMLDetailsElement)) return;
  block.open = true;
  block.scrollIntoView();
}
addEventListener('hashchange', openTarget);

const kindNames = { info: 'Note', warning: 'Warning', optimization: 'Optimization' };

/** Names the time of which a finding's global estimate is a share. */
const wholeName = ({ section }) => (section === 'Timeline' ? 'window' : 'kernel’s time');

/** Returns the estimate of a finding as text; null if it has none. */
function estimateOf({ speedup_pct: estimate, scope }) {
  if (estimate === null) return null;
  return scope === 'local' ? `Local estimate ${estimate.toFixed(0)} %` : `Est. time saved ≤ ${estimate.toFixed(0)} %`;
}

/** Returns a section's name from its id: "MemoryWorkloadAnalysis_Tables" is "Memory Workload Analysis Tables". */
const sectionName = (id) => id.replaceAll('_', ' ').replace(/([a-z])([A-Z])/g, '$1 $2');

/** Creates a link to the section of a finding or of one of its parts. timeline: the address of the timeline. */
const sectionLink = ({ section }, timeline) => createElement(
  'a',
  {
    href: section === 'Timeline' ? timeline : `#${anchorId(section)}`,
    click: (event) => {
      if (event.currentTarget.hash === location.hash) openTarget();
    },
  },
  sectionName(section),
);

/** Creates a paragraph with links to the source lines of a finding; null if it has none. */
function linesOf({ lines }) {
  const link = ({ file, line }) => createElement('a',
    { href: '#instructions', class: 'line', 'data-file': file, 'data-line': line }, `${file}:${line}`);
  return lines.length === 0 ? null : createElement('p', { class: 'finding-lines' }, ...lines.map(link));
}

/** Groups the digits of the large numbers in a message. */
const readable = (message) => message.replace(/(?<![\w.])\d{5,}(?!\w)/g, (digits) => format.count(Number(digits)));

/** Creates the item of a finding's part, which is what another rule found about the same cause. */
const partItem = (part, timeline) => createElement('li', {}, createElement('strong', {}, part.title),
  createElement('p', {}, readable(part.message)), linesOf(part), sectionLink(part, timeline));

/** Creates the list item of a finding. change: new, resolved, unchanged or unknown, in a comparison of two runs; timeline: the
 * address of the timeline that findings of the section Timeline are about. */
export function findingItem(finding, { change = null, timeline = '#timeline' } = {}) {
  const estimate = estimateOf(finding);
  const isLocal = finding.scope === 'local';
  return createElement(
    'li',
    { 'data-kind': finding.kind, 'data-change': change },
    createElement(
      'p',
      { class: 'finding-head' },
      createElement('span', { class: 'tag' }, change ?? kindNames[finding.kind]),
      createElement('strong', {}, finding.title),
      estimate === null
        ? null
        : createElement(
            'span',
            {
              class: 'speedup',
              title: isLocal ? 'Share of a part of the kernel’s time' : `Upper bound, as a share of the ${wholeName(finding)}`,
            },
            estimate,
          ),
    ),
    createElement('p', {}, readable(finding.message)),
    linesOf(finding),
    sectionLink(finding, timeline),
    finding.parts.length === 0 ? null
      : createElement('ul', { class: 'finding-parts' }, ...finding.parts.map((part) => partItem(part, timeline))),
  );
}
