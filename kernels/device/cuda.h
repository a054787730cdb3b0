/* Declarations that the files of the CUDA device share. The device has one stream, counts its allocations by purpose, and runs
 * sequences as captured graphs. Only .cu files include this header. Call all functions on the device's thread. Functions that
 * return int return 0, or -1 with err. */
#ifndef RL_DEVICE_CUDA_H
#define RL_DEVICE_CUDA_H

#include "cuda_check.h"
#include "device/device.h"

/* Maximum number of graph launches that are queued and not finished. It bounds the delay of a cancellation. */
enum { RL_CUDA_MAX_IN_FLIGHT = 32 };

typedef struct rl_cuda_allocation rl_cuda_allocation;

typedef struct rl_cuda_device {
  rl_device base;
  rl_cuda_allocation *allocations;                    /* linked list */
  cudaEvent_t start, stop;                            /* recorded before and after the work of a run */
  cudaEvent_t progress_events[RL_CUDA_MAX_IN_FLIGHT]; /* ring buffer: each is recorded after one of the last graph launches */
} rl_cuda_device;

/* A graph that contains repeats_per_launch repeats of a sequence and is launched launch_count times. */
typedef struct rl_cuda_repeated_graph {
  cudaGraphExec_t graph_exec; /* NULL: repeats_per_launch or launch_count is 0 */
  uint64_t repeats_per_launch, launch_count;
  uint64_t nodes; /* kernel, memcpy and memset nodes of the graph */
} rl_cuda_repeated_graph;

static inline rl_cuda_device *rl_cuda_device_of(rl_device *device) { return (rl_cuda_device *)device; }
static inline cudaStream_t rl_cuda_stream(const rl_device *device) { return (cudaStream_t)device->stream; }

/* Waits until the stream is idle. operation: the call in words, for the error message. */
int rl_cuda_wait(rl_device *device, const char *operation, rl_error *err);
/* Fails when the system has no device `index`. */
int rl_cuda_check_index(int index, rl_error *err);
/* Captures, instantiates and uploads the graph. Does nothing when repeats_per_launch or launch_count is 0. *created must be
 * zeroed; the caller destroys created->graph_exec, also after a failure. */
int rl_cuda_repeated_graph_create(rl_device *device, const rl_sequence *sequence, uint64_t repeats_per_launch,
                                  uint64_t launch_count, rl_cuda_repeated_graph *created, rl_error *err);
/* Captures one repeat of a sequence and counts its kernel, memcpy and memset nodes. */
int rl_cuda_count_nodes(rl_device *device, const rl_sequence *sequence, uint64_t *nodes, rl_error *err);

/* Implementations of members of rl_device_ops. */
int rl_cuda_instantiate(rl_device *device, const rl_sequence_list *sequence_list, rl_executable **executable, rl_error *err);
void rl_cuda_free_executable(rl_device *device, rl_executable *executable);
int rl_cuda_run(rl_device *device, rl_executable *executable, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err);
int rl_cuda_run_eager(rl_device *device, const rl_sequence_list *sequence_list, const rl_observer *observer, rl_elapsed *elapsed,
                      rl_error *err);
int rl_cuda_sample(rl_device *device, const rl_sequence *sequence, rl_cache_state cache, uint32_t count,
                   const rl_observer *observer, double *device_us, rl_error *err);

#endif
