/* Engine "cudnn": conv2 by cuDNN, fc1 by cuBLASLt, and the rest in five kernels of our own (train/cuda). A step of ten launches:
 *
 *   conv1_forward    gather + normalise + conv1 + bias + ReLU + pool     own
 *   conv2_forward                                                        cuDNN
 *   pool2_forward    bias + ReLU + pool                                  own
 *   fc1_forward      split along K into parts that `head` adds up        cuBLASLt, one strided-batch product
 *   head             bias + ReLU + fc2 + softmax + loss, and back        own
 *   fc1_backward     weight and input gradient                           cuBLASLt, side by side where that is faster
 *   pool2_backward   with conv2's bias gradient                          own
 *   conv2_backward   weight and input gradient                           cuDNN, side by side where that is faster
 *   conv1_backward   from the pooled gradient to 320 gradients           own
 *   adam             with loss scale, overflow, loss and counters        own
 *
 * At batch 64 a step is 1.19 GFLOP and a dependent graph node costs about 0.9 µs on an H200, so few nodes win; nothing in an
 * epoch needs the host. Library algorithms are chosen by timing, once (train/cuda/tune.h): results repeat bit for bit with the same choices. FP32 runs in NCHW (cuDNN's single-precision kernels were 15–19 µs there, 27–35 in NHWC), TF32 and FP16 in NHWC. */
#include "train/cudnn.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_check.h"
#include "train/cuda/conv.h"
#include "train/cuda/gemm.h"
#include "train/cuda/kernels.h"
#include "train/cuda/tune.h"
#include "train/setup.h"

enum {
  TEST_BATCH = 500,
  PART_ROWS = 64 * 18,               /* parts × images that `head` may have to add up: what splitting fc1 is worth */
  LANES = 2,                         /* branches side by side, each with a workspace */
  PRODUCT_WORKSPACE = 2 << 20,       /* for cuBLASLt */
  PADDED = (RL_PARAMETERS + 63) / 64 * 64,
  LAUNCHES = 10,
};

typedef struct engine engine;

typedef struct stage { /* everything for one batch size */
  engine *owner;
  bool train;
  rl_gather gather;
  rl_conv *conv2, *conv2_data, *conv2_weight;
  rl_gemm *fc1, *fc1_data, *fc1_weight;
  bool fc1_beside, conv2_beside; /* the two gradients run side by side: a fork and a join in the graph cost some µs */
  rl_head head;
  rl_gradients gradients;
  rl_launch launches[LAUNCHES];
  size_t launch_count;
} stage;

enum { STEP, TAIL, TEST, TEST_TAIL, STAGES };

struct engine {
  rl_train_instance base;
  rl_format format;
  bool tensor_float;
  size_t value_bytes; /* of an activation */
  cudnnHandle_t cudnn;
  cublasLtHandle_t cublas;
  cudaStream_t side;
  cudaEvent_t fork, join;

  uint8_t *train_images, *train_labels, *test_images, *test_labels;
  uint32_t *order;
  /* One allocation, all that a step changes for good: weights, moments, FP16 copies, state. */
  unsigned char *kept, *saved;
  size_t kept_bytes;
  float *weights, *first, *second;
  void *halves; /* NULL unless FP16 */
  rl_train_state *state;
  /* Activations and gradients. */
  void *pooled1, *pooled2, *product2, *d_pooled1, *d_pooled2, *d_fc1, *d_conv2_weight;
  uint8_t *codes1, *codes2;
  float *parts, *d_fc1_weight, *partial_conv1, *partial_conv2, *partial_head;
  float *losses, *test_losses;
  uint8_t *test_correct;
  void *workspace[LANES];
  size_t workspace_bytes[LANES];

  stage stages[STAGES];
  rl_launch begin, test_begin;
  rl_sequence sequences[3], test_sequences[3];
};

static engine *own(void *instance) { return (engine *)instance; }
static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }
static cudaStream_t stream_of(const engine *e) { return (cudaStream_t)e->base.base.device->stream; }

/* --- layouts ------------------------------------------------------------------------------------------------------------------- */

/* Where parameter i of PyTorch's flat order lies in ours. */
static uint32_t place(const engine *e, uint32_t i) {
  if (!e->format.channels_last) return i;
  if (i >= rl_tensor_offsets[RL_CONV2_W] && i < rl_tensor_offsets[RL_CONV2_B]) {
    uint32_t at = rl_tensor_offsets[RL_CONV2_W], tap = (i - at) % 9, c = (i - at) / 9 % RL_C1, k = (i - at) / 9 / RL_C1;
    return at + (k * 9 + tap) * RL_C1 + c;
  }
  if (i >= rl_tensor_offsets[RL_FC1_W] && i < rl_tensor_offsets[RL_FC1_B]) {
    const uint32_t map = RL_P2 * RL_P2;
    uint32_t at = rl_tensor_offsets[RL_FC1_W], pixel = (i - at) % map, c = (i - at) / map % RL_C2, row = (i - at) / RL_FLAT;
    return at + row * RL_FLAT + pixel * RL_C2 + c;
  }
  return i;
}

