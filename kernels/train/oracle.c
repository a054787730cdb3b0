#include "train/oracle.h"

#include <math.h>
#include <string.h>

#include "train/model.h"

const rl_oracle_conv rl_oracle_conv1 = {.in = 1, .size = RL_IMAGE, .out = RL_C1, .padding = 1};
const rl_oracle_conv rl_oracle_conv2 = {.in = RL_C1, .size = RL_P1, .out = RL_C2, .padding = 0};

/* One tap (ky, kx) of a convolution couples output (y, x) with input (y + ky - padding, x + kx - padding). Calls body for each
 * output row of each tap for which the input row exists, with the columns [from, to) for which the input column exists. */
#define FOR_EACH_TAP_ROW(shape, side, BODY)                                                \
  for (int ky = 0; ky < 3; ky++)                                                           \
    for (int kx = 0; kx < 3; kx++) {                                                       \
      int down = ky - (shape)->padding, right = kx - (shape)->padding;                     \
      int from = right < 0 ? -right : 0;                                                   \
      int to = (shape)->size - right < (side) ? (shape)->size - right : (side);            \
      for (int y = down < 0 ? -down : 0; y < (side) && y + down < (shape)->size; y++) BODY \
    }

static int side_of(const rl_oracle_conv *shape) { return shape->size + 2 * shape->padding - 2; }

void rl_oracle_conv_forward(const rl_oracle_conv *shape, int n, const double *x, const double *w, const double *b,
                            double *y_out) {
  int side = side_of(shape), size = shape->size;
  for (int image = 0; image < n; image++)
    for (int o = 0; o < shape->out; o++) {
      double *plane = y_out + ((size_t)image * shape->out + o) * side * side;
      for (int i = 0; i < side * side; i++) plane[i] = b[o];
      for (int c = 0; c < shape->in; c++) {
        const double *in = x + ((size_t)image * shape->in + c) * size * size;
        const double *taps = w + ((size_t)o * shape->in + c) * 9;
        FOR_EACH_TAP_ROW(shape, side, {
          double weight = taps[3 * ky + kx];
          for (int column = from; column < to; column++)
            plane[y * side + column] += weight * in[(y + down) * size + column + right];
        })
      }
    }
}

void rl_oracle_conv_input_gradient(const rl_oracle_conv *shape, int n, const double *dy, const double *w, double *dx) {
  int side = side_of(shape), size = shape->size;
  memset(dx, 0, sizeof *dx * (size_t)n * shape->in * size * size);
  for (int image = 0; image < n; image++)
    for (int o = 0; o < shape->out; o++) {
      const double *plane = dy + ((size_t)image * shape->out + o) * side * side;
      for (int c = 0; c < shape->in; c++) {
        double *in = dx + ((size_t)image * shape->in + c) * size * size;
        const double *taps = w + ((size_t)o * shape->in + c) * 9;
        FOR_EACH_TAP_ROW(shape, side, {
          double weight = taps[3 * ky + kx];
          for (int column = from; column < to; column++)
            in[(y + down) * size + column + right] += weight * plane[y * side + column];
        })
      }
    }
}

void rl_oracle_conv_weight_gradient(const rl_oracle_conv *shape, int n, const double *x, const double *dy, double *dw,
                                    double *db) {
  int side = side_of(shape), size = shape->size;
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
          for (int column = from; column < to; column++) sum += plane[y * side + column] * in[(y + down) * size + column + right];
          taps[3 * ky + kx] += sum;
        })
      }
    }
}

void rl_oracle_pool_forward(size_t planes, int size, const double *x, double *y, uint8_t *argmax) {
  int half = size / 2;
  for (size_t plane = 0; plane < planes; plane++, x += size * size)
    for (int row = 0; row < half; row++)
      for (int column = 0; column < half; column++) {
        double best = 0;
        uint8_t chosen = RL_ORACLE_RELU_ZERO;
        for (uint8_t i = 0; i < 4; i++) {
          double value = x[(2 * row + i / 2) * size + 2 * column + i % 2];
          if (!(value <= best)) { /* NaN passes, as in PyTorch */
            best = value;
            chosen = i;
          }
        }
        *y++ = best;
        *argmax++ = chosen;
      }
}

void rl_oracle_pool_gradient(size_t planes, int size, const double *dy, const uint8_t *argmax, double *dx) {
  int half = size / 2;
  memset(dx, 0, sizeof *dx * planes * (size_t)(size * size));
  for (size_t plane = 0; plane < planes; plane++, dx += size * size)
    for (int row = 0; row < half; row++)
      for (int column = 0; column < half; column++, argmax++, dy++)
        if (*argmax != RL_ORACLE_RELU_ZERO) dx[(2 * row + *argmax / 2) * size + 2 * column + *argmax % 2] = *dy;
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

double rl_oracle_loss(int n, const double *logits, const uint8_t *labels, double scale, double *dlogits, uint32_t *correct) {
  double loss = 0;
  for (int image = 0; image < n; image++, logits += RL_CLASSES) {
    int best = 0;
    double sum = 0;
    for (int i = 1; i < RL_CLASSES; i++)
      if (logits[i] > logits[best]) best = i;
    for (int i = 0; i < RL_CLASSES; i++) sum += exp(logits[i] - logits[best]);
    loss += log(sum) + logits[best] - logits[labels[image]];
    if (correct != NULL) *correct += best == labels[image];
    for (int i = 0; dlogits != NULL && i < RL_CLASSES; i++)
      dlogits[image * RL_CLASSES + i] = (exp(logits[i] - logits[best]) / sum - (i == labels[image])) * scale / n;
  }
  return loss / n;
}

void rl_oracle_adam(size_t count, uint64_t step, double rate, const double *gradient, double *w, double *m, double *v) {
  double unbias_m = 1 - pow(0.9, (double)step), unbias_v = 1 - pow(0.999, (double)step);
  for (size_t i = 0; i < count; i++) {
    m[i] = 0.9 * m[i] + 0.1 * gradient[i];
    v[i] = 0.999 * v[i] + 0.001 * gradient[i] * gradient[i];
    w[i] -= rate * (m[i] / unbias_m) / (sqrt(v[i] / unbias_v) + 1e-8);
  }
}
