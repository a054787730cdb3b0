// The timeline section of a job: the lanes of a traced run on a canvas, with their minimap, selection, search and table.
import { redrawOnResize } from '/lib/chart.js';
import { byId, createElement } from '/lib/dom.js';
import * as format from '/lib/format.js';
import { drawPhases } from '/lib/phases.js';
import { drawTimeClasses } from '/lib/time_classes.js';
import { readAddress, writeAddress } from '/lib/timeline/address.js';
import { LaneData } from '/lib/timeline/data.js';
import { drawTimeline as drawPicture, readTheme } from '/lib/timeline/draw.js';
import { keys, listenToKeys, listenToPointers, listenToWheel, pointerHelp } from '/lib/timeline/input.js';
import { Layout, laneKey } from '/lib/timeline/lanes.js';
import { marksOf } from '/lib/timeline/marks.js';
import { Minimap } from '/lib/timeline/minimap.js';
import { distinct, NameColours, symbolLabel } from '/lib/timeline/names.js';
import { Search } from '/lib/timeline/search.js';
import { Selection } from '/lib/timeline/selection.js';
import { drawEventTable } from '/lib/timeline/table.js';
import { describeEvent, describeMark, eventAt, eventOf, markAt, showTooltip } from '/lib/timeline/tooltip.js';
import { moved, ShownWindow, withMargin, zoomed } from '/lib/timeline/window.js';

const SETTLE_MS = 150; // from the last change of the window to settle()
const RETRY_MS = 2000; // from a failed load of a window to the next attempt
const LEGEND_NAMES = 8;
const FIRST_WINDOW_EVENTS = 24; // kernels or launches in the first window of a trace without phases

let job = null;
let tracedRuns = []; // results of describeRun
let data = null; // LaneData of the selected run; null: nothing is loaded
let theme = null;
let marks = [];
let selection = null; // {from, to} in ns
let hover = null, focus = null; // events of the picture; a focus without `to` is a lane
let searched = ''; // searched text, in lower case
let colours = new NameColours();
let firstShown = null; // the initial window, which the address does not contain
let frame = 0, settling = 0; // ids of the requested animation frame (0: none) and of the timer of settle()

const canvas = byId('timeline-canvas');
const layout = new Layout();
const shown = new ShownWindow(() => redraw());
const statistics = new Selection();
const minimap = new Minimap(byId('timeline-minimap'), (window) => shown.jump(window));
const search = new Search({
  onText: (text) => { searched = text; redraw(); },
  onFound: (event) => {
    focus = { key: laneKey(event), from: event.start_ns, to: event.end_ns, depth: 0, name: event.name };
    showEvent(focus);
  },
  from: () => shown.target.from,
});

const selectedRun = () => tracedRuns.find((run) => run.run === Number(byId('timeline-run').value)) ?? tracedRuns[0];
const picturePixels = () => Math.max(1, layout.width - layout.gutter);
const reply = () => data.best(shown, picturePixels());

/* --- drawing --------------------------------------------------------------------------------------------------------- */

function redraw() {
  canvas.dataset.settled = 'false';
  if (frame === 0) frame = requestAnimationFrame(drawFrame);
}

/** Returns the colours, which are read again after a change of the theme or of the size. */
function currentTheme() {
  theme ??= readTheme();
  return theme;
}

function drawFrame() {
  frame = 0;
  if (data === null || canvas.clientWidth === 0) return;
  if (layout.width !== canvas.clientWidth) layout.arrange(canvas.clientWidth);
  drawPicture(canvas, { layout, window: shown, reply: reply(), theme: currentTheme(), colours, marks, selection, hover, focus,
    search: searched === '' ? null : (name) => name.toLowerCase().includes(searched) });
  minimap.draw(shown, selection, currentTheme());
  byId('timeline-window').textContent = format.interval(shown.from, shown.from + shown.span);
  canvas.dataset.loaded = String(data.isLoaded(shown, picturePixels()));
  clearTimeout(settling);
  settling = setTimeout(settle, SETTLE_MS);
  data.need(shown, picturePixels());
}

