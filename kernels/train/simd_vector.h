/* GCC vectors as wide as a register, and ReLU with max-pooling on them, for the loops that are compiled once for each instruction
 * set (simd.c, direct.c). */
#ifndef RL_TRAIN_SIMD_VECTOR_H
#define RL_TRAIN_SIMD_VECTOR_H

#include <stdint.h>
#include <string.h>

#include "train/model.h"
#include "train/oracle.h"

#ifdef __AVX512F__
enum { VECTOR_WIDTH = 16 };
#else
enum { VECTOR_WIDTH = 8 }; /* the compiler splits the vectors if registers are narrower */
#endif
typedef float float_vector __attribute__((vector_size(4 * VECTOR_WIDTH)));
typedef int32_t int_vector __attribute__((vector_size(4 * VECTOR_WIDTH)));
typedef uint8_t byte_vector __attribute__((vector_size(VECTOR_WIDTH)));

static inline float_vector load(const float *source) {
  float_vector value;
  memcpy(&value, source, sizeof value);
  return value;
}

static inline void store(float_vector value, float *destination) { memcpy(destination, &value, sizeof value); }

static inline int_vector load_argmax(const uint8_t *source) {
  byte_vector value;
  memcpy(&value, source, sizeof value);
  return __builtin_convertvector(value, int_vector);
}

/* Returns, for each element, `value` where the mask is set (all bits 1), else 0. */
static inline float_vector select_or_zero(int_vector mask, float_vector value) {
  return (float_vector)((int_vector)value & mask);
}

/* State of ReLU and max-pooling over the inputs of a window. Each vector element belongs to one channel. NaN propagates, as in
 * PyTorch. */
typedef struct running_max {
  float_vector value; /* maximum of 0 and of the inputs that were processed so far */
  int_vector index;   /* position (0 to 3) of the greatest input; RL_ARGMAX_RELU_ZERO if no input is above 0 */
} running_max;

static inline running_max initial_maximum(void) {
  return (running_max){(float_vector){0}, (int_vector){0} + RL_ARGMAX_RELU_ZERO};
}

static inline running_max update_maximum(running_max max, float_vector value, int index) {
  int_vector keep = value <= max.value;
  return (running_max){(float_vector)(((int_vector)max.value & keep) | ((int_vector)value & ~keep)),
                       (max.index & keep) | (~keep & index)};
}

static inline void store_maximum(running_max max, float *y, uint8_t *argmax) {
  store(max.value, y);
  byte_vector index = __builtin_convertvector(max.index, byte_vector);
  memcpy(argmax, &index, sizeof index);
}

#endif
