/* Adam's update of one parameter, and the update of the training state after a step (Kingma & Ba 2015, algorithm 1, in the order
 * of operations of torch.optim.Adam). */
#ifndef RL_TRAIN_CUDA_ADAM_H
#define RL_TRAIN_CUDA_ADAM_H

#include "train/cuda/kernels.h"

/* Offsets and sizes of tensors in rl_adam.weights. conv1.weight and conv1.bias begin at offset 0. The head is fc1.bias,
 * fc2.weight and fc2.bias. */
enum {
  CONV2_OFFSET = RL_CONV1_CHANNELS * 10,
  CONV2_COUNT = RL_CONV2_CHANNELS * RL_CONV1_CHANNELS * 9,
  CONV2_BIAS_OFFSET = CONV2_OFFSET + CONV2_COUNT,
  FC1_OFFSET = CONV2_BIAS_OFFSET + RL_CONV2_CHANNELS,
  FC1_COUNT = RL_FC1_OUTPUTS * RL_FC1_INPUTS,
  HEAD_OFFSET = FC1_OFFSET + FC1_COUNT
};
static_assert(HEAD_OFFSET + RL_HEAD_PARAMETERS == RL_PARAMETERS, "the tensors must add up to all parameters");

static const float BETA1 = 0.9f, BETA2 = 0.999f, EPSILON = 1e-8f;

/* Factors of Adam's update in a step, copied from rl_train_state. */
typedef struct adam_rates {
  float inverse_loss_scale, step_size, rsqrt_bias_correction2;
} adam_rates;

static __device__ __forceinline__ adam_rates adam_rates_of(const rl_train_state &state) {
  return {state.inverse_loss_scale, state.step_size, state.rsqrt_bias_correction2};
}

/* Returns the square root of v, with an error of up to 2 ulp. So does the division in adam_update_weight (PTX ISA 9.0, "sqrt",
 * "div"). That is less than the rounding error of the gradient. */
static __device__ __forceinline__ float approximate_sqrt(float v) {
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(v));
  return root;
}

/* Updates both moments and returns the new weight. gradient: still multiplied by the loss scale. */
static __device__ __forceinline__ float adam_update_weight(float weight, float gradient, float *first_moment,
                                                           float *second_moment, adam_rates rates) {
  gradient *= rates.inverse_loss_scale;
  *first_moment = *first_moment + (gradient - *first_moment) * (1.0f - BETA1);
  *second_moment = *second_moment * BETA2 + gradient * gradient * (1.0f - BETA2);
  return weight -
         __fdividef(rates.step_size * *first_moment, approximate_sqrt(*second_moment) * rates.rsqrt_bias_correction2 + EPSILON);
}

/* Updates the training state after a step of `batch` images. If state->overflow is set, the step was skipped, so Adam's step
 * number t stays the same. */
static __device__ __forceinline__ void advance_train_state(rl_train_state *state, float learning_rate, uint32_t batch) {
  state->step++;
  state->last_inverse_loss_scale = state->inverse_loss_scale;
  state->last_batch = batch;
  if (!state->overflow) {
    state->beta1_power *= BETA1;
    state->beta2_power *= BETA2;
    state->step_size = (float)(learning_rate / (1.0 - state->beta1_power));
    state->rsqrt_bias_correction2 = rsqrtf((float)(1.0 - state->beta2_power));
  }
  if (state->dynamic_loss_scale) {
    rl_loss_scale_update(&state->loss_scale, !state->overflow);
    state->inverse_loss_scale = 1.0f / state->loss_scale.scale;
  } else {
    state->loss_scale.skipped += state->overflow != 0;
  }
  state->overflow = 0;
}

#endif
