/* fc1 (2304 inputs, 128 outputs) by our kernels (fc1_half.cu) in FP16 at small batches, else by cuBLASLt. Forward: one strided
 * batched GEMM, whose depth K is split into parts; the head adds up the parts. Backward: two GEMMs, for the gradients of the
 * input and of the weights. They run on two streams if tuning found this to be faster. */
#include <stdio.h>

#include "cuda_check.h"
#include "train/cuda/training.h"
#include "library/tune.h"

/* The largest batches for which our kernels compute the products in FP16. fuses_backward: they are faster than cuBLASLt for the
 * input gradient at 512 and 1024, and slower at 4096; batches between were not measured. */
enum { MAX_OWN_IMAGES = 128, MAX_OWN_INPUT_GRADIENT_IMAGES = 2048 };
static_assert(MAX_OWN_IMAGES * RL_FC1_HALF_PARTS <= RL_MAX_FC1_PART_ROWS, "there must be memory for the parts");

int rl_fc1_forward_launch(void *arg, rl_stream stream, rl_error *err) {
  const rl_stage *stage = (const rl_stage *)arg;
  const rl_training *training = stage->owner;
  if (stage->fc1_forward) return rl_gemm_enqueue(stage->fc1_forward, stream, err);
  return rl_fc1_half_forward(stage->gather.batch, training->pooled2, rl_training_weights_for_products(training, RL_FC1_W),
                             training->fc1_parts, (cudaStream_t)stream, err);
}

int rl_fc1_input_gradient_enqueue(rl_stage *stage, rl_stream stream, rl_error *err) {
  const rl_training *training = stage->owner;
  if (stage->fc1_input_gradient) return rl_gemm_enqueue(stage->fc1_input_gradient, stream, err);
  return rl_fc1_half_backward(stage->gather.batch, training->fc1_product_gradient, training->pooled2,
                              rl_training_weights_for_products(training, RL_FC1_W), training->pooled2_gradient,
                              stage->fc1_weight_gradient ? NULL : training->fc1_weight_gradient, (cudaStream_t)stream, err);
}

int rl_fc1_backward_launch(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *stage = (rl_stage *)arg;
  rl_training *training = stage->owner;
  if (!stage->fc1_weight_gradient) return rl_fc1_input_gradient_enqueue(stage, stream, err);
  rl_stream weight_stream = stage->fc1_concurrent ? training->side_stream : stream;
  return (stage->fc1_concurrent && rl_training_fork(training, stream, err) < 0) ||
                 rl_fc1_input_gradient_enqueue(stage, stream, err) < 0 ||
                 rl_gemm_enqueue(stage->fc1_weight_gradient, weight_stream, err) < 0 ||
                 (stage->fc1_concurrent && rl_training_join(training, stream, err) < 0)
             ? -1
             : 0;
}

/* Returns the shape of D[m×n] = A[m×k] · B[k×n], column-major, in the engine's types. */
static rl_gemm_shape product(const rl_training *training, int64_t m, int64_t n, int64_t k) {
  cudaDataType_t type = training->format.fp16 ? CUDA_R_16F : CUDA_R_32F;
  return {m, n, k, false, false, m, k, m, 1, 0, 0, 0, type, type, training->format.tf32};
}

static int enqueue_fc1_and_head(void *arg, rl_stream stream, rl_error *err) {
  return rl_fc1_forward_launch(arg, stream, err) < 0 || rl_head_launch(arg, stream, err) < 0 ? -1 : 0;
}

/* Returns whether our kernel computes both gradients of a step. */
static bool is_backward_own(const rl_stage *stage) { return stage->owner->format.fp16 && stage->gather.batch <= MAX_OWN_IMAGES; }

/* Returns whether our kernel computes the product of a step. It takes longer than cuBLASLt after a short kernel
 * (pool2_forward), and less time after a long one, during which it starts. */
static bool is_forward_own(const rl_stage *stage) {
  return is_backward_own(stage) && stage->train && stage->owner->engine->fuses_backward;
}

/* Opens the GEMM parts[p][batch][128] = input[batch][range p of K] · weights[128][range p of K]ᵀ. cuBLASLt expects column-major
 * matrices, so it reads these row-major matrices as their transposes; therefore A is `weights` and B is `input`. */
static int open_fc1_split(rl_stage *stage, uint32_t parts, int max_algorithms, rl_gemm **gemm, rl_error *err) {
  rl_training *training = stage->owner;
  rl_gemm_shape shape = product(training, RL_FC1_OUTPUTS, stage->gather.batch, RL_FC1_INPUTS / parts);
  shape.transpose_a = true;
  shape.lda = shape.ldb = RL_FC1_INPUTS;
  shape.batch_count = parts;
  shape.stride_a = shape.stride_b = RL_FC1_INPUTS / parts;
  shape.stride_d = (int64_t)stage->gather.batch * RL_FC1_OUTPUTS;
  shape.output = CUDA_R_32F;
  return rl_gemm_open(training->cublas, &shape, rl_training_weights_for_products(training, RL_FC1_W), training->pooled2,
                      training->fc1_parts, training->workspace[0], training->workspace_bytes[0], max_algorithms,
                      rl_training_stream(training), gemm, err);
}

