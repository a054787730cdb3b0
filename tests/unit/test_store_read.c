/* Tests the results of queries and views, their use of indices, and the limit of reader connections. */
#include <pthread.h>

#include "store_fixture.h"

enum { TIMING = 1u << RL_PASS_TIMING, ALL_PASSES = (1u << RL_PASS_COUNT) - 1 };

/* Completes a job with all passes: the fp32 run at scale 1, the fp16 run twice as fast. Returns its id. */
static int64_t complete_job(rl_store *store) {
  int64_t id = submit(store, "cpu", ALL_PASSES);
  for (int pass = 0; pass < RL_PASS_COUNT; pass++) {
    execute_pass(store, "cpu", 1);
    execute_pass(store, "cpu", 0.5);
  }
  return id;
}

static void results_have_runs_epochs_and_summaries(void **state) {
  fixture *f = *state;
  int64_t id = complete_job(f->store);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", id));
  assert_int_equal(cJSON_GetArraySize(rows), 1);
  assert_number(rows, "0.job", (double)id);
  assert_text(rows, "0.state", "completed");
  assert_int_equal(cJSON_GetArraySize(json_at(rows, "0.runs")), 2);
  const cJSON *run = json_at(rows, "0.runs.0");
  assert_text(run, "variant", "fp32");
  assert_text(run, "engine", "blas");
  assert_true(cJSON_IsTrue(json_at(run, "deterministic")) && cJSON_IsFalse(json_at(run, "partial")) &&
              cJSON_IsNull(json_at(run, "dataset_sha256")));
  assert_number(run, "params.batch_size", 64);
  assert_text(run, "device.name", "Test CPU");
  assert_text(run, "commit", "0123456789ab");
  assert_text(run, "passes.1.pass", "activity");
  assert_number(run, "passes.1.activity_rows", 4);
  char pattern[] = "0000-00-00T00:00:00.000000000Z";
  const char *when = json_at(run, "passes.0.finished_at")->valuestring;
  assert_int_equal(strlen(when), strlen(pattern));
  for (size_t i = 0; i < strlen(pattern); i++)
    if (pattern[i] == '0') assert_in_range(when[i], '0', '9');
    else assert_int_equal(when[i], pattern[i]);
  assert_int_equal(cJSON_GetArraySize(json_at(run, "epochs")), 4);
  assert_true(cJSON_IsTrue(json_at(run, "epochs.0.warmup")) && cJSON_IsFalse(json_at(run, "epochs.1.warmup")));
  assert_number(run, "epochs.2.device_ms", 130);
  assert_number(run, "epochs.2.host_ms", 131);
  assert_number(run, "epochs.2.epoch_ms", 130);
  assert_true(cJSON_IsNull(json_at(run, "epochs.2.power_w")));
  assert_text(run, "epochs.2.unavailable.power_w", "no NVML");
  assert_number(run, "summary.epochs", 3);
  assert_number(run, "summary.epoch_ms_median", 110); /* the median of 100 110 130, without the warm-up's 500 */
  assert_number(run, "summary.epoch_ms_min", 100);
  assert_number(run, "summary.images_per_s", 60000 / 0.110);
  assert_number(run, "summary.peak_memory_bytes", 1000);
  assert_number(run, "summary.test_accuracy_ratio", 0.98);
  assert_true(cJSON_IsNull(json_at(run, "summary.launch_gap_ratio")));
  assert_text(run, "summary.unavailable.launch_gap_ratio", "spans do not overlap");
  assert_int_equal(cJSON_GetArraySize(json_at(run, "summary.unavailable")), 1);
  assert_int_equal(cJSON_GetArraySize(json_at(run, "measurements")), 4);
  assert_text(run, "measurements.3.pass", "activity");
  assert_text(run, "measurements.3.reason", "spans do not overlap");
  cJSON_Delete(rows);
  rows = QUERY_ROWS(f->store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", id + 1));
  assert_int_equal(cJSON_GetArraySize(rows), 0);
  cJSON_Delete(rows);
}

/* A pass with samples has no epochs, so the numbers about epochs are null. */
static void a_run_with_samples_has_no_epochs(void **state) {
  fixture *f = *state;
  int64_t id = submit(f->store, "cpu", TIMING);
  rl_claim claimed = claim(f->store, "cpu");
  rl_sample samples[] = {{RL_SAMPLE_WARM, 0, 1.5}, {RL_SAMPLE_COLD, 1, NAN}, {RL_SAMPLE_COLD, 0, 4}};
  rl_records records = {.has_metadata = true,
                        .metadata = {.engine = "cpu", .deterministic = true, .commit = "0123456789ab"},
                        .samples = samples,
                        .sample_count = 3};
  bool done;
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &records, NULL, &done, &err));
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", id));
  const cJSON *run = json_at(rows, "0.runs.0");
  assert_int_equal(cJSON_GetArraySize(json_at(run, "samples")), 3);
  assert_text(run, "samples.0.mode", "cold");
  assert_number(run, "samples.0.ordinal", 0);
  assert_number(run, "samples.0.device_us", 4);
  assert_true(cJSON_IsNull(json_at(run, "samples.1.device_us")));
  assert_text(run, "samples.2.mode", "warm");
  assert_true(cJSON_IsNull(json_at(run, "images_per_epoch")) && cJSON_IsNull(json_at(run, "steps_per_epoch")) &&
              cJSON_IsNull(json_at(run, "parameters")) && cJSON_IsNull(json_at(run, "dataset")));
  assert_int_equal(cJSON_GetArraySize(json_at(run, "epochs")), 0);
  assert_int_equal(cJSON_GetArraySize(json_at(rows, "0.runs.1.samples")), 0);
  cJSON_Delete(rows);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM v_samples WHERE mode = 'cold' AND pass = 'timing'"), 2);
}

