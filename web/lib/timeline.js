// The timeline of a traced epoch: draws the activities in a window of the trace. The user moves and zooms the window.
//
// An activity is an item of GET /jobs/ID/timeline: {kind, name, start_ns, end_ns, step}. Times are in ns from the start of the
// trace. Kind `phase` is a part of a launch, such as conv1_forward. A training phase is the part of a step that a launch or an
// activity of kind `phase` belongs to: forward, backward, optimizer or data.
import { get } from '/lib/api.js';
import { redrawOnResize } from '/lib/chart.js';
import { byId, createElement, createSvgElement } from '/lib/dom.js';
import { drawTimeClasses } from '/lib/time_classes.js';
import { drawPhases } from '/lib/phases.js';
import * as format from '/lib/format.js';

const WINDOW_ACTIVITIES_LIMIT = 4000; // of one request
const LABEL_WIDTH = 74; // px, as the following
const ROW_HEIGHT = 22;
const TRACK_GAP = 10;
const AXIS_HEIGHT = 26;
const FIRST_WINDOW_LAUNCHES = 24; // in the first window of a trace that has no activities of kind `phase`

// The tracks from top to bottom: label, kinds of activity.
const tracks = [['launches', ['kernel', 'span']], ['phases', ['phase']], ['copies', ['memcpy', 'memset']],
  ['calls', ['runtime', 'driver']], ['overhead', ['overhead']]];
const trainingPhases = ['forward', 'backward', 'optimizer', 'data']; // one colour each

let job = null;
let tracedRuns = []; // results of describeRun
let shownWindow = { from: 0, to: 1 }; // ns
let activities = []; // of shownWindow
let truncated = false; // the window has more activities
let lastRequest = 0; // number of the newest request for a window

const selectedRun = () => tracedRuns.find((run) => run.run === Number(byId('timeline-run').value)) ?? tracedRuns[0];

/* --- drawing --------------------------------------------------------------------------------------------------------- */

/** Returns the training phase of an activity; null if it is unknown. */
function trainingPhaseOf(activity) {
  const { kernels } = selectedRun();
  const named = activity.kind === 'phase' ? kernels.flatMap((kernel) => kernel.phases) : kernels;
  return named.find(({ name }) => name === activity.name)?.phase ?? null;
}

/** Returns the name of the launch that issued a kernel; for other activities, their own name. */
const launchName = (activity) =>
  selectedRun().kernels.find((kernel) => kernel.name === activity.name)?.launch ?? activity.name;

/** Gives each activity the first row of its track that is free at its start. */
function assignRows(trackActivities) {
  const rowEnds = [];
  return trackActivities.map((activity) => {
    const freeRow = rowEnds.findIndex((end) => end <= activity.start_ns);
    const row = freeRow < 0 ? rowEnds.length : freeRow;
    rowEnds[row] = activity.end_ns;
    return { activity, row };
  });
}

const visibleTracks = () =>
  tracks
    .map(([name, kinds]) => ({ name, bars: assignRows(activities.filter((activity) => kinds.includes(activity.kind))) }))
    .filter((track) => track.bars.length > 0)
    .map((track) => ({ ...track, rows: Math.max(...track.bars.map((bar) => bar.row)) + 1 }));

function tooltipText(activity) {
  const stepText = activity.step === null ? '' : `, step ${activity.step}`;
  const trainingPhase = trainingPhaseOf(activity);
  const interval = `${format.us((activity.end_ns - activity.start_ns) / 1e3)} from ${format.us(activity.start_ns / 1e3)}`;
  return `${launchName(activity)}${stepText}${trainingPhase ? ` (${trainingPhase})` : ''}: ${interval}`;
}

/** Creates an activity's bar at height y. toX converts ns into the horizontal position in px. */
function createBar(activity, y, toX) {
  const left = Math.max(toX(activity.start_ns), LABEL_WIDTH);
  const width = Math.max(Math.min(toX(activity.end_ns), toX(shownWindow.to)) - left, 1);
  const colourIndex = trainingPhases.indexOf(trainingPhaseOf(activity));
  const name = launchName(activity);
  const label = name.slice(0, Math.max(0, Math.floor((width - 8) / 7))); // the characters that fit: 7 px each
  const colourClass = colourIndex < 0 ? 'span' : `span level-${colourIndex}`;
  return createSvgElement('g', { class: colourClass, 'data-name': name, click: () => showWindow(withMargin(activity)) },
    createSvgElement('title', {}, tooltipText(activity)),
    createSvgElement('rect', { x: left, y, width, height: ROW_HEIGHT - 4, rx: 2 }),
    ...(label.length > 2 || label === name ? [createSvgElement('text', { x: left + 4, y: y + 13 }, label)] : []));
}

