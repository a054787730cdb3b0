/* Tests ceilings, the floors that follow from them, and times that are faster than their floor. */
#include "store_fixture.h"

#include "layer/layer.h"

enum { TIMING = 1u << RL_PASS_TIMING };

#define GPU_PROPERTIES(DRIVER, CLOCK_KHZ)                                                               \
  "{\"name\":\"Test GPU\",\"uuid\":\"GPU-1\",\"driver\":\"" DRIVER "\",\"sm_clock_max_khz\":" CLOCK_KHZ \
  ",\"memory_clock_max_khz\":3201000,\"l2_bytes\":40000000}"
#define TEST_GPU_PROPERTIES GPU_PROPERTIES("580.1", "1980000")

/* The results of a timing pass: epochs with the minimum `epoch_ms`, and two samples of each mode. The minimum work is
 * `operations` in `precision`, and 1e8 bytes, of which 1e7 are written. */
typedef struct timing_results {
  const char *properties, *precision;
  double operations, epoch_ms, cold_us, warm_us;
} timing_results;

static int64_t store_timing_with_conditions(rl_store *store, timing_results results, const rate *conditions) {
  int64_t id = submit(store, "cpu", TIMING);
  pass_records pass_data;
  rl_sample samples[4];
  bool done;
  for (int run = 0; run < 2; run++) {
    rl_claim claimed = claim(store, "cpu");
    fill_records(&pass_data, RL_PASS_TIMING, results.epoch_ms / 100);
    strcpy(pass_data.records.metadata.device_properties, results.properties);
    strcpy(pass_data.records.metadata.floor_precision, results.precision);
    pass_data.records.metadata.floor_operations = results.operations;
    for (int i = 0; i < 4; i++)
      samples[i] =
          (rl_sample){.mode = i / 2, .ordinal = i % 2, .device_us = i / 2 == RL_SAMPLE_COLD ? results.cold_us : results.warm_us};
    pass_data.records.samples = samples, pass_data.records.sample_count = 4;
    for (const rate *each = conditions; each->name; each++) add_measurement(&pass_data, each->name, each->value, "");
    ASSERT_OK(rl_store_pass_commit(store, &claimed, &pass_data.records, NULL, &done, &err));
  }
  return id;
}

static int64_t store_timing(rl_store *store, timing_results results) {
  static const rate no_conditions[] = {{0}};
  return store_timing_with_conditions(store, results, no_conditions);
}

/* Returns a measurement of the job's first run and its reason. */
static double read_measurement(fixture *f, int64_t job, const char *name, char *reason) {
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", job));
  const cJSON *measurement, *found = NULL;
  cJSON_ArrayForEach (measurement, json_at(rows, "0.runs.0.measurements"))
    if (strcmp(cJSON_GetStringValue(json_at(measurement, "name")), name) == 0) found = measurement;
  if (!found) fail_msg("there is no %s", name);
  double value = cJSON_GetNumberValue(json_at(found, "value"));
  snprintf(reason, RL_REASON_SIZE, "%s", cJSON_IsNull(json_at(found, "reason")) ? "" : json_at(found, "reason")->valuestring);
  cJSON_Delete(rows);
  return value;
}

static void assert_floor(fixture *f, int64_t job, const char *name, double value) {
  char reason[RL_REASON_SIZE];
  double found = read_measurement(f, job, name, reason);
  if (!(fabs(found - value) <= 1e-9 * value) || reason[0]) fail_msg("%s is %g, not %g: %s", name, found, value, reason);
}

static void assert_no_floor(fixture *f, int64_t job, const char *name, const char *expected_reason) {
  char reason[RL_REASON_SIZE];
  double found = read_measurement(f, job, name, reason);
  if (!isnan(found) || !strstr(reason, expected_reason)) fail_msg("%s is %g: %s", name, found, reason);
}

/* --- floors ------------------------------------------------------------------------------------------------------------ */

static void without_ceilings_there_is_no_floor(void **state) {
  fixture *f = *state;
  int64_t id = store_timing(f->store, (timing_results){TEST_CPU_PROPERTIES, "fp32", 1e9, 1e-6, 1e-6, 1e-6});
  assert_no_floor(f, id, "floor_ms", "run a job of the kind ceilings");
  assert_no_floor(f, id, "floor_cold_us", "run a job of the kind ceilings");
  assert_no_floor(f, id, "floor_warm_us", "run a job of the kind ceilings");
  assert_int_equal(query_integer(f, "SELECT count(*) FROM v_runs WHERE suspect"), 0);
}

