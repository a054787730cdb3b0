/* The engine of posted kernels: compile or load, fill the buffers, launch. A fault of the kernel is the device's sticky error,
 * which fails the pass at once and ends the worker; a kernel that does not end is ended with the worker by the daemon. */
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda_check.h"
#include "nvrtc/nvrtc.h"
#include "source/fill.h"
#include "source/source_cache.h"

enum { FACTS = 7, PRINTF_BYTES = 64 << 10, REASON_BYTES = 4 << 10 };

typedef struct instance {
  rl_instance base;
  rl_source source;
  rl_source_params params;
  rl_nvrtc_result compiled;
  cudaLibrary_t library;
  const void *kernel; /* as the runtime's launch takes it */
  void *buffers[RL_SOURCE_ARGUMENTS];
  void *saved[RL_SOURCE_ARGUMENTS]; /* what they held at the last save, the first at opening */
  uint64_t scalars[RL_SOURCE_ARGUMENTS];
  void *arguments[RL_SOURCE_ARGUMENTS]; /* where each argument's value lies */
  rl_launch launch, put_back;
  rl_sequence sequence;
  rl_open_measurement facts[FACTS];
} instance;

/* --- what buffers hold ------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const rl_source_argument *argument) {
  return (size_t)argument->count * rl_source_type_size(argument->type);
}

/* Everything that the kernel may have changed, as it was posted. */
static int reset(rl_instance *base, rl_error *err) {
  instance *self = (instance *)base;
  rl_device *device = base->device;
  for (int i = 0; i < self->source.argument_count; i++) {
    const rl_source_argument *argument = &self->source.arguments[i];
    if (!argument->buffer) continue;
    int rc = argument->bytes ? device->ops->upload(device, self->buffers[i], argument->bytes, bytes_of(argument), err)
                             : rl_source_fill(argument, i, self->buffers[i], device->stream, err);
    if (rc) return -1;
  }
  return rl_cuda_ok(cudaStreamSynchronize((cudaStream_t)device->stream), "filling the buffers", err);
}

/* Copies, and no kernels: those would be counted where a launch is replayed. */
static int queue_copies(instance *self, void *const *to, void *const *from, rl_stream to_stream, rl_error *err) {
  cudaStream_t stream = (cudaStream_t)to_stream;
  for (int i = 0; i < self->source.argument_count; i++) {
    if (!self->buffers[i]) continue;
    cudaError_t status = cudaMemcpyAsync(to[i], from[i], bytes_of(&self->source.arguments[i]), cudaMemcpyDeviceToDevice, stream);
    if (rl_cuda_ok(status, "copying the buffers", err) < 0) return -1;
  }
  return 0;
}

static int copy_buffers(instance *self, void *const *to, void *const *from, rl_error *err) {
  rl_stream stream = self->base.device->stream;
  if (queue_copies(self, to, from, stream, err) < 0) return -1;
  return rl_cuda_ok(cudaStreamSynchronize((cudaStream_t)stream), "copying the buffers", err);
}

static int save(rl_instance *base, rl_error *err) {
  instance *self = (instance *)base;
  rl_device *device = base->device;
  for (int i = 0; i < self->source.argument_count; i++)
    if (self->buffers[i] && !self->saved[i] &&
        device->ops->allocate(device, RL_MEMORY_WORKSPACE, bytes_of(&self->source.arguments[i]), &self->saved[i], err) < 0)
      return -1;
  return copy_buffers(self, self->saved, self->buffers, err);
}

static int restore(rl_instance *base, rl_error *err) {
  instance *self = (instance *)base;
  return copy_buffers(self, self->buffers, self->saved, err);
}

static int put_back(void *arg, rl_stream stream, rl_error *err) {
  instance *self = (instance *)arg;
  return queue_copies(self, self->buffers, self->saved, stream, err);
}

/* --- the check --------------------------------------------------------------------------------------------------------- */

static int run_once(instance *self, rl_error *err) {
  rl_device *device = self->base.device;
  rl_sequence one = self->sequence;
  rl_program once = {"check", &one, 1};
  rl_elapsed elapsed;
  one.repeat = 1;
  return device->ops->run_eager(device, &once, NULL, &elapsed, err);
}

/* ‖result − expected‖ / ‖expected‖; where that is zero, the difference itself. */
static double compare(const rl_source *source, const void *result) {
  const rl_source_argument *argument = &source->arguments[source->expected_argument];
  double off = 0, size = 0;
  for (int64_t i = 0; i < argument->count; i++) {
    double wanted = rl_source_load(argument->type, source->expected, (size_t)i);
    double difference = rl_source_load(argument->type, result, (size_t)i) - wanted;
    off += difference * difference;
    size += wanted * wanted;
  }
  return size > 0 ? sqrt(off / size) : sqrt(off);
}

