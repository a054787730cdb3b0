/* transpose on CUDA.
 *   naive   a thread an element: reads along rows, writes along columns, each write a sector of its own
 *   shared  tiles of 32 × 32 in shared memory, read by columns: both sides of global memory whole sectors, but all of a column in
 *           one bank
 *   padded  tiles of 256 bytes × 256 bytes with a pitch so that neither rows nor columns meet in a bank; 16 bytes an access of
 *           global memory where rows on both sides are made of such
 * Which bank a word of a padded tile is in: a word is an element, of 2 bytes those of two rows. Rows are written by lanes j (an
 * access, 0 .. 7) and r (a row of words, 0 .. 3), columns are gathered by lanes j (an access of a column) and c (a column,
 * 0 .. 3). With an odd pitch the k-th words of the lanes are, of 4 bytes, 4j + r + k and 4j + c + k modulo 32; of pairs of
 * 2 bytes 8j + (j ≥ 4 ? 4 : 0) + r + k, for which every 32 columns have 4 words more, and 4j + c + k; of 8 bytes 2j + r + k
 * modulo 16, in half-warps: all apart. */
#include "cuda_check.h"
#include "kernel/cuda.h"
#include "kernel/rows.h"
#include "kernel/types.cuh"

namespace {

enum { NAIVE, SHARED, PADDED }; /* the variants */
enum { BLOCK = 256, SMALL = 32 };

template <class T> __global__ void __launch_bounds__(BLOCK)
    naive(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns) {
  const size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  const size_t row = i / columns, column = i % columns;
  if (row < rows) y[column * rows + row] = x[i];
}

/* Tiles are numbered row by row. */
template <class T> __global__ void __launch_bounds__(BLOCK)
    shared(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns, uint32_t across) {
  __shared__ alignas(16) char memory[SMALL * SMALL * sizeof(T)];
  T(*tile)[SMALL] = (T(*)[SMALL])memory;
  const uint32_t top = blockIdx.x / across * SMALL, left = blockIdx.x % across * SMALL;
  const uint32_t lane = threadIdx.x % SMALL, warp = threadIdx.x / SMALL;
  for (uint32_t i = warp; i < SMALL; i += BLOCK / SMALL)
    if (top + i < rows && left + lane < columns) tile[i][lane] = x[(size_t)(top + i) * columns + left + lane];
  __syncthreads();
  for (uint32_t i = warp; i < SMALL; i += BLOCK / SMALL)
    if (left + i < columns && top + lane < rows) y[(size_t)(left + i) * rows + top + lane] = tile[lane][i];
}

/* Tiles are numbered down the columns: what is written by those at work at any time lies together. */
__device__ void place_tile(uint32_t rows, uint32_t side, uint32_t *top, uint32_t *left) {
  const uint32_t down = (rows + side - 1) / side;
  *top = blockIdx.x % down * side;
  *left = blockIdx.x / down * side;
}

/* How a type's tiles are cut, and by how many threads: what was fastest on an H200. */
template <class T> struct cut {
  enum {
    SIDE = 256 / sizeof(T),
    THREADS = sizeof(T) == 8 ? 256 : 512,
    ROWS_OF_WORD = sizeof(T) == 2 ? 2 : 1,
    SKEW = sizeof(T) == 2 ? 4 : 0,
    PITCH = SIDE + SIDE / 32 * SKEW + 1
  };
};

template <class T> struct alignas(cut<T>::ROWS_OF_WORD * sizeof(T)) word { T at[cut<T>::ROWS_OF_WORD]; };

/* ALL: the tile lies inside; else what is behind the end of a row or column is left out, which every access would have to ask. */
template <class T, bool ALL> __device__ void turn_tile(word<T> (*tile)[cut<T>::PITCH], const T *x, T *y, uint32_t rows,
                                                       uint32_t columns, uint32_t top, uint32_t left) {
  enum {
    PACK = 16 / sizeof(T),
    OF = cut<T>::ROWS_OF_WORD,
    SIDE = cut<T>::SIDE,
    LINES = SIDE / OF,
    SKEW = cut<T>::SKEW,
    LANES = 8,
    APART = cut<T>::THREADS / LANES,
    OUT = SIDE * (SIDE / PACK) / cut<T>::THREADS,
    IN = OUT / OF
  };
  const uint32_t lane = threadIdx.x % LANES, begin = threadIdx.x / LANES;
  pack<T> values[IN][OF];
#pragma unroll
  for (int go = 0; go < IN; go++) {
    const uint32_t unit = begin + go * APART, r = unit % LINES * OF, c = (unit / LINES * LANES + lane) * PACK;
#pragma unroll
    for (int i = 0; i < OF; i++)
      if (ALL || (top + r < rows && left + c < columns))
        values[go][i] = *(const pack<T> *)(x + (size_t)(top + r + i) * columns + left + c);
  }
#pragma unroll
  for (int go = 0; go < IN; go++) {
    const uint32_t unit = begin + go * APART, c = (unit / LINES * LANES + lane) * PACK;
#pragma unroll
    for (int k = 0; k < PACK; k++) {
      word<T> some;
#pragma unroll
      for (int i = 0; i < OF; i++) some.at[i] = values[go][i].at[k];
      tile[unit % LINES][c + c / 32 * SKEW + k] = some;
    }
  }
  __syncthreads();
#pragma unroll
  for (int go = 0; go < OUT; go++) {
    const uint32_t unit = begin + go * APART, c = unit % SIDE, r = unit / SIDE * LANES + lane;
    pack<T> value;
#pragma unroll
    for (int k = 0; k < PACK / OF; k++) ((word<T> *)value.at)[k] = tile[r * (PACK / OF) + k][c + c / 32 * SKEW];
    if (ALL || (left + c < columns && top + r * PACK < rows))
      *(pack<T> *)(y + (size_t)(left + c) * rows + top + r * PACK) = value;
  }
}

/* Both sides made of accesses of 16 bytes. */
template <class T> __global__ void __launch_bounds__(cut<T>::THREADS)
    padded(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns) {
  enum { SIDE = cut<T>::SIDE };
  __shared__ alignas(16) char memory[SIDE / cut<T>::ROWS_OF_WORD * cut<T>::PITCH * sizeof(word<T>)];
  word<T>(*tile)[cut<T>::PITCH] = (word<T>(*)[cut<T>::PITCH])memory;
  uint32_t top, left;
  place_tile(rows, SIDE, &top, &left);
  if (top + SIDE <= rows && left + SIDE <= columns) turn_tile<T, true>(tile, x, y, rows, columns, top, left);
  else turn_tile<T, false>(tile, x, y, rows, columns, top, left);
}

/* Any rows and columns, element by element. Two elements of 2 bytes lie in a bank: their pitch is odd in words. */
template <class T> __global__ void __launch_bounds__(BLOCK)
    padded_any(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns) {
  enum { SIDE = cut<T>::SIDE, PITCH = SIDE + (sizeof(T) == 2 ? 2 : 1), GOES = SIDE * SIDE / BLOCK };
  __shared__ alignas(16) char memory[SIDE * PITCH * sizeof(T)];
  T(*tile)[PITCH] = (T(*)[PITCH])memory;
  uint32_t top, left;
  place_tile(rows, SIDE, &top, &left);
  const uint32_t lane = threadIdx.x % SIDE, line = threadIdx.x / SIDE;
#pragma unroll
  for (int go = 0; go < GOES; go++) {
    const uint32_t r = line + go * (BLOCK / SIDE);
    if (top + r < rows && left + lane < columns) tile[r][lane] = x[(size_t)(top + r) * columns + left + lane];
  }
  __syncthreads();
#pragma unroll
  for (int go = 0; go < GOES; go++) {
    const uint32_t c = line + go * (BLOCK / SIDE);
    if (left + c < columns && top + lane < rows) y[(size_t)(left + c) * rows + top + lane] = tile[lane][c];
  }
}

uint32_t over(uint32_t count, uint32_t by) { return (count + by - 1) / by; }

uint32_t tiles(uint32_t rows, uint32_t columns, uint32_t side) { return over(rows, side) * over(columns, side); }

template <class T> int launch_typed(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  enum { PACK = 16 / sizeof(T), SIDE = cut<T>::SIDE };
  const T *x = (const T *)instance->in[0];
  T *y = (T *)instance->out;
  const uint32_t rows = (uint32_t)instance->shape.size[RL_ROWS], columns = (uint32_t)instance->shape.size[RL_COLUMNS];
  if (instance->variant == NAIVE) naive<T><<<over(rows * columns, BLOCK), BLOCK, 0, stream>>>(x, y, rows, columns);
  else if (instance->variant == SHARED)
    shared<T><<<tiles(rows, columns, SMALL), BLOCK, 0, stream>>>(x, y, rows, columns, over(columns, SMALL));
  else if (rows % PACK == 0 && columns % PACK == 0)
    padded<T><<<tiles(rows, columns, SIDE), cut<T>::THREADS, 0, stream>>>(x, y, rows, columns);
  else padded_any<T><<<tiles(rows, columns, SIDE), BLOCK, 0, stream>>>(x, y, rows, columns);
  return rl_launch_ok("launching", err);
}

int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<T>(instance, stream, err)))
}

}  // namespace

RL_KERNEL_CUDA(transpose, launch)
