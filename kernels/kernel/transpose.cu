/* transpose on CUDA: y[columns][rows] is x[rows][columns] with rows and columns exchanged. Variants:
 *   naive   a thread per element. A warp reads along a row and writes along a column, each write to a different sector
 *   shared  a block transposes a tile of 32 × 32 elements in shared memory. Reads and writes of global memory are whole sectors,
 *           but the block reads the tile by columns, and all elements of a column are in one bank
 *   padded  a block transposes a tile of SIDE × SIDE elements (SIDE elements are 256 bytes), whose pitch avoids bank conflicts by
 *           rows and by columns. It accesses global memory in vectors of 16 bytes if the rows of x and of y are aligned to 16
 *           bytes; otherwise the kernel padded_any accesses single elements
 *
 * A block synchronises once, between writing its tile to shared memory and reading it (RAW).
 *
 * Banks of a padded tile. A word of the tile is one element; for a type of 2 bytes it is the elements of two adjacent rows in the
 * same column. A warp writes vectors 0 … 7 of four rows of words: lane (j, r) writes vector j of row r, one word for each of its
 * elements k. A warp reads vectors 0 … 7 of four columns: lane (j, c) reads vector j of column c, one word after the other. The
 * pitch is odd, so the k-th words of the 32 lanes are in different banks. Word k of a lane is in bank
 *
 *   4 bytes   writes: (4j + r + k) mod 32; reads: (4j + c + k) mod 32
 *   2 bytes   writes: (8j + (j ≥ 4 ? 4 : 0) + r + k) mod 32, because SKEW = 4 words follow every 32 columns;
 *             reads: (4j + c + k) mod 32
 *   8 bytes   writes: (2j + r + k) mod 16 in each half-warp; reads: (2j + c + k) mod 16 */
#include "cuda_check.h"
#include "kernel/cuda.h"
#include "kernel/launch_sizes.h"
#include "kernel/rows.h"
#include "kernel/types.cuh"

