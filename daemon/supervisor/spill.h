/* A spill file keeps the outcome of one finished pass while the database can't be written. The state folder has one spill file
 * for each device; outcome.c writes it, and recovery.c reads it when the daemon starts. The blocks of the file are allocated in
 * advance, so that a full disk does not prevent a write. The file contains a header with a checksum, and then the frames that the
 * worker has sent: METADATA, the records, LOG, and DONE or UNAVAILABLE. The checksum shows whether the file is damaged or was not
 * written completely. Not thread-safe. */
#ifndef RL_SUPERVISOR_SPILL_H
#define RL_SUPERVISOR_SPILL_H

#include "base/cleanup.h"
#include "model/job.h"
#include "wire/wire.h"

#define RL_SPILL_PREFIX "spill-" /* a file's name is the prefix and the device: spill-cpu, spill-gpu0 */

typedef struct rl_spill rl_spill;

typedef struct rl_spilled_pass {
  rl_claim claim; /* only ids, pass and variant are set */
  rl_records records;
  /* index of records.rows[0] among the activity rows of the pass; the earlier rows are in the database */
  int64_t first_row_index;
  char *log;           /* the run's log, malloc'ed; NULL: the database has the log, or there is none */
  bool is_unavailable; /* the pass is unavailable, and failure.message is the reason */
  rl_failure failure;
} rl_spilled_pass;
void rl_spilled_pass_clear(rl_spilled_pass *pass); /* frees records and log */

/* Opens the spill file of a device, or creates it. Allocates `size` bytes unless the file already has that size. Fails with
 * RL_ERRNO, for example ENOSPC. */
int rl_spill_open(const char *folder, const char *device, int64_t size, rl_spill **spill, rl_error *err);
/* Opens an existing spill file, whatever its size. */
int rl_spill_open_existing(const char *path, rl_spill **spill, rl_error *err);
void rl_spill_close(rl_spill *spill);

/* Removes the activity rows that were stored in the database after the file was written. stored_rows: number of rows of the pass
 * in the database. Fails with RL_WIRE if rows are missing between the stored rows and the rows of the file. */
int rl_spilled_pass_remove_stored_rows(rl_spilled_pass *pass, int64_t stored_rows, rl_error *err);

/* Replaces the content of the file and waits until the content is on disk (fdatasync). Does not take ownership of the members of
 * *pass. Fails with RL_WIRE_MEMORY_LIMIT if the file is too small. After a failure the file is empty. */
int rl_spill_write(rl_spill *spill, const rl_spilled_pass *pass, rl_error *err);
/* Returns 1 and fills *pass, which the caller clears; 0 if the file is empty; -1 with RL_WIRE or RL_ERRNO if the file is damaged
 * or can't be read. */
int rl_spill_read(rl_spill *spill, rl_spilled_pass *pass, rl_error *err);
/* Empties the file. */
int rl_spill_clear(rl_spill *spill, rl_error *err);

RL_DEFINE_CLEANUP(rl_spill_cleanup, rl_spill *, rl_spill_close, NULL)
#endif
