/* Compares counters of the kernels of gallery.h with values that follow from their source: exactly where the hardware counts
 * exactly, else within TOLERANCE_RATIO. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gallery.h"
#include "load_profiler.h"

static const double TOLERANCE_RATIO = 0.005;

static const struct {
  const char *launch, *metric;
  double value;
  bool exact;
} known_values[] = {
    {"copy", "dram__bytes_read.sum", GALLERY_COPY_BYTES, false},
    {"copy", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", GALLERY_COPY_BYTES / 16.0 / 32, true},
    {"copy", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", GALLERY_COPY_BYTES / 32.0, true},
    {"copy", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", GALLERY_COPY_BYTES / 32.0, false},
    {"flops", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 32.0 * GALLERY_WARPS *GALLERY_FMAS_PER_THREAD, true},
    {"flops", "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", 0, true},
    {"fp64", "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", 32.0 * GALLERY_WARPS *GALLERY_FMAS_PER_THREAD, true},
    {"transpose", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", GALLERY_SIDE *(double)GALLERY_SIDE * 4 / 32, true},
    /* one sector per float */
    {"transpose", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", GALLERY_SIDE *(double)GALLERY_SIDE, false},
    {"banks_1", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", (double)GALLERY_BANK_LOADS_PER_WARP *GALLERY_BANK_WARPS,
     true},
    {"banks_1", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", 0, true},
    {"banks_32", "smsp__sass_inst_executed_op_shared_ld.sum", (double)GALLERY_BANK_LOADS_PER_WARP *GALLERY_BANK_WARPS, true},
    {"banks_32", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", 32.0 * GALLERY_BANK_LOADS_PER_WARP *GALLERY_BANK_WARPS,
     true},
    {"banks_32", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
     31.0 * GALLERY_BANK_LOADS_PER_WARP *GALLERY_BANK_WARPS, true},
    {"atomics", "smsp__inst_executed_op_global_red.sum", GALLERY_ATOMIC_ADDS / 32.0, true},
    {"atomics", "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum", GALLERY_ATOMIC_ADDS, false},
    {"matrix", "sm__ops_path_tensor_src_fp16.sum", 2.0 * GALLERY_SIDE *GALLERY_SIDE *GALLERY_SIDE, true},
    {"matrix", "sm__ops_path_tensor_src_tf32_dst_fp32.sum", 0, true},
    {"sleep", "gpu__time_duration.sum", GALLERY_SLEEP_US * 1e3, false},
    {"sleep", "sm__ops_path_tensor_src_fp16.sum", 0, true},
};
enum { KNOWN_VALUE_COUNT = sizeof known_values / sizeof *known_values };

static rl_records records;

static double metric_value(const char *launch, const char *name) {
  for (size_t k = 0; k < records.kernel_count; k++)
    for (size_t m = 0; m < records.metric_count && strcmp(records.kernels[k].launch, launch) == 0; m++)
      if (records.metrics[m].ordinal == records.kernels[k].ordinal && strcmp(records.metrics[m].metric, name) == 0)
        return records.metrics[m].value;
  fail_msg("%s has no %s", launch, name);
  return NAN;
}

static void test_counters_have_the_known_values(void **state) {
  (void)state;
  int wrong_count = 0;
  for (size_t i = 0; i < KNOWN_VALUE_COUNT; i++) {
    double value = metric_value(known_values[i].launch, known_values[i].metric), expected = known_values[i].value;
    bool is_right = known_values[i].exact ? value == expected : fabs(value - expected) <= TOLERANCE_RATIO * expected;
    print_message("%s %-9s %s: %.10g, expected %.10g%s\n", is_right ? "  " : "! ", known_values[i].launch, known_values[i].metric,
                  value, expected, known_values[i].exact ? " exactly" : "");
    wrong_count += !is_right;
  }
  assert_int_equal(wrong_count, 0);
}

int main(void) {
  static rl_instance gallery;
  static rl_device device;
  rl_error err = {0};
  char reason[RL_REASON_SIZE] = "";
  rl_profile_options profile_options = {.matching_index = RL_ALL_MATCHING_KERNELS};
  for (size_t i = 0; i < KNOWN_VALUE_COUNT; i++)
    if (strstr(profile_options.metrics, known_values[i].metric) == NULL) {
      if (profile_options.metrics[0] != '\0') strcat(profile_options.metrics, "\n");
      strcat(profile_options.metrics, known_values[i].metric);
    }
  rl_profiler *profiler = load_profiler(&err);
  int opened = gallery_open(&gallery, &device, &err);
  if (opened == 1) {
    print_message("skipped: %s\n", err.message);
    return SKIP;
  }
  check(opened, "gallery", &err);
  check(profiler == NULL ? -1 : 0, "profiler", &err);
  profiler->device = &device;
  int result = profiler->ops->collect_counters(profiler, &gallery, &profile_options, NULL, &records, reason, &err);
  if (result == 1) {
    print_message("skipped: %s\n", reason);
    return SKIP;
  }
  check(result, "counters", &err);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_counters_have_the_known_values)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rl_records_clear(&records);
  profiler->ops->close(profiler);
  gallery.ops->close(&gallery);
  return failed;
}
