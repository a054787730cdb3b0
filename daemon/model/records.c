/* Defines the field tables of all kinds of records, and implements rl_records: one growing array for each kind, and a limit on
 * their total size. */
#include "model/records.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

const char *const rl_pass_names[] = {"timing", "activity", "counters", NULL};
const char *const rl_activity_kind_names[] = {"kernel", "memcpy",   "memset", "memory", "runtime", "driver",
                                              "range",  "overhead", "span",   "phase",  NULL};

const char *const rl_memory_kind_names[RL_MEMORY_KIND_COUNT] = {[RL_MEMORY_PAGEABLE] = "pageable",
                                                                [RL_MEMORY_PINNED] = "pinned",
                                                                [RL_MEMORY_DEVICE] = "device",
                                                                [RL_MEMORY_ARRAY] = "array",
                                                                [RL_MEMORY_MANAGED] = "managed",
                                                                [RL_MEMORY_DEVICE_STATIC] = "device_static",
                                                                [RL_MEMORY_MANAGED_STATIC] = "managed_static"};

/* A field of a record. Every field is required, because a worker sends all of them. */
#define FRAME_FIELD(STRUCT, MEMBER, TYPE, ...) RL_FIELD(STRUCT, MEMBER, TYPE, .required = true, __VA_ARGS__)
/* A ratio within [0, 1]. */
#define FRACTION_FIELD(STRUCT, MEMBER) FRAME_FIELD(STRUCT, MEMBER, RL_FIELD_NULLABLE_REAL, .minimum = 0, .maximum = 1)

static const char *const dataset_names[] = {"mnist", "custom", "synthetic", "", NULL};

const rl_field rl_run_metadata_fields[] = {
    FRAME_FIELD(rl_run_metadata, engine, RL_FIELD_TEXT, .summary = "engine that executed the run"),
    FRAME_FIELD(rl_run_metadata, dataset, RL_FIELD_TEXT, .names = dataset_names, .zero_is_null = true),
    FRAME_FIELD(rl_run_metadata, dataset_sha256, RL_FIELD_SHA256, .summary = "SHA-256 of the decoded images and labels",
                .zero_is_null = true),
    FRAME_FIELD(rl_run_metadata, deterministic, RL_FIELD_BOOL, .summary = "equal seed, device and engine give equal bits"),
    FRAME_FIELD(rl_run_metadata, deterministic_note, RL_FIELD_TEXT, .summary = "why the run is not deterministic",
                .zero_is_null = true),
    FRAME_FIELD(rl_run_metadata, partial, RL_FIELD_BOOL, .summary = "the run trains on fewer images than the data set has"),
    FRAME_FIELD(rl_run_metadata, images_per_epoch, RL_FIELD_INT, .minimum = 0, .maximum = 9e15, .zero_is_null = true),
    FRAME_FIELD(rl_run_metadata, steps_per_epoch, RL_FIELD_INT, .minimum = 0, .maximum = 9e15, .zero_is_null = true),
    FRAME_FIELD(rl_run_metadata, parameters, RL_FIELD_INT, .minimum = 0, .maximum = 9e15, .zero_is_null = true),
    FRAME_FIELD(rl_run_metadata, floor_operations, RL_FIELD_NULLABLE_REAL, .summary = "minimum operations of one iteration"),
    FRAME_FIELD(rl_run_metadata, floor_bytes, RL_FIELD_NULLABLE_REAL, .summary = "minimum bytes that one iteration moves"),
    FRAME_FIELD(rl_run_metadata, floor_written_bytes, RL_FIELD_NULLABLE_REAL,
                .summary = "the part of floor_bytes that is written"),
    FRAME_FIELD(rl_run_metadata, floor_precision, RL_FIELD_TEXT, .summary = "precision of floor_operations",
                .zero_is_null = true),
    RL_FIELD(rl_run_metadata, device_properties, RL_FIELD_JSON),
    FRAME_FIELD(rl_run_metadata, commit, RL_FIELD_TEXT, .summary = "git commit of the worker"),
    {0}};

