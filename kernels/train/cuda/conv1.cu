/* The first layer, 1→32 channels on 28×28, in one kernel each way, in FP32; FP16 is conv1_half.cu's. Its 29 MFLOP for a batch
 * of 64 are nothing; what counts is that the normalised image, the 28×28×32 product and the batch itself never go to memory. */
#include "train/cuda/chain.cuh"
#include "train/cuda/conv1.cuh"
#include "train/cuda/vector.cuh"

enum { MAP = RL_P1 * RL_P1 };

/* --- forward: a block makes two pooled rows of one image; a thread makes one pooled pixel of four channels ------------- */

enum { ROWS = 2, PIXELS = ROWS * RL_P1, GROUPS = RL_C1 / 4, SLICES = RL_P1 / ROWS };

template <bool LAST> static __global__ void __launch_bounds__(PIXELS *GROUPS)
    conv1_forward(rl_gather gather, const float *__restrict__ weights, float *__restrict__ pooled, uint8_t *__restrict__ codes) {
  __shared__ float tile[(2 * ROWS + 2) * CONV1_WIDTH];
  uint32_t n = blockIdx.x / SLICES, slice = blockIdx.x % SLICES;
  int group = LAST ? threadIdx.x % GROUPS : threadIdx.x / PIXELS;
  int pixel = LAST ? threadIdx.x / GROUPS : threadIdx.x % PIXELS;
  float w[4 * 9], bias[4];
  chain_wait();
  for (int i = 0; i < 9; i++) *(float4 *)&w[i * 4] = load4(&weights[group * 36 + i * 4]);
  *(float4 *)bias = load4(&weights[RL_C1 * 9 + group * 4]);
  load_image_rows(image_of(gather, n), slice * 2 * ROWS, 2 * ROWS + 2, tile);
  __syncthreads();

  int row = pixel / RL_P1, column = pixel % RL_P1;
  float patch[4][4];
  for (int y = 0; y < 4; y++)
    for (int x = 0; x < 4; x++) patch[y][x] = tile[(2 * row + y) * CONV1_WIDTH + 2 * column + x];
  float best[4];
  int code[4];
  for (int c = 0; c < 4; c++) {
    for (int at = 0; at < 4; at++) {
      float sum = bias[c];
      for (int k = 0; k < 9; k++) sum = fmaf(w[c * 9 + k], patch[at / 2 + k / 3][at % 2 + k % 3], sum);
      if (at == 0 || sum > best[c]) {
        best[c] = sum;
        code[c] = at;
      }
    }
    if (!(best[c] > 0.0f)) code[c] = RL_POOL_RELU_ZERO;
    best[c] = fmaxf(best[c], 0.0f);
  }
  size_t place = slice * PIXELS + pixel;
  if (LAST) {
    size_t to = (n * MAP + place) * RL_C1 + group * 4;
    store4(&pooled[to], make_float4(best[0], best[1], best[2], best[3]));
    *(uchar4 *)&codes[to] = make_uchar4(code[0], code[1], code[2], code[3]);
  } else {
    for (int c = 0; c < 4; c++) {
      size_t to = ((size_t)n * RL_C1 + group * 4 + c) * MAP + place;
      pooled[to] = best[c];
      codes[to] = code[c];
    }
  }
}

int rl_conv1_forward(rl_format format, rl_gather gather, const float *weights, void *pooled, uint8_t *codes, cudaStream_t stream,
                     rl_error *err) {
  if (format.half) return rl_conv1_half_forward(gather, weights, pooled, codes, stream, err);
  return rl_chain("conv1 forward", format.channels_last ? conv1_forward<true> : conv1_forward<false>, gather.batch * SLICES,
                  PIXELS * GROUPS, 0, stream, err, gather, weights, (float *)pooled, codes);
}

/* --- backward ---------------------------------------------------------------------------------------------------------- */

enum {
  WARPS = 16,
  MOST_IMAGES = 64, /* images side by side; more of them are taken in turns */
  TURNS = (MAP / 2 + WARPS - 1) / WARPS
}; /* pixels of an image that a thread takes; as many in NCHW */
static_assert((MAP + 31) / 32 == TURNS, "both layouts take an image in as many turns");

