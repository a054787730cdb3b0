/* Implements trace.h. Names are in a hash table, whose hash function has a random key, so that no file can cause many
 * collisions. */
#include "import/trace.h"

#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/timeline.h"
#include "base/commit.h"
#include "base/utf8.h"
#include "import/ambiguous_calls.h"

enum { NAME_SLOTS = 1 << 18, MAX_GPUS = 64, MAX_SOURCES = 256, NOTES_SIZE = 2048 };
_Static_assert((int)NAME_SLOTS > 2 * (int)RL_TRACE_MAX_NAMES, "more than half of the hash table must stay free");
static const size_t MAX_NAME_BYTES = (size_t)64 << 20, MAX_RECORD_BYTES = (size_t)512 << 20;
static const int64_t MAX_TIME_NS = INT64_MAX / 4; /* the daemon (rl_records_receive) refuses later times */

/* A process, a GPU that the process uses, and the number of operations of this pair. Only the operations of one pair become rows
 * of the run. */
typedef struct operation_source {
  uint32_t process;
  uint16_t device;
  size_t operations;
} operation_source;

struct rl_trace {
  rl_records records;
  uint32_t *name_slots; /* 1 + index of a name; 0: free */
  unsigned char hash_key[crypto_shorthash_KEYBYTES];
  size_t name_bytes;
  rl_thread_numbers *threads;
  operation_source sources[MAX_SOURCES];
  size_t source_count;
  rl_trace_gpu gpus[MAX_GPUS];
  size_t gpu_count;
  int64_t skipped[RL_SKIPPED_KIND_COUNT];
  int64_t untimed;
  int64_t ambiguous;             /* operations whose API call is ambiguous */
  int64_t total_ns, total_bytes; /* sums over the rows */
  char engine[16], producer[64], version[64];
};

static const struct {
  const char *measurement, *note;
} skipped_kinds[RL_SKIPPED_KIND_COUNT] = {
    [RL_SKIPPED_PYTHON_FUNCTION] = {"skipped_python_function_events", "calls of Python functions"},
    [RL_SKIPPED_GPU_USER_ANNOTATION] = {"skipped_gpu_user_annotation_events", "projections of user annotations on the GPU"},
    [RL_SKIPPED_SYNCHRONIZATION] = {"skipped_synchronization_events", "synchronization records; the API calls show these waits"},
    [RL_SKIPPED_CATEGORY] = {"skipped_other_category_events", "events of other categories"},
    [RL_SKIPPED_UNPAIRED] = {"skipped_unpaired_events", "begins without an end or ends without a begin"},
    [RL_SKIPPED_OTHER_GPU] = {"skipped_other_gpu_events", "events of other GPUs"},
    [RL_SKIPPED_OTHER_PROCESS] = {"skipped_other_process_events", "events of other processes"}};

rl_trace *rl_trace_new(void) {
  rl_trace *trace = calloc(1, sizeof *trace);
  if (trace == NULL) return NULL;
  trace->name_slots = calloc(NAME_SLOTS, sizeof *trace->name_slots);
  trace->threads = rl_thread_numbers_new();
  trace->records.limit_bytes = MAX_RECORD_BYTES;
  randombytes_buf(trace->hash_key, sizeof trace->hash_key);
  if (trace->name_slots != NULL && trace->threads != NULL) return trace;
  rl_trace_free(trace);
  return NULL;
}

void rl_trace_free(rl_trace *trace) {
  if (trace == NULL) return;
  rl_records_clear(&trace->records);
  free(trace->name_slots);
  rl_thread_numbers_free(trace->threads);
  free(trace);
}

/* --- names ------------------------------------------------------------------------------------------------------------- */

