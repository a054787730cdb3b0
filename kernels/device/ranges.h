/* NVTX ranges in the domain "rooflined", seen by nsys and by the activity pass. Without NVTX's header (it comes with CUDA and
 * needs no library) they are nothing; without a tool attached they cost a test of a pointer. Of the device's thread. */
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
