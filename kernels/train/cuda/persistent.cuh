/* The engine "persistent": how its work is divided over blocks, what a block holds in shared memory, and helpers that its kernels
 * share (persistent_kernels.cu).
 *
 *   microbatch  at most 64 images of a step, one per pair. A step (one batch) is processed in ⌈batch / 64⌉ microbatches: image n
 *               of a step belongs to pair n % 64 in microbatch n / 64
 *   grid        128 blocks, one per multiprocessor. A block updates the same 1/128 of the parameters in every step
 *   pair        two neighbouring blocks, a cluster. A pair processes one image at a time: each block computes half of conv1's
 *               pixels and half of conv2's channels. The peer of a block is the other block of its pair
 *   group       eight neighbouring pairs. Each of its 16 blocks multiplies one slice (1/16) of fc1's inputs for the group's eight
 *               images
 *
 * Names: pooled1 and pooled2 are the outputs of conv1 and conv2 after bias, ReLU and pooling; pooled2 is fc1's input. The product
 * of a layer is its output before the bias. The head is all that follows fc1's product: bias, ReLU (its output is `hidden`), fc2,
 * softmax and loss. d_x is the gradient of the loss with respect to x; d_fc1 is that of fc1's product, d_out that of conv2's
 * product. Members named after a layer (conv2, fc1) hold its weights.
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
  BLOCK_PAIRS = RL_PERSISTENT_BLOCK_PAIRS,
  BLOCKS = RL_PERSISTENT_BLOCKS,
  GROUP_PAIRS = TILE_IMAGES,                   /* also the images of a group in a microbatch */
  FC1_SLICES = 2 * GROUP_PAIRS,                /* one per block of a group */
  SLICE_INPUTS = RL_FC1_INPUTS / FC1_SLICES,   /* inputs of fc1 in a slice */
  BLOCK_ROWS = RL_POOLED1_SIDE / 2,            /* rows of pooled1 that a block computes: one half of them */
  BLOCK_PIXELS = BLOCK_ROWS * RL_POOLED1_SIDE, /* pixels of pooled1 that a block computes */
  IMAGE_ROWS = 2 * BLOCK_ROWS + 2,             /* rows of the padded image that BLOCK_ROWS pooled rows depend on */
  CONV2_WEIGHTS_PER_BLOCK = CONV2_COUNT / 2,   /* weights of a block's channels */
  /* A block updates a tile of fc1.weight, CONV2_PER_BLOCK parameters of conv2.weight, and SMALL_PER_BLOCK of the small values.
   * These are, in this order, the elements of conv1.weight, conv1.bias, conv2.bias, fc1.bias, fc2.weight, fc2.bias, and the loss.
   */
  CONV2_PER_BLOCK = CONV2_COUNT / BLOCKS,
  SMALL_VALUES = CONV2_OFFSET + RL_C2 + RL_HEAD_PARAMETERS + 1,
  TAGGED_WEIGHTS = CONV2_OFFSET + RL_C2, /* the first three of these tensors: their new values are sent as tagged words */
  SMALL_PER_BLOCK = (SMALL_VALUES + BLOCKS - 1) / BLOCKS,
  SMALL_PITCH = 16,                               /* SMALL_PER_BLOCK rounded up to a power of two */
  WARP_SUMS = RL_CONV1_PARAMETERS + TILE_CHANNELS /* gradients that a warp adds up: of conv1, then of conv2.bias */
};
static_assert(FC1_OFFSET + (RL_PARAMETERS + 1) / 2 <= HEAD_OFFSET, "FP16 copies of all weights fit into fc1.weight");
static_assert((RL_FC1_OUTPUTS / TILE_ROWS) * (RL_FC1_INPUTS / TILE_COLUMNS) == BLOCKS, "every tile of fc1.weight has a block");
static_assert(SMALL_PER_BLOCK <= SMALL_PITCH && CONV2_PER_BLOCK + SMALL_PER_BLOCK <= TILE_THREADS,
              "every other parameter of a block has a thread");

/* How a block divides its work over threads and warps. When it adds up the rows of partial sums (one row per pair),
 * CONV2_ROW_SPLITS threads share the rows of four neighbouring weights of conv2 (a quad), and SMALL_ROW_SPLITS threads share the
 * rows of one small value. */
