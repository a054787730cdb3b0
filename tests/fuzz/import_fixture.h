/* Imports a fuzzer's input as a file, and checks the invariants of every import. */
#ifndef RL_IMPORT_FIXTURE_H
#define RL_IMPORT_FIXTURE_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/utf8.h"
#include "import/import.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static bool never_cancelled(void *context, double progress) {
  (void)context;
  if (!(progress >= 0 && progress <= 1)) abort();
  return false;
}

/* Checks the rules for rows and names without which the daemon refuses a worker's frames. */
static void check_records(const rl_records *records) {
  int64_t last_ns = 0;
  for (size_t i = 0; i < records->row_count; i++) {
    const rl_activity_row *row = &records->rows[i];
    if (row->name >= records->name_count || row->kind >= RL_ACTIVITY_KIND_COUNT || row->bytes > INT64_MAX) abort();
    if (row->start_ns < last_ns || row->end_ns < row->start_ns || row->end_ns > INT64_MAX / 4) abort();
    last_ns = row->start_ns;
  }
  for (size_t i = 0; i < records->name_count; i++)
    if (records->names[i][0] == '\0' || !rl_utf8_is_valid(records->names[i], strlen(records->names[i]))) abort();
  if (!records->has_metadata || records->row_count == 0) abort();
}

static void import_bytes(const unsigned char *data, size_t size, rl_trace_format format) {
  const rl_import_observer observer = {.cancelled = never_cancelled};
  rl_records records = {0};
  rl_error err = {0};
  char *notes = NULL;
  int file = memfd_create("trace", MFD_CLOEXEC);
  if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
  if (rl_import_read(file, format, &observer, &records, &notes, &err) >= 0) check_records(&records);
  else if (err.message[0] == '\0' || notes != NULL || records.row_count != 0) abort();
  rl_records_clear(&records);
  free(notes);
  close(file);
}

#endif
