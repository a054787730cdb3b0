// The time window that the timeline shows. Times are in ns from the start of the trace.

const MIN_SPAN_NS = 50;
const ANIMATION_MS = 140;
const animates = () => !matchMedia('(prefers-reduced-motion: reduce)').matches;

/** Returns the window, moved and shortened so that it lies within a trace that ends at endNs. */
export function clampWindow({ from, to }, endNs) {
  const span = Math.min(Math.max(to - from, MIN_SPAN_NS), Math.max(endNs, MIN_SPAN_NS));
  const begin = Math.min(Math.max(0, from), Math.max(0, endNs - span));
  return { from: begin, to: begin + span };
}

/** Returns the window with its span multiplied by a factor; the time `at` stays at the same position of the picture. */
export const zoomed = ({ from, to }, factor, at = (from + to) / 2) =>
  ({ from: at - (at - from) * factor, to: at + (to - at) * factor });

/** Returns the window moved by a fraction of its span. */
export const moved = ({ from, to }, fraction) =>
  ({ from: from + fraction * (to - from), to: to + fraction * (to - from) });

/** Returns an interval extended by a margin. */
export const withMargin = ({ from, to }) => {
  const margin = Math.max((to - from) * 0.04, MIN_SPAN_NS);
  return { from: from - margin, to: to + margin };
};

/** Keeps the shown window and calls onChange after each change. */
export class ShownWindow {
  #target = { from: 0, to: 1 };
  #animation = 0;

  constructor(onChange) {
    this.onChange = onChange;
    this.endNs = 1;
    this.from = 0;
    this.to = 1;
  }

  get span() { return this.to - this.from; }
  /** Returns the window at the end of a running animation. */
  get target() { return this.#target; }
  get isAtTarget() { return this.from === this.#target.from && this.to === this.#target.to; }

  #set({ from, to }) {
    this.from = from;
    this.to = to;
    this.onChange(this);
  }

  /** Shows a window at once. */
  jump(wanted) {
    cancelAnimationFrame(this.#animation);
    this.#target = clampWindow(wanted, this.endNs);
    this.#set(this.#target);
  }

  /** Shows a window after a short animation; at once if the user prefers reduced motion. */
  glide(wanted) {
    if (!animates()) { this.jump(wanted); return; }
    cancelAnimationFrame(this.#animation);
    const begin = { from: this.from, to: this.to }, startMs = performance.now();
    this.#target = clampWindow(wanted, this.endNs);
    const step = (nowMs) => {
      const done = Math.min(1, Math.max(0, nowMs - startMs) / ANIMATION_MS), eased = 1 - (1 - done) ** 3;
      const { from, to } = this.#target;
      if (done === 1) { this.#set(this.#target); return; }
      this.#set({ from: begin.from + (from - begin.from) * eased, to: begin.to + (to - begin.to) * eased });
      this.#animation = requestAnimationFrame(step);
    };
    this.#animation = requestAnimationFrame(step);
  }
}
