/* The engines whose kernels are all our own, for the machine. The device that they are opened on is the CPU's: its memory is the machine's. */
#include "kernel/sequence.h"

extern "C" {
extern const rl_engine rl_engine_fused;
const rl_engine *const rl_engines[] = {&rl_engine_fused, NULL};
}
