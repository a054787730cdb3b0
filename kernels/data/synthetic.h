/* Digits rendered from strokes, for hosts without the MNIST files. */
#ifndef RL_DATA_SYNTHETIC_H
#define RL_DATA_SYNTHETIC_H

#include <stdint.h>

#include "base/error.h"

/* Renders images[count][28][28] and labels[count]. An image and its label depend only on the seed and their index, and are the
 * same on every machine. Returns 0, or -1 with err. */
int rl_synthetic_render(uint64_t seed, uint32_t count, uint8_t *images, uint8_t *labels, rl_error *err);

#endif
