/* Implements product.h by a warp-specialized kernel. A block has three warpgroups: one producer, which loads with TMA, and two
 * consumers, which multiply with wgmma. The grid is persistent, with one block per SM.
 *
 *   tiles      A block computes a tile of 128 rows × 256 columns of the product. Each consumer computes 64 of the rows by wgmma
 *              m64n256k16.
 *   stages     The pipeline in shared memory has STAGES stages. A stage holds STEP elements along k of both operands.
 *   clusters   The two blocks of a cluster compute the same columns of adjacent row tiles (a row pair). Each block loads half of
 *              the weights' tile and multicasts it to both blocks, which halves the reads of the weights from L2.
 *   order      Tiles are numbered in groups of GROUP_PAIRS row pairs × all columns, so that clusters that run at the same time
 *              read the same rows and columns through L2.
 *   last wave  If at most half of the clusters would have a tile in the last wave, its tiles are split into halves of 128
 *              columns, so that the wave takes half the time.
 *   GATE       A tile of the product has half of its columns from `weight` and the other half from the same rows of
 *              `up_weight`, so that a thread has both factors of an element of `out`.
 *   ROPE       A tile contains whole heads, so that a thread has both elements of a rotated pair.
 *
 * A stage has two mbarriers. full[stage] completes when the stage's bytes have arrived (RAW), empty[stage] when the consumers of
 * both blocks have read the stage (WAR). */
#include "hopper/product.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdlib>
#include <errno.h>

#include "cuda_check.h"
#include "encode_tiled.h"
#include "hopper/bulk_copy.cuh"
#include "hopper/support.h"
#include "hopper/wgmma_tile.cuh"
#include "kernel/dtype.h"

namespace {

enum {
  TILE_ROWS = 128,
  TILE_COLUMNS = WGMMA_N, /* columns of a whole tile; a half tile has half of them */
  STEP = 64,              /* elements of a stage along k: 128 bytes, the width of the swizzle */
  STAGES = 4,
  CLUSTER_BLOCKS = 2,
  CONSUMERS = 2, /* consumer warpgroups of a block */
  THREADS = (1 + CONSUMERS) * WGMMA_THREADS,
  GROUP_PAIRS = 8, /* row pairs of a group of tiles */
  BOX = 64,        /* rows and columns of a TMA box of `out`; rows of a TMA box of the weights */
  BOX_BYTES = BOX * BOX * 2,
  X_BYTES = TILE_ROWS * STEP * 2, /* of x in a stage */
  STAGE_BYTES = X_BYTES + TILE_COLUMNS * STEP * 2,
  OUT_BOXES = 2, /* boxes of `out` that a consumer has in shared memory */
  BARRIERS_OFFSET = STAGES * STAGE_BYTES + CONSUMERS * OUT_BOXES * BOX_BYTES, /* of the mbarriers in shared memory, in bytes */
  SHARED_BYTES = BARRIERS_OFFSET + 2 * STAGES * 8,
  PRODUCER_REGISTERS = 40, /* limits per thread, for setmaxnreg */
  CONSUMER_REGISTERS = 232
};

struct tensor_maps {
  CUtensorMap x, weight, up_weight, out; /* up_weight: equal to weight unless the epilogue is GATE */
};

struct arguments {
  uint32_t rows, columns;           /* size of `out` */
  uint32_t row_pairs, column_tiles; /* a tile of a cluster is one row pair × one column tile */
  uint32_t whole_tiles, half_tiles; /* numbers of tiles of clusters with TILE_COLUMNS and with TILE_COLUMNS / 2 columns */
  uint32_t steps;                   /* along k, of STEP elements each */
  const void *addend;               /* the next members: see rl_hopper_shape */
  const float *rotations;
  uint32_t tokens, first_position, rotated_columns;
};

struct tile {
  uint32_t row, column; /* first row of x; first column of out */
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* Synchronizes the threads of one consumer warpgroup. */
__device__ __forceinline__ void warpgroup_barrier(uint32_t warpgroup) {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + warpgroup), "n"((int)WGMMA_THREADS) : "memory");
}

