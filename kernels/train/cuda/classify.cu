/* Everything between conv2's output and its gradient in one launch, FP16 on tensor cores: fc1, head and fc1's input gradient. A
 * cluster has 32 images. Each of its blocks has an eighth of fc1's inputs, and keeps that part of the weights in shared memory
 * for both directions:
 *
 *   forward   parts[32][128] = in[32][288] · weights[128][288]ᵀ, one such part in each block
 *   barrier
 *   head      each block adds up the parts of four images, and gives the gradients [4][128] to all others
 *   barrier
 *   backward  d_in[32][288] = gradient[32][128] · weights[128][288]
 *
 * so that nothing but the images' own tensors goes through memory, and the weights are on their way before the launch in front
 * has ended. At batch 64 it is 75 MFLOP on 16 multiprocessors, some 2000 cycles of ldmatrix each way. Sums are FP32, in a
 * fixed order. */
#include "clusters.cuh"
#include "train/cuda/chain.cuh"
#include "train/cuda/head.cuh"
#include "train/cuda/mma.cuh"

enum {
  RANKS = 8,
  IMAGES = 32,
  EACH = IMAGES / RANKS, /* images that a block has in the head, a warp one */
  WARPS = 8,
  THREADS = WARPS * 32,
  UNIT = 8, /* halves in 16 bytes */
  SLICE = RL_FLAT / RANKS,
  TILES = SLICE / 16,
  COLUMN_WARPS = WARPS / 2,
  MOST_TILES = (TILES + COLUMN_WARPS - 1) / COLUMN_WARPS,
  /* Pitches: odd numbers of 16-byte units. */
  SLICE_PITCH = SLICE + UNIT,
  HIDDEN_PITCH = RL_FC1 + UNIT,
  PART_PITCH = RL_FC1 + 4,
  MOST_CLUSTERS = 16 /* two a GPC; more images are taken in turns */
};

typedef struct memory {
  __half weights[RL_FC1][SLICE_PITCH];
  union {
    struct {
      __half in[IMAGES][SLICE_PITCH];
      float parts[IMAGES][PART_PITCH];
    };
    float rows[EACH][RL_HEAD_ROW]; /* at the end */
  };
  __half gradient[IMAGES][HIDDEN_PITCH];
} memory;

typedef struct classifier {
  rl_gather gather;
  const __half *in, *weights; /* [batch][2304], [128][2304] */
  const float *head;          /* fc1.bias, fc2.weight, fc2.bias */
  rl_train_state *state;
} classifier;

/* parts: a warp has 16 images × 32 hidden values. */
static __device__ __forceinline__ void multiply_forward(memory &m, int lane, int warp) {
  const int top = warp % 2 * 16, left = warp / 2 * 32;
  const uint32_t a_row = shared_address(&m.in[top + lane % 16][lane / 16 * UNIT]),
                 b_row = shared_address(&m.weights[left + lane / 16 * 8 + lane % 8][lane / 8 % 2 * UNIT]);
  float sum[4][4] = {};
#pragma unroll
  for (int k = 0; k < SLICE / 16; k++) {
    uint32_t a[4], by[2][4];
    load_matrices(a, a_row + k * 16 * 2);
    for (int i = 0; i < 2; i++) load_matrices(by[i], b_row + (i * 16 * SLICE_PITCH + k * 16) * 2);
    for (int i = 0; i < 4; i++) multiply_add(sum[i], a, &by[i / 2][i % 2 * 2]);
  }
  for (int i = 0; i < 4; i++)
    for (int half = 0; half < 2; half++)
      *(float2 *)&m.parts[top + half * 8 + lane / 4][left + i * 8 + lane % 4 * 2] =
          make_float2(sum[i][half * 2], sum[i][half * 2 + 1]);
}

/* The parts of images first, … in all blocks of the cluster. */
static __device__ __forceinline__ void forward(const classifier &c, uint32_t slice, uint32_t first, memory &m, int lane,
                                               int warp) {
  cp_async_rows<THREADS>(&c.in[slice], RL_FLAT, first, c.gather.batch, m.in);
  cp_async_wait_all();
  __syncthreads();
  multiply_forward(m, lane, warp);
  cluster_barrier();
}