/** Returns the distance between ticks: 1, 2 or 5 times a power of ten, so that at most `count` fit into `duration`. All in ns. */
function tickDistance(duration, count) {
  const power = 10 ** Math.floor(Math.log10(duration / count));
  return power * [1, 2, 5, 10].find((factor) => power * factor >= duration / count);
}

function createTimeAxis(width, bottom, toX) {
  const distance = tickDistance(shownWindow.to - shownWindow.from, Math.max(2, (width - LABEL_WIDTH) / 130));
  const [unit, unitNs] = distance < 1e6 ? ['µs', 1e3] : distance < 1e9 ? ['ms', 1e6] : ['s', 1e9];
  const ticks = [];
  for (let tickNs = Math.ceil(shownWindow.from / distance) * distance; tickNs <= shownWindow.to; tickNs += distance) {
    const x = toX(tickNs);
    ticks.push(createSvgElement('line', { class: 'grid', x1: x, x2: x, y1: 0, y2: bottom }),
      createSvgElement('text', { x, y: bottom + 18, 'text-anchor': x > width - 40 ? 'end' : 'middle' },
        `${+(tickNs / unitNs).toPrecision(9)} ${unit}`));
  }
  return ticks;
}

function draw() {
  const chart = byId('timeline-chart');
  if (tracedRuns.length === 0 || chart.clientWidth === 0) return;
  const { from, to } = shownWindow;
  const width = Math.max(280, chart.clientWidth);
  const toX = (ns) => LABEL_WIDTH + ((ns - from) / (to - from)) * (width - LABEL_WIDTH - 4);
  let y = 4;
  const trackElements = visibleTracks().flatMap((track) => {
    const top = y;
    y += track.rows * ROW_HEIGHT + TRACK_GAP;
    const bars = track.bars.map(({ activity, row }) => createBar(activity, top + row * ROW_HEIGHT, toX));
    return [createSvgElement('text', { x: 0, y: top + 13 }, track.name), ...bars];
  });
  const label = `${activities.length} activities in the window`;
  const attributes = { width, height: y + AXIS_HEIGHT, role: 'img', 'aria-label': label };
  chart.replaceChildren(createSvgElement('svg', attributes, ...createTimeAxis(width, y, toX), ...trackElements));
  drawCaption();
}

function drawCaption() {
  const count = `${format.count(activities.length)} activities`;
  const countText = truncated ? `the first ${count}: zoom in for all` : count;
  const windowText = `${format.us((shownWindow.to - shownWindow.from) / 1e3)} from ${format.us(shownWindow.from / 1e3)}`;
  byId('timeline-window').textContent = `${windowText}, ${countText}`;
  const inWindow = new Set(activities.map(trainingPhaseOf));
  const used = trainingPhases.filter((trainingPhase) => inWindow.has(trainingPhase));
  byId('timeline-legend').replaceChildren(...used.map((trainingPhase) => createElement('li', {},
    createElement('span', { class: `key level-${trainingPhases.indexOf(trainingPhase)}`, 'aria-hidden': 'true' }),
    trainingPhase)));
}

/* --- the window ------------------------------------------------------------------------------------------------------ */

const withMargin = ({ start_ns: start, end_ns: end }) => {
  const margin = Math.max((end - start) * 0.04, 50);
  return { from: start - margin, to: end + margin };
};

/** Returns the window moved and shortened so that it lies in the trace, or lengthened to 100 ns. */
function clampWindow({ from, to }) {
  const duration = Math.min(Math.max(to - from, 100), selectedRun().end_ns);
  const begin = Math.min(Math.max(0, from), Math.max(0, selectedRun().end_ns - duration));
  return { from: Math.floor(begin), to: Math.ceil(begin + duration) };
}

/** Loads and draws a window, unless another window is requested before the reply. */
async function showWindow(wanted) {
  const request = ++lastRequest;
  const window = clampWindow(wanted);
  const { run } = selectedRun();
  const reply = await get(
    `/jobs/${job}/timeline?run=${run}&from=${window.from}&to=${window.to}&limit=${WINDOW_ACTIVITIES_LIMIT}`,
  );
  if (request !== lastRequest) return;
  shownWindow = window;
  ({ items: activities, truncated } = reply);
  draw();
}

