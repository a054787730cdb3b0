// One number of a run over all runs that did the same, oldest first: of the same workload, variant, parameters and device.
import { get } from '/lib/api.js';
import { keepDrawn } from '/lib/chart.js';
import { find, make, numberCell } from '/lib/dom.js';
import * as show from '/lib/format.js';
import { drawPoints } from '/lib/points.js';
import { tableOf } from '/lib/sections.js';

const MOST = 10000; // that the API gives at once
const ROWS = 100;   // of the table at once
const asked = new URLSearchParams(location.search);
const job = Number(asked.get('job'));
const summaries = ['epoch_ms_median', 'epoch_ms_min', 'images_per_s', 'test_accuracy_ratio']; // that are no measurements
const first = ['epoch_ms_median', 'time_cold_us_median']; // that is shown unless another is asked for
let runs = [];
let points = [];
let listed = ROWS;

function drawProblem(title, message) {
  find('problem').hidden = false;
  find('problem').replaceChildren(make('strong', {}, title), make('p', {}, message));
}

const options = (select, entries) =>
  select.replaceChildren(...entries.map(([value, label]) => make('option', { value }, label)));
const chosenRun = () => runs.find((run) => run.run === Number(find('run').value)) ?? runs[0];
const commitOf = ({ commit }) => (commit ? commit.slice(0, 12) : null);

/** What is known of the run, by name. */
const metricsOf = (run) => [...summaries.filter((name) => run.summary[name] !== null),
  ...new Set(run.measurements.filter((one) => one.value !== null).map((one) => one.name))];

function drawMetrics(wanted) {
  const metrics = metricsOf(chosenRun());
  options(find('metric'), metrics.map((name) => [name, name]));
  find('metric').value = metrics.find((name) => name === wanted) ?? metrics.find((name) => first.includes(name)) ?? metrics[0];
}

/** Each with its change since the last one before that is to be believed. */
function withChanges(items) {
  let before = null;
  return items.map((item) => {
    const change = before ? (item.value - before.value) / Math.abs(before.value) : null;
    if (!item.suspect && item.value !== 0) before = item;
    return { ...item, change };
  });
}

/** Beside the run that is followed. */
const compareCell = ({ run }) => make('td', {}, run === chosenRun().run ? 'this run'
  : make('a', { href: `/compare.html?a=${run}&b=${chosenRun().run}`,
    'aria-label': `Compare run ${run} with run ${chosenRun().run}` }, `with run ${chosenRun().run}`));

const columns = [
  { label: 'Job', number: true, cell: (point) => make('th', { scope: 'row', class: 'n' },
    make('a', { href: `/job.html?id=${point.job}` }, String(point.job))) },
  { label: 'When', cell: (point) => make('td', {}, show.instant(point.at)) },
  { label: 'Value', number: true, cell: (point) => numberCell(show.byName(point.metric, point.value)) },
  { label: 'Change', number: true, cell: (point) => numberCell(show.change(point.change), 'there is none before it') },
  { label: 'Commit', cell: (point) => make('td', { class: 'mono', title: point.commit }, commitOf(point) ?? '') },
  { label: 'Note', cell: (point) => make('td', {}, point.suspect ? make('span', { class: 'tag' }, 'suspect') : null) },
  { label: 'Compare', cell: compareCell },
];

const wordsOf = (point) => [show.byName(point.metric, point.value) + (point.suspect ? ', suspect' : ''),
  `commit ${commitOf(point) ?? 'not known'}`, `job ${point.job}`, show.instant(point.at)].join('\n');

const drawChart = () => drawPoints(find('chart'), points.map((point) => ({ value: point.value, suspect: point.suspect,
  name: commitOf(point)?.slice(0, 7) ?? '', words: wordsOf(point), href: `/job.html?id=${point.job}` })),
(value) => show.byName(find('metric').value, value));

function drawTable() {
  find('points').replaceChildren(tableOf('Runs', columns, points.slice(-listed).reverse()));
  find('older').hidden = listed >= points.length;
}

async function load() {
  const [run, metric] = [chosenRun(), find('metric').value];
  const found = await get(`/history?metric=${encodeURIComponent(metric)}&like=${run.run}&limit=${MOST}`);
  if (run !== chosenRun() || metric !== find('metric').value) return;
  points = withChanges(found.items);
  listed = ROWS;
  history.replaceState(null, '', `?job=${job}&run=${run.run}&metric=${encodeURIComponent(metric)}`);
  document.title = `${metric} of ${run.workload} ${run.variant} · rooflined`;
  find('what').textContent = [run.workload, run.variant, show.parameters(run.params),
    `on ${run.device?.name ?? 'an unknown device'}`,
    `${show.count(points.length)} ${points.length === 1 ? 'run' : 'runs'} of the same parameters`].join(' · ');
  find('caption').textContent = metric;
  find('some').hidden = !found.truncated;
  find('some').textContent = `The last ${show.count(MOST)}: the API has the older ones.`;
  drawTable();
  drawChart();
  document.body.dataset.loaded = metric;
}

async function begin() {
  ({ runs } = await get(`/jobs/${job}/results`));
  runs = runs.filter((run) => metricsOf(run).length > 0);
  find('job-link').href = `/job.html?id=${job}`;
  find('job-link').textContent = `Job ${job}`;
  find('job-link').hidden = false;
  if (runs.length === 0) {
    drawProblem('Nothing to follow', `Job ${job} has measured nothing.`);
    return;
  }
  find('history').hidden = false;
  options(find('run'), runs.map((run) => [run.run, `run ${run.run} ${run.workload} ${run.variant}`]));
  const wanted = runs.find((run) => run.run === Number(asked.get('run'))) ?? runs[0];
  find('run').value = String(wanted.run);
  drawMetrics(asked.get('metric'));
  await load();
}

const guarded = (what) => what().catch((problem) => {
  drawProblem(problem.title || 'The page failed', problem.message);
  if (problem.status === undefined) throw problem;
});

find('run').addEventListener('change', () => {
  drawMetrics(find('metric').value);
  guarded(load);
});
find('metric').addEventListener('change', () => guarded(load));
find('older').addEventListener('click', () => {
  listed += ROWS;
  drawTable();
});
keepDrawn(find('chart'), drawChart);

if (Number.isSafeInteger(job) && job > 0) guarded(begin);
else drawProblem('Which job?', 'The address needs a job’s number, like history.html?job=1, and may have a run’s and a metric.');
