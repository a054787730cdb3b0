// Times, bandwidth and arithmetic rate of a kernel's variants with a cold and a warm cache, compared with the measured roof that
// limits the kernel: a sentence, cards of bars, and a table.
import { barRow, card, quantile, trackMark } from '/lib/bars.js';
import { createElement, numberCell } from '/lib/dom.js';
import { tableOf } from '/lib/sections.js';
import * as format from '/lib/format.js';
import { suspectNotes, withoutComputation } from '/lib/suspects.js';

const cacheModes = ['cold', 'warm'];
const measurementOf = (run, name) => run.measurements.find((other) => other.pass === 'timing' && other.name === name)
  ?? { value: null, reason: 'the timing pass did not measure it' };

/** Returns the share that a run reaches of the measured roof that limits it: {value, roof, reason}. value: the achieved rate
 * divided by the roof; roof: name of the ceiling, such as "dram_copy" or "fp32_operations" (the one at which most bytes
 * count); reason: why both are null. */
function shareOf(run, mode) {
  const pattern = new RegExp(`^share_${mode}_of_(.+)_ratio$`);
  const share = run.measurements.find(({ pass, name }) => pass === 'timing' && pattern.test(name));
  if (share) return { value: share.value, roof: pattern.exec(share.name)[1], reason: null };
  const { reason } = measurementOf(run, `floor_${mode}_us`);
  return { value: null, roof: null, reason: reason ?? 'the device’s ceilings have no rate that applies' };
}

/** Returns the text for a ceiling's name: "DRAM copy bandwidth", "FP16 tensor rate". */
function roofName(roof) {
  const words = roof.replace('_operations', '').split('_').map((word) =>
    /^(dram|l\d|[a-z]+\d+)$/.test(word) ? word.toUpperCase() : word);
  return roof.endsWith('_operations') ? `${words.reverse().join(' ')} rate` : `${words.join(' ')} bandwidth`;
}

/** Returns the times of a run in one cache mode. index: position of the run in the job. */
function timesOf(run, index, mode) {
  const samples = run.samples.filter((sample) => sample.mode === mode);
  const sortedUs = samples.map((sample) => sample.device_us).sort((a, b) => a - b);
  const [median, share] = [measurementOf(run, `time_${mode}_us_median`), shareOf(run, mode)];
  const roofUs = median.value === null || share.value === null ? null : median.value * share.value;
  return { run, index, mode, samples, sortedUs, median, share, roofUs, isSuspect: samples.some(({ suspect }) => suspect),
    min: sortedUs[0] ?? null, max: sortedUs.at(-1) ?? null,
    lowerQuartile: sortedUs.length > 0 ? quantile(sortedUs, 0.25) : null,
    upperQuartile: sortedUs.length > 0 ? quantile(sortedUs, 0.75) : null };
}

const perSecond = (amount, us) => (amount !== null && us > 0 ? amount / (us * 1e-6) : null);

/* --- cards ---------------------------------------------------------------------------------------------------------- */

/** Creates a card with one bar for each run. note: text beside the title. getValue(times) returns {value, reason, formatValue,
 * bound, lowerQuartile, upperQuartile}; bound is the value that the run would have at its measured roof. */
function cardOf(title, note, timesOfRuns, getValue) {
  const rows = timesOfRuns.map((times) => ({ times, ...getValue(times) }));
  const scale = Math.max(...rows.flatMap((row) => [row.value, row.bound, row.upperQuartile])
    .filter((value) => value !== null)) * 1.02;
  return card(
    title,
    note,
    rows.map(({ times, value, reason, formatValue, bound, lowerQuartile, upperQuartile }) =>
      barRow(
        times.index,
        times.run.variant,
        value === null ? null : value / scale,
        [
          [formatValue(value), reason],
          [format.percent(times.share.value), times.share.reason ?? reason],
        ],
        [
          ...(lowerQuartile === null || value === null ? []
            : [trackMark('spread', lowerQuartile / scale, upperQuartile / scale)]),
          ...(bound === null ? [] : [trackMark('bound', bound / scale, bound / scale)]),
        ],
        value === null
          ? null
          : `${formatValue(value)}; IQR of ${times.sortedUs.length} samples: \
${formatValue(lowerQuartile)} to ${formatValue(upperQuartile)}\
${bound === null ? '' : `; at the measured ${roofName(times.share.roof)} it would be ${formatValue(bound)}`}`,
      ),
    ),
  );
}

