/* Checks the results of a layer stage by stage, for a sample of rows. The reference computes each stage from the device's result
 * of the previous stage, so that rounding errors do not accumulate and the error message names the wrong stage. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "hash.h"
#include "kernel/dtype.h"
#include "kernel/sums.h"
#include "layer/instance.h"
#include "layer/reference.h"

enum { MAX_ROWS = 16 };

RL_DEFINE_CLEANUP(free_doubles, double *, free, NULL)
RL_DEFINE_CLEANUP(free_memory, void *, free, NULL)

typedef struct checked_rows {
  rl_layer_instance *instance;
  rl_layer_reference reference;
  int64_t rows[MAX_ROWS];
  double *x, *stages[RL_LAYER_STAGE_COUNT]; /* results of the device for these rows: [count][columns] */
  double *expected;                         /* results of the reference for one stage */
} checked_rows;

/* Chooses the first row, the last row and random rows between them, in ascending order. */
static void choose_rows(checked_rows *checked) {
  const rl_layer_params *p = &checked->instance->params;
  const int64_t row_count = rl_layer_rows(p), count = row_count < MAX_ROWS ? row_count : MAX_ROWS;
  for (int64_t i = 0; i < count; i++) {
    const int64_t low = row_count * i / count, high = row_count * (i + 1) / count;
    checked->rows[i] = low + (int64_t)(rl_hash64(rl_hash64((uint64_t)p->seed) + (uint64_t)i) % (uint64_t)(high - low));
  }
  checked->rows[0] = 0;
  checked->rows[count - 1] = row_count - 1;
  checked->reference = (rl_layer_reference){.params = p,
                                            .thread_pool = checked->instance->thread_pool,
                                            .device = checked->instance->base.device,
                                            .rows = checked->rows,
                                            .count = count};
}

