/* Tests the kernels of conv2 in train/cuda (conv2_half.cu, conv2_float.cu) against the double-precision functions of
 * train/oracle.h, on random values of the kernels' types. Before each test, every output buffer and a margin behind it are filled
 * with the byte 0xff; the margin must not change. The program uses no library, so that compute-sanitizer's racecheck and the
 * emulator of tests/simt can run it. Arguments: batch sizes to test instead of those in main.
 *
 * Names: "x_gradient" is the gradient of the loss with respect to x. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "cuda_check.h"
#include "train/cuda/kernels.h"
#include "train/oracle.h"

enum { TAPS = 9 /* weights of a filter of 3 x 3 for one input channel */, POISON = 0xff };
#ifdef __SANITIZE_ADDRESS__
enum { MARGIN = 0 }; /* AddressSanitizer checks the bounds itself */
#else
enum { MARGIN = 4096 /* bytes */ };
#endif

static int failures;

static void check_cuda(cudaError_t status) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "test_conv2: %s\n", cudaGetErrorString(status));
  exit(1);
}

static void expect(bool holds, const char *claim, uint32_t batch) {
  if (holds) return;
  printf("batch %u: failed: %s\n", batch, claim);
  failures++;
}

/* An array in device memory, followed by the margin. host() copies it to the host and checks the margin. */
template <typename T> struct device_array {
  T *data;
  size_t count;
  explicit device_array(size_t n) : count(n) {
    check_cuda(cudaMalloc(&data, n * sizeof(T) + MARGIN));
    check_cuda(cudaMemset(data, POISON, n * sizeof(T) + MARGIN));
  }
  explicit device_array(const std::vector<T> &from) : device_array(from.size()) {
    check_cuda(cudaMemcpy(data, from.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~device_array() { cudaFree(data); }
  std::vector<T> host(uint32_t batch) const {
    const size_t bytes = count * sizeof(T);
    std::vector<unsigned char> raw(bytes + MARGIN);
    check_cuda(cudaMemcpy(raw.data(), data, raw.size(), cudaMemcpyDeviceToHost));
    bool margin_is_intact = true;
    for (size_t i = bytes; i < raw.size(); i++) margin_is_intact &= raw[i] == POISON;
    expect(margin_is_intact, "nothing is written beyond an output", batch);
    std::vector<T> values(count);
    memcpy((void *)values.data(), raw.data(), bytes);
    return values;
  }
};

static uint64_t seed = 1;
/* Returns a random number in [-1, 1). */
static double random_value(void) { return (double)(int64_t)(rl_hash64(seed++) >> 11) * 0x1p-52 - 1.0; }

static void store_rounded(double value, __half *to) { *to = __float2half_rn((float)value); }
static void store_rounded(double value, float *to) { *to = (float)value; }

template <typename T> static std::vector<T> random_values(size_t count, double magnitude) {
  std::vector<T> result(count);
  for (T &value : result) store_rounded(magnitude * random_value(), &value);
  return result;
}

/* Expects ‖actual − expected‖ / ‖expected‖ < tolerance; NaN fails. */
static void expect_close(const std::vector<double> &actual, const std::vector<double> &expected, double tolerance,
                         const char *claim, uint32_t batch) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); i++) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  printf("  batch %3u: %-20s %.2e (at most %.0e)\n", batch, claim, sqrt(difference / norm), tolerance);
  expect(norm > 0 && sqrt(difference / norm) < tolerance, claim, batch);
}

/* Returns tensor[image][pixel][channel] as doubles in the order [image][channel][pixel], with `planes` channels of `pixels`
 * pixels. */
template <typename T> static std::vector<double> planar(const std::vector<T> &from, size_t planes, size_t pixels) {
  std::vector<double> result(from.size());
  for (size_t i = 0; i < from.size(); i++) {
    size_t n = i / (planes * pixels), index = i % (planes * pixels);
    result[(n * planes + index % planes) * pixels + index / planes] = (double)(float)from[i];
  }
  return result;
}

