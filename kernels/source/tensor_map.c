/* Implements tensor_map.h: decodes tensor maps, and checks them before the driver encodes them. */
#include "source/tensor_map.h"

#include <stdio.h>

enum { ALIGNMENT = 16, MAX_BOX = 256 };
static const int64_t MAX_SIZE = INT64_C(1) << 32, MAX_STRIDE = INT64_C(1) << 40;

const int rl_source_swizzle_bytes[] = {0, 32, 64, 128}, rl_source_promotion_bytes[] = {0, 64, 128, 256};
static const char *const swizzle_names[] = {"none", "32", "64", "128", NULL};
static const char *const promotion_names[] = {"none", "64", "128", "256", NULL};

const rl_field rl_source_tensor_map_fields[] = {
    RL_FIELD(rl_source_tensor_map, argument, RL_FIELD_INT, .required = true, .minimum = 0, .maximum = RL_SOURCE_ARGUMENTS_MAX - 1,
             .summary = "index of the argument that is the tensor's buffer"),
    RL_FIELD(rl_source_tensor_map, shape, RL_FIELD_INTS, .required = true, .minimum = 1, .maximum = 4294967296.0,
             .summary = "elements of each dimension; the first is contiguous"),
    RL_FIELD(rl_source_tensor_map, box, RL_FIELD_INTS, .required = true, .minimum = 1, .maximum = MAX_BOX,
             .summary = "elements of a tile along each dimension"),
    RL_FIELD(rl_source_tensor_map, strides_bytes, RL_FIELD_INTS, .minimum = ALIGNMENT, .maximum = 1099511627776.0,
             .summary = "bytes between elements of the second and further dimensions, multiples of 16; default: packed"),
    RL_FIELD(rl_source_tensor_map, swizzle, RL_FIELD_CHOICE, .names = swizzle_names,
             .summary = "bytes over which a tile's 16-byte chunks are permuted in shared memory; default none"),
    RL_FIELD(rl_source_tensor_map, l2_promotion, RL_FIELD_CHOICE, .names = promotion_names,
             .summary = "minimum number of bytes that L2 fetches; default none"),
    RL_FIELD(rl_source_tensor_map, fills_nan, RL_FIELD_BOOL,
             .summary = "true: elements outside of the tensor are NaN; default false: they are 0"),
    {0}};

static int count_dimensions(const int64_t *values) {
  int count = 0;
  while (count < RL_SOURCE_TENSOR_RANK_MAX && values[count] != 0) count++;
  return count;
}

int rl_source_decode_tensor_map(const cJSON *object, const char *pointer, rl_source_argument *argument, rl_error *err) {
  rl_source_tensor_map map = {0};
  if (rl_fields_decode(rl_source_tensor_map_fields, object, pointer, &map, sizeof map, err) < 0) return -1;
  map.rank = count_dimensions(map.shape);
  *argument = (rl_source_argument){.kind = RL_SOURCE_TENSOR_MAP, .tensor_map = map};
  return 0;
}

/* Fails with a JSON pointer to a member of the tensor map that is argument `index`. Returns -1. */
static int fail_at(int index, const char *member, rl_error *err, const char *reason) {
  char pointer[RL_SOURCE_POINTER_SIZE];
  snprintf(pointer, sizeof pointer, "/arguments/%d/tensor_map/%s", index, member);
  return rl_fail_at(err, pointer, "%s", reason);
}

/* Returns the distance in bytes from the first element to the end of the last one. */
static int64_t extent_bytes(const rl_source_tensor_map *map, int64_t element_bytes) {
  int64_t bytes = map->shape[0] * element_bytes;
  for (int i = 1; i < map->rank; i++)
    bytes = map->shape[i] - 1 <= (INT64_MAX - bytes) / map->strides_bytes[i - 1]
                ? bytes + (map->shape[i] - 1) * map->strides_bytes[i - 1]
                : INT64_MAX;
  return bytes;
}

static int set_packed_strides(int index, rl_source_tensor_map *map, int64_t element_bytes, rl_error *err) {
  int64_t bytes = map->shape[0] * element_bytes;
  for (int i = 1; i < map->rank; i++) {
    if (bytes > MAX_STRIDE) return fail_at(index, "shape", err, "a packed stride exceeds 2^40 bytes");
    if (bytes % ALIGNMENT != 0)
      return fail_at(index, "shape", err,
                     "a row's bytes are not a multiple of 16; give strides_bytes, or a longer first dimension");
    map->strides_bytes[i - 1] = bytes;
    bytes = map->shape[i] <= MAX_STRIDE / bytes ? bytes * map->shape[i] : MAX_STRIDE + 1;
  }
  return 0;
}

static int check_strides(int index, rl_source_tensor_map *map, int64_t element_bytes, rl_error *err) {
  const int stride_count = count_dimensions(map->strides_bytes);
  if (stride_count == 0) return set_packed_strides(index, map, element_bytes, err);
  if (stride_count != map->rank - 1)
    return fail_at(index, "strides_bytes", err, "strides_bytes needs one stride less than shape has dimensions");
  for (int i = 0; i < stride_count; i++)
    if (map->strides_bytes[i] % ALIGNMENT != 0)
      return fail_at(index, "strides_bytes", err, "a stride is not a multiple of 16 bytes");
  return 0;
}

static int check_box(int index, const rl_source_tensor_map *map, int64_t element_bytes, rl_error *err) {
  const int64_t row_bytes = map->box[0] * element_bytes;
  if (count_dimensions(map->box) != map->rank) return fail_at(index, "box", err, "box needs as many dimensions as shape");
  if (row_bytes % ALIGNMENT != 0)
    return fail_at(index, "box", err, "the bytes of the box's first dimension are not a multiple of 16");
  if (map->swizzle != 0 && row_bytes > rl_source_swizzle_bytes[map->swizzle])
    return fail_at(index, "box", err, "the box's first dimension has more bytes than the swizzle");
  return 0;
}

static int check_tensor_map(const rl_source *source, int index, rl_source_tensor_map *map, rl_error *err) {
  if (map->argument >= source->argument_count || source->arguments[map->argument].kind != RL_SOURCE_BUFFER)
    return fail_at(index, "argument", err, "this argument is not a buffer");
  const rl_source_argument *buffer = &source->arguments[map->argument];
  const int64_t element_bytes = (int64_t)rl_source_type_size(buffer->type);
  for (int i = 0; i < map->rank; i++)
    if (map->shape[i] > MAX_SIZE) return fail_at(index, "shape", err, "a dimension exceeds 2^32 elements");
  if (map->fills_nan && !rl_source_type_is_floating(buffer->type))
    return fail_at(index, "fills_nan", err, "only floating-point elements can be NaN");
  if (check_strides(index, map, element_bytes, err) < 0 || check_box(index, map, element_bytes, err) < 0) return -1;
  if (extent_bytes(map, element_bytes) > buffer->count * element_bytes)
    return fail_at(index, "shape", err, "the tensor is larger than its buffer");
  return 0;
}

int rl_source_check_tensor_maps(rl_source *source, rl_error *err) {
  for (int i = 0; i < source->argument_count; i++)
    if (source->arguments[i].kind == RL_SOURCE_TENSOR_MAP &&
        check_tensor_map(source, i, &source->arguments[i].tensor_map, err) < 0)
      return -1;
  return 0;
}
