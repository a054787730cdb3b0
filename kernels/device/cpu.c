/* The CPU device. Launches are function calls on the caller's thread; each distributes its work over threads itself. */
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

typedef struct block { /* header, in the ALIGNMENT bytes before the pointer that allocate returns */
  size_t bytes;
  rl_memory_purpose purpose;
} block;

struct rl_plan {
  const rl_sequence_list *sequence_list;
};

/* --- memory ------------------------------------------------------------------------------------------------------------ */

/* Refuses more than the physical memory: Linux would overcommit, and its OOM killer would end a process once the pages are used.
 */
static int cpu_allocate(rl_device *device, rl_memory_purpose purpose, size_t bytes, void **memory, rl_error *err) {
  unsigned char *base = NULL;
  if (bytes <= rl_cpu_memory_bytes()) base = aligned_alloc(ALIGNMENT, (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  if (!base) return rl_fail(err, RL_SYS, ENOMEM, "out of memory: %zu bytes for %s", bytes, rl_memory_purpose_names[purpose]);
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

static int cpu_plan(rl_device *device, const rl_sequence_list *sequence_list, rl_plan **plan, rl_error *err) {
  (void)device;
  rl_plan *created = malloc(sizeof *created);
  if (!created) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a plan");
  created->sequence_list = sequence_list;
  *plan = created;
  return 0;
}

static void cpu_plan_free(rl_device *device, rl_plan *plan) {
  (void)device;
  free(plan);
}

static int run_sequences(const rl_sequence_list *sequence_list, const rl_observer *observer, uint64_t *launches, rl_error *err) {
  uint64_t done = 0, total = 0;
  for (size_t s = 0; s < sequence_list->sequence_count; s++) total += sequence_list->sequences[s].repeat;
  for (size_t s = 0; s < sequence_list->sequence_count; s++) {
    const rl_sequence *sequence = &sequence_list->sequences[s];
    for (uint64_t repeat = 0; repeat < sequence->repeat; repeat++) {
      if (rl_sequence_run_once(sequence, NULL, observer, err) < 0) return -1;
      *launches += sequence->launch_count;
      done++;
      if (observer && observer->progress) observer->progress(observer->context, done, total);
    }
  }
  return 0;
}

static int cpu_run_eager(rl_device *device, const rl_sequence_list *sequence_list, const rl_observer *observer,
                         rl_elapsed *elapsed, rl_error *err) {
  (void)device;
  uint64_t launches = 0;
  int64_t start = rl_monotonic_ns();
  rl_range_push(sequence_list->name);
  int rc = run_sequences(sequence_list, observer, &launches, err);
  rl_range_pop();
  if (rc < 0) return -1;
  double host_ms = (double)(rl_monotonic_ns() - start) * 1e-6;
  *elapsed = (rl_elapsed){.device_ms = host_ms, .host_ms = host_ms, .launches = launches};
  return 0;
}

static int cpu_run(rl_device *device, rl_plan *plan, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  return cpu_run_eager(device, plan->sequence_list, observer, elapsed, err);
}

/* --- samples ----------------------------------------------------------------------------------------------------------- */

/* Twice the L3 cache, from 64 to 512 MiB; 64 MiB where its size is not known. */
static size_t eviction_bytes(void) {
  const size_t minimum = (size_t)64 << 20, maximum = (size_t)512 << 20;
  long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  size_t bytes = cache > 0 ? 2 * (size_t)cache : minimum;
  return bytes < minimum ? minimum : bytes > maximum ? maximum : bytes;
}

static void evict_caches(const volatile unsigned char *memory, size_t bytes) {
  enum { LINE_BYTES = 64 };
  for (size_t offset = 0; offset < bytes; offset += LINE_BYTES) (void)memory[offset];
}

/* Runs `repeats` repeats without restoring in between. Returns their time in nanoseconds, or -1. */
static int64_t time_repeats_ns(const rl_sequence *sequence, int64_t repeats, rl_error *err) {
  int64_t start = rl_monotonic_ns();
  for (int64_t repeat = 0; repeat < repeats; repeat++)
    for (size_t l = 0; l < sequence->launch_count; l++)
      if (rl_launch_enqueue(&sequence->launches[l], NULL, err) < 0) return -1;
  return rl_monotonic_ns() - start;
}

/* Repeats in a warm sample that takes at least 0.2 ms; once_ns: time of one. */
static int64_t warm_repeats(int64_t once_ns) {
  enum { WARM_NS = 200000, MAX_REPEATS = 1000 };
  if (once_ns >= WARM_NS) return 1;
  return once_ns > WARM_NS / MAX_REPEATS ? WARM_NS / once_ns + 1 : MAX_REPEATS;
}

static int cpu_sample(rl_device *device, const rl_sequence *sequence, rl_cache cache, uint32_t count, const rl_observer *observer,
                      double *device_us, rl_error *err) {
  (void)device;
  rl_auto(free_bytes) unsigned char *eviction_buffer = NULL;
  const size_t bytes = eviction_bytes();
  const int64_t once_ns = rl_sequence_restore(sequence, NULL, err) < 0 ? -1 : time_repeats_ns(sequence, 1, err);
  if (once_ns < 0) return -1;
  const int64_t repeats = cache == RL_CACHE_WARM && !sequence->restore_launch ? warm_repeats(once_ns) : 1;
  if (cache == RL_CACHE_COLD) {
    eviction_buffer = malloc(bytes);
    if (!eviction_buffer) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for emptying the caches");
    memset(eviction_buffer, 1, bytes); /* untouched pages would all be the one zero page */
  }
  for (uint32_t i = 0; i < count; i++) {
    if (rl_observer_cancelled(observer, err) < 0 || rl_sequence_restore(sequence, NULL, err) < 0) return -1;
    if (eviction_buffer) evict_caches(eviction_buffer, bytes);
    const int64_t sample_ns = time_repeats_ns(sequence, repeats, err);
    if (sample_ns < 0) return -1;
    device_us[i] = (double)sample_ns * 1e-3 / (double)repeats;
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