const rl_field rl_epoch_fields[] = {FRAME_FIELD(rl_epoch, epoch, RL_FIELD_INT, .minimum = 0, .maximum = 9e15),
                                    FRAME_FIELD(rl_epoch, warmup, RL_FIELD_BOOL),
                                    FRAME_FIELD(rl_epoch, device_ms, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_epoch, host_ms, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_epoch, evaluation_ms, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_epoch, images, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_epoch, train_loss, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_epoch, test_loss, RL_FIELD_NULLABLE_REAL),
                                    FRACTION_FIELD(rl_epoch, test_accuracy_ratio),
                                    FRAME_FIELD(rl_epoch, loss_scale, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_epoch, skipped_steps, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_epoch, sm_clock_before_mhz, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_epoch, sm_clock_after_mhz, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_epoch, memory_clock_mhz, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_epoch, temperature_c, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_epoch, power_w, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_epoch, throttle_reasons, RL_FIELD_TEXT),
                                    RL_FIELD(rl_epoch, unavailable, RL_FIELD_JSON, .zero_is_null = true),
                                    {0}};

const char *const rl_sample_mode_names[] = {"cold", "warm", NULL};

const rl_field rl_sample_fields[] = {FRAME_FIELD(rl_sample, mode, RL_FIELD_CHOICE, .names = rl_sample_mode_names),
                                     FRAME_FIELD(rl_sample, ordinal, RL_FIELD_INT, .minimum = 0, .maximum = 9e15),
                                     FRAME_FIELD(rl_sample, device_us, RL_FIELD_NULLABLE_REAL),
                                     {0}};

const rl_field rl_measurement_fields[] = {FRAME_FIELD(rl_measurement, name, RL_FIELD_TEXT),
                                          FRAME_FIELD(rl_measurement, value, RL_FIELD_NULLABLE_REAL),
                                          FRAME_FIELD(rl_measurement, reason, RL_FIELD_TEXT, .zero_is_null = true),
                                          {0}};

const rl_field rl_kernel_fields[] = {
    FRAME_FIELD(rl_kernel, ordinal, RL_FIELD_INT, .minimum = 0, .maximum = 9e15),
    FRAME_FIELD(rl_kernel, launch, RL_FIELD_TEXT, .zero_is_null = true),
    FRAME_FIELD(rl_kernel, phase, RL_FIELD_TEXT, .zero_is_null = true),
    FRAME_FIELD(rl_kernel, name, RL_FIELD_TEXT),
    FRAME_FIELD(rl_kernel, launches, RL_FIELD_INT, .minimum = 0, .maximum = 9e15),
    FRAME_FIELD(rl_kernel, total_us, RL_FIELD_NULLABLE_REAL),
    FRAME_FIELD(rl_kernel, min_us, RL_FIELD_NULLABLE_REAL),
    FRAME_FIELD(rl_kernel, median_us, RL_FIELD_NULLABLE_REAL),
    FRAME_FIELD(rl_kernel, max_us, RL_FIELD_NULLABLE_REAL),
    FRAME_FIELD(rl_kernel, share_ratio, RL_FIELD_NULLABLE_REAL),
    FRAME_FIELD(rl_kernel, registers_per_thread, RL_FIELD_NULLABLE_REAL),
    FRAME_FIELD(rl_kernel, static_shared_bytes, RL_FIELD_NULLABLE_REAL),
    FRAME_FIELD(rl_kernel, dynamic_shared_bytes, RL_FIELD_NULLABLE_REAL),
    FRAME_FIELD(rl_kernel, grid_x, RL_FIELD_INT, .minimum = 0, .maximum = 9e15, .zero_is_null = true),
    FRAME_FIELD(rl_kernel, grid_y, RL_FIELD_INT, .minimum = 0, .maximum = 9e15, .zero_is_null = true),
    FRAME_FIELD(rl_kernel, grid_z, RL_FIELD_INT, .minimum = 0, .maximum = 9e15, .zero_is_null = true),
    FRAME_FIELD(rl_kernel, block_x, RL_FIELD_INT, .minimum = 0, .maximum = 9e15, .zero_is_null = true),
    FRAME_FIELD(rl_kernel, block_y, RL_FIELD_INT, .minimum = 0, .maximum = 9e15, .zero_is_null = true),
    FRAME_FIELD(rl_kernel, block_z, RL_FIELD_INT, .minimum = 0, .maximum = 9e15, .zero_is_null = true),
    FRACTION_FIELD(rl_kernel, theoretical_occupancy_ratio),
    FRAME_FIELD(rl_kernel, code_sha256, RL_FIELD_SHA256, .zero_is_null = true),
    FRAME_FIELD(rl_kernel, reason, RL_FIELD_TEXT, .zero_is_null = true),
    {0}};

