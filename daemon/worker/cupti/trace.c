/* There is one static trace, which is closed, open, or running (between start and stop). A buffer is free, or lent to CUPTI until
 * CUPTI's thread has returned it and its records are converted. pool_lock guards the buffers; records_lock guards the rows, which
 * CUPTI's thread appends. */
#include "worker/cupti/trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/cupti/check.h"
#include "worker/cupti/pc_sampling.h"
#include "worker/cupti/trace_internal.h"

enum { BUFFER_BYTES = 8 << 20 };

/* The GPU writes 32 bytes for each kernel, copy and memset to buffers in device memory. Buffers of 256 KiB make kernels of graphs
 * less slow than CUPTI's default of 3.2 MB (docs/measurements/h200-cupti.md); the limit keeps the total at CUPTI's default. */
static const struct {
  CUpti_ActivityAttribute attribute;
  size_t value;
} device_buffer_attributes[] = {{CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, 256 << 10},
                                {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, 3200}};

const CUpti_ActivityKind rl_trace_all_kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                                 CUPTI_ACTIVITY_KIND_MEMCPY,
                                                 CUPTI_ACTIVITY_KIND_MEMSET,
                                                 CUPTI_ACTIVITY_KIND_MEMORY2,
                                                 CUPTI_ACTIVITY_KIND_RUNTIME,
                                                 CUPTI_ACTIVITY_KIND_DRIVER,
                                                 CUPTI_ACTIVITY_KIND_MARKER,
                                                 CUPTI_ACTIVITY_KIND_OVERHEAD,
                                                 CUPTI_ACTIVITY_KIND_CUDA_EVENT,
                                                 CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                                 CUPTI_ACTIVITY_KIND_INVALID};
const CUpti_ActivityKind rl_trace_launch_kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME,
                                                    CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                    CUPTI_ACTIVITY_KIND_INVALID};

static rl_trace process_trace = {.pool_lock = PTHREAD_MUTEX_INITIALIZER, .records_lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t CUPTIAPI timestamp(void) { return (uint64_t)rl_monotonic_ns(); }

static void add_dropped_by_cupti(rl_trace *trace) {
  size_t dropped = 0; /* reading this number resets it */
  if (cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS) trace->dropped_count += dropped;
}

/* Called by CUPTI when it needs an empty buffer. */
static void CUPTIAPI request_buffer(uint8_t **buffer, size_t *size, size_t *max_records) {
  rl_trace *trace = &process_trace;
  pthread_mutex_lock(&trace->pool_lock);
  *buffer = NULL; /* without a buffer, CUPTI drops records and counts them */
  if (trace->free_buffer_count > 0) *buffer = trace->free_buffers[--trace->free_buffer_count];
  else if (trace->lent_buffer_count < RL_TRACE_MAX_BUFFERS) *buffer = calloc(1, BUFFER_BYTES);
  if (*buffer != NULL) trace->lent_buffer_count++;
  pthread_mutex_unlock(&trace->pool_lock);
  *size = *buffer == NULL ? 0 : BUFFER_BYTES;
  *max_records = 0; /* 0: CUPTI may store as many as fit */
}

/* Called by CUPTI when it returns a buffer that contains valid_bytes of records. */
static void CUPTIAPI complete_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid_bytes) {
  (void)context, (void)stream, (void)size;
  rl_trace *trace = &process_trace;
  CUpti_Activity *record = NULL;
  pthread_mutex_lock(&trace->records_lock);
  while (trace->running && valid_bytes > 0 && cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS)
    rl_trace_add_record(trace, record);
  add_dropped_by_cupti(trace);
  pthread_mutex_unlock(&trace->records_lock);
  memset(buffer, 0, valid_bytes);
  pthread_mutex_lock(&trace->pool_lock);
  trace->lent_buffer_count--;
  trace->free_buffers[trace->free_buffer_count++] = buffer;
  pthread_mutex_unlock(&trace->pool_lock);
}

/* Sets the environment variable that makes NVTX call libcupti. Each library that contains NVTX reads the variable once, at its
 * first NVTX call. */
