// Times, bandwidth and arithmetic rate of a kernel's variants with a cold and a warm cache, compared with the model: a
// sentence, cards of bars, and a table.
import { barRow, card, mark } from '/lib/bars.js';
import { createElement, numberCell } from '/lib/dom.js';
import { tableOf } from '/lib/sections.js';
import * as format from '/lib/format.js';

const modes = ['cold', 'warm'];
const measured = (run, name) => run.measurements.find((one) => one.pass === 'timing' && one.name === name)
  ?? { value: null, reason: 'the timing pass did not measure it' };

/** Interpolates between the two nearest sorted values. */
function quantile(sorted, share) {
  const at = share * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return below + (above - below) * (at - Math.floor(at));
}

/** The times of a run in one cache mode; index: position among the runs. */
function timesOf(run, index, mode) {
  const samples = run.samples.filter((sample) => sample.mode === mode);
  const us = samples.map((sample) => sample.device_us).sort((a, b) => a - b);
  const [median, floor] = [measured(run, `time_${mode}_us_median`), measured(run, `floor_${mode}_us`)];
  return { run, index, mode, us, median, floor, suspects: samples.filter((sample) => sample.suspect),
    least: us[0] ?? null, most: us.at(-1) ?? null, low: us.length > 0 ? quantile(us, 0.25) : null,
    high: us.length > 0 ? quantile(us, 0.75) : null };
}

const perSecond = (amount, us) => (amount !== null && us > 0 ? amount / (us * 1e-6) : null);
/** Reached share of the model's speed; 1 is the floor. */
const reached = ({ median, floor }) => (median.value > 0 && floor.value !== null ? floor.value / median.value : null);

/* --- cards ---------------------------------------------------------------------------------------------------------- */

/** note: text beside the title; getValue(times): {value, reason, write, bound, low, high}; bound is the model's, low and high
 * are the quartiles. */
function cardOf(title, note, all, of) {
  const rows = all.map((times) => ({ times, ...of(times) }));
  const scale = Math.max(...rows.flatMap((row) => [row.value, row.bound, row.high]).filter((value) => value !== null)) * 1.02;
  return card(
    title,
    note,
    rows.map(({ times, value, reason, write, bound, low, high }) =>
      barRow(
        times.index,
        times.run.variant,
        value === null ? null : value / scale,
        [
          [write(value), reason],
          [format.percent(reached(times)), times.floor.reason ?? reason],
        ],
        [
          ...(low === null || value === null ? [] : [mark('spread', low / scale, high / scale)]),
          ...(bound === null ? [] : [mark('bound', bound / scale, bound / scale)]),
        ],
        value === null
          ? null
          : `${write(value)}, half of ${times.us.length} samples from ${write(low)} to ${write(high)}\
${bound === null ? '' : `; the model’s bound is ${write(bound)}`}`,
      ),
    ),
  );
}

const timeOf = (times) => ({ value: times.median.value, reason: times.median.reason, write: format.us, bound: times.floor.value,
  low: times.low, high: times.high });

const rateOf = (field, write, reason) => (times) => {
  const amount = times.run[field];
  return { value: perSecond(amount, times.median.value), reason: amount === null ? reason : times.median.reason, write,
    bound: perSecond(amount, times.floor.value), low: perSecond(amount, times.high), high: perSecond(amount, times.low) };
};

const rates = [['Bandwidth', 'floor_bytes', format.bytesPerSecond, 'the workload does not state its compulsory bytes'],
  ['Rate', 'floor_operations', format.operationsPerSecond, 'the workload does not state its operations']];

function cardsOf(times, pair) {
  const inMode = (mode) => times.filter((one) => one.mode === mode);
  const ratioOf = (mode) => format.times(pair?.[`speedup_${mode}_ratio`]) ?? '';
  return [...modes.map((mode) => cardOf(`Time, ${mode} cache`, ratioOf(mode), inMode(mode), timeOf)),
    ...rates.filter(([, field]) => times.some((one) => one.run[field] > 0)).map(([label, field, write, reason]) =>
      cardOf(`${label}, cold cache`, '', inMode('cold'), rateOf(field, write, reason)))];
}

/* --- sentence, table, notes ----------------------------------------------------------------------------------------- */