static float *make_floats(rl_error *err) {
  float *made = (float *)malloc(RL_PARAMETERS * sizeof *made);
  if (!made) rl_fail(err, RL_SYS, ENOMEM, "out of memory for the parameters");
  return made;
}

static int download_parameters(engine *e, const float *from, float *out, rl_error *err) {
  rl_device *device = e->base.base.device;
  float *ours = make_floats(err);
  if (!ours || device->ops->download(device, ours, from, RL_PARAMETERS * sizeof *ours, err)) {
    free(ours);
    return -1;
  }
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) out[i] = ours[place(e, i)];
  free(ours);
  return 0;
}

static rl_adam adam_of(const engine *e) {
  return {e->weights, e->first, e->second, e->halves, e->losses, (float)e->base.params.learning_rate, e->state};
}

static int upload_parameters(engine *e, const float *weights, rl_error *err) {
  rl_device *device = e->base.base.device;
  float *ours = make_floats(err);
  if (!ours) return -1;
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) ours[place(e, i)] = weights[i];
  int rc = device->ops->upload(device, e->weights, ours, RL_PARAMETERS * sizeof *ours, err);
  free(ours);
  rl_adam adam = adam_of(e);
  if (rc || (e->halves && rl_adam_halves(&adam, stream_of(e), err))) return -1;
  return rl_cuda_ok(cudaStreamSynchronize(stream_of(e)), "setting the parameters", err);
}

/* --- launches ------------------------------------------------------------------------------------------------------------------ */

/* Work queued on the side stream between these two runs beside the main stream's. */
static int fork_side(engine *e, rl_stream stream, rl_error *err) {
  if (rl_cuda_ok(cudaEventRecord(e->fork, (cudaStream_t)stream), "forking", err)) return -1;
  return rl_cuda_ok(cudaStreamWaitEvent(e->side, e->fork, 0), "forking", err);
}

static int join_side(engine *e, rl_stream stream, rl_error *err) {
  if (rl_cuda_ok(cudaEventRecord(e->join, e->side), "joining", err)) return -1;
  return rl_cuda_ok(cudaStreamWaitEvent((cudaStream_t)stream, e->join, 0), "joining", err);
}

static int begin_epoch(void *arg, rl_stream stream, rl_error *err) {
  engine *e = own(arg);
  return rl_epoch_begin(e->state, e->order, e->base.images, (cudaStream_t)stream, err);
}

static int begin_test(void *arg, rl_stream stream, rl_error *err) {
  uint32_t *step = &own(arg)->state->test_step;
  return rl_cuda_ok(cudaMemsetAsync(step, 0, sizeof *step, (cudaStream_t)stream), "starting the evaluation", err);
}

static int conv1_forward(void *arg, rl_stream stream, rl_error *err) {
  stage *s = (stage *)arg;
  engine *e = s->owner;
  return rl_conv1_forward(e->format, s->gather, e->weights, e->pooled1, e->codes1, (cudaStream_t)stream, err);
}

static int conv2_forward(void *arg, rl_stream stream, rl_error *err) {
  return rl_conv_enqueue(((stage *)arg)->conv2, stream, err);
}

static int pool2_forward(void *arg, rl_stream stream, rl_error *err) {
  stage *s = (stage *)arg;
  engine *e = s->owner;
  return rl_pool2_forward(e->format, s->gather.batch, e->product2, &e->weights[rl_tensor_offsets[RL_CONV2_B]], e->pooled2,
                          e->codes2, s->train ? e->state : NULL, (cudaStream_t)stream, err);
}

static int fc1_forward(void *arg, rl_stream stream, rl_error *err) { return rl_gemm_enqueue(((stage *)arg)->fc1, stream, err); }

static int head(void *arg, rl_stream stream, rl_error *err) {
  stage *s = (stage *)arg;
  engine *e = s->owner;
  if (!s->train)
    return rl_head_evaluate(&s->head, e->test_losses, e->test_correct, e->state, (cudaStream_t)stream, err);
  return rl_head_train(e->format, &s->head, e->d_fc1, e->partial_head, e->state, (cudaStream_t)stream, err);
}

static int fc1_backward(void *arg, rl_stream stream, rl_error *err) {
  stage *s = (stage *)arg;
  engine *e = s->owner;
  rl_stream weight_stream = s->fc1_beside ? e->side : stream;
  return (s->fc1_beside && fork_side(e, stream, err)) || rl_gemm_enqueue(s->fc1_data, stream, err) ||
         rl_gemm_enqueue(s->fc1_weight, weight_stream, err) || (s->fc1_beside && join_side(e, stream, err)) ? -1 : 0;
}

static int pool2_backward(void *arg, rl_stream stream, rl_error *err) {
  stage *s = (stage *)arg;
  engine *e = s->owner;
  return rl_pool2_backward(e->format, s->gather.batch, e->d_pooled2, e->codes2, e->product2, e->partial_conv2, e->state,
                           (cudaStream_t)stream, err);
}

