// A chart with one value for each run, with a tooltip.
import uPlot from '/vendor/uPlot.esm.js';
import { axisStyle, cssVariable } from '/lib/chart.js';
import { createElement } from '/lib/dom.js';

const HEIGHT = 260;
const MAX_POINTS_WITH_DOTS = 200; // more would overlap

/** A plugin that shows a tooltip for the nearest point and opens its link on a click. */
function tooltipPlugin(points) {
  const tooltip = createElement('div', { class: 'near', role: 'status', hidden: '' });
  const placeTooltip = (plot) => {
    const { idx } = plot.cursor;
    tooltip.hidden = idx === null || idx === undefined;
    if (tooltip.hidden) return;
    tooltip.textContent = points[idx].words;
    const left = plot.valToPos(idx, 'x');
    const isRightHalf = left > plot.over.clientWidth / 2;
    tooltip.style.left = isRightHalf ? 'auto' : `${left + 12}px`;
    tooltip.style.right = isRightHalf ? `${plot.over.clientWidth - left + 12}px` : 'auto';
    tooltip.style.top = '8px';
  };
  const attach = (plot) => {
    plot.over.append(tooltip);
    plot.over.addEventListener('click', () => { if (!tooltip.hidden) location.assign(points[plot.cursor.idx].href); });
  };
  return { hooks: { init: attach, setCursor: placeTooltip } };
}

let plot = null;

/** Draws a line. Suspect points have a dot, and all points if there are at most MAX_POINTS_WITH_DOTS. points: [{value, suspect,
 * name, words, href}]; formatValue: formats the values of the axis. */
export function drawPoints(holder, points, formatValue) {
  plot?.destroy();
  plot = null;
  if (points.length === 0 || holder.clientWidth === 0) return;
  const axis = axisStyle();
  const colour = cssVariable('--run-0');
  const valuesWhere = (isSuspect) => points.map(({ value, suspect }) => (suspect === isSuspect ? value : null));
  const dots = (fill, show = true) => ({ show, size: 8, fill, stroke: fill });
  plot = new uPlot({
    width: Math.max(240, holder.clientWidth), height: HEIGHT, legend: { show: false }, cursor: { y: false },
    scales: { x: { time: false, range: [-0.5, points.length - 0.5] } }, plugins: [tooltipPlugin(points)],
    axes: [{ ...axis, space: 70, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500],
      values: (_, ticks) => ticks.map((tick) => points[tick]?.name ?? '') },
      { ...axis, size: 80, values: (_, ticks) => ticks.map((tick) => formatValue(tick) ?? '') }],
    series: [{}, { stroke: colour, width: 2, spanGaps: true, points: dots(colour, points.length <= MAX_POINTS_WITH_DOTS) },
      { stroke: 'transparent', points: dots(cssVariable('--bad')) }],
  }, [points.map((_, index) => index), valuesWhere(false), valuesWhere(true)], holder);
}
