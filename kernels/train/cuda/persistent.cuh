/* The engine "persistent": how its work is divided over blocks, what a block holds in shared memory, and functions that its
 * kernels share. The kernels are in persistent_kernels.cu.
 *
 * Division of work:
 *   step        forward pass, backward pass and update of the parameters for one batch of images
 *   microbatch  at most 64 images of a step, one per pair. A step is processed in ⌈batch / 64⌉ microbatches: image n of a step
 *               belongs to pair n % 64 in microbatch n / 64
 *   grid        128 blocks, one per multiprocessor. A block updates the same 1/128 of the parameters in every step
 *   pair        two neighbouring blocks, a thread block cluster. A pair processes one image at a time: each block computes
 *               half of conv1's pixels and half of conv2's channels. The peer of a block is the other block of its pair
 *   group       eight neighbouring pairs. Each of the 16 blocks of a group multiplies one slice (1/16) of fc1's inputs for
 *               the eight images of the group
 *
 * Names of tensors: pooled1 and pooled2 are the outputs of conv1 and conv2 after bias, ReLU and pooling; pooled2 is fc1's input.
 * The product of a layer is its output before the bias. The head is everything after fc1's product: bias, ReLU (its output is
 * called `hidden`), fc2, softmax and loss. d_x is the gradient of the loss with respect to x; d_fc1 is the gradient of fc1's
 * product, d_out that of conv2's product. Members that are called like a layer (conv2, fc1) hold the weights of that layer.
 *
 * In the templates, F is a tile format (tile.cuh): the type of the multiplied values, their layouts, and the products. */
#ifndef RL_TRAIN_CUDA_PERSISTENT_CUH
#define RL_TRAIN_CUDA_PERSISTENT_CUH

#include "clusters.cuh"
#include "train/cuda/adam.cuh"
#include "train/cuda/conv1.cuh"
#include "train/cuda/conv1_tile.cuh"
#include "train/cuda/exchange.cuh"
#include "train/cuda/persistent.h"
#include "train/cuda/tensor_float.cuh"
#include "train/cuda/tile.cuh"
#include "train/cuda/vector.cuh"

enum {
  BLOCK_PAIRS = RL_PERSISTENT_BLOCK_PAIRS,
  BLOCKS = RL_PERSISTENT_BLOCKS,
  GROUP_PAIRS = TILE_IMAGES,                   /* pairs of a group, and images of a group in a microbatch */
  FC1_SLICES = 2 * GROUP_PAIRS,                /* one slice for each block of a group */
  SLICE_INPUTS = RL_FC1_INPUTS / FC1_SLICES,   /* inputs of fc1 in a slice */
  BLOCK_ROWS = RL_POOLED1_SIDE / 2,            /* rows of pooled1 that a block computes: half of them */
  BLOCK_PIXELS = BLOCK_ROWS * RL_POOLED1_SIDE, /* pixels of pooled1 that a block computes */
  IMAGE_ROWS = 2 * BLOCK_ROWS + 2,             /* rows of the padded image that BLOCK_ROWS pooled rows depend on */
  CONV2_WEIGHTS_PER_BLOCK = CONV2_COUNT / 2,   /* weights of a block's channels */
  /* A block updates a tile of fc1.weight, CONV2_PER_BLOCK parameters of conv2.weight, and SMALL_PER_BLOCK of the small values.
   * The small values are the elements of conv1.weight, conv1.bias, conv2.bias, fc1.bias, fc2.weight and fc2.bias, in this order,
   * and then the loss. */
  CONV2_PER_BLOCK = CONV2_COUNT / BLOCKS,
  SMALL_VALUES = CONV2_OFFSET + RL_CONV2_CHANNELS + RL_HEAD_PARAMETERS + 1,
  TAGGED_WEIGHTS =
      CONV2_OFFSET +
      RL_CONV2_CHANNELS, /* conv1.weight, conv1.bias, conv2.bias: their new values are sent as tagged words (exchange.cuh) */
  SMALL_PER_BLOCK = (SMALL_VALUES + BLOCKS - 1) / BLOCKS,
  SMALL_PITCH = 16,                               /* SMALL_PER_BLOCK rounded up to a power of two */
  WARP_SUMS = RL_CONV1_PARAMETERS + TILE_CHANNELS /* gradients that each warp has sums of: of conv1, then of conv2.bias */
};
static_assert(FC1_OFFSET + (RL_PARAMETERS + 1) / 2 <= HEAD_OFFSET, "FP16 copies of all weights fit into fc1.weight");
static_assert((RL_FC1_OUTPUTS / TILE_ROWS) * (RL_FC1_INPUTS / TILE_COLUMNS) == BLOCKS, "every tile of fc1.weight has a block");
static_assert(SMALL_PER_BLOCK <= SMALL_PITCH && CONV2_PER_BLOCK + SMALL_PER_BLOCK <= TILE_THREADS,
              "every other parameter of a block has a thread");