/* NHWC: two blocks an image, half of its pixels each; a lane is a channel. */
static __global__ void __launch_bounds__(WARPS * 32)
    conv1_backward_last(rl_gather gather, const float *__restrict__ d_pooled, const uint8_t *__restrict__ codes,
                        float *__restrict__ partial) {
  __shared__ float tile[CONV1_WIDTH * CONV1_WIDTH], sums[WARPS][CONV1_ROW];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, half = blockIdx.x % 2;
  float mine[10] = {};
  chain_wait();
  for (uint32_t n = blockIdx.x / 2; n < gather.batch; n += gridDim.x / 2) {
    float gradient[TURNS]; /* asked for before the image, so that both are on their way */
    int code[TURNS];
    for (int turn = 0; turn < TURNS; turn++) {
      int pixel = warp + turn * WARPS;
      size_t from = ((size_t)n * MAP + half * (MAP / 2) + pixel) * RL_C1 + lane;
      code[turn] = pixel < MAP / 2 ? codes[from] : RL_POOL_RELU_ZERO;
      gradient[turn] = pixel < MAP / 2 ? d_pooled[from] : 0.0f;
    }
    __syncthreads();
    load_image_rows(image_of(gather, n), 0, CONV1_WIDTH, tile);
    __syncthreads();
    for (int turn = 0; turn < TURNS; turn++)
      add_element(gradient[turn], code[turn], min(half * (MAP / 2) + warp + turn * WARPS, MAP - 1), tile, mine);
  }
  add_channel_sums<WARPS>(mine, sums, partial, blockIdx.x);
}

/* NCHW: two blocks an image, half of its channels each; a warp is a channel, a lane a pixel. */
static __global__ void __launch_bounds__(WARPS * 32)
    conv1_backward_first(rl_gather gather, const float *__restrict__ d_pooled, const uint8_t *__restrict__ codes,
                         float *__restrict__ partial) {
  __shared__ float tile[CONV1_WIDTH * CONV1_WIDTH];
  int lane = threadIdx.x % 32, channel = blockIdx.x % 2 * WARPS + threadIdx.x / 32;
  float mine[10] = {};
  chain_wait();
  for (uint32_t n = blockIdx.x / 2; n < gather.batch; n += gridDim.x / 2) {
    size_t from = ((size_t)n * RL_C1 + channel) * MAP;
    float gradient[TURNS]; /* asked for before the image, so that both are on their way */
    int code[TURNS];
    for (int turn = 0; turn < TURNS; turn++) {
      int pixel = lane + turn * 32;
      code[turn] = pixel < MAP ? codes[from + pixel] : RL_POOL_RELU_ZERO;
      gradient[turn] = pixel < MAP ? d_pooled[from + pixel] : 0.0f;
    }
    __syncthreads();
    load_image_rows(image_of(gather, n), 0, CONV1_WIDTH, tile);
    __syncthreads();
    for (int turn = 0; turn < TURNS; turn++) add_element(gradient[turn], code[turn], min(lane + turn * 32, MAP - 1), tile, mine);
  }
  float *row = &partial[blockIdx.x / 2 * CONV1_ROW];
  for (int k = 0; k < 10; k++) {
    float sum = warp_sum(mine[k]);
    if (lane == 0) row[k < 9 ? channel * 9 + k : RL_C1 * 9 + channel] = sum;
  }
}

static uint32_t images_at_once(uint32_t batch) { return batch < MOST_IMAGES ? batch : (uint32_t)MOST_IMAGES; }

uint32_t rl_conv1_partial_rows(rl_format format, uint32_t batch) {
  if (format.half) return rl_conv1_half_partial_rows(batch);
  return images_at_once(batch) * (format.channels_last ? 2 : 1);
}

int rl_conv1_backward(rl_format format, rl_gather gather, const void *d_pooled, const uint8_t *codes, float *partial,
                      const void *watched, uint32_t watched_count, rl_train_state *state, cudaStream_t stream, rl_error *err) {
  if (format.half) return rl_conv1_half_backward(gather, d_pooled, codes, partial, watched, watched_count, state, stream, err);
  return rl_chain("conv1 backward", format.channels_last ? conv1_backward_last : conv1_backward_first,
                  2 * images_at_once(gather.batch), WARPS * 32, 0, stream, err, gather, (const float *)d_pooled, codes, partial);
}
