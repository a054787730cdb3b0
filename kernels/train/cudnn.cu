/* Engine "cudnn": conv2 by cuDNN, the rest by the shell (train/cuda/training.h). A step of ten launches:
 *
 *   conv1_forward    gather + normalise + conv1 + bias + ReLU + pool     own
 *   conv2_forward                                                        cuDNN
 *   pool2_forward    bias + ReLU + pool                                  own
 *   fc1_forward      split along K into parts that `head` adds up        cuBLASLt
 *   head             bias + ReLU + fc2 + softmax + loss, and back        own
 *   fc1_backward     weight and input gradient                           cuBLASLt
 *   pool2_backward   with conv2's bias gradient                          own
 *   conv2_backward   weight and input gradient                           cuDNN, side by side where that is faster
 *   conv1_backward   from the pooled gradient to 320 gradients           own
 *   adam             with loss scale, overflow, loss and counters        own
 *
 * FP32 runs in NCHW (cuDNN's single-precision kernels were 15–19 µs there, 27–35 in NHWC), TF32 and FP16 in NHWC. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda_check.h"
#include "library/conv.h"
#include "train/cuda/training.h"
#include "train/engines.h"

typedef struct passes { /* of a stage */
  rl_dnn *forward, *data, *weight;
  bool beside; /* the two gradients run side by side */
} passes;

typedef struct library { /* the engine's own part */
  cudnnHandle_t cudnn;
  passes stages[RL_STAGES];
} library;

static library *own(const rl_training *e) { return (library *)e->own; }
static passes *passes_of(const rl_stage *s) { return &own(s->owner)->stages[s->index]; }

static int conv2_forward(void *arg, rl_stream stream, rl_error *err) {
  return rl_dnn_enqueue(passes_of((rl_stage *)arg)->forward, stream, err);
}

static int pool2_forward(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *s = (rl_stage *)arg;
  rl_training *e = s->owner;
  return rl_pool2_forward(e->format, s->gather.batch, e->product2, &e->weights[rl_tensor_offsets[RL_CONV2_B]], e->pooled2,
                          e->codes2, s->train ? e->state : NULL, (cudaStream_t)stream, err);
}

static int pool2_backward(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *s = (rl_stage *)arg;
  rl_training *e = s->owner;
  return rl_pool2_backward(e->format, s->gather.batch, e->d_pooled2, e->codes2, e->product2, e->partial_conv2, e->state,
                           (cudaStream_t)stream, err);
}

static int conv2_backward(void *arg, rl_stream stream, rl_error *err) {
  rl_stage *s = (rl_stage *)arg;
  rl_training *e = s->owner;
  const passes *p = passes_of(s);
  rl_stream weight_stream = p->beside ? e->side : stream;
  return (p->beside && rl_training_fork(e, stream, err)) || rl_dnn_enqueue(p->data, stream, err) ||
                 rl_dnn_enqueue(p->weight, weight_stream, err) || (p->beside && rl_training_join(e, stream, err))
             ? -1
             : 0;
}

static int open_conv(rl_stage *s, rl_conv_pass pass, bool tune, rl_dnn **conv, rl_error *err) {
  rl_training *e = s->owner;
  cudnnDataType_t type = e->format.half ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
  rl_conv_shape shape = {pass, s->gather.batch,       RL_C1, RL_P1, RL_P1, RL_C2, 3, 1, 0, e->format.channels_last, type,
                         type, e->format.tensor_float};
  /* Winograd's FP32 kernels take up to 226 KB of workspace an image. Single precision has few engines, none compiled at run time,
   * so all of them are tried; the tensor-core ones are many and cost a compilation each, and the heuristic ranks those well. */
  bool single = !e->format.half && !e->format.tensor_float;
  rl_dnn_search search = {(32u << 20) + (size_t)s->gather.batch * (256u << 10), tune ? (single ? 64 : 10) : (single ? 6 : 1),
                          single};
  void *x = pass == RL_CONV_BACKWARD_DATA ? e->d_pooled1 : e->pooled1;
  void *weights = pass == RL_CONV_BACKWARD_FILTER ? e->d_conv2_weight : rl_training_multiplied(e, RL_CONV2_W);
  if (rl_conv_open(own(e)->cudnn, &shape, x, weights, e->product2, search, rl_training_stream(e), conv, err)) return -1;
  size_t *bytes = &e->workspace_bytes[pass == RL_CONV_BACKWARD_FILTER], needed = rl_dnn_chosen(*conv)->workspace_bytes;
  if (needed > *bytes) *bytes = needed;
  return 0;
}

