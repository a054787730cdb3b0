/* Converts CUPTI's activity records into rows. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/overheads.h"
#include "worker/cupti/trace_internal.h"

static const size_t MAX_ROWS = (size_t)(512 << 20) / sizeof(rl_activity_row);
static const char DOMAIN_NAME[] = "rooflined";

static void append_row(rl_trace *trace, const rl_activity_row *row, const char *name) {
  uint32_t index = 0;
  if (trace->row_count >= MAX_ROWS ||
      rl_array_reserve(&trace->rows, trace->row_count, &trace->row_capacity, sizeof *row, NULL) < 0 ||
      rl_name_table_intern(&trace->names, name, &index, &trace->callback_error) < 0) {
    trace->dropped_count++;
    return;
  }
  trace->rows[trace->row_count] = *row;
  trace->rows[trace->row_count++].name = index;
}

static int64_t since_start_ns(const rl_trace *trace, uint64_t time_ns) { return (int64_t)time_ns - trace->start_ns; }

/* Appends a row with device times. CUPTI reports start and end as 0 when it could not collect them. */
static void append_timed_row(rl_trace *trace, rl_activity_row *row, uint64_t start, uint64_t end, const char *name) {
  if (start == 0 || end == 0) trace->zero_time_record_count++;
  else row->start_ns = since_start_ns(trace, start), row->end_ns = since_start_ns(trace, end);
  append_row(trace, row, name);
}

/* Returns the node's number in its graph, counted from 1, or 0 for activity outside graphs. CUPTI's id has the graph in its upper
 * 32 bits and the node, counted from 0, in its lower 32 bits. */
static uint32_t graph_node(uint64_t id) { return id == 0 ? 0 : (uint32_t)id + 1; }

/* Returns the number of the device, counted from 1, as rl_activity_row has it, or 0 if the id does not fit. */
static uint16_t device_number(uint32_t id) { return id < UINT16_MAX ? (uint16_t)(id + 1) : 0; }

/* rl_memory_kind has CUPTI's values. */
static uint8_t memory_kind(uint32_t kind) { return kind < RL_MEMORY_KIND_COUNT ? (uint8_t)kind : RL_MEMORY_UNKNOWN; }

static uint32_t process_of(CUpti_ActivityObjectKind kind, const CUpti_ActivityObjectKindId *id) {
  return kind == CUPTI_ACTIVITY_OBJECT_PROCESS || kind == CUPTI_ACTIVITY_OBJECT_THREAD ? id->pt.processId : 0;
}

static uint32_t thread_of(CUpti_ActivityObjectKind kind, const CUpti_ActivityObjectKindId *id) {
  return kind == CUPTI_ACTIVITY_OBJECT_THREAD ? id->pt.threadId : 0;
}

static void add_launch_attributes(rl_trace *trace, const CUpti_ActivityKernel10 *kernel) {
  if (rl_array_reserve(&trace->launch_attributes, trace->attributes_count, &trace->attributes_capacity,
                       sizeof *trace->launch_attributes, NULL) < 0) {
    trace->dropped_count++;
    return;
  }
  trace->launch_attributes[trace->attributes_count++] =
      (rl_launch_attributes){.correlation = kernel->correlationId,
                             .shared_config_bytes = kernel->sharedMemoryExecuted,
                             .has_carveout_request = kernel->isSharedMemoryCarveoutRequested != 0,
                             .carveout_request_pct = kernel->sharedMemoryCarveoutRequested,
                             .cache_config = kernel->cacheConfig.config.requested,
                             .cluster = {kernel->clusterX, kernel->clusterY, kernel->clusterZ},
                             .cluster_policy = kernel->clusterSchedulingPolicy,
                             .max_cluster_blocks = kernel->maxPotentialClusterSize,
                             .max_active_clusters = kernel->maxActiveClusters};
}

static void add_kernel(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityKernel10 *kernel = (const void *)record;
  rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL,
                         .stream = kernel->streamId,
                         .correlation = kernel->correlationId,
                         .graph_node = graph_node(kernel->graphNodeId),
                         .grid = {(uint32_t)kernel->gridX, (uint32_t)kernel->gridY, (uint32_t)kernel->gridZ},
                         .block = {(uint32_t)kernel->blockX, (uint32_t)kernel->blockY, (uint32_t)kernel->blockZ},
                         .registers = kernel->registersPerThread,
                         .static_shared_bytes = (uint32_t)kernel->staticSharedMemory,
                         .dynamic_shared_bytes = (uint32_t)kernel->dynamicSharedMemory,
                         .context = kernel->contextId,
                         .device = device_number(kernel->deviceId)};
  trace->kernel_count++;
  if (trace->records_launch_attributes) add_launch_attributes(trace, kernel);
  append_timed_row(trace, &row, kernel->start, kernel->end, kernel->name == NULL ? "(unnamed kernel)" : kernel->name);
}

