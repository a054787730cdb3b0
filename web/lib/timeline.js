// What ran when in a traced epoch: a window of the trace as lanes of bars, which can be moved and zoomed; inside a launch its
// phases.
import { get } from '/lib/api.js';
import { keepDrawn } from '/lib/chart.js';
import { find, make, shape } from '/lib/dom.js';
import { drawPhases } from '/lib/phases.js';
import * as show from '/lib/format.js';

const MOST = 4000; // items asked for at once
const MOST_TRACED = 200000; // that the API gives at once
const LEFT = 74;
const ROW = 22;
const GAP = 10;
const AXIS = 26;
const FIRST_LAUNCHES = 24; // that a trace without phases begins with

// From top to bottom, by kinds of activity.
const lanes = [['launches', ['kernel', 'span']], ['phases', ['phase']], ['copies', ['memcpy', 'memset']],
  ['calls', ['runtime', 'driver']], ['overhead', ['overhead']]];
const parts = ['forward', 'backward', 'optimizer', 'data']; // a colour each

let job = null;
let runs = []; // {run, variant, rounds, placed, traced_ns, end_ns, kernels}
let view = { from: 0, to: 1 };
let items = [];
let truncated = false;
let asked = 0;

const chosen = () => runs.find((one) => one.run === Number(find('timeline-run').value)) ?? runs[0];

/* --- what is drawn --------------------------------------------------------------------------------------------------- */

/** Of a kernel by its function, of a phase by its name. */
function partOf(item) {
  const { kernels } = chosen();
  const same = item.kind === 'phase' ? kernels.flatMap((kernel) => kernel.phases) : kernels;
  return same.find((one) => one.name === item.name)?.phase ?? null;
}

const launchOf = (item) => chosen().kernels.find((kernel) => kernel.name === item.name)?.launch ?? item.name;

/** Each in the first row that is free when it begins. */
function pack(bars) {
  const ends = [];
  return bars.map((item) => {
    const free = ends.findIndex((end) => end <= item.start_ns);
    const row = free < 0 ? ends.length : free;
    ends[row] = item.end_ns;
    return { item, row };
  });
}

const lanesOf = () => lanes.map(([name, kinds]) => ({ name, bars: pack(items.filter((item) => kinds.includes(item.kind))) }))
  .filter((lane) => lane.bars.length > 0)
  .map((lane) => ({ ...lane, rows: Math.max(...lane.bars.map((bar) => bar.row)) + 1 }));

function textOf(item) {
  const inside = item.step === null ? '' : `, step ${item.step}`;
  const part = partOf(item);
  const when = `${show.us((item.end_ns - item.start_ns) / 1e3)} from ${show.us(item.start_ns / 1e3)}`;
  return `${launchOf(item)}${inside}${part ? ` (${part})` : ''}: ${when}`;
}

function barOf(item, y, x) {
  const [left, right] = [Math.max(x(item.start_ns), LEFT), Math.min(x(item.end_ns), x(view.to))];
  const width = Math.max(right - left, 1);
  const part = parts.indexOf(partOf(item));
  const name = launchOf(item).slice(0, Math.max(0, Math.floor((width - 8) / 7)));
  const colour = part < 0 ? 'span' : `span level-${part}`;
  return shape('g', { class: colour, 'data-name': launchOf(item), click: () => look(around(item)) },
    shape('title', {}, textOf(item)), shape('rect', { x: left, y, width, height: ROW - 4, rx: 2 }),
    ...(name.length > 2 || name === launchOf(item) ? [shape('text', { x: left + 4, y: y + 13 }, name)] : []));
}

/** 1, 2 or 5 times a power of ten, about so many of them in the window. */
function tickOf(span, count) {
  const power = 10 ** Math.floor(Math.log10(span / count));
  return power * [1, 2, 5, 10].find((times) => power * times >= span / count);
}

function axisOf(width, bottom, x) {
  const every = tickOf(view.to - view.from, Math.max(2, (width - LEFT) / 130));
  const [unit, size] = every < 1e6 ? ['µs', 1e3] : every < 1e9 ? ['ms', 1e6] : ['s', 1e9];
  const ticks = [];
  for (let at = Math.ceil(view.from / every) * every; at <= view.to; at += every) {
    ticks.push(shape('line', { class: 'grid', x1: x(at), x2: x(at), y1: 0, y2: bottom }),
      shape('text', { x: x(at), y: bottom + 18, 'text-anchor': x(at) > width - 40 ? 'end' : 'middle' },
        `${+(at / size).toPrecision(9)} ${unit}`));
  }
  return ticks;
}

function draw() {
  const holder = find('timeline-chart');
  if (runs.length === 0 || holder.clientWidth === 0) return;
  const width = Math.max(280, holder.clientWidth);
  const x = (ns) => LEFT + ((ns - view.from) / (view.to - view.from)) * (width - LEFT - 4);
  let y = 4;
  const drawn = lanesOf().flatMap((lane) => {
    const top = y;
    y += lane.rows * ROW + GAP;
    const bars = lane.bars.map(({ item, row }) => barOf(item, top + row * ROW, x));
    return [shape('text', { x: 0, y: top + 13 }, lane.name), ...bars];
  });
  const size = { width, height: y + AXIS, role: 'img', 'aria-label': `${items.length} activities in the window` };
  holder.replaceChildren(shape('svg', size, ...axisOf(width, y, x), ...drawn));
  drawAround();
}

