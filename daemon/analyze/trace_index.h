/* The events of a trace in the orders that the analyses need: operations by start, each with the API call that launched it, and
 * API calls by correlation id. An operation is a kernel, copy or memset on a GPU, or a CPU span. All functions are pure. */
#ifndef RL_ANALYZE_TRACE_INDEX_H
#define RL_ANALYZE_TRACE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/overheads.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An activity row (rl_activity_row) without the members that are not needed here. */
typedef struct rl_trace_event {
  int64_t start_ns, end_ns;
  uint32_t kind;        /* rl_activity_kind; other kinds than operations, API calls, ranges and overheads are ignored */
  uint32_t name;        /* index into rl_trace_events.names */
  uint32_t correlation; /* 0: none */
  union {
    uint32_t graph_node; /* node of the operation in its graph; 0: outside of graphs */
    uint32_t event;      /* event that an API call records or waits for; 0: none, or unknown */
  };
  uint32_t stream; /* stream of an operation, or the stream that an API call about events or synchronisation names; 0: none */
  union {
    uint32_t thread; /* thread of an API call, a range or a CPU span (a launch on the CPU); 0: unknown, or a range of the whole
                        process */
    uint32_t size;   /* size of a copy: index into rl_trace_events.sizes */
  };
} rl_trace_event;

typedef struct rl_trace_events {
  const rl_trace_event *items; /* events in any order */
  size_t count;
  const char *const *names;
  size_t name_count;
  const char *incomplete_reason; /* reason why records are missing; NULL: the trace has them all */
  const int64_t *sizes;          /* in bytes; -1: unknown. NULL: all are unknown, and size_count is 0 */
  size_t size_count;
} rl_trace_events;

enum {
  RL_CALL_LAUNCHES = 1,
  RL_CALL_SYNCHRONIZES = 2,
  RL_CALL_COPIES =
      4, /* the call enqueues a copy from or to host memory, or between unknown memory, and returns when it is done */
  RL_CALL_WAITS_FOR_EVENT = 8,
  RL_CALL_RECORDS_EVENT = 16,
  RL_CALL_BEGINS_CAPTURE = 32,
  RL_CALL_ENDS_CAPTURE = 64
};

typedef struct rl_trace_overhead {
  const rl_trace_event *event, *call; /* call: the API call with its correlation id; NULL: none was recorded */
  rl_overhead_cause cause;
} rl_trace_overhead;

typedef struct rl_trace_index {
  const rl_trace_events *events;
  rl_trace_event *items;             /* copies of the events, by start; equal starts keep their order */
  unsigned char *call_kinds;         /* call_kinds[name]: RL_CALL_LAUNCHES | … */
  const rl_trace_event **operations; /* sorted by start */
  /* launched_by[operation]: the first API call with the operation's correlation id; NULL: none was recorded. A runtime call and
   * the driver call inside it may share the id; the first one is the runtime call. */
  const rl_trace_event **launched_by;
  size_t operation_count;
  const rl_trace_event **calls; /* sorted by correlation, then by start */
  bool *has_operation;          /* has_operation[call]: an operation has the call's correlation id */
  size_t call_count;
  /* lacked_kinds[item]: the kinds that a call with this name can have and this call does not have. RL_CALL_LAUNCHES: stream
   * capture added it to a graph, so that it launched nothing. RL_CALL_COPIES: it copies between addresses of devices, and CUDA's
   * calls do not wait for such copies. */
  unsigned char *lacked_kinds;
  rl_trace_overhead *overheads; /* sorted by start */
  size_t overhead_count;
  int64_t start_ns, end_ns; /* the window: from the first start to the last end of an operation; 0: there is no operation */
} rl_trace_index;

/* Builds the index, which the caller clears. The index copies events->items, which may then be freed; the names must outlive the
 * index. Fails with RL_ERRNO if memory is exhausted, and with RL_INPUT if an event ends before it starts or has no valid
 * name. */
int rl_trace_index_build(const rl_trace_events *events, rl_trace_index *index, rl_error *err);
void rl_trace_index_clear(rl_trace_index *index);

/* Sets *ranges to the NVTX ranges, sorted by start; of ranges with equal starts, the longer first. The caller frees them. */
int rl_trace_index_ranges(const rl_trace_index *index, const rl_trace_event ***ranges, size_t *count, rl_error *err);

typedef enum rl_trace_copy {
  RL_TRACE_NO_COPY,     /* a kernel or a CPU span */
  RL_TRACE_HOST_COPY,   /* a copy from or to host memory */
  RL_TRACE_DEVICE_COPY, /* a memset, or a copy between addresses of devices */
  RL_TRACE_OTHER_COPY,  /* a copy whose direction is unknown */
  RL_TRACE_COPY_COUNT
} rl_trace_copy;
rl_trace_copy rl_trace_copy_of(const rl_trace_index *index, const rl_trace_event *operation);
/* Returns the kind of the copies with this name, such as "memcpy HtoD". */
rl_trace_copy rl_trace_copy_named(const char *name);
bool rl_trace_is_copy(const rl_trace_event *event);
/* Returns whether the call has this kind, one of RL_CALL_…. call: an element of index->items. */
bool rl_trace_call_is(const rl_trace_index *index, const rl_trace_event *call, unsigned char kind);

#ifdef __cplusplus
}
#endif
#endif
