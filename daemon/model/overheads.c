/* Implements overheads.h. */
#include "model/overheads.h"

#include <string.h>

const rl_overhead_description rl_overheads[RL_OVERHEAD_COUNT] = {
    [RL_OVERHEAD_COMPILER] = {"driver compiles", RL_OVERHEAD_OF_LOADING},
    [RL_OVERHEAD_MODULE_LOADING] = {"runtime loads a module", RL_OVERHEAD_OF_LOADING},
    [RL_OVERHEAD_FUNCTION_LOADING] = {"driver loads a function", RL_OVERHEAD_OF_LOADING},
    [RL_OVERHEAD_BUFFER_FLUSH] = {"CUPTI flushes buffers", RL_OVERHEAD_BESIDE_CALLS},
    [RL_OVERHEAD_BUFFER_REQUEST] = {"CUPTI asks for a buffer", RL_OVERHEAD_OF_PROFILER},
    [RL_OVERHEAD_INSTRUMENTATION] = {"CUPTI instruments", RL_OVERHEAD_OF_PROFILER},
    [RL_OVERHEAD_RESOURCES] = {"CUPTI makes or frees resources", RL_OVERHEAD_OF_PROFILER},
    [RL_OVERHEAD_UNIFIED_MEMORY] = {"CUPTI starts unified memory records", RL_OVERHEAD_OF_PROFILER},
    [RL_OVERHEAD_COMMAND_BUFFER_FULL] = {"command buffer full", RL_OVERHEAD_BESIDE_CALLS},
    [RL_OVERHEAD_OTHER] = {"overhead", RL_OVERHEAD_BESIDE_CALLS},
};

rl_overhead_cause rl_overhead_cause_of(const char *name) {
  for (int i = 0; i < RL_OVERHEAD_COUNT; i++)
    if (strcmp(rl_overheads[i].name, name) == 0) return rl_overheads[i].cause;
  return RL_OVERHEAD_BESIDE_CALLS;
}
