// Compares two runs of any jobs: their numbers, then their reports for one pair of kernels at a time.
import { get } from '/lib/api.js';
import { drawComparison } from '/lib/comparison.js';
import { byId, createElement, numberCell } from '/lib/dom.js';
import { drawTimelineComparison } from '/lib/timeline_comparison.js';
import { judge } from '/lib/direction.js';
import { findingItem, nameColumn, openTarget, sectionBlocks } from '/lib/sections.js';
import { drawProblem, showErrors } from '/lib/problem.js';
import * as format from '/lib/format.js';

const query = new URLSearchParams(location.search);
const [a, b] = ['a', 'b'].map((side) => Number(query.get(side)));
let pairs = []; // pairs of kernels, from the API
let selectedPair;

/* --- head ----------------------------------------------------------------------------------------------------------- */

const runPanel = (name, side) =>
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
        [` · ${side.device_properties?.name ?? side.device}`, side.commit ? ` · commit ${side.commit.slice(0, 12)}` : '',
          side.cache === 'empty' ? ' · L2 empty before each kernel' : ''].join(''),
      ),
    ),
  );

/** Lists the runs of both jobs. */
function drawRuns(runs) {
  const options = runs.map((run) => createElement('option', { value: run.run }, `${run.run} ${run.workload} ${run.variant}`));
  for (const [name, selected] of [['run-a', a], ['run-b', b]]) {
    byId(name).replaceChildren(...options.map((option) => option.cloneNode(true)));
    byId(name).value = String(selected);
  }
}

/* --- numbers -------------------------------------------------------------------------------------------------------- */

/** Returns the two runs with distinct variants, which the comparison uses as names. If the variants are equal, adds the engine,
 * or A and B, to each. */
function withDistinctNames(runs) {
  const [first, second] = runs;
  const name = first.engine !== second.engine ? (run) => `${run.variant} by ${run.engine}`
    : first.variant !== second.variant ? (run) => run.variant : (run, index) => `${run.variant} ${'AB'[index]}`;
  return runs.map((run, index) => ({ ...run, variant: name(run, index) }));
}

function drawNumbers(runs, comparison) {
  if (comparison === null) return;
  const [baseline, candidate] = withDistinctNames(runs);
  drawComparison([baseline, candidate], [{ ...comparison, baseline, candidate }]);
}

/* --- the selected pair ---------------------------------------------------------------------------------------------- */

const kernelLabel = (kernel) =>
  `${kernel.ordinal} ${kernel.launch && kernel.launch !== kernel.name ? `${kernel.launch} · ` : ''}${kernel.name}`;
const pairGroups = [
  ['In both runs', (pair) => pair.a && pair.b], ['Only in A', (pair) => !pair.b], ['Only in B', (pair) => !pair.a],
];

function drawKernelChoices() {
  const pairOption = (pair) => createElement('option', { value: pairs.indexOf(pair) }, kernelLabel(pair.a ?? pair.b));
  byId('pair').replaceChildren(...pairGroups.map(([label, belongs]) => [label, pairs.filter(belongs)]).filter(([, members]) =>
    members.length > 0)
    .map(([label, members]) => createElement('optgroup', { label }, ...members.map(pairOption))));
  const kernelsOfB = pairs.map((pair) => pair.b).filter(Boolean).sort((one, other) => one.ordinal - other.ordinal);
  byId('kernel-b').replaceChildren(createElement('option', { value: '' }, 'none'),
    ...kernelsOfB.map((kernel) => createElement('option', { value: kernel.ordinal }, kernelLabel(kernel))));
}

const ordinalText = (kernel) => (kernel ? String(kernel.ordinal) : null);
const matchesOrdinal = (kernel, ordinal) => ordinal === null || String(kernel?.ordinal) === ordinal;

const kernelQuery = (ordinalA, ordinalB) => [['kernel', ordinalA], ['kernel_b', ordinalB]]
  .filter(([, ordinal]) => ordinal !== null)
  .map(([name, ordinal]) => `&${name}=${encodeURIComponent(ordinal)}`).join('');

