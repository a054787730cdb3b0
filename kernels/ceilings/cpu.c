/* The engine "cpu" of the workload "ceilings". Memory rates are measured with all threads at once. An arithmetic rate is the rate
 * of an OpenBLAS product on one thread, times the number of threads. A product takes less than one time slice of the scheduler,
 * so that at least some of the products run without an interruption, and the fastest one counts. If all threads computed one
 * product together, on a busy machine another process would interrupt at least one of them in nearly every product. */
#include "ceilings/cpu.h"

#include <cblas.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ceilings/instance.h"
#include "thread_pool.h"
#include "hash.h"

enum {
  MATRIX_SIDE = 512,                           /* rows and columns of a matrix */
  MATRIX_ELEMENTS = MATRIX_SIDE * MATRIX_SIDE, /* elements of a matrix */
  CHUNK_BYTES = 1 << 20,
  LINE_BYTES = 64
};

typedef struct cache_line {
  uint64_t words[LINE_BYTES / sizeof(uint64_t)];
} cache_line;

typedef struct cpu_ceilings {
  rl_ceilings_instance instance;
  rl_thread_pool *thread_pool;
  cache_line *memory;  /* dram_copy uses its halves as two arrays, dram_triad its thirds as three */
  size_t memory_bytes; /* far more than the caches hold */
  size_t l3_bytes;     /* size of the part of `memory` with which the L3 rate is measured */
  double *matrices;    /* A, B and C [MATRIX_SIDE][MATRIX_SIDE] in double, then the same in float */
  uint64_t sink;       /* receives results of reads, so that the compiler does not remove the reads */
} cpu_ceilings;

/* --- memory ------------------------------------------------------------------------------------------------------------ */

/* One traversal of one to three arrays of `bytes` bytes each, by all threads, in chunks. process_chunk processes `bytes` bytes of
 * each array, from `offset` on. If it only reads, it stores the XOR of all words that it has read in *combined. */
typedef struct sweep {
  cpu_ceilings *self;
  size_t bytes;
  void (*process_chunk)(const struct sweep *sweep, size_t offset, size_t bytes, uint64_t *combined);
} sweep;

/* Returns the address of byte `offset` of array `index`, from 0. */
static char *nth_array(const sweep *s, int index, size_t offset) {
  return (char *)s->self->memory + (size_t)index * s->bytes + offset;
}

static void run_chunk(void *context, uint32_t task, uint32_t thread) {
  const sweep *s = context;
  const size_t offset = (size_t)task * CHUNK_BYTES;
  uint64_t combined = 0;
  (void)thread;
  s->process_chunk(s, offset, s->bytes - offset < CHUNK_BYTES ? s->bytes - offset : CHUNK_BYTES, &combined);
  if (combined == 1) __atomic_store_n(&s->self->sink, combined, __ATOMIC_RELAXED);
}

static void run_sweep(cpu_ceilings *self, size_t bytes, void (*process_chunk)(const sweep *, size_t, size_t, uint64_t *)) {
  sweep s = {self, bytes, process_chunk};
  rl_thread_pool_run(self->thread_pool, (uint32_t)((bytes + CHUNK_BYTES - 1) / CHUNK_BYTES), run_chunk, &s);
}

static void read_chunk(const sweep *s, size_t offset, size_t bytes, uint64_t *combined) {
  const cache_line *lines = (const cache_line *)nth_array(s, 0, offset);
  cache_line combined_line = {0};
  for (size_t i = 0; i < bytes / LINE_BYTES; i++)
    for (size_t w = 0; w < LINE_BYTES / sizeof(uint64_t); w++) combined_line.words[w] ^= lines[i].words[w];
  for (size_t w = 0; w < LINE_BYTES / sizeof(uint64_t); w++) *combined ^= combined_line.words[w];
}

static void write_chunk(const sweep *s, size_t offset, size_t bytes, uint64_t *combined) {
  (void)combined;
  memset(nth_array(s, 0, offset), (int)(offset / CHUNK_BYTES * 37 & 0xff), bytes);
}

