/* The engine "persistent": how its work is divided over blocks, what a block holds in shared memory, and helpers that its kernels
 * share (persistent_kernels.cu).
 *
 * The grid has 128 blocks, one per multiprocessor. Two neighbouring blocks are a pair, which is a cluster: it processes one image
 * at a time, and each block computes half of conv1's pixels and half of conv2's channels. Image n of a step belongs to pair
 * n % 64 in microbatch n / 64. Eight neighbouring pairs are a group: each of its 16 blocks multiplies one slice of fc1's inputs
 * for the group's eight images. A block updates the same 1/128 of the parameters in every step.
 *
 * A step is one batch. It is processed in microbatches of at most 64 images, one per pair.
 *
 * In the templates, F is a tile format (tile.cuh): the type of the multiplied values, the layouts, and the products. */
#ifndef RL_TRAIN_CUDA_PERSISTENT_CUH
#define RL_TRAIN_CUDA_PERSISTENT_CUH

#include "clusters.cuh"
#include "train/cuda/adam.cuh"
#include "train/cuda/conv1.cuh"
#include "train/cuda/exchange.cuh"
#include "train/cuda/persistent.h"
#include "train/cuda/tensor_float.cuh"
#include "train/cuda/tile.cuh"
#include "train/cuda/vector.cuh"

enum {
  PAIRS = RL_PERSISTENT_PAIRS,
  BLOCKS = RL_PERSISTENT_BLOCKS,
  GROUP_PAIRS = TILE_IMAGES,    /* also the images of a group in a microbatch */
  FC1_SLICES = 2 * GROUP_PAIRS, /* one per block of a group */
  SLICE = RL_FLAT / FC1_SLICES, /* inputs of fc1 in a slice */
  CONV1_PIXELS = RL_P1 * RL_P1, /* after pooling */
  CONV2_PIXELS = RL_P2 * RL_P2,
  BLOCK_ROWS = RL_P1 / 2, /* of conv1's pooled rows, one half per block of a pair */
  BLOCK_PIXELS = BLOCK_ROWS * RL_P1,
  IMAGE_ROWS = 2 * BLOCK_ROWS + 2, /* rows of the padded image that BLOCK_ROWS pooled rows depend on */
  CONV2_HALF = CONV2_COUNT / 2,    /* weights of a block's channels */
  /* Besides its tile of fc1.weight, a block updates CONV2_PER_BLOCK parameters of conv2.weight and SMALL_PER_BLOCK of the small
   * values, which are numbered in this order: conv1.weight, conv1.bias, conv2.bias, fc1.bias, fc2.weight, fc2.bias, the loss. */
  CONV2_PER_BLOCK = CONV2_COUNT / BLOCKS,
  SMALL_VALUES = CONV2_OFFSET + RL_C2 + RL_HEAD_LOSS + 1,
  TAGGED_WEIGHTS = CONV2_OFFSET + RL_C2, /* the first three of these tensors: their new values are sent as tagged words */
  SMALL_PER_BLOCK = (SMALL_VALUES + BLOCKS - 1) / BLOCKS,
  SMALL_PITCH = 16,
  WARP_SUMS = CONV1_PARAMETERS + TILE_CHANNELS /* a warp's sums: gradients of conv1, then of conv2.bias */
};
static_assert(FC1_OFFSET + (RL_PARAMETERS + 1) / 2 <= HEAD_OFFSET, "FP16 copies of all weights fit into fc1.weight");
static_assert((RL_FC1 / TILE_ROWS) * (RL_FLAT / TILE_COLUMNS) == BLOCKS, "every tile of fc1.weight has a block");
static_assert(SMALL_PER_BLOCK <= SMALL_PITCH && CONV2_PER_BLOCK + SMALL_PER_BLOCK <= TILE_THREADS,
              "every other parameter of a block has a thread");

/* What the threads and warps of a block do. For the sums over rows of partial sums, CONV2_SPLITS threads share the rows of four
 * neighbouring weights of conv2 (a quad), and SMALL_SPLITS threads those of one small value. */