static void median_of_an_even_count(void **state) {
  fixture *f = *state;
  int64_t id = submit(f->store, "cpu", TIMING);
  rl_claim claimed = claim(f->store, "cpu");
  pass_records pass_data;
  bool done;
  fill_records(&pass_data, RL_PASS_TIMING, 1);
  pass_data.epochs[0].warmup = false;  /* 500 100 130 110 */
  pass_data.epochs[1].device_ms = NAN; /* its time is then host_ms, 101 */
  ASSERT_OK(rl_store_pass_commit(f->store, &claimed, &pass_data.records, NULL, &done, &err));
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", id));
  assert_number(rows, "0.runs.0.summary.epoch_ms_median", 120);
  assert_number(rows, "0.runs.0.summary.epoch_ms_min", 101);
  assert_true(cJSON_IsNull(json_at(rows, "0.runs.1.summary.epoch_ms_median")));
  assert_text(rows, "0.runs.1.summary.unavailable.epoch_ms_median", "the timing pass is pending");
  assert_text(rows, "0.runs.1.summary.unavailable.launch_gap_ratio", "the job did not ask for the activity pass");
  cJSON_Delete(rows);
}

static void read_run_ids(rl_store *store, int64_t job, int64_t *first, int64_t *second) {
  cJSON *rows = QUERY_ROWS(store, RL_QUERY_RESULTS, RL_BIND_INTEGER(":job", job));
  *first = (int64_t)json_at(rows, "0.runs.0.run")->valuedouble;
  if (second != NULL) *second = (int64_t)json_at(rows, "0.runs.1.run")->valuedouble;
  cJSON_Delete(rows);
}

static void a_comparison_has_ratios_or_their_reasons(void **state) {
  fixture *f = *state;
  int64_t id = complete_job(f->store);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_COMPARISON, RL_BIND_INTEGER(":job", id));
  assert_int_equal(cJSON_GetArraySize(rows), 1);
  assert_text(rows, "0.baseline.variant", "fp32");
  assert_text(rows, "0.candidate.variant", "fp16");
  assert_number(rows, "0.baseline.epoch_ms_median", 110);
  assert_number(rows, "0.candidate.epoch_ms_median", 55);
  assert_number(rows, "0.speedup_ratio", 2);
  assert_number(rows, "0.speedup_min_ratio", 2);
  assert_number(rows, "0.peak_memory_ratio", 0.5);
  assert_number(rows, "0.test_accuracy_difference_ratio", 0);
  assert_number(rows, "0.candidate.launches_per_step", 25);
  assert_text(rows, "0.candidate.unavailable.launch_gap_ratio", "spans do not overlap");
  assert_int_equal(cJSON_GetArraySize(json_at(rows, "0.unavailable")),
                   2); /* speedup_cold_ratio and speedup_warm_ratio, which need samples */
  assert_text(rows, "0.unavailable.speedup_warm_ratio", "fp32: the timing pass did not measure it");
  cJSON_Delete(rows);
  int64_t half = submit(f->store, "cpu", TIMING);
  execute_pass(f->store, "cpu", 1);
  rows = QUERY_ROWS(f->store, RL_QUERY_COMPARISON, RL_BIND_INTEGER(":job", half));
  assert_true(cJSON_IsNull(json_at(rows, "0.speedup_ratio")) && cJSON_IsNull(json_at(rows, "0.peak_memory_ratio")));
  assert_text(rows, "0.unavailable.speedup_ratio", "fp16: the timing pass is pending");
  assert_text(rows, "0.unavailable.test_accuracy_difference_ratio", "fp16: the timing pass is pending");
  cJSON_Delete(rows);
}

