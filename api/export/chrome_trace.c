/* A trace writer (trace_writer.h) for Chrome trace events with the members of Kineto, the library of PyTorch's profiler, so that
 * HolisticTraceAnalysis, TensorBoard and Perfetto can read the events (https://github.com/pytorch/kineto,
 * libkineto/src/output_json.cpp). Events on a device have the device number as pid and the stream as tid. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/export/trace_tracks.h"
#include "api/export/trace_writer.h"

enum {
  UNKNOWN_PROCESS = 1000000000,          /* larger than any process or thread id of Linux */
  FIRST_LATER_TRACK_THREAD = 1500000000, /* thread id of the first track (trace_writer.h) that is not the first of its group */
  RECENT_CALLS = 1 << 18                 /* number of calls that are remembered, to link work to its call */
};

/* An API call that may launch work on a device. Flow events of the category "ac2g", which viewers draw as an arrow, link the call
 * to the work. */
typedef struct call {
  uint32_t correlation; /* 0: none */
  bool is_linked;       /* the event that starts the arrow from the call to its work was written */
  int64_t start_ns;
  int32_t process, thread;
} call;

typedef struct chrome_state {
  rl_tracks tracks;
  call *calls;              /* RECENT_CALLS entries, indexed by the low bits of the correlation id */
  const char *program_name; /* name of the traced program */
  const char *device_name;
} chrome_state;

/* The pid and the tid of an event; a viewer draws a line for each pair. */
typedef struct viewer_position {
  int32_t process, thread;
} viewer_position;

static const char *const categories[RL_ACTIVITY_KIND_COUNT] = {[RL_ACTIVITY_KERNEL] = "kernel",
                                                               [RL_ACTIVITY_MEMCPY] = "gpu_memcpy",
                                                               [RL_ACTIVITY_MEMSET] = "gpu_memset",
                                                               [RL_ACTIVITY_MEMORY] = "cpu_instant_event",
                                                               [RL_ACTIVITY_RUNTIME] = "cuda_runtime",
                                                               [RL_ACTIVITY_DRIVER] = "cuda_driver",
                                                               [RL_ACTIVITY_NVTX_RANGE] = "user_annotation",
                                                               [RL_ACTIVITY_OVERHEAD] = "overhead",
                                                               [RL_ACTIVITY_CPU_SPAN] = "cpu_op",
                                                               [RL_ACTIVITY_PHASE] = "gpu_user_annotation"};

/* --- parts of events --------------------------------------------------------------------------------------------------- */

/* Appends a time in µs with three decimals, so that no digit is lost. */
static void put_us(rl_buffer *out, int64_t ns) {
  const int64_t rest = ns % 1000 < 0 ? -(ns % 1000) : ns % 1000;
  const char decimals[] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10), (char)('0' + rest % 10)};
  if (ns < 0 && ns > -1000) rl_buffer_byte(out, '-');
  rl_buffer_integer(out, ns / 1000);
  rl_buffer_append(out, decimals, sizeof decimals);
}

static void put_member(rl_buffer *out, const char *name_and_colon, int64_t value) {
  rl_buffer_text(out, name_and_colon);
  rl_buffer_integer(out, value);
}

static void put_position(rl_buffer *out, viewer_position position) {
  put_member(out, ",\"pid\":", position.process);
  put_member(out, ",\"tid\":", position.thread);
}

static void put_dim3(rl_buffer *out, const char *name_and_colon, uint32_t x, uint32_t y, uint32_t z) {
  put_member(out, name_and_colon, x);
  put_member(out, ",", y);
  put_member(out, ",", z);
  rl_buffer_byte(out, ']');
}

/* Kineto's names of the kinds of memory. The names of copies contain them: "Memcpy HtoD (Pageable -> Device)",
 * "Memset (Device)". */
static const char *const kineto_memory_names[RL_MEMORY_KIND_COUNT] = {"Unknown", "Pageable", "Pinned",        "Device",
                                                                      "Array",   "Managed",  "Device Static", "Managed Static"};

static void put_name(rl_buffer *out, const rl_trace_row *row) {
  const rl_activity_row *values = &row->values;
  const bool is_copy = values->kind == RL_ACTIVITY_MEMCPY;
  char name[160];
  if (!is_copy && values->kind != RL_ACTIVITY_MEMSET) {
    rl_buffer_json_text(out, row->name);
    return;
  }
  const char *direction = is_copy && strncmp(row->name, "memcpy ", 7) == 0 ? row->name + 6 : "";
  if (is_copy)
    snprintf(name, sizeof name, "Memcpy%s (%s -> %s)", direction, kineto_memory_names[values->source_memory],
             kineto_memory_names[values->destination_memory]);
  else snprintf(name, sizeof name, "Memset (%s)", kineto_memory_names[values->destination_memory]);
  rl_buffer_json_text(out, name);
}

