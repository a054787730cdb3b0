// Two runs of any jobs side by side: their numbers, then their reports for one pair of kernels at a time.
import { get } from '/lib/api.js';
import { drawComparison } from '/lib/comparison.js';
import { byId, createElement, numberCell } from '/lib/dom.js';
import { findingItem, nameColumn, openTarget, sectionBlocks } from '/lib/sections.js';
import * as format from '/lib/format.js';

const asked = new URLSearchParams(location.search);
const [a, b] = ['a', 'b'].map((side) => Number(asked.get(side)));
let pairs = []; // kernels that the API pairs
let shown;      // the selected pair

function drawProblem(title, message) {
  byId('problem').hidden = false;
  byId('problem').replaceChildren(createElement('strong', {}, title), createElement('p', {}, message));
}

/* --- head ----------------------------------------------------------------------------------------------------------- */

const sideFact = (name, side) =>
  createElement(
    'div',
    { class: 'panel' },
    createElement('dt', {}, name),
    createElement(
      'dd',
      {},
      createElement('a', { href: `/report.html?run=${side.run}` }, `${side.workload} ${side.variant}`),
      createElement(
        'span',
        { class: 'quiet' },
        ` run ${side.run} of `,
        createElement('a', { href: `/job.html?id=${side.job}` }, `job ${side.job}`),
        ` · ${side.device_facts?.name ?? side.device}${side.commit ? ` · commit ${side.commit.slice(0, 12)}` : ''}`,
      ),
    ),
  );

/** Lists the runs of both jobs. */
function drawRuns(runs) {
  const options = runs.map((one) => createElement('option', { value: one.run }, `${one.run} ${one.workload} ${one.variant}`));
  for (const [name, chosen] of [['run-a', a], ['run-b', b]]) {
    byId(name).replaceChildren(...options.map((option) => option.cloneNode(true)));
    byId(name).value = String(chosen);
  }
}

/* --- numbers -------------------------------------------------------------------------------------------------------- */

/** Gives both runs different names. */
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
  const optionOf = (pair) => createElement('option', { value: pairs.indexOf(pair) }, nameOf(pair.a ?? pair.b));
  byId('pair').replaceChildren(...groups.map(([label, belongs]) => [label, pairs.filter(belongs)]).filter(([, members]) =>
    members.length > 0)
    .map(([label, members]) => createElement('optgroup', { label }, ...members.map(optionOf))));
  const ofB = pairs.map((pair) => pair.b).filter(Boolean).sort((one, other) => one.ordinal - other.ordinal);
  byId('kernel-b').replaceChildren(createElement('option', { value: '' }, 'none'),
    ...ofB.map((kernel) => createElement('option', { value: kernel.ordinal }, nameOf(kernel))));
}

const ordinalOf = (kernel) => (kernel ? String(kernel.ordinal) : null);
const sameSide = (kernel, ordinal) => ordinal === null || String(kernel?.ordinal) === ordinal;

const queryOf = (one, other) => [['kernel', one], ['kernel_b', other]].filter(([, ordinal]) => ordinal !== null)
  .map(([name, ordinal]) => `&${name}=${encodeURIComponent(ordinal)}`).join('');

/** Gets the pair of kernels with these ordinals; without ordinals, the first pair. */
async function pairAsked(one, other) {
  const known = pairs.find((pair) => sameSide(pair.a, one) && sameSide(pair.b, other));
  const query = known ? queryOf(ordinalOf(known.a), ordinalOf(known.b)) : queryOf(one, other);
  return (await get(`/compare?a=${a}&b=${b}${query}`)).kernels[0];
}

let choices = 0;

async function choosePair(one, other) {
  const choice = ++choices;
  const pair = await pairAsked(one, other);
  if (choice !== choices) return; // another pair was selected
  shown = pair;
  const [kernel, beside] = [shown.a?.ordinal, shown.b?.ordinal];
  byId('pair').value = String(pairs.findIndex((pair) => (shown.a ? pair.a?.ordinal === kernel : pair.b?.ordinal === beside)));
  byId('kernel-b').value = beside ?? '';
  byId('kernel-b').disabled = shown.a === null;
  byId('kernel-b').options[0].disabled = shown.b !== null;
  drawPair();
}

/** Selects a pair and stores it in the address. */
async function chosen(one, other) {
  await choosePair(one, other);
  history.replaceState(null, '', `?a=${a}&b=${b}${queryOf(ordinalOf(shown.a), ordinalOf(shown.b))}`);
}

