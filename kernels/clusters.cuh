/* Blocks of a cluster and each other's shared memory (compute capability 9.0; PTX ISA 9.0, "distributed shared memory").
 * Addresses of another block are those of one's own variable, mapped. Nobody may read or write them before the first
 * cluster_barrier nor end before the last.
 *
 * What is sent says itself that it has come, at an arrival in the memory of the block that gets it ("mbarrier", "st.async"): one
 * thread begins that in front of the first cluster_barrier and says in every turn, early or late, how many bytes come; whoever
 * has waited for a turn sees them. Turns are counted from 1, and the next may be sent once all that wait for one have done so.
 * An arrival may also be one of threads of the block, who say in every turn that they have written what others wait for. */
#ifndef RL_KERNELS_CLUSTERS_H
#define RL_KERNELS_CLUSTERS_H

#include "async_copy.cuh"

typedef uint64_t arrival;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900 /* compiled, never launched */

static __device__ __forceinline__ uint32_t rank_in_cluster(void) { return 0; }
static __device__ __forceinline__ void cluster_arrive(void) { __trap(); }
static __device__ __forceinline__ void cluster_arrive_having_read(void) { __trap(); }
static __device__ __forceinline__ void cluster_wait(void) { __trap(); }
static __device__ __forceinline__ float4 read_at(uint32_t, const float *of) { return *(const float4 *)of; }
static __device__ __forceinline__ void write_at(uint32_t, void *of, uint2 v) { *(uint2 *)of = v; }
static __device__ __forceinline__ void begin_arrival(arrival *, uint32_t = 1) { __trap(); }
static __device__ __forceinline__ void end_arrival(arrival *) { __trap(); }
static __device__ __forceinline__ void arrive_at(arrival *) { __trap(); }
static __device__ __forceinline__ void expect_bytes(arrival *, uint32_t) { __trap(); }
static __device__ __forceinline__ bool has_come(arrival *, uint32_t) { return false; }
static __device__ __forceinline__ bool has_come_here(arrival *, uint32_t) { return false; }
static __device__ __forceinline__ void send_to(uint32_t, void *, uint32_t, arrival *) { __trap(); }
static __device__ __forceinline__ void send_to(uint32_t, float *, float2, arrival *) { __trap(); }
static __device__ __forceinline__ void send_to(uint32_t, uint4 *, uint4, arrival *) { __trap(); }

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
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(of)), "r"(rank));
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

static __device__ __forceinline__ void write_at(uint32_t rank, void *of, uint2 v) {
  asm volatile("st.shared::cluster.v2.u32 [%0], {%1, %2};" ::"r"(address_at(rank, of)), "r"(v.x), "r"(v.y) : "memory");
}

static __device__ __forceinline__ void begin_arrival(arrival *of, uint32_t threads = 1) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(of)), "r"(threads) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* When nothing comes any more. */
static __device__ __forceinline__ void end_arrival(arrival *of) {
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(shared_address(of)) : "memory");
}

/* One of the threads that it was begun for; what each of them wrote before is seen by whoever has waited. */
static __device__ __forceinline__ void arrive_at(arrival *of) {
  [[maybe_unused]] uint64_t state;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(shared_address(of)) : "memory");
}

static __device__ __forceinline__ void expect_bytes(arrival *of, uint32_t bytes) {
  [[maybe_unused]] uint64_t state;
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 %0, [%1], %2;"
               : "=l"(state)
               : "r"(shared_address(of)), "r"(bytes)
               : "memory");
}

/* To say no may take half a microsecond. */
static __device__ __forceinline__ bool has_come(arrival *of, uint32_t turn) {
  uint32_t has;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared.b64 p, [%1], %2, %3; selp.b32 %0, 1, 0, p; }"
               : "=r"(has)
               : "r"(shared_address(of)), "r"((turn - 1) & 1), "r"(500)
               : "memory");
  return has;
}

/* The same where all who arrive are of the block: L1 may keep what it has. */
static __device__ __forceinline__ bool has_come_here(arrival *of, uint32_t turn) {
  uint32_t has;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared.b64 p, [%1], %2, %3; selp.b32 %0, 1, 0, p; }"
               : "=r"(has)
               : "r"(shared_address(of)), "r"((turn - 1) & 1), "r"(500)
               : "memory");
  return has;
}

static __device__ __forceinline__ void send_to(uint32_t rank, void *of, uint32_t v, arrival *came) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(address_at(rank, of)),
               "r"(v), "r"(address_at(rank, came))
               : "memory");
}

static __device__ __forceinline__ void send_to(uint32_t rank, float *of, float2 v, arrival *came) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(address_at(rank, of)),
      "f"(v.x), "f"(v.y), "r"(address_at(rank, came))
      : "memory");
}

static __device__ __forceinline__ void send_to(uint32_t rank, uint4 *of, uint4 v, arrival *came) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                   address_at(rank, of)),
               "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(address_at(rank, came))
               : "memory");
}

#endif

static __device__ __forceinline__ void cluster_barrier(void) {
  cluster_arrive();
  cluster_wait();
}

#endif
