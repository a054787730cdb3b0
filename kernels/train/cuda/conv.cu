#include "train/cuda/conv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_check.h"
#include "train/cuda/tune.h"

typedef cudnnBackendDescriptor_t descriptor;

enum { UID_X = 1, UID_W = 2, UID_Y = 3, MOST_CONFIGURATIONS = 192 };
static const double DETERMINISTIC_MARGIN = 1.05;

struct rl_conv {
  cudnnHandle_t handle;
  descriptor plan, pack;
  void *x, *weights, *y, *workspace;
  rl_conv_choice choice;
};

static void descriptor_close(descriptor *d) {
  if (*d) cudnnBackendDestroyDescriptor(*d);
  *d = NULL;
}
#define owned __attribute__((cleanup(descriptor_close))) descriptor

static bool make(cudnnBackendDescriptorType_t type, descriptor *d) {
  return cudnnBackendCreateDescriptor(type, d) == CUDNN_STATUS_SUCCESS;
}

static bool set(descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                const void *values) {
  return cudnnBackendSetAttribute(d, name, type, count, values) == CUDNN_STATUS_SUCCESS;
}

static bool finish(descriptor d) { return cudnnBackendFinalize(d) == CUDNN_STATUS_SUCCESS; }

static int refused(const char *what, rl_error *err) {
  char reason[256] = "";
  cudnnGetLastErrorString(reason, sizeof reason);
  return rl_fail(err, RL_CUDNN, 0, "cuDNN refused %s: %s", what, reason);
}

/* --- the operation graph of one convolution ------------------------------------------------------------------------------------ */

static bool make_tensor(int64_t uid, cudnnDataType_t type, bool channels_last, int64_t n, int64_t c, int64_t h, int64_t w,
                        descriptor *tensor) {
  int64_t sizes[4] = {n, c, h, w}, alignment = 16;
  int64_t strides[4] = {c * h * w, channels_last ? 1 : h * w, channels_last ? c * w : w, channels_last ? c : 1};
  return make(CUDNN_BACKEND_TENSOR_DESCRIPTOR, tensor) &&
         set(*tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type) &&
         set(*tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes) &&
         set(*tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides) &&
         set(*tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid) &&
         set(*tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment) && finish(*tensor);
}

static bool make_convolution(int64_t pad, descriptor *convolution) {
  int64_t rank = 2, pads[2] = {pad, pad}, ones[2] = {1, 1};
  cudnnDataType_t sum = CUDNN_DATA_FLOAT;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  return make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, convolution) &&
         set(*convolution, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &rank) &&
         set(*convolution, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sum) &&
         set(*convolution, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode) &&
         set(*convolution, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pads) &&
         set(*convolution, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pads) &&
         set(*convolution, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones) &&
         set(*convolution, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones) && finish(*convolution);
}

/* What cuDNN calls the parts of each pass. */
static const struct pass_names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
} passes[] = {
  {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
  {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
  {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static bool make_graph(cudnnHandle_t handle, const rl_conv_shape *s, descriptor *graph) {
  const struct pass_names *names = &passes[s->pass];
  int64_t out_h = s->h - 2 + 2 * s->pad, out_w = s->w - 2 + 2 * s->pad;
  float one = 1.0f, zero = 0.0f;
  owned x = NULL, w = NULL, y = NULL, convolution = NULL, operation = NULL;
  return make_tensor(UID_X, s->type, s->channels_last, s->n, s->c, s->h, s->w, &x) &&
         make_tensor(UID_W, s->weight_type, s->channels_last, s->k, s->c, 3, 3, &w) &&
         make_tensor(UID_Y, s->type, s->channels_last, s->n, s->k, out_h, out_w, &y) &&
         make_convolution(s->pad, &convolution) && make(names->operation, &operation) &&
         set(operation, names->convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &convolution) &&
         set(operation, names->x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x) &&
         set(operation, names->w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w) &&
         set(operation, names->y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y) &&
         set(operation, names->alpha, CUDNN_TYPE_FLOAT, 1, &one) && set(operation, names->beta, CUDNN_TYPE_FLOAT, 1, &zero) &&
         finish(operation) && make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, graph) &&
         set(*graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle) &&
         set(*graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation) && finish(*graph);
}

/* --- configurations ------------------------------------------------------------------------------------------------------------ */

typedef struct configurations {
  descriptor list[MOST_CONFIGURATIONS];
  int64_t count;
} configurations;

__attribute__((unused)) static void configurations_close(configurations *c) {
  for (int64_t i = 0; i < c->count; i++) cudnnBackendDestroyDescriptor(c->list[i]);
  c->count = 0;
}

/* What cuDNN's heuristic `mode` recommends, best first. */
static void add_recommended(descriptor graph, cudnnBackendHeurMode_t mode, configurations *c) {
  owned heuristic = NULL;
  if (!make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic) ||
      !set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph) ||
      !set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode) || !finish(heuristic))
    return;
  int64_t room = MOST_CONFIGURATIONS - c->count, made = 0, got = 0;
  for (; made < room; made++)
    if (!make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &c->list[c->count + made])) break;
  if (cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &got,
                               &c->list[c->count]) != CUDNN_STATUS_SUCCESS)
    got = 0;
  for (int64_t i = got; i < made; i++) descriptor_close(&c->list[c->count + i]);
  c->count += got;
}