/* Compares runs of different jobs, in either order, and a run with itself. If the variants are equal, the reason of a missing
 * ratio names the run. */
static void any_two_runs_are_compared(void **state) {
  fixture *f = *state;
  const int64_t id = complete_job(f->store), other = submit(f->store, "cpu", TIMING);
  int64_t fp32, fp16, pending;
  read_run_ids(f->store, id, &fp32, &fp16);
  read_run_ids(f->store, other, &pending, NULL);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_COMPARISON, RL_BIND_INTEGER(":a", fp16), RL_BIND_INTEGER(":b", fp32));
  assert_int_equal(cJSON_GetArraySize(rows), 1);
  assert_number(rows, "0.baseline.run", (double)fp16);
  assert_number(rows, "0.candidate.run", (double)fp32);
  assert_number(rows, "0.speedup_ratio", 0.5);
  assert_number(rows, "0.peak_memory_ratio", 2);
  assert_true(cJSON_IsNull(json_at(rows, "0.speedup_cold_ratio")));
  assert_text(rows, "0.unavailable.speedup_cold_ratio", "fp16: the timing pass did not measure it");
  cJSON_Delete(rows);
  rows = QUERY_ROWS(f->store, RL_QUERY_COMPARISON, RL_BIND_INTEGER(":a", fp32), RL_BIND_INTEGER(":b", fp32));
  assert_number(rows, "0.speedup_ratio", 1);
  assert_number(rows, "0.test_accuracy_difference_ratio", 0);
  cJSON_Delete(rows);
  rows = QUERY_ROWS(f->store, RL_QUERY_COMPARISON, RL_BIND_INTEGER(":a", fp32), RL_BIND_INTEGER(":b", pending));
  char reason[80];
  snprintf(reason, sizeof reason, "fp32 of run %lld: the timing pass is pending", (long long)pending);
  assert_number(rows, "0.baseline.job", (double)id);
  assert_number(rows, "0.candidate.job", (double)other);
  assert_text(rows, "0.unavailable.speedup_ratio", reason);
  cJSON_Delete(rows);
  query_integer(f, "UPDATE runs SET workload = 'another' WHERE id = (SELECT max(id) FROM runs)");
  rows = QUERY_ROWS(f->store, RL_QUERY_COMPARISON, RL_BIND_INTEGER(":a", fp32), RL_BIND_INTEGER(":b", pending + 1));
  assert_int_equal(cJSON_GetArraySize(rows), 0);
  cJSON_Delete(rows);
}

static void without_a_baseline_there_is_no_comparison(void **state) {
  fixture *f = *state;
  rl_job_spec spec = make_spec("cpu", TIMING);
  strcpy(spec.runs[0].variant, "tf32");
  int64_t id = 0;
  bool existing;
  ASSERT_OK(rl_store_job_insert(f->store, &spec, NULL, NULL, 10, &id, &existing, &err));
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_COMPARISON, RL_BIND_INTEGER(":job", id));
  assert_int_equal(cJSON_GetArraySize(rows), 0);
  cJSON_Delete(rows);
}

