/* Counters that are 0 because a kernel has no instruction that can raise them; they need not be collected. Judged from the
 * kernel's SASS alone: a kernel that calls or jumps to other code is assumed to execute every instruction. */
#ifndef RL_CODE_STATIC_ZERO_H
#define RL_CODE_STATIC_ZERO_H

#include "worker/code/disassembly.h"

/* Bit i: instruction class i (texture, surface, tensor core, local memory, ...), in the order of the table in static_zero.c. */
typedef uint32_t rl_instruction_classes;

/* Returns the classes of which the function has no instruction. */
rl_instruction_classes rl_absent_classes(const rl_disassembly *function);
/* Returns the classes without which the metric is 0; no bits: the metric must be collected. */
rl_instruction_classes rl_instruction_classes_of_metric(const char *metric);
/* Returns the reason that belongs to the lowest class: "not counted: the code has no texture instruction". */
const char *rl_static_zero_reason(rl_instruction_classes absences);

#endif
