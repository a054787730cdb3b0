/* Dynamic loss scaling with the defaults of torch.amp.GradScaler, for host and device code. */
#ifndef RL_TRAIN_LOSS_SCALE_H
#define RL_TRAIN_LOSS_SCALE_H

#include <stdbool.h>

#include "train/model.h"

typedef struct rl_loss_scale {
  float scale;
  uint32_t good;    /* consecutive steps with finite gradients */
  uint32_t skipped; /* steps that were not applied since reset */
} rl_loss_scale;

#define RL_LOSS_SCALE_START 65536.0f
enum { RL_LOSS_SCALE_PATIENCE = 2000 };

/* Call once a step. finite: all gradients are finite, so the step is applied; otherwise it is skipped. */
RL_HOST_DEVICE void rl_loss_scale_update(rl_loss_scale *state, bool finite) {
  if (!finite) {
    state->scale *= 0.5f;
    state->good = 0;
    state->skipped++;
  } else if (++state->good == RL_LOSS_SCALE_PATIENCE) {
    state->scale *= 2;
    state->good = 0;
  }
}

#endif
