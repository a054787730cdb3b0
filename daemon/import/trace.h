/* The trace that a parser reads from a file, in memory: names and activity rows under limits, and what is left out. A file may
 * have several GPUs and processes, and a run has one of each, so rl_trace_finish keeps those with the most operations. */
#ifndef RL_IMPORT_TRACE_H
#define RL_IMPORT_TRACE_H

#include "base/cleanup.h"
#include "model/records.h"

enum { RL_TRACE_MAX_ROWS = 2000000, RL_TRACE_MAX_NAMES = 100000, RL_TRACE_MAX_NAME_LENGTH = 60000 };

/* Why an event of the file has no row. The names of the measurements that count them are in trace.c. */
typedef enum rl_skipped_kind {
  RL_SKIPPED_PYTHON_FUNCTION,     /* calls of Python functions */
  RL_SKIPPED_GPU_USER_ANNOTATION, /* a user annotation's projection on the GPU, which the analysis computes itself */
  RL_SKIPPED_SYNCHRONIZATION,     /* waits that the API calls also show */
  RL_SKIPPED_CATEGORY,            /* any other category */
  RL_SKIPPED_UNPAIRED,            /* begins without an end, and ends without a begin */
  RL_SKIPPED_OTHER_GPU,           /* work of another GPU, and its API calls */
  RL_SKIPPED_OTHER_PROCESS,
  RL_SKIPPED_KIND_COUNT
} rl_skipped_kind;

/* The GPU as the file names it; "" and 0: the file does not say. */
typedef struct rl_trace_gpu {
  int64_t number; /* CUDA's */
  char name[256], uuid[48], compute_capability[16];
  int64_t sm_count, memory_bytes, l2_bytes, shared_memory_per_sm_bytes, registers_per_sm;
} rl_trace_gpu;

typedef struct rl_trace rl_trace;
rl_trace *rl_trace_new(void); /* NULL: out of memory */
void rl_trace_free(rl_trace *trace);

/* Returns the index of a name, which is added if it is new. Bytes that are not UTF-8 become question marks. RL_INPUT: the name is
 * too long, or the trace has too many. */
int rl_trace_add_name(rl_trace *trace, const char *text, size_t length, uint32_t *index, rl_error *err);
/* Returns rl_activity_row.graph_node of a node's number in the file: CUPTI's has the graph in the upper 32 bits and the node,
 * from 0, in the lower; rooflined's exports have the row's value. */
uint32_t rl_trace_graph_node(int64_t number);
/* Adds a row. Its times are of the file's clock; process is also set for operations. RL_INPUT: a time is negative or ends before
 * it starts, or the trace has too many rows. */
int rl_trace_add_row(rl_trace *trace, const rl_activity_row *row, rl_error *err);
void rl_trace_skip(rl_trace *trace, rl_skipped_kind kind);
/* Counts a record whose times the profiler could not collect. */
void rl_trace_count_untimed(rl_trace *trace);
/* Adds a GPU that the file describes; the 65th and later are ignored. */
void rl_trace_add_gpu(rl_trace *trace, const rl_trace_gpu *gpu);
/* Sets which program wrote the file, with its version ("": unknown). */
void rl_trace_set_producer(rl_trace *trace, const char *engine, const char *producer, const char *version);
/* Kernels have one number for static and dynamic shared memory together. */
void rl_trace_set_shared_memory_is_sum(rl_trace *trace);

/* Moves the trace to *records: metadata, names, rows in order of start with times since the first, kernels and measurements.
 * *notes: what was read and left out, one line each, malloc'ed. RL_INPUT: the trace has no row. */
int rl_trace_finish(rl_trace *trace, rl_records *records, char **notes, rl_error *err);

RL_DEFINE_CLEANUP(rl_trace_cleanup, rl_trace *, rl_trace_free, NULL)
#endif
