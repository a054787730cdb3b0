/* SQLite behind one door: WAL, foreign keys, numbered migrations (schema/sql/NNNN_*.sql, embedded at build) applied in a
 * transaction at open; one writer connection behind a mutex, readers on connections of their own. The lock on the state folder
 * keeps a second daemon out. synchronous=FULL: what a call wrote is on disk when it returns. SQL text lives in schema/sql
 * only: statements have names (schema/sql/statements/NAME.sql, schema/sql/queries/NAME.sql). All calls are thread-safe. */
#ifndef RL_STORE_STORE_H
#define RL_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "model/job.h"
#include "store/binding.h"

typedef struct rl_store rl_store;

/* folder is created (0700) when missing. Errors say what to do: unwritable, already in use by another daemon, newer schema. */
int rl_store_open(const char *folder, rl_store **store, rl_error *err);
/* The same, beside a daemon that may be running: for a program that adds a token. The schema of a running daemon is never
 * changed: RL_INPUT when it is older than this program's. */
int rl_store_open_shared(const char *folder, rl_store **store, rl_error *err);
void rl_store_close(rl_store *store);

/* --- writing: jobs ----------------------------------------------------------------------------------------------------- */
/* Every change of a job or a pass and the event that tells of it are one transaction. */
/* Insert a job, its runs and their passes, and its first event, in one transaction. Idempotency as rl_queue_submit says. */
int rl_store_job_insert(rl_store *store, const rl_job_spec *spec, const char *key, const char *body_sha256, int64_t queue_limit,
                        int64_t *id, bool *existing, rl_error *err);
/* Keep what the compiler said of a run's code, in place of what it said before. */
int rl_store_run_log(rl_store *store, int64_t run_id, const char *text, rl_error *err);
/* Running and interrupted jobs back to queued, their unfinished passes back to pending; *count of them. A pass that still ran
 * is a crash of its job's, counted apart from what rl_store_pass_died counts: `most` of them fail it. */
int rl_store_jobs_requeue(rl_store *store, int64_t most, int64_t *count, rl_error *err);
/* The next pass for a device: 1 and *claim (deadline_ns holds the job's deadline_s times 1e9, or 0), 0 when there is none.
 * The caller clears the claim. */
int rl_store_pass_claim(rl_store *store, const char *device, rl_claim *claim, rl_error *err);
/* All of a pass's records, the pass's state (completed, or unavailable with a reason when reason is not NULL), and, after
 * the last pass, the job's: one transaction. Committing a pass twice changes nothing. *job_done says the job completed. */
int rl_store_pass_commit(rl_store *store, const rl_claim *claim, const rl_records *records, const char *reason, bool *job_done,
                         rl_error *err);
/* Whether the daemon should measure the ceilings of a pass's device again: its driver or clocks are others than those of its
 * ceilings. */
int rl_store_ceilings_due(rl_store *store, int64_t pass_id, bool *due, rl_error *err);
/* Note a worker's death: the pass back to pending, or with so many deaths at most the job failed. */
int rl_store_pass_died(rl_store *store, const rl_claim *claim, const char *reason, int64_t most, bool *job_failed, rl_error *err);
/* Move a job to a final state or to interrupted; problem is NULL or the rl_error that failed it. RL_HTTP 404 when unknown,
 * 409 when it is already final. */
int rl_store_job_finish(rl_store *store, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err);
/* 1 and *id when the key came before with the same body, 0 when it is new. RL_HTTP 422: it came with another body. */
int rl_store_job_by_key(rl_store *store, const char *key, const char *body_sha256, int64_t *id, rl_error *err);
int rl_store_job_state(rl_store *store, int64_t job_id, rl_job_state *state, rl_error *err);  /* RL_HTTP 404 */
int rl_store_job_status(rl_store *store, int64_t job_id, rl_job_status *life, rl_error *err); /* the same */
int rl_store_has_run(rl_store *store, int64_t run_id, bool *found, rl_error *err);
int rl_store_jobs_count(rl_store *store, rl_job_counts *counts, rl_error *err);

/* --- writing: the rest ------------------------------------------------------------------------------------------------- */
/* data: JSON text of an object. *seq: the event's number within its job, from 1 without gaps. */
int rl_store_event_append(rl_store *store, int64_t job_id, const char *type, const char *data, int64_t *seq, rl_error *err);
/* Tokens: sha-like hash (libsodium) as hex text, and whether one is valid. */
int rl_store_token_add(rl_store *store, const char *name, const char *hash, rl_error *err);
/* All of this name; *count of them. */
int rl_store_token_remove(rl_store *store, const char *name, int64_t *count, rl_error *err);
int rl_store_token_count(rl_store *store, int64_t *count, rl_error *err);
int rl_store_token_known(rl_store *store, const char *hash, bool *known, rl_error *err);

