/* Imports a trace file of any supported format. */
#ifndef RL_IMPORT_IMPORT_H
#define RL_IMPORT_IMPORT_H

#include "import/observer.h"
#include "model/imported_trace.h"
#include "model/records.h"

/* Reads the trace in an open file. *records, *notes: see rl_trace_finish; the caller frees both. RL_INPUT says what is wrong with
 * the file; RL_ERRNO: out of memory, or ECANCELED. Opens no file. */
int rl_import_read(int descriptor, rl_trace_format format, const rl_import_observer *observer, rl_records *records, char **notes,
                   rl_error *err);

#endif
