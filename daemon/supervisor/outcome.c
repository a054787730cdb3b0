/* Implements outcome.h. At first the results are only in memory; after a second of failed tries they are also in the spill file.
 * If all devices together hold too many results in memory, the results are only in the spill file, and each try reads them back.
 * Retries end when the results are stored, when the job is deleted or cancelled, or when the daemon stops. */
#include "supervisor/outcome.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/store.h"

static const int64_t NS_PER_MS = 1000000, MIN_PAUSE_MS = 100, MAX_PAUSE_MS = 1000, MAX_RELOAD_PAUSE_MS = 5000,
                     SPILL_AFTER_MS = 1000, STOP_RETRY_MS = 700;

typedef struct pending_outcome {
  rl_attempt *attempt;
  rl_attempt_result result;
  rl_spill *spill;           /* NULL: there is no spill file, or the results did not fit into it */
  bool is_spilled;           /* the spill file contains the results */
  bool is_in_memory;         /* attempt->records contains the results */
  int64_t failing_since_ns;  /* rl_monotonic_ns of the first failed try; 0: no try has failed */
  int64_t retry_pause_ms;    /* pause before the next try */
  int64_t retry_deadline_ns; /* rl_monotonic_ns at which retries end; 0: they don't end, because the daemon is not stopping */
} pending_outcome;

static bool has_results(const pending_outcome *outcome) {
  return outcome->result == RL_ATTEMPT_DONE || outcome->result == RL_ATTEMPT_UNAVAILABLE;
}

static void log_outcome(const pending_outcome *outcome, rl_log_level level, const char *event, const char *reason) {
  const rl_claim *claim = outcome->attempt->claim;
  rl_log(level, "job %lld: the outcome of its %s pass %s%s", (long long)claim->job_id, rl_pass_names[claim->pass], event, reason);
}

/* --- results in memory and in the spill file --------------------------------------------------------------------------- */

static void write_spill(pending_outcome *outcome) {
  rl_error err;
  const rl_attempt *attempt = outcome->attempt;
  rl_spilled_pass pass = {.claim = *attempt->claim,
                          .records = attempt->records,
                          .first_row_index = rl_activity_appender_row_count(attempt->appender),
                          .log = attempt->log,
                          .is_unavailable = outcome->result == RL_ATTEMPT_UNAVAILABLE};
  snprintf(pass.failure.domain, sizeof pass.failure.domain, "%s", rl_domain_name(attempt->error.domain));
  snprintf(pass.failure.message, sizeof pass.failure.message, "%s", attempt->error.message);
  outcome->is_spilled = rl_spill_write(outcome->spill, &pass, &err) >= 0;
  if (outcome->is_spilled) return;
  log_outcome(outcome, RL_LOG_ERROR, "waits in memory only: ", err.message);
  outcome->spill = NULL;
}

static void clear_spill(pending_outcome *outcome) {
  rl_error err;
  if (outcome->is_spilled && rl_spill_clear(outcome->spill, &err) < 0) rl_log(RL_LOG_ERROR, "%s", err.message);
  outcome->is_spilled = false;
}

/* Keeps results that could not be stored: writes them to the spill file if a second has passed, the daemon stops, or all devices
 * together hold too many results in memory. In the last case, also frees the results in memory. */
static void keep_results(pending_outcome *outcome) {
  rl_attempt *attempt = outcome->attempt;
  if (!has_results(outcome)) return;
  int64_t held_bytes = outcome->is_in_memory ? (int64_t)rl_records_held_bytes(&attempt->records) : 0;
  bool is_memory_full = rl_attempt_set_waiting_bytes(attempt, held_bytes);
  bool is_due = is_memory_full || atomic_load(attempt->stopping) ||
                rl_monotonic_ns() - outcome->failing_since_ns >= SPILL_AFTER_MS * NS_PER_MS;
  if (is_due && !outcome->is_spilled && outcome->spill != NULL) write_spill(outcome);
  if (!is_memory_full || !outcome->is_spilled) return;
  rl_records_clear(&attempt->records);
  outcome->is_in_memory = false;
  rl_attempt_set_waiting_bytes(attempt, 0);
}

/* If the results are only in the spill file, reads them back into memory. If the file is damaged, sets the result to
 * RL_ATTEMPT_DIED, so that the pass is executed again. */
static void load_results(pending_outcome *outcome) {
  rl_spilled_pass pass = {0};
  rl_error *err = &outcome->attempt->error;
  if (!has_results(outcome) || outcome->is_in_memory) return;
  int found = rl_spill_read(outcome->spill, &pass, err);
  if (found == 0) rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD, "the spill file is empty");
  int64_t stored_rows = rl_activity_appender_row_count(outcome->attempt->appender);
  if (found <= 0 || rl_spilled_pass_remove_stored_rows(&pass, stored_rows, err) < 0) outcome->result = RL_ATTEMPT_DIED;
  outcome->attempt->records = pass.records;
  outcome->is_in_memory = true;
  pass.records = (rl_records){0};
  rl_spilled_pass_clear(&pass);
}

/* --- storing with retries ---------------------------------------------------------------------------------------------- */

/* Returns rl_monotonic_ns at which retries end because the daemon is stopping; 0: the daemon is not stopping. */
static int64_t retry_deadline(pending_outcome *outcome) {
  if (outcome->retry_deadline_ns == 0 && atomic_load(outcome->attempt->stopping))
    outcome->retry_deadline_ns = rl_monotonic_ns() + STOP_RETRY_MS * NS_PER_MS;
  return outcome->retry_deadline_ns;
}