/* Raw activity rows go first, then events, then whole jobs, never a running one. Called from the daemon's housekeeping; with
 * *stop it ends after the batch that it is at. */
typedef struct rl_retention {
  int64_t activity_days, job_days, max_bytes;
} rl_retention; /* 0: no limit */
int rl_store_retain(rl_store *store, const rl_retention *retention, int64_t now_ns, const atomic_bool *stop,
                    int64_t *removed_rows, rl_error *err);
/* What it removes. */
typedef enum rl_removed_kind { RL_REMOVED_ACTIVITY, RL_REMOVED_EVENTS, RL_REMOVED_JOBS, RL_REMOVED_KINDS } rl_removed_kind;
int64_t rl_store_removed_rows(const rl_store *store, rl_removed_kind what); /* rows since the store was opened */
/* SQLite's online backup of the database in folder (daemon running or not) into file, which must not exist. */
int rl_store_backup(const char *folder, const char *file, rl_error *err);
/* Sizes of its files; log: the write-ahead log. */
int rl_store_bytes(rl_store *store, int64_t *database, int64_t *log, rl_error *err);

/* --- reading ----------------------------------------------------------------------------------------------------------- */
/* Reads are named queries whose first column is JSON text of one object, ready to be sent; instants in it are RFC 3339 with
 * nanoseconds, durations carry their unit. Parameters are bound by name. A cursor pins one reader connection and one snapshot. */
typedef enum rl_query {
  RL_QUERY_JOB,        /* :id                                         one row */
  RL_QUERY_SOURCE,     /* :id                                         one row, where the job has posted code: that text */
  RL_QUERY_JOBS,       /* :before :kind :state :device :limit         newest first; ids below :before */
  RL_QUERY_EVENTS,     /* :job :after :limit     columns: json data, seq, type */
  RL_QUERY_RESULTS,    /* :job                                        one row: runs with facts, epochs, measurements, passes */
  RL_QUERY_KERNELS,    /* :job :pass :run :most_metrics :after :limit  kernel rows with their metrics, unless they are more */
  RL_QUERY_TIMELINE,   /* :job :run :from :to :limit                   activity rows that overlap [from, to) ns */
  RL_QUERY_TRACE,      /* :job :run :from :to :limit                   as trace events, commas between those of one row */
  RL_QUERY_COMPARISON, /* :job, or :a :b     a row a pair of runs: its fp32 and each other, or these two of one workload */
  RL_QUERY_HISTORY,    /* :metric :workload :device :like :from :to :limit   one metric over runs, oldest first */
  RL_QUERY_REPORT_RUN, /* :run              one row: the run; columns: numbers, compute capability, sections asked for */
  RL_QUERY_REPORT_KERNELS,  /* :run :kernel :inside  kernels in order; columns: numbers, series, instructions */
  RL_QUERY_REPORT_METRICS,  /* :run :kernel   names of what was counted, in order; column: the plain name */
  RL_QUERY_COMPARE_KERNELS, /* :a :b :kernel_a :kernel_b :numbers  pairs of kernels; columns: numbers of a's, of b's */
  RL_QUERY_COUNTED_KERNEL,  /* :run :kernel   one row, where the counters pass has this kernel: its name */
  RL_QUERY_CEILINGS,        /* :device                                     the newest of each device and driver */
  RL_QUERY_TOKENS,          /*                                              their names, oldest first */
  RL_QUERIES
} rl_query;

typedef struct rl_cursor rl_cursor;
/* Text in bindings must outlive the cursor. A binding that is absent is NULL, which means "no filter". */
int rl_store_query(rl_store *store, rl_query query, const rl_binding *bindings, int count, rl_cursor **cursor, rl_error *err);
/* 1: *json is the row's text, valid until the next call; 0: no more; -1: error. */
int rl_cursor_next(rl_cursor *cursor, const char **json, rl_error *err);
int64_t rl_cursor_integer(rl_cursor *cursor, int column); /* further columns of the current row */
const char *rl_cursor_text(rl_cursor *cursor, int column);
void rl_cursor_close(rl_cursor *cursor);

RL_DEFINE_CLEANUP(rl_store_cleanup, rl_store *, rl_store_close, NULL)
RL_DEFINE_CLEANUP(rl_cursor_cleanup, rl_cursor *, rl_cursor_close, NULL)
#endif