/* Number of columns of `out` that a tile with COLUMNS columns of the product yields. */
template <rl_hopper_epilogue EPILOGUE, int COLUMNS> constexpr int OUT_COLUMNS =
    EPILOGUE == RL_HOPPER_GATE ? COLUMNS / 2 : COLUMNS;

/* Returns the part of the cluster's tile number `index` that the block `rank` computes. The tiles of TILE_COLUMNS columns and the
 * half tiles have separate numbers; COLUMNS says which ones `index` counts. */
template <rl_hopper_epilogue EPILOGUE, int COLUMNS>
__device__ __forceinline__ tile tile_at(const arguments &args, uint32_t index, uint32_t rank) {
  enum { PARTS = TILE_COLUMNS / COLUMNS };
  const uint32_t whole_tile = PARTS == 1 ? index : args.whole_tiles + index / PARTS;
  const uint32_t group = whole_tile / (GROUP_PAIRS * args.column_tiles),
                 tile_in_group = whole_tile % (GROUP_PAIRS * args.column_tiles),
                 group_pairs = min((uint32_t)GROUP_PAIRS, args.row_pairs - group * GROUP_PAIRS);
  return {((group * GROUP_PAIRS + tile_in_group % group_pairs) * CLUSTER_BLOCKS + rank) * TILE_ROWS,
          tile_in_group / group_pairs * OUT_COLUMNS<EPILOGUE, TILE_COLUMNS> + index % PARTS * OUT_COLUMNS<EPILOGUE, COLUMNS>};
}

/* --- loading ----------------------------------------------------------------------------------------------------------- */

/* Producer: loads all stages of this cluster's share of tile_count tiles. Runs in one thread of each block. stage_count: number
 * of stages that the thread has loaded, also in earlier calls. */
template <rl_hopper_epilogue EPILOGUE, int COLUMNS>
__device__ __forceinline__ void load_tiles(const tensor_maps &maps, const arguments &args, uint32_t tile_count, char *stages,
                                           mbarrier *full, mbarrier *empty, uint32_t rank, uint32_t &stage_count) {
  enum {
    LOADED_ROWS = COLUMNS / CLUSTER_BLOCKS, /* rows of the weights that this block loads for both blocks */
    LOADED_BYTES = LOADED_ROWS * STEP * 2
  };
  const CUtensorMap *weight = EPILOGUE == RL_HOPPER_GATE && rank == 1 ? &maps.up_weight : &maps.weight;
  for (uint32_t index = blockIdx.x / CLUSTER_BLOCKS; index < tile_count; index += gridDim.x / CLUSTER_BLOCKS) {
    const tile t = tile_at<EPILOGUE, COLUMNS>(args, index, rank);
    const uint32_t weight_row = EPILOGUE == RL_HOPPER_GATE ? t.column : t.column + rank * LOADED_ROWS;
    for (uint32_t step = 0; step < args.steps; step++, stage_count++) {
      const uint32_t stage = stage_count % STAGES;
      char *x = stages + stage * STAGE_BYTES, *weights = x + X_BYTES + rank * LOADED_BYTES;
      if (stage_count >= STAGES) mbarrier_spin_cta(&empty[stage], stage_count / STAGES);
      mbarrier_arrive_expect_tx(&full[stage], X_BYTES + CLUSTER_BLOCKS * LOADED_BYTES);
      load_box(x, &maps.x, &full[stage], (int32_t)(step * STEP), (int32_t)t.row);
#pragma unroll
      for (int box = 0; box < LOADED_ROWS / BOX; box++)
        load_box_multicast(weights + box * BOX * STEP * 2, weight, &full[stage], (int32_t)(step * STEP),
                           (int32_t)(weight_row + box * BOX), (1 << CLUSTER_BLOCKS) - 1);
    }
  }
}

/* --- epilogues --------------------------------------------------------------------------------------------------------- */

/* The layout of wgmma's result: sums[4 · block + 2 · i + j] of a thread is the element in row 16 · warp + lane / 4 + 8 · i and
 * column 8 · block + 2 · (lane % 4) + j of the warpgroup's tile, for i and j in {0, 1}. The parameters row and column below are
 * the position of sums[0] in `out`. */

