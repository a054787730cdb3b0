// One job: live progress while it runs, then comparison, epochs, kernels, measurements and provenance.
import { getAllPages, finalStates, get, listenToJob, post, httpDelete, doneFraction } from '/lib/api.js';
import { drawBounds, fetchBounds } from '/lib/bounds.js';
import { drawComparison } from '/lib/comparison.js';
import { drawEpochs } from '/lib/epochs.js';
import { byId, createElement, stateBadge, attributesOfMissingValue } from '/lib/dom.js';
import { drawKernels, METRICS_LIMIT } from '/lib/kernels.js';
import { drawMeasurements } from '/lib/measurements.js';
import { drawProblem } from '/lib/problem.js';
import { drawMemoryPurposes } from '/lib/memory_purposes.js';
import { breakable, fillRunTable } from '/lib/run_table.js';
import { drawSource } from '/lib/source.js';
import { drawStepTime } from '/lib/step_time.js';
import { drawTimeline } from '/lib/timeline.js';
import * as format from '/lib/format.js';

const id = Number(new URLSearchParams(location.search).get('id'));
let stopListening = null;
let variants = new Map(); // run id -> variant
let request = null;       // body of the POST that submits the job again
let current = null;       // the job, as the API returned it last

/* --- head and progress -------------------------------------------------------------------------------------------- */

/** Returns a posted kernel and the name of its source: "add (saxpy.cu)"; null for other jobs. */
const postedKernel = ({ kind, request: { entry, name } }) =>
  (kind !== 'source' ? null : name ? `${entry} (${name})` : entry);

/** Returns the job's name; if it has none, the posted kernel or the imported file; null if there is none of these. */
const titleOf = ({ request: { name, entry, file_name: file } }) => name || entry || file || null;

function drawHead(job) {
  current = job;
  const title = titleOf(job);
  document.title = `Job ${job.id}${title ? ` ${title}` : ''} ${job.state} · rooflined`;
  byId('job-title').textContent = `Job ${job.id}${title ? ` · ${title}` : ''}`;
  byId('job-tags').replaceChildren(...(job.request.tags ?? []).map((tag) => createElement('span', { class: 'tag' }, tag)));
  byId('job-state').replaceChildren(stateBadge(job.state));
  byId('label').hidden = false;
  byId('cancel').hidden = finalStates.includes(job.state);
  // The stored request of these kinds lacks the posted code or the trace, so it can't be sent again.
  byId('again').hidden = !finalStates.includes(job.state) || ['source', 'import'].includes(job.kind);
  request = { ...job.request, device: job.device };
  const runTime = format.duration(format.secondsBetween(job.started_at, job.finished_at));
  const isImport = job.kind === 'import';
  const workload = job.kind === 'source' ? `kernel ${job.request.entry}` : job.runs[0]?.workload ?? '';
  const subject = [`${workload} ${format.parameters(job.request)}`.trim(), ...format.launch(job.request)].join(' · ');
  byId('job-properties').textContent = [
    isImport ? `trace ${job.request.file_name} (${job.request.format}, ${format.bytes(job.request.bytes)})` : subject,
    isImport ? null : `on ${job.device}`,
    `created ${format.dateTime(job.created_at)}`,
    runTime ? `took ${runTime}` : null,
  ]
    .filter(Boolean)
    .join(' · ');
  byId('import-notes').textContent = isImport ? (job.runs[0].log ?? '').trim().split('\n').join(' · ') : '';
  drawProblem(
    job.problem
      ? {
          title: job.state === 'failed' ? 'The job failed' : 'Problem',
          message: job.problem.message,
          detail: job.problem.code === 0 ? null : `${job.problem.domain} error ${job.problem.code}`,
        }
      : null,
  );
  variants = new Map(job.runs.map((run) => [run.id, run.variant]));
  if (finalStates.includes(job.state)) drawReports(job);
  byId('live').hidden = job.state !== 'running';
  drawPasses(job);
}

/** Returns the state of a pass for the page: "not run" for a pass that was still pending when its job ended. */
const passState = (pass, jobState) => (pass.state === 'pending' && finalStates.includes(jobState) ? 'not run' : pass.state);