/* Four hidden values of an image: the parts of all blocks, bias and ReLU. */
static __device__ __forceinline__ float4 hidden(const memory &m, int image, int lane, float4 bias) {
  float4 sum = bias;
#pragma unroll
  for (uint32_t rank = 0; rank < RANKS; rank++) {
    float4 v = ld_dsmem(rank, &m.parts[image][lane * 4]);
    sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
  }
  return rectified(sum);
}

/* d_in: a warp has 16 images × every fourth 16 columns of the slice. */
static __device__ __forceinline__ void multiply_backward(const memory &m, int lane, int warp, uint32_t first, uint32_t batch,
                                                         __half *d_in) {
  const int top = warp % 2 * 16;
  const uint32_t a_row = shared_address(&m.gradient[top + lane % 16][lane / 16 * UNIT]),
                 b_row = shared_address(&m.weights[lane % 16][warp / 2 * 16 + lane / 16 * UNIT]);
  float sum[MOST_TILES][2][4] = {};
#pragma unroll
  for (int k = 0; k < RL_FC1 / 16; k++) {
    uint32_t a[4];
    load_matrices(a, a_row + k * 16 * 2);
#pragma unroll
    for (int i = 0; i < MOST_TILES; i++) {
      uint32_t by[4];
      if (warp / 2 + i * COLUMN_WARPS >= TILES) continue;
      load_transposed(by, b_row + (k * 16 * SLICE_PITCH + i * COLUMN_WARPS * 16) * 2);
      for (int c = 0; c < 2; c++) multiply_add(sum[i][c], a, &by[c * 2]);
    }
  }
  for (int i = 0; i < MOST_TILES; i++)
    for (int half = 0; half < 2; half++) {
      uint32_t n = first + top + half * 8 + lane / 4;
      if (n >= batch || warp / 2 + i * COLUMN_WARPS >= TILES) continue;
      __half *to = &d_in[(size_t)n * RL_FLAT + (warp / 2 + i * COLUMN_WARPS) * 16 + lane % 4 * 2];
      for (int c = 0; c < 2; c++) *(__half2 *)&to[c * 8] = __floats2half2_rn(sum[i][c][half * 2], sum[i][c][half * 2 + 1]);
    }
}

static __global__ void __launch_bounds__(THREADS, 1)
    classify_train(classifier c, __half *__restrict__ d_fc1, __half *__restrict__ d_in, float *__restrict__ partial) {
  extern __shared__ __align__(16) unsigned char shared[];
  memory &m = *(memory *)shared;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t rank = rank_in_cluster(), slice = rank * SLICE;
  cp_async_rows<THREADS>(&c.weights[slice], RL_FLAT, 0, RL_FC1, m.weights);
  const head_weights weights = load_head_weights(c.head, lane);
  head_gradients gradients = {};
  bool overflow = false;
  chain_wait();
  const float factor = c.state->scale.scale / c.gather.batch;
  for (uint32_t first = blockIdx.x / RANKS * IMAGES; first < c.gather.batch; first += gridDim.x / RANKS * IMAGES) {
    forward(c, slice, first, m, lane, warp);
    if (warp < EACH) {
      const int image = rank * EACH + warp;
      const uint32_t n = first + image;
      uint2 stored = make_uint2(0, 0);
      if (n < c.gather.batch) {
        const uint32_t label = label_of(c.gather, n);
        const float4 h = hidden(m, image, lane, weights.fc1_bias);
        float probability[RL_CLASSES];
        int answer = 0;
        gradients.loss += classify(h, weights, label, probability, &answer);
        __half *to = &d_fc1[(size_t)n * RL_FC1 + lane * 4];
        store4((__half *)&stored, head_back(h, weights, probability, label, factor, &gradients));
        *(uint2 *)to = stored;
        overflow |= !finite4(load4((const __half *)&stored)); /* an infinity may come from rounding to FP16 */
      }
      for (uint32_t to = 0; to < RANKS; to++) st_dsmem(to, &m.gradient[image][lane * 4], stored);
    }
    cluster_barrier();
    multiply_backward(m, lane, warp, first, c.gather.batch, &d_in[slice]);
  }
  if (overflow || !isfinite(gradients.loss)) c.state->overflow = 1;
  if (warp < EACH) store_head_row(gradients, lane, m.rows[warp]);
  __syncthreads();
  add_head_rows(m.rows, EACH, partial);
}

