// The memory tables of a report: a row for each kind of access, a column for each count.
import { createElement, numberCell } from '/lib/dom.js';
import * as format from '/lib/format.js';
import { tableOf } from '/lib/sections.js';

const ratio = (numerator, denominator, formatRatio) => ({ numerator, denominator, formatRatio });

/* A row is its label and, for each column, a metric, a ratio of two metrics, or null. */

const sharedRow = (label, op, instructions) => [label, instructions, `l1tex__data_pipe_lsu_wavefronts_mem_shared${op}.sum`,
  `l1tex__data_pipe_lsu_wavefronts_mem_shared${op}.sum.pct_of_peak_sustained_elapsed`,
  `l1tex__data_bank_conflicts_pipe_lsu_mem_shared${op}.sum`];

const l1Row = (label, path, instructions, hitRateName = `${path}_hit_rate`) => {
  const [requests, sectors] = [`l1tex__t_requests_pipe_${path}.sum`, `l1tex__t_sectors_pipe_${path}.sum`];
  return [label, instructions, requests, sectors, ratio(sectors, requests, format.quotient),
    `l1tex__t_output_wavefronts_pipe_${path}.sum`, `l1tex__t_output_wavefronts_pipe_${path}.sum.pct_of_peak_sustained_elapsed`,
    `l1tex__t_sector_pipe_${hitRateName}.pct`, `l1tex__t_sectors_pipe_${path}_lookup_miss.sum`];
};

const l2Row = (label, source, missInfix) => {
  const [requests, sectors] = [`lts__t_requests${source}.sum`, `lts__t_sectors${source}.sum`];
  return [label, requests, sectors, ratio(sectors, requests, format.quotient),
    ratio(`lts__t_sectors${source}_lookup_hit.sum`, sectors, format.percent), `lts__t_sectors${source}.sum.per_second`,
    `lts__t_sectors${source}.avg.pct_of_peak_sustained_elapsed`, `lts__t_sectors${missInfix}_lookup_miss.sum`];
};
const l1OpRow = (label, op) => l2Row(label, `_srcunit_tex_op_${op}`, `_srcunit_tex_aperture_device_op_${op}`);

const deviceRow = (label, op) => [label, `dram__sectors_${op}.sum`, `dram__bytes_${op}.sum`, `dram__bytes_${op}.sum.per_second`,
  `dram__bytes_${op}.sum.pct_of_peak_sustained_elapsed`];

const layouts = {
  'Shared Memory': { columns: ['Instructions', 'Wavefronts', 'Of peak', 'Bank conflicts'], rows: [
    sharedRow('Load', '_op_ld', 'smsp__sass_inst_executed_op_shared_ld.sum'),
    sharedRow('Store', '_op_st', 'smsp__sass_inst_executed_op_shared_st.sum'),
    sharedRow('Atomic', '_op_atom', 'smsp__inst_executed_op_shared_atom.sum'), sharedRow('Total', '', null)] },
  'L1/TEX Cache': { columns: ['Instructions', 'Requests', 'Sectors', 'Sectors / request', 'Wavefronts', 'Of peak', 'Hit rate',
    'Sectors missed'], rows: [
    l1Row('Global load', 'lsu_mem_global_op_ld', 'smsp__sass_inst_executed_op_global_ld.sum'),
    l1Row('Global store', 'lsu_mem_global_op_st', 'smsp__sass_inst_executed_op_global_st.sum'),
    l1Row('Global reduction', 'lsu_mem_global_op_red', 'smsp__inst_executed_op_global_red.sum'),
    l1Row('Global atomic', 'lsu_mem_global_op_atom', null),
    l1Row('Local load', 'lsu_mem_local_op_ld', 'smsp__sass_inst_executed_op_local_ld.sum'),
    l1Row('Local store', 'lsu_mem_local_op_st', 'smsp__sass_inst_executed_op_local_st.sum'),
    l1Row('Distributed shared load', 'lsu_mem_dshared_op_ld', 'smsp__sass_inst_executed_op_dshared_ld.sum'),
    l1Row('Distributed shared store', 'lsu_mem_dshared_op_st', 'smsp__sass_inst_executed_op_dshared_st.sum'),
    l1Row('Texture load', 'tex_mem_texture', 'smsp__inst_executed_op_texture.sum', 'tex_mem_texture_op_tex_hit_rate'),
    l1Row('Surface load', 'tex_mem_surface_op_ld', 'smsp__inst_executed_op_surface_ld.sum'),
    l1Row('Surface store', 'tex_mem_surface_op_st', 'smsp__inst_executed_op_surface_st.sum')] },
  'L2 Cache': { columns: ['Requests', 'Sectors', 'Sectors / request', 'Hit rate', 'Throughput', 'Of peak', 'Sectors from DRAM'],
    rows: [l1OpRow('L1/TEX load', 'read'), l1OpRow('L1/TEX store', 'write'), l1OpRow('L1/TEX reduction', 'red'),
      l1OpRow('L1/TEX atomic, ALU', 'atom_dot_alu'), l1OpRow('L1/TEX atomic, CAS', 'atom_dot_cas'),
      l2Row('L1/TEX total', '_srcunit_tex', '_srcunit_tex_aperture_device'),
      l2Row('Constants and code', '_srcunit_gcc', '_srcunit_gcc_aperture_device'),
      l2Row('The other L2 partition', '_srcunit_ltcfabric', '_srcunit_ltcfabric_aperture_device'),
      l2Row('Total', '', '_aperture_device')] },
  'Device Memory': { columns: ['Sectors', 'Bytes', 'Throughput', 'Of peak'],
    rows: [deviceRow('Load', 'read'), deviceRow('Store', 'write')] },
};

const countUnits = ['inst', 'sector', 'request'];

function entryCell(entry, rowsByMetric) {
  if (entry === null) return createElement('td', { class: 'n' });
  const row = rowsByMetric.get(entry.numerator ?? entry);
  if (row === undefined) return createElement('td', { class: 'n' });
  if (entry.numerator === undefined)
    return numberCell(countUnits.includes(row.unit) ? format.number(row.value) : format.rowValue(row), row.reason);
  const denominator = rowsByMetric.get(entry.denominator);
  return denominator?.value > 0 ? numberCell(entry.formatRatio(row.value / denominator.value), row.reason)
    : createElement('td', { class: 'n' });
}

const hasCounts = ([, ...entries], rowsByMetric) => entries.some((entry) => rowsByMetric.get(entry)?.value > 0);

/** Returns the table rearranged: a row for each kind of access. Returns null if `layouts` has no layout with the table's name, or
 * if no row other than Total has counts. */
export function accessTable(table) {
  const layout = layouts[table.name];
  const rowsByMetric = new Map(table.rows.map((row) => [row.metric, row]));
  const rows = layout?.rows.filter((row) => hasCounts(row, rowsByMetric)) ?? [];
  if (rows.every(([label]) => label === 'Total')) return null;
  const columns = [{ label: 'Access', cell: ([label]) => createElement('th', { scope: 'row' }, label) },
    ...layout.columns.map((label, index) => ({ label, number: true, cell: (row) => entryCell(row[index + 1], rowsByMetric) }))];
  const element = tableOf(`${table.name} by kind of access`, columns, rows);
  element.classList.add('accesses');
  return element;
}
