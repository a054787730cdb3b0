/* What CUPTI's records say, as rows. */
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/trace_parts.h"

static const size_t MOST_ROWS = (size_t)(512 << 20) / sizeof(rl_activity_row);
static const char DOMAIN_NAME[] = "rooflined";

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
  trace->details[trace->detail_count++] = (rl_launch_detail){.correlation = kernel->correlationId,
                                                             .shared_config_bytes = kernel->sharedMemoryExecuted,
                                                             .cache_config = kernel->cacheConfig.config.requested,
                                                             .cluster = {kernel->clusterX, kernel->clusterY, kernel->clusterZ},
                                                             .cluster_policy = kernel->clusterSchedulingPolicy,
                                                             .largest_cluster = kernel->maxPotentialClusterSize,
                                                             .active_clusters = kernel->maxActiveClusters};
}

static void take_kernel(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityKernel10 *kernel = (const void *)record;
  rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL,
                         .stream = kernel->streamId,
                         .correlation = kernel->correlationId,
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
  rl_activity_row row = {.kind = RL_ACTIVITY_MEMCPY,
                         .stream = copy->streamId,
                         .correlation = copy->correlationId,
                         .graph_node = node(copy->graphNodeId),
                         .bytes = copy->bytes};
  put_timed(trace, &row, copy->start, copy->end, known ? names[copy->copyKind] : "memcpy");
}

static void take_memset(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityMemset4 *set = (const void *)record;
  rl_activity_row row = {.kind = RL_ACTIVITY_MEMSET,
                         .stream = set->streamId,
                         .correlation = set->correlationId,
                         .graph_node = node(set->graphNodeId),
                         .bytes = set->bytes};
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
  rl_activity_row row = {.start_ns = at,
                         .end_ns = at,
                         .kind = RL_ACTIVITY_MEMORY,
                         .stream = memory->streamId == CUPTI_INVALID_STREAM_ID ? 0 : memory->streamId,
                         .correlation = memory->correlationId,
                         .bytes = memory->bytes};
  put(trace, &row, name);
}

static void take_call(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityAPI *call = (const void *)record;
  bool runtime = call->kind == CUPTI_ACTIVITY_KIND_RUNTIME;
  const char *name = NULL;
  if (cuptiGetCallbackName(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, call->cbid, &name) !=
      CUPTI_SUCCESS)
    name = "(unknown call)";
  rl_activity_row row = {.start_ns = since(trace, call->start),
                         .end_ns = since(trace, call->end),
                         .kind = runtime ? RL_ACTIVITY_RUNTIME : RL_ACTIVITY_DRIVER,
                         .correlation = call->correlationId};
  put(trace, &row, name);
}

/* A range comes as two markers with one id; only those of our own NVTX domain are kept. */
static void take_marker(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityMarker2 *marker = (const void *)record;
  if (marker->flags & CUPTI_ACTIVITY_FLAG_MARKER_START) {
    rl_open_range *range = &trace->ranges[trace->range_count];
    if (marker->name == NULL || marker->domain == NULL || strcmp(marker->domain, DOMAIN_NAME) != 0) return;
    if (trace->range_count == RL_TRACE_OPEN_RANGES) {
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
    rl_open_range range = trace->ranges[at - 1];
    memmove(&trace->ranges[at - 1], &trace->ranges[at], (trace->range_count - at) * sizeof range);
    trace->range_count--;
    rl_activity_row row = {.start_ns = range.start_ns, .end_ns = since(trace, marker->timestamp), .kind = RL_ACTIVITY_RANGE};
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
  rl_activity_row row = {.start_ns = since(trace, overhead->start),
                         .end_ns = since(trace, overhead->end),
                         .kind = RL_ACTIVITY_OVERHEAD,
                         .correlation = overhead->correlationId};
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

void rl_trace_take(rl_trace *trace, const CUpti_Activity *record) {
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