static __global__ void __launch_bounds__(THREADS, 1)
    classify_evaluate(classifier c, float *__restrict__ losses, uint8_t *__restrict__ correct) {
  extern __shared__ __align__(16) unsigned char shared[];
  memory &m = *(memory *)shared;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t rank = rank_in_cluster(), slice = rank * SLICE;
  cp_async_rows<THREADS>(&c.weights[slice], RL_FLAT, 0, RL_FC1, m.weights);
  const head_weights weights = load_head_weights(c.head, lane);
  chain_wait();
  for (uint32_t first = blockIdx.x / RANKS * IMAGES; first < c.gather.batch; first += gridDim.x / RANKS * IMAGES) {
    forward(c, slice, first, m, lane, warp);
    const int image = rank * EACH + warp;
    const uint32_t n = first + image;
    if (warp < EACH && n < c.gather.batch) {
      const uint32_t label = label_of(c.gather, n), position = position_of(c.gather, n);
      float probability[RL_CLASSES];
      int answer = 0;
      float loss = classify(hidden(m, image, lane, weights.fc1_bias), weights, label, probability, &answer);
      if (lane == 0) {
        losses[position] = loss;
        correct[position] = answer == (int)label;
      }
    }
    cluster_barrier();
  }
  end_evaluated_batch(c.state);
}

static uint32_t clusters(uint32_t batch) {
  uint32_t wanted = (batch + IMAGES - 1) / IMAGES;
  return wanted < MOST_CLUSTERS ? wanted : (uint32_t)MOST_CLUSTERS;
}

static int reserve_memory(const void *kernel, rl_error *err) {
  return rl_cuda_ok(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(memory)),
                    "reserving shared memory", err);
}

static classifier classifier_of(const rl_classifier *from) {
  return {from->gather, (const __half *)from->in, (const __half *)from->weights, from->head, from->state};
}

int rl_classify_supported(rl_error *err) {
  cudaFuncAttributes code = {};
  int device = 0, able = 0;
  if (rl_cuda_ok(cudaGetDevice(&device), "asking for the device", err) ||
      rl_cuda_ok(cudaDeviceGetAttribute(&able, cudaDevAttrClusterLaunch, device), "asking for clusters of blocks", err) ||
      rl_cuda_ok(cudaFuncGetAttributes(&code, classify_train), "looking at the code", err))
    return -1;
  if (able && code.ptxVersion >= 90) return 0;
  return rl_fail_at(err, "/engine",
                    "engine merged needs clusters of blocks, compute capability 9.0 and code for it; engine fused does not");
}

uint32_t rl_classify_rows(uint32_t batch) { return clusters(batch) * RANKS; }

int rl_classify_train(const rl_classifier *classifier, void *d_fc1, void *d_in, float *partial, cudaStream_t stream,
                      rl_error *err) {
  if (reserve_memory((const void *)classify_train, err)) return -1;
  return rl_chain_clusters("classifying", classify_train, RANKS, rl_classify_rows(classifier->gather.batch), THREADS,
                           sizeof(memory), stream, err, classifier_of(classifier), (__half *)d_fc1, (__half *)d_in, partial);
}

int rl_classify_evaluate(const rl_classifier *classifier, float *losses, uint8_t *correct, cudaStream_t stream, rl_error *err) {
  if (reserve_memory((const void *)classify_evaluate, err)) return -1;
  return rl_chain_clusters("evaluating", classify_evaluate, RANKS, rl_classify_rows(classifier->gather.batch), THREADS,
                           sizeof(memory), stream, err, classifier_of(classifier), losses, correct);
}
