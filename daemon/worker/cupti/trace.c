#include "worker/cupti/trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/cupti/result.h"
#include "worker/cupti/source.h"
#include "worker/cupti/trace_parts.h"

enum { BUFFER_BYTES = 8 << 20 };

const CUpti_ActivityKind rl_trace_everything[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                                  CUPTI_ACTIVITY_KIND_MEMCPY,
                                                  CUPTI_ACTIVITY_KIND_MEMSET,
                                                  CUPTI_ACTIVITY_KIND_MEMORY2,
                                                  CUPTI_ACTIVITY_KIND_RUNTIME,
                                                  CUPTI_ACTIVITY_KIND_DRIVER,
                                                  CUPTI_ACTIVITY_KIND_MARKER,
                                                  CUPTI_ACTIVITY_KIND_OVERHEAD,
                                                  CUPTI_ACTIVITY_KIND_INVALID};
const CUpti_ActivityKind rl_trace_launches[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME,
                                                CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                CUPTI_ACTIVITY_KIND_INVALID};

static rl_trace the_trace = {.pool = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t CUPTIAPI timestamp(void) { return (uint64_t)rl_monotonic_ns(); }

static void count_dropped(rl_trace *trace) {
  size_t dropped = 0; /* reading it sets CUPTI's count back */
  if (cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS) trace->dropped += dropped;
}

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *most_records) {
  rl_trace *trace = &the_trace;
  pthread_mutex_lock(&trace->pool);
  *buffer = NULL; /* CUPTI then drops records and counts them */
  if (trace->spare_count > 0) *buffer = trace->spare[--trace->spare_count];
  else if (trace->lent < RL_TRACE_BUFFERS) *buffer = calloc(1, BUFFER_BYTES);
  if (*buffer != NULL) trace->lent++;
  pthread_mutex_unlock(&trace->pool);
  *size = *buffer == NULL ? 0 : BUFFER_BYTES;
  *most_records = 0;
}

static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  (void)context, (void)stream, (void)size;
  rl_trace *trace = &the_trace;
  CUpti_Activity *record = NULL;
  pthread_mutex_lock(&trace->lock);
  while (trace->running && valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    rl_trace_take(trace, record);
  count_dropped(trace);
  pthread_mutex_unlock(&trace->lock);
  memset(buffer, 0, valid);
  pthread_mutex_lock(&trace->pool);
  trace->lent--;
  trace->spare[trace->spare_count++] = buffer;
  pthread_mutex_unlock(&trace->pool);
}

/* NVTX looks for a library to call by this variable, once, at the first NVTX call of each library that has some. */
static int listen_to_nvtx(rl_error *err) {
  Dl_info library;
  if (dladdr((void *)(uintptr_t)cuptiActivityEnable, &library) == 0 || library.dli_fname == NULL)
    return rl_fail(err, RL_CUPTI, 0, "cannot tell where libcupti was loaded from, so that NVTX ranges would be missing");
  if (setenv("NVTX_INJECTION64_PATH", library.dli_fname, 0) != 0) return rl_fail_errno(err, "NVTX_INJECTION64_PATH");
  return 0;
}

int rl_trace_open(rl_trace **trace, rl_error *err) {
  if (the_trace.open) return rl_fail(err, RL_CUPTI, 0, "this process already has a profiler");
  /* We zero buffers on CUPTI's thread; otherwise it does so in the middle of the program's launches. */
  uint8_t zeroed = 1;
  size_t size = sizeof zeroed;
  if (listen_to_nvtx(err) != 0 ||
      rl_cupti_check(cuptiActivityRegisterTimestampCallback(timestamp), "cuptiActivityRegisterTimestampCallback", err) != 0 ||
      rl_cupti_check(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed),
                     "cuptiActivitySetAttribute", err) != 0 ||
      rl_cupti_check(cuptiActivityRegisterCallbacks(request, complete), "cuptiActivityRegisterCallbacks", err) != 0)
    return -1;
  the_trace.open = true;
  *trace = &the_trace;
  return 0;
}

