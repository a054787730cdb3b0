/* Compares the oracle's gradients with finite differences, and the vectorised loops of every instruction set with the oracle.
 * Inputs are random in each run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "random_numbers.h"
#include "engines.h"
#include "half.h"
#include "train/cpu.h"
#include "train/direct.h"
#include "train/model.h"
#include "train/oracle.h"
#include "train/simd.h"

/* y is linear in x and in w, so the difference along a random direction is exact except for rounding. */
static void gradients_of_convolutions_match_differences(void **state) {
  (void)state;
  static const rl_oracle_conv shapes[] = {{1, 28, 32, 1}, {3, 6, 5, 1}, {4, 7, 3, 0}};
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
    const rl_oracle_conv *s = &shapes[k];
    int n = 2, side = s->size + 2 * s->padding - 2;
    size_t nx = (size_t)n * s->in * s->size * s->size, nw = (size_t)s->out * s->in * 9, ny = (size_t)n * s->out * side * side;
    double *x = new_numbers(nx, true), *w = new_numbers(nw, true), *b = new_numbers(s->out, true), *dy = new_numbers(ny, true);
    double *y = new_numbers(ny, false), *y2 = new_numbers(ny, false), *direction = new_numbers(nx + nw, true),
           *g = new_numbers(nx + nw, false), *db = new_numbers(s->out, false);
    rl_oracle_conv_forward(s, n, x, w, b, y);
    /* Compares one element of the output with the definition of a convolution. */
    int image = 1, o = s->out - 1, row = 0, column = side - 1;
    double expected = b[o];
    for (int c = 0; c < s->in; c++)
      for (int i = 0; i < 9; i++) {
        int r = row + i / 3 - s->padding, q = column + i % 3 - s->padding;
        if (r >= 0 && r < s->size && q >= 0 && q < s->size)
          expected += x[((image * s->in + c) * s->size + r) * s->size + q] * w[(o * s->in + c) * 9 + i];
      }
    assert_true(fabs(expected - y[((image * s->out + o) * side + row) * side + column]) < 1e-12);
    double before = dot_product(ny, y, dy);
    rl_oracle_conv_input_gradient(s, n, dy, w, g);
    for (size_t i = 0; i < nx; i++) x[i] += direction[i];
    rl_oracle_conv_forward(s, n, x, w, b, y2);
    assert_below("input gradient", fabs(dot_product(ny, y2, dy) - before - dot_product(nx, g, direction)), 1e-9);
    before = dot_product(ny, y2, dy);
    rl_oracle_conv_weight_gradient(s, n, x, dy, g, db);
    for (size_t i = 0; i < nw; i++) w[i] += direction[i];
    b[0] += 1;
    rl_oracle_conv_forward(s, n, x, w, b, y2);
    assert_below("weight gradient", fabs(dot_product(ny, y2, dy) - before - dot_product(nw, g, direction) - db[0]), 1e-9);
    free(x), free(w), free(b), free(dy), free(y), free(y2), free(direction), free(g), free(db);
  }
}

