/* What a block of the engine "persistent" multiplies (train/cuda/tile.cuh), each function alone, in each format, against double
 * precision on random values; what lies behind the images there are is NaN. Then, on a GPU, how many cycles each takes. No
 * library runs here, so that racecheck can look on, and so that the machine of tests/simt can run it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <vector>

#include "cuda_check.h"
#include "train/cuda/tile_float.cuh"
#include "train/cuda/tile_half.cuh"
#include "train/cuda/tile_tensor_float.cuh"

enum { MAP1 = RL_P1 * RL_P1, MAP2 = RL_P2 * RL_P2, SIDE2 = RL_H2 };

static int failures;

static void must(cudaError_t status) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "test_tiles: %s\n", cudaGetErrorString(status));
  exit(1);
}

template <typename T> struct on_device {
  T *at;
  size_t count;
  explicit on_device(size_t n) : count(n) {
    must(cudaMalloc((void **)&at, n * sizeof(T)));
    must(cudaMemset(at, 0xff, n * sizeof(T)));
  }
  explicit on_device(const std::vector<T> &from) : on_device(from.size()) {
    must(cudaMemcpy(at, from.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  on_device(const on_device &) = delete;
  ~on_device() { cudaFree(at); }
  std::vector<double> host() const {
    std::vector<T> raw(count);
    must(cudaMemcpy(raw.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost));
    return std::vector<double>(raw.begin(), raw.end());
  }
};

static uint64_t seed = 1;
static double noise(void) { return (double)(int64_t)(rl_hash64(seed++) >> 11) * 0x1p-52 - 1.0; } /* [-1, 1) */
static void round_to(double value, __half *to) { *to = __float2half_rn((float)value); }
static void round_to(double value, float *to) { *to = (float)value; }
static void round_to(double value, tensor_float *to) {
  int exponent;
  const double significand = frexp(value, &exponent);
  to->value = (float)ldexp(rint(ldexp(significand, 11)), exponent - 11);
}

/* Rows of random values, pitch apart; NaN between and behind them. */
template <typename T> struct matrix {
  size_t rows, columns;
  std::vector<double> exact;
  std::vector<T> padded;
  matrix(size_t r, size_t c, size_t pitch, double size, size_t padded_rows = 0)
      : rows(r), columns(c), exact(r * c), padded((padded_rows > r ? padded_rows : r) * pitch) {
    for (T &value : padded) round_to(NAN, &value);
    for (size_t i = 0; i < r * c; i++) {
      T *to = &padded[i / c * pitch + i % c];
      round_to(size * noise(), to);
      exact[i] = (double)(float)*to;
    }
  }
};

static void close_to(const std::vector<double> &got, const std::vector<double> &wanted, double most, const char *format,
                     const char *what) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < wanted.size(); i++) {
    difference += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  const bool holds = norm > 0 && sqrt(difference / norm) < most; /* NaN never passes */
  printf("  %s: %-24s %.2e (at most %.0e)%s\n", format, what, sqrt(difference / norm), most, holds ? "" : " FAILED");
  failures += !holds;
}

/* --- kernels: operands into shared memory, one function `turns` times, its products to memory ------------------------------- */

template <typename T> static __device__ T *fill(T *to, const T *from, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
  return to + (count + 7) / 8 * 8;
}

/* conv2's weights as they are multiplied; what lies behind them. */
template <class F> static __device__ typename F::value *fill_weights(typename F::value *to, const typename F::value *raw) {
  typename F::value *behind = to + (F::WEIGHT_VALUES + 7) / 8 * 8;
  fill(F::FORWARD_SCRATCH_FLOATS ? behind : to, raw, TILE_CHANNELS * F::RAW_WEIGHT_PITCH);
  __syncthreads();
  F::prepare_weights(behind, to);
  __syncthreads();
  return behind;
}

/* The gradient of conv2's product from that of its pools [36][32]; what lies behind it. */
template <class F>
static __device__ typename F::value *fill_out(typename F::value *to, const float *d_pooled, const uint8_t *codes) {
  for (int i = threadIdx.x * 4; i < MAP2 * TILE_CHANNELS; i += blockDim.x * 4)
    F::unpool(i / TILE_CHANNELS, i % TILE_CHANNELS, *(const uchar4 *)&codes[i], *(const float4 *)&d_pooled[i], to);
  __syncthreads();
  return to + (F::D_OUT_VALUES + 7) / 8 * 8;
}

