// Draws the timeline on its canvas.
import { cssVariable } from '/lib/chart.js';
import * as format from '/lib/format.js';
import { AXIS_HEIGHT, MARKS_HEIGHT, visitBars } from '/lib/timeline/lanes.js';
import { shortName } from '/lib/timeline/names.js';

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const LABEL_PADDING = 5; // px
const MIN_LABEL_WIDTH = 32; // px; a narrower bar shows no truncated label
const ELLIPSIS = '…';

/** Returns the distance between ticks: 1, 2 or 5 times a power of ten, so that at most `count` fit into `duration`. All in ns. */
export function tickDistance(duration, count) {
  const power = 10 ** Math.floor(Math.log10(duration / count));
  return Math.max(1, power * [1, 2, 5, 10].find((factor) => power * factor >= (duration / count) * 0.999999));
}

/** Reads the colours of the style sheet. */
export function readTheme() {
  const names = ['ink', 'quiet', 'line', 'panel', 'wash', 'accent', 'wait'];
  const theme = Object.fromEntries(names.map((name) => [name, cssVariable(`--${name}`)]));
  theme.isDark = document.documentElement.dataset.theme === 'dark';
  theme.onBar = theme.isDark ? '#0e141a' : '#ffffff';
  theme.hatch = hatchOf(theme.wait);
  return theme;
}

/** Returns a tile of diagonal lines, which marks idle time without relying on a colour. */
function hatchOf(colour) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const context = tile.getContext('2d');
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  for (const offset of [-4, 4, 12]) {
    context.moveTo(offset - 4, 8);
    context.lineTo(offset + 4, 0);
  }
  context.stroke();
  return context.createPattern(tile, 'repeat');
}

/** Sets the size of a canvas in px of the device, and returns its context, scaled to px of the page. */
export function prepareCanvas(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const [pixelWidth, pixelHeight] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== pixelWidth || canvas.height !== pixelHeight) {
    canvas.width = pixelWidth;
    canvas.height = pixelHeight;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = 'middle';
  return context;
}

/* --- labels ------------------------------------------------------------------------------------------------------------ */

const labels = new Map(); // text -> {width: in px, characters: width of a character in px}

function measureLabel(context, text) {
  let measured = labels.get(text);
  if (!measured) {
    const { width } = context.measureText(text);
    measured = { width, character: width / Math.max(1, text.length) };
    labels.set(text, measured);
  }
  return measured;
}

/** Returns as much of the text as fits into `width` px; '' if too little fits. */
function fittingLabel(context, text, width) {
  const { width: full, character } = measureLabel(context, text);
  if (full <= width) return text;
  if (width < MIN_LABEL_WIDTH) return '';
  const count = Math.floor(width / character) - 1;
  return count >= 3 ? text.slice(0, count) + ELLIPSIS : '';
}

/* --- parts of the picture ------------------------------------------------------------------------------------------------ */

function drawAxis(context, { layout, window, theme }) {
  const { gutter, width, height } = layout, toX = layout.toX(window);
  const distance = tickDistance(window.to - window.from, Math.max(2, (width - gutter) / 110));
  const [unit, unitNs] = distance < 1e3 ? ['ns', 1] : distance < 1e6 ? ['µs', 1e3] : distance < 1e9 ? ['ms', 1e6] : ['s', 1e9];
  context.fillStyle = theme.line;
  context.fillRect(gutter, AXIS_HEIGHT - 1, width - gutter, 1);
  context.textAlign = 'left';
  for (let tick = Math.ceil(window.from / distance) * distance; tick <= window.to; tick += distance) {
    const x = Math.round(toX(tick));
    context.fillStyle = theme.line;
    context.fillRect(x, 6, 1, height - 6);
    const text = `${format.number(+(tick / unitNs).toPrecision(9))} ${unit}`;
    if (x + 4 + context.measureText(text).width > width) continue;
    context.fillStyle = theme.quiet;
    context.fillText(text, x + 4, 13);
  }
}

/** Shortens the title of a lane: "Kernels, stream 7" becomes "Kernels · s7". */
const shortTitle = (title) => title.replace(', ', ' · ').replace('stream ', 's').replace('thread ', 't').replace('device ', 'd');

function drawTitles(context, { layout, theme, focus }) {
  context.textAlign = 'left';
  for (const box of layout.boxes) {
    context.fillStyle = focus?.key === box.key ? theme.ink : theme.quiet;
    const y = layout.isNarrow ? box.titleTop + 8 : box.top + 10;
    context.fillText(layout.isNarrow ? box.title : fittingLabel(context, shortTitle(box.title), layout.gutter - 8), 2, y);
  }
  if (!layout.hasMarks) return;
  context.fillStyle = theme.quiet;
  context.fillText('Idle, by cause', 2, layout.isNarrow ? AXIS_HEIGHT + 8 : layout.marksTop + MARKS_HEIGHT / 2);
}

/** Draws the bars of a lane. A bar of merged events is filled to the height of its busy share. Events that a search does not find
 * are faint. */