/* Returns the slot of the name; if the name is new, the free slot for it. */
static uint32_t *find_slot(rl_trace *trace, const char *text, size_t length) {
  uint64_t hash;
  crypto_shorthash((unsigned char *)&hash, (const unsigned char *)text, length, trace->hash_key);
  for (size_t slot = hash % NAME_SLOTS;; slot = (slot + 1) % NAME_SLOTS) {
    uint32_t *found = &trace->name_slots[slot];
    if (*found == 0) return found;
    const char *name = trace->records.names[*found - 1];
    if (strncmp(name, text, length) == 0 && name[length] == '\0') return found;
  }
}

static int add_new_name(rl_trace *trace, const char *text, size_t length, rl_error *err) {
  if (trace->records.name_count == RL_TRACE_MAX_NAMES)
    return rl_fail(err, RL_INPUT, 0, "the trace has more than %d different names", RL_TRACE_MAX_NAMES);
  if (trace->name_bytes + length > MAX_NAME_BYTES)
    return rl_fail(err, RL_INPUT, 0, "the names of the trace have more than %zu bytes", MAX_NAME_BYTES);
  if (rl_records_add_name(&trace->records, text, length, err) < 0) return -1;
  trace->name_bytes += length;
  return 0;
}

static void sanitize_name(char *name, size_t length) {
  rl_utf8_sanitize(name, length);
  for (size_t i = 0; i < length; i++)
    if (name[i] == '\0') name[i] = '?';
}

int rl_trace_add_name(rl_trace *trace, const char *text, size_t length, uint32_t *index, rl_error *err) {
  char name[RL_TRACE_MAX_NAME_LENGTH];
  if (length > sizeof name)
    return rl_fail(err, RL_INPUT, 0, "a name has %zu bytes, more than %d", length, RL_TRACE_MAX_NAME_LENGTH);
  if (length == 0) text = "(unnamed)", length = strlen(text);
  memcpy(name, text, length);
  sanitize_name(name, length);
  uint32_t *slot = find_slot(trace, name, length);
  if (*slot == 0) {
    if (add_new_name(trace, name, length, err) < 0) return -1;
    *slot = (uint32_t)trace->records.name_count;
  }
  *index = *slot - 1;
  return 0;
}

/* --- rows -------------------------------------------------------------------------------------------------------------- */

static bool is_operation(const rl_activity_row *row) {
  return row->kind == RL_ACTIVITY_KERNEL || row->kind == RL_ACTIVITY_MEMCPY || row->kind == RL_ACTIVITY_MEMSET ||
         row->kind == RL_ACTIVITY_CPU_SPAN;
}

/* Returns whether the row is activity on a GPU and thus has a device. */
static bool is_on_device(const rl_activity_row *row) { return is_operation(row) || row->kind == RL_ACTIVITY_PHASE; }

static int count_operation(rl_trace *trace, const rl_activity_row *row, rl_error *err) {
  for (size_t i = 0; i < trace->source_count; i++)
    if (trace->sources[i].process == row->process && trace->sources[i].device == row->device) {
      trace->sources[i].operations++;
      return 0;
    }
  if (trace->source_count == MAX_SOURCES)
    return rl_fail(err, RL_INPUT, 0, "the trace has operations of more than %d GPUs and processes", MAX_SOURCES);
  trace->sources[trace->source_count++] = (operation_source){row->process, row->device, 1};
  return 0;
}

int rl_trace_number_thread(rl_trace *trace, rl_thread_key key, uint32_t *thread, rl_error *err) {
  return rl_thread_numbers_find(trace->threads, key, thread, err);
}

uint32_t rl_trace_graph_node(int64_t number) {
  if (number <= 0) return 0;
  return number >> 32 != 0 ? (uint32_t)number + 1 : (uint32_t)number;
}

