/* Implements kineto_event.h. The table `categories` maps the categories of events to kinds of rows; the table `members` maps the
 * members of events to fields. */
#include "import/kineto_event.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "import/decimal.h"
#include "model/overheads.h"

enum { MAX_OPEN_EVENTS = 4096, US_TO_NS_DIGITS = 3 };

/* --- fields ------------------------------------------------------------------------------------------------------------ */

static const struct member {
  const char *key;
  rl_event_field field;
  bool in_args;
} members[] = {{"name", RL_EVENT_NAME, false},
               {"cat", RL_EVENT_CATEGORY, false},
               {"ph", RL_EVENT_PHASE, false},
               {"ts", RL_EVENT_START, false},
               {"dur", RL_EVENT_DURATION, false},
               {"pid", RL_EVENT_PROCESS, false},
               {"tid", RL_EVENT_THREAD, false},
               {"device", RL_EVENT_DEVICE, true},
               {"context", RL_EVENT_CONTEXT, true},
               {"host thread", RL_EVENT_HOST_THREAD, true},
               {"stream", RL_EVENT_STREAM, true},
               {"correlation", RL_EVENT_CORRELATION, true},
               {"graph node id", RL_EVENT_GRAPH_NODE, true},
               {"graph_node", RL_EVENT_GRAPH_NODE, true},
               {"bytes", RL_EVENT_BYTES, true},
               {"grid", RL_EVENT_GRID, true},
               {"block", RL_EVENT_BLOCK, true},
               {"registers per thread", RL_EVENT_REGISTERS, true},
               {"registers", RL_EVENT_REGISTERS, true},
               {"shared memory", RL_EVENT_SHARED_MEMORY, true},
               {"static_shared_bytes", RL_EVENT_STATIC_SHARED, true},
               {"dynamic_shared_bytes", RL_EVENT_DYNAMIC_SHARED, true},
               {"step", RL_EVENT_STEP, true}};

rl_event_field rl_kineto_event_field(const char *key, size_t length, bool in_args) {
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    if (members[i].in_args == in_args && strlen(members[i].key) == length && memcmp(members[i].key, key, length) == 0)
      return members[i].field;
  return RL_EVENT_FIELD_NONE;
}

void rl_kineto_event_begin(rl_kineto_event *event) {
  char *name = event->name;
  memset(event, 0, sizeof *event);
  event->name = name;
}

static int set_time(const char *text, size_t length, const char *member, int64_t *ns, bool *is_set, rl_error *err) {
  if (!rl_decimal_parse_scaled(text, length, US_TO_NS_DIGITS, ns))
    return rl_fail(err, RL_INPUT, 0, "%s is %.*s µs, which does not fit into 64 bits as a number of ns", member,
                   (int)(length < 40 ? length : 40), text);
  *is_set = true;
  return 0;
}

/* Returns a hash (FNV-1a) of a text. */
static uint64_t hash_text(const char *text, size_t length) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
  return hash;
}

/* Sets the next dimension (x, y or z) of the grid or of the block. */
static void set_dimension(rl_kineto_event *event, rl_event_field field, const char *text, size_t length) {
  uint32_t *sizes = field == RL_EVENT_GRID ? event->grid : event->block;
  int64_t size;
  if (event->dimension < 3 && rl_decimal_parse_scaled(text, length, 0, &size) && size >= 0 && size <= UINT32_MAX)
    sizes[event->dimension] = (uint32_t)size;
  event->dimension++;
}

int rl_kineto_event_set_number(rl_kineto_event *event, rl_event_field field, const char *text, size_t length, rl_error *err) {
  if (field == RL_EVENT_START) return set_time(text, length, "ts", &event->start_ns, &event->has_start, err);
  if (field == RL_EVENT_DURATION) return set_time(text, length, "dur", &event->duration_ns, &event->has_duration, err);
  if (field == RL_EVENT_PROCESS) event->thread_key.process = hash_text(text, length);
  if (field == RL_EVENT_THREAD) event->thread_key.thread = hash_text(text, length);
  if (field == RL_EVENT_GRID || field == RL_EVENT_BLOCK) set_dimension(event, field, text, length);
  else event->has_number[field] = rl_decimal_parse_scaled(text, length, 0, &event->numbers[field]);
  return 0;
}

