/* Asynchronous copies from global to shared memory (PTX ISA 9.0, "cp.async"). RAW: the thread that issued a copy must wait for
 * it; other threads see the data after a barrier that follows this wait. */
#ifndef RL_KERNELS_ASYNC_COPY_CUH
#define RL_KERNELS_ASYNC_COPY_CUH

#include <stdint.h>

/* Returns the address of a variable in shared memory as an address of the shared state space. */
static __device__ __forceinline__ uint32_t shared_address(const void *generic) {
  return (uint32_t)__cvta_generic_to_shared(generic);
}

/* Begins to copy 16 bytes; both addresses are aligned to 16 bytes. */
static __device__ __forceinline__ void cp_async_16(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

/* Begins to copy 8 bytes; both addresses are aligned to 8 bytes. */
static __device__ __forceinline__ void cp_async_8(void *to, const void *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

/* Begins to copy ROWS rows of the matrix from[row_count][stride] into `to`, beginning with row first_row. Where the matrix has no
 * more rows, writes zeros. A row of `to` has PITCH elements; its last 16 bytes are padding against bank conflicts and are not
 * written. All THREADS threads of the block call it. */
template <int THREADS, class Value, int ROWS, int PITCH>
static __device__ __forceinline__ void cp_async_rows(const Value *from, uint32_t stride, uint32_t first_row, uint32_t row_count,
                                                     Value (&to)[ROWS][PITCH]) {
  constexpr int VECTOR_SIZE = 16 / sizeof(Value), VECTORS_PER_ROW = PITCH / VECTOR_SIZE - 1;
  static_assert(PITCH % VECTOR_SIZE == 0, "a row of `to` must consist of whole vectors of 16 bytes");
  for (int i = threadIdx.x; i < ROWS * VECTORS_PER_ROW; i += THREADS) {
    const uint32_t row = i / VECTORS_PER_ROW, column = i % VECTORS_PER_ROW * VECTOR_SIZE;
    if (first_row + row < row_count) cp_async_16(&to[row][column], &from[(size_t)(first_row + row) * stride + column]);
    else *(uint4 *)&to[row][column] = make_uint4(0, 0, 0, 0);
  }
}

/* Commits the copies that this thread has issued since the last call as one group. */
static __device__ __forceinline__ void cp_async_commit_group(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* Waits for all groups of this thread except the newest N. */
template <int N> static __device__ __forceinline__ void cp_async_wait_group(void) {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Waits for all copies of this thread. */
static __device__ __forceinline__ void cp_async_wait_all(void) { asm volatile("cp.async.wait_all;" ::: "memory"); }

/* Makes this thread's writes to shared memory visible to TMA and wgmma (the async proxy). */
static __device__ __forceinline__ void fence_async_proxy(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#endif
