// Reads colours from the style sheet, styles axes, and redraws charts.
export const cssVariable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const axisStyle = () => ({ stroke: cssVariable('--quiet'), grid: { stroke: cssVariable('--line'), width: 1 },
  ticks: { stroke: cssVariable('--line'), width: 1 }, font: '12px system-ui' });

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
