/* The engine "cudnn": cuDNN computes conv2. All other launches are shared with the engine fused (train/cuda/training.h). A step
 * is ten launches, by our own kernels ("own") or by a library:
 *
 *   conv1_forward    gather + normalise + conv1 + bias + ReLU + pool     own
 *   conv2_forward                                                        cuDNN
 *   pool2_forward    bias + ReLU + pool                                  own
 *   fc1_forward      split along K into parts, added up by `head`        cuBLASLt
 *   head             bias + ReLU + fc2 + softmax + loss, and backward    own
 *   fc1_backward     weight and input gradient                           cuBLASLt; FP16 at small batches: own (fc1_half.cu)
 *   pool2_backward   unpooling, bias gradient of conv2                   own
 *   conv2_backward   weight and input gradient                           cuDNN, on two streams if that is faster
 *   conv1_backward   weight and bias gradient                            own
 *   adam             sums of partial gradients, update                   own
 *
 * FP32 runs in NCHW, where cuDNN's single-precision kernels for conv2 took 15–19 µs each (NHWC: 27–35 µs). TF32 and FP16 run in
 * NHWC. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda_check.h"
#include "library/conv.h"
#include "train/cuda/training.h"
#include "train/engines.h"

/* cuDNN's convolutions for conv2 in a stage. */
typedef struct conv2_operations {
  rl_dnn *forward, *input_gradient, *weight_gradient; /* NULL: the stage does not compute it */
  bool concurrent;                                    /* the two gradients run on two streams */
} conv2_operations;

typedef struct cudnn_data { /* rl_training.engine_data */
  cudnnHandle_t handle;
  conv2_operations stages[RL_STAGES];
} cudnn_data;

static cudnn_data *cudnn_data_of(const rl_training *training) { return (cudnn_data *)training->engine_data; }
static conv2_operations *operations_of(const rl_stage *stage) { return &cudnn_data_of(stage->owner)->stages[stage->index]; }

static int conv2_forward(void *arg, rl_stream stream, rl_error *err) {
  return rl_dnn_enqueue(operations_of((rl_stage *)arg)->forward, stream, err);
}

static int pool2_forward(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *stage = (rl_stage *)arg;
  rl_training *training = stage->owner;
  return rl_pool2_forward(training->format, stage->gather.batch, training->conv2_product,
                          &training->weights[rl_tensor_offsets[RL_CONV2_B]], training->pooled2, training->argmax2,
                          stage->train ? training->state : NULL, (cudaStream_t)stream, err);
}

static int pool2_backward(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *stage = (rl_stage *)arg;
  rl_training *training = stage->owner;
  return rl_pool2_backward(training->format, stage->gather.batch, training->pooled2_gradient, training->argmax2,
                           training->conv2_product, training->partial_conv2_bias, training->state, (cudaStream_t)stream, err);
}

static int conv2_backward(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *stage = (rl_stage *)arg;
  rl_training *training = stage->owner;
  const conv2_operations *operations = operations_of(stage);
  if (operations->concurrent && rl_training_fork(training, stream, err) < 0) return -1;
  if (rl_dnn_enqueue(operations->input_gradient, stream, err) < 0) return -1;
  if (rl_dnn_enqueue(operations->weight_gradient, operations->concurrent ? training->side_stream : stream, err) < 0) return -1;
  return operations->concurrent ? rl_training_join(training, stream, err) : 0;
}

/* Opens one convolution of a stage. tune: times cuDNN's engines and takes the fastest; otherwise takes the first one of cuDNN's
 * heuristic that works. */
static int open_conv(rl_stage *stage, rl_conv_pass pass, bool tune, rl_dnn **conv, rl_error *err) {
  rl_training *training = stage->owner;
  cudnnDataType_t type = training->format.fp16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
  rl_conv_shape shape = {pass,
                         stage->gather.batch,
                         RL_CONV1_CHANNELS,
                         RL_POOLED1_SIDE,
                         RL_POOLED1_SIDE,
                         RL_CONV2_CHANNELS,
                         3,
                         1,
                         0,
                         training->format.channels_last,
                         type,
                         type,
                         training->format.tf32};
  /* Workspace: Winograd's FP32 kernels take up to 226 KB per image. Number of engines to time: for single precision cuDNN has few
   * engines and compiles none of them at run time, so all are timed. For tensor cores it has many engines and must compile each;
   * its heuristic ranks them well, so only the first ones are timed. */
  bool single = !training->format.fp16 && !training->format.tf32;
  rl_dnn_search search = {(32u << 20) + (size_t)stage->gather.batch * (256u << 10), tune ? (single ? 64 : 10) : (single ? 6 : 1),
                          single};
  void *x = pass == RL_CONV_BACKWARD_DATA ? training->pooled1_gradient : training->pooled1;
  void *weights =
      pass == RL_CONV_BACKWARD_FILTER ? training->conv2_weight_gradient : rl_training_weights_for_products(training, RL_CONV2_W);
  if (rl_conv_open(cudnn_data_of(training)->handle, &shape, x, weights, training->conv2_product, search,
                   rl_training_stream(training), conv, err) < 0)
    return -1;
  size_t *bytes = &training->workspace_bytes[pass == RL_CONV_BACKWARD_FILTER],
         needed = rl_dnn_read_choice(*conv)->workspace_bytes;
  if (needed > *bytes) *bytes = needed;
  return 0;
}