static void gradients_of_linear_layer_and_loss_match_differences(void **state) {
  (void)state;
  enum { N = 3, IN = 11, OUT = RL_CLASSES };
  double x[N * IN], w[OUT * IN], b[OUT], y[N * OUT], dy[N * OUT], dx[N * IN], dw[OUT * IN], db[OUT];
  uint8_t labels[N] = {3, 0, 9};
  for (int i = 0; i < N * IN; i++) x[i] = random_value();
  for (int i = 0; i < OUT * IN; i++) w[i] = random_value();
  for (int i = 0; i < OUT; i++) b[i] = random_value();
  rl_oracle_linear_forward(N, IN, OUT, x, w, b, y);
  double loss = rl_oracle_loss(N, y, labels, 2, dy, NULL);
  rl_oracle_linear_input_gradient(N, IN, OUT, dy, w, dx);
  rl_oracle_linear_weight_gradient(N, IN, OUT, x, dy, dw, db);
  const struct {
    double *values, *gradient;
    int count;
  } parts[] = {{x, dx, N * IN}, {w, dw, OUT * IN}, {b, db, OUT}};
  for (int p = 0; p < 3; p++)
    for (int i = 0; i < parts[p].count; i++) {
      double original = parts[p].values[i], h = 1e-5, losses[2];
      for (int side = 0; side < 2; side++) {
        parts[p].values[i] = original + (side ? h : -h);
        rl_oracle_linear_forward(N, IN, OUT, x, w, b, y);
        losses[side] = rl_oracle_loss(N, y, labels, 1, NULL, NULL);
      }
      parts[p].values[i] = original;
      assert_below("loss gradient", fabs((losses[1] - losses[0]) / (2 * h) * 2 - parts[p].gradient[i]), 1e-8);
    }
  assert_true(loss > 0);
  /* Of equal maxima, the argmax is the first. Where no input is positive, it is RL_ARGMAX_RELU_ZERO. */
  double plane[16] = {1, 1, -1, -2, 1, 1, -3, -4, 0, 0, 5, 6, 0, 0, 7, 7}, pooled[4], restored[16];
  uint8_t argmax[4];
  rl_oracle_pool_forward(1, 4, plane, pooled, argmax);
  const uint8_t expected[4] = {0, RL_ARGMAX_RELU_ZERO, RL_ARGMAX_RELU_ZERO, 2};
  assert_memory_equal(argmax, expected, 4);
  rl_oracle_pool_gradient(1, 4, (double[]){1, 2, 3, 4}, argmax, restored);
  assert_true(restored[0] == 1 && restored[14] == 4 && restored[1] == 0 && restored[2] == 0 && restored[8] == 0);
}

/* Computes two steps of Adam on one weight by algorithm 1 of Kingma and Ba. */
static void adam_follows_its_publication(void **state) {
  (void)state;
  double w = 1, m = 0, v = 0, g = 0.5;
  rl_oracle_adam(1, 1, 1e-3, &g, &w, &m, &v);
  assert_true(fabs(w - (1 - 1e-3 * 0.5 / (0.5 + 1e-8))) < 1e-15);
  g = -1;
  rl_oracle_adam(1, 2, 1e-3, &g, &w, &m, &v);
  double m2 = 0.9 * 0.05 - 0.1, v2 = 0.999 * 0.00025 + 0.001;
  double expected = 1 - 1e-3 * 0.5 / (0.5 + 1e-8) - 1e-3 * (m2 / 0.19) / (sqrt(v2 / (1 - 0.999 * 0.999)) + 1e-8);
  assert_true(fabs(w - expected) < 1e-15);
}

static void half_conversion_and_adam_of_instruction_sets_match(void **state) {
  (void)state;
  const rl_simd *tables[RL_SIMD_TABLES];
  int usable = rl_simd_list_usable(tables);
  enum { COUNT = 1003 };
  static float values[COUNT], restored[COUNT], w[COUNT], m[COUNT], v[COUNT];
  static uint16_t halves[COUNT];
  for (int t = 0; t < usable; t++) {
    for (int i = 0; i < COUNT; i++) values[i] = (float)(random_value() * exp2(40 * random_value()));
    tables[t]->to_half(COUNT, values, halves);
    tables[t]->from_half(COUNT, halves, restored);
    for (int i = 0; i < COUNT; i++) {
      assert_int_equal(halves[i], rl_half_from_float(values[i]));
      assert_true(restored[i] == rl_half_to_float(halves[i]));
    }
    assert_true(tables[t]->all_finite(COUNT, values));
    for (int i = 0; i < 3; i++) {
      float original = values[COUNT - 1 - i];
      values[COUNT - 1 - i] = (float[]){NAN, INFINITY, -INFINITY}[i];
      assert_false(tables[t]->all_finite(COUNT, values));
      values[COUNT - 1 - i] = original;
    }
    double dw[COUNT], dm[COUNT], dv[COUNT], dg[COUNT], result[COUNT];
    for (int i = 0; i < COUNT; i++) {
      dw[i] = w[i] = (float)random_value();
      dm[i] = m[i] = (float)random_value();
      dv[i] = v[i] = (float)fabs(random_value());
      values[i] = (float)random_value();
      dg[i] = values[i] / 1024.0;
    }
    tables[t]->adam(COUNT, values, 1024, 1e-3f, (float)(1 - pow(0.9, 5)), (float)(1 - pow(0.999, 5)), w, m, v);
    rl_oracle_adam(COUNT, 5, 1e-3, dg, dw, dm, dv);
    for (int i = 0; i < COUNT; i++) result[i] = w[i];
    assert_below("adam", relative_distance(COUNT, result, dw), 1e-6);
  }
}

