/* The engine "persistent": how its work is divided among blocks, what a block holds in shared memory, and functions that its
 * kernels share. The kernels are in persistent_kernels.cu.
 *
 * Division of work:
 *   step        forward pass, backward pass and update of the parameters for one batch of images
 *   microbatch  at most 64 images of a step, one for each pair. A step is processed in ⌈batch / 64⌉ microbatches: image n of a
 *               step belongs to pair n % 64 in microbatch n / 64
 *   grid        128 blocks, one per SM. A block updates the same 1/128 of the parameters in every step
 *   pair        two neighbouring blocks, a thread block cluster. A pair processes one image at a time: each of its blocks
 *               computes half of conv1 (of its pixels in FP32, of its channels in TF32; in FP16 all of conv1) and half of
 *               conv2's channels. The peer of a block is the other block of its pair
 *   group       eight neighbouring pairs. Each of the 16 blocks of a group multiplies one slice (1/16) of fc1's inputs for
 *               the eight images of the group
 *
 * Names of tensors: pooled1 and pooled2 are the outputs of conv1 and conv2 after bias, ReLU and pooling; pooled2 is fc1's input.
 * The product of a layer is its output before the bias. The head is everything after fc1's product: bias, ReLU (its output is
 * called `hidden`), fc2, softmax and loss. x_gradient is the gradient of the loss with respect to x; out_gradient is the gradient
 * of conv2's product. Members that have the name of a layer (conv2, fc1) hold the weights of that layer.
 *
 * In the templates, Format is a tile format (tile.cuh): it defines the type of the multiplied values, their layouts in shared
 * memory, and the functions that compute the products. */
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
  BLOCK_ROWS = RL_POOLED1_SIDE / 2,            /* rows of pooled1 in a block's half */
  BLOCK_PIXELS = BLOCK_ROWS * RL_POOLED1_SIDE, /* pixels of pooled1 in a block's half */
  IMAGE_ROWS = 2 * BLOCK_ROWS + 2,             /* rows of the image with its border that BLOCK_ROWS rows of pooled1 depend on */
  CONV2_WEIGHTS_PER_BLOCK = CONV2_COUNT / 2,   /* of the block's half of conv2's channels */
  CONV2_PER_BLOCK = CONV2_COUNT / BLOCKS,      /* elements of conv2.weight that a block updates */
  /* Gradients of conv1 and of the block's channels of conv2.bias: the sums that a warp adds up for its block, and that every
   * block needs first in the next step. So they are added up over the grid in fixed point (exchange.cuh), and every block updates
   * its own copies of these parameters, instead of waiting for new weights of other blocks. */
  BLOCK_SUMS = RL_CONV1_PARAMETERS + TILE_CHANNELS,
  GRID_SUMS = RL_CONV1_PARAMETERS + RL_CONV2_CHANNELS, /* conv1's gradients, then those of conv2.bias */
  GRID_SUM_SECTOR = 4, /* sums in a 32-byte sector. A 128-byte line has only one sector with sums, because L2 does not add to
                          several sectors of a line at once. */
  /* Of the head and the loss (RL_HEAD_LOSS + 1 values), a block updates HEAD_PER_BLOCK. */
  HEAD_PER_BLOCK = (RL_HEAD_LOSS + BLOCKS) / BLOCKS,
  BULK_ALIGNMENT = 128,                     /* of the destination of a bulk copy: bytes that shared memory stores at once */
  FIRST_POLLING_THREAD = TILE_THREADS - 64, /* the poller, in the warp before the leader's */
  HEAD_PITCH = 16,                          /* HEAD_PER_BLOCK rounded up to a power of two */
  CONV2_PUBLISHED_PITCH = CONV2_K + 4       /* floats for a row of conv2's weights */
};
static_assert(FC1_OFFSET + (RL_PARAMETERS + 1) / 2 <= HEAD_OFFSET,
              "the FP16 copies of all weights must fit into the memory of fc1.weight");
static_assert((RL_FC1_OUTPUTS / TILE_ROWS) * (RL_FC1_INPUTS / TILE_COLUMNS) == BLOCKS,
              "every tile of fc1.weight must have a block");
static_assert((int)CONV2_PER_BLOCK <= (int)TILE_THREADS && (int)HEAD_PER_BLOCK <= (int)HEAD_PITCH &&
                  (int)BLOCK_SUMS == (int)TILE_THREADS - 32 && (int)FIRST_POLLING_THREAD == (int)RL_CONV1_PARAMETERS,
              "every parameter of a block must have a thread");