/* How a block divides its work over threads and warps. Partial sums are rows, one row per pair. To add them up, CONV2_ROW_SPLITS
 * threads share the rows of four neighbouring weights of conv2 (a quad), and SMALL_ROW_SPLITS threads share the rows of one small
 * value. */
enum { CONV2_QUADS = CONV2_PER_BLOCK / 4 };
template <class F> struct step_schedule {
  enum {
    THREADS = F::THREADS,
    WARPS = THREADS / 32,
    /* 1: prepare_weights transforms conv2's weights; 0: the products read them as loaded. */
    TRANSFORMS_WEIGHTS = F::CONV2_FORWARD_SCRATCH_FLOATS > 0,
    /* 1: warps that do not compute conv2_forward load fc1's weights during it; 0: all warps load them, between products. */
    PREFETCH_EARLY = (int)F::CONV2_FORWARD_WARPS < (int)WARPS,
    COMPUTE_WARPS =
        WARPS - (PREFETCH_EARLY ? 2 : 1), /* warps that compute conv1; meanwhile the other warps poll barriers and load weights */
    CONV2_ROW_SPLITS = THREADS / CONV2_QUADS,
    SMALL_ROW_SPLITS = THREADS / SMALL_PITCH,
    TILE_OWNERS = F::FC1_GRADIENT_WARPS * 32 /* threads that update the tile of fc1.weight */
  };
  static_assert(CONV2_PER_BLOCK + SMALL_PER_BLOCK <= (int)THREADS && (int)WARPS > RL_CLASSES + 1,
                "every parameter has a thread, every part of the head a warp");
};

typedef struct block_coords {
  int lane, warp;            /* of the calling thread */
  uint32_t rank;             /* number of the block in its pair: 0 or 1 */
  uint32_t pair;             /* number of the pair in the grid: 0 to 63 */
  uint32_t group_first_pair; /* first pair of this pair's group */
  uint32_t slice;            /* slice of fc1's inputs that the block multiplies: 0 to 15 */
} block_coords;

static __device__ __forceinline__ block_coords own_coords(void) {
  const uint32_t pair = blockIdx.x / 2;
  return {(int)threadIdx.x % 32,  (int)threadIdx.x / 32, rank_in_cluster(), pair, pair / GROUP_PAIRS * GROUP_PAIRS,
          blockIdx.x % FC1_SLICES};
}

/* Global memory through which blocks exchange data; it is cleared before each launch. The floats are tagged words (exchange.cuh).
 * A pair has one row, for its image of the current microbatch. */
