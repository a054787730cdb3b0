/* The device abstraction: allocates memory and runs lists of named launches. cpu*.c and cuda*.cu implement it; both use device.c,
 * launches.c and ranges.c. Workloads do not capture launches into graphs, push NVTX ranges or measure times; this module does.
 * One exception: library/tune.cu captures and times launches itself, to compare algorithms while an instance is opened. Only one
 * thread, the device's thread, uses a device. */
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

/* What allocated memory is for. Peak memory is reported for each purpose. */
typedef enum rl_memory_purpose {
  RL_MEMORY_DATASET,     /* images and labels */
  RL_MEMORY_WEIGHTS,     /* parameters, gradients and optimizer state */
  RL_MEMORY_ACTIVATIONS, /* values that the forward pass keeps for the backward pass, and the batch */
  RL_MEMORY_WORKSPACE,   /* temporary memory of libraries and kernels */
  RL_MEMORY_PURPOSE_COUNT
} rl_memory_purpose;
extern const char *const rl_memory_purpose_names[]; /* "dataset" "weights" "activations" "workspace", NULL */

typedef struct rl_memory_usage { /* bytes requested from rl_device_ops.allocate */
  uint64_t bytes[RL_MEMORY_PURPOSE_COUNT], peak_bytes[RL_MEMORY_PURPOSE_COUNT];
  uint64_t total_bytes, peak_total_bytes;
} rl_memory_usage;

/* CUDA: a cudaStream_t. CPU: NULL, because a launch runs at once on the caller's thread. */
typedef void *rl_stream;

/* A named unit of work, executed in stream order. Its arguments are the same in every iteration, so that it can be captured into
 * a graph once and replayed any number of times. Values that change, such as the step number, are kept in device memory. */
typedef struct rl_launch {
  const char *name; /* "conv2_forward": a key in the store, so it must not change */
  /* NVTX range of the launch, also its phase in the results: "data" "forward" "backward" "optimizer" "kernel". */
  const char *nvtx_range;
  int (*enqueue)(void *arg, rl_stream stream, rl_error *err);
  void *arg;
} rl_launch;

enum { RL_PAUSE_MS_MAX = 100 };

typedef struct rl_sequence { /* a list of launches, run in order, `repeat` times */
  const char *name;          /* "begin" "step" "tail" "evaluate" */
  const rl_launch *launches;
  size_t launch_count;
  uint64_t repeat;
  /* Runs before each repeat and puts back the initial state, so that every repeat reads the same inputs. Its time is not part of
   * a sample. NULL: repeats are independent, or each repeat continues from the state that the previous one left (training). */
  const rl_launch *restore_launch;
  /* CUDA: the host enqueues each launch separately and never captures launches into a graph. Samples begin on an idle device, so
   * that they include the time in which the device waits for the host. */
  bool enqueued_individually;
  const rl_launch *check_launch; /* runs after each repeat that `sample` times; its time is not part of the sample. NULL: none */
  uint32_t pause_ms;             /* time for which `sample` leaves the device idle before each sample; at most RL_PAUSE_MS_MAX */
} rl_sequence;

typedef struct rl_sequence_list { /* sequences that run in this order: an iteration (training: one epoch) or an evaluation */
  const char *name;               /* outer NVTX range: "epoch" "evaluation" */
  const rl_sequence *sequences;
  size_t sequence_count;
} rl_sequence_list;

typedef struct rl_span { /* host times of one launch, from rl_monotonic_ns */
  const rl_launch *launch;
  int64_t start_ns, end_ns;
} rl_span;

/* Callbacks from rl_device_ops.run, on the device's thread. Any member may be NULL. */
typedef struct rl_observer {
  void *context;
  bool (*cancelled)(void *context); /* called at least every 100 ms of host time; true ends the run */
  /* done, total: numbers of repeats. The device may have finished more than `done` repeats, because it is not synchronised for
   * each call. */
  void (*progress)(void *context, uint64_t done, uint64_t total);
  void (*span)(void *context, const rl_span *span); /* CPU: called after every launch; CUDA: never */
} rl_observer;

typedef struct rl_elapsed {
  double device_ms; /* CUDA: between events; CPU: equal to host_ms */
  double host_ms;   /* time from before the first launch until the device is idle */
  /* CUDA: number of kernels, copies and memsets. CPU: number of launches; restore launches are not counted. */
  uint64_t stream_operations;
} rl_elapsed;

typedef enum rl_cache_state { RL_CACHE_COLD, RL_CACHE_WARM } rl_cache_state;

typedef struct rl_device rl_device;
typedef struct rl_executable rl_executable; /* a sequence list that is ready to run: on CUDA captured graphs */

