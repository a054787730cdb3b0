/* Tensor maps among the arguments of a posted kernel: descriptors of tiles that the tensor memory accelerator copies. */
#ifndef RL_KERNELS_SOURCE_TENSOR_MAP_H
#define RL_KERNELS_SOURCE_TENSOR_MAP_H

#include "source/request.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const rl_field rl_source_tensor_map_fields[];

/* Decodes the object of a tensor map into *argument. Returns -1 with RL_INPUT and a JSON pointer below `pointer` when the object
 * is invalid. */
int rl_source_decode_tensor_map(const cJSON *object, const char *pointer, rl_source_argument *argument, rl_error *err);
/* Checks all tensor maps against their buffers, by the rules of cuTensorMapEncodeTiled, and sets the strides of packed tensors.
 * Call it when all arguments are decoded. Returns -1 with RL_INPUT and a JSON pointer when a tensor map is invalid. */
int rl_source_check_tensor_maps(rl_source *source, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
