/* Reads traces in Chrome's trace event format: traces of PyTorch's profiler (Kineto), rooflined's exports, and other traces with
 * the same categories. Reads events of phase X (complete) and pairs of events of phase B (begin) and E (end). References: "Trace
 * Event Format", Google; libkineto's output_json.cpp. */
#ifndef RL_IMPORT_KINETO_H
#define RL_IMPORT_KINETO_H

#include "import/input.h"
#include "import/observer.h"
#include "import/trace.h"

/* Reads the whole input into the trace. Memory is bounded: a token has at most 1 MiB, and values have at most 64 levels of
 * nesting. Fails with RL_INPUT if the JSON is malformed or exceeds a limit, or if an event has invalid times; with RL_ERRNO
 * (ECANCELED) if the observer cancels. */
int rl_kineto_read(rl_input *input, const rl_import_observer *observer, rl_trace *trace, rl_error *err);

#endif
