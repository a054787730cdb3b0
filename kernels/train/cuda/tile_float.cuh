/* The format FP32 of the products in tile.cuh, on FMA units. tile.cuh documents the functions of a format.
 *
 * conv2_forward uses Winograd's algorithm F(2×2, 3×3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks"). Here
 * a tile is one of the 36 2×2 pooling windows of an image: its four outputs are computed from 4×4 input pixels. With
 *
 *   V = Bᵀ·input·B    U = G·filter·Gᵀ    M = Σ over input channels of V∘U    four outputs = Aᵀ·M·A
 *
 * V, U and M have 4 × 4 = 16 elements, called terms. Over all tiles and channels, each term of M is a matrix product [36
 * tiles][32 inputs] · [32 inputs][32 outputs]. The 16 products take 0.59 million FMA (2.3 µs on an H200); a direct convolution
 * would take 1.33 million. Half a warp (16 lanes) computes one term. No other thread reads that term of V, so M overwrites V.
 *
 * conv2_gradients computes both gradients directly. Max-pooling and ReLU leave at most one gradient in a window. A direct
 * convolution takes 9 FMA for each of the two gradients of such a window and none for the others; Winograd takes 16 for all. A
 * warp computes one row of windows for half of the output channels; a lane is an input channel. The 4 × 14 input pixels under the
 * row and the gradients of these pixels stay in registers, and the warp goes through the output channels (window_row.cuh). In the
 * end, the gradient of an input pixel is the sum of two or four of these parts, and that of a weight the sum of six. The latter
 * are added up in stages of a few channels, because shared memory does not hold all of them. Shortest possible time: 2.6 µs if
 * every window has a gradient.
 *
 * Shared memory: operands of the products are rows of 32 floats. An XOR swizzle of the 16-byte vectors of a row keeps the
 * accesses of a warp, to four adjacent tiles or to every fourth output, free of bank conflicts. */
#ifndef RL_TRAIN_CUDA_TILE_FLOAT_H
#define RL_TRAIN_CUDA_TILE_FLOAT_H

#include "train/cuda/tile.cuh"
#include "train/cuda/vector.cuh"
#include "train/cuda/window_row.cuh"

struct float_tile_format : tile_format<float> {
  typedef struct weight_sums {
    float *row;     /* in global memory; the gradients of all images are added up there */
    bool has_image; /* true: the row holds the gradient of at least one image */
  } weight_sums;
  enum {
    VECTOR = 4, /* floats in 16 bytes */
    WARPS = THREADS / 32,
    OUTPUT_WARPS = RL_POOLED2_PIXELS * TILE_CHANNELS / 4 / 32, /* warps that transform outputs */
    TERMS = 16,
    PRODUCT_WARPS = TERMS / 2, /* warps that compute products */
    TILES = RL_POOLED2_SIDE * RL_POOLED2_SIDE,
    ROW_FLOATS = TILE_CHANNELS,           /* floats in a row of an operand */
    WEIGHT_TERM_FLOATS = 32 * ROW_FLOATS, /* a term of U: [output][input] */
    TERM_FLOATS = TILES * ROW_FLOATS,     /* a term of V or M: [tile][channel] */
    IN_PITCH = RL_CONV1_CHANNELS,
    LOADED_WEIGHT_PITCH = CONV2_K,
    WEIGHT_VALUES = TERMS * WEIGHT_TERM_FLOATS,
    RECORD_FLOATS = 8, /* a record of out_gradient */
    RECORD_ROW_FLOATS = TILE_CHANNELS * RECORD_FLOATS + TILE_CHANNELS / 4 * VECTOR,
    OUT_GRADIENT_VALUES = RL_POOLED2_SIDE * RECORD_ROW_FLOATS,
    CONV2_GRADIENTS_TOGETHER = 1,
    HALF_CHANNELS = TILE_CHANNELS / 2,
    STAGE_CHANNELS = 4, /* output channels of each half whose weight gradients are added up at a time */
    STAGE_SUMS = STAGE_CHANNELS * CONV2_K,
    STAGES = HALF_CHANNELS / STAGE_CHANNELS,
    CONV2_FORWARD_SCRATCH_FLOATS = TERMS * TERM_FLOATS,
    CONV2_WARP_SCRATCH_FLOATS = 0,
    CONV2_FORWARD_WARPS = TILE_WARPS,
    CONV1_IS_SPLIT = 1,
    CONV1_GRADIENT_IS_SPLIT = 1,
    HAS_FP32_MASTER_WEIGHTS = 0,
    SLICE_PADDING = VECTOR,
    FC1_PRODUCT_GRADIENT_PITCH = RL_FC1_OUTPUTS + VECTOR,
    FC1_PRODUCT_GRADIENT_TILE_PITCH = TILE_ROWS + VECTOR,
    FC1_INPUT_TILE_PITCH = TILE_COLUMNS + VECTOR
  };
  static_assert(TILES % WARPS == 0 && RL_POOLED2_SIDE % (TILES / WARPS) == 0 && (int)WARPS == 2 * RL_POOLED2_SIDE,
                "a warp must transform a part of one row of tiles, and compute a row of windows of half of the channels");
  static_assert((int)STAGE_CHANNELS == 4 && STAGES % 2 == 0,
                "records have padding after every stage, and sums[1] must be free at the end");
  static_assert((int)RL_CONV1_CHANNELS == (int)ROW_FLOATS, "rows of inputs and of outputs must have the same length");

