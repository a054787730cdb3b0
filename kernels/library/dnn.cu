/* Implements dnn.h: cuDNN's descriptors and graphs, the choice of an engine configuration, and plans. */
#include "library/dnn.h"

#include <stdio.h>
#include <stdlib.h>

#include "cuda_check.h"
#include "library/tune.h"

typedef rl_dnn_descriptor descriptor;

enum { MAX_CONFIGURATIONS = 192 };
/* A deterministic configuration is preferred if it takes at most this many times as long as the fastest one (dnn.h). */
static const double DETERMINISTIC_MARGIN = 1.05;

/* --- descriptors ------------------------------------------------------------------------------------------------------- */

void rl_dnn_release(descriptor *target) {
  if (*target) cudnnBackendDestroyDescriptor(*target);
  *target = NULL;
}

descriptor rl_dnn_create(cudnnBackendDescriptorType_t type) {
  descriptor created = NULL;
  return cudnnBackendCreateDescriptor(type, &created) == CUDNN_STATUS_SUCCESS ? created : NULL;
}

bool rl_dnn_set(descriptor target, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                const void *values) {
  return target && cudnnBackendSetAttribute(target, name, type, count, values) == CUDNN_STATUS_SUCCESS;
}

bool rl_dnn_set_descriptor(descriptor target, cudnnBackendAttributeName_t name, descriptor to) {
  return to && rl_dnn_set(target, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to);
}

static bool get_attribute(descriptor target, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t capacity,
                          int64_t *returned, void *values) {
  return target && cudnnBackendGetAttribute(target, name, type, capacity, returned, values) == CUDNN_STATUS_SUCCESS;
}

static bool finalize(descriptor target) { return target && cudnnBackendFinalize(target) == CUDNN_STATUS_SUCCESS; }

static int fail_refused(const char *name, rl_error *err) {
  char reason[256] = "";
  cudnnGetLastErrorString(reason, sizeof reason);
  return rl_fail(err, RL_CUDNN, CUDNN_STATUS_NOT_SUPPORTED, "cuDNN refused %s: %s", name, reason);
}

/* --- the graph --------------------------------------------------------------------------------------------------------- */

/* Returns a tensor owned by the graph; returns NULL when cuDNN refuses. */
static descriptor add_tensor(rl_dnn_graph *graph, cudnnDataType_t type, const int64_t *sizes, const int64_t *strides,
                             bool is_virtual, bool is_by_value) {
  int64_t uid = graph->tensor_count + 1, alignment = 16;
  rl_dnn_owned tensor = graph->tensor_count < RL_DNN_TENSORS_MAX ? rl_dnn_create(CUDNN_BACKEND_TENSOR_DESCRIPTOR) : NULL;
  if (!rl_dnn_set(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type) ||
      !rl_dnn_set(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, RL_DNN_RANK, sizes) ||
      !rl_dnn_set(tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, RL_DNN_RANK, strides) ||
      !rl_dnn_set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid) ||
      !rl_dnn_set(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment) ||
      (is_virtual && !rl_dnn_set(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual)) ||
      (is_by_value && !rl_dnn_set(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &is_by_value)) ||
      !finalize(tensor)) {
    graph->is_refused = true;
    return NULL;
  }
  if (!is_virtual) graph->memory.uids[graph->memory.count++] = uid;
  descriptor created = graph->tensors[graph->tensor_count++] = tensor;
  tensor = NULL;
  return created;
}

descriptor rl_dnn_tensor(rl_dnn_graph *graph, cudnnDataType_t type, const int64_t sizes[RL_DNN_RANK],
                         const int64_t strides[RL_DNN_RANK], void *memory) {
  descriptor created = add_tensor(graph, type, sizes, strides, !memory, false);
  if (created && memory) graph->memory.addresses[graph->memory.count - 1] = memory;
  return created;
}

descriptor rl_dnn_scalar(rl_dnn_graph *graph, float value) {
  const int64_t ones[RL_DNN_RANK] = {1, 1, 1, 1};
  descriptor created = add_tensor(graph, CUDNN_DATA_FLOAT, ones, ones, false, true);
  if (created) graph->memory.scalars[graph->memory.count - 1] = value;
  return created;
}