const timeOf = (times) => ({ value: times.median.value, reason: times.median.reason, formatValue: format.us,
  bound: times.roofUs, lowerQuartile: times.lowerQuartile, upperQuartile: times.upperQuartile });

/** Returns a getValue for cardOf() that computes a rate: the run's `field` (bytes or operations) per second. reason: shown for a
 * run without this field. */
const rateGetter = (field, formatValue, reason) => (times) => {
  const amount = times.run[field];
  return { value: perSecond(amount, times.median.value), reason: amount === null ? reason : times.median.reason, formatValue,
    bound: perSecond(amount, times.roofUs), lowerQuartile: perSecond(amount, times.upperQuartile),
    upperQuartile: perSecond(amount, times.lowerQuartile) };
};

const rateCards = [['Bandwidth', 'floor_bytes', format.bytesPerSecond, 'the workload does not state its compulsory bytes'],
  ['Rate', 'floor_operations', format.operationsPerSecond, 'the workload does not state its operations']];

function cardsOf(timesOfRuns, comparison) {
  const timesInMode = (mode) => timesOfRuns.filter((times) => times.mode === mode);
  const speedupOf = (mode) => format.factor(comparison?.[`speedup_${mode}_ratio`]) ?? '';
  return [...cacheModes.map((mode) => cardOf(`Time, ${mode} cache`, speedupOf(mode), timesInMode(mode), timeOf)),
    ...rateCards.filter(([, field]) => timesOfRuns.some((times) => times.run[field] > 0))
      .map(([label, field, formatValue, reason]) =>
        cardOf(`${label}, cold cache`, '', timesInMode('cold'), rateGetter(field, formatValue, reason)))];
}

/* --- sentence, table, notes ----------------------------------------------------------------------------------------- */

/** Returns a sentence about the fastest run with a cold cache; ignores runs with suspect samples. */
function headlineOf(timesOfRuns, subject) {
  const timed = timesOfRuns.filter((times) => times.mode === 'cold' && times.median.value !== null);
  const cold = timed.filter(({ isSuspect }) => !isSuspect).sort((a, b) => a.median.value - b.median.value);
  const suspect = timed.length > cold.length ? `, ${timed.length - cold.length} suspect not counted` : '';
  if (cold.length === 0) return '';
  const [{ run, median, share }, next] = cold;
  const isMemory = share.roof !== null && !share.roof.endsWith('_operations');
  const bandwidth = isMemory && run.floor_bytes > 0
    ? `, ${format.bytesPerSecond(perSecond(run.floor_bytes, median.value))}` : '';
  const time = `${format.us(median.value)}${bandwidth}${share.value === null ? ''
    : `, ${format.percent(share.value)} of the measured ${roofName(share.roof)}`}`;
  const headline = `${[subject, run.variant].filter(Boolean).join(', ')}: ${time} (cold cache)`;
  if (next === undefined) return headline;
  return `${headline}. Fastest of ${cold.length}${suspect}; ${next.run.variant} takes \
${(next.median.value / median.value).toFixed(2)}× as long.`;
}

/** Returns a sentence about a comparison of two runs. */
function comparisonHeadline({ baseline, candidate, speedup_cold_ratio: cold, speedup_warm_ratio: warm, unavailable }) {
  if (cold === null) {
    return `${candidate.variant} can’t be compared with ${baseline.variant}: \
${withoutComputation(unavailable.speedup_cold_ratio)}.`;
  }
  return `${candidate.variant} is ${format.factor(cold)} as fast as ${baseline.variant} (cold cache)\
${warm === null ? '' : `, ${format.factor(warm)} (warm cache)`}`;
}

