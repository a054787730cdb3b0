/* Implements rl_conv2_backward (kernels.h): conv2's backward pass in one kernel, in FP16 on tensor cores (conv2.cuh). Input:
 * pooled_gradient [n][6][6][64], the gradient of the pooled output, with its argmaxes. The kernel unpools it into out_gradient
 * [12][12][64], the gradient of conv2's product, in shared memory. From out_gradient it computes the gradients of the weights
 * [64][9][32], of the bias [64] and of the input (in_gradient [n][14][14][32]). Sums are FP32, in a fixed order.
 *
 * Division of work: the unit of work is a team of 128 threads. A weight gradient team adds up the gradients of weights and bias
 * over its images, and stores one row of partial sums. An input gradient team computes in_gradient of one image after another.
 *
 * Small batches (SPLIT: at most SPLIT_MAX_IMAGES images): several teams share the work on an image. A weight gradient team takes
 * one of WEIGHT_GRADIENT_PARTS ranges of the columns of the weights, and an input gradient team takes one of INPUT_GRADIENT_PARTS
 * ranges of the rows of in_gradient. A block is one team.
 *
 * Larger batches: a team computes a whole gradient. If two teams fit into shared memory, a block is two teams, if possible one of
 * each kind. With one team in each block, the hardware may schedule two weight gradient teams, which take longer, on one SM
 * (H200, batch 4096: 133 or 153 µs, depending on the schedule; 136 µs with two teams in each block).
 *
 * Latency: loads of operands are the bottleneck. Therefore the fragments of an mma are loaded during the previous mma, addresses
 * are incremented instead of recomputed, and the two teams on an SM hide each other's latency.
 *
 * Synchronisation: one named barrier for each team. Blocks exchange no data.
 *
 * Shortest possible time: 10 µs on an H200 at batch 512, for 6.4 GFLOP at the rate of mma.sync. */
#include "cuda_check.h"
#include "pdl.cuh"
#include "train/cuda/conv2.cuh"
#include "train/cuda/unpool.cuh"

enum {
  WARPS = 4, /* warps of a team */
  THREADS = WARPS * 32,
  MAX_PARTIAL_ROWS = 88, /* rows of partial sums; each row is the sum over a set of images */
  MAX_TEAMS = 264,       /* two for each SM of an H200 */
  SPLIT_MAX_IMAGES = 88
};

static_assert((int)THREADS == (int)UNPOOL_THREADS, "a team must unpool an image");

/* Synchronises a team. A team is the THREADS threads with the same threadIdx.y, which is the team's index in the block. */
static __device__ __forceinline__ void team_barrier() {
  asm volatile("bar.sync %0, %1;" ::"r"(threadIdx.y + 1), "n"((int)THREADS) : "memory");
}