const rl_field rl_phase_fields[] = {FRAME_FIELD(rl_phase, ordinal, RL_FIELD_INT, .minimum = 0, .maximum = 9e15),
                                    FRAME_FIELD(rl_phase, position, RL_FIELD_INT, .minimum = 0, .maximum = 9e15),
                                    FRAME_FIELD(rl_phase, name, RL_FIELD_TEXT),
                                    FRAME_FIELD(rl_phase, phase, RL_FIELD_TEXT, .zero_is_null = true),
                                    FRAME_FIELD(rl_phase, steps, RL_FIELD_INT, .minimum = 0, .maximum = 9e15),
                                    FRAME_FIELD(rl_phase, blocks, RL_FIELD_INT, .minimum = 0, .maximum = 9e15),
                                    FRAME_FIELD(rl_phase, mean_us, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_phase, min_us, RL_FIELD_NULLABLE_REAL),
                                    FRAME_FIELD(rl_phase, max_us, RL_FIELD_NULLABLE_REAL),
                                    FRACTION_FIELD(rl_phase, share_ratio),
                                    {0}};

const rl_field rl_instruction_fields[] = {
    FRAME_FIELD(rl_instruction, ordinal, RL_FIELD_INT, .minimum = 0, .maximum = 9e15),
    FRAME_FIELD(rl_instruction, offset, RL_FIELD_INT, .minimum = 0, .maximum = 9e15),
    FRAME_FIELD(rl_instruction, opcode, RL_FIELD_TEXT, .zero_is_null = true),
    FRAME_FIELD(rl_instruction, sass, RL_FIELD_TEXT, .zero_is_null = true),
    FRAME_FIELD(rl_instruction, file, RL_FIELD_TEXT, .zero_is_null = true),
    FRAME_FIELD(rl_instruction, line, RL_FIELD_INT, .minimum = 0, .maximum = 9e15, .zero_is_null = true),
    FRAME_FIELD(rl_instruction, counts, RL_FIELD_JSON),
    FRAME_FIELD(rl_instruction, reason, RL_FIELD_TEXT, .zero_is_null = true),
    {0}};

const rl_field rl_series_point_fields[] = {FRAME_FIELD(rl_series_point, ordinal, RL_FIELD_INT, .minimum = 0, .maximum = 9e15),
                                           FRAME_FIELD(rl_series_point, name, RL_FIELD_TEXT),
                                           FRAME_FIELD(rl_series_point, x, RL_FIELD_REAL, .minimum = -9e15, .maximum = 9e15),
                                           FRAME_FIELD(rl_series_point, value, RL_FIELD_NULLABLE_REAL),
                                           {0}};

const rl_field rl_kernel_metric_fields[] = {FRAME_FIELD(rl_kernel_metric, ordinal, RL_FIELD_INT, .minimum = 0, .maximum = 9e15),
                                            FRAME_FIELD(rl_kernel_metric, metric, RL_FIELD_TEXT),
                                            FRAME_FIELD(rl_kernel_metric, value, RL_FIELD_NULLABLE_REAL),
                                            FRAME_FIELD(rl_kernel_metric, reason, RL_FIELD_TEXT, .zero_is_null = true),
                                            {0}};

