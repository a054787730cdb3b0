/* Implements rl_records_send and rl_records_receive (wire.h): sends and receives the records of a pass as frames. */
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "wire/wire.h"

static int fail_malformed(const rl_frame *frame, rl_error *err) {
  if (err != NULL) {
    err->domain = RL_WIRE;
    err->code = RL_WIRE_MALFORMED_PAYLOAD;
  }
  return rl_wrap(err, "malformed %s frame", rl_frame_name(frame->type));
}

static int parse_json(const rl_frame *frame, const rl_field *table, void *out, size_t size, rl_error *err) {
  if (rl_fields_parse(table, (const char *)frame->payload, frame->length, out, size, err) < 0) return fail_malformed(frame, err);
  return 0;
}

/* Returns true when the kinds of the row and of its memory and the bits of `unknown` exist, `bytes` fits into an int64_t, and
 * times can be subtracted without overflow. */
static bool is_valid_row(const rl_activity_row *row) {
  const int64_t max_ns = INT64_MAX / 4;
  return row->kind < RL_ACTIVITY_KIND_COUNT && row->start_ns >= -max_ns && row->start_ns <= max_ns && row->end_ns >= -max_ns &&
         row->end_ns <= max_ns && row->bytes <= INT64_MAX && row->source_memory < RL_MEMORY_KIND_COUNT &&
         row->destination_memory < RL_MEMORY_KIND_COUNT && (row->unknown & ~RL_UNKNOWN_ALL) == 0;
}

static int check_rows(const rl_frame *frame, const rl_records *records, rl_error *err) {
  if (frame->length % sizeof(rl_activity_row) != 0)
    return rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD, "a ROWS frame has %u bytes, not a whole number of rows",
                   frame->length);
  const rl_activity_row *rows = (const rl_activity_row *)frame->payload;
  for (size_t i = 0; i < frame->length / sizeof *rows; i++)
    if (!is_valid_row(&rows[i]) || rows[i].name >= records->name_count)
      return rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD,
                     "row %zu has kind %u, name %u of %zu, %llu bytes, memory %u to %u and times %lld to %lld", i, rows[i].kind,
                     rows[i].name, records->name_count, (unsigned long long)rows[i].bytes, rows[i].source_memory,
                     rows[i].destination_memory, (long long)rows[i].start_ns, (long long)rows[i].end_ns);
  return 0;
}

/* Returns true when the buffer contains NUL-terminated UTF-8 without control characters, which a field of type RL_FIELD_TEXT
 * requires too. */
static bool is_valid_text(const char *text, size_t size) {
  size_t length = strnlen(text, size);
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) return false;
  return length < size && rl_utf8_is_valid(text, length);
}

static int check_metrics(const rl_frame *frame, rl_error *err) {
  if (frame->length % sizeof(rl_kernel_metric) != 0)
    return rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD, "a METRIC frame has %u bytes, not a whole number of metrics",
                   frame->length);
  for (size_t offset = 0; offset < frame->length; offset += sizeof(rl_kernel_metric)) {
    rl_kernel_metric metric;
    memcpy(&metric, frame->payload + offset, sizeof metric);
    if (metric.ordinal < 0 || !(isnan(metric.value) || rl_sanitize_measure(metric.value) == metric.value) ||
        !is_valid_text(metric.metric, sizeof metric.metric) || !is_valid_text(metric.reason, sizeof metric.reason))
      return rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD, "a metric has an invalid ordinal, value or text");
  }
  return 0;
}

static const rl_frame_type frame_type_of_record[RL_RECORD_KIND_COUNT] = {
    [RL_RECORD_EPOCH] = RL_FRAME_EPOCH,   [RL_RECORD_SAMPLE] = RL_FRAME_SAMPLE,
    [RL_RECORD_KERNEL] = RL_FRAME_KERNEL, [RL_RECORD_MEASUREMENT] = RL_FRAME_MEASUREMENT,
    [RL_RECORD_PHASE] = RL_FRAME_PHASE,   [RL_RECORD_INSTRUCTION] = RL_FRAME_INSTRUCTION,
    [RL_RECORD_POINT] = RL_FRAME_POINT,   [RL_RECORD_NAME] = RL_FRAME_NAME,
    [RL_RECORD_METRIC] = RL_FRAME_METRIC, [RL_RECORD_ROW] = RL_FRAME_ROWS};

static int receive_metadata(const rl_frame *frame, rl_records *records, rl_error *err) {
  if (records->has_metadata) return rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD, "the pass has a second METADATA frame");
  if (parse_json(frame, rl_run_metadata_fields, &records->metadata, sizeof records->metadata, err) < 0) return -1;
  records->has_metadata = true;
  return 0;
}

