/* rope on CUDA.
 *   scalar  a thread for each pair, which works out its sine and cosine
 *   vector  a block for a run of tokens: first the sines and cosines of all their pairs into shared memory, once for all heads;
 *           then 16 bytes an access from either half of a head
 * How far a pair turns from one position to the next comes from a table of doubles in two parts, so that whole turns can be taken
 * off without losing digits of what is left: no angle is less exact for being at a late position. */
#include <cstdlib>
#include <errno.h>

#include "cuda_check.h"
#include "kernel/cuda.h"
#include "kernel/rope.h"
#include "kernel/types.cuh"

namespace {

enum { SCALAR = 0 }; /* index of the variant */
enum { BLOCK = 256, ACCESSES = 8 /* of a thread, about */, SHARED_MOST = 40 << 10 };

typedef struct turns { /* the engine's own */
  rl_device *device;
  double2 *of_pair; /* head_size / 2: turns from one position to the next, and what of that a double does not hold */
} turns;

__device__ void sine_cosine(double of_half_turns, double *sine, double *cosine) { sincospi(of_half_turns, sine, cosine); }
__device__ void sine_cosine(float of_half_turns, float *sine, float *cosine) { sincospif(of_half_turns, sine, cosine); }

template <class M> struct rotation { M sine, cosine; };

template <class M> __device__ rotation<M> rotation_at(uint32_t position, double2 turn) {
  const double turned = (double)position * turn.x, rest = fma((double)position, turn.x, -turned) + (double)position * turn.y;
  rotation<M> r;
  sine_cosine((M)(2 * ((turned - rint(turned)) + rest)), &r.sine, &r.cosine);
  return r;
}

template <class M> __device__ void rotate(const rotation<M> &r, M *x, M *y) {
  const M left = *x * r.cosine - *y * r.sine;
  *y = *y * r.cosine + *x * r.sine;
  *x = left;
}

/* Pairs are numbered as they lie. */
template <class T> __global__ void __launch_bounds__(BLOCK)
    scalar(const T *__restrict__ x, T *__restrict__ y, uint32_t pairs, uint32_t heads, uint32_t half,
           const double2 *__restrict__ of_pair) {
  typedef typename arithmetic<T>::type M;
  const uint32_t i = blockIdx.x * BLOCK + threadIdx.x, pair = i % half, head = i / half;
  if (i >= pairs) return;
  const size_t at = (size_t)head * 2 * half + pair;
  M left = widen(x[at]), right = widen(x[at + half]);
  rotate(rotation_at<M>(head / heads, of_pair[pair]), &left, &right);
  narrow(left, &y[at]);
  narrow(right, &y[at + half]);
}

/* tokens: of a block. */
template <class T, int WIDTH> __global__ void __launch_bounds__(BLOCK)
    vector(const T *__restrict__ x, T *__restrict__ y, uint32_t all_tokens, uint32_t heads, uint32_t half, uint32_t tokens,
           const double2 *__restrict__ of_pair) {
  typedef typename arithmetic<T>::type M;
  struct alignas(WIDTH * sizeof(T)) few {
    T at[WIDTH];
  };
  extern __shared__ __align__(16) char memory[];
  rotation<M> *rotations = (rotation<M> *)memory;
  const uint32_t token = blockIdx.x * tokens, here = min(tokens, all_tokens - token), accesses = half / WIDTH;
  for (uint32_t i = threadIdx.x; i < here * half; i += BLOCK) rotations[i] = rotation_at<M>(token + i / half, of_pair[i % half]);
  __syncthreads();
  const few *from = (const few *)(x + (size_t)token * heads * 2 * half);
  few *to = (few *)(y + (size_t)token * heads * 2 * half);
  for (uint32_t i = threadIdx.x; i < here * heads * accesses; i += BLOCK) {
    const uint32_t head = i / accesses, pair = i % accesses, at = head * 2 * accesses + pair;
    const rotation<M> *with = rotations + (head / heads) * half + pair * WIDTH;
    few a = from[at], b = from[at + accesses];
    M left[WIDTH], right[WIDTH];
    widen_all<WIDTH>(a.at, left);
    widen_all<WIDTH>(b.at, right);
#pragma unroll
    for (int k = 0; k < WIDTH; k++) rotate(with[k], &left[k], &right[k]);
    narrow_all<WIDTH>(left, a.at);
    narrow_all<WIDTH>(right, b.at);
    to[at] = a;
    to[at + accesses] = b;
  }
}

/* Tokens of a block: enough for ACCESSES of each thread, but no more than shared memory has room for. */
uint32_t tokens_of_block(uint32_t pairs_of_token, uint32_t half, size_t rotation_bytes, int width) {
  const uint32_t enough = BLOCK * ACCESSES * (uint32_t)width / 2 / pairs_of_token,
                 most = (uint32_t)(SHARED_MOST / (half * rotation_bytes));
  const uint32_t tokens = enough < most ? enough : most;
  return tokens > 1 ? tokens : 1;
}

template <class T, int WIDTH> int launch_vector(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  typedef typename arithmetic<T>::type M;
  const turns *own = (const turns *)instance->engine;
  const uint32_t all = (uint32_t)instance->shape.size[RL_TOKENS], heads = (uint32_t)instance->shape.size[RL_HEADS];
  const uint32_t half = (uint32_t)instance->shape.size[RL_HEAD_SIZE] / 2;
  const uint32_t tokens = tokens_of_block(heads * half, half, sizeof(rotation<M>), WIDTH);
  vector<T, WIDTH><<<(all + tokens - 1) / tokens, BLOCK, tokens * half * sizeof(rotation<M>), stream>>>(
      (const T *)instance->in[0], (T *)instance->out, all, heads, half, tokens, own->of_pair);
  return rl_launch_ok("launching", err);
}

template <class T> int launch_typed(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  enum { PACK = 16 / sizeof(T) };
  const turns *own = (const turns *)instance->engine;
  const uint32_t heads = (uint32_t)instance->shape.size[RL_HEADS], half = (uint32_t)instance->shape.size[RL_HEAD_SIZE] / 2;
  const uint32_t pairs = (uint32_t)instance->shape.size[RL_TOKENS] * heads * half;
  if (instance->variant != SCALAR)
    return half % PACK == 0 ? launch_vector<T, PACK>(instance, stream, err) : launch_vector<T, 1>(instance, stream, err);
  scalar<T><<<(pairs + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>((const T *)instance->in[0], (T *)instance->out, pairs, heads, half,
                                                               own->of_pair);
  return rl_launch_ok("launching", err);
}

int launch(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err) {
  RL_KERNEL_BY_DTYPE(instance->params.dtype, (launch_typed<T>(instance, stream, err)))
}

int upload_turns(turns *own, int64_t head_size, rl_error *err) {
  const int64_t half = head_size / 2;
  double2 *table = (double2 *)malloc((size_t)half * sizeof *table);
  if (!table) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a table of angles");
  for (int64_t pair = 0; pair < half; pair++) {
    const long double turn = rl_rope_turn(pair, head_size);
    table[pair] = double2{(double)turn, (double)(turn - (double)turn)};
  }
  void *memory = NULL;
  int rc = own->device->ops->allocate(own->device, RL_MEMORY_WORKSPACE, (size_t)half * sizeof *table, &memory, err);
  own->of_pair = (double2 *)memory;
  if (!rc) rc = own->device->ops->upload(own->device, memory, table, (size_t)half * sizeof *table, err);
  free(table);
  return rc;
}

int open_turns(rl_kernel_instance *instance, rl_error *err) {
  turns *own = (turns *)calloc(1, sizeof *own);
  if (!own) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a table of angles");
  own->device = instance->base.device;
  instance->engine = own;
  return upload_turns(own, instance->shape.size[RL_HEAD_SIZE], err);
}

void close_turns(void *engine) {
  turns *own = (turns *)engine;
  own->device->ops->release(own->device, own->of_pair);
  free(own);
}

const rl_kernel_launcher launcher = {launch, NULL, open_turns, close_turns};

}  // namespace

RL_KERNEL_CUDA_ENGINE(rope, "cuda", "hand-written", launcher)
