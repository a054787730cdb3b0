/* Copies from global to shared memory that nobody waits for until copies_done (PTX ISA 9.0, "cp.async"). */
#ifndef RL_KERNELS_ASYNC_COPY_CUH
#define RL_KERNELS_ASYNC_COPY_CUH

#include <stdint.h>

static __device__ __forceinline__ uint32_t shared_address(const void *of) { return (uint32_t)__cvta_generic_to_shared(of); }

static __device__ __forceinline__ void copy_16_bytes(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

/* Rows first, first + 1, … of from[end][stride], as many and as long as those of `to`, each of which has 16 bytes more than it
 * gets, to keep them apart in the banks; zeros behind the end. All threads, THREADS of them. */
template <int THREADS, class Value, int ROWS, int PITCH>
static __device__ __forceinline__ void copy_rows(const Value *from, uint32_t stride, uint32_t first, uint32_t end,
                                                 Value (&to)[ROWS][PITCH]) {
  constexpr int UNIT = 16 / sizeof(Value), UNITS = PITCH / UNIT - 1;
  static_assert(PITCH % UNIT == 0, "whole 16 bytes");
  for (int i = threadIdx.x; i < ROWS * UNITS; i += THREADS) {
    const uint32_t row = i / UNITS, part = i % UNITS * UNIT;
    if (first + row < end) copy_16_bytes(&to[row][part], &from[(size_t)(first + row) * stride + part]);
    else *(uint4 *)&to[row][part] = make_uint4(0, 0, 0, 0);
  }
}

/* What this thread copied since the last call is a group of its own; copies_done_but<N>: all groups but the last N are there. */
static __device__ __forceinline__ void end_copies(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> static __device__ __forceinline__ void copies_done_but(void) {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

static __device__ __forceinline__ void copies_done(void) { asm volatile("cp.async.wait_all;" ::: "memory"); }

#endif
