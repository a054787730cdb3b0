/* Tests fc1's own kernels (fc1_half.cu) at batches with partly filled groups of images. tests/simt/CMakeLists.txt lowers
 * MAX_GROUPS, so that a block that computes the gradient of the inputs has several groups. All values are small integers, so the
 * results are exact. */
#include <cuda_fp16.h>
#include <math.h>

#include "cuda_check.h"
#include "device_memory.h"
#include "train/cuda/kernels.h"

enum { INPUTS = RL_FC1_INPUTS, OUTPUTS = RL_FC1_OUTPUTS };

/* A matrix of FP16 values, and a copy in device memory that is followed by a row that the kernels must not use. */
struct matrix {
  size_t rows, columns;
  std::vector<float> values;
  __half *device;

  /* The values are integers in [-2, 2]. The row that follows has NaN. */
  matrix(size_t row_count, size_t column_count) : rows(row_count), columns(column_count), values(row_count * column_count) {
    std::vector<__half> stored((rows + 1) * columns, __float2half(NAN));
    for (size_t i = 0; i < values.size(); i++) stored[i] = __float2half(values[i] = (float)(rand() % 5 - 2));
    device = copy_to_device(stored);
  }
  ~matrix() { cudaFree(device); }
  matrix(const matrix &) = delete;
  const float *row(size_t i) const { return &values[i * columns]; }
};

static float to_float(float v) { return v; }
static float to_float(__half v) { return __half2float(v); }
/* Checks a result, and that the kernel has not written the row that follows it, whose values were `before`. */
template <class T> static void check_result(const T *device, const std::vector<float> &expected, size_t columns, float before,
                                            uint32_t batch, const char *what) {
  std::vector<T> result(expected.size() + columns);
  copy_to_host(device, result);
  for (size_t i = 0; i < result.size(); i++) {
    const float value = to_float(result[i]), right = i < expected.size() ? expected[i] : before;
    if (value == right) continue;
    printf("batch %u: %s[%zu][%zu] is %g, not %g\n", batch, what, i / columns, i % columns, value, right);
    exit(1);
  }
}

static void test_forward(uint32_t batch) {
  const matrix inputs(batch, INPUTS), weights(OUTPUTS, INPUTS);
  const size_t part_depth = INPUTS / RL_FC1_HALF_PARTS;
  const float before = -1000;
  std::vector<float> expected;
  for (size_t part = 0; part < RL_FC1_HALF_PARTS; part++)
    for (size_t n = 0; n < batch; n++)
      for (size_t output = 0; output < OUTPUTS; output++) {
        float sum = 0;
        for (size_t k = part * part_depth; k < (part + 1) * part_depth; k++) sum += inputs.row(n)[k] * weights.row(output)[k];
        expected.push_back(sum);
      }
  float *parts = copy_to_device(std::vector<float>(expected.size() + OUTPUTS, before));
  rl_error err = {};
  check(rl_fc1_half_forward(batch, inputs.device, weights.device, parts, NULL, &err) == 0, err.message);
  check_result(parts, expected, OUTPUTS, before, batch, "parts");
  cudaFree(parts);
}

/* Returns product_gradient · weights, the gradient of the inputs. */
static std::vector<float> expected_input_gradient(const matrix &product_gradient, const matrix &weights) {
  std::vector<float> expected(product_gradient.rows * INPUTS);
  for (size_t n = 0; n < product_gradient.rows; n++)
    for (size_t output = 0; output < OUTPUTS; output++)
      for (size_t k = 0; k < INPUTS; k++) expected[n * INPUTS + k] += product_gradient.row(n)[output] * weights.row(output)[k];
  return expected;
}

/* Returns product_gradientᵀ · inputs, the gradient of the weights. */
static std::vector<float> expected_weight_gradient(const matrix &product_gradient, const matrix &inputs) {
  std::vector<float> expected(OUTPUTS * INPUTS);
  for (size_t n = 0; n < inputs.rows; n++)
    for (size_t output = 0; output < OUTPUTS; output++)
      for (size_t k = 0; k < INPUTS; k++) expected[output * INPUTS + k] += product_gradient.row(n)[output] * inputs.row(n)[k];
  return expected;
}

/* with_weights: the kernel also computes the gradient of the weights. */
static void test_backward(uint32_t batch, bool with_weights) {
  const matrix inputs(batch, INPUTS), weights(OUTPUTS, INPUTS), product_gradient(batch, OUTPUTS);
  const float before = -1000;
  __half *input_gradient = copy_to_device(std::vector<__half>(((size_t)batch + 1) * INPUTS, __float2half(before)));
  float *weight_gradient = copy_to_device(std::vector<float>((OUTPUTS + 1) * INPUTS, before));
  rl_error err = {};
  check(rl_fc1_half_backward(batch, product_gradient.device, inputs.device, weights.device, input_gradient,
                             with_weights ? weight_gradient : NULL, NULL, &err) == 0,
        err.message);
  check_result(input_gradient, expected_input_gradient(product_gradient, weights), INPUTS, before, batch, "input_gradient");
  check_result(weight_gradient,
               with_weights ? expected_weight_gradient(product_gradient, inputs) : std::vector<float>(OUTPUTS * INPUTS, before),
               INPUTS, before, batch, "weight_gradient");
  cudaFree(input_gradient);
  cudaFree(weight_gradient);
}

int main() {
  for (uint32_t batch : {1, 63, 64, 65, 128}) test_forward(batch);
  for (uint32_t batch : {1, 63, 64, 65, 128}) test_backward(batch, true);
  for (uint32_t batch : {129, 193}) test_backward(batch, false);
  return 0;
}
