// A kernel under its device's roofs: both axes logarithmic, one line a level and unit, theoretical drawn through, measured
// dashed.
import { byId, createElement, createSvgElement } from '/lib/dom.js';
import { redrawOnResize } from '/lib/chart.js';
import * as format from '/lib/format.js';

const MARGIN = { left: 90, right: 16, top: 12, bottom: 44 };
const HEIGHT = 360;

const label = (text, attributes) => createSvgElement('text', attributes, text);
const known = (value) => typeof value === 'number' && value > 0;

/* --- drawing -------------------------------------------------------------------------------------------------------- */

/** The kernel's points over the levels, and the model's. Skips points without both coordinates. */
function pointsOf(roofline, unit) {
  const rate = roofline.units.find((one) => one.name === unit.name)?.achieved_per_s;
  const counted = roofline.points.filter((point) => point.unit === unit.name)
    .map((point) => ({ name: point.level, level: roofline.levels.findIndex((one) => one.name === point.level),
      x: point.intensity, y: rate }));
  const model = { name: 'model', level: 3, x: roofline.model.intensity, y: roofline.model.operations_per_s };
  return [...counted, model].filter((point) => known(point.x) && known(point.y));
}

const roofsOf = (roofline, unit) => roofline.levels.flatMap((level, index) => ['theoretical', 'measured']
  .map((kind) => ({ name: level.name, index, kind, slope: level[`${kind}_per_s`], flat: unit[`${kind}_per_s`] })))
  .filter((roof) => known(roof.slope) && known(roof.flat));

/** Axis ranges: whole decades around all points and ridges. */
function decades(values) {
  const exponents = values.map(Math.log10);
  return [Math.floor(Math.min(...exponents) - 0.3), Math.ceil(Math.max(...exponents) + 0.1)];
}

function scalesOf(points, roofs, width) {
  const x = decades([...points.map((point) => point.x), ...roofs.map((roof) => roof.flat / roof.slope)]);
  const tops = roofs.map((roof) => roof.flat);
  const y = decades([...points.map((point) => point.y), ...tops, Math.max(...tops, ...points.map((point) => point.y)) / 1e3]);
  const along = (from, to, [low, high]) => (value) => from + ((Math.log10(value) - low) / (high - low)) * (to - from);
  return { x: along(MARGIN.left, width - MARGIN.right, x), y: along(HEIGHT - MARGIN.bottom, MARGIN.top, y), xs: x, ys: y };
}

/* --- the parts of the drawing --------------------------------------------------------------------------------------- */

const powers = ([low, high]) => Array.from({ length: high - low + 1 }, (_, step) => 10 ** (low + step));

function gridOf(scales, width) {
  const every = Math.ceil((scales.xs[1] - scales.xs[0]) * 56 / width);
  const vertical = powers(scales.xs).flatMap((value, index) => [
    createSvgElement('line', {
      class: 'grid',
      x1: scales.x(value),
      x2: scales.x(value),
      y1: MARGIN.top,
      y2: HEIGHT - MARGIN.bottom,
    }),
    index % every !== 0
      ? ''
      : label(String(+value.toPrecision(1)), { x: scales.x(value), y: HEIGHT - MARGIN.bottom + 16, 'text-anchor': 'middle' }),
  ]);
  const horizontal = powers(scales.ys).flatMap((value) => [
    createSvgElement('line', {
      class: 'grid',
      x1: MARGIN.left,
      x2: width - MARGIN.right,
      y1: scales.y(value),
      y2: scales.y(value),
    }),
    label(format.operationsPerSecond(value).replace('.00', ''), {
      x: MARGIN.left - 6,
      y: scales.y(value) + 4,
      'text-anchor': 'end',
    }),
  ]);
  return [...vertical, ...horizontal, label('floating-point operations per byte',
    { x: (MARGIN.left + width) / 2, y: HEIGHT - 6, 'text-anchor': 'middle' })];
}