static int inject_into_nvtx(rl_error *err) {
  Dl_info library;
  if (dladdr((void *)(uintptr_t)cuptiActivityEnable, &library) == 0 || library.dli_fname == NULL)
    return rl_fail(err, RL_CUPTI, 0, "cannot find the path of libcupti; NVTX ranges would be missing");
  if (setenv("NVTX_INJECTION64_PATH", library.dli_fname, 0) != 0) return rl_fail_errno(err, "can't set NVTX_INJECTION64_PATH");
  return 0;
}

static int set_device_buffer_attributes(rl_error *err) {
  for (size_t i = 0; i < sizeof device_buffer_attributes / sizeof *device_buffer_attributes; i++) {
    size_t value = device_buffer_attributes[i].value, size = sizeof value;
    if (rl_cupti_check(cuptiActivitySetAttribute(device_buffer_attributes[i].attribute, &size, &value),
                       "cuptiActivitySetAttribute", err) < 0)
      return -1;
  }
  return 0;
}

int rl_trace_open(rl_trace **trace, rl_error *err) {
  if (process_trace.open) return rl_fail(err, RL_CUPTI, 0, "this process already has a profiler");
  /* Tells CUPTI that the buffers are already zeroed: complete_buffer() zeroes them, on CUPTI's thread. Otherwise CUPTI would zero
   * them on the thread that launches kernels. */
  uint8_t zeroed = 1;
  size_t size = sizeof zeroed;
  if (inject_into_nvtx(err) < 0 ||
      rl_cupti_check(cuptiActivityRegisterTimestampCallback(timestamp), "cuptiActivityRegisterTimestampCallback", err) < 0 ||
      rl_cupti_check(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed),
                     "cuptiActivitySetAttribute", err) < 0 ||
      set_device_buffer_attributes(err) < 0 ||
      rl_cupti_check(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), "cuptiSetThreadIdType", err) < 0 ||
      rl_cupti_check(cuptiActivityRegisterCallbacks(request_buffer, complete_buffer), "cuptiActivityRegisterCallbacks", err) < 0)
    return -1;
  process_trace.open = true;
  *trace = &process_trace;
  return 0;
}

static void disable_kinds(const CUpti_ActivityKind *kinds) {
  for (; *kinds != CUPTI_ACTIVITY_KIND_INVALID; kinds++) cuptiActivityDisable(*kinds);
}

int rl_trace_start(rl_trace *trace, const CUpti_ActivityKind *kinds, rl_error *err) {
  if (trace->running) return rl_fail(err, RL_CUPTI, 0, "a trace is already running");
  pthread_mutex_lock(&trace->records_lock);
  rl_name_table_clear(&trace->names);
  trace->row_count = trace->correlation_count = trace->attributes_count = trace->synchronization_call_count = trace->range_count =
      0;
  add_dropped_by_cupti(trace);
  trace->kernel_count = trace->dropped_count = trace->zero_time_record_count = 0;
  trace->callback_error = (rl_error){0};
  trace->kinds = kinds;
  trace->records_launch_attributes = kinds == rl_trace_launch_kinds;
  trace->start_ns = rl_monotonic_ns();
  trace->running = true;
  pthread_mutex_unlock(&trace->records_lock);
  rl_pc_sampling_forbid();
  cuptiActivityEnableLaunchAttributes(trace->records_launch_attributes); /* otherwise members of rl_launch_attributes may be 0 */
  for (const CUpti_ActivityKind *kind = kinds; *kind != CUPTI_ACTIVITY_KIND_INVALID; kind++)
    if (rl_cupti_check(cuptiActivityEnable(*kind), "cuptiActivityEnable", err) < 0) {
      disable_kinds(kinds);
      rl_pc_sampling_allow();
      pthread_mutex_lock(&trace->records_lock);
      trace->running = false;
      pthread_mutex_unlock(&trace->records_lock);
      return -1;
    }
  return 0;
}