static int check(rl_instance *base, rl_check *check, rl_error *err) {
  instance *self = (instance *)base;
  const rl_source *source = &self->source;
  size_t bytes = bytes_of(&source->arguments[source->expected_argument]);
  void *result = malloc(bytes);
  if (!result) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the check");
  int rc = run_once(self, err) < 0 ||
           base->device->ops->download(base->device, result, self->buffers[source->expected_argument], bytes, err) < 0;
  if (!rc) *check = (rl_check){compare(source, result), source->tolerance, 1};
  free(result);
  return rc ? -1 : 0;
}

/* --- launching --------------------------------------------------------------------------------------------------------- */

static int enqueue(void *arg, rl_stream stream, rl_error *err) {
  instance *self = (instance *)arg;
  const rl_source_request *said = &self->source.request;
  dim3 grid((unsigned)said->grid[0], (unsigned)said->grid[1], (unsigned)said->grid[2]);
  dim3 block((unsigned)said->block[0], (unsigned)said->block[1], (unsigned)said->block[2]);
  return rl_cuda_ok(
      cudaLaunchKernel(self->kernel, grid, block, self->arguments, (size_t)said->dynamic_shared_bytes, (cudaStream_t)stream),
      "launching the posted kernel", err);
}

static int report(rl_instance *base, rl_report *report, rl_error *err) {
  (void)base, (void)err;
  *report = (rl_report){NAN, NAN, NAN, NAN, NAN, NAN};
  return 0;
}

static void close_instance(rl_instance *base) {
  instance *self = (instance *)base;
  for (int i = 0; i < RL_SOURCE_ARGUMENTS; i++) {
    base->device->ops->release(base->device, self->buffers[i]);
    base->device->ops->release(base->device, self->saved[i]);
  }
  if (self->library) cudaLibraryUnload(self->library);
  rl_nvrtc_clear(&self->compiled);
  rl_source_clear(&self->source);
  free(self);
}

static const rl_instance_ops checked = {reset, report, save, restore, close_instance, check};
static const rl_instance_ops unchecked = {reset, report, save, restore, close_instance, NULL};

/* --- opening ----------------------------------------------------------------------------------------------------------- */

/* Where the hardware has instructions that only its own machine code may use, they may be used: the code runs nowhere else. */
static int arch_of(const rl_device *device, char arch[16], rl_error *err) {
  int major, minor;
  if (rl_cuda_ok(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device->index), "asking for the architecture",
                 err) < 0 ||
      rl_cuda_ok(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device->index), "asking for the architecture",
                 err) < 0)
    return -1;
  snprintf(arch, 16, "sm_%d%d%s", major, minor, major >= 9 ? "a" : "");
  return 0;
}

static int compile(instance *self, rl_error *err) {
  rl_source_options options;
  char arch[16];
  const rl_source_request *said = &self->source.request;
  if (arch_of(self->base.device, arch, err) < 0 ||
      rl_source_compile_options(&self->source, (int)self->params.index, &options, err) < 0)
    return -1;
  rl_nvrtc_request request = {
      said->code, strlen(said->code), said->entry, arch, options.items, options.count, getenv("ROOFLINED_CACHE_DIR"), NULL};
  int rc = rl_nvrtc_compile(&request, &self->compiled, err);
  if (self->base.device->log && self->compiled.log) self->base.device->log(self->compiled.log);
  return rc;
}

static int refuse_binary(const rl_device *device, cudaError_t status, const char *log, rl_error *err) {
  if (device->log && log[0]) device->log(log);
  (void)cudaGetLastError();
  return rl_fail_at(err, "/binary", "the driver does not take it: %s", cudaGetErrorString(status));
}

