/* The CUDA device from inside: one stream, memory by purpose, programs as captured graphs. Included by .cu files only; all of it
 * is of the device's thread. */
#ifndef RL_DEVICE_CUDA_H
#define RL_DEVICE_CUDA_H

#include "cuda_check.h"
#include "device/device.h"

enum { RL_CUDA_AHEAD = 8 }; /* graph launches queued before the host waits: bounds how late a cancellation is */

typedef struct rl_cuda_block rl_cuda_block; /* one allocation */

typedef struct rl_cuda_device {
  rl_device base;
  rl_cuda_block *blocks;
  cudaEvent_t start, stop, ring[RL_CUDA_AHEAD];
} rl_cuda_device;

typedef struct rl_cuda_piece { /* `copies` repeats of a sequence in one graph, launched `times` times */
  cudaGraphExec_t graph;
  uint64_t copies, times, nodes; /* nodes: kernels, copies and sets */
} rl_cuda_piece;

static inline rl_cuda_device *rl_cuda_own(rl_device *device) { return (rl_cuda_device *)device; }
static inline cudaStream_t rl_cuda_stream(const rl_device *device) { return (cudaStream_t)device->stream; }

/* Until the device is idle. */
int rl_cuda_wait(rl_device *device, const char *what, rl_error *err);
/* -1 where there is no such device. */
int rl_cuda_check_index(int index, rl_error *err);
/* A graph, captured and uploaded; none where copies or times are 0. Whoever asked destroys piece->graph, on failure too. */
int rl_cuda_make_piece(rl_device *device, const rl_sequence *sequence, uint64_t copies, uint64_t times, rl_cuda_piece *piece,
                       rl_error *err);
/* Kernels, copies and sets of one repeat, into *work. */
int rl_cuda_count_work(rl_device *device, const rl_sequence *sequence, uint64_t *work, rl_error *err);

/* Members of rl_device_ops. */
int rl_cuda_plan(rl_device *device, const rl_program *program, rl_plan **plan, rl_error *err);
void rl_cuda_plan_free(rl_device *device, rl_plan *plan);
int rl_cuda_run(rl_device *device, rl_plan *plan, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err);
int rl_cuda_run_eager(rl_device *device, const rl_program *program, const rl_observer *observer, rl_elapsed *elapsed,
                      rl_error *err);
int rl_cuda_sample(rl_device *device, const rl_sequence *sequence, rl_cache cache, uint32_t count, const rl_observer *observer,
                   double *device_us, rl_error *err);

#endif
