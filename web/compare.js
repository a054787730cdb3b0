// Two runs side by side, of whichever jobs: their numbers, as a job's page shows those of its runs, so that engines can be held
// against each other; then their reports, one pair of kernels at a time: as they belong together, or any two that are chosen.
import { get } from '/lib/api.js';
import { drawComparison } from '/lib/comparison.js';
import { find, make, numberCell } from '/lib/dom.js';
import { findingItem, nameColumn, openTarget, sectionBlocks } from '/lib/sections.js';
import * as show from '/lib/format.js';

const asked = new URLSearchParams(location.search);
const [a, b] = ['a', 'b'].map((side) => Number(asked.get(side)));
let pairs = []; // as the kernels belong together
let shown;      // the pair that is seen: one of these, or of two that were chosen

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
function drawRuns(runs) {
  const options = runs.map((one) => make('option', { value: one.run }, `${one.run} ${one.workload} ${one.variant}`));
  for (const [name, chosen] of [['run-a', a], ['run-b', b]]) {
    find(name).replaceChildren(...options.map((option) => option.cloneNode(true)));
    find(name).value = String(chosen);
  }
}

/* --- numbers -------------------------------------------------------------------------------------------------------- */

/** Under names that tell them apart. */
function named(runs) {
  const [one, other] = runs;
  const name = one.engine !== other.engine ? (run) => `${run.variant} by ${run.engine}`
    : one.variant !== other.variant ? (run) => run.variant : (run, index) => `${run.variant} ${'AB'[index]}`;
  return runs.map((run, index) => ({ ...run, variant: name(run, index) }));
}

function drawNumbers(runs, comparison) {
  if (comparison === null) return;
  const [baseline, candidate] = named(runs);
  drawComparison([baseline, candidate], [{ ...comparison, baseline, candidate }]);
}

/* --- which pair ----------------------------------------------------------------------------------------------------- */

const nameOf = (kernel) =>
  `${kernel.ordinal} ${kernel.launch && kernel.launch !== kernel.name ? `${kernel.launch} · ` : ''}${kernel.name}`;
const groups = [
  ['In both runs', (pair) => pair.a && pair.b], ['Only in A', (pair) => !pair.b], ['Only in B', (pair) => !pair.a],
];

function drawChoices() {
  const optionOf = (pair) => make('option', { value: pairs.indexOf(pair) }, nameOf(pair.a ?? pair.b));
  find('pair').replaceChildren(...groups.map(([label, belongs]) => [label, pairs.filter(belongs)]).filter(([, members]) =>
    members.length > 0)
    .map(([label, members]) => make('optgroup', { label }, ...members.map(optionOf))));
  const ofB = pairs.map((pair) => pair.b).filter(Boolean).sort((one, other) => one.ordinal - other.ordinal);
  find('kernel-b').replaceChildren(make('option', { value: '' }, 'none'),
    ...ofB.map((kernel) => make('option', { value: kernel.ordinal }, nameOf(kernel))));
}

const ordinalOf = (kernel) => (kernel ? String(kernel.ordinal) : null);
const sameSide = (kernel, ordinal) => ordinal === null || String(kernel?.ordinal) === ordinal;

const queryOf = (one, other) => [['kernel', one], ['kernel_b', other]].filter(([, ordinal]) => ordinal !== null)
  .map(([name, ordinal]) => `&${name}=${encodeURIComponent(ordinal)}`).join('');

/** The pair that the address asks for, with all that the API has of it. Without an ordinal: the first. */
async function pairAsked(one, other) {
  const known = pairs.find((pair) => sameSide(pair.a, one) && sameSide(pair.b, other));
  const query = known ? queryOf(ordinalOf(known.a), ordinalOf(known.b)) : queryOf(one, other);
  return (await get(`/compare?a=${a}&b=${b}${query}`)).kernels[0];
}

let choices = 0;

async function choosePair(one, other) {
  const choice = ++choices;
  const pair = await pairAsked(one, other);
  if (choice !== choices) return; // another was chosen meanwhile
  shown = pair;
  const [kernel, beside] = [shown.a?.ordinal, shown.b?.ordinal];
  find('pair').value = String(pairs.findIndex((pair) => (shown.a ? pair.a?.ordinal === kernel : pair.b?.ordinal === beside)));
  find('kernel-b').value = beside ?? '';
  find('kernel-b').disabled = shown.a === null;
  find('kernel-b').options[0].disabled = shown.b !== null;
  drawPair();
}

