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
