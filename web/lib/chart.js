// Shared by charts: colours from the style sheet, the style of axes, and redrawing when the size or the theme changes.
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
