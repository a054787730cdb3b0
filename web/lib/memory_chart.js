// The memory chart of a kernel, laid out like Nsight Compute's: the kernel, its memory spaces, L1 and shared memory, L2, and the
// memories, with hit rates and the traffic of each link. Width and colour of a link show the percentage of its peak.
import { byId, createElement, createSvgElement } from '/lib/dom.js';
import * as format from '/lib/format.js';

const ROW = 40, GAP = 14, TOP = 26, WIDTH = 1000, LEAST_HEIGHT = 330;
/* [x, width] of the columns. firstLevel: L1 and shared memory; memory: the memories behind L2. */
const columns = { kernel: [0, 76], space: [166, 110], firstLevel: [436, 122], l2: [678, 80], memory: [872, 128] };

const requestMetric = (path) => `l1tex__t_requests_pipe_${path}.sum`;
const lsuRequestMetrics = (space, ...operations) => operations.map((op) => requestMetric(`lsu_mem_${space}_op_${op}`));
const instructionMetrics = (space, ...operations) =>
  operations.map((op) => `smsp__sass_inst_executed_op_${space}_${op}.sum`);

/* Memory spaces, from top to bottom. unit: the unit that their accesses go through; always: drawn even without traffic;
 * instructions, requests: the metrics whose sum is the traffic between kernel and space, and between space and unit. */
const spaces = [
  { name: 'Global', unit: 'l1', always: true,
    instructions: [...instructionMetrics('global', 'ld', 'st'), 'smsp__inst_executed_op_global_red.sum',
      'smsp__inst_executed_op_generic_atom_dot_alu.sum', 'smsp__inst_executed_op_generic_atom_dot_cas.sum'],
    requests: lsuRequestMetrics('global', 'ld', 'st', 'red', 'atom') },
  { name: 'Local', unit: 'l1', always: true, instructions: instructionMetrics('local', 'ld', 'st'),
    requests: lsuRequestMetrics('local', 'ld', 'st') },
  { name: 'Texture', unit: 'l1', instructions: ['smsp__inst_executed_op_texture.sum'],
    requests: [requestMetric('tex_mem_texture')] },
  { name: 'Surface', unit: 'l1', instructions: ['smsp__inst_executed_op_surface_ld.sum', 'smsp__inst_executed_op_surface_st.sum'],
    requests: ['ld', 'st', 'red', 'atom'].map((op) => requestMetric(`tex_mem_surface_op_${op}`)) },
  { name: 'TMA', unit: 'l1', instructions: ['smsp__inst_executed_op_tma_ld.sum', 'smsp__inst_executed_op_tma_st.sum'],
    requests: [] },
  { name: 'DSMEM', unit: 'l1', instructions: ['smsp__sass_inst_executed_op_dshared.sum'],
    requests: lsuRequestMetrics('dshared', 'ld', 'st', 'red', 'atom') },
  { name: 'Shared', unit: 'shared', always: true, instructions: ['smsp__sass_inst_executed_op_shared.sum'],
    requests: ['l1tex__data_pipe_lsu_wavefronts_mem_shared.sum'], requestName: 'wavefronts' },
];

const SECTOR_BYTES = 32;
const readMisses = (aperture) => `lts__t_sectors_srcunit_tex_aperture_${aperture}_op_read_lookup_miss.sum`;
const writes = (aperture) => `lts__t_sectors_srcunit_tex_aperture_${aperture}_op_write.sum`;
/* Memories behind L2, from top to bottom. scale: bytes per count of the metric. */
const memories = [
  { name: 'System memory', read: readMisses('sysmem'), write: writes('sysmem'), scale: SECTOR_BYTES },
  { name: 'Device memory', read: 'dram__bytes_read.sum', write: 'dram__bytes_write.sum', scale: 1 },
  { name: 'Peer memory', read: readMisses('peer'), write: writes('peer'), scale: SECTOR_BYTES },
];

/* --- amounts -------------------------------------------------------------------------------------------------------- */

/** Returns the sum of the metrics that were counted, or null if none was. values: metric -> value. */
function sumOf(values, metrics, scale = 1) {
  const known = metrics.map((metric) => values.get(metric) ?? null).filter((value) => value !== null);
  return known.length === 0 ? null : scale * known.reduce((a, b) => a + b);
}

