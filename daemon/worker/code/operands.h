/* Counts executed instructions whose kind depends on their operands, not only on their opcode: moves encoded as FP16 arithmetic,
 * spills, and loads whose address depends on an earlier result of the same load. The functions have no side effects. They parse
 * nvdisasm's text of SASS for compute capability 8.0 to 12.0. */
#ifndef RL_CODE_OPERANDS_H
#define RL_CODE_OPERANDS_H

#include "worker/code/instruction_profile.h"

/* Returns how many threads executed HFMA2 instructions whose factors are both RZ. The compiler uses these instructions to move
 * constants, in order to distribute moves over several pipelines. */
double rl_operands_hfma2_moves(const rl_instruction_profile *profile);
/* Returns how many threads executed HADD2 instructions that add RZ. These instructions are conversions and moves. */
double rl_operands_hadd2_moves(const rl_instruction_profile *profile);
/* Returns the bytes of executed accesses to local memory at constant offsets from the stack pointer R1. The compiler generates
 * such accesses for spilled registers. Returns NAN when the kernel also accessed local memory at other addresses: it then has
 * arrays in local memory, and accesses at constant offsets may belong to these arrays. */
double rl_operands_spilled_bytes(const rl_instruction_profile *profile);
/* Returns the number of executed warp instructions of loads from global memory whose address depends, in a loop, on an earlier
 * result of the same load. Ignores dependencies through predicates, uniform registers and memory. */
double rl_operands_dependent_loads(const rl_instruction_profile *profile);

#endif