/* The fastest rate that can execute a precision determines the floor of its operations. */
static void operations_take_time(void **state) {
  fixture *f = *state;
  static const rate rates[] = {{"fp32_operations_per_s", 1e11},
                               {"tensor_fp16_operations_per_s", 1e12},
                               {"fp16_operations_per_s", 2e11},
                               {"tensor_tf32_operations_per_s", 5e11},
                               {0}};
  static const struct {
    const char *precision;
    double ms;
  } cases[] = {{"fp32", 10}, {"fp16", 1}, {"tf32", 2}, {"bf16", 10}};
  execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, rates);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_floor(f, store_timing(f->store, (timing_results){TEST_CPU_PROPERTIES, cases[i].precision, 1e9, 20, 1e5, 1e5}),
                 "floor_ms", cases[i].ms);
  assert_no_floor(f, store_timing(f->store, (timing_results){TEST_CPU_PROPERTIES, "fp64", 1e9, 20, 1e5, 1e5}), "floor_ms",
                  "no rate");
}

/* 1e8 bytes move, of which 1e7 are written. The caches hold 4e7 bytes, 1e6 of them above the last level. */
static void bytes_take_time(void **state) {
  fixture *f = *state;
  static const rate memory[] = {{"dram_read_bytes_per_s", 1e11}, {"dram_copy_bytes_per_s", 9e10}, {0}};
  static const rate memory_and_l3[] = {{"dram_read_bytes_per_s", 1e11}, {"l3_read_bytes_per_s", 1.1e11}, {0}};
  const timing_results on_cpu = {TEST_CPU_PROPERTIES, "", NAN, 20, 1e5, 1e5},
                       on_gpu = {TEST_GPU_PROPERTIES, "", NAN, 20, 1e5, 1e5};
  execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, memory);
  int64_t id = store_timing(f->store, on_cpu);
  assert_floor(f, id, "floor_cold_us", 9e7 / 1e11 * 1e6); /* written bytes may stay in a cache */
  assert_floor(f, id, "floor_warm_us", 6e7 / 1e11 * 1e6); /* 4e7 bytes may already be in the caches */
  assert_floor(f, id, "floor_ms", 0.6);
  execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, memory_and_l3);
  id = store_timing(f->store, on_cpu);
  assert_floor(f, id, "floor_cold_us", 9e7 / 1e11 * 1e6);
  assert_floor(f, id, "floor_warm_us", 9.9e7 / 1.1e11 * 1e6); /* all bytes that L1 and L2 do not hold come from the last cache */
  static const rate gpu_rates[] = {
      {"dram_read_bytes_per_s", 1e11}, {"l2_read_bytes_per_s", 1e11}, {"l2_copy_bytes_per_s", 2e11}, {0}};
  execute_ceilings_job(f->store, TEST_GPU_PROPERTIES, gpu_rates);
  id = store_timing(f->store, on_gpu);
  assert_floor(f, id, "floor_cold_us", 9e7 / 1e11 * 1e6);
  assert_floor(
      f, id, "floor_warm_us",
      6e7 / 1e11 * 1e6); /* L1 keeps no data between launches, so all 1e8 bytes come from L2 in 1e8 / 2e11 s, which is shorter */
}

static void bytes_without_a_known_cache_size_have_no_floor(void **state) {
  fixture *f = *state;
  static const char without_cache_sizes[] = "{\"name\":\"Test CPU\",\"threads\":2}";
  static const rate rates[] = {{"dram_read_bytes_per_s", 1e11}, {0}};
  execute_ceilings_job(f->store, without_cache_sizes, rates);
  int64_t id = store_timing(f->store, (timing_results){without_cache_sizes, "", NAN, 20, 1, 1});
  assert_no_floor(f, id, "floor_warm_us", "no rate");
}

/* --- shares of measured roofs ------------------------------------------------------------------------------------------ */

static int64_t store_medians(rl_store *store, timing_results results) {
  const rate medians[] = {{"time_cold_us_median", results.cold_us}, {"time_warm_us_median", results.warm_us}, {0}};
  return store_timing_with_conditions(store, results, medians);
}

/* 1e8 bytes move, of which 1e7 are written: 2e7 at the bandwidth of copies, 8e7 at that of reads. The caches hold 4e7 bytes. */
static void the_roof_that_applies_is_named(void **state) {
  fixture *f = *state;
  static const rate rates[] = {{"dram_read_bytes_per_s", 1e11},
                               {"dram_copy_bytes_per_s", 1e11},
                               {"l2_read_bytes_per_s", 4e11},
                               {"fp32_operations_per_s", 1e13},
                               {0}};
  execute_ceilings_job(f->store, TEST_GPU_PROPERTIES, rates);
  int64_t id = store_medians(f->store, (timing_results){TEST_GPU_PROPERTIES, "fp32", 1e9, 1e5, 2000, 1250});
  assert_floor(f, id, "share_cold_of_dram_read_ratio", 0.5); /* 1000 us of 2000 */
  assert_floor(f, id, "share_warm_of_dram_read_ratio", 0.8); /* more bytes than the caches hold */
  id = store_medians(f->store, (timing_results){TEST_GPU_PROPERTIES, "fp32", 4e10, 1e5, 8000, 8000});
  assert_floor(f, id, "share_cold_of_fp32_operations_ratio", 0.5); /* 4000 us of arithmetic, 1000 of memory */
  assert_int_equal(query_integer(f, "SELECT count(*) FROM measurements WHERE name GLOB 'share_*'"), 8);
}