static int conv2_backward(void *arg, rl_stream stream, rl_error *err) {
  stage *s = (stage *)arg;
  engine *e = s->owner;
  rl_stream weight_stream = s->conv2_beside ? e->side : stream;
  return (s->conv2_beside && fork_side(e, stream, err)) || rl_conv_enqueue(s->conv2_data, stream, err) ||
         rl_conv_enqueue(s->conv2_weight, weight_stream, err) || (s->conv2_beside && join_side(e, stream, err)) ? -1 : 0;
}

static int conv1_backward(void *arg, rl_stream stream, rl_error *err) {
  stage *s = (stage *)arg;
  engine *e = s->owner;
  return rl_conv1_backward(e->format, s->gather, e->d_pooled1, e->codes1, e->partial_conv1, e->d_conv2_weight,
                           rl_tensor_sizes[RL_CONV2_W], e->state, (cudaStream_t)stream, err);
}

static int adam(void *arg, rl_stream stream, rl_error *err) {
  stage *s = (stage *)arg;
  rl_adam update = adam_of(s->owner);
  return rl_adam_step(&update, &s->gradients, (cudaStream_t)stream, err);
}

static const rl_launch step_launches[LAUNCHES] = {
  {"conv1_forward", "forward", conv1_forward, NULL},    {"conv2_forward", "forward", conv2_forward, NULL},
  {"pool2_forward", "forward", pool2_forward, NULL},    {"fc1_forward", "forward", fc1_forward, NULL},
  {"head", "forward", head, NULL},                      {"fc1_backward", "backward", fc1_backward, NULL},
  {"pool2_backward", "backward", pool2_backward, NULL}, {"conv2_backward", "backward", conv2_backward, NULL},
  {"conv1_backward", "backward", conv1_backward, NULL}, {"adam", "optimizer", adam, NULL},
};
enum { FORWARD_LAUNCHES = 5 };

/* --- stages: choosing library algorithms ----------------------------------------------------------------------------------------- */

static void *multiplied(const engine *e, rl_tensor tensor) { /* the weights as the libraries read them */
  uint32_t at = rl_tensor_offsets[tensor];
  return e->halves ? (void *)((uint16_t *)e->halves + at) : (void *)&e->weights[at];
}

static int open_conv(stage *s, rl_conv_pass pass, bool tune, rl_conv **conv, rl_error *err) {
  engine *e = s->owner;
  cudnnDataType_t type = e->format.half ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
  rl_conv_shape shape = {pass, s->gather.batch, RL_C1, RL_P1, RL_P1, RL_C2, 0, e->format.channels_last, type, type,
                         e->tensor_float};
  /* Winograd's FP32 kernels take up to 226 KB of workspace an image. Single precision has few engines, none compiled at run time, so
   * all of them are tried; the tensor-core ones are many and cost a compilation each, and the heuristic ranks those well. */
  bool single = !e->format.half && !e->tensor_float;
  rl_conv_search search = {(32u << 20) + (size_t)s->gather.batch * (256u << 10), tune ? (single ? 64 : 10) : (single ? 6 : 1),
                           single};
  void *x = pass == RL_CONV_BACKWARD_DATA ? e->d_pooled1 : e->pooled1;
  void *weights = pass == RL_CONV_BACKWARD_FILTER ? e->d_conv2_weight : multiplied(e, RL_CONV2_W);
  if (rl_conv_open(e->cudnn, &shape, x, weights, e->product2, &search, stream_of(e), conv, err)) return -1;
  size_t *bytes = &e->workspace_bytes[pass == RL_CONV_BACKWARD_FILTER], needed = rl_conv_chosen(*conv)->workspace_bytes;
  if (needed > *bytes) *bytes = needed;
  return 0;
}

static rl_gemm_shape product(const engine *e, int64_t m, int64_t n, int64_t k) {
  cudaDataType_t type = e->format.half ? CUDA_R_16F : CUDA_R_32F;
  return {m, n, k, false, false, m, k, m, 1, 0, 0, 0, type, type, e->tensor_float};
}

static int try_fc1_and_head(void *arg, rl_stream stream, rl_error *err) {
  return fc1_forward(arg, stream, err) || head(arg, stream, err) ? -1 : 0;
}

/* parts[p][batch][128] = input[batch][K range p] · weights[128][K range p]ᵀ; row-major is column-major transposed. */
static int open_fc1_split(stage *s, uint32_t parts, int most, rl_gemm **gemm, rl_error *err) {
  engine *e = s->owner;
  rl_gemm_shape shape = product(e, RL_FC1, s->gather.batch, RL_FLAT / parts);
  shape.transpose_a = true;
  shape.lda = shape.ldb = RL_FLAT;
  shape.batch = parts;
  shape.stride_a = shape.stride_b = RL_FLAT / parts;
  shape.stride_d = (int64_t)s->gather.batch * RL_FC1;
  shape.output = CUDA_R_32F;
  return rl_gemm_open(e->cublas, &shape, multiplied(e, RL_FC1_W), e->pooled2, e->parts, e->workspace[0],
                      e->workspace_bytes[0], most, stream_of(e), gemm, err);
}

static uint32_t most_parts(uint32_t batch) { return batch >= PART_ROWS ? 1 : PART_ROWS / batch; }

