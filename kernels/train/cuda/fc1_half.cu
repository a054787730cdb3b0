/* Implements rl_fc1_half_forward and rl_fc1_half_backward (kernels.h): the products of fc1 (2304 inputs, 128 outputs) in FP16 by
 * mma.sync. cuBLASLt computes them for larger batches (fc1.cu). At small batches these kernels take less time, because they load
 * the operands that the previous kernel does not write before they wait for it (pdl.cuh), and because both gradients are one
 * launch.
 *
 * Division of work, where a block computes up to IMAGES images at a time:
 *
 *   forward          a block multiplies DEPTH of the inputs by OUTPUTS of the outputs, a warp 16 images by 16 outputs
 *   weight gradient  a block has WEIGHT_INPUTS inputs and all outputs, a warp 16 outputs. It loops over the images of the batch
 *   input gradient   a block has INPUTS inputs and loops over groups of images; a warp computes 16 images × WARP_INPUTS inputs
 *
 * Shortest possible time: launch latency and one load from L2. The 302 MFLOP of a gradient at batch 512 take 0.4 µs on an H200.
 */
#include "pdl.cuh"
#include "train/cuda/kernels.h"
#include "train/cuda/mma.cuh"
#include "train/cuda/vector.cuh"

enum {
  IMAGES = 64,
  WARPS = 8,
  THREADS = WARPS * 32,
  VECTOR = 8, /* FP16 values in 16 bytes, also the padding of a row */
  GRADIENT_PITCH = RL_FC1_OUTPUTS + VECTOR
};

static uint32_t image_groups(uint32_t batch) { return (batch + IMAGES - 1) / IMAGES; }

/* --- forward ----------------------------------------------------------------------------------------------------------- */

enum {
  DEPTH = RL_FC1_INPUTS / RL_FC1_HALF_PARTS,
  CHUNK = DEPTH / 2, /* the first products need only the first half of the inputs */
  OUTPUTS = 32,
  WEIGHT_PITCH = DEPTH + VECTOR,
  INPUT_PITCH = CHUNK + VECTOR
};
static_assert(RL_FC1_INPUTS % RL_FC1_HALF_PARTS == 0 && CHUNK % 16 == 0, "the depth must divide into whole products");
static_assert(WARPS == IMAGES / 16 * (OUTPUTS / 16), "a warp must have 16 images and 16 outputs");

typedef struct forward_memory {
  __half weights[OUTPUTS][WEIGHT_PITCH], inputs[DEPTH / CHUNK][IMAGES][INPUT_PITCH];
} forward_memory;

/* Adds the products of a chunk to the warp's sums. inputs: the first of its images; weights: the chunk's first input of the first
 * of its outputs. */
static __device__ __forceinline__ void multiply_chunk(const __half (*inputs)[INPUT_PITCH], const __half *weights,
                                                      float (&sums)[2][4]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < CHUNK; k += 16) {
    uint32_t a[4], b[4];
    ldmatrix_x4(a, shared_address(&inputs[lane % 16][k + lane / 16 * 8]));
    ldmatrix_x4(b, shared_address(&weights[(lane / 16 * 8 + lane % 8) * WEIGHT_PITCH + k + lane / 8 % 2 * 8]));
    mma_m16n8k16(sums[0], a, &b[0]);
    mma_m16n8k16(sums[1], a, &b[2]);
  }
}

static __global__ void __launch_bounds__(THREADS)
    fc1_forward(uint32_t batch, const __half *inputs, const __half *weights, float *parts) {
  extern __shared__ __align__(16) char dynamic[];
  forward_memory *shared = (forward_memory *)dynamic;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, image = warp % (IMAGES / 16) * 16,
            output = warp / (IMAGES / 16) * 16;
  const uint32_t first_input = blockIdx.x * DEPTH, first_output = blockIdx.y * OUTPUTS, first_image = blockIdx.z * IMAGES;
  float sums[2][4] = {};
  cp_async_rows<THREADS>(&weights[first_input], RL_FC1_INPUTS, first_output, RL_FC1_OUTPUTS, shared->weights);
  pdl_wait();
  for (int chunk = 0; chunk < DEPTH / CHUNK; chunk++) {
    cp_async_rows<THREADS>(&inputs[first_input + chunk * CHUNK], RL_FC1_INPUTS, first_image, batch, shared->inputs[chunk]);
    cp_async_commit_group();
  }
  cp_async_wait_group<1>();
  __syncthreads();
  multiply_chunk(&shared->inputs[0][image], &shared->weights[output][0], sums);
  cp_async_wait_group<0>();
  __syncthreads();
  multiply_chunk(&shared->inputs[1][image], &shared->weights[output][CHUNK], sums);
  for (int half = 0; half < 2; half++) {
    const uint32_t n = first_image + image + lane / 4 + half * 8;
    float *to = &parts[((size_t)blockIdx.x * batch + n) * RL_FC1_OUTPUTS + first_output + output + lane % 4 * 2];
    for (int tile = 0; tile < 2 && n < batch; tile++)
      *(float2 *)&to[tile * 8] = make_float2(sums[tile][half * 2], sums[tile][half * 2 + 1]);
  }
}

