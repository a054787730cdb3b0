/* Compares the kernels of a layer, except its large products, with double precision: in both types, with sizes around those of
 * vectors and blocks, and with strides, where the elements between rows must not change. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <functional>
#include <vector>

#include "kernel/dtype.h"
#include "kernel/norm.h"
#include "layer/decode_attention.h"
#include "layer/elementwise.h"
#include "layer/row_product.h"

static const int types[] = {RL_DTYPE_FP16, RL_DTYPE_BF16};
static rl_error err;

static void check(bool condition, const char *what) {
  if (condition) return;
  printf("failed: %s: %s\n", what, err.message);
  exit(1);
}

/* A tensor of 2-byte elements in device memory, and its values. */
struct tensor {
  int dtype;
  std::vector<double> values;
  void *memory;

  /* The values are random in [-amplitude, amplitude]. */
  tensor(int type, size_t count, double amplitude = 2) : dtype(type), values(count), memory(NULL) {
    std::vector<uint16_t> stored(count);
    for (double &value : values) value = ((double)rand() / RAND_MAX * 2 - 1) * amplitude;
    rl_dtype_from_double(dtype, values.data(), (int64_t)count, stored.data());
    rl_dtype_to_double(dtype, stored.data(), (int64_t)count, values.data());
    check(cudaMalloc(&memory, count * 2) == cudaSuccess, "cudaMalloc");
    check(cudaMemcpy(memory, stored.data(), count * 2, cudaMemcpyHostToDevice) == cudaSuccess, "the upload");
  }
  ~tensor() { cudaFree(memory); }
  tensor(const tensor &) = delete;

  void *at(size_t index) const { return (char *)memory + 2 * index; }

  /* magnitude: typical size of the terms that are added for an element. Their rounding errors remain when the terms cancel. */
  void assert_equals(const std::function<double(size_t)> &expected, const char *what, double magnitude = 0.01) const {
    std::vector<uint16_t> stored(values.size());
    std::vector<double> result(values.size());
    check(cudaDeviceSynchronize() == cudaSuccess, what);
    check(cudaMemcpy(stored.data(), memory, values.size() * 2, cudaMemcpyDeviceToHost) == cudaSuccess, "the download");
    rl_dtype_to_double(dtype, stored.data(), (int64_t)values.size(), result.data());
    for (size_t i = 0; i < values.size(); i++)
      check(fabs(result[i] - expected(i)) <= rl_dtype_epsilon(dtype) * (fabs(expected(i)) + magnitude), what);
  }
};

static void test_norm(int dtype, size_t rows, size_t columns) {
  const tensor x(dtype, rows * columns), weight(dtype, columns), bias(dtype, columns), y(dtype, rows * columns);
  uint32_t *counter;
  check(cudaMalloc((void **)&counter, sizeof *counter) == cudaSuccess, "cudaMalloc");
  *counter = 0;
  const rl_layer_norm norm = {x.memory, weight.memory, bias.memory, y.memory, (int64_t)rows, (int64_t)columns, counter, true};
  check(rl_layer_norm_launch(dtype, &norm, NULL, &err) == 0, "launching a norm");
  y.assert_equals(
      [&](size_t i) {
        const double *row = &x.values[i / columns * columns];
        double mean = 0, squares = 0;
        for (size_t k = 0; k < columns; k++) mean += row[k] / (double)columns;
        for (size_t k = 0; k < columns; k++) squares += (row[k] - mean) * (row[k] - mean) / (double)columns;
        return (x.values[i] - mean) / sqrt(squares + RL_NORM_EPSILON) * weight.values[i % columns] + bias.values[i % columns];
      },
      "a norm");
  cudaFree(counter);
}

/* Sequences begin `context` rows apart. The kernel must change only q and k of the new tokens. */
static void test_rope(int dtype, int64_t batch, int64_t tokens, int64_t cached, int64_t heads, int64_t head_size) {
  const int64_t hidden = heads * head_size, context = cached + tokens, half = head_size / 2;
  const tensor qkv(dtype, (size_t)(batch * context * 3 * hidden));
  std::vector<float> angles((size_t)(context * head_size));
  for (size_t i = 0; i < angles.size(); i += 2) angles[i] = cosf(0.1f * (float)i), angles[i + 1] = sinf(0.1f * (float)i);
  const rl_layer_rope rope = {qkv.at((size_t)(cached * 3 * hidden)), batch, tokens, cached, context, hidden, head_size,
                              (const float2 *)angles.data()};
  check(rl_layer_rope_launch(dtype, &rope, NULL, &err) == 0, "launching rope");
  qkv.assert_equals(
      [&](size_t i) {
        const int64_t row = (int64_t)i / (3 * hidden), column = (int64_t)i % (3 * hidden), position = row % context,
                      pair = column % half;
        const bool is_second = column % head_size >= half;
        if (position < cached || column >= 2 * hidden) return qkv.values[i];
        const double cosine = angles[(size_t)(position * head_size + 2 * pair)],
                     sine = angles[(size_t)(position * head_size + 2 * pair + 1)];
        return is_second ? qkv.values[i] * cosine + qkv.values[i - (size_t)half] * sine
                         : qkv.values[i] * cosine - qkv.values[i + (size_t)half] * sine;
      },
      "rope");
}

