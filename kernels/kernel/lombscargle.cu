/* The engine "cuda" of the Lomb-Scargle operator: lombscargle_kernels.cu in six versions for each type
 * (lombscargle_versions.txt), each from a fatbin built with the program or compiled by NVRTC. Time per launch on an H200 for
 * fp32, 114 samples and 2^20 frequencies, in µs: template 227, typed 221, fast_math 79, launch_bounds 79, capped_registers 79,
 * uniform 7.3 (docs/measurements/h200-lombscargle.md). */
#include "kernel/lombscargle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cuda_check.h"
#include "embedded.h"
#include "kernel/cuda.h"
#include "nvrtc/nvrtc.h"

extern "C" const rl_embedded rl_lombscargle_text[], rl_lombscargle_versions[], rl_lombscargle_fatbins[];

enum { BLOCK_THREADS = 128, BLOCKS_PER_SM = 20, MAX_FREQUENCIES_PER_BLOCK = 1024 };
enum { BUILD_FATBIN = 0, BUILD_NVRTC_CACHED = 2 }; /* indices in rl_kernel_operator.builds */
enum { MAX_OPTIONS = 8 };
/* Limit of |2 t (w - w0)| for all frequencies w and times t of a block of the kernel `uniform`; w0 is the middle frequency of the
 * block, and t is relative to the middle of the time span. Below this limit, the expansion orders of lombscargle_versions.txt
 * suffice for an error below a unit in the last place. */
static const double MAX_EXPANSION_ANGLE = 0.16;

typedef struct version { /* a line of lombscargle_versions.txt */
  char line[256];
  const char *variant, *dtype, *options[MAX_OPTIONS];
  int option_count;
} version;

/* State of the engine, stored in rl_kernel_instance.engine_state. */
typedef struct engine {
  cudaLibrary_t library;
  cudaKernel_t kernel;
  bool is_uniform; /* the kernel is `uniform`, else `periodogram` */
  int samples, frequencies, blocks;
  int frequencies_per_block; /* used by the kernel `uniform` */
  double first, step;        /* frequency i is first + i · step; used by the kernel `uniform`, like `origin` */
  double origin;             /* origin of the times (lombscargle_kernels.cu) */
  rl_open_measurement measurements[4];
} engine;

static bool find_version(const rl_kernel_instance *instance, version *found) {
  const char *text = rl_lombscargle_versions[0].text, *end = text + rl_lombscargle_versions[0].size;
  for (const char *next; text < end; text = next) {
    const char *newline = (const char *)memchr(text, '\n', (size_t)(end - text));
    next = newline ? newline + 1 : end;
    char *rest = NULL;
    found->option_count = 0;
    snprintf(found->line, sizeof found->line, "%.*s", (int)(newline ? newline - text : end - text), text);
    found->variant = strtok_r(found->line, " ", &rest);
    found->dtype = strtok_r(NULL, " ", &rest);
    for (char *word; found->option_count < MAX_OPTIONS && (word = strtok_r(NULL, " ", &rest));)
      found->options[found->option_count++] = word;
    if (strcmp(found->variant, instance->params.variant) == 0 &&
        strcmp(found->dtype, rl_dtype_names[instance->params.dtype]) == 0)
      return true;
  }
  return false;
}

static int find_fatbin(const version *v, const void **image, rl_error *err) {
  char name[64];
  snprintf(name, sizeof name, "%s_%s", v->variant, v->dtype);
  for (const rl_embedded *fatbin = rl_lombscargle_fatbins; fatbin->name; fatbin++)
    if (strcmp(fatbin->name, name) == 0) {
      *image = fatbin->text;
      return 0;
    }
  return rl_fail(err, RL_ERRNO, ENOENT, "there is no fatbin %s", name);
}

/* Compiles by NVRTC for the compute capability of the instance's device. */
static int compile(const rl_kernel_instance *instance, const version *v, const char *entry, bool use_cache,
                   rl_nvrtc_result *result, rl_error *err) {
  int major = 0, minor = 0, index = instance->base.device->index;
  char arch[16];
  const char *operation = "reading the compute capability";
  if (rl_cuda_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index), operation, err) < 0) return -1;
  if (rl_cuda_check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index), operation, err) < 0) return -1;
  snprintf(arch, sizeof arch, "sm_%d%d", major, minor);
  rl_nvrtc_request request = {};
  request.code = rl_lombscargle_text[0].text;
  request.length = rl_lombscargle_text[0].size;
  request.entry = entry;
  request.arch = arch;
  request.options = v->options;
  request.option_count = v->option_count;
  request.cache_dir = use_cache ? getenv("ROOFLINED_CACHE_DIR") : NULL;
  return rl_nvrtc_compile(&request, result, err);
}

static int load(engine *self, const void *image, const char *entry, rl_error *err) {
  if (rl_cuda_check(cudaLibraryLoadData(&self->library, image, NULL, NULL, 0, NULL, NULL, 0), "loading a kernel", err) < 0)
    return -1;
  return rl_cuda_check(cudaLibraryGetKernel(&self->kernel, self->library, entry), "finding a kernel", err);
}

/* Returns how many frequencies a block of `uniform` may compute without exceeding MAX_EXPANSION_ANGLE: a multiple of
 * BLOCK_THREADS, or 0. */
static int max_frequencies_per_block(double step) {
  if (!(step > 0)) return 0;
  const double limit = MAX_EXPANSION_ANGLE / (RL_LOMBSCARGLE_TIME_SPAN / 2 * step);
  return limit > MAX_FREQUENCIES_PER_BLOCK ? (int)MAX_FREQUENCIES_PER_BLOCK : (int)limit / BLOCK_THREADS * BLOCK_THREADS;
}