static void add_memcpy(rl_trace *trace, const CUpti_Activity *record) {
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
                         .graph_node = graph_node(copy->graphNodeId),
                         .bytes = copy->bytes,
                         .context = copy->contextId,
                         .device = device_number(copy->deviceId),
                         .source_memory = memory_kind(copy->srcKind),
                         .destination_memory = memory_kind(copy->dstKind)};
  append_timed_row(trace, &row, copy->start, copy->end, known ? names[copy->copyKind] : "memcpy");
}

static void add_memset(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityMemset4 *set = (const void *)record;
  rl_activity_row row = {.kind = RL_ACTIVITY_MEMSET,
                         .stream = set->streamId,
                         .correlation = set->correlationId,
                         .graph_node = graph_node(set->graphNodeId),
                         .bytes = set->bytes,
                         .context = set->contextId,
                         .device = device_number(set->deviceId),
                         .destination_memory = memory_kind(set->memoryKind)};
  append_timed_row(trace, &row, set->start, set->end, "memset");
}

static void add_memory(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityMemory4 *memory = (const void *)record;
  bool released = memory->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  const char *name;
  switch (memory->memoryKind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE: name = released ? "free device" : "allocate device"; break;
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED: name = released ? "free pinned" : "allocate pinned"; break;
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED: name = released ? "free managed" : "allocate managed"; break;
    default: name = released ? "free" : "allocate";
  }
  int64_t time_ns = since_start_ns(trace, memory->timestamp);
  rl_activity_row row = {.start_ns = time_ns,
                         .end_ns = time_ns,
                         .kind = RL_ACTIVITY_MEMORY,
                         .stream = memory->streamId == CUPTI_INVALID_STREAM_ID ? 0 : memory->streamId,
                         .correlation = memory->correlationId,
                         .bytes = memory->bytes,
                         .process = memory->processId,
                         .context = memory->contextId == CUPTI_INVALID_CONTEXT_ID ? 0 : memory->contextId,
                         .device = device_number(memory->deviceId),
                         .destination_memory = memory_kind(memory->memoryKind)};
  append_row(trace, &row, name);
}

static void add_api_call(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityAPI *call = (const void *)record;
  bool runtime = call->kind == CUPTI_ACTIVITY_KIND_RUNTIME;
  const char *name = NULL;
  if (cuptiGetCallbackName(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, call->cbid, &name) !=
      CUPTI_SUCCESS)
    name = "(unknown call)";
  rl_activity_row row = {.start_ns = since_start_ns(trace, call->start),
                         .end_ns = since_start_ns(trace, call->end),
                         .kind = runtime ? RL_ACTIVITY_RUNTIME : RL_ACTIVITY_DRIVER,
                         .correlation = call->correlationId,
                         .process = call->processId,
                         .thread = call->threadId};
  append_row(trace, &row, name);
}

/* An NVTX range is two markers with the same id. Ranges of other NVTX domains are ignored. */
static void add_marker(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityMarker2 *marker = (const void *)record;
  if (marker->flags & CUPTI_ACTIVITY_FLAG_MARKER_START) {
    rl_open_range *range = &trace->ranges[trace->range_count];
    if (marker->name == NULL || marker->domain == NULL || strcmp(marker->domain, DOMAIN_NAME) != 0) return;
    if (trace->range_count == RL_TRACE_MAX_OPEN_RANGES) {
      trace->dropped_count++;
    } else if (rl_name_table_intern(&trace->names, marker->name, &range->name_index, &trace->callback_error) == 0) {
      range->id = marker->id;
      range->start_ns = since_start_ns(trace, marker->timestamp);
      range->process = process_of(marker->objectKind, &marker->objectId);
      range->thread = thread_of(marker->objectKind, &marker->objectId);
      trace->range_count++;
    }
  } else if (marker->flags & CUPTI_ACTIVITY_FLAG_MARKER_END) {
    size_t next = trace->range_count; /* index after the open range that has the marker's id; 0: no open range has it */
    while (next > 0 && trace->ranges[next - 1].id != marker->id) next--;
    if (next == 0) return;
    rl_open_range range = trace->ranges[next - 1];
    memmove(&trace->ranges[next - 1], &trace->ranges[next], (trace->range_count - next) * sizeof range);
    trace->range_count--;
    rl_activity_row row = {.start_ns = range.start_ns,
                           .end_ns = since_start_ns(trace, marker->timestamp),
                           .kind = RL_ACTIVITY_NVTX_RANGE,
                           .process = range.process,
                           .thread = range.thread};
    append_row(trace, &row, trace->names.items[range.name_index].mangled);
  }
}

