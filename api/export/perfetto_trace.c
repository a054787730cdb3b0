/* A trace writer (trace_writer.h) for Perfetto's trace format: track events of one packet sequence, with interned names. The
 * field numbers come from protos/perfetto/trace in https://github.com/google/perfetto. The begin and the end of a slice are
 * separate packets; readers sort packets by time. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/export/protobuf.h"
#include "api/export/trace_tracks.h"
#include "api/export/trace_writer.h"

enum { TRACE_PACKET = 1 }; /* field number in the message Trace */
enum {                     /* field numbers in the message TracePacket */
       PACKET_TIMESTAMP = 8,
       PACKET_SEQUENCE = 10,
       PACKET_TRACK_EVENT = 11,
       PACKET_INTERNED_DATA = 12,
       PACKET_SEQUENCE_FLAGS = 13,
       PACKET_TRACK_DESCRIPTOR = 60
};
enum { SEQUENCE = 1 };                       /* id of the only packet sequence */
enum { STATE_CLEARED = 1, NEEDS_STATE = 2 }; /* values of sequence_flags */
enum { INTERNED_CATEGORIES = 1, INTERNED_NAMES = 2, INTERNED_ANNOTATIONS = 3, INTERNED_IID = 1, INTERNED_TEXT = 2 };
enum { DESCRIPTOR_UUID = 1, DESCRIPTOR_NAME = 2, DESCRIPTOR_PROCESS = 3, DESCRIPTOR_THREAD = 4, DESCRIPTOR_PARENT = 5 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6, THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { /* field numbers in the message TrackEvent */
       EVENT_CATEGORY = 3,
       EVENT_ANNOTATION = 4,
       EVENT_TYPE = 9,
       EVENT_NAME = 10,
       EVENT_TRACK = 11,
       EVENT_FLOW = 47
};
enum { SLICE_BEGIN = 1, SLICE_END = 2 };
enum { ANNOTATION_NAME = 1, ANNOTATION_UINT = 3, ANNOTATION_TEXT = 6 };

/* Annotations of a slice. The interned id of an annotation's name is 1 + the enumerator. */
typedef enum annotation {
  CORRELATION,
  DEVICE,
  CONTEXT,
  GRAPH_NODE,
  STEP,
  GRID,
  BLOCK,
  REGISTERS,
  STATIC_SHARED,
  DYNAMIC_SHARED,
  BYTES,
  SOURCE,
  DESTINATION,
  ANNOTATION_COUNT
} annotation;
static const char *const annotation_names[ANNOTATION_COUNT] = {
    "correlation", "device",        "context",           "graph_node",          "step",
    "grid",        "block",         "registers",         "static_shared_bytes", "dynamic_shared_bytes",
    "bytes",       "source_memory", "destination_memory"};

typedef struct perfetto_state {
  rl_tracks tracks;
  rl_buffer *out;          /* buffer to which end_slice appends; set before rl_tracks_assign and rl_tracks_end_slices */
  rl_buffer written_names; /* one bit for each name of the trace: whether the name was written */
  const char *program_name, *device_name;
  bool has_rows;
  int64_t time_zero_ns; /* start of the first row if that is negative, else 0; subtracted from all times, because Perfetto's
                           timestamps are unsigned */
} perfetto_state;

/* --- packets ----------------------------------------------------------------------------------------------------------- */

/* Returns the position of the packet, as rl_proto_begin does; the caller passes it to rl_proto_end. The variables entry, packet,
 * interned, descriptor, process, thread and event have such positions. */
static size_t begin_packet(rl_buffer *out) {
  const size_t offset = rl_proto_begin(out, TRACE_PACKET);
  rl_proto_uint(out, PACKET_SEQUENCE, SEQUENCE);
  return offset;
}

static void put_interned(rl_buffer *out, uint32_t field, uint64_t iid, const char *text) {
  const size_t entry = rl_proto_begin(out, field);
  rl_proto_uint(out, INTERNED_IID, iid);
  rl_proto_text(out, INTERNED_TEXT, text);
  rl_proto_end(out, entry);
}

/* Appends the first packet, which has the names of categories (the kinds of rows) and of annotations. */
static void put_first_packet(rl_buffer *out) {
  const size_t packet = begin_packet(out);
  rl_proto_uint(out, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
  const size_t interned = rl_proto_begin(out, PACKET_INTERNED_DATA);
  for (int i = 0; i < RL_ACTIVITY_KIND_COUNT; i++)
    put_interned(out, INTERNED_CATEGORIES, (uint64_t)i + 1, rl_activity_kind_names[i]);
  for (int i = 0; i < ANNOTATION_COUNT; i++) put_interned(out, INTERNED_ANNOTATIONS, (uint64_t)i + 1, annotation_names[i]);
  rl_proto_end(out, interned);
  rl_proto_end(out, packet);
}

/* Marks the name as written. Returns true if it was not marked before. */
static bool mark_as_written(perfetto_state *state, uint32_t name) {
  rl_buffer *bits = &state->written_names;
  while (bits->length <= name / 8 && !bits->failed) rl_buffer_byte(bits, 0);
  if (bits->failed) return true;
  const char bit = (char)(1 << name % 8);
  const bool is_new = (bits->bytes[name / 8] & bit) == 0;
  bits->bytes[name / 8] |= bit;
  return is_new;
}

/* --- tracks ------------------------------------------------------------------------------------------------------------ */

static uint64_t track_uuid(const rl_track *track) { return track->number; }

static uint64_t owner_uuid(const rl_track_group *group) {
  const bool is_device = group->kind == RL_GROUP_STREAM;
  return UINT64_C(1) << 40 | (uint64_t)is_device << 32 | group->owner;
}

static size_t begin_descriptor(rl_buffer *out, uint64_t uuid) {
  const size_t descriptor = rl_proto_begin(out, PACKET_TRACK_DESCRIPTOR);
  rl_proto_uint(out, DESCRIPTOR_UUID, uuid);
  return descriptor;
}

/* Appends the descriptor of a device or of the host's process. A descriptor may be written several times, because all copies are
 * equal. */
static void describe_owner(const perfetto_state *state, const rl_track_group *group, rl_buffer *out) {
  char name[320];
  const size_t packet = begin_packet(out), descriptor = begin_descriptor(out, owner_uuid(group));
  if (group->kind == RL_GROUP_STREAM) {
    if (group->owner == 0) snprintf(name, sizeof name, "%s", state->device_name);
    else snprintf(name, sizeof name, "GPU %u, %s", group->owner - 1, state->device_name);
    rl_proto_text(out, DESCRIPTOR_NAME, name);
  } else if (group->owner == 0) rl_proto_text(out, DESCRIPTOR_NAME, state->program_name);
  else {
    const size_t process = rl_proto_begin(out, DESCRIPTOR_PROCESS);
    rl_proto_uint(out, PROCESS_PID, group->owner);
    rl_proto_text(out, PROCESS_NAME, state->program_name);
    rl_proto_end(out, process);
  }
  rl_proto_end(out, descriptor);
  rl_proto_end(out, packet);
}

static void describe_track(const rl_track *track, rl_buffer *out) {
  char name[RL_TRACK_NAME_SIZE];
  const rl_track_group *group = &track->group;
  const size_t packet = begin_packet(out), descriptor = begin_descriptor(out, track_uuid(track));
  rl_proto_uint(out, DESCRIPTOR_PARENT, owner_uuid(group));
  rl_track_name(track, name);
  if (group->kind == RL_GROUP_THREAD && group->owner != 0 && group->id != 0 && track->rank == 0) {
    const size_t thread = rl_proto_begin(out, DESCRIPTOR_THREAD);
    rl_proto_uint(out, THREAD_PID, group->owner);
    rl_proto_uint(out, THREAD_TID, group->id);
    rl_proto_text(out, THREAD_NAME, name);
    rl_proto_end(out, thread);
  } else rl_proto_text(out, DESCRIPTOR_NAME, name);
  rl_proto_end(out, descriptor);
  rl_proto_end(out, packet);
}

/* --- slices ------------------------------------------------------------------------------------------------------------ */

static void put_uint_annotation(rl_buffer *out, annotation name, uint64_t value) {
  const size_t offset = rl_proto_begin(out, EVENT_ANNOTATION);
  rl_proto_uint(out, ANNOTATION_NAME, (uint64_t)name + 1);
  rl_proto_uint(out, ANNOTATION_UINT, value);
  rl_proto_end(out, offset);
}

static void put_text_annotation(rl_buffer *out, annotation name, const char *text) {
  const size_t offset = rl_proto_begin(out, EVENT_ANNOTATION);
  rl_proto_uint(out, ANNOTATION_NAME, (uint64_t)name + 1);
  rl_proto_text(out, ANNOTATION_TEXT, text);
  rl_proto_end(out, offset);
}

static void put_dim3_annotation(rl_buffer *out, annotation name, uint32_t x, uint32_t y, uint32_t z) {
  char text[48];
  snprintf(text, sizeof text, "%u×%u×%u", x, y, z);
  put_text_annotation(out, name, text);
}

static void put_launch_annotations(rl_buffer *out, const rl_activity_row *row) {
  if (row->grid[0] == 0) return;
  put_dim3_annotation(out, GRID, row->grid[0], row->grid[1], row->grid[2]);
  put_dim3_annotation(out, BLOCK, row->block[0], row->block[1], row->block[2]);
  if (!(row->unknown & RL_UNKNOWN_REGISTERS)) put_uint_annotation(out, REGISTERS, row->registers);
  if (!(row->unknown & RL_UNKNOWN_STATIC_SHARED)) put_uint_annotation(out, STATIC_SHARED, row->static_shared_bytes);
  if (!(row->unknown & RL_UNKNOWN_DYNAMIC_SHARED)) put_uint_annotation(out, DYNAMIC_SHARED, row->dynamic_shared_bytes);
}

static void put_memory_annotation(rl_buffer *out, annotation name, uint8_t kind) {
  if (rl_memory_kind_names[kind] != NULL) put_text_annotation(out, name, rl_memory_kind_names[kind]);
}

static void put_annotations(rl_buffer *out, const rl_activity_row *row) {
  if (row->correlation != 0) put_uint_annotation(out, CORRELATION, row->correlation);
  if (row->device != 0) put_uint_annotation(out, DEVICE, row->device - 1u);
  if (row->context != 0) put_uint_annotation(out, CONTEXT, row->context);
  if (row->graph_node != 0) put_uint_annotation(out, GRAPH_NODE, row->graph_node);
  if (row->step != 0) put_uint_annotation(out, STEP, row->step - 1);
  const bool has_bytes = row->kind == RL_ACTIVITY_MEMCPY || row->kind == RL_ACTIVITY_MEMSET || row->kind == RL_ACTIVITY_MEMORY;
  if (has_bytes && !(row->unknown & RL_UNKNOWN_BYTES)) put_uint_annotation(out, BYTES, row->bytes);
  put_launch_annotations(out, row);
  put_memory_annotation(out, SOURCE, row->source_memory);
  put_memory_annotation(out, DESTINATION, row->destination_memory);
}

/* Returns whether the row is part of a flow: a call and the work that it launched are one flow. */
static bool has_flow(const rl_activity_row *row) {
  return row->correlation != 0 && row->kind != RL_ACTIVITY_MEMORY && row->kind != RL_ACTIVITY_OVERHEAD &&
         row->kind != RL_ACTIVITY_PHASE;
}

static void begin_slice(perfetto_state *state, const rl_trace_row *row, const rl_track *track, rl_buffer *out) {
  const uint64_t iid = (uint64_t)row->values.name + 1;
  const size_t packet = begin_packet(out);
  rl_proto_uint(out, PACKET_TIMESTAMP, (uint64_t)(row->values.start_ns - state->time_zero_ns));
  rl_proto_uint(out, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
  if (mark_as_written(state, row->values.name)) {
    const size_t interned = rl_proto_begin(out, PACKET_INTERNED_DATA);
    put_interned(out, INTERNED_NAMES, iid, row->name);
    rl_proto_end(out, interned);
  }
  const size_t event = rl_proto_begin(out, PACKET_TRACK_EVENT);
  rl_proto_uint(out, EVENT_TYPE, SLICE_BEGIN);
  rl_proto_uint(out, EVENT_TRACK, track_uuid(track));
  rl_proto_uint(out, EVENT_CATEGORY, row->values.kind + 1);
  rl_proto_uint(out, EVENT_NAME, iid);
  if (has_flow(&row->values)) rl_proto_fixed64(out, EVENT_FLOW, row->values.correlation);
  put_annotations(out, &row->values);
  rl_proto_end(out, event);
  rl_proto_end(out, packet);
}

static void end_slice(void *context, const rl_track *track, int64_t end_ns) {
  perfetto_state *state = context;
  const size_t packet = begin_packet(state->out);
  rl_proto_uint(state->out, PACKET_TIMESTAMP, (uint64_t)(end_ns - state->time_zero_ns));
  const size_t event = rl_proto_begin(state->out, PACKET_TRACK_EVENT);
  rl_proto_uint(state->out, EVENT_TYPE, SLICE_END);
  rl_proto_uint(state->out, EVENT_TRACK, track_uuid(track));
  rl_proto_end(state->out, event);
  rl_proto_end(state->out, packet);
}

/* --- the writer -------------------------------------------------------------------------------------------------------- */

static int begin(void *context, const cJSON *conditions, rl_buffer *out, rl_error *err) {
  perfetto_state *state = context;
  const cJSON *properties = cJSON_GetObjectItemCaseSensitive(conditions, "device_properties");
  const char *device = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(properties, "name"));
  const char *workload = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(conditions, "workload"));
  (void)err;
  state->device_name = device != NULL ? device : "device";
  state->program_name = workload != NULL ? workload : "host";
  state->tracks.ended = end_slice;
  state->tracks.context = state;
  put_first_packet(out);
  return 0;
}

static int write_row(void *context, const rl_trace_row *row, rl_buffer *out, rl_error *err) {
  perfetto_state *state = context;
  const rl_track *track;
  state->out = out;
  if (!state->has_rows) state->time_zero_ns = row->values.start_ns < 0 ? row->values.start_ns : 0;
  state->has_rows = true;
  if (rl_tracks_assign(&state->tracks, &row->values, &track, err) < 0) return -1;
  if (track->is_new) {
    describe_owner(state, &track->group, out);
    describe_track(track, out);
  }
  begin_slice(state, row, track, out);
  return rl_buffer_check(&state->written_names, err);
}

static void end(void *context, rl_buffer *out) {
  perfetto_state *state = context;
  state->out = out;
  rl_tracks_end_slices(&state->tracks);
}

static void clear(void *context) {
  perfetto_state *state = context;
  rl_tracks_clear(&state->tracks);
  rl_buffer_clear(&state->written_names);
}

const rl_trace_writer rl_perfetto_writer = {
    .state_size = sizeof(perfetto_state), .begin = begin, .write = write_row, .end = end, .clear = clear};