/** Fetches the comparison of the first pair of kernels with these ordinals. An ordinal that is null matches any kernel. */
async function fetchPair(ordinalA, ordinalB) {
  const listedPair = pairs.find((pair) => matchesOrdinal(pair.a, ordinalA) && matchesOrdinal(pair.b, ordinalB));
  const kernels = listedPair ? kernelQuery(ordinalText(listedPair.a), ordinalText(listedPair.b))
    : kernelQuery(ordinalA, ordinalB);
  return (await get(`/compare?a=${a}&b=${b}${kernels}`)).kernels[0];
}

let lastChoice = 0;

async function selectPair(ordinalA, ordinalB) {
  const choice = ++lastChoice;
  const pair = await fetchPair(ordinalA, ordinalB);
  if (choice !== lastChoice) return; // another pair was selected
  selectedPair = pair;
  const [foundA, foundB] = [selectedPair.a?.ordinal, selectedPair.b?.ordinal];
  byId('pair').value = String(pairs.findIndex((listed) =>
    (selectedPair.a ? listed.a?.ordinal === foundA : listed.b?.ordinal === foundB)));
  byId('kernel-b').value = foundB ?? '';
  byId('kernel-b').disabled = selectedPair.a === null;
  byId('kernel-b').options[0].disabled = selectedPair.b !== null;
  drawPair();
  await drawBounds(pair);
}

/** Selects a pair and stores it in the page's URL. */
async function selectPairAndStore(ordinalA, ordinalB) {
  await selectPair(ordinalA, ordinalB);
  history.replaceState(null, '', `?a=${a}&b=${b}${kernelQuery(ordinalText(selectedPair.a), ordinalText(selectedPair.b))}`);
}

/* --- one pair ------------------------------------------------------------------------------------------------------- */

const describeCode = (pair) => (pair.a === null || pair.b === null ? `Only ${pair.a ? 'A' : 'B'} has this kernel.`
  : pair.same_code === null ? 'It is unknown whether the machine code is equal.'
    : pair.same_code ? 'The machine code is equal.' : 'The machine code differs.');

function formatDifference(row) {
  const { difference, unit } = row;
  if (difference === null) return null;
  if (unit === '%' || unit === 'ratio') return format.percentagePoints(unit === '%' ? difference / 100 : difference);
  return format.signed((value) => format.rowValue(row, value))(difference);
}
const numberColumn = (label, textOf) =>
  ({ label, number: true, cell: (row) => numberCell(textOf(row), row.reason ?? 'A is 0') });

/** Creates the relative change of a row, with "better" or "worse" if its metric has a direction. */
function relativeCell(row) {
  const cell = numberCell(format.relativeChange(row.relative), row.reason ?? 'A is 0');
  const judgement = judge(row.metric, row.relative);
  if (judgement === 'better' || judgement === 'worse') {
    cell.append(createElement('span', { class: `judgement ${judgement}` }, judgement));
  }
  return cell;
}

const columns = [
  nameColumn,
  numberColumn('A', (row) => format.rowValue(row, row.a)), numberColumn('B', (row) => format.rowValue(row, row.b)),
  numberColumn('Change', formatDifference), { label: 'Relative', number: true, cell: relativeCell },
];

const differs = (row) => (row.relative === null
  ? row.difference !== null && row.difference !== 0 : Math.abs(row.relative) >= 0.01);

/** Returns the sections. If the user wants changed rows only, leaves out other rows, and tables and sections
 * that are then empty. */
function filterSections(sections) {
  if (!byId('changed').checked) return sections;
  return sections.map((section) =>
    ({ ...section, tables: section.tables.map((table) => ({ ...table, rows: table.rows.filter(differs) }))
    .filter((table) => table.rows.length > 0) })).filter((section) => section.tables.length > 0);
}

function differenceBadge(section) {
  const count = section.tables.flatMap((table) => table.rows).filter(differs).length;
  return count > 0 ? createElement('span', { class: 'quiet' }, `${count} differ`) : null;
}

const changeOrder = ['new', 'resolved', 'unchanged', 'unknown'];

/** Lists the findings of both kernels, new and resolved ones first. */
function drawFindings({ a: kernelA, b: kernelB, findings }) {
  const sorted = [...findings].sort((one, other) => changeOrder.indexOf(one.change) - changeOrder.indexOf(other.change));
  byId('findings').hidden = findings.length === 0;
  byId('finding-list').replaceChildren(...sorted.map(({ a: one, b: other, change }) =>
    findingItem(other ?? one, { change: kernelA && kernelB ? change : null })));
}

