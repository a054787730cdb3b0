// One run of a suite: progress while it runs, then the verdict of each metric, causes, and the jobs of its blocks.
import { ApiProblem, get, httpDelete, post } from '/lib/api.js';
import { byId, createElement, numberCell } from '/lib/dom.js';
import * as format from '/lib/format.js';
import { drawProblem, showErrors } from '/lib/problem.js';
import { tableOf } from '/lib/sections.js';
import { endedStates, parseMetricKey, verdictBadge } from '/lib/suites.js';

const REFRESH_MS = 10000; // refresh interval while no event arrives
const GATHER_MS = 100; // from an event to the refresh, so that one refresh shows several events that arrive together
const id = Number(new URLSearchParams(location.search).get('id'));
let suite = null; // name of the suite
let headline = ''; // the reason of the run's verdict

const formatMetric = (row, value) => format.metricValue(parseMetricKey(row.metric).name, value);
const intervalText = ([low, high]) => [low, high].map((bound) => format.relativeChange(bound) ?? 'unbounded').join(' to ');

const verdictColumns = [
  { label: 'Metric', cell: (row) => createElement('th', { scope: 'row' }, createElement('a', { class: 'plain',
    href: `/suite.html?${new URLSearchParams({ name: suite, metric: row.metric })}` }, row.metric),
    headline.includes(row.reason) ? null : createElement('span', { class: 'parts quiet wrap' }, row.reason)) },
  { label: 'Verdict', cell: (row) => createElement('td', {}, verdictBadge(row)) },
  { label: 'Baseline', number: true, cell: (row) => numberCell(formatMetric(row, row.baseline_median), row.reason) },
  { label: 'Now', number: true, cell: (row) => numberCell(formatMetric(row, row.current_median), row.reason) },
  { label: 'Change', number: true, cell: (row) => numberCell(format.relativeChange(row.effect_ratio), row.reason) },
  { label: 'Interval', number: true, cell: (row) =>
    numberCell(row.interval_ratio?.some((bound) => bound !== null) ? intervalText(row.interval_ratio) : null, row.reason) },
  { label: 'Threshold', number: true, cell: (row) => numberCell(format.percent(row.threshold_ratio)) },
  { label: 'History limit', number: true, cell: (row) => numberCell(format.percent(row.history_limit_ratio), 'too few blocks') },
];

const SAID_BY_TEXT = 'code_sha256'; // a property about which the text of a cause says that it differs

/** Returns a difference that explains a cause, as in "static shared bytes 4224 → 4096". */
function evidenceText({ property, baseline, current }) {
  if (property.endsWith('_sha256')) return `${property === 'posted_sha256' ? 'posted code' : property.slice(0, -7)} differs`;
  return `${property.replaceAll('_', ' ')} ${baseline ?? 'unknown'} → ${current ?? 'unknown'}`;
}

const evidenceOf = (cause) => cause.evidence.filter(({ property }) => property !== SAID_BY_TEXT).map(evidenceText).join(' · ');

const causeColumns = [
  { label: 'Metric', cell: (cause) => createElement('th', { scope: 'row' }, cause.metric) },
  { label: 'Class', cell: (cause) => createElement('td', {}, createElement('span', { class: 'tag' }, cause.class)) },
  { label: 'Where', cell: (cause) => createElement('td', { class: 'name', title: cause.subject }, cause.subject ?? '') },
  { label: 'Difference', number: true, cell: (cause) => numberCell(format.signed(format.us)(cause.difference_us), 'not known') },
  { label: 'Of the change', number: true, cell: (cause) => numberCell(format.percent(cause.share_ratio), 'not known') },
  { label: 'Explanation', cell: (cause) => createElement('td', { class: 'words' }, cause.text,
    createElement('span', { class: 'parts quiet wrap' }, evidenceOf(cause))) },
];

const jobColumns = [
  { label: 'Job', number: true, cell: (row) => createElement('th', { scope: 'row', class: 'n' },
    row.job === null ? 'deleted' : createElement('a', { href: `/job.html?id=${row.job}` }, String(row.job))) },
  { label: 'Name', cell: (row) => createElement('td', {}, row.job_name) },
  { label: 'Role', cell: (row) => createElement('td', {}, row.role.replaceAll('_', ' ')) },
  { label: 'Block', number: true, cell: (row) => createElement('td', { class: 'n' }, String(row.block + 1)) },
  { label: 'State', cell: (row) => createElement('td', {}, verdictBadge(row)) },
  { label: 'Dropped because', cell: (row) => createElement('td', { class: 'words' }, row.drop_reason ?? '') },
];