enum { CONV2_QUADS = CONV2_PER_BLOCK / 4 };
template <class F> struct warp_roles {
  enum {
    THREADS = F::THREADS,
    WARPS = THREADS / 32,
    /* 1: conv2_forward multiplies weights that prepare_weights has transformed; 0: it multiplies the loaded weights. */
    TRANSFORMS_WEIGHTS = F::FORWARD_SCRATCH_FLOATS > 0,
    /* 1: the warps that have no part in conv2_forward load fc1's weights meanwhile; 0: all warps load them, between products. */
    PREFETCH_EARLY = (int)F::FORWARD_WARPS < (int)WARPS,
    COMPUTE_WARPS = WARPS - (PREFETCH_EARLY ? 2 : 1), /* of conv1; the last warps poll barriers and load weights */
    CONV2_SPLITS = THREADS / CONV2_QUADS,
    SMALL_SPLITS = THREADS / SMALL_PITCH,
    TILE_OWNERS = F::FC1_GRADIENT_WARPS * 32 /* threads that update the tile of fc1.weight */
  };
  static_assert(CONV2_PER_BLOCK + SMALL_PER_BLOCK <= (int)THREADS && (int)WARPS > RL_CLASSES + 1,
                "every parameter has a thread, every part of the head a warp");
};

typedef struct block_coords {
  int lane, warp;
  uint32_t rank;             /* of the block in its pair */
  uint32_t pair;             /* of the grid's 64 */
  uint32_t group_first_pair; /* of the pair's group */
  uint32_t slice;            /* of fc1's inputs */
} block_coords;

static __device__ __forceinline__ block_coords own_coords(void) {
  const uint32_t pair = blockIdx.x / 2;
  return {(int)threadIdx.x % 32,  (int)threadIdx.x / 32, rank_in_cluster(), pair, pair / GROUP_PAIRS * GROUP_PAIRS,
          blockIdx.x % FC1_SLICES};
}

/* Global memory through which blocks exchange data; cleared before a launch. The floats are tagged words (exchange.cuh). */
typedef struct rl_exchange {
  float pooled2[PAIRS][RL_FLAT];              /* fc1's inputs */
  float fc1_parts[PAIRS][FC1_SLICES][RL_FC1]; /* fc1's product, one part per slice */
  float d_fc1[PAIRS][RL_FC1], d_pooled2[PAIRS][RL_FLAT];
  float tagged_weights[PAIRS / GROUP_PAIRS][TAGGED_WEIGHTS]; /* weights that every block reads at once; a copy per group */
  /* Counters of the grid barriers, each in a separate 128-byte line. */
  uint32_t loaded[32];   /* the parameters are in shared memory */
  uint32_t forward[32];  /* the step's pooled2 and d_fc1 are in global memory */
  uint32_t backward[32]; /* the step's partial sums are in global memory */
  uint32_t update[32];   /* the next step's weights are in global memory */
  uint32_t overflow;     /* 1 + the last step with a gradient that is not finite */
} rl_exchange;

/* A parameter with its two moments. */
typedef struct parameter {
  float weight, first_moment, second_moment;
} parameter;

