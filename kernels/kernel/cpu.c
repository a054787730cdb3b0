/* The engine "cpu" of every family: rows are converted to float (fp64: kept), computed, and converted back, the rows shared out to
 * threads. Variant 0 does this a row at a time; any other as many rows as fit a tile, so that the loops are long enough for the
 * compiler's vectors. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/cpu.h"
#include "kernel/instance.h"
#include "threads.h"

enum { TILE = 4096, SHARE = 1 << 16 }; /* elements in a tile, and in what a thread takes at once; at least a row */

typedef struct crew {
  rl_threads *threads;
  double *scratch; /* for each thread and buffer `room` numbers */
  int64_t room;
} crew;

static void close_crew(void *engine) {
  crew *all = engine;
  rl_threads_close(all->threads);
  free(all->scratch);
  free(all);
}

static int64_t rows_in(int64_t elements, int64_t columns) { return columns < elements ? elements / columns : 1; }
static int64_t tile_rows(const rl_kernel_instance *self) { return self->variant == 0 ? 1 : rows_in(TILE, self->shape.columns); }

static void load(const rl_kernel_instance *self, const void *from, int64_t first, int64_t count, void *to) {
  const int dtype = self->params.dtype;
  if (dtype == RL_DTYPE_FP64 || dtype == RL_DTYPE_FP32)
    memcpy(to, (const char *)from + (size_t)first * rl_dtype_size(dtype), (size_t)count * rl_dtype_size(dtype));
  else
    for (int64_t i = 0; i < count; i++) ((float *)to)[i] = (float)rl_dtype_load(dtype, from, (size_t)(first + i));
}

static void store(const rl_kernel_instance *self, const void *from, int64_t first, int64_t count) {
  const int dtype = self->params.dtype;
  if (dtype == RL_DTYPE_FP64 || dtype == RL_DTYPE_FP32)
    memcpy((char *)self->out + (size_t)first * rl_dtype_size(dtype), from, (size_t)count * rl_dtype_size(dtype));
  else
    for (int64_t i = 0; i < count; i++) rl_dtype_store(dtype, self->out, (size_t)(first + i), ((const float *)from)[i]);
}

static void do_tile(const rl_kernel_instance *self, double *scratch, int64_t first, int64_t rows) {
  const rl_kernel_family *family = self->params.family;
  const crew *all = self->engine;
  const int64_t columns = self->shape.columns;
  const rl_kernel_shape part = {rows, columns};
  double *in[RL_KERNEL_INPUTS], *out = scratch + RL_KERNEL_INPUTS * all->room;
  for (uint32_t i = 0; i < RL_KERNEL_INPUTS; i++) in[i] = scratch + i * all->room;
  for (uint32_t i = 0; i < family->input_count; i++)
    load(self, self->in[i], family->shared[i] ? 0 : first * columns, family->shared[i] ? columns : rows * columns, in[i]);
  if (self->params.dtype == RL_DTYPE_FP64)
    family->compute_double(&part, (const double *const *)in, out);
  else
    family->compute_float(&part, (const float *const *)in, (float *)out);
  store(self, out, first * columns, rows * columns);
}

static void do_share(void *context, uint32_t task, uint32_t thread) {
  const rl_kernel_instance *self = context;
  const crew *all = self->engine;
  const int64_t share = rows_in(SHARE, self->shape.columns), step = tile_rows(self);
  const int64_t first = share * task, end = first + share < self->shape.rows ? first + share : self->shape.rows;
  double *scratch = all->scratch + (int64_t)thread * (RL_KERNEL_INPUTS + 1) * all->room;
  for (int64_t row = first; row < end; row += step) do_tile(self, scratch, row, row + step < end ? step : end - row);
}

static int enqueue(void *arg, rl_stream stream, rl_error *err) {
  rl_kernel_instance *self = arg;
  (void)stream, (void)err;
  const int64_t share = rows_in(SHARE, self->shape.columns);
  rl_threads_run(((crew *)self->engine)->threads, (uint32_t)((self->shape.rows + share - 1) / share), do_share, self);
  return 0;
}

int rl_kernel_cpu_open(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  rl_kernel_instance *self;
  if (rl_kernel_open(device, params, enqueue, &self, err)) return -1;
  crew *all = calloc(1, sizeof *all);
  if (all) {
    self->engine = all;
    self->engine_close = close_crew;
    all->threads = rl_threads_open(device->threads, err);
    all->room = tile_rows(self) * self->shape.columns;
    if (all->threads)
      all->scratch = malloc(rl_threads_count(all->threads) * (RL_KERNEL_INPUTS + 1) * (size_t)all->room * sizeof *all->scratch);
  }
  if (!all || !all->threads || !all->scratch) {
    self->base.ops->close(&self->base);
    return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the threads of a kernel");
  }
  *instance = &self->base;
  return 0;
}

#define ENGINE(NAME)                                                                                                  \
  const rl_engine rl_kernel_cpu_##NAME = {.name = "cpu", .workload = #NAME, .device = RL_DEVICE_CPU,                  \
                                          .summary = "rows shared out to threads", .supports = rl_kernel_supports,    \
                                          .open = rl_kernel_cpu_open};
RL_KERNEL_FAMILIES(ENGINE)