/* Adds up the durations and the bytes of all rows. If these sums fit into 64 bits, the sums of every analysis do. */
static int add_up(rl_trace *trace, const rl_activity_row *row, rl_error *err) {
  if (__builtin_add_overflow(trace->total_ns, row->end_ns - row->start_ns, &trace->total_ns))
    return rl_fail(err, RL_INPUT, 0, "the durations of all events add up to more than %lld ns: record a shorter time",
                   (long long)INT64_MAX);
  if (__builtin_add_overflow(trace->total_bytes, row->bytes, &trace->total_bytes))
    return rl_fail(err, RL_INPUT, 0, "the sizes of all copies add up to more than %lld bytes: record fewer copies",
                   (long long)INT64_MAX);
  return 0;
}

int rl_trace_add_row(rl_trace *trace, const rl_activity_row *row, rl_error *err) {
  if (row->start_ns < 0 || row->start_ns > MAX_TIME_NS || row->end_ns > MAX_TIME_NS)
    return rl_fail(err, RL_INPUT, 0, "%s starts at %lld ns and ends at %lld ns: times must be from 0 to %lld ns",
                   rl_activity_kind_names[row->kind], (long long)row->start_ns, (long long)row->end_ns, (long long)MAX_TIME_NS);
  if (row->end_ns < row->start_ns)
    return rl_fail(err, RL_INPUT, 0, "%s starts at %lld ns and ends before, at %lld ns", rl_activity_kind_names[row->kind],
                   (long long)row->start_ns, (long long)row->end_ns);
  if (trace->records.row_count == RL_TRACE_MAX_ROWS)
    return rl_fail(err, RL_INPUT, 0, "the trace has more than %d events: record a shorter time or fewer activities",
                   RL_TRACE_MAX_ROWS);
  if (add_up(trace, row, err) < 0 || (is_operation(row) && count_operation(trace, row, err) < 0)) return -1;
  return rl_records_add(&trace->records, RL_RECORD_ROW, row, 1, err);
}

void rl_trace_count_skipped_event(rl_trace *trace, rl_skipped_kind kind) { trace->skipped[kind]++; }
void rl_trace_count_untimed(rl_trace *trace) { trace->untimed++; }