/* Sets the dimensions of the grid or of the block from a text such as "128×1×1". */
static void set_dimensions(rl_kineto_event *event, rl_event_field field, const char *text, size_t length) {
  event->dimension = 0;
  for (size_t i = 0; i < length; i++) {
    size_t digits = 0;
    while (i + digits < length && text[i + digits] >= '0' && text[i + digits] <= '9') digits++;
    if (digits > 0) set_dimension(event, field, text + i, digits);
    i += digits;
  }
}

static void copy_text(char *to, size_t size, const char *text, size_t length) {
  size_t copied = length < size - 1 ? length : size - 1;
  memcpy(to, text, copied);
  to[copied] = '\0';
}

static int set_name(rl_kineto_event *event, const char *text, size_t length, rl_error *err) {
  if (length > RL_TRACE_MAX_NAME_LENGTH)
    return rl_fail(err, RL_INPUT, 0, "a name has %zu bytes, more than %d", length, RL_TRACE_MAX_NAME_LENGTH);
  memcpy(event->name, text, length);
  event->name_length = length;
  return 0;
}

int rl_kineto_event_set_text(rl_kineto_event *event, rl_event_field field, const char *text, size_t length, rl_error *err) {
  switch (field) {
    case RL_EVENT_NAME: return set_name(event, text, length, err);
    case RL_EVENT_CATEGORY: copy_text(event->category, sizeof event->category, text, length); return 0;
    case RL_EVENT_PHASE: event->phase = length == 1 ? text[0] : '\0'; return 0;
    case RL_EVENT_GRID:
    case RL_EVENT_BLOCK: set_dimensions(event, field, text, length); return 0;
    default: return rl_kineto_event_set_number(event, field, text, length, err); /* some programs write numbers as strings */
  }
}

/* --- categories -------------------------------------------------------------------------------------------------------- */

enum { NO_ROW = RL_ACTIVITY_KIND_COUNT };

/* The categories of Kineto (its current names and its names before 2022) and of rooflined's own export, and the kinds of their
 * rows. Events with the kind NO_ROW get no row and are counted as `skipped`. */
static const struct category {
  const char *name;
  int kind;
  rl_skipped_kind skipped;
} categories[] = {{"kernel", RL_ACTIVITY_KERNEL},
                  {"gpu_memcpy", RL_ACTIVITY_MEMCPY},
                  {"memcpy", RL_ACTIVITY_MEMCPY},
                  {"gpu_memset", RL_ACTIVITY_MEMSET},
                  {"memset", RL_ACTIVITY_MEMSET},
                  {"cuda_runtime", RL_ACTIVITY_RUNTIME},
                  {"runtime", RL_ACTIVITY_RUNTIME},
                  {"cuda_driver", RL_ACTIVITY_DRIVER},
                  {"driver", RL_ACTIVITY_DRIVER},
                  {"cpu_op", RL_ACTIVITY_NVTX_RANGE},
                  {"operator", RL_ACTIVITY_NVTX_RANGE},
                  {"user_annotation", RL_ACTIVITY_NVTX_RANGE},
                  {"range", RL_ACTIVITY_NVTX_RANGE},
                  {"overhead", RL_ACTIVITY_OVERHEAD},
                  {"memory", RL_ACTIVITY_MEMORY},
                  {"span", RL_ACTIVITY_CPU_SPAN},
                  {"phase", RL_ACTIVITY_PHASE},
                  {"python_function", NO_ROW, RL_SKIPPED_PYTHON_FUNCTION},
                  {"gpu_user_annotation", NO_ROW, RL_SKIPPED_GPU_USER_ANNOTATION},
                  {"cuda_sync", NO_ROW, RL_SKIPPED_SYNCHRONIZATION}};

static const struct category *find_category(const char *name) {
  static const struct category other = {"", NO_ROW, RL_SKIPPED_CATEGORY};
  for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
    if (strcasecmp(categories[i].name, name) == 0) return &categories[i];
  return &other;
}

/* --- copies ------------------------------------------------------------------------------------------------------------ */

/* Returns the rl_memory_kind for Kineto's name of a kind of memory. */
static uint8_t memory_kind(const char *text, size_t length) {
  static const char *const names[RL_MEMORY_KIND_COUNT] = {[RL_MEMORY_PAGEABLE] = "Pageable",
                                                          [RL_MEMORY_PINNED] = "Pinned",
                                                          [RL_MEMORY_DEVICE] = "Device",
                                                          [RL_MEMORY_ARRAY] = "Array",
                                                          [RL_MEMORY_MANAGED] = "Managed",
                                                          [RL_MEMORY_DEVICE_STATIC] = "Device Static",
                                                          [RL_MEMORY_MANAGED_STATIC] = "Managed Static"};
  for (uint8_t i = 1; i < RL_MEMORY_KIND_COUNT; i++)
    if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0) return i;
  return RL_MEMORY_UNKNOWN;
}