static void kernels_have_phases_and_metrics(void **state) {
  fixture *f = *state;
  int64_t id = complete_job(f->store);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_KERNELS, RL_BIND_INTEGER(":job", id));
  assert_int_equal(cJSON_GetArraySize(rows), 8);
  int64_t third = (int64_t)json_at(rows, "2.id")->valuedouble, run = (int64_t)json_at(rows, "2.run")->valuedouble;
  assert_text(rows, "0.name", "conv1_forward");
  assert_number(rows, "0.grid.2", 4);
  assert_text(rows, "0.reason", "not known");
  assert_int_equal(cJSON_GetArraySize(json_at(rows, "0.phases")), 2);
  assert_text(rows, "0.phases.0.name", "load"), assert_text(rows, "0.phases.0.phase", "forward");
  assert_number(rows, "0.phases.0.steps", 32), assert_number(rows, "0.phases.0.blocks", 128);
  assert_number(rows, "0.phases.0.mean_us", 1.5), assert_number(rows, "0.phases.0.min_us", 0);
  assert_text(rows, "0.phases.1.name", "wait");
  assert_true(cJSON_IsNull(json_at(rows, "0.phases.1.phase")) && cJSON_IsNull(json_at(rows, "0.phases.1.min_us")));
  assert_number(rows, "0.phases.1.share_ratio", 0.25);
  assert_int_equal(cJSON_GetArraySize(json_at(rows, "1.phases")), 0);
  assert_text(rows, "0.code_sha256", "c0de");
  assert_true(cJSON_IsNull(json_at(rows, "1.code_sha256")));
  assert_true(cJSON_IsNull(json_at(rows, "1.grid")) && cJSON_IsNull(json_at(rows, "1.total_us")) &&
              cJSON_IsNull(json_at(rows, "1.launch")));
  cJSON_Delete(rows);
  rows = QUERY_ROWS(f->store, RL_QUERY_KERNELS, RL_BIND_INTEGER(":job", id), RL_BIND_INTEGER(":after", third),
                    RL_BIND_INTEGER(":limit", 2));
  assert_int_equal(cJSON_GetArraySize(rows), 2);
  assert_number(rows, "0.id", (double)third + 1);
  cJSON_Delete(rows);
  rows = QUERY_ROWS(f->store, RL_QUERY_KERNELS, RL_BIND_INTEGER(":job", id), RL_BIND_TEXT(":pass", "counters"),
                    RL_BIND_INTEGER(":run", run));
  assert_int_equal(cJSON_GetArraySize(rows), 2);
  assert_text(rows, "0.variant", "fp16");
  assert_text(rows, "0.metrics.0.metric", "dram__bytes.sum");
  assert_number(rows, "0.metrics.0.value", 4096);
  assert_text(rows, "0.metrics.1.reason", "not offered");
  assert_int_equal(cJSON_GetArraySize(json_at(rows, "1.metrics")), 0);
  cJSON_Delete(rows);
}

static void views_have_series_and_instructions(void **state) {
  fixture *f = *state;
  complete_job(f->store);
  assert_int_equal(
      query_integer(
          f,
          "SELECT counts ->> '$.inst_executed' FROM v_instructions WHERE kernel = 0 AND variant = 'fp16' AND opcode = 'LDG.E' "
          "AND line = 7 AND reason IS NULL"),
      64);
  assert_int_equal(
      query_integer(f,
                    "SELECT min(sass IS NULL AND opcode IS NULL AND line IS NULL AND reason = 'nvdisasm is not installed') "
                    "FROM v_instructions WHERE \"offset\" = 16"),
      1);
  assert_int_equal(query_integer(f, "SELECT min(value = 12.5) FROM v_series WHERE series = 'sm_active_pct' AND x = 0"), 1);
  assert_int_equal(query_integer(f, "SELECT min(value IS NULL) FROM v_series WHERE x = 1000"), 1);
}

static void a_timeline_has_the_rows_of_its_window(void **state) {
  fixture *f = *state;
  int64_t id = complete_job(f->store), run = query_integer(f, "SELECT min(id) FROM runs");
  /* rows of a run: the range [0, 1000), kernels [100, 200) [300, 400), the phase [500, 600) */
  static const struct {
    int64_t from, to;
    int count;
  } windows[] = {{0, 2000, 4},  {0, 100, 1},    {0, 101, 2},     {199, 300, 2}, {200, 300, 1},
                 {550, 560, 2}, {999, 1001, 1}, {1000, 2000, 0}, {0, 0, 0}};
  for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
    cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_TIMELINE, RL_BIND_INTEGER(":job", id), RL_BIND_INTEGER(":run", run),
                             RL_BIND_INTEGER(":from", windows[i].from), RL_BIND_INTEGER(":to", windows[i].to));
    if (cJSON_GetArraySize(rows) != windows[i].count)
      fail_msg("[%d, %d): %d rows", (int)windows[i].from, (int)windows[i].to, cJSON_GetArraySize(rows));
    cJSON_Delete(rows);
  }
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_TIMELINE, RL_BIND_INTEGER(":job", id), RL_BIND_INTEGER(":limit", 3));
  assert_int_equal(cJSON_GetArraySize(rows), 3);
  assert_text(rows, "0.kind", "range");
  assert_text(rows, "0.name", "epoch");
  assert_true(cJSON_IsNull(json_at(rows, "0.grid")) && cJSON_IsNull(json_at(rows, "0.stream")) &&
              cJSON_IsNull(json_at(rows, "0.bytes")));
  assert_text(rows, "1.kind", "kernel");
  assert_text(rows, "1.name", "conv1_forward");
  assert_number(rows, "1.start_ns", 100);
  assert_number(rows, "1.end_ns", 200);
  assert_number(rows, "1.stream", 7);
  assert_number(rows, "1.block.0", 32);
  assert_true(cJSON_IsNull(json_at(rows, "1.step")));
  cJSON_Delete(rows);
  rows = QUERY_ROWS(f->store, RL_QUERY_TIMELINE, RL_BIND_INTEGER(":job", id), RL_BIND_INTEGER(":run", run),
                    RL_BIND_INTEGER(":from", 550), RL_BIND_INTEGER(":to", 560));
  assert_text(rows, "1.kind", "phase");
  assert_number(rows, "1.step", 4); /* counted from 0 */
  cJSON_Delete(rows);
  assert_int_equal(query_integer(f, "SELECT min(step = 4) FROM v_activity WHERE kind = 'phase'"), 1);
  assert_int_equal(query_integer(f, "SELECT count(*) = 4 AND sum(mean_us * steps) = 4 * 32 FROM v_phases WHERE kernel = 0"), 1);
}