/* Versions of a tile format. They are for kernels with less code: each warp executes most instructions only once in a step, so a
 * check that finds nothing to do also takes time in each step.
 *
 *   recording       records timestamps, and stores the tensors that only tests read, if their pointers are set; the other
 *                   versions have no code for it
 *   one_microbatch  for steps of at most BLOCK_PAIRS images */
template <class Format> struct recording : Format {
  enum { RECORDS = 1 };
};
template <class Format> struct one_microbatch : Format {
  enum { ONE_MICROBATCH = 1 };
};

/* How a block divides its work among its threads and warps. Partial sums of the gradients of conv2.weight and of the head are
 * stored in rows, one row for each pair. To add up the rows, CONV2_ROW_SPLITS threads share those of neighbouring
 * weights of conv2, and HEAD_ROW_SPLITS threads share those of a value of the head. */
enum { CONV2_ADDING_WARPS = 9 /* warps that add up the rows of conv2 */ };
template <class Format> struct step_schedule {
  enum {
    THREADS = Format::THREADS,
    WARPS = THREADS / 32,
    /* 1: conv2_forward transforms conv2's weights; 0: the products read them as loaded. */
    TRANSFORMS_WEIGHTS = Format::CONV2_FORWARD_SCRATCH_FLOATS > 0,
    /* 1: one thread, the poller, begins bulk copies of the weights while conv1 is computed; 0: all warps load them later. */
    HAS_BULK_WEIGHTS = !TRANSFORMS_WEIGHTS,
    /* Warps 0 … CONV1_FORWARD_WARPS - 1 compute conv1. Meanwhile the leader arrives at the grid barrier `update`, and waits there
     * if not HAS_BULK_WEIGHTS; the poller begins the bulk copies. */
    CONV1_FORWARD_WARPS = WARPS - (HAS_BULK_WEIGHTS ? 2 : 1),
    /* Warps 0 … CONV1_BACKWARD_WARPS - 1 compute conv1's gradients. */
    CONV1_BACKWARD_WARPS = WARPS - 1,
    CONV2_VECTOR_SIZE = 16 / sizeof(typename Format::row_value), /* sums in 16 bytes of a row */
    CONV2_VECTORS = CONV2_PER_BLOCK / CONV2_VECTOR_SIZE,
    CONV2_ROW_SPLITS = CONV2_ADDING_WARPS * 32 / CONV2_VECTORS,
    HEAD_ROW_SPLITS = THREADS / HEAD_PITCH,
    /* 1: the tile of fc1.weight is updated before the votes are known. In FP32, this would take too many registers. */
    OVERLAPS_UPDATES = !TRANSFORMS_WEIGHTS,
    /* 1: the rows of partial sums are loaded into registers while the tile is updated; 0: later. In TF32, the version for several
     * microbatches would need too many registers. */
    LOADS_ROWS_EARLY = OVERLAPS_UPDATES && (Format::ONE_MICROBATCH || sizeof(typename Format::value) < sizeof(float)),
    TILE_UPDATE_THREADS = Format::FC1_GRADIENT_WARPS * 32 /* threads that update the tile of fc1.weight */
  };
  static_assert((int)WARPS > RL_CLASSES + 1, "every part of the head must have a warp");
};

typedef struct block_coords {
  int lane, warp;            /* of the calling thread */
  uint32_t rank;             /* of the block in its pair (cluster): 0 or 1 */
  uint32_t pair;             /* index of the pair in the grid: 0 to 63 */
  uint32_t group_first_pair; /* first pair of this pair's group */
  uint32_t slice;            /* slice of fc1's inputs that the block multiplies: 0 to 15 */
} block_coords;

/* Returns the coordinates of the calling thread and of its block. */
static __device__ __forceinline__ block_coords own_coords(void) {
  const uint32_t pair = blockIdx.x / 2;
  return {(int)threadIdx.x % 32,  (int)threadIdx.x / 32, rank_in_cluster(), pair, pair / GROUP_PAIRS * GROUP_PAIRS,
          blockIdx.x % FC1_SLICES};
}

/* Global memory through which blocks exchange data. It is cleared before each launch. The floats are tagged words (exchange.cuh).
 * Arrays [BLOCK_PAIRS] have one row for each pair's image of the current microbatch. */
