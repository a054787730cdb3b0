/* The trace that a parser reads from a file, in memory: names, activity rows and counts of skipped events. The numbers of names
 * and rows are limited. A file may contain several GPUs and processes, but a run has one of each, so rl_trace_finish keeps the
 * GPU and process with the most operations. */
#ifndef RL_IMPORT_TRACE_H
#define RL_IMPORT_TRACE_H

#include "base/cleanup.h"
#include "model/records.h"

enum { RL_TRACE_MAX_ROWS = 2000000, RL_TRACE_MAX_NAMES = 100000, RL_TRACE_MAX_NAME_LENGTH = 60000 };

/* Why an event of the file has no row. A measurement counts the events for each reason; trace.c has their names. */
typedef enum rl_skipped_kind {
  RL_SKIPPED_PYTHON_FUNCTION,     /* calls of Python functions */
  RL_SKIPPED_GPU_USER_ANNOTATION, /* the time on the GPU of a user annotation, which rooflined computes itself */
  RL_SKIPPED_SYNCHRONIZATION,     /* waits that the API calls also show */
  RL_SKIPPED_CATEGORY,            /* any other category */
  RL_SKIPPED_UNPAIRED,            /* begins without an end, and ends without a begin */
  RL_SKIPPED_OTHER_GPU,           /* work of another GPU, and its API calls */
  RL_SKIPPED_OTHER_PROCESS,
  RL_SKIPPED_KIND_COUNT
} rl_skipped_kind;

/* A GPU as the file describes it. "" and 0: the file does not contain the value. */
typedef struct rl_trace_gpu {
  int64_t number; /* CUDA device number */
  char name[256], uuid[48], compute_capability[16];
  int64_t sm_count, memory_bytes, l2_bytes, shared_memory_per_sm_bytes, registers_per_sm;
} rl_trace_gpu;

typedef struct rl_trace rl_trace;
rl_trace *rl_trace_new(void); /* NULL: out of memory */
void rl_trace_free(rl_trace *trace);

/* Sets *index to the index of a name; adds the name if it is new. Bytes that are not UTF-8 become question marks. Fails with
 * RL_INPUT if the name is too long, or the trace has too many names. */
int rl_trace_add_name(rl_trace *trace, const char *text, size_t length, uint32_t *index, rl_error *err);
/* Converts a graph node's number in the file to rl_activity_row.graph_node. The number is CUPTI's (the graph in the upper 32
 * bits; the node, counted from 0, in the lower), or, in rooflined's exports, already the value of the row. */
uint32_t rl_trace_graph_node(int64_t number);
/* Adds a row. Its times are those of the file's clock. `process` must be set for operations too. Fails with RL_INPUT if a time
 * is negative, the row ends before it starts, or the trace has too many rows. */
int rl_trace_add_row(rl_trace *trace, const rl_activity_row *row, rl_error *err);
void rl_trace_count_skipped_event(rl_trace *trace, rl_skipped_kind kind);
/* Counts a record whose times the profiler could not collect. */
void rl_trace_count_untimed(rl_trace *trace);
/* Adds a GPU that the file describes. At most 64 GPUs are kept; further ones are ignored. */
void rl_trace_add_gpu(rl_trace *trace, const rl_trace_gpu *gpu);
/* Sets the program that wrote the file (`producer`), its version ("": unknown), and the engine name of the run. */
void rl_trace_set_producer(rl_trace *trace, const char *engine, const char *producer, const char *version);
/* Call if the file has only the sum of static and dynamic shared memory of kernels. */
void rl_trace_set_shared_memory_is_sum(rl_trace *trace);

/* Moves the trace to *records: metadata, names, rows, kernels and measurements. Rows are in order of start; times are relative
 * to the first start. *notes: malloc'ed text with one line for each kind of events that were read or left out. Fails with
 * RL_INPUT if the trace has no row. */
int rl_trace_finish(rl_trace *trace, rl_records *records, char **notes, rl_error *err);

RL_DEFINE_CLEANUP(rl_trace_cleanup, rl_trace *, rl_trace_free, NULL)
#endif