/* Stores a run whose median time is 1000 us in both modes, and returns the id of its job. */
static int64_t store_traffic(rl_store *store, const char *workload, double bytes, double written_bytes) {
  rl_job_spec spec = {.kind = "kernel", .device = "cpu", .passes = TIMING, .run_count = 1, .request = "{}"};
  snprintf(spec.runs[0].workload, sizeof spec.runs[0].workload, "%s", workload);
  strcpy(spec.runs[0].params, "{}");
  int64_t id = 0;
  bool existing, done;
  ASSERT_OK(rl_store_job_insert(store, &spec, NULL, NULL, 1000, &id, &existing, &err));
  rl_claim claimed = claim(store, "cpu");
  pass_records pass_data;
  fill_records(&pass_data, RL_PASS_TIMING, 1);
  strcpy(pass_data.records.metadata.device_properties, TEST_GPU_PROPERTIES);
  pass_data.records.metadata.floor_operations = NAN;
  pass_data.records.metadata.floor_bytes = bytes;
  pass_data.records.metadata.floor_written_bytes = written_bytes;
  add_measurement(&pass_data, "time_cold_us_median", 1000, "");
  add_measurement(&pass_data, "time_warm_us_median", 1000, "");
  ASSERT_OK(rl_store_pass_commit(store, &claimed, &pass_data.records, NULL, &done, &err));
  return id;
}

/* Rates of an H200. One written byte must not turn reads into copies. */
static void bytes_count_at_the_bandwidth_of_their_direction(void **state) {
  fixture *f = *state;
  static const rate rates[] = {{"dram_read_bytes_per_s", 4.61e12}, {"dram_write_bytes_per_s", 4.71e12},
                               {"dram_copy_bytes_per_s", 4.29e12}, {"dram_triad_bytes_per_s", 4.38e12},
                               {"l2_read_bytes_per_s", 9.53e12},   {"l2_write_bytes_per_s", 4.79e12},
                               {"l2_copy_bytes_per_s", 8.6e12},    {0}};
  static const struct {
    const char *workload, *name;
    double bytes, written_bytes, share;
  } cases[] = {
      {"reduction", "share_cold_of_dram_read_ratio", 4e8, 0, 4e8 / 4.61e9},
      {"reduction", "share_cold_of_dram_read_ratio", 4e8, 1, (4e8 - 2) / 4.61e9 + 2 / 4.29e9},
      {"decode", "share_cold_of_dram_read_ratio", 438353920, 24576, (438353920 - 49152) / 4.61e9 + 49152 / 4.29e9},
      {"sum", "share_cold_of_dram_read_ratio", 4e8, 99999999, 200000002 / 4.61e9 + 199999998 / 4.29e9},
      {"sum", "share_cold_of_dram_copy_ratio", 4e8, 1e8, 2e8 / 4.61e9 + 2e8 / 4.29e9},
      {"copy", "share_cold_of_dram_copy_ratio", 4e8, 2e8, 4e8 / 4.29e9},
      {"expand", "share_cold_of_dram_write_ratio", 4e8, 399999999, 2 / 4.29e9 + 399999998 / 4.71e9},
      {"fill", "share_cold_of_dram_write_ratio", 4e8, 4e8, 4e8 / 4.71e9},
      {"fill", "share_warm_of_l2_write_ratio", 4e7, 4e7, 4e7 / 4.79e9},
      {"copy", "share_warm_of_l2_copy_ratio", 4e7, 2e7, 4e7 / 8.6e9},
      {"source", "share_cold_of_dram_write_ratio", 4e7, 4e7, 4e7 / 4.71e9}, /* unknown directions: the highest bandwidth */
      {"source", "share_warm_of_l2_read_ratio", 4e7, 4e7, 4e7 / 9.53e9},
  };
  execute_ceilings_job(f->store, TEST_GPU_PROPERTIES, rates);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_floor(f, store_traffic(f->store, cases[i].workload, cases[i].bytes, cases[i].written_bytes), cases[i].name,
                 cases[i].share);
  const double decode = cases[2].share, of_reads = 438353920 / 4.61e9;
  assert_true(fabs(decode / of_reads - 1) < 1e-3);
}

