// The measurements of a job's runs, described in words and grouped by subject, with a column for each run. A second table, which
// is folded at first, has the names of the API.
import { byId, createElement, numberCell } from '/lib/dom.js';
import { fillRunTable, breakable } from '/lib/run_table.js';
import * as format from '/lib/format.js';

/* Subjects in order; a measurement belongs to the first whose pattern matches its name. */
const subjects = [
  ['Time', /^(time_|floor_|epoch_|share_|evaluation_)/],
  ['Rates', /_per_s$/],
  ['Other processes', /^other_process/],
  ['Memory', /(^|_)(memory|rss)_.*bytes$|^peak_.*_bytes$/],
  ['Result check', /^(relative_error|checked_|algorithm_rank)/],
  ['Launches', /^(launches_|launch_|device_busy|phase_)/],
  ['Compiled code', /^(registers_|static_shared|local_bytes|spill_|compile_|restored_)/],
  ['Clocks, temperature, power', /clock|temperature|power|throttled/],
  ['Trace', /^(activity_|completeness_|perturbation_)/],
  ['Time of the profiler', /^spent_/],
  ['Other', /./],
];

const roofWords = (roof) => roof.replace('_operations', ' rate').replaceAll('_', ' ')
  .replace(/\b(dram|l\d|fp\d+|tf32|bf16|int8)\b/g, (word) => word.toUpperCase());

/* Labels for names that are unclear by themselves: a pattern and the label. */
const phrases = [
  [/^time_(cold|warm)_us_median$/, (mode) => `Median time, ${mode} cache`],
  [/^time_(cold|warm)_us_min$/, (mode) => `Shortest time, ${mode} cache`],
  [/^time_(cold|warm)_us_spread_ratio$/, (mode) => `Spread of the samples, ${mode} cache`],
  [/^floor_(cold|warm)_us$/, (mode) => `Floor, ${mode} cache`],
  [/^floor_ms$/, () => 'Floor of an epoch'],
  [/^share_(cold|warm)_of_(.+)_ratio$/, (mode, roof) => `Share of measured ${roofWords(roof)}, ${mode} cache`],
  [/^epoch_ms_(median|min)$/, (which) => (which === 'min' ? 'Shortest epoch' : 'Median epoch')],
  [/^epoch_(traced|untraced)_ms$/, (mode) => `Epoch, ${mode}`],
  [/^peak_memory_bytes$/, () => 'Peak memory'],
  [/^peak_rss_bytes$/, () => 'Peak resident memory of the worker'],
  [/^memory_(.+)_bytes$/, (purpose) => `Memory for ${purpose}`],
  [/^device_memory_(before|after)_bytes$/, (when) => `Device memory in use ${when} the run`],
  [/^other_processes_(before|after)$/, (when) => `Other processes on the GPU ${when} the run`],
  [/^other_process_(\d+)_memory_bytes$/, (pid) => `Device memory of process ${pid}`],
  [/^other_processes_cpu_time_ratio$/, () => 'Processor time of other processes'],
  [/^other_processes_busy_processors$/, () => 'Processors that other processes kept busy'],
  [/^context_memory_bytes$/, () => 'CUDA context, kernels and libraries'],
  [/^achieved_bytes_per_s$/, () => 'Achieved bandwidth'],
  [/^(.+)_bytes_per_s$/, (roof) => `${roofWords(roof)} bandwidth`],
  [/^(.+)_operations_per_s$/, (roof) => `${roofWords(roof)} rate`],
  [/^relative_error$/, () => 'Largest relative error'],
  [/^relative_error_limit$/, () => 'Accepted relative error'],
  [/^checked_ratio$/, () => 'Checked share of the result'],
  [/^checked_launches$/, () => 'Checked launches'],
  [/^algorithm_rank$/, () => 'Rank of the chosen algorithm'],
  [/^launches_per_step$/, () => 'Launches per step'],
  [/^launches_issued$/, () => 'Launches issued in the traced epoch'],
  [/^launch_gap_ratio$/, () => 'Time without work on the device'],
  [/^device_busy_ratio$/, () => 'Time with work on the device'],
  [/^phase_rounds$/, () => 'Microbatches per step'],
  [/^phase_clock_error_us$/, () => 'Error of the phases’ times'],
  [/^sm_clock_(least|most)_mhz$/, (end) => `SM clock, ${end === 'least' ? 'lowest' : 'highest'}`],
  [/^temperature_c_most$/, () => 'Highest temperature'],
  [/^power_w_most$/, () => 'Highest power'],
  [/^throttled_ratio$/, () => 'Samples while throttled'],
  [/^throttled_by_(.+)_ratio$/, (cause) =>
    `Throttled by ${cause.replaceAll('_', ' ').replace(/^(sw|hw)\b/, (word) => word.toUpperCase())}`],
  [/^activity_records$/, () => 'Records of the trace'],
  [/^activity_kernel_records$/, () => 'Records of kernels'],
  [/^activity_dropped_records$/, () => 'Records that the profiler dropped'],
  [/^activity_zero_time_records$/, () => 'Records without a start or an end'],
  [/^ambiguous_operations$/, () => 'Operations with calls of several processes'],
  [/^completeness_ratio$/, () => 'Completeness of the trace'],
  [/^perturbation_ratio$/, () => 'Traced time / untraced time'],
  [/^spent_(.+)_ms$/, (stage) => stage[0].toUpperCase() + stage.slice(1)],
  [/^compile_cached$/, () => 'Compiled before (1: yes)'],
  [/^compile_ms$/, () => 'Compilation'],
];

