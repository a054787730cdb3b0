/* Engines of the CUDA worker, best first. */
#include "workload.h"

extern "C" {
extern const rl_engine rl_engine_fused, rl_engine_cudnn;
const rl_engine *const rl_engines[] = {&rl_engine_fused, &rl_engine_cudnn, NULL};
}