/* Replaces the first half of the sums, the gate, by silu(gate) · up; the second half is up. */
template <int SUMS> __device__ __forceinline__ void apply_gate(float (&sums)[SUMS]) {
#pragma unroll
  for (int i = 0; i < SUMS / 2; i++) sums[i] = __fdividef(sums[i], 1 + __expf(-sums[i])) * sums[i + SUMS / 2];
}

__device__ __forceinline__ float2 widen_two(const __half *pair) { return __half22float2(*(const __half2 *)pair); }
__device__ __forceinline__ float2 widen_two(const __nv_bfloat16 *pair) {
  return __bfloat1622float2(*(const __nv_bfloat162 *)pair);
}
__device__ __forceinline__ uint32_t narrow_two(__half, float x, float y) {
  const __half2 pair = __floats2half2_rn(x, y);
  return *(const uint32_t *)&pair;
}
__device__ __forceinline__ uint32_t narrow_two(__nv_bfloat16, float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *(const uint32_t *)&pair;
}

/* Adds the addend's elements. */
template <class T, int SUMS>
__device__ __forceinline__ void add(float (&sums)[SUMS], const arguments &args, uint32_t row, uint32_t column) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const T *addend = (const T *)args.addend + (size_t)(row + 8 * i) * args.columns + column;
    if (row + 8 * i < args.rows)
#pragma unroll
      for (int block = 0; block < SUMS / 4; block++)
        if (column + 8 * block < args.columns) {
          const float2 pair = widen_two(addend + 8 * block);
          sums[4 * block + 2 * i] += pair.x;
          sums[4 * block + 2 * i + 1] += pair.y;
        }
  }
}

/* Rotates the pairs of elements (x, y) of each head: x is in the head's first half, y at the same place in the second half. */
template <int HEAD_SIZE, int SUMS>
__device__ __forceinline__ void rotate(float (&sums)[SUMS], const arguments &args, uint32_t row, uint32_t column) {
  enum { HEAD_BLOCKS = HEAD_SIZE / 8, HALF_BLOCKS = HEAD_BLOCKS / 2 };
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const uint32_t position = args.first_position + (row + 8 * i) % args.tokens;
    const float *rotations = args.rotations + (size_t)position * HEAD_SIZE + 2 * (column % 8);
#pragma unroll
    for (int pair = 0; pair < HALF_BLOCKS; pair++) {
      const float4 r = *(const float4 *)(rotations + 16 * pair); /* cosine and sine of two pairs */
#pragma unroll
      for (int head = 0; head < 2 * SUMS / HEAD_SIZE; head++) {
        float *x = &sums[4 * (head * HEAD_BLOCKS + pair) + 2 * i], *y = x + 4 * HALF_BLOCKS;
        const float x0 = x[0], x1 = x[1];
        if (column + head * HEAD_SIZE < args.rotated_columns) {
          x[0] = x0 * r.x - y[0] * r.y;
          y[0] = y[0] * r.x + x0 * r.y;
          x[1] = x1 * r.z - y[1] * r.w;
          y[1] = y[1] * r.z + x1 * r.w;
        }
      }
    }
  }
}

/* Stores COUNT boxes of 64 rows × 64 columns to `out`, beginning with sums[FIRST], through shared memory. There the boxes have
 * the 128-byte swizzle, so that a warp's 4-byte stores have no bank conflicts. */
template <class T, int FIRST, int COUNT, int SUMS> __device__ __forceinline__ void store(const float (&sums)[SUMS], char *boxes,
                                                                                         const CUtensorMap *map,
                                                                                         uint32_t warpgroup, tile t) {
  const uint32_t thread = threadIdx.x % WGMMA_THREADS, lane = thread % 32, row = thread / 32 * 16 + lane / 4;
  if (thread == 0) wait_stores_read();
  warpgroup_barrier(warpgroup);
#pragma unroll
  for (int block = 0; block < COUNT * BOX / 8; block++)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int index = FIRST + 4 * block + 2 * i;
      char *box = boxes + block / 8 * BOX_BYTES;
      *(uint32_t *)(box + (row + 8 * i) * 128 + ((block % 8 ^ row % 8) << 4) + lane % 4 * 4) =
          narrow_two(T(), sums[index], sums[index + 1]);
    }
  fence_async_proxy();
  warpgroup_barrier(warpgroup);
  if (thread != 0) return;
  for (int i = 0; i < COUNT; i++) store_box(map, boxes + i * BOX_BYTES, (int32_t)(t.column + i * BOX), (int32_t)t.row);
  commit_stores();
}

