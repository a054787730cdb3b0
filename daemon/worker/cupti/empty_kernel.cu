/* A kernel that is never launched. cache_flush.c loads and unloads its module, so that the driver invalidates the instruction
 * caches. */
extern "C" __global__ void rl_empty_kernel() {}