/* Every engine with its default knobs: the heuristics leave some out that win on small shapes. */
static void add_engines(descriptor graph, configurations *c) {
  int64_t engines = 0, got = 0;
  cudnnBackendGetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1, &got, &engines);
  for (int64_t i = 0; i < engines && c->count < MOST_CONFIGURATIONS; i++) {
    owned engine = NULL, configuration = NULL;
    if (make(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) &&
        set(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph) &&
        set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &i) && finish(engine) &&
        make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configuration) &&
        set(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine) && finish(configuration)) {
      c->list[c->count++] = configuration;
      configuration = NULL;
    }
  }
}

/* What the configuration's engine says of itself; false when the shape's precision forbids it. */
static bool allowed(const rl_conv_shape *shape, descriptor configuration, rl_conv_choice *choice) {
  owned engine = NULL;
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  int64_t got = 0;
  if (!make(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) ||
      cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &got, &engine) ||
      cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &got, notes))
    return false;
  choice->deterministic = true;
  bool single = shape->type == CUDNN_DATA_FLOAT && !shape->tensor_float;
  for (int64_t i = 0; i < got; i++) switch (notes[i]) {
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE: choice->tensor_cores = true; if (single) return false; break;
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS: if (single) return false; break;
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: return false; /* sums in FP16 */
    case CUDNN_NUMERICAL_NOTE_FFT: case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: return false; /* lose digits */
    case CUDNN_NUMERICAL_NOTE_WINOGRAD: choice->winograd = true; break;
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: choice->deterministic = false; break;
    default: break;
  }
  return true;
}

/* --- plans --------------------------------------------------------------------------------------------------------------------- */

static bool make_plan(rl_conv *conv, descriptor configuration, size_t workspace_limit) {
  int64_t bytes = 0, got = 0;
  if (!make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &conv->plan) ||
      !set(conv->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &conv->handle) ||
      !set(conv->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &configuration) ||
      !finish(conv->plan) ||
      cudnnBackendGetAttribute(conv->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &got, &bytes) ||
      bytes < 0 || (size_t)bytes > workspace_limit)
    return false;
  conv->choice.workspace_bytes = (size_t)bytes;
  return true;
}

static bool make_pack(rl_conv *conv) {
  int64_t uids[3] = {UID_X, UID_W, UID_Y};
  void *pointers[3] = {conv->x, conv->weights, conv->y};
  return make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &conv->pack) &&
         set(conv->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, uids) &&
         set(conv->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, pointers) &&
         set(conv->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &conv->workspace) && finish(conv->pack);
}

static void name_choice(descriptor configuration, rl_conv_choice *choice) {
  owned engine = NULL;
  int64_t index = -1, got = 0;
  if (make(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) &&
      cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &got, &engine) ==
        CUDNN_STATUS_SUCCESS)
    cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &got, &index);
  int used = snprintf(choice->name, sizeof choice->name, "engine %lld", (long long)index);
  descriptor knobs[CUDNN_KNOB_TYPE_COUNTS] = {};
  int64_t made = 0, knob_count = 0;
  while (made < CUDNN_KNOB_TYPE_COUNTS && make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knobs[made])) made++;
  cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &knob_count,
                           knobs);
  for (int64_t i = 0; i < made; i++) {
    cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
    int64_t value = 0;
    if (i < knob_count && used < (int)sizeof choice->name - 16 &&
        !cudnnBackendGetAttribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &got, &type) &&
        !cudnnBackendGetAttribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &got, &value))
      used += snprintf(choice->name + used, sizeof choice->name - (size_t)used, " %d=%lld", (int)type, (long long)value);
    descriptor_close(&knobs[i]);
  }
}

int rl_conv_enqueue(rl_conv *conv, rl_stream stream, rl_error *err) {
  if (rl_cudnn_ok(cudnnSetStream(conv->handle, (cudaStream_t)stream), "choosing cuDNN's stream", err)) return -1;
  return rl_cudnn_ok(cudnnBackendExecute(conv->handle, conv->plan, conv->pack), "running a convolution", err);
}

