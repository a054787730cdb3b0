/* Kernels as real programs have them. They are held out: the rules were written without their metrics (known_causes.c). */
#include <cuda_fp16.h>

#include "kernels.h"

namespace {

enum { TRANSPOSE_EXTENT = 4096, MATRIX_EXTENT = 512, TREE_THREADS = 1024 };

}

__global__ void triad(const float4 *__restrict__ b, const float4 *__restrict__ c, float4 *__restrict__ a, size_t count) {
#pragma unroll 4
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
    float4 x = b[i], y = c[i];
    a[i] = make_float4(x.x + 3 * y.x, x.y + 3 * y.y, x.z + 3 * y.z, x.w + 3 * y.w);
  }
}

/* Reads rows and writes columns. */
__global__ void transpose_without_tiles(const float *from, float *to, int extent) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  to[(size_t)x * extent + y] = from[(size_t)y * extent + x];
}

/* Counts values in 256 bins. The data is skewed: all values are 0 and fall into the first bin. */
__global__ void histogram_in_global(const uint32_t *values, uint32_t *bins, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[values[i] & 255], 1 + (i & 1));
}

__global__ void histogram_in_shared(const uint32_t *values, uint32_t *bins, int count) {
  __shared__ uint32_t local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    atomicAdd(&local[values[i] & 255], 1 + (i & 1));
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[blockIdx.x * 256 + i] = local[i];
}

/* Each thread follows a list through memory; the successor of a node is computed from its content, which is 0. */
__global__ void follow_lists(const uint32_t *nodes, uint32_t *sink, int steps, uint32_t mask) {
  uint32_t node = (blockIdx.x * blockDim.x + threadIdx.x) * 7919u;
  for (int step = 0; step < steps; step++) node = (node * 1664525u + 1013904223u + nodes[node & mask]) >> 1;
  if (node == 0xffffffff) *sink = node;
}

/* Each thread computes one element of C. */
__global__ void multiply_without_tiles(const float *a, const float *b, float *c, int extent) {
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < extent; k++) sum += a[row * extent + k] * b[k * extent + column];
  c[row * extent + column] = sum;
}

/* Computes the gravity of `count` bodies on each thread's body, by tiles in shared memory. */
__global__ void gravity(const float4 *bodies, float4 *forces, int count) {
  __shared__ float4 tile[256];
  float4 self = make_float4(threadIdx.x, blockIdx.x, threadIdx.x * 2, 1), force = make_float4(0, 0, 0, 0);
  for (int first = 0; first < count; first += 256) {
    __syncthreads();
    tile[threadIdx.x] = bodies[first + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int i = 0; i < 256; i++) {
      float x = tile[i].x - self.x, y = tile[i].y - self.y, z = tile[i].z - self.z;
      float inverse = rsqrtf(x * x + y * y + z * z + 1e-6f), strength = tile[i].w * inverse * inverse * inverse;
      force.x += x * strength, force.y += y * strength, force.z += z * strength;
    }
  }
  forces[blockIdx.x * 256 + threadIdx.x] = force;
}

/* Iterates z² + c in each thread; neighbouring threads need different numbers of iterations. */
__global__ void escape_times(uint32_t *counts, int limit) {
  uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  int rounds = (int)((thread * 2654435761u) >> 16) % limit;
  float x = 0, y = 0, cx = 0.1f, cy = 0.2f;
  int count = 0;
  while (count < rounds) {
    float next = x * x - y * y + cx;
    y = 2 * x * y + cy, x = next, count++;
  }
  counts[thread] = count + (x == 12345);
}

__global__ void iterate_exponentials(float *to, int rounds) {
  float value[4] = {0.1f * threadIdx.x, 0.2f, 0.3f, 0.4f};
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int k = 0; k < 4; k++) value[k] = __expf(value[k]);
  to[blockIdx.x * blockDim.x + threadIdx.x] = value[0] + value[1] + value[2] + value[3];
}

/* Sums by a tree in shared memory: after each barrier half as many threads have work. */
__global__ void __launch_bounds__(TREE_THREADS) reduce_by_tree(const float *from, float *to, int rounds) {
  __shared__ float sums[TREE_THREADS];
  float total = 0;
  for (int round = 0; round < rounds; round++) {
    sums[threadIdx.x] = from[threadIdx.x] + round;
    for (int width = TREE_THREADS / 2; width > 0; width /= 2) {
      __syncthreads();
      if (threadIdx.x < width) sums[threadIdx.x] += sums[threadIdx.x + width];
    }
    __syncthreads();
    total += sums[0];
    __syncthreads();
  }
  if (threadIdx.x == 0) to[blockIdx.x] = total;
}

