// Formats numbers and times. Every formatter returns null for a value that is not a number; callers show a dash with its reason.

const known = (value) => typeof value === 'number' && Number.isFinite(value);
const format = (write) => (value) => (known(value) ? write(value) : null);
const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const group = (value) => grouped.format(value).replaceAll(',', '\u202f');

/** At least three significant digits; large numbers as integers. */
function short(value) {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1000) return group(value);
  return size < 1 ? value.toPrecision(3) : value.toFixed(size >= 100 ? 1 : 2);
}

export const count = format(group);
export const plain = format((value) => {
  if (Number.isInteger(value)) return group(value);
  return Math.abs(value) < 1e-3 ? value.toExponential(2) : short(value);
});
export const ms = format((value) => (value < 1000 ? `${short(value)} ms` : `${(value / 1000).toFixed(value < 10000 ? 3 : 2)} s`));
export const us = format((value) => (value < 1000 ? `${short(value)} µs` : ms(value / 1000)));
export const percent = format((ratio) => (ratio > 0 && ratio < 5e-5 ? '< 0.01 %' : `${(ratio * 100).toFixed(2)} %`));
export const points = format((ratio) => `${ratio < 0 ? '−' : '+'}${Math.abs(ratio * 100).toFixed(2)} pt`);
export const times = format((ratio) => `${ratio.toFixed(2)}×`);
export const quotient = format((value) => value.toFixed(2));
export const loss = format((value) => value.toFixed(4));

export const bytes = format((value) => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (Math.abs(value) >= 10240 && unit < units.length - 1 || (unit === 0 && Math.abs(value) >= 1024)) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? group(value) : value.toFixed(1)} ${units[unit]}`;
});

const prefixes = ['', 'k', 'M', 'G', 'T', 'P'];
const scaled = (unit) => format((value) => {
  let step = 0;
  while (Math.abs(value) >= 1000 && step < prefixes.length - 1) {
    value /= 1000;
    step += 1;
  }
  return `${plain(value)} ${prefixes[step]}${unit}`;
});
export const bytesPerSecond = scaled('B/s');
export const operationsPerSecond = scaled('FLOP/s');

/** Formatters of a report row's value, by the API's name of the unit. */
const byUnit = {
  '': plain, '%': format((value) => `${value.toFixed(2)} %`), ns: format((value) => us(value / 1000)), byte: bytes,
  hz: scaled('Hz'), 'byte/s': bytesPerSecond, 'sector/s': scaled('sector/s'),
};
const plainWith = (unit) => format((value) => `${plain(value)} ${unit}`);
export const quantity = (value, unit) => (byUnit[unit] ?? plainWith(unit))(value);
export const change = format((ratio) => `${ratio < 0 ? '−' : '+'}${Math.abs(ratio * 100).toFixed(1)} %`);

/** A kernel's type and sizes, or the batch size of training. Accepts a job or a run's parameters. */
export const parameters = ({ dtype, shape: sizes, batch_size: batch }) => [dtype,
  ...Object.entries(sizes ?? {}).map(([name, value]) => `${name}=${value}`), batch ? `batch ${batch}` : null]
  .filter(Boolean).join(' ');

export const shape = (three) => (three ? three.join('×') : null);

export const duration = format((seconds) => {
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
});

/** Seconds between two RFC 3339 times; NaN when one is missing. */
export const between = (from, to) => (from && to ? (Date.parse(to) - Date.parse(from)) / 1000 : NaN);

export const instant = (text) => (text
  ? new Date(text).toLocaleString(undefined, { year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit',
    minute: '2-digit', second: '2-digit', hourCycle: 'h23' })
  : null);

// Formatters by the unit that ends a field's name. A time may have a suffix (epoch_ms_median).
const bySuffix = [
  [/_bytes_per_s$/, bytesPerSecond], [/_operations_per_s$/, operationsPerSecond], [/_bytes$/, bytes], [/_ratio$/, percent],
  [/_pct$/, format((value) => `${value.toFixed(2)} %`)], [/_ms(_|$)/, ms], [/_us(_|$)/, us],
  [/_ns$/, format((value) => us(value / 1000))],
];
export function byName(name, value) {
  const [, write] = bySuffix.find(([pattern]) => pattern.test(name)) || [null, plain];
  return write(value);
}
