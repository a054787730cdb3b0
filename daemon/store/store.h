/* The SQLite database of the daemon: the only module with SQL. One writer connection behind a mutex, and a pool of reader
 * connections. WAL mode with synchronous=FULL: what a call wrote is on disk when it returns. Statements have names
 * (schema/sql/statements/NAME.sql, schema/sql/queries/NAME.sql). A lock on the state folder excludes a second daemon. Database
 * errors have the domain RL_STORAGE. All calls are thread-safe. */
#ifndef RL_STORE_STORE_H
#define RL_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "model/job.h"
#include "store/binding.h"

typedef struct rl_store rl_store;

/* Opens the database in the state folder; creates the folder (mode 0700) and the database when they are missing, and upgrades an
 * older schema. RL_SYS when the folder is not writable or another daemon uses it; RL_INPUT for a database that this program can't
 * use. */
int rl_store_open(const char *folder, rl_store **store, rl_error *err);
/* The same while a daemon may be running, for a program that adds a token. RL_INPUT when the running daemon's schema is older: it
 * is not changed. */
int rl_store_open_shared(const char *folder, rl_store **store, rl_error *err);
void rl_store_close(rl_store *store);

/* --- writing: jobs ----------------------------------------------------------------------------------------------------- */
/* Each change of a job or a pass and the event that reports it are one transaction. */
/* Inserts a job, its runs, their passes and its first event. key, existing: see rl_queue_submit. RL_HTTP 429 when queue_limit
 * jobs are queued. */
int rl_store_job_insert(rl_store *store, const rl_job_spec *spec, const char *key, const char *body_sha256, int64_t queue_limit,
                        int64_t *id, bool *existing, rl_error *err);
/* Stores the compiler's log of a run and replaces an earlier one. */
int rl_store_run_log(rl_store *store, int64_t run_id, const char *text, rl_error *err);
/* Sets running and interrupted jobs to queued and their unfinished passes to pending; *count: the number of jobs. Each pass that
 * was still running is a crash of the daemon, counted in daemon_deaths; a job with max_crashes of them fails instead. */
int rl_store_jobs_requeue(rl_store *store, int64_t max_crashes, int64_t *count, rl_error *err);
/* Claims the next pass for a device: returns 1 and fills *claim, or 0 when there is none. deadline_ns is the job's deadline_s in
 * ns, not yet an instant; 0: the configured one. The caller clears the claim. */
int rl_store_pass_claim(rl_store *store, const char *device, rl_claim *claim, rl_error *err);
/* Stores all records of a pass and its state: completed, or unavailable when reason is not NULL. After the job's last pass the
 * job is completed, too, and *job_done is true. One transaction; a second commit of a pass changes nothing. RL_HTTP 409 when the
 * pass is not running, 404 when it does not exist. */
int rl_store_pass_commit(rl_store *store, const rl_claim *claim, const rl_records *records, const char *reason, bool *job_done,
                         rl_error *err);
/* *due: the daemon should measure the ceilings of the pass's device again, because its driver or clocks have changed since. */
int rl_store_ceilings_due(rl_store *store, int64_t pass_id, bool *due, rl_error *err);
/* Counts a death of the worker and sets the pass to pending; at max_deaths the job fails. */
int rl_store_pass_died(rl_store *store, const rl_claim *claim, const char *reason, int64_t max_deaths, bool *job_failed,
                       rl_error *err);
/* Sets a job to a final state or to interrupted. problem: why it failed, or NULL. RL_HTTP 404 when there is no such job, 409 when
 * its state is final already. */
int rl_store_job_finish(rl_store *store, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err);
/* Returns 1 and *id when an earlier job has this key and body, 0 when the key is new. RL_HTTP 422 when its body was different. */
int rl_store_job_by_key(rl_store *store, const char *key, const char *body_sha256, int64_t *id, rl_error *err);
int rl_store_job_state(rl_store *store, int64_t job_id, rl_job_state *state, rl_error *err);  /* RL_HTTP 404 */
int rl_store_job_status(rl_store *store, int64_t job_id, rl_job_status *life, rl_error *err); /* the same */
int rl_store_has_run(rl_store *store, int64_t run_id, bool *found, rl_error *err);
int rl_store_jobs_count(rl_store *store, rl_job_counts *counts, rl_error *err);

/* --- writing: the rest ------------------------------------------------------------------------------------------------- */
/* Appends an event. data: JSON text of an object. *seq: the event's number within its job, from 1 without gaps. */
int rl_store_event_append(rl_store *store, int64_t job_id, const char *type, const char *data, int64_t *seq, rl_error *err);
/* Access tokens by their hash, hexadecimal text. */
int rl_store_token_add(rl_store *store, const char *name, const char *hash, rl_error *err);
/* Removes all tokens with this name; *count: how many. */
int rl_store_token_remove(rl_store *store, const char *name, int64_t *count, rl_error *err);
int rl_store_token_count(rl_store *store, int64_t *count, rl_error *err);
int rl_store_token_known(rl_store *store, const char *hash, bool *known, rl_error *err);

