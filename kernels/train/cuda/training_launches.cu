/* Launches that the launch-graph engines share. Each passes tensors of its stage and engine to a kernel (kernels.h). */
#include "cuda_check.h"
#include "train/cuda/training.h"

int rl_training_fork(rl_training *e, rl_stream stream, rl_error *err) {
  if (rl_cuda_check(cudaEventRecord(e->fork, (cudaStream_t)stream), "forking", err) < 0) return -1;
  return rl_cuda_check(cudaStreamWaitEvent(e->side_stream, e->fork, 0), "forking", err);
}

int rl_training_join(rl_training *e, rl_stream stream, rl_error *err) {
  if (rl_cuda_check(cudaEventRecord(e->join, e->side_stream), "joining", err) < 0) return -1;
  return rl_cuda_check(cudaStreamWaitEvent((cudaStream_t)stream, e->join, 0), "joining", err);
}

int rl_conv1_forward_launch(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *s = (rl_stage *)arg;
  rl_training *e = s->owner;
  return rl_conv1_forward(e->format, s->gather, e->weights, e->pooled1, e->argmax1, (cudaStream_t)stream, err);
}

int rl_conv2_forward_launch(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *s = (rl_stage *)arg;
  rl_training *e = s->owner;
  const float *bias = &e->weights[rl_tensor_offsets[RL_CONV2_B]];
  if (!e->format.fp16)
    return rl_conv2_float_forward(s->gather.batch, (const float *)e->pooled1, &e->weights[rl_tensor_offsets[RL_CONV2_W]], bias,
                                  (float *)e->pooled2, e->argmax2, (cudaStream_t)stream, err);
  return rl_conv2_forward(s->gather.batch, e->pooled1, rl_training_compute_weights(e, RL_CONV2_W), bias, e->pooled2, e->argmax2,
                          s->train ? e->state : NULL, (cudaStream_t)stream, err);
}

int rl_head_launch(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *s = (rl_stage *)arg;
  rl_training *e = s->owner;
  if (!s->train) return rl_head_evaluate(&s->head, e->test_losses, e->test_correct, e->state, (cudaStream_t)stream, err);
  return rl_head_train(e->format, &s->head, e->d_fc1, e->partial_head, e->state, (cudaStream_t)stream, err);
}

int rl_conv1_backward_launch(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *s = (rl_stage *)arg;
  rl_training *e = s->owner;
  /* conv2.weight's gradient can overflow only if it is stored in FP16. */
  const void *conv2_gradient = s->gradients.conv2_rows ? NULL : s->gradients.conv2_weight;
  return rl_conv1_backward(e->format, s->gather, e->d_pooled1, e->argmax1, e->partial_conv1, conv2_gradient, e->state,
                           (cudaStream_t)stream, err);
}

int rl_adam_launch(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *s = (rl_stage *)arg;
  rl_adam update = rl_training_adam(s->owner);
  return rl_adam_step(&update, &s->gradients, (cudaStream_t)stream, err);
}