typedef struct rl_block_exchange {
  float pooled2[BLOCK_PAIRS][RL_FC1_INPUTS];
  float fc1_parts[BLOCK_PAIRS][FC1_SLICES][RL_FC1_OUTPUTS]; /* the sum of the FC1_SLICES parts is fc1's product */
  float fc1_product_gradient[BLOCK_PAIRS][RL_FC1_OUTPUTS], pooled2_gradient[BLOCK_PAIRS][RL_FC1_INPUTS];
  /* Sums over the grid, in fixed point. Steps alternate between the two copies: while a step adds to one, the other one is set to
   * 0. */
  uint64_t grid_sums[2][GRID_SUMS / GRID_SUM_SECTOR][128 / sizeof(uint64_t)];
  /* Counters of the grid barriers, each in a separate 128-byte line. Each comment states what holds after the barrier. */
  uint32_t loaded[32];  /* every block has loaded its parameters into shared memory */
  uint32_t forward[32]; /* the step's pooled2 and fc1_product_gradient are in global memory */
  uint32_t rows[32];    /* the step's rows of partial sums are in global memory */
  /* If HAS_BULK_WEIGHTS: conv2's weights, of type Format::value, as the blocks have them in shared memory. */
  alignas(128) float conv2_weights[RL_CONV2_CHANNELS * CONV2_PUBLISHED_PITCH];
  /* A block votes if it has computed a gradient that is not finite, or too large for a grid sum or for a row of partial sums. */
  alignas(128) uint64_t votes;
  /* Only if HAS_BULK_WEIGHTS: the next step's weights of conv2 and fc1 are in global memory, unless a block votes in this
   * step. */
  alignas(128) uint32_t weights[32];
  uint32_t update[32]; /* the next step's weights are in global memory */
} rl_block_exchange;

/* A parameter with Adam's two moments. */
typedef struct parameter {
  float weight, first_moment, second_moment;
} parameter;

/* Shared memory of conv1 if CONV1_IS_SPLIT and CONV1_GRADIENT_IS_SPLIT: each block computes its half of the pixels. */
template <class Format, bool IS_SPLIT = Format::CONV1_IS_SPLIT, bool GRADIENT_IS_SPLIT = Format::CONV1_GRADIENT_IS_SPLIT>
struct conv1_memory {
  enum { SUM_ROWS = step_schedule<Format>::WARPS };
  typedef struct sums {
    float of_channel[10]; /* gradients of the nine taps and the bias of one channel */
  } sums;
  /* The normalised rows of the pair's image that this block's pixels depend on. */
  alignas(16) float image_rows[IMAGE_ROWS * CONV1_WIDTH];
  alignas(16) uint8_t argmax1[BLOCK_PIXELS * RL_CONV1_CHANNELS];
};

/* Shared memory of conv1 if not CONV1_GRADIENT_IS_SPLIT: each block has the whole image (conv1_tile.cuh). pooled1_gradient is the
 * part of the gradient that comes from this block's channels of conv2. conv1's gradients are linear in it, so each block adds up
 * the gradients that follow from its own part. If not CONV1_IS_SPLIT, each block also computes all pixels. */
template <class Format> struct conv1_memory<Format, false, false> {
  enum { SUM_ROWS = step_schedule<Format>::CONV1_BACKWARD_WARPS };
  typedef conv1_tile_sums sums;
  alignas(16) conv1_image image;
  alignas(16) uint16_t argmax1[TILED_WINDOWS * Format::IN_PITCH];
  alignas(16) typename Format::value pooled1_gradient[TILED_WINDOWS * Format::IN_PITCH];
  alignas(16) float conv2_warp_scratch[4]; /* not used */
};
/* If CONV1_IS_SPLIT, each block computes its half of the channels, and the argmaxes are in pooled1 (conv1_tile.cuh). */
template <class Format> struct conv1_memory<Format, true, false> {
  enum { SUM_ROWS = step_schedule<Format>::CONV1_BACKWARD_WARPS };
  typedef conv1_tile_sums sums;
  alignas(16) float image[EXACT_IMAGE_ROWS * FLOAT_IMAGE_PITCH];
  union { /* of the backward, and of the forward pass */
    alignas(16) typename Format::value pooled1_gradient[RL_POOLED1_PIXELS * Format::IN_PITCH];
    alignas(16) float conv2_warp_scratch[Format::CONV2_WARP_SCRATCH_FLOATS];
  };
};