const timeColumn = (label, getValue) => ({ label, number: true, cell: (times) => {
  const { value, reason } = getValue(times);
  return numberCell(format.us(value), reason);
} });
const sampleValue = (field) => (times) => ({ value: times[field], reason: 'no samples were taken' });
const columns = [
  { label: 'Run', cell: (times) => createElement('th', { scope: 'row' }, times.run.variant) },
  { label: 'Cache', cell: (times) => createElement('td', {}, times.mode) },
  timeColumn('Median', (times) => times.median),
  timeColumn('Min', sampleValue('min')),
  timeColumn('25 %', sampleValue('lowerQuartile')),
  timeColumn('75 %', sampleValue('upperQuartile')),
  timeColumn('Max', sampleValue('max')),
  {
    label: 'Spread',
    number: true,
    cell: ({ run, mode }) => {
      const { value, reason } = measurementOf(run, `time_${mode}_us_spread_ratio`);
      return numberCell(format.percent(value), reason);
    },
  },
  timeColumn('At the roof', (times) => ({ value: times.roofUs, reason: times.share.reason })),
  { label: 'Of the roof', number: true, cell: ({ share }) => numberCell(format.percent(share.value), share.reason) },
  { label: 'Roof', cell: ({ share }) => createElement('td', {}, share.roof === null ? '—' : `measured ${roofName(share.roof)}`) },
];

/** Returns a note for each reason for missing numbers: the runs, the numbers and the reason. */
function missingNotes(timesOfRuns) {
  const runsByReason = new Map();
  for (const { run, mode, share, median } of timesOfRuns) {
    for (const [name, { reason }] of [[`time, ${mode} cache`, median], ['% of bound', share]]) {
      if (!reason) continue;
      const { variants, names } = runsByReason.get(reason) ?? { variants: [], names: [] };
      runsByReason.set(reason, { variants: [...variants, run.variant], names: [...names, name] });
    }
  }
  const listOf = (names) => [...new Set(names)].join(', ');
  return [...runsByReason].map(([reason, { variants, names }]) => ({ text: `${listOf(variants)}: ${listOf(names)}: ${reason}` }));
}

/** Returns the SM clock range during sampling, over all runs; null if unknown. */
function clockOf(runs) {
  const ends = ['sm_clock_least_mhz', 'sm_clock_most_mhz'].map((name) => runs.map((run) => measurementOf(run, name).value)
    .filter((value) => value !== null));
  if (ends.some((values) => values.length === 0)) return null;
  const [min, max] = [Math.min(...ends[0]), Math.max(...ends[1])].map(format.count);
  return `SM clock ${min === max ? min : `${min} to ${max}`} MHz`;
}

/** Returns the content for lib/comparison.js; null if no launch was timed. comparison: the API's comparison of two runs; null or
 * undefined: there is none. subject: text that begins the headline; null: the variant begins it. */
export function timingsOf(runs, comparison, subject = null) {
  const timesOfRuns = runs.flatMap((run, index) => cacheModes.map((mode) => timesOf(run, index, mode)))
    .filter(({ run }) => run.samples.length > 0);
  if (timesOfRuns.length === 0) return null;
  const listDistinct = (getValue) => [...new Set(timesOfRuns.map(getValue))].filter(Boolean).join(', ');
  return { verdict: comparison ? comparisonHeadline(comparison) : headlineOf(timesOfRuns, subject),
    cards: cardsOf(timesOfRuns, comparison),
    table: tableOf('Times', columns, timesOfRuns),
    properties: [listDistinct(({ run }) => format.parameters(run.params)), `engine ${listDistinct(({ run }) => run.engine)}`,
      `${listDistinct(({ sortedUs }) => sortedUs.length)} samples in each cache mode`, clockOf(runs),
      'bar: median · line: roofline bound; %: of bound · whisker: IQR'].filter(Boolean),
    notes: [...missingNotes(timesOfRuns),
      ...suspectNotes(timesOfRuns.map(({ run, mode, samples }) => ({ run, name: `${mode} samples`, times: samples })))] };
}
