#include "worker/cupti/trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/cupti/result.h"
#include "worker/cupti/source.h"

enum {
  BUFFER_BYTES = 8 << 20, BUFFERS = 8, /* CUPTI fills one or two at a time while we empty the others */
  OPEN_RANGES = 256,
};
static const size_t MOST_ROWS = (size_t)(512 << 20) / sizeof(rl_activity_row);
static const char DOMAIN_NAME[] = "rooflined";

const CUpti_ActivityKind rl_trace_everything[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_MARKER,
    CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_INVALID};
const CUpti_ActivityKind rl_trace_launches[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_INVALID};

typedef struct open_range {
  uint32_t id, name;
  int64_t start_ns;
} open_range;

struct rl_trace {
  /* Two locks, since CUPTI asks for a buffer under locks of its own: pool is never held across a call into CUPTI. */
  pthread_mutex_t pool, lock;
  uint8_t *spare[BUFFERS]; /* zeroed */
  size_t spare_count, lent;
  bool open, running;
  const CUpti_ActivityKind *kinds;
  int64_t start_ns;
  rl_error failed; /* what went wrong on CUPTI's thread */
  rl_names names;
  rl_activity_row *rows;
  size_t row_count, row_capacity;
  rl_mark *marks;
  size_t mark_count, mark_capacity;
  rl_launch_detail *details;
  size_t detail_count, detail_capacity;
  open_range ranges[OPEN_RANGES];
  size_t range_count;
  uint64_t kernels, dropped, zero_times;
};

static rl_trace the_trace = {.pool = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t CUPTIAPI timestamp(void) { return (uint64_t)rl_monotonic_ns(); }

/* Room for one more item of a growing array; false when memory is out. */
static bool room(void *array_of, size_t count, size_t *capacity, size_t size) {
  if (count < *capacity) return true;
  size_t more = *capacity == 0 ? 4096 : 2 * *capacity;
  void **array = array_of, *grown = realloc(*array, more * size);
  if (grown == NULL) return false;
  *array = grown;
  *capacity = more;
  return true;
}

static void put(rl_trace *trace, const rl_activity_row *row, const char *name) {
  uint32_t index = 0;
  if (trace->row_count >= MOST_ROWS || !room(&trace->rows, trace->row_count, &trace->row_capacity, sizeof *row) ||
      rl_names_find(&trace->names, name, &index, &trace->failed) != 0) {
    trace->dropped++;
    return;
  }
  trace->rows[trace->row_count] = *row;
  trace->rows[trace->row_count++].name = index;
}

static int64_t since(const rl_trace *trace, uint64_t instant) { return (int64_t)instant - trace->start_ns; }

/* Times of what ran on the device: CUPTI says 0 and 0 when it could not collect them. */
static void put_timed(rl_trace *trace, rl_activity_row *row, uint64_t start, uint64_t end, const char *name) {
  if (start == 0 || end == 0) trace->zero_times++;
  else row->start_ns = since(trace, start), row->end_ns = since(trace, end);
  put(trace, row, name);
}

/* CUPTI numbers graphs in the upper half and their nodes, from 0, in the lower. */
static uint32_t node(uint64_t id) { return id == 0 ? 0 : (uint32_t)id + 1; }

static void take_detail(rl_trace *trace, const CUpti_ActivityKernel10 *kernel) {
  if (!room(&trace->details, trace->detail_count, &trace->detail_capacity, sizeof *trace->details)) {
    trace->dropped++;
    return;
  }
  trace->details[trace->detail_count++] =
      (rl_launch_detail){.correlation = kernel->correlationId, .shared_config_bytes = kernel->sharedMemoryExecuted,
                         .cache_config = kernel->cacheConfig.config.requested,
                         .cluster = {kernel->clusterX, kernel->clusterY, kernel->clusterZ},
                         .cluster_policy = kernel->clusterSchedulingPolicy, .largest_cluster = kernel->maxPotentialClusterSize,
                         .active_clusters = kernel->maxActiveClusters};
}

static void take_kernel(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityKernel10 *kernel = (const void *)record;
  rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL, .stream = kernel->streamId, .correlation = kernel->correlationId,
                         .graph_node = node(kernel->graphNodeId),
                         .grid = {(uint32_t)kernel->gridX, (uint32_t)kernel->gridY, (uint32_t)kernel->gridZ},
                         .block = {(uint32_t)kernel->blockX, (uint32_t)kernel->blockY, (uint32_t)kernel->blockZ},
                         .registers = kernel->registersPerThread,
                         .static_shared_bytes = (uint32_t)kernel->staticSharedMemory,
                         .dynamic_shared_bytes = (uint32_t)kernel->dynamicSharedMemory};
  trace->kernels++;
  if (trace->kinds == rl_trace_launches) take_detail(trace, kernel);
  put_timed(trace, &row, kernel->start, kernel->end, kernel->name == NULL ? "(unnamed kernel)" : kernel->name);
}