int rl_fc1_half_forward(uint32_t batch, const void *inputs, const void *weights, float *parts, cudaStream_t stream,
                        rl_error *err) {
  if (rl_cuda_check(cudaFuncSetAttribute(fc1_forward, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(forward_memory)),
                    "reserving shared memory", err) < 0)
    return -1;
  return rl_pdl_launch("fc1 forward", fc1_forward, dim3(RL_FC1_HALF_PARTS, RL_FC1_OUTPUTS / OUTPUTS, image_groups(batch)),
                       THREADS, sizeof(forward_memory), stream, err, batch, (const __half *)inputs, (const __half *)weights,
                       parts);
}

/* --- gradient of the weights ------------------------------------------------------------------------------------------- */

enum {
  WEIGHT_INPUTS = 48,
  WEIGHT_BLOCKS = RL_FC1_INPUTS / WEIGHT_INPUTS,
  WEIGHT_TILES = WEIGHT_INPUTS / 8 /* of eight inputs */
};
static_assert(RL_FC1_INPUTS % WEIGHT_INPUTS == 0 && WEIGHT_INPUTS % 16 == 0, "the inputs must divide into pairs of tiles");
static_assert(WARPS * 16 == RL_FC1_OUTPUTS, "a warp must have 16 outputs");

typedef struct backward_arguments {
  uint32_t batch, weight_blocks; /* weight_blocks: WEIGHT_BLOCKS, or 0 if the gradient of the weights is not computed */
  const __half *product_gradient, *inputs, *weights;
  __half *input_gradient;
  float *weight_gradient;
} backward_arguments;

typedef struct weight_memory {
  __half gradient[2][IMAGES][GRADIENT_PITCH], inputs[2][IMAGES][WEIGHT_INPUTS + VECTOR];
} weight_memory;

/* Adds the products of IMAGES images to the warp's sums. output: its first output. */
static __device__ __forceinline__ void multiply_images(const __half (*gradient)[GRADIENT_PITCH],
                                                       const __half (*inputs)[WEIGHT_INPUTS + VECTOR], int output,
                                                       float (&sums)[WEIGHT_TILES][4]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < IMAGES; n += 16) {
    uint32_t a[4];
    ldmatrix_x4_trans(a, shared_address(&gradient[n + lane / 16 * 8 + lane % 8][output + lane / 8 % 2 * 8]));
#pragma unroll
    for (int tile = 0; tile < WEIGHT_TILES; tile += 2) {
      uint32_t b[4];
      ldmatrix_x4_trans(b, shared_address(&inputs[n + lane % 16][tile * 8 + lane / 16 * 8]));
      mma_m16n8k16(sums[tile], a, &b[0]);
      mma_m16n8k16(sums[tile + 1], a, &b[2]);
    }
  }
}

static __device__ void compute_weight_gradient(const backward_arguments &args, uint32_t block, weight_memory *shared) {
  const int lane = threadIdx.x % 32, output = threadIdx.x / 32 * 16;
  const __half *inputs = &args.inputs[block * WEIGHT_INPUTS];
  float sums[WEIGHT_TILES][4] = {};
  cp_async_rows<THREADS>(inputs, RL_FC1_INPUTS, 0, args.batch, shared->inputs[0]);
  pdl_wait(); /* the previous kernel does not write fc1's inputs */
  cp_async_rows<THREADS>(args.product_gradient, RL_FC1_OUTPUTS, 0, args.batch, shared->gradient[0]);
  for (uint32_t first = 0, i = 0; first < args.batch; first += IMAGES, i++) {
    const uint32_t next = (i + 1) % 2;
    cp_async_wait_all();
    __syncthreads(); /* RAW: inputs and gradient; WAR: those that the next copies replace */
    if (first + IMAGES < args.batch) {
      cp_async_rows<THREADS>(inputs, RL_FC1_INPUTS, first + IMAGES, args.batch, shared->inputs[next]);
      cp_async_rows<THREADS>(args.product_gradient, RL_FC1_OUTPUTS, first + IMAGES, args.batch, shared->gradient[next]);
    }
    multiply_images(shared->gradient[i % 2], shared->inputs[i % 2], output, sums);
  }
  for (int half = 0; half < 2; half++) {
    float *to = &args.weight_gradient[(output + lane / 4 + half * 8) * RL_FC1_INPUTS + block * WEIGHT_INPUTS + lane % 4 * 2];
    for (int tile = 0; tile < WEIGHT_TILES; tile++)
      *(float2 *)&to[tile * 8] = make_float2(sums[tile][half * 2], sums[tile][half * 2 + 1]);
  }
}