/* The kernels have conv2's weights as [filter][tap][channel], the oracle as [filter][channel][tap]. Returns the oracle's index of
 * element i of the kernels' weights. */
static size_t oracle_weight_index(size_t i) {
  const size_t filter = i / (TAPS * RL_CONV1_CHANNELS), tap = i / RL_CONV1_CHANNELS % TAPS, channel = i % RL_CONV1_CHANNELS;
  return (filter * RL_CONV1_CHANNELS + channel) * TAPS + tap;
}

/* Pools y, conv2's output as planes, at the argmaxes that a kernel has written. An argmax is a position, 0 to 3, in a window of
 * 2 x 2, or RL_ARGMAX_RELU_ZERO; then the pooled value is zero. Expects that each pooled value is the greatest of zero and its
 * window's four values, apart from rounding. */
static std::vector<double> pool_at_argmaxes(const std::vector<double> &y, const std::vector<uint8_t> &argmaxes, uint32_t batch) {
  std::vector<double> pooled(argmaxes.size());
  bool all_greatest = true;
  for (size_t i = 0; i < pooled.size(); i++) {
    const double *corner = &y[i / RL_POOLED2_PIXELS * RL_CONV2_PIXELS +
                              i % RL_POOLED2_PIXELS / RL_POOLED2_SIDE * 2 * RL_CONV2_SIDE + i % RL_POOLED2_SIDE * 2];
    double greatest = 0;
    for (int position = 0; position < 4; position++)
      greatest = fmax(greatest, corner[position / 2 * RL_CONV2_SIDE + position % 2]);
    pooled[i] = argmaxes[i] < 4 ? corner[argmaxes[i] / 2 * RL_CONV2_SIDE + argmaxes[i] % 2] : 0;
    all_greatest &= argmaxes[i] <= RL_ARGMAX_RELU_ZERO && fabs(pooled[i] - greatest) < 1e-4;
  }
  expect(all_greatest, "the greatest of four values is pooled", batch);
  return pooled;
}

/* The functions below exist for FP16 and for FP32, so that check_batch can be a template. partial_rows_of returns the number of
 * rows of partial sums that the backward kernel writes; a row is the weight and bias gradient of some of the images. tolerance_of
 * returns the tolerance of pooled values and input gradients; forward and backward call the kernels. */
static uint32_t partial_rows_of(const __half *, uint32_t batch) { return rl_conv2_partial_rows(batch); }
static uint32_t partial_rows_of(const float *, uint32_t batch) { return rl_conv2_float_partial_rows(batch); }
static double tolerance_of(const __half *) { return 5e-4; }
static double tolerance_of(const float *) { return 1e-6; }

static int forward(uint32_t batch, const __half *in, const __half *w, const float *bias, __half *pooled, uint8_t *argmaxes,
                   rl_train_state *state, rl_error *err) {
  return rl_conv2_forward(batch, in, w, bias, pooled, argmaxes, state, NULL, err);
}
static int forward(uint32_t batch, const float *in, const float *w, const float *bias, float *pooled, uint8_t *argmaxes,
                   rl_train_state *, rl_error *err) {
  return rl_conv2_float_forward(batch, in, w, bias, pooled, argmaxes, NULL, err);
}
static int backward(uint32_t batch, const __half *in, const __half *w, const __half *pooled_gradient, const uint8_t *argmaxes,
                    __half *in_gradient, float *partial_weight, float *partial_bias, rl_train_state *state, rl_error *err) {
  return rl_conv2_backward(batch, in, w, pooled_gradient, argmaxes, in_gradient, partial_weight, partial_bias, state, NULL, err);
}
static int backward(uint32_t batch, const float *in, const float *w, const float *pooled_gradient, const uint8_t *argmaxes,
                    float *in_gradient, float *partial_weight, float *partial_bias, rl_train_state *, rl_error *err) {
  return rl_conv2_float_backward(batch, in, w, pooled_gradient, argmaxes, in_gradient, partial_weight, partial_bias, NULL, err);
}