static void a_history_has_the_values_of_all_runs(void **state) {
  fixture *f = *state;
  execute_ceilings_job(f->store, TEST_CPU_PROPERTIES, rates_for_10_ms_floor);
  int64_t first = complete_job(f->store);
  submit(f->store, "gpu0", TIMING);
  execute_pass(f->store, "gpu0", 3);
  execute_pass(f->store, "gpu0", 0.01);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_HISTORY, RL_BIND_TEXT(":metric", "epoch_ms_median"));
  assert_int_equal(cJSON_GetArraySize(rows), 4);
  assert_number(rows, "0.job", (double)first);
  assert_number(rows, "0.value", 110);
  assert_text(rows, "0.metric", "epoch_ms_median");
  assert_text(rows, "0.commit", "0123456789ab");
  assert_true(cJSON_IsFalse(json_at(rows, "0.suspect")) && cJSON_IsTrue(json_at(rows, "3.suspect")) &&
              cJSON_IsFalse(json_at(rows, "3.partial")));
  char when[40];
  snprintf(when, sizeof when, "%s", json_at(rows, "2.at")->valuestring);
  assert_true(strcmp(json_at(rows, "1.at")->valuestring, when) <= 0);
  cJSON_Delete(rows);
  static const struct {
    const char *metric, *workload, *device;
    int count;
  } cases[] = {{"images_per_s", NULL, "gpu0", 2},     {"test_accuracy_ratio", "mnist_cnn", NULL, 4},
               {"peak_memory_bytes", NULL, "cpu", 2}, {"launches_per_step", "other", NULL, 0},
               {"launch_gap_ratio", NULL, NULL, 0},   {"nothing", NULL, NULL, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rows = QUERY_ROWS(f->store, RL_QUERY_HISTORY, RL_BIND_TEXT(":metric", cases[i].metric),
                      RL_BIND_TEXT(":workload", cases[i].workload), RL_BIND_TEXT(":device", cases[i].device));
    if (cJSON_GetArraySize(rows) != cases[i].count) fail_msg("%s: %d rows", cases[i].metric, cJSON_GetArraySize(rows));
    cJSON_Delete(rows);
  }
  int64_t cut = query_integer(f, "SELECT max(finished_ns) FROM passes");
  rows = QUERY_ROWS(f->store, RL_QUERY_HISTORY, RL_BIND_TEXT(":metric", "images_per_s"), RL_BIND_INTEGER(":from", cut));
  assert_int_equal(cJSON_GetArraySize(rows), 1);
  cJSON_Delete(rows);
  rows = QUERY_ROWS(f->store, RL_QUERY_HISTORY, RL_BIND_TEXT(":metric", "images_per_s"), RL_BIND_INTEGER(":to", cut),
                    RL_BIND_INTEGER(":limit", 2));
  assert_int_equal(cJSON_GetArraySize(rows), 2);
  cJSON_Delete(rows);
}

static void jobs_are_filtered_and_paged(void **state) {
  fixture *f = *state;
  int64_t ids[5];
  for (int i = 0; i < 5; i++) ids[i] = submit(f->store, i < 3 ? "cpu" : "gpu0", TIMING);
  claim(f->store, "cpu");
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_JOBS, RL_BIND_INTEGER(":limit", 2));
  assert_int_equal(cJSON_GetArraySize(rows), 2);
  assert_number(rows, "0.id", (double)ids[4]);
  assert_text(rows, "0.workload", "mnist_cnn");
  assert_text(rows, "0.runs.1.variant", "fp16");
  assert_true(cJSON_IsNull(json_at(rows, "0.problem")) && cJSON_IsNull(json_at(rows, "0.started_at")));
  cJSON_Delete(rows);
  rows = QUERY_ROWS(f->store, RL_QUERY_JOBS, RL_BIND_INTEGER(":before", ids[3]), RL_BIND_TEXT(":device", "cpu"),
                    RL_BIND_TEXT(":state", "queued"), RL_BIND_TEXT(":kind", "train"));
  assert_int_equal(cJSON_GetArraySize(rows), 2);
  assert_number(rows, "1.id", (double)ids[1]);
  cJSON_Delete(rows);
  rows = QUERY_ROWS(f->store, RL_QUERY_JOBS, RL_BIND_TEXT(":kind", "other"));
  assert_int_equal(cJSON_GetArraySize(rows), 0);
  cJSON_Delete(rows);
  rows = QUERY_ROWS(f->store, RL_QUERY_JOB, RL_BIND_INTEGER(":id", ids[0]));
  assert_text(rows, "0.state", "running");
  assert_text(rows, "0.request.kind", "train");
  assert_text(rows, "0.runs.0.passes.0.state", "running");
  assert_number(rows, "0.passes.total", 2);
  cJSON_Delete(rows);
}

