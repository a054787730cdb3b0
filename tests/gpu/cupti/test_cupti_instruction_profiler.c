/* Tests the collection of SASS metrics, PC samples, timelines and instructions, on kernels whose metrics are known in advance.
 * With the argument `run`, the program only launches the step between cudaProfilerStart and cudaProfilerStop, so that ncu can
 * profile it; with `print`, it prints the metrics as CSV. */
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/catalogue.h"
#include "base/clock.h"
#include "base/json.h"
#include "instruction_kernels.h"
#include "worker/cupti/check.h"
#include "worker/cupti/instruction_profiler.h"
#include "worker/cupti/pc_sampling.h"
#include "worker/cupti/subscriber.h"

enum { SKIP = 77 };

static instruction_fixture fixture;
static rl_instruction_profiler *profiler;
static rl_records records;
static rl_error err;

static void check(int result, const char *operation) {
  if (result == 0) return;
  fprintf(stderr, "%s: %s\n", operation, err.message);
  exit(EXIT_FAILURE);
}

/* Implements rl_instruction_profiler_request.restore. Restores nothing, because the kernels do not change their inputs. */
static int synchronize(void *context, rl_error *why) {
  (void)context;
  return rl_cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize", why);
}

static void release_range_profiler(void *context) { (void)context; } /* the range profiler is not used */
static int finish_evaluation(void *context, rl_error *error) {
  (void)context, (void)error;
  return 0;
}

static void open_all(void) {
  rl_subscriber_open(rl_pc_sampling_on_context_created);
  int found = instruction_fixture_open(&fixture, &err);
  if (found == 1) {
    printf("skipped: %s\n", err.message);
    exit(SKIP);
  }
  check(found, "device");
  check(rl_instruction_profiler_open(0, &profiler, &err), "instruction profiler");
}

static void run_once(void) {
  const rl_sequence *step = &fixture.base.iteration.sequences[0];
  for (size_t i = 0; i < step->launch_count; i++)
    check(step->launches[i].enqueue(step->launches[i].arg, fixture.device.stream, &err), "launch");
  check(rl_cuda_check(cudaStreamSynchronize(fixture.device.stream), "step", &err), "step");
}

static const double assumed_durations_ns[KERNEL_COUNT] = {20000,  10000,   20000, 40000, 250000,
                                                          200000, 2000000, 2000,  20000, 20000};

/* Collects the sections for every kernel except `skipped` (-1: for every kernel). Returns the time that it took in ms. */
static double collect(uint32_t sections, int skipped) {
  rl_launched_kernel kernels[KERNEL_COUNT];
  rl_profile_options profile_options = {.sections = sections, .matching_index = RL_ALL_MATCHING_KERNELS};
  rl_cache_flush *flush = NULL;
  rl_records_clear(&records);
  for (int i = 0; i < KERNEL_COUNT; i++) {
    rl_kernel kernel = {.ordinal = i};
    kernels[i] = (rl_launched_kernel){.symbol = kernel_symbols[i],
                                      .launch_index = i < KERNEL_FMA_SECOND ? (size_t)i : LAUNCH_FMA_TWICE,
                                      .duration_ns = assumed_durations_ns[i],
                                      .blocks = i == LAUNCH_SHORT ? 1 : BLOCKS,
                                      .ordinal = i == skipped ? -1 : i};
    if (i != skipped) check(rl_records_add(&records, RL_RECORD_KERNEL, &kernel, 1, &err), "records");
  }
  check(rl_cache_flush_open(&flush, RL_L2_FULL, &err), "flush");
  const rl_instruction_profiler_request request = {.instance = &fixture.base,
                                                   .sequence = &fixture.base.iteration.sequences[0],
                                                   .kernels = kernels,
                                                   .kernel_count = KERNEL_COUNT,
                                                   .profile_options = &profile_options,
                                                   .flush = flush,
                                                   .restore = synchronize,
                                                   .release_range_profiler = release_range_profiler,
                                                   .finish_evaluation = finish_evaluation};
  int64_t start = rl_monotonic_ns();
  int result = rl_instruction_profiler_begin(profiler, &request, &err);
  if (result == 0) result = rl_instruction_profiler_collect(profiler, &records, &err);
  if (result == 0) result = rl_instruction_profiler_append(profiler, &err);
  rl_instruction_profiler_end(profiler);
  double ms = (double)(rl_monotonic_ns() - start) * 1e-6;
  check(result, "collect");
  rl_cache_flush_close(flush);
  return ms;
}