/* --- gradient of the inputs -------------------------------------------------------------------------------------------- */

enum {
  INPUTS = 144, /* 16 blocks for each IMAGES images: 128 blocks at batch 512 */
  INPUT_BLOCKS = RL_FC1_INPUTS / INPUTS,
  MAX_GROUPS = 16, /* of blocks with different images: 256 blocks, two on each SM */
  WARP_INPUTS = INPUTS / (WARPS / (IMAGES / 16)),
  TILES = WARP_INPUTS / 8, /* of eight inputs */
  RESULT_PITCH = INPUTS + VECTOR
};
static_assert(RL_FC1_INPUTS % INPUTS == 0 && WARP_INPUTS % 8 == 0, "the inputs must divide into whole tiles");

typedef struct input_memory {
  __half weights[RL_FC1_OUTPUTS][RESULT_PITCH];
  __half gradient[2][IMAGES][GRADIENT_PITCH], results[IMAGES][RESULT_PITCH];
} input_memory;

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
      ldmatrix_x2_trans(b, shared_address(&weights[(k + lane % 16) * RESULT_PITCH + tile * 8]));
      mma_m16n8k16(sums[tile], a, b);
    }
  }
}

/* Stores a warp's sums through `results` in shared memory, and waits for the other warps. All threads of the block call it. */
static __device__ __forceinline__ void store_results(const float (&sums)[TILES][4], int row, int column, uint32_t images,
                                                     __half (*results)[RESULT_PITCH], __half *to) {
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

static __device__ void compute_input_gradient(const backward_arguments &args, uint32_t block, uint32_t groups,
                                              input_memory *shared) {
  const int warp = threadIdx.x / 32, row = warp % (IMAGES / 16) * 16, column = warp / (IMAGES / 16) * WARP_INPUTS;
  const uint32_t first_input = block % INPUT_BLOCKS * INPUTS, first_image = block / INPUT_BLOCKS * IMAGES,
                 stride = groups * IMAGES;
  cp_async_rows<THREADS>(&args.weights[first_input], RL_FC1_INPUTS, 0, RL_FC1_OUTPUTS, shared->weights);
  pdl_wait();
  cp_async_rows<THREADS>(args.product_gradient, RL_FC1_OUTPUTS, first_image, args.batch, shared->gradient[0]);
  for (uint32_t first = first_image, i = 0; first < args.batch; first += stride, i++) {
    float sums[TILES][4] = {};
    cp_async_wait_all();
    __syncthreads(); /* RAW: weights and gradient; WAR: results and the next gradient */
    if (first + stride < args.batch)
      cp_async_rows<THREADS>(args.product_gradient, RL_FC1_OUTPUTS, first + stride, args.batch, shared->gradient[(i + 1) % 2]);
    multiply(&shared->gradient[i % 2][row], &shared->weights[0][column], sums);
    store_results(sums, row, column, args.batch - first, shared->results,
                  &args.input_gradient[(size_t)first * RL_FC1_INPUTS + first_input]);
  }
}

/* --- both gradients ---------------------------------------------------------------------------------------------------- */

/* The first blocks compute the gradient of the weights. */
static __global__ void __launch_bounds__(THREADS) fc1_backward(backward_arguments args) {
  extern __shared__ __align__(16) char dynamic[];
  if (blockIdx.x < args.weight_blocks) compute_weight_gradient(args, blockIdx.x, (weight_memory *)dynamic);
  else
    compute_input_gradient(args, blockIdx.x - args.weight_blocks, (gridDim.x - args.weight_blocks) / INPUT_BLOCKS,
                           (input_memory *)dynamic);
}
static_assert(sizeof(weight_memory) <= sizeof(input_memory), "the launch reserves memory for the gradient of the inputs");

int rl_fc1_half_backward(uint32_t batch, const void *product_gradient, const void *inputs, const void *weights,
                         void *input_gradient, float *weight_gradient, cudaStream_t stream, rl_error *err) {
  const backward_arguments args = {.batch = batch,
                                   .weight_blocks = weight_gradient ? (uint32_t)WEIGHT_BLOCKS : 0,
                                   .product_gradient = (const __half *)product_gradient,
                                   .inputs = (const __half *)inputs,
                                   .weights = (const __half *)weights,
                                   .input_gradient = (__half *)input_gradient,
                                   .weight_gradient = weight_gradient};
  if (rl_cuda_check(cudaFuncSetAttribute(fc1_backward, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(input_memory)),
                    "reserving shared memory", err) < 0)
    return -1;
  const uint32_t groups = image_groups(batch) < MAX_GROUPS ? image_groups(batch) : (uint32_t)MAX_GROUPS;
  return rl_pdl_launch("fc1 backward", fc1_backward, args.weight_blocks + INPUT_BLOCKS * groups, THREADS, sizeof(input_memory),
                       stream, err, args);
}
