// One job: live progress while it runs, then the comparison, its epochs, kernels, measurements and where every number is from.
import { all, finalStates, get, listen, post, remove, shareDone } from '/lib/api.js';
import { drawComparison } from '/lib/comparison.js';
import { drawEpochs } from '/lib/epochs.js';
import { find, make, numberCell, stateBadge, unmeasured } from '/lib/dom.js';
import { drawKernels, MOST_METRICS } from '/lib/kernels.js';
import { drawSource } from '/lib/source.js';
import { drawTimeline } from '/lib/timeline.js';
import * as show from '/lib/format.js';

const id = Number(new URLSearchParams(location.search).get('id'));
let stopListening = null;
let variants = new Map(); // run id -> variant
let request = null;       // that asks for the same once more

const key = (index) => make('span', { class: `key run-${index % 4}`, 'aria-hidden': 'true' });

/* --- head and progress -------------------------------------------------------------------------------------------- */

function drawHead(job) {
  document.title = `Job ${job.id} ${job.state} · rooflined`;
  find('job-title').textContent = `Job ${job.id}`;
  find('job-state').replaceChildren(stateBadge(job.state));
  find('cancel').hidden = finalStates.includes(job.state);
  find('again').hidden = !finalStates.includes(job.state) || job.kind === 'source'; // whose code is not in its request
  request = { ...job.request, device: job.device };
  const took = show.duration(show.between(job.started_at, job.finished_at));
  const what = `${job.runs[0]?.workload ?? ''} ${show.parameters(job.request)}`.trim();
  find('job-facts').textContent = [what, `on ${job.device}`, `created ${show.instant(job.created_at)}`,
    took ? `took ${took}` : null].filter(Boolean).join(' · ');
  drawProblem(job.problem ? { title: job.state === 'failed' ? 'The job failed' : 'Problem', message: job.problem.message,
    detail: `${job.problem.domain} error ${job.problem.code}` } : null);
  variants = new Map(job.runs.map((run) => [run.id, run.variant]));
  if (finalStates.includes(job.state)) drawReports(job);
  find('live').hidden = job.state !== 'running';
  drawPasses(job);
}

/** How far each run came, of a job that did not get to its end, or not yet. */
function drawPasses({ state, runs }) {
  find('job-passes').hidden = state === 'completed';
  find('job-passes').replaceChildren(...runs.map((run) => make('li', {}, make('span', { class: 'of' }, run.variant),
    ...run.passes.map((pass) => make('span', {}, `${pass.pass} `, stateBadge(pass.state))))));
}

const historyOf = (run, metric) => `/history.html?job=${id}&run=${run}${metric ? `&metric=${metric}` : ''}`;

/** The report of each run that yielded something, but for ceilings, which have none; the first two side by side, and the first
 * among its likes. */
function drawReports({ runs: all, kind }) {
  const runs = all.filter((run) => run.passes.some((pass) => pass.state === 'completed'));
  const [first, second] = runs;
  const reported = kind === 'ceilings' ? [] : runs;
  find('job-reports').replaceChildren(
    ...reported.map((run) => make('a', { href: `/report.html?run=${run.id}` }, `Report ${run.variant}`)),
    ...(second ? [make('a', { href: `/compare.html?a=${first.id}&b=${second.id}` }, 'Compare')] : []),
    ...(first ? [make('a', { href: historyOf(first.id) }, 'History')] : []),
  );
}

function drawProblem(problem) {
  find('problem').hidden = problem === null;
  if (problem === null) return;
  find('problem').replaceChildren(make('strong', {}, problem.title), make('p', {}, problem.message),
    problem.detail ? make('p', { class: 'quiet mono' }, problem.detail) : '');
}

const liveNumbers = [
  ['Loss', 'train_loss', show.loss], ['Images/s', 'images_per_s', show.count],
  ['Test accuracy', 'test_accuracy_ratio', show.percent],
];

function drawProgress(data) {
  const share = shareDone(data);
  find('live').hidden = false;
  const epoch = data.epoch >= 0 ? ` ${data.epoch + 1} of ${data.epochs}` : '';
  find('live-what').textContent = `${variants.get(data.run_id) ?? ''} · ${data.pass} pass · ${data.phase}${epoch}`;
  find('live-eta').textContent = data.eta_s === null ? '' : `about ${show.duration(data.eta_s)} left in this pass`;
  if (share === null) find('live-bar').removeAttribute('value');
  else find('live-bar').value = share;
  find('live-numbers').replaceChildren(...liveNumbers.filter(([, field]) => data[field] !== null)
    .map(([label, field, write]) => make('div', {}, make('dt', {}, label), make('dd', {}, write(data[field])))));
}

/* --- measurements and provenance ------------------------------------------------------------------------------------ */

/** A name that may be broken behind each of its underscores. */
const breakable = (name) => name.split(/(?<=_)/).flatMap((part) => [part, make('wbr')]);

function wideTable(table, name, runs, rows) {
  table.replaceChildren(
    make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, name),
      ...runs.map((run, index) => make('th', { scope: 'col' }, key(index), run.variant)))),
    make('tbody', {}, ...rows));
}

