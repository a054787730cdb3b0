/* Copies from global to shared memory that nobody waits for until copies_done (PTX ISA 9.0, "cp.async"). */
#ifndef RL_TRAIN_CUDA_ASYNC_COPY_H
#define RL_TRAIN_CUDA_ASYNC_COPY_H

#include <stdint.h>

static __device__ __forceinline__ uint32_t shared_address(const void *of) { return (uint32_t)__cvta_generic_to_shared(of); }

static __device__ __forceinline__ void copy_16_bytes(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

static __device__ __forceinline__ void copies_done(void) { asm volatile("cp.async.wait_all;" ::: "memory"); }

#endif
