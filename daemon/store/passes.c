/* Passes: claiming one, storing all that it yielded, putting it back when its worker died. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "store/internal.h"

/* --- claim ------------------------------------------------------------------------------------------------------------- */

static void copy(char *to, size_t size, sqlite3_stmt *row, int column) {
  const char *text = (const char *)sqlite3_column_text(row, column);
  size_t length = text != NULL ? strnlen(text, size - 1) : 0;
  memcpy(to, text != NULL ? text : "", length);
  to[length] = '\0';
}

static int next_pass(rl_db *db, const char *device, rl_claim *claim, rl_error *err) {
  rl_auto(rl_db_release) sqlite3_stmt *row = NULL;
  int found = rl_db_row(db, err, "pass_next", &row, RL_TEXT(":device", device));
  if (found <= 0) return found;
  *claim = (rl_claim){.job_id = sqlite3_column_int64(row, 0),
                      .run_id = sqlite3_column_int64(row, 1),
                      .pass_id = sqlite3_column_int64(row, 2),
                      .pass = (rl_pass)sqlite3_column_int(row, 3),
                      .deadline_ns = sqlite3_column_int64(row, 7) * 1000000000};
  copy(claim->run.workload, sizeof claim->run.workload, row, 4);
  copy(claim->run.variant, sizeof claim->run.variant, row, 5);
  copy(claim->run.params, sizeof claim->run.params, row, 6);
  copy(claim->profile, sizeof claim->profile, row, 8);
  const char *source = (const char *)sqlite3_column_text(row, 9);
  if (source == NULL) return 1;
  claim->source = strdup(source);
  return claim->source != NULL ? 1 : rl_fail(err, RL_SYS, ENOMEM, "no memory for posted code");
}

/* An update of a job at this moment: 1 when it changed the job. */
static int if_changed(rl_db *db, const char *name, int64_t job_id, int64_t now, rl_error *err) {
  rl_auto(rl_db_release) sqlite3_stmt *row = NULL;
  int changed = rl_db_row(db, err, name, &row, RL_INT(":job", job_id), RL_INT(":now", now));
  return changed > 0 && rl_db_step(db, row, err) < 0 ? -1 : changed;
}

static int claim_pass(rl_db *db, const char *device, rl_claim *claim, rl_error *err) {
  int found = next_pass(db, device, claim, err);
  if (found <= 0) return found;
  int64_t now = rl_now_ns();
  if (rl_db_run(db, err, "pass_start", RL_INT(":pass", claim->pass_id), RL_INT(":now", now)) < 0) return -1;
  int starts = if_changed(db, "job_start", claim->job_id, now, err);
  if (starts > 0) starts = rl_store_tell_state(db, claim->job_id, RL_JOB_RUNNING, NULL, err);
  return starts < 0 ? -1 : 1;
}

int rl_store_pass_claim(rl_store *store, const char *device, rl_claim *claim, rl_error *err) {
  rl_claim taken = {0};
  if (rl_store_begin(store, err) < 0) return -1;
  int rc = rl_store_end(store, claim_pass(&store->writer, device, &taken, err), err);
  if (rc > 0) *claim = taken;
  else rl_claim_clear(&taken);
  return rc;
}

/* --- commit ------------------------------------------------------------------------------------------------------------ */

static int store_facts(rl_db *db, const rl_claim *claim, const rl_run_facts *facts, rl_error *err) {
  if (facts->device_facts[0] != '\0' &&
      rl_db_run(db, err, "device_insert", RL_TEXT(":facts", facts->device_facts), RL_INT(":now", rl_now_ns())) < 0)
    return -1;
  return rl_db_run(db, err, "run_facts", RL_INT(":run", claim->run_id), RL_TEXT(":engine", facts->engine),
                   RL_TEXT_OR_NULL(":dataset", facts->dataset), RL_TEXT_OR_NULL(":dataset_sha256", facts->dataset_sha256),
                   RL_INT(":deterministic", facts->deterministic),
                   RL_TEXT_OR_NULL(":deterministic_note", facts->deterministic_note), RL_INT(":partial", facts->partial),
                   RL_INT(":images_per_epoch", facts->images_per_epoch), RL_INT(":steps_per_epoch", facts->steps_per_epoch),
                   RL_INT(":parameters", facts->parameters), RL_REAL(":floor_operations", facts->floor_operations),
                   RL_REAL(":floor_bytes", facts->floor_bytes), RL_REAL(":floor_written_bytes", facts->floor_written_bytes),
                   RL_TEXT_OR_NULL(":floor_precision", facts->floor_precision));
}