  static __device__ __forceinline__ float2 pool_channels(const float a[4], const float b[4], const float *biases,
                                                         uint8_t *argmaxes, bool *overflow) {
    *overflow |= false; /* not checked, but without this statement the compiler generates other machine code than the one that was
                           measured */
    float pooled[2];
    bias_relu_pool(a[0], a[1], a[2], a[3], biases[0], &pooled[0], &argmaxes[0]);
    bias_relu_pool(b[0], b[1], b[2], b[3], biases[1], &pooled[1], &argmaxes[1]);
    return make_float2(pooled[0], pooled[1]);
  }

  /* Shared memory of conv2_gradients, without its inputs `in`. */
  struct conv2_gradient_memory {
    union {
      struct {
        alignas(16) float weights[TILE_CHANNELS * CONV2_K], out_gradient[OUT_GRADIENT_VALUES];
      };
      float first_half[RL_POOLED2_SIDE * WINDOW_ROW_PIXELS * RL_CONV1_CHANNELS]; /* input gradient of each row of windows */
    };
    /* Weight gradients of two stages. At the end, sums[1] holds the input gradients from the second half of the channels. */
    alignas(16) float sums[2][WARPS * STAGE_SUMS];
  };

  static __device__ __forceinline__ bool computes_products() { return warp() < PRODUCT_WARPS; }
  /* Returns the term that this half warp computes. */
  static __device__ __forceinline__ int term() { return threadIdx.x / 16; }
  /* The 16 lanes of a term form a grid of 4 × 4. lane_major and lane_minor return the coordinates of the lane. They are chosen so
   * that lanes whose indices differ by one or two read the same 16 bytes in one access. */
  static __device__ __forceinline__ int lane_major() { return (lane() >> 1 & 1) | (lane() >> 2 & 2); }
  static __device__ __forceinline__ int lane_minor() { return (lane() & 1) | (lane() >> 1 & 2); }

  /* The four functions return offsets in a term, in floats: of a 16-byte vector, or of one element, in the row of a tile (V, M)
   * or of an output (U). The XOR swizzles the vectors of a row. */
  static __device__ __forceinline__ int tile_vector_offset(int tile, int vector) {
    return tile * ROW_FLOATS + (vector ^ (tile << 2 & 4 | tile >> 1 & 1)) * VECTOR;
  }
  static __device__ __forceinline__ int weight_vector_offset(int output, int vector) {
    return output * ROW_FLOATS + (vector ^ (output / 4 & 7)) * VECTOR;
  }
  static __device__ __forceinline__ int tile_element_offset(int tile, int channel) {
    return tile_vector_offset(tile, channel / VECTOR) + channel % VECTOR;
  }
  static __device__ __forceinline__ int weight_element_offset(int output, int input) {
    return weight_vector_offset(output, input / VECTOR) + input % VECTOR;
  }

