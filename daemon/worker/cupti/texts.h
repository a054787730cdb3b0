/* Disassembled functions by the hash of their code: a resident worker sees the same ones again and again. */
#ifndef RL_CUPTI_TEXTS_H
#define RL_CUPTI_TEXTS_H

#include "model/records.h"
#include "worker/code/cubin.h"
#include "worker/code/disassembly.h"

typedef struct rl_text {
  char sha256[65];
  rl_disassembler running; /* while it is being disassembled */
  rl_disassembly lines;
  char reason[RL_REASON_SIZE]; /* why there are none */
} rl_text;

typedef struct rl_texts {
  rl_text **items;
  size_t count;
} rl_texts;

/* Forget what is too much to keep, and what failed, as the program may when a busy machine starts it for the first time: call
 * while nobody uses a text. */
void rl_texts_trim(rl_texts *texts);
/* The text of a function, whose disassembly begins when it is new. NULL when memory is out. */
rl_text *rl_texts_want(rl_texts *texts, const rl_cubin_function *function, const void *cubin, size_t size);
/* Wait for it, if need be. */
void rl_text_finish(rl_text *text);
/* Whether there is text by now, without waiting. */
bool rl_text_is_ready(rl_text *text);
void rl_texts_clear(rl_texts *texts);

#endif
