/* rope (rotary position embedding) on CUDA: x and y are [tokens][heads][head_size]. Elements i and i + head_size / 2 of a head
 * are a pair, which is rotated by an angle that is proportional to the position of the token.
 *   scalar  a thread per pair, which computes the sine and cosine of the pair's angle
 *   vector  a block per tokens_per_block adjacent tokens. It stores the sines and cosines of each token's pairs in shared memory,
 *           once for all heads; after __syncthreads it rotates vectors of 16 bytes from both halves of a head
 *
 * Angles: the angle from one position to the next is a double-double (a sum of two doubles) in full turns. The product with the
 * position is exact, and whole turns are subtracted from it without rounding. So the error of an angle does not grow with the
 * position. */
#include <cstdlib>
#include <errno.h>

#include "cuda_check.h"
#include "kernel/cuda.h"
#include "kernel/rope.h"
#include "kernel/types.cuh"

namespace {

enum { SCALAR = 0 }; /* index into the operator's variants (rope.c) */
enum {
  BLOCK_THREADS = 256,
  VECTORS_PER_THREAD = 8 /* approximate number of vectors that a thread of `vector` rotates */,
  MAX_SHARED_BYTES = 40 << 10
};

/* State of the engine: device memory in addition to the inputs and the output. */
typedef struct turn_table {
  rl_device *device;
  double2 *turns_per_position; /* [head_size / 2]: full turns of a pair from one position to the next, as x + y */
} turn_table;

__device__ void sine_cosine(double half_turns, double *sine, double *cosine) { sincospi(half_turns, sine, cosine); }
__device__ void sine_cosine(float half_turns, float *sine, float *cosine) { sincospif(half_turns, sine, cosine); }

template <class M> struct rotation { M sine, cosine; };

/* Returns the rotation of a pair at a position, from the pair's full turns per position. */
template <class M> __device__ rotation<M> rotation_at(uint32_t position, double2 turns_per_position) {
  const double turns = (double)position * turns_per_position.x,
               rounding_error = fma((double)position, turns_per_position.x, -turns) + (double)position * turns_per_position.y;
  rotation<M> r;
  sine_cosine((M)(2 * ((turns - rint(turns)) + rounding_error)), &r.sine, &r.cosine);
  return r;
}

template <class M> __device__ void rotate(const rotation<M> &r, M *x, M *y) {
  const M rotated_x = *x * r.cosine - *y * r.sine;
  *y = *y * r.cosine + *x * r.sine;
  *x = rotated_x;
}

/* Kernel of the variant scalar. half_head is head_size / 2, the number of pairs of a head. Pairs and heads are numbered through
 * all tokens, in memory order. */
template <class T> __global__ void __launch_bounds__(BLOCK_THREADS)
    scalar(const T *__restrict__ x, T *__restrict__ y, uint32_t pairs, uint32_t heads, uint32_t half_head,
           const double2 *__restrict__ turns_per_position) {
  typedef typename arithmetic<T>::type M;
  const uint32_t i = blockIdx.x * BLOCK_THREADS + threadIdx.x, pair = i % half_head, head = i / half_head;
  if (i >= pairs) return;
  const size_t first = (size_t)head * 2 * half_head + pair;
  M left = widen(x[first]), right = widen(x[first + half_head]);
  rotate(rotation_at<M>(head / heads, turns_per_position[pair]), &left, &right);
  narrow(left, &y[first]);
  narrow(right, &y[first + half_head]);
}

/* Kernel of the variant vector. half_head is head_size / 2, the number of pairs of a head. */
template <class T, int WIDTH> __global__ void __launch_bounds__(BLOCK_THREADS)
    vector(const T *__restrict__ x, T *__restrict__ y, uint32_t total_tokens, uint32_t heads, uint32_t half_head,
           uint32_t tokens_per_block, const double2 *__restrict__ turns_per_position) {
  typedef typename arithmetic<T>::type M;
  extern __shared__ __align__(16) char smem[];
  rotation<M> *rotations = (rotation<M> *)smem;
  const uint32_t first_token = blockIdx.x * tokens_per_block, block_tokens = min(tokens_per_block, total_tokens - first_token),
                 vectors = half_head / WIDTH; /* vectors in half a head */
  for (uint32_t i = threadIdx.x; i < block_tokens * half_head; i += BLOCK_THREADS)
    rotations[i] = rotation_at<M>(first_token + i / half_head, turns_per_position[i % half_head]);
  __syncthreads();
  const vec<T, WIDTH> *from = (const vec<T, WIDTH> *)(x + (size_t)first_token * heads * 2 * half_head);
  vec<T, WIDTH> *to = (vec<T, WIDTH> *)(y + (size_t)first_token * heads * 2 * half_head);
  for (uint32_t i = threadIdx.x; i < block_tokens * heads * vectors; i += BLOCK_THREADS) {
    const uint32_t head = i / vectors, column = i % vectors, index = head * 2 * vectors + column; /* in vectors */
    const rotation<M> *pair_rotations = rotations + (head / heads) * half_head + column * WIDTH;
    vec<T, WIDTH> left_vector = from[index], right_vector = from[index + vectors];
    M left[WIDTH], right[WIDTH];
    widen_all<WIDTH>(left_vector.elements, left);
    widen_all<WIDTH>(right_vector.elements, right);
#pragma unroll
    for (int k = 0; k < WIDTH; k++) rotate(pair_rotations[k], &left[k], &right[k]);
    narrow_all<WIDTH>(left, left_vector.elements);
    narrow_all<WIDTH>(right, right_vector.elements);
    to[index] = left_vector;
    to[index + vectors] = right_vector;
  }
}

/* Returns the number of tokens of a block, at least one. With `wanted` tokens, each thread rotates about VECTORS_PER_THREAD
 * vectors. `limit` is the number of tokens whose rotations fit into MAX_SHARED_BYTES. */
uint32_t choose_tokens_per_block(uint32_t pairs_of_token, uint32_t half_head, size_t rotation_bytes, int width) {
  const uint32_t wanted = BLOCK_THREADS * VECTORS_PER_THREAD * (uint32_t)width / 2 / pairs_of_token,
                 limit = (uint32_t)(MAX_SHARED_BYTES / (half_head * rotation_bytes));
  const uint32_t tokens = wanted < limit ? wanted : limit;
  return tokens > 1 ? tokens : 1;
}

template <class T, int WIDTH> int launch_vector(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  typedef typename arithmetic<T>::type M;
  const turn_table *self = (const turn_table *)instance->engine_state;
  const uint32_t total_tokens = (uint32_t)instance->shape.size[RL_TOKENS], heads = (uint32_t)instance->shape.size[RL_HEADS];
  const uint32_t half_head = (uint32_t)instance->shape.size[RL_HEAD_SIZE] / 2;
  const uint32_t tokens = choose_tokens_per_block(heads * half_head, half_head, sizeof(rotation<M>), WIDTH);
  vector<T, WIDTH><<<(total_tokens + tokens - 1) / tokens, BLOCK_THREADS, tokens * half_head * sizeof(rotation<M>), stream>>>(
      (const T *)instance->in[0], (T *)instance->out, total_tokens, heads, half_head, tokens, self->turns_per_position);
  return rl_cuda_check_launch("launching", err);
}

template <class T> int launch_typed(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  enum { WIDTH = 16 / sizeof(T) };
  const turn_table *self = (const turn_table *)instance->engine_state;
  const uint32_t heads = (uint32_t)instance->shape.size[RL_HEADS], half_head = (uint32_t)instance->shape.size[RL_HEAD_SIZE] / 2;
  const uint32_t pairs = (uint32_t)instance->shape.size[RL_TOKENS] * heads * half_head;
  if (instance->variant != SCALAR)
    return half_head % WIDTH == 0 ? launch_vector<T, WIDTH>(instance, stream, err) : launch_vector<T, 1>(instance, stream, err);
  scalar<T><<<(pairs + BLOCK_THREADS - 1) / BLOCK_THREADS, BLOCK_THREADS, 0, stream>>>(
      (const T *)instance->in[0], (T *)instance->out, pairs, heads, half_head, self->turns_per_position);
  return rl_cuda_check_launch("launching", err);
}

int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<T>(instance, stream, err)))
}