static void submit_with_params(rl_store *store, const char *params, const char *nondefault_params) {
  rl_job_spec spec = make_spec("cpu", TIMING);
  int64_t id = 0;
  bool existing;
  for (int i = 0; i < spec.run_count; i++) {
    snprintf(spec.runs[i].params, sizeof spec.runs[i].params, "%s", params);
    snprintf(spec.runs[i].nondefault_params, sizeof spec.runs[i].nondefault_params, "%s", nondefault_params);
  }
  ASSERT_OK(rl_store_job_insert(store, &spec, NULL, NULL, 1000, &id, &existing, &err));
  for (int i = 0; i < spec.run_count; i++) execute_pass(store, "cpu", 1);
}

/* The workload got the parameter dropout after the first job. The first two jobs have its default. */
static void runs_are_alike_by_nondefault_params(void **state) {
  fixture *f = *state;
  submit_with_params(f->store, "{\"batch_size\":64}", "{}");
  submit_with_params(f->store, "{\"batch_size\":64,\"dropout\":0}", "{}");
  submit_with_params(f->store, "{\"batch_size\":64,\"dropout\":0.5}", "{\"dropout\":0.5}");
  cJSON *rows =
      QUERY_ROWS(f->store, RL_QUERY_HISTORY, RL_BIND_TEXT(":metric", "epoch_ms_median"), RL_BIND_INTEGER(":repetitions_of", 1));
  assert_int_equal(cJSON_GetArraySize(rows), 2);
  assert_number(rows, "0.run", 1);
  assert_number(rows, "1.run", 3);
  cJSON_Delete(rows);
  bool found = true;
  ASSERT_OK(rl_store_has_run(f->store, 99, &found, &err));
  assert_false(found);
  ASSERT_OK(rl_store_has_run(f->store, 3, &found, &err));
  assert_true(found);
}

static void views_can_be_queried(void **state) {
  fixture *f = *state;
  complete_job(f->store);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM v_epochs WHERE variant = 'fp16' AND NOT warmup"), 3);
  assert_int_equal(
      query_integer(f, "SELECT count(*) FROM v_kernels WHERE pass = 'counters' AND metrics ->> '$.\"dram__bytes.sum\"' = 4096"),
      2);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM v_measurements WHERE name = 'floor_ms'"), 2);
  assert_int_equal(query_integer(f, "SELECT count(*) FROM v_activity WHERE kind = 'kernel' AND duration_ns = 100"), 4);
  assert_int_equal(query_integer(f, "SELECT speedup_ratio FROM v_comparisons WHERE candidate_variant = 'fp16'"), 2);
  assert_int_equal(query_integer(f, "SELECT epoch_ms_median FROM v_runs WHERE precision = 'fp32' AND batch_size = 64"), 110);
}

/* Returns whether the step scans rows that an earlier step of the plan materialized. */
static bool scans_materialized(const char *materialized, const char *step) {
  char name[64], phrase[80];
  if (sscanf(step, "SCAN %63s", name) != 1) return false;
  snprintf(phrase, sizeof phrase, " %s;", name);
  return strstr(materialized, phrase) != NULL;
}