/* Members that return int return 0, or -1 with err. */
typedef struct rl_device_ops {
  /* Allocates uninitialised memory, aligned to 256 bytes, and counts it in device->memory_usage. */
  int (*allocate)(rl_device *device, rl_memory_purpose purpose, size_t bytes, void **memory, rl_error *err);
  void (*release)(rl_device *device, void *memory); /* NULL is allowed */
  /* upload and download copy `bytes` bytes, fill sets `bytes` bytes to the value `byte`. All three return when the device has
   * finished. */
  int (*upload)(rl_device *device, void *to, const void *from_host, size_t bytes, rl_error *err);
  int (*download)(rl_device *device, void *to_host, const void *from, size_t bytes, rl_error *err);
  int (*fill)(rl_device *device, void *memory, uint8_t byte, size_t bytes, rl_error *err);
  /* Prepares a sequence list to run; CUDA: captures graphs. The list and all that it points to must outlive the executable. */
  int (*instantiate)(rl_device *device, const rl_sequence_list *sequence_list, rl_executable **executable, rl_error *err);
  void (*free_executable)(rl_device *device, rl_executable *executable);
  /* Runs an executable once and waits until the device is idle. Returns -1 with RL_ERRNO, ECANCELED when cancelled() returned
   * true. */
  int (*run)(rl_device *device, rl_executable *executable, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err);
  /* The same as run, without graphs: enqueues each launch once per repeat, inside NVTX ranges with its nvtx_range and its
   * name. */
  int (*run_eager)(rl_device *device, const rl_sequence_list *sequence_list, const rl_observer *observer, rl_elapsed *elapsed,
                   rl_error *err);
  void (*close)(rl_device *device);
  /* Takes `count` samples of the time of one repeat of a sequence and stores them, in microseconds, in device_us[count]. Can be
   * cancelled like run.
   *   RL_CACHE_COLD  evicts the sequence's data from the last-level cache before each sample, by reading other memory.
   *   RL_CACHE_WARM  a sample is the total time of back-to-back repeats, with the gaps between them, divided by their number. The
   *                  number is so large that the clock's resolution does not matter. If the sequence has a restore_launch, a
   *                  sample is one repeat, and the caches hold the data that the restore_launch left in them.
   * On CUDA a sample is the time between two events and includes their cost. A sequence of more than one launch is captured
   * into one graph, so that the device does not wait for the host between launches, unless it is enqueued_individually. NULL:
   * the device can't sample. */
  int (*sample)(rl_device *device, const rl_sequence *sequence, rl_cache_state cache, uint32_t count, const rl_observer *observer,
                double *device_us, rl_error *err);
} rl_device_ops;

struct rl_device {
  const rl_device_ops *ops;
  rl_device_kind kind;
  int index;   /* CUDA ordinal; 0 on the CPU */
  char id[16]; /* "cpu" "gpu0": the name in the API */
  rl_stream stream;
  int threads; /* CPU: threads of the pool; 0 on CUDA */
  rl_memory_usage memory_usage;
  /* Observer of the current request; NULL: none. Opening and checking an instance use it, because they have no observer
   * argument. */
  const rl_observer *observer;
  /* Receives a compiler's log of at most 64 KiB while an instance is opened; NULL: logs are dropped. */
  void (*on_compiler_log)(const char *text);
};

/* Returns -1 with RL_ERRNO, ECANCELED when the observer (NULL: none) asks to cancel. Called on the device's thread. */
int rl_observer_check_cancellation(const rl_observer *observer, rl_error *err);
int rl_device_check_cancellation(const rl_device *device, rl_error *err); /* the same for device->observer */

/* Add an allocation to the usage, or remove it. Implementations of rl_device_ops.allocate and release call them. */
void rl_memory_usage_add(rl_memory_usage *usage, rl_memory_purpose purpose, size_t bytes);
void rl_memory_usage_remove(rl_memory_usage *usage, rl_memory_purpose purpose, size_t bytes);

/* Each kind of device implements the next three functions; a worker program links one kind. */

/* Opens the device. Returns NULL with err when it is not usable. The caller closes it with ops->close. */
rl_device *rl_device_open(int index, rl_error *err);
/* Returns the number of devices of this kind. Returns 0 with the reason in err if there is no driver or no device, or if a
 * library is missing. */
int rl_device_count(rl_error *err);
/* Returns properties of device `index` as a compact JSON object. Keys of quantities end with their units. CUDA: name, uuid,
 * driver, library versions, SM count, clocks, memory_bytes, ...; CPU: model name, cores, threads, ISA, caches, OpenBLAS build.
 * The caller frees the text. Returns NULL with err when the properties can't be read. May be called before rl_device_open. */
char *rl_device_properties(int index, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
