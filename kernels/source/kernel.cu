/* Implements kernel.h: compiles or loads a posted kernel, checks its parameters and its launch configuration, and launches it. */
#include "source/kernel.h"

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda_check.h"
#include "source/argument_values.h"
#include "source/binary.h"
#include "source/executed.h"

enum { MAX_ATTRIBUTES = 2, PORTABLE_CLUSTER_BLOCKS = 8 };

/* --- compiling and loading --------------------------------------------------------------------------------------------- */

/* Returns the device's compute capability, 90 for 9.0, in *architecture. */
static int read_architecture(const rl_device *device, int *architecture, rl_error *err) {
  int major, minor;
  if (rl_cuda_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device->index),
                    "reading the compute capability", err) < 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device->index),
                    "reading the compute capability", err) < 0)
    return -1;
  *architecture = 10 * major + minor;
  return 0;
}

/* Writes the device's compilation target, such as "sm_80". From sm_90 on, it has the suffix "a" (architecture-specific), because
 * the code runs only on this device. */
static int compile_target(const rl_device *device, char arch[16], rl_error *err) {
  int architecture;
  if (read_architecture(device, &architecture, err) < 0) return -1;
  snprintf(arch, 16, "sm_%d%s", architecture, architecture >= 90 ? "a" : "");
  return 0;
}

static int compile(rl_device *device, const rl_source *source, int variant, rl_source_kernel *kernel, rl_error *err) {
  rl_source_options options;
  char arch[16];
  if (compile_target(device, arch, err) < 0 || rl_source_compile_options(source, variant, &options, err) < 0) return -1;
  const rl_nvrtc_request compilation = {.code = source->request.code,
                                        .length = strlen(source->request.code),
                                        .entry = source->request.entry,
                                        .arch = arch,
                                        .options = options.items,
                                        .option_count = options.count,
                                        .cache_dir = getenv("ROOFLINED_CACHE_DIR")};
  int rc = rl_nvrtc_compile(&compilation, &kernel->compiled, err);
  if (device->on_compiler_log && kernel->compiled.log) device->on_compiler_log(kernel->compiled.log);
  return rc;
}

/* Loads the cubin, finds the kernel in it, and saves the module's variables. */
static int load_cubin(rl_device *device, const rl_source *source, const rl_source_cubin *cubin, rl_source_kernel *kernel,
                      rl_error *err) {
  const bool is_binary = source->binary != NULL;
  const char *symbol = is_binary ? source->request.entry : kernel->compiled.symbol;
  cudaKernel_t function;
  cudaError_t status = cudaLibraryLoadData(&kernel->library, cubin->bytes, NULL, NULL, 0, NULL, NULL, 0);
  if (status != cudaSuccess) kernel->library = NULL;
  if (status == cudaSuccess) status = cudaLibraryGetKernel(&function, kernel->library, symbol);
  if (status == cudaErrorSymbolNotFound) {
    (void)cudaGetLastError();
    return rl_fail_at(err, "/entry", "the compiled code has no kernel %s", symbol);
  }
  if (status != cudaSuccess && is_binary) {
    (void)cudaGetLastError();
    return rl_fail_at(err, "/binary", "the driver can't load the binary: %s", cudaGetErrorString(status));
  }
  if (rl_cuda_check(status, "loading the compiled kernel", err) < 0) return -1;
  kernel->function = (const void *)function;
  rl_error why;
  if (rl_module_variables_open(kernel->library, cubin->bytes, cubin->size, device->stream, &kernel->variables, &why) == 0)
    return 0;
  if (why.domain == RL_INPUT) return rl_fail_at(err, is_binary ? "/binary" : "/code", "%s", why.message);
  *err = why;
  return -1;
}

static int load(rl_device *device, const rl_source *source, rl_source_kernel *kernel, rl_error *err) {
  rl_source_cubin cubin = {kernel->compiled.image, kernel->compiled.image_bytes, NULL};
  int architecture, rc = 0;
  if (source->binary) {
    rl_source_set_executed();
    rc = read_architecture(device, &architecture, err);
    if (rc == 0) rc = rl_source_cubin_open(device, source, architecture, &cubin, err);
  }
  if (rc == 0) rc = load_cubin(device, source, &cubin, kernel, err);
  rl_source_cubin_clear(&cubin);
  return rc;
}

/* --- parameters -------------------------------------------------------------------------------------------------------- */

typedef CUresult parameter_function(CUkernel kernel, size_t index, size_t *offset, size_t *bytes);

