/* The format FP32 of the products in tile.cuh, on FMA units. tile.cuh documents the functions of a format.
 *
 * conv2 uses Winograd's algorithm F(2×2, 3×3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks"). Here a tile
 * is one of the 36 2×2 pooling windows of an image: its four outputs are computed from 4×4 input pixels. With
 *
 *   V = Bᵀ·input·B    U = G·filter·Gᵀ    M = Σ over input channels of V∘U    four outputs = Aᵀ·M·A
 *
 * V, U and M have 4 × 4 = 16 elements, called terms. Over all tiles and channels, each term of M is a matrix product [36
 * tiles][32 inputs] · [32 inputs][32 outputs]. The 16 products take 0.59 million FMA; a direct convolution would take 1.33
 * million. The gradients transpose these steps:
 *
 *   dM = A·four gradients·Aᵀ    dU = Σ over tiles of dM∘V    dV = Σ over outputs of dM∘U
 *   gradient of the filter = Gᵀ·dU·G    gradient of the input = B·dV·Bᵀ
 *
 * Max-pooling leaves one of the four gradients of a window, for which a direct convolution would take 9 FMA instead of 16. But
 * then each lane would have to branch on the argmax.
 *
 * Division of work: half a warp (16 lanes) computes one term in each of the three products. No other thread reads that term, so
 * the result overwrites an operand in place.
 *
 * Shared memory: operands are rows of 32 floats. An XOR swizzle of the 16-byte vectors of a row keeps the accesses of a warp, to
 * four adjacent tiles or to every fourth output, free of bank conflicts. */
#ifndef RL_TRAIN_CUDA_TILE_FLOAT_H
#define RL_TRAIN_CUDA_TILE_FLOAT_H

#include "train/cuda/tile.cuh"
#include "train/cuda/vector.cuh"

struct float_tile_format : tile_format<float> {
  typedef struct weight_sums {
    float *row;     /* in global memory; the gradients of all images are added up there */
    bool has_image; /* true: the row holds the gradient of at least one image */
  } weight_sums;
  enum {
    VECTOR = 4,                   /* floats in 16 bytes */
    ONE_MICROBATCH_IS_FASTER = 0, /* its kernel would spill 216 bytes of registers */
    WARPS = THREADS / 32,
    TERMS = 16,
    PRODUCT_WARPS = TERMS / 2, /* warps that compute products */
    TILES = RL_POOLED2_SIDE * RL_POOLED2_SIDE,
    ROW_FLOATS = TILE_CHANNELS,                   /* floats in a row of an operand */
    WEIGHT_TERM_FLOATS = 32 * ROW_FLOATS,         /* a term of U: [output][input] */
    TERM_FLOATS = TILES * ROW_FLOATS,             /* a term of V, M, dM or dV: [tile][channel] */
    CHUNK_TILES = 12,                             /* number of tiles whose V the weight gradient keeps at a time */
    CHUNK_TERM_FLOATS = CHUNK_TILES * ROW_FLOATS, /* a term of V of a chunk */
    IN_PITCH = RL_CONV1_CHANNELS,
    LOADED_WEIGHT_PITCH = CONV2_K,
    WEIGHT_VALUES = TERMS * WEIGHT_TERM_FLOATS,
    OUT_GRADIENT_VALUES = TERMS * TERM_FLOATS,
    CONV2_FORWARD_SCRATCH_FLOATS = TERMS * TERM_FLOATS,
    CONV2_BACKWARD_SCRATCH_FLOATS = TERMS * CHUNK_TERM_FLOATS,
    CONV2_WARP_SCRATCH_FLOATS = 0,
    CONV2_FORWARD_WARPS = TILE_WARPS,
    CONV1_IS_SPLIT = 1,
    HAS_FP32_MASTER_WEIGHTS = 0,
    SLICE_PADDING = VECTOR,
    FC1_PRODUCT_GRADIENT_PITCH = RL_FC1_OUTPUTS + VECTOR,
    FC1_PRODUCT_GRADIENT_TILE_PITCH = TILE_ROWS + VECTOR,
    FC1_INPUT_TILE_PITCH = TILE_COLUMNS + VECTOR,
    SUMS_PER_LANE = 64 /* a lane's sums of dU: 8 outputs × 8 inputs of a term */
  };
  static_assert(TILES % WARPS == 0 && RL_POOLED2_SIDE % (TILES / WARPS) == 0 && CHUNK_TILES == WARPS,
                "a warp must transform a part of one row of tiles, or one tile of a chunk");
  static_assert((int)RL_CONV1_CHANNELS == (int)ROW_FLOATS, "rows of inputs and of outputs must have the same length");

