/* Vectors of the compiler's own, as wide as a register, and ReLU with pooling on them: for the loops that are compiled once for
 * each instruction set. */
#ifndef RL_TRAIN_LANES_H
#define RL_TRAIN_LANES_H

#include <stdint.h>
#include <string.h>

#include "train/oracle.h"

#ifdef __AVX512F__
enum { WIDTH = 16 };
#else
enum { WIDTH = 8 }; /* where registers are narrower still, the compiler splits them */
#endif
typedef float lanes __attribute__((vector_size(4 * WIDTH)));
typedef int32_t integers __attribute__((vector_size(4 * WIDTH)));
typedef uint8_t bytes __attribute__((vector_size(WIDTH)));

static inline lanes load(const float *from) {
  lanes value;
  memcpy(&value, from, sizeof value);
  return value;
}

static inline void store(lanes value, float *to) { memcpy(to, &value, sizeof value); }

static inline integers load_choice(const uint8_t *from) {
  bytes value;
  memcpy(&value, from, sizeof value);
  return __builtin_convertvector(value, integers);
}

static inline lanes where(integers mask, lanes value) { return (lanes)((integers)value & mask); }

/* ReLU and pooling as one running maximum from 0. NaN passes, as in PyTorch. */
typedef struct winner {
  lanes best;
  integers number;
} winner;

static inline winner nobody(void) { return (winner){(lanes){0}, (integers){0} + RL_ORACLE_DEAD}; }

static inline winner challenge(winner w, lanes value, int number) {
  integers lose = value <= w.best;
  return (winner){(lanes)(((integers)w.best & lose) | ((integers)value & ~lose)), (w.number & lose) | (~lose & number)};
}

static inline void store_winner(winner w, float *y, uint8_t *choice) {
  store(w.best, y);
  bytes number = __builtin_convertvector(w.number, bytes);
  memcpy(choice, &number, sizeof number);
}

#endif