__global__ void iterate(float *to, int rounds) {
  float value[8];
  for (int k = 0; k < 8; k++) value[k] = threadIdx.x + k;
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int k = 0; k < 8; k++) value[k] = value[k] * 0.999f + 0.5f;
  float sum = 0;
  for (float x : value) sum += x;
  to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/* Gives block i an amount of work that is proportional to 1 / (i + 1). */
__global__ void work_by_power_law(float *to, int max_rounds) {
  float value[4] = {1.f * threadIdx.x, 2, 3, 4};
  for (int round = 0; round < max_rounds / (int)(blockIdx.x + 1); round++)
#pragma unroll
    for (int k = 0; k < 4; k++) value[k] = value[k] * 0.999f + 0.5f;
  to[blockIdx.x * blockDim.x + threadIdx.x] = value[0] + value[1] + value[2] + value[3];
}

__global__ void add_few(const float *a, const float *b, float *c, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) c[i] = a[i] + b[i];
}

/* Evaluates a polynomial of degree 256 by Horner's scheme, at four points per thread. */
__global__ void polynomial_in_double(double *to, double coefficient) {
  double x[4], y[4] = {};
  for (int k = 0; k < 4; k++) x[k] = 1e-3 * (threadIdx.x + k);
#pragma unroll 16
  for (int i = 0; i < 256; i++)
#pragma unroll
    for (int k = 0; k < 4; k++) y[k] = y[k] * x[k] + coefficient;
  to[blockIdx.x * blockDim.x + threadIdx.x] = y[0] + y[1] + y[2] + y[3];
}

/* Keeps 96 values live in 40 registers, so that the compiler spills. */
__global__ void __maxnreg__(40) too_few_registers(const float *from, float *to, int rounds) {
  float value[96];
#pragma unroll
  for (int i = 0; i < 96; i++) value[i] = from[threadIdx.x + 32 * i];
#pragma unroll 1
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int i = 0; i < 96; i++) value[i] = value[i] * value[(i + 37) % 96] + 1;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 96; i++) sum += value[i];
  to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

struct particle {
  float mass, others[15];
};

__global__ void sum_masses(const particle *particles, float *to, int count) {
  float sum = 0;
#pragma unroll 4
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) sum += particles[i].mass;
  if (sum == 12345) *to = sum;
}

/* Loads both operands of every tensor-core product from shared memory, with 4-byte loads. */
__global__ void products_from_shared(float *to, int rounds) {
  __shared__ uint32_t a[32 * 8], b[32 * 8];
  for (int i = threadIdx.x; i < 32 * 8; i += blockDim.x) a[i] = b[i] = 0;
  __syncthreads();
  float d[2][4] = {};
  int lane = threadIdx.x % 32;
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int k = 0; k < 2; k++) {
      volatile uint32_t *x = a + k * 128, *y = b + k * 64;
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                   : "+f"(d[k][0]), "+f"(d[k][1]), "+f"(d[k][2]), "+f"(d[k][3])
                   : "r"(x[lane]), "r"(x[lane + 32]), "r"(x[lane + 64]), "r"(x[lane + 96]), "r"(y[lane]), "r"(y[lane + 32]));
    }
  to[blockIdx.x * blockDim.x + threadIdx.x] = d[0][0] + d[0][1] + d[1][2] + d[1][3];
}

/* Waits for each tile before it copies the next. */
__global__ void scale_tile_by_tile(const float4 *from, float4 *to, int tiles) {
  __shared__ float4 tile[128];
  uint32_t address = (uint32_t)__cvta_generic_to_shared(&tile[threadIdx.x]);
  for (int i = 0; i < tiles; i++) {
    const float4 *source = from + ((size_t)blockIdx.x * tiles + i) * 128 + threadIdx.x;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16; cp.async.commit_group; cp.async.wait_group 0;" ::"r"(address),
                 "l"(source)
                 : "memory");
    __syncthreads();
    float4 value = tile[127 - threadIdx.x];
    __syncthreads();
    value.x *= 2;
    to[((size_t)blockIdx.x * tiles + i) * 128 + threadIdx.x] = value;
  }
}

/* Reads several times the same 16 MiB, which fit into L2 but not into L1. */
__global__ void sum_repeatedly(const float4 *from, float *to, int count, int rounds) {
  float sum = 0;
  for (int round = 0; round < rounds; round++)
#pragma unroll 4
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
      float4 value = __ldcg(&from[(i + round * 4099) % count]);
      sum += value.x + value.y + value.z + value.w;
    }
  if (sum == 12345) *to = sum;
}

/* Executes shifts and exclusive ors, and no multiplications. */
__global__ void hash_in_registers(uint32_t *to, int rounds) {
  uint32_t value[4];
  for (int k = 0; k < 4; k++) value[k] = threadIdx.x * 977 + k;
  for (int round = 0; round < rounds; round++)
#pragma unroll
    for (int k = 0; k < 4; k++) value[k] ^= value[k] << 13, value[k] ^= value[k] >> 17, value[k] ^= value[k] << 5;
  to[blockIdx.x * blockDim.x + threadIdx.x] = value[0] ^ value[1] ^ value[2] ^ value[3];
}

