/* What is known of the instructions of one kernel: counts by instruction, their text, their place in the source; and what follows
 * for the kernel as a whole, under ncu's names. */
#ifndef RL_CODE_LISTING_H
#define RL_CODE_LISTING_H

#include "model/records.h"
#include "worker/code/disassembly.h"

/* Counts by instruction that others are computed from. RL_EXECUTED is there for each instruction of the function, also where it
 * is 0. */
#define RL_EXECUTED "inst_executed"
#define RL_THREADS "thread_inst_executed"
#define RL_THREADS_ON "thread_inst_executed_true" /* not predicated off */
#define RL_WAVEFRONTS_SHARED "memory_l1_wavefronts_shared"

enum { RL_ELSEWHERE = -1 }; /* offset of what is counted in other functions: part of sums, and of nothing else */

typedef struct rl_pc_count {
  int64_t offset;     /* bytes from the start of the function */
  const char *metric; /* not owned: outlives the listing */
  double value;
} rl_pc_count;

typedef struct rl_listing {
  rl_pc_count *counts; /* several of one instruction and metric add up */
  size_t count, capacity;
  const rl_disassembly *text; /* not owned; NULL: text_reason says why there is none */
  char text_reason[RL_REASON_SIZE];
} rl_listing;

int rl_listing_add(rl_listing *listing, int64_t offset, const char *metric, double value, rl_error *err); /* RL_SYS: no memory */
double rl_listing_sum(const rl_listing *listing, const char *metric); /* over all instructions; 0 when it was not counted */
void rl_listing_clear(rl_listing *listing);                           /* frees its counts; leaves it zeroed */

/* Where in the source an instruction comes from; leaves file and line alone where it is not known. */
typedef struct rl_source_places {
  void (*find)(void *context, int64_t offset, char *file, size_t size, int64_t *line);
  void *context;
} rl_source_places;

/* One rl_instruction for each instruction that has text or a count, in order of offset. */
int rl_listing_append(rl_listing *listing, int64_t ordinal, const rl_source_places *places, rl_records *records, rl_error *err);

typedef struct rl_divergence { /* sums over the instructions of the function of threads of a warp, each rounded down */
  double executed, executed_on, unexecuted_on, derivative_on;
} rl_divergence;
rl_divergence rl_listing_divergence(rl_listing *listing);
/* Sum over the instructions of how many wavefronts an access of a warp to shared memory took on average. */
double rl_listing_conflicts(rl_listing *listing);

/* The mix of warp instructions: by opcode without modifiers ("LDG"), or by what they are for ("Load/Store"). */
typedef enum rl_mix_key { RL_MIX_OPCODE, RL_MIX_CATEGORY } rl_mix_key;
typedef struct rl_mix_part {
  char name[32];
  double executed;
} rl_mix_part;
enum { RL_MIX_MOST = 96 };
/* The parts, the largest first; returns how many. There must be text. */
int rl_listing_mix(rl_listing *listing, rl_mix_key key, rl_mix_part parts[RL_MIX_MOST]);

#endif
