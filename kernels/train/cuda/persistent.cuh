/* The engine "persistent": who does what, and what a block keeps (persistent.cu has the story).
 *
 * 128 blocks in pairs, one to a multiprocessor; image n of a batch belongs to pair n % 64 in round n / 64. The two of a pair are
 * a cluster: each has half of conv1's pixels and half of conv2's channels. Eight neighbouring pairs are a group: its 16 blocks
 * have a slice of fc1's inputs each, for all eight images. Each block has 1/128 of the parameters to update, for good. */
#ifndef RL_TRAIN_CUDA_PERSISTENT_H
#define RL_TRAIN_CUDA_PERSISTENT_H

#include "clusters.cuh"
#include "train/cuda/adam.cuh"
#include "train/cuda/conv1.cuh"
#include "train/cuda/exchange.cuh"
#include "train/cuda/tensor_float.cuh"
#include "train/cuda/tile.cuh"
#include "train/cuda/vector.cuh"

enum {
  PAIRS = RL_PERSISTENT_PAIRS,
  BLOCKS = 2 * PAIRS,
  GROUP = TILE_IMAGES, /* pairs, and so images of a round */
  SLICES = 2 * GROUP,  /* of fc1's inputs: a block of the group each */
  SLICE = RL_FLAT / SLICES,
  MAP1 = RL_P1 * RL_P1,
  MAP2 = RL_P2 * RL_P2,
  HALF_ROWS = RL_P1 / 2, /* of conv1's pooled pixels */
  HALF_MAP1 = HALF_ROWS * RL_P1,
  IMAGE_ROWS = 2 * HALF_ROWS + 2, /* of the image, around them */
  /* Parameters in our order (training.cu). */
  CONV2_AT = RL_C1 * 10,
  CONV2_COUNT = RL_C2 * TILE_DEPTH,
  CONV2_HALF = CONV2_COUNT / 2,
  CONV2_BIAS_AT = CONV2_AT + CONV2_COUNT,
  FC1_AT = CONV2_BIAS_AT + RL_C2,
  HEAD_AT = FC1_AT + RL_FC1 * RL_FLAT,
  /* What a block updates beside its tile of fc1.weight: so many of conv2.weight, and of all others and the loss together. */
  CONV2_OWN = CONV2_COUNT / BLOCKS,
  OTHERS = CONV2_AT + RL_C2 + RL_HEAD_LOSS + 1,
  SMALL = CONV2_AT + RL_C2, /* the first of the others */
  OTHERS_OWN = (OTHERS + BLOCKS - 1) / BLOCKS,
  OTHERS_PITCH = 16,
  SUMS_ROW = CONV1_ROW + TILE_CHANNELS /* a warp's sums of conv1's gradients, and of conv2's bias */
};
static_assert(HEAD_AT + RL_HEAD_LOSS == RL_PARAMETERS, "every parameter has a place");
static_assert(FC1_AT + (RL_PARAMETERS + 1) / 2 <= HEAD_AT, "fc1.weight is as large as halves of all");
static_assert((RL_FC1 / TILE_ROWS) * (RL_FLAT / TILE_COLUMNS) == BLOCKS, "and fc1.weight's a block");
static_assert(OTHERS_OWN <= OTHERS_PITCH && CONV2_OWN + OTHERS_OWN <= TILE_THREADS, "and what is updated alone a thread");

/* A format's block. Sums over rows of partial sums: so many threads have some of the rows of four neighbouring weights of conv2,
 * and of each of the others. */
enum { CONV2_QUADS = CONV2_OWN / 4 };
template <class F> struct team {
  enum {
    THREADS = F::THREADS,
    WARPS = THREADS / 32,
    ASKS_BESIDE = (int)F::FORWARD_WARPS < (int)WARPS, /* for weights, beside those who work */
    WORKERS = WARPS - (ASKS_BESIDE ? 2 : 1),          /* warps */
    CONV2_SPLITS = THREADS / CONV2_QUADS,
    OTHER_SPLITS = THREADS / OTHERS_PITCH,
    OWNERS = F::TILE_WARPS_USED * 32
  };
  static_assert(CONV2_OWN + OTHERS_OWN <= (int)THREADS && (int)WARPS > RL_CLASSES + 1,
                "every parameter has a thread, every part of the head a warp");
};

typedef struct place {
  int lane, warp;
  uint32_t rank, pair;   /* of the block in its pair; of the pair */
  uint32_t first, slice; /* pair of its group; the block's slice of fc1's inputs */
} place;

static __device__ __forceinline__ place own_place(void) {
  const uint32_t pair = blockIdx.x / 2;
  return {(int)threadIdx.x % 32, (int)threadIdx.x / 32, rank_in_cluster(), pair, pair / GROUP * GROUP, blockIdx.x % SLICES};
}