/* Parses a name such as "Memcpy HtoD (Pageable -> Device)" and sets the kinds of memory. Returns rooflined's name of the copy,
 * "memcpy HtoD"; NULL if the name has another form. */
static const char *read_copy_name(const rl_kineto_event *event, rl_activity_row *row) {
  static const char *const names[] = {"memcpy HtoD", "memcpy DtoH", "memcpy HtoA", "memcpy AtoH", "memcpy AtoA", "memcpy AtoD",
                                      "memcpy DtoA", "memcpy DtoD", "memcpy HtoH", "memcpy PtoP", "memset"};
  static const char arrow[] = " -> ";
  const char *begin = memchr(event->name, '(', event->name_length), *end = event->name + event->name_length;
  if (begin == NULL || begin == event->name || begin[-1] != ' ' || end[-1] != ')') return NULL;
  size_t length = (size_t)(begin - 1 - event->name);
  const char *kinds = begin + 1, *found = memmem(kinds, (size_t)(end - 1 - kinds), arrow, strlen(arrow));
  if (found != NULL) row->source_memory = memory_kind(kinds, (size_t)(found - kinds));
  const char *destination = found != NULL ? found + strlen(arrow) : kinds;
  row->destination_memory = memory_kind(destination, (size_t)(end - 1 - destination));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i]) == length && strncasecmp(names[i], event->name, length) == 0) return names[i];
  return NULL;
}

/* --- overheads --------------------------------------------------------------------------------------------------------- */

/* Returns rooflined's name of the overhead that the event reports; NULL if Kineto's name of the overhead is unknown. */
static const char *read_overhead_name(const rl_kineto_event *event) {
  static const struct {
    const char *name;
    rl_overhead overhead;
  } names[] = {{"Driver Compiler", RL_OVERHEAD_COMPILER},
               {"Runtime Triggered Module Loading", RL_OVERHEAD_MODULE_LOADING},
               {"Lazy Function Loading", RL_OVERHEAD_FUNCTION_LOADING},
               {"Buffer Flush", RL_OVERHEAD_BUFFER_FLUSH},
               {"Activity Buffer Request", RL_OVERHEAD_BUFFER_REQUEST},
               {"Instrumentation", RL_OVERHEAD_INSTRUMENTATION},
               {"Resource", RL_OVERHEAD_RESOURCES},
               {"UVM Activity Init", RL_OVERHEAD_UNIFIED_MEMORY},
               {"Command Buffer Full", RL_OVERHEAD_COMMAND_BUFFER_FULL}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i].name) == event->name_length && strncasecmp(names[i].name, event->name, event->name_length) == 0)
      return rl_overheads[names[i].overhead].name;
  return NULL;
}

/* Returns the name that rooflined gives to copies, memsets and overheads, and sets the members of *row whose values are in the
 * event's name. Returns NULL if the row keeps the event's name. */
static const char *find_rooflined_name(const rl_kineto_event *event, rl_activity_row *row) {
  if (row->kind == RL_ACTIVITY_OVERHEAD) return read_overhead_name(event);
  return row->kind == RL_ACTIVITY_MEMCPY || row->kind == RL_ACTIVITY_MEMSET ? read_copy_name(event, row) : NULL;
}

/* --- rows -------------------------------------------------------------------------------------------------------------- */

/* Returns whether the event has the field with a number from 0 to maximum. */
static bool has_number_up_to(const rl_kineto_event *event, rl_event_field field, int64_t maximum) {
  return event->has_number[field] && event->numbers[field] >= 0 && event->numbers[field] <= maximum;
}

/* Returns the number in the field if it is from 0 to maximum; else 0. */
static int64_t read_number_up_to(const rl_kineto_event *event, rl_event_field field, int64_t maximum) {
  return has_number_up_to(event, field, maximum) ? event->numbers[field] : 0;
}

static uint32_t read_number(const rl_kineto_event *event, rl_event_field field) {
  return (uint32_t)read_number_up_to(event, field, UINT32_MAX);
}