template <bool SPLIT> struct tile_config {
  enum {
    INPUT_GRADIENT_PARTS = SPLIT ? 2 : 1,
    WEIGHT_GRADIENT_PARTS = SPLIT ? 3 : 1,
    /* Input gradient: a part is INPUT_GRADIENT_ROWS rows of in_gradient. Its pixels are numbered row by row. A tile is 16 pixels
     * with consecutive numbers, the rows (M) of an mma; a warp computes WARP_TILES tiles. */
    INPUT_GRADIENT_ROWS = RL_POOLED1_SIDE / INPUT_GRADIENT_PARTS,
    PIXELS = INPUT_GRADIENT_ROWS * RL_POOLED1_SIDE,
    WARP_TILES = SPLIT ? 2 : 3,
    FIRST_UNTILED_PIXEL = WARPS * WARP_TILES * 16, /* the pixels from this one on belong to no tile */
    /* out_gradient in shared memory has a border of zeros. A row is 12 pixels followed by two zero pixels, which are also the
     * left border of the next row. */
    OUT_GRADIENT_ROWS = INPUT_GRADIENT_ROWS + 2,
    OUT_GRADIENT_BORDER = 2, /* zero pixels before the first row */
    OUT_GRADIENT_HALVES = (OUT_GRADIENT_BORDER + OUT_GRADIENT_ROWS * RL_POOLED1_SIDE) * OUT_PITCH,
    /* Weight gradient: 64 output channels × 288 columns (9 taps × 32 input channels). A column group is eight columns, the
     * columns (N) of an mma; a warp computes WARP_COLUMN_GROUPS groups. */
    WARP_COLUMN_GROUPS = WEIGHT_COLUMNS / VECTOR / WARPS / WEIGHT_GRADIENT_PARTS,
    COLUMN_GROUP_PAIRS = (WARP_COLUMN_GROUPS + 1) / 2, /* one ldmatrix.x4 loads a pair */
    WEIGHT_OUT_GRADIENT_HALVES = RL_CONV2_SIDE * RL_POOLED1_SIDE * OUT_PITCH,
    INPUT_GRADIENT_BYTES = 2 * (RL_CONV2_CHANNELS * WEIGHT_PITCH + OUT_GRADIENT_HALVES),
    /* out_gradient, and two images of the input */
    WEIGHT_GRADIENT_BYTES = 2 * (WEIGHT_OUT_GRADIENT_HALVES + 2 * IN_IMAGE_HALVES),
    SHARED_BYTES = INPUT_GRADIENT_BYTES > WEIGHT_GRADIENT_BYTES ? INPUT_GRADIENT_BYTES : WEIGHT_GRADIENT_BYTES
  };
};

/* Writes rows first_row … first_row + ROWS - 1 of an image's unpooled gradient to rows 0 … ROWS - 1 of out_gradient. Rows outside
 * of the image stay unchanged. */
template <int ROWS>
static __device__ __forceinline__ void unpool(const pooled_part &pooled, int first_row, __half *out_gradient) {
  unpool_vectors(pooled, threadIdx.x, [&](int pixel, int vector, int position, uint4 values) {
    const int y = pixel / RL_POOLED2_SIDE * 2 + position / 2 - first_row, x = pixel % RL_POOLED2_SIDE * 2 + position % 2;
    if (ROWS >= RL_CONV2_SIDE || (y >= 0 && y < ROWS))
      *(uint4 *)&out_gradient[(y * RL_POOLED1_SIDE + x) * OUT_PITCH + vector * VECTOR] = values;
  });
}

typedef struct conv2_backward_args {
  uint32_t batch, partial_rows; /* number of images; rows of partial_weight and of partial_bias */
  const __half *in, *weights, *pooled_gradient;
  const uint8_t *argmaxes;
  __half *in_gradient;
  float *partial_weight, *partial_bias; /* partial sums: [partial_rows][64][288], [partial_rows][64] */
  rl_train_state *state;
} conv2_backward_args;

/* Loads the fragments of B for a pair of column groups. `row`: address for ldmatrix. The last pair has only one group if
 * WARP_COLUMN_GROUPS is odd. */
template <class Config> static __device__ __forceinline__ void load_column_group_pair(uint32_t b[4], int pair, uint32_t row) {
  if (pair * 2 + 1 < Config::WARP_COLUMN_GROUPS) ldmatrix_x4_trans(b, row);
  else ldmatrix_x2_trans(b, row);
}

/* Adds the weight gradient of an image to sum. M is output channels, N is a column group, K is the 16 pixels of a tile
 * (conv2.cuh). sum[m][n]: output channels 16 m … 16 m + 15 of column group n. a_address, b_address: shared addresses that the
 * lane passes to ldmatrix for out_gradient and for the input. b_offset: offset of the image's buffer in bytes. The B fragments of
 * the next tile are loaded as soon as their registers are free. */