static int open_convs(rl_training *training, rl_error *err) {
  training->engine_data = calloc(1, sizeof(cudnn_data));
  if (!training->engine_data) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the engine");
  if (rl_cudnn_check(cudnnCreate(&cudnn_data_of(training)->handle), "starting cuDNN", err) < 0) return -1;
  for (int i = 0; i < RL_STAGES; i++) {
    rl_stage *stage = &training->stages[i];
    if (stage->gather.batch == 0) continue;
    conv2_operations *operations = operations_of(stage);
    if (open_conv(stage, RL_CONV_FORWARD, i == RL_STEP, &operations->forward, err) < 0) return -1;
    if (stage->train && (open_conv(stage, RL_CONV_BACKWARD_DATA, i == RL_STEP, &operations->input_gradient, err) < 0 ||
                         open_conv(stage, RL_CONV_BACKWARD_FILTER, i == RL_STEP, &operations->weight_gradient, err) < 0))
      return -1;
  }
  return 0;
}

/* Binds a convolution to a workspace. If the convolution is not deterministic, marks the instance as not deterministic. conv may
 * be NULL. */
static int bind_conv(rl_training *training, rl_dnn *conv, int workspace, rl_error *err) {
  if (!conv) return 0;
  rl_instance *instance = &training->base.base;
  if (!rl_dnn_read_choice(conv)->deterministic) {
    instance->deterministic = false;
    instance->deterministic_note =
        "cuDNN's fastest engine for a convolution of this batch size adds in an order that varies between runs";
  }
  return rl_dnn_set_workspace(conv, training->workspace[workspace], err);
}

static int bind_convs(rl_training *training, rl_error *err) {
  for (int i = 0; i < RL_STAGES; i++) {
    const conv2_operations *operations = &cudnn_data_of(training)->stages[i];
    if (bind_conv(training, operations->forward, 0, err) < 0 || bind_conv(training, operations->input_gradient, 0, err) < 0 ||
        bind_conv(training, operations->weight_gradient, 1, err) < 0)
      return -1;
  }
  rl_stage *step = &training->stages[RL_STEP];
  return step->gather.batch ? rl_training_tune_concurrency(step, conv2_backward, &operations_of(step)->concurrent, err) : 0;
}

static void close_convs(rl_training *training) {
  cudnn_data *data = cudnn_data_of(training);
  if (!data) return;
  for (int i = 0; i < RL_STAGES; i++) {
    rl_dnn_close(data->stages[i].forward);
    rl_dnn_close(data->stages[i].input_gradient);
    rl_dnn_close(data->stages[i].weight_gradient);
  }
  if (data->handle) cudnnDestroy(data->handle);
  free(data);
}

static int choices_of(const rl_training *training, const rl_stage *stage, rl_training_choice *choices) {
  const conv2_operations *operations = &cudnn_data_of(training)->stages[stage->index];
  const rl_dnn *convs[] = {operations->forward, operations->input_gradient, operations->weight_gradient};
  static const char *const names[] = {"conv2_forward", "conv2_data", "conv2_weight"};
  for (int i = 0; i < 3; i++) {
    choices[i].call = names[i];
    choices[i].us = rl_dnn_read_choice(convs[i])->us;
    snprintf(choices[i].algorithm, sizeof choices[i].algorithm, "cuDNN %.88s%s", rl_dnn_read_choice(convs[i])->name,
             i == 2 && operations->concurrent ? ", beside the other gradient" : "");
  }
  return 3;
}

static rl_partial_rows partial_rows(rl_format format, uint32_t batch) {
  return {rl_conv1_partial_rows(format, batch), 0, rl_pool2_partial_rows(format, batch), rl_head_partial_rows(batch)};
}

static const rl_launch launches[] = {
    {"conv1_forward", "forward", rl_conv1_forward_launch, NULL},
    {"conv2_forward", "forward", conv2_forward, NULL},
    {"pool2_forward", "forward", pool2_forward, NULL},
    {"fc1_forward", "forward", rl_fc1_forward_launch, NULL},
    {"head", "forward", rl_head_launch, NULL},
    {"fc1_backward", "backward", rl_fc1_backward_launch, NULL},
    {"pool2_backward", "backward", pool2_backward, NULL},
    {"conv2_backward", "backward", conv2_backward, NULL},
    {"conv1_backward", "backward", rl_conv1_backward_launch, NULL},
    {"adam", "optimizer", rl_adam_launch, NULL},
};

static const rl_launch_graph_engine engine = {.launches = launches,
                                              .launch_count = sizeof launches / sizeof *launches,
                                              .forward_count = 5,
                                              .stores_conv2_product = true,
                                              .test_batch = 500,
                                              .partial_rows = partial_rows,
                                              .open = open_convs,
                                              .bind = bind_convs,
                                              .close = close_convs,
                                              .choices = choices_of};

static int open_engine(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  return rl_training_open(&engine, device, params, instance, err);
}

extern "C" {
extern const rl_engine rl_engine_cudnn;
const rl_engine rl_engine_cudnn = {&rl_train_cudnn, open_engine};
}
