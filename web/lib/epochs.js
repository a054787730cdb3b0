// The epochs of a job's runs: two charts and an accessible table.
import uPlot from '/vendor/uPlot.esm.js';
import { axisStyle, cssVariable, tickLabels } from '/lib/chart.js';
import { byId, createElement, numberCell } from '/lib/dom.js';
import * as format from '/lib/format.js';

const charts = [];

// The range of the y axis by field. Times begin at zero. Accuracy ends at 100 % and begins at the multiple of 10 % below the
// lowest value.
const yRanges = {
  epoch_ms: (_, min, max) => [0, max * 1.08],
  test_accuracy_ratio: (_, min) => [Math.max(0, Math.floor((min - 1) / 10) * 10), 100],
};

/** Adds a chart with a line for each run. scale: factor that converts the field's values to the unit of the axis. */
function addChart(holder, runs, field, scale) {
  const last = Math.max(...runs.flatMap((run) => run.epochs.map((epoch) => epoch.epoch)), 0);
  const x = Array.from({ length: last + 1 }, (_, epoch) => epoch);
  const series = runs.map((run) => x.map((epoch) => {
    const value = run.epochs.find((other) => other.epoch === epoch)?.[field];
    return typeof value === 'number' ? value * scale : null;
  }));
  const axis = axisStyle();
  const options = {
    width: Math.max(240, holder.clientWidth), height: 230,
    scales: { x: { time: false, range: [-0.3, last + 0.3] }, y: { range: yRanges[field] } },
    cursor: { points: { size: 7 } },
    axes: [{ ...axis, splits: () => x.filter((epoch) => x.length <= 12 || epoch % Math.ceil(x.length / 12) === 0),
      values: (_, ticks) => ticks.map((tick) => (runs[0].epochs[tick]?.warmup ? 'warm-up' : String(tick))) },
      { ...axis, size: 62,
        values: (_, ticks) => tickLabels(ticks, field === 'epoch_ms' ? format.count : (tick) => String(+tick.toFixed(2))) }],
    series: [{ label: 'epoch' }, ...runs.map((run, index) => ({
      label: run.variant, stroke: cssVariable(`--run-${index % 4}`), width: 2,
      points: { show: true, size: 7, fill: cssVariable(`--run-${index % 4}`) },
      value: (_, value) => (value === null ? '—' : format.number(value)) }))],
  };
  holder.replaceChildren();
  charts.push({ holder, plot: new uPlot(options, [x, ...series], holder) });
}

const columns = [
  ['Time', 'epoch_ms', format.ms], ['Host time', 'host_ms', format.ms], ['Evaluation', 'evaluation_ms', format.ms],
  ['Images/s', 'images_per_s', format.count],
  ['Train loss', 'train_loss', format.loss], ['Test loss', 'test_loss', format.loss],
  ['Test accuracy', 'test_accuracy_ratio', format.percent],
  ['Loss scale', 'loss_scale', format.count], ['Skipped', 'skipped_steps', format.count],
  ['SM clock, MHz', 'sm_clock_after_mhz', format.count],
  ['Power, W', 'power_w', format.number],
];

function drawTable(runs) {
  const rows = runs.flatMap((run) =>
    run.epochs.map((epoch) => createElement('tr', {}, createElement('th', { scope: 'row' }, `${run.variant} ${epoch.epoch}`),
    createElement('td', {}, epoch.warmup ? 'warm-up' : epoch.suspect ? 'suspect' : 'measured'),
    ...columns.map(([, field, formatValue]) => numberCell(formatValue(epoch[field]), epoch.unavailable?.[field])))));
  byId('epoch-table').replaceChildren(
    createElement(
      'thead',
      {},
      createElement(
        'tr',
        {},
        createElement('th', { scope: 'col' }, 'Run, epoch'),
        createElement('th', { scope: 'col' }, 'Counts as'),
        ...columns.map(([label]) => createElement('th', { scope: 'col', class: 'n' }, label)),
      ),
    ),
    createElement('tbody', {}, ...rows),
  );
}

let drawnRuns = [];
function drawCharts() {
  for (const { plot } of charts.splice(0)) plot.destroy();
  addChart(byId('chart-time'), drawnRuns, 'epoch_ms', 1);
  addChart(byId('chart-accuracy'), drawnRuns, 'test_accuracy_ratio', 100);
}

export function drawEpochs(runs) {
  drawnRuns = runs;
  byId('epochs').hidden = runs.every((run) => run.epochs.length === 0);
  if (byId('epochs').hidden) return;
  drawCharts();
  drawTable(runs);
}

new ResizeObserver(() => {
  for (const { holder, plot } of charts) plot.setSize({ width: Math.max(240, holder.clientWidth), height: 230 });
}).observe(byId('epochs'));
document.addEventListener('themechange', () => { if (drawnRuns.length > 0) drawCharts(); });