namespace {

constexpr int bytes = (int)rules_buffers::bytes;

/* Launches a kernel on a two-dimensional grid of blocks of 32 x 8 threads; returns -1 and fills err on failure. */
template <typename Kernel, typename... Arguments>
int launch_tiles(rl_stream stream, rl_error *err, Kernel kernel, int extent, Arguments... arguments) {
  kernel<<<dim3(extent / 32, extent / 8), dim3(32, 8), 0, (cudaStream_t)stream>>>(arguments..., extent);
  cudaError_t result = cudaGetLastError();
  return result == cudaSuccess ? 0 : rl_fail(err, RL_CUDA, result, "%s", cudaGetErrorString(result));
}

#define TILES_LAUNCH(NAME, ...)                                                                                                \
  {                                                                                                                            \
    NAME, "rules", [](void *, rl_stream stream, rl_error *err) -> int { return launch_tiles(stream, err, __VA_ARGS__); }, NULL \
  }

const rl_launch launches[] = {
    RULES_LAUNCH("triad", triad, buffers.sm_count * 16, 256, 0, (float4 *)buffers.from, (float4 *)buffers.from + bytes / 32,
                 (float4 *)buffers.to, (size_t)bytes / 32),
    TILES_LAUNCH("transpose_naive", transpose_without_tiles, TRANSPOSE_EXTENT, (float *)buffers.from, (float *)buffers.to),
    RULES_LAUNCH("histogram_global", histogram_in_global, buffers.sm_count * 4, 256, 0, buffers.from, buffers.to, 4 << 20),
    RULES_LAUNCH("histogram_shared", histogram_in_shared, buffers.sm_count * 8, 256, 0, buffers.from, buffers.to, 16 << 20),
    RULES_LAUNCH("linked_list", follow_lists, buffers.sm_count * 2, 128, 0, buffers.from, buffers.to, 100, (64u << 20) - 1),
    TILES_LAUNCH("matmul_naive", multiply_without_tiles, MATRIX_EXTENT, (float *)buffers.from, (float *)buffers.from + 1048576,
                 (float *)buffers.to),
    RULES_LAUNCH("nbody", gravity, buffers.sm_count * 8, 256, 0, (float4 *)buffers.from, (float4 *)buffers.to, 2048),
    RULES_LAUNCH("escape_times", escape_times, buffers.sm_count * 32, 256, 0, buffers.to, 512),
    RULES_LAUNCH("exponentials", iterate_exponentials, buffers.sm_count * 8, 256, 0, (float *)buffers.to, 300),
    RULES_LAUNCH("tree_reduction", reduce_by_tree, buffers.sm_count, TREE_THREADS, 0, (float *)buffers.from, (float *)buffers.to,
                 40),
    RULES_LAUNCH("one_block", iterate, 1, 1024, 0, (float *)buffers.to, 2000),
    RULES_LAUNCH("power_law", work_by_power_law, buffers.sm_count * 4, 256, 0, (float *)buffers.to, 20000),
    RULES_LAUNCH("tiny_add", add_few, 16, 256, 0, (float *)buffers.from, (float *)buffers.from + 4096, (float *)buffers.to, 4096),
    RULES_LAUNCH("polynomial_double", polynomial_in_double, buffers.sm_count * 16, 256, 0, (double *)buffers.to, 1.5),
    RULES_LAUNCH("too_few_registers", too_few_registers, buffers.sm_count * 6, 256, 0, (float *)buffers.from, (float *)buffers.to,
                 50),
    RULES_LAUNCH("array_of_structs", sum_masses, buffers.sm_count * 16, 256, 0, (particle *)buffers.from, (float *)buffers.to,
                 bytes / 64),
    RULES_LAUNCH("products_from_shared", products_from_shared, buffers.sm_count * 8, 256, 0, (float *)buffers.to, 400),
    RULES_LAUNCH("tile_by_tile", scale_tile_by_tile, buffers.sm_count * 2, 128, 0, (float4 *)buffers.from, (float4 *)buffers.to,
                 128),
    RULES_LAUNCH("l2_passes", sum_repeatedly, buffers.sm_count * 8, 256, 0, (float4 *)buffers.from, (float *)buffers.to, 1 << 20,
                 16),
    RULES_LAUNCH("integer_hash", hash_in_registers, buffers.sm_count * 8, 256, 0, buffers.to, 300),
};

}  // namespace

const rules_launches held_out_launches = {launches, sizeof launches / sizeof *launches};
