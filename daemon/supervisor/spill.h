/* A spill file keeps the outcome of one finished pass while the database can't be written. The state folder has one for each
 * device. The blocks of the file are allocated in advance, so that a full disk does not prevent a write. The file has a header
 * with a checksum, and then the frames that the worker sent: METADATA, the records, LOG, and DONE or UNAVAILABLE. A file that is
 * damaged or was not written completely fails the checksum. Not thread-safe. */
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
  int64_t first_row_index; /* index of records.rows[0] among the rows of the pass; earlier rows are in the database */
  char *log;               /* the compiler's log, malloc'ed; NULL: the log is stored, or there is none */
  bool is_unavailable;     /* failure.message is the reason */
  rl_failure failure;
} rl_spilled_pass;
void rl_spilled_pass_clear(rl_spilled_pass *pass); /* frees records and log */

/* Opens the spill file of a device, or creates it. Allocates `size` bytes unless it already has that size. Fails with RL_ERRNO,
 * for example ENOSPC. */
int rl_spill_open(const char *folder, const char *device, int64_t size, rl_spill **spill, rl_error *err);
/* Opens an existing spill file, whatever its size. */
int rl_spill_open_existing(const char *path, rl_spill **spill, rl_error *err);
void rl_spill_close(rl_spill *spill);

/* Removes the activity rows that were stored after the file was written. stored_rows: number of rows of the pass in the
 * database. Fails with RL_WIRE if rows are missing between the stored rows and the rows of the file. */
int rl_spilled_pass_remove_stored_rows(rl_spilled_pass *pass, int64_t stored_rows, rl_error *err);

/* Replaces the content of the file and waits until it is on disk (fdatasync). Borrows the members of *pass. Fails with
 * RL_WIRE_LIMIT if the file is too small. After a failure the file is empty. */
int rl_spill_write(rl_spill *spill, const rl_spilled_pass *pass, rl_error *err);
/* Returns 1 and fills *pass, which the caller clears; 0 if the file is empty; -1 with RL_WIRE or RL_ERRNO if it is damaged. */
int rl_spill_read(rl_spill *spill, rl_spilled_pass *pass, rl_error *err);
/* Empties the file. */
int rl_spill_clear(rl_spill *spill, rl_error *err);

RL_DEFINE_CLEANUP(rl_spill_cleanup, rl_spill *, rl_spill_close, NULL)
#endif