static const rl_kernel_metric *find_metric(int kernel, const char *name) {
  for (size_t i = 0; i < records.metric_count; i++)
    if (records.metrics[i].ordinal == kernel && strcmp(records.metrics[i].metric, name) == 0) return &records.metrics[i];
  return NULL;
}

static double metric_value(int kernel, const char *name) {
  const rl_kernel_metric *found = find_metric(kernel, name);
  if (found == NULL) fail_msg("%s has no %s", kernel_symbols[kernel], name);
  if (isnan(found->value)) fail_msg("%s of %s: %s", name, kernel_symbols[kernel], found->reason);
  return found->value;
}

static const rl_instruction *find_instruction(int kernel, const char *opcode) {
  for (size_t i = 0; i < records.instruction_count; i++)
    if (records.instructions[i].ordinal == kernel && strncmp(records.instructions[i].opcode, opcode, strlen(opcode)) == 0)
      return &records.instructions[i];
  return NULL;
}

/* Returns a metric of one instruction; 0 when it has no value. */
static double instruction_metric(const rl_instruction *instruction, const char *metric) {
  cJSON *counts = rl_json_parse(instruction->counts, strlen(instruction->counts), NULL);
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(counts, metric);
  double found = item != NULL ? item->valuedouble : 0;
  cJSON_Delete(counts);
  return found;
}

static bool nvdisasm_is_installed(void) {
  const rl_kernel_metric *opcodes = find_metric(LAUNCH_FMA, "sass__inst_executed_per_opcode");
  return opcodes != NULL && !isnan(opcodes->value);
}

static uint32_t sections_of(const char *set) {
  for (size_t i = 0; i < rl_section_set_count; i++)
    if (strcmp(rl_section_sets[i].name, set) == 0) return rl_section_sets[i].sections;
  return 0;
}

static void instructions_are_exact(void **state) {
  (void)state;
  if (!nvdisasm_is_installed()) skip();
  assert_true(metric_value(LAUNCH_FMA, "sass__inst_executed_per_opcode:FFMA") == (double)FMAS_PER_THREAD * WARPS_PER_LAUNCH);
  const rl_instruction *ffma = find_instruction(LAUNCH_FMA, "FFMA");
  assert_non_null(ffma);
  assert_true(instruction_metric(ffma, "inst_executed") == WARPS_PER_LAUNCH &&
              instruction_metric(ffma, "thread_inst_executed") == WARPS_PER_LAUNCH * 32);
  double category_sum = 0, executed = metric_value(LAUNCH_FMA, "sass__inst_executed_per_opcode");
  for (size_t i = 0; i < records.metric_count; i++)
    if (records.metrics[i].ordinal == LAUNCH_FMA &&
        strncmp(records.metrics[i].metric, "sass__inst_executed_per_opcode_category:", 40) == 0)
      category_sum += records.metrics[i].value;
  assert_true(category_sum == executed);
}

static void both_launches_of_a_function_have_its_counts(void **state) {
  (void)state;
  if (!nvdisasm_is_installed()) skip();
  for (int k = KERNEL_FMA_FIRST; k <= KERNEL_FMA_SECOND; k++)
    assert_true(metric_value(k, "sass__inst_executed_per_opcode:FFMA") == (double)FMAS_PER_THREAD * WARPS_PER_LAUNCH);
}

static void bank_conflicts_are_counted(void **state) {
  (void)state;
  double wavefronts = metric_value(LAUNCH_BANK_CONFLICT, "memory_l1_wavefronts_shared"),
         ideal = metric_value(LAUNCH_BANK_CONFLICT, "memory_l1_wavefronts_shared_ideal");
  assert_true(wavefronts == (double)CONFLICT_WAYS * ACCESSES_PER_THREAD * WARPS_PER_LAUNCH);
  assert_true(ideal == (double)ACCESSES_PER_THREAD * WARPS_PER_LAUNCH);
  assert_true(metric_value(LAUNCH_BANK_CONFLICT, "derived__memory_l1_conflicts_shared_nway") ==
              CONFLICT_WAYS * ACCESSES_PER_THREAD);
  assert_true(metric_value(LAUNCH_FMA, "memory_l1_wavefronts_shared") == 0);
}