template <class F> static __global__ void __launch_bounds__(F::THREADS, 1)
    run_forward(const typename F::value *in, const typename F::value *weights, float *made /* [32][144] */, int turns,
                long long *cycles) {
  extern __shared__ __align__(16) unsigned char shared[];
  typename F::value *x = (typename F::value *)shared, *w = fill(x, in, MAP1 * F::IN_PITCH);
  float *scratch = (float *)fill_weights<F>(w, weights);
  const long long begun = clock64();
  for (int turn = 0; turn < turns; turn++) {
    F::conv2_forward(x, w, scratch, [&](int pixel, int channel, const float a[4], const float b[4]) {
      for (int at = 0; at < 4; at++) {
        float *to = &made[channel * SIDE2 * SIDE2 + (pixel / RL_P2 * 2 + at / 2) * SIDE2 + pixel % RL_P2 * 2 + at % 2];
        to[0] = a[at];
        to[SIDE2 * SIDE2] = b[at];
      }
    });
    __syncthreads();
  }
  if (threadIdx.x == 0) *cycles = clock64() - begun;
}

template <class F> static __global__ void __launch_bounds__(F::THREADS, 1)
    run_weight_gradient(const typename F::value *in, const float *d_pooled, const uint8_t *codes, float *made /* [32][288] */,
                        int turns, long long *cycles) {
  extern __shared__ __align__(16) unsigned char shared[];
  typename F::value *x = (typename F::value *)shared, *d = fill(x, in, MAP1 * F::IN_PITCH);
  float *scratch = (float *)fill_out<F>(d, d_pooled, codes);
  typename F::weight_sums sums = F::init_weight_sums(made);
  const long long begun = clock64();
  for (int turn = 0; turn < turns; turn++) F::conv2_weight_gradient(x, d, scratch, sums);
  const long long ended = clock64();
  __syncthreads();
  F::store_weight_gradient(sums, made);
  if (threadIdx.x == 0) *cycles = ended - begun;
}

template <class F> static __global__ void __launch_bounds__(F::THREADS, 1)
    run_input_gradient(const typename F::value *weights, const float *d_pooled, const uint8_t *codes, float *made /* [196][32] */,
                       int turns, long long *cycles) {
  extern __shared__ __align__(16) unsigned char shared[];
  typename F::value *w = (typename F::value *)shared, *d = fill_weights<F>(w, weights);
  fill_out<F>(d, d_pooled, codes);
  const long long begun = clock64();
  for (int turn = 0; turn < turns; turn++) {
    F::conv2_input_gradient(
        w, d, [] {},
        [&](int pixel, int channel, float a, float b) { *(float2 *)&made[pixel * RL_C1 + channel] = make_float2(a, b); });
    __syncthreads();
  }
  if (threadIdx.x == 0) *cycles = clock64() - begun;
}

template <class F, int SLICE> static __global__ void __launch_bounds__(F::THREADS, 1)
    run_fc1(const typename F::value *in, const typename F::value *d_fc1, const typename F::value *weights,
            float *product /* [8][128] */, float *d_in /* [8][SLICE] */, int turns, long long *cycles) {
  extern __shared__ __align__(16) unsigned char shared[];
  typename F::value *w = (typename F::value *)shared, *x = fill(w, weights, RL_FC1 * (SLICE + F::SLICE_PADDING));
  typename F::value *d = fill(x, in, TILE_IMAGES * (SLICE + F::SLICE_PADDING));
  fill(d, d_fc1, TILE_IMAGES * F::D_FC1_PITCH);
  __syncthreads();
  const long long begun = clock64();
  for (int turn = 0; turn < turns; turn++) {
    F::template fc1_forward<SLICE>(
        x, w, [&](int image, int output, float a, float b) { *(float2 *)&product[image * RL_FC1 + output] = make_float2(a, b); });
    __syncthreads();
  }
  const long long between = clock64();
  for (int turn = 0; turn < turns; turn++) {
    F::template fc1_backward<SLICE>(
        d, w, [&](int image, int k, float a, float b) { *(float2 *)&d_in[image * SLICE + k] = make_float2(a, b); });
    __syncthreads();
  }
  if (threadIdx.x == 0) cycles[0] = between - begun, cycles[1] = clock64() - between;
}

template <class F> static __global__ void __launch_bounds__(F::THREADS, 1)
    run_fc1_weight(const typename F::value *d_fc1, const typename F::value *in, float *made /* [16][144] */, int turns,
                   long long *cycles) {
  extern __shared__ __align__(16) unsigned char shared[];
  typename F::value *d = (typename F::value *)shared, *x = fill(d, d_fc1, TILE_BATCH * F::D_FC1_TILE_PITCH);
  fill(x, in, TILE_BATCH * F::FC1_IN_TILE_PITCH);
  __syncthreads();
  if (threadIdx.x / 32 >= F::FC1_GRADIENT_WARPS) return;
  float sums[F::PAIRS_PER_THREAD][2] = {};
  const long long begun = clock64();
  for (int turn = 0; turn < turns; turn++) F::fc1_weight_gradient(d, x, sums);
  if (threadIdx.x == 0) *cycles = clock64() - begun;
  for (int i = 0; i < F::PAIRS_PER_THREAD; i++)
    *(float2 *)&made[F::tile_row(i) * TILE_COLUMNS + F::tile_column(i)] = make_float2(sums[i][0], sums[i][1]);
}

