// The reports of two runs side by side, one pair of kernels at a time.
import { get } from '/lib/api.js';
import { find, make, numberCell } from '/lib/dom.js';
import { findingItem, nameColumn, openTarget, sectionBlocks } from '/lib/sections.js';
import * as show from '/lib/format.js';

const asked = new URLSearchParams(location.search);
const [a, b] = ['a', 'b'].map((side) => Number(asked.get(side)));
let pairs = [];

function drawProblem(title, message) {
  find('problem').hidden = false;
  find('problem').replaceChildren(make('strong', {}, title), make('p', {}, message));
}

/* --- head ----------------------------------------------------------------------------------------------------------- */

const sideFact = (name, side) => make('div', { class: 'panel' }, make('dt', {}, name), make('dd', {},
  make('a', { href: `/report.html?run=${side.run}` }, `${side.workload} ${side.variant}`),
  make('span', { class: 'quiet' }, ` run ${side.run} of `, make('a', { href: `/job.html?id=${side.job}` }, `job ${side.job}`),
    ` · ${side.device_facts?.name ?? side.device}${side.commit ? ` · commit ${side.commit.slice(0, 12)}` : ''}`)));

/** The runs of both jobs to choose from. */
async function drawRuns(sides) {
  const jobs = await Promise.all([...new Set(sides.map((side) => side.job))].map((job) => get(`/jobs/${job}`)));
  const runs = jobs.flatMap((job) => job.runs.map((run) => make('option', { value: run.id }, `${run.id} ${run.workload} ${run.variant}`)));
  for (const [name, chosen] of [['run-a', a], ['run-b', b]]) {
    find(name).replaceChildren(...runs.map((option) => option.cloneNode(true)));
    find(name).value = String(chosen);
  }
}

const labelOf = ({ a: one, b: other }) => {
  const name = (one ?? other).launch || (one ?? other).name;
  return one && other ? name : `${name}, only in ${one ? 'A' : 'B'}`;
};

/* --- one pair ------------------------------------------------------------------------------------------------------- */

const codeOf = (pair) => (pair.a === null || pair.b === null ? `Only ${pair.a ? 'A' : 'B'} has this kernel.`
  : pair.same_code === null ? 'Whether both are the same machine code is not known.'
    : pair.same_code ? 'Both are the same machine code.' : 'The machine code differs.');

function signed({ difference, unit }) {
  if (difference === null) return null;
  if (unit === '%') return show.points(difference / 100);
  return `${difference > 0 ? '+' : ''}${show.quantity(difference, unit)}`.replace(/^-/, '−');
}
const column = (label, text) => ({ label, number: true, cell: (row) => numberCell(text(row), row.reason ?? 'A is 0') });
const columns = [
  nameColumn, column('A', (row) => show.quantity(row.a, row.unit)), column('B', (row) => show.quantity(row.b, row.unit)),
  column('Change', signed), column('Relative', (row) => show.change(row.relative)),
];

const differs = (row) => (row.relative === null ? row.difference !== null && row.difference !== 0 : Math.abs(row.relative) >= 0.01);

/** Sections with their rows that are wanted; what has none is left out. */
function wanted(sections) {
  if (!find('changed').checked) return sections;
  return sections.map((section) => ({ ...section, tables: section.tables.map((table) => ({ ...table, rows: table.rows.filter(differs) }))
    .filter((table) => table.rows.length > 0) })).filter((section) => section.tables.length > 0);
}

function badge(section) {
  const count = section.tables.flatMap((table) => table.rows).filter(differs).length;
  return count > 0 ? make('span', { class: 'quiet' }, `${count} differ`) : null;
}

function drawPair() {
  const pair = pairs[Number(find('pair').value)];
  find('same-code').textContent = codeOf(pair);
  find('findings').hidden = pair.findings.length === 0;
  find('finding-list').replaceChildren(...pair.findings.map(({ a: one, b: other, change }) => findingItem(other ?? one, change)));
  find('sections').replaceChildren(...sectionBlocks(wanted(pair.sections), columns, badge));
  const first = find('sections').firstElementChild;
  if (first) first.open = true;
  openTarget();
}

/* --- loading -------------------------------------------------------------------------------------------------------- */

async function load() {
  const comparison = await get(`/compare?a=${a}&b=${b}`);
  const sides = [comparison.a, comparison.b];
  await drawRuns(sides);
  pairs = comparison.kernels;
  find('sides').replaceChildren(sideFact('A', sides[0]), sideFact('B', sides[1]));
  find('pair').replaceChildren(...pairs.map((pair, index) => make('option', { value: index }, labelOf(pair))));
  find('choice').hidden = false;
  find('pair-choice').hidden = find('comparison').hidden = pairs.length === 0;
  find('nothing').hidden = pairs.length > 0;
  if (pairs.length > 0) drawPair();
  document.title = `${sides[0].variant} and ${sides[1].variant} · rooflined`;
  document.body.dataset.loaded = 'true';
}

const choose = () => location.assign(`/compare.html?a=${find('run-a').value}&b=${find('run-b').value}`);
for (const name of ['run-a', 'run-b']) find(name).addEventListener('change', choose);
for (const name of ['pair', 'changed']) find(name).addEventListener('change', drawPair);

if ([a, b].every((run) => Number.isSafeInteger(run) && run > 0)) {
  load().catch((problem) => {
    drawProblem(problem.title || 'The page failed', problem.message);
    if (problem.status === undefined) throw problem;
  });
} else drawProblem('Which runs?', 'The address needs two runs, like compare.html?a=1&b=2.');