/** After a choice: the address names it, so that it can be kept or passed on. */
async function chosen(one, other) {
  await choosePair(one, other);
  history.replaceState(null, '', `?a=${a}&b=${b}${queryOf(ordinalOf(shown.a), ordinalOf(shown.b))}`);
}

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

const differs = (row) => (row.relative === null
  ? row.difference !== null && row.difference !== 0 : Math.abs(row.relative) >= 0.01);

/** Sections with their rows that are wanted; what has none is left out. */
function wanted(sections) {
  if (!find('changed').checked) return sections;
  return sections.map((section) =>
    ({ ...section, tables: section.tables.map((table) => ({ ...table, rows: table.rows.filter(differs) }))
    .filter((table) => table.rows.length > 0) })).filter((section) => section.tables.length > 0);
}

function badge(section) {
  const count = section.tables.flatMap((table) => table.rows).filter(differs).length;
  return count > 0 ? make('span', { class: 'quiet' }, `${count} differ`) : null;
}

const changes = ['appeared', 'went', 'stayed'];

/** What changed first; of a kernel that stands alone nothing did. */
function drawFindings({ a: kernel, b: beside, findings }) {
  const sorted = [...findings].sort((one, other) => changes.indexOf(one.change) - changes.indexOf(other.change));
  find('findings').hidden = findings.length === 0;
  find('finding-list').replaceChildren(...sorted.map(({ a: one, b: other, change }) =>
    findingItem(other ?? one, kernel && beside ? change : null)));
}

function drawPair() {
  const pair = shown;
  find('same-code').textContent = codeOf(pair);
  drawFindings(pair);
  find('sections').replaceChildren(...sectionBlocks(wanted(pair.sections), () => columns, badge));
  const first = find('sections').firstElementChild;
  if (first) first.open = true;
  openTarget();
}

/* --- loading -------------------------------------------------------------------------------------------------------- */

async function load() {
  const comparison = await get(`/compare?a=${a}&b=${b}&detail=names`);
  const sides = [comparison.a, comparison.b];
  const jobs = [...new Set(sides.map((side) => side.job))];
  const runs = (await Promise.all(jobs.map((job) => get(`/jobs/${job}/results`)))).flatMap((results) => results.runs);
  drawRuns(runs);
  find('no-numbers').hidden = comparison.comparison !== null;
  find('no-numbers').textContent = comparison.comparison_reason ? `No numbers: ${comparison.comparison_reason}.` : '';
  drawNumbers(sides.map((side) => runs.find((run) => run.run === side.run)), comparison.comparison);
  pairs = comparison.kernels;
  find('sides').replaceChildren(sideFact('A', sides[0]), sideFact('B', sides[1]));
  drawChoices();
  find('choice').hidden = false;
  for (const label of document.querySelectorAll('.kernel-choice')) label.hidden = pairs.length === 0;
  find('reports').hidden = pairs.length === 0;
  find('nothing').hidden = pairs.length > 0;
  if (pairs.length > 0 || asked.has('kernel') || asked.has('kernel_b')) {
    await choosePair(asked.get('kernel'), asked.get('kernel_b'));
  }
  document.title = `${sides[0].variant} and ${sides[1].variant} · rooflined`;
  document.body.dataset.loaded = 'true';
}

const choose = () => location.assign(`/compare.html?a=${find('run-a').value}&b=${find('run-b').value}`);
for (const name of ['run-a', 'run-b']) find(name).addEventListener('change', choose);
const guarded = (work) => work.catch((problem) => {
  drawProblem(problem.title || 'The page failed', problem.message);
  if (problem.status === undefined) throw problem;
});
find('pair').addEventListener('change', () => {
  const pair = pairs[Number(find('pair').value)];
  guarded(chosen(ordinalOf(pair.a), ordinalOf(pair.b)));
});
find('kernel-b').addEventListener('change', () => guarded(chosen(ordinalOf(shown.a), find('kernel-b').value)));
find('changed').addEventListener('change', drawPair);

if ([a, b].every((run) => Number.isSafeInteger(run) && run > 0)) guarded(load());
else drawProblem('Which runs?', 'The address needs two runs, like compare.html?a=1&b=2.');
