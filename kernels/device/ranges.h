/* NVTX ranges in the domain "rooflined", for Nsight Systems and the activity pass. The functions do nothing when the header of
 * NVTX was not found at build time. It is part of CUDA and needs no library. Call the functions on the device's thread. */
#ifndef RL_DEVICE_RANGES_H
#define RL_DEVICE_RANGES_H

#ifdef __cplusplus
extern "C" {
#endif

void rl_nvtx_range_push(const char *name);
void rl_nvtx_range_pop(void);

#ifdef __cplusplus
}
#endif
#endif
