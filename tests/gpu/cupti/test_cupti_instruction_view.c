/* What happens inside kernels of known answers: counts by instruction, stalls, listings. `run` launches them once between
 * cudaProfilerStart and -Stop, for ncu to look at; `print` prints the metrics as CSV. */
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
#include "worker/cupti/instruction_view.h"
#include "worker/cupti/pc_sampling.h"
#include "worker/cupti/subscriber.h"

enum { SKIP = 77 };

static inside_rig rig;
static rl_instruction_view *view;
static rl_records records;
static rl_error err;

static void must(int result, const char *what) {
  if (result == 0) return;
  fprintf(stderr, "%s: %s\n", what, err.message);
  exit(EXIT_FAILURE);
}

static int restore(void *context, rl_error *why) {
  (void)context;
  return rl_cuda_check(cudaDeviceSynchronize(), "restore", why);
}

static void release_counters(void *context) { (void)context; } /* nothing is reserved */

static void open_all(void) {
  rl_subscriber_open(rl_pc_sampling_on_context_created);
  int found = inside_open(&rig, &err);
  if (found == 1) {
    printf("skipped: %s\n", err.message);
    exit(SKIP);
  }
  must(found, "device");
  must(rl_instruction_view_open(0, &view, &err), "instruction view");
}

static void run_once(void) {
  const rl_sequence *step = &rig.base.iteration.sequences[0];
  for (size_t i = 0; i < step->launch_count; i++)
    must(step->launches[i].enqueue(step->launches[i].arg, rig.device.stream, &err), "launch");
  must(rl_cuda_check(cudaStreamSynchronize(rig.device.stream), "step", &err), "step");
}

static const double durations_ns[INSIDE_KERNELS] = {20000, 10000, 20000, 40000, 250000, 200000, 2000000, 2000, 20000, 20000};

/* Look at all kernels; without: leave that one out. */
static double look(uint32_t sections, int without) {
  rl_viewed_kernel kernels[INSIDE_KERNELS];
  rl_profile profile = {.sections = sections, .launch = -1};
  rl_cache_flush *flush = NULL;
  rl_records_clear(&records);
  for (int i = 0; i < INSIDE_KERNELS; i++) {
    rl_kernel kernel = {.ordinal = i};
    kernels[i] = (rl_viewed_kernel){.symbol = inside_names[i],
                                    .launch = i < INSIDE_LAUNCHES ? (size_t)i : INSIDE_TWICE,
                                    .duration_ns = durations_ns[i],
                                    .blocks = i == INSIDE_SHORT ? 1 : INSIDE_BLOCKS,
                                    .ordinal = i == without ? -1 : i};
    if (i != without) must(rl_records_add(&records, RL_RECORD_KERNEL, &kernel, 1, &err), "records");
  }
  must(rl_cache_flush_open(&flush, &err), "flush");
  const rl_instruction_view_request request = {.instance = &rig.base,
                                               .sequence = &rig.base.iteration.sequences[0],
                                               .kernels = kernels,
                                               .kernel_count = INSIDE_KERNELS,
                                               .profile = &profile,
                                               .flush = flush,
                                               .restore = restore,
                                               .release_counters = release_counters};
  int64_t start = rl_monotonic_ns();
  int collected = rl_instruction_view_begin(view, &request, &err);
  if (collected == 0) collected = rl_instruction_view_collect(view, &records, &err);
  rl_instruction_view_end(view);
  double ms = (double)(rl_monotonic_ns() - start) * 1e-6;
  must(collected, "collect");
  rl_cache_flush_close(flush);
  return ms;
}

static const rl_kernel_metric *find(int kernel, const char *name) {
  for (size_t i = 0; i < records.metric_count; i++)
    if (records.metrics[i].ordinal == kernel && strcmp(records.metrics[i].metric, name) == 0) return &records.metrics[i];
  return NULL;
}

static double value(int kernel, const char *name) {
  const rl_kernel_metric *found = find(kernel, name);
  if (found == NULL) fail_msg("%s has no %s", inside_names[kernel], name);
  if (isnan(found->value)) fail_msg("%s of %s: %s", name, inside_names[kernel], found->reason);
  return found->value;
}

static const rl_instruction *find_instruction(int kernel, const char *opcode) {
  for (size_t i = 0; i < records.instruction_count; i++)
    if (records.instructions[i].ordinal == kernel && strncmp(records.instructions[i].opcode, opcode, strlen(opcode)) == 0)
      return &records.instructions[i];
  return NULL;
}

static double counted(const rl_instruction *instruction, const char *metric) {
  cJSON *counts = rl_json_parse(instruction->counts, strlen(instruction->counts), NULL);
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(counts, metric);
  double found = item != NULL ? item->valuedouble : 0;
  cJSON_Delete(counts);
  return found;
}

