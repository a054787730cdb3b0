// A value a run, in their order: a line with a point each, which says what it is to who points at it.
import uPlot from '/vendor/uPlot.esm.js';
import { axisStyle, token } from '/lib/chart.js';
import { make } from '/lib/dom.js';

const HEIGHT = 260;
const DOTS = 200; // more would be a band

/** Words beside the point that is pointed at; a click opens what it is of. */
function pointing(points) {
  const near = make('div', { class: 'near', role: 'status', hidden: '' });
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

/** Few points are dots too, suspect ones always. points: [{value, suspect, name, words, href}]; write: of a value on the axis. */
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
    series: [{}, { stroke: colour, width: 2, spanGaps: true, points: dots(colour, points.length <= DOTS) },
      { stroke: 'transparent', points: dots(token('--bad')) }],
  }, [points.map((_, index) => index), some(false), some(true)], holder);
}
