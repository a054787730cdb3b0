// Curves of a kernel: samples over its time, occupancy over what limits it.
import uPlot from '/vendor/uPlot.esm.js';
import { axisStyle, keepDrawn, token } from '/lib/chart.js';
import { find, make } from '/lib/dom.js';
import * as show from '/lib/format.js';

const HEIGHT = 180;
const overTime = (series) => !series.name.startsWith('occupancy_by_');
const tick = (write) => (_, values) => values.map((value) => write(value) ?? '');

function plot(holder, series) {
  const time = overTime(series);
  const style = axisStyle();
  const color = token('--run-0');
  new uPlot({
    width: Math.max(240, holder.clientWidth), height: HEIGHT, scales: { x: { time: false } }, legend: { show: false },
    axes: [{ ...style, values: tick(time ? (ns) => show.us(ns / 1000) : show.plain), space: 70 },
      { ...style, size: 60, values: tick(show.plain) }],
    series: [{}, { stroke: color, width: 2, points: { show: !time, size: 5, fill: color } }],
  }, [series.points.map(([x]) => x), series.points.map(([, value]) => value)], holder);
}

/** All of them are shares of a peak. */
const captionOf = ({ name }) => `${name.replace(/_pct$/, '').replaceAll('_', ' ')}, %`;

let shown = [];

function draw() {
  find('series-charts').replaceChildren(...shown.map((series) => make('figure', { class: 'panel' },
    make('figcaption', {}, captionOf(series)), make('div', { class: 'small chart' }))));
  find('series-charts').querySelectorAll('.chart').forEach((holder, index) => plot(holder, shown[index]));
}

export function drawSeries(series) {
  shown = series;
  find('series').hidden = series.length === 0;
  draw();
}

keepDrawn(find('series-charts'), draw);
