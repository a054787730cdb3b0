/* Implements ranges.h by NVTX 3. */
#include "device/ranges.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

static nvtxDomainHandle_t domain(void) {
  static nvtxDomainHandle_t handle; /* needs no lock, because only the device's thread uses it */
  if (!handle) handle = nvtxDomainCreateA("rooflined");
  return handle;
}

void rl_nvtx_range_push(const char *name) {
  nvtxEventAttributes_t event = {0};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &event);
}

void rl_nvtx_range_pop(void) { nvtxDomainRangePop(domain()); }
#else
void rl_nvtx_range_push(const char *name) { (void)name; }
void rl_nvtx_range_pop(void) {}
#endif
