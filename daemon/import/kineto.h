/* Reads traces in Chrome's trace event format: those of PyTorch's profiler (Kineto), rooflined's exports, and others with the
 * same categories. Reads events of phase X (complete), and pairs of B (begin) and E (end). References: "Trace Event Format",
 * Google; libkineto's output_json.cpp. */
#ifndef RL_IMPORT_KINETO_H
#define RL_IMPORT_KINETO_H

#include "import/input.h"
#include "import/observer.h"
#include "import/trace.h"

/* Reads the whole input into the trace. Memory is bounded: a token may have at most 1 MiB, and values may be nested 64 deep.
 * Fails with RL_INPUT if the JSON is malformed or exceeds a limit, or an event has invalid times. Fails with RL_ERRNO,
 * ECANCELED, if the observer cancels. */
int rl_kineto_read(rl_input *input, const rl_import_observer *observer, rl_trace *trace, rl_error *err);

#endif
