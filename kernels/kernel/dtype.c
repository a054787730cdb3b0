/* Implements dtype.h: sizes and conversions of the element types on the host. */
#include "kernel/dtype.h"

#include <math.h>
#include <string.h>

#include "half.h"

const char *const rl_dtype_names[] = {"fp64", "fp32", "tf32", "fp16", "bf16", NULL};

static const struct {
  size_t size;
  double epsilon, smallest_normal;
} dtypes[RL_DTYPE_COUNT] = {[RL_DTYPE_FP64] = {8, 0x1p-52, 0x1p-1022},
                            [RL_DTYPE_FP32] = {4, 0x1p-23, 0x1p-126},
                            [RL_DTYPE_TF32] = {4, 0x1p-23, 0x1p-126},
                            [RL_DTYPE_FP16] = {2, 0x1p-10, 0x1p-14},
                            [RL_DTYPE_BF16] = {2, 0x1p-7, 0x1p-126}};

size_t rl_dtype_size(int dtype) { return dtypes[dtype].size; }
double rl_dtype_epsilon(int dtype) { return dtypes[dtype].epsilon; }
double rl_dtype_smallest_normal(int dtype) { return dtypes[dtype].smallest_normal; }

static inline float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Returns the bits of `value`, rounded to nearest even so that its lowest dropped_bits bits can be dropped. The dropped bits of
 * the result are arbitrary: the caller clears them or shifts them out. */
static inline uint32_t round_bits(float value, int dropped_bits) {
  uint32_t bits = bits_of_float(value);
  if (isnan(value)) return bits | UINT32_C(1) << 22;
  return bits + (UINT32_C(1) << (dropped_bits - 1)) - 1 + (bits >> dropped_bits & 1);
}

static inline float load_tf32(float x) { return x; }
static inline float store_tf32(float x) { return float_of_bits(round_bits(x, 13) & ~UINT32_C(0x1fff)); }
static inline float load_bf16(uint16_t x) { return float_of_bits((uint32_t)x << 16); }
static inline uint16_t store_bf16(float x) { return (uint16_t)(round_bits(x, 16) >> 16); }

/* CASE(dtype, type in memory, load, store) for every type. */
#define FOR_EACH_DTYPE(CASE)                                          \
  CASE(RL_DTYPE_FP64, double, (double), (double))                     \
  CASE(RL_DTYPE_FP32, float, (float), (float))                        \
  CASE(RL_DTYPE_TF32, float, load_tf32, store_tf32)                   \
  CASE(RL_DTYPE_FP16, uint16_t, rl_half_to_float, rl_half_from_float) \
  CASE(RL_DTYPE_BF16, uint16_t, load_bf16, store_bf16)

#define READ(DTYPE, T, LOAD, STORE)                                           \
  case DTYPE:                                                                 \
    for (int64_t i = 0; i < count; i++) to[i] = LOAD(((const T *)memory)[i]); \
    break;
#define WRITE(DTYPE, T, LOAD, STORE)                                       \
  case DTYPE:                                                              \
    for (int64_t i = 0; i < count; i++) ((T *)memory)[i] = STORE(from[i]); \
    break;

void rl_dtype_to_double(int dtype, const void *memory, int64_t count, double *to) {
  switch (dtype) { FOR_EACH_DTYPE(READ) }
}

void rl_dtype_to_float(int dtype, const void *memory, int64_t count, float *to) {
  switch (dtype) { FOR_EACH_DTYPE(READ) }
}

/* For 16-bit types and tf32, a double is rounded twice: first to float, then to the type. This does not matter, because only
 * generated inputs are converted from double. */
void rl_dtype_from_double(int dtype, const double *from, int64_t count, void *memory) {
  switch (dtype) { FOR_EACH_DTYPE(WRITE) }
}

void rl_dtype_from_float(int dtype, const float *from, int64_t count, void *memory) {
  switch (dtype) { FOR_EACH_DTYPE(WRITE) }
}

double rl_dtype_load(int dtype, const void *memory, size_t index) {
  double value = NAN;
  rl_dtype_to_double(dtype, (const char *)memory + index * rl_dtype_size(dtype), 1, &value);
  return value;
}

void rl_dtype_store(int dtype, void *memory, size_t index, double value) {
  rl_dtype_from_double(dtype, &value, 1, (char *)memory + index * rl_dtype_size(dtype));
}
