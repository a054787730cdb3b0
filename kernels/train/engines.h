/* Descriptions of the training engines. They are separate from the engines' code, so that the daemon can link them. A new engine
 * needs a description here, its code, and an entry in engines_cpu.c or engines_cuda.cu. */
#ifndef RL_TRAIN_ENGINES_H
#define RL_TRAIN_ENGINES_H

#include <stdbool.h>

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const rl_engine_description rl_train_reference, rl_train_blas, rl_train_cpu_fused;
extern const rl_engine_description rl_train_cudnn, rl_train_fused, rl_train_persistent;
/* All descriptions; ends with NULL. */
extern const rl_engine_description *const rl_train_engines[];
/* Returns true if a block spends this phase (phase_timestamps.h) mainly waiting for data of other blocks, or writing data that
 * they read. */
bool rl_train_phase_is_exchange(const char *phase);

#ifdef __cplusplus
}
#endif
#endif
