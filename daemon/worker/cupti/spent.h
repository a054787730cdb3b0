/* Where the time of a counters pass goes. Each moment belongs to the piece that ends with it; the pieces are measurements of the
 * pass ("spent_starting_ms"), so that what a report costs can be read beside it. */
#ifndef RL_CUPTI_SPENT_H
#define RL_CUPTI_SPENT_H

#include <stdint.h>

#include "model/records.h"

typedef enum rl_piece {
  RL_PIECE_TRACING,   /* which kernels there are */
  RL_PIECE_PLANNING,  /* which counters, in which passes */
  RL_PIECE_ENABLING,  /* the range profiler, and disabling it */
  RL_PIECE_RESTORING, /* inputs, once a pass over the counters, as what follows */
  RL_PIECE_STARTING,
  RL_PIECE_RUNNING,
  RL_PIECE_STOPPING,
  RL_PIECE_EVALUATING,
  RL_PIECE_INSTRUCTIONS, /* counting them */
  RL_PIECE_LINES,        /* drawing time lines */
  RL_PIECE_SAMPLES,      /* of stalls */
  RL_PIECE_LISTING,      /* code and its numbers, nvdisasm where it was not done by then */
  RL_PIECES
} rl_piece;

typedef struct rl_spent {
  int64_t since_ns;
  double ms[RL_PIECES];
} rl_spent;

/* All pieces are 0 ms, and the first begins now. */
void rl_spent_begin(rl_spent *spent);
/* The time since the last call was the piece's. NULL is allowed: nobody wants to know. */
void rl_spent_on(rl_spent *spent, rl_piece piece);
/* A measurement of each piece into records. */
int rl_spent_measure(const rl_spent *spent, rl_records *records, rl_error *err);

#endif
