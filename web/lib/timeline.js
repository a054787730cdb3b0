// The timeline of a traced epoch shows a window of the trace, with one track for each kind of activity. The window can be moved
// and zoomed.
import { get } from '/lib/api.js';
import { redrawOnResize } from '/lib/chart.js';
import { byId, createElement, createSvgElement } from '/lib/dom.js';
import { drawPhases } from '/lib/phases.js';
import * as format from '/lib/format.js';

const ITEMS_LIMIT = 4000; // of one request
const TRACE_ITEMS_LIMIT = 200000; // of a downloaded trace: the maximum that the API accepts
const LABEL_WIDTH = 74;
const ROW_HEIGHT = 22;
const TRACK_GAP = 10;
const AXIS_HEIGHT = 26;
const FIRST_LAUNCHES = 24; // in the first window of a trace without phases

// Tracks from top to bottom, each with its kinds of activity.
const tracks = [['launches', ['kernel', 'span']], ['phases', ['phase']], ['copies', ['memcpy', 'memset']],
  ['calls', ['runtime', 'driver']], ['overhead', ['overhead']]];
const trainingPhases = ['forward', 'backward', 'optimizer', 'data']; // one colour each

let job = null;
let runs = []; // {run, variant, microbatches, clockError, traced_ns, end_ns, kernels}
let view = { from: 0, to: 1 };
let items = [];
let truncated = false;
let lastTicket = 0;

const selectedRun = () => runs.find((run) => run.run === Number(byId('timeline-run').value)) ?? runs[0];

/* --- drawing --------------------------------------------------------------------------------------------------------- */

/** Returns the training phase of an item: forward, backward, optimizer or data; null if unknown. */
function trainingPhaseOf(item) {
  const { kernels } = selectedRun();
  const candidates = item.kind === 'phase' ? kernels.flatMap((kernel) => kernel.phases) : kernels;
  return candidates.find((other) => other.name === item.name)?.phase ?? null;
}

const launchName = (item) => selectedRun().kernels.find((kernel) => kernel.name === item.name)?.launch ?? item.name;

/** Puts each bar into the first row that is free at its start. */
function packRows(bars) {
  const ends = [];
  return bars.map((item) => {
    const free = ends.findIndex((end) => end <= item.start_ns);
    const row = free < 0 ? ends.length : free;
    ends[row] = item.end_ns;
    return { item, row };
  });
}

const visibleTracks = () =>
  tracks
    .map(([name, kinds]) => ({ name, bars: packRows(items.filter((item) => kinds.includes(item.kind))) }))
    .filter((track) => track.bars.length > 0)
    .map((track) => ({ ...track, rows: Math.max(...track.bars.map((bar) => bar.row)) + 1 }));

function tooltipText(item) {
  const stepText = item.step === null ? '' : `, step ${item.step}`;
  const trainingPhase = trainingPhaseOf(item);
  const when = `${format.us((item.end_ns - item.start_ns) / 1e3)} from ${format.us(item.start_ns / 1e3)}`;
  return `${launchName(item)}${stepText}${trainingPhase ? ` (${trainingPhase})` : ''}: ${when}`;
}

function barOf(item, y, x) {
  const [left, right] = [Math.max(x(item.start_ns), LABEL_WIDTH), Math.min(x(item.end_ns), x(view.to))];
  const width = Math.max(right - left, 1);
  const colourIndex = trainingPhases.indexOf(trainingPhaseOf(item));
  const name = launchName(item).slice(0, Math.max(0, Math.floor((width - 8) / 7)));
  const colour = colourIndex < 0 ? 'span' : `span level-${colourIndex}`;
  return createSvgElement('g', { class: colour, 'data-name': launchName(item), click: () => showWindow(withMargin(item)) },
    createSvgElement('title', {}, tooltipText(item)),
    createSvgElement('rect', { x: left, y, width, height: ROW_HEIGHT - 4, rx: 2 }),
    ...(name.length > 2 || name === launchName(item) ? [createSvgElement('text', { x: left + 4, y: y + 13 }, name)] : []));
}