  static __device__ __forceinline__ bool computes_products() { return warp() < PRODUCT_WARPS; }
  /* Returns the term that this half warp computes. */
  static __device__ __forceinline__ int term() { return threadIdx.x / 16; }
  /* The 16 lanes of a term form a grid of 4 × 4. lane_major and lane_minor return the coordinates of the lane. They are chosen so
   * that lanes whose indices differ by one or two read the same 16 bytes in one access. */
  static __device__ __forceinline__ int lane_major() { return (lane() >> 1 & 1) | (lane() >> 2 & 2); }
  static __device__ __forceinline__ int lane_minor() { return (lane() & 1) | (lane() >> 1 & 2); }

  /* The four functions return offsets in a term, in floats: of a 16-byte vector, or of one element, in the row of a tile (V, M,
   * dM, dV) or of an output (U). The XOR swizzles the vectors of a row. */
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

  /* Computes U from the loaded weights [32 outputs][9 taps][32 inputs]. */
  static __device__ __forceinline__ void prepare_weights(const float *loaded, float *weights) {
    for (int output = warp(); output < TILE_CHANNELS; output += WARPS) {
      const float *from = &loaded[output * CONV2_K + lane()];
      float *to = &weights[weight_element_offset(output, lane())], left_product[4][3];
#pragma unroll
      for (int x = 0; x < 3; x++) {
        const float first = from[x * RL_CONV1_CHANNELS], middle = 0.5f * from[(3 + x) * RL_CONV1_CHANNELS],
                    last = from[(6 + x) * RL_CONV1_CHANNELS], ends = 0.5f * (first + last);
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

  /* Computes V of COUNT adjacent tiles, beginning with tile `tile`. term_pitch: floats from one term to the next in v. */
  template <int COUNT>
  static __device__ __forceinline__ void transform_inputs(const float *in, int tile, int term_pitch, float *v) {
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
        for (int x = 0; x < 4; x++) to[(4 * y + x) * term_pitch] = result[x];
      }
    }
  }

  /* Returns element i of the vector value · (1, 1, 1, 0), or, if `second`, of value · (0, 1, −1, −1). The two vectors are the
   * columns of A. */
  static __device__ __forceinline__ float scale_by_a(float value, bool second, int i) {
    return i == 0 ? (second ? 0.0f : value) : i == 1 ? value : i == 2 ? (second ? -value : value) : second ? -value : 0.0f;
  }

  /* Computes dM, which this format stores as out_gradient. The window is the tile with index `pixel`. */
  static __device__ __forceinline__ void unpool(int pixel, int channel, uchar4 argmax, float4 gradient, float *out_gradient) {
    const bool lower[4] = {argmax.x == 2 || argmax.x == 3, argmax.y == 2 || argmax.y == 3, argmax.z == 2 || argmax.z == 3,
                           argmax.w == 2 || argmax.w == 3};
    const bool right[4] = {argmax.x == 1 || argmax.x == 3, argmax.y == 1 || argmax.y == 3, argmax.z == 1 || argmax.z == 3,
                           argmax.w == 1 || argmax.w == 3};
    const float passed[4] = {
        argmax.x == RL_ARGMAX_RELU_ZERO ? 0.0f : gradient.x, argmax.y == RL_ARGMAX_RELU_ZERO ? 0.0f : gradient.y,
        argmax.z == RL_ARGMAX_RELU_ZERO ? 0.0f : gradient.z, argmax.w == RL_ARGMAX_RELU_ZERO ? 0.0f : gradient.w};
#pragma unroll
    for (int term = 0; term < TERMS; term++) {
      float result[4];
#pragma unroll
      for (int c = 0; c < 4; c++) result[c] = scale_by_a(scale_by_a(passed[c], lower[c], term / 4), right[c], term % 4);
      store4(&out_gradient[term * TERM_FLOATS + tile_vector_offset(pixel, channel / VECTOR)], to_float4(result));
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

  /* Stores the results of a lane of multiply_forward or multiply_input_gradient. */
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
    epilogue(tile, channel, product[0], product[1]);
    epilogue(tile, channel + 2, product[2], product[3]);
  }

  template <class Epilogue>
  static __device__ __forceinline__ void conv2_forward(const float *in, const float *weights, float *scratch, Epilogue epilogue) {
    transform_inputs<TILES / WARPS>(in, warp() * (TILES / WARPS), TERM_FLOATS, scratch);
    __syncthreads();
    if (computes_products()) multiply_forward(&scratch[term() * TERM_FLOATS], &weights[term() * WEIGHT_TERM_FLOATS]);
    __syncthreads();
    transform_outputs(scratch, epilogue);
  }

  /* Adds to dU of one term the products for the chunk of tiles that begins with first_tile: sums += dmᵀ · v. A lane computes two
   * groups of four outputs × two groups of four inputs. The first groups begin at output 4 · lane_major() and input 4 ·
   * lane_minor(), the second groups 16 further on. */
  static __device__ __forceinline__ void multiply_weight_gradient(const float *dm, const float *v, int first_tile,
                                                                  float sums[SUMS_PER_LANE]) {
#pragma unroll 1
    for (int row = first_tile; row < first_tile + CHUNK_TILES; row += 4)
#pragma unroll
      for (int tile = 0; tile < 4; tile++) {
        const float *dm_row = &dm[row * ROW_FLOATS], *v_row = &v[(row - first_tile) * ROW_FLOATS];
        float4 a[2], b[2];
#pragma unroll
        for (int part = 0; part < 2; part++) {
          a[part] = load4(&dm_row[tile_vector_offset(tile, lane_major() + part * 4)]);
          b[part] = load4(&v_row[tile_vector_offset(tile, lane_minor() + part * 4)]);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) fma_outer(&sums[i * 16], a[i / 2], b[i % 2]);
      }
  }

  /* transform_weight_gradient needs all terms of an output, which different half warps have computed. So dU goes through shared
   * memory, 16 outputs at a time, in two buffers: the first eight terms in the scratch, the last eight in the memory of the
   * image. */
  enum {
    BUFFER_OUTPUTS = 16,
    BUFFER_TERMS = TERMS / 2,
    BUFFER_TERM_FLOATS = BUFFER_OUTPUTS * ROW_FLOATS,
    BUFFER_FLOATS = BUFFER_TERMS * BUFFER_TERM_FLOATS
  };
  static_assert(BUFFER_FLOATS <= (int)CONV2_BACKWARD_SCRATCH_FLOATS &&
                    BUFFER_FLOATS <= RL_POOLED1_SIDE * RL_POOLED1_SIDE * (int)IN_PITCH,
                "half of the terms must fit into the scratch, and half into the image");

  /* Stores half of a lane's sums of dU, for BUFFER_OUTPUTS outputs, in the buffer of its term. */
  static __device__ __forceinline__ void store_weight_gradient_terms(const float sums[SUMS_PER_LANE / 2], float *to) {
#pragma unroll
    for (int i = 0; i < 8; i++)
      store4(&to[term() % BUFFER_TERMS * BUFFER_TERM_FLOATS +
                 weight_vector_offset(4 * lane_major() + i % 4, lane_minor() + i / 4 * 4)],
             to_float4(&sums[i * 4]));
  }

  /* Computes the gradient of the filter, Gᵀ·dU·G, in to[BUFFER_OUTPUTS][9 taps][32 inputs]. add: adds it to the contents of `to`
   * instead of overwriting them. */
  static __device__ __forceinline__ void transform_weight_gradient(const float *first_terms, const float *last_terms, bool add,
                                                                   float *to) {
    for (int output = warp(); output < BUFFER_OUTPUTS; output += WARPS) {
      float right_product[4][3];
#pragma unroll
      for (int y = 0; y < 4; y++) {
        const float *terms = y / 2 ? last_terms : first_terms;
        const float *from = &terms[y % 2 * 4 * BUFFER_TERM_FLOATS + weight_element_offset(output, lane())];
        const float first = from[0], second = from[BUFFER_TERM_FLOATS], third = from[2 * BUFFER_TERM_FLOATS],
                    last = from[3 * BUFFER_TERM_FLOATS], middle = 0.5f * (second + third);
        right_product[y][0] = first + middle, right_product[y][1] = 0.5f * (second - third), right_product[y][2] = middle + last;
      }
#pragma unroll
      for (int x = 0; x < 3; x++) {
        const float middle = 0.5f * (right_product[1][x] + right_product[2][x]);
        const float result[3] = {right_product[0][x] + middle, 0.5f * (right_product[1][x] - right_product[2][x]),
                                 middle + right_product[3][x]};
#pragma unroll
        for (int y = 0; y < 3; y++) {
          float *weight = &to[output * CONV2_K + (3 * y + x) * RL_CONV1_CHANNELS + lane()];
          *weight = add ? *weight + result[y] : result[y];
        }
      }
    }
  }

  static __device__ __forceinline__ weight_sums init_weight_sums(float *row) { return {row, false}; }
  static __device__ __forceinline__ void store_weight_gradient(const weight_sums &, float *) {}

  static __device__ __forceinline__ void conv2_weight_gradient(float *in, const float *out_gradient, float *scratch,
                                                               weight_sums &to) {
    float sums[SUMS_PER_LANE] = {};
#pragma unroll 1
    for (int first = 0; first < TILES; first += CHUNK_TILES) {
      transform_inputs<1>(in, first + warp(), CHUNK_TERM_FLOATS, scratch - first * ROW_FLOATS);
      __syncthreads();
      if (computes_products())
        multiply_weight_gradient(&out_gradient[term() * TERM_FLOATS], &scratch[term() * CHUNK_TERM_FLOATS], first, sums);
      __syncthreads();
    }
#pragma unroll
    for (int part = 0; part < 2; part++) {
      if (part) __syncthreads();
      if (computes_products())
        store_weight_gradient_terms(&sums[part * (SUMS_PER_LANE / 2)], term() / BUFFER_TERMS ? in : scratch);
      __syncthreads();
      transform_weight_gradient(scratch, in, to.has_image, &to.row[part * BUFFER_OUTPUTS * CONV2_K]);
    }
    to.has_image = true;
  }

  /* Computes dV of one term: dm[36][32] = dm[36][32] · u[32][32], in place. A lane computes every fourth tile × two groups of
   * four inputs, which are 16 apart. WAR: all lanes have read dm before __syncwarp, and overwrite it only afterwards. */
  static __device__ __forceinline__ void multiply_input_gradient(float *dm, const float *u) {
    float sum[TILES / 4][8] = {};
#pragma unroll 1
    for (int vector = 0; vector < ROW_FLOATS / VECTOR; vector++) {
      float4 b[2][VECTOR];
#pragma unroll
      for (int k = 0; k < 2 * VECTOR; k++)
        b[k / VECTOR][k % VECTOR] =
            load4(&u[weight_vector_offset(4 * vector, lane_minor() + k / VECTOR * 4) + k % VECTOR * ROW_FLOATS]);
#pragma unroll
      for (int i = 0; i < TILES / 4; i++) {
        const float4 a = load4(&dm[tile_vector_offset(lane_major(), vector) + 4 * i * ROW_FLOATS]);
        fma_product(&sum[i][0], a, b[0]);
        fma_product(&sum[i][4], a, b[1]);
      }
    }
    __syncwarp();
    store_products(sum, dm);
  }

  /* Multiplies by B in one dimension. x: four terms of each of the six tiles in a row (or column) of the image. line: for the 14
   * pixels of the row (or column), the sums over the tiles; the 4 inputs of neighbouring tiles overlap by two. */
  static __device__ __forceinline__ void transform_line(const float x[4][RL_POOLED2_SIDE], float line[RL_POOLED1_SIDE]) {
#pragma unroll
    for (int i = 0; i <= RL_POOLED2_SIDE; i++) {
      float even = 0.0f, odd = 0.0f;
      if (i < RL_POOLED2_SIDE) even = x[0][i], odd = x[1][i] - x[2][i] + x[3][i];
      if (i > 0) even += x[1][i - 1] + x[2][i - 1] - x[0][i - 1], odd -= x[3][i - 1];
      line[2 * i] = even, line[2 * i + 1] = odd;
    }
  }

  /* Computes the gradient of the input, B·dV·Bᵀ: first along the rows, in place, then along the columns. Then adjacent lanes
   * exchange halves of a column, so that each lane passes two adjacent channels of every second pixel to the epilogue. */
  template <class Epilogue> static __device__ __forceinline__ void transform_input_gradient(float *dv, Epilogue epilogue) {
    float x[4][RL_POOLED2_SIDE], line[RL_POOLED1_SIDE];
    for (int task = warp(); task < 4 * RL_POOLED2_SIDE; task += WARPS) {
      float *term_row[4];
#pragma unroll
      for (int i = 0; i < 4; i++) term_row[i] = &dv[(task / RL_POOLED2_SIDE * 4 + i) * TERM_FLOATS];
      const int first = task % RL_POOLED2_SIDE * RL_POOLED2_SIDE;
#pragma unroll
      for (int i = 0; i < 4 * RL_POOLED2_SIDE; i++)
        x[i / RL_POOLED2_SIDE][i % RL_POOLED2_SIDE] =
            term_row[i / RL_POOLED2_SIDE][tile_element_offset(first + i % RL_POOLED2_SIDE, lane())];
      transform_line(x, line);
#pragma unroll
      for (int i = 0; i < RL_POOLED1_SIDE; i++)
        term_row[i / RL_POOLED2_SIDE][tile_element_offset(first + i % RL_POOLED2_SIDE, lane())] = line[i];
    }
    __syncthreads();
    for (int column = warp(); column < RL_POOLED1_SIDE; column += WARPS) {
#pragma unroll
      for (int i = 0; i < 4 * RL_POOLED2_SIDE; i++)
        x[i / RL_POOLED2_SIDE][i % RL_POOLED2_SIDE] =
            dv[(i / RL_POOLED2_SIDE * 4 + column / RL_POOLED2_SIDE) * TERM_FLOATS +
               tile_element_offset(i % RL_POOLED2_SIDE * RL_POOLED2_SIDE + column % RL_POOLED2_SIDE, lane())];
      transform_line(x, line);
      const int odd = lane() % 2;
#pragma unroll
      for (int i = 0; i < RL_POOLED1_SIDE; i += 2) {
        const float kept = odd ? line[i + 1] : line[i], received = __shfl_xor_sync(0xffffffffu, odd ? line[i] : line[i + 1], 1);
        epilogue((i + odd) * RL_POOLED1_SIDE + column, lane() - odd, odd ? received : kept, odd ? kept : received);
      }
    }
  }

  template <class BeforeEpilogue, class Epilogue>
  static __device__ __forceinline__ void conv2_input_gradient(const float *weights, float *out_gradient,
                                                              BeforeEpilogue before_epilogue, Epilogue epilogue) {
    if (computes_products()) multiply_input_gradient(&out_gradient[term() * TERM_FLOATS], &weights[term() * WEIGHT_TERM_FLOATS]);
    __syncthreads();
    before_epilogue();
    transform_input_gradient(out_gradient, epilogue);
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
  template <int SLICE_INPUTS, class Epilogue>
  static __device__ __forceinline__ void fc1_forward(const float *in, const float *weights, Epilogue epilogue) {
    enum { PITCH = SLICE_INPUTS + SLICE_PADDING };
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

  /* A warp computes every WARPS-th group of 16 inputs; a lane computes four of the inputs for all images, over an eighth of the
   * depth. */
  template <int SLICE_INPUTS, class Epilogue>
  static __device__ __forceinline__ void fc1_backward(const float *fc1_product_gradient, const float *weights,
                                                      Epilogue epilogue) {
    enum { PITCH = SLICE_INPUTS + SLICE_PADDING };
    const int eighth = lane() / 4;
    for (int group = warp(); group < SLICE_INPUTS / 16; group += WARPS) {
      const int column = group * 16 + lane() % 4 * VECTOR;
      float rows[TILE_IMAGES][4] = {};
#pragma unroll 1
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