/* Tests the forward and the backward kernels of one type with `batch` images. */
template <typename T> static void check_batch(uint32_t batch) {
  rl_error err = {};
  const int n = (int)batch;
  const T *type = NULL;
  const uint32_t row_count = partial_rows_of(type, batch);
  std::vector<T> x = random_values<T>((size_t)n * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS, 1),
                 weights = random_values<T>(RL_CONV2_CHANNELS * TAPS * RL_CONV1_CHANNELS, 0.06),
                 pooled_gradient = random_values<T>((size_t)n * RL_FC1_INPUTS, 1);
  std::vector<float> bias(RL_CONV2_CHANNELS);
  for (float &value : bias) value = (float)(0.1 * random_value());
  device_array<T> device_x(x), device_weights(weights), device_pooled_gradient(pooled_gradient),
      pooled((size_t)n * RL_FC1_INPUTS), x_gradient((size_t)n * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS);
  device_array<float> device_bias(bias), partial_weight((size_t)row_count * RL_CONV2_CHANNELS * TAPS * RL_CONV1_CHANNELS),
      partial_bias(row_count * RL_CONV2_CHANNELS);
  device_array<uint8_t> argmaxes((size_t)n * RL_FC1_INPUTS);
  device_array<rl_train_state> state{std::vector<rl_train_state>(1)};
  if (forward(batch, device_x.data, device_weights.data, device_bias.data, pooled.data, argmaxes.data, state.data, &err) < 0 ||
      backward(batch, device_x.data, device_weights.data, device_pooled_gradient.data, argmaxes.data, x_gradient.data,
               partial_weight.data, partial_bias.data, state.data, &err) < 0) {
    fprintf(stderr, "test_conv2: %s\n", err.message);
    exit(1);
  }
  check_cuda(cudaDeviceSynchronize());
  expect(state.host(batch)[0].overflow == 0, "finite values raise no overflow", batch);

  std::vector<double> w(RL_CONV2_CHANNELS * RL_CONV1_CHANNELS * TAPS), b(bias.begin(), bias.end());
  for (size_t i = 0; i < w.size(); i++) w[oracle_weight_index(i)] = (double)(float)weights[i];
  std::vector<double> in = planar(x, RL_CONV1_CHANNELS, RL_POOLED1_PIXELS), y((size_t)n * RL_CONV2_CHANNELS * RL_CONV2_PIXELS),
                      y_gradient(y.size()), in_gradient(in.size()), w_gradient(w.size()), b_gradient(RL_CONV2_CHANNELS);
  std::vector<uint8_t> raw_argmaxes = argmaxes.host(batch), argmax_planes(raw_argmaxes.size());
  std::vector<double> planes = planar(raw_argmaxes, RL_CONV2_CHANNELS, RL_POOLED2_PIXELS);
  for (size_t i = 0; i < argmax_planes.size(); i++) argmax_planes[i] = (uint8_t)planes[i];
  rl_oracle_conv_forward(&rl_oracle_conv2, n, in.data(), w.data(), b.data(), y.data());
  const std::vector<double> expected_pooled = pool_at_argmaxes(y, argmax_planes, batch);
  expect_close(planar(pooled.host(batch), RL_CONV2_CHANNELS, RL_POOLED2_PIXELS), expected_pooled, tolerance_of(type), "pooled",
               batch);

  rl_oracle_pool_gradient((size_t)n * RL_CONV2_CHANNELS, RL_CONV2_SIDE,
                          planar(pooled_gradient, RL_CONV2_CHANNELS, RL_POOLED2_PIXELS).data(), argmax_planes.data(),
                          y_gradient.data());
  rl_oracle_conv_input_gradient(&rl_oracle_conv2, n, y_gradient.data(), w.data(), in_gradient.data());
  rl_oracle_conv_weight_gradient(&rl_oracle_conv2, n, in.data(), y_gradient.data(), w_gradient.data(), b_gradient.data());
  expect_close(planar(x_gradient.host(batch), RL_CONV1_CHANNELS, RL_POOLED1_PIXELS), in_gradient, tolerance_of(type),
               "input gradient", batch);
  std::vector<float> rows = partial_weight.host(batch), bias_rows = partial_bias.host(batch);
  std::vector<double> sum(w.size()), bias_sum(RL_CONV2_CHANNELS);
  for (size_t i = 0; i < rows.size(); i++) sum[oracle_weight_index(i % w.size())] += rows[i];
  for (size_t i = 0; i < bias_rows.size(); i++) bias_sum[i % RL_CONV2_CHANNELS] += bias_rows[i];
  expect_close(sum, w_gradient, 1e-5, "weight gradient", batch);
  expect_close(bias_sum, b_gradient, 1e-5, "bias gradient", batch);
}

