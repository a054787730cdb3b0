/* All steps of an epoch in one launch: 128 blocks, one to a multiprocessor, stay from the first image to the last. The weights
 * and moments that a block updates never leave it, images never leave their pair but for 2304 numbers each way, and nothing
 * waits for a launch. What a step exchanges (exchange.cuh):
 *
 *   pair    conv1's pixels, and the gradients of them: sent to the other's shared memory, where they say that they have come
 *   group   fc1's inputs; parts of its product; the gradient of the product; the gradients of its inputs: mail
 *   all     pooled2 and d_fc1 for fc1's weight gradient: a barrier that nobody stands at, conv2's gradients come between
 *           partial sums of all other gradients, and whether they are finite: a barrier, in its shadow fc1's weight gradient
 *           the new weights: conv1's by mail, the others behind a barrier, in its shadow conv1
 *
 * A batch of more than 64 goes in rounds, and the sums of gradients stay in registers. All sums are in a fixed order. What a
 * format multiplies, and how, is its own business (tile.cuh). */
#include "cuda_check.h"
#include "train/cuda/persistent_backward.cuh"
#include "train/cuda/persistent_forward.cuh"
#include "train/cuda/persistent_update.cuh"
#include "train/cuda/tile_float.cuh"
#include "train/cuda/tile_half.cuh"
#include "train/cuda/tile_tensor_float.cuh"

/* The round behind r; past the last step none has an image. */
static __device__ __forceinline__ round_of next_round(const rl_persistent &e, round_of r) {
  if (has_image({r.batch, r.index + 1, 0, 0}, 0)) {
    r.index++;
    return r;
  }
  const uint32_t done = (r.steps_before + 1) * e.batch;
  return {done < e.count ? min(e.batch, e.count - done) : 0, 0, e.batch, r.steps_before + 1};
}

/* An image in every pair, from its bytes to the parts of fc1's product. */
template <class F> static __device__ __forceinline__ void go_forward(const rl_persistent &e, const round_of &r, const place &at,
                                                                     block_memory<F> &m, bool *overflow) {
  const uint32_t step = r.steps_before;
  const bool mine = has_image(r, at.pair), of_group = has_image(r, at.first), first = r.index == 0;
  if (!first) {
    cp_async_wait_all();
    __syncthreads();
    normalise_image(at, m);
  } else if (mine) {
    receive_small(e, step + 1, at, m);
  }
  __syncthreads();
  if (mine && watches()) mbarrier_arrive_expect_tx(&m.pixels_came, HALF_MAP1 * RL_C1 * sizeof(typename F::value));
  if (mine && works<F>()) conv1_forward(at, m);
  record_timestamp(e, step, RL_PHASE_conv1_forward);
  await_conv2(e, r, at, m);
  if (mine) await(&m.pixels_came, turn_of(r, at.pair));
  __syncthreads();
  record_timestamp(e, step, RL_PHASE_conv2_weights);
  if constexpr (team<F>::ASKS_BESIDE)
    if (of_group) fetch_linear<F, F::FORWARD_WARPS>(e, r, at, m);
  if (mine) {
    if (F::FORWARD_SCRATCH && first) {
      F::prepare_weights(m.conv2_raw, m.conv2);
      __syncthreads();
    }
    conv2_forward(e, r, at, m, overflow);
    record_timestamp(e, step, RL_PHASE_conv2_forward);
  }
  if (of_group && F::FORWARD_SCRATCH) {
    __syncthreads();
    fetch_linear<F, 0>(e, r, at, m);
  }
  if (of_group) fc1_forward(e, r, at, m);
  record_timestamp(e, step, RL_PHASE_fc1_forward);
}

/* Forward and back. */
template <class F> static __device__ __forceinline__ void do_round(const rl_persistent &e, const round_of &r, const place &at,
                                                                   upcoming *u, block_memory<F> &m, gradient_sums<F> &sums) {
  rl_exchange *x = (rl_exchange *)e.exchange;
  const uint32_t step = r.steps_before;
  const round_of next = next_round(e, r);
  const bool mine = has_image(r, at.pair), of_group = has_image(r, at.first), last = next.steps_before != step;
  go_forward(e, r, at, m, &sums.overflow);
  if (mine && at.rank == 0) head(e, r, at, u->label, m, sums);
  record_timestamp(e, step, RL_PHASE_head);
  if (last) barrier_arrive(x->forward); /* it is a while until letters come, and what it is for has long been on its way */
  if (mine) show_layers(e, r, at, m);
  look_ahead(e, next_round(e, next), at, u, m);
  if (of_group) fc1_backward(e, r, at, m);
  record_timestamp(e, step, RL_PHASE_fc1_backward);
  __syncthreads();
  if (mine) conv2_backward(e, r, at, last || !has_image(next, at.pair), m, sums);
  if (last && watches()) watch(x->forward, step + 1);
  if (mine && works<F>()) conv1_backward(e, r, at, m, sums);
  record_timestamp(e, step, RL_PHASE_conv1_backward);
  if (mine && !last) cluster_barrier(); /* letters come to where d_pooled1 lies, and pixels to pooled1 */
  move_on(u);
}

