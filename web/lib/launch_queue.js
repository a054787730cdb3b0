// The depth of the launch queue over time: the number of operations that are launched but have not started.
import uPlot from '/vendor/uPlot.esm.js';
import { axisStyle, cssVariable, redrawOnResize } from '/lib/chart.js';
import { byId } from '/lib/dom.js';
import * as format from '/lib/format.js';

const HEIGHT = 150;

let shown = null; // {queue, window}
let plot = null;
let isRedrawnOnResize = false;

/** Returns the starts of the slices in ns, and the end of the last. */
function sliceStarts({ start_ns: start, end_ns: end }, count) {
  return Array.from({ length: count + 1 }, (_, slice) => start + ((end - start) * slice) / count);
}

function draw() {
  plot?.destroy();
  plot = null;
  const holder = byId('queue-chart');
  if (!shown || holder.clientWidth === 0) return;
  const { mean_depths: depths } = shown.queue;
  const axis = axisStyle();
  plot = new uPlot({
    width: Math.max(240, holder.clientWidth), height: HEIGHT, legend: { show: false }, cursor: { show: false },
    scales: { x: { time: false }, y: { range: (_, least, most) => [0, Math.max(1, most)] } },
    axes: [{ ...axis, space: 90, values: (_, ticks) => ticks.map((ns) => format.us(ns / 1000)) },
      { ...axis, size: 60, values: (_, ticks) => ticks.map((depth) => format.number(depth)) }],
    series: [{}, { stroke: cssVariable('--run-0'), width: 1, fill: cssVariable('--line'), points: { show: false },
      paths: uPlot.paths.stepped({ align: 1 }) }],
  }, [sliceStarts(shown.window, depths.length), [...depths, depths.at(-1)]], holder);
}

const describe = ({ total, empty_idle_ns: idle }) => `Launched operations that wait for the device, mean of each \
hundredth of the window. Half of the time at most ${format.count(total.median)}, at most ${format.count(total.max)} at any time. \
None waits during ${format.percent(total.empty_ratio)} of the window; the device is idle for ${format.us(idle / 1000)} of that.`;

/** Draws the queue of a run's trace. window: the window of the trace, {start_ns, end_ns}. */
export function drawLaunchQueue(queue, window) {
  const isKnown = queue.total !== null && queue.total.operations > 0;
  shown = isKnown ? { queue, window } : null;
  byId('queue').hidden = !isKnown;
  if (!isKnown) return;
  byId('queue-note').textContent = describe(queue);
  if (!isRedrawnOnResize) redrawOnResize(byId('queue-chart'), draw);
  isRedrawnOnResize = true;
  draw();
}
