/* Declarations that the source files of the store share. */
#ifndef RL_STORE_STORE_INTERNAL_H
#define RL_STORE_STORE_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include "base/timed_mutex.h"
#include "store/db.h"
#include "store/revisions.h"
#include "store/store.h"

extern const rl_embedded rl_statements[]; /* all named statements, including the generated INSERT statements of records */

enum { RL_MAX_JOBS_WITH_UNSTORED_RESULTS = 32, RL_CACHED_TOKENS = 64 };

/* A token that rl_store_has_token has found in the database. */
typedef struct rl_cached_token {
  char hash[65];
  uint64_t revision; /* the entry is valid while the revision of RL_REVISION_UNCLASSIFIED has this value; 0: the slot is free */
} rl_cached_token;

struct rl_store {
  char *folder, *file;         /* the state folder and the database in it */
  int lock_fd;                 /* descriptor that holds the folder's lock; -1: another process holds the lock */
  rl_timed_mutex writer_mutex; /* held during a transaction of the writer */
  atomic_int waiting_writers;  /* number of threads that wait for writer_mutex, except for bulk transactions */
  rl_db writer;
  rl_revisions revisions;
  int64_t write_wait_ms; /* maximum wait for another program that holds the database's lock */
  /* Times (rl_monotonic_ns) of the first and of the last transaction that was refused because another program held the database's
   * lock; 0: none */
  _Atomic int64_t locked_since_ns, locked_until_ns;
  _Atomic int64_t jobs_with_unstored_results[RL_MAX_JOBS_WITH_UNSTORED_RESULTS]; /* ids; 0: the element is free */
  _Atomic int64_t removed_rows[RL_RETENTION_ROW_KIND_COUNT];                     /* numbers of rows that retention has deleted */
  void (*webhook_added)(void *context); /* called when webhook events were stored; NULL: there is no webhook, and suite runs store
                                           no events for it. Guarded by writer_mutex */
  void *webhook_context;
  struct {
    _Atomic int64_t pending, delivered, failed_attempts, given_up;
  } webhook_counts;
  rl_timed_mutex check_mutex;     /* held while rl_store_check_writable waits for the file system; writers never lock it */
  _Atomic int64_t check_began_ns; /* time (rl_monotonic_ns) at which the thread that holds check_mutex locked it; 0: none */
  struct {
    pthread_mutex_t mutex; /* guards the members below; held only briefly */
    int64_t time_ns;       /* time (rl_monotonic_ns) of the last write, if it failed because of the disk; 0: it did not */
    rl_error error;
  } failed_write;
  pthread_mutex_t readers_mutex; /* guards the members below */
  pthread_cond_t reader_returned;
  LIST_HEAD(, rl_cursor) idle_readers, busy_readers; /* connections that no query uses, and those that queries use */
  int reader_count;                                  /* idle or in use */
  pthread_mutex_t cached_tokens_mutex;               /* guards cached_tokens, a hash table by token hash */
  rl_cached_token cached_tokens[RL_CACHED_TOKENS];
};

/* Returns a cursor without a query, which the caller closes: an idle reader, a new reader, or a reader that becomes idle within 2
 * s. Returns NULL with RL_LIMIT_BUSY if none becomes idle. */
rl_cursor *rl_store_acquire_reader(rl_store *store, rl_error *err);
/* Returns whether a reader has been in use since this time of rl_monotonic_ns or earlier. */
bool rl_store_has_query_since(rl_store *store, int64_t time_ns);
rl_db *rl_cursor_connection(rl_cursor *cursor); /* valid until the cursor is closed */
/* Limits the queries of a connection: each query obeys the limit that its thread has set with rl_store_limit_queries, even if
 * another thread has opened the connection. */
void rl_store_limit_connection(rl_db *db);

/* Locks the writer and begins a transaction. Fails with RL_STORAGE_LOCKED if another program has held the database's lock for
 * store->write_wait_ms (the time before the call counts too), or if other threads hold the writer for 1 s. The writer is unlocked
 * after a failure. */
int rl_store_begin_transaction(rl_store *store, rl_error *err);
/* Does the same for one of many consecutive short transactions. Before that, waits until no other writer waits, at most about 0.1
 * s. */
int rl_store_begin_bulk_transaction(rl_store *store, rl_error *err);
/* Commits if rc >= 0, else rolls back; then unlocks the writer. Returns rc; -1 if the commit has failed. change: the kinds of
 * data whose revisions increase if the transaction has written a row; {0}: none, because queries do not return the rows. */
int rl_store_end_transaction_changing(rl_store *store, int rc, rl_change change, rl_error *err);
/* Does the same for a transaction that changes data of all kinds. */
int rl_store_end_transaction_changing_all(rl_store *store, int rc, rl_error *err);

/* Record for rl_store_check_writable that a transaction has written rows and was committed, or that it has failed. Called before
 * the writer is unlocked, so that the last call belongs to the last transaction. */
void rl_store_record_write(rl_store *store);
void rl_store_record_failed_write(rl_store *store, const rl_error *err);

