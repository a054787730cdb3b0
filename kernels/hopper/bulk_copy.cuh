/* Copies of tiles between global and shared memory by the bulk tensor copy engine (compute capability 9.0; PTX ISA 9.0,
 * "cp.async.bulk.tensor"). A tensor map describes a matrix in global memory and the box that one instruction copies; the driver
 * encodes it on the host. Coordinates are in elements: column, row. Elements outside of the matrix are read as zeros and not
 * written. */
#ifndef RL_HOPPER_BULK_COPY_CUH
#define RL_HOPPER_BULK_COPY_CUH

#include <cuda.h>

#include "clusters.cuh"

/* Copies a box into shared memory and completes its bytes on the mbarrier. One thread calls it. */
static __device__ __forceinline__ void load_box(void *to, const CUtensorMap *map, mbarrier *barrier, int32_t column,
                                                int32_t row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(row)
      : "memory");
}

/* The same into each block of the cluster whose bit is set in `blocks`, at the same address, with that block's mbarrier. */
static __device__ __forceinline__ void load_box_multicast(void *to, const CUtensorMap *map, mbarrier *barrier, int32_t column,
                                                          int32_t row, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], "
      "[%2], %5;" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(row), "h"(blocks)
      : "memory");
}

/* Copies a box from shared to global memory. The writes to shared memory must be ordered by fence_async_proxy and a barrier. */
static __device__ __forceinline__ void store_box(const CUtensorMap *map, const void *from, int32_t column, int32_t row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(shared_address(from)), "r"(column), "r"(row)
               : "memory");
}

static __device__ __forceinline__ void commit_stores(void) { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/* Waits until the stores of this thread have read shared memory. */
static __device__ __forceinline__ void wait_stores_read(void) { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
/* Waits until the stores of this thread are complete. */
static __device__ __forceinline__ void wait_stores(void) { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
/* Makes this thread's writes to shared memory visible to the copy engine and to wgmma. */
static __device__ __forceinline__ void fence_async_proxy(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* Arrives on the mbarrier of the block `rank` of the cluster. Releases at CTA scope: it orders no stores for the other block, and
 * a release at cluster scope would wait for all outstanding accesses of the thread. */
static __device__ __forceinline__ void mbarrier_arrive_at(mbarrier *barrier, uint32_t rank) {
  asm volatile(
      "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [remote]; }" ::"r"(
          shared_address(barrier)),
      "r"(rank)
      : "memory");
}

#endif
