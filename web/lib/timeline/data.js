// Loads windows of a run's timeline at the resolution of the picture, and caches the newest replies.
import { get } from '/lib/api.js';
import { decodeLane } from '/lib/timeline/lanes.js';

const MAX_PIXELS = 4096; // limit of the API
const MARGIN = 0.25; // fraction of the window that is also loaded before and after it
const KEPT_REPLIES = 32;
const GRID_STEPS = 256; // requests begin at multiples of this many steps, so that similar windows have equal URLs

async function load(run, query) {
  const reply = await get(`/runs/${run}/timeline/lanes${query}`);
  if (reply.lanes === null) return reply;
  return { from: reply.window.from_ns, to: reply.window.to_ns, step: reply.step_ns, names: reply.names, endNs: reply.trace_end_ns,
    truncated: reply.lanes_truncated, lanes: reply.lanes.map(decodeLane) };
}

/** Returns the time range to load for a window whose picture is `width` px wide. */
function rangeFor({ from, to }, width, endNs) {
  const margin = (to - from) * MARGIN;
  let step = 2 ** Math.max(0, Math.floor(Math.log2((to - from) / width)));
  while ((to - from + 2 * margin) / step + 2 * GRID_STEPS > MAX_PIXELS) step *= 2;
  const grid = step * GRID_STEPS;
  const begin = Math.max(0, Math.floor((from - margin) / grid) * grid);
  const end = Math.min(Math.ceil((to + margin) / grid) * grid, Math.ceil(endNs));
  const pixels = Math.min(MAX_PIXELS, Math.max(1, Math.ceil((end - begin) / step) + 1));
  return { from: begin, to: Math.max(end, begin + 1), pixels };
}

const covers = (reply, window) => reply.from <= window.from && reply.to >= Math.min(window.to, reply.endNs);
const overlap = (reply, window) => Math.min(reply.to, window.to) - Math.max(reply.from, window.from);

export class LaneData {
  #replies = [];
  #loading = false;
  #wanted = null;

  /** onLoad: called after each reply; onError: with an ApiProblem. */
  constructor(run, { onLoad, onError }) {
    this.run = run;
    this.onLoad = onLoad;
    this.onError = onError;
    this.overview = null;
  }

  /** Loads the whole trace. A reply without `step` has the reason why there is no trace. */
  async loadOverview() {
    this.overview = await load(this.run, '?pixels=1024');
    return this.overview;
  }

  /** Returns the reply to draw: one that covers the window at its resolution, else the one that shows most of it. */
  best(window, width) {
    const step = (window.to - window.from) / width;
    let best = this.overview, bestScore = -Infinity;
    for (const reply of [...this.#replies, this.overview]) {
      const score = overlap(reply, window) / (window.to - window.from) - 0.02 * Math.abs(Math.log2(reply.step / step));
      if (score > bestScore) [best, bestScore] = [reply, score];
    }
    return best;
  }

  #isEnough(reply, window, width) {
    return covers(reply, window) && (reply.step <= 1 || reply.step <= (window.to - window.from) / width);
  }

  /** Loads the window unless it is cached. While a request is in progress, keeps only the newest window to load next. */
  async need(window, width) {
    this.#wanted = { window: { from: window.from, to: window.to }, width };
    if (this.#loading) return;
    this.#loading = true;
    try {
      while (this.#wanted !== null) {
        const { window: next, width: pixels } = this.#wanted;
        this.#wanted = null;
        if ([...this.#replies, this.overview].some((reply) => this.#isEnough(reply, next, pixels))) continue;
        const range = rangeFor(next, pixels, this.overview.endNs);
        const reply = await load(this.run, `?from=${range.from}&to=${range.to}&pixels=${range.pixels}`);
        if (!reply.step) break; // retention has deleted the trace
        this.#replies = [reply, ...this.#replies].slice(0, KEPT_REPLIES);
        this.onLoad(reply);
      }
    } catch (problem) {
      this.onError(problem);
    } finally {
      this.#loading = false;
    }
  }

  /** Returns whether the window is cached at its resolution. */
  isLoaded(window, width) {
    return [...this.#replies, this.overview].some((reply) => this.#isEnough(reply, window, width));
  }
}
