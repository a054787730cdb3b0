// Formats numbers and times. Every formatter returns null for a value that is not a number; callers show a dash with its reason.

const isFiniteNumber = (value) => typeof value === 'number' && Number.isFinite(value);
const formatOrNull = (formatValue) => (value) => (isFiniteNumber(value) ? formatValue(value) : null);
const integerFormat = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const groupDigits = (value) => integerFormat.format(value).replaceAll(',', '\u202f');

/** At least three significant digits; large numbers as integers. */
function threeDigits(value) {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1000) return groupDigits(value);
  return size < 1 ? value.toPrecision(3) : value.toFixed(size >= 100 ? 1 : 2);
}

export const count = formatOrNull(groupDigits);
export const number = formatOrNull((value) => {
  if (Number.isInteger(value)) return groupDigits(value);
  return Math.abs(value) < 1e-3 ? value.toExponential(2) : threeDigits(value);
});
export const ms = formatOrNull((value) =>
  (value < 1000 ? `${threeDigits(value)} ms` : `${(value / 1000).toFixed(value < 10000 ? 3 : 2)} s`));
export const us = formatOrNull((value) => (value < 1000 ? `${threeDigits(value)} µs` : ms(value / 1000)));
export const percent = formatOrNull((ratio) => (ratio > 0 && ratio < 5e-5 ? '< 0.01 %' : `${(ratio * 100).toFixed(2)} %`));
export const percentagePoints = formatOrNull((ratio) => `${ratio < 0 ? '−' : '+'}${Math.abs(ratio * 100).toFixed(2)} pt`);
export const factor = formatOrNull((ratio) => `${ratio.toFixed(2)}×`);
export const quotient = formatOrNull((value) => value.toFixed(2));
export const loss = formatOrNull((value) => value.toFixed(4));

export const bytes = formatOrNull((value) => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (Math.abs(value) >= 10240 && unit < units.length - 1 || (unit === 0 && Math.abs(value) >= 1024)) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? groupDigits(value) : value.toFixed(1)} ${units[unit]}`;
});

const prefixes = ['', 'k', 'M', 'G', 'T', 'P'];
const withPrefix = (unit) => formatOrNull((value) => {
  let step = 0;
  while (Math.abs(value) >= 1000 && step < prefixes.length - 1) {
    value /= 1000;
    step += 1;
  }
  return `${number(value)} ${prefixes[step]}${unit}`;
});
export const bytesPerSecond = withPrefix('B/s');
export const operationsPerSecond = withPrefix('FLOP/s');

/** Formatters of a report row's value, by the API's name of the unit. */
const byUnit = {
  '': number, '%': formatOrNull((value) => `${value.toFixed(2)} %`), ns: formatOrNull((value) => us(value / 1000)), byte: bytes,
  hz: withPrefix('Hz'), 'byte/s': bytesPerSecond, 'sector/s': withPrefix('sector/s'),
};
const withUnit = (unit) => formatOrNull((value) => `${number(value)} ${unit}`);
export const quantity = (value, unit) => (byUnit[unit] ?? withUnit(unit))(value);
export const relativeChange = formatOrNull((ratio) => `${ratio < 0 ? '−' : '+'}${Math.abs(ratio * 100).toFixed(1)} %`);

/** A kernel's type and sizes, or the batch size of training. Accepts a job or a run's parameters. */
export const parameters = ({ dtype, shape: sizes, batch_size: batch }) => [dtype,
  ...Object.entries(sizes ?? {}).map(([name, value]) => `${name}=${value}`), batch ? `batch ${batch}` : null]
  .filter(Boolean).join(' ');

export const dimensions = (extents) => (extents ? extents.join('×') : null);

export const duration = formatOrNull((seconds) => {
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
});

/** Seconds between two RFC 3339 times; NaN when one is missing. */
export const secondsBetween = (from, to) => (from && to ? (Date.parse(to) - Date.parse(from)) / 1000 : NaN);

export const dateTime = (text) => (text
  ? new Date(text).toLocaleString(undefined, { year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit',
    minute: '2-digit', second: '2-digit', hourCycle: 'h23' })
  : null);

// Formatters by the unit that ends a field's name. A time may have a suffix (epoch_ms_median).
const bySuffix = [
  [/_bytes_per_s$/, bytesPerSecond], [/_operations_per_s$/, operationsPerSecond], [/_bytes$/, bytes], [/_ratio$/, percent],
  [/_pct$/, formatOrNull((value) => `${value.toFixed(2)} %`)], [/_ms(_|$)/, ms], [/_us(_|$)/, us],
  [/_ns$/, formatOrNull((value) => us(value / 1000))],
];
export function metricValue(name, value) {
  const [, formatValue] = bySuffix.find(([pattern]) => pattern.test(name)) || [null, number];
  return formatValue(value);
}
