/* Implements binary.h. PTX is compiled with the driver's linker, which returns the cubin; the driver compiles PTX that is loaded
 * as a library the same way, but does not return it. */
#include "source/binary.h"

#include <cuda.h>
#include <cuda_runtime.h>
#include <elf.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cuda_check.h"
#include "source/fatbin.h"

enum { JIT_LOG_BYTES = 4 << 10, LINKER_CUDA_VERSION = 12000 };

typedef struct linker_functions {
  CUresult (*create)(unsigned option_count, CUjit_option *options, void **values, CUlinkState *state);
  CUresult (*add)(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name, unsigned option_count,
                  CUjit_option *options, void **values);
  CUresult (*complete)(CUlinkState state, void **cubin, size_t *size);
  CUresult (*destroy)(CUlinkState state);
} linker_functions;

static bool find_function(const char *name, void **function) {
  cudaDriverEntryPointQueryResult found;
  const cudaError_t status = cudaGetDriverEntryPointByVersion(name, function, LINKER_CUDA_VERSION, cudaEnableDefault, &found);
  (void)cudaGetLastError();
  return status == cudaSuccess && found == cudaDriverEntryPointSuccess;
}

static int find_linker(linker_functions *linker, rl_error *err) {
  if (find_function("cuLinkCreate", (void **)&linker->create) && find_function("cuLinkAddData", (void **)&linker->add) &&
      find_function("cuLinkComplete", (void **)&linker->complete) && find_function("cuLinkDestroy", (void **)&linker->destroy))
    return 0;
  return rl_fail(err, RL_CUDA, 0, "this driver has no linker, so PTX can't be compiled");
}

/* Fails with the client's error if the linker rejects the PTX, otherwise with an error of CUDA. Both enumerations of errors have
 * the same values. */
static int fail_compilation(CUresult result, rl_error *err) {
  static const CUresult rejections[] = {CUDA_ERROR_INVALID_PTX,    CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_INVALID_IMAGE,
                                        CUDA_ERROR_INVALID_SOURCE, CUDA_ERROR_NO_BINARY_FOR_GPU,       CUDA_ERROR_NOT_FOUND};
  const cudaError_t status = (cudaError_t)result;
  for (const CUresult rejection : rejections)
    if (result == rejection)
      return rl_fail_at(err, "/binary", "the driver can't compile the PTX: %s (%s)", cudaGetErrorString(status),
                        cudaGetErrorName(status));
  return rl_cuda_check(status, "compiling the PTX", err);
}

static int copy_to_cubin(const void *bytes, size_t size, rl_source_cubin *cubin, rl_error *err) {
  void *copy = malloc(size);
  if (!copy) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a cubin");
  memcpy(copy, bytes, size);
  free(cubin->owned);
  *cubin = {copy, size, copy};
  return 0;
}

/* Compiles the PTX of cubin->bytes, which a NUL follows, and replaces it by the cubin. */
static int compile_ptx(const rl_device *device, rl_source_cubin *cubin, rl_error *err) {
  linker_functions linker;
  char log[JIT_LOG_BYTES] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log}, *compiled = NULL;
  size_t size = 0;
  CUlinkState state = NULL;
  if (find_linker(&linker, err) < 0) return -1;
  CUresult result = linker.create(2, options, values, &state);
  if (result == CUDA_SUCCESS)
    result = linker.add(state, CU_JIT_INPUT_PTX, (void *)cubin->bytes, cubin->size + 1, "binary.ptx", 0, NULL, NULL);
  if (result == CUDA_SUCCESS) result = linker.complete(state, &compiled, &size);
  const int rc = result == CUDA_SUCCESS ? copy_to_cubin(compiled, size, cubin, err) : fail_compilation(result, err);
  if (state) linker.destroy(state);
  if (device->on_compiler_log && log[0]) device->on_compiler_log(log);
  return rc;
}

static bool is_cubin(const rl_source_cubin *cubin) {
  return cubin->size >= SELFMAG && memcmp(cubin->bytes, ELFMAG, SELFMAG) == 0;
}

int rl_source_cubin_open(const rl_device *device, const rl_source *source, int architecture, rl_source_cubin *cubin,
                         rl_error *err) {
  rl_fatbin_head head;
  *cubin = {source->binary, source->binary_size, NULL};
  if (rl_fatbin_read_head(source->binary, source->binary_size, &head)) {
    unsigned char *selected;
    size_t size;
    if (rl_fatbin_select(source->binary, source->binary_size, architecture, &selected, &size, err) < 0) return -1;
    *cubin = {selected, size, selected};
  }
  return is_cubin(cubin) ? 0 : compile_ptx(device, cubin, err);
}

void rl_source_cubin_clear(rl_source_cubin *cubin) {
  free(cubin->owned);
  *cubin = {};
}
