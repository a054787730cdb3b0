/* Implements kineto.h with the parser yajl, which calls a function for each token. The reader keeps a stack of the kinds of the
 * open objects and arrays. It ignores all tokens inside an object or array of the kind CONTAINER_SKIPPED. */
#include "import/kineto.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "import/decimal.h"
#include "import/kineto_event.h"

enum { MAX_DEPTH = 64, MAX_TOKEN_BYTES = 1 << 20, MAX_KEY = 64 };

typedef enum container_kind {
  CONTAINER_FILE,       /* no object or array is open: before the first token and after the last one */
  CONTAINER_ROOT,       /* the object that contains "traceEvents" */
  CONTAINER_EVENTS,     /* the array of events */
  CONTAINER_EVENT,      /* an event */
  CONTAINER_ARGS,       /* the object "args" of an event */
  CONTAINER_DIMENSIONS, /* an array in "args": grid or block */
  CONTAINER_GPUS,       /* the array "deviceProperties" */
  CONTAINER_GPU,        /* an element of "deviceProperties" */
  CONTAINER_SKIPPED     /* an object or array that is not read */
} container_kind;

typedef struct reader {
  container_kind containers[MAX_DEPTH]; /* the open objects and arrays */
  int depth;                            /* number of open objects and arrays */
  char key[MAX_KEY];                    /* the last key that was read, truncated */
  size_t key_length;
  rl_event_field field; /* field of the last key in an event or its args; RL_EVENT_FIELD_NONE: the key is ignored */
  rl_kineto_event event;
  rl_trace_gpu gpu;
  int64_t compute_major, compute_minor;
  int64_t event_count;
  size_t unfinished_bytes; /* number of bytes passed to yajl since the last token */
  bool is_kineto;
  char schema_version[24];
  rl_open_events *open_events;
  rl_trace *trace;
  rl_error *err;
} reader;

static container_kind innermost_container(const reader *self) {
  return self->depth > 0 ? self->containers[self->depth - 1] : CONTAINER_FILE;
}

static bool key_is(const reader *self, const char *name) {
  return strlen(name) == self->key_length && memcmp(self->key, name, self->key_length) == 0;
}

/* Prepends the number of the current event to the error message. Returns 0, which makes yajl stop. */
static int fail_event(const reader *self) {
  rl_wrap(self->err, "event %lld", (long long)self->event_count);
  return 0;
}

/* A callback of yajl returns 1 to continue; to stop yajl, it fills self->err and returns 0. begin_value, end_value and fail_event
 * return the result of the callback that calls them. */

/* --- structure --------------------------------------------------------------------------------------------------------- */

/* Returns the kind of the object or array that begins now. */
static container_kind kind_of_value(reader *self, bool is_object) {
  switch (innermost_container(self)) {
    case CONTAINER_FILE: return is_object ? CONTAINER_ROOT : CONTAINER_EVENTS;
    case CONTAINER_ROOT:
      if (!is_object && key_is(self, "traceEvents")) return CONTAINER_EVENTS;
      return !is_object && key_is(self, "deviceProperties") ? CONTAINER_GPUS : CONTAINER_SKIPPED;
    case CONTAINER_EVENTS: return is_object ? CONTAINER_EVENT : CONTAINER_SKIPPED;
    case CONTAINER_EVENT: return is_object && key_is(self, "args") ? CONTAINER_ARGS : CONTAINER_SKIPPED;
    case CONTAINER_ARGS:
      return !is_object && (self->field == RL_EVENT_GRID || self->field == RL_EVENT_BLOCK) ? CONTAINER_DIMENSIONS
                                                                                           : CONTAINER_SKIPPED;
    case CONTAINER_GPUS: return is_object ? CONTAINER_GPU : CONTAINER_SKIPPED;
    default: return CONTAINER_SKIPPED;
  }
}

static int begin_value(reader *self, bool is_object) {
  if (self->depth == MAX_DEPTH) {
    rl_fail(self->err, RL_INPUT, 0, "the JSON is nested deeper than %d", MAX_DEPTH);
    return 0;
  }
  container_kind next = kind_of_value(self, is_object);
  self->containers[self->depth++] = next;
  self->unfinished_bytes = 0;
  if (next == CONTAINER_EVENT) {
    rl_kineto_event_begin(&self->event);
    self->event_count++;
  }
  if (next == CONTAINER_DIMENSIONS) self->event.dimension = 0;
  if (next == CONTAINER_GPU) self->gpu = (rl_trace_gpu){0}, self->compute_major = self->compute_minor = 0;
  return 1;
}

