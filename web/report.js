// The report of one kernel: properties, findings, roofline, sections, curves and instructions.
import { getAllPages, get } from '/lib/api.js';
import { bar, byId, createElement, numberCell, attributesOfMissingValue } from '/lib/dom.js';
import { differenceTo, getBaseline, pin, pinned, unpin, valuesOf } from '/lib/baseline.js';
import { drawContents } from '/lib/contents.js';
import { DROPPED_SAMPLES, drawInstructions, showLine } from '/lib/instructions.js';
import { drawKernelBars } from '/lib/kernel_bars.js';
import { drawKernelVerdicts } from '/lib/kernel_verdicts.js';
import { accessTable } from '/lib/memory.js';
import { drawMemoryChart } from '/lib/memory_chart.js';
import { drawProblem, showErrors } from '/lib/problem.js';
import { drawClockNote, drawRoofline, hasRoofline, roofName } from '/lib/roofline.js';
import { findingItem, nameColumn, openTarget, sectionBlocks, tableOf } from '/lib/sections.js';
import { drawSeries } from '/lib/series.js';
import { postedCode } from '/lib/source.js';
import { distinctLabel } from '/lib/timeline/names.js';
import * as format from '/lib/format.js';

const query = new URLSearchParams(location.search);
const run = Number(query.get('run'));
let baseline = null; // pinned baseline (lib/baseline.js)

/* --- head ----------------------------------------------------------------------------------------------------------- */

const kernelLabel = (kernel) => kernel.launch || kernel.name;

/** Returns the row of a metric from any section. */
const rowOf = (kernel, metric) => (kernel.sections ?? []).flatMap((section) => section.tables.flatMap((table) => table.rows))
  .find((row) => row.metric === metric);

function property(name, text, reason) {
  return createElement('div', {}, createElement('dt', {}, name), text === null
    ? createElement('dd', { class: 'null', ...attributesOfMissingValue(reason) }, '—') : createElement('dd', {}, text));
}

function metricProperty(kernel, name, metric, formatValue = format.rowValue) {
  const row = rowOf(kernel, metric);
  const item = property(name, row ? formatValue(row) : null, row?.reason ?? kernel.reason ?? 'its section was not collected');
  item.lastChild.append(differenceTo(baseline, metric, row?.value) ?? '');
  return item;
}

function durationProperty(kernel) {
  const { duration_s: seconds } = kernel.roofline;
  const item = property('Duration', format.us((seconds ?? NaN) * 1e6), kernel.reason);
  item.lastChild.append(differenceTo(baseline, 'gpu__time_duration.sum', seconds === null ? null : seconds * 1e9) ?? '');
  return item;
}

function drawHead(report, kernel) {
  document.title = `${kernelLabel(kernel)} · rooflined`;
  byId('kernel-title').textContent = kernelLabel(kernel);
  byId('kernel-name').textContent = kernel.launch ? kernel.name : '';
  const variant = report.variant === report.workload ? null : report.variant; // those of a sequence are the same word
  byId('run-properties').textContent = [report.workload, variant, `run ${report.run}`,
    `on ${report.device_properties?.name ?? report.device}`, report.commit ? `commit ${report.commit.slice(0, 12)}` : null,
    report.cache === 'empty' ? 'L2 empty before each kernel' : null, format.dateTime(report.at)].filter(Boolean).join(' · ');
  byId('job-link').href = `/job.html?id=${report.job}`;
  byId('job-link').textContent = `Job ${report.job}`;
  byId('job-link').hidden = false;
  byId('verdict').textContent = kernel.sections === null ? `No verdict: ${kernel.reason}.` : kernel.verdict.message;
  byId('verdict-advice').textContent = kernel.sections === null ? '' : (kernel.library ?? kernel.verdict).advice ?? '';
  byId('kernel-properties').replaceChildren(
    durationProperty(kernel),
    property('Grid', format.dimensions(kernel.grid), kernel.reason),
    property('Block', format.dimensions(kernel.block), kernel.reason),
    metricProperty(kernel, 'SM throughput', 'sm__throughput.avg.pct_of_peak_sustained_elapsed'),
    metricProperty(kernel, 'Memory throughput', 'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed'),
    metricProperty(kernel, 'Achieved occupancy', 'sm__warps_active.avg.pct_of_peak_sustained_active'),
    metricProperty(kernel, 'Registers per thread', 'launch__registers_per_thread', ({ value }) => format.count(value)));
}