static void without_a_measured_roof_there_is_no_share(void **state) {
  fixture *f = *state;
  store_medians(f->store, (timing_results){TEST_GPU_PROPERTIES, "fp32", 1e9, 1e5, 2000, 1250});
  static const rate rates[] = {{"dram_read_bytes_per_s", 1.2e11}, {0}}; /* neither a copy rate nor an fp32 rate */
  execute_ceilings_job(f->store, TEST_GPU_PROPERTIES, rates);
  store_medians(f->store, (timing_results){TEST_GPU_PROPERTIES, "fp32", 1e9, 1e5, 2000, 1250});
  store_traffic(f->store, "copy", 4e8, 2e8);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM measurements WHERE name GLOB 'share_*'"), 0);
  assert_floor(f, store_traffic(f->store, "reduction", 4e8, 0), "share_cold_of_dram_read_ratio", 4e8 / 1.2e11 * 1e3);
}

/* --- suspects ---------------------------------------------------------------------------------------------------------- */

static void an_epoch_that_is_too_fast_is_suspect(void **state) {
  fixture *f = *state;
  execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, rates_for_10_ms_floor);
  int64_t id = submit(f->store, "cpu", TIMING);
  execute_pass(f->store, "cpu", 1);
  execute_pass(f->store, "cpu", 0.05); /* 5 ms; the floor is 10 ms */
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", id));
  assert_true(cJSON_IsFalse(json_at(rows, "0.runs.0.epochs.1.suspect")) &&
              cJSON_IsNull(json_at(rows, "0.runs.0.epochs.1.suspect_reason")));
  assert_true(cJSON_IsTrue(json_at(rows, "0.runs.1.epochs.1.suspect")));
  const char *reason = json_at(rows, "0.runs.1.epochs.1.suspect_reason")->valuestring;
  assert_string_equal(reason, "5.00 ms is faster than its floor of 10.00 ms: 1e9 operations in fp32 at 100.0 GFLOP/s");
  assert_true(cJSON_IsTrue(json_at(rows, "0.runs.1.summary.suspect")) &&
              cJSON_IsFalse(json_at(rows, "0.runs.0.summary.suspect")));
  cJSON_Delete(rows);
  rows = QUERY_ROWS(f->store, RL_QUERY_COMPARISON, RL_BIND_INTEGER(":job", id));
  assert_true(cJSON_IsNull(json_at(rows, "0.speedup_ratio")));
  assert_non_null(strstr(json_at(rows, "0.unavailable.speedup_ratio")->valuestring, "fp16 is suspect"));
  assert_non_null(strstr(json_at(rows, "0.candidate.suspect_reason")->valuestring, "faster than its floor"));
  assert_non_null(strstr(json_at(rows, "0.candidate.suspect_cause")->valuestring, "It is unknown whether other processes used"));
  assert_true(cJSON_IsNull(json_at(rows, "0.baseline.suspect_reason")) &&
              cJSON_IsNull(json_at(rows, "0.baseline.suspect_cause")));
  cJSON_Delete(rows);
}

static void a_sample_that_is_too_fast_is_suspect(void **state) {
  fixture *f = *state;
  static const rate rates[] = {{"dram_read_bytes_per_s", 1e11}, {0}};
  execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, rates);
  int64_t id =
      store_timing(f->store, (timing_results){TEST_CPU_PROPERTIES, "", NAN, 20, 800, 700}); /* the floors are 900 and 600 us */
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", id));
  assert_true(cJSON_IsTrue(json_at(rows, "0.runs.0.samples.0.suspect")) &&
              cJSON_IsFalse(json_at(rows, "0.runs.0.samples.2.suspect")));
  const char *reason = json_at(rows, "0.runs.0.samples.0.suspect_reason")->valuestring;
  assert_string_equal(reason,
                      "800.0 µs with a cold cache is faster than its floor of 900.0 µs: 9e7 bytes from memory at 100.0 GB/s");
  assert_true(cJSON_IsTrue(json_at(rows, "0.runs.0.summary.suspect")));
  cJSON_Delete(rows);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM v_samples WHERE suspect"), 4);
}

/* Reads a text from the first run of the job; "": it is null. */
static void read_result_text(fixture *f, int64_t job, const char *path, char text[512]) {
  char full_path[128];
  snprintf(full_path, sizeof full_path, "0.runs.0.%s", path);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", job));
  const char *found = cJSON_GetStringValue(json_at(rows, full_path));
  snprintf(text, 512, "%s", found != NULL ? found : "");
  cJSON_Delete(rows);
}

/* Both times would be "900.0 µs". */
static void a_time_just_below_its_floor_has_enough_digits(void **state) {
  fixture *f = *state;
  static const rate rates[] = {{"dram_read_bytes_per_s", 1e11}, {0}};
  char reason[512];
  execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, rates);
  int64_t id = store_timing(f->store, (timing_results){TEST_CPU_PROPERTIES, "", NAN, 20, 899.999, 700});
  read_result_text(f, id, "samples.0.suspect_reason", reason);
  assert_non_null(strstr(reason, "899.999 µs with a cold cache is faster than its floor of 900"));
  assert_null(strstr(reason, "900.0 µs"));
}