static bool has_text(void) {
  const rl_kernel_metric *opcodes = find(INSIDE_MULTIPLIES, "sass__inst_executed_per_opcode");
  return opcodes != NULL && !isnan(opcodes->value);
}

static uint32_t sections_of(const char *set) {
  for (size_t i = 0; i < rl_section_set_count; i++)
    if (strcmp(rl_section_sets[i].name, set) == 0) return rl_section_sets[i].sections;
  return 0;
}

/* --- tests ----------------------------------------------------------------------------------------------------------- */

static void instructions_are_exact(void **state) {
  (void)state;
  if (!has_text()) skip();
  assert_true(value(INSIDE_MULTIPLIES, "sass__inst_executed_per_opcode:FFMA") == (double)INSIDE_FMAS * INSIDE_WARPS);
  const rl_instruction *ffma = find_instruction(INSIDE_MULTIPLIES, "FFMA");
  assert_non_null(ffma);
  assert_true(counted(ffma, "inst_executed") == INSIDE_WARPS && counted(ffma, "thread_inst_executed") == INSIDE_WARPS * 32);
  double all = 0, warps = value(INSIDE_MULTIPLIES, "sass__inst_executed_per_opcode");
  for (size_t i = 0; i < records.metric_count; i++)
    if (records.metrics[i].ordinal == INSIDE_MULTIPLIES &&
        strncmp(records.metrics[i].metric, "sass__inst_executed_per_opcode_category:", 40) == 0)
      all += records.metrics[i].value;
  assert_true(all == warps);
}

static void a_function_launched_twice_is_shared(void **state) {
  (void)state;
  if (!has_text()) skip();
  for (int k = INSIDE_KERNELS - 2; k < INSIDE_KERNELS; k++)
    assert_true(value(k, "sass__inst_executed_per_opcode:FFMA") == (double)INSIDE_FMAS * INSIDE_WARPS);
}

static void bank_conflicts_are_counted(void **state) {
  (void)state;
  double wavefronts = value(INSIDE_COLLIDES, "memory_l1_wavefronts_shared"),
         ideal = value(INSIDE_COLLIDES, "memory_l1_wavefronts_shared_ideal");
  assert_true(wavefronts == (double)INSIDE_CONFLICTS * INSIDE_ACCESSES * INSIDE_WARPS);
  assert_true(ideal == (double)INSIDE_ACCESSES * INSIDE_WARPS);
  assert_true(value(INSIDE_COLLIDES, "derived__memory_l1_conflicts_shared_nway") == INSIDE_CONFLICTS * INSIDE_ACCESSES);
  assert_true(value(INSIDE_MULTIPLIES, "memory_l1_wavefronts_shared") == 0);
}

static void excess_sectors_are_counted(void **state) {
  (void)state;
  double sectors = value(INSIDE_STRIDES, "memory_l2_theoretical_sectors_global"),
         ideal = value(INSIDE_STRIDES, "memory_l2_theoretical_sectors_global_ideal");
  assert_true(sectors == 32.0 * INSIDE_ACCESSES * INSIDE_WARPS);
  assert_true(ideal == 4.0 * INSIDE_ACCESSES * INSIDE_WARPS);
  assert_true(value(INSIDE_STRIDES, "sass__inst_executed_global_loads") == (double)INSIDE_ACCESSES * INSIDE_WARPS);
}

static void divided_warps_are_counted(void **state) {
  (void)state;
  double divergent = 0;
  for (size_t i = 0; i < records.instruction_count; i++)
    if (records.instructions[i].ordinal == INSIDE_DIVERGES)
      divergent += counted(&records.instructions[i], "smsp__branch_targets_threads_divergent");
  print_message("divergent branches: %g, threads unexecuted %g\n", divergent,
                value(INSIDE_DIVERGES, "derived__avg_thread_unexecuted_true"));
  assert_true(divergent == (double)INSIDE_BRANCHES * INSIDE_WARPS);
  assert_true(value(INSIDE_DIVERGES, "derived__avg_thread_unexecuted_true") >
              value(INSIDE_STRIDES, "derived__avg_thread_unexecuted_true"));
}

/* The stall with most samples but for being selected. */
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