static void excess_sectors_are_counted(void **state) {
  (void)state;
  double sectors = metric_value(LAUNCH_STRIDED, "memory_l2_theoretical_sectors_global"),
         ideal = metric_value(LAUNCH_STRIDED, "memory_l2_theoretical_sectors_global_ideal");
  assert_true(sectors == 32.0 * ACCESSES_PER_THREAD * WARPS_PER_LAUNCH);
  assert_true(ideal == 4.0 * ACCESSES_PER_THREAD * WARPS_PER_LAUNCH);
  assert_true(metric_value(LAUNCH_STRIDED, "sass__inst_executed_global_loads") == (double)ACCESSES_PER_THREAD * WARPS_PER_LAUNCH);
}

static void divergent_branches_are_counted(void **state) {
  (void)state;
  double divergent = 0;
  for (size_t i = 0; i < records.instruction_count; i++)
    if (records.instructions[i].ordinal == LAUNCH_DIVERGENT)
      divergent += instruction_metric(&records.instructions[i], "smsp__branch_targets_threads_divergent");
  print_message("divergent branches: %g, threads unexecuted %g\n", divergent,
                metric_value(LAUNCH_DIVERGENT, "derived__avg_thread_unexecuted_true"));
  assert_true(divergent == (double)DIVERGENT_BRANCHES * WARPS_PER_LAUNCH);
  assert_true(metric_value(LAUNCH_DIVERGENT, "derived__avg_thread_unexecuted_true") >
              metric_value(LAUNCH_STRIDED, "derived__avg_thread_unexecuted_true"));
}

/* Returns the stall reason with the most samples, without the *_not_issued variants. */
static const char *top_stall(int kernel) {
  const char *top = "";
  double most = -1;
  for (size_t i = 0; i < records.metric_count; i++) {
    const rl_kernel_metric *metric = &records.metrics[i];
    if (metric->ordinal != kernel || strncmp(metric->metric, "smsp__pcsamp_warps_issue_stalled_", 33) != 0 ||
        isnan(metric->value))
      continue;
    if (strstr(metric->metric, "_not_issued") != NULL || metric->value <= most) continue;
    most = metric->value;
    top = metric->metric + 33;
  }
  return top;
}

static void top_stall_reasons_are_right(void **state) {
  (void)state;
  static const struct {
    int kernel;
    const char *stall;
  } cases[] = {{LAUNCH_POINTER_CHASE, "long_scoreboard"}, {LAUNCH_BARRIER, "barrier"}};
  for (size_t i = 0; i < 2; i++) {
    int kernel = cases[i].kernel;
    print_message("%s: %g samples, most %s\n", kernel_symbols[kernel], metric_value(kernel, "smsp__pcsamp_sample_count"),
                  top_stall(kernel));
    assert_string_equal(top_stall(kernel), cases[i].stall);
    assert_true(metric_value(kernel, "smsp__pcsamp_sample_count") >= 256);
    assert_true(metric_value(kernel, "smsp__pcsamp_dropped_samples") >= 0);
  }
  double by_instruction = 0;
  for (size_t i = 0; i < records.instruction_count; i++)
    if (records.instructions[i].ordinal == LAUNCH_POINTER_CHASE)
      by_instruction += instruction_metric(&records.instructions[i], "smsp__pcsamp_warps_issue_stalled_long_scoreboard");
  assert_true(by_instruction == metric_value(LAUNCH_POINTER_CHASE, "smsp__pcsamp_warps_issue_stalled_long_scoreboard"));
}

/* Returns the mean of a timeline between `from` and `to`, which are fractions of the kernel's duration; NAN when it has no points
 * there. */
static double series_mean(int kernel, const char *series, double from, double to) {
  double duration = 0, sum = 0, count = 0;
  for (size_t i = 0; i < records.point_count; i++)
    if (records.points[i].ordinal == kernel) duration = fmax(duration, records.points[i].x);
  for (size_t i = 0; i < records.point_count; i++) {
    const rl_series_point *point = &records.points[i];
    if (point->ordinal != kernel || strcmp(point->name, series) != 0 || point->x < from * duration || point->x > to * duration)
      continue;
    sum += point->value;
    count++;
  }
  return sum / count;
}