static void take_memcpy(rl_trace *trace, const CUpti_Activity *record) {
  static const char *const names[] = {
      [CUPTI_ACTIVITY_MEMCPY_KIND_HTOD] = "memcpy HtoD", [CUPTI_ACTIVITY_MEMCPY_KIND_DTOH] = "memcpy DtoH",
      [CUPTI_ACTIVITY_MEMCPY_KIND_HTOA] = "memcpy HtoA", [CUPTI_ACTIVITY_MEMCPY_KIND_ATOH] = "memcpy AtoH",
      [CUPTI_ACTIVITY_MEMCPY_KIND_ATOA] = "memcpy AtoA", [CUPTI_ACTIVITY_MEMCPY_KIND_ATOD] = "memcpy AtoD",
      [CUPTI_ACTIVITY_MEMCPY_KIND_DTOA] = "memcpy DtoA", [CUPTI_ACTIVITY_MEMCPY_KIND_DTOD] = "memcpy DtoD",
      [CUPTI_ACTIVITY_MEMCPY_KIND_HTOH] = "memcpy HtoH", [CUPTI_ACTIVITY_MEMCPY_KIND_PTOP] = "memcpy PtoP"};
  const CUpti_ActivityMemcpy6 *copy = (const void *)record;
  bool known = copy->copyKind < sizeof names / sizeof *names && names[copy->copyKind] != NULL;
  rl_activity_row row = {.kind = RL_ACTIVITY_MEMCPY, .stream = copy->streamId, .correlation = copy->correlationId,
                         .graph_node = node(copy->graphNodeId), .bytes = copy->bytes};
  put_timed(trace, &row, copy->start, copy->end, known ? names[copy->copyKind] : "memcpy");
}

static void take_memset(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityMemset4 *set = (const void *)record;
  rl_activity_row row = {.kind = RL_ACTIVITY_MEMSET, .stream = set->streamId, .correlation = set->correlationId,
                         .graph_node = node(set->graphNodeId), .bytes = set->bytes};
  put_timed(trace, &row, set->start, set->end, "memset");
}

static void take_memory(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityMemory4 *memory = (const void *)record;
  bool released = memory->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  const char *name;
  switch (memory->memoryKind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE: name = released ? "free device" : "allocate device"; break;
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED: name = released ? "free pinned" : "allocate pinned"; break;
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED: name = released ? "free managed" : "allocate managed"; break;
    default: name = released ? "free" : "allocate";
  }
  int64_t at = since(trace, memory->timestamp);
  rl_activity_row row = {.start_ns = at, .end_ns = at, .kind = RL_ACTIVITY_MEMORY,
                         .stream = memory->streamId == CUPTI_INVALID_STREAM_ID ? 0 : memory->streamId,
                         .correlation = memory->correlationId, .bytes = memory->bytes};
  put(trace, &row, name);
}

static void take_call(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityAPI *call = (const void *)record;
  bool runtime = call->kind == CUPTI_ACTIVITY_KIND_RUNTIME;
  const char *name = NULL;
  if (cuptiGetCallbackName(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, call->cbid, &name) !=
      CUPTI_SUCCESS)
    name = "(unknown call)";
  rl_activity_row row = {.start_ns = since(trace, call->start), .end_ns = since(trace, call->end),
                         .kind = runtime ? RL_ACTIVITY_RUNTIME : RL_ACTIVITY_DRIVER,
                         .correlation = call->correlationId};
  put(trace, &row, name);
}

