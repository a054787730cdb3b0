// The roofline chart of a kernel. Both axes are logarithmic. Each memory level has a line for its theoretical roof and a dashed
// line for its measured roof. A label along the line names the level and its bandwidth. A label above the lines names the
// arithmetic unit and its peak.
import { get } from '/lib/api.js';
import { byId, createElement, createSvgElement } from '/lib/dom.js';
import { redrawOnResize } from '/lib/chart.js';
import * as format from '/lib/format.js';

const MARGIN = { left: 96, right: 28, top: 26, bottom: 46 };
const HEIGHT = 380;
const LABEL_GAP = 5; // px between a roof and its label
const LABEL_CHARACTER_WIDTH = 6.8; // px, the mean
// Start of each level's label, as a fraction of the slope. They differ, so that labels of parallel roofs do not overlap.
const LABEL_POSITIONS = [0.5, 0.27, 0.04];

const label = (text, attributes) => createSvgElement('text', attributes, text);

/** Returns the name of a level or unit: "DRAM", "L2", "FP32", "Tensor BF16". */
export const roofName = (name) => name.split('_').map((word) => (word === 'tensor' ? 'Tensor' : word.toUpperCase())).join(' ');

const isPositive = (value) => typeof value === 'number' && value > 0;

/* --- drawing -------------------------------------------------------------------------------------------------------- */

/** Returns the kernel's point for each memory level, and the model's point. Skips a point if one of its coordinates is missing or
 * not positive. */
function pointsOf(roofline, unit) {
  const rate = roofline.units.find((other) => other.name === unit.name)?.achieved_per_s;
  const counted = roofline.points.filter((point) => point.unit === unit.name)
    .map((point) => ({ name: point.level, level: roofline.levels.findIndex((other) => other.name === point.level),
      x: point.intensity, y: rate }));
  const model = { name: 'model', level: 3, x: roofline.model.intensity, y: roofline.model.operations_per_s };
  return [...counted, model].filter((point) => isPositive(point.x) && isPositive(point.y));
}

const roofsOf = (roofline, unit) => roofline.levels.flatMap((level, index) => ['theoretical', 'measured']
  .map((kind) => ({ name: level.name, index, kind, bandwidth: level[`${kind}_per_s`], peak: unit[`${kind}_per_s`] })))
  .filter((roof) => isPositive(roof.bandwidth) && isPositive(roof.peak));

/** Returns the range of an axis, as exponents of 10: whole decades around the values. */
function decadesAround(values) {
  const exponents = values.map(Math.log10);
  return [Math.floor(Math.min(...exponents) - 0.3), Math.ceil(Math.max(...exponents) + 0.1)];
}

// The smallest ratio of the intensities at the ridge and at the left edge, which makes slopes long enough for labels.
const MIN_INTENSITY_RATIO_OF_SLOPE = 100;

function scalesOf(points, roofs, width) {
  const ridges = roofs.map((roof) => roof.peak / roof.bandwidth);
  const leftEdges = ridges.map((ridge) => ridge / MIN_INTENSITY_RATIO_OF_SLOPE);
  const x = decadesAround([...points.map((point) => point.x), ...ridges, ...leftEdges]);
  const peaks = roofs.map((roof) => roof.peak);
  const rates = [...points.map((point) => point.y), ...peaks];
  const y = decadesAround([...rates, Math.max(...rates) / 1e3]);
  const logScale = (from, to, [low, high]) => (value) => from + ((Math.log10(value) - low) / (high - low)) * (to - from);
  return { x: logScale(MARGIN.left, width - MARGIN.right, x), y: logScale(HEIGHT - MARGIN.bottom, MARGIN.top, y),
    xDecades: x, yDecades: y };
}

/* --- the parts of the drawing --------------------------------------------------------------------------------------- */

const powersOfTen = ([low, high]) => Array.from({ length: high - low + 1 }, (_, step) => 10 ** (low + step));

