/* fc1 by cuBLASLt. Forward: one strided batched GEMM, whose K is split into parts that the head adds up. Backward: two GEMMs, on
 * two streams if that is faster. */
#include <stdio.h>

#include "cuda_check.h"
#include "train/cuda/training.h"
#include "library/tune.h"

int rl_fc1_forward_launch(void *arg, rl_stream stream, rl_error *err) {
  return rl_gemm_enqueue(((rl_stage *)arg)->fc1, stream, err);
}

int rl_fc1_backward_launch(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *s = (rl_stage *)arg;
  rl_training *e = s->owner;
  rl_stream weight_stream = s->fc1_concurrent ? e->side_stream : stream;
  return (s->fc1_concurrent && rl_training_fork(e, stream, err) < 0) || rl_gemm_enqueue(s->fc1_data, stream, err) < 0 ||
                 rl_gemm_enqueue(s->fc1_weight, weight_stream, err) < 0 ||
                 (s->fc1_concurrent && rl_training_join(e, stream, err) < 0)
             ? -1
             : 0;
}

static rl_gemm_shape product(const rl_training *e, int64_t m, int64_t n, int64_t k) {
  cudaDataType_t type = e->format.fp16 ? CUDA_R_16F : CUDA_R_32F;
  return {m, n, k, false, false, m, k, m, 1, 0, 0, 0, type, type, e->format.tf32};
}

static int enqueue_fc1_and_head(void *arg, rl_stream stream, rl_error *err) {
  return rl_fc1_forward_launch(arg, stream, err) < 0 || rl_head_launch(arg, stream, err) < 0 ? -1 : 0;
}

/* Opens parts[p][batch][128] = input[batch][K range p] · weights[128][K range p]ᵀ. cuBLASLt is column-major and reads these
 * row-major matrices as their transposes, so A is `weights` and B is `input`. */
static int open_fc1_split(rl_stage *s, uint32_t parts, int max_algorithms, rl_gemm **gemm, rl_error *err) {
  rl_training *e = s->owner;
  rl_gemm_shape shape = product(e, RL_FC1_OUTPUTS, s->gather.batch, RL_FC1_INPUTS / parts);
  shape.transpose_a = true;
  shape.lda = shape.ldb = RL_FC1_INPUTS;
  shape.batch_count = parts;
  shape.stride_a = shape.stride_b = RL_FC1_INPUTS / parts;
  shape.stride_d = (int64_t)s->gather.batch * RL_FC1_OUTPUTS;
  shape.output = CUDA_R_32F;
  return rl_gemm_open(e->cublas, &shape, rl_training_compute_weights(e, RL_FC1_W), e->pooled2, e->fc1_parts, e->workspace[0],
                      e->workspace_bytes[0], max_algorithms, rl_training_stream(e), gemm, err);
}

static uint32_t max_parts(uint32_t batch) { return batch >= RL_MAX_FC1_PART_ROWS ? 1 : RL_MAX_FC1_PART_ROWS / batch; }

/* Chooses the number of parts of fc1's product by timing the product together with the head, which adds up the parts. */
static int open_forward(rl_stage *s, bool tune, rl_error *err) {
  static const uint32_t splits[] = {1, 2, 3, 4, 6, 9, 12, 18};
  uint32_t parts_limit = max_parts(s->gather.batch);
  double best_us = 0;
  char key[64];
  snprintf(key, sizeof key, "fc1 parts %d %u %d", s->owner->base.params.precision, s->gather.batch, tune);
  int64_t cached_parts = rl_tuning_cache_find(key);
  for (int i = 7; i >= 0; i--) {
    rl_gemm *gemm = NULL, *previous = s->fc1;
    uint32_t previous_parts = s->head.part_count;
    double us = 0;
    if (splits[i] > parts_limit || (cached_parts > 0 && splits[i] != (uint32_t)cached_parts)) continue;
    if (open_fc1_split(s, splits[i], tune ? 8 : 1, &gemm, err) < 0) return -1;
    s->fc1 = gemm;
    s->head.part_count = splits[i];
    if (!tune) return 0;
    if (rl_tune_measure_us(enqueue_fc1_and_head, s, rl_training_stream(s->owner), &us, err) < 0) {
      rl_gemm_close(previous);
      return -1;
    }
    bool better = !previous || us < best_us;
    if (better) best_us = us;
    else {
      s->fc1 = previous;
      s->head.part_count = previous_parts;
    }
    rl_gemm_close(better ? previous : gemm);
  }
  rl_tuning_cache_add(key, s->head.part_count);
  return 0;
}

static int open_backward(rl_stage *s, int max_algorithms, rl_error *err) {
  rl_training *e = s->owner;
  uint32_t batch = s->gather.batch;
  rl_gemm_shape data = product(e, RL_FC1_INPUTS, batch, RL_FC1_OUTPUTS),
                weight = product(e, RL_FC1_INPUTS, RL_FC1_OUTPUTS, batch);
  weight.transpose_b = true;
  weight.ldb = RL_FC1_OUTPUTS;
  weight.output = CUDA_R_32F;
  if (rl_gemm_open(e->cublas, &data, rl_training_compute_weights(e, RL_FC1_W), e->d_fc1, e->d_pooled2, e->workspace[0],
                   e->workspace_bytes[0], max_algorithms, rl_training_stream(e), &s->fc1_data, err) < 0)
    return -1;
  return rl_gemm_open(e->cublas, &weight, e->pooled2, e->d_fc1, e->d_fc1_weight, e->workspace[1], e->workspace_bytes[1],
                      max_algorithms, rl_training_stream(e), &s->fc1_weight, err);
}

int rl_fc1_open(rl_stage *s, bool tune, rl_error *err) {
  if (open_forward(s, tune, err) < 0 || (s->train && open_backward(s, tune ? 16 : 1, err) < 0)) return -1;
  return tune ? rl_training_tune_concurrency(s, rl_fc1_backward_launch, &s->fc1_concurrent, err) : 0;
}

void rl_fc1_close(rl_stage *s) {
  rl_gemm_close(s->fc1);
  rl_gemm_close(s->fc1_data);
  rl_gemm_close(s->fc1_weight);
}
