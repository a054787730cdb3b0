/* The ceilings of the CPU: memory by all threads at once; arithmetic by OpenBLAS on one thread, in products so short that one
 * fits into a time slice, times the threads: a bound that holds on a busy machine too, where all threads are never undisturbed at
 * once. */
#include "ceilings/cpu.h"

#include <cblas.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ceilings/instance.h"
#include "threads.h"
#include "hash.h"

enum { SIDE = 512, SQUARE = SIDE * SIDE, CHUNK = 1 << 20, LINE = 64 };

typedef struct line { /* what a core and memory exchange */
  uint64_t words[LINE / sizeof(uint64_t)];
} line;

typedef struct ceilings {
  rl_ceilings_instance instance;
  rl_threads *threads;
  line *memory; /* far more than the caches hold; copy takes its halves, triad its thirds */
  size_t bytes, cached_bytes;
  double *products; /* three squares, as doubles or as floats */
  uint64_t never;   /* where sums go, so that no read is left out */
} ceilings;

/* --- memory ------------------------------------------------------------------------------------------------------------ */

typedef struct stretch { /* one pass over memory, shared out in chunks */
  ceilings *self;
  size_t bytes; /* of each part */
  void (*chunk)(const struct stretch *stretch, size_t at, size_t bytes, uint64_t *sum);
} stretch;

static char *part(const stretch *pass, int which, size_t at) {
  return (char *)pass->self->memory + (size_t)which * pass->bytes + at;
}

static void do_chunk(void *context, uint32_t task, uint32_t thread) {
  const stretch *pass = context;
  const size_t at = (size_t)task * CHUNK;
  uint64_t sum = 0;
  (void)thread;
  pass->chunk(pass, at, pass->bytes - at < CHUNK ? pass->bytes - at : CHUNK, &sum);
  if (sum == 1) __atomic_store_n(&pass->self->never, sum, __ATOMIC_RELAXED);
}

static int go_over(ceilings *self, size_t bytes, void (*chunk)(const stretch *, size_t, size_t, uint64_t *)) {
  stretch pass = {self, bytes, chunk};
  rl_threads_run(self->threads, (uint32_t)((bytes + CHUNK - 1) / CHUNK), do_chunk, &pass);
  return 0;
}

static void read_chunk(const stretch *pass, size_t at, size_t bytes, uint64_t *sum) {
  const line *lines = (const line *)part(pass, 0, at);
  line all = {0};
  for (size_t i = 0; i < bytes / LINE; i++)
    for (size_t w = 0; w < LINE / sizeof(uint64_t); w++) all.words[w] ^= lines[i].words[w];
  for (size_t w = 0; w < LINE / sizeof(uint64_t); w++) *sum ^= all.words[w];
}

static void write_chunk(const stretch *pass, size_t at, size_t bytes, uint64_t *sum) {
  (void)sum;
  memset(part(pass, 0, at), (int)(at / CHUNK * 37 & 0xff), bytes);
}

static void copy_chunk(const stretch *pass, size_t at, size_t bytes, uint64_t *sum) {
  (void)sum;
  memcpy(part(pass, 1, at), part(pass, 0, at), bytes);
}

static void triad_chunk(const stretch *pass, size_t at, size_t bytes, uint64_t *sum) {
  const double *b = (const double *)part(pass, 1, at), *c = (const double *)part(pass, 2, at);
  double *a = (double *)part(pass, 0, at);
  (void)sum;
  for (size_t i = 0; i < bytes / sizeof *a; i++) a[i] = b[i] + 3 * c[i];
}

#define MEMORY(NAME, BYTES, CHUNK_OF)                           \
  static int NAME(void *arg, rl_stream stream, rl_error *err) { \
    ceilings *self = arg;                                       \
    (void)stream, (void)err;                                    \
    return go_over(self, BYTES, CHUNK_OF);                      \
  }
MEMORY(dram_read, self->bytes, read_chunk)
MEMORY(dram_write, self->bytes, write_chunk)
MEMORY(dram_copy, self->bytes / 2, copy_chunk)
MEMORY(dram_triad, self->bytes / 3, triad_chunk)
MEMORY(l3_read, self->cached_bytes, read_chunk)

/* --- arithmetic -------------------------------------------------------------------------------------------------------- */

static int fp64(void *arg, rl_stream stream, rl_error *err) {
  double *a = ((ceilings *)arg)->products, *b = a + SQUARE, *c = b + SQUARE;
  const int before = openblas_get_num_threads();
  (void)stream, (void)err;
  openblas_set_num_threads(1);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, a, SIDE, b, SIDE, 0, c, SIDE);
  openblas_set_num_threads(before);
  return 0;
}

