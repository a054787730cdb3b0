/* Tests the functions of train/cuda/tile_float.cuh, tile_half.cuh and tile_tensor_float.cuh, of which the engine "persistent"
 * consists: each alone, in each format, against sums in double precision on random values. Rows beyond the valid images are NaN,
 * so that a result shows if a function reads them. Then, on a GPU, the program prints the cycles that each function takes. It
 * uses no library, so that compute-sanitizer's racecheck and the emulator of tests/simt can run it. Argument: repetitions for
 * timing; 0, the default, means no timing.
 *
 * Names: "x_gradient" is the gradient of the loss with respect to x; "w" in the kernels are weights in shared memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <vector>

#include "cuda_check.h"
#include "train/cuda/tile_float.cuh"
#include "train/cuda/tile_half.cuh"
#include "train/cuda/tile_tensor_float.cuh"

enum { CONV2_SIDE = RL_CONV2_SIDE }; /* rows, and columns, of conv2's output before pooling */

static int failures;

static void check_cuda(cudaError_t status) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "test_tiles: %s\n", cudaGetErrorString(status));
  exit(1);
}

template <typename T> struct device_array {
  T *data;
  size_t count;
  explicit device_array(size_t n) : count(n) {
    check_cuda(cudaMalloc((void **)&data, n * sizeof(T)));
    check_cuda(cudaMemset(data, 0xff, n * sizeof(T)));
  }
  explicit device_array(const std::vector<T> &from) : device_array(from.size()) {
    check_cuda(cudaMemcpy(data, from.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  device_array(const device_array &) = delete;
  ~device_array() { cudaFree(data); }
  std::vector<double> host() const {
    std::vector<T> raw(count);
    check_cuda(cudaMemcpy(raw.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
    return std::vector<double>(raw.begin(), raw.end());
  }
};

static uint64_t seed = 1;
/* Returns a random number in [-1, 1). */
static double random_value(void) { return (double)(int64_t)(rl_hash64(seed++) >> 11) * 0x1p-52 - 1.0; }
static void store_rounded(double value, __half *to) { *to = __float2half_rn((float)value); }
static void store_rounded(double value, float *to) { *to = (float)value; }
static void store_rounded(double value, tensor_float *to) {
  int exponent;
  const double significand = frexp(value, &exponent);
  to->value = (float)ldexp(rint(ldexp(significand, 11)), exponent - 11);
}

/* A matrix of random values. `padded` is the form that a tile function reads: rows are `pitch` values apart, with NaN between and
 * after them. `values` has the matrix as doubles without padding. */
template <typename T> struct matrix {
  size_t rows, columns;
  std::vector<double> values;
  std::vector<T> padded;
  matrix(size_t row_count, size_t column_count, size_t pitch, double magnitude, size_t padded_rows = 0)
      : rows(row_count),
        columns(column_count),
        values(row_count * column_count),
        padded((padded_rows > row_count ? padded_rows : row_count) * pitch) {
    for (T &value : padded) store_rounded(NAN, &value);
    for (size_t i = 0; i < row_count * column_count; i++) {
      T *to = &padded[i / column_count * pitch + i % column_count];
      store_rounded(magnitude * random_value(), to);
      values[i] = (double)(float)*to;
    }
  }
};

static void expect_close(const std::vector<double> &actual, const std::vector<double> &expected, double tolerance,
                         const char *format, const char *what) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); i++) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  const bool holds = norm > 0 && sqrt(difference / norm) < tolerance; /* NaN does not pass */
  printf("  %s: %-24s %.2e (at most %.0e)%s\n", format, what, sqrt(difference / norm), tolerance, holds ? "" : " FAILED");
  failures += !holds;
}

/* The kernels below copy the operands to shared memory, call one tile function `repeats` times, and copy its result to global
 * memory. F is the format, a struct of one of the included files. */

/* Copies `count` values to shared memory and returns the next multiple of 8 values behind them. */
template <typename T> static __device__ T *fill(T *to, const T *from, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
  return to + (count + 7) / 8 * 8;
}

/* Unpools pooled_gradient[36 pixels][32 channels] into conv2's output gradient at `to`, and returns the address behind it. */
template <class F>
static __device__ typename F::value *fill_d_out(typename F::value *to, const float *pooled_gradient, const uint8_t *argmaxes) {
  for (int i = threadIdx.x * 4; i < RL_POOLED2_PIXELS * TILE_CHANNELS; i += blockDim.x * 4)
    F::unpool(i / TILE_CHANNELS, i % TILE_CHANNELS, *(const uchar4 *)&argmaxes[i], *(const float4 *)&pooled_gradient[i], to);
  __syncthreads();
  return to + (F::OUT_GRADIENT_VALUES + 7) / 8 * 8;
}

template <class F> static __global__ void __launch_bounds__(F::THREADS, 1)
    run_forward(const typename F::value *in, const typename F::value *weights, float *result /* [32][144] */, int repeats,
                long long *cycles) {
  extern __shared__ __align__(16) unsigned char shared[];
  typename F::value *x = (typename F::value *)shared, *w = fill(x, in, RL_POOLED1_PIXELS * F::IN_PITCH);
  float *scratch = (float *)(w + (F::WEIGHT_VALUES + 7) / 8 * 8);
  if constexpr (!F::CONV2_FORWARD_SCRATCH_FLOATS) fill(w, weights, TILE_CHANNELS * F::LOADED_WEIGHT_PITCH);
  __syncthreads();
  const auto epilogue = [&](int pixel, int channel, const float a[4], const float b[4]) {
    for (int position = 0; position < 4; position++) {
      float *to = &result[channel * CONV2_SIDE * CONV2_SIDE + (pixel / RL_POOLED2_SIDE * 2 + position / 2) * CONV2_SIDE +
                          pixel % RL_POOLED2_SIDE * 2 + position % 2];
      to[0] = a[position];
      to[CONV2_SIDE * CONV2_SIDE] = b[position];
    }
  };
  const long long begin = clock64();
  for (int repeat = 0; repeat < repeats; repeat++) {
    if constexpr (F::CONV2_FORWARD_SCRATCH_FLOATS) {
      const typename F::loaded_weights loaded = F::load_weights(weights);
      F::conv2_forward(
          x, loaded, w, scratch, [] {},
          [&](int pixel, int channel, const float products[4][4]) {
            epilogue(pixel, channel, products[0], products[1]);
            epilogue(pixel, channel + 2, products[2], products[3]);
          });
    } else {
      F::conv2_forward(
          x, w, scratch, [] {}, epilogue);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *cycles = clock64() - begin;
}

template <class F> static __global__ void __launch_bounds__(F::THREADS, 1)
    run_weight_gradient(const typename F::value *in, const float *pooled_gradient, const uint8_t *argmaxes,
                        typename F::row_value *result /* [32][288] */, int repeats, long long *cycles) {
  extern __shared__ __align__(16) unsigned char shared[];
  typename F::value *x = (typename F::value *)shared, *d = fill(x, in, RL_POOLED1_PIXELS * F::IN_PITCH);
  fill_d_out<F>(d, pooled_gradient, argmaxes);
  typename F::weight_sums sums = F::init_weight_sums(result);
  const long long begin = clock64();
  for (int repeat = 0; repeat < repeats; repeat++) F::conv2_weight_gradient(x, d, sums);
  const long long end = clock64();
  __syncthreads();
  for (int third = 0; third < 3; third++) F::store_weight_gradient(sums, third, result);
  if (threadIdx.x == 0) *cycles = end - begin;
}

template <class F> static __global__ void __launch_bounds__(F::THREADS, 1)
    run_input_gradient(const typename F::value *weights, const float *pooled_gradient, const uint8_t *argmaxes,
                       float *result /* [196][32] */, int repeats, long long *cycles) {
  extern __shared__ __align__(16) unsigned char shared[];
  typename F::value *w = (typename F::value *)shared, *d = fill(w, weights, TILE_CHANNELS * F::LOADED_WEIGHT_PITCH);
  fill_d_out<F>(d, pooled_gradient, argmaxes);
  const long long begin = clock64();
  for (int repeat = 0; repeat < repeats; repeat++) {
    F::conv2_input_gradient(
        w, d, [](int) {},
        [&](int pixel, int channel, float a, float b) {
          *(float2 *)&result[pixel * RL_CONV1_CHANNELS + channel] = make_float2(a, b);
        });
    __syncthreads();
  }
  if (threadIdx.x == 0) *cycles = clock64() - begin;
}

/* Both gradients, if CONV2_GRADIENTS_TOGETHER. They overwrite their operands. */
template <class F> static __global__ void __launch_bounds__(F::THREADS, 1)
    run_gradients(const typename F::value *in, const typename F::value *weights, const float *pooled_gradient,
                  const uint8_t *argmaxes, float *weight_result /* [32][288] */, float *in_result /* [196][32] */, int repeats,
                  long long *cycles) {
  extern __shared__ __align__(16) unsigned char shared[];
  typename F::conv2_gradient_memory &memory = *(typename F::conv2_gradient_memory *)shared;
  typename F::value *x = (typename F::value *)(&memory + 1);
  fill(x, in, RL_POOLED1_PIXELS * F::IN_PITCH);
  long long sum = 0;
  for (int repeat = 0; repeat < repeats; repeat++) {
    fill(memory.weights, weights, TILE_CHANNELS * F::LOADED_WEIGHT_PITCH);
    fill_d_out<F>(memory.out_gradient, pooled_gradient, argmaxes);
    typename F::weight_sums sums = F::init_weight_sums(weight_result);
    const long long begin = clock64();
    F::conv2_gradients(
        x, memory, sums, [] {},
        [&](int pixel, int channel, float a, float b) {
          *(float2 *)&in_result[pixel * RL_CONV1_CHANNELS + channel] = make_float2(a, b);
        });
    sum += clock64() - begin;
    __syncthreads();
  }
  if (threadIdx.x == 0) *cycles = sum;
}

template <class F, int SLICE_INPUTS> static __global__ void __launch_bounds__(F::THREADS, 1)
    run_fc1(const typename F::value *in, const typename F::value *fc1_product_gradient, const typename F::value *weights,
            float *product /* [8][128] */, float *in_gradient /* [8][SLICE_INPUTS] */, int repeats, long long *cycles) {
  extern __shared__ __align__(16) unsigned char shared[];
  typename F::value *w = (typename F::value *)shared, *x = fill(w, weights, RL_FC1_OUTPUTS * (SLICE_INPUTS + F::SLICE_PADDING));
  typename F::value *d = fill(x, in, TILE_IMAGES * (SLICE_INPUTS + F::SLICE_PADDING));
  fill(d, fc1_product_gradient, TILE_IMAGES * F::FC1_PRODUCT_GRADIENT_PITCH);
  __syncthreads();
  const long long begin = clock64();
  for (int repeat = 0; repeat < repeats; repeat++) {
    F::template fc1_forward<SLICE_INPUTS>(
        x, w, [] {},
        [&](int image, int output, float a, float b) {
          *(float2 *)&product[image * RL_FC1_OUTPUTS + output] = make_float2(a, b);
        });
    __syncthreads();
  }
  const long long forward_end = clock64();
  for (int repeat = 0; repeat < repeats; repeat++) {
    F::template fc1_backward<SLICE_INPUTS>(
        d, w, [] {},
        [&](int image, int k, float a, float b) { *(float2 *)&in_gradient[image * SLICE_INPUTS + k] = make_float2(a, b); });
    __syncthreads();
  }
  if (threadIdx.x == 0) cycles[0] = forward_end - begin, cycles[1] = clock64() - forward_end;
}

template <class F> static __global__ void __launch_bounds__(F::THREADS, 1)
    run_fc1_weight(const typename F::value *fc1_product_gradient, const typename F::value *in, float *result /* [16][144] */,
                   int repeats, long long *cycles) {
  extern __shared__ __align__(16) unsigned char shared[];
  typename F::value *d = (typename F::value *)shared,
                    *x = fill(d, fc1_product_gradient, TILE_BATCH * F::FC1_PRODUCT_GRADIENT_TILE_PITCH);
  fill(x, in, TILE_BATCH * F::FC1_INPUT_TILE_PITCH);
  __syncthreads();
  if (threadIdx.x / 32 >= F::FC1_GRADIENT_WARPS) return;
  float sums[F::FC1_GRADIENT_PAIRS_PER_THREAD][2] = {};
  const long long begin = clock64();
  for (int repeat = 0; repeat < repeats; repeat++) F::fc1_weight_gradient(d, x, sums);
  if (threadIdx.x == 0) *cycles = clock64() - begin;
  for (int i = 0; i < F::FC1_GRADIENT_PAIRS_PER_THREAD; i++)
    *(float2 *)&result[F::fc1_gradient_row(i) * TILE_COLUMNS + F::fc1_gradient_column(i)] = make_float2(sums[i][0], sums[i][1]);
}

typedef std::vector<double> doubles;

/* Calls f(output pixel, input pixel, tap) for each product of conv2. */
template <class Each> static void each_tap(Each f) {
  for (int out = 0; out < CONV2_SIDE * CONV2_SIDE; out++)
    for (int tap = 0; tap < TILE_TAPS; tap++)
      f(out, (out / CONV2_SIDE + tap / 3) * RL_POOLED1_SIDE + out % CONV2_SIDE + tap % 3, tap);
}

template <class F, class... Parameters> static void launch(void (*kernel)(Parameters...), Parameters... parameters) {
  enum { BYTES = 227 << 10 };
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
  kernel<<<1, F::THREADS, BYTES>>>(parameters...);
  check_cuda(cudaGetLastError());
  check_cuda(cudaDeviceSynchronize());
}

static int timed_repeats; /* 0: no timing */

template <class F> static void check_conv2(const char *format, double tolerance) {
  typedef typename F::value T;
  const matrix<T> in(RL_POOLED1_PIXELS, RL_CONV1_CHANNELS, F::IN_PITCH, 1),
      weights(TILE_CHANNELS, CONV2_K, F::LOADED_WEIGHT_PITCH, 0.06),
      pooled_gradient(RL_POOLED2_PIXELS, TILE_CHANNELS, TILE_CHANNELS, 1);
  std::vector<uint8_t> argmaxes(RL_POOLED2_PIXELS * TILE_CHANNELS);
  for (uint8_t &argmax : argmaxes) argmax = rl_hash64(seed++) % (RL_ARGMAX_RELU_ZERO + 1);
  doubles out_gradient((size_t)CONV2_SIDE * CONV2_SIDE * TILE_CHANNELS);
  for (size_t i = 0; i < argmaxes.size(); i++) {
    const size_t pixel = i / TILE_CHANNELS, y = pixel / RL_POOLED2_SIDE * 2 + argmaxes[i] / 2,
                 x = pixel % RL_POOLED2_SIDE * 2 + argmaxes[i] % 2;
    if (argmaxes[i] != RL_ARGMAX_RELU_ZERO)
      out_gradient[(y * CONV2_SIDE + x) * TILE_CHANNELS + i % TILE_CHANNELS] = pooled_gradient.values[i];
  }
  device_array<T> device_in(in.padded), device_weights(weights.padded);
  device_array<float> device_d_pooled(std::vector<float>(pooled_gradient.values.begin(), pooled_gradient.values.end()));
  device_array<uint8_t> device_argmaxes(argmaxes);
  device_array<float> product(TILE_CHANNELS * CONV2_SIDE * CONV2_SIDE), in_gradient(RL_POOLED1_PIXELS * RL_CONV1_CHANNELS);
  device_array<typename F::row_value> weights_gradient(TILE_CHANNELS * CONV2_K);
  device_array<long long> cycles(1);
  doubles expected_product(product.count), expected_d_weights(weights_gradient.count), expected_d_in(in_gradient.count);
  each_tap([&](int pixel, int from, int tap) {
    for (int k = 0; k < TILE_CHANNELS; k++)
      for (int channel = 0; channel < RL_CONV1_CHANNELS; channel++) {
        const size_t weight = (size_t)k * CONV2_K + tap * RL_CONV1_CHANNELS + channel;
        const double output_gradient = out_gradient[pixel * TILE_CHANNELS + k];
        expected_product[k * CONV2_SIDE * CONV2_SIDE + pixel] +=
            in.values[from * RL_CONV1_CHANNELS + channel] * weights.values[weight];
        expected_d_weights[weight] += F::ROW_SCALE * in.values[from * RL_CONV1_CHANNELS + channel] * output_gradient;
        expected_d_in[from * RL_CONV1_CHANNELS + channel] += weights.values[weight] * output_gradient;
      }
  });
  const double row_tolerance = sizeof(typename F::row_value) < sizeof(float) ? 3e-4 : tolerance; /* rounding to FP16 */
  const auto check_and_time = [&](auto &&run_kernel, const char *what, const auto &result, const doubles &expected,
                                  double at_most) {
    run_kernel(1);
    expect_close(result.host(), expected, at_most, format, what);
    if (!timed_repeats) return;
    run_kernel(timed_repeats);
    printf("  %s: %-24s %.0f cycles\n", format, what, cycles.host()[0] / timed_repeats);
  };
  const auto run_forward_kernel = launch<F, const T *, const T *, float *, int, long long *>;
  check_and_time(
      [&](int repeats) {
        run_forward_kernel(run_forward<F>, device_in.data, device_weights.data, product.data, repeats, cycles.data);
      },
      "conv2 forward", product, expected_product, tolerance);
  const auto run_backward = [&](auto *kernel, const T *operand, auto *result, int repeats) {
    launch<F, const T *, const float *, const uint8_t *, decltype(result), int, long long *>(
        kernel, operand, device_d_pooled.data, device_argmaxes.data, result, repeats, cycles.data);
  };
  if constexpr (F::CONV2_GRADIENTS_TOGETHER) {
    const auto run_both = [&](int repeats) {
      launch<F, const T *, const T *, const float *, const uint8_t *, float *, float *, int, long long *>(
          run_gradients<F>, device_in.data, device_weights.data, device_d_pooled.data, device_argmaxes.data,
          weights_gradient.data, in_gradient.data, repeats, cycles.data);
    };
    check_and_time(run_both, "conv2 gradients", weights_gradient, expected_d_weights, row_tolerance);
    expect_close(in_gradient.host(), expected_d_in, tolerance, format, "conv2 input gradient");
  } else {
    check_and_time([&](int repeats) { run_backward(run_weight_gradient<F>, device_in.data, weights_gradient.data, repeats); },
                   "conv2 weight gradient", weights_gradient, expected_d_weights, row_tolerance);
    check_and_time([&](int repeats) { run_backward(run_input_gradient<F>, device_weights.data, in_gradient.data, repeats); },
                   "conv2 input gradient", in_gradient, expected_d_in, tolerance);
  }
}

/* Returns a[rows][depth] · b[depth][columns], whose elements two functions return. */
template <class A, class B> static doubles product_of(int rows, int columns, int depth, A a, B b) {
  doubles result((size_t)rows * columns);
  for (int row = 0; row < rows; row++)
    for (int column = 0; column < columns; column++)
      for (int k = 0; k < depth; k++) result[(size_t)row * columns + column] += a(row, k) * b(k, column);
  return result;
}

template <class F, int SLICE_INPUTS> static void check_fc1(const char *format, int images, double tolerance) {
  typedef typename F::value T;
  const size_t pitch = SLICE_INPUTS + F::SLICE_PADDING;
  const matrix<T> in(images, SLICE_INPUTS, pitch, 1, TILE_IMAGES),
      fc1_product_gradient(images, RL_FC1_OUTPUTS, F::FC1_PRODUCT_GRADIENT_PITCH, 1, TILE_IMAGES),
      weights(RL_FC1_OUTPUTS, SLICE_INPUTS, pitch, 0.02);
  device_array<T> device_in(in.padded), device_d_fc1(fc1_product_gradient.padded), device_weights(weights.padded);
  device_array<float> product(TILE_IMAGES * RL_FC1_OUTPUTS), in_gradient(TILE_IMAGES * SLICE_INPUTS);
  device_array<long long> cycles(2);
  const auto run_kernel = [&](int repeats) {
    launch<F, const T *, const T *, const T *, float *, float *, int, long long *>(
        run_fc1<F, SLICE_INPUTS>, device_in.data, device_d_fc1.data, device_weights.data, product.data, in_gradient.data, repeats,
        cycles.data);
  };
  run_kernel(1);
  const auto weight = [&](int output, int k) { return weights.values[output * SLICE_INPUTS + k]; };
  const auto input = [&](int n, int k) { return in.values[n * SLICE_INPUTS + k]; };
  expect_close(product.host(),
               product_of(images, RL_FC1_OUTPUTS, SLICE_INPUTS, input, [&](int k, int o) { return weight(o, k); }), tolerance,
               format, "fc1 forward");
  expect_close(in_gradient.host(),
               product_of(
                   images, SLICE_INPUTS, RL_FC1_OUTPUTS,
                   [&](int n, int o) { return fc1_product_gradient.values[n * RL_FC1_OUTPUTS + o]; }, weight),
               tolerance, format, "fc1 backward");
  if (!timed_repeats) return;
  run_kernel(timed_repeats);
  printf("  %s: fc1 of %d: forward %.0f cycles, backward %.0f\n", format, SLICE_INPUTS, cycles.host()[0] / timed_repeats,
         cycles.host()[1] / timed_repeats);
}

template <class F> static void check_fc1_weight(const char *format, double tolerance) {
  typedef typename F::value T;
  const matrix<T> fc1_product_gradient(TILE_BATCH, TILE_ROWS, F::FC1_PRODUCT_GRADIENT_TILE_PITCH, 1),
      in(TILE_BATCH, TILE_COLUMNS, F::FC1_INPUT_TILE_PITCH, 1);
  device_array<T> device_d_fc1(fc1_product_gradient.padded), device_in(in.padded);
  device_array<float> result(TILE_ROWS * TILE_COLUMNS);
  device_array<long long> cycles(1);
  const auto run_kernel = [&](int repeats) {
    launch<F, const T *, const T *, float *, int, long long *>(run_fc1_weight<F>, device_d_fc1.data, device_in.data, result.data,
                                                               repeats, cycles.data);
  };
  run_kernel(1);
  expect_close(
      result.host(),
      product_of(
          TILE_ROWS, TILE_COLUMNS, TILE_BATCH, [&](int row, int n) { return fc1_product_gradient.values[n * TILE_ROWS + row]; },
          [&](int n, int column) { return in.values[n * TILE_COLUMNS + column]; }),
      tolerance, format, "fc1 weight gradient");
  if (!timed_repeats) return;
  run_kernel(timed_repeats);
  printf("  %s: fc1 weight gradient %.0f cycles\n", format, cycles.host()[0] / timed_repeats);
}

/* tolerance: the largest allowed ‖actual − expected‖ / ‖expected‖. The operands are exact in the format, so that only products
 * and sums are rounded. */
template <class F> static void check_format(const char *format, double tolerance) {
  check_conv2<F>(format, tolerance);
  for (int images : {1, TILE_IMAGES / 2, (int)TILE_IMAGES}) check_fc1<F, RL_FC1_INPUTS / 16>(format, images, tolerance);
  check_fc1<F, RL_FC1_INPUTS / 12>(format, TILE_IMAGES / 2, tolerance); /* the largest slice: 16 inputs for each warp */
  check_fc1_weight<F>(format, tolerance);
}

int main(int count, char **arguments) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("skipped: no NVIDIA GPU\n");
    return 77;
  }
  if (count > 1) timed_repeats = atoi(arguments[1]);
  check_format<float_tile_format>("float_tile_format", 1e-6);
  check_format<half_tile_format>("half_tile_format", 1e-5);
  check_format<tensor_float_tile_format>("tensor_float_tile_format", 1e-5);
  printf(failures ? "%d failed\n" : "all passed\n", failures);
  return failures != 0;
}