/** Lists the run's kernels of the same pass. If several symbols have the same launch name, shows the symbols too. */
function drawKernelSelect(kernels, kernel) {
  const ofPass = kernels.filter((other) => other.run === run && other.pass === kernel.pass);
  const listed = ofPass.length > 0 ? ofPass : [kernel];
  byId('kernel').replaceChildren(...listed.map((other) =>
    createElement('option', { value: other.ordinal }, `${other.ordinal} ${distinctLabel(other, listed)}`)));
  byId('kernel').value = String(kernel.ordinal);
}

function drawLinks(job) {
  const csv = (page) => createElement('a',
    { href: `/runs/${run}/report?format=csv&page=${page}${page === 'details' ? '&print_details=all' : ''}` }, `CSV, ${page}`);
  const otherRun = job.runs.find(({ id }) => id !== run);
  byId('links').replaceChildren(csv('details'), csv('raw'), createElement('a', { href: `/runs/${run}/report` }, 'JSON'),
    ...(otherRun ? [createElement('a', { href: `/compare.html?a=${otherRun.id}&b=${run}` }, 'Compare')] : []),
    createElement('a', { href: `/history.html?job=${job.id}&run=${run}` }, 'History'));
}

/* --- findings, roofs, sections -------------------------------------------------------------------------------------- */

function drawFindings(findings) {
  byId('findings').hidden = findings.length === 0;
  byId('finding-list').replaceChildren(...findings.map((finding) => findingItem(finding)));
}

let hasRunFindings = false;

/** Lists the findings of the run's trace, which belong to no kernel. */
async function drawRunFindings(job) {
  if (hasRunFindings) return;
  hasRunFindings = true;
  const response = await get(`/runs/${run}/timeline/findings`).catch((problem) => {
    if (problem.status !== 422) throw problem; // 422: the trace has too many rows
    return { findings: null };
  });
  byId('run-findings').hidden = !response.findings?.length;
  const timeline = `/job.html?id=${job}#timeline&run=${run}`;
  byId('run-finding-list').replaceChildren(...(response.findings ?? []).map((finding) => findingItem(finding, { timeline })));
}

/** Creates a column of rates. share: the field with the share of this rate that was reached, or undefined. */
const rateColumn = (label, field, reason, share) => ({ label, number: true, cell: (roof) => {
  const rate = (roof.bytes ? format.bytesPerSecond : format.operationsPerSecond)(roof[field]);
  const isBound = field === 'achieved_per_s' && roof.achieved_is_upper_bound;
  const cell = numberCell(isBound ? `≤ ${rate}` : rate, reason);
  if (roof[share] > 0) cell.append(createElement('span', { class: 'parts quiet' }, format.percent(roof[share])));
  return cell;
} });
const roofColumns = [
  { label: 'Roof', cell: (roof) => createElement('th', { scope: 'row' }, roofName(roof.name)) },
  rateColumn('Achieved', 'achieved_per_s', 'not counted'),
  rateColumn('Theoretical', 'theoretical_per_s', 'unknown for this device', 'of_theoretical_ratio'),
  rateColumn('Measured', 'measured_per_s', 'no ceilings job measured it on this device', 'of_measured_ratio'),
];
const drawRoofs = ({ levels, units }) => byId('roof-table').replaceChildren(
  tableOf('Roofs', roofColumns, [...levels.map((level) => ({ ...level, bytes: true })), ...units]));