void rl_dnn_add(rl_dnn_graph *graph, descriptor operation) {
  if (finalize(operation) && graph->operation_count < RL_DNN_OPERATIONS_MAX) {
    graph->operations[graph->operation_count++] = operation;
  } else {
    graph->is_refused = true;
    rl_dnn_release(&operation);
  }
}

void rl_dnn_graph_close(rl_dnn_graph *graph) {
  for (int64_t i = 0; i < graph->operation_count; i++) rl_dnn_release(&graph->operations[i]);
  for (int64_t i = 0; i < graph->tensor_count; i++) rl_dnn_release(&graph->tensors[i]);
}

/* Creates cuDNN's operation graph; returns NULL when cuDNN refuses. */
static descriptor create_operation_graph(cudnnHandle_t handle, const rl_dnn_graph *graph) {
  rl_dnn_owned operation_graph = graph->is_refused ? NULL : rl_dnn_create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (!rl_dnn_set(operation_graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle) ||
      !rl_dnn_set(operation_graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->operation_count,
                  graph->operations) ||
      !finalize(operation_graph))
    return NULL;
  descriptor created = operation_graph;
  operation_graph = NULL;
  return created;
}

/* --- configurations ---------------------------------------------------------------------------------------------------- */

typedef struct configurations { /* engine configurations, best first */
  descriptor list[MAX_CONFIGURATIONS];
  int64_t count;
} configurations;

__attribute__((unused)) static void configurations_close(configurations *found) {
  for (int64_t i = 0; i < found->count; i++) cudnnBackendDestroyDescriptor(found->list[i]);
  found->count = 0;
}

/* Appends the configurations that cuDNN's heuristic proposes, best first. */
static void add_recommended(descriptor graph, cudnnBackendHeurMode_t mode, configurations *found) {
  rl_dnn_owned heuristic = rl_dnn_create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  if (!rl_dnn_set_descriptor(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph) ||
      !rl_dnn_set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode) || !finalize(heuristic))
    return;
  int64_t capacity = MAX_CONFIGURATIONS - found->count, allocated = 0, returned = 0;
  for (; allocated < capacity; allocated++)
    if (!(found->list[found->count + allocated] = rl_dnn_create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR))) break;
  if (!get_attribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, allocated, &returned,
                     &found->list[found->count]))
    returned = 0;
  for (int64_t i = returned; i < allocated; i++) rl_dnn_release(&found->list[found->count + i]);
  found->count += returned;
}

/* Appends every engine with its default knobs, because the heuristics do not propose some engines that are the fastest for small
 * shapes. */
static void add_engines(descriptor graph, configurations *found) {
  int64_t engines = 0, returned = 0;
  get_attribute(graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1, &returned, &engines);
  for (int64_t i = 0; i < engines && found->count < MAX_CONFIGURATIONS; i++) {
    rl_dnn_owned engine = rl_dnn_create(CUDNN_BACKEND_ENGINE_DESCRIPTOR), configuration = NULL;
    if (rl_dnn_set_descriptor(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph) &&
        rl_dnn_set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &i) && finalize(engine) &&
        (configuration = rl_dnn_create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)) &&
        rl_dnn_set_descriptor(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, engine) && finalize(configuration)) {
      found->list[found->count++] = configuration;
      configuration = NULL;
    }
  }
}

static descriptor create_engine_of(descriptor configuration) {
  int64_t returned = 0;
  descriptor engine = rl_dnn_create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (!get_attribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &returned, &engine))
    rl_dnn_release(&engine);
  return engine;
}

/* Returns false when a numerical note of the configuration's engine is not allowed. Sets choice->deterministic. */
static bool is_allowed(const rl_dnn_search *search, descriptor configuration, rl_dnn_choice *choice) {
  rl_dnn_owned engine = create_engine_of(configuration);
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  int64_t returned = 0;
  if (!get_attribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
                     &returned, notes))
    return false;
  choice->deterministic = true;
  for (int64_t i = 0; i < returned; i++) switch (notes[i]) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        if (search->strict_fp32) return false;
        break;
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: return false; /* FP16 accumulation */
      case CUDNN_NUMERICAL_NOTE_FFT:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: return false; /* the results are inaccurate */
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
        if (search->no_winograd) return false;
        break;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: choice->deterministic = false; break;
      default: break;
    }
  return true;
}