/** Lists the state of each run's passes, while the job is not completed. */
function drawPasses({ state, runs }) {
  byId('job-passes').hidden = state === 'completed';
  byId('job-passes').replaceChildren(
    ...runs.map((run) =>
      createElement(
        'li',
        {},
        createElement('span', { class: 'of' }, run.variant),
        ...run.passes.map((pass) => createElement('span', {}, `${pass.pass} `, stateBadge(passState(pass, state)))),
      ),
    ),
  );
}

const historyUrl = (run, metric) => `/history.html?job=${id}&run=${run}${metric ? `&metric=${metric}` : ''}`;

/** Links to the report of each run that has results (a ceilings job has no reports), to the comparison of the first two such
 * runs, and to the history of the first. */
function drawReports({ runs: allRuns, kind }) {
  const runs = allRuns.filter((run) => run.passes.some((pass) => pass.state === 'completed'));
  const [first, second] = runs;
  const reported = kind === 'ceilings' ? [] : runs;
  byId('job-reports').replaceChildren(
    ...reported.map((run) => createElement('a', { href: `/report.html?run=${run.id}` }, `Report ${run.variant}`)),
    ...(second ? [createElement('a', { href: `/compare.html?a=${first.id}&b=${second.id}` }, 'Compare')] : []),
    ...(first ? [createElement('a', { href: historyUrl(first.id) }, 'History')] : []),
  );
}

const liveNumbers = [
  ['Loss', 'train_loss', format.loss], ['Images/s', 'images_per_s', format.count],
  ['Test accuracy', 'test_accuracy_ratio', format.percent],
];

function drawProgress(data) {
  const share = doneFraction(data);
  byId('live').hidden = false;
  const epoch = data.epoch >= 0 ? ` ${data.epoch + 1} of ${data.epochs}` : '';
  byId('live-what').textContent = `${variants.get(data.run_id) ?? ''} · ${data.pass} pass · ${data.phase}${epoch}`;
  byId('live-eta').textContent = data.eta_s === null ? '' : `about ${format.duration(data.eta_s)} left in this pass`;
  if (share === null) byId('live-bar').removeAttribute('value');
  else byId('live-bar').value = share;
  byId('live-numbers').replaceChildren(
    ...liveNumbers
      .filter(([, field]) => data[field] !== null)
      .map(([label, field, formatValue]) =>
        createElement('div', {}, createElement('dt', {}, label), createElement('dd', {}, formatValue(data[field]))),
      ),
  );
}

/* --- provenance ------------------------------------------------------------------------------------ */

/** Returns a value as text; an object, such as a shape, as "n=1024 rows=2", like rooflinectl. Skips empty members of objects. */
function formatValue(value) {
  if (Array.isArray(value)) return value.map(formatValue).join('; ');
  if (value === null || typeof value !== 'object') return String(value);
  return Object.entries(value).filter(([, member]) => member !== '' && member !== null)
    .map(([name, member]) => (typeof member === 'object' ? formatValue(member) : `${name}=${member}`)).join(' ');
}
const textCell = (value, runs) => (value === null || value === undefined || value === ''
  ? createElement('td', { class: 'null', colspan: runs, ...attributesOfMissingValue('unknown') }, '—')
  : createElement('td', { class: 'wrap', colspan: runs }, formatValue(value)));

/** Creates a cell for each run, or one cell if all values are equal. */
function textCells(values) {
  const same = values.every((value) => JSON.stringify(value) === JSON.stringify(values[0]));
  return same ? [textCell(values[0], values.length)] : values.map((value) => textCell(value, 1));
}

