// The lanes of a timeline: their data from the API, and their boxes in the picture.

// All in px.
const BAR_HEIGHT = 20;
const LANE_GAP = 8;
export const AXIS_HEIGHT = 26;
export const MARKS_HEIGHT = 18;
const NARROW_WIDTH = 560; // a narrower picture has a lane's title above its bars instead of beside them
const TITLE_HEIGHT = 15;
const TITLE_WIDTH = 128;

const titles = { ranges: 'NVTX', calls: 'API calls', launches: 'Launches', kernels: 'Kernels', phases: 'Phases', copies: 'Copies',
  allocations: 'Allocations', overhead: 'Overhead' };
const order = Object.keys(titles);
const isOfStream = ({ kind }) => ['kernels', 'phases', 'copies'].includes(kind);

export const laneKey = ({ kind, device, stream, thread }) => `${kind} ${device ?? ''} ${stream ?? ''} ${thread ?? ''}`;

/** Returns a lane's title. hasSeveralDevices: the title contains the device. */
export function laneTitle({ kind, device, stream, thread }, hasSeveralDevices = false) {
  const owner = [hasSeveralDevices && device !== null ? `device ${device}` : null, stream !== null ? `stream ${stream}` : null,
    thread !== null ? `thread ${thread}` : null].filter(Boolean).join(', ');
  return owner ? `${titles[kind]}, ${owner}` : titles[kind];
}

/** Compares lanes as the API orders them: threads, then streams. */
function compareLanes(a, b) {
  const streams = isOfStream(a) && isOfStream(b), threads = a.thread !== null && b.thread !== null;
  const byPlace = threads ? a.thread - b.thread
    : streams ? (a.device ?? -1) - (b.device ?? -1) || (a.stream ?? -1) - (b.stream ?? -1) : 0;
  return byPlace || order.indexOf(a.kind) - order.indexOf(b.kind);
}

/** Returns a lane of a reply with typed columns. latest[i]: the latest end of the items 0 to i. */
export function decodeLane(lane) {
  const start = Float64Array.from(lane.start_ns), count = start.length;
  const end = Float64Array.from(lane.duration_ns, (duration, index) => start[index] + duration);
  const latest = new Float64Array(count);
  for (let i = 0, until = -Infinity; i < count; i += 1) latest[i] = until = Math.max(until, end[i]);
  const { kind, device, stream, thread, depths } = lane;
  return { key: laneKey(lane), kind, device, stream, thread, depths, count, start, end, latest, events: lane.events,
    busy: lane.busy_ns, depth: lane.depth, name: lane.name };
}

/** Returns the first index whose value is above the limit, in an ascending array. */
function firstAbove(values, limit) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Calls visit(index, left, right) for each bar of a lane that overlaps the window, with its x range in px. Bars of the same
 * depth never overlap: a bar that begins before the end of the bar on its left is shortened, or skipped if less than half a pixel
 * remains. */
export function visitBars(lane, window, toX, visit) {
  const right = new Float64Array(lane.depths).fill(-Infinity);
  const farLeft = toX(window.from) - 2, farRight = toX(window.to) + 2;
  for (let i = firstAbove(lane.latest, window.from); i < lane.count && lane.start[i] < window.to; i += 1) {
    if (lane.end[i] < window.from) continue;
    const depth = lane.depth[i], left = Math.max(toX(lane.start[i]), right[depth], farLeft);
    const end = Math.min(Math.max(toX(lane.end[i]), toX(lane.start[i]) + 1), farRight);
    if (end - left < 0.5) continue;
    right[depth] = end;
    visit(i, left, end);
  }
}

/** The boxes of all lanes of a trace that replies contained so far. The height of a lane only increases, so that lanes do not
 * move while zooming. */
export class Layout {
  #lanes = new Map();

  constructor() {
    this.boxes = [];
    this.width = 0;
    this.height = 0;
    this.hasMarks = false;
  }

  clear() { this.#lanes.clear(); }

  /** Adds the lanes of a reply. */
  add(lanes) {
    for (const { key, kind, device, stream, thread, depths } of lanes) {
      const known = this.#lanes.get(key);
      if (known) known.depths = Math.max(known.depths, depths);
      else this.#lanes.set(key, { key, kind, device, stream, thread, depths });
    }
    this.arrange();
  }

  arrange(width = this.width) {
    this.width = width;
    this.isNarrow = width < NARROW_WIDTH;
    this.gutter = this.isNarrow ? 0 : TITLE_WIDTH;
    const lanes = [...this.#lanes.values()].sort(compareLanes);
    const hasSeveralDevices = new Set(lanes.map((lane) => lane.device).filter((device) => device !== null)).size > 1;
    let top = AXIS_HEIGHT;
    this.marksTop = top + (this.isNarrow ? TITLE_HEIGHT : 0);
    if (this.hasMarks) top = this.marksTop + MARKS_HEIGHT + LANE_GAP;
    this.boxes = lanes.map((lane) => {
      const titleTop = top;
      const barsTop = top + (this.isNarrow ? TITLE_HEIGHT : 0);
      top = barsTop + lane.depths * BAR_HEIGHT + LANE_GAP;
      return { ...lane, title: laneTitle(lane, hasSeveralDevices), titleTop, top: barsTop, bottom: top - LANE_GAP,
        barHeight: BAR_HEIGHT };
    });
    this.height = Math.max(top, AXIS_HEIGHT + BAR_HEIGHT);
  }

  toX(window) {
    const scale = (this.width - this.gutter) / (window.to - window.from);
    return (ns) => this.gutter + (ns - window.from) * scale;
  }

  toNs(window, x) {
    return window.from + ((x - this.gutter) / (this.width - this.gutter)) * (window.to - window.from);
  }

  boxAt(y) { return this.boxes.find((box) => y >= box.titleTop && y < box.bottom + LANE_GAP / 2) ?? null; }
}
