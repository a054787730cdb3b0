/* The trace that a parser (kineto.h, nsys.h) reads from a file, in memory: names, activity rows and counts of skipped events. The
 * numbers of names and rows are limited. A file may contain several GPUs and processes, but a run has only one GPU and one
 * process. Therefore rl_trace_finish keeps only the rows of one GPU and one process: the pair with the most operations. */
#ifndef RL_IMPORT_TRACE_H
#define RL_IMPORT_TRACE_H

#include "base/cleanup.h"
#include "import/thread_numbers.h"
#include "model/records.h"

enum { RL_TRACE_MAX_ROWS = 2000000, RL_TRACE_MAX_NAMES = 100000, RL_TRACE_MAX_NAME_LENGTH = 60000 };

/* Why an event of the file has no row. For each reason a measurement of the run has the number of such events; trace.c defines
 * the measurements' names. */
typedef enum rl_skipped_kind {
  RL_SKIPPED_PYTHON_FUNCTION,     /* calls of Python functions */
  RL_SKIPPED_GPU_USER_ANNOTATION, /* the time of a user annotation on the GPU, which rooflined computes itself */
  RL_SKIPPED_SYNCHRONIZATION,     /* waits of the host, which the rows of the API calls show too */
  RL_SKIPPED_CATEGORY,            /* any other category */
  RL_SKIPPED_UNPAIRED,            /* begin events without an end event, and end events without a begin event */
  RL_SKIPPED_OTHER_GPU,           /* work of another GPU, and the API calls that launched it */
  RL_SKIPPED_OTHER_PROCESS,
  RL_SKIPPED_KIND_COUNT
} rl_skipped_kind;

/* A GPU as the file describes it. "" or 0: the file does not contain the value. */
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
/* Converts a graph node's number in the file to the value of rl_activity_row.graph_node. The number is CUPTI's, with the graph in
 * the upper 32 bits and the node, counted from 0, in the lower 32 bits; in rooflined's exports it is already the value of
 * rl_activity_row.graph_node. */
uint32_t rl_trace_graph_node(int64_t number);
/* Sets *thread to the number of a thread whose id in the file is not a thread id of Linux; rl_trace_finish replaces it by a
 * number that no other thread has. Fails with RL_INPUT if there are too many such threads. */
int rl_trace_number_thread(rl_trace *trace, rl_thread_key key, uint32_t *thread, rl_error *err);
/* Adds a row. The row's times are in ns of the file's clock. row->process must be set, also for operations on the GPU. Fails with
 * RL_INPUT if a time is negative or too large, the row ends before it starts, or the trace has too many rows. */
int rl_trace_add_row(rl_trace *trace, const rl_activity_row *row, rl_error *err);
void rl_trace_count_skipped_event(rl_trace *trace, rl_skipped_kind kind);
/* Counts a record of an operation whose times the profiler could not collect. */
void rl_trace_count_untimed(rl_trace *trace);
/* Adds a GPU that the file describes. The first 64 GPUs are kept, further GPUs are ignored. */
void rl_trace_add_gpu(rl_trace *trace, const rl_trace_gpu *gpu);
/* Sets the engine name of the run, the name of the program that has written the file (`producer`), and the version of this
 * program ("": unknown). */
void rl_trace_set_producer(rl_trace *trace, const char *engine, const char *producer, const char *version);

/* Moves the trace to *records: metadata, names, rows, kernels and measurements. The rows are in the order of their starts, and
 * their times are relative to the first start. Sets *notes to malloc'ed text with the number of imported events and a line for
 * each kind of skipped events. Fails with RL_INPUT if the trace has no row. */
int rl_trace_finish(rl_trace *trace, rl_records *records, char **notes, rl_error *err);

RL_DEFINE_CLEANUP(rl_trace_cleanup, rl_trace *, rl_trace_free, NULL)
#endif
