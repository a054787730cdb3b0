/* Adam for one parameter, and the training state from one step to the next (Kingma & Ba 2015, algorithm 1, in torch.optim.Adam's
 * order of operations). */
#ifndef RL_TRAIN_CUDA_ADAM_H
#define RL_TRAIN_CUDA_ADAM_H

#include "train/cuda/kernels.h"

static const float BETA1 = 0.9f, BETA2 = 0.999f, EPSILON = 1e-8f;

typedef struct rates {
  float inverse_scale, step_size, inverse_root;
} rates;

static __device__ __forceinline__ rates rates_of(const rl_train_state &state) {
  return {state.inverse_scale, state.step_size, state.inverse_root};
}

/* Both approximate to two units of the last place (PTX ISA 9.0, "sqrt", "div"): what rounds is the gradient. */
static __device__ __forceinline__ float root(float v) {
  float made;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(v));
  return made;
}

static __device__ __forceinline__ float updated(float weight, float gradient, float *first, float *second, rates r) {
  gradient *= r.inverse_scale;
  *first = *first + (gradient - *first) * (1.0f - BETA1);
  *second = *second * BETA2 + gradient * gradient * (1.0f - BETA2);
  return weight - __fdividef(r.step_size * *first, root(*second) * r.inverse_root + EPSILON);
}

/* After a step of `batch` images, which was skipped where s->overflow says so. */
static __device__ __forceinline__ void end_step(rl_train_state *s, float learning_rate, uint32_t batch) {
  s->step++;
  s->last_inverse_scale = s->inverse_scale;
  s->last_batch = batch;
  if (!s->overflow) {
    s->beta1_power *= BETA1;
    s->beta2_power *= BETA2;
    s->step_size = (float)(learning_rate / (1.0 - s->beta1_power));
    s->inverse_root = rsqrtf((float)(1.0 - s->beta2_power));
  }
  if (s->dynamic_scale) {
    rl_loss_scale_update(&s->scale, !s->overflow);
    s->inverse_scale = 1.0f / s->scale.scale;
  }
  s->overflow = 0;
}

#endif