/* Behind the last round of a step: partial sums to all, their sums, the new parameters. */
template <class F> static __device__ __forceinline__ void end_rounds(const rl_persistent &e, const round_of &r, const place &at,
                                                                     block_memory<F> &m, gradient_sums<F> &sums) {
  rl_exchange *x = (rl_exchange *)e.exchange;
  const uint32_t step = r.steps_before;
  const bool mine = has_image({r.batch, 0, 0, 0}, at.pair);
  __syncthreads(); /* all behind x->forward */
  fetch_operands(e, 0, r.batch, m);
  record_timestamp(e, step, RL_PHASE_forward_barrier);
  if (mine) store_sums(e, at, m, sums);
  if (sums.overflow) x->overflow = step + 1;
  record_timestamp(e, step, RL_PHASE_store_sums);
  barrier_arrive(x->backward);
  float gradient[F::TILE_PAIRS][2] = {};
  tile_gradient(e, r.batch, m, gradient);
  record_timestamp(e, step, RL_PHASE_fc1_weight_gradient);
  normalise_image(at, m);
  barrier_wait(x->backward, step + 1);
  record_timestamp(e, step, RL_PHASE_backward_barrier);
  update_parameters(e, r, gradient, m);
  record_timestamp(e, step, RL_PHASE_adam);
  record_timestamp(e, step + 1, -1);
  barrier_arrive(x->update);
  if (watches()) end_step(&m.state, e.adam.learning_rate, r.batch);
}

/* In front of the first cluster_barrier. */
template <class F> static __device__ __forceinline__ void begin_arrivals(block_memory<F> &m) {
  if (threadIdx.x != 0) return;
  mbarrier_init(&m.pixels_came);
  mbarrier_init(&m.gradients_came);
}

/* The first image, and what comes behind it. */
template <class F> static __device__ __forceinline__ upcoming first_images(const rl_persistent &e, const round_of &r,
                                                                           const place &at, block_memory<F> &m) {
  const uint32_t image = shown(e, r, at.pair);
  fetch_image(e, image, m);
  cp_async_wait_all();
  __syncthreads();
  normalise_image(at, m);
  return {e.labels[image], 0, shown(e, next_round(e, r), at.pair), 0};
}

/* Parameters, all weights as they are multiplied (once x->update is open), the first image. */
template <class F>
static __device__ __forceinline__ upcoming begin(const rl_persistent &e, const round_of &r, const place &at, block_memory<F> &m) {
  rl_exchange *x = (rl_exchange *)e.exchange;
  load_parameters(e, m);
  barrier_arrive(x->loaded);
  const upcoming u = first_images(e, r, at, m);
  begin_arrivals(m);
  barrier_wait(x->loaded, 1);
  publish_parameters(e, m);
  barrier_arrive(x->update);
  cluster_barrier();
  return u;
}

template <class F> static __global__ void __launch_bounds__(F::THREADS, 1) persistent_epoch(rl_persistent e) {
  extern __shared__ __align__(16) unsigned char shared[];
  block_memory<F> &m = *(block_memory<F> *)shared;
  rl_exchange *x = (rl_exchange *)e.exchange;
  const place at = own_place();
  round_of r = {min(e.batch, e.count), 0, e.batch, 0};
  record_launch_timestamp(e, false);
  if (threadIdx.x == 0) m.state = *e.adam.state;
  upcoming u = begin(e, r, at, m);
  record_timestamp(e, 0, -1);
  gradient_sums<F> sums;
  while (r.batch > 0) {
    if (r.index == 0) {
      sums = {};
      sums.conv2 = F::begin_sums(conv2_row(e, at));
    }
    do_round(e, r, at, &u, m, sums);
    if (next_round(e, r).index == 0) end_rounds(e, r, at, m, sums);
    r = next_round(e, r);
  }
  barrier_wait(x->update, r.steps_before + 1);
  store_parameters(e, m);
  if (blockIdx.x == 0 && watches()) *e.adam.state = m.state;
  cluster_barrier();
  record_launch_timestamp(e, true);
}

template <class F> static __global__ void __launch_bounds__(F::THREADS, 1)
    persistent_evaluate(rl_persistent e, float *losses, uint8_t *correct) {
  extern __shared__ __align__(16) unsigned char shared[];
  block_memory<F> &m = *(block_memory<F> *)shared;
  rl_exchange *x = (rl_exchange *)e.exchange;
  const place at = own_place();
  bool overflow = false;
  round_of r = {e.count, 0, e.batch, 0};
  upcoming u = begin(e, r, at, m);
  while (r.batch > 0) {
    const round_of next = next_round(e, r);
    go_forward(e, r, at, m, &overflow);
    if (has_image(r, at.pair) && at.rank == 0) head_evaluate(e, r, at, u.label, m, losses, correct);
    cluster_barrier(); /* one of the two has all parts of fc1's product: nobody reads pooled1 or letters of this round any more */
    look_ahead(e, next_round(e, next), at, &u, m);
    move_on(&u);
    r = next;
  }
  barrier_arrive(x->update);
  barrier_wait(x->update, 2);
  store_parameters(e, m);
  if (blockIdx.x == 0 && threadIdx.x == 0) e.adam.state->test_step++;
  cluster_barrier();
}