static void warps_wait_for_what_they_wait_for(void **state) {
  (void)state;
  static const struct {
    int kernel;
    const char *stall;
  } cases[] = {{INSIDE_CHASES, "long_scoreboard"}, {INSIDE_WAITS, "barrier"}};
  for (size_t i = 0; i < 2; i++) {
    int kernel = cases[i].kernel;
    print_message("%s: %g samples, most %s\n", inside_names[kernel], value(kernel, "smsp__pcsamp_sample_count"),
                  top_stall(kernel));
    assert_string_equal(top_stall(kernel), cases[i].stall);
    assert_true(value(kernel, "smsp__pcsamp_sample_count") >= 256);
  }
  double by_instruction = 0;
  for (size_t i = 0; i < records.instruction_count; i++)
    if (records.instructions[i].ordinal == INSIDE_CHASES)
      by_instruction += counted(&records.instructions[i], "smsp__pcsamp_warps_issue_stalled_long_scoreboard");
  assert_true(by_instruction == value(INSIDE_CHASES, "smsp__pcsamp_warps_issue_stalled_long_scoreboard"));
}

/* Mean of a time line between two parts of the kernel's duration; NAN where it has no point there. */
static double mean_of(int kernel, const char *series, double from, double to) {
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

/* A millisecond of arithmetic, then one of reading memory. */
static void a_time_line_shows_both_phases(void **state) {
  (void)state;
  double interval_us = value(INSIDE_PHASES, "profiler__pmsampler_interval_time") * 1e-3, end_us = 0, before_us = -1;
  for (size_t i = 0; i < records.point_count; i++) {
    const rl_series_point *point = &records.points[i];
    if (point->ordinal != INSIDE_PHASES || strcmp(point->name, "sm_active_pct") != 0) continue;
    assert_true(point->x * 1e-3 > before_us && point->value >= 0 && point->value <= 101);
    end_us = before_us = point->x * 1e-3;
  }
  double computes[2], reads[2];
  for (int phase = 0; phase < 2; phase++) {
    computes[phase] = mean_of(INSIDE_PHASES, "instructions_pct", 0.5 * phase + 0.1, 0.5 * phase + 0.4);
    reads[phase] = mean_of(INSIDE_PHASES, "dram_read_pct", 0.5 * phase + 0.1, 0.5 * phase + 0.4);
  }
  print_message("%.0f us every %.3g us: instructions %.1f %% then %.1f %%, reading %.2f %% then %.1f %%, SMs active %.1f %%\n",
                end_us, interval_us, computes[0], computes[1], reads[0], reads[1],
                mean_of(INSIDE_PHASES, "sm_active_pct", 0.1, 0.9));
  assert_true(fabs(end_us - 2.0 * INSIDE_PHASE_US) < 0.05 * INSIDE_PHASE_US);
  assert_true(computes[0] > 5 * computes[1] && reads[1] > 50 && reads[0] < 1);
  assert_true(mean_of(INSIDE_PHASES, "sm_active_pct", 0.1, 0.9) > 99);
}

static void a_kernel_without_a_time_line_says_why(void **state) {
  (void)state;
  static const struct {
    int kernel;
    const char *reason;
  } cases[] = {{INSIDE_SHORT, "too short"}, {INSIDE_KERNELS - 1, "several kernels"}};
  for (size_t i = 0; i < 2; i++) {
    const rl_kernel_metric *row = find(cases[i].kernel, "profiler__pmsampler_interval_time");
    assert_non_null(row);
    assert_true(isnan(row->value));
    if (strstr(row->reason, cases[i].reason) == NULL) fail_msg("%s: %s", inside_names[cases[i].kernel], row->reason);
    assert_true(isnan(mean_of(cases[i].kernel, "sm_active_pct", 0, 1)));
  }
}

static void code_has_a_hash_and_lines(void **state) {
  (void)state;
  for (size_t i = 0; i < records.kernel_count; i++) assert_int_equal(strlen(records.kernels[i].code_sha256), 64);
  assert_string_equal(records.kernels[INSIDE_MULTIPLIES].code_sha256, records.kernels[INSIDE_KERNELS - 1].code_sha256);
  assert_string_not_equal(records.kernels[INSIDE_MULTIPLIES].code_sha256, records.kernels[INSIDE_COLLIDES].code_sha256);
  size_t with_line = 0, of = 0;
  for (size_t i = 0; i < records.instruction_count; i++)
    if (records.instructions[i].ordinal == INSIDE_CHASES && counted(&records.instructions[i], "inst_executed") > 0) {
      of++;
      with_line += records.instructions[i].line > 0 && strcmp(records.instructions[i].file, "inside.cu") == 0;
    }
  print_message("%zu of %zu executed instructions have a line\n", with_line, of);
  assert_true(of > 0 && with_line == of);
}

static void every_wanted_metric_has_a_row(void **state) {
  (void)state;
  uint32_t full = sections_of("full");
  for (size_t m = 0; m < rl_raw_metric_count; m++) {
    if (!rl_instruction_view_collects(rl_raw_metrics[m].name) || (rl_raw_metrics[m].sections & full) == 0) continue;
    for (int k = 0; k < INSIDE_KERNELS; k++) {
      const rl_kernel_metric *row = find(k, rl_raw_metrics[m].name);
      if (row == NULL) fail_msg("%s has no %s", inside_names[k], rl_raw_metrics[m].name);
      if (isnan(row->value)) assert_true(row->reason[0] != '\0');
    }
  }
}

/* Again and again in one process, with other kernels and sections: as a resident worker. Last, since it replaces the records. */
/* How much of the memory at an address the subscriber has heard of. */
static size_t noted_bytes(const void *address) {
  size_t count = 0, bytes = 0;
  rl_device_allocation *all = rl_device_allocations_copy(&count);
  for (size_t i = 0; i < count; i++) bytes += all[i].address == (CUdeviceptr)address ? all[i].bytes : 0;
  free(all);
  return bytes;
}

static void what_is_allocated_is_noted_until_it_is_freed(void **state) {
  (void)state;
  const size_t sizes[] = {1, 4097, 40 << 20, 12345};
  void *made[4];
  for (int i = 0; i < 4; i++) must(rl_cuda_check(cudaMalloc(&made[i], sizes[i]), "allocate", &err), "memory");
  assert_int_not_equal(cudaMalloc(&(void *){NULL}, SIZE_MAX / 2), cudaSuccess);
  (void)cudaGetLastError();
  for (int freed = 0; freed <= 4; freed++) {
    for (int i = 0; i < 4; i++) assert_int_equal(noted_bytes(made[i]), i < freed ? 0 : sizes[i]);
    if (freed < 4) must(rl_cuda_check(cudaFree(made[freed]), "free", &err), "memory");
  }
}

static void it_works_again(void **state) {
  (void)state;
  uint32_t full = sections_of("full");
  for (int round = 0; round < 3; round++) {
    double ms = look(full, round == 0 ? INSIDE_COLLIDES : -1);
    print_message("looked inside in %.0f ms\n", ms);
    excess_sectors_are_counted(NULL);
    warps_wait_for_what_they_wait_for(NULL);
    a_time_line_shows_both_phases(NULL);
    assert_true(round != 0 || find(INSIDE_COLLIDES, "memory_l1_wavefronts_shared") == NULL);
  }
  static const char *const parts[] = {"InstructionStats", "SourceCounters", "PmSampling"};
  for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
    for (size_t i = 0; i < rl_section_count; i++)
      if (strcmp(rl_sections[i].id, parts[p]) == 0)
        print_message("%s: %.0f ms\n", parts[p], look(UINT32_C(1) << i, INSIDE_SHORT));
  double ms = look(0, -1);
  print_message("nothing wanted: %.1f ms\n", ms);
  assert_int_equal(records.metric_count, 0);
  assert_int_equal(records.instruction_count, 0);
}

static int print(void) {
  look(sections_of("full"), -1);
  for (size_t i = 0; i < records.metric_count; i++)
    printf("%d,%s,\"%s\",%.17g,%s\n", (int)records.metrics[i].ordinal, inside_names[records.metrics[i].ordinal],
           records.metrics[i].metric, records.metrics[i].value, records.metrics[i].reason);
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(instructions_are_exact),
                                     cmocka_unit_test(a_function_launched_twice_is_shared),
                                     cmocka_unit_test(bank_conflicts_are_counted),
                                     cmocka_unit_test(excess_sectors_are_counted),
                                     cmocka_unit_test(divided_warps_are_counted),
                                     cmocka_unit_test(warps_wait_for_what_they_wait_for),
                                     cmocka_unit_test(a_time_line_shows_both_phases),
                                     cmocka_unit_test(a_kernel_without_a_time_line_says_why),
                                     cmocka_unit_test(code_has_a_hash_and_lines),
                                     cmocka_unit_test(every_wanted_metric_has_a_row),
                                     cmocka_unit_test(what_is_allocated_is_noted_until_it_is_freed),
                                     cmocka_unit_test(it_works_again)};
  if (argc == 2 && strcmp(argv[1], "run") == 0) {
    must(inside_open(&rig, &err), "device");
    run_once();
    cudaProfilerStart();
    run_once();
    cudaProfilerStop();
    return 0;
  }
  open_all();
  run_once();
  if (argc == 2 && strcmp(argv[1], "print") == 0) return print();
  print_message("looked inside in %.0f ms at first\n", look(sections_of("full"), -1));
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rl_records_clear(&records);
  rl_instruction_view_close(view);
  rl_subscriber_close();
  return failed;
}
