/* Descriptions of the training engines: plain data without their code, so that the daemon links it. An engine is added by one
 * description here, its code, and one entry in engines_cpu.c or engines_cuda.cu. */
#ifndef RL_TRAIN_ENGINES_H
#define RL_TRAIN_ENGINES_H

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const rl_engine_description rl_train_reference, rl_train_blas, rl_train_cpu_fused;
extern const rl_engine_description rl_train_cudnn, rl_train_fused, rl_train_persistent;
/* All of them, NULL-terminated. */
extern const rl_engine_description *const rl_train_engines[];

#ifdef __cplusplus
}
#endif
#endif