static int store_epoch(rl_db *db, int64_t pass, const rl_epoch *epoch, rl_error *err) {
  return rl_db_run(db, err, "epoch_insert", RL_INT(":pass", pass), RL_INT(":epoch", epoch->epoch),
                   RL_INT(":warmup", epoch->warmup), RL_REAL(":device_ms", epoch->device_ms), RL_REAL(":host_ms", epoch->host_ms),
                   RL_REAL(":evaluation_ms", epoch->evaluation_ms), RL_REAL(":images", epoch->images),
                   RL_REAL(":train_loss", epoch->train_loss), RL_REAL(":test_loss", epoch->test_loss),
                   RL_REAL(":test_accuracy_ratio", epoch->test_accuracy_ratio), RL_REAL(":loss_scale", epoch->loss_scale),
                   RL_REAL(":skipped_steps", epoch->skipped_steps), RL_REAL(":sm_clock_before_mhz", epoch->sm_clock_before_mhz),
                   RL_REAL(":sm_clock_after_mhz", epoch->sm_clock_after_mhz),
                   RL_REAL(":memory_clock_mhz", epoch->memory_clock_mhz), RL_REAL(":temperature_c", epoch->temperature_c),
                   RL_REAL(":power_w", epoch->power_w), RL_TEXT(":throttle_reasons", epoch->throttle_reasons),
                   RL_TEXT_OR_NULL(":unavailable", epoch->unavailable));
}

static int store_sample(rl_db *db, int64_t pass, const rl_sample *sample, rl_error *err) {
  return rl_db_run(db, err, "sample_insert", RL_INT(":pass", pass), RL_TEXT(":mode", rl_sample_mode_names[sample->mode]),
                   RL_INT(":ordinal", sample->ordinal), RL_REAL(":device_us", sample->device_us));
}

static int store_measurement(rl_db *db, int64_t pass, const rl_measurement *measurement, rl_error *err) {
  return rl_db_run(db, err, "measurement_insert", RL_INT(":pass", pass), RL_TEXT(":name", measurement->name),
                   RL_REAL(":value", measurement->value), RL_TEXT_OR_NULL(":reason", measurement->reason));
}

static int store_kernel(rl_db *db, int64_t pass, const rl_kernel *kernel, rl_error *err) {
  return rl_db_run(db, err, "kernel_insert", RL_INT(":pass", pass), RL_INT(":ordinal", kernel->ordinal),
                   RL_TEXT_OR_NULL(":launch", kernel->launch), RL_TEXT_OR_NULL(":phase", kernel->phase),
                   RL_TEXT(":name", kernel->name), RL_INT(":launches", kernel->launches), RL_REAL(":total_us", kernel->total_us),
                   RL_REAL(":min_us", kernel->min_us), RL_REAL(":median_us", kernel->median_us),
                   RL_REAL(":max_us", kernel->max_us), RL_REAL(":share_ratio", kernel->share_ratio),
                   RL_REAL(":registers_per_thread", kernel->registers_per_thread),
                   RL_REAL(":static_shared_bytes", kernel->static_shared_bytes),
                   RL_REAL(":dynamic_shared_bytes", kernel->dynamic_shared_bytes), RL_INT(":grid_x", kernel->grid_x),
                   RL_INT(":grid_y", kernel->grid_y), RL_INT(":grid_z", kernel->grid_z), RL_INT(":block_x", kernel->block_x),
                   RL_INT(":block_y", kernel->block_y), RL_INT(":block_z", kernel->block_z),
                   RL_REAL(":theoretical_occupancy_ratio", kernel->theoretical_occupancy_ratio),
                   RL_TEXT_OR_NULL(":code_sha256", kernel->code_sha256), RL_TEXT_OR_NULL(":reason", kernel->reason));
}

