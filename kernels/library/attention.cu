/* Builds the graph of operations that cuDNN recognises as attention and fuses into one kernel ("Fused flash attention fprop" in
 * cuDNN's Graph API documentation):
 *   scores = Q Kᵀ · 1/√d, with d the size of a head; if causal, scores above the diagonal are replaced by the lowest float;
 *   softmax over the last axis: subtract the maximum, take the exponential, divide by the sum;
 *   statistics: the maximum plus the logarithm of the sum. Only training needs them, but cuDNN 9.14 does not recognise a graph
 *   without them;
 *   O = softmax · V.
 * The tensors between the two products are FP32 and virtual: they exist inside the fused kernel only, not in memory. The softmax
 * is rounded to the type of V, which the tensor cores multiply. */
#include "library/attention.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "cuda_check.h"

typedef rl_dnn_descriptor descriptor;

typedef struct graph_builder {
  rl_dnn_graph *graph;
  const rl_attention_shape *shape;
} graph_builder;

/* Adds a virtual tensor of batch × heads × rows × columns elements. */
static descriptor virtual_tensor(const graph_builder *builder, cudnnDataType_t type, int64_t columns) {
  const rl_attention_shape *shape = builder->shape;
  const int64_t sizes[RL_DNN_RANK] = {shape->batch, shape->heads, shape->rows, columns};
  const int64_t strides[RL_DNN_RANK] = {shape->heads * shape->rows * columns, shape->rows * columns, columns, 1};
  return rl_dnn_tensor(builder->graph, type, sizes, strides, NULL);
}

/* Adds a tensor in memory of batch × heads × rows × head_size elements. `distance` has its strides. */
static descriptor stored_tensor(const graph_builder *builder, int64_t heads, int64_t rows, rl_attention_strides distance,
                                void *memory) {
  const rl_attention_shape *shape = builder->shape;
  const int64_t sizes[RL_DNN_RANK] = {shape->batch, heads, rows, shape->head_size};
  const int64_t strides[RL_DNN_RANK] = {distance.sequence, distance.head, distance.row, 1};
  return rl_dnn_tensor(builder->graph, shape->type, sizes, strides, memory);
}

/* Adds K, in memory, as a tensor with the last two dimensions swapped. */
static descriptor transposed_keys(const graph_builder *builder, void *k) {
  const rl_attention_shape *shape = builder->shape;
  const int64_t sizes[RL_DNN_RANK] = {shape->batch, shape->kv_heads, shape->head_size, shape->kv_rows};
  const int64_t strides[RL_DNN_RANK] = {shape->kv.sequence, shape->kv.head, 1, shape->kv.row};
  return rl_dnn_tensor(builder->graph, shape->type, sizes, strides, k);
}