int upload_turns(turn_table *self, int64_t head_size, rl_error *err) {
  const int64_t half_head = head_size / 2;
  double2 *table = (double2 *)malloc((size_t)half_head * sizeof *table);
  if (!table) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a table of angles");
  for (int64_t pair = 0; pair < half_head; pair++) {
    const long double turns = rl_rope_turns_per_position(pair, head_size);
    table[pair] = double2{(double)turns, (double)(turns - (double)turns)};
  }
  void *memory = NULL;
  int rc = self->device->ops->allocate(self->device, RL_MEMORY_WORKSPACE, (size_t)half_head * sizeof *table, &memory, err);
  self->turns_per_position = (double2 *)memory;
  if (rc == 0) rc = self->device->ops->upload(self->device, memory, table, (size_t)half_head * sizeof *table, err);
  free(table);
  return rc;
}

int open_turns(rl_kernel_instance *instance, rl_error *err) {
  turn_table *self = (turn_table *)calloc(1, sizeof *self);
  if (!self) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a table of angles");
  self->device = instance->base.device;
  instance->engine_state = self;
  return upload_turns(self, instance->shape.size[RL_HEAD_SIZE], err);
}

void close_turns(void *engine_state) {
  turn_table *self = (turn_table *)engine_state;
  self->device->ops->release(self->device, self->turns_per_position);
  free(self);
}

const rl_kernel_launcher launcher = {launch, open_turns, close_turns};

}  // namespace

RL_KERNEL_CUDA_ENGINE(rope, "cuda", "hand-written", launcher)
