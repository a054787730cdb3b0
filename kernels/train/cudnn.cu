/* Engine "cudnn": conv2 by cuDNN; all other launches are shared (train/cuda/training.h). A step is ten launches, by our own
 * kernels
 * ("own") or by a library:
 *
 *   conv1_forward    gather + normalise + conv1 + bias + ReLU + pool     own
 *   conv2_forward                                                        cuDNN
 *   pool2_forward    bias + ReLU + pool                                  own
 *   fc1_forward      split along K into parts, added up by `head`        cuBLASLt
 *   head             bias + ReLU + fc2 + softmax + loss, and backward    own
 *   fc1_backward     weight and input gradient                           cuBLASLt
 *   pool2_backward   unpooling, bias gradient of conv2                   own
 *   conv2_backward   weight and input gradient                           cuDNN, on two streams if that is faster
 *   conv1_backward   weight and bias gradient                            own
 *   adam             sums of partial gradients, update                   own
 *
 * FP32 runs in NCHW (cuDNN's single-precision kernels took 15–19 µs there, 27–35 in NHWC), TF32 and FP16 in NHWC. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda_check.h"
#include "library/conv.h"
#include "train/cuda/training.h"
#include "train/engines.h"

typedef struct conv2_passes { /* of a stage */
  rl_dnn *forward, *data, *weight;
  bool concurrent; /* the two gradients run on two streams */
} conv2_passes;

typedef struct cudnn_data { /* rl_training.engine_data */
  cudnnHandle_t handle;
  conv2_passes stages[RL_STAGES];
} cudnn_data;

static cudnn_data *data_of(const rl_training *e) { return (cudnn_data *)e->engine_data; }
static conv2_passes *passes_of(const rl_stage *s) { return &data_of(s->owner)->stages[s->index]; }

static int conv2_forward(void *arg, rl_stream stream, rl_error *err) {
  return rl_dnn_enqueue(passes_of((rl_stage *)arg)->forward, stream, err);
}

static int pool2_forward(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *s = (rl_stage *)arg;
  rl_training *e = s->owner;
  return rl_pool2_forward(e->format, s->gather.batch, e->product2, &e->weights[rl_tensor_offsets[RL_CONV2_B]], e->pooled2,
                          e->argmax2, s->train ? e->state : NULL, (cudaStream_t)stream, err);
}

static int pool2_backward(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *s = (rl_stage *)arg;
  rl_training *e = s->owner;
  return rl_pool2_backward(e->format, s->gather.batch, e->d_pooled2, e->argmax2, e->product2, e->partial_conv2_bias, e->state,
                           (cudaStream_t)stream, err);
}

static int conv2_backward(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *s = (rl_stage *)arg;
  rl_training *e = s->owner;
  const conv2_passes *p = passes_of(s);
  if (p->concurrent && rl_training_fork(e, stream, err) < 0) return -1;
  if (rl_dnn_enqueue(p->data, stream, err) < 0) return -1;
  if (rl_dnn_enqueue(p->weight, p->concurrent ? e->side_stream : stream, err) < 0) return -1;
  return p->concurrent ? rl_training_join(e, stream, err) : 0;
}

static int open_conv(rl_stage *s, rl_conv_pass pass, bool tune, rl_dnn **conv, rl_error *err) {
  rl_training *e = s->owner;
  cudnnDataType_t type = e->format.fp16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
  rl_conv_shape shape = {
      pass, s->gather.batch, RL_C1, RL_POOLED1_SIDE, RL_POOLED1_SIDE, RL_C2, 3, 1, 0, e->format.channels_last, type,
      type, e->format.tf32};
  /* Winograd's FP32 kernels take up to 226 KB of workspace per image. cuDNN has few engines for single precision, none of which
   * is compiled at run time, so all of them are timed. It has many engines for tensor cores; each needs a compilation, and the
   * heuristic ranks them well, so only the first ones are timed. */
  bool single = !e->format.fp16 && !e->format.tf32;
  rl_dnn_search search = {(32u << 20) + (size_t)s->gather.batch * (256u << 10), tune ? (single ? 64 : 10) : (single ? 6 : 1),
                          single};
  void *x = pass == RL_CONV_BACKWARD_DATA ? e->d_pooled1 : e->pooled1;
  void *weights = pass == RL_CONV_BACKWARD_FILTER ? e->d_conv2_weight : rl_training_compute_weights(e, RL_CONV2_W);
  if (rl_conv_open(data_of(e)->handle, &shape, x, weights, e->product2, search, rl_training_stream(e), conv, err) < 0) return -1;
  size_t *bytes = &e->workspace_bytes[pass == RL_CONV_BACKWARD_FILTER], needed = rl_dnn_chosen(*conv)->workspace_bytes;
  if (needed > *bytes) *bytes = needed;
  return 0;
}