/* No statement scans a table that grows with the number of jobs, except one that retention executes once an hour. */
static void statements_use_indices(void **state) {
  fixture *f = *state;
  rl_db *db = &f->store->writer;
  for (const rl_embedded *text = rl_statements; text->name != NULL; text++) {
    char sql[16384], materialized[1024] = "", name[64];
    sqlite3_stmt *plan = NULL;
    snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", text->text);
    if (sqlite3_prepare_v2(db->handle, sql, -1, &plan, NULL) != SQLITE_OK)
      fail_msg("%s: %s", text->name, sqlite3_errmsg(db->handle));
    while (sqlite3_step(plan) == SQLITE_ROW) {
      const char *step = (const char *)sqlite3_column_text(plan, 3);
      bool bounded = strstr(step, "VIRTUAL TABLE") != NULL || strncmp(step, "SCAN sqlite_", 12) == 0 ||
                     strncmp(step, "SCAN (", 6) == 0 || strstr(step, "CONSTANT ROW") != NULL || /* VALUES */
                     strcmp(step, "SCAN devices") == 0 || /* as few as there are devices and drivers */
                     scans_materialized(materialized, step);
      if (sscanf(step, "MATERIALIZE %63s", name) == 1 || sscanf(step, "CO-ROUTINE %63s", name) == 1)
        snprintf(materialized + strlen(materialized), sizeof materialized - strlen(materialized), " %s;", name);
      if (strncmp(step, "SCAN", 4) == 0 && !bounded && strcmp(text->name, "needed_bytes") != 0 &&
          strncmp(text->name, "token", 5) != 0) /* the table of tokens is small */
        fail_msg("%s: %s", text->name, step);
    }
    sqlite3_finalize(plan);
  }
}

/* Executes every SELECT of docs/schema.md. */
static void documented_examples_run(void **state) {
  fixture *f = *state;
  static char text[1 << 16];
  FILE *document = fopen(RL_SOURCE "/docs/schema.md", "r");
  assert_non_null(document);
  text[fread(text, 1, sizeof text - 1, document)] = '\0';
  fclose(document);
  int examples = 0;
  for (char *start = text; (start = strstr(start, "\n    SELECT ")) != NULL; examples++) {
    char *end = strchr(start, ';');
    assert_non_null(end);
    *end = '\0';
    query_integer(f, start);
    start = end + 1;
  }
  assert_int_equal(examples, 11);
}

/* Tests the SQL functions that functions.h declares. */
static void sql_functions_format_json_and_times(void **state) {
  fixture *f = *state;
  sqlite3 *db = f->store->writer.handle;
  static const char *const equal[] = {
      "json_object('a', stored_json('[1]')) = '{\"a\":[1]}'",
      "json_object('a', stored_json(NULL)) = '{\"a\":null}'",
      "json_array('[1]', stored_json('\"x\"')) = '[\"[1]\",\"x\"]'",
      "utc_text(NULL) IS NULL",
      "utc_text(0) = '1970-01-01T00:00:00.000000000Z'",
  };
  for (size_t i = 0; i < sizeof equal / sizeof *equal; i++) {
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT %s", equal[i]);
    if (query_integer_on(db, sql) != 1) fail_msg("%s", equal[i]);
  }
  complete_job(f->store);
  assert_int_equal(sqlite3_exec(db,
                                "WITH n (ns) AS (VALUES (1), (999999999), (1000000000), (1700000000123456789), "
                                "(4102444799999999999)) INSERT INTO passes (job_id, run_id, ordinal, name, started_ns) "
                                "SELECT 1, 1, 10 + row_number() OVER (), 'timing', ns FROM n",
                                NULL, NULL, NULL),
                   SQLITE_OK);
  assert_int_equal(query_integer_on(db, "SELECT count(*) FROM passes WHERE utc_text(started_ns) IS NOT started_at"), 0);
  assert_true(query_integer_on(db, "SELECT count(*) FROM passes WHERE utc_text(started_ns) = started_at") > 5);
}

static void wrong_parameters_are_refused(void **state) {
  fixture *f = *state;
  rl_cursor *cursor = NULL;
  ASSERT_FAILS(rl_store_query(f->store, RL_QUERY_JOB, RL_BINDINGS(RL_BIND_INTEGER(":job", 1)), &cursor, &err), RL_STORAGE,
               RL_STORAGE_INTERNAL);
  assert_null(cursor);
}

static void cursor_keeps_its_snapshot(void **state) {
  fixture *f = *state;
  int64_t id = submit(f->store, "cpu", TIMING), seq = 0;
  ASSERT_OK(rl_store_event_append(f->store, id, "a", "{}", &seq, &err));
  rl_cursor *cursor = NULL;
  const char *text = NULL;
  ASSERT_OK(rl_store_query(f->store, RL_QUERY_EVENTS, RL_BINDINGS(RL_BIND_INTEGER(":job", id)), &cursor, &err));
  assert_int_equal(rl_cursor_next(cursor, &text, &err), 1);
  ASSERT_OK(rl_store_event_append(f->store, id, "b", "{}", &seq, &err));
  assert_int_equal(rl_cursor_next(cursor, &text, &err), 1);
  assert_int_equal(rl_cursor_next(cursor, &text, &err), 0);
  assert_int_equal(rl_cursor_next(cursor, &text, &err), 0); /* a further call returns 0 again */
  rl_cursor_close(cursor);
  rl_cursor_close(NULL);
  cJSON *rows = QUERY_ROWS(f->store, RL_QUERY_EVENTS, RL_BIND_INTEGER(":job", id));
  assert_int_equal(cJSON_GetArraySize(rows), 3);
  cJSON_Delete(rows);
}