function drawMeasurements(runs) {
  const names = new Map();
  for (const run of runs) for (const one of run.measurements) names.set(`${one.pass} ${one.name}`, one);
  find('measurements').hidden = names.size === 0;
  const having = (name) => runs.find((run) => run.measurements.some((one) => one.name === name && one.value !== null));
  const nameOf = (name) => (having(name)
    ? [make('a', { class: 'plain', href: historyOf(having(name).run, name) }, ...breakable(name))] : breakable(name));
  const rows = [...names.values()].map(({ pass, name }) => make('tr', {},
    make('th', { scope: 'row' }, ...nameOf(name), ' ', make('span', { class: 'quiet' }, pass)),
    ...runs.map((run) => {
      const one = run.measurements.find((other) => other.pass === pass && other.name === name);
      return numberCell(show.byName(name, one?.value), one ? one.reason : 'this run has no such number');
    })));
  wideTable(find('measurement-table'), 'Number', runs, rows);
  for (const head of find('measurement-table').querySelectorAll('thead th + th')) head.className = 'n';
}

/** A shape is n=1024 rows=2, as rooflinectl takes it; what is empty was not asked for. */
function textOf(value) {
  if (Array.isArray(value)) return value.map(textOf).join('; ');
  if (value === null || typeof value !== 'object') return String(value);
  return Object.entries(value).filter(([, one]) => one !== '' && one !== null)
    .map(([name, one]) => (typeof one === 'object' ? textOf(one) : `${name}=${one}`)).join(' ');
}
const textCell = (value, runs) => (value === null || value === undefined || value === ''
  ? make('td', { class: 'null', colspan: runs, ...unmeasured('not known') }, '—')
  : make('td', { class: 'wrap', colspan: runs }, textOf(value)));

/** A cell for each run, or one for all where they agree. */
function textCells(values) {
  const same = values.every((value) => JSON.stringify(value) === JSON.stringify(values[0]));
  return same ? [textCell(values[0], values.length)] : values.map((value) => textCell(value, 1));
}

function drawProvenance(runs) {
  const facts = [
    ['engine', (run) => run.engine], ['dataset', (run) => run.dataset && `${run.dataset}${run.partial ? ' (part of it)' : ''}`],
    ['dataset SHA-256', (run) => run.dataset_sha256], ['commit', (run) => run.commit],
    ['deterministic', (run) => (run.deterministic === null ? null : run.deterministic ? 'yes' : `no: ${run.deterministic_note}`)],
    ['images an epoch', (run) => show.count(run.images_per_epoch)], ['steps an epoch', (run) => show.count(run.steps_per_epoch)],
    ['parameters', (run) => show.count(run.parameters)], ['model: operations', (run) => show.plain(run.floor_operations)],
    ['model: bytes', (run) => show.bytes(run.floor_bytes)],
    ['passes', (run) => run.passes.map((pass) => `${pass.pass}: ${pass.state}`).join(', ')],
  ];
  const given = (name) => runs.some((run) => (run.params?.[name] ?? '') !== '');
  const params = [...new Set(runs.flatMap((run) => Object.keys(run.params || {})))].filter(given).map((name) => [`asked: ${name}`,
    (run) => run.params?.[name]]);
  const device = [...new Set(runs.flatMap((run) => Object.keys(run.device || {})))].map((name) => [`device ${name}`,
    (run) => (typeof run.device?.[name] === 'number' ? show.byName(name, run.device[name]) : run.device?.[name])]);
  find('provenance').hidden = runs.length === 0;
  const known = facts.filter(([, of]) => runs.some((run) => of(run) !== null)); // a kernel has no data set, training no shape
  wideTable(find('provenance-table'), 'Fact', runs, [...known, ...params, ...device].map(([label, of]) => make('tr', {},
    make('th', { scope: 'row' }, ...breakable(label)), ...textCells(runs.map(of)))));
}

/* --- loading -------------------------------------------------------------------------------------------------------- */

async function drawResults(job) {
  const [results, comparison, kernels] = await Promise.all([
    get(`/jobs/${id}/results`), get(`/jobs/${id}/comparison`), all(`/jobs/${id}/kernels?limit=1000&most_metrics=${MOST_METRICS}`),
  ]);
  const withFacts = results.runs.filter((run) => run.engine);
  drawComparison(results.runs, comparison.items);
  await drawSource(job);
  drawEpochs(results.runs);
  drawKernels(results.runs, kernels);
  await drawTimeline(id, results.runs, kernels);
  drawMeasurements(results.runs);
  drawProvenance(withFacts);
  document.body.dataset.loaded = job.state;
}

async function refresh() {
  const job = await get(`/jobs/${id}`);
  drawHead(job);
  await drawResults(job);
  if (finalStates.includes(job.state)) {
    stopListening?.();
  } else {
    stopListening ??= listen(id, (type, data) => {
      if (type === 'progress') drawProgress(data);
      else guarded();
    });
  }
}

/** Refresh, one at a time; what goes wrong is shown and, while the daemon is away, tried again. */
let refreshing = null;
function guarded() {
  refreshing = (refreshing ?? Promise.resolve()).then(refresh).catch((problem) => {
    drawProblem({ title: problem.title || 'The page failed', message: problem.message });
    if (problem.status === 0) setTimeout(guarded, 3000);
    else if (problem.status === undefined) throw problem;
  });
  return refreshing;
}

find('cancel').addEventListener('click', async () => {
  find('cancel').disabled = true;
  await remove(`/jobs/${id}`).catch((problem) => drawProblem({ title: problem.title, message: problem.message }));
  find('cancel').disabled = false;
  guarded();
});

find('again').addEventListener('click', async () => {
  find('again').disabled = true;
  await post('/jobs', request).then((job) => location.assign(`/job.html?id=${job.id}`),
    (problem) => drawProblem({ title: problem.title, message: problem.message }));
  find('again').disabled = false;
});

if (Number.isSafeInteger(id) && id > 0) guarded();
else drawProblem({ title: 'Which job?', message: 'The address needs a job’s number, like job.html?id=1.' });