static int enqueue_trial(void *arg, rl_stream stream, rl_error *err) { return rl_conv_enqueue((rl_conv *)arg, stream, err); }

/* Times the configurations; the index of the one to use, -1 when none ran. */
static int64_t choose(rl_conv *trial, const rl_conv_shape *shape, const configurations *c, const rl_conv_search *search,
                      rl_stream stream) {
  int64_t best = -1, best_deterministic = -1;
  double us[MOST_CONFIGURATIONS];
  int tried = 0;
  for (int64_t i = 0; i < c->count && tried < search->most; i++) {
    trial->choice = (rl_conv_choice){};
    bool ran = allowed(shape, c->list[i], &trial->choice) && make_plan(trial, c->list[i], search->workspace_limit) &&
               make_pack(trial) && !rl_tune_time(enqueue_trial, trial, stream, &us[i], NULL);
    if (ran) {
      tried++;
      if (best < 0 || us[i] < us[best]) best = i;
      if (trial->choice.deterministic && (best_deterministic < 0 || us[i] < us[best_deterministic])) best_deterministic = i;
      trial->choice.us = us[i];
      name_choice(c->list[i], &trial->choice);
      if (search->seen) search->seen(search->context, &trial->choice);
    }
    descriptor_close(&trial->plan);
    descriptor_close(&trial->pack);
  }
  bool keep = best_deterministic >= 0 && us[best_deterministic] <= us[best] * DETERMINISTIC_MARGIN;
  if (best >= 0) trial->choice.us = us[keep ? best_deterministic : best];
  return keep ? best_deterministic : best;
}

/* Leaves the plan to use in conv. */
static int search_plan(rl_conv *conv, const rl_conv_shape *shape, const configurations *found, const rl_conv_search *search,
                       rl_stream stream, rl_error *err) {
  char key[112];
  snprintf(key, sizeof key, "conv %d %lld %lld %lld %lld %lld %lld %d %d %d %d %d", shape->pass, (long long)shape->n,
           (long long)shape->c, (long long)shape->h, (long long)shape->w, (long long)shape->k, (long long)shape->pad,
           shape->channels_last, shape->type, shape->weight_type, shape->tensor_float, search->most);
  int64_t best = rl_tune_recall(key);
  if (best < 0) {
    /* Scratch of the trials: not part of what a run needs, so not taken through the device. */
    if (rl_cuda_ok(cudaMalloc(&conv->workspace, search->workspace_limit), "allocating scratch for trying convolutions", err))
      return -1;
    best = choose(conv, shape, found, search, stream);
    cudaFree(conv->workspace);
    conv->workspace = NULL;
    if (best >= 0) rl_tune_remember(key, best);
  }
  double us = conv->choice.us;
  conv->choice = (rl_conv_choice){};
  if (best < 0 || !allowed(shape, found->list[best], &conv->choice) ||
      !make_plan(conv, found->list[best], search->workspace_limit))
    return rl_fail(err, RL_CUDNN, 0, "cuDNN has no engine for this convolution (%lld tried)", (long long)found->count);
  conv->choice.us = us;
  name_choice(found->list[best], &conv->choice);
  return 0;
}

int rl_conv_open(cudnnHandle_t handle, const rl_conv_shape *shape, void *x, void *weights, void *y,
                 const rl_conv_search *search, rl_stream stream, rl_conv **conv, rl_error *err) {
  owned graph = NULL;
  if (!make_graph(handle, shape, &graph)) return refused("the shape of a convolution", err);
  __attribute__((cleanup(configurations_close))) configurations found = {};
  add_recommended(graph, CUDNN_HEUR_MODE_A, &found);
  if (search->thorough || found.count == 0) {
    add_recommended(graph, CUDNN_HEUR_MODE_FALLBACK, &found);
    add_engines(graph, &found);
  }
  rl_conv *made = (rl_conv *)calloc(1, sizeof *made);
  if (!made) return rl_fail_errno(err, "describing a convolution");
  *made = (rl_conv){handle, NULL, NULL, x, weights, y};
  if (search_plan(made, shape, &found, search, stream, err)) {
    rl_conv_close(made);
    return -1;
  }
  *conv = made;
  return 0;
}

int rl_conv_bind(rl_conv *conv, void *workspace, rl_error *err) {
  conv->workspace = workspace;
  descriptor_close(&conv->pack);
  return make_pack(conv) ? 0 : refused("a convolution's buffers", err);
}

void rl_conv_close(rl_conv *conv) {
  if (!conv) return;
  descriptor_close(&conv->plan);
  descriptor_close(&conv->pack);
  free(conv);
}

const rl_conv_choice *rl_conv_chosen(const rl_conv *conv) { return &conv->choice; }
