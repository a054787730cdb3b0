/* Reads traces in Chrome's trace event format: PyTorch's profiler (Kineto), rooflined's own exports, and others with the same
 * categories. Kinds of events: X, and B with E. Reference: "Trace Event Format", Google; libkineto's output_json.cpp. */
#ifndef RL_IMPORT_KINETO_H
#define RL_IMPORT_KINETO_H

#include "import/input.h"
#include "import/observer.h"
#include "import/trace.h"

/* Reads the whole input into the trace. Memory is bounded: no token may be longer than 1 MiB, no value nested deeper than 64.
 * RL_INPUT: malformed JSON, a limit, or an event with invalid times; RL_ERRNO with ECANCELED: cancelled. */
int rl_kineto_read(rl_input *input, const rl_import_observer *observer, rl_trace *trace, rl_error *err);

#endif
