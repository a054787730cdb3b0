/* The SQLite database of the daemon. The queue, the supervisor, the suite runner and the HTTP handlers call this module from
 * their threads; rooflinectl opens the database for its commands token and backup. There is one writer connection, which a mutex
 * guards, and a pool of reader connections. All changes are on disk when a function returns (WAL mode, synchronous=FULL). SQL
 * statements are files with names (schema/sql/statements/NAME.sql, schema/sql/queries/NAME.sql). A lock on the state folder
 * excludes a second daemon. Database errors have the domain RL_STORAGE. All functions are thread-safe. */
#ifndef RL_STORE_STORE_H
#define RL_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "model/job.h"
#include "store/binding.h"

typedef struct rl_store rl_store;

/* Opens the database in the state folder. Creates the folder (mode 0700) and the database if they do not exist, and upgrades an
 * older schema. Fails with RL_ERRNO if the folder is not writable or another daemon uses it; with RL_INPUT if this program can't
 * use the database (schema.h). */
int rl_store_open(const char *folder, rl_store **store, rl_error *err);
/* Opens the database even if a daemon is using it, for `rooflinectl token`. Fails with RL_INPUT if a daemon is running and the
 * schema is not the one of this program. */
int rl_store_open_shared(const char *folder, rl_store **store, rl_error *err);
void rl_store_close(rl_store *store);
/* Fails if the state folder's file system has less than 1 MiB of free space, is read-only or does not answer, or if a transaction
 * failed because of the disk less than 10 s ago and none has written rows since. Writes nothing. The message names no file. */
int rl_store_check_writable(rl_store *store, rl_error *err);
/* Returns whether to repeat a call of the store that failed with err: another program, such as `rooflinectl token`, holds the
 * database's lock, less than 5 s have passed since begin_ns (rl_monotonic_ns of the first attempt), and no stop signal is pending
 * (base/stop_signal.h). Waits briefly before it returns true. Called only while the daemon starts, because no client waits then.
 */
bool rl_store_should_retry_at_start(const rl_error *err, int64_t begin_ns);

/* --- writing: jobs ----------------------------------------------------------------------------------------------------- */
/* A function that changes the state of a job or a pass also inserts the event that reports the change, in the same
 * transaction. */

/* Sets whether a running job has results that can't be stored now. Queries return `storing` as the state of such a job. Changes
 * memory only. */
void rl_store_set_has_unstored_results(rl_store *store, int64_t job_id, bool has_unstored_results);
bool rl_store_has_unstored_results(const rl_store *store, int64_t job_id);
/* Inserts a job, its runs and their passes. If a job with the idempotency key exists, stores nothing, and sets *id to that job
 * and *existing to true; fails with RL_HTTP 422 if that job's request had another hash than body_sha256. key: NULL: none. Fails
 * with RL_HTTP 429 if queue_limit jobs are queued. */
int rl_store_job_insert(rl_store *store, const rl_job_spec *spec, const char *key, const char *body_sha256, int64_t queue_limit,
                        int64_t *id, bool *existing, rl_error *err);
/* Stores the log of a run: what the compiler printed for a posted kernel, or the notes of an import. Replaces an earlier log. */
int rl_store_set_run_log(rl_store *store, int64_t run_id, const char *text, rl_error *err);
/* Called when the daemon starts. Sets running and interrupted jobs to queued and their unfinished passes to pending, and sets
 * *count to the number of these jobs. If a pass has the state `running`, the daemon crashed during the pass: adds 1 to the job's
 * daemon_deaths, and fails the job instead of requeuing it if daemon_deaths has reached max_deaths. */
int rl_store_jobs_requeue(rl_store *store, int64_t max_deaths, int64_t *count, rl_error *err);
/* Sets the next pending pass of a device to running. Returns 1 and fills *claim, which the caller clears; returns 0 if no pass is
 * pending. Leaves claim->deadline_ns 0; the queue sets it. */
