/* Thread block clusters and distributed shared memory (compute capability 9.0; PTX ISA 9.0, "distributed shared memory",
 * "mbarrier", "st.async").
 *
 * The rank of a block is its index in the cluster. Some functions take a rank and the address of a variable in the shared memory
 * of the calling block. They access the same variable in the shared memory of the block with that rank. A block may access the
 * shared memory of another block only after the first cluster_barrier and before the last one.
 *
 * st_async stores to the shared memory of another block and counts its bytes on an mbarrier of that receiving block. One thread
 * of the receiving block initialises the mbarrier before the first cluster_barrier, and calls mbarrier_arrive_expect_tx once in
 * every phase, before or after bytes have been received. A thread that has waited for a phase sees all bytes of that phase.
 * Phases count from 1. WAR: a block sends the bytes of phase n + 1 to the same addresses only after all readers have read the
 * bytes of phase n.
 *
 * An mbarrier may also count arrivals of threads. These threads belong to the block whose shared memory contains the mbarrier.
 * Each of them calls mbarrier_arrive once in every phase, after its writes. */
#ifndef RL_KERNELS_CLUSTERS_H
#define RL_KERNELS_CLUSTERS_H

#include "async_copy.cuh"

typedef uint64_t mbarrier;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900 /* compiled, never launched */

static __device__ __forceinline__ uint32_t rank_in_cluster(void) { return 0; }
static __device__ __forceinline__ void cluster_arrive(void) { __trap(); }
static __device__ __forceinline__ void cluster_arrive_relaxed(void) { __trap(); }
static __device__ __forceinline__ void cluster_wait(void) { __trap(); }
static __device__ __forceinline__ void mbarrier_init(mbarrier *, uint32_t = 1) { __trap(); }
static __device__ __forceinline__ void mbarrier_inval(mbarrier *) { __trap(); }
static __device__ __forceinline__ void mbarrier_arrive(mbarrier *) { __trap(); }
static __device__ __forceinline__ void mbarrier_arrive_expect_tx(mbarrier *, uint32_t) { __trap(); }
static __device__ __forceinline__ bool mbarrier_try_wait(mbarrier *, uint32_t) { return false; }
static __device__ __forceinline__ bool mbarrier_try_wait_cta(mbarrier *, uint32_t) { return false; }
static __device__ __forceinline__ void st_async(uint32_t, void *, uint32_t, mbarrier *) { __trap(); }
static __device__ __forceinline__ void st_async(uint32_t, float *, float2, mbarrier *) { __trap(); }
static __device__ __forceinline__ void st_async(uint32_t, uint4 *, uint4, mbarrier *) { __trap(); }
static __device__ __forceinline__ void bulk_copy(void *, const void *, uint32_t, mbarrier *) { __trap(); }
static __device__ __forceinline__ void fence_all_async_proxies(void) { __trap(); }

#else