static int open_convs(rl_training *e, rl_error *err) {
  e->engine_data = calloc(1, sizeof(cudnn_data));
  if (!e->engine_data) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the engine");
  if (rl_cudnn_check(cudnnCreate(&data_of(e)->handle), "starting cuDNN", err) < 0) return -1;
  for (int i = 0; i < RL_STAGES; i++) {
    rl_stage *s = &e->stages[i];
    if (s->gather.batch == 0) continue;
    conv2_passes *p = passes_of(s);
    if (open_conv(s, RL_CONV_FORWARD, i == RL_STEP, &p->forward, err) < 0) return -1;
    if (s->train && (open_conv(s, RL_CONV_BACKWARD_DATA, i == RL_STEP, &p->data, err) < 0 ||
                     open_conv(s, RL_CONV_BACKWARD_FILTER, i == RL_STEP, &p->weight, err) < 0))
      return -1;
  }
  return 0;
}

/* Binds a plan to its workspace. conv may be NULL. */
static int bind_conv(rl_training *e, rl_dnn *conv, int workspace, rl_error *err) {
  if (!conv) return 0;
  rl_instance *instance = &e->base.base;
  if (!rl_dnn_chosen(conv)->deterministic) {
    instance->deterministic = false;
    instance->deterministic_note = "cuDNN's fastest engine for a convolution of this batch size adds in no fixed order";
  }
  return rl_dnn_bind(conv, e->workspace[workspace], err);
}

static int bind_convs(rl_training *e, rl_error *err) {
  for (int i = 0; i < RL_STAGES; i++) {
    const conv2_passes *p = &data_of(e)->stages[i];
    if (bind_conv(e, p->forward, 0, err) < 0 || bind_conv(e, p->data, 0, err) < 0 || bind_conv(e, p->weight, 1, err) < 0)
      return -1;
  }
  rl_stage *step = &e->stages[RL_STEP];
  return step->gather.batch ? rl_training_tune_concurrency(step, conv2_backward, &passes_of(step)->concurrent, err) : 0;
}

static void close_convs(rl_training *e) {
  cudnn_data *data = data_of(e);
  if (!data) return;
  for (int i = 0; i < RL_STAGES; i++) {
    rl_dnn_close(data->stages[i].forward);
    rl_dnn_close(data->stages[i].data);
    rl_dnn_close(data->stages[i].weight);
  }
  if (data->handle) cudnnDestroy(data->handle);
  free(data);
}

static int choices_of(const rl_training *e, const rl_stage *s, rl_training_choice *choices) {
  const conv2_passes *p = &data_of(e)->stages[s->index];
  const rl_dnn *convs[] = {p->forward, p->data, p->weight};
  static const char *const names[] = {"conv2_forward", "conv2_data", "conv2_weight"};
  for (int i = 0; i < 3; i++) {
    choices[i].what = names[i];
    choices[i].us = rl_dnn_chosen(convs[i])->us;
    snprintf(choices[i].how, sizeof choices[i].how, "cuDNN %.88s%s", rl_dnn_chosen(convs[i])->name,
             i == 2 && p->concurrent ? ", beside the other gradient" : "");
  }
  return 3;
}

static rl_partial_rows rows(rl_format format, uint32_t batch) {
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

static const rl_recipe recipe = {.launches = launches,
                                 .launch_count = sizeof launches / sizeof *launches,
                                 .forward_count = 5,
                                 .keeps_product = true,
                                 .test_batch = 500,
                                 .rows = rows,
                                 .open = open_convs,
                                 .bind = bind_convs,
                                 .close = close_convs,
                                 .choices = choices_of};

static int open_engine(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  return rl_training_open(&recipe, device, params, instance, err);
}

extern "C" {
extern const rl_engine rl_engine_cudnn;
const rl_engine rl_engine_cudnn = {&rl_train_cudnn, open_engine};
}
