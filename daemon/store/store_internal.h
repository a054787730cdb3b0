/* Declarations that the source files of the store share. */
#ifndef RL_STORE_STORE_INTERNAL_H
#define RL_STORE_STORE_INTERNAL_H

#include <pthread.h>

#include "store/db.h"
#include "store/store.h"

extern const rl_embedded rl_statements[]; /* schema/sql/statements and queries, and the generated inserts of records */

struct rl_store {
  char *folder, *file;          /* the state folder and the database in it */
  int lock;                     /* descriptor that holds the lock of the folder; -1: another process holds it */
  pthread_mutex_t writer_mutex; /* held during a transaction of the writer */
  rl_db writer;
  _Atomic int64_t removed_rows[RL_REMOVED_KINDS]; /* by retention */
  pthread_mutex_t readers_mutex;                  /* guards the members below */
  pthread_cond_t reader_returned;
  rl_cursor *idle;
  int readers; /* number of reader connections, idle or in use */
};

/* Locks the writer and begins a transaction; -1 leaves the writer unlocked. */
int rl_store_begin(rl_store *store, rl_error *err);
/* Commits when rc >= 0, else rolls back; unlocks the writer. Returns rc, or -1 when the commit failed. */
int rl_store_end(rl_store *store, int rc, rl_error *err);

/* Each of these runs inside the transaction of the change that the event reports. problem: why the job failed, or NULL; reason:
 * of the pass, or NULL. */
int rl_store_add_state_event(rl_db *db, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err);
int rl_store_add_pass_event(rl_db *db, const rl_claim *claim, const char *state, const char *reason, rl_error *err);

/* Inserts all records of a pass: facts, rows of every kind, and the longest duration of each kind of activity row. */
int rl_store_insert_records(rl_db *db, const rl_claim *claim, const rl_records *records, rl_error *err);
/* rl_store_job_finish, inside a transaction. */
int rl_store_finish(rl_db *db, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err);
/* Counts a crash of the daemon for each pass that was still running when it went down; max_crashes of them fail the job. Inside a
 * transaction, before any worker has started. */
int rl_store_count_crashes(rl_db *db, int64_t max_crashes, rl_error *err);

/* On the writer inside a transaction, or on a reader. */
int rl_store_read_key(rl_db *db, const char *key, const char *body_sha256, int64_t *id, rl_error *err);
int rl_store_read_status(rl_db *db, int64_t job_id, rl_job_status *status, rl_error *err); /* RL_HTTP 404 */
int rl_store_read_counts(rl_db *db, rl_job_counts *counts, rl_error *err);
void rl_store_close_readers(rl_store *store);

#endif