/** Returns the label of a measurement or metric: "Median time, cold cache". */
export function measurementWords(name) {
  for (const [pattern, words] of phrases) {
    const match = pattern.exec(name);
    if (match) return words(...match.slice(1)).replace(/^./, (first) => first.toUpperCase());
  }
  return format.fieldWords(name);
}

const subjectOf = (name) => subjects.find(([, pattern]) => pattern.test(name))[0];

/** Creates the row of a measurement, with a cell for each run. */
function rowOf({ pass, name }, heading, runs) {
  return createElement('tr', {}, createElement('th', { scope: 'row' }, ...heading),
    ...runs.map((run) => {
      const measurement = run.measurements.find((candidate) => candidate.pass === pass && candidate.name === name);
      return numberCell(format.metricValue(name, measurement?.value),
        measurement ? measurement.reason : 'this run has no such measurement');
    }));
}

const groupRow = (subject, runs) => createElement('tr', { class: 'group' },
  createElement('th', { scope: 'colgroup', colspan: runs.length + 1 }, subject));

/** Draws both tables. historyUrl(run, name): the page with a measurement's history. */
export function drawMeasurements(runs, historyUrl) {
  const all = [...new Map(runs.flatMap((run) => run.measurements).map((one) => [`${one.pass} ${one.name}`, one])).values()];
  byId('measurements').hidden = all.length === 0;
  const runWithValue = (name) => runs.find((run) => run.measurements.some((one) => one.name === name && one.value !== null));
  const linked = (name, words) => (runWithValue(name)
    ? createElement('a', { class: 'plain', href: historyUrl(runWithValue(name).run, name), title: name }, ...words)
    : createElement('span', { title: name }, ...words));
  const named = subjects.map(([subject]) => [subject, all.filter(({ name }) => subjectOf(name) === subject)])
    .filter(([, members]) => members.length > 0);
  fillRunTable(byId('measurement-table'), 'Measurement', runs, named.flatMap(([subject, members]) => [groupRow(subject, runs),
    ...members.map((one) => rowOf(one, [linked(one.name, [measurementWords(one.name)])], runs))]));
  fillRunTable(byId('raw-measurement-table'), 'Name in the API', runs, all.map((one) =>
    rowOf(one, [linked(one.name, breakable(one.name)), ' ', createElement('span', { class: 'quiet' }, one.pass)], runs)));
  for (const head of byId('measurements').querySelectorAll('thead th + th')) head.className = 'n';
}