#define USE_OF_CPU "other processes, interrupts or the hypervisor used "
#define CPU_TIME(RATIO, PROCESSORS) \
  {"other_processes_cpu_time_ratio", (RATIO)}, { "other_processes_busy_processors", (PROCESSORS) }
#define CHECK_THE_RUN "Check that the run does all of its work, and that its time includes all of it."

/* If the ceilings were disturbed, they are the likely cause. Otherwise no cause is named. The third CPU has 128 processors. */
static void the_cause_of_a_time_below_its_floor_follows_from_the_ceilings(void **state) {
  fixture *f = *state;
  static const struct {
    rate conditions[5];
    const char *disturbed, *cause, *action;
  } cases[] = {{{CPU_TIME(0.06, 0.12), {0}},
                USE_OF_CPU "6.0 % of the processors' time (0.12 processors) during the measurement, so the rates may be too low",
                "are too low, because " USE_OF_CPU "6.0 % of",
                "(rooflinectl run --kind ceilings --device cpu), then run this job again."},
               {{CPU_TIME(0.05, 0.5), {0}},
                "",
                "and " USE_OF_CPU "only 5.0 % of the processors' time (0.5 processors) during the measurement.",
                CHECK_THE_RUN},
               {{CPU_TIME(0.047, 6.016), {0}},
                USE_OF_CPU "4.7 % of the processors' time (6.02 processors) during the measurement, so",
                "are too low, because " USE_OF_CPU "4.7 % of the",
                "Measure the ceilings again while nothing else runs"},
               {{{"other_processes_cpu_time_ratio", 0.04}, {0}}, /* stored before the number of processors was */
                "",
                "It is unknown whether other processes used the device while job",
                CHECK_THE_RUN},
               {{{"other_processes_before", 0}, {"other_processes_after", 1}, {"other_process_7_memory_bytes", 1048576}, {0}},
                "other processes had the GPU open when the measurement began or ended (pid 7 (1 MiB)), so the rates may be",
                "are too low, because other processes had the GPU open when the measurement began or ended (pid 7 (1 MiB)).",
                "Measure the ceilings again while nothing else runs"},
               {{{"other_processes_before", 0}, {"other_processes_after", 0}, {0}},
                "",
                "and no other process had the GPU open when the measurement began and ended.",
                CHECK_THE_RUN},
               {{{"other_processes_before", 0}, {"other_processes_after", NAN}, {"other_processes_cpu_time_ratio", NAN}, {0}},
                "",
                "It is unknown whether other processes used the device while job",
                CHECK_THE_RUN}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rate rates[6] = {{"dram_read_bytes_per_s", 1e11}};
    char text[512];
    memcpy(rates + 1, cases[i].conditions, sizeof cases[i].conditions);
    const int64_t ceilings = execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, rates);
    read_result_text(f, ceilings, "disturbed_reason", text);
    if (cases[i].disturbed[0] ? !strstr(text, cases[i].disturbed) : text[0]) fail_msg("case %zu: disturbed: %s", i, text);
    const int64_t fast = store_timing(f->store, (timing_results){TEST_CPU_PROPERTIES, "", NAN, 20, 800, 700}),
                  slow = store_timing(f->store, (timing_results){TEST_CPU_PROPERTIES, "", NAN, 20, 901, 700});
    read_result_text(f, fast, "summary.suspect_cause", text);
    const bool is_likely = strstr(text, "Likely cause: the ceilings of job") == text;
    if (!strstr(text, cases[i].cause) || !strstr(text, cases[i].action) || is_likely != (cases[i].disturbed[0] != '\0'))
      fail_msg("case %zu: cause: %s", i, text);
    read_result_text(f, slow, "summary.suspect_cause", text);
    assert_string_equal(text, "");
  }
}

/* Of four processes, the one with the least memory is not named. The memory of process 5 is unknown. */
static void the_three_largest_processes_are_named(void **state) {
  fixture *f = *state;
  const double mib = 1048576;
  const rate rates[] = {{"dram_read_bytes_per_s", 1e11},
                        {"other_process_5_memory_bytes", NAN},
                        {"other_process_6_memory_bytes", 9 * mib},
                        {"other_process_7_memory_bytes", 100 * mib},
                        {"other_process_8_memory_bytes", 20 * mib},
                        {0}};
  const rate three[] = {rates[0], rates[1], rates[2], rates[3], {0}};
  char text[512];
  read_result_text(f, execute_ceilings_job(f->store, TEST_GPU_PROPERTIES, rates), "disturbed_reason", text);
  assert_non_null(strstr(text, "ended (pid 7 (100 MiB), pid 8 (20 MiB), pid 6 (9 MiB) and 1 more), so"));
  read_result_text(f, execute_ceilings_job(f->store, TEST_GPU_PROPERTIES, three), "disturbed_reason", text);
  assert_non_null(strstr(text, "ended (pid 7 (100 MiB), pid 6 (9 MiB), pid 5), so"));
}