/* How many parts fc1's product is best split into is a matter of both it and the head that adds them up. */
static int open_fc1(stage *s, bool tune, rl_error *err) {
  static const uint32_t splits[] = {1, 2, 3, 4, 6, 9, 12, 18};
  uint32_t most = most_parts(s->gather.batch);
  double least = 0;
  char key[64];
  snprintf(key, sizeof key, "fc1 parts %d %u %d", s->owner->base.params.precision, s->gather.batch, tune);
  int64_t before_now = rl_tune_recall(key);
  for (int i = 7; i >= 0; i--) {
    rl_gemm *gemm = NULL, *before = s->fc1;
    uint32_t parts_before = s->head.part_count;
    double us = 0;
    if (splits[i] > most || (before_now > 0 && splits[i] != (uint32_t)before_now)) continue;
    if (open_fc1_split(s, splits[i], tune ? 8 : 1, &gemm, err)) return -1;
    s->fc1 = gemm;
    s->head.part_count = splits[i];
    if (!tune) return 0;
    if (rl_tune_time(try_fc1_and_head, s, stream_of(s->owner), &us, err)) {
      rl_gemm_close(before);
      return -1;
    }
    bool better = !before || us < least;
    if (better) least = us;
    else {
      s->fc1 = before;
      s->head.part_count = parts_before;
    }
    rl_gemm_close(better ? before : gemm);
  }
  rl_tune_remember(key, s->head.part_count);
  return 0;
}

static int open_fc1_backward(stage *s, int most, rl_error *err) {
  engine *e = s->owner;
  uint32_t batch = s->gather.batch;
  rl_gemm_shape data = product(e, RL_FLAT, batch, RL_FC1), weight = product(e, RL_FLAT, RL_FC1, batch);
  weight.transpose_b = true;
  weight.ldb = RL_FC1;
  weight.output = CUDA_R_32F;
  if (rl_gemm_open(e->cublas, &data, multiplied(e, RL_FC1_W), e->d_fc1, e->d_pooled2, e->workspace[0], e->workspace_bytes[0],
                   most, stream_of(e), &s->fc1_data, err))
    return -1;
  return rl_gemm_open(e->cublas, &weight, e->pooled2, e->d_fc1, e->d_fc1_weight, e->workspace[1], e->workspace_bytes[1], most,
                      stream_of(e), &s->fc1_weight, err);
}

/* Whether a launch's two parts are faster side by side. */
static int choose_beside(stage *s, int (*launch)(void *arg, rl_stream stream, rl_error *err), bool *beside, rl_error *err) {
  double us[2];
  for (int i = 0; i < 2; i++) {
    *beside = i;
    if (rl_tune_time(launch, s, stream_of(s->owner), &us[i], err)) return -1;
  }
  *beside = us[1] < us[0];
  return 0;
}

static void describe_stage(engine *e, int index, uint32_t batch, uint32_t stride) {
  stage *s = &e->stages[index];
  s->owner = e;
  s->train = index == STEP || index == TAIL;
  s->gather = s->train ? rl_gather{e->train_images, e->train_labels, e->order, &e->state->step, stride, batch}
                       : rl_gather{e->test_images, e->test_labels, NULL, &e->state->test_step, stride, batch};
  s->head = {s->gather, e->parts, 1, &e->weights[rl_tensor_offsets[RL_FC1_B]]};
  s->gradients = {e->d_conv2_weight, e->format.half, e->d_fc1_weight, e->partial_conv1, e->partial_conv2, e->partial_head,
                  rl_conv1_rows(e->format, batch), rl_pool2_rows(e->format, batch), rl_head_rows(batch), batch};
  s->launch_count = s->train ? (size_t)LAUNCHES : (size_t)FORWARD_LAUNCHES;
  memcpy(s->launches, step_launches, sizeof step_launches);
  for (size_t i = 0; i < LAUNCHES; i++) s->launches[i].arg = s;
}

static int open_convs(engine *e, rl_error *err) {
  for (int i = 0; i < STAGES; i++) {
    stage *s = &e->stages[i];
    if (s->gather.batch == 0) continue;
    if (open_conv(s, RL_CONV_FORWARD, i == STEP, &s->conv2, err)) return -1;
    if (s->train && (open_conv(s, RL_CONV_BACKWARD_DATA, i == STEP, &s->conv2_data, err) ||
                     open_conv(s, RL_CONV_BACKWARD_FILTER, i == STEP, &s->conv2_weight, err)))
      return -1;
  }
  return 0;
}

static int open_products(engine *e, rl_error *err) {
  rl_device *device = e->base.base.device;
  for (int lane = 0; lane < LANES; lane++) {
    if (e->workspace_bytes[lane] < PRODUCT_WORKSPACE) e->workspace_bytes[lane] = PRODUCT_WORKSPACE;
    if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, e->workspace_bytes[lane], &e->workspace[lane], err)) return -1;
  }
  for (int i = 0; i < STAGES; i++) {
    stage *s = &e->stages[i];
    if (s->gather.batch == 0) continue;
    if (open_fc1(s, i == STEP, err) || rl_conv_bind(s->conv2, e->workspace[0], err)) return -1;
    if (s->train && (open_fc1_backward(s, i == STEP ? 16 : 1, err) || rl_conv_bind(s->conv2_data, e->workspace[0], err) ||
                     rl_conv_bind(s->conv2_weight, e->workspace[1], err)))
      return -1;
    if (i == STEP && (choose_beside(s, fc1_backward, &s->fc1_beside, err) || choose_beside(s, conv2_backward, &s->conv2_beside, err)))
      return -1;
  }
  return 0;
}

