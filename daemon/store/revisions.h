/* Counters of committed changes. The API compares them to decide without a query whether a cached reply is still valid. The store
 * counts its own commits separately for each kind of data. A commit of another program counts as a change of everything; the
 * store detects it by the change counter in SQLite's WAL index, which is in shared memory (https://www.sqlite.org/walformat.html,
 * iChange). Private to the store. */
#ifndef RL_STORE_REVISIONS_H
#define RL_STORE_REVISIONS_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

enum { RL_JOB_REVISIONS = 4096 };

typedef struct rl_revisions {
  const uint32_t *change_counter;   /* change counter in the WAL index; NULL: unknown, so no reply may be cached */
  _Atomic uint32_t counted_changes; /* the changes up to this value of *change_counter are counted in the counters below */
  atomic_bool committing; /* a commit of this process may already have changed *change_counter, but not the counters below */
  _Atomic uint64_t everything, lists, ceilings, suites;
  _Atomic uint64_t jobs[RL_JOB_REVISIONS]; /* revision of each job, by job id modulo RL_JOB_REVISIONS */
  int64_t rows_before;                     /* sqlite3_total_changes64 at the begin of the transaction */
} rl_revisions;

/* The kinds of data that a transaction changes visibly for readers. {0}: none. */
typedef struct rl_change {
  bool everything;
  bool lists;     /* lists of jobs and the history */
  bool ceilings;  /* ceilings, or the devices' properties */
  bool suites;    /* suite runs and baselines */
  int64_t job_id; /* 0: no job */
} rl_change;

/* Maps the WAL index. The database must be in WAL mode. */
void rl_revisions_open(rl_revisions *revisions, sqlite3 *writer);
/* Called with the writer's mutex locked: the first function after BEGIN IMMEDIATE, the second before COMMIT, the third after
 * COMMIT. The third returns whether the transaction has written a row. */
void rl_revisions_begin_transaction(rl_revisions *revisions, sqlite3 *writer);
void rl_revisions_begin_commit(rl_revisions *revisions);
bool rl_revisions_end_commit(rl_revisions *revisions, sqlite3 *writer, rl_change change);
/* Counts a change that readers see although it is not in the database, such as a job's state `storing`. */
void rl_revisions_count_change(rl_revisions *revisions, rl_change change);
/* Implements rl_store_revision. */
uint64_t rl_revisions_read(rl_revisions *revisions, rl_revision_kind kind, int64_t job_id);

#endif