/* A report names other processes only beside ceilings that apply to its run. After a change of clocks it has none. */
static void reports_name_processes_that_disturbed_their_ceilings(void **state) {
  fixture *f = *state;
  static const rate shared[] = {{"dram_read_bytes_per_s", 1e11}, {"other_process_7_memory_bytes", 1048576}, {0}};
  static const char *const properties[] = {TEST_GPU_PROPERTIES, GPU_PROPERTIES("580.1", "1755000")};
  execute_ceilings_job(f->store, TEST_GPU_PROPERTIES, shared);
  for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
    char sql[96];
    const int64_t job = store_timing(f->store, (timing_results){properties[i], "", NAN, 20, 1e5, 1e5});
    snprintf(sql, sizeof sql, "SELECT min(id) FROM runs WHERE job_id = %lld", (long long)job);
    cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_REPORT_RUN, RL_BIND_INTEGER(":run", query_integer(f, sql)));
    const char *disturbed = cJSON_GetStringValue(json_at(rows, "0.ceilings_disturbed_reason")),
               *missing = cJSON_GetStringValue(json_at(rows, "0.ceilings_reason"));
    if (i == 0) assert_true(missing == NULL && disturbed != NULL && strstr(disturbed, "pid 7 (1 MiB)") != NULL);
    else assert_true(missing != NULL && strstr(missing, "at other clocks") != NULL && disturbed == NULL);
    cJSON_Delete(rows);
  }
}

/* A blog reports 285 µs for a transformer layer on an H100, whose products alone are 829 GFLOP. */
static void a_layer_in_285_us_is_suspect(void **state) {
  fixture *f = *state;
  static const rate rates[] = {{"tensor_fp16_operations_per_s", 876e12}, {0}}; /* measured on an H200 */
  rl_layer_params params;
  rl_transformer_layer.defaults(&params);
  const rl_cost cost = rl_transformer_layer.cost(&params, 0);
  execute_ceilings_job(f->store, TEST_GPU_PROPERTIES, rates);
  const int64_t claimed = store_timing(f->store, (timing_results){TEST_GPU_PROPERTIES, "fp16", cost.operations, 20, 285, 285}),
                measured = store_timing(f->store, (timing_results){TEST_GPU_PROPERTIES, "fp16", cost.operations, 20, 1260, 1260});
  assert_floor(f, claimed, "floor_cold_us", cost.operations / 876e12 * 1e6);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", claimed));
  const char *reason = json_at(rows, "0.runs.0.samples.0.suspect_reason")->valuestring;
  assert_non_null(strstr(reason, "285.0 µs with a cold cache is faster than its floor of 98"));
  cJSON_Delete(rows);
  rows = QUERY_ROWS(f->store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", measured));
  assert_true(cJSON_IsFalse(json_at(rows, "0.runs.0.samples.0.suspect")));
  cJSON_Delete(rows);
}

static void samples_of_a_throttled_device_are_suspect(void **state) {
  fixture *f = *state;
  static const rate capped[] = {{"throttled_ratio", 0.5}, {"throttled_by_sw_power_cap_ratio", 0.5}, {0}};
  static const rate free_running[] = {{"throttled_ratio", 0}, {0}};
  const timing_results timing = {TEST_CPU_PROPERTIES, "", NAN, 20, 800, 700};
  store_timing(f->store, timing); /* without the measurement throttled_ratio */
  store_timing_with_conditions(f->store, timing, free_running);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM v_samples WHERE suspect"), 0);
  int64_t id = store_timing_with_conditions(f->store, timing, capped);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM v_samples WHERE suspect"), 8);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", id));
  assert_string_equal(json_at(rows, "0.runs.0.samples.3.suspect_reason")->valuestring,
                      "GPU throttled during timing (SW power cap)");
  assert_true(cJSON_IsTrue(json_at(rows, "0.runs.0.summary.suspect")));
  cJSON_Delete(rows);
  static const rate rates[] = {{"dram_read_bytes_per_s", 1e11}, {0}};
  execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, rates); /* samples below their floor keep that reason */
  id = store_timing_with_conditions(f->store, timing, capped);
  rows = QUERY_ROWS(f->store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", id));
  assert_non_null(strstr(json_at(rows, "0.runs.0.samples.0.suspect_reason")->valuestring, "faster than its floor"));
  assert_non_null(strstr(json_at(rows, "0.runs.0.samples.3.suspect_reason")->valuestring, "throttled"));
  cJSON_Delete(rows);
}

enum { DROP_REASON_COLUMN = 3, OTHER_PROCESSES_COLUMN = 4 };

