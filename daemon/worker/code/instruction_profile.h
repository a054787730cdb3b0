/* The profile of one kernel's instructions: metric values by instruction offset. Joins the values with SASS and source lines into
 * records, and computes the sums over the kernel that Nsight Compute derives from the values. Not thread-safe. */
#ifndef RL_CODE_INSTRUCTION_PROFILE_H
#define RL_CODE_INSTRUCTION_PROFILE_H

#include "model/records.h"
#include "worker/code/disassembly.h"

/* Names in Nsight Compute of the metrics from which other metrics are derived. Every instruction has a value of RL_INST_EXECUTED,
 * even if it is 0. */
#define RL_INST_EXECUTED "inst_executed"
#define RL_THREAD_INST_EXECUTED "thread_inst_executed"
#define RL_THREAD_INST_EXECUTED_TRUE "thread_inst_executed_true" /* threads that are not predicated off */
#define RL_WAVEFRONTS_SHARED "memory_l1_wavefronts_shared"

#define RL_DROPPED_SAMPLES "smsp__pcsamp_dropped_samples" /* not a name of Nsight Compute */

/* The offset of values of the whole kernel, and of values that belong to functions which the kernel calls. Only
 * rl_instruction_profile_sum includes these values. */
enum { RL_OFFSET_IN_CALLED_FUNCTION = -1 };

typedef struct rl_pc_value {
  int64_t offset;     /* bytes from the start of the function */
  const char *metric; /* name of the metric; borrowed, outlives the profile */
  double value;
} rl_pc_value;

typedef struct rl_instruction_profile {
  rl_pc_value *values; /* several values of the same instruction and metric add up */
  size_t count, capacity;
  const rl_disassembly *sass; /* borrowed; NULL: there is no SASS, for the reason in sass_reason */
  char sass_reason[RL_REASON_SIZE];
} rl_instruction_profile;

int rl_instruction_profile_add(rl_instruction_profile *profile, int64_t offset, const char *metric, double value, rl_error *err);
/* Returns the sum over all instructions; 0 when the metric has no value. */
double rl_instruction_profile_sum(const rl_instruction_profile *profile, const char *metric);
/* Adds samples that were dropped while the kernel's launch was sampled, as values of RL_DROPPED_SAMPLES. */
int rl_instruction_profile_add_dropped(rl_instruction_profile *profile, double samples, rl_error *err);
/* Returns the reason why the profile of a sampled kernel has no sample. */
const char *rl_instruction_profile_no_sample_reason(const rl_instruction_profile *profile);
void rl_instruction_profile_clear(rl_instruction_profile *profile); /* frees the values and zeroes the struct */

/* `find` maps an instruction's offset to a source line. It leaves file and line unchanged when the line is unknown. */
typedef struct rl_line_lookup {
  void (*find)(void *context, int64_t offset, char *file, size_t size, int64_t *line);
  void *context;
} rl_line_lookup;

/* Appends an rl_instruction to records for each instruction that has SASS or a value, in order of offset. With `lines` NULL the
 * records get no source lines. */
int rl_instruction_profile_append(rl_instruction_profile *profile, int64_t ordinal, const rl_line_lookup *lines,
                                  rl_records *records, rl_error *err);

/* Nsight Compute's measures of divergence. Each one sums, over the function's instructions, the average number of threads per
 * executed warp, rounded down for each instruction. */
typedef struct rl_divergence {
  double executed;        /* active threads */
  double executed_true;   /* threads that are not predicated off */
  double unexecuted_true; /* 32 - executed_true of the instruction */
  double derivative_true; /* absolute difference of executed_true between consecutive instructions */
} rl_divergence;
rl_divergence rl_instruction_profile_divergence(rl_instruction_profile *profile);
/* Returns the sum over the instructions of the average number of shared-memory wavefronts per executed warp, rounded down for
 * each instruction. */
double rl_instruction_profile_shared_conflicts(rl_instruction_profile *profile);

/* Groups executed warp instructions by opcode without modifiers ("LDG") or by Nsight Compute's category ("Load/Store"). */
typedef enum rl_opcode_grouping { RL_BY_OPCODE, RL_BY_CATEGORY } rl_opcode_grouping;
typedef struct rl_opcode_count {
  char name[32];
  double executed;
} rl_opcode_count;
enum { RL_MAX_OPCODE_COUNTS = 96 };
/* Fills counts in descending order and returns their number. profile->sass must not be NULL. */
int rl_instruction_profile_histogram(rl_instruction_profile *profile, rl_opcode_grouping grouping,
                                     rl_opcode_count counts[RL_MAX_OPCODE_COUNTS]);

#endif
