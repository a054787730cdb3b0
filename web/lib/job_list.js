// The table of jobs, with sorting by a column. A row shows what the job ran.
import { finalStates } from '/lib/api.js';
import { createElement, numberCell, stateBadge } from '/lib/dom.js';
import * as format from '/lib/format.js';
import { nextSorting, sortRows, sortableHead } from '/lib/sortable.js';

const fastestMs = ({ fastest }) => fastest && (fastest.epoch_ms_median ?? fastest.time_cold_us_median / 1000);
const endOf = (job) => job.finished_at || (finalStates.includes(job.state) ? null : new Date().toISOString());
const duration = (job) => format.secondsBetween(job.started_at, endOf(job));
const SHOWN_ELSEWHERE = ['batch_size', 'engine', 'precision', 'variant', 'dtype', 'samples', 'seed'];
const parameterTexts = ({ parameters }) => Object.entries(parameters ?? {}).filter(([name]) => !SHOWN_ELSEWHERE.includes(name))
  .map(([name, value]) => `${name}=${value}`);

// Engines of kernels, posted code and ceilings. A row does not show them, because the kind of job and the device determine them.
const HIDDEN_ENGINES = ['cpu', 'cuda', 'nvrtc', 'ceilings'];
/** Returns what distinguishes a job from others of its workload: data type and sizes, or batch size; grid and block of posted
 * code; parameters that are not defaults (the API omits the others); engine. */
const details = (job) => [format.parameters(job), ...format.launch(job), ...parameterTexts(job),
  HIDDEN_ENGINES.includes(job.engine) ? null : job.engine].filter(Boolean).join(' · ');

/** Returns the step of a suite run that submitted a job: "suite mnist · block 3". */
const suiteStep = ({ suite, role, block }) => `suite ${suite} · ${role.replaceAll('_', ' ')}${/^canary|profile$/.test(role) ? ''
  : ` ${block + 1}`}`;

/** Returns the text of a row's link: the job's name, else the posted kernel, else the workload. */
const titleOf = (job) => job.name ?? job.entry ?? job.workload;

function jobCell(job) {
  const subtitle = [...(titleOf(job) === job.workload ? [] : [job.name && job.entry ? job.entry : job.workload]), details(job)];
  const tags = [...job.tags, ...(job.origin === 'daemon' ? ['by the daemon'] : [])];
  const suiteTag = job.suite_run && createElement('a', { class: 'tag', href: `/suite-run.html?id=${job.suite_run.id}` },
    suiteStep(job.suite_run));
  return createElement('td', { class: 'words' },
    createElement('a', { class: 'job-title', href: `/job.html?id=${job.id}` }, titleOf(job)),
    ...tags.map((tag) => createElement('span', { class: 'tag' }, tag)), suiteTag,
    createElement('span', { class: 'quiet job-details' }, subtitle.filter(Boolean).join(' · ')));
}

/** Returns nodes with the variants of the job's runs. Each links to its report. The fastest run's node also shows its time. */
function runNodes({ kind, passes, runs, fastest }) {
  if (kind === 'ceilings') return []; // has one run, whose numbers stand on the job's page
  const time = fastest && (format.ms(fastest.epoch_ms_median) ?? format.us(fastest.time_cold_us_median));
  const title = fastest?.epoch_ms_median === null ? 'Fastest: median, cold cache' : 'Fastest: median epoch';
  const hasReports = passes.completed > 0;
  const nameOf = ({ id, variant }) => (fastest?.run === id ? createElement('strong', { title }, `${variant} ${time}`) : variant);
  const linkOf = (run) => (hasReports ? createElement('a', { class: 'plain', href: `/report.html?run=${run.id}` }, nameOf(run))
    : nameOf(run));
  return runs.flatMap((run, index) => (index === 0 ? [linkOf(run)] : [' · ', linkOf(run)]));
}

const stateCell = (job, progress) => createElement('td', {}, stateBadge(job.state),
  progress && job.state === 'running' ? createElement('span', { class: 'quiet' }, ` ${progress}`) : null);

const columns = [
  { label: 'Job', number: true, value: (job) => job.id },
  { label: 'State', value: (job) => job.state },
  { label: 'Name and workload', value: titleOf },
  { label: 'Fastest run', number: true, value: fastestMs },
  { label: 'Device', value: (job) => job.device },
  { label: 'Created', number: true, value: (job) => Date.parse(job.created_at) },
  { label: 'Duration', number: true, value: (job) => duration(job) || null },
];
const columnIndex = (label) => columns.findIndex((column) => column.label === label);

function jobRow(job, progress) {
  return createElement('tr', {},
    createElement('th', { scope: 'row', class: 'n' }, createElement('a', { href: `/job.html?id=${job.id}` }, String(job.id))),
    stateCell(job, progress), jobCell(job), createElement('td', { class: 'words' }, ...runNodes(job)),
    createElement('td', { class: 'mono' }, job.device),
    createElement('td', {}, createElement('time', { datetime: job.created_at }, format.dateTime(job.created_at))),
    numberCell(format.duration(duration(job)), 'the job has not started'));
}

/** Replaces children and keeps the focus on the element with the same key. */
function replaceChildren(parent, children, selector, keyOf) {
  const focused = parent.contains(document.activeElement) ? keyOf(document.activeElement) : null;
  parent.replaceChildren(...children);
  if (focused) [...parent.querySelectorAll(selector)].find((one) => keyOf(one) === focused)?.focus({ preventScroll: true });
}

/** The table of jobs, sorted by a column that the user selects. Initially the newest job is first. */
export class JobTable {
  #table;
  #sorting = { column: columnIndex('Job'), down: true };
  #jobs = [];
  #progressOf;

  /** progressOf(id): returns the progress of a running job as text. */
  constructor(table, progressOf) {
    this.#table = table;
    this.#progressOf = progressOf;
    this.#draw();
  }

  show(jobs) {
    this.#jobs = jobs;
    this.#draw();
  }

  #draw() {
    const onSort = (index) => {
      this.#sorting = nextSorting(columns, this.#sorting, index);
      this.#draw();
    };
    const rows = sortRows(columns, this.#jobs, this.#sorting).map((job) => jobRow(job, this.#progressOf(job.id)));
    replaceChildren(this.#table, [sortableHead(columns, this.#sorting, onSort), createElement('tbody', {}, ...rows)], 'a, button',
      ({ href, textContent }) => `${href ?? ''} ${textContent}`);
  }
}