typedef struct rl_block_exchange {
  float pooled2[BLOCK_PAIRS][RL_FC1_INPUTS];
  float fc1_parts[BLOCK_PAIRS][FC1_SLICES][RL_FC1_OUTPUTS]; /* fc1's product is the sum of these parts, one for each slice */
  float d_fc1[BLOCK_PAIRS][RL_FC1_OUTPUTS], d_pooled2[BLOCK_PAIRS][RL_FC1_INPUTS];
  float tagged_weights[BLOCK_PAIRS / GROUP_PAIRS][TAGGED_WEIGHTS]; /* a copy for each group: all blocks read at once */
  /* Counters of the grid barriers, each in a separate 128-byte line. */
  uint32_t loaded[32];     /* complete: every block has loaded its parameters to shared memory */
  uint32_t forward[32];    /* complete: the step's pooled2 and d_fc1 are in global memory */
  uint32_t conv2_sums[32]; /* complete: the step's partial sums of conv2.weight are in global memory */
  uint32_t backward[32];   /* complete: the step's other partial sums are in global memory */
  uint32_t update[32];     /* complete: the next step's weights are in global memory */
  uint32_t overflow;       /* 1 + number of the last step with an infinite or NaN gradient; 0: none */
} rl_block_exchange;

/* A parameter with Adam's two moments. */
typedef struct parameter {
  float weight, first_moment, second_moment;
} parameter;

/* Shared memory of conv1, if each block computes its half of the pixels. */
template <class F, bool IS_SPLIT = F::CONV1_IS_SPLIT> struct conv1_memory {
  enum { D_POOLED1_PART_FLOATS = BLOCK_PIXELS * RL_CONV1_CHANNELS, SUM_ROWS = step_schedule<F>::WARPS };
  typedef struct sums {
    float of_channel[10]; /* nine taps and the bias of one channel */
  } sums;
  alignas(16) float image_rows[IMAGE_ROWS * CONV1_WIDTH]; /* the current image: normalised rows for this block's pixels */
  alignas(16) uint8_t argmax1[BLOCK_PIXELS * RL_CONV1_CHANNELS];
};

/* Shared memory of conv1, if each block computes all pixels (conv1_tile.cuh). d_pooled1 is the part from this block's channels of
 * conv2: the gradients of conv1 are linear in it, so that each block adds up the gradients of its part. */
template <class F> struct conv1_memory<F, false> {
  enum { D_POOLED1_PART_FLOATS = 4 /* not used */, SUM_ROWS = step_schedule<F>::COMPUTE_WARPS / 2 };
  typedef conv1_tile_sums sums;
  alignas(16) conv1_image image;
  alignas(16) uint16_t argmax1[TILED_WINDOWS * F::IN_PITCH];
  alignas(16) typename F::value d_pooled1[TILED_WINDOWS * F::IN_PITCH];
};

/* Dynamic shared memory of a block. "This block's channels" are the TILE_CHANNELS output channels of conv2 that the block
 * computes; "this block's pixels" are its half of the pixels of pooled1. tile.cuh describes the layouts that depend on the
 * format. At any time only one member of each union is in use. */