/* Shared memory of conv2, fc1 and the end of a step. In this version, only one member of each union is in use at any time.
 * tile.cuh describes the layouts that depend on the format. */
template <class Format, bool TRANSFORMS_WEIGHTS = step_schedule<Format>::TRANSFORMS_WEIGHTS> struct layer_memory
    : conv1_memory<Format> {
  typedef typename Format::value value;
  alignas(BULK_ALIGNMENT) value conv2[Format::WEIGHT_VALUES];      /* weights of this block's channels */
  alignas(16) value pooled1[RL_POOLED1_PIXELS * Format::IN_PITCH]; /* all pixels of the pair's image */
  union {
    /* weights of this block's slice */
    alignas(BULK_ALIGNMENT) value fc1[RL_FC1_OUTPUTS * (SLICE_INPUTS + Format::SLICE_PADDING)];
    struct {
      union {
        alignas(16) value out_gradient[Format::OUT_GRADIENT_VALUES]; /* of this block's channels */
        struct { /* At the end of a step: sums that belong to warps (add_block_sums), and to threads that share rows of partial
                    sums (step_schedule). */
          alignas(16) float warp_sums[step_schedule<Format>::WARPS][BLOCK_SUMS],
              conv2_sums[step_schedule<Format>::CONV2_ROW_SPLITS][CONV2_PER_BLOCK],
              head_sums[step_schedule<Format>::HEAD_ROW_SPLITS][HEAD_PITCH];
        };
      };
      /* The tiles are the operands of fc1's weight gradient, [image][output or input of the block's tile]. They are loaded while
       * conv1's gradients are computed. */
      alignas(BULK_ALIGNMENT) value tile_pooled2[TILE_BATCH * Format::FC1_INPUT_TILE_PITCH];
    };
  };
  union {
    struct { /* fc1 and the head, for the group's images */
      alignas(16) value pooled2[GROUP_PAIRS * (SLICE_INPUTS + Format::SLICE_PADDING)],
          fc1_product_gradient[GROUP_PAIRS * Format::FC1_PRODUCT_GRADIENT_PITCH];
      /* First, for each warp, the sums of the fc1_parts that it receives; then hidden[0] is the output of fc1. */
      alignas(16) float hidden[step_schedule<Format>::WARPS][RL_FC1_OUTPUTS];
    };
    alignas(BULK_ALIGNMENT) value tile_fc1_product_gradient[TILE_BATCH * Format::FC1_PRODUCT_GRADIENT_TILE_PITCH];
  };
};

/* The same if conv2_forward transforms the weights of conv2. Members of different structs are in use at the same time where they
 * do not overlap: fc1 overlaps the transformed weights but not the scratch, so it is loaded while conv2_forward transforms its
 * outputs; conv2_gradients.sums[0] overlaps pooled1, which has been read into registers before. */
template <class Format> struct layer_memory<Format, true> : conv1_memory<Format> {
  typedef typename Format::value value;
  typedef typename Format::conv2_gradient_memory gradient_memory;
  union {
    struct {
      union {
        alignas(16) float conv2_forward_scratch[Format::CONV2_FORWARD_SCRATCH_FLOATS];
        struct {
          alignas(16) value tile_fc1_product_gradient[TILE_BATCH * Format::FC1_PRODUCT_GRADIENT_TILE_PITCH],
              tile_pooled2[TILE_BATCH * Format::FC1_INPUT_TILE_PITCH];
          alignas(16) float warp_sums[step_schedule<Format>::WARPS][BLOCK_SUMS],
              conv2_sums[step_schedule<Format>::CONV2_ROW_SPLITS][CONV2_PER_BLOCK],
              head_sums[step_schedule<Format>::HEAD_ROW_SPLITS][HEAD_PITCH];
        };
      };
      alignas(16) value pooled1[RL_POOLED1_PIXELS * Format::IN_PITCH];
      alignas(16) value conv2[Format::WEIGHT_VALUES]; /* transformed weights of this block's channels */
      alignas(16) float pooled1_gradient_parts[2][BLOCK_PIXELS * RL_CONV1_CHANNELS];
    };
    struct {
      float padding_to_conv2[Format::CONV2_FORWARD_SCRATCH_FLOATS + RL_POOLED1_PIXELS * Format::IN_PITCH];
      alignas(16) value fc1[RL_FC1_OUTPUTS * (SLICE_INPUTS + Format::SLICE_PADDING)],
          pooled2[GROUP_PAIRS * (SLICE_INPUTS + Format::SLICE_PADDING)],
          fc1_product_gradient[GROUP_PAIRS * Format::FC1_PRODUCT_GRADIENT_PITCH];
      alignas(16) float hidden[step_schedule<Format>::WARPS][RL_FC1_OUTPUTS];
    };
    gradient_memory conv2_gradients;
  };
  enum {
    SCRATCH_BYTES = 4 * Format::CONV2_FORWARD_SCRATCH_FLOATS,
    POOLED1_END = SCRATCH_BYTES + 4 * RL_POOLED1_PIXELS * Format::IN_PITCH,
    CONV2_END = POOLED1_END + 4 * Format::WEIGHT_VALUES,
    STEP_END_BYTES =
        sizeof(tile_fc1_product_gradient) + sizeof(tile_pooled2) + sizeof(warp_sums) + sizeof(conv2_sums) + sizeof(head_sums)
  };
  static_assert(sizeof(value) == sizeof(float), "padding_to_conv2 and the enumerators assume it");
  static_assert(sizeof(gradient_memory) <= CONV2_END, "the epilogue of conv2_gradients must not overwrite its operands");
  static_assert(offsetof(gradient_memory, sums) <= SCRATCH_BYTES &&
                    offsetof(gradient_memory, sums) + sizeof(gradient_memory::sums[0]) >= POOLED1_END,
                "pooled1 may overlap only sums[0]");
  static_assert((int)STEP_END_BYTES <= (int)SCRATCH_BYTES,
                "the peer stores pooled1 of the next step while this block still reads sums of this step");
};

