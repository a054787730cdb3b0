/* The element types of a posted kernel's buffers and scalars. */
#ifndef RL_KERNELS_SOURCE_ELEMENTS_H
#define RL_KERNELS_SOURCE_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_source_type {
  RL_SOURCE_FP64,
  RL_SOURCE_FP32,
  RL_SOURCE_FP16,
  RL_SOURCE_BF16,
  RL_SOURCE_INT8,
  RL_SOURCE_UINT8,
  RL_SOURCE_INT16,
  RL_SOURCE_UINT16,
  RL_SOURCE_INT32,
  RL_SOURCE_UINT32,
  RL_SOURCE_INT64,
  RL_SOURCE_UINT64,
  RL_SOURCE_TYPE_COUNT
} rl_source_type;
extern const char *const rl_source_type_names[]; /* "fp64" "fp32" ..., NULL */
size_t rl_source_type_size(int type);            /* in bytes */
bool rl_source_type_is_floating(int type);
/* Returns element `index` of an array of this type. */
double rl_source_element_to_double(int type, const void *memory, size_t index);
/* Converts value, which must be within the type's range, and stores it. */
void rl_source_double_to_element(int type, void *memory, size_t index, double value);

#ifdef __cplusplus
}
#endif
#endif
