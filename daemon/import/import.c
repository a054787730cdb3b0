/* Implements import.h: determines the format of the trace and calls the parser of this format. */
#include "import/import.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "import/kineto.h"
#include "import/nsys.h"

static int read_json(int descriptor, const rl_import_observer *observer, rl_trace *trace, rl_error *err) {
  RL_CLEANUP(rl_input_cleanup) rl_input *input = NULL;
  return rl_input_open(descriptor, &input, err) < 0 ? -1 : rl_kineto_read(input, observer, trace, err);
}

int rl_import_read(int descriptor, rl_trace_format format, const rl_import_observer *observer, rl_records *records, char **notes,
                   rl_error *err) {
  char start[RL_TRACE_MAGIC_BYTES];
  ssize_t byte_count = pread(descriptor, start, sizeof start, 0);
  if (byte_count < 0) return rl_fail_errno(err, "can't read the trace");
  if (rl_trace_format_detect(start, (size_t)byte_count, &format, err) < 0) return -1;
  RL_CLEANUP(rl_trace_cleanup) rl_trace *trace = rl_trace_new();
  if (trace == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a trace");
  int rc = format == RL_TRACE_FORMAT_NSYS ? rl_nsys_read(descriptor, observer, trace, err)
                                          : read_json(descriptor, observer, trace, err);
  return rc < 0 ? -1 : rl_trace_finish(trace, records, notes, err);
}