/** Returns the value whose bar fills the cell; null if the table has no bars, because its rows are not comparable. */
function scaleOf({ name, rows }) {
  const values = rows.map((row) => row.value).filter((value) => value !== null);
  if (name === '' || values.length < 3 || rows.some((row) => row.unit !== rows[0].unit) || Math.min(...values) < 0) return null;
  return rows[0].unit === '%' ? 100 : Math.max(...values);
}

/** Returns the table; if it has bars, with its rows sorted by value. */
const largestFirst = (table) => (scaleOf(table) === null ? table
  : { ...table, rows: [...table.rows].sort((a, b) => (b.value ?? -1) - (a.value ?? -1)) });

/** Creates the cell of a value. If the value was not counted but is known from the code, the cell's title has the reason. */
function quantityCell(row, scale) {
  const cell = numberCell(format.rowValue(row), row.reason);
  if (row.value !== null && row.reason) cell.title = row.reason;
  cell.append(differenceTo(baseline, row.metric, row.value) ?? '');
  if (row.value !== null && scale > 0) {
    cell.prepend(createElement('span', { class: 'share', 'aria-hidden': 'true' }, bar('', row.value / scale)));
  }
  return cell;
}

const valueColumn = (scale) => ({ label: 'Value', number: true,
  cell: (row) => (row.text ? createElement('td', { class: 'n' }, row.text) : quantityCell(row, scale)) });

function drawSections(kernel) {
  const findingCount = (section) => kernel.findings.filter((finding) => finding.section === section.id).length;
  const findingTag = (count) => createElement('span', { class: 'tag' }, count === 1 ? '1 finding' : `${count} findings`);
  const badge = (section) => (findingCount(section) > 0 ? findingTag(findingCount(section)) : null);
  byId('no-sections').hidden = kernel.sections !== null;
  byId('no-sections').textContent = kernel.sections === null ? `No sections: ${kernel.reason}` : '';
  const sections = (kernel.sections ?? []).map((section) => ({ ...section, tables: section.tables.map(largestFirst) }));
  byId('sections').replaceChildren(...sectionBlocks(sections, (table) => [nameColumn, valueColumn(scaleOf(table))],
    badge, accessTable));
  const first = byId('sections').firstElementChild;
  if (first) first.open = true;
}

const curveMetrics = { occupancy_by_registers: ['launch__registers_per_thread'], occupancy_by_block_size: ['launch__block_size'],
  occupancy_by_shared_bytes: ['launch__shared_mem_per_block_static', 'launch__shared_mem_per_block_dynamic'] };

/** Returns the kernel's own point [x, y] on an occupancy curve, or null. x: its registers, threads or shared memory; y: resident
 * warps per SM. */
function curvePoint(kernel, curve) {
  const warps = rowOf(kernel, 'sm__maximum_warps_avg_per_active_cycle')?.value ?? null;
  const values = curveMetrics[curve]?.map((metric) => rowOf(kernel, metric)?.value ?? null) ?? [null];
  return values.includes(null) || warps === null ? null : [values.reduce((a, b) => a + b), warps];
}

/* --- baseline ------------------------------------------------------------------------------------------------------- */

function drawBaseline(ordinal) {
  const chosen = pinned();
  const isThis = chosen?.run === run && chosen.kernel === ordinal;
  byId('pin').hidden = isThis;
  byId('unpin').hidden = chosen === null;
  byId('baseline').textContent = isThis ? 'This kernel is the baseline: open another report to compare it.'
    : baseline ? `Every value with its difference to ${baseline.label}` : '';
}

/* --- loading -------------------------------------------------------------------------------------------------------- */

/** Returns the ordinal of the run's kernel that takes the most time: in the counters pass, or in the trace if there is no
 * counters pass. */
async function hottestKernel() {
  const { a: { job } } = await get(`/compare?a=${run}&b=${run}&detail=names`); // the smallest reply that contains a run's job
  const kernels = await getAllPages(`/jobs/${job}/kernels?run=${run}&limit=1000&most_metrics=0`);
  const counted = kernels.filter(({ pass }) => pass === 'counters');
  const timeOf = (kernel) => kernel.counted_duration_us ?? kernel.total_us ?? 0;
  const listed = counted.length > 0 ? counted : kernels;
  return listed.reduce((hottest, kernel) => (timeOf(kernel) > timeOf(hottest) ? kernel : hottest), listed[0])?.ordinal ?? 0;
}

