/* Declarations that the definition of the Lomb-Scargle operator (lombscargle.c) and its CUDA engine (lombscargle.cu) share. */
#ifndef RL_KERNELS_KERNEL_LOMBSCARGLE_H
#define RL_KERNELS_KERNEL_LOMBSCARGLE_H

#include "kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_LOMBSCARGLE_SAMPLES = 0, RL_LOMBSCARGLE_FREQUENCIES = 1 };                      /* sizes of the shape */
enum { RL_LOMBSCARGLE_TIME = 0, RL_LOMBSCARGLE_VALUE = 1, RL_LOMBSCARGLE_FREQUENCY = 2 }; /* indices of the inputs */

/* Times lie in [0, RL_LOMBSCARGLE_TIME_SPAN). Frequency i is RL_LOMBSCARGLE_FIRST_FREQUENCY + i ·
 * rl_lombscargle_frequency_step(frequencies). */
#define RL_LOMBSCARGLE_TIME_SPAN 31.415926535897932
#define RL_LOMBSCARGLE_FIRST_FREQUENCY 0.01
#define RL_LOMBSCARGLE_LAST_FREQUENCY 10.0
static inline double rl_lombscargle_frequency_step(int64_t frequencies) {
  return frequencies > 1 ? (RL_LOMBSCARGLE_LAST_FREQUENCY - RL_LOMBSCARGLE_FIRST_FREQUENCY) / (double)(frequencies - 1) : 0;
}

#ifdef __cplusplus
}
#endif
#endif