/* --- one pair ------------------------------------------------------------------------------------------------------- */

const codeOf = (pair) => (pair.a === null || pair.b === null ? `Only ${pair.a ? 'A' : 'B'} has this kernel.`
  : pair.same_code === null ? 'It is unknown whether the machine code is equal.'
    : pair.same_code ? 'The machine code is equal.' : 'The machine code differs.');

function signed({ difference, unit }) {
  if (difference === null) return null;
  if (unit === '%') return format.points(difference / 100);
  return `${difference > 0 ? '+' : ''}${format.quantity(difference, unit)}`.replace(/^-/, '−');
}
const column = (label, text) => ({ label, number: true, cell: (row) => numberCell(text(row), row.reason ?? 'A is 0') });
const columns = [
  nameColumn, column('A', (row) => format.quantity(row.a, row.unit)), column('B', (row) => format.quantity(row.b, row.unit)),
  column('Change', signed), column('Relative', (row) => format.change(row.relative)),
];

const differs = (row) => (row.relative === null
  ? row.difference !== null && row.difference !== 0 : Math.abs(row.relative) >= 0.01);

/** Returns the sections with rows that pass the filter, without empty ones. */
function wanted(sections) {
  if (!byId('changed').checked) return sections;
  return sections.map((section) =>
    ({ ...section, tables: section.tables.map((table) => ({ ...table, rows: table.rows.filter(differs) }))
    .filter((table) => table.rows.length > 0) })).filter((section) => section.tables.length > 0);
}

function badge(section) {
  const count = section.tables.flatMap((table) => table.rows).filter(differs).length;
  return count > 0 ? createElement('span', { class: 'quiet' }, `${count} differ`) : null;
}

const changes = ['appeared', 'went', 'stayed'];

/** Lists findings, changed ones first. */
function drawFindings({ a: kernel, b: beside, findings }) {
  const sorted = [...findings].sort((one, other) => changes.indexOf(one.change) - changes.indexOf(other.change));
  byId('findings').hidden = findings.length === 0;
  byId('finding-list').replaceChildren(...sorted.map(({ a: one, b: other, change }) =>
    findingItem(other ?? one, kernel && beside ? change : null)));
}

function drawPair() {
  const pair = shown;
  byId('same-code').textContent = codeOf(pair);
  drawFindings(pair);
  byId('sections').replaceChildren(...sectionBlocks(wanted(pair.sections), () => columns, badge));
  const first = byId('sections').firstElementChild;
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
  byId('no-numbers').hidden = comparison.comparison !== null;
  byId('no-numbers').textContent = comparison.comparison_reason ? `No numbers: ${comparison.comparison_reason}.` : '';
  drawNumbers(sides.map((side) => runs.find((run) => run.run === side.run)), comparison.comparison);
  pairs = comparison.kernels;
  byId('sides').replaceChildren(sideFact('A', sides[0]), sideFact('B', sides[1]));
  drawChoices();
  byId('choice').hidden = false;
  for (const label of document.querySelectorAll('.kernel-choice')) label.hidden = pairs.length === 0;
  byId('reports').hidden = pairs.length === 0;
  byId('nothing').hidden = pairs.length > 0;
  if (pairs.length > 0 || asked.has('kernel') || asked.has('kernel_b')) {
    await choosePair(asked.get('kernel'), asked.get('kernel_b'));
  }
  document.title = `${sides[0].variant} and ${sides[1].variant} · rooflined`;
  document.body.dataset.loaded = 'true';
}

const choose = () => location.assign(`/compare.html?a=${byId('run-a').value}&b=${byId('run-b').value}`);
for (const name of ['run-a', 'run-b']) byId(name).addEventListener('change', choose);
const guarded = (work) => work.catch((problem) => {
  drawProblem(problem.title || 'The page failed', problem.message);
  if (problem.status === undefined) throw problem;
});
byId('pair').addEventListener('change', () => {
  const pair = pairs[Number(byId('pair').value)];
  guarded(chosen(ordinalOf(pair.a), ordinalOf(pair.b)));
});
byId('kernel-b').addEventListener('change', () => guarded(chosen(ordinalOf(shown.a), byId('kernel-b').value)));
byId('changed').addEventListener('change', drawPair);

if ([a, b].every((run) => Number.isSafeInteger(run) && run > 0)) guarded(load());
else drawProblem('Which runs?', 'The address needs two runs, like compare.html?a=1&b=2.');