static int store_phase(rl_db *db, int64_t pass, const rl_phase *phase, rl_error *err) {
  return rl_db_run(db, err, "phase_insert", RL_INT(":pass", pass), RL_INT(":ordinal", phase->ordinal),
                   RL_INT(":position", phase->position), RL_TEXT(":name", phase->name), RL_TEXT_OR_NULL(":phase", phase->phase),
                   RL_INT(":steps", phase->steps), RL_INT(":blocks", phase->blocks), RL_REAL(":mean_us", phase->mean_us),
                   RL_REAL(":min_us", phase->min_us), RL_REAL(":max_us", phase->max_us),
                   RL_REAL(":share_ratio", phase->share_ratio));
}

static int store_metric(rl_db *db, int64_t pass, const rl_kernel_metric *metric, rl_error *err) {
  return rl_db_run(db, err, "kernel_metric_insert", RL_INT(":pass", pass), RL_INT(":ordinal", metric->ordinal),
                   RL_TEXT(":metric", metric->metric), RL_REAL(":value", metric->value),
                   RL_TEXT_OR_NULL(":reason", metric->reason));
}

static int store_instruction(rl_db *db, int64_t pass, const rl_instruction *instruction, rl_error *err) {
  return rl_db_run(db, err, "instruction_insert", RL_INT(":pass", pass), RL_INT(":ordinal", instruction->ordinal),
                   RL_INT(":offset", instruction->offset), RL_TEXT_OR_NULL(":opcode", instruction->opcode),
                   RL_TEXT_OR_NULL(":sass", instruction->sass), RL_TEXT_OR_NULL(":file", instruction->file),
                   RL_INT(":line", instruction->line), RL_TEXT(":counts", instruction->counts),
                   RL_TEXT_OR_NULL(":reason", instruction->reason));
}

static int store_point(rl_db *db, int64_t pass, const rl_series_point *point, rl_error *err) {
  return rl_db_run(db, err, "series_insert", RL_INT(":pass", pass), RL_INT(":ordinal", point->ordinal),
                   RL_TEXT(":name", point->name), RL_REAL(":x", point->x), RL_REAL(":value", point->value));
}

static int store_activity(rl_db *db, int64_t pass, size_t ordinal, const rl_activity_row *row, rl_error *err) {
  return rl_db_run(db, err, "activity_insert", RL_INT(":pass", pass), RL_INT(":kind", row->kind),
                   RL_INT(":start_ns", row->start_ns), RL_INT(":ordinal", ordinal), RL_INT(":end_ns", row->end_ns),
                   RL_INT(":name", row->name), RL_INT(":stream", row->stream), RL_INT(":correlation", row->correlation),
                   RL_INT(":graph_node", row->graph_node), RL_INT(":step", row->step), RL_INT(":grid_x", row->grid[0]),
                   RL_INT(":grid_y", row->grid[1]), RL_INT(":grid_z", row->grid[2]), RL_INT(":block_x", row->block[0]),
                   RL_INT(":block_y", row->block[1]), RL_INT(":block_z", row->block[2]), RL_INT(":registers", row->registers),
                   RL_INT(":static_shared_bytes", row->static_shared_bytes),
                   RL_INT(":dynamic_shared_bytes", row->dynamic_shared_bytes), RL_INT(":bytes", row->bytes));
}

