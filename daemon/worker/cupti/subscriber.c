#include "worker/cupti/subscriber.h"

#include <cupti.h>
#include <cupti_pcsampling.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "worker/code/cubin.h"
#include "worker/cupti/result.h"

static const size_t MOST_BYTES = (size_t)256 << 20; /* of code kept; the oldest goes first */

typedef struct module { /* that is loaded */
  uint32_t id;
  uint64_t crc; /* as CUPTI computes it; 0: not asked for yet */
  size_t size;
  unsigned char *cubin;
} module;

static struct {
  CUptiResult opened;
  CUpti_SubscriberHandle handle;
  rl_context_hook made;
  rl_launch_hook hook;
  void *context;
  bool in_hook;
  pthread_mutex_t lock; /* of what follows */
  module *modules;      /* in order of loading */
  size_t module_count, bytes;
  bool incomplete;            /* a module was not kept */
  rl_allocation *allocations; /* in order of making */
  size_t allocation_count;
} the = {.opened = CUPTI_ERROR_NOT_INITIALIZED, .lock = PTHREAD_MUTEX_INITIALIZER};

/* --- modules ----------------------------------------------------------------------------------------------------------- */

static void forget(size_t index) {
  the.bytes -= the.modules[index].size;
  free(the.modules[index].cubin);
  the.module_count--;
  memmove(&the.modules[index], &the.modules[index + 1], (the.module_count - index) * sizeof *the.modules);
}

/* false: it can't be kept. */
static bool keep(const CUpti_ModuleResourceData *loaded) {
  if (loaded->pCubin == NULL || loaded->cubinSize == 0 || loaded->cubinSize > MOST_BYTES) return false;
  for (; the.bytes > MOST_BYTES - loaded->cubinSize; the.incomplete = true) forget(0);
  module *grown = realloc(the.modules, (the.module_count + 1) * sizeof *grown);
  if (grown == NULL) return false;
  the.modules = grown;
  module made = {.id = loaded->moduleId, .size = loaded->cubinSize, .cubin = malloc(loaded->cubinSize)};
  if (made.cubin == NULL) return false;
  memcpy(made.cubin, loaded->pCubin, loaded->cubinSize);
  the.modules[the.module_count++] = made;
  the.bytes += made.size;
  return true;
}

static void drop(const CUpti_ModuleResourceData *unloaded) {
  for (size_t i = the.module_count; i-- > 0;)
    if (the.modules[i].id == unloaded->moduleId) forget(i);
}

static void on_resource(CUpti_CallbackId id, const CUpti_ResourceData *data) {
  if (id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) the.made(data->context);
  pthread_mutex_lock(&the.lock);
  if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED)
    the.incomplete |= !keep(data->resourceDescriptor); /* its kernels have no listing then */
  else if (id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) drop(data->resourceDescriptor);
  pthread_mutex_unlock(&the.lock);
}

static uint64_t crc_of(module *of) {
  CUpti_GetCubinCrcParams params = {.size = CUpti_GetCubinCrcParamsSize, .cubinSize = of->size, .cubin = of->cubin};
  if (of->crc == 0 && cuptiGetCubinCrc(&params) == CUPTI_SUCCESS) of->crc = params.cubinCrc;
  return of->crc;
}

unsigned char *rl_module_copy(const char *function, uint64_t crc, size_t *size) {
  rl_cubin_function ignored;
  unsigned char *copy = NULL;
  pthread_mutex_lock(&the.lock);
  for (size_t i = the.module_count; i-- > 0;) {
    module *found = &the.modules[i];
    if (rl_cubin_find(found->cubin, found->size, function, &ignored, NULL) != 0 || (crc != 0 && crc_of(found) != crc)) continue;
    copy = malloc(found->size);
    if (copy != NULL) memcpy(copy, found->cubin, found->size);
    *size = found->size;
    break;
  }
  pthread_mutex_unlock(&the.lock);
  return copy;
}

bool rl_module_is_sure(const char *function, rl_cubin_function *found) {
  rl_cubin_function one, first = {0};
  pthread_mutex_lock(&the.lock);
  bool sure = !the.incomplete;
  for (size_t i = 0; i < the.module_count && sure; i++) {
    if (rl_cubin_find(the.modules[i].cubin, the.modules[i].size, function, &one, NULL) != 0) continue;
    sure = first.code == NULL || (strcmp(first.sha256, one.sha256) == 0 && first.barriers == one.barriers);
    first = one;
  }
  pthread_mutex_unlock(&the.lock);
  if (!sure || first.code == NULL) return false;
  first.code = NULL;
  *found = first;
  return true;
}

/* --- memory ------------------------------------------------------------------------------------------------------------ */

static const CUpti_CallbackId allocating[] = {CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2};

static void note(CUdeviceptr address, size_t bytes) {
  rl_allocation *grown = realloc(the.allocations, (the.allocation_count + 1) * sizeof *grown);
  if (grown == NULL) return;
  the.allocations = grown;
  the.allocations[the.allocation_count++] = (rl_allocation){address, bytes};
}

static void unnote(CUdeviceptr address) {
  for (size_t i = the.allocation_count; i-- > 0;) {
    if (the.allocations[i].address != address) continue;
    the.allocation_count--;
    memmove(&the.allocations[i], &the.allocations[i + 1], (the.allocation_count - i) * sizeof *the.allocations);
    return;
  }
}