template <class F> struct block_memory : conv1_memory<F> {
  typedef typename F::value value;
  alignas(16) value conv2[F::WEIGHT_VALUES];                  /* weights of this block's channels, after prepare_weights */
  alignas(16) value pooled1[RL_POOLED1_PIXELS * F::IN_PITCH]; /* of the pair's image, all pixels */
  union {
    alignas(16) value conv2_untransformed[F::CONV2_FORWARD_SCRATCH_FLOATS > 0 ? TILE_CHANNELS *F::LOADED_WEIGHT_PITCH : 1];
    alignas(16) float conv2_forward_scratch[F::CONV2_FORWARD_SCRATCH_FLOATS > 0 ? F::CONV2_FORWARD_SCRATCH_FLOATS : 1];
    alignas(16) value fc1[RL_FC1_OUTPUTS * (SLICE_INPUTS + F::SLICE_PADDING)]; /* weights of this block's slice */
    alignas(16) value d_out[F::D_OUT_VALUES];                                  /* of this block's channels */
    struct { /* end of a step: operands of fc1's weight gradient, [image][output or input of the tile]; sums of each warp; and
                sums of each thread that shares a column of partial sums (step_schedule) */
      alignas(16) value tile_d_fc1[TILE_BATCH * F::D_FC1_TILE_PITCH], tile_pooled2[TILE_BATCH * F::FC1_IN_TILE_PITCH];
      alignas(16) float warp_sums[step_schedule<F>::WARPS][WARP_SUMS],
          conv2_sums[step_schedule<F>::CONV2_ROW_SPLITS][CONV2_PER_BLOCK],
          small_sums[step_schedule<F>::SMALL_ROW_SPLITS][SMALL_PITCH];
    };
  };
  union {
    struct { /* fc1 and the head, for the group's images */
      alignas(16) value pooled2[GROUP_PAIRS * (SLICE_INPUTS + F::SLICE_PADDING)], d_fc1[GROUP_PAIRS * F::D_FC1_PITCH];
      alignas(16) float hidden[step_schedule<F>::WARPS][RL_FC1_OUTPUTS]; /* first the sums of fc1_parts of each warp; then
                                                                            hidden[0] is the output of fc1 */
    };
    alignas(16) float conv2_backward_scratch[F::CONV2_BACKWARD_SCRATCH_FLOATS > 0 ? F::CONV2_BACKWARD_SCRATCH_FLOATS : 1];
    /* With CONV1_IS_SPLIT, the gradient of this block's pixels of pooled1: [0] is the part from this block's channels of conv2,
     * [1] the part from the peer's channels. */
    alignas(16) float d_pooled1_parts[2][conv1_memory<F>::D_POOLED1_PART_FLOATS];
  };
  alignas(16) float conv2_warp_scratch[F::CONV2_WARP_SCRATCH_FLOATS > 0 ? F::CONV2_WARP_SCRATCH_FLOATS : 4];
  alignas(16) float conv1[RL_CONV1_PARAMETERS], conv2_bias[TILE_CHANNELS];
  alignas(16) float head[RL_HEAD_PITCH]; /* fc1.bias, fc2.weight and fc2.bias */
  alignas(16) float logits[RL_CLASSES];
  alignas(16) uint8_t image_bytes[RL_IMAGE_PIXELS]; /* the pair's next image */
  alignas(16) uint8_t argmax2[RL_POOLED2_PIXELS * TILE_CHANNELS];
  /* This block's tile of fc1.weight with its moments: [pair of neighbouring weights][thread that updates it]. */
  float2 weight[F::HAS_FP32_MASTER_WEIGHTS ? F::FC1_GRADIENT_PAIRS_PER_THREAD : 1][step_schedule<F>::TILE_OWNERS],
      first_moment[F::FC1_GRADIENT_PAIRS_PER_THREAD][step_schedule<F>::TILE_OWNERS],
      second_moment[F::FC1_GRADIENT_PAIRS_PER_THREAD][step_schedule<F>::TILE_OWNERS];
  parameter owned_parameters[CONV2_PER_BLOCK + SMALL_PER_BLOCK]; /* of conv2.weight, small values */
  rl_train_state state;
  mbarrier pooled1_mbarrier;   /* a phase completes when the peer's half of pooled1 has been received */
  mbarrier gradients_mbarrier; /* a phase completes when the peer's part of d_pooled1 has been received */
};

/* Prefetching of the pair's images. Microbatch n loads the pixels and the label of its successor n + 1, and the data set index of
 * n + 2. */
typedef struct prefetch_state {
  uint32_t label, next_label;            /* labels of microbatches n and n + 1 */
  uint32_t next_image, image_after_next; /* data set indices of n + 1 and n + 2 */
} prefetch_state;

/* A thread's sums of gradients over the microbatches of a step. Different warps have sums of different gradients of the head
 * (train_head). */
template <class F> struct gradient_sums {
  typename F::weight_sums conv2;
  float4 conv2_bias; /* four channels */
  typename conv1_memory<F>::sums conv1;
  float4 fc2_weight_or_fc1_bias; /* warps 0 to 9: four elements of a row of fc2.weight; warp 10: four of fc1.bias */
  float fc2_bias_or_loss;        /* warps 0 to 9: an element of fc2.bias; warps from 11 on: the loss */
  bool overflow;                 /* a value is not finite or does not fit into the format */
};

/* The current microbatch of the current step. */
typedef struct microbatch {
  uint32_t step_images; /* images of the step; 0: the epoch has ended */
  uint32_t index;       /* number of the microbatch in the step */
  uint32_t batch_size;  /* images of each earlier step of the epoch */
  uint32_t step;        /* number of the step in the epoch */
} microbatch;