/* --- multiplying ------------------------------------------------------------------------------------------------------- */

/* Reports to both blocks that this consumer has read a stage. stage_number: number of stages before it. */
__device__ __forceinline__ void release_stage(mbarrier *empty, uint32_t stage_number) {
  const uint32_t thread = threadIdx.x % WGMMA_THREADS;
  if (thread < CLUSTER_BLOCKS) mbarrier_arrive_at(&empty[stage_number % STAGES], thread);
}

/* Computes sums = x · weightᵀ of one tile. x, weights: descriptors of stage 0. stage_count: number of stages that the warpgroup
 * has multiplied, also in earlier calls. */
template <class T, int SUMS> __device__ __forceinline__ void multiply_tile(float (&sums)[SUMS], uint32_t steps, uint64_t x,
                                                                           uint64_t weights, mbarrier *full, mbarrier *empty,
                                                                           uint32_t &stage_count) {
  for (uint32_t step = 0; step < steps; step++, stage_count++) {
    const uint64_t offset = stage_count % STAGES * (STAGE_BYTES >> 4);
    mbarrier_spin_cta(&full[stage_count % STAGES], stage_count / STAGES + 1);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < STEP * 2 / WGMMA_STEP_BYTES; k++)
      wgmma(T(), sums, x + offset + k * (WGMMA_STEP_BYTES >> 4), weights + offset + k * (WGMMA_STEP_BYTES >> 4),
            step > 0 || k > 0);
    wgmma_commit_group();
    if (step == 0) continue;
    wgmma_wait_group<1>();
    release_stage(empty, stage_count - 1);
  }
  wgmma_wait_group<0>();
  release_stage(empty, stage_count - 1);
}

/* Consumer: computes this cluster's share of tile_count tiles. stage_count: see multiply_tile. */
template <class T, rl_hopper_epilogue EPILOGUE, int HEAD_SIZE, int COLUMNS>
__device__ __forceinline__ void multiply_tiles(const tensor_maps &maps, const arguments &args, uint32_t tile_count, char *stages,
                                               mbarrier *full, mbarrier *empty, uint32_t rank, uint32_t warpgroup,
                                               uint32_t &stage_count) {
  enum { SUMS = COLUMNS / 2, BOXES = OUT_COLUMNS<EPILOGUE, COLUMNS> / BOX };
  const uint32_t thread = threadIdx.x % WGMMA_THREADS;
  const uint64_t x = wgmma_swizzled_descriptor(stages + warpgroup * WGMMA_M * STEP * 2),
                 weights = wgmma_swizzled_descriptor(stages + X_BYTES);
  char *boxes = stages + STAGES * STAGE_BYTES + warpgroup * OUT_BOXES * BOX_BYTES;
  for (uint32_t index = blockIdx.x / CLUSTER_BLOCKS; index < tile_count; index += gridDim.x / CLUSTER_BLOCKS) {
    tile t = tile_at<EPILOGUE, COLUMNS>(args, index, rank);
    float sums[SUMS];
    multiply_tile<T>(sums, args.steps, x, weights, full, empty, stage_count);
    t.row += warpgroup * WGMMA_M;
    const uint32_t row = t.row + thread / 32 * 16 + thread % 32 / 4, column = t.column + thread % 4 * 2;
    if constexpr (EPILOGUE == RL_HOPPER_GATE) apply_gate(sums);
    if constexpr (EPILOGUE == RL_HOPPER_ADD) add<T>(sums, args, row, column);
    if constexpr (EPILOGUE == RL_HOPPER_ROPE) rotate<HEAD_SIZE>(sums, args, row, column);
    store < T, 0, BOXES<OUT_BOXES ? BOXES : OUT_BOXES>(sums, boxes, &maps.out, warpgroup, t);
    if constexpr (BOXES > OUT_BOXES) {
      t.column += OUT_BOXES * BOX;
      store<T, SUMS / 2, OUT_BOXES>(sums, boxes, &maps.out, warpgroup, t);
    }
  }
}