int rl_store_pass_claim(rl_store *store, const char *device, rl_claim *claim, rl_error *err);
/* Stores all records of a pass and sets the pass to completed, or to unavailable if reason is not NULL. If there are many
 * kernels, they and the records that belong to them are first stored in several transactions. The last transaction makes all
 * records visible to readers at once. If this was the job's last pass, also completes the job and sets *job_done. A second commit
 * of a pass succeeds and changes nothing. Fails with RL_HTTP 409 if the pass is neither committed nor running, or if its job is
 * not running; with 404 if the pass does not exist. */
int rl_store_pass_commit(rl_store *store, const rl_claim *claim, const rl_records *records, const char *reason, bool *job_done,
                         rl_error *err);
/* Sets *due to whether the ceilings of the pass's device should be measured again, because its driver or clocks have changed. */
int rl_store_are_ceilings_due(rl_store *store, int64_t pass_id, bool *due, rl_error *err);
/* Adds 1 to the job's worker_deaths and sets the pass to pending. If worker_deaths reaches max_deaths, fails the job and sets
 * *job_failed. */
int rl_store_record_worker_crash(rl_store *store, const rl_claim *claim, const char *reason, int64_t max_deaths, bool *job_failed,
                                 rl_error *err);
/* Sets a job to a final state or to interrupted. problem: why the job failed, or NULL. Fails with RL_HTTP 404 if the job does not
 * exist, 409 if its state is already final. */
int rl_store_job_finish(rl_store *store, int64_t job_id, rl_job_state state, const rl_error *problem, rl_error *err);
/* Changes the job's name and tags. patch: a JSON text that rl_job_labels_parse has made. Fails with RL_HTTP 404 if the job does
 * not exist. */
int rl_store_job_set_labels(rl_store *store, int64_t job_id, const char *patch, rl_error *err);
/* Returns 1 and sets *id if a job has this Idempotency-Key and body; 0 if no job has the key. Fails with RL_HTTP 422 if the
 * bodies differ. */
int rl_store_find_job_by_key(rl_store *store, const char *key, const char *body_sha256, int64_t *id, rl_error *err);
/* Read a job's state, and its kind, state and times. Fail with RL_HTTP 404 if the job does not exist. */
int rl_store_job_state(rl_store *store, int64_t job_id, rl_job_state *state, rl_error *err);
int rl_store_job_status(rl_store *store, int64_t job_id, rl_job_status *status, rl_error *err);
int rl_store_has_run(rl_store *store, int64_t run_id, bool *found, rl_error *err);
int rl_store_count_jobs(rl_store *store, rl_job_counts *counts, rl_error *err);

/* --- writing: activity rows -------------------------------------------------------------------------------------------- */
/* The activity rows of a running pass are stored in slices while the worker sends them. No query returns them before the pass is
 * committed. */
enum { RL_SLICE_ROWS = 4096 }; /* maximum number of activity rows in one transaction */
/* Appends the activity rows of a pass. Keeps the number of rows that are stored, and the dictionary of the values that rows
 * share. Each attempt to execute a pass needs a new appender. Not thread-safe. */
typedef struct rl_activity_appender rl_activity_appender;
rl_activity_appender *rl_activity_appender_new(void); /* NULL: out of memory */
void rl_activity_appender_free(rl_activity_appender *appender);
/* Returns the number of stored rows of the pass; 0 if appender is NULL. */
int64_t rl_activity_appender_row_count(const rl_activity_appender *appender);
/* Sets *count to the number of stored activity rows of a pass. */
int rl_store_count_activity_rows(rl_store *store, int64_t pass_id, int64_t *count, rl_error *err);
/* Stores the first RL_SLICE_ROWS activity rows of records, or all if there are fewer, in one short transaction, and removes them
 * from records. records->names must contain all names of the pass that were received so far. After a failure, nothing is stored,
 * records is unchanged, and the call can be repeated. Fails with RL_STORAGE; the codes RL_STORAGE_FULL and RL_STORAGE_LOCKED may
 * be temporary. Fails with RL_HTTP 409 if the pass is not running, 404 if it does not exist. */