/* Tests that two overflows of FP16 are recorded in the training state. In the forward pass, conv2's outputs overflow to negative
 * values; ReLU turns them into 0, so the pooled values don't show the overflow. In the backward pass, one gradient of a pooled
 * value is infinite. */
static void check_overflow(void) {
  rl_error err = {};
  for (int backward = 0; backward < 2; backward++) {
    std::vector<__half> x(RL_POOLED1_PIXELS * RL_CONV1_CHANNELS, __float2half(100.0f)),
        pooled_gradient(RL_FC1_INPUTS, __float2half(1.0f)),
        weights(RL_CONV2_CHANNELS * TAPS * RL_CONV1_CHANNELS, __float2half(-6.0f));
    pooled_gradient[777] = __float2half(INFINITY);
    std::vector<uint8_t> first_positions(RL_FC1_INPUTS, 0);
    device_array<__half> device_x(x), device_weights(weights), device_pooled_gradient(pooled_gradient), pooled(RL_FC1_INPUTS),
        x_gradient(RL_POOLED1_PIXELS * RL_CONV1_CHANNELS);
    device_array<float> bias{std::vector<float>(RL_CONV2_CHANNELS)}, partial_weight(RL_CONV2_CHANNELS * TAPS * RL_CONV1_CHANNELS),
        partial_bias(RL_CONV2_CHANNELS);
    device_array<uint8_t> argmaxes(first_positions);
    device_array<rl_train_state> state{std::vector<rl_train_state>(1)};
    if (backward ? rl_conv2_backward(1, device_x.data, device_weights.data, device_pooled_gradient.data, argmaxes.data,
                                     x_gradient.data, partial_weight.data, partial_bias.data, state.data, NULL, &err)
                 : rl_conv2_forward(1, device_x.data, device_weights.data, bias.data, pooled.data, argmaxes.data, state.data,
                                    NULL, &err))
      exit(1);
    expect(state.host(1)[0].overflow == 1, backward ? "an infinite gradient is recorded" : "a negative overflow is recorded", 1);
  }
}

int main(int count, char **arguments) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("skipped: no NVIDIA GPU\n");
    return 77;
  }
  /* These batches are smaller and larger than two numbers of images of each kernel: the images that it processes concurrently,
   * and the images that fill all its buffers in shared memory, so that the next image reuses one.
   *
   *                                   concurrent   in all buffers
   *   FP16 forward                        66            528
   *   FP16 backward, weight gradient      88            176
   *   FP32 forward                        66             66
   *   FP32 backward, input gradient       64             64 */
  std::vector<uint32_t> batches = {1, 2, 3, 64, 133, 593};
  if (count > 1) batches.clear();
  for (int i = 1; i < count; i++) batches.push_back((uint32_t)atoi(arguments[i]));
  for (uint32_t batch : batches) check_batch<__half>(batch);
  for (uint32_t batch : batches) check_batch<float>(batch);
  check_overflow();
  printf(failures ? "%d failed\n" : "all passed\n", failures);
  return failures != 0;
}
