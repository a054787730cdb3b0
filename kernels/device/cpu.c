/* The CPU device. A launch is a function call on the caller's thread; the function itself distributes its work over threads. */
#include <cblas.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "device/cpu.h"
#include "device/launches.h"
#include "device/ranges.h"

RL_DEFINE_CLEANUP(free_bytes, unsigned char *, free, NULL)

enum { ALIGNMENT = 256 };

typedef struct allocation_header { /* stored in the ALIGNMENT bytes before the pointer that cpu_allocate returns */
  size_t bytes;
  rl_memory_purpose purpose;
} allocation_header;

struct rl_executable {
  const rl_sequence_list *sequence_list;
};

/* --- memory ------------------------------------------------------------------------------------------------------------ */

/* Implements rl_device_ops.allocate. Refuses more bytes than the physical memory has: Linux would overcommit, and its OOM killer
 * would end a process once the pages are written. */
static int cpu_allocate(rl_device *device, rl_memory_purpose purpose, size_t bytes, void **memory, rl_error *err) {
  unsigned char *base = NULL;
  if (bytes <= rl_cpu_memory_bytes()) base = aligned_alloc(ALIGNMENT, (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  if (!base) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory: %zu bytes for %s", bytes, rl_memory_purpose_names[purpose]);
  *(allocation_header *)base = (allocation_header){.bytes = bytes, .purpose = purpose};
  rl_memory_usage_add(&device->memory_usage, purpose, bytes);
  *memory = base + ALIGNMENT;
  return 0;
}

static void cpu_release(rl_device *device, void *memory) {
  if (!memory) return;
  allocation_header *header = (allocation_header *)((unsigned char *)memory - ALIGNMENT);
  rl_memory_usage_remove(&device->memory_usage, header->purpose, header->bytes);
  free(header);
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

static int cpu_fill(rl_device *device, void *memory, uint8_t byte, size_t bytes, rl_error *err) {
  (void)device, (void)err;
  memset(memory, byte, bytes);
  return 0;
}

/* --- running ----------------------------------------------------------------------------------------------------------- */

static int cpu_instantiate(rl_device *device, const rl_sequence_list *sequence_list, rl_executable **executable, rl_error *err) {
  (void)device;
  rl_executable *created = malloc(sizeof *created);
  if (!created) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for an executable");
  created->sequence_list = sequence_list;
  *executable = created;
  return 0;
}

static void cpu_free_executable(rl_device *device, rl_executable *executable) {
  (void)device;
  free(executable);
}

static int run_sequences(const rl_sequence_list *sequence_list, const rl_observer *observer, uint64_t *launches, rl_error *err) {
  uint64_t repeats_done = 0, total_repeats = 0;
  for (size_t i = 0; i < sequence_list->sequence_count; i++) total_repeats += sequence_list->sequences[i].repeat;
  for (size_t i = 0; i < sequence_list->sequence_count; i++) {
    const rl_sequence *sequence = &sequence_list->sequences[i];
    for (uint64_t repeat = 0; repeat < sequence->repeat; repeat++) {
      if (rl_sequence_run_once(sequence, NULL, observer, err) < 0) return -1;
      *launches += sequence->launch_count;
      repeats_done++;
      if (observer && observer->progress) observer->progress(observer->context, repeats_done, total_repeats);
    }
  }
  return 0;
}

static int cpu_run_eager(rl_device *device, const rl_sequence_list *sequence_list, const rl_observer *observer,
                         rl_elapsed *elapsed, rl_error *err) {
  (void)device;
  uint64_t launches = 0;
  int64_t start = rl_monotonic_ns();
  rl_nvtx_range_push(sequence_list->name);
  int rc = run_sequences(sequence_list, observer, &launches, err);
  rl_nvtx_range_pop();
  if (rc < 0) return -1;
  double host_ms = (double)(rl_monotonic_ns() - start) * 1e-6;
  *elapsed = (rl_elapsed){.device_ms = host_ms, .host_ms = host_ms, .stream_operations = launches};
  return 0;
}

static int cpu_run(rl_device *device, rl_executable *executable, const rl_observer *observer, rl_elapsed *elapsed,
                   rl_error *err) {
  return cpu_run_eager(device, executable->sequence_list, observer, elapsed, err);
}

/* --- samples ----------------------------------------------------------------------------------------------------------- */

/* Returns the size of the L3 cache that the first core uses; 0: not known. glibc's _SC_LEVEL3_CACHE_SIZE is the sum of all L3
 * caches of an AMD processor. */
static size_t l3_bytes(void) {
  size_t kib = 0;
  FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
  if (file == NULL) return 0;
  if (fscanf(file, "%zuK", &kib) != 1) kib = 0;
  fclose(file);
  return kib << 10;
}

/* Returns twice the size of the L3 cache, but at least 64 and at most 512 MiB. Returns 64 MiB if the size is not known. */
static size_t eviction_bytes(void) {
  const size_t minimum = (size_t)64 << 20, maximum = (size_t)512 << 20;
  const size_t bytes = 2 * l3_bytes();
  return bytes < minimum ? minimum : bytes > maximum ? maximum : bytes;
}

/* Returns memory for evict_caches, which the caller frees; NULL: out of memory. Uses huge pages: with them, the first write of 64
 * MiB takes 6 ms instead of 270 ms (AMD EPYC, in a virtual machine). */
static unsigned char *allocate_eviction_buffer(size_t bytes) {
  enum { PAGE_BYTES = 4096, HUGE_PAGE_BYTES = 2 << 20 };
  unsigned char *memory = aligned_alloc(HUGE_PAGE_BYTES, bytes);
  if (memory == NULL) return NULL;
  madvise(memory, bytes, MADV_HUGEPAGE);
  /* Writes to every page: all pages that were never written are the same page, the kernel's zero page, which evicts nothing. */
  for (size_t offset = 0; offset < bytes; offset += PAGE_BYTES) memory[offset] = 1;
  return memory;
}

static void evict_caches(const volatile unsigned char *memory, size_t bytes) {
  enum { LINE_BYTES = 64 };
  for (size_t offset = 0; offset < bytes; offset += LINE_BYTES) (void)memory[offset];
}

/* Runs `repeats` repeats of a sequence without its restore_launch. Returns their total time in nanoseconds, or -1 with err. */
static int64_t time_repeats_ns(const rl_sequence *sequence, int64_t repeats, rl_error *err) {
  int64_t start = rl_monotonic_ns();
  for (int64_t repeat = 0; repeat < repeats; repeat++)
    for (size_t i = 0; i < sequence->launch_count; i++)
      if (rl_launch_enqueue(&sequence->launches[i], NULL, err) < 0) return -1;
  return rl_monotonic_ns() - start;
}

/* Returns the number of repeats in a warm sample: enough for 0.2 ms, but at most 1000. once_ns: time of one repeat. */
static int64_t warm_repeats(int64_t once_ns) {
  enum { MIN_SAMPLE_NS = 200000, MAX_REPEATS = 1000 };
  if (once_ns >= MIN_SAMPLE_NS) return 1;
  return once_ns > MIN_SAMPLE_NS / MAX_REPEATS ? MIN_SAMPLE_NS / once_ns + 1 : MAX_REPEATS;
}

static int cpu_sample(rl_device *device, const rl_sequence *sequence, rl_cache_state cache, uint32_t count,
                      const rl_observer *observer, double *device_us, rl_error *err) {
  (void)device;
  RL_CLEANUP(free_bytes) unsigned char *eviction_buffer = NULL;
  const size_t bytes = eviction_bytes();
  const int64_t once_ns = rl_sequence_restore(sequence, NULL, err) < 0 ? -1 : time_repeats_ns(sequence, 1, err);
  if (once_ns < 0) return -1;
  const int64_t repeats = cache == RL_CACHE_WARM && !sequence->restore_launch ? warm_repeats(once_ns) : 1;
  if (cache == RL_CACHE_COLD) {
    eviction_buffer = allocate_eviction_buffer(bytes);
    if (!eviction_buffer) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for emptying the caches");
  }
  for (uint32_t i = 0; i < count; i++) {
    rl_sequence_pause(sequence);
    if (rl_observer_check_cancellation(observer, err) < 0 || rl_sequence_restore(sequence, NULL, err) < 0) return -1;
    if (eviction_buffer) evict_caches(eviction_buffer, bytes);
    const int64_t sample_ns = time_repeats_ns(sequence, repeats, err);
    if (sample_ns < 0) return -1;
    device_us[i] = (double)sample_ns * 1e-3 / (double)repeats;
    if (rl_sequence_check(sequence, NULL, err) < 0) return -1;
  }
  return 0;
}

static void cpu_close(rl_device *device) { free(device); }

static const rl_device_ops cpu_ops = {.allocate = cpu_allocate,
                                      .release = cpu_release,
                                      .upload = cpu_upload,
                                      .download = cpu_download,
                                      .fill = cpu_fill,
                                      .instantiate = cpu_instantiate,
                                      .free_executable = cpu_free_executable,
                                      .run = cpu_run,
                                      .run_eager = cpu_run_eager,
                                      .close = cpu_close,
                                      .sample = cpu_sample};

/* --- opening ----------------------------------------------------------------------------------------------------------- */

rl_device *rl_device_open(int index, rl_error *err) {
  if (index != 0) {
    rl_fail(err, RL_INPUT, 0, "there is only one CPU device, \"cpu\"");
    return NULL;
  }
  int threads = rl_cpu_threads(err);
  if (threads < 0) return NULL;
  rl_device *device = calloc(1, sizeof *device);
  if (!device) {
    rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the device");
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
