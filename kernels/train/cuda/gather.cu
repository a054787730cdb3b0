/* Implements rl_epoch_begin (kernels.h): shuffles the order of the images, with one thread for each image. */
#include "cuda_check.h"
#include "train/cuda/kernels.h"

static __global__ void shuffle(rl_train_state *state, uint32_t *order, uint32_t count) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) order[i] = rl_permute(i, count, rl_shuffle_key(state->seed, state->epoch));
}

/* WAR: a separate kernel, because every block of `shuffle` must read state->epoch before it is incremented. */
static __global__ void next_epoch(rl_train_state *state) {
  state->epoch++;
  state->step = 0;
}

int rl_epoch_begin(rl_train_state *state, uint32_t *order, uint32_t count, cudaStream_t stream, rl_error *err) {
  shuffle<<<(count + 255) / 256, 256, 0, stream>>>(state, order, count);
  next_epoch<<<1, 1, 0, stream>>>(state);
  return rl_cuda_check_launch("beginning an epoch", err);
}
