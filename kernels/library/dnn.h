/* A graph of operations for cuDNN's backend interface, and a plan that runs it: the engine configurations that cuDNN offers for
 * the graph are timed inside a CUDA graph on the device, and the fastest one is kept (tune.h). What the operations are, conv.cu
 * and attention.cu say. Belongs to one thread; buffers are borrowed. Included by .cu files only. */
#ifndef RL_LIBRARY_DNN_H
#define RL_LIBRARY_DNN_H

#include <cudnn.h>

#include "device/device.h"

/* --- the graph --------------------------------------------------------------------------------------------------------- */

typedef cudnnBackendDescriptor_t rl_dnn_descriptor;

enum { RL_DNN_RANK = 4, RL_DNN_TENSORS = 24, RL_DNN_OPERATIONS = 16 };

typedef struct rl_dnn_memory { /* where tensors lie, of those that lie somewhere */
  int64_t uids[RL_DNN_TENSORS];
  void *at[RL_DNN_TENSORS]; /* NULL: the number */
  float numbers[RL_DNN_TENSORS];
  int64_t count;
} rl_dnn_memory;

/* Zeroed at first. What cuDNN refuses to describe is NULL, and so is all that is made of it: only rl_dnn_open has to look. */
typedef struct rl_dnn_graph {
  rl_dnn_descriptor tensors[RL_DNN_TENSORS], operations[RL_DNN_OPERATIONS];
  int64_t tensor_count, operation_count;
  rl_dnn_memory memory;
  bool refused;
} rl_dnn_graph;

/* memory NULL: the tensor never leaves the device's registers and shared memory. Owned by the graph. */
rl_dnn_descriptor rl_dnn_tensor(rl_dnn_graph *graph, cudnnDataType_t type, const int64_t sizes[RL_DNN_RANK],
                                const int64_t strides[RL_DNN_RANK], void *memory);
/* One number. */
rl_dnn_descriptor rl_dnn_scalar(rl_dnn_graph *graph, float value);
/* The operation is finished and belongs to the graph. */
void rl_dnn_add(rl_dnn_graph *graph, rl_dnn_descriptor operation);
void rl_dnn_graph_close(rl_dnn_graph *graph);

/* Descriptors; false or NULL when cuDNN refuses. */
rl_dnn_descriptor rl_dnn_make(cudnnBackendDescriptorType_t type);
bool rl_dnn_set(rl_dnn_descriptor descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                const void *values);
bool rl_dnn_link(rl_dnn_descriptor descriptor, cudnnBackendAttributeName_t name, rl_dnn_descriptor to);
void rl_dnn_release(rl_dnn_descriptor *descriptor);
#define rl_dnn_owned __attribute__((cleanup(rl_dnn_release))) rl_dnn_descriptor

/* --- the plan ---------------------------------------------------------------------------------------------------------- */

typedef struct rl_dnn_choice { /* one engine configuration, as timed */
  char name[96];               /* "engine 3 k2=1": cuDNN's index of the engine, and its knobs */
  double us;                   /* 0: chosen before, not timed again */
  size_t workspace_bytes;
  int64_t rank; /* in the order of cuDNN's heuristics; 0: their first */
  bool deterministic;
} rl_dnn_choice;

typedef struct rl_dnn_search {
  size_t workspace_limit; /* configurations that need more are left out */
  int most;               /* times at most so many configurations; 1: takes the first that runs */
  bool thorough;          /* also what the heuristics leave out */
  bool single;            /* no engine that rounds FP32 inputs to fewer digits */
  bool direct;            /* no engine that does fewer multiplications than the sums have: Winograd's */
} rl_dnn_search;

typedef struct rl_dnn rl_dnn;

/* what: "a convolution", for messages. key: the choice's name for tune.h. The output is overwritten by the trials; fill the
 * inputs first. A deterministic configuration is preferred when it is within 5 % of the fastest. Where cuDNN can't do the graph:
 * RL_CUDNN, CUDNN_STATUS_NOT_SUPPORTED. rl_dnn_bind must follow before the first enqueue. The graph may be closed afterwards. */
int rl_dnn_open(cudnnHandle_t handle, const rl_dnn_graph *graph, const char *what, const char *key, const rl_dnn_search *search,
                rl_stream stream, rl_dnn **plan, rl_error *err);
/* workspace: at least the chosen workspace_bytes; borrowed. */
int rl_dnn_bind(rl_dnn *plan, void *workspace, rl_error *err);
void rl_dnn_close(rl_dnn *plan); /* NULL is allowed */
int rl_dnn_enqueue(rl_dnn *plan, rl_stream stream, rl_error *err);
const rl_dnn_choice *rl_dnn_chosen(const rl_dnn *plan);

#endif
