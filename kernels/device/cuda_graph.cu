/* Captures repeats of a sequence into a CUDA graph. */
#include <errno.h>
#include <stdlib.h>

#include "device/cuda.h"
#include "device/launches.h"

static bool is_counted_node(cudaGraphNodeType type) {
  return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
}

/* Counts the kernel, memcpy and memset nodes of a graph. */
static int count_nodes(cudaGraph_t graph, uint64_t *result, rl_error *err) {
  size_t count = 0;
  if (rl_cuda_check(cudaGraphGetNodes(graph, NULL, &count), "counting nodes", err) < 0) return -1;
  cudaGraphNode_t *nodes = (cudaGraphNode_t *)malloc((count + 1) * sizeof *nodes);
  if (!nodes) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for graph nodes");
  int rc = rl_cuda_check(cudaGraphGetNodes(graph, nodes, &count), "counting nodes", err);
  *result = 0;
  for (size_t i = 0; i < count && rc == 0; i++) {
    cudaGraphNodeType type;
    rc = rl_cuda_check(cudaGraphNodeGetType(nodes[i], &type), "counting nodes", err);
    *result += is_counted_node(type);
  }
  free(nodes);
  return rc;
}

static int enqueue_repeats(rl_device *device, const rl_sequence *sequence, uint64_t repeats, rl_error *err) {
  for (uint64_t repeat = 0; repeat < repeats; repeat++) {
    if (rl_sequence_restore(sequence, device->stream, err) < 0) return -1;
    for (size_t i = 0; i < sequence->launch_count; i++)
      if (rl_launch_enqueue(&sequence->launches[i], device->stream, err) < 0) return -1;
  }
  return 0;
}

static int capture(rl_device *device, const rl_sequence *sequence, uint64_t repeats, cudaGraph_t *graph, rl_error *err) {
  if (rl_cuda_check(cudaStreamBeginCapture(rl_cuda_stream(device), cudaStreamCaptureModeThreadLocal), "capturing", err) < 0)
    return -1;
  int rc = enqueue_repeats(device, sequence, repeats, err);
  cudaError_t end_status = cudaStreamEndCapture(rl_cuda_stream(device), graph); /* also after a failure: it ends the capture */
  if (rc < 0) {
    (void)cudaGetLastError();
    return -1;
  }
  return rl_cuda_check(end_status, "capturing", err);
}

int rl_cuda_repeated_graph_create(rl_device *device, const rl_sequence *sequence, uint64_t repeats, uint64_t launch_count,
                                  rl_cuda_repeated_graph *created, rl_error *err) {
  cudaGraph_t graph = NULL;
  if (repeats == 0 || launch_count == 0) return 0;
  created->repeats_per_launch = repeats;
  created->launch_count = launch_count;
  bool failed = capture(device, sequence, repeats, &graph, err) < 0 || count_nodes(graph, &created->nodes, err) < 0 ||
                rl_cuda_check(cudaGraphInstantiate(&created->graph_exec, graph, 0), "instantiating a graph", err) < 0 ||
                rl_cuda_check(cudaGraphUpload(created->graph_exec, rl_cuda_stream(device)), "uploading a graph", err) < 0;
  if (graph) cudaGraphDestroy(graph);
  return failed ? rl_wrap(err, "sequence %s", sequence->name) : 0;
}

int rl_cuda_count_nodes(rl_device *device, const rl_sequence *sequence, uint64_t *nodes, rl_error *err) {
  cudaGraph_t graph = NULL;
  bool failed = capture(device, sequence, 1, &graph, err) < 0 || count_nodes(graph, nodes, err) < 0;
  if (graph) cudaGraphDestroy(graph);
  return failed ? -1 : 0;
}