#endif

template <class T, rl_hopper_epilogue EPILOGUE, int HEAD_SIZE> __global__ void __launch_bounds__(THREADS, 1)
    multiply(const __grid_constant__ tensor_maps maps, const arguments args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char shared[];
  mbarrier *full = (mbarrier *)(shared + BARRIERS_OFFSET), *empty = full + STAGES;
  const uint32_t rank = rank_in_cluster(), warpgroup = threadIdx.x / WGMMA_THREADS;
  uint32_t stage_count = 0;
  if (threadIdx.x == 0)
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&full[stage], 1);
      mbarrier_init(&empty[stage], CONSUMERS * CLUSTER_BLOCKS);
    }
  cluster_barrier();
  if (warpgroup == 0) {
    lower_register_limit<PRODUCER_REGISTERS>();
    if (threadIdx.x == 0) {
      load_tiles<EPILOGUE, TILE_COLUMNS>(maps, args, args.whole_tiles, shared, full, empty, rank, stage_count);
      load_tiles<EPILOGUE, TILE_COLUMNS / 2>(maps, args, args.half_tiles, shared, full, empty, rank, stage_count);
    }
    __syncwarp();
  } else {
    raise_register_limit<CONSUMER_REGISTERS>();
    multiply_tiles<T, EPILOGUE, HEAD_SIZE, TILE_COLUMNS>(maps, args, args.whole_tiles, shared, full, empty, rank, warpgroup - 1,
                                                         stage_count);
    multiply_tiles<T, EPILOGUE, HEAD_SIZE, TILE_COLUMNS / 2>(maps, args, args.half_tiles, shared, full, empty, rank,
                                                             warpgroup - 1, stage_count);
    if (threadIdx.x % WGMMA_THREADS == 0) wait_stores();
  }
  cluster_barrier(); /* a block must not exit while the other block still multicasts to its shared memory or its mbarriers */
#else
  __trap();
#endif
}

typedef void kernel(const tensor_maps maps, const arguments args);

template <class T> kernel *kernel_of(rl_hopper_epilogue epilogue, int64_t head_size) {
  if (epilogue == RL_HOPPER_ADD) return multiply<T, RL_HOPPER_ADD, 0>;
  if (epilogue == RL_HOPPER_GATE) return multiply<T, RL_HOPPER_GATE, 0>;
  return head_size == 128 ? multiply<T, RL_HOPPER_ROPE, 128> : multiply<T, RL_HOPPER_ROPE, 64>;
}

/* --- tensor maps --------------------------------------------------------------------------------------------------------- */

struct matrix {
  const void *memory;
  int64_t rows, columns, stride; /* stride: elements between rows */
};