const rowsOf = (pair) => pair.sections.flatMap((section) => section.tables.flatMap((table) => table.rows));

/** Returns a sentence: which kernel is faster, and how many values are better and worse. */
function pairVerdict(pair) {
  if (pair.a === null || pair.b === null) return '';
  const rows = rowsOf(pair);
  const duration = rows.find((row) => row.metric === 'gpu__time_duration.sum');
  const count = (judgement) => new Set(rows.filter((row) => judge(row.metric, row.relative) === judgement)
    .map(({ metric }) => metric)).size;
  const values = `${format.count(count('better'))} values better, ${format.count(count('worse'))} worse`;
  if (!(duration?.a > 0 && duration.b > 0)) return values;
  const ratio = duration.a / duration.b;
  const speed = Math.abs(ratio - 1) < 0.01 ? 'B takes as long as A'
    : ratio > 1 ? `B is ${format.factor(ratio)} as fast as A` : `B takes ${format.factor(1 / ratio)} as long as A`;
  return `${speed}: ${format.rowValue(duration, duration.a)} → ${format.rowValue(duration, duration.b)} · ${values}`;
}

/** Shows the sentence of pairVerdict(). Its colour shows whether the duration became better or worse. */
function drawPairVerdict(pair) {
  const duration = rowsOf(pair).find((row) => row.metric === 'gpu__time_duration.sum');
  byId('pair-verdict').textContent = pairVerdict(pair);
  byId('pair-verdict').hidden = byId('pair-verdict').textContent === '';
  byId('pair-verdict').dataset.judgement = (duration && judge(duration.metric, duration.relative)) ?? 'same';
}

/** Shows what bounds each kernel of a pair. */
async function drawBounds(pair) {
  const verdictOf = async (run, kernel) => kernel && (await get(`/runs/${run}/report?kernel=${kernel.ordinal}&detail=verdicts`))
    .kernels[0].verdict.message;
  const verdicts = await Promise.all([verdictOf(a, pair.a), verdictOf(b, pair.b)]);
  if (pair !== selectedPair) return; // another pair was selected
  byId('bounds').replaceChildren(...['A', 'B'].flatMap((side, index) => (verdicts[index] === null ? []
    : [createElement('dt', {}, side), createElement('dd', {}, verdicts[index])])));
}

function drawPair() {
  const pair = selectedPair;
  drawPairVerdict(pair);
  byId('same-code').textContent = describeCode(pair);
  drawFindings(pair);
  byId('sections').replaceChildren(...sectionBlocks(filterSections(pair.sections), () => columns, differenceBadge));
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
  byId('sides').replaceChildren(runPanel('A', sides[0]), runPanel('B', sides[1]));
  drawKernelChoices();
  byId('choice').hidden = false;
  for (const label of document.querySelectorAll('.kernel-choice')) label.hidden = pairs.length === 0;
  byId('reports').hidden = pairs.length === 0;
  byId('nothing').hidden = pairs.length > 0;
  if (pairs.length > 0 || query.has('kernel') || query.has('kernel_b')) {
    await selectPair(query.get('kernel'), query.get('kernel_b'));
  }
  await drawTimelineComparison(a, b);
  byId('compared').hidden = false; // shown when everything is loaded, so that nothing shifts
  openTarget();
  document.title = `${sides[0].variant} and ${sides[1].variant} · rooflined`;
  document.body.dataset.loaded = 'true';
}

const openSelectedRuns = () => location.assign(`/compare.html?a=${byId('run-a').value}&b=${byId('run-b').value}`);
for (const name of ['run-a', 'run-b']) byId(name).addEventListener('change', openSelectedRuns);
byId('pair').addEventListener('change', () => {
  const pair = pairs[Number(byId('pair').value)];
  showErrors(() => selectPairAndStore(ordinalText(pair.a), ordinalText(pair.b)));
});
byId('kernel-b').addEventListener('change', () =>
  showErrors(() => selectPairAndStore(ordinalText(selectedPair.a), byId('kernel-b').value)));
byId('changed').addEventListener('change', drawPair);

if ([a, b].every((run) => Number.isSafeInteger(run) && run > 0)) showErrors(load);
else drawProblem({ title: 'Which runs?', message: 'The address needs two runs, like compare.html?a=1&b=2.' });