function gridOf(scales, width) {
  const decadesPerLabel = Math.ceil((scales.xDecades[1] - scales.xDecades[0]) * 56 / width);
  const vertical = powersOfTen(scales.xDecades).flatMap((value, index) => [
    createSvgElement('line', {
      class: 'grid',
      x1: scales.x(value),
      x2: scales.x(value),
      y1: MARGIN.top,
      y2: HEIGHT - MARGIN.bottom,
    }),
    index % decadesPerLabel !== 0
      ? ''
      : label(String(+value.toPrecision(1)), { x: scales.x(value), y: HEIGHT - MARGIN.bottom + 16, 'text-anchor': 'middle' }),
  ]);
  const horizontal = powersOfTen(scales.yDecades).flatMap((value) => [
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
  return [...vertical, ...horizontal, label('arithmetic intensity, FLOP/byte',
    { x: (MARGIN.left + width) / 2, y: HEIGHT - 6, 'text-anchor': 'middle' })];
}

/** Creates the line of a roof, clipped to the chart: bandwidth × intensity up to the ridge point, then the unit's peak. */
function roofLine(roof, scales) {
  const [left, right] = scales.xDecades.map((exponent) => 10 ** exponent);
  const start = Math.max(left, 10 ** scales.yDecades[0] / roof.bandwidth);
  const ridge = roof.peak / roof.bandwidth;
  const corners = [[start, start * roof.bandwidth], [ridge, roof.peak], [right, roof.peak]];
  const line = createSvgElement('polyline', { class: `roof level-${roof.index} ${roof.kind}`,
    points: corners.map(([x, y]) => `${scales.x(x)},${scales.y(y)}`).join(' ') });
  line.append(createSvgElement('title', {},
    `${roof.name}, ${roof.kind}: ${format.bytesPerSecond(roof.bandwidth)}, ${format.operationsPerSecond(roof.peak)}`));
  return line;
}

function pointMark(point, scales) {
  const text = `${point.name}: ${format.number(point.x)} operations per byte, ${format.operationsPerSecond(point.y)}`;
  return createSvgElement('circle', { class: `point level-${point.level}`, cx: scales.x(point.x), cy: scales.y(point.y), r: 6 },
    createSvgElement('title', {}, text));
}

/** Creates the label of a level's bandwidth along the slope of its theoretical roof; of the measured one if that is unknown. */
function slopeLabel(roof, scales) {
  const bottom = 10 ** scales.yDecades[0], left = 10 ** scales.xDecades[0];
  const start = Math.max(left, bottom / roof.bandwidth), ridge = roof.peak / roof.bandwidth;
  if (ridge <= start) return null;
  const [x0, y0, x1, y1] = [scales.x(start), scales.y(start * roof.bandwidth), scales.x(ridge), scales.y(roof.peak)];
  const words = `${roofName(roof.name)} ${format.bytesPerSecond(roof.bandwidth)}`;
  // the largest fraction of the slope at which the label can start and still fit
  const lastLabelStart = 1 - (words.length * LABEL_CHARACTER_WIDTH) / Math.hypot(x1 - x0, y1 - y0);
  if (lastLabelStart < 0) return null;
  const x = x0 + Math.min(LABEL_POSITIONS[roof.index], lastLabelStart) * (x1 - x0);
  const y = y0 + ((x - x0) / (x1 - x0)) * (y1 - y0) - LABEL_GAP;
  const angle = (Math.atan2(y1 - y0, x1 - x0) * 180) / Math.PI;
  return label(words, { class: `roof-label level-${roof.index}`, x, y, transform: `rotate(${angle} ${x} ${y})` });
}

/** Creates the label of the unit's peak, above the right end of the roofs. */
function peakLabel(unit, scales, width) {
  const peak = isPositive(unit.theoretical_per_s) ? unit.theoretical_per_s : unit.measured_per_s;
  if (!isPositive(peak)) return null;
  const highest = Math.max(peak, unit.measured_per_s ?? 0);
  return label(`${roofName(unit.name)} ${format.operationsPerSecond(peak)}`,
    { class: 'roof-label', x: width - MARGIN.right, y: scales.y(highest) - LABEL_GAP - 2, 'text-anchor': 'end' });
}

/** Creates the labels of all levels whose roofs are drawn. */
const slopeLabels = (roofs, scales) => [...new Map(roofs.map((roof) => [roof.name, roof]).reverse()).values()]
  .map((roof) => slopeLabel(roof, scales)).filter(Boolean);

const legendItem = (name, level, text) =>
  createElement(
    'li',
    {},
    createElement('span', { class: `key level-${level}`, 'aria-hidden': 'true' }),
    [name === 'model' ? 'Model' : roofName(name), text].filter(Boolean).join(' '),
  );

function legendOf(roofline, points, roofs) {
  const findPoint = (name) => points.find((point) => point.name === name);
  const positionText = (point) => (point ? `at ${format.number(point.x)} FLOP/byte` : '');
  const isDrawn = (name) => findPoint(name) || roofs.some((roof) => roof.name === name);
  return [...roofline.levels.flatMap(({ name }, index) =>
    (isDrawn(name) ? [legendItem(name, index, positionText(findPoint(name)))] : [])),
    ...(findPoint('model') ? [legendItem('model', 3, positionText(findPoint('model')))] : []),
    createElement('li', { class: 'quiet' }, 'lines: theoretical, dashed: measured; dots: this kernel')];
}

/* --- the section ---------------------------------------------------------------------------------------------------- */

let currentRoofline = null;

const hasCounters = (roofline) => roofline.counted;

function explainEmptyChart(unit) {
  if (!hasCounters(currentRoofline)) {
    return 'No counters were collected, and the bytes, operations or time of the workload are unknown, so no point is drawn.';
  }
  if (unit.achieved_per_s === null) {
    return `${roofName(unit.name)} operations were not counted; the set full counts them if the device has counters for them.`;
  }
  return currentRoofline.points.length > 0 ? `No ${roofName(unit.name)} operations were counted.`
    : 'No floating-point operations were counted: only bandwidth or latency can bound the kernel.';
}

function draw() {
  const holder = byId('roofline-chart');
  if (currentRoofline === null || holder.clientWidth === 0) return;
  const unit = currentRoofline.units.find((other) => other.name === byId('roofline-unit').value);
  const [points, roofs] = [pointsOf(currentRoofline, unit), roofsOf(currentRoofline, unit)];
  holder.hidden = points.length === 0;
  byId('roofline-legend').replaceChildren(...(holder.hidden
    ? [createElement('li', { class: 'quiet' }, explainEmptyChart(unit))] : legendOf(currentRoofline, points, roofs)));
  if (holder.hidden) return;
  const width = Math.max(280, holder.clientWidth);
  const scales = scalesOf(points, roofs, width);
  const attributes = { width, height: HEIGHT, role: 'img', 'aria-label': `Roofline of ${roofName(unit.name)}` };
  holder.replaceChildren(createSvgElement('svg', attributes,
    ...gridOf(scales, width), ...roofs.map((roof) => roofLine(roof, scales)),
    ...slopeLabels(roofs, scales), peakLabel(unit, scales, width),
    ...points.map((point) => pointMark(point, scales))));
}

/* --- clocks --------------------------------------------------------------------------------------------------------- */

const clockOf = (conditions, name) => conditions.find((one) => one.name === name)?.value ?? null;

/** Returns the text of the note, with the clocks of both kinds of roofs as far as they are known. */
async function explainHigherRoofs(higher, device, smHz) {
  const { items } = await get('/ceilings');
  const conditions = items.find((item) => item.device === device)?.conditions ?? [];
  const clockMhz = clockOf(conditions, 'sm_clock_most_mhz');
  return `Measured above theoretical (${higher.map(({ name }) => roofName(name)).join(', ')}): theoretical roofs use \
the SM clock of the counters pass${smHz === null ? '' : ` (${format.quantity(smHz, 'hz')})`}, measured ones that of the \
ceilings job${clockMhz === null ? '' : ` (${format.quantity(clockMhz * 1e6, 'hz')})`}. Compare percentages of theoretical roofs \
only with each other, and percentages of measured roofs likewise.`;
}

/** If a measured roof is above its theoretical roof, shows a note that the clocks differed. smHz: the SM clock of the counters
 * pass. */
export async function drawClockNote({ levels, units }, device, smHz) {
  const higher = [...levels, ...units].filter((roof) => isPositive(roof.theoretical_per_s)
    && roof.measured_per_s > roof.theoretical_per_s);
  byId('roof-clocks').hidden = higher.length === 0;
  byId('roof-clocks').textContent = higher.length === 0 ? '' : await explainHigherRoofs(higher, device, smHz);
}

/** Returns the name of the unit that the classification names, or else of the first unit with points. */
const initialUnit = (roofline) => roofline.classification.unit
  ?? (roofline.units.find((unit) => pointsOf(roofline, unit).length > 0 && roofsOf(roofline, unit).length > 0)
    ?? roofline.units[0]).name;

/** Returns whether a point of the kernel or a rate of a roof is known. */
export const hasRoofline = ({ levels, units, points, model }) => points.length > 0 || model.intensity !== null
  || [...levels, ...units].some((roof) => [roof.achieved_per_s, roof.theoretical_per_s, roof.measured_per_s]
    .some((rate) => rate !== null));

export function drawRoofline(roofline) {
  currentRoofline = roofline;
  byId('roofline-unit').replaceChildren(
    ...roofline.units.map((unit) => createElement('option', { value: unit.name }, roofName(unit.name))),
  );
  byId('roofline-unit').value = initialUnit(roofline);
  byId('roofline-chart').hidden = false;
  draw();
}

byId('roofline-unit').addEventListener('change', () => { byId('roofline-chart').hidden = false; draw(); });
redrawOnResize(byId('roofline-chart'), draw);