/* Returns the number in the field; if the event has none, adds `bit` to the row's unknown values and returns 0. */
static uint32_t read_resource(const rl_kineto_event *event, rl_event_field field, rl_unknown_value bit, rl_activity_row *row) {
  if (!has_number_up_to(event, field, UINT32_MAX)) row->unknown |= bit;
  return read_number(event, field);
}

static void set_kernel_resources(const rl_kineto_event *event, rl_activity_row *row) {
  const bool has_parts = event->has_number[RL_EVENT_STATIC_SHARED] || event->has_number[RL_EVENT_DYNAMIC_SHARED];
  const bool has_only_sum = !has_parts && has_number_up_to(event, RL_EVENT_SHARED_MEMORY, UINT32_MAX);
  const rl_event_field dynamic_or_sum = has_only_sum ? RL_EVENT_SHARED_MEMORY : RL_EVENT_DYNAMIC_SHARED;
  row->registers = read_resource(event, RL_EVENT_REGISTERS, RL_UNKNOWN_REGISTERS, row);
  row->static_shared_bytes = read_resource(event, RL_EVENT_STATIC_SHARED, RL_UNKNOWN_STATIC_SHARED, row);
  row->dynamic_shared_bytes = read_resource(event, dynamic_or_sum, RL_UNKNOWN_DYNAMIC_SHARED, row);
  if (has_only_sum) row->unknown |= RL_UNKNOWN_SHARED_PARTS;
}

/* Sets the members of a row of GPU work. In Kineto's events of GPU work, pid is the device and tid is the stream. */
static void set_device_work(const rl_kineto_event *event, rl_activity_row *row) {
  rl_event_field device = event->has_number[RL_EVENT_DEVICE] ? RL_EVENT_DEVICE : RL_EVENT_PROCESS;
  row->device = (uint16_t)(1 + read_number_up_to(event, device, UINT16_MAX - 1));
  row->stream = read_number(event, event->has_number[RL_EVENT_STREAM] ? RL_EVENT_STREAM : RL_EVENT_THREAD);
  row->context = read_number(event, RL_EVENT_CONTEXT);
  row->graph_node = rl_trace_graph_node(read_number_up_to(event, RL_EVENT_GRAPH_NODE, INT64_MAX));
  memcpy(row->grid, event->grid, sizeof row->grid);
  memcpy(row->block, event->block, sizeof row->block);
  if (row->kind == RL_ACTIVITY_KERNEL) set_kernel_resources(event, row);
  else if (row->kind != RL_ACTIVITY_PHASE && !has_number_up_to(event, RL_EVENT_BYTES, INT64_MAX))
    row->unknown |= RL_UNKNOWN_BYTES;
}

static bool is_host_activity(uint32_t kind) {
  return kind == RL_ACTIVITY_RUNTIME || kind == RL_ACTIVITY_DRIVER || kind == RL_ACTIVITY_NVTX_RANGE ||
         kind == RL_ACTIVITY_OVERHEAD || kind == RL_ACTIVITY_CPU_SPAN;
}

/* Sets the thread of a row. An overhead in Kineto's files has the process -1 and the thread 0, which both mean none. */
static int set_thread(const rl_kineto_event *event, rl_trace *trace, rl_activity_row *row, rl_error *err) {
  bool is_exported = has_number_up_to(event, RL_EVENT_HOST_THREAD, RL_MAX_THREAD_ID);
  rl_event_field field = is_exported ? RL_EVENT_HOST_THREAD : RL_EVENT_THREAD;
  uint32_t thread = (uint32_t)read_number_up_to(event, field, RL_MAX_THREAD_ID);
  bool has_other_id = thread == 0 && !is_exported && event->thread_key.thread != 0 && row->kind != RL_ACTIVITY_OVERHEAD;
  if (has_other_id && rl_trace_number_thread(trace, event->thread_key, &thread, err) < 0) return -1;
  row->thread = thread;
  return 0;
}

static int make_row(const rl_kineto_event *event, uint32_t kind, rl_trace *trace, rl_activity_row *row, rl_error *err) {
  uint32_t name;
  *row = (rl_activity_row){.kind = kind,
                           .start_ns = event->start_ns,
                           .correlation = read_number(event, RL_EVENT_CORRELATION),
                           .bytes = (uint64_t)read_number_up_to(event, RL_EVENT_BYTES, INT64_MAX)};
  const char *known = find_rooflined_name(event, row), *text = known != NULL ? known : event->name;
  if (rl_trace_add_name(trace, text, known != NULL ? strlen(known) : event->name_length, &name, err) < 0) return -1;
  row->name = name;
  if (kind == RL_ACTIVITY_PHASE) row->step = read_number(event, RL_EVENT_STEP) + 1;
  if (!is_host_activity(kind)) return set_device_work(event, row), 0;
  row->process = read_number(event, RL_EVENT_PROCESS);
  return set_thread(event, trace, row, err);
}