/* --- state --------------------------------------------------------------------------------------------------------------------- */

static int write_state(engine *e, rl_error *err) {
  const double beta1 = 0.9f, beta2 = 0.999f;
  rl_device *device = e->base.base.device;
  rl_train_state state = {};
  state.seed = (uint64_t)e->base.params.seed;
  state.beta1_power = beta1;
  state.beta2_power = beta2;
  state.step_size = (float)(e->base.params.learning_rate / (1.0 - beta1));
  state.inverse_root = (float)(1.0 / sqrt(1.0 - beta2));
  state.dynamic_scale = e->format.half;
  state.scale.scale = e->format.half ? RL_LOSS_SCALE_START : 1.0f;
  state.inverse_scale = state.last_inverse_scale = 1.0f / state.scale.scale;
  return device->ops->upload(device, e->state, &state, sizeof state, err);
}

static int reset(rl_instance *instance, rl_error *err) {
  engine *e = own(instance);
  rl_device *device = instance->device;
  float *weights = make_floats(err);
  if (!weights) return -1;
  rl_model_initialise((uint64_t)e->base.params.seed, weights);
  int rc = device->ops->clear(device, e->first, 2 * PADDED * sizeof(float), err) || write_state(e, err) ||
           upload_parameters(e, weights, err);
  free(weights);
  return rc ? -1 : 0;
}

static int read_state(engine *e, rl_train_state *state, rl_error *err) {
  rl_device *device = e->base.base.device;
  return device->ops->download(device, state, e->state, sizeof *state, err);
}

static int losses(rl_train_instance *instance, float *out, rl_error *err) {
  engine *e = own(instance);
  rl_device *device = instance->base.device;
  return device->ops->download(device, out, e->losses, instance->steps * sizeof *out, err);
}

static int report_training(engine *e, const rl_train_state *state, rl_report *out, rl_error *err) {
  if (state->step == 0) return 0;
  float *each = (float *)malloc(e->base.steps * sizeof *each);
  if (!each) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the losses");
  int rc = losses(&e->base, each, err);
  double sum = 0;
  for (uint32_t i = 0; i < state->step && !rc; i++) sum += each[i];
  free(each);
  out->train_loss = sum / state->step;
  return rc;
}

static int report_test(engine *e, const rl_train_state *state, rl_report *out, rl_error *err) {
  if (state->test_step == 0) return 0;
  rl_device *device = e->base.base.device;
  uint32_t count = e->base.test_images, right = 0;
  float *each = (float *)malloc(count * (sizeof *each + 1));
  uint8_t *correct = (uint8_t *)(each + count);
  if (!each) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the evaluation");
  double sum = 0;
  int rc = device->ops->download(device, each, e->test_losses, count * sizeof *each, err) ||
           device->ops->download(device, correct, e->test_correct, count, err);
  for (uint32_t i = 0; i < count && !rc; i++) {
    sum += each[i];
    right += correct[i];
  }
  free(each);
  out->test_loss = sum / count;
  out->test_accuracy_ratio = (double)right / count;
  return rc ? -1 : 0;
}

static int report(rl_instance *instance, rl_report *out, rl_error *err) {
  engine *e = own(instance);
  rl_train_state state;
  rl_report made = {(double)e->base.images, NAN, NAN, NAN, NAN, NAN};
  if (read_state(e, &state, err) || report_training(e, &state, &made, err) || report_test(e, &state, &made, err)) return -1;
  if (e->format.half) {
    made.loss_scale = state.scale.scale;
    made.skipped_steps = state.scale.skipped;
  }
  *out = made;
  return 0;
}

static int copy_kept(engine *e, void *to, const void *from, rl_error *err) {
  if (rl_cuda_ok(cudaMemcpyAsync(to, from, e->kept_bytes, cudaMemcpyDeviceToDevice, stream_of(e)), "copying the state", err))
    return -1;
  return rl_cuda_ok(cudaStreamSynchronize(stream_of(e)), "copying the state", err);
}

static int save(rl_instance *instance, rl_error *err) {
  engine *e = own(instance);
  rl_device *device = instance->device;
  if (!e->saved && device->ops->allocate(device, RL_MEMORY_WORKSPACE, e->kept_bytes, (void **)&e->saved, err)) return -1;
  return copy_kept(e, e->saved, e->kept, err);
}

static int restore(rl_instance *instance, rl_error *err) {
  engine *e = own(instance);
  if (!e->saved) return rl_fail(err, RL_INPUT, 0, "nothing was saved");
  return copy_kept(e, e->kept, e->saved, err);
}

static int parameters(rl_train_instance *instance, float *weights, rl_error *err) {
  return download_parameters(own(instance), own(instance)->weights, weights, err);
}