namespace {

enum { NAIVE, SHARED, PADDED }; /* indices of the variants */
enum { BLOCK_THREADS = 256, SMALL_TILE = 32 /* rows and columns of a tile of `shared` */ };

template <class T> __global__ void __launch_bounds__(BLOCK_THREADS)
    naive(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns) {
  const size_t i = (size_t)blockIdx.x * BLOCK_THREADS + threadIdx.x;
  const size_t row = i / columns, column = i % columns;
  if (row < rows) y[column * rows + row] = x[i];
}

/* The kernel of the variant shared. tiles_across: number of tiles in a row of tiles; tiles are numbered row by row. */
template <class T> __global__ void __launch_bounds__(BLOCK_THREADS)
    shared(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns, uint32_t tiles_across) {
  __shared__ alignas(16) char smem[SMALL_TILE * SMALL_TILE * sizeof(T)];
  T(*tile)[SMALL_TILE] = (T(*)[SMALL_TILE])smem;
  const uint32_t top = blockIdx.x / tiles_across * SMALL_TILE, left = blockIdx.x % tiles_across * SMALL_TILE;
  const uint32_t lane = threadIdx.x % SMALL_TILE, warp = threadIdx.x / SMALL_TILE;
  for (uint32_t i = warp; i < SMALL_TILE; i += BLOCK_THREADS / SMALL_TILE)
    if (top + i < rows && left + lane < columns) tile[i][lane] = x[(size_t)(top + i) * columns + left + lane];
  __syncthreads();
  for (uint32_t i = warp; i < SMALL_TILE; i += BLOCK_THREADS / SMALL_TILE)
    if (left + i < columns && top + lane < rows) y[(size_t)(left + i) * rows + top + lane] = tile[lane][i];
}

struct tile_corner {
  uint32_t row, column; /* first row and column of the tile in x */
};

/* Returns the corner of the calling block's tile. side: rows and columns of a tile. Tiles are numbered column by column, so that
 * blocks that run at the same time write neighbouring memory. */
__device__ tile_corner corner_of_block(uint32_t rows, uint32_t side) {
  const uint32_t tiles_down = (rows + side - 1) / side;
  return {blockIdx.x % tiles_down * side, blockIdx.x / tiles_down * side};
}

/* Sizes of a padded tile and of its block. THREADS was the fastest choice on an H200. */
template <class T> struct tile_config {
  enum {
    SIDE = 256 / sizeof(T),                /* rows and columns of a tile, in elements */
    THREADS = sizeof(T) == 8 ? 256 : 512,  /* threads of a block */
    ROWS_OF_WORD = sizeof(T) == 2 ? 2 : 1, /* rows whose elements share a word of the tile */
    SKEW = sizeof(T) == 2 ? 4 : 0,         /* unused words after every 32 columns */
    PITCH = SIDE + SIDE / 32 * SKEW + 1    /* words from a row of words to the next */
  };
};

/* The type of a word of a padded tile. */
template <class T> struct alignas(tile_config<T>::ROWS_OF_WORD * sizeof(T)) word { T elements[tile_config<T>::ROWS_OF_WORD]; };

/* A thread's share of a padded tile. A thread reads READ_GROUPS groups of vectors along rows; a group consists of ROWS_OF_WORD
 * vectors at the same columns of adjacent rows, whose elements share words of the tile. After the barrier the thread writes
 * WRITTEN_VECTORS vectors along columns. LANES neighbouring threads process neighbouring vectors; what these threads read or
 * write together in one step is a unit. */
template <class T> struct thread_share {
  enum {
    WIDTH = 16 / sizeof(T), /* elements of a vector */
    ROWS_OF_WORD = tile_config<T>::ROWS_OF_WORD,
    WORD_ROWS = tile_config<T>::SIDE / ROWS_OF_WORD, /* rows of words of a tile */
    LANES = 8,                                       /* threads that process a unit */
    UNIT_STRIDE = tile_config<T>::THREADS / LANES,   /* distance from a thread's unit to its next one, in units */
    WRITTEN_VECTORS = tile_config<T>::SIDE * (tile_config<T>::SIDE / WIDTH) / tile_config<T>::THREADS,
    READ_GROUPS = WRITTEN_VECTORS / ROWS_OF_WORD
  };
};

/* Transposes one tile with vector accesses. INSIDE: the whole tile is inside the matrix; else each access checks the bounds. row
 * and column are relative to the tile of x; row_vector is the index of a vector in a column of this tile. */
template <class T, bool INSIDE> __device__ void transpose_tile(word<T> (*tile)[tile_config<T>::PITCH], const T *x, T *y,
                                                               uint32_t rows, uint32_t columns, tile_corner corner) {
  const uint32_t top = corner.row, left = corner.column;
  typedef thread_share<T> share;
  enum { WIDTH = share::WIDTH, SKEW = tile_config<T>::SKEW };
  const uint32_t lane = threadIdx.x % share::LANES, first = threadIdx.x / share::LANES;
  vec<T> values[share::READ_GROUPS][share::ROWS_OF_WORD];
#pragma unroll
  for (int step = 0; step < share::READ_GROUPS; step++) {
    const uint32_t unit = first + step * share::UNIT_STRIDE, row = unit % share::WORD_ROWS * share::ROWS_OF_WORD,
                   column = (unit / share::WORD_ROWS * share::LANES + lane) * WIDTH;
#pragma unroll
    for (int i = 0; i < share::ROWS_OF_WORD; i++)
      if (INSIDE || (top + row < rows && left + column < columns))
        values[step][i] = *(const vec<T> *)(x + (size_t)(top + row + i) * columns + left + column);
  }
#pragma unroll
  for (int step = 0; step < share::READ_GROUPS; step++) {
    const uint32_t unit = first + step * share::UNIT_STRIDE, column = (unit / share::WORD_ROWS * share::LANES + lane) * WIDTH;
#pragma unroll
    for (int k = 0; k < WIDTH; k++) {
      word<T> gathered;
#pragma unroll
      for (int i = 0; i < share::ROWS_OF_WORD; i++) gathered.elements[i] = values[step][i].elements[k];
      tile[unit % share::WORD_ROWS][column + column / 32 * SKEW + k] = gathered;
    }
  }
  __syncthreads();
#pragma unroll
  for (int step = 0; step < share::WRITTEN_VECTORS; step++) {
    const uint32_t unit = first + step * share::UNIT_STRIDE, column = unit % tile_config<T>::SIDE,
                   row_vector = unit / tile_config<T>::SIDE * share::LANES + lane;
    vec<T> value;
#pragma unroll
    for (int k = 0; k < WIDTH / share::ROWS_OF_WORD; k++)
      ((word<T> *)value.elements)[k] = tile[row_vector * (WIDTH / share::ROWS_OF_WORD) + k][column + column / 32 * SKEW];
    if (INSIDE || (left + column < columns && top + row_vector * WIDTH < rows))
      *(vec<T> *)(y + (size_t)(left + column) * rows + top + row_vector * WIDTH) = value;
  }
}

/* Kernel of the variant padded if the rows of x and of y are multiples of 16 bytes. Each block transposes a tile. */
template <class T> __global__ void __launch_bounds__(tile_config<T>::THREADS)
    padded(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns) {
  enum { SIDE = tile_config<T>::SIDE };
  __shared__ alignas(16) char smem[SIDE / tile_config<T>::ROWS_OF_WORD * tile_config<T>::PITCH * sizeof(word<T>)];
  word<T>(*tile)[tile_config<T>::PITCH] = (word<T>(*)[tile_config<T>::PITCH])smem;
  const tile_corner corner = corner_of_block(rows, SIDE);
  if (corner.row + SIDE <= rows && corner.column + SIDE <= columns) transpose_tile<T, true>(tile, x, y, rows, columns, corner);
  else transpose_tile<T, false>(tile, x, y, rows, columns, corner);
}

/* Kernel of the variant padded for any numbers of rows and columns. It moves single elements: SIDE neighbouring threads, a group,
 * access a row of x or of y. The pitch avoids bank conflicts: it is an odd number of elements or, for types of 2 bytes, an odd
 * number of 4-byte words, because two elements share a bank. */
template <class T> __global__ void __launch_bounds__(BLOCK_THREADS)
    padded_any(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns) {
  enum { SIDE = tile_config<T>::SIDE, PITCH = SIDE + (sizeof(T) == 2 ? 2 : 1), STEPS = SIDE * SIDE / BLOCK_THREADS };
  __shared__ alignas(16) char smem[SIDE * PITCH * sizeof(T)];
  T(*tile)[PITCH] = (T(*)[PITCH])smem;
  const tile_corner corner = corner_of_block(rows, SIDE);
  const uint32_t top = corner.row, left = corner.column;
  const uint32_t position = threadIdx.x % SIDE, group = threadIdx.x / SIDE;
#pragma unroll
  for (int step = 0; step < STEPS; step++) {
    const uint32_t row = group + step * (BLOCK_THREADS / SIDE);
    if (top + row < rows && left + position < columns) tile[row][position] = x[(size_t)(top + row) * columns + left + position];
  }
  __syncthreads();
#pragma unroll
  for (int step = 0; step < STEPS; step++) {
    const uint32_t column = group + step * (BLOCK_THREADS / SIDE);
    if (left + column < columns && top + position < rows)
      y[(size_t)(left + column) * rows + top + position] = tile[position][column];
  }
}

uint32_t tile_count(uint32_t rows, uint32_t columns, uint32_t side) { return ceil_div(rows, side) * ceil_div(columns, side); }

template <class T> int launch_typed(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  enum { WIDTH = 16 / sizeof(T), SIDE = tile_config<T>::SIDE };
  const T *x = (const T *)instance->in[0];
  T *y = (T *)instance->out;
  const uint32_t rows = (uint32_t)instance->shape.size[RL_ROWS], columns = (uint32_t)instance->shape.size[RL_COLUMNS];
  if (instance->variant == NAIVE)
    naive<T><<<ceil_div(rows * columns, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>>(x, y, rows, columns);
  else if (instance->variant == SHARED)
    shared<T>
        <<<tile_count(rows, columns, SMALL_TILE), BLOCK_THREADS, 0, stream>>>(x, y, rows, columns, ceil_div(columns, SMALL_TILE));
  else if (rows % WIDTH == 0 && columns % WIDTH == 0)
    padded<T><<<tile_count(rows, columns, SIDE), tile_config<T>::THREADS, 0, stream>>>(x, y, rows, columns);
  else padded_any<T><<<tile_count(rows, columns, SIDE), BLOCK_THREADS, 0, stream>>>(x, y, rows, columns);
  return rl_cuda_check_launch("launching", err);
}

int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<T>(instance, stream, err)))
}

}  // namespace

RL_KERNEL_CUDA(transpose, launch)
