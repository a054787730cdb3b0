/* A trace writer: the functions that write a trace in one format. trace_export.c calls begin, then `write` for each row in the
 * order of the rows' starts (the longer row first if starts are equal), then end and clear. Each function appends bytes to a
 * buffer, which is emptied between calls, so that memory does not grow with the trace. */
#ifndef RL_API_EXPORT_TRACE_WRITER_H
#define RL_API_EXPORT_TRACE_WRITER_H

#include <cjson/cJSON.h>

#include "api/export/byte_buffer.h"
#include "store/store.h"

typedef struct rl_trace_writer {
  size_t state_size; /* bytes of the state, which is zeroed before begin */
  bool is_gzip;      /* the writer's bytes are compressed with gzip */
  /* conditions: row of schema/sql/queries/export_runs.sql for the run; valid until clear. */
  int (*begin)(void *state, const cJSON *conditions, rl_buffer *out, rl_error *err);
  int (*write)(void *state, const rl_trace_row *row, rl_buffer *out, rl_error *err);
  void (*end)(void *state, rl_buffer *out);
  void (*clear)(void *state); /* called even after a failure; NULL: the state owns nothing */
} rl_trace_writer;

extern const rl_trace_writer rl_chrome_writer;   /* Chrome trace events with the members of Kineto (PyTorch's profiler) */
extern const rl_trace_writer rl_perfetto_writer; /* protobuf: perfetto/trace/trace.proto */
extern const rl_trace_writer rl_csv_writer;      /* one line for each row, one column for each value */

#endif