static int set_parameters(rl_train_instance *instance, const float *weights, rl_error *err) {
  return upload_parameters(own(instance), weights, err);
}

/* The stage of the last step. */
static const stage *last_stage(const engine *e, const rl_train_state *state) {
  return &e->stages[state->last_batch == e->stages[STEP].gather.batch ? STEP : TAIL];
}

static int gradients(rl_train_instance *instance, float *out, rl_error *err) {
  engine *e = own(instance);
  rl_device *device = instance->base.device;
  rl_train_state state;
  void *flat = NULL;
  if (read_state(e, &state, err)) return -1;
  if (state.last_batch == 0) return rl_fail(err, RL_INPUT, 0, "no step was done yet");
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, RL_PARAMETERS * sizeof(float), &flat, err)) return -1;
  int rc = rl_adam_gather(&last_stage(e, &state)->gradients, e->state, (float *)flat, stream_of(e), err) ||
           download_parameters(e, (const float *)flat, out, err);
  device->ops->release(device, flat);
  return rc ? -1 : 0;
}

int rl_cudnn_view(rl_train_instance *instance, rl_cudnn_tensors *tensors, rl_error *err) {
  engine *e = own(instance);
  rl_train_state state;
  if (read_state(e, &state, err)) return -1;
  *tensors = {e->format.channels_last, e->format.half, state.last_batch, e->pooled1, e->pooled2, e->codes1, e->codes2,
              e->product2, e->d_pooled1, e->d_pooled2, e->d_fc1, 1.0f / state.last_inverse_scale};
  return 0;
}

void rl_cudnn_choices(rl_train_instance *instance, rl_cudnn_choice choices[RL_CUDNN_CHOICES]) {
  engine *e = own(instance);
  const stage *s = &e->stages[e->stages[STEP].gather.batch ? STEP : TAIL];
  const rl_conv *convs[] = {s->conv2, s->conv2_data, s->conv2_weight};
  const rl_gemm *products[] = {s->fc1, s->fc1_data, s->fc1_weight};
  static const char *const names[] = {"conv2_forward", "conv2_data", "conv2_weight", "fc1_forward", "fc1_data", "fc1_weight"};
  for (int i = 0; i < RL_CUDNN_CHOICES; i++) {
    choices[i].what = names[i];
    choices[i].us = i < 3 ? rl_conv_chosen(convs[i])->us : rl_gemm_us(products[i - 3]);
    const char *beside = (i == 2 && s->conv2_beside) || (i == 5 && s->fc1_beside) ? ", beside the other gradient" : "";
    if (i < 3) snprintf(choices[i].how, sizeof choices[i].how, "cuDNN %.88s%s", rl_conv_chosen(convs[i])->name, beside);
    else snprintf(choices[i].how, sizeof choices[i].how, "cuBLASLt, %u parts%s", i == 3 ? s->head.part_count : 1, beside);
  }
}

/* --- opening and closing --------------------------------------------------------------------------------------------------------- */

static void close_engine(rl_instance *instance) {
  if (!instance) return;
  engine *e = own(instance);
  rl_device *device = instance->device;
  for (int i = 0; i < STAGES; i++) {
    stage *s = &e->stages[i];
    rl_conv_close(s->conv2);
    rl_conv_close(s->conv2_data);
    rl_conv_close(s->conv2_weight);
    rl_gemm_close(s->fc1);
    rl_gemm_close(s->fc1_data);
    rl_gemm_close(s->fc1_weight);
  }
  void *const memory[] = {e->train_images, e->train_labels, e->test_images, e->test_labels, e->order, e->kept, e->saved,
    e->pooled1, e->pooled2, e->product2, e->d_pooled1, e->d_pooled2, e->d_fc1, e->d_conv2_weight, e->codes1, e->codes2,
    e->parts, e->d_fc1_weight, e->partial_conv1, e->partial_conv2, e->partial_head, e->losses, e->test_losses,
    e->test_correct, e->workspace[0], e->workspace[1]};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) device->ops->release(device, memory[i]);
  if (e->cudnn) cudnnDestroy(e->cudnn);
  if (e->cublas) cublasLtDestroy(e->cublas);
  if (e->fork) cudaEventDestroy(e->fork);
  if (e->join) cudaEventDestroy(e->join);
  if (e->side) cudaStreamDestroy(e->side);
  free(e);
}

static int open_handles(engine *e, rl_error *err) {
  if (rl_cudnn_ok(cudnnCreate(&e->cudnn), "starting cuDNN", err) ||
      rl_cublas_ok(cublasLtCreate(&e->cublas), "starting cuBLASLt", err) ||
      rl_cuda_ok(cudaStreamCreateWithFlags(&e->side, cudaStreamNonBlocking), "creating a stream", err) ||
      rl_cuda_ok(cudaEventCreateWithFlags(&e->fork, cudaEventDisableTiming), "creating an event", err))
    return -1;
  return rl_cuda_ok(cudaEventCreateWithFlags(&e->join, cudaEventDisableTiming), "creating an event", err);
}