static int add_complete(const rl_kineto_event *event, uint32_t kind, rl_trace *trace, rl_error *err) {
  rl_activity_row row;
  if (!event->has_duration) return rl_fail(err, RL_INPUT, 0, "an event of phase X has no dur");
  if (make_row(event, kind, trace, &row, err) < 0) return -1;
  int64_t end_ns;
  if (__builtin_add_overflow(row.start_ns, event->duration_ns, &end_ns))
    return rl_fail(err, RL_INPUT, 0, "the sum of an event's ts and dur does not fit into 64 bits");
  row.end_ns = end_ns;
  return rl_trace_add_row(trace, &row, err);
}

/* --- B and E ----------------------------------------------------------------------------------------------------------- */

typedef struct open_event {
  rl_thread_key thread_key;
  bool has_row; /* false: its category is not imported */
  rl_skipped_kind skipped;
  rl_activity_row row;
} open_event;

struct rl_open_events {
  open_event *items;
  size_t count, capacity;
};

rl_open_events *rl_open_events_new(void) { return calloc(1, sizeof(rl_open_events)); }

void rl_open_events_free(rl_open_events *open, rl_trace *trace) {
  if (open == NULL) return;
  for (size_t i = 0; i < open->count; i++) rl_trace_count_skipped_event(trace, RL_SKIPPED_UNPAIRED);
  free(open->items);
  free(open);
}

static int push_open_event(const rl_kineto_event *event, const struct category *category, rl_open_events *open, rl_trace *trace,
                           rl_error *err) {
  open_event new_event = {.thread_key = event->thread_key, .has_row = category->kind != NO_ROW, .skipped = category->skipped};
  if (open->count == MAX_OPEN_EVENTS)
    return rl_fail(err, RL_INPUT, 0, "more than %d events of phase B have no event of phase E yet", MAX_OPEN_EVENTS);
  if (new_event.has_row && make_row(event, (uint32_t)category->kind, trace, &new_event.row, err) < 0) return -1;
  if (rl_array_reserve(&open->items, open->count, &open->capacity, sizeof new_event, err) < 0) return -1;
  open->items[open->count++] = new_event;
  return 0;
}

static bool same_thread(rl_thread_key a, rl_thread_key b) { return a.process == b.process && a.thread == b.thread; }

/* Ends the last open B event of the E event's thread, and adds its row to the trace. */
static int close_open_event(const rl_kineto_event *event, rl_open_events *open, rl_trace *trace, rl_error *err) {
  size_t i = open->count;
  while (i > 0 && !same_thread(open->items[i - 1].thread_key, event->thread_key)) i--;
  if (i == 0) return rl_trace_count_skipped_event(trace, RL_SKIPPED_UNPAIRED), 0;
  open_event ended = open->items[i - 1];
  memmove(&open->items[i - 1], &open->items[i], (open->count - i) * sizeof ended);
  open->count--;
  if (!ended.has_row) return rl_trace_count_skipped_event(trace, ended.skipped), 0;
  ended.row.end_ns = event->start_ns;
  return rl_trace_add_row(trace, &ended.row, err);
}

/* --- the end of an event ----------------------------------------------------------------------------------------------- */

int rl_kineto_event_end(const rl_kineto_event *event, rl_open_events *open, rl_trace *trace, rl_error *err) {
  if (event->phase != 'X' && event->phase != 'B' && event->phase != 'E') return 0; /* events of other phases have no duration */
  if (!event->has_start) return rl_fail(err, RL_INPUT, 0, "an event of phase %c has no ts", event->phase);
  if (event->phase == 'E') return close_open_event(event, open, trace, err);
  const struct category *category = find_category(event->category);
  if (event->phase == 'B') return push_open_event(event, category, open, trace, err);
  if (category->kind == NO_ROW) return rl_trace_count_skipped_event(trace, category->skipped), 0;
  return add_complete(event, (uint32_t)category->kind, trace, err);
}
