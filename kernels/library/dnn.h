/* Operation graphs of cuDNN's backend API, and plans that run them with the fastest of the engine configurations that cuDNN
 * proposes (tune.h times them). In this header and in dnn.cu, an engine is cuDNN's: one of its implementations of a graph, which
 * its knobs configure. conv.cu and attention.cu build the graphs. A graph or a plan belongs to one thread. The caller owns the
 * buffers. Only .cu files include this header. */
#ifndef RL_LIBRARY_DNN_H
#define RL_LIBRARY_DNN_H

#include <cudnn.h>

#include "device/device.h"

/* --- the graph --------------------------------------------------------------------------------------------------------- */

typedef cudnnBackendDescriptor_t rl_dnn_descriptor;

enum { RL_DNN_RANK = 4, RL_DNN_TENSORS_MAX = 24, RL_DNN_OPERATIONS_MAX = 16 };

typedef struct rl_dnn_memory { /* addresses of the tensors that are not virtual */
  int64_t uids[RL_DNN_TENSORS_MAX];
  void *addresses[RL_DNN_TENSORS_MAX]; /* NULL: the tensor is scalars[i] */
  float scalars[RL_DNN_TENSORS_MAX];
  int64_t count;
} rl_dnn_memory;

/* A graph under construction; starts zeroed. A descriptor that cuDNN refuses is NULL, and so is each descriptor made from it.
 * Callers need not check, because rl_dnn_open fails for such a graph. */
typedef struct rl_dnn_graph {
  rl_dnn_descriptor tensors[RL_DNN_TENSORS_MAX], operations[RL_DNN_OPERATIONS_MAX];
  int64_t tensor_count, operation_count;
  rl_dnn_memory memory;
  bool is_refused; /* cuDNN has refused a descriptor */
} rl_dnn_graph;

/* Adds a tensor, owned by the graph. memory NULL: a virtual tensor, which is not stored in global memory. */
rl_dnn_descriptor rl_dnn_tensor(rl_dnn_graph *graph, cudnnDataType_t type, const int64_t sizes[RL_DNN_RANK],
                                const int64_t strides[RL_DNN_RANK], void *memory);
/* Adds a tensor with one element, `value`. */
rl_dnn_descriptor rl_dnn_scalar(rl_dnn_graph *graph, float value);
/* Finalizes the operation and adds it to the graph, which owns it. */
void rl_dnn_add(rl_dnn_graph *graph, rl_dnn_descriptor operation);
void rl_dnn_graph_close(rl_dnn_graph *graph);

/* rl_dnn_create creates a descriptor, rl_dnn_set sets an attribute to `count` values, and rl_dnn_set_descriptor sets an
 * attribute to another descriptor. They return NULL or false when cuDNN refuses. */
rl_dnn_descriptor rl_dnn_create(cudnnBackendDescriptorType_t type);
bool rl_dnn_set(rl_dnn_descriptor descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                const void *values);
bool rl_dnn_set_descriptor(rl_dnn_descriptor descriptor, cudnnBackendAttributeName_t name, rl_dnn_descriptor to);
void rl_dnn_release(rl_dnn_descriptor *descriptor);
/* Type of a local variable that releases its descriptor at the end of its scope. */
#define rl_dnn_owned __attribute__((cleanup(rl_dnn_release))) rl_dnn_descriptor

/* --- the plan ---------------------------------------------------------------------------------------------------------- */

typedef struct rl_dnn_choice { /* the engine configuration that a plan uses */
  char name[96];               /* "engine 3 k2=1": cuDNN's index of the engine, and its knobs */
  double us;                   /* measured time; 0: taken from the tuning cache without timing */
  size_t workspace_bytes;
  int64_t list_index; /* index in the list of configurations; those that the heuristics propose come first, best first */
  bool deterministic;
} rl_dnn_choice;

typedef struct rl_dnn_search { /* which engine configurations rl_dnn_open tries */
  size_t workspace_limit;      /* in bytes; configurations that need more are skipped */
  int max_trials;              /* number of configurations to time; 1: takes the first that runs */
  bool all_engines;            /* true: also tries engines that the heuristics do not propose */
  bool strict_fp32;            /* true: skips engines that round FP32 inputs */
  bool no_winograd; /* true: skips Winograd engines, which execute fewer multiplications than the definition of a convolution */
} rl_dnn_search;

typedef struct rl_dnn rl_dnn; /* a plan, with the addresses of its tensors and its workspace */

/* Chooses an engine configuration and creates its plan. name: the operation in words ("a convolution"), for error messages; the
 * text must outlive the plan. key: key of the choice in the tuning cache. The timed runs read the inputs and overwrite the
 * output. Fill the inputs first, because the time can depend on their values. A deterministic configuration is preferred when it
 * is within 5 % of the fastest. Returns -1 with RL_CUDNN, CUDNN_STATUS_NOT_SUPPORTED when cuDNN does not support the graph. The
 * graph may be closed afterwards. */
int rl_dnn_open(cudnnHandle_t handle, const rl_dnn_graph *graph, const char *name, const char *key, const rl_dnn_search *search,
                rl_stream stream, rl_dnn **plan, rl_error *err);
/* Sets the workspace, at least rl_dnn_read_choice(plan)->workspace_bytes, which the caller owns. Call before the first
 * enqueue. */
int rl_dnn_set_workspace(rl_dnn *plan, void *workspace, rl_error *err);
void rl_dnn_close(rl_dnn *plan); /* NULL is allowed */
int rl_dnn_enqueue(rl_dnn *plan, rl_stream stream, rl_error *err);
const rl_dnn_choice *rl_dnn_read_choice(const rl_dnn *plan);

#endif
