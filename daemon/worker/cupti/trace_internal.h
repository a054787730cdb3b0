/* State of the trace, shared by trace.c (buffers, start and stop) and trace_records.c (conversion of records). */
#ifndef RL_CUPTI_TRACE_INTERNAL_H
#define RL_CUPTI_TRACE_INTERNAL_H

#include <pthread.h>

#include "worker/cupti/trace.h"

enum {
  RL_TRACE_MAX_BUFFERS = 8, /* CUPTI fills one or two while its thread converts the others */
  RL_TRACE_MAX_OPEN_RANGES = 256
};

typedef struct rl_open_range {              /* an NVTX range whose end has not been recorded */
  uint32_t id, name_index, process, thread; /* name_index: into rl_trace.names; thread 0: a range of the process */
  int64_t start_ns;
} rl_open_range;

typedef struct rl_synchronization_call { /* an API call that records an event or waits for an event, a stream or a device */
  uint32_t correlation, stream, event;   /* ids; stream and event are 0 if the call has none */
} rl_synchronization_call;

struct rl_trace {
  /* pool_lock guards the buffers; records_lock guards the records, and CUPTI is called while it is held. CUPTI requests buffers
   * while it holds internal locks, so a thread that holds pool_lock must not call CUPTI: the two threads could deadlock. */
  pthread_mutex_t pool_lock, records_lock;
  uint8_t *free_buffers[RL_TRACE_MAX_BUFFERS]; /* buffers that contain only zeros */
  size_t free_buffer_count, lent_buffer_count; /* lent_buffer_count: number of buffers that CUPTI holds */
  bool open, running;
  const CUpti_ActivityKind *kinds; /* activity kinds that are enabled */
  bool records_launch_attributes;  /* the kinds are rl_trace_launch_kinds */
  int64_t start_ns;
  rl_error callback_error; /* first error in a callback, on CUPTI's thread */
  rl_name_table names;
  rl_activity_row *rows;
  size_t row_count, row_capacity;
  rl_external_correlation *correlations;
  size_t correlation_count, correlation_capacity;
  rl_launch_attributes *launch_attributes;
  size_t attributes_count, attributes_capacity;
  rl_synchronization_call *synchronization_calls;
  size_t synchronization_call_count, synchronization_call_capacity;
  rl_open_range ranges[RL_TRACE_MAX_OPEN_RANGES];
  size_t range_count;
  uint64_t kernel_count, dropped_count, zero_time_record_count;
};

/* Appends a record to the trace's rows, correlations or launch attributes. A record that does not fit is counted as dropped. Call
 * with trace->records_lock held. */
void rl_trace_add_record(rl_trace *trace, const CUpti_Activity *record);

#endif