/* Deletes what is older than the limits: raw activity rows first, then events, then whole jobs, but no job that waits or runs.
 * When *stop becomes true, it returns after the current batch. */
typedef struct rl_retention {
  int64_t activity_days, job_days, max_bytes;
} rl_retention; /* 0: no limit */
int rl_store_retain(rl_store *store, const rl_retention *retention, int64_t now_ns, const atomic_bool *stop,
                    int64_t *removed_rows, rl_error *err);
/* The kinds of rows that retention deletes. */
typedef enum rl_removed_kind { RL_REMOVED_ACTIVITY, RL_REMOVED_EVENTS, RL_REMOVED_JOBS, RL_REMOVED_KINDS } rl_removed_kind;
int64_t rl_store_removed_rows(const rl_store *store,
                              rl_removed_kind kind); /* number of rows deleted since the store was opened */
/* Copies the database in folder to a new file, also while a daemon runs. RL_SYS when the file exists. */
int rl_store_backup(const char *folder, const char *file, rl_error *err);
/* Sizes of the database and of its write-ahead log. */
int rl_store_bytes(rl_store *store, int64_t *database_bytes, int64_t *log_bytes, rl_error *err);

/* --- reading ----------------------------------------------------------------------------------------------------------- */
/* A query yields rows whose first column is the JSON text of one object, as the API sends it. A cursor holds one reader
 * connection and one snapshot of the database until it is closed. */
typedef enum rl_query {
  RL_QUERY_JOB,        /* :id                                         one row */
  RL_QUERY_SOURCE,     /* :id                                         the posted code; no row when the job has none */
  RL_QUERY_JOBS,       /* :before :kind :state :device :limit         newest first; ids below :before */
  RL_QUERY_EVENTS,     /* :job :after :limit     columns: json data, seq, type */
  RL_QUERY_RESULTS,    /* :job                                        one row: runs with facts, epochs, measurements, passes */
  RL_QUERY_KERNELS,    /* :job :pass :run :most_metrics :after :limit  kernels, with up to :most_metrics metrics each */
  RL_QUERY_TIMELINE,   /* :job :run :from :to :limit                   activity rows that overlap [from, to) ns */
  RL_QUERY_TRACE,      /* :job :run :from :to :limit                   as trace events, separated by commas */
  RL_QUERY_COMPARISON, /* :job, or :a :b     pairs of runs: the job's fp32 run with each other one, or :a with :b */
  RL_QUERY_HISTORY,    /* :metric :workload :device :like :from :to :limit   one metric over runs, oldest first */
  RL_QUERY_REPORT_RUN, /* :run              one row: the run; columns: numbers, compute capability, requested sections */
  RL_QUERY_REPORT_KERNELS,  /* :run :kernel :inside  kernels in order; columns: numbers, series, instructions */
  RL_QUERY_REPORT_METRICS,  /* :run :kernel   names of counted metrics, in order; column: the name without quotes */
  RL_QUERY_COMPARE_KERNELS, /* :a :b :kernel_a :kernel_b :numbers  pairs of kernels; columns: numbers of a's, of b's */
  RL_QUERY_COUNTED_KERNEL,  /* :run :kernel   the kernel's name; no row when the counters pass has no such kernel */
  RL_QUERY_CEILINGS,        /* :device                                     the newest ceilings of each device and driver */
  RL_QUERY_TOKENS,          /*                                              names of tokens, oldest first */
  RL_QUERIES
} rl_query;

typedef struct rl_cursor rl_cursor;
/* A parameter without a binding is NULL, which means no filter. RL_HTTP 503 when all reader connections stay in use. */
int rl_store_query(rl_store *store, rl_query query, const rl_binding *bindings, int count, rl_cursor **cursor, rl_error *err);
/* Returns 1 and the JSON text of the next row, valid until the next call; 0 at the end. */
int rl_cursor_next(rl_cursor *cursor, const char **json, rl_error *err);
int64_t rl_cursor_integer(rl_cursor *cursor, int column); /* further columns of the current row */
const char *rl_cursor_text(rl_cursor *cursor, int column);
void rl_cursor_close(rl_cursor *cursor);

RL_DEFINE_CLEANUP(rl_store_cleanup, rl_store *, rl_store_close, NULL)
RL_DEFINE_CLEANUP(rl_cursor_cleanup, rl_cursor *, rl_cursor_close, NULL)
#endif