static int upload_new(rl_device *device, const void *from, size_t bytes, uint8_t **to, rl_error *err) {
  if (device->ops->allocate(device, RL_MEMORY_DATASET, bytes, (void **)to, err)) return -1;
  return device->ops->upload(device, *to, from, bytes, err);
}

static int upload_dataset(engine *e, const rl_dataset *data, rl_error *err) {
  rl_device *device = e->base.base.device;
  size_t images = e->base.images, test_images = e->base.test_images;
  if (upload_new(device, data->train_images, images * RL_PIXELS, &e->train_images, err) ||
      upload_new(device, data->train_labels, images, &e->train_labels, err) ||
      upload_new(device, data->test_images, test_images * RL_PIXELS, &e->test_images, err) ||
      upload_new(device, data->test_labels, test_images, &e->test_labels, err) ||
      device->ops->allocate(device, RL_MEMORY_DATASET, images * sizeof *e->order, (void **)&e->order, err))
    return -1;
  return device->ops->clear(device, e->order, images * sizeof *e->order, err);
}

static int allocate_kept(engine *e, rl_error *err) {
  rl_device *device = e->base.base.device;
  size_t floats = 3 * PADDED * sizeof(float), halves = e->format.half ? PADDED * sizeof(uint16_t) : 0;
  e->kept_bytes = floats + halves + sizeof *e->state;
  if (device->ops->allocate(device, RL_MEMORY_WEIGHTS, e->kept_bytes, (void **)&e->kept, err)) return -1;
  e->weights = (float *)e->kept;
  e->first = e->weights + PADDED;
  e->second = e->first + PADDED;
  e->halves = halves ? e->kept + floats : NULL;
  e->state = (rl_train_state *)(e->kept + floats + halves);
  return device->ops->clear(device, e->kept, e->kept_bytes, err);
}