/* true: the call was one of these. */
static bool on_allocating(CUpti_CallbackId id, const CUpti_CallbackData *call) {
  const bool entering = call->callbackSite == CUPTI_API_ENTER;
  if (id != allocating[0] && id != allocating[1]) return false;
  pthread_mutex_lock(&the.lock);
  if (id == CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2 && entering) unnote(((const cuMemFree_v2_params *)call->functionParams)->dptr);
  if (id == CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2 && !entering && *(const CUresult *)call->functionReturnValue == CUDA_SUCCESS) {
    const cuMemAlloc_v2_params *made = call->functionParams;
    note(*made->dptr, made->bytesize);
  }
  pthread_mutex_unlock(&the.lock);
  return true;
}

rl_allocation *rl_allocations_copy(size_t *count) {
  pthread_mutex_lock(&the.lock);
  const size_t bytes = the.allocation_count * sizeof *the.allocations;
  rl_allocation *copy = bytes > 0 ? malloc(bytes) : NULL;
  *count = copy != NULL ? the.allocation_count : 0;
  if (copy != NULL) memcpy(copy, the.allocations, bytes);
  pthread_mutex_unlock(&the.lock);
  return copy;
}

/* --- launches ---------------------------------------------------------------------------------------------------------- */

static const CUpti_CallbackId launches[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                            CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                                            CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                            CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
                                            CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                                            CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz};

/* The parameters of these calls have the same names. */
#define LAUNCHED(PARAMS)                                                                          \
  (rl_launched) {                                                                                 \
    (PARAMS)->f, (PARAMS)->hStream, {(PARAMS)->gridDimX, (PARAMS)->gridDimY, (PARAMS)->gridDimZ}, \
        {(PARAMS)->blockDimX, (PARAMS)->blockDimY, (PARAMS)->blockDimZ}, (PARAMS)->sharedMemBytes \
  }

static rl_launched launched_of(CUpti_CallbackId id, const void *params) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      const cuLaunchKernelEx_params *call = params;
      const CUlaunchConfig *config = call->config;
      return (rl_launched){call->f,
                           config->hStream,
                           {config->gridDimX, config->gridDimY, config->gridDimZ},
                           {config->blockDimX, config->blockDimY, config->blockDimZ},
                           config->sharedMemBytes};
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
      return LAUNCHED((const cuLaunchCooperativeKernel_params *)params);
    default: return LAUNCHED((const cuLaunchKernel_params *)params);
  }
}

static void on_launch(CUpti_CallbackId id, const CUpti_CallbackData *call) {
  if (the.hook == NULL || the.in_hook) return;
  const rl_launched launch = launched_of(id, call->functionParams);
  the.in_hook = true;
  the.hook(the.context, call->callbackSite == CUPTI_API_ENTER, &launch);
  the.in_hook = false;
}

static int enable_launches(bool on, rl_error *err) {
  for (size_t i = 0; i < sizeof launches / sizeof *launches; i++)
    if (rl_cupti_check(cuptiEnableCallback(on, the.handle, CUPTI_CB_DOMAIN_DRIVER_API, launches[i]), "cuptiEnableCallback",
                       err) != 0)
      return -1;
  return 0;
}

int rl_subscriber_watch(rl_launch_hook hook, void *context, rl_error *err) {
  if (rl_cupti_check(the.opened, "cuptiSubscribe", err) != 0) return -1;
  the.context = context;
  the.hook = hook;
  if (enable_launches(true, err) == 0) return 0;
  rl_subscriber_unwatch();
  return -1;
}

void rl_subscriber_unwatch(void) {
  the.hook = NULL;
  if (the.opened == CUPTI_SUCCESS) enable_launches(false, NULL);
}

/* --------------------------------------------------------------------------------------------------------------- */

static void CUPTIAPI on_callback(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info) {
  (void)data;
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) on_resource(id, info);
  else if (domain == CUPTI_CB_DOMAIN_DRIVER_API && !on_allocating(id, info)) on_launch(id, info);
}

void rl_subscriber_open(rl_context_hook made) {
  /* MODULE_PROFILED is for nobody, but without it SASS metrics patch one kernel and then no other (CUPTI 13.0). */
  static const CUpti_CallbackId resources[] = {CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_MODULE_LOADED,
                                               CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, CUPTI_CBID_RESOURCE_MODULE_PROFILED};
  the.made = made;
  the.opened = cuptiSubscribe(&the.handle, on_callback, NULL);
  for (size_t i = 0; the.opened == CUPTI_SUCCESS && i < sizeof resources / sizeof *resources; i++)
    cuptiEnableCallback(1, the.handle, CUPTI_CB_DOMAIN_RESOURCE, resources[i]);
  for (size_t i = 0; the.opened == CUPTI_SUCCESS && i < sizeof allocating / sizeof *allocating; i++)
    cuptiEnableCallback(1, the.handle, CUPTI_CB_DOMAIN_DRIVER_API, allocating[i]);
}

void rl_subscriber_close(void) {
  if (the.opened == CUPTI_SUCCESS) cuptiUnsubscribe(the.handle);
  the.opened = CUPTI_ERROR_NOT_INITIALIZED;
  pthread_mutex_lock(&the.lock);
  while (the.module_count > 0) forget(the.module_count - 1);
  free(the.modules);
  free(the.allocations);
  the.modules = NULL;
  the.allocations = NULL;
  the.allocation_count = 0;
  pthread_mutex_unlock(&the.lock);
}