/* Dynamic shared memory of a block. "This block's channels" are the TILE_CHANNELS output channels of conv2 that the block
 * computes; "this block's pixels" are its half of the pixels of pooled1. */
template <class Format> struct block_memory : layer_memory<Format> {
  typedef typename Format::value value;
  alignas(16) float conv1[RL_CONV1_PARAMETERS], conv2_bias[TILE_CHANNELS];
  alignas(16) float head[RL_HEAD_PITCH]; /* fc1.bias, fc2.weight and fc2.bias */
  alignas(16) float logits[RL_CLASSES];
  alignas(16) uint8_t image_bytes[RL_IMAGE_PIXELS]; /* of the pair's next image */
  alignas(16) uint8_t argmax2[RL_POOLED2_PIXELS * TILE_CHANNELS];
  /* This block's tile of fc1.weight and its moments: [i: two neighbouring weights][thread that updates them]. */
  float2 tile_weight[Format::HAS_FP32_MASTER_WEIGHTS ? Format::FC1_GRADIENT_PAIRS_PER_THREAD : 1]
                    [step_schedule<Format>::TILE_UPDATE_THREADS],
      tile_first_moment[Format::FC1_GRADIENT_PAIRS_PER_THREAD][step_schedule<Format>::TILE_UPDATE_THREADS],
      tile_second_moment[Format::FC1_GRADIENT_PAIRS_PER_THREAD][step_schedule<Format>::TILE_UPDATE_THREADS];
  parameter conv2_parameters[CONV2_PER_BLOCK], head_parameters[HEAD_PER_BLOCK]; /* those that this block updates */
  float2 moments[BLOCK_SUMS];                                                   /* of conv1 and conv2_bias */
  rl_train_state state;
  bool skip_step;                        /* a block has computed a gradient that is not finite, or too large */
  uint32_t overflow_phase;               /* phase of the last step in which this block has computed such a gradient; 0: none */
  uint32_t overflow_votes;               /* votes in all steps */
  mbarrier conv2_mbarrier, fc1_mbarrier; /* a phase completes when these weights have been copied, if HAS_BULK_WEIGHTS */
  mbarrier head_mbarrier;                /* a phase completes when the head's weights have been copied, if HAS_BULK_WEIGHTS */
  mbarrier operands_mbarrier;            /* a phase completes when operands of fc1's weight gradient have been copied */
  mbarrier votes_mbarrier;               /* a phase completes when skip_step has been set */
  mbarrier rows_mbarrier;                /* a phase completes after the grid barrier `rows` */
  mbarrier pooled1_mbarrier;             /* a phase completes when the peer's half of pooled1 has been received */
  mbarrier gradients_mbarrier;           /* a phase completes when the peer's part of pooled1_gradient has been received */
};

