/* A spill file keeps the outcome of one finished pass while the database can't be written. It lies in the state folder, one for
 * each device, and its blocks are allocated in advance, so that a full disk does not prevent a write. After a header with a
 * checksum it has what the worker sent: METADATA, the records, LOG, then DONE or UNAVAILABLE. A file that was written in part, or
 * is damaged, fails the checksum and counts as empty. Not thread-safe. */
#ifndef RL_SUPERVISOR_SPILL_H
#define RL_SUPERVISOR_SPILL_H

#include "base/cleanup.h"
#include "model/job.h"
#include "wire/wire.h"

#define RL_SPILL_PREFIX "spill-" /* a file's name: spill-cpu, spill-gpu0 */

typedef struct rl_spill rl_spill;

typedef struct rl_spilled_pass {
  rl_claim claim; /* ids, pass and variant */
  rl_records records;
  int64_t first_row;   /* index in the pass of records.rows[0]: rows before it are in the database */
  char *log;           /* the compiler's log, malloc'ed; NULL: stored before */
  bool is_unavailable; /* failure.message is the reason */
  rl_failure failure;
} rl_spilled_pass;
void rl_spilled_pass_clear(rl_spilled_pass *pass); /* frees records and log */

/* Opens the spill file of a device, or creates it. Allocates `size` bytes unless it already has that size. RL_ERRNO: for example
 * ENOSPC. */
int rl_spill_open(const char *folder, const char *device, int64_t size, rl_spill **spill, rl_error *err);
/* Opens an existing spill file, whatever its size. */
int rl_spill_open_existing(const char *path, rl_spill **spill, rl_error *err);
void rl_spill_close(rl_spill *spill);

/* Frees the activity rows that the database got after the file was written. stored_rows: how many rows of the pass it has.
 * RL_WIRE if rows are missing between them and those of the file. */
int rl_spilled_pass_skip_rows(rl_spilled_pass *pass, int64_t stored_rows, rl_error *err);

/* Replaces the content; on disk when it returns. Borrows the members of *pass; failure.message is used if is_unavailable.
 * RL_WIRE_LIMIT if the file is too small. The file is empty after a failure. */
int rl_spill_write(rl_spill *spill, const rl_spilled_pass *pass, rl_error *err);
/* Returns 1 and fills *pass, which the caller clears; 0 if the file is empty; -1 with RL_WIRE or RL_ERRNO if it is damaged. */
int rl_spill_read(rl_spill *spill, rl_spilled_pass *pass, rl_error *err);
/* Empties the file. */
int rl_spill_clear(rl_spill *spill, rl_error *err);

RL_DEFINE_CLEANUP(rl_spill_cleanup, rl_spill *, rl_spill_close, NULL)
#endif
