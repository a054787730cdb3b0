// Curves of a kernel: samples over its time, occupancy over what limits it, with a dot where the kernel stands.
import uPlot from '/vendor/uPlot.esm.js';
import { axisStyle, keepDrawn, token } from '/lib/chart.js';
import { find, make } from '/lib/dom.js';
import * as show from '/lib/format.js';

const HEIGHT = 180;
const overTime = (series) => !series.name.startsWith('occupancy_by_');
const tick = (write) => (_, values) => values.map((value) => write(value) ?? '');

/** Hardware gives what is asked for or the next more, and the kernel gets what that point has. */
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
    axes: [{ ...style, values: tick(time ? (ns) => show.us(ns / 1000) : show.plain), space: 70 },
      { ...style, size: 60, values: tick(show.plain) }],
    series: [{}, { stroke: color, width: 2, points: { show: !time, size: 4, fill: color } },
      { stroke: 'transparent', points: { show: true, size: 11, fill: token('--run-1'), stroke: token('--run-1') } }],
  }, [series.points.map(([x]) => x), series.points.map(([, value]) => value), dotsOf(series)], holder);
}

/** All of them are shares of a peak. */
const captionOf = ({ name, here }) => `${name.replace(/_pct$/, '').replaceAll('_', ' ')}, %\
${here === null ? '' : `; this kernel: ${show.count(here)}`}`;

let shown = [];

function draw() {
  find('series-charts').replaceChildren(...shown.map((series) => make('figure', { class: 'panel' },
    make('figcaption', {}, captionOf(series)), make('div', { class: 'small chart' }))));
  find('series-charts').querySelectorAll('.chart').forEach((holder, index) => plot(holder, shown[index]));
}

/** hereOf(name): at which x the kernel stands, or null. */
export function drawSeries(series, hereOf) {
  shown = series.map((one) => ({ ...one, here: hereOf(one.name) }));
  find('series').hidden = series.length === 0;
  draw();
}

keepDrawn(find('series-charts'), draw);