/* Reads `count` elements from element `start` of a tensor. */
static int read_elements(const rl_layer_instance *self, const void *tensor, int64_t start, int64_t count, double *values,
                         rl_error *err) {
  const size_t size = rl_dtype_size(self->stored_dtype);
  rl_device *device = self->base.device;
  RL_CLEANUP(free_memory) void *memory = malloc((size_t)count * size);
  if (memory == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the check of a layer");
  if (device->ops->download(device, memory, (const char *)tensor + (size_t)start * size, (size_t)count * size, err) < 0)
    return -1;
  rl_dtype_to_double(self->stored_dtype, memory, count, values);
  return 0;
}

static double *allocate(int64_t count, rl_error *err) {
  double *values = malloc((size_t)count * sizeof *values);
  if (values == NULL) rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the check of a layer");
  return values;
}

static int read_stage(checked_rows *checked, int stage, rl_error *err) {
  const rl_layer_params *p = &checked->instance->params;
  const int64_t columns = rl_layer_stage_columns(p, stage);
  checked->stages[stage] = allocate(checked->reference.count * columns, err);
  if (checked->stages[stage] == NULL) return -1;
  for (int64_t i = 0; i < checked->reference.count; i++)
    if (read_elements(checked->instance, checked->instance->stages[stage],
                      rl_layer_stage_row_index(p, stage, checked->rows[i]) * columns, columns,
                      checked->stages[stage] + i * columns, err) < 0)
      return -1;
  return 0;
}

static int read_rows(checked_rows *checked, rl_error *err) {
  const rl_layer_params *p = &checked->instance->params;
  const int64_t widest = 3 * p->hidden > p->ffn ? 3 * p->hidden : p->ffn;
  checked->x = allocate(checked->reference.count * p->hidden, err);
  checked->expected = allocate(checked->reference.count * widest, err);
  if (checked->x == NULL || checked->expected == NULL) return -1;
  for (int64_t i = 0; i < checked->reference.count; i++)
    rl_layer_fill_input(p, RL_LAYER_X, checked->rows[i] * p->hidden, p->hidden, checked->x + i * p->hidden);
  for (int stage = 0; stage < RL_LAYER_STAGE_COUNT; stage++)
    if (read_stage(checked, stage, err) < 0) return -1;
  return 0;
}

/* Computes the attention of each row from the device's qkv of the row's sequence. */
static int compute_attention(checked_rows *checked, rl_error *err) {
  const rl_layer_params *p = &checked->instance->params;
  const int64_t elements = rl_layer_context(p) * 3 * p->hidden;
  int64_t read = -1; /* index of the sequence whose qkv was read last */
  RL_CLEANUP(free_doubles) double *sequence = allocate(elements, err);
  if (sequence == NULL) return -1;
  for (int64_t i = 0; i < checked->reference.count; i++) {
    const int64_t index = checked->rows[i] / p->tokens;
    if (index != read &&
        read_elements(checked->instance, checked->instance->stages[RL_LAYER_QKV], index * elements, elements, sequence, err) < 0)
      return -1;
    read = index;
    if (rl_layer_reference_attention(&checked->reference, i, sequence, checked->expected + i * p->hidden, err) < 0) return -1;
  }
  return 0;
}

static int compute_stage(checked_rows *checked, int stage, rl_error *err) {
  const rl_layer_reference *reference = &checked->reference;
  double *const *stages = checked->stages;
  switch (stage) {
    case RL_LAYER_QKV: return rl_layer_reference_qkv(reference, checked->x, checked->expected, err);
    case RL_LAYER_ATTENTION: return compute_attention(checked, err);
    case RL_LAYER_HIDDEN:
      return rl_layer_reference_hidden(reference, checked->x, stages[RL_LAYER_ATTENTION], checked->expected, err);
    case RL_LAYER_GATED: return rl_layer_reference_gated(reference, stages[RL_LAYER_HIDDEN], checked->expected, err);
    default: return rl_layer_reference_output(reference, stages[RL_LAYER_HIDDEN], stages[RL_LAYER_GATED], checked->expected, err);
  }
}

/* Returns the largest accepted relative error of a stage. It consists of half a unit in the last place of the type for each
 * rounding (of the norm's result, of a product's result, and of the epilogue's result), and of the truncation of FP32 sums in
 * tensor cores. */
static double stage_tolerance(const rl_layer_params *p, int stage) {
  static const int roundings[] = {
      [RL_LAYER_QKV] = 3, [RL_LAYER_ATTENTION] = 2, [RL_LAYER_HIDDEN] = 2, [RL_LAYER_GATED] = 4, [RL_LAYER_OUTPUT] = 2};
  const int64_t length = stage == RL_LAYER_OUTPUT ? p->ffn : stage == RL_LAYER_ATTENTION ? rl_layer_context(p) : p->hidden;
  const double ulps = 64 + 4 * (rl_sum_ulps(length) + rl_sum_truncation_ulps(length));
  return ulps * rl_dtype_epsilon(RL_DTYPE_FP32) + roundings[stage] * rl_dtype_epsilon(rl_layer_element_dtype(p)) / 2;
}

/* Returns the relative error of a row; NAN when an element of the result is infinite or NaN. */
static double row_error(const double *result, const double *expected, int64_t columns) {
  double squared_error = 0, squared_norm = 0;
  for (int64_t i = 0; i < columns; i++) {
    squared_error += (result[i] - expected[i]) * (result[i] - expected[i]);
    squared_norm += expected[i] * expected[i];
  }
  return sqrt(squared_error / squared_norm);
}

/* Compares a stage with the reference. *worst keeps the error with the largest ratio to its tolerance. */
static int check_stage(checked_rows *checked, int stage, rl_check *worst, rl_error *err) {
  const rl_layer_params *p = &checked->instance->params;
  const int64_t columns = rl_layer_stage_columns(p, stage);
  const double tolerance = stage_tolerance(p, stage);
  if (compute_stage(checked, stage, err) < 0) return -1;
  for (int64_t i = 0; i < checked->reference.count; i++) {
    const double error = row_error(checked->stages[stage] + i * columns, checked->expected + i * columns, columns);
    if (!(error <= tolerance)) /* NAN fails too */
      return rl_fail(err, RL_ERRNO, EDOM, "the result %s of row %lld is wrong: its relative error of %.3g is more than %.3g",
                     rl_layer_stage_names[stage], (long long)checked->rows[i], error, tolerance);
    if (error / tolerance > worst->relative_error / worst->tolerance) *worst = (rl_check){error, tolerance, NAN};
  }
  return 0;
}

static int run_once(rl_layer_instance *self, rl_error *err) {
  rl_device *device = self->base.device;
  rl_sequence once = self->step;
  rl_sequence_list sequence_list = {.name = "check", .sequences = &once, .sequence_count = 1};
  rl_elapsed elapsed;
  once.repeat = 1;
  return rl_layer_poison(self, err) < 0 || device->ops->run_eager(device, &sequence_list, NULL, &elapsed, err) < 0 ? -1 : 0;
}

static int check_stages(checked_rows *checked, rl_check *check, rl_error *err) {
  rl_check worst = {0, 1, NAN};
  if (read_rows(checked, err) < 0) return -1;
  for (int stage = 0; stage < RL_LAYER_STAGE_COUNT; stage++)
    if (check_stage(checked, stage, &worst, err) < 0) return -1;
  worst.checked_ratio = (double)checked->reference.count / (double)rl_layer_rows(&checked->instance->params);
  *check = worst;
  return 0;
}

int rl_layer_check(rl_instance *instance, rl_check *check, rl_error *err) {
  checked_rows checked = {.instance = (rl_layer_instance *)instance};
  choose_rows(&checked);
  const bool failed = run_once(checked.instance, err) < 0 || check_stages(&checked, check, err) < 0;
  free(checked.x);
  free(checked.expected);
  for (int stage = 0; stage < RL_LAYER_STAGE_COUNT; stage++) free(checked.stages[stage]);
  return failed ? -1 : 0;
}