int rl_store_append_activity(rl_store *store, const rl_claim *claim, rl_activity_appender *appender, rl_records *records,
                             rl_error *err);
/* Deletes the activity rows of a pass that is not committed, in short transactions. Must be called before the pass is executed
 * again. Returns after the current transaction when *stop becomes true. */
int rl_store_discard_activity(rl_store *store, int64_t pass_id, const atomic_bool *stop, rl_error *err);

/* --- events, tokens, retention, backup ---------------------------------------------------------------------------------- */
/* Appends an event to a job. data: JSON text of an object. Sets *seq to the event's number; the events of a job are numbered from
 * 1 without gaps. Fails with RL_HTTP 409 if the job's state is final, because a job has no events after its final state. */
int rl_store_event_append(rl_store *store, int64_t job_id, const char *type, const char *data, int64_t *seq, rl_error *err);
/* Access tokens. The store has only their hashes (hexadecimal text). */
int rl_store_token_add(rl_store *store, const char *name, const char *hash, rl_error *err);
/* Removes all tokens with this name and sets *count to their number. */
int rl_store_token_remove(rl_store *store, const char *name, int64_t *count, rl_error *err);
int rl_store_count_tokens(rl_store *store, int64_t *count, rl_error *err);
int rl_store_has_token(rl_store *store, const char *hash, bool *known, rl_error *err);
/* Returns true if rl_store_has_token has found the token and no token has changed since. False does not mean that the token is
 * invalid. Reads memory only. */
bool rl_store_has_cached_token(rl_store *store, const char *hash);

/* The limits of retention. 0: no limit. */
typedef struct rl_retention {
  int64_t activity_days; /* maximum age of activity rows and of events */
  int64_t job_days;      /* maximum age of jobs */
  int64_t max_bytes;     /* maximum size of the database */
} rl_retention;
/* Deletes data beyond the limits, the oldest first: activity rows, then events, then, only for max_bytes, suite runs, then whole
 * jobs. Never deletes queued or running jobs and suite runs, nor those of v_needed_jobs and v_needed_suite_runs. Deletes nothing
 * for max_bytes if these alone need more, by an estimate that is too low rather than too high. Returns after the current batch
 * when *stop becomes true. Sets *removed_rows to the number of deleted rows. */
int rl_store_apply_retention(rl_store *store, const rl_retention *retention, int64_t now_ns, const atomic_bool *stop,
                             int64_t *removed_rows, rl_error *err);
/* Sets *bytes to the number of bytes by which the database exceeds max_bytes (0: no limit); 0: it does not. */
int rl_store_excess_bytes(rl_store *store, int64_t max_bytes, int64_t *bytes, rl_error *err);
/* The kinds of rows that retention deletes. */
typedef enum rl_retention_row_kind {
  RL_REMOVED_ACTIVITY,
  RL_REMOVED_EVENTS,
  RL_REMOVED_SUITE_RUNS,
  RL_REMOVED_JOBS,
  RL_RETENTION_ROW_KIND_COUNT
} rl_retention_row_kind;
/* Returns the number of rows that retention has deleted since the store was opened. */
int64_t rl_store_removed_rows(const rl_store *store, rl_retention_row_kind kind);
/* Copies the database in the state folder to a new file, even while a daemon uses it. Fails with RL_ERRNO if the file exists. */
int rl_store_backup(const char *folder, const char *file, rl_error *err);
/* Sets the sizes of the database file and of its write-ahead log. */
int rl_store_file_sizes(rl_store *store, int64_t *database_bytes, int64_t *log_bytes, rl_error *err);
typedef enum rl_reset_result {
  RL_RESET_DONE,
  RL_RESET_HELD_BY_WRITER, /* another thread held the writer for 1 s */
  RL_RESET_HELD_BY_QUERY,  /* a query of this store still reads a snapshot in the log after 0.1 s */
  RL_RESET_HELD_BY_PROGRAM /* another program still reads such a snapshot, or holds the database's lock, after 0.1 s */
} rl_reset_result;
/* Copies the write-ahead log into the database and empties its file. Returns an rl_reset_result, or -1. Writers wait meanwhile,
 * so short queries that overlap do not prevent the reset. */