static void fill_floats(size_t count, float *values) {
  for (size_t i = 0; i < count; i++) values[i] = (float)random_value();
}

/* The tables of all instruction sets agree. test_layers compares only the fastest table with the oracle. */
static void vectorised_loops_of_instruction_sets_agree(void **state) {
  (void)state;
  enum {
    POOLED1_ELEMENTS = RL_POOLED1_SIDE * RL_POOLED1_SIDE * RL_CONV1_CHANNELS,
    CONV2_ELEMENTS = RL_CONV2_SIDE * RL_CONV2_SIDE * RL_CONV2_CHANNELS,
    COLUMNS = RL_CONV2_SIDE * RL_CONV2_SIDE * 9 * RL_CONV1_CHANNELS
  };
  static float x[RL_IMAGE_PIXELS], w[9 * RL_CONV1_CHANNELS], b[RL_CONV2_CHANNELS], c2[CONV2_ELEMENTS], dy[POOLED1_ELEMENTS],
      a1[POOLED1_ELEMENTS], relu[10 * RL_CONV2_CHANNELS];
  typedef struct outputs {
    float y1[POOLED1_ELEMENTS], dw[9 * RL_CONV1_CHANNELS], db1[RL_CONV1_CHANNELS], y2[RL_FC1_INPUTS], dc[CONV2_ELEMENTS],
        db2[RL_CONV2_CHANNELS], columns[COLUMNS], image[POOLED1_ELEMENTS], relu[10 * RL_CONV2_CHANNELS];
  } outputs;
  static outputs out[RL_SIMD_TABLES];
  static uint8_t argmax1[RL_SIMD_TABLES][POOLED1_ELEMENTS], argmax2[RL_SIMD_TABLES][RL_FC1_INPUTS];
  fill_floats(RL_IMAGE_PIXELS, x), fill_floats(9 * RL_CONV1_CHANNELS, w), fill_floats(RL_CONV2_CHANNELS, b),
      fill_floats(CONV2_ELEMENTS, c2), fill_floats(POOLED1_ELEMENTS, dy);
  fill_floats(POOLED1_ELEMENTS, a1), fill_floats(10 * RL_CONV2_CHANNELS, relu);
  const rl_simd *tables[RL_SIMD_TABLES];
  int usable = rl_simd_list_usable(tables);
  for (int t = 0; t < usable; t++) {
    outputs *o = &out[t];
    tables[t]->conv1_forward(x, w, b, o->y1, argmax1[t]);
    tables[t]->conv1_gradient(x, dy, argmax1[0], o->dw, o->db1);
    tables[t]->pool2_forward(c2, b, o->y2, argmax2[t]);
    tables[t]->pool2_gradient(dy, argmax2[0], o->dc, o->db2);
    tables[t]->im2col(a1, o->columns);
    tables[t]->col2im(o->columns, o->image);
    memcpy(o->relu, relu, sizeof relu);
    tables[t]->bias_relu(10, RL_CONV2_CHANNELS, b, o->relu);
    assert_below(tables[t]->name, relative_float_distance(sizeof *o / sizeof(float), (const float *)o, (const float *)&out[0]),
                 1e-6);
    assert_memory_equal(
        argmax2[t], argmax2[0],
        sizeof argmax2[0]); /* equal, because each input is a sum of two numbers, which every table rounds to the same value */
  }
}