/** Returns the distance between ticks: 1, 2 or 5 times a power of ten, so that about `count` ticks fit into `span`. */
function tickDistance(span, count) {
  const power = 10 ** Math.floor(Math.log10(span / count));
  return power * [1, 2, 5, 10].find((factor) => power * factor >= span / count);
}

function axisOf(width, bottom, x) {
  const distance = tickDistance(view.to - view.from, Math.max(2, (width - LABEL_WIDTH) / 130));
  const [unit, size] = distance < 1e6 ? ['µs', 1e3] : distance < 1e9 ? ['ms', 1e6] : ['s', 1e9];
  const ticks = [];
  for (let tickNs = Math.ceil(view.from / distance) * distance; tickNs <= view.to; tickNs += distance) {
    ticks.push(createSvgElement('line', { class: 'grid', x1: x(tickNs), x2: x(tickNs), y1: 0, y2: bottom }),
      createSvgElement('text', { x: x(tickNs), y: bottom + 18, 'text-anchor': x(tickNs) > width - 40 ? 'end' : 'middle' },
        `${+(tickNs / size).toPrecision(9)} ${unit}`));
  }
  return ticks;
}

function draw() {
  const holder = byId('timeline-chart');
  if (runs.length === 0 || holder.clientWidth === 0) return;
  const width = Math.max(280, holder.clientWidth);
  const x = (ns) => LABEL_WIDTH + ((ns - view.from) / (view.to - view.from)) * (width - LABEL_WIDTH - 4);
  let y = 4;
  const drawn = visibleTracks().flatMap((track) => {
    const top = y;
    y += track.rows * ROW_HEIGHT + TRACK_GAP;
    const bars = track.bars.map(({ item, row }) => barOf(item, top + row * ROW_HEIGHT, x));
    return [createSvgElement('text', { x: 0, y: top + 13 }, track.name), ...bars];
  });
  const size = { width, height: y + AXIS_HEIGHT, role: 'img', 'aria-label': `${items.length} activities in the window` };
  holder.replaceChildren(createSvgElement('svg', size, ...axisOf(width, y, x), ...drawn));
  drawCaption();
}

function drawCaption() {
  const count = `${format.count(items.length)} activities`;
  const countText = truncated ? `the first ${count}: zoom in for all` : count;
  const windowText = `${format.us((view.to - view.from) / 1e3)} from ${format.us(view.from / 1e3)}`;
  byId('timeline-window').textContent = `${windowText}, ${countText}`;
  const used = trainingPhases.filter((trainingPhase) => items.some((item) => trainingPhaseOf(item) === trainingPhase));
  byId('timeline-legend').replaceChildren(...used.map((trainingPhase) => createElement('li', {},
    createElement('span', { class: `key level-${trainingPhases.indexOf(trainingPhase)}`, 'aria-hidden': 'true' }),
    trainingPhase)));
}

/* --- the window ------------------------------------------------------------------------------------------------------ */

const withMargin = ({ start_ns: start, end_ns: end }) => {
  const margin = Math.max((end - start) * 0.04, 50);
  return { from: start - margin, to: end + margin };
};

/** Clamps a window to the trace and to at least 100 ns. */
function clampWindow({ from, to }) {
  const span = Math.min(Math.max(to - from, 100), selectedRun().end_ns);
  const begin = Math.min(Math.max(0, from), Math.max(0, selectedRun().end_ns - span));
  return { from: Math.floor(begin), to: Math.ceil(begin + span) };
}

/** Loads and draws a window. Only the last of several pending requests is drawn. */
async function showWindow(requested) {
  const ticket = ++lastTicket;
  const window = clampWindow(requested);
  const found = await get(
    `/jobs/${job}/timeline?run=${selectedRun().run}&from=${window.from}&to=${window.to}&limit=${ITEMS_LIMIT}`,
  );
  if (ticket !== lastTicket) return;
  view = window;
  ({ items, truncated } = found);
  draw();
}

