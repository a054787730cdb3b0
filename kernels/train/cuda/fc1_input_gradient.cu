/* Implements rl_fc1_input_gradient (kernels.h): the product of fc1's gradient [batch][128] and fc1's weights [128][2304], in FP16
 * by mma.sync.
 *
 * Division of work: a block has INPUTS inputs and computes IMAGES images after another; a warp computes 16 images × WARP_INPUTS
 * inputs. A block loads its weights before it waits for the previous kernel (the head).
 *
 * Shortest possible time: launch latency and one load from L2. The 302 MFLOP of a batch of 512 take 0.4 µs on an H200. */
#include "pdl.cuh"
#include "train/cuda/kernels.h"
#include "train/cuda/mma.cuh"
#include "train/cuda/vector.cuh"

enum {
  IMAGES = 64,
  INPUTS = 144,    /* 16 blocks for each IMAGES images: 128 blocks at batch 512 */
  MAX_GROUPS = 16, /* of blocks with different images: 256 blocks, two on each SM */
  WARPS = 8,
  THREADS = WARPS * 32,
  WARP_INPUTS = INPUTS / (WARPS / (IMAGES / 16)),
  TILES = WARP_INPUTS / 8, /* of eight inputs */
  VECTOR = 8,              /* FP16 values in 16 bytes */
  WEIGHT_PITCH = INPUTS + VECTOR,
  GRADIENT_PITCH = RL_FC1_OUTPUTS + VECTOR
};
static_assert(RL_FC1_INPUTS % INPUTS == 0 && WARP_INPUTS % 8 == 0, "the inputs must divide into whole tiles");

typedef struct shared_memory {
  __half weights[RL_FC1_OUTPUTS][WEIGHT_PITCH];
  __half gradient[2][IMAGES][GRADIENT_PITCH], results[IMAGES][WEIGHT_PITCH];
} shared_memory;

/* Computes a warp's sums. gradient: the first of its images; weights: its first input. */
static __device__ __forceinline__ void multiply(const __half (*gradient)[GRADIENT_PITCH], const __half *weights,
                                                float (&sums)[TILES][4]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < RL_FC1_OUTPUTS; k += 16) {
    uint32_t a[4];
    ldmatrix_x4(a, shared_address(&gradient[lane % 16][k + lane / 16 * 8]));
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
      uint32_t b[2];
      ldmatrix_x2_trans(b, shared_address(&weights[(k + lane % 16) * WEIGHT_PITCH + tile * 8]));
      mma_m16n8k16(sums[tile], a, b);
    }
  }
}

/* Stores a warp's sums through `results` in shared memory, and waits for the other warps. All threads of the block call it. */
static __device__ __forceinline__ void store_results(const float (&sums)[TILES][4], int row, int column, uint32_t images,
                                                     __half (*results)[WEIGHT_PITCH], __half *to) {
  const int lane = threadIdx.x % 32;
  for (int tile = 0; tile < TILES; tile++)
    for (int half = 0; half < 2; half++)
      *(__half2 *)&results[row + lane / 4 + half * 8][column + tile * 8 + lane % 4 * 2] =
          __floats2half2_rn(sums[tile][half * 2], sums[tile][half * 2 + 1]);
  __syncthreads();
  for (int i = threadIdx.x; i < IMAGES * INPUTS / VECTOR; i += THREADS) {
    const int image = i / (INPUTS / VECTOR), input = i % (INPUTS / VECTOR) * VECTOR;
    if (image < images) *(uint4 *)&to[(size_t)image * RL_FC1_INPUTS + input] = *(const uint4 *)&results[image][input];
  }
}

static __global__ void __launch_bounds__(THREADS)
    fc1_input_gradient(uint32_t batch, const __half *product_gradient, const __half *weights, __half *input_gradient) {
  extern __shared__ __align__(16) char dynamic[];
  shared_memory *shared = (shared_memory *)dynamic;
  const int warp = threadIdx.x / 32, row = warp % (IMAGES / 16) * 16, column = warp / (IMAGES / 16) * WARP_INPUTS;
  const uint32_t first_input = blockIdx.x * INPUTS, stride = gridDim.y * IMAGES;
  for (int i = threadIdx.x; i < RL_FC1_OUTPUTS * INPUTS / VECTOR; i += THREADS) {
    const int output = i / (INPUTS / VECTOR), input = i % (INPUTS / VECTOR) * VECTOR;
    cp_async_16(&shared->weights[output][input], &weights[output * RL_FC1_INPUTS + first_input + input]);
  }
  pdl_wait();
  cp_async_rows<THREADS>(product_gradient, RL_FC1_OUTPUTS, blockIdx.y * IMAGES, batch, shared->gradient[0]);
  for (uint32_t first = blockIdx.y * IMAGES, i = 0; first < batch; first += stride, i++) {
    float sums[TILES][4] = {};
    cp_async_wait_all();
    __syncthreads(); /* RAW: weights and gradient; WAR: results and the next gradient */
    if (first + stride < batch)
      cp_async_rows<THREADS>(product_gradient, RL_FC1_OUTPUTS, first + stride, batch, shared->gradient[(i + 1) % 2]);
    multiply(&shared->gradient[i % 2][row], &shared->weights[0][column], sums);
    store_results(sums, row, column, batch - first, shared->results,
                  &input_gradient[(size_t)first * RL_FC1_INPUTS + first_input]);
  }
}

int rl_fc1_input_gradient(uint32_t batch, const void *product_gradient, const void *weights, void *input_gradient,
                          cudaStream_t stream, rl_error *err) {
  if (rl_cuda_check(cudaFuncSetAttribute(fc1_input_gradient, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(shared_memory)),
                    "reserving shared memory", err) < 0)
    return -1;
  const uint32_t groups = (batch + IMAGES - 1) / IMAGES;
  const dim3 grid(RL_FC1_INPUTS / INPUTS, groups < MAX_GROUPS ? groups : (uint32_t)MAX_GROUPS);
  return rl_pdl_launch("fc1's input gradient", fc1_input_gradient, grid, THREADS, sizeof(shared_memory), stream, err, batch,
                       (const __half *)product_gradient, (const __half *)weights, (__half *)input_gradient);
}