static void name_choice(descriptor configuration, rl_dnn_choice *choice) {
  rl_dnn_owned engine = create_engine_of(configuration);
  int64_t index = -1, returned = 0;
  get_attribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &returned, &index);
  int used = snprintf(choice->name, sizeof choice->name, "engine %lld", (long long)index);
  descriptor knobs[CUDNN_KNOB_TYPE_COUNTS] = {};
  int64_t allocated = 0, knob_count = 0;
  while (allocated < CUDNN_KNOB_TYPE_COUNTS && (knobs[allocated] = rl_dnn_create(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)))
    allocated++;
  get_attribute(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, allocated, &knob_count, knobs);
  for (int64_t i = 0; i < allocated; i++) {
    cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
    int64_t value = 0;
    if (i < knob_count && used < (int)sizeof choice->name - 16 &&
        get_attribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &returned, &type) &&
        get_attribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &returned, &value))
      used += snprintf(choice->name + used, sizeof choice->name - (size_t)used, " %d=%lld", (int)type, (long long)value);
    rl_dnn_release(&knobs[i]);
  }
}

/* --- plans ------------------------------------------------------------------------------------------------------------- */

struct rl_dnn {
  cudnnHandle_t handle;
  descriptor plan, variant_pack;
  rl_dnn_memory memory;
  void *workspace;
  const char *name;
  rl_dnn_choice choice;
};

static bool create_plan(rl_dnn *self, descriptor configuration, size_t workspace_limit) {
  int64_t bytes = 0, returned = 0;
  self->plan = rl_dnn_create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (!rl_dnn_set(self->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &self->handle) ||
      !rl_dnn_set_descriptor(self->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration) || !finalize(self->plan) ||
      !get_attribute(self->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &returned, &bytes) || bytes < 0 ||
      (size_t)bytes > workspace_limit)
    return false;
  self->choice.workspace_bytes = (size_t)bytes;
  return true;
}

static bool create_variant_pack(rl_dnn *self) {
  void *pointers[RL_DNN_TENSORS_MAX];
  for (int64_t i = 0; i < self->memory.count; i++)
    pointers[i] = self->memory.addresses[i] ? self->memory.addresses[i] : &self->memory.scalars[i];
  self->variant_pack = rl_dnn_create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  return rl_dnn_set(self->variant_pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, self->memory.count,
                    self->memory.uids) &&
         rl_dnn_set(self->variant_pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, self->memory.count,
                    pointers) &&
         rl_dnn_set(self->variant_pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &self->workspace) &&
         finalize(self->variant_pack);
}

int rl_dnn_enqueue(rl_dnn *self, rl_stream stream, rl_error *err) {
  if (rl_cudnn_check(cudnnSetStream(self->handle, (cudaStream_t)stream), "choosing cuDNN's stream", err) < 0) return -1;
  return rl_cudnn_check(cudnnBackendExecute(self->handle, self->plan, self->variant_pack), self->name, err);
}

static int enqueue_trial(void *arg, rl_stream stream, rl_error *err) { return rl_dnn_enqueue((rl_dnn *)arg, stream, err); }

/* Creates a plan of the configuration. Returns false when the search does not allow the configuration or cuDNN refuses it. */
static bool create_allowed_plan(rl_dnn *self, descriptor configuration, const rl_dnn_search *search) {
  self->choice = (rl_dnn_choice){};
  if (is_allowed(search, configuration, &self->choice) && create_plan(self, configuration, search->workspace_limit)) return true;
  rl_dnn_release(&self->plan);
  return false;
}

typedef struct candidate {
  descriptor plan;
  rl_dnn_choice choice;
  int64_t index; /* index in configurations.list */
} candidate;

/* Moves the plan of self to *best when it is faster. Keeps the plan itself and not only its configuration, because creating it
 * again can take a compilation and, in cuDNN 9.14, fails for attention. */