static void add_gpu(reader *self) {
  if (self->compute_major > 0)
    snprintf(self->gpu.compute_capability, sizeof self->gpu.compute_capability, "%lld.%lld", (long long)self->compute_major,
             (long long)self->compute_minor);
  rl_trace_add_gpu(self->trace, &self->gpu);
}

static int end_value(reader *self) {
  container_kind ended = innermost_container(self);
  self->depth--;
  self->unfinished_bytes = 0;
  if (ended == CONTAINER_GPU) add_gpu(self);
  if (ended == CONTAINER_EVENT && rl_kineto_event_end(&self->event, self->open_events, self->trace, self->err) < 0)
    return fail_event(self);
  return 1;
}

static int begin_object(void *context) { return begin_value(context, true); }
static int begin_array(void *context) { return begin_value(context, false); }
static int end_object_or_array(void *context) { return end_value(context); }

static int read_key(void *context, const unsigned char *text, size_t length) {
  reader *self = context;
  self->key_length = length < MAX_KEY ? length : MAX_KEY;
  memcpy(self->key, text, self->key_length);
  self->unfinished_bytes = 0;
  container_kind container = innermost_container(self);
  if (container == CONTAINER_EVENT || container == CONTAINER_ARGS)
    self->field = rl_kineto_event_field((const char *)text, length, container == CONTAINER_ARGS);
  return 1;
}

/* --- values ------------------------------------------------------------------------------------------------------------ */

static void read_gpu_number(reader *self, const char *text, size_t length) {
  const struct {
    const char *key;
    int64_t *member;
  } members[] = {{"id", &self->gpu.number},
                 {"computeMajor", &self->compute_major},
                 {"computeMinor", &self->compute_minor},
                 {"totalGlobalMem", &self->gpu.memory_bytes},
                 {"numSms", &self->gpu.sm_count},
                 {"regsPerMultiprocessor", &self->gpu.registers_per_sm},
                 {"sharedMemPerMultiprocessor", &self->gpu.shared_memory_per_sm_bytes}};
  int64_t value;
  if (!rl_decimal_parse_scaled(text, length, 0, &value) || value < 0 || value > INT64_C(1) << 53) return;
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    if (key_is(self, members[i].key)) *members[i].member = value;
}

static void read_root_number(reader *self, const char *text, size_t length) {
  if (!key_is(self, "schemaVersion")) return;
  self->is_kineto = true;
  snprintf(self->schema_version, sizeof self->schema_version, "%.*s", (int)(length < 16 ? length : 16), text);
}

static int read_number(void *context, const char *text, size_t length) {
  reader *self = context;
  self->unfinished_bytes = 0;
  switch (innermost_container(self)) {
    case CONTAINER_ROOT: read_root_number(self, text, length); return 1;
    case CONTAINER_GPU: read_gpu_number(self, text, length); return 1;
    case CONTAINER_EVENT:
    case CONTAINER_ARGS:
    case CONTAINER_DIMENSIONS:
      if (self->field == RL_EVENT_FIELD_NONE) return 1;
      return rl_kineto_event_set_number(&self->event, self->field, text, length, self->err) < 0 ? fail_event(self) : 1;
    default: return 1;
  }
}

static int read_text(void *context, const unsigned char *bytes, size_t length) {
  reader *self = context;
  const char *text = (const char *)bytes;
  self->unfinished_bytes = 0;
  switch (innermost_container(self)) {
    case CONTAINER_GPU:
      if (key_is(self, "name")) snprintf(self->gpu.name, sizeof self->gpu.name, "%.*s", (int)(length < 255 ? length : 255), text);
      return 1;
    case CONTAINER_EVENT:
    case CONTAINER_ARGS:
      if (self->field == RL_EVENT_FIELD_NONE) return 1;
      return rl_kineto_event_set_text(&self->event, self->field, text, length, self->err) < 0 ? fail_event(self) : 1;
    default: return 1;
  }
}

static int read_null(void *context) {
  ((reader *)context)->unfinished_bytes = 0;
  return 1;
}
static int read_boolean(void *context, int value) {
  (void)value;
  return read_null(context);
}