const rl_field rl_progress_fields[] = {
    FRAME_FIELD(rl_progress, pass, RL_FIELD_TEXT, .names = rl_pass_names),
    FRAME_FIELD(rl_progress, phase, RL_FIELD_TEXT, .summary = "prepare, warmup, epoch, samples, trace, counters or evaluate"),
    FRAME_FIELD(rl_progress, epoch, RL_FIELD_INT, .minimum = -1, .maximum = 9e15, .summary = "-1: not applicable"),
    FRAME_FIELD(rl_progress, epochs, RL_FIELD_INT, .minimum = -1, .maximum = 9e15),
    FRAME_FIELD(rl_progress, step, RL_FIELD_INT, .minimum = -1, .maximum = 9e15),
    FRAME_FIELD(rl_progress, steps, RL_FIELD_INT, .minimum = -1, .maximum = 9e15),
    FRAME_FIELD(rl_progress, train_loss, RL_FIELD_NULLABLE_REAL),
    FRAME_FIELD(rl_progress, images_per_s, RL_FIELD_NULLABLE_REAL),
    FRAME_FIELD(rl_progress, eta_s, RL_FIELD_NULLABLE_REAL),
    FRACTION_FIELD(rl_progress, test_accuracy_ratio),
    {0}};

static const size_t DEFAULT_LIMIT = (size_t)1 << 30;

/* Returns the capacity of an array of `count` items. rl_records stores no capacity: it follows from the number of items. */
static size_t capacity_for(size_t count) {
  size_t capacity = 16;
  while (capacity < count) capacity *= 2;
  return count == 0 ? 0 : capacity;
}

/* Adds `bytes` to records->bytes. Fails with RL_WIRE_MEMORY_LIMIT if the sum would exceed the limit. */
static int reserve_bytes(rl_records *records, size_t bytes, rl_error *err) {
  size_t limit = records->limit_bytes != 0 ? records->limit_bytes : DEFAULT_LIMIT;
  if (bytes > limit || records->bytes > limit - bytes)
    return rl_fail(err, RL_WIRE, RL_WIRE_MEMORY_LIMIT, "the pass yields more than %zu bytes of records", limit);
  records->bytes += bytes;
  return 0;
}

#define LAYOUT(ENCODING, FIELDS, ITEMS, COUNT) \
  { RL_ENCODE_##ENCODING, FIELDS, sizeof *((rl_records *)0)->ITEMS, offsetof(rl_records, ITEMS), offsetof(rl_records, COUNT) }
const rl_record_layout rl_record_layouts[RL_RECORD_KIND_COUNT] = {
    [RL_RECORD_EPOCH] = LAYOUT(JSON, rl_epoch_fields, epochs, epoch_count),
    [RL_RECORD_SAMPLE] = LAYOUT(JSON, rl_sample_fields, samples, sample_count),
    [RL_RECORD_MEASUREMENT] = LAYOUT(JSON, rl_measurement_fields, measurements, measurement_count),
    [RL_RECORD_KERNEL] = LAYOUT(JSON, rl_kernel_fields, kernels, kernel_count),
    [RL_RECORD_PHASE] = LAYOUT(JSON, rl_phase_fields, phases, phase_count),
    [RL_RECORD_INSTRUCTION] = LAYOUT(JSON, rl_instruction_fields, instructions, instruction_count),
    [RL_RECORD_POINT] = LAYOUT(JSON, rl_series_point_fields, points, point_count),
    [RL_RECORD_NAME] = LAYOUT(TEXT, NULL, names, name_count),
    [RL_RECORD_METRIC] = LAYOUT(STRUCTS, rl_kernel_metric_fields, metrics, metric_count),
    [RL_RECORD_ROW] = LAYOUT(STRUCTS, NULL, rows, row_count)};
#undef LAYOUT

size_t rl_records_count(const rl_records *records, rl_record_kind kind) {
  return *(const size_t *)((const char *)records + rl_record_layouts[kind].count_offset);
}

const void *rl_records_items(const rl_records *records, rl_record_kind kind) {
  return *(const void *const *)((const char *)records + rl_record_layouts[kind].items_offset);
}

static void **items_pointer(rl_records *records, const rl_record_layout *layout) {
  return (void **)((char *)records + layout->items_offset);
}
static size_t *count_pointer(rl_records *records, const rl_record_layout *layout) {
  return (size_t *)((char *)records + layout->count_offset);
}

int rl_records_add(rl_records *records, rl_record_kind kind, const void *items, size_t added, rl_error *err) {
  const rl_record_layout *layout = &rl_record_layouts[kind];
  void **array = items_pointer(records, layout);
  size_t *count = count_pointer(records, layout);
  if (added > SIZE_MAX / 4 / layout->item_size || reserve_bytes(records, added * layout->item_size, err) < 0) return -1;
  size_t capacity = capacity_for(*count + added);
  if (capacity != capacity_for(*count)) {
    void *grown = realloc(*array, capacity * layout->item_size);
    if (grown == NULL) {
      records->bytes -= added * layout->item_size;
      return rl_fail(err, RL_WIRE, RL_WIRE_MEMORY_LIMIT, "out of memory for %zu bytes of records", capacity * layout->item_size);
    }
    *array = grown;
  }
  if (added > 0) memcpy((char *)*array + *count * layout->item_size, items, added * layout->item_size);
  *count += added;
  return 0;
}

/* Replaces characters that the receiver rejects: control characters, and invalid UTF-8 at the end of a text that a library has
 * truncated. */
static void sanitize_text(char *text) {
  rl_utf8_sanitize(text, strlen(text));
  for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++)
    if (*c < 0x20 || *c == 0x7f) *c = ' ';
}

