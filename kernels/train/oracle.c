/* Implements oracle.h. n: images of the batch, o: output channel or output, c: input channel, w: weights, b: bias, (ky, kx): a
 * tap of a 3×3 filter. */
#include "train/oracle.h"

#include <math.h>
#include <string.h>

#include "train/model.h"

const rl_oracle_conv rl_oracle_conv1 = {.in = 1, .size = RL_IMAGE_SIDE, .out = RL_CONV1_CHANNELS, .padding = 1};
const rl_oracle_conv rl_oracle_conv2 = {.in = RL_CONV1_CHANNELS, .size = RL_POOLED1_SIDE, .out = RL_CONV2_CHANNELS, .padding = 0};

/* Runs BODY for each tap (ky, kx) and each output row y for which an input row exists: for output pixel (y, x), tap (ky, kx)
 * multiplies input pixel (y + ky - padding, x + kx - padding). In BODY, row_shift and column_shift are the input coordinate minus
 * the output coordinate, and first_column … end_column - 1 are the output columns for which an input column exists. */
#define FOR_EACH_TAP_ROW(shape, side, BODY)                                                               \
  for (int ky = 0; ky < 3; ky++)                                                                          \
    for (int kx = 0; kx < 3; kx++) {                                                                      \
      int row_shift = ky - (shape)->padding, column_shift = kx - (shape)->padding;                        \
      int first_column = column_shift < 0 ? -column_shift : 0;                                            \
      int end_column = (shape)->size - column_shift < (side) ? (shape)->size - column_shift : (side);     \
      for (int y = row_shift < 0 ? -row_shift : 0; y < (side) && y + row_shift < (shape)->size; y++) BODY \
    }

static int output_side(const rl_oracle_conv *shape) { return shape->size + 2 * shape->padding - 2; }

void rl_oracle_conv_forward(const rl_oracle_conv *shape, int n, const double *x, const double *w, const double *b,
                            double *y_out) {
  int side = output_side(shape), size = shape->size;
  for (int image = 0; image < n; image++)
    for (int o = 0; o < shape->out; o++) {
      double *plane = y_out + ((size_t)image * shape->out + o) * side * side;
      for (int i = 0; i < side * side; i++) plane[i] = b[o];
      for (int c = 0; c < shape->in; c++) {
        const double *in = x + ((size_t)image * shape->in + c) * size * size;
        const double *taps = w + ((size_t)o * shape->in + c) * 9;
        FOR_EACH_TAP_ROW(shape, side, {
          double weight = taps[3 * ky + kx];
          for (int column = first_column; column < end_column; column++)
            plane[y * side + column] += weight * in[(y + row_shift) * size + column + column_shift];
        })
      }
    }
}

void rl_oracle_conv_input_gradient(const rl_oracle_conv *shape, int n, const double *dy, const double *w, double *dx) {
  int side = output_side(shape), size = shape->size;
  memset(dx, 0, sizeof *dx * (size_t)n * shape->in * size * size);
  for (int image = 0; image < n; image++)
    for (int o = 0; o < shape->out; o++) {
      const double *plane = dy + ((size_t)image * shape->out + o) * side * side;
      for (int c = 0; c < shape->in; c++) {
        double *in = dx + ((size_t)image * shape->in + c) * size * size;
        const double *taps = w + ((size_t)o * shape->in + c) * 9;
        FOR_EACH_TAP_ROW(shape, side, {
          double weight = taps[3 * ky + kx];
          for (int column = first_column; column < end_column; column++)
            in[(y + row_shift) * size + column + column_shift] += weight * plane[y * side + column];
        })
      }
    }
}

void rl_oracle_conv_weight_gradient(const rl_oracle_conv *shape, int n, const double *x, const double *dy, double *dw,
                                    double *db) {
  int side = output_side(shape), size = shape->size;
  memset(dw, 0, sizeof *dw * (size_t)shape->out * shape->in * 9);
  memset(db, 0, sizeof *db * (size_t)shape->out);
  for (int image = 0; image < n; image++)
    for (int o = 0; o < shape->out; o++) {
      const double *plane = dy + ((size_t)image * shape->out + o) * side * side;
      for (int i = 0; i < side * side; i++) db[o] += plane[i];
      for (int c = 0; c < shape->in; c++) {
        const double *in = x + ((size_t)image * shape->in + c) * size * size;
        double *taps = dw + ((size_t)o * shape->in + c) * 9;
        FOR_EACH_TAP_ROW(shape, side, {
          double sum = 0;
          for (int column = first_column; column < end_column; column++)
            sum += plane[y * side + column] * in[(y + row_shift) * size + column + column_shift];
          taps[3 * ky + kx] += sum;
        })
      }
    }
}