function drawLane(context, scene, lane, box) {
  const { layout, window, theme, colours, reply, search } = scene, toX = layout.toX(window);
  const isRange = lane.kind === 'ranges', texts = [];
  let fill = null, alpha = 1; // current state of the context; setting it is slow
  visitBars(lane, window, toX, (i, left, right) => {
    const name = reply.names[lane.name[i]], top = box.top + lane.depth[i] * box.barHeight;
    const duration = lane.end[i] - lane.start[i], width = right - left, height = box.barHeight - 2;
    const barWidth = width > 3 ? width - 0.75 : width, opacity = search && !search(name) ? 0.18 : 1;
    const isFilled = lane.events[i] === 1 || isRange, busy = Math.min(1, lane.busy[i] / Math.max(1, duration));
    const filled = isFilled ? height : Math.max(2, height * busy);
    const colour = isRange ? theme.wash : colours.colour(name, theme.isDark);
    if (colour !== fill) context.fillStyle = fill = colour;
    if (opacity !== alpha) context.globalAlpha = alpha = opacity;
    context.fillRect(left, top + height - filled, barWidth, filled);
    if (isRange) {
      context.fillStyle = fill = theme.quiet;
      context.fillRect(left, top, barWidth, 2);
    }
    if (width >= MIN_LABEL_WIDTH && lane.events[i] === 1) texts.push(i, Math.max(left, layout.gutter), right, top);
  });
  context.globalAlpha = 1;
  context.textAlign = 'left';
  context.fillStyle = isRange ? theme.ink : theme.onBar;
  for (let i = 0; i < texts.length; i += 4) {
    const [index, left, right, top] = texts.slice(i, i + 4);
    const text = fittingLabel(context, shortName(reply.names[lane.name[index]]), right - left - 2 * LABEL_PADDING);
    if (text) context.fillText(text, left + LABEL_PADDING, top + (box.barHeight - 2) / 2 + 0.5);
  }
}

function drawMarks(context, { layout, window, theme, marks }) {
  const toX = layout.toX(window), top = layout.marksTop;
  if (!layout.hasMarks) return;
  context.textAlign = 'left';
  for (const mark of marks) {
    if (mark.to < window.from || mark.from > window.to) continue;
    const left = Math.max(toX(mark.from), layout.gutter - 2);
    const width = Math.max(2, Math.min(toX(mark.to), layout.width + 2) - left);
    context.fillStyle = theme.hatch;
    context.fillRect(left, top, width, MARKS_HEIGHT - 2);
    context.strokeStyle = theme.wait;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, top + 0.5, Math.max(1, width - 1), MARKS_HEIGHT - 3);
    const text = fittingLabel(context, mark.title, width - 2 * LABEL_PADDING - 4);
    if (!text) continue;
    context.fillStyle = theme.panel;
    context.fillRect(left + 3, top + 2, context.measureText(text).width + 6, MARKS_HEIGHT - 6);
    context.fillStyle = theme.ink;
    context.fillText(text, left + 6, top + MARKS_HEIGHT / 2 - 0.5);
  }
}

function outline(context, { layout, window }, { key, from, to, depth }, colour, lineWidth) {
  const box = layout.boxes.find((one) => one.key === key), toX = layout.toX(window);
  if (!box || to < window.from || from > window.to) return;
  const left = Math.max(toX(from), layout.gutter + 1), right = Math.min(Math.max(toX(to), left + 2), layout.width - 1);
  context.strokeStyle = colour;
  context.lineWidth = lineWidth;
  context.strokeRect(left - 1, box.top + depth * box.barHeight - 1, right - left + 2, box.barHeight);
}

function drawSelection(context, { layout, window, theme, selection }) {
  if (!selection || selection.to < window.from || selection.from > window.to) return;
  const toX = layout.toX(window);
  const left = Math.max(toX(selection.from), layout.gutter), right = Math.min(toX(selection.to), layout.width);
  context.globalAlpha = 0.12;
  context.fillStyle = theme.accent;
  context.fillRect(left, 0, Math.max(1, right - left), layout.height);
  context.globalAlpha = 1;
  for (const x of [left, right]) context.fillRect(Math.round(x) - 0.5, 0, 1.5, layout.height);
  const text = format.us((selection.to - selection.from) / 1e3), width = context.measureText(text).width + 10;
  const at = Math.min(Math.max((left + right) / 2, layout.gutter + width / 2), layout.width - width / 2);
  context.fillStyle = theme.accent;
  context.beginPath();
  context.roundRect(at - width / 2, 4, width, 18, 4);
  context.fill();
  context.fillStyle = theme.panel;
  context.textAlign = 'center';
  context.fillText(text, at, 13.5);
}

/** Draws a scene: {layout, window, reply, theme, colours, marks, selection, hover, focus, search}. hover, focus: an event {key,
 * from, to, depth} or null; a focus without `to` is a lane. search(name): returns whether the search finds a name; null: no
 * search. */
export function drawTimeline(canvas, scene) {
  const { layout, theme, reply } = scene;
  const context = prepareCanvas(canvas, layout.width, layout.height);
  drawAxis(context, scene);
  context.save();
  context.beginPath();
  context.rect(layout.gutter, 0, layout.width - layout.gutter, layout.height);
  context.clip();
  for (const lane of reply.lanes) {
    const box = layout.boxes.find((one) => one.key === lane.key);
    if (box) drawLane(context, scene, lane, box);
  }
  drawMarks(context, scene);
  if (scene.hover) outline(context, scene, scene.hover, theme.ink, 1.5);
  if (scene.focus?.to !== undefined) outline(context, scene, scene.focus, theme.accent, 2.5);
  drawSelection(context, scene);
  context.restore();
  drawTitles(context, scene);
}
