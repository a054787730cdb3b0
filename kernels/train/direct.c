/* Implements direct.h. Names: x input, y output, w weights, b bias, o output channel, c input channel; d followed by a name is
 * the gradient of that array.
 *
 * Sums stay in registers: SLICE_CHANNELS × 12 output pixels in forward, SLICE_CHANNELS × 9 taps in backward. SLICE_CHANNELS
 * channels are VECTORS vector registers. An inner loop multiplies one broadcast value by a vector from the L1 cache: in forward
 * and in the input gradient by a vector of weights, in the weight gradient by a vector of inputs. The weights that are in use at
 * a time take 36 kB. */
#include "train/direct.h"

#include <immintrin.h>
#include <string.h>

#include "train/simd_vector.h"
#include "train/model.h"
#include "train/oracle.h"

#if defined(__AVX512F__)
enum { VECTORS = 2 }; /* vector registers for SLICE_CHANNELS channels; sums take 24 of 32 registers */
#else
enum { VECTORS = 1 }; /* sums take 12 of 16 registers */
#endif
enum {
  TAPS = 9,
  CHANNEL_WEIGHTS = TAPS * RL_CONV1_CHANNELS,       /* weights of one output channel */
  SLICE_CHANNELS = VECTORS * VECTOR_WIDTH,          /* channels that are computed together */
  ROW_FLOATS = RL_POOLED1_SIDE * RL_CONV1_CHANNELS, /* floats in a row of x */
  WINDOWS = 3                                       /* adjacent pooling windows that are computed together */
};

static void reorder_weights(const float *w, float *taps) {
  for (int slice = 0; slice < RL_CONV2_CHANNELS; slice += SLICE_CHANNELS)
    for (int i = 0; i < CHANNEL_WEIGHTS; i++)
      for (int o = 0; o < SLICE_CHANNELS; o++) *taps++ = w[(slice + o) * CHANNEL_WEIGHTS + i];
}

/* Computes WINDOWS adjacent pooling windows × SLICE_CHANNELS channels. */
static inline void forward_windows(const float *x, const float *taps, const float *b, float *y, uint8_t *argmax) {
  float_vector sum[2][2 * WINDOWS][VECTORS];
  for (int i = 0; i < 2 * 2 * WINDOWS; i++)
    for (int v = 0; v < VECTORS; v++) sum[i / (2 * WINDOWS)][i % (2 * WINDOWS)][v] = load(b + v * VECTOR_WIDTH);
  for (int tap = 0; tap < TAPS; tap++) {
    const float *corner = x + tap / 3 * ROW_FLOATS + tap % 3 * RL_CONV1_CHANNELS;
    for (int c = 0; c < RL_CONV1_CHANNELS; c++, taps += SLICE_CHANNELS)
      for (int row = 0; row < 2; row++)
        for (int column = 0; column < 2 * WINDOWS; column++)
          for (int v = 0; v < VECTORS; v++)
            sum[row][column][v] += corner[row * ROW_FLOATS + column * RL_CONV1_CHANNELS + c] * load(taps + v * VECTOR_WIDTH);
  }
  for (int window = 0; window < WINDOWS; window++)
    for (int v = 0; v < VECTORS; v++) {
      running_max pooled = initial_maximum();
      for (int i = 0; i < 4; i++) pooled = update_maximum(pooled, sum[i / 2][2 * window + i % 2][v], i);
      store_maximum(pooled, y + window * RL_CONV2_CHANNELS + v * VECTOR_WIDTH,
                    argmax + window * RL_CONV2_CHANNELS + v * VECTOR_WIDTH);
    }
}

static void forward(const float *x, const float *taps, const float *b, float *y, uint8_t *argmax) {
  for (int slice = 0; slice < RL_CONV2_CHANNELS; slice += SLICE_CHANNELS)
    for (int pixel = 0; pixel < RL_POOLED2_PIXELS; pixel += WINDOWS) {
      const float *corner = x + pixel / RL_POOLED2_SIDE * 2 * ROW_FLOATS + pixel % RL_POOLED2_SIDE * 2 * RL_CONV1_CHANNELS;
      forward_windows(corner, taps + slice * CHANNEL_WEIGHTS, b + slice, y + pixel * RL_CONV2_CHANNELS + slice,
                      argmax + pixel * RL_CONV2_CHANNELS + slice);
    }
}

/* Returns the offset in x of the first input of that output pixel which max-pooling selected (argmax) for the pooled pixel
 * `pixel`. */
static inline size_t input_offset(int pixel, int argmax) {
  return (size_t)((2 * (pixel / RL_POOLED2_SIDE) + argmax / 2) * ROW_FLOATS +
                  (2 * (pixel % RL_POOLED2_SIDE) + argmax % 2) * RL_CONV1_CHANNELS);
}

static inline size_t tap_offset(int tap) { return (size_t)(tap / 3 * ROW_FLOATS + tap % 3 * RL_CONV1_CHANNELS); }

enum {
  /* Number of output channels that input_gradient processes together: their weights stay in cache for all pixels. */
  GROUP_OUTPUT_CHANNELS = 32
};