/** Returns an amount and its difference from the pinned baseline: {value, text: "16.0 MiB", change: "+2.0 %" or null}. */
function amountOf({ values, baseline }, metrics, formatValue, scale) {
  const value = sumOf(values, metrics, scale);
  const before = baseline ? sumOf(baseline, metrics, scale) : null;
  return { value, text: value === null ? '—' : formatValue(value),
    change: before && value !== null ? format.relativeChange((value - before) / before) : null };
}

const countFormatter = (unit) => (value) => `${format.compact(value)} ${unit}`;
/** Returns the highest percentage of their peaks that the metrics reach; null if none was counted. */
const percentOfPeak = ({ values }, ...metrics) => {
  const known = metrics.map((metric) => values.get(`${metric}.pct_of_peak_sustained_elapsed`) ?? null)
    .filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
};

/* --- shapes --------------------------------------------------------------------------------------------------------- */

const text = (content, x, y, attributes = {}) =>
  createSvgElement('text', { x, y, 'text-anchor': 'middle', ...attributes }, content);

/** Draws a unit as a box with its name and further lines. */
function box([x, width], y, height, name, lines = [], className = '') {
  const first = y + height / 2 + 4 - 8 * lines.length;
  return createSvgElement('g', { class: `unit ${className}` },
    createSvgElement('rect', { x, y, width, height, rx: 6 }),
    text(name, x + width / 2, first, { class: 'name' }),
    ...lines.map((line, index) => text(line, x + width / 2, first + 16 * (index + 1))));
}

/** Draws a link from x0 to x1. arrowHeads: "right", "left" or "both", the ends that have one; peak: percentage of the link's
 * peak, or null. */
function link([x0, x1], y, arrowHeads, amount, peak, title) {
  const isIdle = !(amount.value > 0);
  const share = peak === null || isIdle ? null : `${peak.toFixed(peak < 10 ? 1 : 0)} %`;
  const element = createSvgElement('g', { class: isIdle ? 'link idle' : 'link' },
    createSvgElement('title', {}, `${title}: ${amount.text}${share === null ? '' : `, ${share} of peak`}`));
  element.style.setProperty('--peak', `${Math.min(100, peak ?? 0)}%`);
  const inset = 9, from = arrowHeads === 'right' ? x0 : x0 + inset, to = arrowHeads === 'left' ? x1 : x1 - inset;
  const thickness = 2 + 6 * Math.min(1, (peak ?? 0) / 100);
  element.append(createSvgElement('line', { x1: from, x2: to, y1: y, y2: y, 'stroke-width': thickness }));
  if (arrowHeads !== 'left') element.append(createSvgElement('path', { d: `M${x1} ${y}l-10 -6v12z` }));
  if (arrowHeads !== 'right') element.append(createSvgElement('path', { d: `M${x0} ${y}l10 -6v12z` }));
  const below = [share, amount.change].filter(Boolean).join(' · ');
  element.append(text(amount.text, (x0 + x1) / 2, y - 7));
  const className = amount.change ? 'share-of-peak change' : 'share-of-peak';
  if (below !== '') element.append(text(below, (x0 + x1) / 2, y + 16, { class: className }));
  return element;
}

/** Returns the x of both ends of a link between two columns. */
const between = (from, to) => [columns[from][0] + columns[from][1], columns[to][0]];

/* --- the chart ------------------------------------------------------------------------------------------------------ */

/** Returns the lines of text of a unit's box: its hit rate, and the difference from the baseline. */
const hitRateLines = ({ values, baseline }, metric) => {
  const value = values.get(metric) ?? null, before = baseline?.get(metric) ?? null;
  if (value === null) return ['hit rate', '—'];
  const change = before === null ? null : format.percentagePoints((value - before) / 100);
  return ['hit rate', `${value.toFixed(1)} %`, change].filter(Boolean);
};

const rowY = (index) => TOP + index * (ROW + GAP);

function spaceParts(counts, space, index) {
  const y = rowY(index), middle = y + ROW / 2 + 6;
  const instructions = amountOf(counts, space.instructions, countFormatter('inst'));
  const requested = amountOf(counts, space.requests, countFormatter(space.requestName ?? 'req'));
  return [box(columns.space, y, ROW, space.name, [], instructions.value > 0 ? '' : 'idle'),
    link(between('kernel', 'space'), middle, 'both', instructions, null, `Kernel to ${space.name}`),
    space.requests.length === 0 ? null
      : link(between('space', 'firstLevel'), middle, 'both', requested, percentOfPeak(counts, ...space.requests),
        `${space.name} requests`)];
}