/* A range comes as two markers with one id; only those of our own NVTX domain are kept. */
static void take_marker(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityMarker2 *marker = (const void *)record;
  if (marker->flags & CUPTI_ACTIVITY_FLAG_MARKER_START) {
    open_range *range = &trace->ranges[trace->range_count];
    if (marker->name == NULL || marker->domain == NULL || strcmp(marker->domain, DOMAIN_NAME) != 0) return;
    if (trace->range_count == OPEN_RANGES) {
      trace->dropped++;
    } else if (rl_names_find(&trace->names, marker->name, &range->name, &trace->failed) == 0) {
      range->id = marker->id;
      range->start_ns = since(trace, marker->timestamp);
      trace->range_count++;
    }
  } else if (marker->flags & CUPTI_ACTIVITY_FLAG_MARKER_END) {
    size_t at = trace->range_count;
    while (at > 0 && trace->ranges[at - 1].id != marker->id) at--;
    if (at == 0) return;
    open_range range = trace->ranges[at - 1];
    memmove(&trace->ranges[at - 1], &trace->ranges[at], (trace->range_count - at) * sizeof range);
    trace->range_count--;
    rl_activity_row row = {.start_ns = range.start_ns, .end_ns = since(trace, marker->timestamp),
                           .kind = RL_ACTIVITY_RANGE};
    put(trace, &row, trace->names.items[range.name].raw);
  }
}

static void take_overhead(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityOverhead3 *overhead = (const void *)record;
  const char *name;
  switch (overhead->overheadKind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER: name = "driver compiles"; break;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH: name = "CUPTI flushes buffers"; break;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION: name = "CUPTI instruments"; break;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE: name = "CUPTI makes or frees resources"; break;
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING: name = "runtime loads a module"; break;
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING: name = "driver loads a function"; break;
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL: name = "command buffer full"; break;
    case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST: name = "CUPTI asks for a buffer"; break;
    case CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT: name = "CUPTI starts unified memory records"; break;
    default: name = "overhead";
  }
  rl_activity_row row = {.start_ns = since(trace, overhead->start), .end_ns = since(trace, overhead->end),
                         .kind = RL_ACTIVITY_OVERHEAD, .correlation = overhead->correlationId};
  put(trace, &row, name);
  free(overhead->overheadData);
}

static void take_mark(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityExternalCorrelation *external = (const void *)record;
  if (!room(&trace->marks, trace->mark_count, &trace->mark_capacity, sizeof *trace->marks)) {
    trace->dropped++;
    return;
  }
  trace->marks[trace->mark_count++] = (rl_mark){external->correlationId, (uint32_t)external->externalId};
}

static void take(rl_trace *trace, const CUpti_Activity *record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: take_kernel(trace, record); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: take_memcpy(trace, record); break;
    case CUPTI_ACTIVITY_KIND_MEMSET: take_memset(trace, record); break;
    case CUPTI_ACTIVITY_KIND_MEMORY2: take_memory(trace, record); break;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: take_call(trace, record); break;
    case CUPTI_ACTIVITY_KIND_MARKER: take_marker(trace, record); break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: take_overhead(trace, record); break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: take_mark(trace, record); break;
    default: break;
  }
}

static void count_dropped(rl_trace *trace) {
  size_t dropped = 0; /* reading it sets CUPTI's count back */
  if (cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS) trace->dropped += dropped;
}

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *most_records) {
  rl_trace *trace = &the_trace;
  pthread_mutex_lock(&trace->pool);
  *buffer = NULL; /* CUPTI then drops records and counts them */
  if (trace->spare_count > 0) *buffer = trace->spare[--trace->spare_count];
  else if (trace->lent < BUFFERS) *buffer = calloc(1, BUFFER_BYTES);
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
    take(trace, record);
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
  if (rl_cupti_check(flushed, "cuptiActivityFlushAll", err) != 0 ||
      rl_cupti_check(forced, "cuptiActivityFlushAll", err) != 0)
    return -1;
  if (failed.domain != RL_OK) {
    if (err != NULL) *err = failed;
    return -1;
  }
  qsort(trace->rows, trace->row_count, sizeof *trace->rows, by_start);
  *traced = (rl_traced){.rows = trace->rows, .row_count = trace->row_count, .names = &trace->names,
                        .marks = trace->marks, .mark_count = trace->mark_count,
                        .details = trace->details, .detail_count = trace->detail_count, .kernels = trace->kernels,
                        .records = trace->row_count, .dropped = trace->dropped, .zero_times = trace->zero_times};
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
  trace->row_count = trace->row_capacity = trace->mark_count = trace->mark_capacity =
      trace->detail_count = trace->detail_capacity = 0;
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