/* Appends the start of the next event: its phase, its category and the key "name". The caller appends the name. */
static void start_event(rl_buffer *out, const char *phase, const char *category) {
  rl_buffer_text(out, ",\n{\"ph\":\"");
  rl_buffer_text(out, phase);
  rl_buffer_text(out, "\",\"cat\":\"");
  rl_buffer_text(out, category);
  rl_buffer_text(out, "\",\"name\":");
}

/* --- arguments --------------------------------------------------------------------------------------------------------- */

static void put_device_args(rl_buffer *out, const rl_activity_row *row) {
  if (row->device != 0) put_member(out, "\"device\":", row->device - 1), rl_buffer_byte(out, ',');
  if (row->context != 0) put_member(out, "\"context\":", row->context), rl_buffer_byte(out, ',');
  put_member(out, "\"stream\":", row->stream);
}

static void put_kernel_args(rl_buffer *out, const rl_activity_row *row) {
  if (!(row->unknown & RL_UNKNOWN_REGISTERS)) put_member(out, ",\"registers per thread\":", row->registers);
  if (!(row->unknown & (RL_UNKNOWN_STATIC_SHARED | RL_UNKNOWN_DYNAMIC_SHARED)) || row->unknown & RL_UNKNOWN_SHARED_PARTS)
    put_member(out, ",\"shared memory\":", (int64_t)row->static_shared_bytes + row->dynamic_shared_bytes);
  put_dim3(out, ",\"grid\":[", row->grid[0], row->grid[1], row->grid[2]);
  put_dim3(out, ",\"block\":[", row->block[0], row->block[1], row->block[2]);
}

static void put_copy_args(rl_buffer *out, const rl_activity_row *row) {
  char bandwidth[48] = "";
  if (row->unknown & RL_UNKNOWN_BYTES) return;
  put_member(out, ",\"bytes\":", (int64_t)row->bytes);
  if (row->end_ns <= row->start_ns) return;
  snprintf(bandwidth, sizeof bandwidth, ",\"memory bandwidth (GB/s)\":%.6g",
           (double)row->bytes / (double)(row->end_ns - row->start_ns));
  rl_buffer_text(out, bandwidth);
}

/* Appends the id by which readers link a call and its work, as "correlation" and as "External id". In Kineto's files the external
 * id is the id of a CPU operator; these traces have no CPU operators, so both members are equal. */
static void put_correlation(rl_buffer *out, const rl_activity_row *row, const char *separator) {
  if (row->correlation == 0) return;
  rl_buffer_text(out, separator);
  put_member(out, "\"External id\":", row->correlation);
  put_member(out, ",\"correlation\":", row->correlation);
}

/* The thread of a row is in its arguments if `tid` is another: on a track of overlapping rows, and if the row belongs to the
 * whole process (0). Readers require `tid`, and Perfetto shows events without it in the main thread. */
static void put_host_args(rl_buffer *out, const rl_activity_row *row, viewer_position position) {
  bool needs_thread = row->thread == 0 || row->thread != (uint32_t)position.thread;
  if (needs_thread) put_member(out, "\"host thread\":", row->thread);
  put_correlation(out, row, needs_thread ? "," : "");
}

static void put_args(rl_buffer *out, const rl_activity_row *row, viewer_position position) {
  rl_buffer_text(out, ",\"args\":{");
  switch (row->kind) {
    case RL_ACTIVITY_KERNEL:
    case RL_ACTIVITY_MEMCPY:
    case RL_ACTIVITY_MEMSET:
      put_device_args(out, row);
      put_correlation(out, row, ",");
      if (row->kind == RL_ACTIVITY_KERNEL) put_kernel_args(out, row);
      else put_copy_args(out, row);
      if (row->graph_node != 0) put_member(out, ",\"graph node id\":", row->graph_node);
      break;
    case RL_ACTIVITY_MEMORY:
      if (!(row->unknown & RL_UNKNOWN_BYTES)) put_member(out, "\"Bytes\":", (int64_t)row->bytes);
      break;
    case RL_ACTIVITY_PHASE: put_member(out, "\"step\":", (int64_t)row->step - 1); break;
    default: put_host_args(out, row, position);
  }
  rl_buffer_text(out, "}}");
}

/* --- processes and threads --------------------------------------------------------------------------------------------- */

