// Formats numbers and times. Every formatter returns null for a value that is not a number; callers show a dash with its reason.

const isFiniteNumber = (value) => typeof value === 'number' && Number.isFinite(value);
const formatOrNull = (formatValue) => (value) => (isFiniteNumber(value) ? formatValue(value) : null);
const integerFormat = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const groupDigits = (value) => integerFormat.format(value).replaceAll(',', '\u202f');

/** Formats with at least three significant digits; large numbers as integers. */
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
const compactFormat = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });
/** Formats with three significant digits and K, M or B. */
export const compact = formatOrNull((value) => compactFormat.format(value));
export const ms = formatOrNull((value) =>
  (Math.abs(value) < 1000 ? `${threeDigits(value)} ms` : `${(value / 1000).toFixed(Math.abs(value) < 10000 ? 3 : 2)} s`));
export const us = formatOrNull((value) => {
  if (Math.abs(value) >= 1000) return ms(value / 1000);
  return Math.abs(value) >= 1 || value === 0 ? `${threeDigits(value)} µs` : `${threeDigits(value * 1000)} ns`;
});
/** Returns a formatter with a sign: signed(us)(-640) is "−640.0 µs". */
export const signed = (formatValue) =>
  formatOrNull((value) => `${value > 0 ? '+' : value < 0 ? '−' : ''}${formatValue(Math.abs(value))}`);
/** Formats an interval of times in ns by its duration and start. */
export const interval = (from, to) => `${us((to - from) / 1e3)}, starting at ${us(from / 1e3)}`;
export const percent = formatOrNull((ratio) => (ratio > 0 && ratio < 5e-5 ? '< 0.01 %'
  : `${ratio < 0 ? '−' : ''}${Math.abs(ratio * 100).toFixed(2)} %`));
export const percentagePoints = formatOrNull((ratio) => `${ratio <= -0.00005 ? '−' : '+'}${Math.abs(ratio * 100).toFixed(2)} pt`);
export const factor = formatOrNull((ratio) => `${ratio.toFixed(2)}×`);
export const quotient = formatOrNull((value) => value.toFixed(2));
export const loss = formatOrNull((value) => value.toFixed(4));