/* --- references ------------------------------------------------------------------------------------------------------------- */

typedef std::vector<double> doubles;

/* f(out pixel, in pixel, tap) of conv2. */
template <class Each> static void each_tap(Each f) {
  for (int out = 0; out < SIDE2 * SIDE2; out++)
    for (int tap = 0; tap < TILE_TAPS; tap++) f(out, (out / SIDE2 + tap / 3) * RL_P1 + out % SIDE2 + tap % 3, tap);
}

/* --- checks ----------------------------------------------------------------------------------------------------------------- */

template <class F, class... P> static void launch(void (*kernel)(P...), P... parameters) {
  enum { BYTES = 227 << 10 };
  must(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
  kernel<<<1, F::THREADS, BYTES>>>(parameters...);
  must(cudaGetLastError());
  must(cudaDeviceSynchronize());
}

static int turns_timed; /* 0: not at all */

template <class F> static void check_conv2(const char *format, double most) {
  typedef typename F::value T;
  const matrix<T> in(MAP1, RL_C1, F::IN_PITCH, 1), weights(TILE_CHANNELS, TILE_K, F::RAW_WEIGHT_PITCH, 0.06),
      d_pooled(MAP2, TILE_CHANNELS, TILE_CHANNELS, 1);
  std::vector<uint8_t> codes(MAP2 * TILE_CHANNELS);
  for (uint8_t &code : codes) code = rl_hash64(seed++) % (RL_POOL_RELU_ZERO + 1);
  doubles d_out((size_t)SIDE2 * SIDE2 * TILE_CHANNELS);
  for (size_t i = 0; i < codes.size(); i++) {
    const size_t pixel = i / TILE_CHANNELS, y = pixel / RL_P2 * 2 + codes[i] / 2, x = pixel % RL_P2 * 2 + codes[i] % 2;
    if (codes[i] != RL_POOL_RELU_ZERO) d_out[(y * SIDE2 + x) * TILE_CHANNELS + i % TILE_CHANNELS] = d_pooled.exact[i];
  }
  on_device<T> x(in.padded), w(weights.padded);
  on_device<float> d(std::vector<float>(d_pooled.exact.begin(), d_pooled.exact.end()));
  on_device<uint8_t> c(codes);
  on_device<float> product(TILE_CHANNELS * SIDE2 * SIDE2), d_weights(TILE_CHANNELS * TILE_K), d_in(MAP1 * RL_C1);
  on_device<long long> cycles(1);
  doubles product_ref(product.count), weights_ref(d_weights.count), in_ref(d_in.count);
  each_tap([&](int pixel, int from, int tap) {
    for (int k = 0; k < TILE_CHANNELS; k++)
      for (int channel = 0; channel < RL_C1; channel++) {
        const size_t weight = (size_t)k * TILE_K + tap * RL_C1 + channel;
        const double sent_back = d_out[pixel * TILE_CHANNELS + k];
        product_ref[k * SIDE2 * SIDE2 + pixel] += in.exact[from * RL_C1 + channel] * weights.exact[weight];
        weights_ref[weight] += in.exact[from * RL_C1 + channel] * sent_back;
        in_ref[from * RL_C1 + channel] += weights.exact[weight] * sent_back;
      }
  });
  const auto timed = [&](auto &&once, const char *what, const on_device<float> &made, const doubles &wanted) {
    once(1);
    close_to(made.host(), wanted, most, format, what);
    if (!turns_timed) return;
    once(turns_timed);
    printf("  %s: %-24s %.0f cycles\n", format, what, cycles.host()[0] / turns_timed);
  };
  const auto run = launch<F, const T *, const T *, float *, int, long long *>;
  timed([&](int turns) { run(run_forward<F>, x.at, w.at, product.at, turns, cycles.at); }, "conv2 forward", product, product_ref);
  typedef void backward(const T *, const float *, const uint8_t *, float *, int, long long *);
  const auto back = [&](backward *kernel, const T *of, float *to, int turns) {
    launch<F, const T *, const float *, const uint8_t *, float *, int, long long *>(kernel, of, d.at, c.at, to, turns, cycles.at);
  };
  timed([&](int turns) { back(run_weight_gradient<F>, x.at, d_weights.at, turns); }, "conv2 weight gradient", d_weights,
        weights_ref);
  timed([&](int turns) { back(run_input_gradient<F>, w.at, d_in.at, turns); }, "conv2 input gradient", d_in, in_ref);
}

/* a[rows][depth] · b[depth][columns] of what two functions say. */
template <class A, class B> static doubles product_of(int rows, int columns, int depth, A a, B b) {
  doubles made((size_t)rows * columns);
  for (int row = 0; row < rows; row++)
    for (int column = 0; column < columns; column++)
      for (int k = 0; k < depth; k++) made[(size_t)row * columns + column] += a(row, k) * b(k, column);
  return made;
}

template <class F, int SLICE> static void check_fc1(const char *format, int images, double most) {
  typedef typename F::value T;
  const size_t pitch = SLICE + F::SLICE_PADDING;
  const matrix<T> in(images, SLICE, pitch, 1, TILE_IMAGES), d_fc1(images, RL_FC1, F::D_FC1_PITCH, 1, TILE_IMAGES),
      weights(RL_FC1, SLICE, pitch, 0.02);
  on_device<T> x(in.padded), d(d_fc1.padded), w(weights.padded);
  on_device<float> product(TILE_IMAGES * RL_FC1), d_in(TILE_IMAGES * SLICE);
  on_device<long long> cycles(2);
  const auto once = [&](int turns) {
    launch<F, const T *, const T *, const T *, float *, float *, int, long long *>(run_fc1<F, SLICE>, x.at, d.at, w.at,
                                                                                   product.at, d_in.at, turns, cycles.at);
  };
  once(1);
  const auto weight = [&](int output, int k) { return weights.exact[output * SLICE + k]; };
  const auto input = [&](int n, int k) { return in.exact[n * SLICE + k]; };
  close_to(product.host(), product_of(images, RL_FC1, SLICE, input, [&](int k, int o) { return weight(o, k); }), most, format,
           "fc1 forward");
  close_to(d_in.host(),
           product_of(
               images, SLICE, RL_FC1, [&](int n, int o) { return d_fc1.exact[n * RL_FC1 + o]; }, weight),
           most, format, "fc1 backward");
  if (!turns_timed) return;
  once(turns_timed);
  printf("  %s: fc1 of %d: forward %.0f cycles, backward %.0f\n", format, SLICE, cycles.host()[0] / turns_timed,
         cycles.host()[1] / turns_timed);
}

template <class F> static void check_fc1_weight(const char *format, double most) {
  typedef typename F::value T;
  const matrix<T> d_fc1(TILE_BATCH, TILE_ROWS, F::D_FC1_TILE_PITCH, 1), in(TILE_BATCH, TILE_COLUMNS, F::FC1_IN_TILE_PITCH, 1);
  on_device<T> d(d_fc1.padded), x(in.padded);
  on_device<float> made(TILE_ROWS * TILE_COLUMNS);
  on_device<long long> cycles(1);
  const auto once = [&](int turns) {
    launch<F, const T *, const T *, float *, int, long long *>(run_fc1_weight<F>, d.at, x.at, made.at, turns, cycles.at);
  };
  once(1);
  close_to(made.host(),
           product_of(
               TILE_ROWS, TILE_COLUMNS, TILE_BATCH, [&](int row, int n) { return d_fc1.exact[n * TILE_ROWS + row]; },
               [&](int n, int column) { return in.exact[n * TILE_COLUMNS + column]; }),
           most, format, "fc1 weight gradient");
  if (!turns_timed) return;
  once(turns_timed);
  printf("  %s: fc1 weight gradient %.0f cycles\n", format, cycles.host()[0] / turns_timed);
}

/* most: ‖got − exact‖ / ‖exact‖; the operands are exact in the format, so that it is rounding inside of products and sums
 * alone. */
template <class F> static void check_format(const char *format, double most) {
  check_conv2<F>(format, most);
  for (int images : {1, TILE_IMAGES / 2, (int)TILE_IMAGES}) check_fc1<F, RL_FLAT / 16>(format, images, most);
  check_fc1<F, RL_FLAT / 8>(format, TILE_IMAGES / 2, most);
  check_fc1_weight<F>(format, most);
}

int main(int count, char **arguments) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("skipped: no NVIDIA GPU\n");
    return 77;
  }
  if (count > 1) turns_timed = atoi(arguments[1]); /* how often each function runs for its time; 0: not timed */
  check_format<float_tiles>("float_tiles", 1e-6);
  check_format<half_tiles>("half_tiles", 1e-5);
  check_format<tensor_float_tiles>("tensor_float_tiles", 1e-5);
  printf(failures ? "%d failed\n" : "all passed\n", failures);
  return failures != 0;
}
