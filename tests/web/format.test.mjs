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
    ['fp32_operations_per_s', 235813075180, '235.8 GFLOP/s'], ['images_per_s', 4625.49, '4\u202f625'],
    ['peak_memory_bytes', 65016824, '62.0 MiB'], ['sm_active_pct', 12.5, '12.50 %'], ['launches_per_step', 9, '9'],
    ['phase_clock_error_us', 0.07, '0.0700 µs'], ['relative_error', 0.0017, '0.00170'], ['relative_error', 2.1e-4, '2.10e-4'],
  ];
  for (const [name, value, text] of cases) assert.equal(show.metricValue(name, value), text, name);
});

test('a value that is not a finite number is formatted as null', () => {
  for (const value of [null, undefined, NaN, Infinity]) assert.equal(show.metricValue('epoch_ms_median', value), null);
});

test('a kernel has a short name', async () => {
  const { shortName } = await import(pathToFileURL(path.join(process.env.ROOFLINED_SOURCE, 'web/lib/timeline/names.js')));
  const cases = [
    ['void persistent_epoch<half_tile_format>(rl_persistent_args)', 'persistent_epoch'],
    ['shuffle(unsigned int *)', 'shuffle'], ['memcpy HtoD', 'memcpy HtoD'], ['cudaLaunchKernel', 'cudaLaunchKernel'],
    ['void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, std::array<char *, 3ul>>(int, float)',
      'vectorized_elementwise_kernel'],
    ['void (anonymous namespace)::softmax<float, 8>(float *)', 'softmax'],
    ['void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_f16>(Params)', 'Kernel2'],
    ['ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_nn', 'ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_nn'], ['<', '<'],
  ];
  for (const [name, short] of cases) assert.equal(shortName(name), short, name);
});