static int compare_start(const void *a, const void *b) {
  const rl_activity_row *x = a, *y = b;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static int compare_synchronization_calls(const void *a, const void *b) {
  const rl_synchronization_call *x = a, *y = b;
  return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

/* Sets the stream and the event in the row of each API call that records an event or waits for an event, a stream or a device. */
static void join_synchronization_calls(rl_trace *trace) {
  qsort(trace->synchronization_calls, trace->synchronization_call_count, sizeof *trace->synchronization_calls,
        compare_synchronization_calls);
  for (size_t i = 0; i < trace->row_count && trace->synchronization_call_count > 0; i++) {
    rl_activity_row *row = &trace->rows[i];
    const rl_synchronization_call key = {.correlation = row->correlation};
    if (row->kind != RL_ACTIVITY_RUNTIME && row->kind != RL_ACTIVITY_DRIVER) continue;
    const rl_synchronization_call *call =
        bsearch(&key, trace->synchronization_calls, trace->synchronization_call_count, sizeof key, compare_synchronization_calls);
    if (call != NULL) row->call_stream = call->stream, row->event = call->event;
  }
}

int rl_trace_stop(rl_trace *trace, rl_trace_result *result, rl_error *err) {
  if (!trace->running) return rl_fail(err, RL_CUPTI, 0, "no trace is running");
  CUptiResult flushed = cuptiActivityFlushAll(0);
  disable_kinds(trace->kinds);
  CUptiResult forced = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  rl_pc_sampling_allow();
  pthread_mutex_lock(&trace->records_lock);
  trace->running = false;
  add_dropped_by_cupti(trace);
  rl_error callback_error = trace->callback_error;
  pthread_mutex_unlock(&trace->records_lock);
  if (rl_cupti_check(flushed, "cuptiActivityFlushAll", err) < 0 || rl_cupti_check(forced, "cuptiActivityFlushAll", err) < 0)
    return -1;
  if (callback_error.domain != RL_OK) {
    if (err != NULL) *err = callback_error;
    return -1;
  }
  join_synchronization_calls(trace);
  qsort(trace->rows, trace->row_count, sizeof *trace->rows, compare_start);
  *result = (rl_trace_result){.rows = trace->rows,
                              .row_count = trace->row_count,
                              .names = &trace->names,
                              .correlations = trace->correlations,
                              .correlation_count = trace->correlation_count,
                              .launch_attributes = trace->launch_attributes,
                              .attributes_count = trace->attributes_count,
                              .kernel_count = trace->kernel_count,
                              .record_count = trace->row_count,
                              .dropped_count = trace->dropped_count,
                              .zero_time_record_count = trace->zero_time_record_count};
  return 0;
}

/* Frees the memory but keeps the locks, because CUPTI keeps the callbacks. */
void rl_trace_close(rl_trace *trace) {
  if (trace == NULL) return;
  rl_trace_result ignored;
  if (trace->running) rl_trace_stop(trace, &ignored, NULL);
  pthread_mutex_lock(&trace->records_lock);
  rl_name_table_clear(&trace->names);
  free(trace->rows);
  free(trace->correlations);
  free(trace->launch_attributes);
  free(trace->synchronization_calls);
  trace->rows = NULL;
  trace->correlations = NULL;
  trace->launch_attributes = NULL;
  trace->synchronization_calls = NULL;
  trace->row_count = trace->row_capacity = trace->correlation_count = trace->correlation_capacity = trace->attributes_count =
      trace->attributes_capacity = trace->synchronization_call_count = trace->synchronization_call_capacity = 0;
  trace->open = false;
  pthread_mutex_unlock(&trace->records_lock);
  pthread_mutex_lock(&trace->pool_lock);
  while (trace->free_buffer_count > 0) free(trace->free_buffers[--trace->free_buffer_count]);
  pthread_mutex_unlock(&trace->pool_lock);
}

int rl_trace_push_launch(uint32_t launch_index, rl_error *err) {
  return rl_cupti_check(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, launch_index),
                        "cuptiActivityPushExternalCorrelationId", err);
}

int rl_trace_pop_launch(rl_error *err) {
  return rl_cupti_check(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, NULL),
                        "cuptiActivityPopExternalCorrelationId", err);
}
