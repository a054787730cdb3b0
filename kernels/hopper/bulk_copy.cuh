/* Copies tiles between global and shared memory with the Tensor Memory Accelerator (TMA; compute capability 9.0; PTX ISA 9.0,
 * "cp.async.bulk.tensor"). A tensor map, which the driver encodes on the host, describes a matrix in global memory and the box
 * that one instruction copies. Coordinates are the column and the row of the box's first element. Elements outside the matrix are
 * read as zeros and are not written. */
#ifndef RL_HOPPER_BULK_COPY_CUH
#define RL_HOPPER_BULK_COPY_CUH

#include <cuda.h>

#include "clusters.cuh"

/* Begins to copy a box into shared memory; the copy completes its bytes on the mbarrier. Call it from one thread. */
static __device__ __forceinline__ void load_box(void *to, const CUtensorMap *map, mbarrier *barrier, int32_t column,
                                                int32_t row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(row)
      : "memory");
}

/* Like load_box, but copies to the same shared-memory address of every block of the cluster whose bit is set in block_mask, and
 * completes the bytes on the same mbarrier of each of these blocks. */
static __device__ __forceinline__ void load_box_multicast(void *to, const CUtensorMap *map, mbarrier *barrier, int32_t column,
                                                          int32_t row, uint16_t block_mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], "
      "[%2], %5;" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(row), "h"(block_mask)
      : "memory");
}

/* Begins to copy a box from shared to global memory. Before that, all threads that wrote the box must call fence_async_proxy and
 * then pass a barrier. Call it, commit_stores and the waits from one thread. */
static __device__ __forceinline__ void store_box(const CUtensorMap *map, const void *from, int32_t column, int32_t row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(shared_address(from)), "r"(column), "r"(row)
               : "memory");
}

static __device__ __forceinline__ void commit_stores(void) { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/* Waits until this thread's committed stores have read shared memory, which then may be overwritten (WAR). */
static __device__ __forceinline__ void wait_stores_read(void) { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
/* Waits until this thread's committed stores have completed. */
static __device__ __forceinline__ void wait_stores(void) { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

/* Arrives on the mbarrier of the block `rank` of the cluster. The release has CTA scope, so the other block may not see this
 * thread's earlier stores: use it to report reads (WAR). A release at cluster scope would be slower, because it waits for all
 * outstanding accesses of the thread. */
static __device__ __forceinline__ void mbarrier_arrive_at(mbarrier *barrier, uint32_t rank) {
  asm volatile(
      "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [remote]; }" ::"r"(
          shared_address(barrier)),
      "r"(rank)
      : "memory");
}

#endif