static __device__ __forceinline__ uint32_t rank_in_cluster(void) {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/* cluster_arrive arrives with release and cluster_wait waits with acquire: after the wait, a thread sees what all threads of the
 * cluster wrote before they arrived. */
static __device__ __forceinline__ void cluster_arrive(void) { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
/* Arrives without release. This orders only the caller's earlier reads (WAR): a thread that has waited may overwrite what the
 * caller has read, but is not guaranteed to see what the caller has stored. */
static __device__ __forceinline__ void cluster_arrive_relaxed(void) {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
static __device__ __forceinline__ void cluster_wait(void) { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

/* Returns the shared::cluster address that the variable `local` has in the block with this rank. */
static __device__ __forceinline__ uint32_t mapa_shared(uint32_t rank, const void *local) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(local)), "r"(rank));
  return address;
}

/* Initialises an mbarrier. arrivals: number of calls of mbarrier_arrive and mbarrier_arrive_expect_tx that end a phase. */
static __device__ __forceinline__ void mbarrier_init(mbarrier *barrier, uint32_t arrivals = 1) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Invalidates an mbarrier. Call it after the last phase, before the memory is used for another purpose. */
static __device__ __forceinline__ void mbarrier_inval(mbarrier *barrier) {
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/* Arrives with release: threads that have waited for the phase see what the caller wrote before. */
static __device__ __forceinline__ void mbarrier_arrive(mbarrier *barrier) {
  [[maybe_unused]] uint64_t state;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(shared_address(barrier)) : "memory");
}

/* Arrives with release, and adds `bytes` to the bytes that must be received before the phase ends. */
static __device__ __forceinline__ void mbarrier_arrive_expect_tx(mbarrier *barrier, uint32_t bytes) {
  [[maybe_unused]] uint64_t state;
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 %0, [%1], %2;"
               : "=l"(state)
               : "r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

/* Returns whether the phase has ended. If it has not, the thread may be suspended for up to about 500 ns before the function
 * returns false. Acquires at cluster scope. */
static __device__ __forceinline__ bool mbarrier_try_wait(mbarrier *barrier, uint32_t phase) {
  uint32_t ended;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared.b64 p, [%1], %2, %3; selp.b32 %0, 1, 0, p; }"
               : "=r"(ended)
               : "r"(shared_address(barrier)), "r"((phase - 1) & 1), "r"(500)
               : "memory");
  return ended;
}

/* Like mbarrier_try_wait, but acquires only at CTA scope, so that the contents of L1 stay valid. After the wait, a thread
 * sees the earlier stores of its own block and the bytes that TMA has copied. It may not see ordinary stores of other blocks. */
static __device__ __forceinline__ bool mbarrier_try_wait_cta(mbarrier *barrier, uint32_t phase) {
  uint32_t ended;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared.b64 p, [%1], %2, %3; selp.b32 %0, 1, 0, p; }"
               : "=r"(ended)
               : "r"(shared_address(barrier)), "r"((phase - 1) & 1), "r"(500)
               : "memory");
  return ended;
}

/* Stores a value of 4, 8 or 16 bytes to the variable `to` of the block with this rank, and counts the bytes on the mbarrier
 * `barrier` of the same block. */
static __device__ __forceinline__ void st_async(uint32_t rank, void *to, uint32_t value, mbarrier *barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(mapa_shared(rank, to)),
               "r"(value), "r"(mapa_shared(rank, barrier))
               : "memory");
}

static __device__ __forceinline__ void st_async(uint32_t rank, float *to, float2 value, mbarrier *barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(mapa_shared(rank, to)),
      "f"(value.x), "f"(value.y), "r"(mapa_shared(rank, barrier))
      : "memory");
}

static __device__ __forceinline__ void st_async(uint32_t rank, uint4 *to, uint4 value, mbarrier *barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                   mapa_shared(rank, to)),
               "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(mapa_shared(rank, barrier))
               : "memory");
}

/* Begins to copy bytes from global memory to the shared memory of this block, and counts them on the mbarrier `barrier`, like
 * st_async. The addresses and `bytes` are multiples of 16. The copy is an access of the async proxy: see fence_all_async_proxies.
 */
static __device__ __forceinline__ void bulk_copy(void *to, const void *from, uint32_t bytes, mbarrier *barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

/* Orders earlier accesses of this thread, and those of other threads that are ordered before them, before its later bulk copies.
 */
static __device__ __forceinline__ void fence_all_async_proxies(void) { asm volatile("fence.proxy.async;" ::: "memory"); }

#endif

/* Waits until the phase has ended, as mbarrier_try_wait_cta does. */
static __device__ __forceinline__ void mbarrier_spin_cta(mbarrier *barrier, uint32_t phase) {
  while (!mbarrier_try_wait_cta(barrier, phase)) {
  }
}

static __device__ __forceinline__ void cluster_barrier(void) {
  cluster_arrive();
  cluster_wait();
}

#endif
