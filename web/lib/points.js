// A chart with one value for each run, with a tooltip.
import uPlot from '/vendor/uPlot.esm.js';
import { axisStyle, cssVariable, fitLabels, tickLabels } from '/lib/chart.js';
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

/** A plugin that draws a dashed vertical line at each point with an event. */
function eventPlugin(points) {
  const draw = (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = cssVariable('--quiet');
    ctx.setLineDash([4, 4]);
    points.forEach(({ hasEvent }, index) => {
      if (!hasEvent) return;
      const x = Math.round(plot.valToPos(index, 'x', true)) + 0.5;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    });
    ctx.restore();
  };
  return { hooks: { drawAxes: draw } };
}

/** A plugin that describes the chart to screen readers. */
function descriptionPlugin(holder, count, formatValue) {
  const describe = ({ scales: { y } }) => {
    holder.setAttribute('role', 'img');
    holder.setAttribute('aria-label', `${count} points, y from ${formatValue(y.min)} to ${formatValue(y.max)}`);
  };
  return { hooks: { draw: describe } };
}

/** Returns the range of the y axis, which begins at zero if fromZero. */
const yRange = (fromZero) => (_, min, max) => {
  const margin = 0.08 * (max - min) || Math.abs(max) * 0.08 || 1;
  return [fromZero && min >= 0 ? 0 : min - margin, max + margin];
};

/** Draws a line through the points. Suspect points have dots; if there are at most MAX_POINTS_WITH_DOTS points, all have. points:
 * [{value, suspect, name, words, href}], and optionally band: [low, high] (lib/noise.js) and hasEvent; formatValue: formats the
 * values of the axis; fromZero: whether y begins at zero. */
export function drawPoints(holder, points, formatValue, fromZero = false) {
  plot?.destroy();
  plot = null;
  if (points.length === 0 || holder.clientWidth === 0) return;
  const axis = axisStyle();
  const colour = cssVariable('--run-0');
  const valuesWhere = (isSuspect) => points.map(({ value, suspect }) => (suspect === isSuspect ? value : null));
  const bandEdge = { stroke: 'transparent', points: { show: false } };
  const bandValues = (end) => points.map(({ band }) => band?.[end] ?? null);
  const dots = (fill, show = true) => ({ show, size: 8, fill, stroke: fill });
  plot = new uPlot({
    width: Math.max(240, holder.clientWidth), height: HEIGHT, legend: { show: false }, cursor: { y: false },
    scales: { x: { time: false, range: [-0.5, points.length - 0.5] }, y: { range: yRange(fromZero) } },
    plugins: [eventPlugin(points), tooltipPlugin(points), descriptionPlugin(holder, points.length, formatValue)],
    bands: [{ series: [4, 3], fill: cssVariable('--band') }],
    axes: [{ ...axis, space: 70, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500],
      values: (_, ticks) => ticks.map((tick) => points[tick]?.name ?? '') },
      { ...axis, size: fitLabels, values: (_, ticks) => tickLabels(ticks, formatValue) }],
    series: [{}, { stroke: colour, width: 2, spanGaps: true, points: dots(colour, points.length <= MAX_POINTS_WITH_DOTS) },
      { stroke: 'transparent', points: dots(cssVariable('--bad')) }, bandEdge, bandEdge],
  }, [points.map((_, index) => index), valuesWhere(false), valuesWhere(true), bandValues(0), bandValues(1)], holder);
}
