/* Collects the fields of one event of a trace in Chrome's format, and converts the event to an activity row. kineto.c calls this
 * for each member of the event's JSON object. */
#ifndef RL_IMPORT_KINETO_EVENT_H
#define RL_IMPORT_KINETO_EVENT_H

#include "import/trace.h"

/* The members of an event and of its "args" that are read; all other members are ignored. */
typedef enum rl_event_field {
  RL_EVENT_NAME,
  RL_EVENT_CATEGORY,
  RL_EVENT_PHASE,
  RL_EVENT_START,
  RL_EVENT_DURATION,
  RL_EVENT_PROCESS,
  RL_EVENT_THREAD,
  RL_EVENT_DEVICE,
  RL_EVENT_CONTEXT,
  RL_EVENT_HOST_THREAD, /* in rooflined's exports: the thread id if RL_EVENT_THREAD is another, 0 for the whole process */
  RL_EVENT_STREAM,
  RL_EVENT_CORRELATION,
  RL_EVENT_GRAPH_NODE,
  RL_EVENT_BYTES,
  RL_EVENT_GRID,
  RL_EVENT_BLOCK,
  RL_EVENT_REGISTERS,
  RL_EVENT_SHARED_MEMORY, /* sum of static and dynamic shared memory */
  RL_EVENT_STATIC_SHARED,
  RL_EVENT_DYNAMIC_SHARED,
  RL_EVENT_STEP,
  RL_EVENT_FIELD_COUNT,
  RL_EVENT_FIELD_NONE = RL_EVENT_FIELD_COUNT /* the key is ignored */
} rl_event_field;

typedef struct rl_kineto_event {
  char *name; /* RL_TRACE_MAX_NAME_LENGTH bytes */
  size_t name_length;
  char category[32], phase;
  bool has_start, has_duration;
  int64_t start_ns, duration_ns;
  int64_t numbers[RL_EVENT_FIELD_COUNT]; /* values of the fields that are whole numbers */
  bool has_number[RL_EVENT_FIELD_COUNT];
  rl_thread_key thread_key; /* of the event's process and thread, which may be numbers or texts; pairs B and E events */
  uint32_t grid[3], block[3];
  int dimension; /* number of elements of the current array (grid or block) that were read so far */
} rl_kineto_event;

/* Returns the field for a member's key; RL_EVENT_FIELD_NONE if the member is ignored. in_args: the member is in "args". */
rl_event_field rl_kineto_event_field(const char *key, size_t length, bool in_args);
/* Clears an event; keeps the buffer of its name. */
void rl_kineto_event_begin(rl_kineto_event *event);
/* Set a field of the event from a JSON string or number. Fail with RL_INPUT if a time is not a number or out of range, or if the
 * name is too long. Ignore other invalid values. */
int rl_kineto_event_set_text(rl_kineto_event *event, rl_event_field field, const char *text, size_t length, rl_error *err);
int rl_kineto_event_set_number(rl_kineto_event *event, rl_event_field field, const char *text, size_t length, rl_error *err);

typedef struct rl_open_events rl_open_events;                    /* the B events whose E event has not been read */
rl_open_events *rl_open_events_new(void);                        /* NULL: out of memory */
void rl_open_events_free(rl_open_events *open, rl_trace *trace); /* also counts the remaining B events as skipped */
/* Called at the end of an event's object. Adds the event's row to the trace, keeps the row until its E event (phase B), or counts
 * the event as skipped. Fails with RL_INPUT if the event lacks a time, or its times are invalid. */
int rl_kineto_event_end(const rl_kineto_event *event, rl_open_events *open, rl_trace *trace, rl_error *err);

#endif
