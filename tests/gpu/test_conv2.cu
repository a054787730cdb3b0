/* The kernels of train/cuda/conv2_*.cu alone, against the double-precision oracle on random values of their types, with every
 * output poisoned first and a margin behind it that must stay as it was. No library runs here, so that compute-sanitizer's
 * racecheck can look at them, and so that the machine of tests/simt can run them. Arguments: batches instead of those in
 * main. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "cuda_check.h"
#include "train/cuda/kernels.h"
#include "train/oracle.h"

enum { MAP1 = RL_P1 * RL_P1, MAP2 = RL_P2 * RL_P2, FULL2 = RL_H2 * RL_H2, TAPS = 9, POISON = 0xff };
#ifdef __SANITIZE_ADDRESS__
enum { MARGIN = 0 }; /* it has one of its own */
#else
enum { MARGIN = 4096 };
#endif

static int failures;

static void must(cudaError_t status) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "test_conv2: %s\n", cudaGetErrorString(status));
  exit(1);
}

static void claim(bool holds, const char *what, uint32_t batch) {
  if (holds) return;
  printf("batch %u: failed: %s\n", batch, what);
  failures++;
}

template <typename T> struct on_device {
  T *at;
  size_t count;
  explicit on_device(size_t n) : count(n) {
    must(cudaMalloc(&at, n * sizeof(T) + MARGIN));
    must(cudaMemset(at, POISON, n * sizeof(T) + MARGIN));
  }
  explicit on_device(const std::vector<T> &from) : on_device(from.size()) {
    must(cudaMemcpy(at, from.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~on_device() { cudaFree(at); }
  std::vector<T> host(uint32_t batch) const {
    const size_t bytes = count * sizeof(T);
    std::vector<unsigned char> raw(bytes + MARGIN);
    must(cudaMemcpy(raw.data(), at, raw.size(), cudaMemcpyDeviceToHost));
    bool untouched = true;
    for (size_t i = bytes; i < raw.size(); i++) untouched &= raw[i] == POISON;
    claim(untouched, "nothing is written behind an output", batch);
    std::vector<T> made(count);
    memcpy((void *)made.data(), raw.data(), bytes);
    return made;
  }
};

static uint64_t seed = 1;
static double noise(void) { return (double)(int64_t)(rl_hash64(seed++) >> 11) * 0x1p-52 - 1.0; } /* [-1, 1) */

static void round_to(double value, __half *to) { *to = __float2half_rn((float)value); }
static void round_to(double value, float *to) { *to = (float)value; }

template <typename T> static std::vector<T> random_values(size_t count, double size) {
  std::vector<T> made(count);
  for (T &value : made) round_to(size * noise(), &value);
  return made;
}

/* ‖got − wanted‖ / ‖wanted‖ is small; NaN never passes. */
static void close_to(const std::vector<double> &got, const std::vector<double> &wanted, double most, const char *what,
                     uint32_t batch) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < wanted.size(); i++) {
    difference += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  printf("  batch %3u: %-20s %.2e (at most %.0e)\n", batch, what, sqrt(difference / norm), most);
  claim(norm > 0 && sqrt(difference / norm) < most, what, batch);
}

/* [n][map][planes] → [n][planes][map] */
template <typename T> static std::vector<double> planar(const std::vector<T> &from, size_t planes, size_t map) {
  std::vector<double> made(from.size());
  for (size_t i = 0; i < from.size(); i++) {
    size_t n = i / (planes * map), at = i % (planes * map);
    made[(n * planes + at % planes) * map + at / planes] = (double)(float)from[i];
  }
  return made;
}

/* What the two types have of their own: the kernels, and how exact their results are. */
static uint32_t rows_of(const __half *, uint32_t batch) { return rl_conv2_partial_rows(batch); }
static uint32_t rows_of(const float *, uint32_t batch) { return rl_conv2_float_partial_rows(batch); }
static double exactness(const __half *) { return 5e-4; }
static double exactness(const float *) { return 1e-6; }

static int forward(uint32_t batch, const __half *in, const __half *w, const float *bias, __half *pooled, uint8_t *codes,
                   rl_train_state *state, rl_error *err) {
  return rl_conv2_forward(batch, in, w, bias, pooled, codes, state, NULL, err);
}
static int forward(uint32_t batch, const float *in, const float *w, const float *bias, float *pooled, uint8_t *codes,
                   rl_train_state *, rl_error *err) {
  return rl_conv2_float_forward(batch, in, w, bias, pooled, codes, NULL, err);
}
static int backward(uint32_t batch, const __half *in, const __half *w, const __half *d_pooled, const uint8_t *codes, __half *d_in,
                    float *partial, float *partial_bias, rl_train_state *state, rl_error *err) {
  return rl_conv2_backward(batch, in, w, d_pooled, codes, d_in, partial, partial_bias, state, NULL, err);
}
static int backward(uint32_t batch, const float *in, const float *w, const float *d_pooled, const uint8_t *codes, float *d_in,
                    float *partial, float *partial_bias, rl_train_state *, rl_error *err) {
  return rl_conv2_float_backward(batch, in, w, d_pooled, codes, d_in, partial, partial_bias, NULL, err);
}

template <typename T> static void check_batch(uint32_t batch) {
  rl_error err = {};
  const int n = (int)batch;
  const T *type = NULL;
  const uint32_t row_count = rows_of(type, batch);
  std::vector<T> x = random_values<T>((size_t)n * MAP1 * RL_C1, 1), weights = random_values<T>(RL_C2 * TAPS * RL_C1, 0.06),
                 d_pooled = random_values<T>((size_t)n * RL_FLAT, 1);
  std::vector<float> bias(RL_C2);
  for (float &b : bias) b = (float)(0.1 * noise());
  on_device<T> dev_x(x), dev_w(weights), dev_d(d_pooled), pooled((size_t)n * RL_FLAT), d_x((size_t)n * MAP1 * RL_C1);
  on_device<float> dev_bias(bias), partial((size_t)row_count * RL_C2 * TAPS * RL_C1), partial_bias(row_count * RL_C2);
  on_device<uint8_t> codes((size_t)n * RL_FLAT);
  on_device<rl_train_state> state{std::vector<rl_train_state>(1)};
  if (forward(batch, dev_x.at, dev_w.at, dev_bias.at, pooled.at, codes.at, state.at, &err) ||
      backward(batch, dev_x.at, dev_w.at, dev_d.at, codes.at, d_x.at, partial.at, partial_bias.at, state.at, &err)) {
    fprintf(stderr, "test_conv2: %s\n", err.message);
    exit(1);
  }
  must(cudaDeviceSynchronize());
  claim(state.host(batch)[0].overflow == 0, "finite values raise no overflow", batch);

  std::vector<double> w(RL_C2 * RL_C1 * TAPS), b(bias.begin(), bias.end());
  for (size_t i = 0; i < w.size(); i++)
    w[(i / (TAPS * RL_C1) * RL_C1 + i % RL_C1) * TAPS + i / RL_C1 % TAPS] = (double)(float)weights[i];
  std::vector<double> in = planar(x, RL_C1, MAP1), y((size_t)n * RL_C2 * FULL2), best((size_t)n * RL_FLAT), d_y(y.size()),
                      d_in(in.size()), d_w(w.size()), d_b(RL_C2);
  std::vector<uint8_t> raw_codes = codes.host(batch), decided(raw_codes.size());
  std::vector<double> planes = planar(raw_codes, RL_C2, MAP2);
  for (size_t i = 0; i < decided.size(); i++) decided[i] = (uint8_t)planes[i];
  rl_oracle_conv_forward(&rl_oracle_conv2, n, in.data(), w.data(), b.data(), y.data());
  bool right = true;
  for (size_t i = 0; i < best.size(); i++) {
    const double *corner = &y[i / MAP2 * FULL2 + i % MAP2 / RL_P2 * 2 * RL_H2 + i % RL_P2 * 2];
    double greatest = 0;
    for (int at = 0; at < 4; at++) greatest = fmax(greatest, corner[at / 2 * RL_H2 + at % 2]);
    best[i] = decided[i] < 4 ? corner[decided[i] / 2 * RL_H2 + decided[i] % 2] : 0;
    right &= decided[i] <= RL_POOL_RELU_ZERO && fabs(best[i] - greatest) < 1e-4; /* a decision may differ by rounding alone */
  }
  claim(right, "the greatest of four goes through", batch);
  close_to(planar(pooled.host(batch), RL_C2, MAP2), best, exactness(type), "pooled", batch);

  rl_oracle_pool_gradient((size_t)n * RL_C2, RL_H2, planar(d_pooled, RL_C2, MAP2).data(), decided.data(), d_y.data());
  rl_oracle_conv_input_gradient(&rl_oracle_conv2, n, d_y.data(), w.data(), d_in.data());
  rl_oracle_conv_weight_gradient(&rl_oracle_conv2, n, in.data(), d_y.data(), d_w.data(), d_b.data());
  close_to(planar(d_x.host(batch), RL_C1, MAP1), d_in, exactness(type), "input gradient", batch);
  std::vector<float> rows = partial.host(batch), bias_rows = partial_bias.host(batch);
  std::vector<double> sum(w.size()), bias_sum(RL_C2);
  for (size_t i = 0; i < rows.size(); i++) {
    size_t at = i % w.size();
    sum[(at / (TAPS * RL_C1) * RL_C1 + at % RL_C1) * TAPS + at / RL_C1 % TAPS] += rows[i];
  }
  for (size_t i = 0; i < bias_rows.size(); i++) bias_sum[i % RL_C2] += bias_rows[i];
  close_to(sum, d_w, 1e-5, "weight gradient", batch);
  close_to(bias_sum, d_b, 1e-5, "bias gradient", batch);
}

/* What FP16 can't hold must be noticed even where the pool hides it. */
static void check_overflow(void) {
  rl_error err = {};
  for (int backward = 0; backward < 2; backward++) {
    std::vector<__half> x(MAP1 * RL_C1, __float2half(100.0f)), d(RL_FLAT, __float2half(1.0f)),
        w(RL_C2 * TAPS * RL_C1, __float2half(-6.0f));
    d[777] = __float2half(INFINITY);
    std::vector<uint8_t> let_through(RL_FLAT, 0);
    on_device<__half> dev_x(x), dev_w(w), dev_d(d), pooled(RL_FLAT), d_x(MAP1 * RL_C1);
    on_device<float> bias{std::vector<float>(RL_C2)}, partial(RL_C2 * TAPS * RL_C1), partial_bias(RL_C2);
    on_device<uint8_t> codes(let_through);
    on_device<rl_train_state> state{std::vector<rl_train_state>(1)};
    if (backward ? rl_conv2_backward(1, dev_x.at, dev_w.at, dev_d.at, codes.at, d_x.at, partial.at, partial_bias.at, state.at,
                                     NULL, &err)
                 : rl_conv2_forward(1, dev_x.at, dev_w.at, bias.at, pooled.at, codes.at, state.at, NULL, &err))
      exit(1);
    claim(state.host(1)[0].overflow == 1, backward ? "an infinite gradient is noticed" : "an overflow below zero is noticed", 1);
  }
}

int main(int count, char **arguments) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("skipped: no NVIDIA GPU\n");
    return 77;
  }
  /* Below and beyond what the kernels take side by side (66 images forward and 88 backward; 528 and 176 before room is used
   * again; in FP32 66 and 64). */
  std::vector<uint32_t> batches = {1, 2, 3, 64, 133, 593};
  if (count > 1) batches.clear();
  for (int i = 1; i < count; i++) batches.push_back((uint32_t)atoi(arguments[i]));
  for (uint32_t batch : batches) check_batch<__half>(batch);
  for (uint32_t batch : batches) check_batch<float>(batch);
  check_overflow();
  printf(failures ? "%d failed\n" : "all passed\n", failures);
  return failures != 0;
}