template <class Config>
static __device__ __forceinline__ void accumulate_weight_gradient(float sum[4][Config::WARP_COLUMN_GROUPS][4], uint32_t a_address,
                                                                  const uint32_t b_address[Config::COLUMN_GROUP_PAIRS],
                                                                  uint32_t b_offset) {
  const int groups = Config::WARP_COLUMN_GROUPS;
  uint32_t a[2][4], b[Config::COLUMN_GROUP_PAIRS][4];
  ldmatrix_x4_trans(a[0], a_address);
  for (int i = 0; i < Config::COLUMN_GROUP_PAIRS; i++) load_column_group_pair<Config>(b[i], i, b_address[i] + b_offset);
#pragma unroll 1
  for (int y = 0; y < TILES_IN_ROW; y++)
#pragma unroll
    for (int x = 0; x < TILES_IN_ROW; x++) {
      const bool next_tile = x + 1 < TILES_IN_ROW || y + 1 < TILES_IN_ROW;
      /* Distance to the next tile. */
      const int pixels = TILE_SIDE * (x + 1 < TILES_IN_ROW ? 1 : RL_POOLED1_SIDE + 1 - TILES_IN_ROW);
      b_offset += pixels * IN_PITCH * 2;
#pragma unroll
      for (int m = 0; m < 4; m++) {
        if (m == 3) a_address += pixels * OUT_PITCH * 2;
        if (m < 3 || next_tile) ldmatrix_x4_trans(a[(m + 1) % 2], a_address + (m + 1) % 4 * 16 * 2);
        for (int n = 0; n < groups; n++) {
          mma_m16n8k16(sum[m][n], a[m % 2], &b[n / 2][n % 2 * 2]);
          if (m == 3 && next_tile && (n % 2 || n + 1 == groups))
            load_column_group_pair<Config>(b[n / 2], n / 2, b_address[n / 2] + b_offset);
        }
      }
    }
}

/* Adds up the bias gradients of all threads of the team through scratch[THREADS][8], and writes the 64 totals to `row`. */
static __device__ __forceinline__ void store_bias(const float thread_sums[VECTOR], float *scratch, float *row) {
  for (int c = 0; c < VECTOR; c++) scratch[threadIdx.x * VECTOR + c] = thread_sums[c];
  team_barrier();
  if (threadIdx.x >= RL_CONV2_CHANNELS) return;
  float total = 0.0f;
  for (int i = 0; i < THREADS / CHANNEL_VECTORS; i++) total += scratch[i * RL_CONV2_CHANNELS + threadIdx.x];
  row[threadIdx.x] = total;
}

/* Adds up a part of the weights' gradient [64][288] over the images partial_row, partial_row + args.partial_rows, …, and stores
 * the sums in row partial_row of the partial sums. Part 0 also does this for the bias. Each warp computes all 64 output channels
 * of WARP_COLUMN_GROUPS column groups. The input has two buffers: the next image is copied while the current one is multiplied.
 * The first team_barrier in the loop makes out_gradient and the copied image visible (RAW); the second one allows the next
 * iteration to overwrite them (WAR). */