static void test_residual(int dtype, size_t count) {
  const tensor x(dtype, count), residual(dtype, count), y(dtype, count);
  check(rl_layer_add_launch(dtype, x.memory, residual.memory, y.memory, (int64_t)count, NULL, &err) == 0, "launching a residual");
  y.assert_equals([&](size_t i) { return x.values[i] + residual.values[i]; }, "a residual");
}

/* joined: gate and up are the halves of each row of one matrix; otherwise they are two matrices. */
static void test_gate(int dtype, size_t rows, size_t columns, bool joined) {
  const tensor gate_and_up(dtype, 2 * rows * columns), y(dtype, rows * columns);
  const size_t stride = joined ? 2 * columns : columns, up = joined ? columns : rows * columns;
  const rl_layer_gate gate = {gate_and_up.memory, gate_and_up.at(up), (int64_t)stride, y.memory, (int64_t)rows, (int64_t)columns};
  check(rl_layer_gate_launch(dtype, &gate, NULL, &err) == 0, "launching the gate");
  y.assert_equals(
      [&](size_t i) {
        const size_t from = i / columns * stride + i % columns;
        return gate_and_up.values[from] / (1 + exp(-gate_and_up.values[from])) * gate_and_up.values[from + up];
      },
      "the gate");
}

/* --- decoding one token ------------------------------------------------------------------------------------------------- */

static const double WEIGHTS = 2; /* amplitude of weights, divided by the root of the number of inputs */

static double product_of_row(const std::vector<double> &x, const tensor &weight, size_t row) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); i++) sum += x[i] * weight.values[row * x.size() + i];
  return sum;
}

/* Returns layernorm(x), rounded to the type of x. */
static std::vector<double> normed(const tensor &x, const tensor &weight, const tensor &bias) {
  const double columns = (double)x.values.size();
  std::vector<double> result(x.values.size());
  double mean = 0, squares = 0;
  for (double value : x.values) mean += value / columns;
  for (double value : x.values) squares += (value - mean) * (value - mean) / columns;
  for (size_t i = 0; i < result.size(); i++) {
    uint16_t rounded;
    rl_dtype_store(x.dtype, &rounded, 0,
                   (x.values[i] - mean) / sqrt(squares + RL_NORM_EPSILON) * weight.values[i] + bias.values[i]);
    result[i] = rl_dtype_load(x.dtype, &rounded, 0);
  }
  return result;
}

/* With few multiprocessors, a warp computes several pairs of outputs. */
static void test_row_product(int dtype, size_t columns, size_t inputs, int64_t multiprocessors) {
  const tensor x(dtype, inputs), weight(dtype, columns * inputs, WEIGHTS / sqrt((double)inputs)), addend(dtype, columns),
      out(dtype, columns);
  rl_row_product product = {};
  product.dtype = dtype, product.epilogue = RL_HOPPER_ADD, product.columns = (int64_t)columns, product.inputs = (int64_t)inputs;
  product.x = x.memory, product.weight = weight.memory, product.addend = addend.memory, product.out = out.memory;
  product.multiprocessors = multiprocessors;
  check(rl_row_product_launch(&product, NULL, &err) == 0, "launching a product with a residual");
  out.assert_equals([&](size_t i) { return product_of_row(x.values, weight, i) + addend.values[i]; }, "a product with a residual",
                    1);
}

static void test_row_gate(int dtype, size_t columns, size_t inputs, int64_t multiprocessors) {
  const tensor x(dtype, inputs), weight(dtype, 2 * columns * inputs, WEIGHTS / sqrt((double)inputs)), norm_weight(dtype, inputs),
      norm_bias(dtype, inputs), out(dtype, columns);
  const std::vector<double> row = normed(x, norm_weight, norm_bias);
  rl_row_product product = {};
  product.dtype = dtype, product.epilogue = RL_HOPPER_GATE, product.columns = (int64_t)columns, product.inputs = (int64_t)inputs;
  product.x = x.memory, product.weight = weight.memory, product.up_weight = weight.at(columns * inputs), product.out = out.memory;
  product.norm_weight = norm_weight.memory, product.norm_bias = norm_bias.memory, product.multiprocessors = multiprocessors;
  check(rl_row_product_launch(&product, NULL, &err) == 0, "launching a product with a gate");
  out.assert_equals(
      [&](size_t i) {
        const double gate = product_of_row(row, weight, i);
        return gate / (1 + exp(-gate)) * product_of_row(row, weight, columns + i);
      },
      "a product with a gate", 4);
}