function drawProgress({ state, progress, estimated_s: estimated, estimate_basis: basis, elapsed_s: elapsed }) {
  byId('live').hidden = endedStates.includes(state);
  if (byId('live').hidden) return;
  const share = progress.of > 0 ? progress.done / progress.of : null;
  const remaining = estimated !== null && elapsed !== null ? format.duration(Math.max(0, estimated - elapsed)) : null;
  byId('live-what').textContent = state === 'queued' ? 'waits for the device'
    : `${progress.done} of ${progress.of} jobs · ${progress.role?.replaceAll('_', ' ') ?? ''}`;
  byId('live-eta').textContent = remaining ? `${basis === 'time_budget' ? 'at most' : 'about'} ${remaining} left` : '';
  if (share === null) byId('live-bar').removeAttribute('value');
  else byId('live-bar').value = share;
}

function drawRun(run) {
  suite = run.suite;
  document.title = `${run.suite} ${run.verdict ?? run.state} · rooflined`;
  byId('run-title').textContent = `Run ${run.id} of ${run.suite}`;
  byId('run-state').replaceChildren(verdictBadge(run));
  byId('suite-link').href = `/suite.html?name=${encodeURIComponent(run.suite)}`;
  byId('suite-link').textContent = 'All runs';
  byId('suite-link').hidden = false;
  byId('cancel').hidden = endedStates.includes(run.state);
  const baselineRequest = Object.entries(run.baseline?.request ?? {}).map(([name, value]) => `${name} ${value}`).join(', ');
  const against = `against ${run.baseline?.name || baselineRequest || 'the last runs'}`;
  byId('properties').textContent = [`on ${run.device_name ?? run.device}`, run.driver ? `driver ${run.driver}` : null,
    run.git_commit ? `commit ${run.git_commit.slice(0, 12)}` : null, against, `created ${format.dateTime(run.created_at)}`]
    .filter(Boolean).join(' · ');
  headline = run.quarantine_reason ?? run.reason ?? '';
  byId('verdict').textContent = headline;
  const causes = run.verdicts.flatMap(({ metric, causes: found }) => (found ?? []).map((cause) => ({ metric, ...cause })));
  byId('verdicts-section').hidden = run.verdicts.length === 0;
  byId('verdicts').replaceChildren(tableOf('Metrics', verdictColumns, run.verdicts));
  byId('causes-section').hidden = causes.length === 0;
  byId('causes').replaceChildren(tableOf('Causes', causeColumns, causes));
  byId('jobs').replaceChildren(tableOf('Jobs', jobColumns, run.jobs));
  byId('promotion').hidden = run.state !== 'completed' || run.quarantine_reason !== null;
  byId('run').hidden = false;
  drawProgress(run);
}

let timer = 0;
let events = null;

/** Refreshes after each event. The browser reconnects with Last-Event-ID, but not after an error status: then refresh()
 * reconnects. */
function listen() {
  if (events !== null && events.readyState !== EventSource.CLOSED) return;
  events = new EventSource(`/suite-runs/${id}/events`);
  for (const type of ['state', 'job', 'verdict']) {
    events.addEventListener(type, () => {
      clearTimeout(timer);
      timer = setTimeout(() => showErrors(refresh), GATHER_MS);
    });
  }
}

async function refresh() {
  clearTimeout(timer);
  try {
    const run = await get(`/suite-runs/${id}`);
    drawProblem(null);
    drawRun(run);
    document.body.dataset.loaded = run.verdict ?? run.state;
    if (endedStates.includes(run.state)) {
      events?.close();
      return;
    }
    listen();
  } catch (problem) {
    if (problem.status !== 0) throw problem;
    drawProblem(problem, true); // the run continues when the daemon has restarted
  }
  timer = setTimeout(() => showErrors(refresh), REFRESH_MS);
}

byId('cancel').addEventListener('click', () => showErrors(async () => {
  await httpDelete(`/suite-runs/${id}`);
  await refresh();
}));

byId('promote').addEventListener('submit', async (event) => {
  event.preventDefault();
  const name = new FormData(byId('promote')).get('name');
  try {
    await post(`/suites/${encodeURIComponent(suite)}/baselines`, { name, run: id });
    byId('promoted').textContent = `Later runs can be compared with it: rooflinectl regress ${suite} --against ${name}`;
  } catch (problem) {
    if (!(problem instanceof ApiProblem)) throw problem;
    byId('promoted').textContent = problem.message;
  }
});

if (Number.isSafeInteger(id) && id > 0) showErrors(refresh);
else drawProblem({ title: 'Which run?', message: 'The address needs the number of a suite run, like suite-run.html?id=1.' });
