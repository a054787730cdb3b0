// Summarises the training runs of a job: one sentence, a card of bars for each quantity, and missing data.
import { barRow, card, quantile, trackMark } from '/lib/bars.js';
import * as format from '/lib/format.js';
import { suspectNotes, withoutComputation } from '/lib/suspects.js';

const comparedMetrics = [
  { label: 'Epoch time, median', field: 'epoch_ms_median', formatValue: format.ms, ratio: 'speedup_ratio', spread: 'epoch_ms' },
  { label: 'Epoch time, min', field: 'epoch_ms_min', formatValue: format.ms, ratio: 'speedup_min_ratio' },
  { label: 'Throughput', field: 'images_per_s', formatValue: (value) => value === null ? null : `${format.count(value)} /s` },
  { label: 'Peak memory', field: 'peak_memory_bytes', formatValue: format.bytes, ratio: 'peak_memory_ratio' },
  { label: 'Test accuracy', field: 'test_accuracy_ratio', formatValue: format.percent, ratio: 'test_accuracy_difference_ratio',
    formatRatio: format.percentagePoints },
  { label: 'Launches per step', field: 'launches_per_step', formatValue: format.number },
];

/** Returns the quartiles of the values behind a run's median, or null for fewer than two values. */
function spreadOf(metric, run) {
  const values = run.epochs.filter(({ warmup }) => !warmup).map((epoch) => epoch[metric.spread]).filter(Number.isFinite)
    .sort((a, b) => a - b);
  return values.length > 1 ? [quantile(values, 0.25), quantile(values, 0.75)] : null;
}

function cardOf(metric, runs, pairs) {
  const values = runs.map((run) => run.summary[metric.field]);
  const spreads = runs.map((run) => spreadOf(metric, run));
  const largest = Math.max(...[...values, ...spreads.flat()].filter((value) => value !== null), 0);
  const ratios = metric.ratio ? pairs.map((pair) => {
    const text = (metric.formatRatio || format.factor)(pair[metric.ratio]);
    return text === null ? null : `${pairs.length > 1 ? `${pair.candidate.variant} ` : ''}${text}`;
  }).filter(Boolean) : [];
  return card(metric.label, ratios.join(' · '), runs.map((run, index) => {
    const text = metric.formatValue(values[index]);
    const reason = run.summary.unavailable?.[metric.field] || 'not measured yet';
    const spread = spreads[index];
    return barRow(index, run.variant, text !== null && largest > 0 ? values[index] / largest : null, [[text, reason]],
      spread === null ? [] : [trackMark('spread', spread[0] / largest, spread[1] / largest)],
      spread === null ? null
        : `${text}, half of the epochs from ${metric.formatValue(spread[0])} to ${metric.formatValue(spread[1])}`);
  }));
}

const titleOf = ({ variant }) => variant.replace(/^\w+/, (precision) => precision.toUpperCase());

/** Returns a sentence for each pair: its ratios, or the reason why there are none. */
function verdictOf(pairs) {
  return pairs.map((pair) => {
    const [from, to] = [titleOf(pair.baseline), titleOf(pair.candidate)];
    const ratio = pair.speedup_ratio;
    if (ratio === null) {
      const reason = pair.unavailable?.speedup_ratio || 'it was not measured';
      return `${to} can’t be compared with ${from}: ${withoutComputation(reason)}.`;
    }
    const speed = ratio >= 1 ? `${to} is ${ratio.toFixed(2)} times as fast as ${from}`
      : `${to} is slower than ${from}: it takes ${(1 / ratio).toFixed(2)} times as long`;
    const memory = pair.peak_memory_ratio;
    const accuracyChange = format.percentagePoints(pair.test_accuracy_difference_ratio);
    const furtherChanges = [memory === null ? null : `${Math.round(memory * 100)} % of its peak memory`,
      accuracyChange === null ? null : /^.0\.00/.test(accuracyChange) ? 'the same test accuracy'
        : `${accuracyChange} of test accuracy`].filter(Boolean);
    return `${speed}${furtherChanges.length > 0 ? `, with ${furtherChanges.join(' and ')}` : ''}.`;
  }).join(' ');
}

/** Returns a note for each reason for missing metrics: the runs, the metrics and the reason. */
function missingNotes(runs) {
  const missing = runs.flatMap((run) => comparedMetrics.filter(({ field }) => run.summary.unavailable[field])
    .map(({ label, field }) => ({ variant: run.variant, label: label.toLowerCase(), reason: run.summary.unavailable[field] })));
  const distinct = (values) => [...new Set(values)].join(', ');
  return [...new Set(missing.map(({ reason }) => reason))].map((reason) => {
    const same = missing.filter((one) => one.reason === reason);
    return { text: `${distinct(same.map(({ variant }) => variant))}: ${distinct(same.map(({ label }) => label))}: ${reason}` };
  });
}

/** Returns a note for each run of which steps were skipped without a loss scale, which would make the next gradients smaller. */
const skippedNotes = (runs) => runs.map((run) => ({ run, steps: run.epochs.filter((epoch) => epoch.loss_scale === null)
  .reduce((sum, epoch) => sum + epoch.skipped_steps, 0) })).filter(({ steps }) => steps > 0)
  .map(({ run, steps }) => ({ text: `${run.variant}: steps skipped, because a gradient was not finite or too large: ${steps}`,
    bad: true }));

const notesOf = (runs) => [...missingNotes(runs), ...skippedNotes(runs),
  ...suspectNotes(runs.map((run) => ({ run, name: 'epochs', times: run.epochs })))];

/** Returns the content for lib/comparison.js; null while no epoch is measured. */
export function trainingOf(runs, pairs) {
  const measuredRun = runs.find((run) => run.summary.epochs > 0);
  if (measuredRun === undefined) return null;
  const listDistinct = (getValue) => [...new Set(runs.map(getValue))].filter((value) => value !== null).join(', ');
  return { verdict: verdictOf(pairs), cards: comparedMetrics.map((metric) => cardOf(metric, runs, pairs)), table: null,
    properties: [listDistinct((run) => `${run.dataset}${run.partial ? ' (partial)' : ''}`),
      `engine ${listDistinct((run) => run.engine)}`,
      `batch ${listDistinct((run) => run.params.batch_size)}`, `measured epochs: ${listDistinct((run) => run.summary.epochs)}`,
      'whisker: IQR of the epochs'],
    notes: notesOf(runs) };
}