static int store_records(rl_db *db, const rl_claim *claim, const rl_records *records, rl_error *err) {
  int64_t pass = claim->pass_id;
  if (records->has_facts && store_facts(db, claim, &records->facts, err) < 0) return -1;
  for (size_t i = 0; i < records->epoch_count; i++)
    if (store_epoch(db, pass, &records->epochs[i], err) < 0) return -1;
  for (size_t i = 0; i < records->sample_count; i++)
    if (store_sample(db, pass, &records->samples[i], err) < 0) return -1;
  for (size_t i = 0; i < records->measurement_count; i++)
    if (store_measurement(db, pass, &records->measurements[i], err) < 0) return -1;
  for (size_t i = 0; i < records->kernel_count; i++)
    if (store_kernel(db, pass, &records->kernels[i], err) < 0) return -1;
  for (size_t i = 0; i < records->phase_count; i++)
    if (store_phase(db, pass, &records->phases[i], err) < 0) return -1;
  for (size_t i = 0; i < records->metric_count; i++)
    if (store_metric(db, pass, &records->metrics[i], err) < 0) return -1;
  for (size_t i = 0; i < records->instruction_count; i++)
    if (store_instruction(db, pass, &records->instructions[i], err) < 0) return -1;
  for (size_t i = 0; i < records->point_count; i++)
    if (store_point(db, pass, &records->points[i], err) < 0) return -1;
  for (size_t i = 0; i < records->name_count; i++)
    if (rl_db_run(db, err, "name_insert", RL_INT(":pass", pass), RL_INT(":ordinal", i), RL_TEXT(":name", records->names[i])) < 0)
      return -1;
  for (size_t i = 0; i < records->row_count; i++)
    if (store_activity(db, pass, i, &records->rows[i], err) < 0) return -1;
  return rl_db_run(db, err, "activity_spans_insert", RL_INT(":pass", pass));
}

/* Times against the least that the work can take by the device's ceilings, after the pass knows its device, and against the
 * conditions that they were taken under. */
static int judge_times(rl_db *db, int64_t pass, rl_error *err) {
  static const char *const steps[] = {"pass_ceilings", "floors_insert", "epochs_suspect", "samples_suspect", "samples_throttled"};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    if (rl_db_run(db, err, steps[i], RL_INT(":pass", pass)) < 0) return -1;
  return 0;
}

/* 1: the pass runs and may be stored; 0: it was stored before. *job_done: its job has completed. */
static int check_claim(rl_db *db, const rl_claim *claim, bool *job_done, rl_error *err) {
  rl_auto(rl_db_release) sqlite3_stmt *row = NULL;
  int found = rl_db_row(db, err, "pass_state", &row, RL_INT(":job", claim->job_id), RL_INT(":run", claim->run_id),
                        RL_INT(":pass", claim->pass_id));
  if (found < 0) return -1;
  if (found == 0)
    return rl_fail(err, RL_HTTP, 404, "there is no pass %lld of job %lld", (long long)claim->pass_id, (long long)claim->job_id);
  const char *pass = (const char *)sqlite3_column_text(row, 0), *job = (const char *)sqlite3_column_text(row, 1);
  if (pass == NULL || job == NULL) return rl_db_fail(db, "read the state of a pass", err);
  *job_done = strcmp(job, "completed") == 0;
  if (strcmp(pass, "completed") == 0 || strcmp(pass, "unavailable") == 0) return 0;
  if (strcmp(pass, "running") == 0 && strcmp(job, "running") == 0) return 1;
  return rl_fail(err, RL_HTTP, 409, "job %lld is %s and its pass %lld is %s: what the worker sent is not stored",
                 (long long)claim->job_id, job, (long long)claim->pass_id, pass);
}

static int commit_pass(rl_db *db, const rl_claim *claim, const rl_records *records, const char *reason, bool *job_done,
                       rl_error *err) {
  int runs = check_claim(db, claim, job_done, err);
  if (runs <= 0) return runs;
  static const rl_records nothing;
  if (records == NULL) records = &nothing;
  int64_t now = rl_now_ns();
  if (store_records(db, claim, records, err) < 0 ||
      rl_db_run(db, err, "pass_finish", RL_INT(":pass", claim->pass_id), RL_TEXT(":reason", reason), RL_INT(":now", now),
                RL_INT(":rows", records->row_count), RL_TEXT_OR_NULL(":commit", records->facts.commit),
                RL_TEXT_OR_NULL(":facts", records->facts.device_facts)) < 0 ||
      (claim->pass == RL_PASS_TIMING && judge_times(db, claim->pass_id, err) < 0) ||
      rl_store_tell_pass(db, claim, reason != NULL ? "unavailable" : "completed", reason, err) < 0)
    return -1;
  int completed = if_changed(db, "job_complete", claim->job_id, now, err);
  *job_done = completed > 0;
  return completed > 0 ? rl_store_tell_state(db, claim->job_id, RL_JOB_COMPLETED, NULL, err) : completed;
}

