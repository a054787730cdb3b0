/* Counts of executed instructions that only their operands tell apart: moves that are encoded as FP16 arithmetic, spills, and
 * loads whose address depends on their own earlier result. Pure functions over SASS text (nvdisasm, compute capability 8.0
 * to 12.0). */
#ifndef RL_CODE_OPERANDS_H
#define RL_CODE_OPERANDS_H

#include "worker/code/instruction_profile.h"

/* Executed threads of FP16 instructions that move a constant: HFMA2 with both factors RZ. Compilers spread moves over pipelines.
 */
double rl_operands_hfma2_moves(const rl_instruction_profile *profile);
/* Executed threads of HADD2 that add RZ: conversions and moves. */
double rl_operands_hadd2_moves(const rl_instruction_profile *profile);
/* Bytes of executed accesses to local memory at constant offsets from the stack pointer R1, as the compiler makes them for
 * registers that it spills. NAN when the code also has arrays in local memory, which are written at constant offsets too. */
double rl_operands_spilled_bytes(const rl_instruction_profile *profile);
/* Executed warp instructions of loads from global memory whose address depends, in a loop, on an earlier result of the same load.
 * Dependencies through predicates, uniform registers and memory are not followed. */
double rl_operands_dependent_loads(const rl_instruction_profile *profile);

#endif
