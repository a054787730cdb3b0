/* Reads a trace file of any supported format into records. The program rooflined-import (main.c), which has one thread, calls
 * this module. */
#ifndef RL_IMPORT_IMPORT_H
#define RL_IMPORT_IMPORT_H

#include "import/observer.h"
#include "model/imported_trace.h"
#include "model/records.h"

/* Reads the trace in an open file, and opens no other file. Sets *records and *notes like rl_trace_finish; the caller frees both.
 * Fails with RL_INPUT if the file is invalid; with RL_ERRNO if memory is exhausted or the observer cancels (ECANCELED). */
int rl_import_read(int descriptor, rl_trace_format format, const rl_import_observer *observer, rl_records *records, char **notes,
                   rl_error *err);

#endif