int rl_store_reset_log(rl_store *store, rl_error *err);

/* --- reading ----------------------------------------------------------------------------------------------------------- */
/* The queries. The file schema/sql/queries/NAME.sql of a query describes its parameters (:job, ...) and its columns; the comments
 * below repeat them briefly. A parameter without a binding is NULL and filters nothing. The first column of a row is JSON text as
 * the API sends it, except for the queries marked "as columns" or "as text". `numbers` is a column with metric values in JSON:
 * [[name, value, reason]...]. A phase of a step has launches (rl_launch.nvtx_range); a phase of a launch is an rl_phase. A level
 * is the length of an interval over which activity rows are added up (model/activity_levels.h). */
typedef enum rl_query {
  RL_QUERY_JOB,    /* job :id */
  RL_QUERY_SOURCE, /* posted code of job :id; no row if the job has none */
  /* at most :limit jobs with ids below :before, newest first; filters: :kind :state :device :search :in_suite :in_no_suite */
  RL_QUERY_JOBS,
  RL_QUERY_JOB_DEVICES, /* ids of the devices of all jobs */
  RL_QUERY_EVENTS,      /* at most :limit events of :job with numbers above :after; further columns: number (seq), type */
  RL_QUERY_RESULTS,     /* one row: the runs of :job with metadata, epochs, measurements and passes */
  /* at most :limit kernels of :job :run :pass with ids above :after; without metrics if a kernel has more than :most_metrics */
  RL_QUERY_KERNELS,
  RL_QUERY_TIMELINE,            /* at most :limit activity rows of :job :run that overlap the time from :from to :to (ns) */
  RL_QUERY_EXPORT_RUNS,         /* runs of :job :run with the conditions of their traces; further column: id */
  RL_QUERY_EXPORT_MEASUREMENTS, /* measured numbers of :job :run, sorted by name, as columns */
  RL_QUERY_TIMELINE_PASS,       /* activity pass of :run, as columns */
  RL_QUERY_TIMELINE_NAMES,      /* names in the activity rows of :run, as text */
  RL_QUERY_TIMELINE_VALUES,     /* dictionary of the values that activity rows of :run share, sorted by entry, as columns */
  RL_QUERY_TIMELINE_PHASES,     /* phases to which the operations of each name in :run belong, as columns */
  RL_QUERY_TIMELINE_KERNELS,    /* kernels in the trace of :run by launch, in the order of their first start, as columns */
  RL_QUERY_TIMELINE_RUN,        /* workload and device of :run, as columns */
  RL_QUERY_TIMELINE_COPIES,     /* copies in the trace of :run, grouped by direction and kinds of memory, as columns */
  RL_QUERY_TIMELINE_EVENTS,     /* operations, API calls, NVTX ranges and overheads in the trace of :run, as columns */
  RL_QUERY_TIMELINE_ROWS,       /* rows of :run between :from and :to that are in no interval of :level, as columns */
  RL_QUERY_TIMELINE_INTERVALS,  /* sums over the rows of :run in each interval of :level between :from and :to, as columns */
  RL_QUERY_TIMELINE_END,        /* time at which the trace of :run ends, as a column */
  RL_QUERY_COMPARISON,          /* the fp32 run of :job compared with each of its other runs; or run :a compared with run :b */
  RL_QUERY_EXPLAINED_RUN,       /* times, rates and memory of the training run :run, as columns */
  /* traced kernels of :run: a row for each phase of a kernel; one row if it has none; further columns: numbers */
  RL_QUERY_EXPLAINED_KERNELS,
  /* at most :limit values of :metric, oldest first; filters: :workload :device :from :to, and :repetitions_of, the id of a run */
  RL_QUERY_HISTORY,
  RL_QUERY_REPORT_RUN, /* run :run; further columns: numbers, compute capability, requested sections */
  /* kernels of :run :kernel; further columns: numbers; series and instructions if :with_series_and_instructions is 1 */
  RL_QUERY_REPORT_KERNELS,
  RL_QUERY_REPORT_METRICS, /* names of the metrics of :run :kernel, sorted; further column: the name as text */
  /* pairs of kernels of runs :a and :b; filters: :kernel_a :kernel_b; further columns: numbers of each if :numbers is 1 */
  RL_QUERY_COMPARE_KERNELS,
  RL_QUERY_KERNEL_WITH_COUNTERS, /* name of :kernel of :run; no row if the counters pass has no such kernel */
  RL_QUERY_CEILINGS,             /* newest ceilings of each device and driver; filter: :device */
  RL_QUERY_TOKENS,               /* names of the tokens, oldest first */
  RL_QUERY_UPLOADS,              /* one row: array with the names of the uploads that unfinished imports need */

  /* suite runs */
  RL_QUERY_SUITE_RUNS_ACTIVE, /* suite runs that have not ended, as columns */
  RL_QUERY_SUITE_RUN_COLUMNS, /* definition, state and conditions of suite run :run, as columns */
  RL_QUERY_SUITE_RUN_JOBS,    /* jobs of suite run :run, as columns */
  RL_QUERY_SUITE_RUN_VALUES,  /* values of suite run :run, sorted by metric, as columns */
  /* at most :limit runs of :suite on :device before :run that can be a baseline, newest first, as columns */
  RL_QUERY_SUITE_EARLIER_RUNS,
  RL_QUERY_SUITE_METRIC_MARKS, /* metrics of :run that later baselines leave out, or that changed, as columns */
  RL_QUERY_SUITE_JOB_VALUES,   /* value of :metric in each run of :job, as columns */
  RL_QUERY_SUITE_JOB_PROBLEM,  /* why :job failed, as text */
  RL_QUERY_SUITE_CANARIES,     /* rates measured by the canaries, the ceilings jobs :before and :after, as columns */
  /* mean duration of the newest completed runs of :suite with :sha256 :device :measures_baseline, as columns */
  RL_QUERY_SUITE_RUN_DURATION,
  /* duration of the newest completed job with :workload :variant :nondefault_params :device, as columns */
  RL_QUERY_SUITE_JOB_DURATION,
  RL_QUERY_KIND_DURATION,     /* duration of the newest completed job of :kind on :device, as columns */
  RL_QUERY_SUITE_PROFILE_RUN, /* conditions under which :run has measured the profile of :role :job_name :variant, as columns */
  /* traced kernels of :run: a row for each phase of a kernel; one row if it has none, as columns */
  RL_QUERY_SUITE_PROFILE_KERNELS,
  RL_QUERY_SUITE_LAST_RUN,   /* newest run of :suite */
  RL_QUERY_SUITE_RUN_LIST,   /* at most :limit runs of :suite with ids below :before, newest first; further column: id */
  RL_QUERY_SUITE_RUN_STATUS, /* state of suite run :run, its number of events and its estimated duration, as columns */
  /* at most :limit events of suite run :run with numbers above :after; further columns: number (seq), type */
  RL_QUERY_SUITE_EVENTS,
  RL_QUERY_SUITE_RUN,       /* suite run :id with its jobs, verdicts and values; elapsed_s is computed for the time :now */
  RL_QUERY_SUITE_BASELINES, /* baselines of :suite, oldest first */
  RL_QUERY_SUITE_HISTORY,   /* values of :metric in the newest :limit runs of :suite, newest first; further columns: id, median */
  RL_QUERIES
} rl_query;