/* The pair's images that are loaded in advance. During microbatch n, the block loads the pixels and the label of the image of
 * microbatch n + 1, and the data set index of the image of n + 2. */
typedef struct prefetch_state {
  uint32_t label, next_label;            /* of microbatches n and n + 1 */
  uint32_t next_image, image_after_next; /* data set indices of the images of n + 1 and n + 2 */
} prefetch_state;

/* A thread's sums of gradients over the microbatches of a step. In the head, each warp adds up other gradients (train_head). */
template <class Format> struct gradient_sums {
  typename Format::weight_sums conv2;
  float4 conv2_bias; /* of four channels */
  typename conv1_memory<Format>::sums conv1;
  float4 fc2_weight_or_fc1_bias; /* warps 0 to 9: four elements of a row of fc2.weight; warp 10: four of fc1.bias */
  float fc2_bias_or_loss;        /* warps 0 to 9: an element of fc2.bias; warps from 11 on: the loss */
  bool overflow;                 /* a value is not finite, or too large for the type or the grid sum that stores it */
};

/* A microbatch and the step to which it belongs. */
typedef struct microbatch_state {
  uint32_t step_images; /* images of the step; 0: the epoch has ended */
  uint32_t index;       /* number of the microbatch in the step */
  uint32_t batch_size;  /* images of a full step; the last step of the epoch may have fewer */
  uint32_t step;        /* number of the step in the epoch */
} microbatch_state;

/* Returns the index in the step of the pair's image in this microbatch. The image exists only if has_image returns true. */
static __device__ __forceinline__ uint32_t step_image(const microbatch_state &microbatch, uint32_t pair) {
  return microbatch.index * BLOCK_PAIRS + pair;
}
static __device__ __forceinline__ bool has_image(const microbatch_state &microbatch, uint32_t pair) {
  return step_image(microbatch, pair) < microbatch.step_images;
}
/* Returns the phase of the pair's tagged words and mbarriers in this microbatch: the number of images that the pair has processed
 * in this launch, including the current one. */
template <class Format>
static __device__ __forceinline__ uint32_t message_phase(const microbatch_state &microbatch, uint32_t pair) {
  if (Format::ONE_MICROBATCH) return microbatch.step + 1;
  return microbatch.step * ((microbatch.batch_size + BLOCK_PAIRS - 1 - pair) / BLOCK_PAIRS) + microbatch.index + 1;
}

/* Returns the index among all GRID_SUMS of one of the block's BLOCK_SUMS. */
static __device__ __forceinline__ uint32_t grid_sum_index(const block_coords &coords, int block_sum) {
  return block_sum < RL_CONV1_PARAMETERS ? block_sum : block_sum + coords.rank * TILE_CHANNELS;
}

/* Returns the address of a sum over the grid of the step. */
static __device__ __forceinline__ uint64_t *grid_sum(const rl_persistent_args &args, uint32_t step, uint32_t index) {
  return &args.block_exchange->grid_sums[step % 2][index / GRID_SUM_SECTOR][index % GRID_SUM_SECTOR];
}