/** The line of a roof: the bandwidth's slope up to the ridge point, then horizontal; clipped to the chart. */
function roofLine(roof, scales) {
  const [left, right] = scales.xs.map((exponent) => 10 ** exponent);
  const start = Math.max(left, 10 ** scales.ys[0] / roof.slope);
  const ridge = roof.flat / roof.slope;
  const corners = [[start, start * roof.slope], [ridge, roof.flat], [right, roof.flat]];
  const line = createSvgElement('polyline', { class: `roof level-${roof.index} ${roof.kind}`,
    points: corners.map(([x, y]) => `${scales.x(x)},${scales.y(y)}`).join(' ') });
  line.append(createSvgElement('title', {},
    `${roof.name}, ${roof.kind}: ${format.bytesPerSecond(roof.slope)}, ${format.operationsPerSecond(roof.flat)}`));
  return line;
}

function pointMark(point, scales) {
  const text = `${point.name}: ${format.plain(point.x)} operations per byte, ${format.operationsPerSecond(point.y)}`;
  return createSvgElement('circle', { class: `point level-${point.level}`, cx: scales.x(point.x), cy: scales.y(point.y), r: 6 },
    createSvgElement('title', {}, text));
}

const legendItem = (name, level, text) =>
  createElement(
    'li',
    {},
    createElement('span', { class: `key level-${level}`, 'aria-hidden': 'true' }),
    `${name} ${text}`.trim(),
  );

function legendOf(roofline, points, roofs) {
  const at = (name) => points.find((point) => point.name === name);
  const where = (point) => (point ? `at ${format.plain(point.x)} per byte` : '');
  const drawn = (name) => at(name) || roofs.some((roof) => roof.name === name);
  return [...roofline.levels.flatMap(({ name }, index) => (drawn(name) ? [legendItem(name, index, where(at(name)))] : [])),
    ...(at('model') ? [legendItem('model', 3, where(at('model')))] : []),
    createElement('li', { class: 'quiet' }, 'lines: theoretical, dashed: measured; dots: this kernel')];
}

/* --- the section ---------------------------------------------------------------------------------------------------- */

let shown = null;

function whyEmpty(unit) {
  if (!shown.counted) return 'Nothing here was counted, and no model was timed.';
  return shown.points.length > 0 ? `No ${unit.name} operations were counted.`
    : 'No floating-point operations were counted: bandwidth and latency alone bound it.';
}

function draw() {
  const holder = byId('roofline-chart');
  if (shown === null || holder.clientWidth === 0) return;
  const unit = shown.units.find((one) => one.name === byId('roofline-unit').value);
  const [points, roofs] = [pointsOf(shown, unit), roofsOf(shown, unit)];
  holder.hidden = points.length === 0;
  byId('roofline-legend').replaceChildren(...(holder.hidden
    ? [createElement('li', { class: 'quiet' }, whyEmpty(unit))] : legendOf(shown, points, roofs)));
  if (holder.hidden) return;
  const width = Math.max(280, holder.clientWidth);
  const scales = scalesOf(points, roofs, width);
  holder.replaceChildren(createSvgElement('svg', { width, height: HEIGHT, role: 'img', 'aria-label': `Roofline of ${unit.name}` },
    ...gridOf(scales, width), ...roofs.map((roof) => roofLine(roof, scales)),
    ...points.map((point) => pointMark(point, scales))));
}

/** The unit of the classification, else the first unit with points. */
const unitOf = (roofline) => roofline.classification.unit
  ?? (roofline.units.find((unit) => pointsOf(roofline, unit).length > 0 && roofsOf(roofline, unit).length > 0)
    ?? roofline.units[0]).name;

export function drawRoofline(roofline) {
  shown = roofline;
  byId('bound').textContent = roofline.classification.bound === 'unknown' ? 'What bounds it is not known:'
    : `Bound by ${roofline.classification.bound}`;
  byId('bound-why').textContent = roofline.classification.why;
  byId('roofline-unit').replaceChildren(
    ...roofline.units.map((unit) => createElement('option', { value: unit.name }, unit.name)),
  );
  byId('roofline-unit').value = unitOf(roofline);
  byId('roofline-chart').hidden = false;
  draw();
}

byId('roofline-unit').addEventListener('change', () => { byId('roofline-chart').hidden = false; draw(); });
redrawOnResize(byId('roofline-chart'), draw);