static void disable(const CUpti_ActivityKind *kinds) {
  for (; *kinds != CUPTI_ACTIVITY_KIND_INVALID; kinds++) cuptiActivityDisable(*kinds);
}

int rl_trace_start(rl_trace *trace, const CUpti_ActivityKind *kinds, rl_error *err) {
  if (trace->running) return rl_fail(err, RL_CUPTI, 0, "a trace is already running");
  pthread_mutex_lock(&trace->lock);
  rl_names_clear(&trace->names);
  trace->row_count = trace->mark_count = trace->detail_count = trace->range_count = 0;
  count_dropped(trace);
  trace->kernels = trace->dropped = trace->zero_times = 0;
  trace->failed = (rl_error){0};
  trace->kinds = kinds;
  trace->start_ns = rl_monotonic_ns();
  trace->running = true;
  pthread_mutex_unlock(&trace->lock);
  rl_source_pause();
  cuptiActivityEnableLaunchAttributes(kinds == rl_trace_launches); /* without them a detail may say 0 */
  for (const CUpti_ActivityKind *kind = kinds; *kind != CUPTI_ACTIVITY_KIND_INVALID; kind++)
    if (rl_cupti_check(cuptiActivityEnable(*kind), "cuptiActivityEnable", err) != 0) {
      disable(kinds);
      rl_source_resume();
      pthread_mutex_lock(&trace->lock);
      trace->running = false;
      pthread_mutex_unlock(&trace->lock);
      return -1;
    }
  return 0;
}

static int by_start(const void *a, const void *b) {
  const rl_activity_row *x = a, *y = b;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

int rl_trace_stop(rl_trace *trace, rl_traced *traced, rl_error *err) {
  if (!trace->running) return rl_fail(err, RL_CUPTI, 0, "no trace is running");
  CUptiResult flushed = cuptiActivityFlushAll(0);
  disable(trace->kinds);
  CUptiResult forced = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  rl_source_resume();
  pthread_mutex_lock(&trace->lock);
  trace->running = false;
  count_dropped(trace);
  rl_error failed = trace->failed;
  pthread_mutex_unlock(&trace->lock);
  if (rl_cupti_check(flushed, "cuptiActivityFlushAll", err) != 0 || rl_cupti_check(forced, "cuptiActivityFlushAll", err) != 0)
    return -1;
  if (failed.domain != RL_OK) {
    if (err != NULL) *err = failed;
    return -1;
  }
  qsort(trace->rows, trace->row_count, sizeof *trace->rows, by_start);
  *traced = (rl_traced){.rows = trace->rows,
                        .row_count = trace->row_count,
                        .names = &trace->names,
                        .marks = trace->marks,
                        .mark_count = trace->mark_count,
                        .details = trace->details,
                        .detail_count = trace->detail_count,
                        .kernels = trace->kernels,
                        .records = trace->row_count,
                        .dropped = trace->dropped,
                        .zero_times = trace->zero_times};
  return 0;
}

/* CUPTI keeps our callbacks: the locks stay, the memory goes. */
void rl_trace_close(rl_trace *trace) {
  if (trace == NULL) return;
  rl_traced ignored;
  if (trace->running) rl_trace_stop(trace, &ignored, NULL);
  pthread_mutex_lock(&trace->lock);
  rl_names_clear(&trace->names);
  free(trace->rows);
  free(trace->marks);
  free(trace->details);
  trace->rows = NULL;
  trace->marks = NULL;
  trace->details = NULL;
  trace->row_count = trace->row_capacity = trace->mark_count = trace->mark_capacity = trace->detail_count =
      trace->detail_capacity = 0;
  trace->open = false;
  pthread_mutex_unlock(&trace->lock);
  pthread_mutex_lock(&trace->pool);
  while (trace->spare_count > 0) free(trace->spare[--trace->spare_count]);
  pthread_mutex_unlock(&trace->pool);
}

int rl_trace_mark(uint32_t launch, rl_error *err) {
  return rl_cupti_check(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, launch),
                        "cuptiActivityPushExternalCorrelationId", err);
}

int rl_trace_unmark(rl_error *err) {
  return rl_cupti_check(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, NULL),
                        "cuptiActivityPopExternalCorrelationId", err);
}
