// One suite: its runs with their verdicts, its baselines, and the history of a metric with changes of driver, device, clocks and
// commit.
import { get, post } from '/lib/api.js';
import { redrawOnResize } from '/lib/chart.js';
import { byId, createElement, numberCell } from '/lib/dom.js';
import * as format from '/lib/format.js';
import { drawPoints } from '/lib/points.js';
import { showErrors } from '/lib/problem.js';
import { tableOf } from '/lib/sections.js';
import { changedConditions, describeDuration, parseMetricKey, verdictBadge } from '/lib/suites.js';

const RUNS_PER_PAGE = 50;
const HISTORY_LIMIT = 200;
const query = new URLSearchParams(location.search);
const name = query.get('name') ?? '';
const path = `/suites/${encodeURIComponent(name)}`;
const runUrl = (id) => `/suite-run.html?id=${id}`;
let runs = [];
let nextCursor = null;
let points = [];

const runLink = (id) => createElement('th', { scope: 'row', class: 'n' }, createElement('a', { href: runUrl(id) }, String(id)));
const commitCell = ({ git_commit: commit }) => createElement('td', { class: 'mono', title: commit }, commit?.slice(0, 12) ?? '');

const countsText = (counts) => Object.entries(counts ?? {}).filter(([, count]) => count > 0)
  .map(([verdict, count]) => `${count} ${verdict}`).join(' · ');

const runColumns = [
  { label: 'Run', number: true, cell: (run) => runLink(run.id) },
  { label: 'Verdict', cell: (run) => createElement('td', {}, verdictBadge(run)) },
  { label: 'When', cell: (run) => createElement('td', {}, format.dateTime(run.finished_at ?? run.created_at)) },
  { label: 'Metrics', cell: (run) => createElement('td', { class: 'words' }, countsText(run.counts),
    createElement('span', { class: 'quiet job-details' }, run.quarantine_reason ?? run.reason ?? '')) },
  { label: 'Against', cell: (run) => createElement('td', {}, run.against ?? 'last runs') },
  { label: 'Device', cell: (run) => createElement('td', {}, run.device_name ?? run.device) },
  { label: 'Commit', cell: commitCell },
];

function drawRuns() {
  byId('no-runs').hidden = runs.length > 0;
  byId('older').hidden = nextCursor === null;
  byId('runs').replaceChildren(...(runs.length > 0 ? [tableOf('Runs', runColumns, runs)] : []));
}

async function loadRuns() {
  const cursor = nextCursor === null ? '' : `&cursor=${encodeURIComponent(nextCursor)}`;
  const page = await get(`${path}/runs?limit=${RUNS_PER_PAGE}${cursor}`);
  runs.push(...page.items);
  nextCursor = page.next_cursor ?? null;
  drawRuns();
}

/* --- history -------------------------------------------------------------------------------------------------------- */

const metricName = () => parseMetricKey(byId('metric').value).name;
const formatMetric = (value) => format.metricValue(metricName(), value);

const pointColumns = [
  { label: 'Run', number: true, cell: (point) => runLink(point.run) },
  { label: 'Verdict', cell: (point) => createElement('td', {}, point.verdict ? verdictBadge(point) : '') },
  { label: 'When', cell: (point) => createElement('td', {}, format.dateTime(point.at)) },
  { label: 'Median', number: true, cell: (point) => numberCell(formatMetric(point.median), 'no block measured it') },
  { label: 'Change', number: true, cell: (point) => numberCell(format.relativeChange(point.change), 'there is no earlier run') },
  { label: 'Events', cell: (point) => createElement('td', { class: 'words' }, point.events.join(' · ')) },
];

/** Adds to each point its relative change and the changed conditions since the previous point. */
const withEvents = (items, changePoints) => items.map((item, index) => {
  const before = items[index - 1];
  const change = before?.median ? (item.median - before.median) / Math.abs(before.median) : null;
  const shift = changePoints.find(({ run }) => run === item.run);
  return { ...item, change, events: [...changedConditions(before, item),
    ...(shift ? [`change point: ${formatMetric(shift.before)} → ${formatMetric(shift.after)}`] : [])] };
});