static int allocate_activations(engine *e, rl_error *err) {
  rl_device *device = e->base.base.device;
  const rl_train_instance *t = &e->base;
  size_t batch = smaller((uint32_t)t->params.batch_size, t->images);
  size_t test = smaller(TEST_BATCH, t->test_images), most = batch > test ? batch : test, v = e->value_bytes;
  size_t part_rows = most > PART_ROWS ? most : (size_t)PART_ROWS;
  const size_t map1 = RL_C1 * RL_P1 * RL_P1, full2 = RL_C2 * RL_H2 * RL_H2;
  const struct { void *to; rl_purpose purpose; size_t bytes; } wanted[] = {
    {&e->pooled1, RL_MEMORY_ACTIVATIONS, most * map1 * v}, {&e->codes1, RL_MEMORY_ACTIVATIONS, most * map1},
    {&e->product2, RL_MEMORY_ACTIVATIONS, most * full2 * v}, {&e->pooled2, RL_MEMORY_ACTIVATIONS, most * RL_FLAT * v},
    {&e->codes2, RL_MEMORY_ACTIVATIONS, most * RL_FLAT}, {&e->parts, RL_MEMORY_ACTIVATIONS, part_rows * RL_FC1 * sizeof(float)},
    {&e->d_fc1, RL_MEMORY_ACTIVATIONS, batch * RL_FC1 * v}, {&e->d_pooled2, RL_MEMORY_ACTIVATIONS, batch * RL_FLAT * v},
    {&e->d_pooled1, RL_MEMORY_ACTIVATIONS, batch * map1 * v},
    {&e->d_conv2_weight, RL_MEMORY_WEIGHTS, rl_tensor_sizes[RL_CONV2_W] * v},
    {&e->d_fc1_weight, RL_MEMORY_WEIGHTS, rl_tensor_sizes[RL_FC1_W] * sizeof(float)},
    {&e->partial_conv1, RL_MEMORY_WEIGHTS, rl_conv1_rows(e->format, batch) * RL_C1 * 10 * sizeof(float)},
    {&e->partial_conv2, RL_MEMORY_WEIGHTS, rl_pool2_rows(e->format, batch) * RL_C2 * sizeof(float)},
    {&e->partial_head, RL_MEMORY_WEIGHTS, rl_head_rows(batch) * RL_HEAD_ROW * sizeof(float)},
    {&e->losses, RL_MEMORY_ACTIVATIONS, t->steps * sizeof(float)},
    {&e->test_losses, RL_MEMORY_ACTIVATIONS, t->test_images * sizeof(float)},
    {&e->test_correct, RL_MEMORY_ACTIVATIONS, t->test_images},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if (device->ops->allocate(device, wanted[i].purpose, wanted[i].bytes, (void **)wanted[i].to, err)) return -1;
  void *const noisy[] = {e->pooled1, e->product2, e->pooled2, e->d_fc1, e->d_pooled2};
  const size_t counts[] = {most * map1, most * full2, most * RL_FLAT, batch * RL_FC1, batch * RL_FLAT};
  for (size_t i = 0; i < sizeof noisy / sizeof *noisy; i++)
    if (rl_tune_noise(noisy[i], counts[i], v, device->stream, err)) return -1;
  return 0;
}

static void describe_programs(engine *e) {
  rl_train_instance *t = &e->base;
  uint32_t batch = (uint32_t)t->params.batch_size, test = smaller(TEST_BATCH, t->test_images);
  uint32_t test_tail = test ? t->test_images % test : 0;
  if (t->images >= batch) describe_stage(e, STEP, batch, batch);
  if (t->tail) describe_stage(e, TAIL, t->tail, batch);
  if (test) describe_stage(e, TEST, test, test);
  if (test_tail) describe_stage(e, TEST_TAIL, test_tail, test);
  e->begin = {"shuffle", "data", begin_epoch, e};
  e->test_begin = {"begin", "data", begin_test, e};
  e->sequences[0] = {"begin", &e->begin, 1, 1};
  e->sequences[1] = {"step", e->stages[STEP].launches, e->stages[STEP].launch_count, t->images / batch};
  e->sequences[2] = {"tail", e->stages[TAIL].launches, e->stages[TAIL].launch_count, t->tail ? 1u : 0u};
  e->test_sequences[0] = {"begin", &e->test_begin, 1, 1};
  e->test_sequences[1] = {"evaluate", e->stages[TEST].launches, e->stages[TEST].launch_count, test ? t->test_images / test : 0};
  e->test_sequences[2] = {"evaluate_tail", e->stages[TEST_TAIL].launches, e->stages[TEST_TAIL].launch_count, test_tail ? 1u : 0u};
  t->base.iteration = {"epoch", e->sequences, 3};
  t->base.evaluation = {"evaluation", e->test_sequences, test ? 3u : 0u};
  t->base.step_sequence = t->images >= batch ? 1 : 2;
}

static void note_determinism(engine *e) {
  rl_instance *instance = &e->base.base;
  instance->deterministic = true;
  for (int i = 0; i < STAGES; i++) {
    const stage *s = &e->stages[i];
    const rl_conv *convs[] = {s->conv2, s->conv2_data, s->conv2_weight};
    for (int c = 0; c < 3; c++)
      if (convs[c] && !rl_conv_chosen(convs[c])->deterministic) instance->deterministic = false;
  }
  if (!instance->deterministic)
    instance->deterministic_note = "cuDNN's fastest engine for a convolution of this batch size adds in no fixed order";
  else if (!rl_tune_lasts()) {
    instance->deterministic = false;
    instance->deterministic_note = "algorithms are chosen by timing and, without ROOFLINED_CACHE_DIR, kept for this process alone";
  }
}

/* What a choice of an algorithm is good for. */
static int scope_choices(const rl_device *device, rl_error *err) {
  cudaDeviceProp properties;
  char scope[160];
  int driver = 0;
  if (rl_cuda_ok(cudaGetDeviceProperties(&properties, device->index), "reading the device's properties", err) ||
      rl_cuda_ok(cudaDriverGetVersion(&driver), "reading the driver's version", err))
    return -1;
  snprintf(scope, sizeof scope, "%s/cuda-%d/cudnn-%zu/cublaslt-%zu", properties.name, driver, cudnnGetVersion(), cublasLtGetVersion());
  rl_tune_scope(scope);
  return 0;
}

static int build(engine *e, const rl_train_params *params, rl_error *err) {
  rl_dataset data = {};
  if (scope_choices(e->base.base.device, err)) return -1;
  if (rl_train_setup(&e->base, params, &data, err)) return -1;
  int rc = upload_dataset(e, &data, err);
  rl_dataset_free(&data);
  if (rc || open_handles(e, err) || allocate_kept(e, err) || allocate_activations(e, err)) return -1;
  describe_programs(e);
  if (reset(&e->base.base, err) || open_convs(e, err) || open_products(e, err)) return -1;
  note_determinism(e);
  return reset(&e->base.base, err); /* trials raise the overflow flag */
}

static const rl_instance_ops operations = {reset, report, save, restore, close_engine};

static int open_engine(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  engine *e = (engine *)calloc(1, sizeof *e);
  if (!e) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the engine");
  e->base.base.ops = &operations;
  e->base.base.device = device;
  e->base.losses = losses;
  e->base.parameters = parameters;
  e->base.gradients = gradients;
  e->base.set_parameters = set_parameters;
  int precision = ((const rl_train_params *)params)->precision;
  e->format.half = precision == RL_FP16;
  e->format.channels_last = precision != RL_FP32;
  e->tensor_float = precision == RL_TF32;
  e->value_bytes = e->format.half ? 2 : 4;
  if (build(e, (const rl_train_params *)params, err)) {
    close_engine(&e->base.base);
    return -1;
  }
  *instance = &e->base.base;
  return 0;
}

static int supports(const void *params, rl_error *err) {
  const rl_train_params *p = (const rl_train_params *)params;
  if (p->batch_size < 1 || p->batch_size > 8192) return rl_fail_at(err, "/batch_size", "must be between 1 and 8192");
  return 0;
}

extern "C" {
extern const rl_engine rl_engine_cudnn;
const rl_engine rl_engine_cudnn = {"cudnn", "mnist_cnn", RL_DEVICE_CUDA,
                                   "cuDNN convolutions, cuBLASLt products and fused kernels in one CUDA graph", supports, open_engine};
}
