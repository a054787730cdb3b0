#include "import/ambiguous_calls.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

typedef struct api_call {
  uint32_t correlation, process;
} api_call;

RL_DEFINE_CLEANUP(free_calls, api_call *, free, NULL)

static int compare_correlations(const void *a, const void *b) {
  const api_call *x = a, *y = b;
  return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static int compare_calls(const void *a, const void *b) {
  const api_call *x = a, *y = b;
  int order = compare_correlations(a, b);
  return order != 0 ? order : (x->process > y->process) - (x->process < y->process);
}

/* Writes the calls with a correlation id, sorted by id and process, and returns their number. */
static size_t list_calls(const rl_records *records, api_call *calls) {
  size_t count = 0;
  for (size_t i = 0; i < records->row_count; i++) {
    const rl_activity_row *row = &records->rows[i];
    if ((row->kind == RL_ACTIVITY_RUNTIME || row->kind == RL_ACTIVITY_DRIVER) && row->correlation != 0)
      calls[count++] = (api_call){row->correlation, row->process};
  }
  qsort(calls, count, sizeof *calls, compare_calls);
  return count;
}

/* Keeps those calls whose id a call of another process has too, and returns their number. */
static size_t keep_ambiguous(api_call *calls, size_t count) {
  size_t kept = 0;
  api_call previous = {0};
  for (size_t i = 0; i < count; i++) {
    const api_call call = calls[i];
    if (i > 0 && call.correlation == previous.correlation && call.process != previous.process) calls[kept++] = call;
    previous = call;
  }
  return kept;
}

int rl_ambiguous_calls_unlink(rl_records *records, int64_t *operation_count, rl_error *err) {
  RL_CLEANUP(free_calls) api_call *calls = malloc((records->row_count + 1) * sizeof *calls);
  if (calls == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a trace");
  size_t count = keep_ambiguous(calls, list_calls(records, calls));
  *operation_count = 0;
  for (size_t i = 0; count > 0 && i < records->row_count; i++) {
    rl_activity_row *row = &records->rows[i];
    const api_call key = {.correlation = row->correlation};
    if (row->kind != RL_ACTIVITY_KERNEL && row->kind != RL_ACTIVITY_MEMCPY && row->kind != RL_ACTIVITY_MEMSET) continue;
    if (row->correlation == 0 || bsearch(&key, calls, count, sizeof *calls, compare_correlations) == NULL) continue;
    row->correlation = 0;
    (*operation_count)++;
  }
  return 0;
}
