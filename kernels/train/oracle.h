/* The mathematics of each layer in plain double precision: what every engine is compared with, and what the reference engine is
 * made of. PyTorch's layouts, images first (NCHW, OIHW, [out][in]). Outputs are overwritten. Sources: the definitions in
 * model.h. */
#ifndef RL_TRAIN_ORACLE_H
#define RL_TRAIN_ORACLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_oracle_conv { /* 3×3, stride 1; output side = size + 2·padding - 2 */
  int in, size, out, padding;
} rl_oracle_conv;
extern const rl_oracle_conv rl_oracle_conv1, rl_oracle_conv2; /* the model's two */

/* x[n][in][size][size], w[out][in][3][3], b[out], y[n][out][side][side] */
void rl_oracle_conv_forward(const rl_oracle_conv *shape, int n, const double *x, const double *w, const double *b, double *y);
void rl_oracle_conv_input_gradient(const rl_oracle_conv *shape, int n, const double *dy, const double *w, double *dx);
void rl_oracle_conv_weight_gradient(const rl_oracle_conv *shape, int n, const double *x, const double *dy, double *dw,
                                    double *db);

/* ReLU, then 2×2 max-pooling of `planes` planes of size×size (size even). choice[plane][size/2][size/2]: which of the four in
 * row-major order passed, or RL_ORACLE_DEAD when ReLU let none through. */
enum { RL_ORACLE_DEAD = 4 };
void rl_oracle_pool_forward(size_t planes, int size, const double *x, double *y, uint8_t *choice);
void rl_oracle_pool_gradient(size_t planes, int size, const double *dy, const uint8_t *choice, double *dx);

/* y[n][out] = x[n][in] w[out][in]ᵀ + b[out] */
void rl_oracle_linear_forward(int n, int in, int out, const double *x, const double *w, const double *b, double *y);
void rl_oracle_linear_input_gradient(int n, int in, int out, const double *dy, const double *w, double *dx);
void rl_oracle_linear_weight_gradient(int n, int in, int out, const double *x, const double *dy, double *dw, double *db);

void rl_oracle_relu(size_t count, double *x);                            /* in place */
void rl_oracle_relu_gradient(size_t count, const double *y, double *dy); /* in place; y: what relu left */

/* logits[n][10]; dlogits = scale · d(mean loss)/dlogits, or NULL. Returns the mean loss; *correct, if not NULL, is raised by the
 * images whose first largest logit is the label's. */
double rl_oracle_loss(int n, const double *logits, const uint8_t *labels, double scale, double *dlogits, uint32_t *correct);

/* One step, number `step` (1 for the first): moments m and v and weights w in place. */
void rl_oracle_adam(size_t count, uint64_t step, double rate, const double *gradient, double *w, double *m, double *v);

#ifdef __cplusplus
}
#endif
#endif