/* What passes between blocks through memory; zeros at the start of an epoch. */
typedef struct rl_exchange {
  float pooled2[PAIRS][RL_FLAT], parts[PAIRS][SLICES][RL_FC1], d_fc1[PAIRS][RL_FC1], d_pooled2[PAIRS][RL_FLAT];
  float small[PAIRS / GROUP][SMALL]; /* weights that all want at once, a copy for each group: conv1's, conv2.bias */
  uint32_t loaded[32], forward[32], backward[32], update[32]; /* barriers, a cache line each */
  uint32_t overflow;                                          /* the last step that had one, counted from 1 */
} rl_exchange;

/* A parameter with its moments. */
typedef struct parameter {
  float weight, first, second;
} parameter;

template <class F> struct block_memory {
  typedef typename F::value value;
  alignas(16) value conv2[F::WEIGHT_VALUES];
  alignas(16) value pooled1[MAP1 * F::IN_PITCH];
  union { /* one after the other */
    alignas(16) value conv2_raw[F::FORWARD_SCRATCH > 0 ? TILE_CHANNELS *F::RAW_PITCH : 1];
    alignas(16) float forward_scratch[F::FORWARD_SCRATCH > 0 ? F::FORWARD_SCRATCH : 1];
    alignas(16) value fc1[RL_FC1 * (SLICE + F::SLICE_PAD)];
    alignas(16) value d_out[F::OUT_VALUES];
    struct {
      alignas(16) value d_fc1_rows[TILE_BATCH * F::ROW_PITCH], pooled2_columns[TILE_BATCH * F::COLUMN_PITCH];
      alignas(16) float channels[team<F>::WARPS][SUMS_ROW], conv2_sums[team<F>::CONV2_SPLITS][CONV2_OWN],
          other_sums[team<F>::OTHER_SPLITS][OTHERS_PITCH];
    };
  };
  union { /* one after the other, too */
    struct {
      alignas(16) value pooled2[GROUP * (SLICE + F::SLICE_PAD)], d_fc1[GROUP * F::HIDDEN_PITCH];
      alignas(16) float hidden[team<F>::WARPS][RL_FC1];
    };
    alignas(16) float backward_scratch[F::BACKWARD_SCRATCH > 0 ? F::BACKWARD_SCRATCH : 1];
    alignas(16) float d_pooled1[2][HALF_MAP1 * RL_C1]; /* of this half of the pixels, from both halves of conv2's channels */
  };
  alignas(16) float forward_mail[F::FORWARD_MAIL > 0 ? F::FORWARD_MAIL : 4];
  alignas(16) float conv1[CONV1_ROW], conv2_bias[TILE_CHANNELS], head[RL_HEAD_ROW];
  alignas(16) float logits[RL_CLASSES];
  alignas(16) uint8_t bytes[RL_PIXELS];              /* of the next image, */
  alignas(16) float image[IMAGE_ROWS * CONV1_WIDTH]; /* and the rows of this one that this half of the pixels needs */
  alignas(16) uint8_t codes1[HALF_MAP1 * RL_C1], codes2[MAP2 * TILE_CHANNELS];
  float2 weight[F::KEEPS_WEIGHTS ? F::TILE_PAIRS : 1][team<F>::OWNERS], first[F::TILE_PAIRS][team<F>::OWNERS],
      second[F::TILE_PAIRS][team<F>::OWNERS];
  parameter single[CONV2_OWN + OTHERS_OWN]; /* a thread each */
  rl_train_state state;
  mbarrier pixels_came, gradients_came; /* from the pair's other block: half of conv1's pixels, gradients of this half of them */
};

/* What is known of the images to come: the pair's in this round and the next. */
typedef struct upcoming {
  uint32_t label, next_label, next_image, image_behind; /* the last: of the round behind the next */
} upcoming;

/* A thread's sums of gradients over the rounds of a step. */
template <class F> struct gradient_sums {
  typename F::weight_sums conv2;
  float4 conv2_bias; /* of four channels */
  float conv1[10];
  float4 head_weight; /* by warp: a row of fc2.weight; behind them fc1.bias */
  float head_bias;    /* by warp: fc2.bias; behind them the loss */
  bool overflow;
};

/* An image of a round, and how often each pair has had one: the turn of its mail. */
typedef struct round_of {
  uint32_t batch, index, full_batch, steps_before; /* of the step, of the round; every step before had full_batch images */
} round_of;

static __device__ __forceinline__ uint32_t image_at(const round_of &r, uint32_t pair) { return r.index * PAIRS + pair; }
static __device__ __forceinline__ bool has_image(const round_of &r, uint32_t pair) { return image_at(r, pair) < r.batch; }
static __device__ __forceinline__ uint32_t turn_of(const round_of &r, uint32_t pair) {
  return r.steps_before * ((r.full_batch + PAIRS - 1 - pair) / PAIRS) + r.index + 1;
}

