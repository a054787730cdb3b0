/* Implements store/webhooks.h. An event is first pending, then delivered or given_up. Only the newest events are kept; older ones
 * are deleted even if they are pending. */
#include "store/webhooks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/store_internal.h"

static const char *const state_names[] = {"pending", "delivered", "given_up"};
/* A change of events counts as a change of suite runs, because GET /suite-runs/{id} returns the events. */
static const rl_change suites_changed = {.suites = true};

static int count_pending(rl_db *db, int64_t *pending, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  if (rl_db_query_row(db, err, "webhook_events_count", &row) < 0) return -1;
  *pending = sqlite3_column_int64(row, 0);
  return 0;
}

int rl_store_webhook_enable(rl_store *store, void (*added)(void *context), void *context, rl_error *err) {
  int64_t pending = 0;
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = count_pending(&store->writer, &pending, err);
  if (rc == 0) {
    atomic_store(&store->webhook_counts.pending, pending);
    store->webhook_added = added;
    store->webhook_context = context;
  }
  return rl_store_end_transaction_changing(store, rc, (rl_change){0}, err);
}

void rl_store_webhook_disable(rl_store *store) {
  rl_timed_mutex_lock(&store->writer_mutex);
  store->webhook_added = NULL;
  rl_timed_mutex_unlock(&store->writer_mutex);
}

/* Deletes the oldest events if there are too many. Adds the number of those that were pending to *given_up. */
static int trim_events(rl_db *db, int64_t *given_up, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "webhook_events_trim", &row);
  for (; found > 0; found = rl_db_step(db, row, err))
    *given_up += strcmp((const char *)sqlite3_column_text(row, 0), state_names[RL_WEBHOOK_PENDING]) == 0;
  return found;
}

int rl_store_add_webhook_events(rl_db *db, int64_t run_id, int64_t *added, int64_t *given_up, rl_error *err) {
  if (rl_db_run(db, err, "webhook_events_insert", RL_BIND_INTEGER(":run", run_id), RL_BIND_INTEGER(":now", rl_realtime_ns())) < 0)
    return -1;
  *added = sqlite3_changes64(db->handle);
  return *added > 0 ? trim_events(db, given_up, err) : 0;
}

void rl_store_announce_webhook_events(rl_store *store, int64_t added, int64_t given_up) {
  if (added == 0) return;
  atomic_fetch_add(&store->webhook_counts.pending, added - given_up);
  atomic_fetch_add(&store->webhook_counts.given_up, given_up);
  store->webhook_added(store->webhook_context);
}

static int read_next(rl_db *db, rl_webhook_event *event, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  int found = rl_db_query_row(db, err, "webhook_event_next", &row);
  if (found <= 0) return found;
  *event = (rl_webhook_event){.id = sqlite3_column_int64(row, 0),
                              .suite_run_id = sqlite3_column_int64(row, 2),
                              .body = strdup((const char *)sqlite3_column_text(row, 3)),
                              .attempts = sqlite3_column_int64(row, 4),
                              .created_ns = sqlite3_column_int64(row, 5),
                              .next_attempt_ns = sqlite3_column_int64(row, 6)};
  if (event->body == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a webhook event");
  snprintf(event->event_id, sizeof event->event_id, "%s", (const char *)sqlite3_column_text(row, 1));
  return 1;
}

int rl_store_webhook_next_event(rl_store *store, rl_webhook_event *event, rl_error *err) {
  *event = (rl_webhook_event){0};
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  return rl_store_end_transaction_changing(store, read_next(&store->writer, event, err), (rl_change){0}, err);
}

void rl_webhook_event_clear(rl_webhook_event *event) {
  free(event->body);
  *event = (rl_webhook_event){0};
}

int rl_store_webhook_record_attempt(rl_store *store, const rl_webhook_event *event, const rl_webhook_attempt *attempt,
                                    rl_error *err) {
  bool is_pending = attempt->state == RL_WEBHOOK_PENDING;
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = rl_db_run(&store->writer, err, "webhook_event_record", RL_BIND_INTEGER(":id", event->id),
                     RL_BIND_TEXT(":state", state_names[attempt->state]), RL_BIND_TEXT(":error", attempt->error),
                     {":next_attempt", is_pending ? RL_SQL_INTEGER : RL_SQL_NULL, .integer = attempt->next_attempt_ns},
                     RL_BIND_INTEGER(":now", rl_realtime_ns()));
  bool has_changed = rc == 0 && sqlite3_changes64(store->writer.handle) > 0;
  if (rl_store_end_transaction_changing(store, rc, suites_changed, err) < 0) return -1;
  if (attempt->error != NULL) atomic_fetch_add(&store->webhook_counts.failed_attempts, 1);
  if (!has_changed || is_pending) return 0; /* if nothing has changed, trim_events has already deleted the event and counted it */
  atomic_fetch_sub(&store->webhook_counts.pending, 1);
  atomic_fetch_add(attempt->state == RL_WEBHOOK_DELIVERED ? &store->webhook_counts.delivered : &store->webhook_counts.given_up,
                   1);
  return 0;
}

rl_webhook_counts rl_store_webhook_counts(const rl_store *store) {
  return (rl_webhook_counts){.pending = atomic_load(&store->webhook_counts.pending),
                             .delivered = atomic_load(&store->webhook_counts.delivered),
                             .failed_attempts = atomic_load(&store->webhook_counts.failed_attempts),
                             .given_up = atomic_load(&store->webhook_counts.given_up)};
}
