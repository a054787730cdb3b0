/* Implements argument_values.h. */
#include "source/argument_values.h"

#include <cstdio>
#include <cstring>

#include "encode_tiled.h"

static_assert(sizeof(CUtensorMap) == RL_SOURCE_TENSOR_MAP_BYTES, "a tensor map is passed by value");

static const CUtensorMapDataType data_types[RL_SOURCE_TYPE_COUNT] = {
    CU_TENSOR_MAP_DATA_TYPE_FLOAT64,  CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_DATA_TYPE_UINT8,   CU_TENSOR_MAP_DATA_TYPE_UINT8,
    CU_TENSOR_MAP_DATA_TYPE_UINT16,   CU_TENSOR_MAP_DATA_TYPE_UINT16,  CU_TENSOR_MAP_DATA_TYPE_INT32,
    CU_TENSOR_MAP_DATA_TYPE_UINT32,   CU_TENSOR_MAP_DATA_TYPE_INT64,   CU_TENSOR_MAP_DATA_TYPE_UINT64};
static const CUtensorMapSwizzle swizzles[] = {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B,
                                              CU_TENSOR_MAP_SWIZZLE_128B};
static const CUtensorMapL2promotion promotions[] = {CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
                                                    CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B};

static int encode_tensor_map(const rl_source *source, int index, void *memory, void *value, rl_error *err) {
  const rl_source_tensor_map *map = &source->arguments[index].tensor_map;
  alignas(64) CUtensorMap encoded;
  cuuint64_t shape[RL_SOURCE_TENSOR_RANK_MAX], strides[RL_SOURCE_TENSOR_RANK_MAX];
  cuuint32_t box[RL_SOURCE_TENSOR_RANK_MAX], element_strides[RL_SOURCE_TENSOR_RANK_MAX];
  rl_encode_tiled *encode = NULL;
  if (rl_find_encode_tiled(&encode, err) < 0) return -1;
  for (int i = 0; i < map->rank; i++) {
    shape[i] = (cuuint64_t)map->shape[i];
    strides[i] = (cuuint64_t)map->strides_bytes[i];
    box[i] = (cuuint32_t)map->box[i];
    element_strides[i] = 1;
  }
  const CUresult status =
      encode(&encoded, data_types[source->arguments[map->argument].type], (cuuint32_t)map->rank, memory, shape, strides, box,
             element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzles[map->swizzle], promotions[map->l2_promotion],
             map->fills_nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    char pointer[RL_SOURCE_POINTER_SIZE];
    snprintf(pointer, sizeof pointer, "/arguments/%d/tensor_map", index);
    return rl_fail_at(err, pointer, "the driver refuses this tensor map (CUresult %d)", (int)status);
  }
  memcpy(value, &encoded, sizeof encoded);
  return 0;
}

int rl_source_argument_values_set(const rl_source *source, void *const *buffers, rl_source_argument_values *values,
                                  rl_error *err) {
  for (int i = 0; i < source->argument_count; i++) {
    const rl_source_argument *argument = &source->arguments[i];
    values->pointers[i] = argument->kind == RL_SOURCE_TENSOR_MAP ? (void *)values->tensor_maps[i] : (void *)&values->words[i];
    if (argument->kind == RL_SOURCE_BUFFER) values->words[i] = (uint64_t)(uintptr_t)buffers[i];
    if (argument->kind == RL_SOURCE_SCALAR) rl_source_double_to_element(argument->type, &values->words[i], 0, argument->value);
    if (argument->kind == RL_SOURCE_TENSOR_MAP &&
        encode_tensor_map(source, i, buffers[argument->tensor_map.argument], values->tensor_maps[i], err) < 0)
      return -1;
  }
  return 0;
}

size_t rl_source_parameter_bytes(const rl_source_argument *argument) {
  return argument->kind == RL_SOURCE_BUFFER   ? sizeof(void *)
         : argument->kind == RL_SOURCE_SCALAR ? rl_source_type_size(argument->type)
                                              : RL_SOURCE_TENSOR_MAP_BYTES;
}
