/* There is one static subscriber. A mutex guards the lists of modules and allocations. One launch callback can be set at a time.
 * Launches that this callback makes are not reported to it. */
#include "worker/cupti/subscriber.h"

#include <cupti.h>
#include <cupti_pcsampling.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cubin.h"
#include "worker/cupti/check.h"

/* Limit of the total size of all kept cubins. When it is exceeded, the oldest cubins are dropped. */
static const size_t MAX_CODE_BYTES = (size_t)256 << 20;

typedef struct module { /* a loaded module */
  uint32_t id;
  uint64_t crc; /* CRC of the cubin, as CUPTI computes it; 0: not computed yet */
  size_t size;
  unsigned char *cubin;
} module;

static struct {
  CUptiResult open_result;
  CUpti_SubscriberHandle handle;
  rl_context_callback on_context_created;
  rl_launch_callback launch_callback;
  void *launch_context;        /* argument of launch_callback */
  bool in_callback;            /* launch_callback is running */
  atomic_size_t context_count; /* contexts that this process has created */
  atomic_bool may_have_access_policy_window;
  pthread_mutex_t lock; /* protects the members below */
  module *modules;      /* sorted by time of loading */
  size_t module_count, bytes;
  bool incomplete;                   /* the cubin of a loaded module was not kept */
  rl_device_allocation *allocations; /* sorted by time of allocation */
  size_t allocation_count;
} subscriber = {.open_result = CUPTI_ERROR_NOT_INITIALIZED, .lock = PTHREAD_MUTEX_INITIALIZER};

static void drop_module(size_t index) {
  subscriber.bytes -= subscriber.modules[index].size;
  free(subscriber.modules[index].cubin);
  subscriber.module_count--;
  memmove(&subscriber.modules[index], &subscriber.modules[index + 1],
          (subscriber.module_count - index) * sizeof *subscriber.modules);
}

/* Keeps a copy of the module's cubin. Returns false when memory is out or the cubin is too large. */
static bool keep_module(const CUpti_ModuleResourceData *loaded) {
  if (loaded->pCubin == NULL || loaded->cubinSize == 0 || loaded->cubinSize > MAX_CODE_BYTES) return false;
  for (; subscriber.bytes > MAX_CODE_BYTES - loaded->cubinSize; subscriber.incomplete = true) drop_module(0);
  module *grown = realloc(subscriber.modules, (subscriber.module_count + 1) * sizeof *grown);
  if (grown == NULL) return false;
  subscriber.modules = grown;
  module created = {.id = loaded->moduleId, .size = loaded->cubinSize, .cubin = malloc(loaded->cubinSize)};
  if (created.cubin == NULL) return false;
  memcpy(created.cubin, loaded->pCubin, loaded->cubinSize);
  subscriber.modules[subscriber.module_count++] = created;
  subscriber.bytes += created.size;
  return true;
}

static void on_unload(const CUpti_ModuleResourceData *unloaded) {
  for (size_t i = subscriber.module_count; i-- > 0;)
    if (subscriber.modules[i].id == unloaded->moduleId) drop_module(i);
}

static void on_resource(CUpti_CallbackId id, const CUpti_ResourceData *data) {
  if (id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
    subscriber.context_count++;
    subscriber.on_context_created(data->context);
  }
  pthread_mutex_lock(&subscriber.lock);
  if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED) subscriber.incomplete |= !keep_module(data->resourceDescriptor);
  else if (id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) on_unload(data->resourceDescriptor);
  pthread_mutex_unlock(&subscriber.lock);
}

static uint64_t crc_of(module *loaded) {
  CUpti_GetCubinCrcParams params = {.size = CUpti_GetCubinCrcParamsSize, .cubinSize = loaded->size, .cubin = loaded->cubin};
  if (loaded->crc == 0 && cuptiGetCubinCrc(&params) == CUPTI_SUCCESS) loaded->crc = params.cubinCrc;
  return loaded->crc;
}

unsigned char *rl_loaded_module_copy(const char *function, uint64_t crc, size_t *size) {
  rl_cubin_function ignored;
  unsigned char *copy = NULL;
  pthread_mutex_lock(&subscriber.lock);
  for (size_t i = subscriber.module_count; i-- > 0;) {
    module *found = &subscriber.modules[i];
    if (rl_cubin_find(found->cubin, found->size, function, &ignored, NULL) < 0 || (crc != 0 && crc_of(found) != crc)) continue;
    copy = malloc(found->size);
    if (copy != NULL) memcpy(copy, found->cubin, found->size);
    *size = found->size;
    break;
  }
  pthread_mutex_unlock(&subscriber.lock);
  return copy;
}