/* Insert an event, inside the transaction of the change that it reports. problem: why the job failed, or NULL. reason: why the
 * pass is unavailable or its process died, or NULL. */
int rl_store_add_state_event(rl_db *db, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err);
int rl_store_add_pass_event(rl_db *db, const rl_claim *claim, const char *state, const char *reason, rl_error *err);

/* Returns 1 if the pass is running, 0 if it is already committed. Sets *job_done to whether its job is completed. Fails with
 * RL_HTTP 409 if the pass is neither, 404 if it does not exist. Called inside a transaction. */
int rl_store_check_claim(rl_db *db, const rl_claim *claim, bool *job_done, rl_error *err);
/* Inserts all records of a pass except kernels and the records that belong to kernels. Called inside a transaction. */
int rl_store_insert_records(rl_db *db, const rl_claim *claim, const rl_records *records, rl_error *err);
typedef struct rl_kernel_position { /* the next record that rl_store_insert_kernels inserts; {0}: the first record */
  rl_record_kind kind;
  size_t index;
} rl_kernel_position;
/* Returns the size in memory of all kernels and of the records that belong to them. */
size_t rl_store_kernel_bytes(const rl_records *records);
/* Inserts kernels and their records from *position on, up to a size in memory of max_bytes, and advances *position. Queries do
 * not return them before the statement kernels_commit is executed. Returns 1 after the last record, else 0. Called inside a
 * transaction. */
int rl_store_insert_kernels(rl_db *db, const rl_claim *claim, const rl_records *records, size_t max_bytes,
                            rl_kernel_position *position, rl_error *err);
/* Inserts the activity rows in records, their names and their groups, after the rows that are already stored. Called inside a
 * transaction. */
int rl_store_insert_activity(rl_db *db, int64_t pass, const rl_records *records, rl_error *err);
enum { RL_DELETE_ROWS = 5000 }; /* maximum number of rows of a table that one batch deletes */
/* Deletes a batch of a pass's activity rows; with the last batch also their names, dictionary entries and groups. Returns 1 after
 * the last batch, else 0. Sets *row_count to the number of deleted activity rows. Called inside a transaction. */
int rl_store_delete_activity_batch(rl_db *db, int64_t pass, int64_t *row_count, rl_error *err);
/* Compute and store values that readers would otherwise compute at each query, inside the transaction of the change: the summary
 * and the history of a run when one of its passes is committed; a job's item in the list of jobs when the job is inserted and
 * when it ends; all of these after an upgrade of the schema. */
int rl_store_summarize_run(rl_db *db, int64_t run_id, rl_error *err);
int rl_store_summarize_job(rl_db *db, int64_t job_id, rl_error *err);
int rl_store_summarize_all(rl_db *db, rl_error *err);
/* Computes the floors, the shares and the suspect times of the passes whose floors a migration has removed. */
int rl_store_restore_floors(rl_db *db, rl_error *err);
/* Implements rl_store_job_finish inside a transaction. */
int rl_store_set_final_state(rl_db *db, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err);
/* Called when the daemon starts, inside a transaction, before any worker starts: each pass in the state `running` was interrupted
 * by a crash of the daemon. Adds 1 to the daemon_deaths of the pass's job, and fails a job whose daemon_deaths reach
 * max_deaths. */
int rl_store_record_daemon_crashes(rl_db *db, int64_t max_deaths, rl_error *err);

/* Implement rl_store_find_job_by_key, rl_store_suite_find_run_by_key, rl_store_job_status and rl_store_count_jobs. db: a reader,
 * or the writer inside a transaction. */
int rl_store_read_job_by_key(rl_db *db, const char *key, const char *body_sha256, int64_t *id, rl_error *err);
int rl_store_read_suite_run_by_key(rl_db *db, const char *key, const char *suite, const char *body_sha256, int64_t *id,
                                   rl_error *err);
int rl_store_read_status(rl_db *db, int64_t job_id, rl_job_status *status, rl_error *err);
int rl_store_read_counts(rl_db *db, rl_job_counts *counts, rl_error *err);
/* Executes the query of rl_store_has_token. */
int rl_store_find_token(rl_store *store, const char *hash, bool *known, rl_error *err);
void rl_store_close_readers(rl_store *store);
/* Stores the webhook events of a suite run, inside the transaction that ends the run. Sets *added to the number of new events,
 * and *given_up to the number of old pending events that were deleted because there are too many. */
int rl_store_add_webhook_events(rl_db *db, int64_t run_id, int64_t *added, int64_t *given_up, rl_error *err);
/* Updates the counters and calls store->webhook_added. Called after the transaction of rl_store_add_webhook_events, without the
 * writer's lock. */
void rl_store_announce_webhook_events(rl_store *store, int64_t added, int64_t given_up);
/* Adds the SQL function has_unstored_results(job) to a connection, which calls rl_store_has_unstored_results. */
int rl_store_add_unstored_results_function(rl_store *store, rl_db *db, rl_error *err);

#endif