  static __device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
  }
  /* Computes sum[4] += scalar a · vector b. */
  static __device__ __forceinline__ void fma_row(float sum[4], float a, float4 b) {
    sum[0] = fmaf(a, b.x, sum[0]), sum[1] = fmaf(a, b.y, sum[1]), sum[2] = fmaf(a, b.z, sum[2]), sum[3] = fmaf(a, b.w, sum[3]);
  }
  /* Computes sum[4 rows][4] += outer product a · bᵀ. */
  static __device__ __forceinline__ void fma_outer(float sum[16], float4 a, float4 b) {
    fma_row(&sum[0], a.x, b);
    fma_row(&sum[4], a.y, b);
    fma_row(&sum[8], a.z, b);
    fma_row(&sum[12], a.w, b);
  }
  /* Computes sum[4] += row vector a · matrix b[4 rows]. */
  static __device__ __forceinline__ void fma_product(float sum[4], float4 a, const float4 b[4]) {
    fma_row(sum, a.x, b[0]);
    fma_row(sum, a.y, b[1]);
    fma_row(sum, a.z, b[2]);
    fma_row(sum, a.w, b[3]);
  }
  static __device__ __forceinline__ float4 to_float4(const float v[4]) { return make_float4(v[0], v[1], v[2], v[3]); }

  /* --- transforms of operands into terms; a lane transforms one channel */

  /* A thread's weights of conv2 as in global memory: an input channel (the lane) of every WARPS-th output channel. */
  enum { OUTPUTS_PER_WARP = (TILE_CHANNELS + WARPS - 1) / WARPS };
  struct loaded_weights {
    float taps[OUTPUTS_PER_WARP][TILE_TAPS];
  };
  static __device__ __forceinline__ bool has_output(int i) {
    return i < TILE_CHANNELS / WARPS || warp() + i * WARPS < TILE_CHANNELS;
  }
  /* Loads weights [32 outputs][9 taps][32 inputs] from global memory. */
  static __device__ __forceinline__ loaded_weights load_weights(const float *from) {
    const float *first = &from[warp() * CONV2_K + lane()];
    loaded_weights loaded;
#pragma unroll
    for (int i = 0; i < OUTPUTS_PER_WARP; i++)
#pragma unroll
      for (int t = 0; t < TILE_TAPS; t++)
        loaded.taps[i][t] = has_output(i) ? __ldcg(&first[i * WARPS * CONV2_K + t * RL_CONV1_CHANNELS]) : 0.0f;
    return loaded;
  }

  /* Computes U from the loaded weights. */
  static __device__ __forceinline__ void prepare_weights(const loaded_weights &loaded, float *weights) {
#pragma unroll
    for (int i = 0; i < OUTPUTS_PER_WARP; i++) {
      const float *from = loaded.taps[i];
      if (!has_output(i)) return;
      float *to = &weights[weight_element_offset(warp() + i * WARPS, lane())], left_product[4][3];
#pragma unroll
      for (int x = 0; x < 3; x++) {
        const float first = from[x], middle = 0.5f * from[3 + x], last = from[6 + x], ends = 0.5f * (first + last);
        left_product[0][x] = first, left_product[1][x] = ends + middle, left_product[2][x] = ends - middle,
        left_product[3][x] = last;
      }
#pragma unroll
      for (int y = 0; y < 4; y++) {
        const float middle = 0.5f * left_product[y][1], ends = 0.5f * (left_product[y][0] + left_product[y][2]);
        const float result[4] = {left_product[y][0], ends + middle, ends - middle, left_product[y][2]};
#pragma unroll
        for (int x = 0; x < 4; x++) to[(4 * y + x) * WEIGHT_TERM_FLOATS] = result[x];
      }
    }
  }

  /* Computes V of COUNT adjacent tiles, beginning with tile `tile`. */
  template <int COUNT> static __device__ __forceinline__ void transform_inputs(const float *in, int tile, float *v) {
    const float *from = &in[(tile / RL_POOLED2_SIDE * 2 * RL_POOLED1_SIDE + tile % RL_POOLED2_SIDE * 2) * IN_PITCH + lane()];
    float left_product[4][2 * COUNT + 2];
#pragma unroll
    for (int x = 0; x < 2 * COUNT + 2; x++) {
      float d[4];
#pragma unroll
      for (int y = 0; y < 4; y++) d[y] = from[(y * RL_POOLED1_SIDE + x) * IN_PITCH];
      left_product[0][x] = d[0] - d[2], left_product[1][x] = d[1] + d[2], left_product[2][x] = d[2] - d[1],
      left_product[3][x] = d[1] - d[3];
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
      float *to = &v[tile_element_offset(tile + i, lane())];
#pragma unroll
      for (int y = 0; y < 4; y++) {
        const float *d = &left_product[y][2 * i], result[4] = {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]};
#pragma unroll
        for (int x = 0; x < 4; x++) to[(4 * y + x) * TERM_FLOATS] = result[x];
      }
    }
  }

  /* Returns the offset in out_gradient of the record of a row of windows and an output channel: the six gradients of the row,
   * then six bytes with their argmaxes. Four floats of padding after every fourth channel make the stores of unpool free of most
   * bank conflicts. */
  static __device__ __forceinline__ int record_offset(int row, int channel) {
    return row * RECORD_ROW_FLOATS + channel * RECORD_FLOATS + channel / 4 * VECTOR;
  }

  static __device__ __forceinline__ void unpool(int pixel, int channel, uchar4 argmax, float4 gradient, float *out_gradient) {
    const int window = pixel % RL_POOLED2_SIDE;
    float *record = &out_gradient[record_offset(pixel / RL_POOLED2_SIDE, channel)];
    const float gradients[4] = {gradient.x, gradient.y, gradient.z, gradient.w};
    const uint8_t argmaxes[4] = {argmax.x, argmax.y, argmax.z, argmax.w};
#pragma unroll
    for (int c = 0; c < 4; c++) {
      record[c * RECORD_FLOATS + window] = gradients[c];
      ((uint8_t *)&record[c * RECORD_FLOATS + RL_POOLED2_SIDE])[window] = argmaxes[c];
    }
  }

  /* Computes M of one term: v[36][32] = v[36][32] · uᵀ[32][32], in place. A lane computes every fourth tile × two groups of four
   * outputs, which are 16 apart. WAR: all lanes have read v before __syncwarp, and overwrite it only afterwards. */
  static __device__ __forceinline__ void multiply_forward(float *v, const float *u) {
    float sum[TILES / 4][8] = {};
#pragma unroll 1
    for (int vector = 0; vector < ROW_FLOATS / VECTOR; vector++) {
      float4 b[8];
#pragma unroll
      for (int o = 0; o < 8; o++)
        b[o] = load4(&u[weight_vector_offset(4 * lane_minor() + o / 4 * 16, vector) + o % 4 * ROW_FLOATS]);
#pragma unroll
      for (int i = 0; i < TILES / 4; i++) {
        const float4 a = load4(&v[tile_vector_offset(lane_major(), vector) + 4 * i * ROW_FLOATS]);
#pragma unroll
        for (int o = 0; o < 8; o++) sum[i][o] = dot(a, b[o], sum[i][o]);
      }
    }
    __syncwarp();
    store_products(sum, v);
  }

  /* Stores the results of a lane of multiply_forward. */
  static __device__ __forceinline__ void store_products(const float sum[TILES / 4][8], float *to) {
#pragma unroll
    for (int i = 0; i < TILES / 4 * 2; i++)
      store4(&to[tile_vector_offset(lane_major(), lane_minor() + i % 2 * 4) + i / 2 * 4 * ROW_FLOATS],
             to_float4(&sum[i / 2][i % 2 * 4]));
  }

  /* Computes the four outputs of each tile, Aᵀ·M·A. A thread computes one tile of four channels. */
  template <class Epilogue> static __device__ __forceinline__ void transform_outputs(const float *m, Epilogue epilogue) {
    const int tile = threadIdx.x / 8, channel = threadIdx.x % 8 * 4;
    if (tile >= TILES) return;
    float left[4][4], right[4][4], product[4][4]; /* `product`: [channel][position in the window] */
#pragma unroll
    for (int y = 0; y < 4; y++) {
      float x[4][4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float4 v = load4(&m[(4 * y + i) * TERM_FLOATS + tile_vector_offset(tile, channel / VECTOR)]);
        x[i][0] = v.x, x[i][1] = v.y, x[i][2] = v.z, x[i][3] = v.w;
      }
#pragma unroll
      for (int c = 0; c < 4; c++) left[y][c] = x[0][c] + x[1][c] + x[2][c], right[y][c] = x[1][c] - x[2][c] - x[3][c];
    }
#pragma unroll
    for (int c = 0; c < 4; c++) {
      product[c][0] = left[0][c] + left[1][c] + left[2][c], product[c][1] = right[0][c] + right[1][c] + right[2][c];
      product[c][2] = left[1][c] - left[2][c] - left[3][c], product[c][3] = right[1][c] - right[2][c] - right[3][c];
    }
    epilogue(tile, channel, product);
  }

  template <class AfterProducts, class Epilogue>
  static __device__ __forceinline__ void conv2_forward(const float *in, const loaded_weights &loaded, float *weights,
                                                       float *scratch, AfterProducts after_products, Epilogue epilogue) {
    transform_inputs<TILES / WARPS>(in, warp() * (TILES / WARPS), scratch);
    prepare_weights(loaded, weights);
    __syncthreads();
    if (computes_products()) multiply_forward(&scratch[term() * TERM_FLOATS], &weights[term() * WEIGHT_TERM_FLOATS]);
    __syncthreads();
    after_products();
    transform_outputs(scratch, epilogue);
  }

  static __device__ __forceinline__ weight_sums init_weight_sums(float *row) { return {row, false}; }

  /* Adds one output channel's contribution to in_gradient, and sets weight_gradient, for a row of windows. record: gradients and
   * argmaxes (record_offset). list: the windows to add (window_list). The other arguments belong to the lane's input channel. */
  static __device__ __forceinline__ void accumulate_channel(const float *record, uint32_t list, const float *weights,
                                                            const float input[WINDOW_ROW_PIXELS],
                                                            float in_gradient[WINDOW_ROW_PIXELS],
                                                            float weight_gradient[TILE_TAPS]) {
    const float4 first = load4(record);
    const float2 last = *(const float2 *)(record + 4);
    const float gradients[RL_POOLED2_SIDE] = {first.x, first.y, first.z, first.w, last.x, last.y};
    float taps[TILE_TAPS];
#pragma unroll
    for (int t = 0; t < TILE_TAPS; t++) taps[t] = weights[t * RL_CONV1_CHANNELS], weight_gradient[t] = 0.0f;
    add_windows(list, gradients, taps, input, in_gradient, weight_gradient);
  }

  /* Adds up the weight gradients of a stage over the rows of windows, in this order, and stores the sums in `to`, or adds them to
   * its contents. */
  static __device__ __forceinline__ void add_weight_rows(const float *sums, int stage, const weight_sums &to) {
#pragma unroll 1
    for (int i = threadIdx.x; i < 2 * STAGE_CHANNELS * CONV2_K / 2; i += THREADS) {
      const int channel = i / (CONV2_K / 2), half = channel / STAGE_CHANNELS, k = i % (CONV2_K / 2) * 2;
      const float *from = &sums[half * RL_POOLED2_SIDE * STAGE_SUMS + channel % STAGE_CHANNELS * CONV2_K + k];
      float2 sum = *(const float2 *)from;
#pragma unroll
      for (int row = 1; row < RL_POOLED2_SIDE; row++) {
        const float2 v = *(const float2 *)&from[row * STAGE_SUMS];
        sum.x += v.x, sum.y += v.y;
      }
      float2 *total = (float2 *)&to.row[(half * HALF_CHANNELS + stage * STAGE_CHANNELS + channel % STAGE_CHANNELS) * CONV2_K + k];
      if (to.has_image) atomicAdd(&total->x, sum.x), atomicAdd(&total->y, sum.y); /* does not wait for the contents */
      else *total = sum;
    }
  }

  /* Returns the index in memory.sums of a stage. sums[1] is first, because `in` may overlap sums[0]. */
  static __device__ __forceinline__ int buffer_of(int stage) { return 1 - stage % 2; }

  template <class BeforeEpilogue, class Epilogue>
  static __device__ __forceinline__ void conv2_gradients(const float *in, conv2_gradient_memory &memory, weight_sums &to,
                                                         BeforeEpilogue before_epilogue, Epilogue epilogue) {
    const int row = warp() % RL_POOLED2_SIDE, first_channel = warp() / RL_POOLED2_SIDE * HALF_CHANNELS;
    float input[WINDOW_ROW_PIXELS], in_gradient[WINDOW_ROW_PIXELS] = {};
#pragma unroll
    for (int i = 0; i < WINDOW_ROW_PIXELS; i++) input[i] = in[(2 * row * RL_POOLED1_SIDE + i) * IN_PITCH + lane()];
    const float *record = &memory.out_gradient[record_offset(row, first_channel)],
                *weights = &memory.weights[first_channel * CONV2_K + lane()];
    /* Lane i has the list of channel i of the half. */
    const uint32_t lists = window_list(*(const uint2 *)&record[record_offset(0, lane() % HALF_CHANNELS) + RL_POOLED2_SIDE]);
    uint32_t next_list = __shfl_sync(0xffffffffu, lists, 0);
#pragma unroll 1
    for (int stage = 0;; stage++) {
      float *sums = &memory.sums[buffer_of(stage)][warp() * STAGE_SUMS + lane()];
#pragma unroll 1
      for (int channel = 0; channel < STAGE_CHANNELS; channel++) {
        const uint32_t list = next_list;
        next_list = __shfl_sync(0xffffffffu, lists, stage * STAGE_CHANNELS + channel + 1);
        float weight_gradient[TILE_TAPS];
        accumulate_channel(record, list, weights, input, in_gradient, weight_gradient);
#pragma unroll
        for (int t = 0; t < TILE_TAPS; t++) sums[t * RL_CONV1_CHANNELS] = weight_gradient[t];
        record += RECORD_FLOATS, weights += CONV2_K, sums += CONV2_K;
      }
      record += VECTOR; /* padding */
      __syncthreads();
      if (stage == STAGES - 1) break;
      add_weight_rows(memory.sums[buffer_of(stage)], stage, to);
    }
    float *patch = (first_channel ? memory.sums[1] : memory.first_half) + row * WINDOW_ROW_PIXELS * RL_CONV1_CHANNELS + lane();
#pragma unroll
    for (int i = 0; i < WINDOW_ROW_PIXELS; i++) patch[i * RL_CONV1_CHANNELS] = in_gradient[i];
    __syncthreads();
    before_epilogue();
    add_patches(memory, epilogue);
    /* After the epilogue, so that its stores to the peer drain meanwhile. */
    add_weight_rows(memory.sums[buffer_of(STAGES - 1)], STAGES - 1, to);
    to.has_image = true;
  }

  /* Adds up the input gradients of the rows of windows and of the two halves of the output channels. A lane computes two channels
   * of two pixels, one below the other, which are under the same one or two rows of windows. */
  template <class Epilogue>
  static __device__ __forceinline__ void add_patches(const conv2_gradient_memory &memory, Epilogue epilogue) {
    enum { COLUMN_PAIRS = RL_POOLED1_SIDE / 2, ROW_PAIRS = RL_POOLED1_SIDE / 2, ROW_STEP = RL_POOLED1_SIDE * RL_CONV1_CHANNELS };
    const int channel = lane() % 16 * 2;
#pragma unroll 1
    for (int task = warp(); task < ROW_PAIRS * COLUMN_PAIRS; task += WARPS) {
      const int row = task / COLUMN_PAIRS, column = task % COLUMN_PAIRS * 2 + lane() / 16,
                first = (row * WINDOW_ROW_PIXELS + column) * RL_CONV1_CHANNELS + channel;
      float2 sums[2] = {};
#pragma unroll
      for (int above = 1; above >= 0; above--) {
        if (above ? row == 0 : row == ROW_PAIRS - 1) continue;
#pragma unroll
        for (int i = 0; i < 2; i++) {
          const int from = first + (i - 2 * above) * ROW_STEP;
          const float2 a = *(const float2 *)&memory.first_half[from], b = *(const float2 *)&memory.sums[1][from];
          sums[i].x += a.x + b.x, sums[i].y += a.y + b.y;
        }
      }
#pragma unroll
      for (int i = 0; i < 2; i++) epilogue((2 * row + i) * RL_POOLED1_SIDE + column, channel, sums[i].x, sums[i].y);
    }
  }

  /* --- fc1. Several lanes compute the same rows of results, each over a part of the depth: four lanes (a quartet) over a quarter
   * of it each, or eight lanes (an octet) over an eighth each. At the end these lanes exchange their sums, so that each lane has
   * the totals of one row. */
  static __device__ __forceinline__ float4 select4(bool second, float4 a, float4 b) {
    return make_float4(second ? b.x : a.x, second ? b.y : a.y, second ? b.z : a.z, second ? b.w : a.w);
  }
  /* Adds up the values of two lanes whose indices differ by `distance`: the lower lane returns the sum of the two values of a,
   * the upper lane the sum of the two values of b. */
  static __device__ __forceinline__ float4 lane_pair_sum(float4 a, float4 b, int distance) {
    const bool upper = lane() & distance;
    const float4 kept = select4(upper, a, b), sent = select4(upper, b, a);
    return make_float4(
        kept.x + __shfl_xor_sync(0xffffffffu, sent.x, distance), kept.y + __shfl_xor_sync(0xffffffffu, sent.y, distance),
        kept.z + __shfl_xor_sync(0xffffffffu, sent.z, distance), kept.w + __shfl_xor_sync(0xffffffffu, sent.w, distance));
  }
  /* In fc1_forward and fc1_weight_gradient the 32 lanes form a grid of 4 parts of the depth × 4 × 2. The functions return the
   * coordinates of the lane. A quartet is four lanes that differ only in the part of the depth; their indices are four apart. */
  static __device__ __forceinline__ int depth_part() { return lane() >> 2 & 3; }
  static __device__ __forceinline__ int lane_of_4() { return (lane() >> 1 & 1) | (lane() >> 3 & 2); }
  static __device__ __forceinline__ int lane_of_2() { return lane() & 1; }

  /* Adds up four rows over the lanes of the quartet. Lane p of the quartet returns row p of the totals. */
  static __device__ __forceinline__ float4 quartet_sum(const float rows[4][4]) {
    return lane_pair_sum(lane_pair_sum(to_float4(rows[0]), to_float4(rows[2]), 8),
                         lane_pair_sum(to_float4(rows[1]), to_float4(rows[3]), 8), 4);
  }
  /* Adds up eight rows over the octet, the eight lanes whose indices are four apart. Lane p of the octet returns row p of the
   * totals. */
  static __device__ __forceinline__ float4 octet_sum(const float rows[8][4]) {
    float sums[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float4 sum = lane_pair_sum(to_float4(rows[i]), to_float4(rows[4 + i]), 16);
      sums[i][0] = sum.x, sums[i][1] = sum.y, sums[i][2] = sum.z, sums[i][3] = sum.w;
    }
    return quartet_sum(sums);
  }

  /* A warp computes 16 outputs for all images; a lane computes four of the outputs for four of the images, over a quarter of the
   * depth. */
  template <int SLICE_INPUTS, class WaitForInput, class Epilogue>
  static __device__ __forceinline__ void fc1_forward(const float *in, const float *weights, WaitForInput wait_for_input,
                                                     Epilogue epilogue) {
    enum { PITCH = SLICE_INPUTS + SLICE_PADDING };
    wait_for_input();
    if (warp() >= RL_FC1_OUTPUTS / 16) return;
    const int image = lane_of_2() * 4, output = warp() * 16 + lane_of_4() * 4;
    const float *a_row = &in[image * PITCH + depth_part() * VECTOR], *b_row = &weights[output * PITCH + depth_part() * VECTOR];
    float sum[4][4] = {};
#pragma unroll 3
    for (int k = 0; k < SLICE_INPUTS; k += 4 * VECTOR) {
      float4 b[4];
#pragma unroll
      for (int o = 0; o < 4; o++) b[o] = load4(&b_row[o * PITCH + k]);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float4 a = load4(&a_row[i * PITCH + k]);
#pragma unroll
        for (int o = 0; o < 4; o++) sum[i][o] = dot(a, b[o], sum[i][o]);
      }
    }
    const float4 result = quartet_sum(sum);
    epilogue(image + depth_part(), output, result.x, result.y);
    epilogue(image + depth_part(), output + 2, result.z, result.w);
  }

  /* A warp computes 16 inputs; a lane computes four of the inputs for all images, over an eighth of the depth. */
  template <int SLICE_INPUTS, class WaitForGradient, class Epilogue>
  static __device__ __forceinline__ void fc1_backward(const float *fc1_product_gradient, const float *weights,
                                                      WaitForGradient wait_for_gradient, Epilogue epilogue) {
    enum { PITCH = SLICE_INPUTS + SLICE_PADDING };
    static_assert(SLICE_INPUTS / 16 <= WARPS, "all inputs must have a warp");
    wait_for_gradient();
    if (warp() >= SLICE_INPUTS / 16) return;
    const int eighth = lane() / 4, column = warp() * 16 + lane() % 4 * VECTOR;
    float rows[TILE_IMAGES][4] = {};
#pragma unroll 2
    for (int k = eighth * VECTOR; k < RL_FC1_OUTPUTS; k += 8 * VECTOR) {
      float4 b[VECTOR];
#pragma unroll
      for (int i = 0; i < VECTOR; i++) b[i] = load4(&weights[(k + i) * PITCH + column]);
#pragma unroll
      for (int i = 0; i < TILE_IMAGES; i++)
        fma_product(rows[i], load4(&fc1_product_gradient[i * FC1_PRODUCT_GRADIENT_PITCH + k]), b);
    }
    const float4 result = octet_sum(rows);
    epilogue(eighth, column, result.x, result.y);
    epilogue(eighth, column + 2, result.z, result.w);
  }

  /* A warp computes 16 outputs × 16 inputs. A lane computes 8 × 4 of these weights over a quarter of the images, and keeps two of
   * the eight rows after quartet_sum. */
  static __device__ __forceinline__ void fc1_weight_gradient(const float *fc1_product_gradient, const float *in,
                                                             float sums[FC1_GRADIENT_PAIRS_PER_THREAD][2]) {
    const float *a_row = &fc1_product_gradient[depth_part() * 2 * FC1_PRODUCT_GRADIENT_TILE_PITCH + lane_of_2() * 8],
                *b_row = &in[depth_part() * 2 * FC1_INPUT_TILE_PITCH + fc1_gradient_column(0)];
    float rows[2][4][4] = {};
#pragma unroll 2
    for (int n = 0; n < TILE_BATCH; n += 8)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const float4 b = load4(&b_row[(n + i) * FC1_INPUT_TILE_PITCH]);
#pragma unroll
        for (int part = 0; part < 2; part++)
          fma_outer(rows[part][0], load4(&a_row[(n + i) * FC1_PRODUCT_GRADIENT_TILE_PITCH + part * 4]), b);
      }
#pragma unroll
    for (int part = 0; part < 2; part++) {
      const float4 result = quartet_sum(rows[part]);
      sums[2 * part][0] += result.x, sums[2 * part][1] += result.y, sums[2 * part + 1][0] += result.z,
          sums[2 * part + 1][1] += result.w;
    }
  }

  static __device__ __forceinline__ int fc1_gradient_row(int i) { return lane_of_2() * 8 + i / 2 * 4 + depth_part(); }
  static __device__ __forceinline__ int fc1_gradient_column(int i) { return warp() * 16 + lane_of_4() * VECTOR + i % 2 * 2; }
};

#endif
