/* The CPU as a device: launches are plain calls on the caller's thread, which share their work out themselves. */
#include <cblas.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "device/cpu.h"
#include "device/launches.h"
#include "device/ranges.h"

RL_DEFINE_CLEANUP(free_bytes, unsigned char *, free, NULL)

enum { ALIGNMENT = 256 };

typedef struct block { /* in the ALIGNMENT bytes below what allocate hands out */
  size_t bytes;
  rl_purpose purpose;
} block;

struct rl_plan {
  const rl_program *program;
};

/* --- memory ------------------------------------------------------------------------------------------------------------ */

/* More than the machine has is refused here: the system would grant it, and kill someone once it is touched. */
static int cpu_allocate(rl_device *device, rl_purpose purpose, size_t bytes, void **memory, rl_error *err) {
  unsigned char *base = NULL;
  if (bytes <= rl_cpu_memory_bytes()) base = aligned_alloc(ALIGNMENT, (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  if (!base) return rl_fail(err, RL_SYS, ENOMEM, "out of memory: %zu bytes for %s", bytes, rl_purpose_names[purpose]);
  *(block *)base = (block){.bytes = bytes, .purpose = purpose};
  rl_memory_add(&device->memory, purpose, bytes);
  *memory = base + ALIGNMENT;
  return 0;
}

static void cpu_release(rl_device *device, void *memory) {
  if (!memory) return;
  block *base = (block *)((unsigned char *)memory - ALIGNMENT);
  rl_memory_remove(&device->memory, base->purpose, base->bytes);
  free(base);
}

static int cpu_upload(rl_device *device, void *to, const void *from_host, size_t bytes, rl_error *err) {
  (void)device, (void)err;
  memcpy(to, from_host, bytes);
  return 0;
}

static int cpu_download(rl_device *device, void *to_host, const void *from, size_t bytes, rl_error *err) {
  (void)device, (void)err;
  memcpy(to_host, from, bytes);
  return 0;
}

static int cpu_zero(rl_device *device, void *memory, size_t bytes, rl_error *err) {
  (void)device, (void)err;
  memset(memory, 0, bytes);
  return 0;
}

/* --- running ----------------------------------------------------------------------------------------------------------- */

static int cpu_plan(rl_device *device, const rl_program *program, rl_plan **plan, rl_error *err) {
  (void)device;
  rl_plan *made = malloc(sizeof *made);
  if (!made) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a plan");
  made->program = program;
  *plan = made;
  return 0;
}

static void cpu_plan_free(rl_device *device, rl_plan *plan) {
  (void)device;
  free(plan);
}

static int run_sequences(const rl_program *program, const rl_observer *observer, uint64_t *launches, rl_error *err) {
  uint64_t done = 0, of = 0;
  for (size_t s = 0; s < program->sequence_count; s++) of += program->sequences[s].repeat;
  for (size_t s = 0; s < program->sequence_count; s++) {
    const rl_sequence *sequence = &program->sequences[s];
    for (uint64_t repeat = 0; repeat < sequence->repeat; repeat++) {
      if (rl_sequence_once(sequence, NULL, observer, err)) return -1;
      *launches += sequence->launch_count;
      done++;
      if (observer && observer->progress) observer->progress(observer->context, done, of);
    }
  }
  return 0;
}

static int cpu_run_eager(rl_device *device, const rl_program *program, const rl_observer *observer, rl_elapsed *elapsed,
                         rl_error *err) {
  (void)device;
  uint64_t launches = 0;
  int64_t start = rl_monotonic_ns();
  rl_range_push(program->name);
  int rc = run_sequences(program, observer, &launches, err);
  rl_range_pop();
  if (rc) return -1;
  double host_ms = (double)(rl_monotonic_ns() - start) * 1e-6;
  *elapsed = (rl_elapsed){.device_ms = host_ms, .host_ms = host_ms, .launches = launches};
  return 0;
}

static int cpu_run(rl_device *device, rl_plan *plan, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  return cpu_run_eager(device, plan->program, observer, elapsed, err);
}

/* --- samples ----------------------------------------------------------------------------------------------------------- */

/* Twice the last cache, where the system says how large that is. */
static size_t flush_bytes(void) {
  const size_t least = (size_t)64 << 20, most = (size_t)512 << 20;
  long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  size_t bytes = cache > 0 ? 2 * (size_t)cache : least;
  return bytes < least ? least : bytes > most ? most : bytes;
}

static void flush(const volatile unsigned char *memory, size_t bytes) {
  enum { LINE = 64 };
  for (size_t at = 0; at < bytes; at += LINE) (void)memory[at];
}

/* ns for `times` repeats, of which none but the first may need what has to be restored, or -1. */
static int64_t time_repeats(const rl_sequence *sequence, int64_t times, rl_error *err) {
  int64_t start = rl_monotonic_ns();
  for (int64_t time = 0; time < times; time++)
    for (size_t l = 0; l < sequence->launch_count; l++)
      if (rl_launch_enqueue(&sequence->launches[l], NULL, err)) return -1;
  return rl_monotonic_ns() - start;
}

static int cpu_sample(rl_device *device, const rl_sequence *sequence, rl_cache cache, uint32_t count, const rl_observer *observer,
                      double *device_us, rl_error *err) {
  enum { WARM_NS = 200000, REPEATS_MOST = 1000 };
  (void)device;
  rl_auto(free_bytes) unsigned char *other = NULL;
  const size_t bytes = flush_bytes();
  int64_t once = rl_sequence_restore(sequence, NULL, err) ? -1 : time_repeats(sequence, 1, err), times = 1;
  if (once < 0) return -1;
  if (cache == RL_CACHE_WARM && !sequence->restore_launch && once < WARM_NS)
    times = once > WARM_NS / REPEATS_MOST ? WARM_NS / once + 1 : REPEATS_MOST;
  if (cache == RL_CACHE_COLD) {
    other = malloc(bytes);
    if (!other) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for emptying the caches");
    memset(other, 1, bytes); /* or all pages were one page of zeros */
  }
  for (uint32_t i = 0; i < count; i++) {
    if (rl_observer_cancelled(observer, err) || rl_sequence_restore(sequence, NULL, err)) return -1;
    if (other) flush(other, bytes);
    int64_t took = time_repeats(sequence, times, err);
    if (took < 0) return -1;
    device_us[i] = (double)took * 1e-3 / (double)times;
  }
  return 0;
}

static void cpu_close(rl_device *device) { free(device); }

static const rl_device_ops cpu_ops = {.allocate = cpu_allocate,
                                      .release = cpu_release,
                                      .upload = cpu_upload,
                                      .download = cpu_download,
                                      .zero = cpu_zero,
                                      .plan = cpu_plan,
                                      .plan_free = cpu_plan_free,
                                      .run = cpu_run,
                                      .run_eager = cpu_run_eager,
                                      .close = cpu_close,
                                      .sample = cpu_sample};

/* --- opening ----------------------------------------------------------------------------------------------------------- */

rl_device *rl_device_open(int index, rl_error *err) {
  if (index != 0) {
    rl_fail(err, RL_INPUT, 0, "there is one CPU device, \"cpu\"");
    return NULL;
  }
  int threads = rl_cpu_threads(err);
  if (threads < 0) return NULL;
  rl_device *device = calloc(1, sizeof *device);
  if (!device) {
    rl_fail(err, RL_SYS, ENOMEM, "out of memory for the device");
    return NULL;
  }
  *device = (rl_device){.ops = &cpu_ops, .kind = RL_DEVICE_CPU, .id = "cpu", .threads = threads};
  openblas_set_num_threads(threads);
  return device;
}

int rl_device_count(rl_error *err) {
  (void)err;
  return 1;
}