static int receive_name(const rl_frame *frame, rl_records *records, rl_error *err) {
  if (memchr(frame->payload, '\0', frame->length) != NULL)
    return rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD, "a name has a NUL byte");
  return rl_records_add_name(records, (const char *)frame->payload, frame->length, err);
}

static int receive_json_record(const rl_frame *frame, rl_record_kind kind, rl_records *records, rl_error *err) {
  union {
    rl_epoch epoch;
    rl_sample sample;
    rl_measurement measurement;
    rl_kernel kernel;
    rl_phase phase;
    rl_instruction instruction;
    rl_series_point point;
  } message;
  const rl_record_layout *layout = &rl_record_layouts[kind];
  memset(&message, 0, layout->item_size);
  if (parse_json(frame, layout->fields, &message, layout->item_size, err) < 0) return -1;
  return rl_records_add(records, kind, &message, 1, err);
}

static int receive_records(const rl_frame *frame, rl_record_kind kind, rl_records *records, rl_error *err) {
  if (rl_record_layouts[kind].encoding == RL_ENCODE_TEXT) return receive_name(frame, records, err);
  if (rl_record_layouts[kind].encoding == RL_ENCODE_JSON) return receive_json_record(frame, kind, records, err);
  if ((kind == RL_RECORD_METRIC ? check_metrics(frame, err) : check_rows(frame, records, err)) < 0) return -1;
  return rl_records_add(records, kind, frame->payload, frame->length / rl_record_layouts[kind].item_size, err);
}

int rl_records_receive(const rl_frame *frame, rl_records *records, rl_error *err) {
  if (frame->type == RL_FRAME_METADATA) return receive_metadata(frame, records, err) < 0 ? -1 : 1;
  for (int kind = 0; kind < RL_RECORD_KIND_COUNT; kind++)
    if (frame_type_of_record[kind] == frame->type) return receive_records(frame, (rl_record_kind)kind, records, err) < 0 ? -1 : 1;
  return 0;
}

/* Sends an array of structs, as they are in memory, in frames of at most RL_WIRE_MAX_BULK_BYTES. */
static int send_structs(int descriptor, rl_record_kind kind, const char *items, size_t count, rl_error *err) {
  const size_t size = rl_record_layouts[kind].item_size, max_count = RL_WIRE_MAX_BULK_BYTES / size;
  for (size_t first = 0; first < count; first += max_count) {
    size_t sent = count - first < max_count ? count - first : max_count;
    if (rl_frame_write(descriptor, frame_type_of_record[kind], items + first * size, sent * size, err) < 0) return -1;
  }
  return 0;
}

static int send_names(int descriptor, char *const *names, size_t count, rl_error *err) {
  for (size_t i = 0; i < count; i++)
    if (rl_frame_write(descriptor, RL_FRAME_NAME, names[i], strlen(names[i]), err) < 0) return -1;
  return 0;
}

static int send_json_records(int descriptor, rl_record_kind kind, const char *items, size_t count, rl_error *err) {
  const rl_record_layout *layout = &rl_record_layouts[kind];
  for (size_t i = 0; i < count; i++)
    if (rl_frame_write_json(descriptor, frame_type_of_record[kind], layout->fields, items + i * layout->item_size, err) < 0)
      return -1;
  return 0;
}

static int send_records(int descriptor, rl_record_kind kind, const rl_records *records, rl_error *err) {
  const size_t count = rl_records_count(records, kind);
  const void *items = rl_records_items(records, kind);
  switch (rl_record_layouts[kind].encoding) {
    case RL_ENCODE_TEXT: return send_names(descriptor, records->names, count, err);
    case RL_ENCODE_JSON: return send_json_records(descriptor, kind, items, count, err);
    case RL_ENCODE_STRUCTS: break;
  }
  return send_structs(descriptor, kind, items, count, err);
}

/* Sends the kinds in the order of rl_record_kind, in which names precede the activity rows that refer to them. */
int rl_records_send(int descriptor, const rl_records *records, rl_error *err) {
  if (records->has_metadata &&
      rl_frame_write_json(descriptor, RL_FRAME_METADATA, rl_run_metadata_fields, &records->metadata, err) < 0)
    return -1;
  for (int kind = 0; kind < RL_RECORD_KIND_COUNT; kind++)
    if (send_records(descriptor, (rl_record_kind)kind, records, err) < 0) return -1;
  return 0;
}
