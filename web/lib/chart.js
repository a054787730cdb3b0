// Shared by charts: colours from the style sheet, the style of axes, and redrawing when the size or the theme changes.
export const cssVariable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const axisStyle = () => ({ stroke: cssVariable('--quiet'), grid: { stroke: cssVariable('--line'), width: 1 },
  ticks: { stroke: cssVariable('--line'), width: 1 }, font: '12px system-ui' });

/** Size of an axis in uPlot's options: makes a vertical axis as wide as its longest label. */
export function fitLabels(plot, labels, index, cycle) {
  const axis = plot.axes[index];
  if (cycle > 1) return axis._size; // uPlot asks again; the first answer must stay
  [plot.ctx.font] = axis.font;
  const widths = (labels ?? []).map((label) => plot.ctx.measureText(label).width / devicePixelRatio);
  return Math.ceil(axis.ticks.size + axis.gap + Math.max(0, ...widths));
}

const scales = [...Array.from({ length: 31 }, (_, index) => 10 ** (index - 15)), ...[1, 2, 3, 4].map((power) => 1024 ** -power)];

/** Returns the labels of an axis. If formatValue gives several ticks one label, the labels have as many decimals as the distance
 * of the ticks needs, in the unit of the largest tick. */
export function tickLabels(ticks, formatValue) {
  const labels = ticks.map((tick) => formatValue(tick) ?? '');
  if (new Set(labels).size === labels.length) return labels;
  const largest = ticks.reduce((found, tick, index) => (Math.abs(tick) > Math.abs(ticks[found]) ? index : found), 0);
  const [, digits, unit] = /^(\D?[\d.\u202f]+)(.*)$/.exec(labels[largest]) ?? [];
  const ratio = Number(digits?.replaceAll('\u202f', '')) / ticks[largest];
  if (!(ratio > 0 && ticks[1] > ticks[0])) return labels;
  const distanceFrom = (scale) => Math.abs(Math.log(scale / ratio));
  const scale = scales.reduce((best, other) => (distanceFrom(other) < distanceFrom(best) ? other : best));
  const decimals = Math.min(9, Math.max(0, Math.ceil(-Math.log10((ticks[1] - ticks[0]) * scale) - 1e-9)));
  return ticks.map((tick) => `${(tick * scale).toFixed(decimals)}${unit}`);
}

/** Calls draw whenever the width of the holder or the colour scheme changes. */
export function redrawOnResize(holder, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (holder.clientWidth === width) return;
    width = holder.clientWidth;
    draw();
  }).observe(holder);
  document.addEventListener('themechange', draw);
}
