/* The engine "cpu" of every family: pieces shared out to threads; types that the CPU does not compute with are converted to float
 * and back. Variant 0 does this a piece at a time; the other one, where the CPU has it, and the only one as many pieces as fit a
 * tile, so that the loops are long enough for the compiler's vectors. */
#include <errno.h>
#include <stdlib.h>

#include "kernel/cpu.h"
#include "kernel/pieces.h"

enum { TILE = 4096, SHARE = 1 << 16 }; /* elements in a tile, and in what a thread takes at once; at least a piece */

static bool as_it_is(int dtype) { return dtype == RL_DTYPE_FP64 || dtype == RL_DTYPE_FP32 || dtype == RL_DTYPE_TF32; }

static const void *read_input(const rl_kernel_instance *self, uint32_t input, int64_t start, int64_t count, void *room) {
  const int dtype = self->params.dtype;
  const char *from = (const char *)self->in[input] + (size_t)start * rl_dtype_size(dtype);
  if (as_it_is(dtype)) return from;
  rl_dtype_to_float(dtype, from, count, room);
  return room;
}

static void do_tile(void *context, const void *const *in, int64_t first, int64_t count, void *room) {
  const rl_kernel_instance *self = context;
  const rl_kernel_family *family = self->params.family;
  const int dtype = self->params.dtype;
  const int64_t each = rl_kernel_piece_elements(self);
  char *to = (char *)self->out + (size_t)(first * each) * rl_dtype_size(dtype);
  void *out = as_it_is(dtype) ? to : room;
  if (dtype == RL_DTYPE_FP64) family->compute_double(&self->shape, (const double *const *)in, first, count, out);
  else family->compute_float(&self->shape, (const float *const *)in, first, count, out);
  if (out != to) rl_dtype_from_float(dtype, out, count * each, to);
}

static bool has_one_way(const rl_kernel_family *family) {
  for (int i = 1; family->variants[i] != NULL; i++)
    if (!(family->gpu_only & 1u << i)) return false;
  return true;
}

static int do_share(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  rl_kernel_instance *self = context;
  const bool alone = self->variant == 0 && !has_one_way(self->params.family);
  const int64_t step = alone ? 1 : rl_kernel_pieces_in(self, TILE), end = first + count;
  for (int64_t piece = first; piece < end; piece += step)
    if (rl_kernel_feed_work(self->engine, piece, piece + step < end ? step : end - piece, thread, do_tile, self, err)) return -1;
  return 0;
}

static int enqueue(void *arg, rl_stream stream, rl_error *err) {
  rl_kernel_instance *self = arg;
  (void)stream;
  if (rl_kernel_feed_refresh(self->engine, err)) return -1;
  return rl_kernel_share(self, self->params.family->pieces(&self->shape), rl_kernel_pieces_in(self, SHARE), do_share, self, err);
}

static void close_feed(void *engine) {
  rl_kernel_feed_close(engine);
  free(engine);
}

int rl_kernel_cpu_supports(const void *params, rl_error *err) {
  const rl_kernel_params *asked = params;
  return rl_kernel_supports(params, err) < 0 ? -1 : rl_kernel_cpu_variant_check(asked->family, asked->variant, err);
}

int rl_kernel_cpu_open(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  rl_kernel_instance *self;
  if (rl_kernel_open(device, params, enqueue, &self, err)) return -1;
  rl_kernel_feed *feed = calloc(1, sizeof *feed);
  int rc = feed ? 0 : rl_fail(err, RL_SYS, ENOMEM, "out of memory for a kernel");
  if (feed) {
    *feed = (rl_kernel_feed){.kernel = self,
                             .number = self->params.dtype == RL_DTYPE_FP64 ? sizeof(double) : sizeof(float),
                             .most = 4 * TILE,
                             .read = read_input};
    self->engine = feed;
    self->engine_close = close_feed;
    rc = rl_kernel_feed_open(feed, err);
  }
  if (rc) {
    self->base.ops->close(&self->base);
    return -1;
  }
  *instance = &self->base;
  return 0;
}

#define ENGINE(NAME)                                                                                     \
  static const rl_engine_description description_of_##NAME = {.name = "cpu",                             \
                                                              .workload = #NAME,                         \
                                                              .device = RL_DEVICE_CPU,                   \
                                                              .summary = "pieces shared out to threads", \
                                                              .supports = rl_kernel_cpu_supports};       \
  const rl_engine rl_kernel_cpu_##NAME = {.description = &description_of_##NAME, .open = rl_kernel_cpu_open};
RL_KERNEL_FAMILIES(ENGINE)