static int fp32(void *arg, rl_stream stream, rl_error *err) {
  float *a = (float *)(((ceilings *)arg)->products + 3 * SQUARE), *b = a + SQUARE, *c = b + SQUARE;
  const int before = openblas_get_num_threads();
  (void)stream, (void)err;
  openblas_set_num_threads(1);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, a, SIDE, b, SIDE, 0, c, SIDE);
  openblas_set_num_threads(before);
  return 0;
}

/* --- the engine -------------------------------------------------------------------------------------------------------- */

static double unit(uint64_t random) { return (double)(random >> 11) * 0x1p-52 - 1; } /* [-1, 1) */

static void fill_chunk(const stretch *pass, size_t at, size_t bytes, uint64_t *sum) {
  double *numbers = (double *)part(pass, 0, at);
  const uint64_t key = rl_hash64((uint64_t)pass->self->instance.params.seed) + at;
  (void)sum;
  for (size_t i = 0; i < bytes / sizeof *numbers; i++) numbers[i] = unit(rl_hash64(key + i));
}

static void fill(ceilings *self) {
  float *singles = (float *)(self->products + 3 * SQUARE);
  go_over(self, self->bytes, fill_chunk);
  for (int i = 0; i < 2 * SQUARE; i++) self->products[i] = unit(rl_hash64((uint64_t)i)), singles[i] = (float)self->products[i];
}

static void close_ceilings(rl_instance *instance) {
  ceilings *self = (ceilings *)instance;
  instance->device->ops->release(instance->device, self->memory);
  instance->device->ops->release(instance->device, self->products);
  rl_threads_close(self->threads);
  free(self);
}

/* Three times the last cache, so that hardly anything of a pass is still there in the next; and a third of it. */
static void choose_sizes(ceilings *self, bool *cached) {
  const size_t least = (size_t)96 << 20, most = (size_t)768 << 20, unit_bytes = 6 * LINE;
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  size_t wanted = cache > 0 ? 3 * (size_t)cache : least;
  if (wanted < least) wanted = least;
  if (wanted > most) wanted = most;
  self->bytes = wanted / unit_bytes * unit_bytes;
  self->cached_bytes = cache > 0 ? (size_t)cache / 3 / LINE * LINE : 0;
  *cached = self->cached_bytes > 0 && self->cached_bytes < self->bytes;
}

static void list(ceilings *self, bool cached) {
  rl_ceilings_instance *to = &self->instance;
  const double bytes = (double)self->bytes, operations = 2.0 * SQUARE * SIDE * rl_threads_count(self->threads);
  rl_ceilings_add(to, RL_CEILING_dram_read, bytes, dram_read, self);
  rl_ceilings_add(to, RL_CEILING_dram_write, bytes, dram_write, self);
  rl_ceilings_add(to, RL_CEILING_dram_copy, bytes, dram_copy, self);
  rl_ceilings_add(to, RL_CEILING_dram_triad, bytes, dram_triad, self);
  if (cached) rl_ceilings_add(to, RL_CEILING_l3_read, (double)self->cached_bytes, l3_read, self);
  rl_ceilings_add(to, RL_CEILING_fp64, operations, fp64, self);
  rl_ceilings_add(to, RL_CEILING_fp32, operations, fp32, self);
}

static int open_ceilings(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  ceilings *self = calloc(1, sizeof *self);
  bool cached;
  if (!self) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the ceilings");
  rl_ceilings_begin(&self->instance, device, params, close_ceilings, "not measured on a CPU");
  choose_sizes(self, &cached);
  self->threads = rl_threads_open(device->threads, err);
  const size_t products = 3 * SQUARE * (sizeof(double) + sizeof(float));
  if (!self->threads || device->ops->allocate(device, RL_MEMORY_DATASET, self->bytes, (void **)&self->memory, err) ||
      device->ops->allocate(device, RL_MEMORY_DATASET, products, (void **)&self->products, err)) {
    close_ceilings(&self->instance.base);
    return -1;
  }
  fill(self);
  list(self, cached);
  *instance = &self->instance.base;
  return 0;
}

static const rl_engine_description description = {.name = "cpu",
                                                  .workload = "ceilings",
                                                  .device = RL_DEVICE_CPU,
                                                  .summary = "memory by all threads, arithmetic by OpenBLAS",
                                                  .supports = rl_ceilings_supports};
const rl_engine rl_ceilings_cpu = {.description = &description, .open = open_ceilings};