/* Returns the number in the step of the pair's image of a microbatch. If has_image is false, the pair has no image. */
static __device__ __forceinline__ uint32_t step_image(const microbatch &mb, uint32_t pair) {
  return mb.index * BLOCK_PAIRS + pair;
}
static __device__ __forceinline__ bool has_image(const microbatch &mb, uint32_t pair) {
  return step_image(mb, pair) < mb.step_images;
}
/* Returns the phase of the pair's tagged words and mbarriers: the number of images that the pair has processed in this launch,
 * including its image of this microbatch. */
static __device__ __forceinline__ uint32_t message_phase(const microbatch &mb, uint32_t pair) {
  return mb.step * ((mb.batch_size + BLOCK_PAIRS - 1 - pair) / BLOCK_PAIRS) + mb.index + 1;
}

/* Returns the time in ns of a clock that all SMs share. */
static __device__ __forceinline__ uint64_t global_time(void) {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

enum { STEP_BEGIN = -1 };

/* Records the time as the end of timed_phase (RL_TIMED_…) or, for STEP_BEGIN, as the begin of the step. A later microbatch of the
 * step overwrites the timestamps of an earlier one. Does nothing if timestamps are not wanted. */
static __device__ __forceinline__ void record_timestamp(const rl_persistent_args &args, uint32_t step, int timed_phase) {
  if (!args.timestamps || threadIdx.x != 0 || step >= RL_TIMESTAMPED_STEPS) return;
  args.timestamps->phases[blockIdx.x][step][timed_phase + 1] = global_time();
}

/* Records time and clock cycles of the begin or the end of the block. */
static __device__ __forceinline__ void record_launch_timestamp(const rl_persistent_args &args, bool is_end) {
  if (!args.timestamps || threadIdx.x != 0) return;
  args.timestamps->launch[blockIdx.x][is_end] = global_time();
  args.timestamps->cycles[blockIdx.x][is_end] = (uint64_t)clock64();
}

/* Returns true in the warps that compute conv1; meanwhile the other warps wait for barriers and load weights. */
template <class F> static __device__ __forceinline__ bool is_compute_warp(void) {
  return threadIdx.x < step_schedule<F>::COMPUTE_WARPS * 32;
}

/* Returns the number of rows of partial sums: the number of pairs that have an image in a step of `batch` images. */
static __host__ __device__ __forceinline__ uint32_t partial_rows(uint32_t batch) {
  return batch < BLOCK_PAIRS ? batch : (uint32_t)BLOCK_PAIRS;
}

/* Returns this block's half of the pair's row of partial sums of conv2.weight's gradient. */
static __device__ __forceinline__ float *conv2_weight_partial_row(const rl_persistent_args &args, const block_coords &coords) {
  return &args.partial_conv2_weight[(size_t)coords.pair * CONV2_COUNT + coords.rank * CONV2_WEIGHTS_PER_BLOCK];
}

/* Returns the weights in global memory that the products read, of type F::value, each tensor at its offset. During a launch they
 * overwrite the FP32 weights, of which the blocks have copies in shared memory. FP16 weights begin at fc1.weight's offset and
 * take half of the bytes; FP32 and TF32 weights are stored in place. */
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

/* Stores two values in this block's shared memory and, with st.async, at the same address of the peer's shared memory. The peer's
 * mbarrier `barrier` counts the bytes of the st.async. */
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

/* Waits until the mbarrier's phase has completed. Every thread that reads the received data calls it. */
static __device__ __forceinline__ void mbarrier_wait(mbarrier *barrier, uint32_t phase) {
  for (uint32_t polls = 0; !mbarrier_try_wait(barrier, phase);) trap_on_timeout(&polls);
}

/* Begins to copy `rows` rows of COLUMNS values with cp.async, from global memory, where the rows are `stride` values apart, to
 * shared memory, where they are `pitch` values apart. THREADS threads share the copy; `thread` is the number of the caller among
 * them. */
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