/* Returns the time in ns of a clock that all SMs share. */
static __device__ __forceinline__ uint64_t global_time(void) {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

enum { STEP_BEGIN = -1 };

/* If the format records, and args.timestamps is not NULL, records the time as the end of timed_phase (RL_TIMED_…) or, for
 * STEP_BEGIN, as the start of the step. A later microbatch of the step overwrites the timestamps of an earlier one. */
template <class Format>
static __device__ __forceinline__ void record_timestamp(const rl_persistent_args &args, uint32_t step, int timed_phase) {
  if (!Format::RECORDS || !args.timestamps || threadIdx.x != 0 || step >= RL_TIMESTAMPED_STEPS) return;
  args.timestamps->phases[blockIdx.x][step][timed_phase + 1] = global_time();
}

/* Does the same with the time and the clock cycle of the block's start or end. */
template <class Format>
static __device__ __forceinline__ void record_launch_timestamp(const rl_persistent_args &args, bool is_end) {
  if (!Format::RECORDS || !args.timestamps || threadIdx.x != 0) return;
  args.timestamps->launch[blockIdx.x][is_end] = global_time();
  args.timestamps->cycles[blockIdx.x][is_end] = (uint64_t)clock64();
}

/* Returns whether the calling thread is the poller of its block, which waits at the grid barrier `rows`
 * and arrives at `weights`. */
template <class Format> static __device__ __forceinline__ bool is_poller(void) { return threadIdx.x == FIRST_POLLING_THREAD; }

/* Return whether the calling thread is in a warp that computes conv1, forward or backward. */
template <class Format> static __device__ __forceinline__ bool is_conv1_forward_warp(void) {
  return threadIdx.x < step_schedule<Format>::CONV1_FORWARD_WARPS * 32;
}
template <class Format> static __device__ __forceinline__ bool is_conv1_backward_warp(void) {
  return threadIdx.x < step_schedule<Format>::CONV1_BACKWARD_WARPS * 32;
}

/* Returns the number of rows of partial sums: the number of pairs that have an image in a step of `batch` images. */
static __host__ __device__ __forceinline__ uint32_t partial_rows(uint32_t batch) {
  return batch < BLOCK_PAIRS ? batch : (uint32_t)BLOCK_PAIRS;
}

/* Returns this block's half of the pair's row of partial sums of conv2.weight's gradient. */
template <class Format>
static __device__ __forceinline__ typename Format::row_value *conv2_weight_partial_row(const rl_persistent_args &args,
                                                                                       const block_coords &coords) {
  return (typename Format::row_value *)args.partial_conv2_weight + (size_t)coords.pair * CONV2_COUNT +
         coords.rank * CONV2_WEIGHTS_PER_BLOCK;
}

/* During a launch, the weights of conv2 and fc1 are in global memory as the products multiply them, of type Format::value. Those
 * of fc1 overwrite the FP32 weights, of which the blocks have copies in shared memory.
 *
 * If HAS_BULK_WEIGHTS, rows have the pitch that they have in shared memory, so that the part of a block is loaded by one copy:
 *   conv2_weights  [64 output channels][WEIGHT_PITCH] in rl_block_exchange; a block loads 32 rows
 *   fc1_weights    [16 slices][128 outputs][FC1_PITCH] in the memory of conv2.weight, conv2.bias and fc1.weight; a block loads a
 *                  slice
 * Otherwise they are in the places of the FP32 weights. */
template <class Format> struct published_weights {
  typedef typename Format::value value;
  enum { FC1_PITCH = SLICE_INPUTS + Format::SLICE_PADDING };
  static __device__ __forceinline__ value *conv2(const rl_persistent_args &args) {
    if constexpr (step_schedule<Format>::HAS_BULK_WEIGHTS) return (value *)args.block_exchange->conv2_weights;
    else return (value *)&args.adam.weights[CONV2_OFFSET];
  }
  static __device__ __forceinline__ value *fc1_slice(const rl_persistent_args &args, uint32_t slice) {
    static_assert(sizeof(value) * FC1_SLICES * RL_FC1_OUTPUTS * FC1_PITCH <= sizeof(float) * (HEAD_OFFSET - CONV2_OFFSET) &&
                      Format::WEIGHT_VALUES * sizeof(value) <= sizeof(float) * TILE_CHANNELS * CONV2_PUBLISHED_PITCH,
                  "the weights must fit into their memory");
    static_assert(CONV2_OFFSET % 4 == 0, "bulk copies must be aligned");
    return (value *)&args.adam.weights[CONV2_OFFSET] + slice * RL_FC1_OUTPUTS * FC1_PITCH;
  }
};

/* The operands of fc1's weight gradient in global memory (rl_persistent_args.fc1_operands), in the layout of tile_pooled2 and
 * tile_fc1_product_gradient, so that a block loads each tile by one copy: for each TILE_BATCH images of a step
 *   inputs [16 column tiles][TILE_BATCH images][FC1_INPUT_TILE_PITCH]
 *   fc1_product_gradient [8 row tiles][TILE_BATCH images][FC1_PRODUCT_GRADIENT_TILE_PITCH] */
template <class Format> struct fc1_operands {
  typedef typename Format::value value;
  enum {
    INPUT_TILE = TILE_BATCH * Format::FC1_INPUT_TILE_PITCH,
    GRADIENT_TILE = TILE_BATCH * Format::FC1_PRODUCT_GRADIENT_TILE_PITCH,
    INPUT_TILES = RL_FC1_INPUTS / TILE_COLUMNS,
    BATCH_VALUES = INPUT_TILES * INPUT_TILE + RL_FC1_OUTPUTS / TILE_ROWS * GRADIENT_TILE
  };
  value *inputs, *gradients;
  __device__ __forceinline__ fc1_operands(const rl_persistent_args &args, uint32_t first_image)
      : inputs((value *)args.fc1_operands + first_image / TILE_BATCH * BATCH_VALUES),
        gradients(inputs + INPUT_TILES * INPUT_TILE) {}
  __device__ __forceinline__ value *input(uint32_t image, int i) const {
    return &inputs[i / TILE_COLUMNS * INPUT_TILE + image % TILE_BATCH * Format::FC1_INPUT_TILE_PITCH + i % TILE_COLUMNS];
  }
  __device__ __forceinline__ value *gradient(uint32_t image, int i) const {
    return &gradients[i / TILE_ROWS * GRADIENT_TILE + image % TILE_BATCH * Format::FC1_PRODUCT_GRADIENT_TILE_PITCH +
                      i % TILE_ROWS];
  }
};

/* Returns v rounded to the type Value. */
template <class Value> static __device__ __forceinline__ float rounded_to(float v) { return (float)(Value)v; }

/* Stores two values, rounded to the type of *to. */
static __device__ __forceinline__ void store2(__half *to, float a, float b) { *(__half2 *)to = __floats2half2_rn(a, b); }
static __device__ __forceinline__ void store2(float *to, float a, float b) { *(float2 *)to = make_float2(a, b); }
static __device__ __forceinline__ void store2(tensor_float *to, float a, float b) {
  *(float2 *)to = make_float2(tensor_float(a), tensor_float(b));
}

/* Stores two or four values in this block's shared memory and, by st.async, at the same address in the peer's shared memory. The
 * st.async completes its bytes on the peer's mbarrier `barrier`. */
static __device__ __forceinline__ void store_local_and_peer(uint32_t peer, float *to, float a, float b, mbarrier *barrier) {
  *(float2 *)to = make_float2(a, b);
  st_async(peer, to, make_float2(a, b), barrier);
}
static __device__ __forceinline__ void store_local_and_peer(uint32_t peer, uint4 *to, uint4 bits, mbarrier *barrier) {
  *to = bits;
  st_async(peer, to, bits, barrier);
}

/* Returns a value of pooled1 without the ignored bits, which in TF32 hold its argmax (argmax_bit). */
static __device__ __forceinline__ __half without_argmax(__half v) { return v; }
static __device__ __forceinline__ float without_argmax(float v) { return v; }
static __device__ __forceinline__ tensor_float without_argmax(tensor_float v) {
  return tensor_float(__uint_as_float(__float_as_uint(v) & ~TENSOR_FLOAT_IGNORED_BITS));
}

/* Waits until the mbarrier's phase has completed. Every thread that reads the received data calls it. */
static __device__ __forceinline__ void mbarrier_wait(mbarrier *barrier, uint32_t phase) {
  for (uint32_t polls = 0; !mbarrier_try_wait(barrier, phase);) trap_on_timeout(&polls);
}

/* Waits likewise, but acquires only at CTA scope: the caller sees what threads of its own block wrote before they arrived. */
static __device__ __forceinline__ void mbarrier_wait_cta(mbarrier *barrier, uint32_t phase) {
  for (uint32_t polls = 0; !mbarrier_try_wait_cta(barrier, phase);) trap_on_timeout(&polls);
}

/* Begins to copy `rows` rows of COLUMNS values with cp.async from global memory, where consecutive rows are `stride` values
 * apart, to shared memory, where they are `pitch` values apart. THREADS threads share the copy; `thread` is the caller's index
 * among them. */
template <int THREADS, int COLUMNS, class Value>
static __device__ __forceinline__ void load_rows_async(int thread, const Value *from, uint32_t stride, int rows, Value *to,
                                                       int pitch) {
  enum {
    VECTOR_SIZE = 16 / sizeof(Value), /* values in 16 bytes */
    ROW_VECTORS = COLUMNS / VECTOR_SIZE,
    ROW_STEP = THREADS / ROW_VECTORS, /* from one vector of a thread to its next: rows, and then vectors */
    VECTOR_STEP = THREADS % ROW_VECTORS
  };
  int vector = thread % ROW_VECTORS;
#pragma unroll 2
  for (int row = thread / ROW_VECTORS; row < rows; row += ROW_STEP) {
    cp_async_16(&to[row * pitch + vector * VECTOR_SIZE], &from[(size_t)row * stride + vector * VECTOR_SIZE]);
    vector += VECTOR_STEP;
    if (vector >= ROW_VECTORS) vector -= ROW_VECTORS, row++;
  }
}

#endif
