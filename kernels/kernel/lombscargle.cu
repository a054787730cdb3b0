/* The engine "cuda" of the Lomb-Scargle family: one text in six versions for each type (lombscargle_versions.txt), each from the
 * fatbin that was built with the program or by NVRTC. On an H200, fp32, 114 samples and 2^20 frequencies, launches one after
 * another in µs: template 227, typed 221, fast_math 79, launch_bounds 79, capped_registers 79, uniform 7.3
 * (docs/measurements/h200-lombscargle.md). */
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

enum { BLOCK = 128, BLOCKS_OF_A_PROCESSOR = 20, MOST_OF_A_BLOCK = 1024, FATBIN = 0, NVRTC_CACHED = 2, OPTIONS = 8 };
/* How far 2 t (w - w0) may reach in a block of uniform: with the orders of lombscargle_versions.txt the expansion's error is
 * below a unit in the last place. */
static const double REACH = 0.16;

typedef struct version { /* a line of lombscargle_versions.txt */
  char line[256];
  const char *variant, *dtype, *options[OPTIONS];
  int option_count;
} version;

typedef struct engine {
  cudaLibrary_t library;
  cudaKernel_t kernel;
  bool expands; /* the kernel for even steps */
  int samples, frequencies, per_block, blocks;
  double first, step, origin;
  rl_open_measurement facts[4];
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
    for (char *word; found->option_count < OPTIONS && (word = strtok_r(NULL, " ", &rest));)
      found->options[found->option_count++] = word;
    if (strcmp(found->variant, instance->params.variant) == 0 &&
        strcmp(found->dtype, rl_dtype_names[instance->params.dtype]) == 0)
      return true;
  }
  return false;
}

static int find_fatbin(const version *of, const void **image, rl_error *err) {
  char name[64];
  snprintf(name, sizeof name, "%s_%s", of->variant, of->dtype);
  for (const rl_embedded *one = rl_lombscargle_fatbins; one->name; one++)
    if (strcmp(one->name, name) == 0) {
      *image = one->text;
      return 0;
    }
  return rl_fail(err, RL_SYS, ENOENT, "there is no fatbin %s", name);
}

/* By NVRTC for this very device. */
static int compile(const rl_kernel_instance *instance, const version *of, const char *entry, bool cached, rl_nvrtc_result *result,
                   rl_error *err) {
  int major = 0, minor = 0, index = instance->base.device->index;
  char arch[16];
  if (rl_cuda_ok(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index), "asking for the compute capability",
                 err) ||
      rl_cuda_ok(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index), "asking for the compute capability",
                 err))
    return -1;
  snprintf(arch, sizeof arch, "sm_%d%d", major, minor);
  rl_nvrtc_request request = {};
  request.code = rl_lombscargle_text[0].text;
  request.length = rl_lombscargle_text[0].size;
  request.entry = entry;
  request.arch = arch;
  request.options = of->options;
  request.option_count = of->option_count;
  request.cache = cached ? getenv("ROOFLINED_CACHE_DIR") : NULL;
  return rl_nvrtc_compile(&request, result, err);
}

static int load(engine *self, const void *image, const char *entry, rl_error *err) {
  return rl_cuda_ok(cudaLibraryLoadData(&self->library, image, NULL, NULL, 0, NULL, NULL, 0), "loading a kernel", err) ||
                 rl_cuda_ok(cudaLibraryGetKernel(&self->kernel, self->library, entry), "finding a kernel", err)
             ? -1
             : 0;
}

/* Frequencies that a block of uniform may take so that its expansion holds. */
static int most_of_a_block(double step) {
  if (!(step > 0)) return 0;
  const double most = REACH / (RL_LOMBSCARGLE_SPAN / 2 * step);
  return most > MOST_OF_A_BLOCK ? (int)MOST_OF_A_BLOCK : (int)most / BLOCK * BLOCK;
}

static int describe(const rl_kernel_instance *instance, engine *self, rl_error *err) {
  int processors = 0;
  if (rl_cuda_ok(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, instance->base.device->index),
                 "counting multiprocessors", err))
    return -1;
  self->samples = (int)instance->shape.size[RL_LOMBSCARGLE_SAMPLES];
  self->frequencies = (int)instance->shape.size[RL_LOMBSCARGLE_FREQUENCIES];
  self->first = RL_LOMBSCARGLE_FIRST;
  self->step = rl_lombscargle_step(self->frequencies);
  self->origin = RL_LOMBSCARGLE_SPAN / 2;
  self->per_block = most_of_a_block(self->step);
  self->expands = strcmp(instance->params.variant, "uniform") == 0 && self->per_block > 0;
  const int needed = (self->frequencies + BLOCK - 1) / BLOCK, most = processors * BLOCKS_OF_A_PROCESSOR;
  self->blocks = self->expands ? (self->frequencies + self->per_block - 1) / self->per_block : needed < most ? needed : most;
  return 0;
}

