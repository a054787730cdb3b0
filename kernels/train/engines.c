/* Descriptions of the engines that train the MNIST CNN: the parameters that each supports, and when "auto" skips it. */
#include "train/engines.h"

#include <string.h>

#include "train/model.h"

/* Refuses tf32, which CPUs do not have. */
static int cpu_supports(const void *params, rl_error *err) {
  const rl_train_params *train = params;
  if (train->precision != RL_TF32) return 0;
  return rl_fail_at(err, "/precision", "tf32 needs the tensor cores of a GPU; the CPU trains in fp32 and fp16");
}

/* Returns true for parameters with which another engine is faster. Measured on an H200, in ms per epoch, persistent / fastest
 * other engine:
 *
 *   batch          64           512          4096
 *   FP32  27.7 / 62.6   31.2 / 45.8   32.5 / 39.7
 *   TF32  16.7 / 57.8   16.6 / 25.4   16.5 / 18.2
 *   FP16  13.4 / 24.0   12.2 /  5.8   11.9 /  3.6 */
static bool auto_skips_persistent(const void *params) {
  const rl_train_params *train = params;
  return train->precision == RL_FP16 && train->batch_size > 128;
}

/* Returns true for parameters with which cudnn is faster: in TF32, fused computes conv2 on FMA units and cudnn on tensor cores.
 * Measured on an H200 in TF32, in ms per epoch, fused / cudnn: 60.1 / 70.9 at batch 64, 47.8 / 43.1 at 128, 39.5 / 26.5 at
 * 512. */
static bool auto_skips_fused(const void *params) {
  const rl_train_params *train = params;
  return train->precision == RL_TF32 && train->batch_size >= 128;
}

const rl_engine_description rl_train_reference = {.name = "reference",
                                                  .workload = "mnist_cnn",
                                                  .device = RL_DEVICE_CPU,
                                                  .summary = "plain C in double precision on one thread: the reference",
                                                  .supports = cpu_supports};
const rl_engine_description rl_train_blas = {.name = "blas",
                                             .workload = "mnist_cnn",
                                             .device = RL_DEVICE_CPU,
                                             .summary = "im2col and OpenBLAS on all threads; vector loops for the rest",
                                             .supports = cpu_supports};
const rl_engine_description rl_train_cpu_fused = {
    .name = "fused",
    .workload = "mnist_cnn",
    .device = RL_DEVICE_CPU,
    .summary = "direct convolutions in AVX-512 or AVX2; backward from the pooled maxima alone",
    .supports = cpu_supports};
const rl_engine_description rl_train_cudnn = {
    .name = "cudnn",
    .workload = "mnist_cnn",
    .device = RL_DEVICE_CUDA,
    .summary = "cuDNN convolutions, cuBLASLt products and fused kernels in one CUDA graph"};
const rl_engine_description rl_train_fused = {.name = "fused",
                                              .workload = "mnist_cnn",
                                              .device = RL_DEVICE_CUDA,
                                              .summary = "conv2 by kernels that keep its product on chip, in one CUDA graph",
                                              .skipped_by_auto = auto_skips_fused};

const rl_engine_description rl_train_persistent = {.name = "persistent",
                                                   .workload = "mnist_cnn",
                                                   .device = RL_DEVICE_CUDA,
                                                   .summary = "all steps of an epoch in one launch, weights and moments on chip",
                                                   .skipped_by_auto = auto_skips_persistent};

const rl_engine_description *const rl_train_engines[] = {
    &rl_train_reference, &rl_train_blas, &rl_train_cudnn, &rl_train_cpu_fused, &rl_train_fused, &rl_train_persistent, NULL};

/* The names are those of phases of the engine persistent (cuda/persistent.h). */
bool rl_train_phase_is_exchange(const char *phase) {
  static const char *const names[] = {"conv2_weights", "fc1_inputs",   "fc1_gradients", "forward_barrier",
                                      "store_sums",    "rows_barrier", "add_rows",      "votes"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(phase, names[i]) == 0) return true;
  return false;
}