/* Adds the matrix product y = left · right and returns y. */
static descriptor multiply(const graph_builder *builder, descriptor left, descriptor right, descriptor y) {
  const cudnnDataType_t sum = CUDNN_DATA_FLOAT;
  rl_dnn_owned product = rl_dnn_create(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  rl_dnn_owned operation = rl_dnn_create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  if (!rl_dnn_set(product, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sum) ||
      cudnnBackendFinalize(product) != CUDNN_STATUS_SUCCESS ||
      !rl_dnn_set_descriptor(operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, product) ||
      !rl_dnn_set_descriptor(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, left) ||
      !rl_dnn_set_descriptor(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, right) ||
      !rl_dnn_set_descriptor(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, y))
    rl_dnn_release(&operation);
  rl_dnn_add(builder->graph, operation);
  operation = NULL;
  return y;
}

typedef struct pointwise {
  cudnnPointwiseMode_t mode;
  descriptor x, second, condition; /* NULL: the mode has no such operand */
  cudnnDataType_t compute;
  int64_t axis; /* for GEN_INDEX: the dimension whose index it produces */
} pointwise;

static descriptor add_pointwise(const graph_builder *builder, pointwise p, descriptor y) {
  rl_dnn_owned description = rl_dnn_create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  rl_dnn_owned operation = rl_dnn_create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  if (!rl_dnn_set(description, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &p.mode) ||
      !rl_dnn_set(description, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &p.compute) ||
      (p.mode == CUDNN_POINTWISE_GEN_INDEX &&
       !rl_dnn_set(description, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &p.axis)) ||
      cudnnBackendFinalize(description) != CUDNN_STATUS_SUCCESS ||
      !rl_dnn_set_descriptor(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, description) ||
      !rl_dnn_set_descriptor(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, p.x) ||
      (p.second && !rl_dnn_set_descriptor(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, p.second)) ||
      (p.condition && !rl_dnn_set_descriptor(operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, p.condition)) ||
      !rl_dnn_set_descriptor(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y))
    rl_dnn_release(&operation);
  rl_dnn_add(builder->graph, operation);
  operation = NULL;
  return y;
}

static descriptor unary(const graph_builder *builder, cudnnPointwiseMode_t mode, descriptor x, int64_t columns) {
  return add_pointwise(builder, {mode, x, NULL, NULL, CUDNN_DATA_FLOAT, 0}, virtual_tensor(builder, CUDNN_DATA_FLOAT, columns));
}

static descriptor binary(const graph_builder *builder, cudnnPointwiseMode_t mode, descriptor x, descriptor second, descriptor y) {
  return add_pointwise(builder, {mode, x, second, NULL, CUDNN_DATA_FLOAT, 0}, y);
}

/* Adds a reduction of each row to one number, its maximum or sum, and returns the result. */
static descriptor reduce(const graph_builder *builder, cudnnReduceTensorOp_t operator_type, descriptor x) {
  const cudnnDataType_t sum = CUDNN_DATA_FLOAT;
  descriptor y = virtual_tensor(builder, CUDNN_DATA_FLOAT, 1);
  rl_dnn_owned reduction = rl_dnn_create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  rl_dnn_owned operation = rl_dnn_create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  if (!rl_dnn_set(reduction, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operator_type) ||
      !rl_dnn_set(reduction, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sum) ||
      cudnnBackendFinalize(reduction) != CUDNN_STATUS_SUCCESS ||
      !rl_dnn_set_descriptor(operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction) ||
      !rl_dnn_set_descriptor(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x) ||
      !rl_dnn_set_descriptor(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y))
    rl_dnn_release(&operation);
  rl_dnn_add(builder->graph, operation);
  operation = NULL;
  return y;
}

/* Adds the operations that replace scores above the diagonal by the lowest float: for each score its row and its column, a
 * comparison, and a selection. */
static descriptor mask(const graph_builder *builder, descriptor scores) {
  const int64_t columns = builder->shape->kv_rows;
  descriptor row = add_pointwise(builder, {CUDNN_POINTWISE_GEN_INDEX, scores, NULL, NULL, CUDNN_DATA_FLOAT, 2},
                                 virtual_tensor(builder, CUDNN_DATA_INT32, columns));
  descriptor column = add_pointwise(builder, {CUDNN_POINTWISE_GEN_INDEX, scores, NULL, NULL, CUDNN_DATA_FLOAT, 3},
                                    virtual_tensor(builder, CUDNN_DATA_INT32, columns));
  descriptor is_attended = add_pointwise(builder, {CUDNN_POINTWISE_CMP_GE, row, column, NULL, CUDNN_DATA_BOOLEAN, 0},
                                         virtual_tensor(builder, CUDNN_DATA_BOOLEAN, columns));
  return add_pointwise(
      builder, {CUDNN_POINTWISE_BINARY_SELECT, scores, rl_dnn_scalar(builder->graph, -FLT_MAX), is_attended, CUDNN_DATA_FLOAT, 0},
      virtual_tensor(builder, CUDNN_DATA_FLOAT, columns));
}

static void add_attention(const graph_builder *builder, void *q, void *k, void *v, void *o) {
  const rl_attention_shape *shape = builder->shape;
  const int64_t columns = shape->kv_rows;
  descriptor queries = stored_tensor(builder, shape->heads, shape->rows, shape->q, q), keys = transposed_keys(builder, k);
  descriptor scores = multiply(builder, queries, keys, virtual_tensor(builder, CUDNN_DATA_FLOAT, columns));
  descriptor scale = rl_dnn_scalar(builder->graph, 1.0f / sqrtf((float)shape->head_size));
  scores = binary(builder, CUDNN_POINTWISE_MUL, scores, scale, virtual_tensor(builder, CUDNN_DATA_FLOAT, columns));
  if (shape->causal) scores = mask(builder, scores);
  descriptor maximum = reduce(builder, CUDNN_REDUCE_TENSOR_MAX, scores);
  descriptor exponentials =
      binary(builder, CUDNN_POINTWISE_SUB, scores, maximum, virtual_tensor(builder, CUDNN_DATA_FLOAT, columns));
  exponentials = unary(builder, CUDNN_POINTWISE_EXP, exponentials, columns);
  descriptor sum = reduce(builder, CUDNN_REDUCE_TENSOR_ADD, exponentials);
  binary(builder, CUDNN_POINTWISE_ADD, maximum, unary(builder, CUDNN_POINTWISE_LOG, sum, 1),
         virtual_tensor(builder, CUDNN_DATA_FLOAT, 1));
  descriptor weights = binary(builder, CUDNN_POINTWISE_DIV, exponentials, sum, virtual_tensor(builder, shape->type, columns));
  multiply(builder, weights, stored_tensor(builder, shape->kv_heads, shape->kv_rows, shape->kv, v),
           stored_tensor(builder, shape->heads, shape->rows, shape->o, o));
}

int rl_attention_open(cudnnHandle_t handle, const rl_attention_shape *shape, void *q, void *k, void *v, void *o,
                      const rl_dnn_search *search, rl_stream stream, rl_dnn **plan, rl_error *err) {
  __attribute__((cleanup(rl_dnn_graph_close))) rl_dnn_graph graph = {};
  const graph_builder builder = {&graph, shape};
  char key[192];
  add_attention(&builder, q, k, v, o);
  snprintf(key, sizeof key, "attention %lld %lld %lld %lld %lld %lld %lld %lld %d %d %d", (long long)shape->batch,
           (long long)shape->heads, (long long)shape->kv_heads, (long long)shape->rows, (long long)shape->kv_rows,
           (long long)shape->head_size, (long long)shape->q.row, (long long)shape->kv.row, shape->causal, shape->type,
           search->max_trials);
  return rl_dnn_open(handle, &graph, "attention", key, search, stream, plan, err);
}