/* Returns cuKernelGetParamInfo; NULL: the driver is older than CUDA 12.4. */
static parameter_function *find_parameter_function(void) {
  void *function = NULL;
  cudaDriverEntryPointQueryResult found;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion("cuKernelGetParamInfo", &function, 12040, cudaEnableDefault, &found);
  (void)cudaGetLastError();
  return status == cudaSuccess && found == cudaDriverEntryPointSuccess ? (parameter_function *)function : NULL;
}

/* Checks the number and the sizes of the kernel's parameters, because a launch reads from each argument as many bytes as the
 * parameter has. */
static int check_parameters(const rl_source *source, const rl_source_kernel *kernel, rl_error *err) {
  parameter_function *get_parameter = find_parameter_function();
  size_t offset, bytes;
  int count = 0;
  if (!get_parameter) return 0;
  for (; get_parameter((CUkernel)kernel->function, (size_t)count, &offset, &bytes) == CUDA_SUCCESS; count++) {
    char pointer[RL_SOURCE_POINTER_SIZE];
    if (count >= source->argument_count) continue;
    const size_t argument_bytes = rl_source_parameter_bytes(&source->arguments[count]);
    snprintf(pointer, sizeof pointer, "/arguments/%d", count);
    if (bytes != argument_bytes)
      return rl_fail_at(err, pointer, "the kernel's parameter has %zu bytes, and this argument has %zu", bytes, argument_bytes);
  }
  if (count == source->argument_count) return 0;
  return rl_fail_at(err, "/arguments", "the kernel has %d parameters, and %d arguments were posted", count,
                    source->argument_count);
}

/* --- the launch configuration ------------------------------------------------------------------------------------------ */

static unsigned extent_product(const int64_t extent[3]) { return (unsigned)(extent[0] * extent[1] * extent[2]); }

static dim3 to_dim3(const int64_t extent[3]) { return dim3((unsigned)extent[0], (unsigned)extent[1], (unsigned)extent[2]); }

static bool has_cluster(const rl_source_request *request) { return extent_product(request->cluster) > 1; }

/* Fills *config; its attributes are stored in `attributes`. */
static void set_config(const rl_source_request *request, cudaLaunchAttribute attributes[MAX_ATTRIBUTES], cudaStream_t stream,
                       cudaLaunchConfig_t *config) {
  *config = {};
  config->gridDim = to_dim3(request->grid);
  config->blockDim = to_dim3(request->block);
  config->dynamicSmemBytes = (size_t)request->dynamic_shared_bytes;
  config->stream = stream;
  config->attrs = attributes;
  if (has_cluster(request)) {
    cudaLaunchAttribute *attribute = &attributes[config->numAttrs++];
    attribute->id = cudaLaunchAttributeClusterDimension;
    attribute->val.clusterDim.x = (unsigned)request->cluster[0];
    attribute->val.clusterDim.y = (unsigned)request->cluster[1];
    attribute->val.clusterDim.z = (unsigned)request->cluster[2];
  }
  if (request->cooperative) {
    cudaLaunchAttribute *attribute = &attributes[config->numAttrs++];
    attribute->id = cudaLaunchAttributeCooperative;
    attribute->val.cooperative = 1;
  }
}

static int check_block(const rl_source_kernel *kernel, rl_error *err) {
  const int threads = (int)extent_product(kernel->request->block);
  if (threads <= kernel->attributes.maxThreadsPerBlock) return 0;
  return rl_fail_at(err, "/block",
                    "a block has %d threads; the kernel uses %d registers per thread, which limits a block to %d threads",
                    threads, kernel->attributes.numRegs, kernel->attributes.maxThreadsPerBlock);
}

/* Allows dynamic shared memory above 48 KiB, which must happen before graph capture. */
static int allow_shared_memory(const rl_source_kernel *kernel, rl_error *err) {
  if (kernel->request->dynamic_shared_bytes == 0) return 0;
  const cudaError_t status = cudaFuncSetAttribute(kernel->function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                  (int)kernel->request->dynamic_shared_bytes);
  if (status == cudaSuccess) return 0;
  (void)cudaGetLastError();
  return rl_fail_at(
      err, "/dynamic_shared_bytes",
      "this much dynamic shared memory, added to the %zu bytes of static shared memory, exceeds the limit of a block",
      kernel->attributes.sharedSizeBytes);
}

