/* The engines of the CPU worker, best first. */
#include "train/cpu.h"

const rl_engine *const rl_engines[] = {&rl_engine_blas, &rl_engine_reference, NULL};