static viewer_position position_of(const rl_track *track) {
  const rl_track_group *group = &track->group;
  const int32_t process = (int32_t)(group->owner & INT32_MAX), id = (int32_t)(group->id & INT32_MAX);
  const int32_t thread = track->rank == 0 ? id : (int32_t)(FIRST_LATER_TRACK_THREAD + track->number);
  if (group->kind == RL_GROUP_STREAM) return (viewer_position){process > 0 ? process - 1 : 0, thread};
  if (group->kind == RL_GROUP_OVERHEAD) return (viewer_position){-1, track->rank == 0 && track->number == 1 ? 0 : thread};
  return (viewer_position){process > 0 ? process : UNKNOWN_PROCESS, thread};
}

static void put_metadata(rl_buffer *out, const char *name, viewer_position position, const char *argument, const char *value) {
  start_event(out, "M", "__metadata");
  rl_buffer_json_text(out, name);
  rl_buffer_text(out, ",\"ts\":0.000");
  put_position(out, position);
  rl_buffer_text(out, ",\"args\":{");
  rl_buffer_json_text(out, argument);
  rl_buffer_byte(out, ':');
  rl_buffer_json_text(out, value);
  rl_buffer_text(out, "}}");
}

static void name_process(const chrome_state *state, const rl_track_group *group, int32_t process, rl_buffer *out) {
  char label[32] = "CPU";
  const char *name = group->kind == RL_GROUP_OVERHEAD ? "overhead of the profiler" : state->program_name;
  if (group->kind == RL_GROUP_STREAM) {
    name = state->device_name;
    snprintf(label, sizeof label, "GPU %d", process);
  }
  put_metadata(out, "process_name", (viewer_position){process, 0}, "name", name);
  put_metadata(out, "process_labels", (viewer_position){process, 0}, "labels", label);
}

static void name_thread(const rl_track *track, viewer_position position, rl_buffer *out) {
  char name[RL_TRACK_NAME_SIZE];
  rl_track_name(track, name);
  put_metadata(out, "thread_name", position, "name", name);
}

/* --- flows ------------------------------------------------------------------------------------------------------------- */

static void put_flow(rl_buffer *out, const char *phase, uint32_t correlation, viewer_position position, int64_t time_ns) {
  start_event(out, phase, "ac2g");
  rl_buffer_text(out, "\"ac2g\"");
  put_member(out, ",\"id\":", correlation);
  put_position(out, position);
  rl_buffer_text(out, ",\"ts\":");
  put_us(out, time_ns);
  rl_buffer_text(out, phase[0] == 'f' ? ",\"bp\":\"e\"}" : "}");
}

static void remember_call(chrome_state *state, const rl_activity_row *row, viewer_position position) {
  state->calls[row->correlation % RECENT_CALLS] =
      (call){.correlation = row->correlation, .start_ns = row->start_ns, .process = position.process, .thread = position.thread};
}

/* Appends the flow from a call to its work if the call was recorded, so that every flow has both a start and an end. */
static void link_to_call(chrome_state *state, const rl_activity_row *row, viewer_position position, rl_buffer *out) {
  call *launch = &state->calls[row->correlation % RECENT_CALLS];
  if (launch->correlation != row->correlation) return;
  if (!launch->is_linked)
    put_flow(out, "s", row->correlation, (viewer_position){launch->process, launch->thread}, launch->start_ns);
  launch->is_linked = true;
  put_flow(out, "f", row->correlation, position, row->start_ns);
}

static void put_flows(chrome_state *state, const rl_activity_row *row, viewer_position position, rl_buffer *out) {
  if (row->correlation == 0) return;
  switch (row->kind) {
    case RL_ACTIVITY_RUNTIME:
    case RL_ACTIVITY_DRIVER: remember_call(state, row, position); break;
    case RL_ACTIVITY_KERNEL:
    case RL_ACTIVITY_MEMCPY:
    case RL_ACTIVITY_MEMSET: link_to_call(state, row, position, out); break;
    default: break;
  }
}

/* --- the writer -------------------------------------------------------------------------------------------------------- */

static const cJSON *member(const cJSON *object, const char *name) { return cJSON_GetObjectItemCaseSensitive(object, name); }