bool rl_loaded_function_find_unique(const char *function, rl_cubin_function *found) {
  rl_cubin_function definition, unique = {0};
  pthread_mutex_lock(&subscriber.lock);
  bool unambiguous = !subscriber.incomplete;
  for (size_t i = 0; i < subscriber.module_count && unambiguous; i++) {
    if (rl_cubin_find(subscriber.modules[i].cubin, subscriber.modules[i].size, function, &definition, NULL) < 0) continue;
    unambiguous =
        unique.code == NULL || (strcmp(unique.sha256, definition.sha256) == 0 && unique.barriers == definition.barriers);
    unique = definition;
  }
  pthread_mutex_unlock(&subscriber.lock);
  if (!unambiguous || unique.code == NULL) return false;
  unique.code = NULL;
  *found = unique;
  return true;
}

static const CUpti_CallbackId allocation_calls[] = {CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2};

static const CUpti_CallbackId stream_attribute_calls[] = {CUPTI_DRIVER_TRACE_CBID_cuStreamSetAttribute,
                                                          CUPTI_DRIVER_TRACE_CBID_cuStreamSetAttribute_ptsz};

static void add_allocation(CUdeviceptr address, size_t bytes) {
  rl_device_allocation *grown = realloc(subscriber.allocations, (subscriber.allocation_count + 1) * sizeof *grown);
  if (grown == NULL) return;
  subscriber.allocations = grown;
  subscriber.allocations[subscriber.allocation_count++] = (rl_device_allocation){address, bytes};
}

static void remove_allocation(CUdeviceptr address) {
  for (size_t i = subscriber.allocation_count; i-- > 0;) {
    if (subscriber.allocations[i].address != address) continue;
    subscriber.allocation_count--;
    memmove(&subscriber.allocations[i], &subscriber.allocations[i + 1],
            (subscriber.allocation_count - i) * sizeof *subscriber.allocations);
    return;
  }
}

/* Updates the list of allocations. Returns false when the call neither allocates nor frees memory. */
static bool on_allocation_call(CUpti_CallbackId id, const CUpti_CallbackData *call) {
  const bool entering = call->callbackSite == CUPTI_API_ENTER;
  if (id != allocation_calls[0] && id != allocation_calls[1]) return false;
  pthread_mutex_lock(&subscriber.lock);
  if (id == CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2 && entering)
    remove_allocation(((const cuMemFree_v2_params *)call->functionParams)->dptr);
  if (id == CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2 && !entering && *(const CUresult *)call->functionReturnValue == CUDA_SUCCESS) {
    const cuMemAlloc_v2_params *created = call->functionParams;
    add_allocation(*created->dptr, created->bytesize);
  }
  pthread_mutex_unlock(&subscriber.lock);
  return true;
}

rl_device_allocation *rl_device_allocations_copy(size_t *count) {
  pthread_mutex_lock(&subscriber.lock);
  const size_t bytes = subscriber.allocation_count * sizeof *subscriber.allocations;
  rl_device_allocation *copy = bytes > 0 ? malloc(bytes) : NULL;
  *count = copy != NULL ? subscriber.allocation_count : 0;
  if (copy != NULL) memcpy(copy, subscriber.allocations, bytes);
  pthread_mutex_unlock(&subscriber.lock);
  return copy;
}

static const CUpti_CallbackId launch_calls[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                                CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                                                CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                                CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
                                                CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                                                CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz};

/* The parameter structs of these calls have the same member names. */
#define DRIVER_LAUNCH(PARAMS)                                                                                                   \
  (rl_driver_launch) {                                                                                                          \
    .function = (PARAMS)->f, .stream = (PARAMS)->hStream, .grid = {(PARAMS)->gridDimX, (PARAMS)->gridDimY, (PARAMS)->gridDimZ}, \
    .block = {(PARAMS)->blockDimX, (PARAMS)->blockDimY, (PARAMS)->blockDimZ}, .shared_bytes = (PARAMS)->sharedMemBytes          \
  }

static rl_driver_launch driver_launch_of(CUpti_CallbackId id, const void *params) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      const cuLaunchKernelEx_params *call = params;
      const CUlaunchConfig *config = call->config;
      return (rl_driver_launch){.function = call->f,
                                .stream = config->hStream,
                                .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                                .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                                .shared_bytes = config->sharedMemBytes};
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
      return DRIVER_LAUNCH((const cuLaunchCooperativeKernel_params *)params);
    default: return DRIVER_LAUNCH((const cuLaunchKernel_params *)params);
  }
}

bool rl_process_may_have_access_policy_window(void) { return subscriber.may_have_access_policy_window; }

bool rl_process_maps_other_devices(void) { return subscriber.context_count != 1; }