static rl_overhead overhead_of(CUpti_ActivityOverheadKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER: return RL_OVERHEAD_COMPILER;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH: return RL_OVERHEAD_BUFFER_FLUSH;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION: return RL_OVERHEAD_INSTRUMENTATION;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE: return RL_OVERHEAD_RESOURCES;
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING: return RL_OVERHEAD_MODULE_LOADING;
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING: return RL_OVERHEAD_FUNCTION_LOADING;
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL: return RL_OVERHEAD_COMMAND_BUFFER_FULL;
    case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST: return RL_OVERHEAD_BUFFER_REQUEST;
    case CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT: return RL_OVERHEAD_UNIFIED_MEMORY;
    default: return RL_OVERHEAD_OTHER;
  }
}

static void add_overhead(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityOverhead3 *overhead = (const void *)record;
  rl_activity_row row = {.start_ns = since_start_ns(trace, overhead->start),
                         .end_ns = since_start_ns(trace, overhead->end),
                         .kind = RL_ACTIVITY_OVERHEAD,
                         .correlation = overhead->correlationId,
                         .process = process_of(overhead->objectKind, &overhead->objectId),
                         .thread = thread_of(overhead->objectKind, &overhead->objectId)};
  append_row(trace, &row, rl_overheads[overhead_of(overhead->overheadKind)].name);
  free(overhead->overheadData); /* CUPTI leaves this allocation to the client */
}

static void add_external_correlation(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityExternalCorrelation *external = (const void *)record;
  if (rl_array_reserve(&trace->correlations, trace->correlation_count, &trace->correlation_capacity, sizeof *trace->correlations,
                       NULL) < 0) {
    trace->dropped_count++;
    return;
  }
  trace->correlations[trace->correlation_count++] =
      (rl_external_correlation){external->correlationId, (uint32_t)external->externalId};
}

/* Converts one of CUPTI's ids, which are 32 or 64 bits wide. An id with all bits set means "none". */
static uint32_t id_or_none(uint64_t id) {
  return id == CUPTI_SYNCHRONIZATION_INVALID_VALUE || id == UINT64_MAX ? 0 : (uint32_t)id;
}

static void add_synchronization_call(rl_trace *trace, rl_synchronization_call call) {
  if (rl_array_reserve(&trace->synchronization_calls, trace->synchronization_call_count, &trace->synchronization_call_capacity,
                       sizeof call, NULL) < 0)
    trace->dropped_count++;
  else trace->synchronization_calls[trace->synchronization_call_count++] = call;
}

/* The record of an event and the records of the calls that wait for it have the same cudaEventSyncId. */
static void add_event_record(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivityCudaEvent2 *event = (const void *)record;
  add_synchronization_call(trace, (rl_synchronization_call){.correlation = event->correlationId,
                                                            .stream = id_or_none(event->streamId),
                                                            .event = id_or_none(event->cudaEventSyncId)});
}

static void add_synchronization(rl_trace *trace, const CUpti_Activity *record) {
  const CUpti_ActivitySynchronization2 *wait = (const void *)record;
  add_synchronization_call(trace, (rl_synchronization_call){.correlation = wait->correlationId,
                                                            .stream = id_or_none(wait->streamId),
                                                            .event = id_or_none(wait->cudaEventSyncId)});
}

void rl_trace_add_record(rl_trace *trace, const CUpti_Activity *record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: add_kernel(trace, record); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: add_memcpy(trace, record); break;
    case CUPTI_ACTIVITY_KIND_MEMSET: add_memset(trace, record); break;
    case CUPTI_ACTIVITY_KIND_MEMORY2: add_memory(trace, record); break;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: add_api_call(trace, record); break;
    case CUPTI_ACTIVITY_KIND_MARKER: add_marker(trace, record); break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: add_overhead(trace, record); break;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: add_event_record(trace, record); break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: add_synchronization(trace, record); break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: add_external_correlation(trace, record); break;
    default: break;
  }
}