static void copy_chunk(const sweep *s, size_t offset, size_t bytes, uint64_t *combined) {
  (void)combined;
  memcpy(nth_array(s, 1, offset), nth_array(s, 0, offset), bytes);
}

static void triad_chunk(const sweep *s, size_t offset, size_t bytes, uint64_t *combined) {
  const double *b = (const double *)nth_array(s, 1, offset), *c = (const double *)nth_array(s, 2, offset);
  double *a = (double *)nth_array(s, 0, offset);
  (void)combined;
  for (size_t i = 0; i < bytes / sizeof *a; i++) a[i] = b[i] + 3 * c[i];
}

/* Defines NAME, which implements rl_launch.enqueue: calls PROCESS_CHUNK for all chunks of arrays of BYTES bytes. */
#define ENQUEUE_SWEEP(NAME, BYTES, PROCESS_CHUNK)               \
  static int NAME(void *arg, rl_stream stream, rl_error *err) { \
    cpu_ceilings *self = arg;                                   \
    (void)stream, (void)err;                                    \
    run_sweep(self, BYTES, PROCESS_CHUNK);                      \
    return 0;                                                   \
  }
ENQUEUE_SWEEP(dram_read, self->memory_bytes, read_chunk)
ENQUEUE_SWEEP(dram_write, self->memory_bytes, write_chunk)
ENQUEUE_SWEEP(dram_copy, self->memory_bytes / 2, copy_chunk)
ENQUEUE_SWEEP(dram_triad, self->memory_bytes / 3, triad_chunk)
ENQUEUE_SWEEP(l3_read, self->l3_bytes, read_chunk)

/* --- arithmetic -------------------------------------------------------------------------------------------------------- */

static int enqueue_fp64(void *arg, rl_stream stream, rl_error *err) {
  double *a = ((cpu_ceilings *)arg)->matrices, *b = a + MATRIX_ELEMENTS, *c = b + MATRIX_ELEMENTS;
  const int previous_threads = openblas_get_num_threads();
  (void)stream, (void)err;
  openblas_set_num_threads(1);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, MATRIX_SIDE, MATRIX_SIDE, MATRIX_SIDE, 1, a, MATRIX_SIDE, b, MATRIX_SIDE,
              0, c, MATRIX_SIDE);
  openblas_set_num_threads(previous_threads);
  return 0;
}

static int enqueue_fp32(void *arg, rl_stream stream, rl_error *err) {
  float *a = (float *)(((cpu_ceilings *)arg)->matrices + 3 * MATRIX_ELEMENTS), *b = a + MATRIX_ELEMENTS, *c = b + MATRIX_ELEMENTS;
  const int previous_threads = openblas_get_num_threads();
  (void)stream, (void)err;
  openblas_set_num_threads(1);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, MATRIX_SIDE, MATRIX_SIDE, MATRIX_SIDE, 1, a, MATRIX_SIDE, b, MATRIX_SIDE,
              0, c, MATRIX_SIDE);
  openblas_set_num_threads(previous_threads);
  return 0;
}

/* --- the engine -------------------------------------------------------------------------------------------------------- */

static double random_symmetric(uint64_t random) { return (double)(random >> 11) * 0x1p-52 - 1; } /* [-1, 1) */

static void fill_chunk(const sweep *s, size_t offset, size_t bytes, uint64_t *combined) {
  double *numbers = (double *)nth_array(s, 0, offset);
  const uint64_t key = rl_hash64((uint64_t)s->self->instance.params.seed) + offset;
  (void)combined;
  for (size_t i = 0; i < bytes / sizeof *numbers; i++) numbers[i] = random_symmetric(rl_hash64(key + i));
}

static void fill_memory(cpu_ceilings *self) {
  float *floats = (float *)(self->matrices + 3 * MATRIX_ELEMENTS);
  run_sweep(self, self->memory_bytes, fill_chunk);
  for (int i = 0; i < 2 * MATRIX_ELEMENTS; i++)
    self->matrices[i] = random_symmetric(rl_hash64((uint64_t)i)), floats[i] = (float)self->matrices[i];
}