/** If the trace has phases inside launches, shows the first two training steps; otherwise the first FIRST_LAUNCHES launches.
 * One of the first items is the NVTX range of the whole epoch, so the latest end among them is the end of the trace. */
async function showFirstWindow() {
  const run = selectedRun();
  const { items: found } = await get(`/jobs/${job}/timeline?run=${run.run}&limit=${ITEMS_LIMIT}`);
  if (run !== selectedRun()) return;
  run.end_ns = Math.max(run.traced_ns, ...found.map((item) => item.end_ns));
  const steps = found.filter((item) => item.kind === 'phase' && item.step < 2);
  const launches = found.filter((item) => ['kernel', 'span'].includes(item.kind));
  const shown = steps.length > 0 ? steps : launches.slice(0, FIRST_LAUNCHES);
  await showWindow(withMargin({ start_ns: shown[0]?.start_ns ?? 0, end_ns: shown.at(-1)?.end_ns ?? run.end_ns }));
}

const movedWindow = (share) => {
  const distance = share * (view.to - view.from);
  return { from: view.from + distance, to: view.to + distance };
};
const zoomedWindow = (factor) => {
  const [middle, half] = [(view.from + view.to) / 2, (factor * (view.to - view.from)) / 2];
  return { from: middle - half, to: middle + half };
};
const controls = [['timeline-earlier', 'ArrowLeft', () => movedWindow(-0.5)],
  ['timeline-later', 'ArrowRight', () => movedWindow(0.5)],
  ['timeline-in', '+', () => zoomedWindow(0.5)], ['timeline-out', '-', () => zoomedWindow(2)]];

/* --- the section ----------------------------------------------------------------------------------------------------- */

function showSelectedRun() {
  byId('timeline-trace').href = `/jobs/${job}/timeline?format=chrome&run=${selectedRun().run}&limit=${TRACE_ITEMS_LIMIT}`;
  byId('timeline-trace').download = `job-${job}-run-${selectedRun().run}.json`;
  drawPhases(selectedRun().kernels.flatMap((kernel) => kernel.phases), selectedRun().microbatches, selectedRun().clockError);
  return showFirstWindow();
}

const hasTrace = (run) => run.passes.some((pass) => pass.pass === 'activity' && pass.activity_kept);
const measurementOf = (run, name) => run.measurements.find((other) => other.pass === 'activity' && other.name === name);

for (const [button, , nextWindow] of controls) byId(button).addEventListener('click', () => showWindow(nextWindow()));
byId('timeline-chart').addEventListener('keydown', (event) => {
  const control = controls.find(([, key]) => key === event.key);
  if (!control) return;
  event.preventDefault();
  showWindow(control[2]());
});
byId('timeline-run').addEventListener('change', showSelectedRun);
redrawOnResize(byId('timeline-chart'), draw);

const timelineOf = (run, kernels) => ({ run: run.run, variant: run.variant,
  microbatches: measurementOf(run, 'phase_rounds')?.value ?? 1, clockError: measurementOf(run, 'phase_clock_error_us'),
  traced_ns: (measurementOf(run, 'epoch_traced_ms')?.value ?? 0) * 1e6,
  kernels: kernels.filter((kernel) => kernel.run === run.run && kernel.pass === 'activity') });

/** Draws the traced runs of a job, if their number changed. */
export async function drawTimeline(id, results, kernels) {
  const found = results.filter(hasTrace).map((run) => timelineOf(run, kernels));
  if (found.length === runs.length) return;
  [job, runs] = [id, found];
  byId('timeline').hidden = runs.length === 0;
  byId('timeline-run').replaceChildren(...runs.map((run) => createElement('option', { value: run.run }, run.variant)));
  await showSelectedRun();
}