/** Draws two links between two units, one in each direction. extent: the x of their ends; middle: y; toRight, toLeft: {metric,
 * scale, title} of the traffic in each direction. */
const pairOfLinks = (counts, extent, middle, toRight, toLeft) => [[toRight, 'right', -20], [toLeft, 'left', 28]]
  .map(([{ metric, scale = 1, title }, direction, offset]) => link(extent, middle + offset, direction,
    amountOf(counts, [metric], format.bytes, scale), percentOfPeak(counts, metric), title));

const hasTraffic = ({ values }, metrics) => metrics.some((metric) => values.get(metric) > 0);

function chartOf(counts) {
  const drawn = spaces.filter((space) => space.always || hasTraffic(counts, [...space.instructions, ...space.requests]));
  const l1Count = drawn.filter(({ unit }) => unit === 'l1').length;
  const height = Math.max(LEAST_HEIGHT, rowY(drawn.length) - GAP + 10);
  const fullHeight = height - TOP - 10; // of boxes that extend from the top to the bottom
  const [l1Y, l1Height, sharedY] = [rowY(0), l1Count * (ROW + GAP) - GAP, rowY(l1Count)];
  const memoryGap = (fullHeight - 3 * 84) / 2;
  const memoryY = (index) => TOP + index * (84 + memoryGap);
  const parts = [
    box(columns.kernel, TOP, fullHeight, 'Kernel'),
    ...drawn.flatMap((space, index) => spaceParts(counts, space, index)),
    box(columns.firstLevel, l1Y, l1Height, 'L1/TEX', hitRateLines(counts, 'l1tex__t_sector_hit_rate.pct')),
    box(columns.firstLevel, sharedY, ROW, 'Shared memory'),
    box(columns.l2, TOP, fullHeight, 'L2', hitRateLines(counts, 'lts__t_sector_hit_rate.pct')),
    ...pairOfLinks(counts, between('firstLevel', 'l2'), l1Y + l1Height / 2,
      { metric: 'l1tex__m_l1tex2xbar_write_bytes.sum', title: 'L1 to L2' },
      { metric: 'l1tex__m_xbar2l1tex_read_bytes.sum', title: 'L2 to L1' }),
    ...memories.flatMap(({ name, read, write, scale }, index) => [
      box(columns.memory, memoryY(index), 84, name, [], hasTraffic(counts, [read, write]) ? '' : 'idle'),
      ...pairOfLinks(counts, between('l2', 'memory'), memoryY(index) + 42, { metric: write, scale, title: `L2 to ${name}` },
        { metric: read, scale, title: `${name} to L2` })]),
  ];
  return createSvgElement('svg', { viewBox: `0 0 ${WIDTH} ${height}`, role: 'img', 'aria-label': describe(counts) },
    ...parts.filter(Boolean));
}

/** Describes the chart for screen readers. */
function describe(counts) {
  const bytes = (metric) => amountOf(counts, [metric], format.bytes).text;
  return `Memory chart. L1 ${hitRateLines(counts, 'l1tex__t_sector_hit_rate.pct').join(' ')}; L2 to L1 \
${bytes('l1tex__m_xbar2l1tex_read_bytes.sum')}, L1 to L2 ${bytes('l1tex__m_l1tex2xbar_write_bytes.sum')}; L2 \
${hitRateLines(counts, 'lts__t_sector_hit_rate.pct').join(' ')}; device memory read ${bytes('dram__bytes_read.sum')}, written \
${bytes('dram__bytes_write.sum')}. All counters are in section Memory Workload Analysis Chart.`;
}

const neededMetrics = ['dram__bytes_read.sum', 'l1tex__m_xbar2l1tex_read_bytes.sum'];

/** Draws the chart. values, baseline: values of the kernel and of the pinned baseline (or null) by metric. */
export function drawMemoryChart(values, baseline) {
  const isCounted = neededMetrics.some((metric) => (values.get(metric) ?? null) !== null);
  byId('memory').hidden = !isCounted;
  if (!isCounted) return;
  byId('memory-chart').replaceChildren(chartOf({ values, baseline }),
    createElement('p', { class: 'quiet' }, '%: share of the link’s peak, also its width and colour. Dashed: no traffic.'));
}
