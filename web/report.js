// The report of one kernel of a run: its facts, what the rules found, where it stands under the roofs, and every section.
import { all, get } from '/lib/api.js';
import { bar, find, make, numberCell, unmeasured } from '/lib/dom.js';
import { drawInstructions } from '/lib/instructions.js';
import { accessesOf } from '/lib/memory.js';
import { drawRoofline } from '/lib/roofline.js';
import { findingItem, nameColumn, openTarget, sectionBlocks, tableOf } from '/lib/sections.js';
import { drawSeries } from '/lib/series.js';
import { postedCode } from '/lib/source.js';
import * as show from '/lib/format.js';

const asked = new URLSearchParams(location.search);
const run = Number(asked.get('run'));

function drawProblem(title, message) {
  find('problem').hidden = false;
  find('problem').replaceChildren(make('strong', {}, title), make('p', {}, message));
}

/* --- head ----------------------------------------------------------------------------------------------------------- */

const nameOf = (kernel) => kernel.launch || kernel.name;

/** A row by its metric, from whichever section has it. */
const rowOf = (kernel, metric) => (kernel.sections ?? []).flatMap((section) => section.tables.flatMap((table) => table.rows))
  .find((row) => row.metric === metric);

function fact(name, text, reason) {
  return make('div', {}, make('dt', {}, name), text === null
    ? make('dd', { class: 'null', ...unmeasured(reason) }, '—') : make('dd', {}, text));
}

function factOf(kernel, name, metric) {
  const row = rowOf(kernel, metric);
  return fact(name, show.quantity(row?.value, row?.unit), row?.reason ?? kernel.reason ?? 'its section was not collected');
}

function drawHead(report, kernel) {
  document.title = `${nameOf(kernel)} · rooflined`;
  find('kernel-title').textContent = nameOf(kernel);
  find('kernel-name').textContent = kernel.launch ? kernel.name : '';
  find('run-facts').textContent = [report.workload, report.variant, `run ${report.run}`,
    `on ${report.device_facts?.name ?? report.device}`, report.commit ? `commit ${report.commit.slice(0, 12)}` : null,
    show.instant(report.at)].filter(Boolean).join(' · ');
  find('job-link').href = `/job.html?id=${report.job}`;
  find('job-link').textContent = `Job ${report.job}`;
  find('job-link').hidden = false;
  find('kernel-facts').replaceChildren(
    fact('Duration', show.us((kernel.roofline.duration_s ?? NaN) * 1e6), kernel.reason),
    fact('Grid', show.shape(kernel.grid), kernel.reason), fact('Block', show.shape(kernel.block), kernel.reason),
    factOf(kernel, 'SM throughput', 'sm__throughput.avg.pct_of_peak_sustained_elapsed'),
    factOf(kernel, 'Memory throughput', 'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed'),
    factOf(kernel, 'Achieved occupancy', 'sm__warps_active.avg.pct_of_peak_sustained_active'),
    factOf(kernel, 'Registers a thread', 'launch__registers_per_thread'));
}

/** The kernels that the report has, by the list of the job's: those of the counters pass, else of the activity pass. */
function drawChoice(kernels, kernel) {
  const ofRun = kernels.filter((one) => one.run === run && one.pass === kernel.pass);
  find('kernel').replaceChildren(...(ofRun.length > 0 ? ofRun : [kernel]).map((one) => make('option', { value: one.ordinal },
    `${one.ordinal} ${nameOf(one)}`)));
  find('kernel').value = String(kernel.ordinal);
}

function drawLinks(job) {
  const csv = (page) => make('a',
    { href: `/runs/${run}/report?format=csv&page=${page}${page === 'details' ? '&print_details=all' : ''}` }, `CSV, ${page}`);
  const other = job.runs.find((one) => one.id !== run);
  find('links').replaceChildren(csv('details'), csv('raw'), make('a', { href: `/runs/${run}/report` }, 'JSON'),
    ...(other ? [make('a', { href: `/compare.html?a=${other.id}&b=${run}` }, 'Compare')] : []),
    make('a', { href: `/history.html?job=${job.id}&run=${run}` }, 'History'));
}

/* --- findings, roofs, sections -------------------------------------------------------------------------------------- */

const gain = (finding) => finding.speedup_pct ?? -1;

function drawFindings(findings) {
  find('findings').hidden = findings.length === 0;
  find('finding-list').replaceChildren(...[...findings].sort((a, b) => gain(b) - gain(a)).map((finding) => findingItem(finding)));
}

/** share: the field that says how much of this rate the kernel reached, if there is one. */
const rateColumn = (label, field, reason, share) => ({ label, number: true, cell: (roof) => {
  const cell = numberCell((roof.bytes ? show.bytesPerSecond : show.operationsPerSecond)(roof[field]), reason);
  if (roof[share] > 0) cell.append(make('span', { class: 'parts quiet' }, show.percent(roof[share])));
  return cell;
} });
const roofColumns = [
  { label: 'Roof', cell: (roof) => make('th', { scope: 'row' }, roof.name) },
  rateColumn('Achieved', 'achieved_per_s', 'not counted'),
  rateColumn('Theoretical', 'theoretical_per_s', 'not known of this device', 'of_theoretical_ratio'),
  rateColumn('Measured', 'measured_per_s', 'no ceilings run measured it on this device', 'of_measured_ratio'),
];
const drawRoofs = ({ levels, units }) => find('roof-table').replaceChildren(
  tableOf('Roofs', roofColumns, [...levels.map((level) => ({ ...level, bytes: true })), ...units]));