static void keep_faster(rl_dnn *self, int64_t index, candidate *best) {
  if (best->plan && best->choice.us <= self->choice.us) return;
  rl_dnn_release(&best->plan);
  *best = (candidate){self->plan, self->choice, index};
  self->plan = NULL;
}

/* Times the configurations, moves the plan of the chosen one into self and returns its index; returns -1 if none ran. */
static int64_t choose(rl_dnn *self, const configurations *found, const rl_dnn_search *search, rl_stream stream) {
  candidate best = {}, best_deterministic = {};
  int tried = 0;
  for (int64_t i = 0; i < found->count && tried < search->max_trials; i++) {
    if (create_allowed_plan(self, found->list[i], search) && create_variant_pack(self) &&
        rl_tune_measure_us(enqueue_trial, self, stream, &self->choice.us, NULL) == 0) {
      tried++;
      keep_faster(self, i, self->choice.deterministic ? &best_deterministic : &best);
    }
    rl_dnn_release(&self->plan);
    rl_dnn_release(&self->variant_pack);
  }
  if (tried == 0) return -1;
  bool prefers_deterministic =
      !best.plan || (best_deterministic.plan && best_deterministic.choice.us <= best.choice.us * DETERMINISTIC_MARGIN);
  candidate *chosen = prefers_deterministic ? &best_deterministic : &best;
  rl_dnn_release(prefers_deterministic ? &best.plan : &best_deterministic.plan);
  self->plan = chosen->plan;
  self->choice = chosen->choice;
  return chosen->index;
}

/* Creates the plan of the cached choice, or of the fastest configuration. */
static int search_plan(rl_dnn *self, const configurations *found, const char *key, const rl_dnn_search *search, rl_stream stream,
                       rl_error *err) {
  int64_t best = rl_tuning_cache_find(key);
  if (best < 0 || best >= found->count || !create_allowed_plan(self, found->list[best], search)) {
    /* Only the trials need this memory, so it is not counted as memory of the instance. */
    if (rl_cuda_check(cudaMalloc(&self->workspace, search->workspace_limit), "allocating workspace to try engines", err) < 0)
      return -1;
    best = choose(self, found, search, stream);
    cudaFree(self->workspace);
    self->workspace = NULL;
    if (best < 0)
      return rl_fail(err, RL_CUDNN, CUDNN_STATUS_NOT_SUPPORTED, "cuDNN has no engine for %s of this shape and type (%lld tried)",
                     self->name, (long long)found->count);
    rl_tuning_cache_add(key, best);
  }
  self->choice.list_index = best;
  name_choice(found->list[best], &self->choice);
  return 0;
}

int rl_dnn_open(cudnnHandle_t handle, const rl_dnn_graph *graph, const char *name, const char *key, const rl_dnn_search *search,
                rl_stream stream, rl_dnn **plan, rl_error *err) {
  rl_dnn_owned operation_graph = create_operation_graph(handle, graph);
  if (!operation_graph) return fail_refused(name, err);
  __attribute__((cleanup(configurations_close))) configurations found = {};
  add_recommended(operation_graph, CUDNN_HEUR_MODE_A, &found);
  if (search->all_engines || found.count == 0) {
    add_recommended(operation_graph, CUDNN_HEUR_MODE_FALLBACK, &found);
    add_engines(operation_graph, &found);
  }
  rl_dnn *created = (rl_dnn *)calloc(1, sizeof *created);
  if (!created) return rl_fail_errno(err, "%s", name);
  created->handle = handle;
  created->name = name;
  created->memory = graph->memory;
  if (search_plan(created, &found, key, search, stream, err) < 0) {
    rl_dnn_close(created);
    return -1;
  }
  *plan = created;
  return 0;
}

int rl_dnn_set_workspace(rl_dnn *self, void *workspace, rl_error *err) {
  self->workspace = workspace;
  rl_dnn_release(&self->variant_pack);
  return create_variant_pack(self) ? 0 : fail_refused(self->name, err);
}

void rl_dnn_close(rl_dnn *self) {
  if (!self) return;
  rl_dnn_release(&self->plan);
  rl_dnn_release(&self->variant_pack);
  free(self);
}

const rl_dnn_choice *rl_dnn_read_choice(const rl_dnn *self) { return &self->choice; }