/* Returns a mask of the 32 channels whose argmax is `position`. */
static inline uint32_t channels_with_argmax(const uint8_t *argmax, int position) {
  __m256i equal = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)argmax), _mm256_set1_epi8((char)position));
  return (uint32_t)_mm256_movemask_epi8(equal);
}

/* Adds to dx, at the nine taps of one output pixel, the products of the weights and the gradients dy of the output channels in
 * the mask `channels`. */
static inline void accumulate_input_gradient(uint32_t channels, const float *dy, const float *w, float *dx) {
  float_vector sum[TAPS][VECTORS];
  for (int tap = 0; tap < TAPS; tap++)
    for (int v = 0; v < VECTORS; v++) sum[tap][v] = load(dx + tap_offset(tap) + v * VECTOR_WIDTH);
  for (; channels != 0; channels &= channels - 1) {
    int o = __builtin_ctz(channels);
    for (int tap = 0; tap < TAPS; tap++)
      for (int v = 0; v < VECTORS; v++)
        sum[tap][v] += dy[o] * load(w + o * CHANNEL_WEIGHTS + tap * RL_CONV1_CHANNELS + v * VECTOR_WIDTH);
  }
  for (int tap = 0; tap < TAPS; tap++)
    for (int v = 0; v < VECTORS; v++) store(sum[tap][v], dx + tap_offset(tap) + v * VECTOR_WIDTH);
}

static void input_gradient(const float *dy, const uint8_t *argmax, const float *w, float *dx) {
  memset(dx, 0, sizeof(float) * RL_POOLED1_SIDE * ROW_FLOATS);
  for (int first_channel = 0; first_channel < RL_CONV2_CHANNELS; first_channel += GROUP_OUTPUT_CHANNELS)
    for (int pixel = 0; pixel < RL_POOLED2_PIXELS; pixel++)
      for (int position = 0; position < 4; position++) {
        uint32_t channels = channels_with_argmax(argmax + pixel * RL_CONV2_CHANNELS + first_channel, position);
        for (int c = 0; c < RL_CONV1_CHANNELS; c += SLICE_CHANNELS)
          accumulate_input_gradient(channels, dy + pixel * RL_CONV2_CHANNELS + first_channel,
                                    w + first_channel * CHANNEL_WEIGHTS + c, dx + input_offset(pixel, position) + c);
      }
}

/* Adds to dw, for the nine taps and SLICE_CHANNELS input channels of output channel o, the products of the inputs and the
 * gradients dy at the pooled pixels in the mask. */
static inline void accumulate_weight_gradient(uint64_t positive_pixels, int o, const float *x, const float *dy,
                                              const uint8_t *argmax, float *dw) {
  float_vector sum[TAPS][VECTORS];
  for (int tap = 0; tap < TAPS; tap++)
    for (int v = 0; v < VECTORS; v++) sum[tap][v] = load(dw + tap * RL_CONV1_CHANNELS + v * VECTOR_WIDTH);
  for (; positive_pixels != 0; positive_pixels &= positive_pixels - 1) {
    int pixel = __builtin_ctzll(positive_pixels);
    const float *inputs = x + input_offset(pixel, argmax[pixel * RL_CONV2_CHANNELS + o]);
    for (int tap = 0; tap < TAPS; tap++)
      for (int v = 0; v < VECTORS; v++)
        sum[tap][v] += dy[pixel * RL_CONV2_CHANNELS + o] * load(inputs + tap_offset(tap) + v * VECTOR_WIDTH);
  }
  for (int tap = 0; tap < TAPS; tap++)
    for (int v = 0; v < VECTORS; v++) store(sum[tap][v], dw + tap * RL_CONV1_CHANNELS + v * VECTOR_WIDTH);
}

static void weight_gradient(const float *x, const float *dy, const uint8_t *argmax, float *dw, float *db) {
  uint64_t positive_pixels[RL_CONV2_CHANNELS] = {0}; /* [channel]: mask of the pooled pixels that ReLU did not zero */
  for (int pixel = 0; pixel < RL_POOLED2_PIXELS; pixel++)
    for (int o = 0; o < RL_CONV2_CHANNELS; o++) {
      bool positive = argmax[pixel * RL_CONV2_CHANNELS + o] != RL_ARGMAX_RELU_ZERO;
      positive_pixels[o] |= (uint64_t)positive << pixel;
      db[o] += positive ? dy[pixel * RL_CONV2_CHANNELS + o] : 0;
    }
  for (int o = 0; o < RL_CONV2_CHANNELS; o++)
    for (int c = 0; c < RL_CONV1_CHANNELS; c += SLICE_CHANNELS)
      accumulate_weight_gradient(positive_pixels[o], o, x + c, dy, argmax, dw + o * CHANNEL_WEIGHTS + c);
}

#define QUOTE_VALUE(NAME) QUOTE(NAME)
#define QUOTE(NAME) #NAME
const rl_direct RL_DIRECT = {.name = QUOTE_VALUE(RL_DIRECT),
                             .reorder_weights = reorder_weights,
                             .forward = forward,
                             .input_gradient = input_gradient,
                             .weight_gradient = weight_gradient};