static int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  engine *self = (engine *)instance->engine;
  void *const *in = instance->in, *const *out = &instance->out;
  const void *any[] = {&self->samples,
                       &self->frequencies,
                       &in[RL_LOMBSCARGLE_TIME],
                       &in[RL_LOMBSCARGLE_VALUE],
                       &in[RL_LOMBSCARGLE_FREQUENCY],
                       out};
  const void *even[] = {&self->samples, &self->frequencies,       &self->per_block,          &self->first, &self->step,
                        &self->origin,  &in[RL_LOMBSCARGLE_TIME], &in[RL_LOMBSCARGLE_VALUE], out};
  return rl_cuda_ok(cudaLaunchKernel((const void *)self->kernel, dim3(self->blocks), dim3(BLOCK),
                                     (void **)(self->expands ? even : any), 0, stream),
                    "launching", err);
}

/* From nothing to the first result: what somebody waits who starts a program for one periodogram. */
static int first_pass(rl_kernel_instance *instance, engine *self, const version *of, rl_nvrtc_result *compiled, rl_error *err) {
  const int build = rl_kernel_build_find(instance->params.family, instance->params.build, err);
  const char *entry = self->expands ? "uniform" : "periodogram", *symbol = entry;
  const void *image = NULL;
  cudaStream_t stream = (cudaStream_t)instance->base.device->stream;
  if (build == FATBIN ? find_fatbin(of, &image, err) : compile(instance, of, entry, build == NVRTC_CACHED, compiled, err))
    return -1;
  if (compiled->image) {
    image = compiled->image;
    symbol = compiled->symbol;
  }
  return load(self, image, symbol, err) || launch(instance, stream, err) ||
                 rl_cuda_ok(cudaStreamSynchronize(stream), "the first launch", err)
             ? -1
             : 0;
}

static void note_facts(rl_kernel_instance *instance, engine *self, double first_pass_ms, const rl_nvrtc_result *compiled) {
  cudaFuncAttributes attributes = {};
  const bool known = cudaFuncGetAttributes(&attributes, (const void *)self->kernel) == cudaSuccess;
  const char *unknown = "the runtime does not tell of this kernel", *prebuilt = "it was compiled with the program";
  self->facts[0] = {"first_pass_ms", first_pass_ms, NULL};
  self->facts[1] = {"compile_ms", compiled->image ? compiled->compile_ms : NAN, prebuilt};
  self->facts[2] = {"registers_per_thread", known ? attributes.numRegs : NAN, unknown};
  self->facts[3] = {"local_bytes_per_thread", known ? (double)attributes.localSizeBytes : NAN, unknown};
  (void)cudaGetLastError();
  instance->base.open_measurements = self->facts;
  instance->base.open_measurement_count = sizeof self->facts / sizeof *self->facts;
}

static int open_engine(rl_kernel_instance *instance, rl_error *err) {
  engine *self = (engine *)calloc(1, sizeof *self);
  version of;
  if (!self) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a kernel");
  instance->engine = self;
  if (!find_version(instance, &of))
    return rl_fail(err, RL_SYS, ENOENT, "no version of the text is called %s", instance->params.variant);
  if (describe(instance, self, err)) return -1;
  rl_nvrtc_result compiled = {};
  const int64_t begin = rl_monotonic_ns();
  int rc = first_pass(instance, self, &of, &compiled, err);
  if (rc == 0) note_facts(instance, self, (double)(rl_monotonic_ns() - begin) * 1e-6, &compiled);
  rl_nvrtc_clear(&compiled);
  return rc;
}

static void close_engine(void *engine_) {
  engine *self = (engine *)engine_;
  if (self->library) cudaLibraryUnload(self->library);
  free(self);
}

static const rl_kernel_launcher launcher = {launch, NULL, open_engine, close_engine};
RL_KERNEL_CUDA_ENGINE(lombscargle, "cuda", "one text in several versions, from a fatbin or by NVRTC", launcher)
