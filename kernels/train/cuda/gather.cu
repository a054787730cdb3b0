#include "cuda_check.h"
#include "train/cuda/kernels.h"

static __global__ void epoch_begin(rl_train_state *state, uint32_t *order, uint32_t count) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) order[i] = rl_permute(i, count, rl_shuffle_key(state->seed, state->epoch));
}

/* After every block has read the old epoch. */
static __global__ void epoch_count(rl_train_state *state) {
  state->epoch++;
  state->step = 0;
}

int rl_epoch_begin(rl_train_state *state, uint32_t *order, uint32_t count, cudaStream_t stream, rl_error *err) {
  epoch_begin<<<(count + 255) / 256, 256, 0, stream>>>(state, order, count);
  epoch_count<<<1, 1, 0, stream>>>(state);
  return rl_launch_ok("beginning an epoch", err);
}
