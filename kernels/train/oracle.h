/* Every layer of the model (model.h) as plain loops in double precision. The engine reference runs these functions, and tests
 * compare the other engines with them.
 *
 * Names and layouts: x input, y output, w weights, b bias, n images in the batch; d followed by a name is the gradient of that
 * array and has its layout. Layouts are PyTorch's: activations NCHW, weights OIHW or [out][in]. Functions overwrite their
 * outputs, unless a comment says that they add to them. */
#ifndef RL_TRAIN_ORACLE_H
#define RL_TRAIN_ORACLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A 3×3 convolution with stride 1. It has `in` input channels of size × size pixels and `out` output channels of side × side
 * pixels, where side = size + 2 · padding - 2. */
typedef struct rl_oracle_conv {
  int in, size, out, padding;
} rl_oracle_conv;
extern const rl_oracle_conv rl_oracle_conv1, rl_oracle_conv2; /* the model's convolutions */

/* Shapes: x[n][in][size][size], w[out][in][3][3], b[out], y[n][out][side][side]. */
void rl_oracle_conv_forward(const rl_oracle_conv *shape, int n, const double *x, const double *w, const double *b, double *y);
void rl_oracle_conv_input_gradient(const rl_oracle_conv *shape, int n, const double *dy, const double *w, double *dx);
void rl_oracle_conv_weight_gradient(const rl_oracle_conv *shape, int n, const double *x, const double *dy, double *dw,
                                    double *db);

/* rl_oracle_pool_forward computes ReLU, then 2×2 max-pooling of `planes` planes (one for each image and channel) of size×size;
 * size must be even. argmax[plane][size/2][size/2]: index, 0–3 in row-major order, of the largest input of each window (the first
 * of equal ones), or RL_ARGMAX_RELU_ZERO if no input is above 0. */
void rl_oracle_pool_forward(size_t planes, int size, const double *x, double *y, uint8_t *argmax);
void rl_oracle_pool_gradient(size_t planes, int size, const double *dy, const uint8_t *argmax, double *dx);

/* Computes y[n][out] = x[n][in] w[out][in]ᵀ + b[out]. */
void rl_oracle_linear_forward(int n, int in, int out, const double *x, const double *w, const double *b, double *y);
void rl_oracle_linear_input_gradient(int n, int in, int out, const double *dy, const double *w, double *dx);
void rl_oracle_linear_weight_gradient(int n, int in, int out, const double *x, const double *dy, double *dw, double *db);

void rl_oracle_relu(size_t count, double *x);                            /* in place: x = max(x, 0) */
void rl_oracle_relu_gradient(size_t count, const double *y, double *dy); /* in place: dy = 0 where y, the output of ReLU, is 0 */

/* Returns the mean softmax cross-entropy over logits[n][10]. Writes its gradient, multiplied by `scale`, to logits_gradient
 * unless logits_gradient is NULL. Adds the number of images whose largest logit (the first of equal ones) is the label's to
 * *correct unless correct is NULL. */
double rl_oracle_loss(int n, const double *logits, const uint8_t *labels, double scale, double *logits_gradient,
                      uint32_t *correct);

/* Updates the weights w and the moments m and v in Adam's step number `step`, from 1. rate: learning rate. */
void rl_oracle_adam(size_t count, uint64_t step, double rate, const double *gradient, double *w, double *m, double *v);

#ifdef __cplusplus
}
#endif
#endif
