/* The engines of the workload transformer_layer. Workers link them; the daemon does not. */
#ifndef RL_KERNELS_LAYER_ENGINES_H
#define RL_KERNELS_LAYER_ENGINES_H

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const rl_engine rl_layer_cpu, rl_layer_cuda;

#ifdef __cplusplus
}
#endif
#endif
