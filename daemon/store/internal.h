/* What the parts of the store share. */
#ifndef RL_STORE_INTERNAL_H
#define RL_STORE_INTERNAL_H

#include <pthread.h>

#include "store/db.h"

extern const rl_embedded rl_migrations[], rl_statements[]; /* schema/sql; the queries are among the statements */

struct rl_store {
  char *folder, *file;     /* the state folder and the database in it */
  int lock;                /* descriptor that holds the folder's lock; -1: a daemon beside us holds it */
  pthread_mutex_t writing; /* held during a transaction of the writer */
  rl_db writer;
  _Atomic int64_t retained[RL_REMOVED_KINDS]; /* rows that retention removed */
  pthread_mutex_t reading;                    /* guards what is below */
  pthread_cond_t returned;                    /* a cursor came back */
  rl_cursor *idle;
  int readers; /* connections, idle or not */
};

/* Take the writer and begin a transaction; -1 leaves the writer free. */
int rl_store_begin(rl_store *store, rl_error *err);
/* rc >= 0: commit; else roll back. Frees the writer. Returns rc, or -1 when the commit failed. */
int rl_store_end(rl_store *store, int rc, rl_error *err);
/* Inside the transaction of the change that they tell of. problem: why the job failed, or NULL; reason: of the pass, or NULL. */
int rl_store_tell_state(rl_db *db, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err);
int rl_store_tell_pass(rl_db *db, const rl_claim *claim, const char *state, const char *reason, rl_error *err);
/* rl_store_job_finish, inside a transaction. */
int rl_store_finish(rl_db *db, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err);
/* Before any worker has started: what still runs went down with the daemon; `most` such crashes fail a job. Inside a
 * transaction. */
int rl_store_note_crashes(rl_db *db, int64_t most, rl_error *err);
/* On the writer inside a transaction, or on a reader. */
int rl_store_read_key(rl_db *db, const char *key, const char *body_sha256, int64_t *id, rl_error *err);
int rl_store_read_status(rl_db *db, int64_t job_id, rl_job_status *life, rl_error *err); /* RL_HTTP 404 */
int rl_store_read_counts(rl_db *db, rl_job_counts *counts, rl_error *err);
void rl_store_close_readers(rl_store *store);

#endif
