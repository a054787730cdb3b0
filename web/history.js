// One number over all runs with the same workload, variant, parameters and device, oldest first.
import { get } from '/lib/api.js';
import { redrawOnResize } from '/lib/chart.js';
import { byId, createElement, numberCell } from '/lib/dom.js';
import * as format from '/lib/format.js';
import { drawPoints } from '/lib/points.js';
import { tableOf } from '/lib/sections.js';

const POINTS_LIMIT = 10000; // of the API
const ROWS_PER_PAGE = 100;
const asked = new URLSearchParams(location.search);
const job = Number(asked.get('job'));
const summaries = ['epoch_ms_median', 'epoch_ms_min', 'images_per_s', 'test_accuracy_ratio']; // not stored as measurements
const first = ['epoch_ms_median', 'time_cold_us_median']; // shown by default
let runs = [];
let points = [];
let listed = ROWS_PER_PAGE;

function drawProblem(title, message) {
  byId('problem').hidden = false;
  byId('problem').replaceChildren(createElement('strong', {}, title), createElement('p', {}, message));
}

const options = (select, entries) =>
  select.replaceChildren(...entries.map(([value, label]) => createElement('option', { value }, label)));
const chosenRun = () => runs.find((run) => run.run === Number(byId('run').value)) ?? runs[0];
const commitOf = ({ commit }) => (commit ? commit.slice(0, 12) : null);

/** Names of the run's numbers. */
const metricsOf = (run) => [...summaries.filter((name) => run.summary[name] !== null),
  ...new Set(run.measurements.filter((one) => one.value !== null).map((one) => one.name))];

function drawMetrics(wanted) {
  const metrics = metricsOf(chosenRun());
  options(byId('metric'), metrics.map((name) => [name, name]));
  byId('metric').value = metrics.find((name) => name === wanted) ?? metrics.find((name) => first.includes(name)) ?? metrics[0];
}

/** Adds the change since the last point that is not suspect. */
function withChanges(items) {
  let before = null;
  return items.map((item) => {
    const change = before ? (item.value - before.value) / Math.abs(before.value) : null;
    if (!item.suspect && item.value !== 0) before = item;
    return { ...item, change };
  });
}

/** A link to the comparison with the selected run. */
const compareCell = ({ run }) => createElement('td', {}, run === chosenRun().run ? 'this run'
  : createElement('a', { href: `/compare.html?a=${run}&b=${chosenRun().run}`,
    'aria-label': `Compare run ${run} with run ${chosenRun().run}` }, `with run ${chosenRun().run}`));

const columns = [
  {
    label: 'Job',
    number: true,
    cell: (point) =>
      createElement(
        'th',
        { scope: 'row', class: 'n' },
        createElement('a', { href: `/job.html?id=${point.job}` }, String(point.job)),
      ),
  },
  { label: 'When', cell: (point) => createElement('td', {}, format.instant(point.at)) },
  { label: 'Value', number: true, cell: (point) => numberCell(format.byName(point.metric, point.value)) },
  { label: 'Change', number: true, cell: (point) => numberCell(format.change(point.change), 'there is no earlier run') },
  { label: 'Commit', cell: (point) => createElement('td', { class: 'mono', title: point.commit }, commitOf(point) ?? '') },
  {
    label: 'Note',
    cell: (point) => createElement('td', {}, point.suspect ? createElement('span', { class: 'tag' }, 'suspect') : null),
  },
  { label: 'Compare', cell: compareCell },
];

const wordsOf = (point) => [format.byName(point.metric, point.value) + (point.suspect ? ', suspect' : ''),
  `commit ${commitOf(point) ?? 'unknown'}`, `job ${point.job}`, format.instant(point.at)].join('\n');

const drawChart = () => drawPoints(byId('chart'), points.map((point) => ({ value: point.value, suspect: point.suspect,
  name: commitOf(point)?.slice(0, 7) ?? '', words: wordsOf(point), href: `/job.html?id=${point.job}` })),
(value) => format.byName(byId('metric').value, value));

function drawTable() {
  byId('points').replaceChildren(tableOf('Runs', columns, points.slice(-listed).reverse()));
  byId('older').hidden = listed >= points.length;
}

async function load() {
  const [run, metric] = [chosenRun(), byId('metric').value];
  const found = await get(`/history?metric=${encodeURIComponent(metric)}&like=${run.run}&limit=${POINTS_LIMIT}`);
  if (run !== chosenRun() || metric !== byId('metric').value) return;
  points = withChanges(found.items);
  listed = ROWS_PER_PAGE;
  history.replaceState(null, '', `?job=${job}&run=${run.run}&metric=${encodeURIComponent(metric)}`);
  document.title = `${metric} of ${run.workload} ${run.variant} · rooflined`;
  byId('what').textContent = [run.workload, run.variant, format.parameters(run.params),
    `on ${run.device?.name ?? 'an unknown device'}`,
    `${format.count(points.length)} ${points.length === 1 ? 'run' : 'runs'} of the same parameters`].join(' · ');
  byId('caption').textContent = metric;
  byId('some').hidden = !found.truncated;
  byId('some').textContent = `Only the newest ${format.count(POINTS_LIMIT)} runs are shown.`;
  drawTable();
  drawChart();
  document.body.dataset.loaded = metric;
}

async function begin() {
  ({ runs } = await get(`/jobs/${job}/results`));
  runs = runs.filter((run) => metricsOf(run).length > 0);
  byId('job-link').href = `/job.html?id=${job}`;
  byId('job-link').textContent = `Job ${job}`;
  byId('job-link').hidden = false;
  if (runs.length === 0) {
    drawProblem('Nothing to follow', `Job ${job} has measured nothing.`);
    return;
  }
  byId('history').hidden = false;
  options(byId('run'), runs.map((run) => [run.run, `run ${run.run} ${run.workload} ${run.variant}`]));
  const wanted = runs.find((run) => run.run === Number(asked.get('run'))) ?? runs[0];
  byId('run').value = String(wanted.run);
  drawMetrics(asked.get('metric'));
  await load();
}

const guarded = (what) => what().catch((problem) => {
  drawProblem(problem.title || 'The page failed', problem.message);
  if (problem.status === undefined) throw problem;
});

byId('run').addEventListener('change', () => {
  drawMetrics(byId('metric').value);
  guarded(load);
});
byId('metric').addEventListener('change', () => guarded(load));
byId('older').addEventListener('click', () => {
  listed += ROWS_PER_PAGE;
  drawTable();
});
redrawOnResize(byId('chart'), drawChart);

if (Number.isSafeInteger(job) && job > 0) guarded(begin);
else
  drawProblem('Which job?', 'The address needs the number of a job, like history.html?job=1, and may name a run and a metric.');
