/* Counts executed instructions whose kind depends on their operands, not only on their opcode: moves encoded as FP16 arithmetic,
 * spills, and loads whose address depends on an earlier result of the same load. All functions are pure; they read the SASS text
 * of nvdisasm (compute capability 8.0 to 12.0). */
#ifndef RL_CODE_OPERANDS_H
#define RL_CODE_OPERANDS_H

#include "worker/code/instruction_profile.h"

/* Returns the executed threads of HFMA2 instructions whose factors are both RZ. The compiler uses them to move constants, in
 * order to distribute moves over several pipelines. */
double rl_operands_hfma2_moves(const rl_instruction_profile *profile);
/* Returns the executed threads of HADD2 instructions that add RZ. They are conversions and moves. */
double rl_operands_hadd2_moves(const rl_instruction_profile *profile);
/* Returns the bytes of executed accesses to local memory at constant offsets from the stack pointer R1: the compiler generates
 * such accesses for spilled registers. Returns NAN when the code also has arrays in local memory, because they are also
 * accessed in this way. */
double rl_operands_spilled_bytes(const rl_instruction_profile *profile);
/* Returns the executed warp instructions of loads from global memory whose address depends, in a loop, on an earlier result of
 * the same load. Ignores dependencies through predicates, uniform registers and memory. */
double rl_operands_dependent_loads(const rl_instruction_profile *profile);

#endif