int rl_store_pass_commit(rl_store *store, const rl_claim *claim, const rl_records *records, const char *reason, bool *job_done,
                         rl_error *err) {
  bool done = false;
  if (rl_store_begin(store, err) < 0) return -1;
  if (rl_store_end(store, commit_pass(&store->writer, claim, records, reason, &done, err), err) < 0) return -1;
  *job_done = done;
  return 0;
}

/* --- death ------------------------------------------------------------------------------------------------------------- */

/* Counted apart: a job survives more deaths of the daemon, which may have nothing to do with it, than of its worker. */
typedef struct deceased {
  const char *name, *count; /* the statement that counts it */
} deceased;
static const deceased the_worker = {"worker", "job_died"}, the_daemon = {"daemon", "job_crashed"};

static int count_death(rl_db *db, deceased who, const rl_claim *claim, const char *reason, int64_t *deaths, rl_error *err) {
  rl_auto(rl_db_release) sqlite3_stmt *row = NULL;
  int found = rl_db_row(db, err, who.count, &row, RL_INT(":job", claim->job_id));
  if (found < 0) return -1;
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "there is no job %lld", (long long)claim->job_id);
  *deaths = sqlite3_column_int64(row, 0);
  if (rl_db_step(db, row, err) < 0) return -1;
  return rl_db_run(db, err, "pass_died", RL_INT(":pass", claim->pass_id), RL_INT(":job", claim->job_id),
                   RL_TEXT(":reason", reason));
}

static int note_death(rl_db *db, deceased who, const rl_claim *claim, const char *reason, int64_t most, bool *job_failed,
                      rl_error *err) {
  rl_error why;
  int64_t deaths = 0;
  if (count_death(db, who, claim, reason, &deaths, err) < 0 || rl_store_tell_pass(db, claim, "died", reason, err) < 0) return -1;
  *job_failed = deaths >= most;
  if (!*job_failed) return 0;
  rl_fail(&why, RL_WIRE, 0, "the %s died %lld times during this job, in the end: %s", who.name, (long long)deaths, reason);
  return rl_store_finish(db, claim->job_id, RL_JOB_FAILED, &why, err);
}

int rl_store_pass_died(rl_store *store, const rl_claim *claim, const char *reason, int64_t most, bool *job_failed,
                       rl_error *err) {
  bool failed = false;
  if (rl_store_begin(store, err) < 0) return -1;
  if (rl_store_end(store, note_death(&store->writer, the_worker, claim, reason, most, &failed, err), err) < 0) return -1;
  *job_failed = failed;
  return 0;
}

/* 1 and whose it is, when a pass still runs. */
static int crashed_pass(rl_db *db, rl_claim *claim, rl_error *err) {
  rl_auto(rl_db_release) sqlite3_stmt *row = NULL;
  int found = rl_db_row(db, err, "pass_crashed", &row);
  if (found <= 0) return found;
  *claim = (rl_claim){.job_id = sqlite3_column_int64(row, 0),
                      .run_id = sqlite3_column_int64(row, 1),
                      .pass_id = sqlite3_column_int64(row, 2),
                      .pass = (rl_pass)sqlite3_column_int(row, 3)};
  copy(claim->run.variant, sizeof claim->run.variant, row, 4);
  return 1;
}

int rl_store_note_crashes(rl_db *db, int64_t most, rl_error *err) {
  rl_claim claim;
  bool failed;
  int found;
  while ((found = crashed_pass(db, &claim, err)) > 0)
    if (note_death(db, the_daemon, &claim, "the daemon or the host went down in the middle of the pass", most, &failed, err) < 0)
      return -1;
  return found;
}
