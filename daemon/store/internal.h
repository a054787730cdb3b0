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
  pthread_mutex_t reading; /* guards what is below */
  pthread_cond_t returned; /* a cursor came back */
  rl_cursor *idle;
  int readers; /* connections, idle or not */
};

/* Take the writer and begin a transaction; -1 leaves the writer free. */
int rl_store_begin(rl_store *store, rl_error *err);
/* rc >= 0: commit; else roll back. Frees the writer. Returns rc, or -1 when the commit failed. */
int rl_store_end(rl_store *store, int rc, rl_error *err);
/* The next event of a job, inside a transaction. */
int rl_store_event_add(rl_store *store, int64_t job_id, const char *type, const char *data, int64_t *seq,
                       rl_error *err);
/* On the writer inside a transaction, or on a reader. */
int rl_store_read_state(rl_db *db, int64_t job_id, rl_job_state *state, rl_error *err); /* RL_HTTP 404 */
int rl_store_read_counts(rl_db *db, rl_jobs_counts *counts, rl_error *err);
void rl_store_close_readers(rl_store *store);

#endif
