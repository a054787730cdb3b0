// web/lib/format.js formats numbers by the unit at the end of a field name. Needs no browser.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

const show = await import(pathToFileURL(path.join(process.env.ROOFLINED_SOURCE, 'web/lib/format.js')));

test('the suffix of a name selects the unit', () => {
  const cases = [
    ['epoch_ms_median', 36.44, '36.44 ms'], ['time_cold_us_min', 415600, '415.6 ms'],
    ['time_cold_us_spread_ratio', 0.156, '15.60 %'],
    ['achieved_bytes_per_s', 247569856, '247.6 MB/s'], ['dram_copy_bytes_per_s', 4.51e12, '4.51 TB/s'],
    ['fp32_operations_per_s', 235813075180, '235.8 GFLOP/s'], ['images_per_s', 4625.49, '4\u202f625 images/s'],
    ['peak_memory_bytes', 65016824, '62.0 MiB'],
    ['peak_memory_bytes', 1023 * 2 ** 20, '1023.0 MiB'], ['peak_memory_bytes', 2 ** 30, '1.0 GiB'],
    ['sm_active_pct', 12.5, '12.50 %'], ['power_w_most', 512, '512 W'],
    ['sm_clock_least_mhz', 1965, '1\u202f965 MHz'], ['temperature_c', 41, '41 °C'], ['launches_per_step', 9, '9'],
    ['phase_clock_error_us', 0.07, '70.00 ns'], ['relative_error', 0.0017, '0.00170'], ['relative_error', 2.1e-4, '2.10e-4'],
  ];
  for (const [name, value, text] of cases) assert.equal(show.metricValue(name, value), text, name);
});

test('signed numbers have a plus or a minus sign', () => {
  for (const [value, text] of [[2530, '+2.53 ms'], [-287.8, '−287.8 µs'], [0, '0 µs'], [null, null]])
    assert.equal(show.signed(show.us)(value), text);
  assert.deepEqual([-0.2467, 1.6, 0, 1e-6].map(show.percent), ['−24.67 %', '160.00 %', '0.00 %', '< 0.01 %']);
});

test('a change that is rounded to zero has no minus sign', () => {
  assert.deepEqual([-0.0004, -0.0006, 0].map(show.relativeChange), ['+0.0 %', '−0.1 %', '+0.0 %']);
  assert.deepEqual([-0.00004, -0.00006].map(show.percentagePoints), ['+0.00 pt', '−0.01 pt']);
});

test('the value of a row is formatted by its unit', () => {
  const cases = [
    ['cycle/inst', 23.43, '23.43 cycles/inst'], ['sample', 12, '12 samples'], ['sample', 1, '1 sample'],
    ['sector', 10987, '10\u202f987 sectors'], ['wavefront', 2, '2 wavefronts'], ['ratio', 0.0889, '8.89 %'],
    ['request', 640, '640 requests'], ['inst', 2048, '2\u202f048 inst'], ['register/thread', 20, '20 registers/thread'],
    ['block', 1, '1 block'], ['byte', 1536, '1.5 KiB'], ['%', 0.0889, '0.09 %'], ['ns', 22336, '22.34 µs'],
    ['hz', 1.55e9, '1.55 GHz'],
  ];
  for (const [unit, value, text] of cases) assert.equal(show.rowValue({ unit, value }), text, unit);
  assert.equal(show.rowValue({ unit: 'sample', value: null }, 3), '3 samples');
});

test('the labels of an axis differ from each other', async () => {
  const { tickLabels } = await import(pathToFileURL(path.join(process.env.ROOFLINED_SOURCE, 'web/lib/chart.js')));
  const cases = [
    [[34, 36, 38], show.ms, ['34.00 ms', '36.00 ms', '38.00 ms']],
    [[2.544, 2.546, 2.548], show.ms, ['2.544 ms', '2.546 ms', '2.548 ms']],
    [[2544, 2546, 2548], show.us, ['2.544 ms', '2.546 ms', '2.548 ms']],
    [[0.98661, 0.98662, 0.98663], show.percent, ['98.661 %', '98.662 %', '98.663 %']],
    [[0, 0.2, 0.4, 0.6, 0.8], show.count, ['0.0', '0.2', '0.4', '0.6', '0.8']],
    [[64110000, 64115000], show.bytes, ['61.140 MiB', '61.145 MiB']],
    [[5, 5], show.count, ['5', '5']], [[0], show.count, ['0']], [[], show.count, []],
  ];
  for (const [ticks, formatValue, labels] of cases) assert.deepEqual(tickLabels(ticks, formatValue), labels);
});

test('names of fields are words with the spelling of their terms', () => {
  const cases = { peak_memory_bytes: 'Peak memory', sm_clock_max_khz: 'SM clock max', l2_bytes: 'L2', uuid: 'UUID',
    cudnn: 'cuDNN', driver_cuda: 'Driver CUDA', epoch_ms_median: 'Epoch median', c: 'C', l3_bytes: 'L3',
    h2d_bytes: 'H2d' };
  for (const [name, words] of Object.entries(cases)) assert.equal(show.fieldWords(name), words, name);
  assert.equal(show.wordsOfField('sm_count'), 'SM count');
  assert.equal(show.metricValue('sm_clock_max_khz', 1980000), '1\u202f980 MHz');
});