template <class F> struct block_memory {
  typedef typename F::value value;
  alignas(16) value conv2[F::WEIGHT_VALUES];
  alignas(16) value pooled1[CONV1_PIXELS * F::IN_PITCH];
  union { /* never used at the same time */
    alignas(16) value conv2_loaded[F::FORWARD_SCRATCH_FLOATS > 0 ? TILE_CHANNELS *F::LOADED_WEIGHT_PITCH : 1];
    alignas(16) float forward_scratch[F::FORWARD_SCRATCH_FLOATS > 0 ? F::FORWARD_SCRATCH_FLOATS : 1];
    alignas(16) value fc1[RL_FC1 * (SLICE + F::SLICE_PADDING)];
    alignas(16) value d_out[F::D_OUT_VALUES];
    struct {
      alignas(16) value d_fc1_rows[TILE_BATCH * F::D_FC1_TILE_PITCH], pooled2_columns[TILE_BATCH * F::FC1_IN_TILE_PITCH];
      alignas(16) float warp_sums[warp_roles<F>::WARPS][WARP_SUMS], conv2_sums[warp_roles<F>::CONV2_SPLITS][CONV2_PER_BLOCK],
          small_sums[warp_roles<F>::SMALL_SPLITS][SMALL_PITCH];
    };
  };
  union { /* never used at the same time */
    struct {
      alignas(16) value pooled2[GROUP_PAIRS * (SLICE + F::SLICE_PADDING)], d_fc1[GROUP_PAIRS * F::D_FC1_PITCH];
      alignas(16) float hidden[warp_roles<F>::WARPS][RL_FC1];
    };
    alignas(16) float backward_scratch[F::BACKWARD_SCRATCH_FLOATS > 0 ? F::BACKWARD_SCRATCH_FLOATS : 1];
    /* Gradient of this block's pixels of pooled1: [0] the part from this block's channels of conv2, [1] the part from the
     * peer's. */
    alignas(16) float d_pooled1[2][BLOCK_PIXELS * RL_C1];
  };
  alignas(16) float forward_exchange[F::FORWARD_EXCHANGE_FLOATS > 0 ? F::FORWARD_EXCHANGE_FLOATS : 4];
  alignas(16) float conv1[CONV1_PARAMETERS], conv2_bias[TILE_CHANNELS], head[RL_HEAD_ROW];
  alignas(16) float logits[RL_CLASSES];
  alignas(16) uint8_t image_bytes[RL_PIXELS];             /* the next image */
  alignas(16) float image_rows[IMAGE_ROWS * CONV1_WIDTH]; /* the current image: normalised rows that this block's pixels need */
  alignas(16) uint8_t pool_codes1[BLOCK_PIXELS * RL_C1], pool_codes2[CONV2_PIXELS * TILE_CHANNELS];
  float2 weight[F::SEPARATE_MASTER_WEIGHTS ? F::PAIRS_PER_THREAD : 1][warp_roles<F>::TILE_OWNERS],
      first_moment[F::PAIRS_PER_THREAD][warp_roles<F>::TILE_OWNERS],
      second_moment[F::PAIRS_PER_THREAD][warp_roles<F>::TILE_OWNERS];
  parameter owned[CONV2_PER_BLOCK + SMALL_PER_BLOCK]; /* parameters with a thread of their own */
  rl_train_state state;
  mbarrier pixels_mbarrier, gradients_mbarrier; /* on which the peer's half of pooled1, and its part of d_pooled1, complete */
};

/* Labels and data set indices of the pair's images in this microbatch and the next two. */
typedef struct prefetch_state {
  uint32_t label, next_label, next_image, image_after_next;
} prefetch_state;

/* A thread's sums of gradients over the microbatches of a step. head_sum4 and head_sum are sums of different gradients of the
 * head, depending on the warp (train_head). */
template <class F> struct gradient_sums {
  typename F::weight_sums conv2;
  float4 conv2_bias; /* of four channels */
  float conv1[10];   /* nine taps and the bias of one channel */
  float4 head_sum4;  /* warps 0 to 9: a lane's part of a row of fc2.weight; warp 10: of fc1.bias */
  float head_sum;    /* warps 0 to 9: an element of fc2.bias; warp 11 and later: the loss */
  bool overflow;     /* a value is not finite or does not fit into the format */
};

/* At most PAIRS images of a step, one per pair. */
typedef struct microbatch {
  uint32_t step_images; /* of this step; 0: the epoch has ended */
  uint32_t index;       /* in the step */
  uint32_t batch_size;  /* images of every step before this one */
  uint32_t step;        /* of the epoch */
} microbatch;

/* The image of `pair`, numbered in the step; the pair may have none. */
static __device__ __forceinline__ uint32_t step_image(const microbatch &mb, uint32_t pair) { return mb.index * PAIRS + pair; }
static __device__ __forceinline__ bool has_image(const microbatch &mb, uint32_t pair) {
  return step_image(mb, pair) < mb.step_images;
}
/* The number of images that the pair has processed in this launch, this one included: the phase of its tagged words and
 * mbarriers. */
static __device__ __forceinline__ uint32_t message_phase(const microbatch &mb, uint32_t pair) {
  return mb.step * ((mb.batch_size + PAIRS - 1 - pair) / PAIRS) + mb.index + 1;
}