/* The columns are those of q, k and v; v is not rotated. */
static void test_row_rope(int dtype, size_t heads, size_t head_size, size_t inputs, int64_t multiprocessors) {
  const size_t hidden = heads * head_size, half = head_size / 2;
  const tensor x(dtype, inputs), weight(dtype, 3 * hidden * inputs, WEIGHTS / sqrt((double)inputs)), norm_weight(dtype, inputs),
      norm_bias(dtype, inputs), out(dtype, 3 * hidden);
  const std::vector<double> row = normed(x, norm_weight, norm_bias);
  std::vector<float> rotations(head_size);
  for (size_t i = 0; i < head_size; i += 2)
    rotations[i] = cosf(1 + 0.1f * (float)i), rotations[i + 1] = sinf(1 + 0.1f * (float)i);
  rl_row_product product = {};
  product.dtype = dtype, product.epilogue = RL_HOPPER_ROPE, product.columns = 3 * (int64_t)hidden,
  product.inputs = (int64_t)inputs;
  product.x = x.memory, product.weight = weight.memory, product.out = out.memory, product.rotations = rotations.data();
  product.norm_weight = norm_weight.memory, product.norm_bias = norm_bias.memory, product.multiprocessors = multiprocessors;
  product.head_size = (int64_t)head_size, product.rotated_columns = 2 * (int64_t)hidden;
  check(rl_row_product_launch(&product, NULL, &err) == 0, "launching a product with rope");
  out.assert_equals(
      [&](size_t i) {
        const double own = product_of_row(row, weight, i);
        if (i >= 2 * hidden) return own;
        const size_t pair = i % half;
        const double cosine = rotations[2 * pair], sine = rotations[2 * pair + 1];
        return i % head_size >= half ? own * cosine + product_of_row(row, weight, i - half) * sine
                                     : own * cosine - product_of_row(row, weight, i + half) * sine;
      },
      "a product with rope", 4);
}

/* With more multiprocessors, more blocks share a head. With large elements, exp(score) overflows without the maximum. */
static void test_decode_attention(int dtype, size_t heads, size_t head_size, size_t context, int64_t multiprocessors,
                                  double amplitude = 2) {
  const size_t hidden = heads * head_size;
  const tensor qkv(dtype, context * 3 * hidden, amplitude), out(dtype, hidden);
  const rl_decode_attention attention = {
      dtype, qkv.memory, out.memory, (int64_t)heads, (int64_t)head_size, (int64_t)context, multiprocessors};
  check(rl_decode_attention_launch(&attention, NULL, &err) == 0, "launching the attention of a token");
  std::vector<double> expected(hidden);
  for (size_t head = 0; head < heads; head++) {
    const double *query = &qkv.values[(context - 1) * 3 * hidden + head * head_size];
    std::vector<double> weights(context);
    double maximum = -INFINITY, total = 0;
    for (size_t token = 0; token < context; token++) {
      const double *key = &qkv.values[token * 3 * hidden + hidden + head * head_size];
      for (size_t i = 0; i < head_size; i++) weights[token] += query[i] * key[i] / sqrt((double)head_size);
      maximum = fmax(maximum, weights[token]);
    }
    for (double &weight : weights) total += weight = exp(weight - maximum);
    for (size_t token = 0; token < context; token++)
      for (size_t i = 0; i < head_size; i++)
        expected[head * head_size + i] +=
            weights[token] / total * qkv.values[token * 3 * hidden + 2 * hidden + head * head_size + i];
  }
  out.assert_equals([&](size_t i) { return expected[i]; }, "the attention of a token", 0.1 * amplitude);
}

int main() {
  for (int dtype : types) {
    test_norm(dtype, 3, 8), test_norm(dtype, 5, 264), test_norm(dtype, 2, 4096);
    test_rope(dtype, 1, 3, 0, 2, 16), test_rope(dtype, 2, 1, 4, 3, 8), test_rope(dtype, 2, 3, 0, 5, 128);
    test_residual(dtype, 8), test_residual(dtype, 2056);
    for (bool joined : {false, true}) test_gate(dtype, 3, 8, joined), test_gate(dtype, 2, 2056, joined);
    test_row_product(dtype, 8, 8, 132), test_row_product(dtype, 72, 344, 1), test_row_product(dtype, 200, 2056, 2);
    test_row_gate(dtype, 8, 8, 132), test_row_gate(dtype, 344, 264, 2), test_row_gate(dtype, 40, 1032, 1);
    test_row_rope(dtype, 1, 8, 8, 132), test_row_rope(dtype, 3, 24, 72, 1), test_row_rope(dtype, 2, 64, 264, 2);
    test_decode_attention(dtype, 1, 8, 1, 1), test_decode_attention(dtype, 3, 24, 30, 7),
        test_decode_attention(dtype, 2, 64, 77, 4);
    test_decode_attention(dtype, 1, 72, 600, 2), test_decode_attention(dtype, 2, 128, 301, 16),
        test_decode_attention(dtype, 1, 256, 150, 8);
    for (int i = 0; i < 4; i++) test_decode_attention(dtype, 2, 128, 301, 16, 50);
  }
  check(rl_row_product_supports(RL_HOPPER_ADD, 24576) && !rl_row_product_supports(RL_HOPPER_ADD, 24584), "the longest row");
  for (rl_hopper_epilogue epilogue : {RL_HOPPER_GATE, RL_HOPPER_ROPE}) /* layernorm needs 64 bytes besides a row of 48 KiB */
    check(rl_row_product_supports(epilogue, 22528) && !rl_row_product_supports(epilogue, 24576), "the longest row of layernorm");
  return 0;
}