int encode_tensor_map(int dtype, const matrix &m, uint32_t box_rows, CUtensorMap *map, rl_error *err) {
  rl_encode_tiled *encode_tiled = NULL;
  if (rl_find_encode_tiled(&encode_tiled, err) < 0) return -1;
  const cuuint64_t sizes[] = {(cuuint64_t)m.columns, (cuuint64_t)m.rows}, strides[] = {(cuuint64_t)m.stride * 2};
  const cuuint32_t box[] = {STEP, box_rows}, element_strides[] = {1, 1};
  const CUresult status =
      encode_tiled(map, dtype == RL_DTYPE_FP16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
                   (void *)m.memory, sizes, strides, box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return status == CUDA_SUCCESS ? 0 : rl_fail(err, RL_CUDA, status, "encoding a tensor map");
}

int encode_tensor_maps(const rl_hopper_shape *s, tensor_maps *maps, rl_error *err) {
  const void *up_weight = s->epilogue == RL_HOPPER_GATE ? s->up_weight : s->weight;
  return encode_tensor_map(s->dtype, {s->x, s->rows, s->inputs, s->inputs}, TILE_ROWS, &maps->x, err) < 0 ||
                 encode_tensor_map(s->dtype, {s->weight, s->columns, s->inputs, s->inputs}, BOX, &maps->weight, err) < 0 ||
                 encode_tensor_map(s->dtype, {up_weight, s->columns, s->inputs, s->inputs}, BOX, &maps->up_weight, err) < 0 ||
                 encode_tensor_map(s->dtype, {s->out, s->rows, s->columns, s->out_stride}, BOX, &maps->out, err) < 0
             ? -1
             : 0;
}

int64_t ceil_div(int64_t dividend, int64_t divisor) { return (dividend + divisor - 1) / divisor; }

arguments arguments_of(const rl_hopper_shape *s, uint32_t resident_clusters) {
  const uint32_t row_pairs = (uint32_t)ceil_div(s->rows, CLUSTER_BLOCKS * TILE_ROWS),
                 column_tiles = (uint32_t)ceil_div(s->columns, TILE_COLUMNS / (s->epilogue == RL_HOPPER_GATE ? 2 : 1)),
                 tiles = row_pairs * column_tiles, last_wave_tiles = tiles % resident_clusters,
                 split_tiles = last_wave_tiles <= resident_clusters / 2 ? last_wave_tiles : 0;
  return {(uint32_t)s->rows,
          (uint32_t)s->columns,
          row_pairs,
          column_tiles,
          tiles - split_tiles,
          2 * split_tiles,
          (uint32_t)ceil_div(s->inputs, STEP),
          s->addend,
          s->rotations,
          (uint32_t)(s->tokens > 0 ? s->tokens : 1),
          (uint32_t)s->first_position,
          (uint32_t)s->rotated_columns};
}

}  // namespace

struct rl_hopper_product {
  tensor_maps maps;
  arguments args;
  kernel *function;
  uint32_t blocks;
};

bool rl_hopper_product_supports(const rl_device *device, const rl_hopper_shape *s) {
  const bool head_size_is_supported =
      s->epilogue != RL_HOPPER_ROPE || ((s->head_size == 64 || s->head_size == 128) && s->rotated_columns % s->head_size == 0);
  return head_size_is_supported && s->inputs % 8 == 0 && s->columns % 8 == 0 && s->out_stride % 8 == 0 &&
         rl_hopper_has_wgmma(device);
}

int rl_hopper_product_open(const rl_hopper_shape *shape, rl_hopper_product **product, rl_error *err) {
  rl_hopper_product *p = (rl_hopper_product *)aligned_alloc(alignof(rl_hopper_product), sizeof *p);
  int device = 0, sm_count = 0;
  if (!p) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a product");
  p->function = shape->dtype == RL_DTYPE_FP16 ? kernel_of<__half>(shape->epilogue, shape->head_size)
                                              : kernel_of<__nv_bfloat16>(shape->epilogue, shape->head_size);
  if (encode_tensor_maps(shape, &p->maps, err) < 0 ||
      rl_cuda_check(cudaFuncSetAttribute(p->function, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES),
                    "preparing a product", err) < 0 ||
      rl_cuda_check(cudaGetDevice(&device), "preparing a product", err) < 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device), "preparing a product", err) < 0) {
    free(p);
    return -1;
  }
  const uint32_t resident_clusters = (uint32_t)sm_count / CLUSTER_BLOCKS;
  p->args = arguments_of(shape, resident_clusters);
  const uint32_t clusters = p->args.whole_tiles > p->args.half_tiles ? p->args.whole_tiles : p->args.half_tiles;
  p->blocks = CLUSTER_BLOCKS * (clusters < resident_clusters ? clusters : resident_clusters);
  *product = p;
  return 0;
}

void rl_hopper_product_close(rl_hopper_product *product) { free(product); }

int rl_hopper_product_enqueue(const rl_hopper_product *p, rl_stream stream, rl_error *err) {
  cudaLaunchAttribute attribute = {};
  cudaLaunchConfig_t launch = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = CLUSTER_BLOCKS;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  launch.gridDim = dim3(p->blocks);
  launch.blockDim = dim3(THREADS);
  launch.dynamicSmemBytes = SHARED_BYTES;
  launch.stream = (cudaStream_t)stream;
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  return rl_cuda_check(cudaLaunchKernelEx(&launch, p->function, p->maps, p->args), "launching a product", err);
}
