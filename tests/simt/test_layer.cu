/* Compares the kernels between the products of a layer with double precision: in both types, with sizes around those of vectors
 * and blocks, and with strides, where the elements between rows must not change. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <functional>
#include <vector>

#include "kernel/dtype.h"
#include "kernel/norm.h"
#include "layer/elementwise.h"

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

  tensor(int type, size_t count) : dtype(type), values(count), memory(NULL) {
    std::vector<uint16_t> stored(count);
    for (double &value : values) value = (double)rand() / RAND_MAX * 4 - 2;
    rl_dtype_from_double(dtype, values.data(), (int64_t)count, stored.data());
    rl_dtype_to_double(dtype, stored.data(), (int64_t)count, values.data());
    check(cudaMalloc(&memory, count * 2) == cudaSuccess, "cudaMalloc");
    check(cudaMemcpy(memory, stored.data(), count * 2, cudaMemcpyHostToDevice) == cudaSuccess, "the upload");
  }
  ~tensor() { cudaFree(memory); }
  tensor(const tensor &) = delete;

  void *at(size_t index) const { return (char *)memory + 2 * index; }

  void assert_equals(const std::function<double(size_t)> &expected, const char *what) const {
    std::vector<uint16_t> stored(values.size());
    std::vector<double> result(values.size());
    check(cudaDeviceSynchronize() == cudaSuccess, what);
    check(cudaMemcpy(stored.data(), memory, values.size() * 2, cudaMemcpyDeviceToHost) == cudaSuccess, "the download");
    rl_dtype_to_double(dtype, stored.data(), (int64_t)values.size(), result.data());
    for (size_t i = 0; i < values.size(); i++)
      check(fabs(result[i] - expected(i)) <= rl_dtype_epsilon(dtype) * (fabs(expected(i)) + 0.01), what);
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

/* Sequences begin `context` rows apart. The kernel changes only q and k of the new tokens. */
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
  const tensor x(dtype, count), r(dtype, count), y(dtype, count);
  check(rl_layer_add_launch(dtype, x.memory, r.memory, y.memory, (int64_t)count, NULL, &err) == 0, "launching a residual");
  y.assert_equals([&](size_t i) { return x.values[i] + r.values[i]; }, "a residual");
}

/* joined: gate and up are the halves of each row of one matrix; else two matrices. */
static void test_gate(int dtype, size_t rows, size_t columns, bool joined) {
  const tensor both(dtype, 2 * rows * columns), y(dtype, rows * columns);
  const size_t stride = joined ? 2 * columns : columns, up = joined ? columns : rows * columns;
  const rl_layer_gate gate = {both.memory, both.at(up), (int64_t)stride, y.memory, (int64_t)rows, (int64_t)columns};
  check(rl_layer_gate_launch(dtype, &gate, NULL, &err) == 0, "launching the gate");
  y.assert_equals(
      [&](size_t i) {
        const size_t from = i / columns * stride + i % columns;
        return both.values[from] / (1 + exp(-both.values[from])) * both.values[from + up];
      },
      "the gate");
}

int main() {
  for (int dtype : types) {
    test_norm(dtype, 3, 8), test_norm(dtype, 5, 264), test_norm(dtype, 2, 4096);
    test_rope(dtype, 1, 3, 0, 2, 16), test_rope(dtype, 2, 1, 4, 3, 8), test_rope(dtype, 2, 3, 0, 5, 128);
    test_residual(dtype, 8), test_residual(dtype, 2056);
    for (bool joined : {false, true}) test_gate(dtype, 3, 8, joined), test_gate(dtype, 2, 2056, joined);
  }
  return 0;
}