static int open_convs(rl_training *e, rl_error *err) {
  e->own = calloc(1, sizeof(library));
  if (!e->own) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the engine");
  if (rl_cudnn_ok(cudnnCreate(&own(e)->cudnn), "starting cuDNN", err)) return -1;
  for (int i = 0; i < RL_STAGES; i++) {
    rl_stage *s = &e->stages[i];
    if (s->gather.batch == 0) continue;
    passes *p = passes_of(s);
    if (open_conv(s, RL_CONV_FORWARD, i == RL_STEP, &p->forward, err)) return -1;
    if (s->train && (open_conv(s, RL_CONV_BACKWARD_DATA, i == RL_STEP, &p->data, err) ||
                     open_conv(s, RL_CONV_BACKWARD_FILTER, i == RL_STEP, &p->weight, err)))
      return -1;
  }
  return 0;
}

/* conv may be NULL. */
static int bind_conv(rl_training *e, rl_dnn *conv, int lane, rl_error *err) {
  if (!conv) return 0;
  rl_instance *instance = &e->base.base;
  if (!rl_dnn_chosen(conv)->deterministic) {
    instance->deterministic = false;
    instance->deterministic_note = "cuDNN's fastest engine for a convolution of this batch size adds in no fixed order";
  }
  return rl_dnn_bind(conv, e->workspace[lane], err);
}

static int bind_convs(rl_training *e, rl_error *err) {
  for (int i = 0; i < RL_STAGES; i++) {
    const passes *p = &own(e)->stages[i];
    if (bind_conv(e, p->forward, 0, err) || bind_conv(e, p->data, 0, err) || bind_conv(e, p->weight, 1, err)) return -1;
  }
  rl_stage *step = &e->stages[RL_STEP];
  return step->gather.batch ? rl_training_beside(step, conv2_backward, &passes_of(step)->beside, err) : 0;
}

static void close_convs(rl_training *e) {
  library *l = own(e);
  if (!l) return;
  for (int i = 0; i < RL_STAGES; i++) {
    rl_dnn_close(l->stages[i].forward);
    rl_dnn_close(l->stages[i].data);
    rl_dnn_close(l->stages[i].weight);
  }
  if (l->cudnn) cudnnDestroy(l->cudnn);
  free(l);
}

static int choices_of(const rl_training *e, const rl_stage *s, rl_training_choice *choices) {
  const passes *p = &own(e)->stages[s->index];
  const rl_dnn *convs[] = {p->forward, p->data, p->weight};
  static const char *const names[] = {"conv2_forward", "conv2_data", "conv2_weight"};
  for (int i = 0; i < 3; i++) {
    choices[i].what = names[i];
    choices[i].us = rl_dnn_chosen(convs[i])->us;
    snprintf(choices[i].how, sizeof choices[i].how, "cuDNN %.88s%s", rl_dnn_chosen(convs[i])->name,
             i == 2 && p->beside ? ", beside the other gradient" : "");
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

static const rl_recipe recipe = {launches,    sizeof launches / sizeof *launches,
                                 5,           false,
                                 true,        false,
                                 500,         rows,
                                 open_convs,  bind_convs,
                                 close_convs, choices_of,
                                 false};

static int open_engine(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  return rl_training_open(&recipe, device, params, instance, err);
}

extern "C" {
extern const rl_engine rl_engine_cudnn;
const rl_engine rl_engine_cudnn = {&rl_train_cudnn, open_engine};
}