int rl_records_add_metric(rl_records *records, const rl_kernel_metric *metric, rl_error *err) {
  rl_kernel_metric sanitized = *metric;
  sanitize_text(sanitized.metric);
  sanitize_text(sanitized.reason);
  return rl_records_add(records, RL_RECORD_METRIC, &sanitized, 1, err);
}

int rl_records_add_name(rl_records *records, const char *name, size_t length, rl_error *err) {
  if (reserve_bytes(records, length + 1, err) < 0) return -1;
  char *copy = strndup(name, length);
  if (copy == NULL) rl_fail(err, RL_WIRE, RL_WIRE_MEMORY_LIMIT, "out of memory for a name of %zu bytes", length);
  if (copy != NULL && rl_records_add(records, RL_RECORD_NAME, &copy, 1, err) >= 0) return 0;
  free(copy);
  records->bytes -= length + 1;
  return -1;
}

int rl_records_add_measurement(rl_records *records, const char *name, double value, const char *reason, rl_error *err) {
  rl_measurement measurement = {.value = value};
  if (!isfinite(value) && (reason == NULL || *reason == '\0'))
    return rl_fail(err, RL_INPUT, 0, "the measurement %s has neither a value nor a reason for having none", name);
  snprintf(measurement.name, sizeof measurement.name, "%s", name);
  snprintf(measurement.reason, sizeof measurement.reason, "%s", reason != NULL ? reason : "");
  return rl_records_add(records, RL_RECORD_MEASUREMENT, &measurement, 1, err);
}

void rl_records_drop_rows(rl_records *records, size_t count) {
  records->row_count -= count;
  if (records->row_count > 0) memmove(records->rows, records->rows + count, records->row_count * sizeof *records->rows);
}

size_t rl_records_held_bytes(const rl_records *records) {
  size_t bytes = 0;
  for (int kind = 0; kind < RL_RECORD_KIND_COUNT; kind++)
    bytes += rl_records_count(records, (rl_record_kind)kind) * rl_record_layouts[kind].item_size;
  for (size_t i = 0; i < records->name_count; i++) bytes += strlen(records->names[i]) + 1;
  return bytes;
}

void rl_records_clear(rl_records *records) {
  for (size_t i = 0; i < records->name_count; i++) free(records->names[i]);
  for (int kind = 0; kind < RL_RECORD_KIND_COUNT; kind++) free(*items_pointer(records, &rl_record_layouts[kind]));
  *records = (rl_records){.limit_bytes = records->limit_bytes};
}
