/* The launches that the launch-graph engines share. Each passes tensors of its stage and its engine to a kernel (kernels.h, which
 * also explains the terms). */
#include "cuda_check.h"
#include "train/cuda/training.h"

int rl_training_fork(rl_training *training, rl_stream stream, rl_error *err) {
  if (rl_cuda_check(cudaEventRecord(training->fork, (cudaStream_t)stream), "forking", err) < 0) return -1;
  return rl_cuda_check(cudaStreamWaitEvent(training->side_stream, training->fork, 0), "forking", err);
}

int rl_training_join(rl_training *training, rl_stream stream, rl_error *err) {
  if (rl_cuda_check(cudaEventRecord(training->join, training->side_stream), "joining", err) < 0) return -1;
  return rl_cuda_check(cudaStreamWaitEvent((cudaStream_t)stream, training->join, 0), "joining", err);
}

int rl_conv1_forward_launch(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *stage = (rl_stage *)arg;
  rl_training *training = stage->owner;
  return rl_conv1_forward(training->format, stage->gather, training->weights, training->pooled1, training->argmax1,
                          (cudaStream_t)stream, err);
}

int rl_conv2_forward_launch(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *stage = (rl_stage *)arg;
  rl_training *training = stage->owner;
  const float *bias = &training->weights[rl_tensor_offsets[RL_CONV2_B]];
  if (!training->format.fp16)
    return rl_conv2_float_forward(stage->gather.batch, (const float *)training->pooled1,
                                  &training->weights[rl_tensor_offsets[RL_CONV2_W]], bias, (float *)training->pooled2,
                                  training->argmax2, (cudaStream_t)stream, err);
  return rl_conv2_forward(stage->gather.batch, training->pooled1, rl_training_weights_for_products(training, RL_CONV2_W), bias,
                          training->pooled2, training->argmax2, stage->train ? training->state : NULL, (cudaStream_t)stream, err);
}

int rl_head_launch(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *stage = (rl_stage *)arg;
  rl_training *training = stage->owner;
  if (!stage->train)
    return rl_head_evaluate(&stage->head, training->test_losses, training->test_correct, training->state, (cudaStream_t)stream,
                            err);
  return rl_head_train(training->format, &stage->head, training->fc1_product_gradient, training->partial_head, training->state,
                       (cudaStream_t)stream, err);
}

int rl_conv1_backward_launch(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *stage = (rl_stage *)arg;
  rl_training *training = stage->owner;
  /* conv2.weight's gradient can overflow only if it is stored in FP16. */
  const void *conv2_weight_gradient = stage->gradients.conv2_rows ? NULL : stage->gradients.conv2_weight;
  return rl_conv1_backward(training->format, stage->gather, training->pooled1_gradient, training->argmax1,
                           training->partial_conv1, conv2_weight_gradient, training->state, (cudaStream_t)stream, err);
}

int rl_adam_launch(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *stage = (rl_stage *)arg;
  rl_adam update = rl_training_adam(stage->owner);
  return rl_adam_step(&update, &stage->gradients, (cudaStream_t)stream, err);
}
