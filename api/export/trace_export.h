/* A chunk source (chunked_reply.h) that writes the rows of a trace in the format of a trace writer. */
#ifndef RL_API_EXPORT_TRACE_EXPORT_H
#define RL_API_EXPORT_TRACE_EXPORT_H

#include "api/chunked_reply.h"
#include "api/export/trace_writer.h"
#include "store/store.h"

/* Opens a source of the run's rows. Takes ownership of the conditions, even on failure. If conditions is NULL, fails because
 * memory is exhausted. */
int rl_trace_export_open(rl_store *store, int64_t run, const rl_trace_writer *writer, cJSON *conditions, rl_chunk_source *source,
                         rl_error *err);

#endif
