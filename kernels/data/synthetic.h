/* Digits rendered from strokes, for hosts without the MNIST files. */
#ifndef RL_DATA_SYNTHETIC_H
#define RL_DATA_SYNTHETIC_H

#include <stdint.h>

#include "base/error.h"

/* Renders images[count][28][28] and labels[count]. An image depends on the seed and its index alone; the bytes are the same on
 * every machine. */
int rl_synthetic_render(uint64_t seed, uint32_t count, uint8_t *images, uint8_t *labels, rl_error *err);

#endif