static void readers_are_bounded(void **state) {
  fixture *f = *state;
  rl_cursor *cursors[33] = {NULL};
  for (int i = 0; i < 32; i++) ASSERT_OK(rl_store_query(f->store, RL_QUERY_JOBS, NULL, 0, &cursors[i], &err));
  ASSERT_FAILS(rl_store_query(f->store, RL_QUERY_JOBS, NULL, 0, &cursors[32], &err), RL_LIMIT, RL_LIMIT_BUSY);
  rl_cursor_close(cursors[0]);
  ASSERT_OK(rl_store_query(f->store, RL_QUERY_JOBS, NULL, 0, &cursors[0], &err));
  for (int i = 0; i < 32; i++) rl_cursor_close(cursors[i]);
}

typedef struct thread_work {
  rl_store *store;
  int successes;
} thread_work;

/* Returns whether a write failed because other threads held the writer for a second, which can happen on a busy machine. Such a
 * write has changed nothing, so the caller repeats it. */
static bool must_repeat(int rc, const rl_error *error) { return rc < 0 && rl_is_storage_locked(error); }

static void *write_jobs(void *context) {
  thread_work *work = context;
  rl_error error;
  rl_job_spec spec = make_spec("cpu", TIMING);
  for (int i = 0; i < 20; i++) {
    int64_t id = 0, seq = 0;
    bool existing;
    int rc;
    do rc = rl_store_job_insert(work->store, &spec, NULL, NULL, 1000, &id, &existing, &error);
    while (must_repeat(rc, &error));
    if (rc < 0) continue;
    do rc = rl_store_event_append(work->store, id, "progress", "{}", &seq, &error);
    while (must_repeat(rc, &error));
    if (rc == 0 && seq == 2) work->successes++;
  }
  return NULL;
}

static void *read_jobs(void *context) {
  thread_work *work = context;
  rl_error error;
  for (int i = 0; i < 40; i++) {
    RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
    const char *text;
    rl_job_counts counts;
    if (rl_store_query(work->store, RL_QUERY_JOBS, NULL, 0, &cursor, &error) < 0) continue;
    int more;
    while ((more = rl_cursor_next(cursor, &text, &error)) > 0) {
    }
    if (more == 0 && rl_store_count_jobs(work->store, &counts, &error) == 0) work->successes++;
  }
  return NULL;
}

static void threads_read_and_write_at_once(void **state) {
  fixture *f = *state;
  pthread_t threads[8];
  thread_work works[8];
  for (int i = 0; i < 8; i++) {
    works[i] = (thread_work){.store = f->store};
    assert_int_equal(pthread_create(&threads[i], NULL, i < 4 ? write_jobs : read_jobs, &works[i]), 0);
  }
  for (int i = 0; i < 8; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(works[i].successes, i < 4 ? 20 : 40);
  }
  rl_job_counts counts;
  ASSERT_OK(rl_store_count_jobs(f->store, &counts, &err));
  assert_int_equal(counts.queued, 80);
}

#define WITH_STORE(TEST) cmocka_unit_test_setup_teardown(TEST, open_fixture, close_fixture)

int main(void) {
  const struct CMUnitTest tests[] = {WITH_STORE(results_have_runs_epochs_and_summaries),
                                     WITH_STORE(a_run_with_samples_has_no_epochs),
                                     WITH_STORE(median_of_an_even_count),
                                     WITH_STORE(a_comparison_has_ratios_or_their_reasons),
                                     WITH_STORE(any_two_runs_are_compared),
                                     WITH_STORE(without_a_baseline_there_is_no_comparison),
                                     WITH_STORE(kernels_have_phases_and_metrics),
                                     WITH_STORE(views_have_series_and_instructions),
                                     WITH_STORE(a_timeline_has_the_rows_of_its_window),
                                     WITH_STORE(a_history_has_the_values_of_all_runs),
                                     WITH_STORE(jobs_are_filtered_and_paged),
                                     WITH_STORE(runs_are_alike_by_nondefault_params),
                                     WITH_STORE(views_can_be_queried),
                                     WITH_STORE(statements_use_indices),
                                     WITH_STORE(documented_examples_run),
                                     WITH_STORE(sql_functions_format_json_and_times),
                                     WITH_STORE(wrong_parameters_are_refused),
                                     WITH_STORE(cursor_keeps_its_snapshot),
                                     WITH_STORE(readers_are_bounded),
                                     WITH_STORE(threads_read_and_write_at_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