/* On constant planes, as at MNIST's margins, the argmax is the first of the four equal inputs if they are positive. */
static void the_argmax_of_equal_inputs_is_the_first(void **state) {
  (void)state;
  const rl_simd *tables[RL_SIMD_TABLES];
  int usable = rl_simd_list_usable(tables);
  static float x[RL_IMAGE_PIXELS], w[9 * RL_CONV1_CHANNELS], b[RL_CONV2_CHANNELS],
      c2[RL_CONV2_SIDE * RL_CONV2_SIDE * RL_CONV2_CHANNELS], y[RL_POOLED1_SIDE * RL_POOLED1_SIDE * RL_CONV1_CHANNELS];
  static uint8_t argmax[RL_POOLED1_SIDE * RL_POOLED1_SIDE * RL_CONV1_CHANNELS];
  for (int c = 0; c < RL_CONV2_CHANNELS; c++) b[c] = c % 3 - 1;
  for (int t = 0; t < usable; t++) {
    tables[t]->conv1_forward(x, w, b, y, argmax);
    for (int i = 0; i < RL_POOLED1_SIDE * RL_POOLED1_SIDE * RL_CONV1_CHANNELS; i++) {
      assert_int_equal(argmax[i], b[i % RL_CONV1_CHANNELS] > 0 ? 0 : RL_ARGMAX_RELU_ZERO);
      assert_true(y[i] == fmaxf(b[i % RL_CONV1_CHANNELS], 0));
    }
    tables[t]->pool2_forward(c2, b, y, argmax);
    for (int i = 0; i < RL_FC1_INPUTS; i++) assert_int_equal(argmax[i], b[i % RL_CONV2_CHANNELS] > 0 ? 0 : RL_ARGMAX_RELU_ZERO);
  }
}

/* Transposes x[pixels][channels] to out[channels][pixels]. */
static void transpose_to_planes(size_t pixels, size_t channels, const float *x, double *out) {
  for (size_t i = 0; i < pixels * channels; i++) out[i % channels * pixels + i / channels] = x[i];
}

/* Compares the direct convolution of one image with the oracle in each instruction set. The gradients get a random argmax, which
 * has all five values. */