void rl_oracle_pool_forward(size_t planes, int size, const double *x, double *y, uint8_t *argmax) {
  int pooled_size = size / 2;
  for (size_t plane = 0; plane < planes; plane++, x += size * size)
    for (int row = 0; row < pooled_size; row++)
      for (int column = 0; column < pooled_size; column++) {
        double greatest = 0;
        uint8_t index = RL_ARGMAX_RELU_ZERO;
        for (uint8_t i = 0; i < 4; i++) {
          double value = x[(2 * row + i / 2) * size + 2 * column + i % 2];
          if (!(value <= greatest)) { /* true for NaN: it propagates, as in PyTorch */
            greatest = value;
            index = i;
          }
        }
        *y++ = greatest;
        *argmax++ = index;
      }
}

void rl_oracle_pool_gradient(size_t planes, int size, const double *dy, const uint8_t *argmax, double *dx) {
  int pooled_size = size / 2;
  memset(dx, 0, sizeof *dx * planes * (size_t)(size * size));
  for (size_t plane = 0; plane < planes; plane++, dx += size * size)
    for (int row = 0; row < pooled_size; row++)
      for (int column = 0; column < pooled_size; column++, argmax++, dy++)
        if (*argmax != RL_ARGMAX_RELU_ZERO) dx[(2 * row + *argmax / 2) * size + 2 * column + *argmax % 2] = *dy;
}

void rl_oracle_linear_forward(int n, int in, int out, const double *x, const double *w, const double *b, double *y) {
  for (int image = 0; image < n; image++)
    for (int o = 0; o < out; o++) {
      double sum = b[o];
      for (int i = 0; i < in; i++) sum += x[(size_t)image * in + i] * w[(size_t)o * in + i];
      y[(size_t)image * out + o] = sum;
    }
}

void rl_oracle_linear_input_gradient(int n, int in, int out, const double *dy, const double *w, double *dx) {
  memset(dx, 0, sizeof *dx * (size_t)n * in);
  for (int image = 0; image < n; image++)
    for (int o = 0; o < out; o++)
      for (int i = 0; i < in; i++) dx[(size_t)image * in + i] += dy[(size_t)image * out + o] * w[(size_t)o * in + i];
}

void rl_oracle_linear_weight_gradient(int n, int in, int out, const double *x, const double *dy, double *dw, double *db) {
  memset(dw, 0, sizeof *dw * (size_t)out * in);
  memset(db, 0, sizeof *db * (size_t)out);
  for (int image = 0; image < n; image++)
    for (int o = 0; o < out; o++) {
      double gradient = dy[(size_t)image * out + o];
      db[o] += gradient;
      for (int i = 0; i < in; i++) dw[(size_t)o * in + i] += gradient * x[(size_t)image * in + i];
    }
}

void rl_oracle_relu(size_t count, double *x) {
  for (size_t i = 0; i < count; i++) x[i] = x[i] < 0 ? 0 : x[i]; /* NaN stays NaN */
}

void rl_oracle_relu_gradient(size_t count, const double *y, double *dy) {
  for (size_t i = 0; i < count; i++)
    if (y[i] <= 0) dy[i] = 0;
}

double rl_oracle_loss(int n, const double *logits, const uint8_t *labels, double scale, double *logits_gradient,
                      uint32_t *correct) {
  double loss = 0;
  for (int image = 0; image < n; image++, logits += RL_CLASSES) {
    int greatest = 0;
    double sum = 0;
    for (int i = 1; i < RL_CLASSES; i++)
      if (logits[i] > logits[greatest]) greatest = i;
    for (int i = 0; i < RL_CLASSES; i++) sum += exp(logits[i] - logits[greatest]);
    loss += log(sum) + logits[greatest] - logits[labels[image]];
    if (correct != NULL) *correct += greatest == labels[image];
    for (int i = 0; logits_gradient != NULL && i < RL_CLASSES; i++)
      logits_gradient[image * RL_CLASSES + i] = (exp(logits[i] - logits[greatest]) / sum - (i == labels[image])) * scale / n;
  }
  return loss / n;
}

void rl_oracle_adam(size_t count, uint64_t step, double rate, const double *gradient, double *w, double *m, double *v) {
  double bias_correction_m = 1 - pow(0.9, (double)step), bias_correction_v = 1 - pow(0.999, (double)step);
  for (size_t i = 0; i < count; i++) {
    m[i] = 0.9 * m[i] + 0.1 * gradient[i];
    v[i] = 0.999 * v[i] + 0.001 * gradient[i] * gradient[i];
    w[i] -= rate * (m[i] / bias_correction_m) / (sqrt(v[i] / bias_correction_v) + 1e-8);
  }
}