/* Reads a column of the metric's first row for a suite; "": it is NULL. */
static void read_suite_value(rl_store *store, int64_t job, const char *metric, int column, char text[256]) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *variant, *found;
  ASSERT_OK(rl_store_query(store, RL_QUERY_SUITE_JOB_VALUES,
                           RL_BINDINGS(RL_BIND_INTEGER(":job", job), RL_BIND_TEXT(":metric", metric)), &cursor, &err));
  assert_int_equal(rl_cursor_next(cursor, &variant, &err), 1);
  found = rl_cursor_text(cursor, column);
  snprintf(text, 256, "%s", found != NULL ? found : "");
}

/* Times are dropped while clocks are throttled, but not because a reading before or after an epoch found an idle GPU. */
static void suites_drop_times_of_throttled_epochs(void **state) {
  fixture *f = *state;
  static const struct {
    const char *reasons, *dropped;
  } cases[] = {{"", ""},
               {"gpu_idle", ""},
               {"gpu_idle,applications_clocks_setting", ""},
               {"sw_power_cap", "GPU throttled during timing (SW power cap)"},
               {"gpu_idle,hw_thermal_slowdown,sw_power_cap", "GPU throttled during timing (HW thermal slowdown, SW power cap)"}};
  int64_t id = store_timing(f->store, (timing_results){TEST_CPU_PROPERTIES, "", NAN, 20, 800, 700});
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char sql[160], text[256];
    snprintf(sql, sizeof sql, "UPDATE epochs SET throttle_reasons = '%s'", cases[i].reasons);
    query_integer(f, sql);
    read_suite_value(f->store, id, "epoch_ms_median", DROP_REASON_COLUMN, text);
    assert_string_equal(text, cases[i].dropped);
    read_suite_value(f->store, id, "peak_memory_bytes", DROP_REASON_COLUMN, text);
    assert_string_equal(text, "");
  }
}

static void values_of_suites_name_the_processes_that_shared_the_device(void **state) {
  fixture *f = *state;
  static const rate alone[] = {{"other_processes_before", 0}, {"other_processes_after", 0}, {0}};
  static const rate shared[] = {{"other_processes_after", 1}, {"other_process_4711_memory_bytes", 1200.0 * 1024 * 1024}, {0}};
  const timing_results timing = {TEST_CPU_PROPERTIES, "", NAN, 20, 800, 700};
  char found[256];
  read_suite_value(f->store, store_timing_with_conditions(f->store, timing, alone), "time_cold_us_median", OTHER_PROCESSES_COLUMN,
                   found);
  assert_string_equal(found, "");
  int64_t id = store_timing_with_conditions(f->store, timing, shared);
  read_suite_value(f->store, id, "time_cold_us_median", OTHER_PROCESSES_COLUMN, found);
  assert_string_equal(found, "pid 4711 (1200 MiB)");
  read_suite_value(f->store, id, "peak_memory_bytes", OTHER_PROCESSES_COLUMN, found);
  assert_string_equal(found, "");
}

/* --- choice of ceilings ---------------------------------------------------------------------------------------------------- */

static void floors_use_the_newest_ceilings_of_the_device(void **state) {
  fixture *f = *state;
  static const rate slow[] = {{"fp32_operations_per_s", 1e11}, {0}}, fast[] = {{"fp32_operations_per_s", 1e12}, {0}};
  const timing_results on_gpu = {TEST_GPU_PROPERTIES, "fp32", 1e9, 20, 1e5, 1e5};
  execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, slow);
  assert_no_floor(f, store_timing(f->store, on_gpu), "floor_ms", "run a job");
  execute_ceilings_job(f->store, TEST_GPU_PROPERTIES, slow);
  assert_floor(f, store_timing(f->store, on_gpu), "floor_ms", 10);
  execute_ceilings_job(f->store, TEST_GPU_PROPERTIES, fast);
  assert_floor(f, store_timing(f->store, on_gpu), "floor_ms", 1);
  timing_results other = on_gpu;
  other.properties = GPU_PROPERTIES("590.2", "1980000");
  assert_no_floor(f, store_timing(f->store, other), "floor_ms", "run a job");
  other.properties = GPU_PROPERTIES("580.1", "1755000");
  assert_no_floor(f, store_timing(f->store, other), "floor_ms", "run a job");
}