static __device__ __forceinline__ uint64_t global_time(void) {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

/* Records the end of a phase of the step, or with phase -1 the begin of the step. A microbatch overwrites the timestamps of the
 * step's earlier microbatches. */
static __device__ __forceinline__ void record_timestamp(const rl_persistent_args &args, uint32_t step, int phase) {
  if (!args.timestamps || threadIdx.x != 0 || step >= RL_TIMESTAMPED_STEPS) return;
  args.timestamps->phases[blockIdx.x][step][phase + 1] = global_time();
}

static __device__ __forceinline__ void record_launch_timestamp(const rl_persistent_args &args, bool ended) {
  if (!args.timestamps || threadIdx.x != 0) return;
  args.timestamps->launch[blockIdx.x][ended] = global_time();
  args.timestamps->cycles[blockIdx.x][ended] = (uint64_t)clock64();
}

/* Whether this warp computes conv1; the others wait for barriers and load weights meanwhile. */
template <class F> static __device__ __forceinline__ bool is_compute_warp(void) {
  return threadIdx.x < warp_roles<F>::COMPUTE_WARPS * 32;
}

/* Rows of partial sums: the pairs that have an image in a step of `batch`. */
static __host__ __device__ __forceinline__ uint32_t partial_rows(uint32_t batch) {
  return batch < PAIRS ? batch : (uint32_t)PAIRS;
}

/* This block's half of the pair's row of partial sums of conv2.weight's gradient. */
static __device__ __forceinline__ float *conv2_partial_row(const rl_persistent_args &args, const block_coords &coords) {
  return &args.partial_conv2[(size_t)coords.pair * CONV2_COUNT + coords.rank * CONV2_HALF];
}

/* Returns the weights in the format that is multiplied, in global memory; a tensor is at its offset. During a launch they
 * overwrite the FP32 weights, which the blocks then have in shared memory: FP16 copies begin at fc1.weight, others at the first
 * parameter. */
template <class F> static __device__ __forceinline__ typename F::value *compute_weights(const rl_persistent_args &args) {
  return (typename F::value *)(args.adam.weights + (sizeof(typename F::value) == sizeof(__half) ? FC1_OFFSET : 0));
}

/* v rounded to the format. */
template <class Value> static __device__ __forceinline__ float rounded_to(float v) { return (float)(Value)v; }

static __device__ __forceinline__ void store2(__half *to, float a, float b) { *(__half2 *)to = __floats2half2_rn(a, b); }
static __device__ __forceinline__ void store2(float *to, float a, float b) { *(float2 *)to = make_float2(a, b); }
static __device__ __forceinline__ void store2(tensor_float *to, float a, float b) {
  *(float2 *)to = make_float2(tensor_float(a), tensor_float(b));
}

/* Stores two values in this block's shared memory and, with st.async that completes on `barrier`, in the peer's. */
static __device__ __forceinline__ void store_local_and_peer(uint32_t peer, __half *to, float a, float b, mbarrier *barrier) {
  const __half2 both = __floats2half2_rn(a, b);
  *(__half2 *)to = both;
  st_async(peer, (void *)to, *(const uint32_t *)&both, barrier);
}
static __device__ __forceinline__ void store_local_and_peer(uint32_t peer, float *to, float a, float b, mbarrier *barrier) {
  *(float2 *)to = make_float2(a, b);
  st_async(peer, to, make_float2(a, b), barrier);
}
static __device__ __forceinline__ void store_local_and_peer(uint32_t peer, tensor_float *to, float a, float b,
                                                            mbarrier *barrier) {
  store_local_and_peer(peer, (float *)to, tensor_float(a), tensor_float(b), barrier);
}

/* Whether v is finite in the format. */
static __device__ __forceinline__ bool is_representable(__half, float v) { return fabsf(v) < 65520.0f; /* rounds to infinity */ }
static __device__ __forceinline__ bool is_representable(float, float) { return true; }
static __device__ __forceinline__ bool is_representable(tensor_float, float) { return true; }

/* Waits until the mbarrier's phase has completed. Every thread that reads the data calls it. */
static __device__ __forceinline__ void mbarrier_wait(mbarrier *barrier, uint32_t phase) {
  for (uint32_t polls = 0; !mbarrier_try_wait(barrier, phase);) trap_on_timeout(&polls);
}

/* Begins to copy `rows` rows of COLUMNS values from global memory (`stride` values apart) to shared memory (`pitch` apart), with
 * cp.async. `thread` is the caller's index among the THREADS threads that share the copy. */
template <int THREADS, int COLUMNS, class Value>
static __device__ __forceinline__ void load_rows_async(int thread, const Value *from, uint32_t stride, int rows, Value *to,
                                                       int pitch) {
  enum { UNIT = 16 / sizeof(Value), UNITS = COLUMNS / UNIT, ROW_STEP = THREADS / UNITS, UNIT_STEP = THREADS % UNITS };
  int unit = thread % UNITS;
#pragma unroll 2
  for (int row = thread / UNITS; row < rows; row += ROW_STEP) {
    cp_async_16(&to[row * pitch + unit * UNIT], &from[(size_t)row * stride + unit * UNIT]);
    unit += UNIT_STEP;
    if (unit >= UNITS) unit -= UNITS, row++;
  }
}

#endif