template <bool SPLIT>
static __device__ void weight_gradient(const conv2_backward_args &args, uint32_t partial_row, int part, __half *shared) {
  typedef tile_config<SPLIT> Config;
  __half *out_gradient = shared, *in = shared + Config::WEIGHT_OUT_GRADIENT_HALVES;
  const int lane = threadIdx.x % 32, first_group = (threadIdx.x / 32 + part * WARPS) * Config::WARP_COLUMN_GROUPS;
  const uint32_t a_address =
      shared_address(&out_gradient[tile_pixel_offset(lane / 16 * 8 + lane % 8) * OUT_PITCH + lane / 8 % 2 * VECTOR]);
  uint32_t b_address[Config::COLUMN_GROUP_PAIRS];
  for (int i = 0; i < Config::COLUMN_GROUP_PAIRS; i++) {
    const int group = min(first_group + i * 2 + lane / 16, WEIGHT_COLUMNS / VECTOR - 1),
              tap = group / (RL_CONV1_CHANNELS / VECTOR);
    const int pixel = tile_pixel_offset(lane % 16) + tap / 3 * RL_POOLED1_SIDE + tap % 3;
    b_address[i] = shared_address(&in[pixel * IN_PITCH + group % (RL_CONV1_CHANNELS / VECTOR) * VECTOR]);
  }
  float sum[4][Config::WARP_COLUMN_GROUPS][4] = {}, bias[VECTOR] = {};
  bool finite = true;

  pdl_wait();
  pooled_part pooled = load_pooled(args.pooled_gradient, args.argmaxes, threadIdx.x, partial_row);
  load_image_async<THREADS>(&args.in[(size_t)partial_row * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS], in);
  uint32_t buffer_offset = 0; /* of the current image's buffer in `in`, counted in FP16 values */
  for (uint32_t image = partial_row; image < args.batch;
       image += args.partial_rows, buffer_offset = IN_IMAGE_HALVES - buffer_offset) {
    unpool<RL_CONV2_SIDE>(pooled, 0, out_gradient);
    if (part == 0) finite &= accumulate_bias(pooled, bias);
    cp_async_wait_all();
    team_barrier();
    if (image + args.partial_rows < args.batch) {
      pooled = load_pooled(args.pooled_gradient, args.argmaxes, threadIdx.x, image + args.partial_rows);
      load_image_async<THREADS>(&args.in[(size_t)(image + args.partial_rows) * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS],
                                &in[IN_IMAGE_HALVES - buffer_offset]);
    }
    accumulate_weight_gradient<Config>(sum, a_address, b_address, buffer_offset * 2);
    team_barrier();
  }

  float *row = &args.partial_weight[(size_t)partial_row * RL_CONV2_CHANNELS * WEIGHT_COLUMNS];
  for (int m = 0; m < 4; m++)
    for (int n = 0; n < Config::WARP_COLUMN_GROUPS; n++)
      for (int row_half = 0; row_half < 2; row_half++) {
        const int channel = m * 16 + row_half * 8 + lane / 4, column = (first_group + n) * VECTOR + lane % 4 * 2;
        *(float2 *)&row[channel * WEIGHT_COLUMNS + column] = make_float2(sum[m][n][row_half * 2], sum[m][n][row_half * 2 + 1]);
      }
  if (part != 0) return;
  if (!finite) args.state->overflow = 1;
  store_bias(bias, (float *)shared, &args.partial_bias[partial_row * RL_CONV2_CHANNELS]);
}

/* Operands of one step of the input gradient, whose depth (K) is 16 output channels at one tap. a: fragments of out_gradient, one
 * for each tile. b: weights of these output channels, for 32 input channels. */
template <class Config> struct fragments { uint32_t a[Config::WARP_TILES][4], b[2][4]; };

/* Loads the fragments for output channels channel … channel + 15. a_address + a_offset and b_address are the shared addresses for
 * output channel 0 at the current tap. */
template <class Config>
static __device__ __forceinline__ void load_fragments(fragments<Config> &to, const uint32_t a_address[Config::WARP_TILES],
                                                      uint32_t a_offset, uint32_t b_address, int channel) {
  for (int t = 0; t < Config::WARP_TILES; t++) ldmatrix_x4(to.a[t], a_address[t] + a_offset + channel * 2);
  for (int c = 0; c < 2; c++) ldmatrix_x4_trans(to.b[c], b_address + (channel * WEIGHT_PITCH + c * 16) * 2);
}

/* Adds the products of all taps to this warp's tiles: sum[m][n] is tile m, input channels 8 n … 8 n + 7. The fragments of the
 * next step are loaded before the products of the current step are computed. */