/* --- the file ---------------------------------------------------------------------------------------------------------- */

static int fail_syntax(const reader *self, yajl_handle parser, uint64_t offset_bytes) {
  size_t consumed = yajl_get_bytes_consumed(parser);
  unsigned char *text = yajl_get_error(parser, 0, NULL, 0);
  rl_fail(self->err, RL_INPUT, 0, "malformed JSON near byte %llu, event %lld: %.80s",
          (unsigned long long)(offset_bytes + consumed), (long long)self->event_count,
          text != NULL ? (const char *)text : "unknown error");
  yajl_free_error(parser, text);
  size_t used = strlen(self->err->message);
  if (used > 0 && self->err->message[used - 1] == '\n') self->err->message[used - 1] = '\0';
  return -1;
}

/* Turns the result of a yajl function into an error. offset_bytes: position of the parsed bytes in the input. */
static int check_status(const reader *self, yajl_handle parser, yajl_status rc, uint64_t offset_bytes) {
  if (rc == yajl_status_ok) return 0;
  return rc == yajl_status_client_canceled ? -1 : fail_syntax(self, parser, offset_bytes);
}

static int parse_input(reader *self, yajl_handle parser, rl_input *input, const rl_import_observer *observer) {
  const unsigned char *data;
  size_t size;
  for (uint64_t offset_bytes = 0;; offset_bytes += size) {
    if (rl_input_next(input, &data, &size, self->err) < 0) return -1;
    if (size == 0) break;
    if (observer->cancelled(observer->context, rl_input_progress(input)))
      return rl_fail(self->err, RL_ERRNO, ECANCELED, "the import was cancelled");
    self->unfinished_bytes += size;
    if (check_status(self, parser, yajl_parse(parser, data, size), offset_bytes) < 0) return -1;
    if (self->unfinished_bytes > MAX_TOKEN_BYTES)
      return rl_fail(self->err, RL_INPUT, 0, "a text or white space in the JSON is longer than %d bytes", MAX_TOKEN_BYTES);
  }
  /* Chrome's format allows an array of events without its closing bracket. */
  bool lacks_closing_bracket = self->depth == 1 && innermost_container(self) == CONTAINER_EVENTS;
  return lacks_closing_bracket ? 0 : check_status(self, parser, yajl_complete_parse(parser), 0);
}

static int check_has_events(const reader *self) {
  return self->event_count > 0 ? 0 : rl_fail(self->err, RL_INPUT, 0, "the JSON has no trace events (traceEvents, or an array)");
}

static int read_all(reader *self, rl_input *input, const rl_import_observer *observer) {
  static const yajl_callbacks callbacks = {.yajl_null = read_null,
                                           .yajl_boolean = read_boolean,
                                           .yajl_number = read_number,
                                           .yajl_string = read_text,
                                           .yajl_start_map = begin_object,
                                           .yajl_map_key = read_key,
                                           .yajl_end_map = end_object_or_array,
                                           .yajl_start_array = begin_array,
                                           .yajl_end_array = end_object_or_array};
  yajl_handle parser = yajl_alloc(&callbacks, NULL, self);
  if (parser == NULL) return rl_fail(self->err, RL_ERRNO, ENOMEM, "out of memory for a trace");
  yajl_config(parser, yajl_dont_validate_strings, 1); /* rl_trace_add_name replaces invalid UTF-8 */
  int rc = parse_input(self, parser, input, observer);
  yajl_free(parser);
  return rc < 0 ? -1 : check_has_events(self);
}

int rl_kineto_read(rl_input *input, const rl_import_observer *observer, rl_trace *trace, rl_error *err) {
  static char name[RL_TRACE_MAX_NAME_LENGTH];
  reader self = {
      .event.name = name, .field = RL_EVENT_FIELD_NONE, .trace = trace, .err = err, .open_events = rl_open_events_new()};
  if (self.open_events == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a trace");
  int rc = read_all(&self, input, observer);
  rl_open_events_free(self.open_events, trace);
  if (self.is_kineto) rl_trace_set_producer(trace, "kineto", "PyTorch Kineto, schema", self.schema_version);
  else rl_trace_set_producer(trace, "chrome", "an unknown program", "");
  return rc;
}