/** The sentence about cold times, without suspect runs. */
function verdictOf(times) {
  const cold = times.filter((one) => one.mode === 'cold' && one.median.value !== null && one.suspects.length === 0)
    .sort((a, b) => a.median.value - b.median.value);
  if (cold.length === 0) return '';
  const [{ run, median }, next] = cold;
  const share = format.percent(reached(cold[0]));
  const time = `${format.us(median.value)}${share === null ? '' : `, ${share} of the model’s speed`}`;
  if (next === undefined) return `With a cold cache ${run.variant} takes ${time}.`;
  return `${run.variant} is the fastest with a cold cache: ${time}. The next, ${next.run.variant}, takes \
${(next.median.value / median.value).toFixed(2)} times as long.`;
}

/** The sentence about two runs. */
function verdictOfPair({ baseline, candidate, speedup_cold_ratio: cold, speedup_warm_ratio: warm, unavailable }) {
  if (cold === null) {
    return `${candidate.variant} can’t be compared with ${baseline.variant}: ${unavailable.speedup_cold_ratio}.`;
  }
  return `${candidate.variant} is ${cold.toFixed(2)} times as fast as ${baseline.variant} with a cold cache\
${warm === null ? '' : `, ${warm.toFixed(2)} times with a warm one`}.`;
}

const timeColumn = (label, of) => ({ label, number: true, cell: (times) => {
  const { value, reason } = of(times);
  return numberCell(format.us(value), reason);
} });
const sampled = (field) => (times) => ({ value: times[field], reason: 'no samples were taken' });
const columns = [
  { label: 'Run', cell: (times) => createElement('th', { scope: 'row' }, times.run.variant) },
  { label: 'Cache', cell: (times) => createElement('td', {}, times.mode) },
  timeColumn('Median', (times) => times.median),
  timeColumn('Min', sampled('least')),
  timeColumn('25 %', sampled('low')),
  timeColumn('75 %', sampled('high')),
  timeColumn('Max', sampled('most')),
  {
    label: 'Spread',
    number: true,
    cell: ({ run, mode }) => {
      const { value, reason } = measured(run, `time_${mode}_us_spread_ratio`);
      return numberCell(format.percent(value), reason);
    },
  },
  timeColumn('Floor', (times) => times.floor),
  {
    label: 'Of the model’s speed',
    number: true,
    cell: (times) => numberCell(format.percent(reached(times)), times.floor.reason),
  },
];

/** Groups missing numbers by their reason. */
function missing(times) {
  const said = new Map();
  for (const { run, mode, floor, median } of times) {
    for (const [name, { reason }] of [[`time_${mode}_us_median`, median], [`floor_${mode}_us`, floor]]) {
      if (!reason) continue;
      const { variants, names } = said.get(reason) ?? { variants: [], names: [] };
      said.set(reason, { variants: [...variants, run.variant], names: [...names, name] });
    }
  }
  const listOf = (names) => [...new Set(names)].join(', ');
  return [...said].map(([reason, { variants, names }]) => ({ text: `${listOf(variants)}: ${listOf(names)}: ${reason}` }));
}

const suspects = (times) => times.filter((one) => one.suspects.length > 0)
  .map(({ run, mode, us, suspects: found }) => ({ bad: true,
    text: `${run.variant}, ${found.length} of ${us.length} ${mode} samples are suspect: ${found[0].suspect_reason}` }));

/** The SM clock range during sampling, over all runs; null if unknown. */
function clockOf(runs) {
  const ends = ['sm_clock_least_mhz', 'sm_clock_most_mhz'].map((name) => runs.map((run) => measured(run, name).value)
    .filter((value) => value !== null));
  if (ends.some((values) => values.length === 0)) return null;
  const [least, most] = [Math.min(...ends[0]), Math.max(...ends[1])].map(format.count);
  return `SM clock ${least === most ? least : `${least} to ${most}`} MHz`;
}

/** Content for lib/comparison.js; null if no launch was timed. pair: comparison of two runs, if any. */
export function timingsOf(runs, pair) {
  const times = runs.flatMap((run, index) => modes.map((mode) => timesOf(run, index, mode)))
    .filter(({ run }) => run.samples.length > 0);
  if (times.length === 0) return null;
  const each = (of) => [...new Set(times.map(of))].filter(Boolean).join(', ');
  return { verdict: pair ? verdictOfPair(pair) : verdictOf(times), cards: cardsOf(times, pair),
    table: tableOf('Times', columns, times),
    facts: [each(({ run }) => format.parameters(run.params)), `engine ${each(({ run }) => run.engine)}`,
      `${each(({ us }) => us.length)} samples in each cache mode`, clockOf(runs),
      'bar: median; bracket: middle half of the samples; line and percentage: the model’s bound'].filter(Boolean),
    notes: [...missing(times), ...suspects(times)] };
}
