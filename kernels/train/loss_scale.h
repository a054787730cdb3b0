/* Dynamic loss scaling with the defaults of torch.amp.GradScaler, for host and device code: the loss, and so every gradient, is
 * multiplied by a scale, so that small gradients do not underflow in FP16. */
#ifndef RL_TRAIN_LOSS_SCALE_H
#define RL_TRAIN_LOSS_SCALE_H

#include <stdbool.h>

#include "train/model.h"

typedef struct rl_loss_scale {
  float scale;
  uint32_t finite_steps; /* consecutive steps with finite gradients since the scale last changed */
  uint32_t skipped;      /* steps that were skipped since the reset; also counted where the scale stays 1 */
} rl_loss_scale;

#define RL_LOSS_SCALE_START 65536.0f
enum { RL_LOSS_SCALE_GROWTH_INTERVAL = 2000 };

/* Updates the scale after a step. finite: whether all gradients are finite. If they are not, the caller must skip the step. */
RL_HOST_DEVICE void rl_loss_scale_update(rl_loss_scale *state, bool finite) {
  if (!finite) {
    state->scale *= 0.5f;
    state->finite_steps = 0;
    state->skipped++;
  } else if (++state->finite_steps == RL_LOSS_SCALE_GROWTH_INTERVAL) {
    state->scale *= 2;
    state->finite_steps = 0;
  }
}

#endif
