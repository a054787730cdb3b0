// The lanes of a timeline: their data as the API sends it, and their places in the picture.

const BAR_HEIGHT = 20; // px, as all below
const LANE_GAP = 8;
const TITLE_HEIGHT = 15; // of a lane's title above its bars, in a narrow picture
export const AXIS_HEIGHT = 26;
export const MARKS_HEIGHT = 18;
const NARROW = 560;
const TITLE_WIDTH = 128;

const titles = { ranges: 'NVTX', calls: 'API calls', launches: 'Launches', kernels: 'Kernels', phases: 'Phases', copies: 'Copies',
  allocations: 'Allocations', overhead: 'Overhead' };
const order = Object.keys(titles);
const isOfStream = ({ kind }) => ['kernels', 'phases', 'copies'].includes(kind);

export const laneKey = ({ kind, device, stream, thread }) => `${kind} ${device ?? ''} ${stream ?? ''} ${thread ?? ''}`;

/** Returns a lane's title. several: traces with several devices name them. */
export function laneTitle({ kind, device, stream, thread }, several = false) {
  const place = [several && device !== null ? `device ${device}` : null, stream !== null ? `stream ${stream}` : null,
    thread !== null ? `thread ${thread}` : null].filter(Boolean).join(', ');
  return place ? `${titles[kind]}, ${place}` : titles[kind];
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

/** Calls visit(index, left, right) for each bar of a lane that overlaps the window, with its place in px. The bars of a depth
 * never overlap: one that begins before the bar on its left ends is cut, or skipped if less than half a pixel of it is left. */
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

/** The places of all lanes that were seen in a trace. Lanes only get deeper, so that zooming moves none back and forth. */
export class Layout {
  #lanes = new Map();

  constructor() {
    this.places = [];
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
    this.isNarrow = width < NARROW;
    this.gutter = this.isNarrow ? 0 : TITLE_WIDTH;
    const lanes = [...this.#lanes.values()].sort(compareLanes);
    const several = new Set(lanes.map((lane) => lane.device).filter((device) => device !== null)).size > 1;
    let top = AXIS_HEIGHT;
    this.marksTop = top + (this.isNarrow ? TITLE_HEIGHT : 0);
    if (this.hasMarks) top = this.marksTop + MARKS_HEIGHT + LANE_GAP;
    this.places = lanes.map((lane) => {
      const titleTop = top;
      const barsTop = top + (this.isNarrow ? TITLE_HEIGHT : 0);
      top = barsTop + lane.depths * BAR_HEIGHT + LANE_GAP;
      return { ...lane, title: laneTitle(lane, several), titleTop, top: barsTop, bottom: top - LANE_GAP, barHeight: BAR_HEIGHT };
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

  placeAt(y) { return this.places.find((place) => y >= place.titleTop && y < place.bottom + LANE_GAP / 2) ?? null; }
}
