/* transpose on CUDA.
 *   naive   a thread an element: reads along rows, writes along columns, each write a sector of its own
 *   shared  tiles of 32 × 32 in shared memory, read by columns: both sides of global memory whole sectors, but all of a column in one bank
 *   padded  tiles of 256 bytes × 256 bytes with an odd pitch, so that neither rows nor columns meet in a bank; 16 bytes an
 *           access of global memory where rows on both sides are made of such
 * Which bank an element of a padded tile is in: rows are written by lanes j (an access, 0 .. 7) and r (a row, 0 .. 3), columns are
 * gathered by lanes j (PACK elements of a column) and c (a column, 0 .. 3). With PITCH = SIDE + 1, the k-th words of the lanes are
 * 4j + r + k and 4j + c + k modulo 32 for 4 bytes, the same with pairs in a word for 2 bytes, and 2j + r + k modulo 16, in half-warps,
 * for 8 bytes: all apart. */
#include "cuda_check.h"
#include "kernel/cuda.h"
#include "kernel/rows.h"
#include "kernel/types.cuh"

namespace {

enum { NAIVE, SHARED, PADDED }; /* the variants */
enum { BLOCK = 256, SMALL = 32, HIGH = 16 };

template <class T>
__global__ void __launch_bounds__(BLOCK) naive(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns) {
  const size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  const size_t row = i / columns, column = i % columns;
  if (row < rows) y[column * rows + row] = x[i];
}

/* Tiles are numbered row by row. */
template <class T>
__global__ void __launch_bounds__(BLOCK) shared(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns, uint32_t across) {
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

/* Tiles are numbered down bands of HIGH tiles, so that those at work at any time lie close together in rows and in columns. */
__device__ void place_tile(uint32_t rows, uint32_t columns, uint32_t side, uint32_t *top, uint32_t *left) {
  const uint32_t across = (columns + side - 1) / side, down = (rows + side - 1) / side, of_band = HIGH * across;
  const uint32_t band = blockIdx.x / of_band, within = blockIdx.x % of_band, high = min((uint32_t)HIGH, down - band * HIGH);
  *top = (band * HIGH + within % high) * side;
  *left = within / high * side;
}

template <class T> struct side { enum { OF = sizeof(T) == 8 ? 32 : sizeof(T) == 4 ? 64 : 128 }; }; /* 256 bytes */

/* Both sides made of accesses of 16 bytes. */
template <class T>
__global__ void __launch_bounds__(BLOCK) padded(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns) {
  enum { PACK = 16 / sizeof(T), SIDE = side<T>::OF, PITCH = SIDE + 1, ACCESSES = SIDE / PACK, LANES = 8, GOES = SIDE * ACCESSES / BLOCK };
  __shared__ alignas(16) char memory[SIDE * PITCH * sizeof(T)];
  T(*tile)[PITCH] = (T(*)[PITCH])memory;
  uint32_t top, left;
  place_tile(rows, columns, SIDE, &top, &left);
  const uint32_t lane = threadIdx.x % LANES, line = threadIdx.x / LANES;
  pack<T> values[GOES];
#pragma unroll
  for (int go = 0; go < GOES; go++) {
    const uint32_t unit = line + go * (BLOCK / LANES), r = unit % SIDE, c = (unit / SIDE * LANES + lane) * PACK;
    if (top + r < rows && left + c < columns) values[go] = *(const pack<T> *)(x + (size_t)(top + r) * columns + left + c);
  }
#pragma unroll
  for (int go = 0; go < GOES; go++) {
    const uint32_t unit = line + go * (BLOCK / LANES), r = unit % SIDE, c = (unit / SIDE * LANES + lane) * PACK;
#pragma unroll
    for (int k = 0; k < PACK; k++) tile[r][c + k] = values[go].at[k];
  }
  __syncthreads();
#pragma unroll
  for (int go = 0; go < GOES; go++) {
    const uint32_t unit = line + go * (BLOCK / LANES), c = unit % SIDE, r = (unit / SIDE * LANES + lane) * PACK;
    pack<T> value;
#pragma unroll
    for (int k = 0; k < PACK; k++) value.at[k] = tile[r + k][c];
    if (left + c < columns && top + r < rows) *(pack<T> *)(y + (size_t)(left + c) * rows + top + r) = value;
  }
}

/* Any rows and columns, element by element. Two elements of 2 bytes lie in a bank: their pitch is odd in words. */
template <class T>
__global__ void __launch_bounds__(BLOCK) padded_any(const T *__restrict__ x, T *__restrict__ y, uint32_t rows, uint32_t columns) {
  enum { SIDE = side<T>::OF, PITCH = SIDE + (sizeof(T) == 2 ? 2 : 1), GOES = SIDE * SIDE / BLOCK };
  __shared__ alignas(16) char memory[SIDE * PITCH * sizeof(T)];
  T(*tile)[PITCH] = (T(*)[PITCH])memory;
  uint32_t top, left;
  place_tile(rows, columns, SIDE, &top, &left);
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

template <class T>
int launch_typed(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  enum { PACK = 16 / sizeof(T), SIDE = side<T>::OF };
  const T *x = (const T *)instance->in[0];
  T *y = (T *)instance->out;
  const uint32_t rows = (uint32_t)instance->shape.size[RL_ROWS], columns = (uint32_t)instance->shape.size[RL_COLUMNS];
  const uint32_t small_across = over(columns, SMALL), across = over(columns, SIDE);
  if (instance->variant == NAIVE) naive<T><<<over(rows * columns, BLOCK), BLOCK, 0, stream>>>(x, y, rows, columns);
  else if (instance->variant == SHARED)
    shared<T><<<over(rows, SMALL) * small_across, BLOCK, 0, stream>>>(x, y, rows, columns, small_across);
  else if (rows % PACK == 0 && columns % PACK == 0)
    padded<T><<<over(rows, SIDE) * across, BLOCK, 0, stream>>>(x, y, rows, columns);
  else
    padded_any<T><<<over(rows, SIDE) * across, BLOCK, 0, stream>>>(x, y, rows, columns);
  return rl_launch_ok("launching", err);
}

int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<T>(instance, stream, err)))
}

} // namespace

RL_KERNEL_CUDA(transpose, launch)