/* Returns the largest number of parts to try (RL_MAX_FC1_PART_ROWS). */
static uint32_t max_parts(uint32_t batch) { return batch >= RL_MAX_FC1_PART_ROWS ? 1 : RL_MAX_FC1_PART_ROWS / batch; }

/* Opens the forward product. tune: chooses the number of parts by timing the product together with the head, which adds up the
 * parts. The tuning cache keeps the choice. */
static int open_forward(rl_stage *stage, bool tune, rl_error *err) {
  static const uint32_t splits[] = {1, 2, 3, 4, 6, 9, 12, 18};
  uint32_t parts_limit = max_parts(stage->gather.batch);
  double best_us = 0;
  char key[64];
  snprintf(key, sizeof key, "fc1 parts %d %u %d", stage->owner->base.params.precision, stage->gather.batch, tune);
  int64_t cached_parts = rl_tuning_cache_find(key);
  for (int i = 7; i >= 0; i--) {
    rl_gemm *gemm = NULL, *previous = stage->fc1_forward;
    uint32_t previous_parts = stage->head.part_count;
    double us = 0;
    if (splits[i] > parts_limit || (cached_parts > 0 && splits[i] != (uint32_t)cached_parts)) continue;
    if (open_fc1_split(stage, splits[i], tune ? 8 : 1, &gemm, err) < 0) return -1;
    stage->fc1_forward = gemm;
    stage->head.part_count = splits[i];
    if (!tune) return 0;
    if (rl_tune_measure_us(enqueue_fc1_and_head, stage, rl_training_stream(stage->owner), &us, err) < 0) {
      rl_gemm_close(previous);
      return -1;
    }
    bool better = !previous || us < best_us;
    if (better) best_us = us;
    else {
      stage->fc1_forward = previous;
      stage->head.part_count = previous_parts;
    }
    rl_gemm_close(better ? previous : gemm);
  }
  rl_tuning_cache_add(key, stage->head.part_count);
  return 0;
}

/* Opens the GEMMs of those gradients of fc1's input and weights that our kernels do not compute. */
static int open_backward(rl_stage *stage, int max_algorithms, rl_error *err) {
  rl_training *training = stage->owner;
  uint32_t batch = stage->gather.batch;
  rl_gemm_shape input_gradient = product(training, RL_FC1_INPUTS, batch, RL_FC1_OUTPUTS),
                weight_gradient = product(training, RL_FC1_INPUTS, RL_FC1_OUTPUTS, batch);
  weight_gradient.transpose_b = true;
  weight_gradient.ldb = RL_FC1_OUTPUTS;
  weight_gradient.output = CUDA_R_32F;
  const bool is_input_gradient_own = training->engine->fuses_backward && batch <= MAX_OWN_INPUT_GRADIENT_IMAGES;
  if (!is_input_gradient_own && rl_gemm_open(training->cublas, &input_gradient,
                                             rl_training_weights_for_products(training, RL_FC1_W), training->fc1_product_gradient,
                                             training->pooled2_gradient, training->workspace[0], training->workspace_bytes[0],
                                             max_algorithms, rl_training_stream(training), &stage->fc1_input_gradient, err) < 0)
    return -1;
  return rl_gemm_open(training->cublas, &weight_gradient, training->pooled2, training->fc1_product_gradient,
                      training->fc1_weight_gradient, training->workspace[1], training->workspace_bytes[1], max_algorithms,
                      rl_training_stream(training), &stage->fc1_weight_gradient, err);
}

int rl_fc1_open(rl_stage *stage, bool tune, rl_error *err) {
  if (is_forward_own(stage)) stage->head.part_count = RL_FC1_HALF_PARTS;
  else if (open_forward(stage, tune, err) < 0) return -1;
  if (!stage->train || is_backward_own(stage)) return 0;
  if (open_backward(stage, tune ? 16 : 1, err) < 0) return -1;
  stage->fc1_concurrent = stage->owner->engine->fuses_backward;
  return tune && !stage->fc1_concurrent ? rl_training_tune_concurrency(stage, rl_fc1_backward_launch, &stage->fc1_concurrent, err)
                                        : 0;
}

void rl_fc1_close(rl_stage *stage) {
  rl_gemm_close(stage->fc1_forward);
  rl_gemm_close(stage->fc1_input_gradient);
  rl_gemm_close(stage->fc1_weight_gradient);
}