const drawChart = () => drawPoints(byId('chart'), points.map((point) => ({ value: point.median,
  suspect: point.verdict === 'slower', name: String(point.run), href: runUrl(point.run),
  words: [formatMetric(point.median) ?? 'not measured', `run ${point.run}${point.verdict ? `: ${point.verdict}` : ''}`,
    format.dateTime(point.at), ...point.events].join('\n') })), formatMetric);

async function loadHistory() {
  const metric = byId('metric').value;
  const response = await get(`${path}/history?metric=${encodeURIComponent(metric)}&limit=${HISTORY_LIMIT}`);
  if (metric !== byId('metric').value) return;
  points = withEvents(response.items, response.change_points);
  history.replaceState(null, '', `?${new URLSearchParams({ name, metric })}`);
  byId('caption').textContent = metric;
  byId('points').replaceChildren(tableOf('History', pointColumns, [...points].reverse()));
  drawChart();
  document.body.dataset.loaded = metric;
}

/** Shows the history of the metrics that the newest completed run has judged. */
async function startHistory() {
  const judged = runs.find((run) => run.state === 'completed');
  if (!judged) {
    document.body.dataset.loaded = 'runs';
    return;
  }
  const { verdicts } = await get(`/suite-runs/${judged.id}`);
  byId('metric-history').hidden = false;
  byId('metric').replaceChildren(...verdicts.map(({ metric }) => createElement('option', { value: metric }, metric)));
  byId('metric').value = verdicts.find(({ metric }) => metric === query.get('metric'))?.metric ?? verdicts[0]?.metric;
  if (verdicts.length > 0) await loadHistory();
}

/* --- baselines ------------------------------------------------------------------------------------------------------ */

const baselineColumns = [
  { label: 'Name', cell: (baseline) => createElement('th', { scope: 'row' }, baseline.name) },
  { label: 'Run', number: true, cell: (baseline) => createElement('td', { class: 'n' },
    createElement('a', { href: runUrl(baseline.run) }, String(baseline.run))) },
  { label: 'Created', cell: (baseline) => createElement('td', {}, format.dateTime(baseline.created_at)) },
  { label: 'Device', cell: (baseline) => createElement('td', {}, baseline.device_name ?? '') },
  { label: 'Commit', cell: commitCell },
];

async function loadBaselines() {
  const { items } = await get(`${path}/baselines`);
  byId('baselines-section').hidden = items.length === 0;
  if (items.length > 0) byId('baselines').replaceChildren(tableOf('Baselines', baselineColumns, items));
}

async function start() {
  const suite = await get(path);
  document.title = `${suite.name} · rooflined`;
  byId('suite-title').textContent = suite.name;
  const takes = describeDuration(suite);
  byId('summary').textContent = [suite.summary,
    suite.blocks && `${format.withPlural('block')(suite.blocks)} of ${format.withPlural('job')(suite.jobs)}`,
    suite.metrics && format.withPlural('metric')(suite.metrics),
    takes ? `a run takes ${takes}` : null].filter(Boolean).join(' · ');
  if (suite.last_run) byId('last-verdict').replaceChildren(verdictBadge(suite.last_run));
  byId('run-suite').hidden = false;
  await loadRuns();
  await loadBaselines();
  await startHistory();
  byId('suite').hidden = false; // all at once: nothing moves while the page loads
}

byId('run-suite').addEventListener('click', () => showErrors(async () => {
  byId('run-suite').disabled = true;
  try {
    location.assign(runUrl((await post(`${path}/runs`, {})).id));
  } finally {
    byId('run-suite').disabled = false;
  }
}));
byId('older').addEventListener('click', () => showErrors(loadRuns));
byId('metric').addEventListener('change', () => showErrors(loadHistory));
redrawOnResize(byId('chart'), drawChart);
showErrors(start);
