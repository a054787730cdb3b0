/* Software pipelines from global to shared memory (cp.async, TMA) with few and many stages, and tensor cores that wait for shared
 * memory. */
#include "kernels.h"

namespace {

enum { TILE_BYTES = 4096, THREADS = 256, BYTES_PER_THREAD = TILE_BYTES / THREADS, MAX_STAGES = 8 };

__device__ uint32_t shared_address(const void *pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

__device__ void mbarrier_init(uint64_t *barrier) {
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}

__device__ void bulk_copy(void *to, const void *from, uint64_t *barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(TILE_BYTES) : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
      "l"(from), "r"(TILE_BYTES), "r"(shared_address(barrier))
      : "memory");
}

__device__ void mbarrier_wait(uint64_t *barrier, uint32_t phase) {
  asm volatile("{ .reg .pred done; retry: mbarrier.try_wait.parity.shared.b64 done, [%0], %1; @!done bra retry; }" ::"r"(
                   shared_address(barrier)),
               "r"(phase)
               : "memory");
}

}  // namespace

/* Sums `tiles` tiles per block, which it copies by cp.async. While one tile is summed, STAGES - 1 tiles are in flight. */
template <int STAGES> __global__ void sum_by_cp_async(const unsigned char *from, uint32_t *sink, int tiles) {
  __shared__ __align__(128) unsigned char stages[STAGES][TILE_BYTES];
  const unsigned char *source = from + (size_t)blockIdx.x * tiles * TILE_BYTES + threadIdx.x * BYTES_PER_THREAD;
  const int ahead = STAGES - 1;
  uint32_t sum = 0;
  auto copy = [&](int tile) {
    if (tile < tiles)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                       shared_address(&stages[tile % STAGES][threadIdx.x * BYTES_PER_THREAD])),
                   "l"(source + (size_t)tile * TILE_BYTES)
                   : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  for (int tile = 0; tile < ahead; tile++) copy(tile);
  for (int tile = 0; tile < tiles; tile++) {
    copy(tile + ahead);
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
    __syncthreads();
    sum += *(uint32_t *)&stages[tile % STAGES][(threadIdx.x * 4 + 1028) % TILE_BYTES];
    __syncthreads();
  }
  if (sum == 12345) *sink = sum;
}

/* Sums the same tiles, which it copies by cp.async.bulk (TMA). */
template <int STAGES> __global__ void sum_by_tma(const unsigned char *from, uint32_t *sink, int tiles) {
#if __CUDA_ARCH__ >= 900
  __shared__ __align__(128) unsigned char stages[STAGES][TILE_BYTES];
  __shared__ uint64_t full[STAGES];
  const unsigned char *source = from + (size_t)blockIdx.x * tiles * TILE_BYTES;
  uint32_t sum = 0;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) mbarrier_init(&full[stage]);
    for (int tile = 0; tile < STAGES && tile < tiles; tile++)
      bulk_copy(stages[tile], source + (size_t)tile * TILE_BYTES, &full[tile]);
  }
  __syncthreads();
  for (int tile = 0; tile < tiles; tile++) {
    int stage = tile % STAGES, next = tile + STAGES;
    mbarrier_wait(&full[stage], tile / STAGES & 1);
    sum += *(uint32_t *)&stages[stage][(threadIdx.x * 4 + 1028) % TILE_BYTES];
    __syncthreads();
    if (threadIdx.x == 0 && next < tiles) bulk_copy(stages[stage], source + (size_t)next * TILE_BYTES, &full[stage]);
  }
  if (sum == 12345) *sink = sum;
#endif
}

/* Computes D = A B + D by mma.sync. REUSE: number of products that use operands once these are loaded from shared memory. */
template <int REUSE> __global__ void mma_from_shared(uint32_t *sink, int rounds) {
  __shared__ __align__(16) uint32_t tile[16 * 32 * 4];
  for (int i = threadIdx.x; i < 16 * 32 * 4; i += blockDim.x) tile[i] = 0;
  __syncthreads();
  float d[4][4] = {};
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int group = 0; group < 4; group++) {
      uint32_t a[4], b[4], address = shared_address(&tile[(threadIdx.x % 256 + round % 8 * 32) * 4]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                   : "r"(address));
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                   : "r"(address));
#pragma unroll
      for (int i = 0; i < REUSE; i++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[(group + i) % 4][0]), "+f"(d[(group + i) % 4][1]), "+f"(d[(group + i) % 4][2]),
                       "+f"(d[(group + i) % 4][3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[i % 2]), "r"(b[i % 2 + 2]));
    }
  float sum = 0;
  for (int group = 0; group < 4; group++)
    for (float x : d[group]) sum += x;
  if (sum == 12345) *sink = 1;
}

namespace {

const rl_launch launches[] = {
    RULES_LAUNCH("cp_async_one_stage", sum_by_cp_async<1>, buffers.sm_count, THREADS, 0, (unsigned char *)buffers.from,
                 buffers.to, 256),
    RULES_LAUNCH("cp_async_stages", sum_by_cp_async<8>, buffers.sm_count * 4, THREADS, 0, (unsigned char *)buffers.from,
                 buffers.to, 120),
    RULES_LAUNCH("tma_one_stage", sum_by_tma<1>, buffers.sm_count, THREADS, 0, (unsigned char *)buffers.from, buffers.to, 256),
    RULES_LAUNCH("tma_stages", sum_by_tma<8>, buffers.sm_count * 4, THREADS, 0, (unsigned char *)buffers.from, buffers.to, 120),
    RULES_LAUNCH("mma_from_shared", mma_from_shared<1>, buffers.sm_count * 8, 256, 0, buffers.to, 200),
    RULES_LAUNCH("mma_reuses", mma_from_shared<16>, buffers.sm_count * 8, 256, 0, buffers.to, 50),
};

}

const rules_launches pipeline_launches = {launches, sizeof launches / sizeof *launches};