export const bytes = formatOrNull((value) => {
  const binaryPrefixes = ['', 'Ki', 'Mi', 'Gi', 'Ti'];
  let step = 0;
  while (Math.abs(value) >= 1024 && step < binaryPrefixes.length - 1) {
    value /= 1024;
    step += 1;
  }
  return `${step === 0 ? groupDigits(value) : value.toFixed(1)} ${binaryPrefixes[step]}B`;
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
/** Formats a percentage; percent() formats a ratio. */
const pct = formatOrNull((value) => `${value.toFixed(2)} %`);
const withUnit = (unit) => formatOrNull((value) => `${number(value)} ${unit}`);
/** Returns a formatter of counts: withPlural('metric')(2) is "2 metrics". */
export const withPlural = (unit) => formatOrNull((value) => `${number(value)} ${value === 1 ? unit : `${unit}s`}`);

/* All units. name: the unit of a report's row in the API; suffix: the end of a field's name, before _median, _min or _most. */
const units = [
  { api: '', format: number },
  { api: '%', suffix: 'pct', format: pct },
  { api: 'ratio', suffix: 'ratio', format: percent },
  { api: 'ns', suffix: 'ns', format: formatOrNull((value) => us(value / 1000)) },
  { api: 'us', suffix: 'us', format: us },
  { api: 'ms', suffix: 'ms', format: ms },
  { api: 'byte', suffix: 'bytes', format: bytes },
  { api: 'byte/s', suffix: 'bytes_per_s', format: bytesPerSecond },
  { api: 'operation/s', suffix: 'operations_per_s', format: operationsPerSecond },
  { api: 'image/s', suffix: 'images_per_s', format: formatOrNull((value) => `${groupDigits(value)} images/s`) },
  { api: 'sector/s', format: withPrefix('sectors/s') },
  { api: 'hz', format: withPrefix('Hz') },
  { api: 'MHz', suffix: 'mhz', format: withUnit('MHz') },
  { api: 'kHz', suffix: 'khz', format: formatOrNull((value) => `${number(value / 1000)} MHz`) },
  { api: 'W', suffix: 'w', format: withUnit('W') },
  { api: '°C', suffix: 'c', format: withUnit('°C') },
  { api: 'cycle/inst', format: withUnit('cycles/inst') },
  { api: 'branches', format: formatOrNull((value) => `${number(value)} ${value === 1 ? 'branch' : 'branches'}`) },
  { api: 'register/thread', format: withUnit('registers/thread') },
  ...['cycle', 'sector', 'request', 'wavefront', 'sample', 'warp', 'thread', 'block', 'cluster', 'SM'].map((unit) =>
    ({ api: unit, format: withPlural(unit) })),
];
const unitByName = new Map(units.map((unit) => [unit.api, unit]));

/** Formats a value in a unit of the API. */
export const quantity = (value, unit) => (unitByName.get(unit)?.format ?? withUnit(unit))(value);

/** Formats the value of a report's row. value: another value of the same row, as in a comparison. */
export const rowValue = (row, value = row.value) => quantity(value, row.unit);

export const relativeChange = formatOrNull((ratio) => `${ratio <= -0.0005 ? '−' : '+'}${Math.abs(ratio * 100).toFixed(1)} %`);

/** Formats a kernel's type and sizes, or the batch size of training. Accepts a job or a run's parameters. */
export const parameters = ({ dtype, shape: sizes, batch_size: batch }) => [dtype,
  ...Object.entries(sizes ?? {}).map(([name, value]) => `${name}=${value}`), batch ? `batch ${batch}` : null]
  .filter(Boolean).join(' ');

export const dimensions = (extents) => (extents ? extents.join('×') : null);

/** Returns the launch configuration of a posted kernel: ['grid 4×1×1', 'block 64×1×1']; empty for other jobs. */
export const launch = ({ grid, block }) =>
  [grid && `grid ${dimensions(grid)}`, block && `block ${dimensions(block)}`].filter(Boolean);

export const duration = formatOrNull((seconds) => {
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
});

/** Returns the seconds between two RFC 3339 times; NaN if one is missing. */
export const secondsBetween = (from, to) => (from && to ? (Date.parse(to) - Date.parse(from)) / 1000 : NaN);

const dateTimeFormat = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit',
  minute: '2-digit', second: '2-digit', hourCycle: 'h23' }); // shared, because its creation takes longer than formatting a list

export const dateTime = (text) => (text ? dateTimeFormat.format(new Date(text)) : null);

const unitsBySuffix = units.filter(({ suffix }) => suffix).map((unit) =>
  ({ ...unit, pattern: new RegExp(`(^|_)${unit.suffix}(_median|_min|_most)?$`) }))
  .sort((a, b) => b.suffix.length - a.suffix.length);

/* Words of field names that are not written in lower case. */
const spellings = new Map(Object.entries({ cublas: 'cuBLAS', cuda: 'CUDA', cudnn: 'cuDNN', gpu: 'GPU', isa: 'ISA', l1: 'L1',
  l2: 'L2', l3: 'L3', openblas: 'OpenBLAS', pci: 'PCI', sm: 'SM', uuid: 'UUID' }));

/** Returns a field's name in words, without its unit, as they are written inside a sentence: "device_l2_bytes" is "device L2". */
export function wordsOfField(name) {
  const unit = unitsBySuffix.find(({ pattern }) => pattern.test(name));
  const words = (unit && name !== unit.suffix ? name.replace(unit.pattern, '$2') : name).split('_').filter(Boolean);
  return words.map((word) => spellings.get(word) ?? word).join(' ');
}

/** Like wordsOfField, for the beginning of a line: "peak_memory_bytes" is "Peak memory". */
export const fieldWords = (name) => wordsOfField(name).replace(/^[a-z](?=[a-z\d]*\b)/, (first) => first.toUpperCase());

/** Formats a number by the unit that ends its field's name: epoch_ms_median, peak_memory_bytes. */
export const metricValue = (name, value) =>
  (unitsBySuffix.find(({ pattern }) => pattern.test(name))?.format ?? number)(value);
