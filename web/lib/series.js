// Curves of a kernel: samples over time, and occupancy over its limits with a dot at the kernel's value.
import uPlot from '/vendor/uPlot.esm.js';
import { axisStyle, redrawOnResize, cssVariable } from '/lib/chart.js';
import { byId, createElement } from '/lib/dom.js';
import * as format from '/lib/format.js';

const HEIGHT = 180;

// Occupancy curves by name. title: the caption; xName: what x is; x, y: formatters of the values. All other series are samples
// over time.
const warps = { y: format.count, unit: 'resident warps per SM' };
const occupancyCurves = {
  occupancy_by_registers: { ...warps, title: 'Occupancy by registers', xName: 'registers per thread', x: format.count },
  occupancy_by_block_size: { ...warps, title: 'Occupancy by block size', xName: 'threads per block', x: format.count },
  occupancy_by_shared_bytes:
    { ...warps, title: 'Occupancy by shared memory', xName: 'shared memory per block', x: format.bytes },
};
const sampleTitles = {
  sm_active_pct: 'SM active', instructions_pct: 'Issue slots used', dram_read_pct: 'DRAM reads', dram_write_pct: 'DRAM writes',
  l2_sectors_pct: 'L2 sectors', warps_active_pct: 'Warps active', tensor_active_pct: 'Tensor pipe active',
};
/** Compares two series: samples over time come before occupancy curves. */
const samplesFirst = (one, other) => Number(one.name in occupancyCurves) - Number(other.name in occupancyCurves);
const overTime = (name) => ({ title: sampleTitles[name] ?? name, unit: '% of peak', y: format.count, xName: 'time',
  x: (ns) => format.us(ns / 1000), isSampled: true });
const curveOf = (name) => occupancyCurves[name] ?? overTime(name);

const tickFormatter = (formatValue) => (_, values) => values.map((value) => formatValue(value) ?? '');

/** Adds the kernel's own point [x, y] to the points, in order of x. */
const withKernelPoint = (points, kernelPoint) => (kernelPoint === null ? points
  : [...points.filter(([x]) => x !== kernelPoint[0]), kernelPoint].sort(([a], [b]) => a - b));

const KIB = 1024;
const byteSteps = [KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB];

/** Returns the range of the y axis: from zero, for percentages to at least 100. */
const yRange = ({ isSampled }) => (_, min, max) => [0, isSampled ? Math.max(100, max) : Math.max(1, max * 1.08)];

function drawPlot(holder, { points, kernelPoint, curve }) {
  const style = axisStyle();
  const colour = cssVariable('--run-0');
  const all = withKernelPoint(points, kernelPoint);
  const dots = all.map(([x, value]) => (kernelPoint !== null && x === kernelPoint[0] ? value : null));
  new uPlot({
    width: Math.max(240, holder.clientWidth), height: HEIGHT, legend: { show: false },
    scales: { x: { time: false }, y: { range: yRange(curve) } },
    axes: [{ ...style, values: tickFormatter(curve.x), space: 70, label: curve.xName, labelSize: 18, labelFont: style.font,
      ...(curve.x === format.bytes ? { incrs: byteSteps } : {}) },
      { ...style, size: 48, values: tickFormatter(curve.y) }],
    series: [{}, { stroke: colour, width: 2, points: { show: !curve.isSampled, size: 4, fill: colour } },
      { stroke: 'transparent', points: { show: true, size: 11, fill: cssVariable('--run-1'), stroke: cssVariable('--run-1') } }],
  }, [all.map(([x]) => x), all.map(([, value]) => value), dots], holder);
}

const captionOf = ({ curve, kernelPoint }) => [`${curve.title}, ${curve.unit}`,
  kernelPoint === null ? null : ` · dot: this kernel, ${curve.y(kernelPoint[1])} at ${curve.x(kernelPoint[0])}`]
  .filter(Boolean).join('');

let shown = [];

function draw() {
  byId('series-charts').replaceChildren(...shown.map((series) => createElement('figure', { class: 'panel' },
    createElement('figcaption', {}, captionOf(series)), createElement('div', { class: 'small chart' }))));
  byId('series-charts').querySelectorAll('.chart').forEach((holder, index) => drawPlot(holder, shown[index]));
}

/** Draws the curves. kernelPointOf(name): the kernel's own point [x, y] on a curve, or null. */
export function drawSeries(series, kernelPointOf) {
  shown = [...series].sort(samplesFirst)
    .map((one) => ({ ...one, curve: curveOf(one.name), kernelPoint: kernelPointOf(one.name) }));
  byId('series').hidden = series.length === 0;
  draw();
}

redrawOnResize(byId('series-charts'), draw);