/* Copies a text of the file; replaces characters that are not allowed in frames. */
static void copy_text(char *to, size_t size, const char *text) {
  snprintf(to, size, "%s", text);
  rl_utf8_sanitize(to, strlen(to));
  for (char *c = to; *c != '\0'; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
}

void rl_trace_add_gpu(rl_trace *trace, const rl_trace_gpu *gpu) {
  if (trace->gpu_count == MAX_GPUS) return;
  rl_trace_gpu *added = &trace->gpus[trace->gpu_count++];
  *added = *gpu;
  copy_text(added->name, sizeof added->name, gpu->name);
  copy_text(added->uuid, sizeof added->uuid, gpu->uuid);
}

void rl_trace_set_producer(rl_trace *trace, const char *engine, const char *producer, const char *version) {
  copy_text(trace->engine, sizeof trace->engine, engine);
  copy_text(trace->producer, sizeof trace->producer, producer);
  copy_text(trace->version, sizeof trace->version, version);
}

/* --- selection of one GPU and process ---------------------------------------------------------------------------------- */

static operation_source most_used_source(const rl_trace *trace) {
  operation_source most_used = {0};
  for (size_t i = 0; i < trace->source_count; i++)
    if (trace->sources[i].operations > most_used.operations) most_used = trace->sources[i];
  return most_used;
}

typedef struct correlation_list { /* in ascending order; an id can occur several times */
  uint32_t *items;
  size_t count;
} correlation_list;

static void free_correlations(correlation_list *list) { free(list->items); }

static int compare_correlations(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static bool contains(const correlation_list *list, uint32_t correlation) {
  return list->count > 0 && bsearch(&correlation, list->items, list->count, sizeof correlation, compare_correlations) != NULL;
}

static bool is_selected(const rl_activity_row *row, const operation_source *source) {
  return row->device == source->device && row->process == source->process;
}

/* Lists the correlation ids of the operations that the selected process executes on the selected GPU (on_selected) or on all
 * other GPUs. */
static int list_correlations(const rl_trace *trace, const operation_source *source, bool on_selected, correlation_list *list,
                             rl_error *err) {
  size_t operations = 0;
  for (size_t i = 0; i < trace->source_count; i++)
    if (trace->sources[i].process == source->process && (trace->sources[i].device == source->device) == on_selected)
      operations += trace->sources[i].operations;
  list->items = malloc((operations + 1) * sizeof *list->items);
  if (list->items == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a trace");
  for (size_t i = 0; operations > 0 && i < trace->records.row_count; i++) {
    const rl_activity_row *row = &trace->records.rows[i];
    if (is_operation(row) && row->process == source->process && (row->device == source->device) == on_selected &&
        row->correlation != 0)
      list->items[list->count++] = row->correlation;
  }
  qsort(list->items, list->count, sizeof *list->items, compare_correlations);
  return 0;
}

/* Returns the reason for which the row is removed; RL_SKIPPED_KIND_COUNT if the row is kept. A call that launches work on several
 * GPUs, such as the launch of a graph, is kept if the selected GPU has part of this work. */
static rl_skipped_kind find_reason_to_skip(const rl_activity_row *row, const operation_source *source,
                                           const correlation_list *selected_work, const correlation_list *other_work) {
  if (is_on_device(row))
    return is_selected(row, source)          ? RL_SKIPPED_KIND_COUNT
           : row->process != source->process ? RL_SKIPPED_OTHER_PROCESS
                                             : RL_SKIPPED_OTHER_GPU;
  if (row->process != 0 && source->process != 0 && row->process != source->process) return RL_SKIPPED_OTHER_PROCESS;
  bool has_only_other_work = contains(other_work, row->correlation) && !contains(selected_work, row->correlation);
  return has_only_other_work ? RL_SKIPPED_OTHER_GPU : RL_SKIPPED_KIND_COUNT;
}

/* Sets *source to the pair with the most operations, and removes the rows of other GPUs and processes. */
static int select_source(rl_trace *trace, operation_source *source, rl_error *err) {
  RL_CLEANUP(free_correlations) correlation_list selected_work = {0}, other_work = {0};
  *source = most_used_source(trace);
  if (list_correlations(trace, source, true, &selected_work, err) < 0 ||
      list_correlations(trace, source, false, &other_work, err) < 0)
    return -1;
  rl_records *records = &trace->records;
  size_t kept = 0;
  for (size_t i = 0; i < records->row_count; i++) {
    rl_skipped_kind kind = find_reason_to_skip(&records->rows[i], source, &selected_work, &other_work);
    if (kind == RL_SKIPPED_KIND_COUNT) records->rows[kept++] = records->rows[i];
    else trace->skipped[kind]++;
  }
  records->row_count = kept;
  return source->process != 0 ? 0 : rl_ambiguous_calls_unlink(records, &trace->ambiguous, err);
}

/* --- times ------------------------------------------------------------------------------------------------------------- */

/* Orders rows by their starts. Of two rows that start at the same time, the longer one comes first, so that an outer range
 * precedes the ranges inside it. */
static int compare_rows(const void *a, const void *b) {
  const rl_activity_row *x = a, *y = b;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

/* Sorts the rows and subtracts the start of the first row from all times. Clears the process of operations, because only rows of
 * host activity have a process. */
static void sort_rows(rl_records *records) {
  if (records->row_count == 0) return;
  qsort(records->rows, records->row_count, sizeof *records->rows, compare_rows);
  const int64_t first_ns = records->rows[0].start_ns;
  for (size_t i = 0; i < records->row_count; i++) {
    rl_activity_row *row = &records->rows[i];
    row->start_ns -= first_ns;
    row->end_ns -= first_ns;
    if (is_on_device(row) && row->kind != RL_ACTIVITY_CPU_SPAN) row->process = 0;
  }
}

/* --- results ----------------------------------------------------------------------------------------------------------- */

#define GPU_FIELD(KEY, MEMBER, TYPE) RL_FIELD_WITH_KEY(KEY, rl_trace_gpu, MEMBER, TYPE)
static const rl_field gpu_fields[] = {GPU_FIELD("name", name, RL_FIELD_TEXT),
                                      GPU_FIELD("uuid", uuid, RL_FIELD_TEXT),
                                      GPU_FIELD("compute_capability", compute_capability, RL_FIELD_TEXT),
                                      GPU_FIELD("sm_count", sm_count, RL_FIELD_INT),
                                      GPU_FIELD("memory_bytes", memory_bytes, RL_FIELD_INT),
                                      GPU_FIELD("l2_bytes", l2_bytes, RL_FIELD_INT),
                                      GPU_FIELD("shared_memory_per_sm_bytes", shared_memory_per_sm_bytes, RL_FIELD_INT),
                                      GPU_FIELD("registers_per_sm", registers_per_sm, RL_FIELD_INT),
                                      {0}};

static rl_trace_gpu find_gpu(const rl_trace *trace, const operation_source *source) {
  rl_trace_gpu found = {0};
  for (size_t i = 0; i < trace->gpu_count; i++)
    if (trace->gpus[i].number + 1 == source->device) found = trace->gpus[i];
  if (found.name[0] == '\0') snprintf(found.name, sizeof found.name, "unknown (the trace does not name its device)");
  return found;
}

/* Writes the properties of the run's GPU as JSON, without those that the file does not contain. */
static int write_device(const rl_trace *trace, const operation_source *source, rl_run_metadata *metadata, rl_error *err) {
  rl_trace_gpu gpu = find_gpu(trace, source);
  cJSON *object = cJSON_CreateObject();
  if (object == NULL || rl_fields_encode(gpu_fields, &gpu, object) < 0) {
    cJSON_Delete(object);
    return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a trace");
  }
  for (cJSON *item = object->child, *next; item != NULL; item = next) {
    next = item->next;
    bool is_absent = cJSON_IsString(item) ? item->valuestring[0] == '\0' : item->valuedouble == 0;
    if (is_absent) cJSON_Delete(cJSON_DetachItemViaPointer(object, item));
  }
  bool written = cJSON_PrintPreallocated(object, metadata->device_properties, sizeof metadata->device_properties, false);
  cJSON_Delete(object);
  return written ? 0 : rl_fail(err, RL_INPUT, 0, "the properties of the trace's GPU are too long");
}

static void write_metadata(const rl_trace *trace, rl_run_metadata *metadata) {
  metadata->floor_operations = metadata->floor_bytes = metadata->floor_written_bytes = NAN;
  snprintf(metadata->engine, sizeof metadata->engine, "%s", trace->engine);
  snprintf(metadata->deterministic_note, sizeof metadata->deterministic_note, "the trace was recorded elsewhere");
  snprintf(metadata->commit, sizeof metadata->commit, "%s", RL_COMMIT);
}

static int add_kernels(rl_records *records, double window_ms, rl_error *err) {
  const rl_kernel_summary_options options = {.epoch_us = window_ms * 1e3,
                                             .missing_values_reason = "the trace has no theoretical occupancy"};
  return rl_timeline_summarize_kernels(records, &options, records, err);
}

static size_t count_kernels(const rl_records *records) {
  size_t count = 0;
  for (size_t i = 0; i < records->row_count; i++) count += records->rows[i].kind == RL_ACTIVITY_KERNEL;
  return count;
}

static int add_measurements(const rl_trace *trace, rl_records *records, const rl_busy_time *busy, double window_ms,
                            rl_error *err) {
  static const char untraced[] = "an imported trace has no untraced times", no_work[] = "the trace has no work of a device",
                    unknown_launches[] = "the trace does not say how many launches were issued";
  const struct {
    const char *name;
    double value;
    const char *reason;
  } values[] = {{"activity_kernel_records", (double)count_kernels(records), NULL},
                {"activity_records", (double)records->row_count, NULL},
                {"activity_dropped_records", NAN, "the trace does not say how many records the profiler lost"},
                {"activity_zero_time_records", (double)trace->untimed, NULL},
                {"ambiguous_operations", (double)trace->ambiguous, NULL},
                {"epoch_untraced_ms", NAN, untraced},
                {"epoch_traced_ms", window_ms, no_work},
                {"perturbation_ratio", NAN, untraced},
                {"launches_issued", NAN, unknown_launches},
                {"completeness_ratio", NAN, unknown_launches},
                {"device_busy_ratio", window_ms > 0 ? (double)busy->busy_ns * 1e-6 / window_ms : NAN, no_work},
                {"launch_gap_ratio", NAN, untraced}};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    if (rl_records_add_measurement(records, values[i].name, values[i].value, isnan(values[i].value) ? values[i].reason : NULL,
                                   err) < 0)
      return -1;
  for (int i = 0; i < RL_SKIPPED_KIND_COUNT; i++)
    if (rl_records_add_measurement(records, skipped_kinds[i].measurement, (double)trace->skipped[i], NULL, err) < 0) return -1;
  return 0;
}

static void append_line(char *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append_line(char *notes, const char *format, ...) {
  size_t used = strlen(notes);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(notes + used, NOTES_SIZE - used, format, arguments);
  va_end(arguments);
}

static int write_notes(const rl_trace *trace, const rl_records *records, char **notes, rl_error *err) {
  char *text = calloc(1, NOTES_SIZE);
  if (text == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a trace");
  append_line(text, "written by %s%s%s\n%zu events imported\n", trace->producer, trace->version[0] != '\0' ? " " : "",
              trace->version, records->row_count);
  for (int i = 0; i < RL_SKIPPED_KIND_COUNT; i++)
    if (trace->skipped[i] > 0) append_line(text, "%lld left out: %s\n", (long long)trace->skipped[i], skipped_kinds[i].note);
  if (trace->ambiguous > 0)
    append_line(text,
                "%lld operations without a launch call: API calls of several processes have their correlation ids; import the "
                "trace of each process alone\n",
                (long long)trace->ambiguous);
  *notes = text;
  return 0;
}

static int fail_empty(const rl_trace *trace, rl_error *err) {
  int64_t skipped = 0;
  for (int i = 0; i < RL_SKIPPED_KIND_COUNT; i++) skipped += trace->skipped[i];
  return rl_fail(err, RL_INPUT, 0,
                 "the trace has no kernel, copy, API call, operator or annotation; it has %lld events of other categories",
                 (long long)skipped);
}

int rl_trace_finish(rl_trace *trace, rl_records *records, char **notes, rl_error *err) {
  operation_source source;
  rl_busy_time busy;
  rl_records *read = &trace->records;
  if (select_source(trace, &source, err) < 0) return -1;
  if (read->row_count == 0) return fail_empty(trace, err);
  sort_rows(read);
  if (rl_thread_numbers_replace(trace->threads, read->rows, read->row_count, err) < 0) return -1;
  if (rl_timeline_measure_busy_time(read->rows, read->row_count, &busy, err) < 0) return -1;
  const double window_ms = busy.row_count > 0 ? (double)(busy.last_ns - busy.first_ns) * 1e-6 : NAN;
  if (write_device(trace, &source, &read->metadata, err) < 0 || add_kernels(read, window_ms, err) < 0 ||
      add_measurements(trace, read, &busy, window_ms, err) < 0 || write_notes(trace, read, notes, err) < 0)
    return -1;
  write_metadata(trace, &read->metadata);
  read->has_metadata = true;
  *records = *read;
  *read = (rl_records){0};
  return 0;
}