/* Returns false when the call sets no attribute of a stream. */
static bool on_stream_attribute_call(CUpti_CallbackId id, const CUpti_CallbackData *call) {
  if (id != stream_attribute_calls[0] && id != stream_attribute_calls[1]) return false;
  const cuStreamSetAttribute_params *params = call->functionParams; /* the struct of the other call has the same members */
  if (params->attr == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) subscriber.may_have_access_policy_window = true;
  return true;
}

static void note_launch_attributes(CUpti_CallbackId id, const void *params) {
  if (id != CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx && id != CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz) return;
  const CUlaunchConfig *config = ((const cuLaunchKernelEx_params *)params)->config;
  for (unsigned i = 0; i < config->numAttrs; i++)
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) subscriber.may_have_access_policy_window = true;
}

static void on_launch(CUpti_CallbackId id, const CUpti_CallbackData *call) {
  note_launch_attributes(id, call->functionParams);
  if (subscriber.launch_callback == NULL || subscriber.in_callback) return;
  const rl_driver_launch launch = driver_launch_of(id, call->functionParams);
  subscriber.in_callback = true;
  subscriber.launch_callback(subscriber.launch_context, call->callbackSite == CUPTI_API_ENTER, &launch);
  subscriber.in_callback = false;
}

static int enable_launch_callbacks(bool on, rl_error *err) {
  for (size_t i = 0; i < sizeof launch_calls / sizeof *launch_calls; i++)
    if (rl_cupti_check(cuptiEnableCallback(on, subscriber.handle, CUPTI_CB_DOMAIN_DRIVER_API, launch_calls[i]),
                       "cuptiEnableCallback", err) < 0)
      return -1;
  return 0;
}

int rl_subscriber_watch_launches(rl_launch_callback callback, void *context, rl_error *err) {
  if (rl_cupti_check(subscriber.open_result, "cuptiSubscribe", err) < 0) return -1;
  subscriber.launch_context = context;
  subscriber.launch_callback = callback;
  if (enable_launch_callbacks(true, err) >= 0) return 0;
  rl_subscriber_unwatch_launches();
  return -1;
}

void rl_subscriber_unwatch_launches(void) {
  subscriber.launch_callback = NULL;
  if (subscriber.open_result == CUPTI_SUCCESS) (void)enable_launch_callbacks(false, NULL);
}

static void CUPTIAPI on_callback(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info) {
  (void)data;
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) on_resource(id, info);
  else if (domain == CUPTI_CB_DOMAIN_DRIVER_API && !on_allocation_call(id, info) && !on_stream_attribute_call(id, info))
    on_launch(id, info);
}

/* Returns whether all of the calls are now reported. */
static bool enable_calls(const CUpti_CallbackId *calls, size_t count) {
  bool all = subscriber.open_result == CUPTI_SUCCESS;
  for (size_t i = 0; subscriber.open_result == CUPTI_SUCCESS && i < count; i++)
    if (cuptiEnableCallback(1, subscriber.handle, CUPTI_CB_DOMAIN_DRIVER_API, calls[i]) != CUPTI_SUCCESS) all = false;
  return all;
}

void rl_subscriber_open(rl_context_callback on_context_created) {
  /* The callback ignores MODULE_PROFILED, but unless it is enabled, SASS metrics patch the first kernel only (CUPTI 13.0). */
  static const CUpti_CallbackId resources[] = {CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_MODULE_LOADED,
                                               CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, CUPTI_CBID_RESOURCE_MODULE_PROFILED};
  subscriber.on_context_created = on_context_created;
  subscriber.open_result = cuptiSubscribe(&subscriber.handle, on_callback, NULL);
  for (size_t i = 0; subscriber.open_result == CUPTI_SUCCESS && i < sizeof resources / sizeof *resources; i++)
    cuptiEnableCallback(1, subscriber.handle, CUPTI_CB_DOMAIN_RESOURCE, resources[i]);
  (void)enable_calls(allocation_calls, sizeof allocation_calls / sizeof *allocation_calls);
  if (!enable_calls(stream_attribute_calls, sizeof stream_attribute_calls / sizeof *stream_attribute_calls))
    subscriber.may_have_access_policy_window = true;
}

void rl_subscriber_close(void) {
  if (subscriber.open_result == CUPTI_SUCCESS) cuptiUnsubscribe(subscriber.handle);
  subscriber.open_result = CUPTI_ERROR_NOT_INITIALIZED;
  pthread_mutex_lock(&subscriber.lock);
  while (subscriber.module_count > 0) drop_module(subscriber.module_count - 1);
  free(subscriber.modules);
  free(subscriber.allocations);
  subscriber.modules = NULL;
  subscriber.allocations = NULL;
  subscriber.allocation_count = 0;
  pthread_mutex_unlock(&subscriber.lock);
}
