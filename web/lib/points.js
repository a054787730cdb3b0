// A chart with one value for each run, with a tooltip.
import uPlot from '/vendor/uPlot.esm.js';
import { axisStyle, token } from '/lib/chart.js';
import { createElement } from '/lib/dom.js';

const HEIGHT = 260;
const MAX_DOTS = 200; // more would overlap

/** A plugin that shows a tooltip for the nearest point and opens its link on a click. */
function pointing(points) {
  const near = createElement('div', { class: 'near', role: 'status', hidden: '' });
  const place = (plot) => {
    const { idx } = plot.cursor;
    near.hidden = idx === null || idx === undefined;
    if (near.hidden) return;
    near.textContent = points[idx].words;
    const left = plot.valToPos(idx, 'x');
    const over = left > plot.over.clientWidth / 2;
    near.style.left = over ? 'auto' : `${left + 12}px`;
    near.style.right = over ? `${plot.over.clientWidth - left + 12}px` : 'auto';
    near.style.top = '8px';
  };
  const attach = (plot) => {
    plot.over.append(near);
    plot.over.addEventListener('click', () => { if (!near.hidden) location.assign(points[plot.cursor.idx].href); });
  };
  return { hooks: { init: attach, setCursor: place } };
}

let plot = null;

/** Draws a line, with dots for suspect points and for few points. points: [{value, suspect, name, words, href}]; write: formats
 * axis values. */
export function drawPoints(holder, points, write) {
  plot?.destroy();
  plot = null;
  if (points.length === 0 || holder.clientWidth === 0) return;
  const axis = axisStyle();
  const colour = token('--run-0');
  const some = (wanted) => points.map(({ value, suspect }) => (suspect === wanted ? value : null));
  const dots = (fill, show = true) => ({ show, size: 8, fill, stroke: fill });
  plot = new uPlot({
    width: Math.max(240, holder.clientWidth), height: HEIGHT, legend: { show: false }, cursor: { y: false },
    scales: { x: { time: false, range: [-0.5, points.length - 0.5] } }, plugins: [pointing(points)],
    axes: [{ ...axis, space: 70, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500],
      values: (_, ticks) => ticks.map((tick) => points[tick]?.name ?? '') },
      { ...axis, size: 80, values: (_, ticks) => ticks.map((tick) => write(tick) ?? '') }],
    series: [{}, { stroke: colour, width: 2, spanGaps: true, points: dots(colour, points.length <= MAX_DOTS) },
      { stroke: 'transparent', points: dots(token('--bad')) }],
  }, [points.map((_, index) => index), some(false), some(true)], holder);
}