function drawAround() {
  const count = `${show.count(items.length)} activities`;
  const some = truncated ? `the first ${count}: zoom in for all` : count;
  find('timeline-window').textContent = `${show.us((view.to - view.from) / 1e3)} from ${show.us(view.from / 1e3)}, ${some}`;
  const used = parts.filter((part) => items.some((item) => partOf(item) === part));
  find('timeline-legend').replaceChildren(...used.map((part) => make('li', {},
    make('span', { class: `key level-${parts.indexOf(part)}`, 'aria-hidden': 'true' }), part)));
}

/* --- the window ------------------------------------------------------------------------------------------------------ */

const around = ({ start_ns: start, end_ns: end }) => {
  const margin = Math.max((end - start) * 0.04, 50);
  return { from: start - margin, to: end + margin };
};

/** Within the trace, and never so small that a nanosecond is wide. */
function bounded({ from, to }) {
  const span = Math.min(Math.max(to - from, 100), chosen().end_ns);
  const begin = Math.min(Math.max(0, from), Math.max(0, chosen().end_ns - span));
  return { from: Math.floor(begin), to: Math.ceil(begin + span) };
}

/** Show a part of the trace; of several that were asked for the last. */
async function look(wanted) {
  const ticket = ++asked;
  const window = bounded(wanted);
  const found = await get(`/jobs/${job}/timeline?run=${chosen().run}&from=${window.from}&to=${window.to}&limit=${MOST}`);
  if (ticket !== asked) return;
  view = window;
  ({ items, truncated } = found);
  draw();
}

/** Two steps of a launch that shows its phases; else the first launches. A range of the whole epoch is among the first items. */
async function firstLook() {
  const run = chosen();
  const { items: found } = await get(`/jobs/${job}/timeline?run=${run.run}&limit=${MOST}`);
  if (run !== chosen()) return;
  run.end_ns = Math.max(run.traced_ns, ...found.map((item) => item.end_ns));
  const steps = found.filter((item) => item.kind === 'phase' && item.step < 2);
  const launches = found.filter((item) => ['kernel', 'span'].includes(item.kind));
  const shown = steps.length > 0 ? steps : launches.slice(0, FIRST_LAUNCHES);
  await look(around({ start_ns: shown[0]?.start_ns ?? 0, end_ns: shown.at(-1)?.end_ns ?? run.end_ns }));
}

const moved = (share) => ({ from: view.from + share * (view.to - view.from), to: view.to + share * (view.to - view.from) });
const zoomed = (times) => {
  const [middle, half] = [(view.from + view.to) / 2, (times * (view.to - view.from)) / 2];
  return { from: middle - half, to: middle + half };
};
const ways = [['timeline-earlier', 'ArrowLeft', () => moved(-0.5)], ['timeline-later', 'ArrowRight', () => moved(0.5)],
  ['timeline-in', '+', () => zoomed(0.5)], ['timeline-out', '-', () => zoomed(2)]];

/* --- the section ----------------------------------------------------------------------------------------------------- */

function choose() {
  find('timeline-trace').href = `/jobs/${job}/timeline?format=chrome&run=${chosen().run}&limit=${MOST_TRACED}`;
  find('timeline-trace').download = `job-${job}-run-${chosen().run}.json`;
  drawPhases(chosen().kernels.flatMap((kernel) => kernel.phases), chosen().rounds, chosen().placed);
  return firstLook();
}

const traced = (run) => run.passes.some((pass) => pass.pass === 'activity' && pass.activity_kept);
const measured = (run, name) => run.measurements.find((one) => one.pass === 'activity' && one.name === name);

for (const [button, , where] of ways) find(button).addEventListener('click', () => look(where()));
find('timeline-chart').addEventListener('keydown', (event) => {
  const way = ways.find(([, key]) => key === event.key);
  if (!way) return;
  event.preventDefault();
  look(way[2]());
});
find('timeline-run').addEventListener('change', choose);
keepDrawn(find('timeline-chart'), draw);

const timelineOf = (run, kernels) => ({ run: run.run, variant: run.variant,
  rounds: measured(run, 'phase_rounds')?.value ?? 1, placed: measured(run, 'phase_clock_error_us'),
  traced_ns: (measured(run, 'epoch_traced_ms')?.value ?? 0) * 1e6,
  kernels: kernels.filter((kernel) => kernel.run === run.run && kernel.pass === 'activity') });

/** The runs of a job that were traced; drawn again only when there are others. */
export async function drawTimeline(id, results, kernels) {
  const found = results.filter(traced).map((run) => timelineOf(run, kernels));
  if (found.length === runs.length) return;
  [job, runs] = [id, found];
  find('timeline').hidden = runs.length === 0;
  find('timeline-run').replaceChildren(...runs.map((one) => make('option', { value: one.run }, one.variant)));
  await choose();
}
