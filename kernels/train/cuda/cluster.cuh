/* Blocks of a cluster and each other's shared memory (compute capability 9.0; PTX ISA 9.0, "distributed shared memory").
 * Addresses of another block are those of one's own variable, mapped. Nobody may read or write them before the first
 * cluster_barrier nor end before the last. */
#ifndef RL_TRAIN_CUDA_CLUSTER_H
#define RL_TRAIN_CUDA_CLUSTER_H

#include "async_copy.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900 /* compiled, never launched */

static __device__ __forceinline__ uint32_t rank_in_cluster(void) { return 0; }
static __device__ __forceinline__ void cluster_arrive(void) { __trap(); }
static __device__ __forceinline__ void cluster_arrive_having_read(void) { __trap(); }
static __device__ __forceinline__ void cluster_wait(void) { __trap(); }
static __device__ __forceinline__ float4 read_at(uint32_t, const float *of) { return *(const float4 *)of; }
static __device__ __forceinline__ void write_at(uint32_t, void *of, uint32_t v) { *(uint32_t *)of = v; }
static __device__ __forceinline__ void write_at(uint32_t, void *of, uint2 v) { *(uint2 *)of = v; }
static __device__ __forceinline__ void write_at(uint32_t, void *of, uint4 v) { *(uint4 *)of = v; }
static __device__ __forceinline__ void write_at(uint32_t, float *of, float2 v) { *(float2 *)of = v; }

#else

static __device__ __forceinline__ uint32_t rank_in_cluster(void) {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/* What any thread of the cluster wrote before it arrived is seen by all that have waited. */
static __device__ __forceinline__ void cluster_arrive(void) { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
/* What it has read may be written to, and that is all: waits for no stores. */
static __device__ __forceinline__ void cluster_arrive_having_read(void) {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
static __device__ __forceinline__ void cluster_wait(void) { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

static __device__ __forceinline__ uint32_t address_at(uint32_t rank, const void *of) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(of)), "r"(rank));
  return address;
}

static __device__ __forceinline__ float4 read_at(uint32_t rank, const float *of) {
  float4 v;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address_at(rank, of))
               : "memory");
  return v;
}

static __device__ __forceinline__ void write_at(uint32_t rank, void *of, uint32_t v) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address_at(rank, of)), "r"(v) : "memory");
}

static __device__ __forceinline__ void write_at(uint32_t rank, void *of, uint2 v) {
  asm volatile("st.shared::cluster.v2.u32 [%0], {%1, %2};" ::"r"(address_at(rank, of)), "r"(v.x), "r"(v.y) : "memory");
}

static __device__ __forceinline__ void write_at(uint32_t rank, void *of, uint4 v) {
  asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address_at(rank, of)), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}

static __device__ __forceinline__ void write_at(uint32_t rank, float *of, float2 v) {
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(address_at(rank, of)), "f"(v.x), "f"(v.y) : "memory");
}

#endif

static __device__ __forceinline__ void cluster_barrier(void) {
  cluster_arrive();
  cluster_wait();
}

#endif