static void a_timeline_shows_both_phases(void **state) {
  (void)state;
  double interval_us = metric_value(LAUNCH_TWO_PHASE, "profiler__pmsampler_interval_time") * 1e-3, end_us = 0, previous_us = -1;
  for (size_t i = 0; i < records.point_count; i++) {
    const rl_series_point *point = &records.points[i];
    if (point->ordinal != LAUNCH_TWO_PHASE || strcmp(point->name, "sm_active_pct") != 0) continue;
    assert_true(point->x * 1e-3 > previous_us && point->value >= 0 && point->value <= 101);
    end_us = previous_us = point->x * 1e-3;
  }
  double instructions_pct[2], dram_read_pct[2];
  for (int phase = 0; phase < 2; phase++) {
    instructions_pct[phase] = series_mean(LAUNCH_TWO_PHASE, "instructions_pct", 0.5 * phase + 0.1, 0.5 * phase + 0.4);
    dram_read_pct[phase] = series_mean(LAUNCH_TWO_PHASE, "dram_read_pct", 0.5 * phase + 0.1, 0.5 * phase + 0.4);
  }
  print_message(
      "%.0f us, sampled every %.3g us: instructions %.1f %%, then %.1f %%; DRAM reads %.2f %%, then %.1f %%; SMs active %.1f "
      "%%\n",
      end_us, interval_us, instructions_pct[0], instructions_pct[1], dram_read_pct[0], dram_read_pct[1],
      series_mean(LAUNCH_TWO_PHASE, "sm_active_pct", 0.1, 0.9));
  assert_true(fabs(end_us - 2.0 * PHASE_US) < 0.05 * PHASE_US);
  assert_true(instructions_pct[0] > 5 * instructions_pct[1] && dram_read_pct[1] > 50 && dram_read_pct[0] < 1);
  assert_true(series_mean(LAUNCH_TWO_PHASE, "sm_active_pct", 0.1, 0.9) > 99);
}

static void a_kernel_without_timelines_has_a_reason(void **state) {
  (void)state;
  static const struct {
    int kernel;
    const char *reason;
  } cases[] = {{LAUNCH_SHORT, "too short"}, {KERNEL_FMA_SECOND, "several kernels"}};
  for (size_t i = 0; i < 2; i++) {
    const rl_kernel_metric *row = find_metric(cases[i].kernel, "profiler__pmsampler_interval_time");
    assert_non_null(row);
    assert_true(isnan(row->value));
    if (strstr(row->reason, cases[i].reason) == NULL) fail_msg("%s: %s", kernel_symbols[cases[i].kernel], row->reason);
    assert_true(isnan(series_mean(cases[i].kernel, "sm_active_pct", 0, 1)));
  }
}

static void code_has_a_hash_and_lines(void **state) {
  (void)state;
  for (size_t i = 0; i < records.kernel_count; i++) assert_int_equal(strlen(records.kernels[i].code_sha256), 64);
  assert_string_equal(records.kernels[LAUNCH_FMA].code_sha256, records.kernels[KERNEL_FMA_SECOND].code_sha256);
  assert_string_not_equal(records.kernels[LAUNCH_FMA].code_sha256, records.kernels[LAUNCH_BANK_CONFLICT].code_sha256);
  size_t with_line = 0, executed = 0;
  for (size_t i = 0; i < records.instruction_count; i++)
    if (records.instructions[i].ordinal == LAUNCH_POINTER_CHASE &&
        instruction_metric(&records.instructions[i], "inst_executed") > 0) {
      executed++;
      with_line += records.instructions[i].line > 0 && strcmp(records.instructions[i].file, "instruction_kernels.cu") == 0;
    }
  print_message("%zu of %zu executed instructions have a line\n", with_line, executed);
  assert_true(executed > 0 && with_line == executed);
}

static void every_selected_metric_has_a_row(void **state) {
  (void)state;
  uint32_t full = sections_of("full");
  for (size_t m = 0; m < rl_raw_metric_count; m++) {
    if (!rl_instruction_profiler_collects(rl_raw_metrics[m].name) || (rl_raw_metrics[m].sections & full) == 0) continue;
    for (int k = 0; k < KERNEL_COUNT; k++) {
      const rl_kernel_metric *row = find_metric(k, rl_raw_metrics[m].name);
      if (row == NULL) fail_msg("%s has no %s", kernel_symbols[k], rl_raw_metrics[m].name);
      if (isnan(row->value)) assert_true(row->reason[0] != '\0');
    }
  }
}

