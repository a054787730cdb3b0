/* Imports a trace file of any supported format. */
#ifndef RL_IMPORT_IMPORT_H
#define RL_IMPORT_IMPORT_H

#include "import/observer.h"
#include "model/imported_trace.h"
#include "model/records.h"

/* Reads the trace in an open file; opens no other file. *records and *notes: see rl_trace_finish; the caller frees both. Fails
 * with RL_INPUT if the file is invalid. Fails with RL_ERRNO: out of memory, or ECANCELED. */
int rl_import_read(int descriptor, rl_trace_format format, const rl_import_observer *observer, rl_records *records, char **notes,
                   rl_error *err);

#endif
