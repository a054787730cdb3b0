/* Repeats of a sequence, captured into a graph. */
#include <errno.h>
#include <stdlib.h>

#include "device/cuda.h"
#include "device/launches.h"

/* Kernels, copies and sets in a graph. */
static int count_work(cudaGraph_t graph, uint64_t *work, rl_error *err) {
  size_t count = 0;
  if (rl_cuda_ok(cudaGraphGetNodes(graph, NULL, &count), "counting nodes", err)) return -1;
  cudaGraphNode_t *nodes = (cudaGraphNode_t *)malloc((count + 1) * sizeof *nodes);
  if (!nodes) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for graph nodes");
  int rc = rl_cuda_ok(cudaGraphGetNodes(graph, nodes, &count), "counting nodes", err);
  *work = 0;
  for (size_t i = 0; i < count && !rc; i++) {
    cudaGraphNodeType type;
    rc = rl_cuda_ok(cudaGraphNodeGetType(nodes[i], &type), "counting nodes", err);
    *work += type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
  }
  free(nodes);
  return rc;
}

static int capture(rl_device *device, const rl_sequence *sequence, uint64_t copies, cudaGraph_t *graph, rl_error *err) {
  if (rl_cuda_ok(cudaStreamBeginCapture(rl_cuda_stream(device), cudaStreamCaptureModeThreadLocal), "capturing", err)) return -1;
  int rc = 0;
  for (uint64_t copy = 0; copy < copies && !rc; copy++) {
    rc = rl_sequence_restore(sequence, device->stream, err);
    for (size_t i = 0; i < sequence->launch_count && !rc; i++)
      rc = rl_launch_enqueue(&sequence->launches[i], device->stream, err);
  }
  cudaError_t ended = cudaStreamEndCapture(rl_cuda_stream(device), graph);
  if (rc) {
    (void)cudaGetLastError();
    return -1;
  }
  return rl_cuda_ok(ended, "capturing", err);
}

int rl_cuda_make_piece(rl_device *device, const rl_sequence *sequence, uint64_t copies, uint64_t times, rl_cuda_piece *piece,
                       rl_error *err) {
  cudaGraph_t graph = NULL;
  if (copies == 0 || times == 0) return 0;
  piece->copies = copies;
  piece->times = times;
  int rc = capture(device, sequence, copies, &graph, err) || count_work(graph, &piece->nodes, err) ||
           rl_cuda_ok(cudaGraphInstantiate(&piece->graph, graph, 0), "instantiating a graph", err) ||
           rl_cuda_ok(cudaGraphUpload(piece->graph, rl_cuda_stream(device)), "uploading a graph", err);
  if (graph) cudaGraphDestroy(graph);
  return rc ? rl_wrap(err, "sequence %s", sequence->name) : 0;
}

int rl_cuda_count_work(rl_device *device, const rl_sequence *sequence, uint64_t *work, rl_error *err) {
  cudaGraph_t graph = NULL;
  int rc = capture(device, sequence, 1, &graph, err) || count_work(graph, work, err);
  if (graph) cudaGraphDestroy(graph);
  return rc ? -1 : 0;
}