/* Returns the size of the allocation at the address as the subscriber recorded it; 0: it recorded none. */
static size_t recorded_allocation_bytes(const void *address) {
  size_t count = 0, bytes = 0;
  rl_device_allocation *allocations = rl_device_allocations_copy(&count);
  for (size_t i = 0; i < count; i++) bytes += allocations[i].address == (CUdeviceptr)address ? allocations[i].bytes : 0;
  free(allocations);
  return bytes;
}

static void allocations_are_recorded_until_they_are_freed(void **state) {
  (void)state;
  const size_t sizes[] = {1, 4097, 40 << 20, 12345};
  void *allocations[4];
  for (int i = 0; i < 4; i++) check(rl_cuda_check(cudaMalloc(&allocations[i], sizes[i]), "allocate", &err), "memory");
  assert_int_not_equal(cudaMalloc(&(void *){NULL}, SIZE_MAX / 2), cudaSuccess);
  (void)cudaGetLastError();
  for (int freed = 0; freed <= 4; freed++) {
    for (int i = 0; i < 4; i++) assert_int_equal(recorded_allocation_bytes(allocations[i]), i < freed ? 0 : sizes[i]);
    if (freed < 4) check(rl_cuda_check(cudaFree(allocations[freed]), "free", &err), "memory");
  }
}

/* Collects repeatedly in one process with other kernels and sections, as a resident worker does. Must be the last test: it
 * replaces the records. */
static void collecting_can_be_repeated(void **state) {
  (void)state;
  uint32_t full = sections_of("full");
  for (int round = 0; round < 3; round++) {
    double ms = collect(full, round == 0 ? LAUNCH_BANK_CONFLICT : -1);
    print_message("collected in %.0f ms\n", ms);
    excess_sectors_are_counted(NULL);
    top_stall_reasons_are_right(NULL);
    a_timeline_shows_both_phases(NULL);
    assert_true(round != 0 || find_metric(LAUNCH_BANK_CONFLICT, "memory_l1_wavefronts_shared") == NULL);
  }
  static const char *const section_ids[] = {"InstructionStats", "SourceCounters", "PmSampling"};
  for (size_t p = 0; p < sizeof section_ids / sizeof *section_ids; p++)
    for (size_t i = 0; i < rl_section_count; i++)
      if (strcmp(rl_sections[i].id, section_ids[p]) == 0)
        print_message("%s: %.0f ms\n", section_ids[p], collect(UINT32_C(1) << i, LAUNCH_SHORT));
  double ms = collect(0, -1);
  print_message("nothing selected: %.1f ms\n", ms);
  assert_int_equal(records.metric_count, 0);
  assert_int_equal(records.instruction_count, 0);
}

static int print_metrics(void) {
  collect(sections_of("full"), -1);
  for (size_t i = 0; i < records.metric_count; i++)
    printf("%d,%s,\"%s\",%.17g,%s\n", (int)records.metrics[i].ordinal, kernel_symbols[records.metrics[i].ordinal],
           records.metrics[i].metric, records.metrics[i].value, records.metrics[i].reason);
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(instructions_are_exact),
                                     cmocka_unit_test(both_launches_of_a_function_have_its_counts),
                                     cmocka_unit_test(bank_conflicts_are_counted),
                                     cmocka_unit_test(excess_sectors_are_counted),
                                     cmocka_unit_test(divergent_branches_are_counted),
                                     cmocka_unit_test(top_stall_reasons_are_right),
                                     cmocka_unit_test(a_timeline_shows_both_phases),
                                     cmocka_unit_test(a_kernel_without_timelines_has_a_reason),
                                     cmocka_unit_test(code_has_a_hash_and_lines),
                                     cmocka_unit_test(every_selected_metric_has_a_row),
                                     cmocka_unit_test(allocations_are_recorded_until_they_are_freed),
                                     cmocka_unit_test(collecting_can_be_repeated)};
  if (argc == 2 && strcmp(argv[1], "run") == 0) {
    check(instruction_fixture_open(&fixture, &err), "device");
    run_once();
    cudaProfilerStart();
    run_once();
    cudaProfilerStop();
    return 0;
  }
  open_all();
  run_once();
  if (argc == 2 && strcmp(argv[1], "print") == 0) return print_metrics();
  print_message("first collection: %.0f ms\n", collect(sections_of("full"), -1));
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rl_records_clear(&records);
  rl_instruction_profiler_close(profiler);
  rl_subscriber_close();
  return failed;
}