static int load(instance *self, rl_error *err) {
  char log[REASON_BYTES] = "";
  cudaJitOption names[] = {cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  const bool binary = self->source.binary != NULL;
  const char *symbol = binary ? self->source.request.entry : self->compiled.symbol;
  cudaKernel_t kernel;
  cudaError_t status =
      cudaLibraryLoadData(&self->library, binary ? self->source.binary : self->compiled.image, names, values, 2, NULL, NULL, 0);
  if (status != cudaSuccess) self->library = NULL;
  if (status == cudaSuccess)
    status = cudaLibraryGetKernel(&kernel, self->library, symbol); /* PTX is compiled no earlier than here */
  if (status == cudaErrorSymbolNotFound) {
    (void)cudaGetLastError();
    return rl_fail_at(err, "/entry", "there is no kernel %s in it", symbol);
  }
  if (status != cudaSuccess && binary) return refuse_binary(self->base.device, status, log, err);
  if (rl_cuda_ok(status, "loading the compiled kernel", err) < 0) return -1;
  self->kernel = (const void *)kernel;
  return 0;
}

/* What the launch asks for beyond the usual, before it is captured. */
static int check_resources(instance *self, cudaFuncAttributes *attributes, rl_error *err) {
  const rl_source_request *said = &self->source.request;
  if (rl_cuda_ok(cudaFuncGetAttributes(attributes, self->kernel), "asking for the kernel's resources", err) < 0) return -1;
  int threads = (int)(said->block[0] * said->block[1] * said->block[2]);
  if (threads > attributes->maxThreadsPerBlock)
    return rl_fail_at(err, "/block", "a block has %d threads, and with %d registers each the kernel can have %d", threads,
                      attributes->numRegs, attributes->maxThreadsPerBlock);
  if (said->dynamic_shared_bytes == 0) return 0;
  cudaError_t status =
      cudaFuncSetAttribute(self->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)said->dynamic_shared_bytes);
  if (status == cudaSuccess) return 0;
  (void)cudaGetLastError();
  return rl_fail_at(err, "/dynamic_shared_bytes",
                    "the device does not give a block so much beside the %zu bytes that the code declares",
                    attributes->sharedSizeBytes);
}

static void state_facts(instance *self, const cudaFuncAttributes *attributes) {
  const bool binary = self->source.binary != NULL;
  const char *compiled = "a binary was posted", *spills = binary ? compiled : "the compiler did not say";
  const rl_nvrtc_result *said = &self->compiled;
  const rl_open_measurement facts[FACTS] = {{"registers_per_thread", (double)attributes->numRegs, NULL},
                                            {"static_shared_bytes", (double)attributes->sharedSizeBytes, NULL},
                                            {"local_bytes_per_thread", (double)attributes->localSizeBytes, NULL},
                                            {"spill_store_bytes", binary ? NAN : said->spill_store_bytes, spills},
                                            {"spill_load_bytes", binary ? NAN : said->spill_load_bytes, spills},
                                            {"compile_ms", binary ? NAN : said->compile_ms, compiled},
                                            {"compile_cached", binary ? NAN : said->cached, compiled}};
  memcpy(self->facts, facts, sizeof facts);
  self->base.open_measurements = self->facts;
  self->base.open_measurement_count = FACTS;
}

static int make_arguments(instance *self, rl_error *err) {
  rl_device *device = self->base.device;
  for (int i = 0; i < self->source.argument_count; i++) {
    const rl_source_argument *argument = &self->source.arguments[i];
    if (argument->buffer && device->ops->allocate(device, RL_MEMORY_DATASET, bytes_of(argument), &self->buffers[i], err) < 0)
      return -1;
    if (!argument->buffer) rl_source_store(argument->type, &self->scalars[i], 0, argument->value);
    self->arguments[i] = argument->buffer ? (void *)&self->buffers[i] : (void *)&self->scalars[i];
  }
  return reset(&self->base, err) < 0 || save(&self->base, err) < 0 ? -1 : 0;
}

static int make_ready(instance *self, rl_error *err) {
  cudaFuncAttributes attributes;
  if (rl_source_cache_get(self->params.source, &self->source, err) < 0 || (!self->source.binary && compile(self, err) < 0) ||
      load(self, err) < 0 || check_resources(self, &attributes, err) < 0 || make_arguments(self, err) < 0)
    return -1;
  self->base.ops = self->source.expected ? &checked : &unchecked;
  state_facts(self, &attributes);
  return 0;
}

static int open_engine(rl_device *device, const void *params, rl_instance **made, rl_error *err) {
  instance *self = (instance *)calloc(1, sizeof *self);
  if (!self) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a kernel");
  cudaDeviceSetLimit(cudaLimitPrintfFifoSize, PRINTF_BYTES); /* what one synchronisation may put into the log */
  (void)cudaGetLastError();
  self->params = *(const rl_source_params *)params;
  self->base.ops = &unchecked;
  self->base.device = device;
  self->base.deterministic_note = "posted code may do anything";
  self->launch = (rl_launch){self->source.request.entry, "kernel", enqueue, self};
  self->put_back = (rl_launch){"restore", "data", put_back, self};
  self->sequence = (rl_sequence){"launch", &self->launch, 1, (uint64_t)self->params.samples, &self->put_back};
  self->base.iteration = (rl_program){"kernel", &self->sequence, 1};
  if (make_ready(self, err) < 0) {
    close_instance(&self->base);
    return -1;
  }
  *made = &self->base;
  return 0;
}

static const rl_engine_description description = {"nvrtc", "source", RL_DEVICE_CUDA, "a kernel that was posted"};

extern "C" {
extern const rl_engine rl_engine_source;
const rl_engine rl_engine_source = {&description, open_engine};
}