/* Returns the known properties of the device, with the member names that Kineto uses. */
static cJSON *device_properties(const cJSON *conditions) {
  static const struct {
    const char *ours, *kineto;
  } names[] = {{"memory_bytes", "totalGlobalMem"},
               {"sm_count", "numSms"},
               {"registers_per_sm", "regsPerMultiprocessor"},
               {"shared_memory_per_sm_bytes", "sharedMemPerMultiprocessor"}};
  const cJSON *properties = member(conditions, "device_properties");
  const char *device = cJSON_GetStringValue(member(conditions, "device"));
  const char *capability = cJSON_GetStringValue(member(properties, "compute_capability"));
  int id = 0, major = 0, minor = 0;
  if (device == NULL || sscanf(device, "gpu%d", &id) != 1) return NULL;
  cJSON *object = cJSON_CreateObject();
  cJSON_AddNumberToObject(object, "id", id);
  cJSON_AddItemToObject(object, "name", cJSON_Duplicate(member(properties, "name"), false));
  if (capability != NULL && sscanf(capability, "%d.%d", &major, &minor) == 2) {
    cJSON_AddNumberToObject(object, "computeMajor", major);
    cJSON_AddNumberToObject(object, "computeMinor", minor);
    cJSON_AddNumberToObject(object, "warpSize", 32);
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (cJSON_IsNumber(member(properties, names[i].ours)))
      cJSON_AddItemToObject(object, names[i].kineto, cJSON_Duplicate(member(properties, names[i].ours), false));
  return object;
}

/* Returns the members of the file that precede its events, as JSON text. */
static char *print_head(const cJSON *conditions) {
  cJSON *head = cJSON_CreateObject(), *device = device_properties(conditions);
  cJSON_AddNumberToObject(head, "schemaVersion", 1);
  cJSON *devices = cJSON_AddArrayToObject(head, "deviceProperties"),
        *distributed = cJSON_AddObjectToObject(head, "distributedInfo");
  if (device != NULL) cJSON_AddItemToArray(devices, device);
  cJSON_AddStringToObject(distributed, "backend", "none");
  cJSON_AddNumberToObject(distributed, "rank", 0);
  cJSON_AddNumberToObject(distributed, "world_size", 1);
  cJSON_AddStringToObject(head, "displayTimeUnit", "ns");
  cJSON_AddItemToObject(head, "rooflined", cJSON_Duplicate(conditions, true));
  char *text = cJSON_PrintUnformatted(head);
  cJSON_Delete(head);
  return text;
}

static int begin(void *context, const cJSON *conditions, rl_buffer *out, rl_error *err) {
  chrome_state *state = context;
  RL_CLEANUP(rl_free_text) char *head = print_head(conditions);
  const char *device = cJSON_GetStringValue(member(member(conditions, "device_properties"), "name"));
  const char *workload = cJSON_GetStringValue(member(conditions, "workload"));
  state->program_name = workload != NULL ? workload : "host";
  state->device_name = device != NULL ? device : "device";
  state->calls = calloc(RECENT_CALLS, sizeof *state->calls);
  if (head == NULL || state->calls == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for an export");
  rl_buffer_append(out, head, strlen(head) - 1); /* append the object without its closing brace */
  rl_buffer_text(out,
                 ",\"traceEvents\":[\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"trace_start\",\"ts\":0.000,\"pid\":-1,"
                 "\"tid\":0,\"args\":{}}");
  return 0;
}

static int write_row(void *context, const rl_trace_row *row, rl_buffer *out, rl_error *err) {
  chrome_state *state = context;
  const rl_activity_row *values = &row->values;
  const bool is_instant = values->kind == RL_ACTIVITY_MEMORY;
  const rl_track *track;
  if (rl_tracks_assign(&state->tracks, values, &track, err) < 0) return -1;
  const viewer_position position = position_of(track);
  if (track->is_new) {
    name_process(state, &track->group, position.process, out);
    name_thread(track, position, out);
  }
  start_event(out, is_instant ? "i" : "X", categories[values->kind]);
  put_name(out, row);
  put_position(out, position);
  rl_buffer_text(out, ",\"ts\":");
  put_us(out, values->start_ns);
  rl_buffer_text(out, is_instant ? ",\"s\":\"p\"" : ",\"dur\":");
  if (!is_instant) put_us(out, values->end_ns - values->start_ns);
  put_args(out, values, position);
  put_flows(state, values, position, out);
  return 0;
}

static void end(void *context, rl_buffer *out) {
  (void)context;
  rl_buffer_text(out, "\n]}\n");
}

static void clear(void *context) {
  chrome_state *state = context;
  rl_tracks_clear(&state->tracks);
  free(state->calls);
}

const rl_trace_writer rl_chrome_writer = {
    .state_size = sizeof(chrome_state), .is_gzip = true, .begin = begin, .write = write_row, .end = end, .clear = clear};
