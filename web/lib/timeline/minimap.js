// A strip that shows the whole trace: the busy share of the device over time, and the window, which can be dragged.
import { prepareCanvas } from '/lib/timeline/draw.js';

const HEIGHT = 40; // px
// The strip shows the lanes of the first of these kinds that the trace has.
const FIRST_KINDS = ['kernels', 'launches', 'copies', 'calls', 'ranges'];

/** Returns the busy share of each of `count` equal parts of the trace. */
export function busyShares(overview, count) {
  const shares = new Float64Array(count), part = overview.endNs / count;
  const kind = FIRST_KINDS.find((one) => overview.lanes.some((lane) => lane.kind === one));
  for (const lane of overview.lanes.filter((one) => one.kind === kind)) {
    for (let i = 0; i < lane.count; i += 1) {
      const duration = Math.max(1, lane.end[i] - lane.start[i]), density = Math.min(1, lane.busy[i] / duration);
      const first = Math.floor(lane.start[i] / part), last = Math.min(count - 1, Math.floor(lane.end[i] / part));
      for (let at = first; at <= last; at += 1) {
        const inside = Math.min(lane.end[i], (at + 1) * part) - Math.max(lane.start[i], at * part);
        shares[at] = Math.min(1, shares[at] + (density * Math.max(0, inside)) / part);
      }
    }
  }
  return shares;
}

export class Minimap {
  #shares = null;
  #dragged = null; // distance of the pointer from the window's start, in ns

  /** onMove: called with the window to show. */
  constructor(canvas, onMove) {
    this.canvas = canvas;
    canvas.addEventListener('pointerdown', (event) => {
      if (!this.overview || event.button !== 0) return;
      const at = this.#toNs(event), { from, to } = this.window;
      this.#dragged = at >= from && at <= to ? at - from : (to - from) / 2;
      canvas.setPointerCapture(event.pointerId);
      onMove(this.#dragTo(at));
    });
    canvas.addEventListener('pointermove', (event) => { if (this.#dragged !== null) onMove(this.#dragTo(this.#toNs(event))); });
    for (const type of ['pointerup', 'pointercancel']) canvas.addEventListener(type, () => { this.#dragged = null; });
  }

  #toNs(event) { return (event.offsetX / this.canvas.clientWidth) * this.overview.endNs; }
  #dragTo(at) {
    const span = this.window.to - this.window.from;
    return { from: at - this.#dragged, to: at - this.#dragged + span };
  }

  /** Sets the trace to show. */
  setOverview(overview) {
    this.overview = overview;
    this.#shares = null;
  }

  draw(window, selection, theme) {
    const width = this.canvas.clientWidth;
    this.window = { from: window.from, to: window.to };
    if (width === 0) return;
    if (this.#shares?.length !== width) this.#shares = busyShares(this.overview, width);
    const context = prepareCanvas(this.canvas, width, HEIGHT), toX = (ns) => (ns / this.overview.endNs) * width;
    context.fillStyle = theme.quiet;
    context.globalAlpha = 0.55;
    for (let x = 0; x < width; x += 1) {
      const height = this.#shares[x] * (HEIGHT - 6);
      if (height > 0) context.fillRect(x, HEIGHT - 2 - Math.max(1, height), 1, Math.max(1, height));
    }
    const left = toX(window.from), right = Math.max(toX(window.to), left + 3);
    context.globalAlpha = 0.62;
    context.fillStyle = theme.panel;
    context.fillRect(0, 0, left, HEIGHT);
    context.fillRect(right, 0, width - right, HEIGHT);
    context.globalAlpha = 1;
    if (selection) {
      context.fillStyle = theme.accent;
      context.fillRect(toX(selection.from), HEIGHT - 3, Math.max(2, toX(selection.to) - toX(selection.from)), 3);
    }
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.5;
    context.strokeRect(Math.max(0.75, left), 0.75, Math.min(width - 0.75, right) - Math.max(0.75, left), HEIGHT - 1.5);
  }
}