static void the_list_has_the_newest_ceilings_and_marks_stale_ones(void **state) {
  fixture *f = *state;
  static const rate old[] = {{"fp32_operations_per_s", 1e11}, {"temperature_c_most", 50}, {0}};
  static const rate new[] = {{"fp32_operations_per_s", 2e11}, {"temperature_c_most", 60}, {0}};
  execute_ceilings_job(f->store, TEST_GPU_PROPERTIES, old);
  int64_t newest = execute_ceilings_job(f->store, TEST_GPU_PROPERTIES, new);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_CEILINGS, RL_BIND_TEXT(":device", NULL));
  assert_int_equal(cJSON_GetArraySize(rows), 1);
  assert_number(rows, "0.job", (double)newest);
  assert_number(rows, "0.rates.0.value", 2e11);
  assert_text(rows, "0.conditions.0.name", "temperature_c_most");
  assert_int_equal(cJSON_GetArraySize(json_at(rows, "0.rates")), 1);
  assert_text(rows, "0.device_identity", "GPU-1");
  assert_number(rows, "0.sm_clock_max_mhz", 1980);
  assert_true(cJSON_IsFalse(json_at(rows, "0.stale")));
  cJSON_Delete(rows);
  store_timing(f->store, (timing_results){GPU_PROPERTIES("580.1", "1755000"), "fp32", 1e9, 20, 1e5, 1e5}); /* other clocks */
  rows = QUERY_ROWS(f->store, RL_QUERY_CEILINGS, RL_BIND_TEXT(":device", NULL));
  assert_true(cJSON_IsTrue(json_at(rows, "0.stale")));
  assert_non_null(strstr(json_at(rows, "0.stale_reason")->valuestring, "1755"));
  cJSON_Delete(rows);
  execute_ceilings_job(f->store, GPU_PROPERTIES("590.2", "1980000"), new);
  rows = QUERY_ROWS(f->store, RL_QUERY_CEILINGS, RL_BIND_TEXT(":device", NULL));
  assert_int_equal(cJSON_GetArraySize(rows), 2);
  assert_text(rows, "0.driver", "590.2");
  assert_true(cJSON_IsFalse(json_at(rows, "0.stale")) && cJSON_IsTrue(json_at(rows, "1.stale")));
  assert_non_null(strstr(json_at(rows, "1.stale_reason")->valuestring, "590.2"));
  cJSON_Delete(rows);
  rows = QUERY_ROWS(f->store, RL_QUERY_CEILINGS, RL_BIND_TEXT(":device", "gpu7"));
  assert_int_equal(cJSON_GetArraySize(rows), 0);
  cJSON_Delete(rows);
  store_timing(f->store, (timing_results){TEST_GPU_PROPERTIES, "fp32", 1e9, 20, 1e5, 1e5}); /* the old driver is back */
  assert_int_equal(query_integer(f, "SELECT count(*) FROM v_ceilings WHERE driver = '580.1' AND stale_reason IS NULL"), 1);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM v_ceilings WHERE driver = '590.2' AND stale_reason IS NOT NULL"), 1);
}

static void a_floor_stays_when_its_ceilings_are_deleted(void **state) {
  fixture *f = *state;
  execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, rates_for_10_ms_floor);
  int64_t id = store_timing(f->store, (timing_results){TEST_CPU_PROPERTIES, "fp32", 1e9, 20, 1e5, 1e5});
  assert_int_equal(query_integer(f, "DELETE FROM jobs WHERE kind = 'ceilings'"), -1);
  assert_floor(f, id, "floor_ms", 10);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM passes WHERE ceilings_id IS NOT NULL"), 0);
}

int main(void) {
#define WITH_STORE(TEST) cmocka_unit_test_setup_teardown(TEST, open_fixture, close_fixture)
  const struct CMUnitTest tests[] = {WITH_STORE(without_ceilings_there_is_no_floor),
                                     WITH_STORE(operations_take_time),
                                     WITH_STORE(bytes_take_time),
                                     WITH_STORE(bytes_without_a_known_cache_size_have_no_floor),
                                     WITH_STORE(the_roof_that_applies_is_named),
                                     WITH_STORE(bytes_count_at_the_bandwidth_of_their_direction),
                                     WITH_STORE(without_a_measured_roof_there_is_no_share),
                                     WITH_STORE(an_epoch_that_is_too_fast_is_suspect),
                                     WITH_STORE(a_sample_that_is_too_fast_is_suspect),
                                     WITH_STORE(a_time_just_below_its_floor_has_enough_digits),
                                     WITH_STORE(the_cause_of_a_time_below_its_floor_follows_from_the_ceilings),
                                     WITH_STORE(the_three_largest_processes_are_named),
                                     WITH_STORE(reports_name_processes_that_disturbed_their_ceilings),
                                     WITH_STORE(a_layer_in_285_us_is_suspect),
                                     WITH_STORE(samples_of_a_throttled_device_are_suspect),
                                     WITH_STORE(suites_drop_times_of_throttled_epochs),
                                     WITH_STORE(values_of_suites_name_the_processes_that_shared_the_device),
                                     WITH_STORE(floors_use_the_newest_ceilings_of_the_device),
                                     WITH_STORE(the_list_has_the_newest_ceilings_and_marks_stale_ones),
                                     WITH_STORE(a_floor_stays_when_its_ceilings_are_deleted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
