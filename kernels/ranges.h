/* NVTX ranges in the domain "rooflined", seen by nsys and by the activity pass. Without the header (it comes with CUDA and
 * needs no library) they are nothing; without a tool attached they cost a test of a pointer. */
#ifndef RL_KERNELS_RANGES_H
#define RL_KERNELS_RANGES_H

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

static inline nvtxDomainHandle_t rl_range_domain(void) {
  static nvtxDomainHandle_t domain; /* one device thread */
  if (!domain) domain = nvtxDomainCreateA("rooflined");
  return domain;
}

static inline void rl_range_push(const char *name) {
  nvtxEventAttributes_t event = {0};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = name;
  nvtxDomainRangePushEx(rl_range_domain(), &event);
}

static inline void rl_range_pop(void) { nvtxDomainRangePop(rl_range_domain()); }
#else
static inline void rl_range_push(const char *name) { (void)name; }
static inline void rl_range_pop(void) {}
#endif

#endif