let currentOrdinal = null;

async function load(requested) {
  const ordinal = requested ?? await hottestKernel();
  currentOrdinal = ordinal;
  baseline = await getBaseline(run, ordinal);
  const report = await get(`/runs/${run}/report?kernel=${ordinal}`);
  const [kernel] = report.kernels;
  if (kernel === undefined) {
    drawProblem({ status: 404, title: 'Not found', message: `Run ${run} has no kernel ${ordinal}.` });
    return;
  }
  const [job, kernels, code, { kernels: verdicts }] = await Promise.all([get(`/jobs/${report.job}`),
    getAllPages(`/jobs/${report.job}/kernels?run=${run}&limit=1000&most_metrics=0`),
    report.kind === 'source' ? postedCode(report.job) : null, get(`/runs/${run}/report?detail=verdicts`)]);
  byId('report').hidden = false;
  drawBaseline(ordinal);
  drawHead(report, kernel);
  drawKernelSelect(kernels, kernel);
  drawLinks(job);
  drawKernelVerdicts(run, verdicts, ordinal);
  drawFindings(kernel.findings);
  byId('roofline').hidden = !hasRoofline(kernel.roofline);
  drawRoofline(kernel.roofline);
  drawRoofs(kernel.roofline);
  await drawClockNote(kernel.roofline, report.device, rowOf(kernel, 'gpc__cycles_elapsed.avg.per_second')?.value ?? null);
  byId('no-ceilings').hidden = report.ceilings_reason === null;
  byId('no-ceilings').textContent = `No measured ceilings: ${report.ceilings_reason}.`;
  byId('disturbed-ceilings').hidden = report.ceilings_disturbed_reason === null;
  byId('disturbed-ceilings').textContent = `Measured ceilings: ${report.ceilings_disturbed_reason}.`;
  drawMemoryChart(valuesOf(kernel), baseline?.values ?? null);
  drawKernelBars(kernel);
  drawSections(kernel);
  drawSeries(kernel.series, (name) => curvePoint(kernel, name));
  drawInstructions(kernel.instructions, code, rowOf(kernel, DROPPED_SAMPLES)?.value ?? null);
  await drawRunFindings(job.id);
  drawContents(document.querySelector('#report .content'));
  document.body.dataset.loaded = String(ordinal);
  openTarget();
}

let loading = Promise.resolve();

/** Loads a kernel after the load in progress has ended, so that the last selected kernel is shown. Shows errors. */
function loadSafely(ordinal) {
  loading = loading.then(() => showErrors(() => load(ordinal)));
  return loading;
}

byId('kernel').addEventListener('change', () => {
  history.replaceState(null, '', `?run=${run}&kernel=${byId('kernel').value}`);
  loadSafely(Number(byId('kernel').value));
});

byId('pin').addEventListener('click', () => {
  pin(run, currentOrdinal);
  loadSafely(currentOrdinal).then(() => byId('unpin').focus());
});
byId('unpin').addEventListener('click', () => {
  unpin();
  loadSafely(currentOrdinal).then(() => byId('pin').focus());
});

for (const list of ['finding-list', 'run-finding-list']) {
  byId(list).addEventListener('click', (event) => {
    const link = event.target.closest('a.line');
    if (link === null) return;
    event.preventDefault();
    showLine({ file: link.dataset.file, line: Number(link.dataset.line) });
  });
}

const ordinal = query.has('kernel') ? Number(query.get('kernel')) : null;
const isOrdinal = ordinal === null || (Number.isSafeInteger(ordinal) && ordinal >= 0);
if (Number.isSafeInteger(run) && run > 0 && isOrdinal) loadSafely(ordinal);
else drawProblem({ title: 'Which run?',
  message: 'The address needs the number of a run, like report.html?run=1, and may name a kernel, like &kernel=0.' });
