/* A trace writer (trace_writer.h) for CSV (RFC 4180, but lines end with LF): a header, then one line for each row of the trace. A
 * field is empty if the row does not have the value. */
#include <string.h>

#include "api/export/trace_writer.h"

static const char header[] =
    "job,run,kind,name,start_ns,end_ns,duration_ns,process,thread,device,context,stream,correlation,graph_node,step,"
    "grid_x,grid_y,grid_z,block_x,block_y,block_z,registers,static_shared_bytes,dynamic_shared_bytes,bytes,"
    "source_memory,destination_memory\n";

typedef struct csv_state {
  rl_buffer line_start; /* first fields of each line, which are equal in all lines */
} csv_state;

static void put_text(rl_buffer *out, const char *text) {
  if (strpbrk(text, "\",\r\n") == NULL) {
    rl_buffer_text(out, text);
    return;
  }
  rl_buffer_byte(out, '"');
  for (; *text != '\0'; text++) {
    if (*text == '"') rl_buffer_byte(out, '"');
    rl_buffer_byte(out, *text);
  }
  rl_buffer_byte(out, '"');
}

static void put_integer(rl_buffer *out, bool is_known, int64_t value) {
  rl_buffer_byte(out, ',');
  if (is_known) rl_buffer_integer(out, value);
}

static void put_id(rl_buffer *out, uint32_t id) { put_integer(out, id != 0, id); }

static void put_memory(rl_buffer *out, uint8_t kind) {
  rl_buffer_byte(out, ',');
  if (kind < RL_MEMORY_KIND_COUNT && rl_memory_kind_names[kind] != NULL) rl_buffer_text(out, rl_memory_kind_names[kind]);
}

static int begin(void *context, const cJSON *conditions, rl_buffer *out, rl_error *err) {
  csv_state *state = context;
  (void)err;
  static const char *const members[] = {"job", "run"};
  for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
    rl_buffer_integer(&state->line_start,
                      (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(conditions, members[i])));
    rl_buffer_byte(&state->line_start, ',');
  }
  rl_buffer_text(out, header);
  return 0;
}

static void put_ids(rl_buffer *out, const rl_activity_row *row) {
  put_id(out, row->process);
  put_id(out, row->thread);
  put_integer(out, row->device != 0, row->device - 1);
  put_id(out, row->context);
  put_id(out, row->stream);
  put_id(out, row->correlation);
  put_id(out, row->graph_node);
  put_integer(out, row->step != 0, (int64_t)row->step - 1);
}

static void put_launch(rl_buffer *out, const rl_activity_row *row) {
  const bool is_launch = row->grid[0] != 0;
  for (int i = 0; i < 3; i++) put_integer(out, is_launch, row->grid[i]);
  for (int i = 0; i < 3; i++) put_integer(out, is_launch, row->block[i]);
  put_integer(out, is_launch && !(row->unknown & RL_UNKNOWN_REGISTERS), row->registers);
  put_integer(out, is_launch && !(row->unknown & RL_UNKNOWN_STATIC_SHARED), row->static_shared_bytes);
  put_integer(out, is_launch && !(row->unknown & RL_UNKNOWN_DYNAMIC_SHARED), row->dynamic_shared_bytes);
}

static int write_row(void *context, const rl_trace_row *trace_row, rl_buffer *out, rl_error *err) {
  csv_state *state = context;
  (void)err;
  const rl_activity_row *row = &trace_row->values;
  const bool has_bytes = row->kind == RL_ACTIVITY_MEMCPY || row->kind == RL_ACTIVITY_MEMSET || row->kind == RL_ACTIVITY_MEMORY;
  rl_buffer_append(out, state->line_start.bytes, state->line_start.length);
  rl_buffer_text(out, rl_activity_kind_names[row->kind]);
  rl_buffer_byte(out, ',');
  put_text(out, trace_row->name);
  put_integer(out, true, row->start_ns);
  put_integer(out, true, row->end_ns);
  put_integer(out, true, row->end_ns - row->start_ns);
  put_ids(out, row);
  put_launch(out, row);
  put_integer(out, has_bytes && !(row->unknown & RL_UNKNOWN_BYTES), (int64_t)row->bytes);
  put_memory(out, row->source_memory);
  put_memory(out, row->destination_memory);
  rl_buffer_byte(out, '\n');
  return 0;
}

static void end(void *context, rl_buffer *out) { (void)context, (void)out; }

static void clear(void *context) { rl_buffer_clear(&((csv_state *)context)->line_start); }

const rl_trace_writer rl_csv_writer = {
    .state_size = sizeof(csv_state), .begin = begin, .write = write_row, .end = end, .clear = clear};
