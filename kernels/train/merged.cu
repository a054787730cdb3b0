/* Engine "merged": FP16 in five launches a step, none of them a library's, for devices with clusters of blocks (compute
 * capability 9.0). Against "fused", fc1 and its input gradient are in one launch with the head, its weight gradient is made where
 * Adam uses it, and conv1's gradients where its pooled one is made:
 *
 *   conv1_forward   gather + normalise + conv1 + bias + ReLU + pool
 *   conv2_forward   conv2 + bias + ReLU + pool
 *   classify        fc1 + bias + ReLU + fc2 + softmax + loss, and back to fc1's input
 *   conv_backward   unpooling, weight, bias and input gradient of conv2; unpooling, weight and bias gradient of conv1
 *   adam            fc1's weight gradient and the sums of all others, too
 *
 * H200, ms an epoch: 27.4 against 31.2 of "fused" at batch 64, 10.9 against 8.2 at 512; "persistent" has 18.9 at 64. */
#include "train/cuda/training.h"
#include "train/engines.h"

static int conv_backward(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *s = (rl_stage *)arg;
  rl_training *e = s->owner;
  const rl_conv1_chain conv1 = {s->gather, e->codes1, e->partial_conv1};
  return rl_conv_backward(&conv1, e->pooled1, rl_training_multiplied(e, RL_CONV2_W), e->d_pooled2, e->codes2, e->d_pooled1,
                          (float *)e->d_conv2_weight, e->partial_conv2, e->state, (cudaStream_t)stream, err);
}

static rl_rows rows(rl_format, uint32_t batch) {
  return {rl_conv_rows(batch), rl_conv2_rows(batch), rl_conv2_rows(batch), rl_classify_rows(batch)};
}

static const rl_launch launches[] = {
    {"conv1_forward", "forward", rl_conv1_forward_launch, NULL},
    {"conv2_forward", "forward", rl_conv2_forward_launch, NULL},
    {"classify", "forward", rl_classify_launch, NULL},
    {"conv_backward", "backward", conv_backward, NULL},
    {"adam", "optimizer", rl_adam_launch, NULL},
};

/* 128 images evaluated at once: with more of them, evaluation would need more memory than training with the usual batch of 64. */
static const rl_recipe recipe = {
    launches, sizeof launches / sizeof *launches, 3, true, false, true, 128, rows, NULL, NULL, NULL, NULL, false, true};

static int open_engine(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  return rl_training_open(&recipe, device, params, instance, err);
}

static int device_supports(const void *, rl_error *err) { return rl_classify_supported(err); }

extern "C" {
extern const rl_engine rl_engine_merged;
const rl_engine rl_engine_merged = {&rl_train_merged, open_engine, device_supports};
}
