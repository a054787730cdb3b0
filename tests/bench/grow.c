#include "grow.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "grow_records.h"
#include "grow_suites.h"
#include "request/spec.h"
#include "store/store_internal.h"

/* The kind of a job depends on its index modulo the period of the kind (plan_job). EVENTS: progress events of a job. */
enum { CEILINGS_PERIOD = 50, FULL_PERIOD = 100, RARE_PERIOD = 10, EVENTS = 3, PERCENT = 100 };

/* --- the jobs ---------------------------------------------------------------------------------------------------------- */

typedef enum job_kind { KIND_TRAIN, KIND_KERNEL, KIND_SOURCE, KIND_CEILINGS } job_kind;

/* Describes job i of the database. */
typedef struct job_plan {
  job_kind kind;
  const char *device;
  rl_job_state state;
  bool has_activity, has_counters; /* passes */
  bool is_full;                    /* counters of the set "full" */
  bool is_trace;                   /* the job with the longest trace */
  int batch_size, seed;
  uint64_t random;
} job_plan;

static uint64_t hash(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

static rl_job_state choose_state(int percent) {
  if (percent < 1) return RL_JOB_QUEUED;
  if (percent < 4) return RL_JOB_FAILED;
  return percent < 7 ? RL_JOB_CANCELLED : RL_JOB_COMPLETED;
}

static job_plan plan_job(int64_t index, int64_t trace_index) {
  static const char *const devices[] = {"gpu0", "gpu0", "gpu0", "gpu0", "gpu0", "gpu1", "gpu1", "gpu1", "cpu", "cpu"};
  static const char *const ceilings_devices[] = {"gpu0", "gpu1", "cpu"};
  uint64_t random = hash((uint64_t)index + 1);
  job_plan job = {.kind = random % PERCENT < 55 ? KIND_TRAIN : KIND_KERNEL,
                  .device = devices[(random >> 8) % 10],
                  .state = choose_state((int)((random >> 16) % PERCENT)),
                  .has_activity = (random >> 24) % 4 != 0,
                  .has_counters = (random >> 32) % 3 == 0,
                  .batch_size = (random >> 40) % 4 != 0 ? 64 : 128,
                  .seed = (random >> 48) % 4 != 0 ? 1 : 2,
                  .random = random};
  if (index == trace_index)
    job = (job_plan){
        .device = "gpu0", .state = RL_JOB_COMPLETED, .has_activity = true, .is_trace = true, .batch_size = 64, .seed = 3};
  else if (index % CEILINGS_PERIOD == 0)
    job = (job_plan){.kind = KIND_CEILINGS, .device = ceilings_devices[index / CEILINGS_PERIOD % 3], .state = RL_JOB_COMPLETED};
  else if (index % RARE_PERIOD == 5 && index / RARE_PERIOD < GROW_RARE_JOBS)
    job = (job_plan){.device = GROW_RARE_DEVICE, .state = RL_JOB_COMPLETED, .has_activity = true, .batch_size = 32, .seed = 7};
  else if (index % RARE_PERIOD == 4 && index / RARE_PERIOD < GROW_RARE_JOBS)
    job = (job_plan){.device = GROW_OFFLINE_DEVICE, .state = GROW_RARE_STATE, .batch_size = 32, .seed = 7};
  else if (index % RARE_PERIOD == 1 && index / RARE_PERIOD < GROW_RARE_JOBS)
    job = (job_plan){.kind = KIND_SOURCE, .device = "gpu1", .state = RL_JOB_COMPLETED};
  else if (index % FULL_PERIOD == 2)
    job = (job_plan){.kind = KIND_KERNEL, .device = "gpu0", .state = RL_JOB_COMPLETED, .has_counters = true, .is_full = true};
  else if (index % FULL_PERIOD == 3)
    job = (job_plan){
        .device = "gpu0", .state = RL_JOB_COMPLETED, .has_activity = true, .has_counters = true, .batch_size = 64, .seed = 1};
  if (strcmp(job.device, "cpu") == 0) job.has_counters = false;
  if (job.state == RL_JOB_QUEUED) job.device = GROW_OFFLINE_DEVICE;
  return job;
}

static const char *train_precisions(const job_plan *job) {
  if (job->is_trace) return "\"fp16\"";
  return strcmp(job->device, "cpu") == 0 ? "\"fp32\",\"fp16\"" : "\"fp32\",\"tf32\",\"fp16\"";
}

static void write_request(const job_plan *job, int64_t index, char *text, size_t size) {
  static const char *const kernels[] = {"softmax", "rmsnorm", "layernorm"};
  switch (job->kind) {
    case KIND_TRAIN:
      snprintf(text, size, "{\"kind\":\"train\",\"precisions\":[%s],\"batch_size\":%d,\"seed\":%d}", train_precisions(job),
               job->batch_size, job->seed);
      break;
    case KIND_KERNEL:
      snprintf(text, size, "{\"kind\":\"kernel\",\"kernel\":\"%s\",\"dtype\":\"%s\",\"shape\":{\"rows\":%d,\"columns\":1024}%s}",
               kernels[job->random % 3], (job->random >> 4) % 2 ? "fp16" : "fp32", 1024 << (job->random >> 12) % 4,
               job->is_full ? ",\"set\":\"full\"" : "");
      break;
    case KIND_SOURCE:
      snprintf(text, size,
               "{\"kind\":\"source\",\"code\":\"extern \\\"C\\\" __global__ void twice%d(float *x) { x[threadIdx.x] *= 2; }\","
               "\"entry\":\"twice%d\",\"grid\":[1],\"block\":[4],"
               "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"count\":4,\"init\":\"ones\"}}]}",
               (int)index, (int)index);
      break;
    case KIND_CEILINGS: snprintf(text, size, "{\"kind\":\"ceilings\"}");
  }
}

static int make_spec(const job_plan *job, int64_t index, rl_job_spec *spec, rl_error *err) {
  static const rl_job_policy policy = {.posting = RL_POSTING_ALLOWED, .source_buffer_bytes = 1 << 20};
  char text[1024] = "";
  write_request(job, index, text, sizeof text);
  if (rl_job_spec_parse(text, strlen(text), &policy, spec, err) < 0) return rl_wrap(err, "%s", text);
  if (job->kind == KIND_KERNEL && spec->run_count > 2) spec->run_count = 2;
  snprintf(spec->device, sizeof spec->device, "%s", job->device);
  spec->passes = 1u << RL_PASS_TIMING;
  if (job->kind != KIND_CEILINGS && job->has_activity) spec->passes |= 1u << RL_PASS_ACTIVITY;
  if (job->kind != KIND_CEILINGS && job->has_counters) spec->passes |= 1u << RL_PASS_COUNTERS;
  if (job->has_counters && spec->profile[0] == '\0')
    strcpy(spec->profile, "{\"sections\":[\"SpeedOfLight\"],\"metrics\":[],\"kernels\":\"\",\"launch\":0}");
  return 0;
}

/* --- the passes -------------------------------------------------------------------------------------------------------- */

typedef struct grow_state {
  rl_store *store;
  const grow_plan *plan;
  grow_result *grown;
  int64_t rows_left, traces_left; /* activity rows and passes that are still to be stored, without the longest trace */
} grow_state;

static int64_t database_bytes(rl_store *store) {
  static const char sql[] =
      "SELECT (page_count - freelist_count) * page_size "
      "FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
  sqlite3_stmt *row = NULL;
  int64_t bytes = 0;
  if (sqlite3_prepare_v2(store->writer.handle, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
    bytes = sqlite3_column_int64(row, 0);
  sqlite3_finalize(row);
  return bytes;
}

/* Returns the number of rows of the job's activity pass. */
static int64_t next_trace_rows(grow_state *growth, const job_plan *job) {
  if (job->is_trace) return growth->plan->trace_rows;
  int64_t rows = growth->traces_left > 0 ? growth->rows_left / growth->traces_left : 0;
  growth->traces_left--;
  growth->rows_left -= rows;
  return rows;
}

static int commit(grow_state *growth, const job_plan *job, const rl_claim *claim, const rl_records *records, bool *done,
                  rl_error *err) {
  grow_result *grown = growth->grown;
  int64_t begin_ns = rl_monotonic_ns(), begin_bytes = job->is_trace ? database_bytes(growth->store) : 0;
  if (rl_store_pass_commit(growth->store, claim, records, NULL, done, err) < 0) return -1;
  if (claim->pass != RL_PASS_ACTIVITY) return 0;
  double seconds = (double)(rl_monotonic_ns() - begin_ns) / 1e9;
  grown->activity_rows += (int64_t)records->row_count;
  grown->activity_s += seconds;
  if (!job->is_trace) return 0;
  grown->trace_s = seconds;
  grown->trace_bytes = database_bytes(growth->store) - begin_bytes;
  grown->trace_end_ns = records->rows[0].end_ns;
  grown->trace_tail_ns = grown->trace_end_ns - 100000;
  return 0;
}

/* Stores the ids of the job and run in *grown if they are the first of a sort that requests need. */
static void keep_ids(const job_plan *job, const rl_claim *claim, grow_result *grown) {
  bool is_fp32 = strcmp(claim->run.variant, "fp32") == 0;
  if (job->is_trace) grown->trace_job = claim->job_id, grown->trace_run = claim->run_id;
  if (job->kind == KIND_SOURCE && grown->source_job == 0) grown->source_job = claim->job_id;
  if (strcmp(job->device, GROW_RARE_DEVICE) == 0 && grown->rare_run == 0) grown->rare_run = claim->run_id;
  if (job->is_full && grown->full_job == 0) grown->full_job = claim->job_id, grown->full_run = claim->run_id;
  if (job->state != RL_JOB_COMPLETED || !job->has_counters || job->is_full) return;
  if (job->kind == KIND_KERNEL && grown->kernel_job == 0) grown->kernel_job = claim->job_id, grown->kernel_run = claim->run_id;
  if (job->kind != KIND_TRAIN || !job->has_activity) return;
  if (grown->train_job == 0 && is_fp32) grown->train_job = claim->job_id, grown->train_run = claim->run_id;
  if (grown->train_job == claim->job_id && strcmp(claim->run.variant, "fp16") == 0) grown->train_candidate = claim->run_id;
}

/* Executes the job's next pass. Returns 1 after its last. */
static int execute_pass(grow_state *growth, const job_plan *job, rl_error *err) {
  rl_claim claim = {0};
  rl_records records = {0};
  bool done = false;
  int found = rl_store_pass_claim(growth->store, job->device, &claim, err);
  if (found <= 0) return found < 0 ? -1 : rl_fail(err, RL_INPUT, 0, "%s has no pass", job->device);
  keep_ids(job, &claim, growth->grown);
  record_plan plan = {.claim = &claim, .device = job->device, .seed = (uint64_t)claim.pass_id, .is_full = job->is_full};
  if (claim.pass == RL_PASS_ACTIVITY) plan.activity_rows = next_trace_rows(growth, job);
  int rc = grow_records(&plan, &records, err);
  if (rc == 0) rc = commit(growth, job, &claim, &records, &done, err);
  rl_records_clear(&records);
  rl_claim_clear(&claim);
  return rc < 0 ? -1 : done;
}

static int append_events(rl_store *store, int64_t job, rl_error *err) {
  int64_t seq;
  for (int i = 0; i < EVENTS; i++) {
    char data[160];
    snprintf(data, sizeof data, "{\"pass\":\"timing\",\"phase\":\"epoch\",\"epoch\":%d,\"epochs\":%d,\"images_per_s\":330000}", i,
             EVENTS);
    if (rl_store_event_append(store, job, "progress", data, &seq, err) < 0) return -1;
  }
  return 0;
}

/* Brings a queued job to the state of its plan. */
static int execute_job(grow_state *growth, const job_plan *job, int64_t id, rl_error *err) {
  rl_error problem = {0};
  if (job->state == RL_JOB_QUEUED) return 0;
  if (job->state == RL_JOB_CANCELLED || job->state == GROW_RARE_STATE)
    return rl_store_job_finish(growth->store, id, job->state, NULL, err);
  if (append_events(growth->store, id, err) < 0) return -1; /* now, because no event may follow the job's final state */
  int done = execute_pass(growth, job, err);
  if (done < 0) return -1;
  if (job->state == RL_JOB_FAILED && done == 0) {
    rl_fail(&problem, RL_CUDA, 700, "running: an illegal memory access was encountered");
    return rl_store_job_finish(growth->store, id, RL_JOB_FAILED, &problem, err);
  }
  while (done == 0) done = execute_pass(growth, job, err);
  return done < 0 ? -1 : 0;
}

/* --- the database ------------------------------------------------------------------------------------------------------ */

static int64_t trace_index(const grow_plan *plan) { return plan->jobs / 2 + 5; }

static int64_t count_traces(const grow_plan *plan) {
  int64_t traces = 0;
  for (int64_t i = 0; i < plan->jobs; i++) {
    job_plan job = plan_job(i, trace_index(plan));
    if (job.state != RL_JOB_COMPLETED || !job.has_activity || job.is_trace) continue;
    traces += job.kind == KIND_TRAIN && strcmp(job.device, "cpu") != 0 ? 3 : 2;
  }
  return traces;
}

static int grow_job(grow_state *growth, int64_t index, rl_error *err) {
  RL_CLEANUP(rl_job_spec_clear) rl_job_spec spec = {0};
  const job_plan job = plan_job(index, trace_index(growth->plan));
  int64_t id;
  bool existing;
  if (make_spec(&job, index, &spec, err) < 0) return -1;
  if (rl_store_job_insert(growth->store, &spec, NULL, NULL, INT64_MAX, &id, &existing, err) < 0) return -1;
  return execute_job(growth, &job, id, err);
}

int grow_database(rl_store *store, const grow_plan *plan, grow_result *result, rl_error *err) {
  grow_result grown = {0};
  grow_state growth = {.store = store,
                       .plan = plan,
                       .grown = &grown,
                       .rows_left = plan->activity_rows - plan->trace_rows,
                       .traces_left = count_traces(plan)};
  int64_t begin_ns = rl_monotonic_ns();
  if (plan->jobs < GROW_MIN_JOBS) return rl_fail(err, RL_INPUT, 0, "jobs must be at least %d", GROW_MIN_JOBS);
  for (int64_t i = 0; i < plan->jobs; i++) {
    if (grow_job(&growth, i, err) < 0) return -1;
    if (plan->shows_progress && (i + 1) % 500 == 0)
      fprintf(stderr, "%lld jobs, %lld activity rows, %.0f s\n", (long long)i + 1, (long long)grown.activity_rows,
              (double)(rl_monotonic_ns() - begin_ns) / 1e9);
  }
  grown.ceilings_job = 1; /* job 0 of the plan */
  if (grow_suite_runs(store, plan->jobs, grown.train_job, &grown, err) < 0) return -1;
  grown.total_s = (double)(rl_monotonic_ns() - begin_ns) / 1e9;
  *result = grown;
  return 0;
}