test('kernels with the same launch or the same short symbol get distinct labels', async () => {
  const { distinctLabel } = await import(pathToFileURL(path.join(process.env.ROOFLINED_SOURCE, 'web/lib/timeline/names.js')));
  const kernels = [{ launch: 'default', name: 'void relu<float>(float *)' }, { launch: 'default', name: 'copy(int *)' },
    { launch: 'gemm', name: 'gemm_kernel' }, { launch: null, name: 'f<int>(int)' }, { launch: null, name: 'f<float>(float)' },
    { launch: null, name: 'g(int)' }];
  assert.deepEqual(kernels.map((kernel) => distinctLabel(kernel, kernels)),
    ['default · relu', 'default · copy', 'gemm', 'f<int>(int)', 'f<float>(float)', 'g']);
  const executions = [[1, 32, 36], [2, 1, 36], null].map((grid) => ({ launch: 'conv2', name: 'gemm_kernel', grid }));
  assert.deepEqual(executions.map((kernel) => distinctLabel(kernel, executions)),
    ['conv2 · 1 × 32 × 36', 'conv2 · 2 × 1 × 36', 'conv2']);
  assert.equal(distinctLabel(executions[0], [executions[0], executions[0]]), 'conv2', 'equal grids tell nothing apart');
  const blocks = [[128, 1, 1], [256, 1, 1], null].map((block) => ({ ...executions[0], block }));
  const withOtherGrid = { ...executions[1], block: [64, 1, 1] };
  assert.deepEqual(blocks.map((kernel) => distinctLabel(kernel, blocks)),
    ['conv2 · block 128 × 1 × 1', 'conv2 · block 256 × 1 × 1', 'conv2'], 'equal grids are told apart by the block');
  assert.deepEqual([...blocks.slice(0, 2), withOtherGrid].map((kernel, _, kernels) => distinctLabel(kernel, kernels)),
    ['conv2 · 1 × 32 × 36 · block 128 × 1 × 1', 'conv2 · 1 × 32 × 36 · block 256 × 1 × 1', 'conv2 · 2 × 1 × 36'],
    'another grid needs no block');
});

test('a change is better or worse by the direction of its metric', async () => {
  const { judge } = await import(pathToFileURL(path.join(process.env.ROOFLINED_SOURCE, 'web/lib/direction.js')));
  const cases = [
    ['gpu__time_duration.sum', -0.5, 'better'], ['gpu__time_duration.sum', 0.011, 'worse'],
    ['gpu__time_duration.sum', 0.009, 'same'],
    ['l1tex__t_sector_hit_rate.pct', 0.2, 'better'], ['lts__t_sector_hit_rate.pct', -0.2, 'worse'],
    ['smsp__average_warps_issue_stalled_wait_per_issue_active.ratio', 0.2, 'worse'],
    ['smsp__average_warps_issue_stalled_selected_per_issue_active.ratio', 0.2, null],
    ['launch__registers_per_thread', 0.5, null], ['sm__throughput.avg.pct_of_peak_sustained_elapsed', 0.5, null],
    ['time_cold_us_median', -0.1, 'better'], ['epoch_ms_median', 0.1, 'worse'], ['images_per_s', 0.1, 'better'],
    ['test_accuracy_ratio', -0.1, 'worse'], ['peak_memory_bytes', -0.1, 'better'], ['time_cold_us_spread_ratio', 0.1, null],
    ['gpu__time_duration.sum', null, null], [undefined, 0.5, null],
  ];
  for (const [metric, relative, expected] of cases) assert.equal(judge(metric, relative), expected, `${metric} ${relative}`);
});

test('the noise band comes from the runs before, without suspect ones', async () => {
  const { bandOf, withNoise } = await import(pathToFileURL(path.join(process.env.ROOFLINED_SOURCE, 'web/lib/noise.js')));
  assert.equal(bandOf([1, 2]), null, 'two values give no band');
  assert.deepEqual(bandOf([10, 12, 11]), [11 - 3 * 1.4826, 11 + 3 * 1.4826]);
  const point = (value, suspect = false) => ({ value, suspect });
  const points = withNoise([point(10), point(12), point(1, true), point(11), point(15.4), point(15.5)]);
  assert.deepEqual(points.map(({ band }) => band !== null), [false, false, false, false, true, true]);
  assert.deepEqual(points.map(({ isOutside }) => isOutside), [false, false, false, false, false, false]);
  assert.equal(withNoise([point(10), point(12), point(11), point(15.5)])[3].isOutside, true, '15.5 is above 15.4478');
});

test('a value that is not a finite number is formatted as null', () => {
  for (const value of [null, undefined, NaN, Infinity]) assert.equal(show.metricValue('epoch_ms_median', value), null);
});

test('a kernel has a short name', async () => {
  const { shortName } = await import(pathToFileURL(path.join(process.env.ROOFLINED_SOURCE, 'web/lib/timeline/names.js')));
  const cases = [
    ['void persistent_epoch<half_tile_format>(rl_persistent_args)', 'persistent_epoch'],
    ['void persistent_epoch<recording<half_tile_format> >(rl_persistent_args)', 'persistent_epoch'],
    ['shuffle(unsigned int *)', 'shuffle'], ['memcpy HtoD', 'memcpy HtoD'], ['cudaLaunchKernel', 'cudaLaunchKernel'],
    ['void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, std::array<char *, 3ul>>(int, float)',
      'vectorized_elementwise_kernel'],
    ['void (anonymous namespace)::softmax<float, 8>(float *)', 'softmax'],
    ['void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_f16>(Params)', 'Kernel2'],
    ['ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_nn', 'ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_nn'], ['<', '<'],
  ];
  for (const [name, short] of cases) assert.equal(shortName(name), short, name);
});
