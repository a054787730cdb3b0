/* Implements elements.h. The functions of dtype.h convert floating-point types; the macro INTEGER_TYPES lists the integer
 * types. */
#include "source/elements.h"

#include "kernel/dtype.h"

const char *const rl_source_type_names[] = {"fp64",   "fp32",  "fp16",   "bf16",  "int8",   "uint8", "int16",
                                            "uint16", "int32", "uint32", "int64", "uint64", NULL};

static const int dtype_of[] = {[RL_SOURCE_FP64] = RL_DTYPE_FP64,
                               [RL_SOURCE_FP32] = RL_DTYPE_FP32,
                               [RL_SOURCE_FP16] = RL_DTYPE_FP16,
                               [RL_SOURCE_BF16] = RL_DTYPE_BF16};

/* X(enumerator, C type) for each integer type. */
/* clang-format off */
#define INTEGER_TYPES(X)                                                                                        \
  X(RL_SOURCE_INT8, int8_t) X(RL_SOURCE_UINT8, uint8_t) X(RL_SOURCE_INT16, int16_t) X(RL_SOURCE_UINT16, uint16_t) \
  X(RL_SOURCE_INT32, int32_t) X(RL_SOURCE_UINT32, uint32_t) X(RL_SOURCE_INT64, int64_t) X(RL_SOURCE_UINT64, uint64_t)
/* clang-format on */

size_t rl_source_type_size(int type) {
  switch (type) {
#define SIZE(TYPE, C) \
  case TYPE: return sizeof(C);
    INTEGER_TYPES(SIZE)
#undef SIZE
    default: return rl_dtype_size(dtype_of[type]);
  }
}

bool rl_source_type_is_floating(int type) { return type < RL_SOURCE_INT8; }

double rl_source_element_to_double(int type, const void *memory, size_t index) {
  switch (type) {
#define LOAD(TYPE, C) \
  case TYPE: return (double)((const C *)memory)[index];
    INTEGER_TYPES(LOAD)
#undef LOAD
    default: return rl_dtype_load(dtype_of[type], memory, index);
  }
}

void rl_source_double_to_element(int type, void *memory, size_t index, double value) {
  switch (type) {
#define STORE(TYPE, C) \
  case TYPE: ((C *)memory)[index] = (C)value; break;
    INTEGER_TYPES(STORE)
#undef STORE
    default: rl_dtype_store(dtype_of[type], memory, index, value);
  }
}
