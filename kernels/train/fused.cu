/* The engine "fused" of the GPU: the convolutions run in kernels that keep conv2's product on chip. All other launches are shared
 * with the engine cudnn (train/cuda/training.h). A step consists of these launches, by our own kernels ("own") or by a library:
 *
 *   conv1_forward    gather + normalise + conv1 + bias + ReLU + pool     own
 *   conv2_forward    conv2 + bias + ReLU + pool                          own
 *   fc1_forward      split along K into parts, added up by `head`        cuBLASLt; FP16 at small batches: own (fc1_half.cu)
 *   head             bias + ReLU + fc2 + softmax + loss, and backward    own
 *   fc1_backward     weight and input gradient                           cuBLASLt; FP16 at small batches: own (fc1_half.cu)
 *   conv2_backward   unpooling; weight, bias and input gradient          own
 *   conv1_backward   weight and bias gradient                            own
 *   adam             sums of partial gradients, update                   own
 *
 * In FP16, conv2 uses mma.sync (train/cuda/conv2_forward.cu and conv2_backward.cu), in FP32 and TF32 FMA units (conv2_float.cu).
 * In FP16 on a device with wgmma, both convolutions are one kernel in each direction. One launch, `backward`, computes the
 * gradients of fc1 and of both convolutions. Up to a batch, own kernels compute fc1 in FP16 (fc1.cu). */
#include "hopper/support.h"
#include "train/cuda/training.h"
#include "train/engines.h"

static int convolutions_forward(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *stage = (rl_stage *)arg;
  rl_training *training = stage->owner;
  const rl_convolutions convolutions = {.gather = stage->gather,
                                        .conv1_weights = training->weights,
                                        .conv2_bias = &training->weights[rl_tensor_offsets[RL_CONV2_B]],
                                        .conv2_weights = rl_training_weights_for_products(training, RL_CONV2_W),
                                        .pooled1 = training->pooled1,
                                        .pooled2 = training->pooled2,
                                        .argmax1 = training->argmax1,
                                        .argmax2 = training->argmax2,
                                        .state = stage->train ? training->state : NULL};
  return rl_convolutions_forward(&convolutions, (cudaStream_t)stream, err);
}

static int conv2_backward(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *stage = (rl_stage *)arg;
  rl_training *training = stage->owner;
  if (!training->format.fp16)
    return rl_conv2_float_backward(
        stage->gather.batch, (const float *)training->pooled1, &training->weights[rl_tensor_offsets[RL_CONV2_W]],
        (const float *)training->pooled2_gradient, training->argmax2, (float *)training->pooled1_gradient,
        (float *)training->conv2_weight_gradient, training->partial_conv2_bias, (cudaStream_t)stream, err);
  return rl_conv2_backward(stage->gather.batch, training->pooled1, rl_training_weights_for_products(training, RL_CONV2_W),
                           training->pooled2_gradient, training->argmax2, training->pooled1_gradient,
                           (float *)training->conv2_weight_gradient, training->partial_conv2_bias, training->state,
                           (cudaStream_t)stream, err);
}

static rl_partial_rows partial_rows(rl_format format, uint32_t batch) {
  const uint32_t conv2 = format.fp16 ? rl_conv2_partial_rows(batch) : rl_conv2_float_partial_rows(batch);
  return {.conv1 = rl_conv1_partial_rows(format, batch),
          .conv2_weight = conv2,
          .conv2_bias = conv2,
          .head = rl_head_partial_rows(batch)};
}

static const rl_launch launches[] = {
    {"conv1_forward", "forward", rl_conv1_forward_launch, NULL},    {"conv2_forward", "forward", rl_conv2_forward_launch, NULL},
    {"fc1_forward", "forward", rl_fc1_forward_launch, NULL},        {"head", "forward", rl_head_launch, NULL},
    {"fc1_backward", "backward", rl_fc1_backward_launch, NULL},     {"conv2_backward", "backward", conv2_backward, NULL},
    {"conv1_backward", "backward", rl_conv1_backward_launch, NULL}, {"adam", "optimizer", rl_adam_launch, NULL},
};

static const rl_launch_graph_engine engine = {.launches = launches,
                                              .launch_count = sizeof launches / sizeof *launches,
                                              .forward_count = 4,
                                              .channels_last = true,
                                              .test_batch = 500,
                                              .partial_rows = partial_rows};

static int convolutions_backward(rl_stage *stage, rl_stream stream, rl_error *err) {
  rl_training *training = stage->owner;
  const rl_convolutions_gradients gradients = {.gather = stage->gather,
                                               .pooled1 = training->pooled1,
                                               .conv2_weights = rl_training_weights_for_products(training, RL_CONV2_W),
                                               .pooled2_gradient = training->pooled2_gradient,
                                               .argmax1 = training->argmax1,
                                               .argmax2 = training->argmax2,
                                               .partial_conv1 = training->partial_conv1,
                                               .partial_conv2_weight = training->conv2_weight_gradient,
                                               .partial_conv2_bias = training->partial_conv2_bias,
                                               .pooled1_gradient = training->pooled1_gradient,
                                               .epoch_images = training->base.images,
                                               .state = training->state};
  return rl_convolutions_backward(&gradients, (cudaStream_t)stream, err);
}

/* Only Adam needs fc1's weight gradient, so it runs beside the other gradients, unless one kernel computes both gradients of
 * fc1. */
static int backward(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *stage = (rl_stage *)arg;
  rl_training *training = stage->owner;
  if (!stage->fc1_weight_gradient)
    return rl_fc1_backward_launch(arg, stream, err) < 0 || convolutions_backward(stage, stream, err) < 0 ? -1 : 0;
  return rl_training_fork(training, stream, err) < 0 || rl_fc1_input_gradient_enqueue(stage, stream, err) < 0 ||
                 rl_gemm_enqueue(stage->fc1_weight_gradient, training->side_stream, err) < 0 ||
                 convolutions_backward(stage, stream, err) < 0 || rl_training_join(training, stream, err) < 0
             ? -1
             : 0;
}

static rl_partial_rows hopper_partial_rows(rl_format, uint32_t batch) {
  const uint32_t rows = rl_convolutions_partial_rows(batch);
  return {.conv1 = rows, .conv2_weight = rows, .conv2_bias = rows, .head = rl_head_partial_rows(batch)};
}

static const rl_launch hopper_launches[] = {
    {"convolutions_forward", "forward", convolutions_forward, NULL},
    {"fc1_forward", "forward", rl_fc1_forward_launch, NULL},
    {"head", "forward", rl_head_launch, NULL},
    {"backward", "backward", backward, NULL},
    {"adam", "optimizer", rl_adam_launch, NULL},
};

/* FP16 on a device with wgmma. */
static const rl_launch_graph_engine hopper_engine = {.launches = hopper_launches,
                                                     .launch_count = sizeof hopper_launches / sizeof *hopper_launches,
                                                     .forward_count = 3,
                                                     .channels_last = true,
                                                     .fuses_backward = true,
                                                     .test_batch = 500,
                                                     .partial_rows = hopper_partial_rows};

static int open_engine(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  const bool on_hopper = ((const rl_train_params *)params)->precision == RL_FP16 && rl_hopper_has_wgmma(device);
  return rl_training_open(on_hopper ? &hopper_engine : &engine, device, params, instance, err);
}

extern "C" {
extern const rl_engine rl_engine_fused;
const rl_engine rl_engine_fused = {&rl_train_fused, open_engine};
}