function drawProvenance(runs) {
  const properties = [
    ['Engine', (run) => run.engine],
    ['Dataset', (run) => run.dataset && `${run.dataset}${run.partial ? ' (partial)' : ''}`],
    ['Dataset SHA-256', (run) => run.dataset_sha256],
    ['Commit', (run) => run.commit],
    ['Deterministic', (run) => (run.deterministic === null ? null : run.deterministic ? 'yes' : `no: ${run.deterministic_note}`)],
    ['Images per epoch', (run) => format.count(run.images_per_epoch)],
    ['Steps per epoch', (run) => format.count(run.steps_per_epoch)],
    ['Parameters', (run) => format.count(run.parameters)],
    ['Compulsory operations', (run) => format.number(run.floor_operations)],
    ['Compulsory bytes', (run) => format.bytes(run.floor_bytes)],
    ['Passes', (run) => run.passes.map((pass) => `${pass.pass}: ${pass.state}`).join(', ')],
  ];
  const isSet = (name) => runs.some((run) => (run.params?.[name] ?? '') !== '');
  const params = [...new Set(runs.flatMap((run) => Object.keys(run.params || {})))]
    .filter(isSet)
    .map((name) => [`Requested ${format.wordsOfField(name)}`, (run) => run.params?.[name]]);
  const deviceRow = (name) => [`Device ${format.wordsOfField(name)}`,
    (run) => (typeof run.device?.[name] === 'number' ? format.metricValue(name, run.device[name]) : run.device?.[name])];
  const device = [...new Set(runs.flatMap((run) => Object.keys(run.device || {})))].map(deviceRow);
  byId('provenance').hidden = runs.length === 0;
  const knownProperties = properties.filter(([, getValue]) => runs.some((run) => getValue(run) !== null));
  fillRunTable(
    byId('provenance-table'),
    'Property',
    runs,
    [...knownProperties, ...params, ...device].map(([label, getValue]) =>
      createElement('tr', {}, createElement('th', { scope: 'row' }, ...breakable(label)), ...textCells(runs.map(getValue))),
    ),
  );
}

/** Shows why the rates of a ceilings job may be too low. */
function drawDisturbed(runs) {
  const reason = runs.map((run) => run.disturbed_reason).find((text) => text !== null) ?? null;
  byId('disturbed').hidden = reason === null;
  byId('disturbed').textContent = reason ?? '';
}

/* --- loading -------------------------------------------------------------------------------------------------------- */

async function drawResults(job) {
  const [results, comparison, kernels, bounds] = await Promise.all([
    get(`/jobs/${id}/results`),
    get(`/jobs/${id}/comparison`),
    getAllPages(`/jobs/${id}/kernels?limit=1000&most_metrics=${METRICS_LIMIT}`),
    fetchBounds(job.runs),
  ]);
  const runsWithMetadata = results.runs.filter((run) => run.engine);
  drawBounds(bounds);
  drawComparison(results.runs, comparison.items, postedKernel(job));
  await drawSource(job);
  drawEpochs(results.runs);
  drawMemoryPurposes(results.runs);
  drawStepTime(results.runs, kernels);
  drawKernels(results.runs, kernels);
  await drawTimeline(id, results.runs, kernels);
  drawDisturbed(results.runs);
  drawMeasurements(results.runs, historyUrl);
  drawProvenance(runsWithMetadata);
  document.body.dataset.loaded = job.state;
}

async function refresh() {
  const job = await get(`/jobs/${id}`);
  drawHead(job);
  await drawResults(job);
  if (finalStates.includes(job.state)) {
    stopListening?.();
  } else {
    stopListening ??= listenToJob(id, (type, data) => {
      if (type === 'progress') drawProgress(data);
      else refreshSafely();
    });
  }
}

/** Refreshes the page after any refresh that is still running. Shows errors, and retries while the daemon does not respond. */
let refreshing = null;
function refreshSafely() {
  refreshing = (refreshing ?? Promise.resolve()).then(refresh).catch((problem) => {
    drawProblem(problem, problem.status === 0);
    if (problem.status === 0) setTimeout(refreshSafely, 3000);
    else if (problem.status === undefined) throw problem;
  });
  return refreshing;
}

byId('cancel').addEventListener('click', async () => {
  byId('cancel').disabled = true;
  await httpDelete(`/jobs/${id}`).catch(drawProblem);
  byId('cancel').disabled = false;
  refreshSafely();
});

byId('label').addEventListener('click', async () => {
  const { openLabels } = await import('/lib/labels.js');
  openLabels(current, drawHead);
});

byId('again').addEventListener('click', async () => {
  byId('again').disabled = true;
  await post('/jobs', request).then((job) => location.assign(`/job.html?id=${job.id}`), drawProblem);
  byId('again').disabled = false;
});

if (Number.isSafeInteger(id) && id > 0) refreshSafely();
else drawProblem({ title: 'Which job?', message: 'The address needs the number of a job, like job.html?id=1.' });