static void close_ceilings(rl_instance *instance) {
  cpu_ceilings *self = (cpu_ceilings *)instance;
  instance->device->ops->release(instance->device, self->memory);
  instance->device->ops->release(instance->device, self->matrices);
  rl_thread_pool_close(self->thread_pool);
  free(self);
}

/* Chooses the sizes. For DRAM, the memory is three times as large as the L3 cache, but has at least 96 and at most 768 MiB, so
 * that a sweep finds hardly any data of the previous sweep in the cache. For L3, the array fills a third of the cache. Sets
 * *has_l3 to whether the L3 rate can be measured. */
static void choose_sizes(cpu_ceilings *self, bool *has_l3) {
  const size_t min_bytes = (size_t)96 << 20, max_bytes = (size_t)768 << 20;
  const size_t unit_bytes = 6 * LINE_BYTES; /* a half and a third of memory_bytes must be whole cache lines */
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  size_t wanted = cache > 0 ? 3 * (size_t)cache : min_bytes;
  if (wanted < min_bytes) wanted = min_bytes;
  if (wanted > max_bytes) wanted = max_bytes;
  self->memory_bytes = wanted / unit_bytes * unit_bytes;
  self->l3_bytes = cache > 0 ? (size_t)cache / 3 / LINE_BYTES * LINE_BYTES : 0;
  *has_l3 = self->l3_bytes > 0 && self->l3_bytes < self->memory_bytes;
}

static void add_rates(cpu_ceilings *self, bool has_l3) {
  rl_ceilings_instance *instance = &self->instance;
  const double bytes = (double)self->memory_bytes,
               operations = 2.0 * MATRIX_ELEMENTS * MATRIX_SIDE * rl_thread_pool_thread_count(self->thread_pool);
  rl_ceilings_add(instance, RL_CEILING_dram_read, bytes, dram_read, self);
  rl_ceilings_add(instance, RL_CEILING_dram_write, bytes, dram_write, self);
  rl_ceilings_add(instance, RL_CEILING_dram_copy, bytes, dram_copy, self);
  rl_ceilings_add(instance, RL_CEILING_dram_triad, bytes, dram_triad, self);
  if (has_l3) rl_ceilings_add(instance, RL_CEILING_l3_read, (double)self->l3_bytes, l3_read, self);
  rl_ceilings_add(instance, RL_CEILING_fp64, operations, enqueue_fp64, self);
  rl_ceilings_add(instance, RL_CEILING_fp32, operations, enqueue_fp32, self);
}

static int open_ceilings(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  cpu_ceilings *self = calloc(1, sizeof *self);
  bool has_l3;
  if (!self) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the ceilings");
  rl_ceilings_init(&self->instance, device, params, close_ceilings, "not measured on a CPU");
  choose_sizes(self, &has_l3);
  self->thread_pool = rl_thread_pool_open(device->threads, err);
  const size_t matrix_bytes = 3 * MATRIX_ELEMENTS * (sizeof(double) + sizeof(float));
  if (!self->thread_pool ||
      device->ops->allocate(device, RL_MEMORY_DATASET, self->memory_bytes, (void **)&self->memory, err) < 0 ||
      device->ops->allocate(device, RL_MEMORY_DATASET, matrix_bytes, (void **)&self->matrices, err) < 0) {
    close_ceilings(&self->instance.base);
    return -1;
  }
  fill_memory(self);
  add_rates(self, has_l3);
  *instance = &self->instance.base;
  return 0;
}

static const rl_engine_description description = {.name = "cpu",
                                                  .workload = "ceilings",
                                                  .device = RL_DEVICE_CPU,
                                                  .summary = "memory by all threads, arithmetic by OpenBLAS",
                                                  .supports = rl_ceilings_supports};
const rl_engine rl_ceilings_cpu = {.description = &description, .open = open_ceilings};