/** What the bars of a table are shares of: its rows must be parts of one kind. null: no bars. */
function scaleOf({ name, rows }) {
  const values = rows.map((row) => row.value).filter((value) => value !== null);
  if (name === '' || values.length < 3 || rows.some((row) => row.unit !== rows[0].unit) || Math.min(...values) < 0) return null;
  return rows[0].unit === '%' ? 100 : Math.max(...values);
}

/** What is shown with bars has the longest first, as of a breakdown the first decides. */
const longestFirst = (table) => (scaleOf(table) === null ? table
  : { ...table, rows: [...table.rows].sort((a, b) => (b.value ?? -1) - (a.value ?? -1)) });

/** What is known without being counted says so where the pointer rests. */
function quantityCell(row, scale) {
  const cell = numberCell(show.quantity(row.value, row.unit), row.reason);
  if (row.value !== null && row.reason) cell.title = row.reason;
  if (row.value !== null && scale > 0) {
    cell.prepend(make('span', { class: 'share', 'aria-hidden': 'true' }, bar('', row.value / scale)));
  }
  return cell;
}

const valueColumn = (scale) => ({ label: 'Value', number: true,
  cell: (row) => (row.text ? make('td', { class: 'n' }, row.text) : quantityCell(row, scale)) });

function drawSections(kernel) {
  const found = (section) => kernel.findings.filter((finding) => finding.section === section.id).length;
  const counted = (count) => make('span', { class: 'tag' }, count === 1 ? '1 finding' : `${count} findings`);
  const badge = (section) => (found(section) > 0 ? counted(found(section)) : null);
  find('no-sections').hidden = kernel.sections !== null;
  find('no-sections').textContent = kernel.sections === null ? `No sections: ${kernel.reason}` : '';
  const sections = (kernel.sections ?? []).map((section) => ({ ...section, tables: section.tables.map(longestFirst) }));
  find('sections').replaceChildren(...sectionBlocks(sections, (table) => [nameColumn, valueColumn(scaleOf(table))],
    badge, accessesOf));
  const first = find('sections').firstElementChild;
  if (first) first.open = true;
}

const limits = { occupancy_by_registers: ['launch__registers_per_thread'], occupancy_by_block_size: ['launch__block_size'],
  occupancy_by_shared_bytes: ['launch__shared_mem_per_block_static', 'launch__shared_mem_per_block_dynamic'] };

/** Where the kernel stands on a curve of its occupancy; null where that is not known. */
function placeOf(kernel, curve) {
  const values = limits[curve]?.map((metric) => rowOf(kernel, metric)?.value ?? null) ?? [null];
  return values.includes(null) ? null : values.reduce((a, b) => a + b);
}

/* --- loading -------------------------------------------------------------------------------------------------------- */

async function load(ordinal) {
  const report = await get(`/runs/${run}/report?kernel=${ordinal}`);
  const [kernel] = report.kernels;
  if (kernel === undefined) {
    drawProblem('No such kernel', `Run ${run} has no kernel ${ordinal}.`);
    return;
  }
  const [job, kernels, code] = await Promise.all([get(`/jobs/${report.job}`),
    all(`/jobs/${report.job}/kernels?run=${run}&limit=1000&most_metrics=0`),
    report.kind === 'source' ? postedCode(report.job) : null]);
  find('report').hidden = false;
  drawHead(report, kernel);
  drawChoice(kernels, kernel);
  drawLinks(job);
  drawFindings(kernel.findings);
  drawRoofline(kernel.roofline);
  drawRoofs(kernel.roofline);
  find('no-ceilings').hidden = report.ceilings_reason === null;
  find('no-ceilings').textContent = `No measured roofs: ${report.ceilings_reason}.`;
  drawSections(kernel);
  drawSeries(kernel.series, (name) => placeOf(kernel, name));
  drawInstructions(kernel.instructions, code);
  document.body.dataset.loaded = String(ordinal);
  openTarget();
}

const guarded = (ordinal) => load(ordinal).catch((problem) => {
  drawProblem(problem.title || 'The page failed', problem.message);
  if (problem.status === undefined) throw problem;
});

find('kernel').addEventListener('change', () => {
  history.replaceState(null, '', `?run=${run}&kernel=${find('kernel').value}`);
  guarded(Number(find('kernel').value));
});

const ordinal = Number(asked.get('kernel') ?? 0);
if (Number.isSafeInteger(run) && run > 0 && Number.isSafeInteger(ordinal) && ordinal >= 0) guarded(ordinal);
else drawProblem('Which run?',
  'The address needs a run’s number, like report.html?run=1, and may have a kernel’s, like &kernel=0.');