static void direct_convolutions_match_the_oracle(void **state) {
  (void)state;
  enum {
    POOLED1_ELEMENTS = RL_POOLED1_SIDE * RL_POOLED1_SIDE * RL_CONV1_CHANNELS,
    WEIGHTS_PER_FILTER = 9 * RL_CONV1_CHANNELS,
    WEIGHTS = WEIGHTS_PER_FILTER * RL_CONV2_CHANNELS,
    CONV2_ELEMENTS = RL_CONV2_CHANNELS * RL_CONV2_SIDE * RL_CONV2_SIDE,
    POOLED2_PIXELS = RL_POOLED2_SIDE * RL_POOLED2_SIDE
  };
  static float x[POOLED1_ELEMENTS], w[WEIGHTS], b[RL_CONV2_CHANNELS], dy[RL_FC1_INPUTS], y[RL_FC1_INPUTS], dx[POOLED1_ELEMENTS],
      dw[WEIGHTS], db[RL_CONV2_CHANNELS];
  static _Alignas(64) float taps[WEIGHTS];
  static double oracle_x[POOLED1_ELEMENTS], oracle_w[WEIGHTS], oracle_b[RL_CONV2_CHANNELS], oracle_dy[RL_FC1_INPUTS],
      oracle_conv[CONV2_ELEMENTS], oracle_y[RL_FC1_INPUTS], oracle_dx[POOLED1_ELEMENTS], oracle_dw[WEIGHTS],
      oracle_db[RL_CONV2_CHANNELS], found[WEIGHTS];
  static uint8_t argmax[RL_FC1_INPUTS], random_argmax[RL_FC1_INPUTS], planes[RL_FC1_INPUTS];
  fill_floats(POOLED1_ELEMENTS, x), fill_floats(WEIGHTS, w), fill_floats(RL_CONV2_CHANNELS, b), fill_floats(RL_FC1_INPUTS, dy);
  for (int i = 0; i < RL_FC1_INPUTS; i++) random_argmax[i] = (uint8_t)(random_bits() % (RL_ARGMAX_RELU_ZERO + 1));
  transpose_to_planes(RL_POOLED1_SIDE * RL_POOLED1_SIDE, RL_CONV1_CHANNELS, x, oracle_x);
  transpose_to_planes(POOLED2_PIXELS, RL_CONV2_CHANNELS, dy, oracle_dy);
  for (int o = 0; o < RL_CONV2_CHANNELS; o++)
    transpose_to_planes(9, RL_CONV1_CHANNELS, w + o * WEIGHTS_PER_FILTER, oracle_w + o * WEIGHTS_PER_FILTER), oracle_b[o] = b[o];
  for (int i = 0; i < RL_FC1_INPUTS; i++)
    planes[i % RL_CONV2_CHANNELS * POOLED2_PIXELS + i / RL_CONV2_CHANNELS] = random_argmax[i];
  rl_oracle_conv_forward(&rl_oracle_conv2, 1, oracle_x, oracle_w, oracle_b, oracle_conv);
  rl_oracle_pool_forward(RL_CONV2_CHANNELS, RL_CONV2_SIDE, oracle_conv, oracle_y, argmax);
  rl_oracle_pool_gradient(RL_CONV2_CHANNELS, RL_CONV2_SIDE, oracle_dy, planes, oracle_conv);
  rl_oracle_conv_input_gradient(&rl_oracle_conv2, 1, oracle_conv, oracle_w, oracle_dx);
  rl_oracle_conv_weight_gradient(&rl_oracle_conv2, 1, oracle_x, oracle_conv, oracle_dw, oracle_db);
  const rl_direct *tables[RL_DIRECT_TABLES];
  int usable = rl_direct_list_usable(tables);
  for (int t = 0; t < usable; t++) {
    tables[t]->reorder_weights(w, taps);
    tables[t]->forward(x, taps, b, y, argmax);
    transpose_to_planes(POOLED2_PIXELS, RL_CONV2_CHANNELS, y, found);
    assert_below("direct forward", relative_distance(RL_FC1_INPUTS, found, oracle_y), 1e-6);
    tables[t]->input_gradient(dy, random_argmax, w, dx);
    transpose_to_planes(RL_POOLED1_SIDE * RL_POOLED1_SIDE, RL_CONV1_CHANNELS, dx, found);
    assert_below("direct input gradient", relative_distance(POOLED1_ELEMENTS, found, oracle_dx), 1e-6);
    memset(dw, 0, sizeof dw), memset(db, 0, sizeof db);
    for (int call = 0; call < 2; call++) tables[t]->weight_gradient(x, dy, random_argmax, dw, db);
    for (int i = 0; i < WEIGHTS; i++) oracle_dw[i] *= t == 0 ? 2 : 1; /* once doubled: two calls add the gradient */
    for (int o = 0; o < RL_CONV2_CHANNELS; o++)
      transpose_to_planes(9, RL_CONV1_CHANNELS, dw + o * WEIGHTS_PER_FILTER, found + o * WEIGHTS_PER_FILTER);
    assert_below("direct weight gradient", relative_distance(WEIGHTS, found, oracle_dw), 1e-6);
    for (int o = 0; o < RL_CONV2_CHANNELS; o++) assert_below("direct bias gradient", fabs(db[o] - 2 * oracle_db[o]), 1e-4);
  }
}

int main(void) {
  choose_test_seed();
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_of_convolutions_match_differences),
                                     cmocka_unit_test(gradients_of_linear_layer_and_loss_match_differences),
                                     cmocka_unit_test(adam_follows_its_publication),
                                     cmocka_unit_test(half_conversion_and_adam_of_instruction_sets_match),
                                     cmocka_unit_test(vectorised_loops_of_instruction_sets_agree),
                                     cmocka_unit_test(the_argmax_of_equal_inputs_is_the_first),
                                     cmocka_unit_test(direct_convolutions_match_the_oracle)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