/* The kinds of data on which cached replies depend. A commit of another program counts as a change of every kind. */
typedef enum rl_revision_kind {
  RL_REVISION_JOB,         /* the rows of a job, except its events */
  RL_REVISION_LISTS,       /* lists of jobs and the history */
  RL_REVISION_CEILINGS,    /* the ceilings, and the devices' properties */
  RL_REVISION_SUITES,      /* suite runs and baselines */
  RL_REVISION_UNCLASSIFIED /* tokens, and all data that no other kind covers; a change of them counts for every kind */
} rl_revision_kind;
/* Returns a number that increases with each committed change of this kind of data; 0: unknown at the moment, because a change is
 * being committed. A query that begins after the call sees at least the changes that the number counts. Reads memory only.
 * job_id: the job, if kind is RL_REVISION_JOB. */
uint64_t rl_store_revision(rl_store *store, rl_revision_kind kind, int64_t job_id);
/* Sets *job_id to the job of a run. Fails with RL_HTTP 404 if there is no such run. */
int rl_store_job_of_run(rl_store *store, int64_t run_id, int64_t *job_id, rl_error *err);
/* Sets *configuration_id to the id of a run's configuration, which all runs with the same workload, variant, parameters and
 * device have (:repetitions_of in RL_QUERY_HISTORY selects these runs); to 0 if no run with this configuration has a completed
 * pass. */
