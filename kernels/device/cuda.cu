/* Memory, opening and closing of a CUDA device. The CUDA runtime is linked statically and loads the driver at run time, so that
 * the program starts also on a machine without a driver, and reports that the driver is missing. */
#include "device/cuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* --- memory ------------------------------------------------------------------------------------------------------------ */

struct rl_cuda_allocation {
  rl_cuda_allocation *next;
  void *memory;
  size_t bytes;
  rl_memory_purpose purpose;
};

int rl_cuda_wait(rl_device *device, const char *operation, rl_error *err) {
  return rl_cuda_check(cudaStreamSynchronize(rl_cuda_stream(device)), operation, err);
}

static int cuda_allocate(rl_device *device, rl_memory_purpose purpose, size_t bytes, void **memory, rl_error *err) {
  rl_cuda_allocation *created = (rl_cuda_allocation *)malloc(sizeof *created);
  if (!created) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a device allocation");
  char operation[96];
  snprintf(operation, sizeof operation, "allocating %zu bytes for %s", bytes, rl_memory_purpose_names[purpose]);
  if (rl_cuda_check(cudaMalloc(&created->memory, bytes ? bytes : 1), operation, err) < 0) {
    free(created);
    (void)cudaGetLastError();
    return -1;
  }
  created->bytes = bytes;
  created->purpose = purpose;
  created->next = rl_cuda_device_of(device)->allocations;
  rl_cuda_device_of(device)->allocations = created;
  rl_memory_usage_add(&device->memory_usage, purpose, bytes);
  *memory = created->memory;
  return 0;
}

static void cuda_release(rl_device *device, void *memory) {
  for (rl_cuda_allocation **link = &rl_cuda_device_of(device)->allocations; memory && *link; link = &(*link)->next) {
    rl_cuda_allocation *found = *link;
    if (found->memory != memory) continue;
    *link = found->next;
    cudaFree(memory);
    rl_memory_usage_remove(&device->memory_usage, found->purpose, found->bytes);
    free(found);
    return;
  }
}

static int cuda_upload(rl_device *device, void *to, const void *from_host, size_t bytes, rl_error *err) {
  if (rl_cuda_check(cudaMemcpyAsync(to, from_host, bytes, cudaMemcpyHostToDevice, rl_cuda_stream(device)), "uploading", err) < 0)
    return -1;
  return rl_cuda_wait(device, "uploading", err);
}

static int cuda_download(rl_device *device, void *to_host, const void *from, size_t bytes, rl_error *err) {
  if (rl_cuda_check(cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDeviceToHost, rl_cuda_stream(device)), "downloading", err) <
      0)
    return -1;
  return rl_cuda_wait(device, "downloading", err);
}

static int cuda_fill(rl_device *device, void *memory, uint8_t byte, size_t bytes, rl_error *err) {
  if (rl_cuda_check(cudaMemsetAsync(memory, byte, bytes, rl_cuda_stream(device)), "filling memory", err) < 0) return -1;
  return rl_cuda_wait(device, "filling memory", err);
}

/* --- opening ----------------------------------------------------------------------------------------------------------- */

static void cuda_close(rl_device *device) {
  if (!device) return;
  rl_cuda_device *cuda = rl_cuda_device_of(device);
  while (cuda->allocations) cuda_release(device, cuda->allocations->memory);
  for (int i = 0; i < RL_CUDA_MAX_IN_FLIGHT; i++)
    if (cuda->progress_events[i]) cudaEventDestroy(cuda->progress_events[i]);
  if (cuda->start) cudaEventDestroy(cuda->start);
  if (cuda->stop) cudaEventDestroy(cuda->stop);
  if (device->stream) cudaStreamDestroy(rl_cuda_stream(device));
  free(cuda);
}

static const rl_device_ops cuda_ops = {.allocate = cuda_allocate,
                                       .release = cuda_release,
                                       .upload = cuda_upload,
                                       .download = cuda_download,
                                       .fill = cuda_fill,
                                       .instantiate = rl_cuda_instantiate,
                                       .free_executable = rl_cuda_free_executable,
                                       .run = rl_cuda_run,
                                       .run_eager = rl_cuda_run_eager,
                                       .close = cuda_close,
                                       .sample = rl_cuda_sample};

int rl_device_count(rl_error *err) {
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
      rl_fail(err, RL_CUDA, status, "no NVIDIA driver is installed on this machine");
    else rl_cuda_check(status, "looking for CUDA devices", err);
    return 0;
  }
  if (count == 0) rl_fail(err, RL_CUDA, cudaErrorNoDevice, "the NVIDIA driver has no device");
  return count;
}

int rl_cuda_check_index(int index, rl_error *err) {
  int count = rl_device_count(err);
  if (count == 0) return -1;
  if (index < 0 || index >= count) return rl_fail(err, RL_INPUT, 0, "there are %d CUDA devices, gpu0 to gpu%d", count, count - 1);
  return 0;
}

static int create_stream_and_events(rl_cuda_device *cuda, rl_error *err) {
  cudaStream_t stream = NULL;
  if (rl_cuda_check(cudaSetDevice(cuda->base.index), "choosing the device", err) < 0 ||
      rl_cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating the stream", err) < 0)
    return -1;
  cuda->base.stream = stream;
  if (rl_cuda_check(cudaEventCreate(&cuda->start), "creating an event", err) < 0 ||
      rl_cuda_check(cudaEventCreate(&cuda->stop), "creating an event", err) < 0)
    return -1;
  for (int i = 0; i < RL_CUDA_MAX_IN_FLIGHT; i++)
    if (rl_cuda_check(cudaEventCreateWithFlags(&cuda->progress_events[i], cudaEventDisableTiming), "creating an event", err) < 0)
      return -1;
  return 0;
}

rl_device *rl_device_open(int index, rl_error *err) {
  if (rl_cuda_check_index(index, err) < 0) return NULL;
  rl_cuda_device *cuda = (rl_cuda_device *)calloc(1, sizeof *cuda);
  if (!cuda) {
    rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the device");
    return NULL;
  }
  cuda->base.ops = &cuda_ops;
  cuda->base.kind = RL_DEVICE_CUDA;
  cuda->base.index = index;
  snprintf(cuda->base.id, sizeof cuda->base.id, "gpu%d", index);
  if (create_stream_and_events(cuda, err) < 0) {
    cuda_close(&cuda->base);
    return NULL;
  }
  return &cuda->base;
}
