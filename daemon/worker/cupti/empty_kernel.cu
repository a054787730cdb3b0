/* Loaded and unloaded by cache_flush.c, so that the driver invalidates the instruction caches. Never launched. */
extern "C" __global__ void rl_empty_kernel() {}
