/* What a workload may ask of the device it runs on, and how a list of named launches is run there. One implementation per
 * kind of device: cpu*.c and cuda*.cu; device.c, launches.c and ranges.c are of both. A device belongs to one thread. Running a
 * list, capturing it into a graph, marking it with NVTX and timing it happen here, once, and never in a workload. */
#ifndef RL_DEVICE_DEVICE_H
#define RL_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_device_kind { RL_DEVICE_CPU, RL_DEVICE_CUDA } rl_device_kind;

/* What memory is for; peak memory is reported by purpose. */
typedef enum rl_purpose {
  RL_MEMORY_DATASET,     /* images and labels, resident */
  RL_MEMORY_WEIGHTS,     /* parameters, gradients and optimizer state */
  RL_MEMORY_ACTIVATIONS, /* what forward keeps for backward, and the batch */
  RL_MEMORY_WORKSPACE,   /* scratch of libraries and kernels */
  RL_MEMORY_PURPOSE_COUNT
} rl_purpose;
extern const char *const rl_purpose_names[]; /* "dataset" "weights" "activations" "workspace", NULL */

typedef struct rl_memory { /* bytes asked for through rl_device_ops.allocate */
  uint64_t bytes[RL_MEMORY_PURPOSE_COUNT], peak_bytes[RL_MEMORY_PURPOSE_COUNT];
  uint64_t total_bytes, peak_total_bytes;
} rl_memory;

/* Where launches go: the cudaStream_t on CUDA, NULL on the CPU (launches run at once). */
typedef void *rl_stream;

/* One named launch: a piece of work that the device does in order. It takes no argument that changes between
 * iterations (counters live on the device), so that a captured graph of it can be replayed for ever. */
typedef struct rl_launch {
  const char *name;  /* "conv2_forward": stable, a key in the store */
  const char *range; /* NVTX range and phase: "data" "forward" "backward" "optimizer" "kernel" */
  int (*enqueue)(void *arg, rl_stream stream, rl_error *err);
  void *arg;
} rl_launch;

typedef struct rl_sequence { /* an ordered list of launches, done `repeat` times in a row */
  const char *name;          /* "begin" "step" "tail" "evaluate" */
  const rl_launch *launches;
  size_t launch_count;
  uint64_t repeat;
  const rl_launch *restore_launch; /* goes before each repeat, so that it finds what the first one found; no part of a sample's
                               time. NULL: a repeat changes nothing that the next one reads, or is to read what it changed */
} rl_sequence;

typedef struct rl_program { /* one iteration of a workload: for training, one epoch */
  const char *name;         /* outer NVTX range: "epoch" "evaluation" */
  const rl_sequence *sequences;
  size_t sequence_count;
} rl_program;

typedef struct rl_span { /* one launch as the host saw it; times from rl_monotonic_ns */
  const rl_launch *launch;
  int64_t start_ns, end_ns;
} rl_span;

/* Called from rl_device_ops.run. Any member may be NULL. */
typedef struct rl_observer {
  void *context;
  bool (*cancelled)(void *context);                               /* asked at least every 100 ms of host time */
  void (*progress)(void *context, uint64_t done, uint64_t total); /* repeats done; on CUDA: only where no wait is needed */
  void (*span)(void *context, const rl_span *span);               /* CPU: every launch */
} rl_observer;

typedef struct rl_elapsed {
  double device_ms;  /* between events on the device; on the CPU the same as host_ms */
  double host_ms;    /* from before the first launch until the device is idle */
  uint64_t launches; /* device launches issued: kernels, copies and sets, counted in graph nodes; CPU: without what restores */
} rl_elapsed;

typedef enum rl_cache { RL_CACHE_COLD, RL_CACHE_WARM } rl_cache;

typedef struct rl_device rl_device;
typedef struct rl_plan rl_plan; /* a program made ready to run: captured graphs on CUDA */

typedef struct rl_device_ops {
  /* bytes of uninitialised device memory, 256-byte aligned; the CPU's is malloc'ed. Counted in device->memory. */
  int (*allocate)(rl_device *device, rl_purpose purpose, size_t bytes, void **memory, rl_error *err);
  void (*release)(rl_device *device, void *memory); /* NULL is allowed */
  /* Synchronous copies. */
  int (*upload)(rl_device *device, void *to, const void *from_host, size_t bytes, rl_error *err);
  int (*download)(rl_device *device, void *to_host, const void *from, size_t bytes, rl_error *err);
  int (*zero)(rl_device *device, void *memory, size_t bytes, rl_error *err);
  /* Make a program ready. program and what it points to must outlive the plan. */
  int (*plan)(rl_device *device, const rl_program *program, rl_plan **plan, rl_error *err);
  void (*plan_free)(rl_device *device, rl_plan *plan);
  /* Run it once and wait until the device is idle. -1 with domain RL_SYS, code ECANCELED when cancelled() said so. */
  int (*run)(rl_device *device, rl_plan *plan, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err);
  /* Run it once launch by launch on the stream, without a graph, each launch inside the NVTX ranges of its phase and name. */
  int (*run_eager)(rl_device *device, const rl_program *program, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err);
  void (*close)(rl_device *device);
  /* Time one repeat of a sequence, `count` times, into device_us[count]. RL_CACHE_COLD: before each, so much other memory is
   * read that the last cache holds nothing of the sequence's. RL_CACHE_WARM: repeats follow one another closely, and a sample
   * is the mean of so many that the clock's resolution does not matter; the gaps between them are part of it. Where the state
   * has to be restored before each, a warm sample too is of one repeat, and finds in the caches what restoring left there. On
   * CUDA a sample lies between two events, whose own cost is part of it, and several launches are one graph, so that the device
   * never waits for the host. NULL: this device can't. -1 with ECANCELED as run. */
  int (*sample)(rl_device *device, const rl_sequence *sequence, rl_cache cache, uint32_t count, const rl_observer *observer,
                double *device_us, rl_error *err);
} rl_device_ops;

struct rl_device {
  const rl_device_ops *ops;
  rl_device_kind kind;
  int index;   /* CUDA ordinal; 0 on the CPU */
  char id[16]; /* "cpu" "gpu0": the name in the API */
  rl_stream stream;
  int threads; /* CPU: worker threads; 0 on CUDA */
  rl_memory memory;
  const rl_observer *observer; /* of whoever waits for what is done now; NULL: no one. Asked where no run takes one: while an
                                  instance is opened and checked. */
  /* Takes what a compiler said of code that is being made ready, at most 64 KiB; NULL: nobody does. */
  void (*log)(const char *text);
};

/* -1 with RL_SYS, ECANCELED when the device's observer says so. On the device's thread. */
int rl_device_cancelled(const rl_device *device, rl_error *err);

/* Bookkeeping for implementations of allocate and release. */
void rl_memory_add(rl_memory *memory, rl_purpose purpose, size_t bytes);
void rl_memory_remove(rl_memory *memory, rl_purpose purpose, size_t bytes);

/* Open the device; NULL and err when it is not usable. Each worker program links exactly one of these. */
rl_device *rl_device_open(int index, rl_error *err);
/* How many devices of this program's kind there are; 0 with err saying why (no driver, no device, library missing). */
int rl_device_count(rl_error *err);
/* Facts of device `index` as compact JSON text of one object (name, uuid, driver, library versions, SM count, clocks,
 * memory_bytes, ...; on the CPU: model name, cores, threads, ISA, caches, OpenBLAS build); keys carry units.
 * malloc'ed, the caller frees; NULL and err when it can't be read. Must work before rl_device_open. */
char *rl_device_facts(int index, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