/** Shows the first two training steps if the trace has activities of kind `phase`; else the first FIRST_WINDOW_LAUNCHES
 * launches. Sets the run's end_ns: one of the first activities is the NVTX range of the whole epoch, so their latest end is the
 * end of the trace. */
async function showFirstWindow() {
  const run = selectedRun();
  const { items: first } = await get(`/jobs/${job}/timeline?run=${run.run}&limit=${WINDOW_ACTIVITIES_LIMIT}`);
  if (run !== selectedRun()) return; // another run was selected before the reply
  run.end_ns = Math.max(run.traced_ns, ...first.map((activity) => activity.end_ns));
  const phases = first.filter((activity) => activity.kind === 'phase' && activity.step < 2);
  const launches = first.filter((activity) => ['kernel', 'span'].includes(activity.kind));
  const wanted = phases.length > 0 ? phases : launches.slice(0, FIRST_WINDOW_LAUNCHES);
  await showWindow(withMargin({ start_ns: wanted[0]?.start_ns ?? 0, end_ns: wanted.at(-1)?.end_ns ?? run.end_ns }));
}

/** Returns the shown window moved by a fraction of its duration. */
const movedWindow = (fraction) => {
  const distance = fraction * (shownWindow.to - shownWindow.from);
  return { from: shownWindow.from + distance, to: shownWindow.to + distance };
};
/** Returns the shown window with its duration multiplied by a factor, around its middle. */
const zoomedWindow = (factor) => {
  const { from, to } = shownWindow;
  const [middle, half] = [(from + to) / 2, (factor * (to - from)) / 2];
  return { from: middle - half, to: middle + half };
};
// Button, key, function that returns the window to show.
const controls = [['timeline-earlier', 'ArrowLeft', () => movedWindow(-0.5)],
  ['timeline-later', 'ArrowRight', () => movedWindow(0.5)],
  ['timeline-in', '+', () => zoomedWindow(0.5)], ['timeline-out', '-', () => zoomedWindow(2)]];

/* --- the section ----------------------------------------------------------------------------------------------------- */

function showSelectedRun() {
  byId('timeline-trace').href = `/jobs/${job}/export?format=perfetto&run=${selectedRun().run}`;
  drawPhases(selectedRun().kernels.flatMap((kernel) => kernel.phases), selectedRun().microbatches, selectedRun().clockError);
  const shown = selectedRun().run;
  drawTimeClasses(shown, (interval) => { if (shown === selectedRun().run) showWindow(withMargin(interval)); });
  return showFirstWindow();
}

const hasTrace = (run) => run.passes.some((pass) => pass.pass === 'activity' && pass.activity_kept);
const findMeasurement = (run, name) =>
  run.measurements.find((measurement) => measurement.pass === 'activity' && measurement.name === name);

for (const [button, , windowToShow] of controls) byId(button).addEventListener('click', () => showWindow(windowToShow()));
byId('timeline-chart').addEventListener('keydown', (event) => {
  const control = controls.find(([, key]) => key === event.key);
  if (!control) return;
  event.preventDefault();
  const [, , windowToShow] = control;
  showWindow(windowToShow());
});
byId('timeline-run').addEventListener('change', showSelectedRun);
redrawOnResize(byId('timeline-chart'), draw);

/** Returns the data of a run that the timeline draws. microbatches: of a training step. clockError: the measurement of the
 * largest error, in µs, of the times of activities of kind `phase`; undefined if the launches record no phases. */
const describeRun = (run, kernels) => ({ run: run.run, variant: run.variant,
  microbatches: findMeasurement(run, 'phase_rounds')?.value ?? 1, clockError: findMeasurement(run, 'phase_clock_error_us'),
  traced_ns: (findMeasurement(run, 'epoch_traced_ms')?.value ?? 0) * 1e6,
  kernels: kernels.filter((kernel) => kernel.run === run.run && kernel.pass === 'activity') });

/** Draws the traced runs of a job if their number differs from the last call. results: GET /jobs/ID/results; kernels: the
 * kernels of all runs. */
export async function drawTimeline(id, results, kernels) {
  const runs = results.filter(hasTrace).map((run) => describeRun(run, kernels));
  if (runs.length === tracedRuns.length) return;
  [job, tracedRuns] = [id, runs];
  byId('timeline').hidden = runs.length === 0;
  byId('timeline-run').replaceChildren(...runs.map((run) => createElement('option', { value: run.run }, run.variant)));
  await showSelectedRun();
}