/** Called when the window has not changed for SETTLE_MS: updates the table, the address and the legend. */
function settle() {
  if (data === null) return;
  const { run } = selectedRun();
  if (location.hash !== '' || selection !== null || shown.target.from !== firstShown?.from || shown.target.to !== firstShown.to)
    writeAddress(run, shown.target, selection);
  drawLegend();
  if (byId('timeline-events').open) drawEventTable(reply(), shown, (item) => showEvent({ ...item, key: item.lane.key }));
  canvas.dataset.settled = String(frame === 0 && shown.isAtTarget); // false in an animation with slow frames
}

/** Returns the names of kernels, of phases inside them and of the overview, those with the most time first. NameColours repeats
 * its colours after the first names, which therefore get distinct colours. */
function namesByTime(run, overview) {
  const times = new Map(overview.names.map((name) => [name, 0]));
  for (const lane of overview.lanes.filter(({ kind }) => kind !== 'ranges')) {
    for (let i = 0; i < lane.count; i += 1) {
      const name = overview.names[lane.name[i]];
      times.set(name, times.get(name) + lane.end[i] - lane.start[i]);
    }
  }
  for (const { name } of run.kernels) times.set(name, 0); // the events of the overview are merged, the totals are complete
  for (const { name, total_us: total, phases } of run.kernels) {
    times.set(name, times.get(name) + total * 1000);
    for (const phase of phases) times.set(phase.name, phase.share_ratio * total * 1000);
  }
  return [...times].sort(([, a], [, b]) => b - a).map(([name]) => name);
}

/** Lists the names with the most time in the window. */
function drawLegend() {
  const current = reply(), times = new Map();
  for (const lane of current.lanes.filter(({ kind }) => kind !== 'ranges')) {
    for (let i = 0; i < lane.count && lane.start[i] < shown.to; i += 1) {
      if (lane.end[i] <= shown.from) continue;
      const name = current.names[lane.name[i]];
      times.set(name, (times.get(name) ?? 0) + Math.min(lane.end[i], shown.to) - Math.max(lane.start[i], shown.from));
    }
  }
  const names = [...times].sort(([, a], [, b]) => b - a).slice(0, LEGEND_NAMES).map(([name]) => name);
  const kernels = [...selectedRun().kernels, ...names.map((name) => ({ name }))]; // other events need distinct labels too
  byId('timeline-legend').replaceChildren(...names.map((name) => {
    const key = createElement('span', { class: 'key', 'aria-hidden': 'true' });
    key.style.background = colours.colour(name, currentTheme().isDark);
    return createElement('li', { title: name }, key, symbolLabel(name, kernels));
  }));
}

const alternatives = new Intl.ListFormat('en', { type: 'disjunction' });

/** Returns the launches and the training phases of the kernels with a symbol, or the phase of a phase inside a launch. An event
 * has a symbol but no launch, so that several launches with one symbol are alternatives. */
function detailsOf(name) {
  const { kernels } = selectedRun(), named = kernels.filter((kernel) => kernel.name === name);
  const parts = named.length > 0 ? named : kernels.flatMap(({ phases }) => phases).filter((phase) => phase.name === name);
  return [parts.map(({ launch }) => launch), parts.map(({ phase }) => phase)].map((all) => alternatives.format(distinct(all)))
    .filter((text) => text && text !== name).join('; ');
}

/* --- actions --------------------------------------------------------------------------------------------------------- */

function select(interval) {
  selection = interval;
  statistics.show(selectedRun().run, interval);
  redraw();
}

const showEvent = (event) => shown.glide(withMargin(event));
const toNs = (x) => layout.toNs(shown, Math.max(x, layout.gutter));

function announce(text) { byId('timeline-spoken').textContent = text; }

/** Focuses the lane that is `step` lanes below the focused one. */
function moveLane(step) {
  const at = layout.boxes.findIndex((box) => box.key === focus?.key);
  const box = layout.boxes[Math.min(layout.boxes.length - 1, Math.max(0, at < 0 ? 0 : at + step))];
  if (!box) return;
  focus = { key: box.key };
  announce(box.title);
  redraw();
}

/** Focuses the event that is `step` events after the focused one in its lane, and moves the window if the event is outside. */
function moveEvent(step) {
  if (!focus) moveLane(0);
  const current = reply(), lane = current.lanes.find((one) => one.key === focus?.key);
  if (!lane) return;
  const inWindow = lane.start.findIndex((start, i) => start >= shown.from || lane.end[i] > shown.from);
  const at = focus.to === undefined ? -1
    : lane.start.findIndex((start, i) => start === focus.from && lane.depth[i] === focus.depth);
  const index = at < 0 ? inWindow : at + step;
  if (index < 0 || index >= lane.count) return;
  focus = eventOf(current, lane, index);
  if (focus.to > shown.to || focus.from < shown.from)
    shown.glide({ from: focus.from - shown.span / 4, to: focus.from + (3 * shown.span) / 4 });
  announce(describeEvent(focus, detailsOf).join(', '));
  redraw();
}