template <class Config>
static __device__ __forceinline__ void accumulate_input_gradient(float sum[Config::WARP_TILES][4][4],
                                                                 const uint32_t a_address[Config::WARP_TILES],
                                                                 uint32_t b_address) {
  const int tap_steps = RL_CONV2_CHANNELS / 16, row_steps = 3 * tap_steps; /* steps for a tap, and for a row of taps */
  fragments<Config> step_fragments[2];
  uint32_t a_offset = 0; /* in bytes: tap (tap_y, tap_x) reads out_gradient tap_y rows above and tap_x pixels to the left */
  load_fragments(step_fragments[0], a_address, a_offset, b_address, 0);
#pragma unroll 1
  for (int tap_y = 0; tap_y < 3; tap_y++)
#pragma unroll
    for (int k = 0; k < row_steps; k++) {
      if (k % tap_steps == tap_steps - 1) {
        a_offset -= (k + 1 < row_steps ? 1 : RL_POOLED1_SIDE - 2) * OUT_PITCH * 2;
        b_address += RL_CONV1_CHANNELS * 2;
      }
      if (k + 1 < row_steps || tap_y + 1 < 3)
        load_fragments(step_fragments[(k + 1) % 2], a_address, a_offset, b_address, (k + 1) % tap_steps * 16);
      for (int m = 0; m < Config::WARP_TILES; m++)
        for (int n = 0; n < 4; n++)
          mma_m16n8k16(sum[m][n], step_fragments[k % 2].a[m], &step_fragments[k % 2].b[n / 2][n % 2 * 2]);
    }
}

/* Computes the pixels from FIRST_UNTILED_PIXEL on, which no tile contains: the last four pixels of the last row. Only the last
 * row of taps contributes to them. Each warp computes eight input channels. */
template <class Config>
static __device__ __forceinline__ void untiled_gradient(const __half *weights, const __half *out_gradient, __half *in_gradient) {
  const int lane = threadIdx.x % 32, channel = threadIdx.x / 32 * VECTOR,
            pixel = min(Config::FIRST_UNTILED_PIXEL + lane % 16, Config::PIXELS - 1);
  const uint32_t a_address =
                     shared_address(&out_gradient[(Config::OUT_GRADIENT_BORDER + pixel) * OUT_PITCH + lane / 16 * VECTOR]),
                 b_address = shared_address(&weights[lane % 16 * WEIGHT_PITCH + 6 * RL_CONV1_CHANNELS + channel]);
  float sum[2][4] = {};
#pragma unroll
  for (int k = 0; k < 3 * RL_CONV2_CHANNELS / 16; k++) {
    const int tap_x = k / (RL_CONV2_CHANNELS / 16), first_channel = k % (RL_CONV2_CHANNELS / 16) * 16;
    uint32_t a[4], b[2];
    ldmatrix_x4(a, a_address + (first_channel - tap_x * OUT_PITCH) * 2);
    ldmatrix_x2_trans(b, b_address + (first_channel * WEIGHT_PITCH + tap_x * RL_CONV1_CHANNELS) * 2);
    mma_m16n8k16(sum[k % 2], a, b);
  }
  if (lane / 4 < Config::PIXELS - Config::FIRST_UNTILED_PIXEL)
    *(__half2 *)&in_gradient[(Config::FIRST_UNTILED_PIXEL + lane / 4) * RL_CONV1_CHANNELS + channel + lane % 4 * 2] =
        __floats2half2_rn(sum[0][0] + sum[1][0], sum[0][1] + sum[1][1]);
}

/* Transposes the results of four adjacent lanes. Each lane passes two channels of each of four groups of eight channels (sum[n]).
 * Lane j of the four returns all eight channels of group j, in FP16. */
static __device__ __forceinline__ uint4 transpose_channels(const float sum[4][4], int row_half) {
  uint32_t packed[4];
  for (int c = 0; c < 4; c++) {
    const __half2 pair = __floats2half2_rn(sum[c][row_half * 2], sum[c][row_half * 2 + 1]);
    packed[c] = *(const uint32_t *)&pair;
  }
  for (int bit = 1; bit < 4; bit *= 2)
    for (int c = 0; c < 4; c++) {
      if (c & bit) continue;
      const bool high = threadIdx.x & bit;
      const uint32_t received = __shfl_xor_sync(0xffffffffu, high ? packed[c] : packed[c | bit], bit);
      (high ? packed[c] : packed[c | bit]) = received;
    }
  return make_uint4(packed[0], packed[1], packed[2], packed[3]);
}