static __device__ __forceinline__ uint64_t global_time(void) {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

/* The phase of this step has ended (in its last round: earlier ones are overwritten); phase -1: the step begins. */
static __device__ __forceinline__ void record_timestamp(const rl_persistent &e, uint32_t step, int phase) {
  if (!e.timestamps || threadIdx.x != 0 || step >= RL_TIMESTAMPED_STEPS) return;
  e.timestamps->phases[blockIdx.x][step][phase + 1] = global_time();
}

static __device__ __forceinline__ void record_launch_timestamp(const rl_persistent &e, bool ended) {
  if (!e.timestamps || threadIdx.x != 0) return;
  e.timestamps->launch[blockIdx.x][ended] = global_time();
  e.timestamps->cycles[blockIdx.x][ended] = (uint64_t)clock64();
}

/* The last warps wait for new weights while the others, the workers, do what needs none of them. */
template <class F> static __device__ __forceinline__ bool works(void) { return threadIdx.x < team<F>::WORKERS * 32; }

/* Pairs that have an image in a step, and so rows of partial sums. */
static __host__ __device__ __forceinline__ uint32_t rows_of(uint32_t batch) { return batch < PAIRS ? batch : (uint32_t)PAIRS; }

/* Where a pair has the sums of its images' gradients of conv2's weights, and a block those of its channels. */
static __device__ __forceinline__ float *conv2_row(const rl_persistent &e, const place &at) {
  return &e.partial_conv2[(size_t)at.pair * CONV2_COUNT + at.rank * CONV2_HALF];
}

/* The weights as they are multiplied, at their offsets: where exact ones lie before a launch and behind it. */
template <class F> static __device__ __forceinline__ typename F::value *multiplied(const rl_persistent &e) {
  return (typename F::value *)(e.adam.weights + (sizeof(typename F::value) == sizeof(__half) ? FC1_AT : 0));
}

template <class Value> static __device__ __forceinline__ float as_stored(float v) { return (float)(Value)v; }

static __device__ __forceinline__ void store2(__half *to, float a, float b) { *(__half2 *)to = __floats2half2_rn(a, b); }
static __device__ __forceinline__ void store2(float *to, float a, float b) { *(float2 *)to = make_float2(a, b); }
static __device__ __forceinline__ void store2(tensor_float *to, float a, float b) {
  *(float2 *)to = make_float2(tensor_float(a), tensor_float(b));
}

/* To this block's memory and to that of the other. */
static __device__ __forceinline__ void store_both(uint32_t other, __half *to, float a, float b, mbarrier *came) {
  const __half2 both = __floats2half2_rn(a, b);
  *(__half2 *)to = both;
  st_async(other, (void *)to, *(const uint32_t *)&both, came);
}
static __device__ __forceinline__ void store_both(uint32_t other, float *to, float a, float b, mbarrier *came) {
  *(float2 *)to = make_float2(a, b);
  st_async(other, to, make_float2(a, b), came);
}
static __device__ __forceinline__ void store_both(uint32_t other, tensor_float *to, float a, float b, mbarrier *came) {
  store_both(other, (float *)to, tensor_float(a), tensor_float(b), came);
}

/* What a format can't hold; a loss scale keeps away from it. */
static __device__ __forceinline__ bool fits(__half, float v) { return fabsf(v) < 65520.0f; /* rounds to infinity */ }
static __device__ __forceinline__ bool fits(float, float) { return true; }
static __device__ __forceinline__ bool fits(tensor_float, float) { return true; }

/* Until what is sent in this turn is there: whoever reads it. */
static __device__ __forceinline__ void await(mbarrier *of, uint32_t turn) {
  for (uint32_t looks = 0; !mbarrier_try_wait(of, turn);) lose_patience(&looks);
}

/* rows × COLUMNS values, `stride` apart, to rows `pitch` apart; by THREADS threads. */
template <int THREADS, int COLUMNS, class Value>
static __device__ __forceinline__ void fetch(int thread, const Value *from, uint32_t stride, int rows, Value *to, int pitch) {
  enum { UNIT = 16 / sizeof(Value), UNITS = COLUMNS / UNIT, FURTHER_ROWS = THREADS / UNITS, FURTHER_UNITS = THREADS % UNITS };
  int unit = thread % UNITS;
#pragma unroll 2
  for (int row = thread / UNITS; row < rows; row += FURTHER_ROWS) {
    cp_async_16(&to[row * pitch + unit * UNIT], &from[(size_t)row * stride + unit * UNIT]);
    unit += FURTHER_UNITS;
    if (unit >= UNITS) unit -= UNITS, row++;
  }
}

#endif
