// The history of one metric: its value in all runs with the same workload, variant, parameters and device.
import { get } from '/lib/api.js';
import { redrawOnResize } from '/lib/chart.js';
import { byId, createElement, numberCell } from '/lib/dom.js';
import { changedConditions } from '/lib/suites.js';
import { judge } from '/lib/direction.js';
import { measurementWords } from '/lib/measurements.js';
import { withNoise, BAND_WORDS } from '/lib/noise.js';
import * as format from '/lib/format.js';
import { drawPoints } from '/lib/points.js';
import { drawProblem, showErrors } from '/lib/problem.js';
import { tableOf } from '/lib/sections.js';

const POINTS_LIMIT = 10000; // the maximum that the API accepts
const ROWS_PER_PAGE = 100;
const query = new URLSearchParams(location.search);
const job = Number(query.get('job'));
const summaryMetrics = ['epoch_ms_median', 'epoch_ms_min', 'images_per_s', 'test_accuracy_ratio']; // of a run's summary
const preferredMetrics = ['epoch_ms_median', 'time_cold_us_median']; // the first of these that a run has is shown by default
const EVENT_WORDS = 'another driver, clock limit or device';
let runs = [];
let points = [];
let visibleRows = ROWS_PER_PAGE;

const fillOptions = (select, entries) =>
  select.replaceChildren(...entries.map(([value, label]) => createElement('option', { value }, label)));
const selectedRun = () => runs.find((run) => run.run === Number(byId('run').value)) ?? runs[0];
const shortCommit = ({ commit }) => (commit ? commit.slice(0, 12) : null);

/** Returns the names of the run's metrics: those of its summary and its measurements that have a value. */
const metricNames = (run) => [...summaryMetrics.filter((name) => run.summary[name] !== null),
  ...new Set(run.measurements.filter(({ value }) => value !== null).map(({ name }) => name))];

function drawMetrics(requested) {
  const metrics = metricNames(selectedRun());
  fillOptions(byId('metric'), metrics.map((name) => [name, `${measurementWords(name)} (${name})`]));
  byId('metric').value = metrics.find((name) => name === requested)
    ?? metrics.find((name) => preferredMetrics.includes(name)) ?? metrics[0];
}

/** Adds to each point `change`, its relative change since the last earlier point that is neither suspect nor zero, and `events`,
 * the changes of driver, clocks, device and commit since the previous point. */
function withChanges(items) {
  let previous = null;
  return items.map((item, index) => {
    const change = previous ? (item.value - previous.value) / Math.abs(previous.value) : null;
    if (!item.suspect && item.value !== 0) previous = item;
    return { ...item, change, events: changedConditions(items[index - 1], item) };
  });
}

/** Returns the notes of a point in the table: suspect, outside the noise, changed conditions. */
function notesOf(point) {
  const judgement = point.isOutside && !point.suspect ? judge(point.metric, point.change) : null;
  return [point.suspect ? createElement('span', { class: 'tag' }, 'suspect') : null,
    point.isOutside ? createElement('span', { class: `judgement ${judgement ?? ''}` },
      [judgement, 'outside the noise'].filter(Boolean).join(', ')) : null,
    ...point.events.map((event) => createElement('div', { class: 'quiet' }, event))];
}

/** Creates a link to the comparison with the selected run. */
const compareCell = ({ run }) => createElement('td', {}, run === selectedRun().run ? 'this run'
  : createElement('a', { href: `/compare.html?a=${run}&b=${selectedRun().run}`,
    'aria-label': `Compare run ${run} with run ${selectedRun().run}` }, `with run ${selectedRun().run}`));

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
  { label: 'When', cell: (point) => createElement('td', {}, format.dateTime(point.at)) },
  { label: 'Value', number: true, cell: (point) => numberCell(format.metricValue(point.metric, point.value)) },
  { label: 'Change', number: true, cell: (point) => numberCell(format.relativeChange(point.change), 'there is no earlier run') },
  { label: 'Commit', cell: (point) => createElement('td', { class: 'mono', title: point.commit }, shortCommit(point) ?? '') },
  {
    label: 'Notes',
    cell: (point) => createElement('td', { class: 'words' }, ...notesOf(point)),
  },
  { label: 'Compare', cell: compareCell },
];