/* Computes the parts team, team + team_count, team + 2 · team_count, … of the input gradients of the batch. Part i belongs to
 * image i / INPUT_GRADIENT_PARTS. team: index of this team among the team_count input gradient teams. team_count is a multiple of
 * INPUT_GRADIENT_PARTS, so a team computes the same rows of each of its images. A warp computes WARP_TILES tiles × 32 input
 * channels. The first team_barrier in the loop makes the weights and out_gradient visible (RAW); the second one allows the next
 * iteration to overwrite out_gradient (WAR). */
template <bool SPLIT>
static __device__ void input_gradient(const conv2_backward_args &args, uint32_t team, uint32_t team_count, __half *shared) {
  typedef tile_config<SPLIT> Config;
  __half *weights = shared, *out_gradient = shared + RL_CONV2_CHANNELS * WEIGHT_PITCH;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32,
            first_row = team % Config::INPUT_GRADIENT_PARTS * Config::INPUT_GRADIENT_ROWS;
  const uint32_t part_count = args.batch * Config::INPUT_GRADIENT_PARTS;
  for (int i = threadIdx.x; i < RL_CONV2_CHANNELS * WEIGHT_COLUMNS / VECTOR; i += THREADS) {
    int channel = i / (WEIGHT_COLUMNS / VECTOR), column = i % (WEIGHT_COLUMNS / VECTOR) * VECTOR;
    cp_async_16(&weights[channel * WEIGHT_PITCH + column], &args.weights[channel * WEIGHT_COLUMNS + column]);
  }
  for (int i = threadIdx.x; i < Config::OUT_GRADIENT_HALVES / VECTOR; i += THREADS)
    ((uint4 *)out_gradient)[i] = make_uint4(0, 0, 0, 0);
  pdl_wait();
  pooled_part pooled = load_pooled(args.pooled_gradient, args.argmaxes, threadIdx.x, team / Config::INPUT_GRADIENT_PARTS);
  team_barrier();
  uint32_t a_address[Config::WARP_TILES];
  for (int t = 0; t < Config::WARP_TILES; t++) {
    const int pixel = min((warp * Config::WARP_TILES + t) * 16 + lane % 16, Config::PIXELS - 1);
    a_address[t] = shared_address(
        &out_gradient[(Config::OUT_GRADIENT_BORDER + 2 * RL_POOLED1_SIDE + pixel) * OUT_PITCH + lane / 16 * VECTOR]);
  }
  const uint32_t b_address = shared_address(&weights[lane % 16 * WEIGHT_PITCH + lane / 16 * VECTOR]);

  for (uint32_t i = team; i < part_count; i += team_count) {
    unpool<Config::OUT_GRADIENT_ROWS>(pooled, first_row - 2, &out_gradient[Config::OUT_GRADIENT_BORDER * OUT_PITCH]);
    cp_async_wait_all();
    team_barrier();
    if (i + team_count < part_count)
      pooled = load_pooled(args.pooled_gradient, args.argmaxes, threadIdx.x, (i + team_count) / Config::INPUT_GRADIENT_PARTS);
    const size_t offset =
        ((size_t)(i / Config::INPUT_GRADIENT_PARTS) * RL_POOLED1_PIXELS + first_row * RL_POOLED1_SIDE) * RL_CONV1_CHANNELS;
    float sum[Config::WARP_TILES][4][4] = {};
    accumulate_input_gradient<Config>(sum, a_address, b_address);
    for (int t = 0; t < Config::WARP_TILES; t++)
      for (int row_half = 0; row_half < 2; row_half++) {
        const int pixel = (warp * Config::WARP_TILES + t) * 16 + row_half * 8 + lane / 4, channel = lane % 4 * VECTOR;
        const uint4 eight_channels = transpose_channels(sum[t], row_half);
        if (pixel < Config::PIXELS) *(uint4 *)&args.in_gradient[offset + pixel * RL_CONV1_CHANNELS + channel] = eight_channels;
      }
    if (Config::FIRST_UNTILED_PIXEL < Config::PIXELS) untiled_gradient<Config>(weights, out_gradient, &args.in_gradient[offset]);
    team_barrier();
  }
}