const actions = {
  zoom: (factor) => shown.glide(zoomed(shown.target, factor)),
  pan: (fraction) => shown.glide(moved(shown.target, fraction)),
  zoomAt: (factor, x) => shown.jump(zoomed(shown, factor, toNs(x))),
  panPixels: (dx) => shown.jump(moved(shown, dx / picturePixels())),
  showAll: () => shown.glide({ from: 0, to: shown.endNs }),
  showSelection: () => { if (selection) shown.glide(withMargin(selection)); },
  moveLane, moveEvent,
  select: () => select(focus?.to !== undefined ? { from: focus.from, to: focus.to } : { ...shown.target }),
  selectPixels: (startX, endX, isDone) => {
    const [from, to] = [toNs(Math.min(startX, endX)), toNs(Math.max(startX, endX))];
    selection = { from: Math.max(0, from), to: Math.min(to, shown.endNs) };
    if (isDone) select(selection);
    else redraw();
  },
  click: (x, y) => {
    const mark = markAt(layout, shown, marks, x, y), event = mark ? null : eventAt(layout, shown, reply(), x, y);
    if (mark) { showMark(mark); return; }
    focus = event;
    select(event ? { from: event.from, to: event.to } : null);
    if (event) announce(describeEvent(event, detailsOf).join(', '));
  },
  zoomToEvent: (x, y) => {
    const event = eventAt(layout, shown, reply(), x, y);
    if (event) showEvent(event);
  },
  hover: (x, y) => {
    const mark = markAt(layout, shown, marks, x, y);
    hover = mark ? null : eventAt(layout, shown, reply(), x, y);
    canvas.style.cursor = hover || mark ? 'pointer' : '';
    showTooltip(mark ? describeMark(mark) : hover ? describeEvent(hover, detailsOf) : [], x, y, layout.width);
    redraw();
  },
  clear: () => { focus = null; search.clear(); select(null); },
  search: () => search.focus(),
  help: () => { byId('timeline-help').open = !byId('timeline-help').open; },
};

// Before a trace is loaded, keys and gestures do nothing.
const loadedActions = Object.fromEntries(Object.entries(actions).map(([name, act]) =>
  [name, (...values) => { if (data !== null) act(...values); }]));

function showMark(mark) {
  select({ from: mark.from, to: mark.to });
  shown.glide(withMargin({ from: mark.from - (mark.to - mark.from) / 2, to: mark.to + (mark.to - mark.from) / 2 }));
  announce(describeMark(mark).join(', '));
}

/* --- the section ----------------------------------------------------------------------------------------------------- */

/** Returns the first window of a run: two training steps if the trace has phases, else the first kernels or launches. */
function firstWindow(overview) {
  const phases = overview.lanes.find(({ kind }) => kind === 'phases');
  const lane = phases ?? overview.lanes.find(({ kind }) => kind === 'kernels' || kind === 'launches');
  const count = phases ? 2 * selectedRun().kernels.flatMap((kernel) => kernel.phases).length : FIRST_WINDOW_EVENTS;
  for (let i = 0, seen = 0; lane && i < lane.count; i += 1) {
    const before = seen;
    seen += lane.events[i];
    if (seen < count) continue;
    const share = (count - before) / lane.events[i]; // fraction of a merged item
    return withMargin({ from: lane.start[0], to: lane.start[i] + share * (lane.end[i] - lane.start[i]) });
  }
  return { from: 0, to: overview.endNs };
}

async function showMarks(run) {
  const response = await drawTimeClasses(run.run, (interval) =>
    showMark({ title: 'Idle', from: interval.start_ns, to: interval.end_ns, interval }));
  if (run !== selectedRun()) return;
  marks = marksOf(response.classes);
  layout.hasMarks = marks.length > 0;
  layout.arrange();
  redraw();
}