/* Checks the grid, and a posted cluster, against the cluster that the kernel declares with __cluster_dims__. */
static int check_declared_cluster(const rl_source_kernel *kernel, rl_error *err) {
  static const char *const pointers[] = {"/grid/0", "/grid/1", "/grid/2"};
  const rl_source_request *request = kernel->request;
  const int declared[] = {kernel->attributes.requiredClusterWidth, kernel->attributes.requiredClusterHeight,
                          kernel->attributes.requiredClusterDepth};
  if (declared[0] == 0)
    return kernel->attributes.clusterDimMustBeSet && !has_cluster(request)
               ? rl_fail_at(err, "/cluster", "this kernel needs the size of its clusters")
               : 0;
  for (int i = 0; i < 3; i++) {
    if (has_cluster(request) && request->cluster[i] != declared[i])
      return rl_fail_at(err, "/cluster", "the kernel declares clusters of %d x %d x %d blocks", declared[0], declared[1],
                        declared[2]);
    if (request->grid[i] % declared[i] != 0)
      return rl_fail_at(err, pointers[i],
                        "the kernel declares clusters of %d blocks along this axis, so the grid must be a multiple of %d",
                        declared[i], declared[i]);
  }
  return 0;
}

/* Checks that the device has space for one of the posted clusters. */
static int check_cluster(const rl_source_kernel *kernel, rl_error *err) {
  cudaLaunchAttribute attributes[MAX_ATTRIBUTES];
  cudaLaunchConfig_t config;
  int clusters = 0;
  if (!has_cluster(kernel->request)) return 0;
  if (extent_product(kernel->request->cluster) > PORTABLE_CLUSTER_BLOCKS &&
      rl_cuda_check(cudaFuncSetAttribute(kernel->function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
                    "allowing clusters of more than 8 blocks", err) < 0)
    return -1;
  set_config(kernel->request, attributes, NULL, &config);
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel->function, &config) == cudaSuccess && clusters > 0) return 0;
  (void)cudaGetLastError();
  return rl_fail_at(err, "/cluster", "this device has no space for a cluster of %u such blocks",
                    extent_product(kernel->request->cluster));
}

/* Checks that all blocks of a cooperative launch can be resident. Clusters may reduce the number of resident blocks further; in
 * that case the launch fails. */
static int check_cooperative(const rl_device *device, const rl_source_kernel *kernel, rl_error *err) {
  const rl_source_request *request = kernel->request;
  int blocks_per_sm = 0, multiprocessors = 0;
  if (!request->cooperative) return 0;
  if (rl_cuda_check(
          cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, kernel->function, (int)extent_product(request->block),
                                                        (size_t)request->dynamic_shared_bytes),
          "computing the occupancy", err) < 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device->index),
                    "reading the number of multiprocessors", err) < 0)
    return -1;
  const int64_t resident = (int64_t)blocks_per_sm * multiprocessors;
  if (request->grid[0] * request->grid[1] <= resident && request->grid[0] * request->grid[1] * request->grid[2] <= resident)
    return 0;
  return rl_fail_at(err, "/grid", "a cooperative launch of this kernel has at most %lld blocks on this device",
                    (long long)resident);
}

static int check_launch(const rl_device *device, rl_source_kernel *kernel, rl_error *err) {
  if (rl_cuda_check(cudaFuncGetAttributes(&kernel->attributes, kernel->function), "reading the kernel's attributes", err) < 0)
    return -1;
  return check_block(kernel, err) < 0 || allow_shared_memory(kernel, err) < 0 || check_declared_cluster(kernel, err) < 0 ||
                 check_cluster(kernel, err) < 0 || check_cooperative(device, kernel, err) < 0
             ? -1
             : 0;
}

/* --- open, launch, close ----------------------------------------------------------------------------------------------- */

int rl_source_kernel_open(rl_device *device, const rl_source *source, int variant, rl_source_kernel *kernel, rl_error *err) {
  kernel->request = &source->request;
  return (!source->binary && compile(device, source, variant, kernel, err) < 0) || load(device, source, kernel, err) < 0 ||
                 check_parameters(source, kernel, err) < 0 || check_launch(device, kernel, err) < 0
             ? -1
             : 0;
}

int rl_source_kernel_launch(const rl_source_kernel *kernel, void *const *arguments, rl_stream stream, rl_error *err) {
  rl_source_set_executed();
  cudaLaunchAttribute attributes[MAX_ATTRIBUTES];
  cudaLaunchConfig_t config;
  set_config(kernel->request, attributes, (cudaStream_t)stream, &config);
  return rl_cuda_check(cudaLaunchKernelExC(&config, kernel->function, const_cast<void **>(arguments)),
                       "launching the posted kernel", err);
}

void rl_source_kernel_close(rl_source_kernel *kernel) {
  rl_module_variables_close(kernel->variables);
  if (kernel->library) cudaLibraryUnload(kernel->library);
  rl_nvrtc_clear(&kernel->compiled);
}
