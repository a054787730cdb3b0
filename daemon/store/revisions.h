/* Counters of committed changes, from which readers learn without a query whether an answer that they keep is still current. The
 * store counts its own commits by what they change. A commit of another program is seen in the change counter of the WAL index
 * (https://www.sqlite.org/walformat.html, iChange), which lies in memory that all programs with the database share, and counts as
 * a change of everything. Private to the store. */
#ifndef RL_STORE_REVISIONS_H
#define RL_STORE_REVISIONS_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

enum { RL_JOB_REVISIONS = 4096 };

typedef struct rl_revisions {
  const uint32_t *change_counter; /* of the WAL index; NULL: unknown, so no answer may be kept */
  _Atomic uint32_t seen_changes;  /* value of *change_counter that the counters below account for */
  atomic_bool committing;         /* a commit of this process may have changed *change_counter, but not yet the counters below */
  _Atomic uint64_t everything, lists, ceilings, suites;
  _Atomic uint64_t jobs[RL_JOB_REVISIONS]; /* of the jobs whose id has this remainder */
  int64_t rows_before;                     /* sqlite3_total_changes64 at the begin of the transaction */
} rl_revisions;

/* What a transaction changes for readers. */
typedef struct rl_change {
  bool everything;
  bool lists;     /* what lists of jobs and the history show */
  bool ceilings;  /* ceilings, or which devices report what */
  bool suites;    /* suite runs and baselines */
  int64_t job_id; /* 0: no job */
} rl_change;

/* Called with the database in WAL mode. */
void rl_revisions_open(rl_revisions *revisions, sqlite3 *writer);
/* Are called under the writer's lock: after BEGIN IMMEDIATE, before COMMIT, and after COMMIT. */
void rl_revisions_begin_transaction(rl_revisions *revisions, sqlite3 *writer);
void rl_revisions_begin_commit(rl_revisions *revisions);
void rl_revisions_end_commit(rl_revisions *revisions, sqlite3 *writer, rl_change change);
/* Counts a change of what readers see that is not in the database. */
void rl_revisions_count(rl_revisions *revisions, rl_change change);
/* See rl_store_revision. */
uint64_t rl_revisions_read(rl_revisions *revisions, rl_revision_kind kind, int64_t job_id);

#endif