/* Stores the activity rows that wait in memory, which may take seconds. If the daemon stops meanwhile, fails and leaves the
 * remaining rows to the spill file. If there is no spill file, continues until all rows are stored, because they would be lost
 * otherwise. */
static int store_rows(pending_outcome *outcome, rl_error *err) {
  rl_attempt *attempt = outcome->attempt;
  while (attempt->records.row_count > 0) {
    const size_t count = attempt->records.row_count;
    const int64_t retry_deadline_ns = outcome->spill != NULL ? retry_deadline(outcome) : 0;
    const bool is_late = retry_deadline_ns != 0 && rl_monotonic_ns() >= retry_deadline_ns;
    if (is_late && !outcome->is_spilled) write_spill(outcome);
    if (is_late && outcome->is_spilled)
      return rl_fail(err, RL_STORAGE, RL_STORAGE_LOCKED, "the daemon is stopping, and %zu rows are left", count);
    if (rl_attempt_store_rows(attempt, count > RL_SLICE_ROWS ? count - RL_SLICE_ROWS : 0, err) < 0) return -1;
  }
  return 0;
}

static int try_to_store(pending_outcome *outcome, rl_error *err) {
  rl_attempt *attempt = outcome->attempt;
  rl_queue *jobs = attempt->jobs;
  if (rl_attempt_store_log(attempt, err) < 0) return -1;
  if (has_results(outcome) && store_rows(outcome, err) < 0) return -1;
  switch (outcome->result) {
    case RL_ATTEMPT_DONE: return rl_queue_commit_pass(jobs, attempt->claim, &attempt->records, err);
    case RL_ATTEMPT_UNAVAILABLE:
      return rl_queue_commit_unavailable_pass(jobs, attempt->claim, &attempt->records, attempt->error.message, err);
    case RL_ATTEMPT_CANCELLED:
    case RL_ATTEMPT_IGNORED_CANCEL: return rl_queue_end_cancelled_job(jobs, attempt->claim, err);
    case RL_ATTEMPT_STOPPED: return rl_queue_interrupt_job(jobs, attempt->claim, err);
    case RL_ATTEMPT_DIED: return rl_queue_record_worker_crash(jobs, attempt->claim, attempt->error.message, err);
    case RL_ATTEMPT_FAILED:
    case RL_ATTEMPT_DEADLINE_EXCEEDED:
    case RL_ATTEMPT_CONTINUE: break;
  }
  return rl_queue_fail_job(jobs, attempt->claim, &attempt->error, err);
}

/* Returns whether the worker's records violate a constraint of the database: another try would fail too. */
static bool violates_constraint(const rl_error *err) { return err->domain == RL_STORAGE && err->code == RL_STORAGE_CONSTRAINT; }

static void fail_inconsistent_results(pending_outcome *outcome, const rl_error *err) {
  outcome->attempt->error = *err;
  rl_wrap(&outcome->attempt->error, "the worker's results are inconsistent");
  outcome->result = RL_ATTEMPT_FAILED;
}

/* Waits before the next try. Returns false when the daemon stops and its last tries have failed too. */
static bool wait_to_retry(pending_outcome *outcome) {
  const atomic_bool *stopping = outcome->attempt->stopping;
  int64_t until_ns = rl_monotonic_ns() + outcome->retry_pause_ms * NS_PER_MS;
  int64_t longest_ms = outcome->is_in_memory ? MAX_PAUSE_MS : MAX_RELOAD_PAUSE_MS;
  outcome->retry_pause_ms = outcome->retry_pause_ms * 2 < longest_ms ? outcome->retry_pause_ms * 2 : longest_ms;
  while (rl_monotonic_ns() < until_ns && !atomic_load(stopping))
    nanosleep(&(struct timespec){.tv_nsec = RL_POLL_INTERVAL_MS * NS_PER_MS}, NULL);
  return !atomic_load(stopping) || rl_monotonic_ns() < retry_deadline(outcome);
}

/* Tries to store the outcome until it is stored, or the job was cancelled or deleted. Returns false if the daemon stops
 * before. */
static bool store_with_retries(pending_outcome *outcome) {
  rl_error err;
  for (;;) {
    load_results(outcome);
    if (try_to_store(outcome, &err) >= 0) return true;
    if (err.domain == RL_HTTP) { /* the job was cancelled meanwhile, or deleted */
      log_outcome(outcome, RL_LOG_INFO, "is not stored: ", err.message);
      return true;
    }
    if (has_results(outcome) && violates_constraint(&err)) {
      fail_inconsistent_results(outcome, &err);
      continue;
    }
    if (outcome->failing_since_ns == 0) {
      outcome->failing_since_ns = rl_monotonic_ns();
      log_outcome(outcome, RL_LOG_ERROR, "can't be stored yet: ", err.message);
    }
    if (has_results(outcome)) rl_queue_report_unstored_results(outcome->attempt->jobs, outcome->attempt->claim, &err);
    keep_results(outcome);
    if (!wait_to_retry(outcome)) return false;
  }
}

void rl_outcome_store(rl_attempt *attempt, rl_attempt_result result, rl_spill *spill) {
  pending_outcome outcome = {
      .attempt = attempt, .result = result, .spill = spill, .is_in_memory = true, .retry_pause_ms = MIN_PAUSE_MS};
  if (store_with_retries(&outcome)) {
    clear_spill(&outcome);
    if (outcome.failing_since_ns != 0) log_outcome(&outcome, RL_LOG_INFO, "is no longer waiting", "");
  } else if (outcome.is_spilled) {
    log_outcome(&outcome, RL_LOG_WARNING, "is in the spill file; the next start of the daemon stores it", "");
  }
  rl_attempt_set_waiting_bytes(attempt, 0);
}