/* Sets the kernel and its arguments from the shape. */
static int configure(const rl_kernel_instance *instance, engine *self, rl_error *err) {
  int sm_count = 0;
  if (rl_cuda_check(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, instance->base.device->index),
                    "counting multiprocessors", err) < 0)
    return -1;
  self->samples = (int)instance->shape.size[RL_LOMBSCARGLE_SAMPLES];
  self->frequencies = (int)instance->shape.size[RL_LOMBSCARGLE_FREQUENCIES];
  self->first = RL_LOMBSCARGLE_FIRST_FREQUENCY;
  self->step = rl_lombscargle_frequency_step(self->frequencies);
  self->origin = RL_LOMBSCARGLE_TIME_SPAN / 2;
  self->frequencies_per_block = max_frequencies_per_block(self->step);
  self->is_uniform = strcmp(instance->params.variant, "uniform") == 0 && self->frequencies_per_block > 0;
  const int needed = (self->frequencies + BLOCK_THREADS - 1) / BLOCK_THREADS, limit = sm_count * BLOCKS_PER_SM;
  self->blocks = self->is_uniform ? (self->frequencies + self->frequencies_per_block - 1) / self->frequencies_per_block
                 : needed < limit ? needed
                                  : limit;
  return 0;
}

static int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  engine *self = (engine *)instance->engine_state;
  void *const *in = instance->in, *const *out = &instance->out;
  const void *periodogram_arguments[] = {&self->samples,
                                         &self->frequencies,
                                         &in[RL_LOMBSCARGLE_TIME],
                                         &in[RL_LOMBSCARGLE_VALUE],
                                         &in[RL_LOMBSCARGLE_FREQUENCY],
                                         out};
  const void *uniform_arguments[] = {
      &self->samples, &self->frequencies,       &self->frequencies_per_block, &self->first, &self->step,
      &self->origin,  &in[RL_LOMBSCARGLE_TIME], &in[RL_LOMBSCARGLE_VALUE],    out};
  return rl_cuda_check(cudaLaunchKernel((const void *)self->kernel, dim3(self->blocks), dim3(BLOCK_THREADS),
                                        (void **)(self->is_uniform ? uniform_arguments : periodogram_arguments), 0, stream),
                       "launching", err);
}

/* Finds or compiles the code, loads it and runs it once. The caller times this function and records the time as first_pass_ms. */
static int build_and_run_once(rl_kernel_instance *instance, engine *self, const version *v, rl_nvrtc_result *compiled,
                              rl_error *err) {
  const int build = rl_kernel_build_find(instance->params.op, instance->params.build, err);
  const char *entry = self->is_uniform ? "uniform" : "periodogram", *symbol = entry;
  const void *image = NULL;
  cudaStream_t stream = (cudaStream_t)instance->base.device->stream;
  const int rc = build == BUILD_FATBIN ? find_fatbin(v, &image, err)
                                       : compile(instance, v, entry, build == BUILD_NVRTC_CACHED, compiled, err);
  if (rc < 0) return -1;
  if (compiled->image) {
    image = compiled->image;
    symbol = compiled->symbol;
  }
  if (load(self, image, symbol, err) < 0 || launch(instance, stream, err) < 0) return -1;
  return rl_cuda_check(cudaStreamSynchronize(stream), "the first launch", err);
}

static void record_measurements(rl_kernel_instance *instance, engine *self, double first_pass_ms,
                                const rl_nvrtc_result *compiled) {
  cudaFuncAttributes attributes = {};
  const bool has_attributes = cudaFuncGetAttributes(&attributes, (const void *)self->kernel) == cudaSuccess;
  const char *no_attributes = "the CUDA runtime does not report this kernel's attributes",
             *prebuilt = "it was compiled with the program";
  self->measurements[0] = {"first_pass_ms", first_pass_ms, NULL};
  self->measurements[1] = {"compile_ms", compiled->image ? compiled->compile_ms : NAN, prebuilt};
  self->measurements[2] = {"registers_per_thread", has_attributes ? attributes.numRegs : NAN, no_attributes};
  self->measurements[3] = {"local_bytes_per_thread", has_attributes ? (double)attributes.localSizeBytes : NAN, no_attributes};
  (void)cudaGetLastError();
  instance->base.open_measurements = self->measurements;
  instance->base.open_measurement_count = sizeof self->measurements / sizeof *self->measurements;
}

static int open_engine(rl_kernel_instance *instance, rl_error *err) {
  engine *self = (engine *)calloc(1, sizeof *self);
  version v;
  if (!self) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a kernel");
  instance->engine_state = self;
  if (!find_version(instance, &v))
    return rl_fail(err, RL_ERRNO, ENOENT,
                   "lombscargle_versions.txt has no version of the kernel for the variant %s and this dtype",
                   instance->params.variant);
  if (configure(instance, self, err) < 0) return -1;
  rl_nvrtc_result compiled = {};
  const int64_t begin = rl_monotonic_ns();
  int rc = build_and_run_once(instance, self, &v, &compiled, err);
  if (rc == 0) record_measurements(instance, self, (double)(rl_monotonic_ns() - begin) * 1e-6, &compiled);
  rl_nvrtc_clear(&compiled);
  return rc;
}

static void close_engine(void *opaque) {
  engine *self = (engine *)opaque;
  if (self->library) cudaLibraryUnload(self->library);
  free(self);
}

static const rl_kernel_launcher launcher = {launch, open_engine, close_engine};
RL_KERNEL_CUDA_ENGINE(lombscargle, "cuda", "one source in several versions, from a fatbin or by NVRTC", launcher)