const tooltipText = (point) => [format.metricValue(point.metric, point.value) + (point.suspect ? ', suspect' : ''),
  point.isOutside ? 'outside the noise' : null, `commit ${shortCommit(point) ?? 'unknown'}`, `job ${point.job}`,
  format.dateTime(point.at), ...point.events].filter(Boolean).join('\n');

const drawChart = () => drawPoints(byId('chart'), points.map((point) => ({ value: point.value, suspect: point.suspect,
  name: shortCommit(point)?.slice(0, 7) ?? '', words: tooltipText(point), href: `/job.html?id=${point.job}`, band: point.band,
  hasEvent: point.events.length > 0 })), (value) => format.metricValue(byId('metric').value, value), byId('zero').checked);

function drawTable() {
  byId('points').replaceChildren(tableOf('Runs', columns, points.slice(-visibleRows).reverse()));
  byId('older').hidden = visibleRows >= points.length;
}

async function load() {
  const [run, metric] = [selectedRun(), byId('metric').value];
  const response = await get(`/history?metric=${encodeURIComponent(metric)}&like=${run.run}&limit=${POINTS_LIMIT}`);
  if (run !== selectedRun() || metric !== byId('metric').value) return;
  points = withNoise(withChanges(response.items));
  visibleRows = ROWS_PER_PAGE;
  history.replaceState(null, '', `?job=${job}&run=${run.run}&metric=${encodeURIComponent(metric)}`);
  document.title = `${metric} of ${run.workload} ${run.variant} · rooflined`;
  byId('what').textContent = [run.workload, run.variant, format.parameters(run.params),
    `on ${run.device?.name ?? 'an unknown device'}`,
    `${format.count(points.length)} ${points.length === 1 ? 'run' : 'runs'} of the same parameters`].filter(Boolean).join(' · ');
  byId('caption').textContent = `${measurementWords(metric)} · ${BAND_WORDS} · dashed: ${EVENT_WORDS}`;
  byId('some').hidden = !response.truncated;
  byId('some').textContent = `Only the newest ${format.count(POINTS_LIMIT)} runs are shown.`;
  drawTable();
  drawChart();
  document.body.dataset.loaded = metric;
}

async function start() {
  ({ runs } = await get(`/jobs/${job}/results`));
  runs = runs.filter((run) => metricNames(run).length > 0);
  byId('job-link').href = `/job.html?id=${job}`;
  byId('job-link').textContent = `Job ${job}`;
  byId('job-link').hidden = false;
  if (runs.length === 0) {
    drawProblem({ title: 'No history', message: `Job ${job} has no measurements.` });
    return;
  }
  byId('history').hidden = false;
  fillOptions(byId('run'), runs.map((run) => [run.run, `run ${run.run} ${run.workload} ${run.variant}`]));
  const initialRun = runs.find((run) => run.run === Number(query.get('run'))) ?? runs[0];
  byId('run').value = String(initialRun.run);
  drawMetrics(query.get('metric'));
  await load();
}

byId('run').addEventListener('change', () => {
  drawMetrics(byId('metric').value);
  showErrors(load);
});
byId('metric').addEventListener('change', () => showErrors(load));
byId('zero').addEventListener('change', drawChart);
byId('older').addEventListener('click', () => {
  visibleRows += ROWS_PER_PAGE;
  drawTable();
});
redrawOnResize(byId('chart'), drawChart);

if (Number.isSafeInteger(job) && job > 0) showErrors(start);
else drawProblem({ title: 'Which job?',
  message: 'The address needs the number of a job, like history.html?job=1, and may name a run and a metric.' });