enum { CONV2_QUADS = CONV2_PER_BLOCK / 4 };
template <class F> struct step_schedule {
  enum {
    THREADS = F::THREADS,
    WARPS = THREADS / 32,
    /* 1: prepare_weights transforms conv2's weights; 0: the products read them as loaded. */
    TRANSFORMS_WEIGHTS = F::CONV2_FORWARD_SCRATCH_FLOATS > 0,
    /* 1: warps that do not compute conv2_forward load fc1's weights during it; 0: all warps load them, between products. */
    PREFETCH_EARLY = (int)F::CONV2_FORWARD_WARPS < (int)WARPS,
    COMPUTE_WARPS = WARPS - (PREFETCH_EARLY ? 2 : 1), /* compute conv1; the other warps poll barriers and load weights */
    CONV2_ROW_SPLITS = THREADS / CONV2_QUADS,
    SMALL_ROW_SPLITS = THREADS / SMALL_PITCH,
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

/* Global memory through which blocks exchange data; cleared before a launch. The floats are tagged words (exchange.cuh). A pair
 * has one row for its image of the current microbatch. */
typedef struct rl_block_exchange {
  float pooled2[BLOCK_PAIRS][RL_FC1_INPUTS];
  float fc1_parts[BLOCK_PAIRS][FC1_SLICES][RL_FC1_OUTPUTS]; /* fc1's product is the sum of one part per slice */
  float d_fc1[BLOCK_PAIRS][RL_FC1_OUTPUTS], d_pooled2[BLOCK_PAIRS][RL_FC1_INPUTS];
  float tagged_weights[BLOCK_PAIRS / GROUP_PAIRS][TAGGED_WEIGHTS]; /* one copy per group, because all blocks read them at once */
  /* Counters of the grid barriers, each in a separate 128-byte line. */
  uint32_t loaded[32];   /* every block has its parameters in shared memory */
  uint32_t forward[32];  /* the step's pooled2 and d_fc1 are in global memory */
  uint32_t backward[32]; /* the step's partial sums are in global memory */
  uint32_t update[32];   /* the next step's weights are in global memory */
  uint32_t overflow;     /* 1 + number of the last step with an infinite or NaN gradient; 0: none */
} rl_block_exchange;

/* A parameter with its two moments of Adam. */
typedef struct parameter {
  float weight, first_moment, second_moment;
} parameter;

/* Dynamic shared memory of a block. "This block's channels" are its TILE_CHANNELS output channels of conv2. Layouts that depend
 * on the format are described in tile.cuh. */
template <class F> struct block_memory {
  typedef typename F::value value;
  alignas(16) value conv2[F::WEIGHT_VALUES];                  /* weights of this block's channels, after prepare_weights */
  alignas(16) value pooled1[RL_POOLED1_PIXELS * F::IN_PITCH]; /* of the pair's image */
  union {                                                     /* at any time, only one member is in use */
    alignas(16) value conv2_untransformed[F::CONV2_FORWARD_SCRATCH_FLOATS > 0 ? TILE_CHANNELS *F::LOADED_WEIGHT_PITCH : 1];
    alignas(16) float conv2_forward_scratch[F::CONV2_FORWARD_SCRATCH_FLOATS > 0 ? F::CONV2_FORWARD_SCRATCH_FLOATS : 1];
    alignas(16) value fc1[RL_FC1_OUTPUTS * (SLICE_INPUTS + F::SLICE_PADDING)]; /* weights of this block's slice */
    alignas(16) value d_out[F::D_OUT_VALUES];                                  /* this block's channels */
    struct { /* end of a step: operands of fc1's weight gradient, [image][output or input of the tile]; sums of each warp, and of
              * each thread that shares a column of partial sums (step_schedule) */
      alignas(16) value tile_d_fc1[TILE_BATCH * F::D_FC1_TILE_PITCH], tile_pooled2[TILE_BATCH * F::FC1_IN_TILE_PITCH];
      alignas(16) float warp_sums[step_schedule<F>::WARPS][WARP_SUMS],
          conv2_sums[step_schedule<F>::CONV2_ROW_SPLITS][CONV2_PER_BLOCK],
          small_sums[step_schedule<F>::SMALL_ROW_SPLITS][SMALL_PITCH];
    };
  };
  union {    /* at any time, only one member is in use */
    struct { /* fc1 and the head: of the group's images */
      alignas(16) value pooled2[GROUP_PAIRS * (SLICE_INPUTS + F::SLICE_PADDING)], d_fc1[GROUP_PAIRS * F::D_FC1_PITCH];
      alignas(16) float hidden[step_schedule<F>::WARPS][RL_FC1_OUTPUTS]; /* sums of fc1_parts by warp; then [0]: hidden */
    };
    alignas(16) float conv2_backward_scratch[F::CONV2_BACKWARD_SCRATCH_FLOATS > 0 ? F::CONV2_BACKWARD_SCRATCH_FLOATS : 1];
    /* Gradient of this block's pixels of pooled1: [0] the part from this block's channels of conv2, [1] the part from the
     * peer's. */
    alignas(16) float d_pooled1[2][BLOCK_PIXELS * RL_C1];
  };
  alignas(16) float conv2_warp_scratch[F::CONV2_WARP_SCRATCH_FLOATS > 0 ? F::CONV2_WARP_SCRATCH_FLOATS : 4];
  alignas(16) float conv1[RL_CONV1_PARAMETERS], conv2_bias[TILE_CHANNELS];
  alignas(16) float head[RL_HEAD_PITCH]; /* fc1.bias, fc2.weight, fc2.bias */
  alignas(16) float logits[RL_CLASSES];
  alignas(16) uint8_t image_bytes[RL_IMAGE_PIXELS];       /* the next image */
  alignas(16) float image_rows[IMAGE_ROWS * CONV1_WIDTH]; /* the current image: the normalised rows for this block's pixels */
  alignas(16) uint8_t argmax1[BLOCK_PIXELS * RL_C1], argmax2[RL_POOLED2_PIXELS * TILE_CHANNELS];
  /* This block's tile of fc1.weight with its moments, [pair of neighbouring weights][thread]. */
  float2 weight[F::HAS_FP32_MASTER_WEIGHTS ? F::FC1_GRADIENT_PAIRS_PER_THREAD : 1][step_schedule<F>::TILE_OWNERS],
      first_moment[F::FC1_GRADIENT_PAIRS_PER_THREAD][step_schedule<F>::TILE_OWNERS],
      second_moment[F::FC1_GRADIENT_PAIRS_PER_THREAD][step_schedule<F>::TILE_OWNERS];
  parameter owned_parameters[CONV2_PER_BLOCK + SMALL_PER_BLOCK]; /* each is updated by one thread */
  rl_train_state state;
  mbarrier pooled1_mbarrier;   /* completes when the peer's half of pooled1 has been received */
  mbarrier gradients_mbarrier; /* completes when the peer's part of d_pooled1 has been received */
};

/* Prefetching of the pair's images. Microbatch n loads the pixels and label of microbatch n + 1, and n + 2's data set index. */
typedef struct prefetch_state {
  uint32_t label, next_label;            /* of microbatch n; of n + 1 */
  uint32_t next_image, image_after_next; /* data set indices of n + 1 and n + 2 */
} prefetch_state;

/* A thread's sums of gradients over the microbatches of a step. Different warps add up different gradients of the head
 * (train_head). */
template <class F> struct gradient_sums {
  typename F::weight_sums conv2;
  float4 conv2_bias;             /* of four channels */
  float conv1[10];               /* nine taps and the bias of one channel */
  float4 fc2_weight_or_fc1_bias; /* warps 0 to 9: four elements of a row of fc2.weight; warp 10: four of fc1.bias */
  float fc2_bias_or_loss;        /* warps 0 to 9: an element of fc2.bias; warp 11 and later: the loss */
  bool overflow;                 /* a value is not finite or does not fit into the format */
};

/* At most BLOCK_PAIRS images of a step, one per pair. */
typedef struct microbatch {
  uint32_t step_images; /* images of this step; 0: the epoch has ended */
  uint32_t index;       /* in the step */
  uint32_t batch_size;  /* images of every step before this one */
  uint32_t step;        /* of the epoch */
} microbatch;

/* Returns the number, in the step, of the pair's image of a microbatch. The pair has no image if has_image is false. */
static __device__ __forceinline__ uint32_t step_image(const microbatch &mb, uint32_t pair) {
  return mb.index * BLOCK_PAIRS + pair;
}
static __device__ __forceinline__ bool has_image(const microbatch &mb, uint32_t pair) {
  return step_image(mb, pair) < mb.step_images;
}
/* Returns the phase of the pair's tagged words and mbarriers: the number of images that the pair has processed in this launch,
 * including the one of this microbatch. */
static __device__ __forceinline__ uint32_t message_phase(const microbatch &mb, uint32_t pair) {
  return mb.step * ((mb.batch_size + BLOCK_PAIRS - 1 - pair) / BLOCK_PAIRS) + mb.index + 1;
}

/* Returns the time in ns, of one clock for all SMs. */
static __device__ __forceinline__ uint64_t global_time(void) {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

enum { STEP_BEGIN = -1 };

/* Records the time as the end of timed_phase (RL_TIMED_…) or, for STEP_BEGIN, as the begin of the step. A later microbatch of the
 * step overwrites the timestamps of an earlier one. */
static __device__ __forceinline__ void record_timestamp(const rl_persistent_args &args, uint32_t step, int timed_phase) {
  if (!args.timestamps || threadIdx.x != 0 || step >= RL_TIMESTAMPED_STEPS) return;
  args.timestamps->phases[blockIdx.x][step][timed_phase + 1] = global_time();
}

static __device__ __forceinline__ void record_launch_timestamp(const rl_persistent_args &args, bool is_end) {
  if (!args.timestamps || threadIdx.x != 0) return;
  args.timestamps->launch[blockIdx.x][is_end] = global_time();
  args.timestamps->cycles[blockIdx.x][is_end] = (uint64_t)clock64();
}

/* Returns true in the warps that compute conv1. Meanwhile the other warps wait for barriers and load weights. */
template <class F> static __device__ __forceinline__ bool is_compute_warp(void) {
  return threadIdx.x < step_schedule<F>::COMPUTE_WARPS * 32;
}

/* Returns the number of rows of partial sums: the number of pairs that have an image in a step of `batch` images. */
static __host__ __device__ __forceinline__ uint32_t partial_rows(uint32_t batch) {
  return batch < BLOCK_PAIRS ? batch : (uint32_t)BLOCK_PAIRS;
}

/* This block's half of the pair's row of partial sums of conv2.weight's gradient. */
static __device__ __forceinline__ float *conv2_weight_partial_row(const rl_persistent_args &args, const block_coords &coords) {
  return &args.partial_conv2_weight[(size_t)coords.pair * CONV2_COUNT + coords.rank * CONV2_WEIGHTS_PER_BLOCK];
}

/* Returns the weights in global memory as the products read them (of type F::value), each tensor at its offset. During a launch
 * they overwrite the FP32 weights, because the blocks hold these in shared memory. FP16 weights are stored from fc1.weight on, in
 * half of its bytes; FP32 and TF32 weights are stored in place. */
template <class F> static __device__ __forceinline__ typename F::value *compute_weights(const rl_persistent_args &args) {
  return (typename F::value *)(args.adam.weights + (sizeof(typename F::value) == sizeof(__half) ? FC1_OFFSET : 0));
}

/* Returns v rounded to the type Value. */
template <class Value> static __device__ __forceinline__ float rounded_to(float v) { return (float)(Value)v; }

/* Stores two values, rounded to the type of *to. */
static __device__ __forceinline__ void store2(__half *to, float a, float b) { *(__half2 *)to = __floats2half2_rn(a, b); }
static __device__ __forceinline__ void store2(float *to, float a, float b) { *(float2 *)to = make_float2(a, b); }
static __device__ __forceinline__ void store2(tensor_float *to, float a, float b) {
  *(float2 *)to = make_float2(tensor_float(a), tensor_float(b));
}

/* Stores two values in this block's shared memory, and with st.async, which completes on `barrier`, in the peer's. */
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

/* Returns whether v, rounded to the type of the first argument, is finite. FP32 and TF32 values are not checked. */
static __device__ __forceinline__ bool is_representable(__half, float v) {
  return fabsf(v) < 65520.0f; /* which rounds to infinity */
}
static __device__ __forceinline__ bool is_representable(float, float) { return true; }
static __device__ __forceinline__ bool is_representable(tensor_float, float) { return true; }

/* Waits until the mbarrier's phase has completed. Every thread that reads the data calls it. */
static __device__ __forceinline__ void mbarrier_wait(mbarrier *barrier, uint32_t phase) {
  for (uint32_t polls = 0; !mbarrier_try_wait(barrier, phase);) trap_on_timeout(&polls);
}

/* Begins to copy `rows` rows of COLUMNS values with cp.async, from global memory, where rows are `stride` values apart, to shared
 * memory, where they are `pitch` values apart. THREADS threads share the copy; `thread` is the caller's index among them. */
template <int THREADS, int COLUMNS, class Value>
static __device__ __forceinline__ void load_rows_async(int thread, const Value *from, uint32_t stride, int rows, Value *to,
                                                       int pitch) {
  enum {
    VECTOR = 16 / sizeof(Value),
    ROW_VECTORS = COLUMNS / VECTOR,
    ROW_STEP = THREADS / ROW_VECTORS,
    VECTOR_STEP = THREADS % ROW_VECTORS
  };
  int vector = thread % ROW_VECTORS;
#pragma unroll 2
  for (int row = thread / ROW_VECTORS; row < rows; row += ROW_STEP) {
    cp_async_16(&to[row * pitch + vector * VECTOR], &from[(size_t)row * stride + vector * VECTOR]);
    vector += VECTOR_STEP;
    if (vector >= ROW_VECTORS) vector -= ROW_VECTORS, row++;
  }
}

#endif
