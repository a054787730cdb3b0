// Curves of a kernel: samples over time, and occupancy over its limits with a dot at the kernel's value.
import uPlot from '/vendor/uPlot.esm.js';
import { axisStyle, redrawOnResize, token } from '/lib/chart.js';
import { byId, createElement } from '/lib/dom.js';
import * as format from '/lib/format.js';

const HEIGHT = 180;
const overTime = (series) => !series.name.startsWith('occupancy_by_');
const tick = (write) => (_, values) => values.map((value) => write(value) ?? '');

/** Puts the dot at the first point that is not below the kernel's value, because hardware rounds allocations up. */
function dotsOf({ points, here }) {
  const at = here === null ? -1 : points.findIndex(([x]) => x >= here);
  return points.map(([, value], place) => (place === at ? value : null));
}

function plot(holder, series) {
  const time = overTime(series);
  const style = axisStyle();
  const color = token('--run-0');
  new uPlot({
    width: Math.max(240, holder.clientWidth), height: HEIGHT, scales: { x: { time: false } }, legend: { show: false },
    axes: [{ ...style, values: tick(time ? (ns) => format.us(ns / 1000) : format.plain), space: 70 },
      { ...style, size: 60, values: tick(format.plain) }],
    series: [{}, { stroke: color, width: 2, points: { show: !time, size: 4, fill: color } },
      { stroke: 'transparent', points: { show: true, size: 11, fill: token('--run-1'), stroke: token('--run-1') } }],
  }, [series.points.map(([x]) => x), series.points.map(([, value]) => value), dotsOf(series)], holder);
}

/** Every series is a share of a peak. */
const captionOf = ({ name, here }) => `${name.replace(/_pct$/, '').replaceAll('_', ' ')}, %\
${here === null ? '' : `; this kernel: ${format.count(here)}`}`;

let shown = [];

function draw() {
  byId('series-charts').replaceChildren(...shown.map((series) => createElement('figure', { class: 'panel' },
    createElement('figcaption', {}, captionOf(series)), createElement('div', { class: 'small chart' }))));
  byId('series-charts').querySelectorAll('.chart').forEach((holder, index) => plot(holder, shown[index]));
}

/** hereOf(name): the kernel's x value on a curve, or null. */
export function drawSeries(series, hereOf) {
  shown = series.map((one) => ({ ...one, here: hereOf(one.name) }));
  byId('series').hidden = series.length === 0;
  draw();
}

redrawOnResize(byId('series-charts'), draw);
