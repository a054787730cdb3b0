/* NVTX ranges in the domain "rooflined", which Nsight Systems and the activity pass show. They are empty functions where NVTX's
 * header, which comes with CUDA and needs no library, was not found at build time. On the device's thread. */
#ifndef RL_DEVICE_RANGES_H
#define RL_DEVICE_RANGES_H

#ifdef __cplusplus
extern "C" {
#endif

void rl_range_push(const char *name);
void rl_range_pop(void);

#ifdef __cplusplus
}
#endif
#endif
