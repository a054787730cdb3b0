// Colours from the style sheet, and the style of axes.
export const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const axisStyle = () => ({ stroke: token('--quiet'), grid: { stroke: token('--line'), width: 1 },
  ticks: { stroke: token('--line'), width: 1 }, font: '12px system-ui' });

/** Calls draw whenever the width of the holder or the colour scheme changes. */
export function redrawOnResize(holder, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (holder.clientWidth === width) return;
    width = holder.clientWidth;
    draw();
  }).observe(holder);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
}
