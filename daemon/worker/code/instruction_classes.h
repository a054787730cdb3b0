/* Finds counters that need not be collected, because the kernel's SASS lacks instructions: those that only these instructions
 * increment are 0, and some others equal a counter that is collected. A kernel that calls or jumps to other code is assumed to
 * execute instructions of every class. */
#ifndef RL_CODE_INSTRUCTION_CLASSES_H
#define RL_CODE_INSTRUCTION_CLASSES_H

#include "worker/code/disassembly.h"

/* What a kernel's code does not show. */
typedef struct rl_code_environment {
  const char *chip;              /* as CUPTI names it ("GH100") */
  bool has_access_policy_window; /* a stream or a launch of this process has set one, so any access may have its L2 policy */
  bool maps_other_devices;       /* memory of another device may be mapped into the address space of this process */
} rl_code_environment;

/* Bit i: instruction class i (texture, surface, tensor core, local memory, ...), in the order of the table in
 * instruction_classes.c. */
typedef uint32_t rl_instruction_classes;

/* Returns the classes whose absence rl_absent_instruction_classes can prove on the chip. */
rl_instruction_classes rl_all_instruction_classes(const char *chip);
/* Returns those of these classes of which the function has no instruction. */
rl_instruction_classes rl_absent_instruction_classes(const rl_disassembly *function, const rl_code_environment *environment);
/* Returns the classes whose instructions the metric counts; the metric is 0 when all of them are absent. Returns 0 when the
 * metric must always be collected. */
rl_instruction_classes rl_instruction_classes_of_metric(const char *metric);
/* Writes to `equal` the name of a metric that has the same value as `metric` in code that lacks the absent classes, and returns
 * why. Returns NULL if there is none. */
const char *rl_equal_metric(const char *metric, rl_instruction_classes absent, char *equal, size_t size);
/* Returns why the metrics of the first absent class are 0: "not counted: the code has no texture instruction". */
const char *rl_absent_instruction_classes_reason(rl_instruction_classes absent);

#endif
