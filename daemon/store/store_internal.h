/* Declarations that the source files of the store share. */
#ifndef RL_STORE_STORE_INTERNAL_H
#define RL_STORE_STORE_INTERNAL_H

#include <pthread.h>

#include "store/db.h"
#include "store/store.h"

extern const rl_embedded rl_statements[]; /* all named statements, including the generated INSERTs of records */

struct rl_store {
  char *folder, *file;          /* the state folder and the database in it */
  int lock;                     /* descriptor that holds the folder's lock; -1: another process holds the lock */
  pthread_mutex_t writer_mutex; /* held during a transaction of the writer */
  rl_db writer;
  _Atomic int64_t removed_rows[RL_REMOVED_KINDS]; /* by retention */
  pthread_mutex_t readers_mutex;                  /* guards the members below */
  pthread_cond_t reader_returned;
  rl_cursor *idle; /* list of the idle reader connections */
  int readers;     /* number of reader connections, idle or in use */
};

/* Locks the writer and begins a transaction. The writer is unlocked after a failure. */
int rl_store_begin(rl_store *store, rl_error *err);
/* Commits if rc >= 0, else rolls back; then unlocks the writer. Returns rc; -1 if the commit failed. */
int rl_store_end(rl_store *store, int rc, rl_error *err);

/* Insert an event, inside the transaction of the change that it reports. problem: why the job failed, or NULL. reason: why the
 * pass is unavailable or died, or NULL. */
int rl_store_add_state_event(rl_db *db, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err);
int rl_store_add_pass_event(rl_db *db, const rl_claim *claim, const char *state, const char *reason, rl_error *err);

/* Inserts all records of a pass, and the longest duration of each kind of activity row. Inside a transaction. */
int rl_store_insert_records(rl_db *db, const rl_claim *claim, const rl_records *records, rl_error *err);
/* Does the work of rl_store_job_finish inside a transaction. */
int rl_store_set_final_state(rl_db *db, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err);
/* Adds 1 to daemon_deaths for each pass that a crash of the daemon left running, and fails jobs at max_crashes. Inside a
 * transaction, before a worker has started. */
int rl_store_count_crashes(rl_db *db, int64_t max_crashes, rl_error *err);

/* Read for rl_store_job_by_key, rl_store_job_status and rl_store_jobs_count on the given connection: a reader, or the writer
 * inside a transaction. */
int rl_store_read_key(rl_db *db, const char *key, const char *body_sha256, int64_t *id, rl_error *err);
int rl_store_read_status(rl_db *db, int64_t job_id, rl_job_status *status, rl_error *err); /* RL_HTTP 404 */
int rl_store_read_counts(rl_db *db, rl_job_counts *counts, rl_error *err);
void rl_store_close_readers(rl_store *store);

#endif