/* The first teams of the grid compute the weight gradient, because it takes longer; the others compute the input gradient.
 * team_count: number of teams in the grid. */
template <bool SPLIT> static __global__ void __launch_bounds__(SPLIT ? THREADS : 2 * THREADS, SPLIT ? 3 : 1)
    conv2_backward(conv2_backward_args args, uint32_t team_count) {
  extern __shared__ __align__(16) __half shared[];
  const uint32_t parts = tile_config<SPLIT>::WEIGHT_GRADIENT_PARTS, weight_teams = parts * args.partial_rows,
                 team = blockIdx.x + threadIdx.y * gridDim.x;
  __half *team_shared = shared + threadIdx.y * (tile_config<SPLIT>::SHARED_BYTES / sizeof *shared);
  if (team < weight_teams) weight_gradient<SPLIT>(args, team / parts, team % parts, team_shared);
  else if (team < team_count) input_gradient<SPLIT>(args, team - weight_teams, team_count - weight_teams, team_shared);
}

/* Returns one row for every two images, but at most MAX_PARTIAL_ROWS rows. */
uint32_t rl_conv2_partial_rows(uint32_t batch) {
  uint32_t rows = (batch + 1) / 2;
  return rows < MAX_PARTIAL_ROWS ? rows : (uint32_t)MAX_PARTIAL_ROWS;
}

/* Returns the number of input gradient teams: one for each part of the input gradients, but at most as many as are left beside
 * the weight gradient teams. */
template <bool SPLIT> static uint32_t input_gradient_teams(uint32_t batch) {
  const uint32_t max_teams = SPLIT ? (uint32_t)MAX_TEAMS : MAX_TEAMS - rl_conv2_partial_rows(batch),
                 count = batch * tile_config<SPLIT>::INPUT_GRADIENT_PARTS;
  return count < max_teams ? count : max_teams;
}

static int query_max_shared_bytes(int *bytes, rl_error *err) {
  int device = 0;
  if (rl_cuda_check(cudaGetDevice(&device), "finding the device", err) < 0) return -1;
  return rl_cuda_check(cudaDeviceGetAttribute(bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                       "querying the device's shared memory per block", err);
}

template <bool SPLIT> static int launch_backward(const conv2_backward_args &args, cudaStream_t stream, rl_error *err) {
  const int team_bytes = tile_config<SPLIT>::SHARED_BYTES;
  const uint32_t team_count =
      tile_config<SPLIT>::WEIGHT_GRADIENT_PARTS * args.partial_rows + input_gradient_teams<SPLIT>(args.batch);
  int max_bytes = 0;
  if (query_max_shared_bytes(&max_bytes, err) < 0) return -1;
  const uint32_t teams_per_block = !SPLIT && team_count == MAX_TEAMS && 2 * team_bytes <= max_bytes ? 2 : 1;
  const int bytes = teams_per_block * team_bytes;
  if (rl_cuda_check(cudaFuncSetAttribute(conv2_backward<SPLIT>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                    "reserving shared memory", err) < 0)
    return -1;
  return rl_pdl_launch("conv2 backward", conv2_backward<SPLIT>, team_count / teams_per_block, dim3(THREADS, teams_per_block),
                       bytes, stream, err, args, team_count);
}

int rl_conv2_backward(uint32_t batch, const void *in, const void *weights, const void *pooled_gradient, const uint8_t *argmaxes,
                      void *in_gradient, float *partial_weight, float *partial_bias, rl_train_state *state, cudaStream_t stream,
                      rl_error *err) {
  const conv2_backward_args args = {batch,
                                    rl_conv2_partial_rows(batch),
                                    (const __half *)in,
                                    (const __half *)weights,
                                    (const __half *)pooled_gradient,
                                    argmaxes,
                                    (__half *)in_gradient,
                                    partial_weight,
                                    partial_bias,
                                    state};
  return batch > SPLIT_MAX_IMAGES ? launch_backward<false>(args, stream, err) : launch_backward<true>(args, stream, err);
}