size_t rl_persistent_exchange_bytes(void) { return sizeof(rl_exchange); }
uint32_t rl_persistent_rows(uint32_t batch) { return rows_of(batch); }

typedef struct launching {
  cudaLaunchConfig_t config;
  cudaLaunchAttribute attributes[2];
} launching;

/* The blocks need each other: in pairs, and all at once. */
template <class F> static void describe(launching *to, cudaStream_t stream) {
  *to = {};
  to->config.gridDim = BLOCKS;
  to->config.blockDim = F::THREADS;
  to->config.dynamicSmemBytes = sizeof(block_memory<F>);
  to->config.stream = stream;
  to->config.attrs = to->attributes;
  to->config.numAttrs = 2;
  to->attributes[0].id = cudaLaunchAttributeClusterDimension;
  to->attributes[0].val.clusterDim = {2, 1, 1};
  to->attributes[1].id = cudaLaunchAttributeCooperative;
  to->attributes[1].val.cooperative = 1;
}

template <class F, class... Parameters> static int reserve(void (*kernel)(Parameters...), rl_error *err) {
  return rl_cuda_ok(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(block_memory<F>)),
                    "reserving shared memory", err);
}

template <class F> static int supported(rl_error *err) {
  cudaFuncAttributes code = {};
  int device = 0, able = 0, most = 0, pairs = 0;
  if (rl_cuda_ok(cudaGetDevice(&device), "asking for the device", err) ||
      rl_cuda_ok(cudaDeviceGetAttribute(&able, cudaDevAttrClusterLaunch, device), "asking for clusters of blocks", err) ||
      rl_cuda_ok(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "asking for shared memory",
                 err) ||
      rl_cuda_ok(cudaFuncGetAttributes(&code, persistent_epoch<F>), "looking at the code", err))
    return -1;
  if (!able || code.ptxVersion < 90 || (size_t)most < sizeof(block_memory<F>))
    return rl_fail_at(
        err, "/engine",
        "engine persistent needs clusters of blocks, compute capability 9.0 and code for it; engine fused does not");
  launching launch;
  describe<F>(&launch, NULL);
  if (reserve<F>(persistent_epoch<F>, err) ||
      rl_cuda_ok(cudaOccupancyMaxActiveClusters(&pairs, persistent_epoch<F>, &launch.config), "asking for room", err))
    return -1;
  if (pairs >= PAIRS) return 0;
  return rl_fail_at(err, "/engine",
                    "engine persistent needs room for %d blocks at once, and this device has %d; engine fused does not",
                    (int)BLOCKS, 2 * pairs);
}

/* On a cleared exchange. */
template <class F, class... Parameters, class... Arguments> static int start(const char *what, void (*kernel)(Parameters...),
                                                                             const rl_persistent *e, cudaStream_t stream,
                                                                             rl_error *err, Arguments... arguments) {
  launching launch;
  describe<F>(&launch, stream);
  if (reserve<F>(kernel, err) ||
      rl_cuda_ok(cudaMemsetAsync(e->exchange, 0, sizeof(rl_exchange), stream), "clearing the exchange", err))
    return -1;
  return rl_cuda_ok(cudaLaunchKernelEx(&launch.config, kernel, *e, arguments...), what, err);
}

int rl_persistent_supported(rl_format format, rl_error *err) {
  if (format.half) return supported<half_tiles>(err);
  return format.tensor_float ? supported<tensor_float_tiles>(err) : supported<float_tiles>(err);
}

template <class F> static int train(const rl_persistent *epoch, cudaStream_t stream, rl_error *err) {
  return start<F>("training an epoch", persistent_epoch<F>, epoch, stream, err);
}

int rl_persistent_epoch(rl_format format, const rl_persistent *epoch, cudaStream_t stream, rl_error *err) {
  if (format.half) return train<half_tiles>(epoch, stream, err);
  return format.tensor_float ? train<tensor_float_tiles>(epoch, stream, err) : train<float_tiles>(epoch, stream, err);
}

template <class F>
static int evaluate(const rl_persistent *test, float *losses, uint8_t *correct, cudaStream_t stream, rl_error *err) {
  return start<F>("evaluating", persistent_evaluate<F>, test, stream, err, losses, correct);
}

int rl_persistent_evaluate(rl_format format, const rl_persistent *test, float *losses, uint8_t *correct, cudaStream_t stream,
                           rl_error *err) {
  if (format.half) return evaluate<half_tiles>(test, losses, correct, stream, err);
  return format.tensor_float ? evaluate<tensor_float_tiles>(test, losses, correct, stream, err)
                             : evaluate<float_tiles>(test, losses, correct, stream, err);
}
