// Curves of a kernel: samples over time, and occupancy over its limits with a dot at the kernel's value.
import uPlot from '/vendor/uPlot.esm.js';
import { axisStyle, redrawOnResize, cssVariable } from '/lib/chart.js';
import { byId, createElement } from '/lib/dom.js';
import * as format from '/lib/format.js';

const HEIGHT = 180;
const isOverTime = (series) => !series.name.startsWith('occupancy_by_');
const tickFormatter = (formatValue) => (_, values) => values.map((value) => formatValue(value) ?? '');

/** Puts the dot at the first point that is not below the kernel's value, because hardware rounds allocations up. */
function dotsOf({ points, kernelValue }) {
  const markedIndex = kernelValue === null ? -1 : points.findIndex(([x]) => x >= kernelValue);
  return points.map(([, value], index) => (index === markedIndex ? value : null));
}

function drawPlot(holder, series) {
  const time = isOverTime(series);
  const style = axisStyle();
  const colour = cssVariable('--run-0');
  new uPlot({
    width: Math.max(240, holder.clientWidth), height: HEIGHT, scales: { x: { time: false } }, legend: { show: false },
    axes: [{ ...style, values: tickFormatter(time ? (ns) => format.us(ns / 1000) : format.number), space: 70 },
      { ...style, size: 60, values: tickFormatter(format.number) }],
    series: [{}, { stroke: colour, width: 2, points: { show: !time, size: 4, fill: colour } },
      { stroke: 'transparent', points: { show: true, size: 11, fill: cssVariable('--run-1'), stroke: cssVariable('--run-1') } }],
  }, [series.points.map(([x]) => x), series.points.map(([, value]) => value), dotsOf(series)], holder);
}

/** Returns the caption, in percent, because every series is a share of a peak. */
const captionOf = ({ name, kernelValue }) => `${name.replace(/_pct$/, '').replaceAll('_', ' ')}, %\
${kernelValue === null ? '' : `; this kernel: ${format.count(kernelValue)}`}`;

let shown = [];

function draw() {
  byId('series-charts').replaceChildren(...shown.map((series) => createElement('figure', { class: 'panel' },
    createElement('figcaption', {}, captionOf(series)), createElement('div', { class: 'small chart' }))));
  byId('series-charts').querySelectorAll('.chart').forEach((holder, index) => drawPlot(holder, shown[index]));
}

/** Draws the curves. kernelValueOf(name): the kernel's x value on a curve, or null. */
export function drawSeries(series, kernelValueOf) {
  shown = series.map((curve) => ({ ...curve, kernelValue: kernelValueOf(curve.name) }));
  byId('series').hidden = series.length === 0;
  draw();
}

redrawOnResize(byId('series-charts'), draw);