async function showSelectedRun() {
  const run = selectedRun(), address = readAddress();
  byId('timeline-trace').href = `/jobs/${job}/export?format=perfetto&run=${run.run}`;
  drawPhases(run.kernels.flatMap((kernel) => kernel.phases), run.microbatches, run.clockError);
  [data, marks, selection, hover, focus] = [null, [], null, null, null];
  layout.hasMarks = false;
  layout.clear();
  search.setRun(run.run);
  const loading = new LaneData(run.run, { onLoad: (loaded) => { layout.add(loaded.lanes); redraw(); },
    onError: (problem) => {
      byId('timeline-window').textContent = problem.message;
      setTimeout(redraw, RETRY_MS);
    } });
  const overview = await loading.loadOverview();
  if (run !== selectedRun()) return;
  if (!overview.step) { // retention has deleted the trace
    byId('timeline-window').textContent = overview.reason;
    return;
  }
  colours = new NameColours();
  for (const name of namesByTime(run, overview)) colours.number(name);
  data = loading;
  shown.endNs = overview.endNs;
  minimap.setOverview(overview);
  layout.arrange(canvas.clientWidth);
  layout.add(overview.lanes);
  const isLinked = address.run === run.run && address.window !== null;
  shown.jump(isLinked ? address.window : firstWindow(overview));
  firstShown = shown.target;
  select(isLinked ? address.selection : null);
  await Promise.all([data.need(shown, picturePixels()), showMarks(run)]);
}

const hasTrace = (run) => run.passes.some((pass) => pass.pass === 'activity' && pass.activity_kept);
const findMeasurement = (run, name) =>
  run.measurements.find((measurement) => measurement.pass === 'activity' && measurement.name === name);

/** Returns the data of a run that the timeline draws. microbatches: number per training step; clockError: the measurement of the
 * largest error of the phases' times in µs, undefined if the launches record no phases. */
const describeRun = (run, kernels) => ({ run: run.run, variant: run.variant,
  microbatches: findMeasurement(run, 'phase_rounds')?.value ?? 1, clockError: findMeasurement(run, 'phase_clock_error_us'),
  kernels: kernels.filter((kernel) => kernel.run === run.run && kernel.pass === 'activity') });

function fillHelp() {
  const rows = [...keys.map(([, name, text]) => [name, text]), ...pointerHelp];
  byId('timeline-keys').replaceChildren(...rows.flatMap(([name, text]) =>
    [createElement('dt', {}, createElement('kbd', {}, name)), createElement('dd', {}, text)]));
}

const buttons = [['earlier', () => loadedActions.pan(-0.5)], ['later', () => loadedActions.pan(0.5)],
  ['in', () => loadedActions.zoom(0.5)], ['out', () => loadedActions.zoom(2)], ['all', loadedActions.showAll]];
for (const [name, act] of buttons) byId(`timeline-${name}`).addEventListener('click', act);
byId('selection-show').addEventListener('click', loadedActions.showSelection);
byId('selection-clear').addEventListener('click', () => { focus = null; select(null); });
byId('timeline-events').addEventListener('toggle', settle);
byId('timeline-run').addEventListener('change', showSelectedRun);
addEventListener('hashchange', () => {
  const { run, window, selection: interval } = readAddress();
  if (data === null || run !== selectedRun().run) return;
  if (window) shown.glide(window);
  select(interval);
});
fillHelp();
listenToKeys(canvas, loadedActions);
listenToWheel(canvas, loadedActions);
listenToPointers(canvas, loadedActions);
redrawOnResize(canvas, () => { theme = null; redraw(); });

/** Draws the traced runs of a job if their number differs from the last call. results: GET /jobs/ID/results; kernels: the
 * kernels of all runs. */
export async function drawTimeline(id, results, kernels) {
  const runs = results.filter(hasTrace).map((run) => describeRun(run, kernels));
  if (runs.length === tracedRuns.length) return;
  [job, tracedRuns] = [id, runs];
  byId('timeline').hidden = runs.length === 0;
  byId('timeline-run').replaceChildren(...runs.map((run) => createElement('option', { value: run.run }, run.variant)));
  const { run: linked, isTimeline } = readAddress();
  if (runs.some((run) => run.run === linked)) byId('timeline-run').value = linked;
  await showSelectedRun();
  if (isTimeline) byId('timeline').scrollIntoView(); // the browser could not, because the section was hidden
}
