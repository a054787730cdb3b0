/* The kinds of overhead that CUPTI reports in a trace, in rows of kind RL_ACTIVITY_OVERHEAD: the name of each kind, and its
 * cause, on which the analyses of the trace depend (analyze/time_classes.h). overheads.c defines the table. */
#ifndef RL_MODEL_OVERHEADS_H
#define RL_MODEL_OVERHEADS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_overhead {
  RL_OVERHEAD_COMPILER,
  RL_OVERHEAD_MODULE_LOADING,
  RL_OVERHEAD_FUNCTION_LOADING,
  RL_OVERHEAD_BUFFER_FLUSH,
  RL_OVERHEAD_BUFFER_REQUEST,
  RL_OVERHEAD_INSTRUMENTATION,
  RL_OVERHEAD_RESOURCES,
  RL_OVERHEAD_UNIFIED_MEMORY,
  RL_OVERHEAD_COMMAND_BUFFER_FULL,
  RL_OVERHEAD_OTHER,
  RL_OVERHEAD_COUNT
} rl_overhead;

typedef enum rl_overhead_cause {
  RL_OVERHEAD_OF_LOADING,  /* the driver compiles or loads code, on the thread of the call that needs it */
  RL_OVERHEAD_OF_PROFILER, /* CUPTI works on the thread that calls CUDA, so the call takes longer than without a profiler */
  RL_OVERHEAD_BESIDE_CALLS /* CUPTI works on its own thread, or the thread is not known: no call takes longer */
} rl_overhead_cause;

typedef struct rl_overhead_description {
  const char *name;
  rl_overhead_cause cause;
} rl_overhead_description;
extern const rl_overhead_description rl_overheads[RL_OVERHEAD_COUNT];

/* Returns the cause of the kind with this name; RL_OVERHEAD_BESIDE_CALLS for an unknown name. */
rl_overhead_cause rl_overhead_cause_of(const char *name);

#ifdef __cplusplus
}
#endif
#endif