int rl_store_configuration_of_run(rl_store *store, int64_t run_id, int64_t *configuration_id, rl_error *err);

/* A condition that ends a thread's queries. While a query runs, is_exceeded is called at least every 0.1 ms. */
typedef struct rl_query_limit {
  bool (*is_exceeded)(void *context);
  void *context;
} rl_query_limit;
/* Sets the limit for all queries that the calling thread runs from now on, including queries of cursors that another thread has
 * opened. A query fails with RL_STORAGE_INTERRUPTED when is_exceeded returns true. *limit must stay valid until the next call.
 * NULL: no limit. */
void rl_store_limit_queries(const rl_query_limit *limit);

/* A running query. It occupies one reader connection, and reads one snapshot of the database, until it is closed. */
typedef struct rl_cursor rl_cursor;
/* Starts a query. A parameter without a binding is NULL and filters nothing. Fails with RL_LIMIT_BUSY if no reader connection
 * becomes free within 2 s. */
int rl_store_query(rl_store *store, rl_query query, const rl_binding *bindings, int count, rl_cursor **cursor, rl_error *err);
/* Returns 1 and sets *json to the next row's first column, valid until the next call; 0 at the end. */
int rl_cursor_next(rl_cursor *cursor, const char **json, rl_error *err);
/* Return the value of a column of the current row. Column 0 is the JSON text. */
int64_t rl_cursor_integer(rl_cursor *cursor, int column);
const char *rl_cursor_text(rl_cursor *cursor, int column);
double rl_cursor_real(rl_cursor *cursor, int column); /* NAN: NULL */
void rl_cursor_close(rl_cursor *cursor);

/* An activity row and its name, which is valid until the next row is read. */
typedef struct rl_trace_row {
  rl_activity_row values;
  const char *name;
} rl_trace_row;

/* Reads the rows of a run's trace in the order of their starts; of rows with equal starts, the longest first. Occupies one reader
 * connection, and reads one snapshot of the database, until it is closed. */
typedef struct rl_trace_reader rl_trace_reader;
int rl_trace_reader_open(rl_store *store, int64_t run, rl_trace_reader **reader, rl_error *err);
/* Returns 1 and sets *row, or 0 at the end. */
int rl_trace_reader_next(rl_trace_reader *reader, rl_trace_row *row, rl_error *err);
void rl_trace_reader_close(rl_trace_reader *reader); /* accepts NULL */

/* Writes the trace of a run as an SQLite database of at most 2 GiB with the tables of `nsys export` (schema/sql/nsys), into an
 * unlinked file in the state folder. The caller reads the file from *descriptor, whose offset is 0, and closes it. The tables of
 * a run without a trace are empty. */
int rl_store_write_nsys(rl_store *store, int64_t run, int *descriptor, rl_error *err);

RL_DEFINE_CLEANUP(rl_store_cleanup, rl_store *, rl_store_close, NULL)
RL_DEFINE_CLEANUP(rl_activity_appender_cleanup, rl_activity_appender *, rl_activity_appender_free, NULL)
RL_DEFINE_CLEANUP(rl_cursor_cleanup, rl_cursor *, rl_cursor_close, NULL)
#endif
