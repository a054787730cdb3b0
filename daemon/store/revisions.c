/* Maps SQLite's WAL index into memory and reads its change counter. A revision is 0 (unknown) during a commit of this process
 * (`committing`), or if the index can't be mapped. A commit of another program increases `everything`. */
#include "store/revisions.h"

#include <stddef.h>

enum { WAL_INDEX_REGION_BYTES = 32768 };

/* The first fields of the header of the WAL index. */
typedef struct wal_index_header {
  uint32_t version, unused;
  uint32_t change_counter; /* incremented by each transaction */
} wal_index_header;

static uint32_t read_change_counter(const rl_revisions *revisions) {
  return __atomic_load_n(revisions->change_counter, __ATOMIC_SEQ_CST);
}

void rl_revisions_open(rl_revisions *revisions, sqlite3 *writer) {
  sqlite3_file *file = NULL;
  void volatile *region = NULL;
  atomic_store(&revisions->everything, 1);
  if (sqlite3_file_control(writer, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || file == NULL) return;
  if (file->pMethods == NULL || file->pMethods->iVersion < 2) return;
  if (file->pMethods->xShmMap(file, 0, WAL_INDEX_REGION_BYTES, 0, &region) != SQLITE_OK || region == NULL) return;
  revisions->change_counter = (const uint32_t *)((const char *)region + offsetof(wal_index_header, change_counter));
  atomic_store(&revisions->counted_changes, read_change_counter(revisions));
}

/* Counts the commits of other programs. This process holds the database's lock now, so every change of the change counter since
 * its own last commit comes from another program. */
void rl_revisions_begin_transaction(rl_revisions *revisions, sqlite3 *writer) {
  revisions->rows_before = sqlite3_total_changes64(writer);
  if (revisions->change_counter == NULL) return;
  uint32_t changes = read_change_counter(revisions);
  if (changes == atomic_load(&revisions->counted_changes)) return;
  atomic_fetch_add(&revisions->everything, 1);
  atomic_store(&revisions->counted_changes, changes);
}

void rl_revisions_begin_commit(rl_revisions *revisions) { atomic_store(&revisions->committing, true); }

void rl_revisions_count_change(rl_revisions *revisions, rl_change change) {
  if (change.everything) atomic_fetch_add(&revisions->everything, 1);
  if (change.lists) atomic_fetch_add(&revisions->lists, 1);
  if (change.ceilings) atomic_fetch_add(&revisions->ceilings, 1);
  if (change.suites) atomic_fetch_add(&revisions->suites, 1);
  if (change.job_id != 0) atomic_fetch_add(&revisions->jobs[(uint64_t)change.job_id % RL_JOB_REVISIONS], 1);
}

bool rl_revisions_end_commit(rl_revisions *revisions, sqlite3 *writer, rl_change change) {
  const bool wrote = sqlite3_total_changes64(writer) != revisions->rows_before;
  if (revisions->change_counter != NULL) {
    uint32_t changes = read_change_counter(revisions), expected = atomic_load(&revisions->counted_changes) + (wrote ? 1 : 0);
    if (wrote) rl_revisions_count_change(revisions, change);
    if (changes != expected) atomic_fetch_add(&revisions->everything, 1); /* another program has committed meanwhile */
    atomic_store(&revisions->counted_changes, changes);
  }
  atomic_store(&revisions->committing, false);
  return wrote;
}

/* Returns true when the counters have counted every commit. This is safe without a lock: a commit of this process sets
 * `committing` before it changes the change counter, and updates counted_changes before it clears `committing`. */
static bool is_up_to_date(rl_revisions *revisions) {
  for (;;) {
    uint32_t seen = atomic_load(&revisions->counted_changes), changes = read_change_counter(revisions);
    if (changes == seen) return true;
    if (atomic_load(&revisions->committing)) return false;
    if (atomic_load(&revisions->counted_changes) != seen) continue; /* a commit of this process has ended meanwhile */
    atomic_fetch_add(&revisions->everything, 1);                    /* another program has committed */
    atomic_compare_exchange_strong(&revisions->counted_changes, &seen, changes);
  }
}

uint64_t rl_revisions_read(rl_revisions *revisions, rl_revision_kind kind, int64_t job_id) {
  if (revisions->change_counter == NULL || !is_up_to_date(revisions)) return 0;
  uint64_t everything = atomic_load(&revisions->everything);
  switch (kind) {
    case RL_REVISION_JOB: return everything + atomic_load(&revisions->jobs[(uint64_t)job_id % RL_JOB_REVISIONS]);
    case RL_REVISION_LISTS: return everything + atomic_load(&revisions->lists);
    case RL_REVISION_CEILINGS: return everything + atomic_load(&revisions->ceilings);
    case RL_REVISION_SUITES: return everything + atomic_load(&revisions->suites);
    case RL_REVISION_UNCLASSIFIED: return everything;
  }
  return 0;
}
