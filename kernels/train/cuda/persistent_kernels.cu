/* The kernels of the engine "persistent": one launch runs all steps of an epoch, another launch evaluates the test images.
 * persistent.cuh defines pairs and groups of blocks, microbatches, the names of tensors and F. The blocks run for the whole
 * launch, and each block keeps its weights and moments in shared memory. In a step, blocks exchange data
 *
 *   in a pair    pooled1 and d_pooled1, by st.async, which completes on an mbarrier of the receiving block; not in FP16, where
 *                each block computes conv1 for all pixels
 *   in a group   pooled2, the parts of fc1's product, d_fc1 and d_pooled2, as tagged words (exchange.cuh)
 *   in the grid  through global memory, with four grid barriers. Between arrive and wait, a block computes something else:
 *
 *     barrier    after the barrier, every block can read            computed between arrive and wait
 *     forward    pooled2 and d_fc1, for fc1's weight gradient       conv2's backward pass
 *     conv2_sums partial sums of conv2's weight gradient            conv1's backward pass
 *     backward   overflow, partial sums of the other gradients      fc1's weight gradient
 *     update     the new weights. Those of conv1 and the biases     conv1 of the next step
 *                of conv2 are sent as tagged words instead
 *
 * A thread adds up gradients over the microbatches of a step in registers. All sums have a fixed order.
 *
 * Lower bound of the time of a step of 64 images on an H200: FP16 1.4 µs for all products on the tensor cores; FP32, at 128 FMA
 * per cycle and SM, 7.0 µs for the convolutions (Winograd) and 1.7 µs for fc1. The rest of a step is the latency of the exchanges
 * (docs/performance.md). */
#include "cuda_check.h"
#include "train/cuda/persistent_backward.cuh"
#include "train/cuda/persistent_forward.cuh"
#include "train/cuda/persistent_update.cuh"
#include "train/cuda/tile_float.cuh"
#include "train/cuda/tile_half.cuh"
#include "train/cuda/tile_tensor_float.cuh"

/* Returns the microbatch that follows mb. After the last microbatch of the epoch its step_images is 0. */
static __device__ __forceinline__ microbatch next_microbatch(const rl_persistent_args &args, microbatch mb) {
  if (has_image({mb.step_images, mb.index + 1, 0, 0}, 0)) {
    mb.index++;
    return mb;
  }
  const uint32_t done = (mb.step + 1) * args.batch;
  return {done < args.count ? min(args.batch, args.count - done) : 0, 0, args.batch, mb.step + 1};
}

/* Computes the forward pass of a microbatch, from the image to the parts of fc1's product. */
template <class F> static __device__ __forceinline__ void forward_pass(const rl_persistent_args &args, const microbatch &mb,
                                                                       const block_coords &coords, block_memory<F> &smem,
                                                                       bool *overflow) {
  const uint32_t step = mb.step;
  const bool pair_active = has_image(mb, coords.pair), group_active = has_image(mb, coords.group_first_pair),
             is_first_microbatch = mb.index == 0;
  if (!is_first_microbatch) {
    cp_async_wait_all();
    __syncthreads();
    normalise_image(coords, smem);
  } else if (pair_active) {
    receive_tagged_weights(args, step + 1, coords, smem);
  }
  __syncthreads();
  if (F::CONV1_IS_SPLIT && pair_active && is_leader())
    mbarrier_arrive_expect_tx(&smem.pooled1_mbarrier, BLOCK_PIXELS * RL_CONV1_CHANNELS * sizeof(typename F::value));
  if (pair_active && is_compute_warp<F>()) conv1_forward(coords, smem);
  record_timestamp(args, step, RL_TIMED_conv1_forward);
  wait_and_load_conv2(args, mb, coords, smem);
  if (F::CONV1_IS_SPLIT && pair_active) mbarrier_wait(&smem.pooled1_mbarrier, message_phase(mb, coords.pair));
  __syncthreads();
  record_timestamp(args, step, RL_TIMED_conv2_weights);
  if constexpr (step_schedule<F>::PREFETCH_EARLY)
    if (group_active) load_fc1_and_head_async<F, F::CONV2_FORWARD_WARPS>(args, mb, coords, smem);
  if (pair_active) {
    if (step_schedule<F>::TRANSFORMS_WEIGHTS && is_first_microbatch) {
      F::prepare_weights(smem.conv2_untransformed, smem.conv2);
      __syncthreads();
    }
    conv2_forward(args, mb, coords, smem, overflow);
    record_timestamp(args, step, RL_TIMED_conv2_forward);
  }
  if (group_active && step_schedule<F>::TRANSFORMS_WEIGHTS) {
    __syncthreads();
    load_fc1_and_head_async<F, 0>(args, mb, coords, smem);
  }
  if (group_active) fc1_forward(args, mb, coords, smem);
  record_timestamp(args, step, RL_TIMED_fc1_forward);
}

/* Computes the forward and the backward pass of a microbatch. */
template <class F> static __device__ __forceinline__ void run_microbatch(const rl_persistent_args &args, const microbatch &mb,
                                                                         const block_coords &coords, prefetch_state *prefetch,
                                                                         block_memory<F> &smem, gradient_sums<F> &sums) {
  rl_block_exchange *exchange = args.block_exchange;
  const uint32_t step = mb.step;
  const microbatch next = next_microbatch(args, mb);
  const bool pair_active = has_image(mb, coords.pair), group_active = has_image(mb, coords.group_first_pair),
             is_last_microbatch = next.step != step;
  forward_pass(args, mb, coords, smem, &sums.overflow);
  if (pair_active && coords.rank == 0) train_head(args, mb, coords, prefetch->label, smem, sums);
  record_timestamp(args, step, RL_TIMED_head);
  /* The release of grid_barrier_arrive waits until the block's stores have drained. At this point most of them have; later it
   * would also wait for the tagged words that fc1_backward sends. */
  if (is_last_microbatch) grid_barrier_arrive(exchange->forward);
  if (pair_active) dump_activations(args, mb, coords, smem);
  prefetch_next_image(args, next_microbatch(args, next), coords, prefetch, smem);
  if (group_active) fc1_backward(args, mb, coords, smem);
  record_timestamp(args, step, RL_TIMED_fc1_backward);
  __syncthreads();
  if (pair_active) conv2_backward(args, mb, coords, is_last_microbatch || !has_image(next, coords.pair), smem, sums);
  /* RAW: after __syncthreads all threads may read what other blocks have written before the barrier `forward`, and d_pooled1. The
   * leader arrives at the barrier `conv2_sums` in a warp that does not compute conv1, because the release waits until the block's
   * stores have drained. */
  if (is_last_microbatch && is_leader()) grid_barrier_spin(exchange->forward, step + 1);
  __syncthreads();
  if (is_last_microbatch) {
    if (is_leader()) grid_barrier_release(exchange->conv2_sums);
    load_fc1_operands_async(args, 0, mb.step_images, smem);
  }
  record_timestamp(args, step, RL_TIMED_forward_barrier);
  if constexpr (!F::CONV1_IS_SPLIT)
    if (pair_active) dump_d_pooled1(args, mb, coords, smem);
  if (pair_active && is_compute_warp<F>()) conv1_backward(args, mb, coords, smem, sums);
  record_timestamp(args, step, RL_TIMED_conv1_backward);
  if (pair_active && !is_last_microbatch)
    cluster_barrier(); /* WAR: the next microbatch overwrites d_pooled1 and pooled1 in both blocks */
  advance(prefetch);
}

/* Ends a step after its last microbatch: stores the partial sums, computes fc1's weight gradient and updates the parameters. */
template <class F> static __device__ __forceinline__ void finish_step(const rl_persistent_args &args, const microbatch &mb,
                                                                      const block_coords &coords, block_memory<F> &smem,
                                                                      gradient_sums<F> &sums) {
  rl_block_exchange *exchange = args.block_exchange;
  const uint32_t step = mb.step;
  const bool pair_active = has_image({mb.step_images, 0, 0, 0}, coords.pair);
  if (pair_active) store_partial_sums(args, coords, smem, sums);
  if (sums.overflow) exchange->overflow = step + 1;
  record_timestamp(args, step, RL_TIMED_store_sums);
  grid_barrier_arrive(exchange->backward);
  if (is_leader()) grid_barrier_spin(exchange->conv2_sums, step + 1);
  float gradient[F::FC1_GRADIENT_PAIRS_PER_THREAD][2] = {};
  fc1_weight_gradient_tile(args, mb.step_images, smem, gradient);
  record_timestamp(args, step, RL_TIMED_fc1_weight_gradient);
  add_conv2_rows(args, partial_rows(mb.step_images), smem);
  normalise_image(coords, smem);
  grid_barrier_wait(exchange->backward, step + 1);
  record_timestamp(args, step, RL_TIMED_backward_barrier);
  update_parameters(args, mb, gradient, smem);
  record_timestamp(args, step, RL_TIMED_adam);
  record_timestamp(args, step + 1, STEP_BEGIN);
  grid_barrier_arrive(exchange->update);
  if (is_leader()) advance_train_state(&smem.state, args.adam.learning_rate, mb.step_images);
}

/* Initialises the mbarriers. Call it before the first cluster_barrier, after which the peer may use them. */
template <class F> static __device__ __forceinline__ void init_mbarriers(block_memory<F> &smem) {
  if (threadIdx.x != 0) return;
  mbarrier_init(&smem.pooled1_mbarrier);
  mbarrier_init(&smem.gradients_mbarrier);
}

/* Loads and normalises the pair's first image, and loads the data set index of its second image. */
template <class F>
static __device__ __forceinline__ prefetch_state load_first_image(const rl_persistent_args &args, const microbatch &mb,
                                                                  const block_coords &coords, block_memory<F> &smem) {
  const uint32_t image = dataset_index(args, mb, coords.pair);
  load_image_async(args, image, smem);
  cp_async_wait_all();
  __syncthreads();
  normalise_image(coords, smem);
  return {args.labels[image], 0, dataset_index(args, next_microbatch(args, mb), coords.pair), 0};
}

/* Begins a launch: loads the parameters and the first image, and makes the weights, rounded to F::value, available to the other
 * blocks, which wait for the barrier `update`. */
template <class F> static __device__ __forceinline__ prefetch_state begin_launch(const rl_persistent_args &args,
                                                                                 const microbatch &mb, const block_coords &coords,
                                                                                 block_memory<F> &smem) {
  rl_block_exchange *exchange = args.block_exchange;
  load_parameters(args, smem);
  if constexpr (!F::CONV1_IS_SPLIT) clear_conv1_memory(smem);
  grid_barrier_arrive(exchange->loaded);
  const prefetch_state prefetch = load_first_image(args, mb, coords, smem);
  init_mbarriers(smem);
  grid_barrier_wait(exchange->loaded, 1);
  publish_parameters(args, smem);
  grid_barrier_arrive(exchange->update);
  cluster_barrier();
  return prefetch;
}

/* Trains one epoch. args: persistent.h. */
template <class F> static __global__ void __launch_bounds__(F::THREADS, 1) persistent_epoch(rl_persistent_args args) {
  extern __shared__ __align__(16) unsigned char shared[];
  block_memory<F> &smem = *(block_memory<F> *)shared;
  rl_block_exchange *exchange = args.block_exchange;
  const block_coords coords = own_coords();
  microbatch mb = {min(args.batch, args.count), 0, args.batch, 0};
  record_launch_timestamp(args, false);
  if (threadIdx.x == 0) smem.state = *args.adam.state;
  prefetch_state prefetch = begin_launch(args, mb, coords, smem);
  record_timestamp(args, 0, STEP_BEGIN);
  gradient_sums<F> sums;
  while (mb.step_images > 0) {
    if (mb.index == 0) {
      sums = {};
      sums.conv2 = F::init_weight_sums(conv2_weight_partial_row(args, coords));
    }
    run_microbatch(args, mb, coords, &prefetch, smem, sums);
    if (next_microbatch(args, mb).index == 0) finish_step(args, mb, coords, smem, sums);
    mb = next_microbatch(args, mb);
  }
  grid_barrier_wait(exchange->update, mb.step + 1);
  store_parameters(args, smem);
  if (blockIdx.x == 0 && is_leader()) *args.adam.state = smem.state;
  cluster_barrier();
  record_launch_timestamp(args, true);
}

/* Evaluates all test images as one step. losses, correct: [images]. */
template <class F> static __global__ void __launch_bounds__(F::THREADS, 1)
    persistent_evaluate(rl_persistent_args args, float *losses, uint8_t *correct) {
  extern __shared__ __align__(16) unsigned char shared[];
  block_memory<F> &smem = *(block_memory<F> *)shared;
  rl_block_exchange *exchange = args.block_exchange;
  const block_coords coords = own_coords();
  bool overflow = false;
  microbatch mb = {args.count, 0, args.batch, 0};
  prefetch_state prefetch = begin_launch(args, mb, coords, smem);
  while (mb.step_images > 0) {
    const microbatch next = next_microbatch(args, mb);
    forward_pass(args, mb, coords, smem, &overflow);
    if (has_image(mb, coords.pair) && coords.rank == 0) evaluate_head(args, mb, coords, prefetch.label, smem, {losses, correct});
    /* WAR: the next microbatch overwrites the pair's pooled1 and tagged words. Rank 0 has received all parts of fc1's product.
     * The blocks of the group send these parts after they have read the tagged words. */
    cluster_barrier();
    prefetch_next_image(args, next_microbatch(args, next), coords, &prefetch, smem);
    advance(&prefetch);
    mb = next;
  }
  grid_barrier_arrive(exchange->update);
  grid_barrier_wait(exchange->update, 2);
  store_parameters(args, smem);
  if (blockIdx.x == 0 && threadIdx.x == 0) args.adam.state->test_step++;
  cluster_barrier();
}

size_t rl_persistent_exchange_bytes(void) { return sizeof(rl_block_exchange); }
uint32_t rl_persistent_partial_rows(uint32_t batch) { return partial_rows(batch); }

typedef struct launch_config {
  cudaLaunchConfig_t config;
  cudaLaunchAttribute attributes[2];
} launch_config;

/* Sets the size of the launch, clusters of two blocks, and a cooperative launch: all blocks must be resident, because they wait
 * for each other. */
template <class F> static void init_launch_config(launch_config *launch, cudaStream_t stream) {
  *launch = {};
  launch->config.gridDim = BLOCKS;
  launch->config.blockDim = F::THREADS;
  launch->config.dynamicSmemBytes = sizeof(block_memory<F>);
  launch->config.stream = stream;
  launch->config.attrs = launch->attributes;
  launch->config.numAttrs = 2;
  launch->attributes[0].id = cudaLaunchAttributeClusterDimension;
  launch->attributes[0].val.clusterDim = {2, 1, 1};
  launch->attributes[1].id = cudaLaunchAttributeCooperative;
  launch->attributes[1].val.cooperative = 1;
}

template <class F, class... Parameters> static int allow_shared_memory(void (*kernel)(Parameters...), rl_error *err) {
  return rl_cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(block_memory<F>)),
                       "raising the limit of shared memory", err);
}

/* Returns 0 if the current device has what the kernels need, or -1 and the reason. */
template <class F> static int check_features(rl_error *err) {
  cudaFuncAttributes code = {};
  int device = 0, has_clusters = 0, max_shared_bytes = 0;
  if (rl_cuda_check(cudaGetDevice(&device), "getting the device", err) < 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, device), "querying cluster launches", err) <
          0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&max_shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                    "querying shared memory", err) < 0 ||
      rl_cuda_check(cudaFuncGetAttributes(&code, persistent_epoch<F>), "reading the kernel's attributes", err) < 0)
    return -1;
  if (has_clusters && code.ptxVersion >= 90 && (size_t)max_shared_bytes >= sizeof(block_memory<F>)) return 0;
  return rl_fail_at(err, "/engine",
                    "engine persistent needs thread block clusters, compute capability 9.0 and code compiled for it; engine "
                    "fused runs without them");
}

/* Returns 0 if all blocks can be resident at once, which they must because they wait for each other; or -1 and the reason. */
template <class F> static int check_residency(rl_error *err) {
  int pairs = 0;
  launch_config launch;
  init_launch_config<F>(&launch, NULL);
  if (allow_shared_memory<F>(persistent_epoch<F>, err) < 0 ||
      rl_cuda_check(cudaOccupancyMaxActiveClusters(&pairs, persistent_epoch<F>, &launch.config), "querying resident clusters",
                    err) < 0)
    return -1;
  if (pairs >= BLOCK_PAIRS) return 0;
  return rl_fail_at(err, "/engine",
                    "engine persistent needs %d co-resident blocks, and this device can hold %d; engine fused needs none",
                    (int)BLOCKS, 2 * pairs);
}

/* Clears the exchange memory and launches a kernel. extra_args: the kernel's arguments after rl_persistent_args. */
template <class F, class... Parameters, class... ExtraArgs>
static int launch_kernel(void (*kernel)(Parameters...), const rl_persistent_args *args, cudaStream_t stream, rl_error *err,
                         ExtraArgs... extra_args) {
  launch_config launch;
  init_launch_config<F>(&launch, stream);
  if (allow_shared_memory<F>(kernel, err) < 0 ||
      rl_cuda_check(cudaMemsetAsync(args->block_exchange, 0, sizeof(rl_block_exchange), stream), "clearing the exchange", err) <
          0)
    return -1;
  return rl_cuda_check(cudaLaunchKernelEx(&launch.config, kernel, *args, extra_args...), "launching engine persistent", err);
}

/* Calls `function` with a value of the struct that implements tile.cuh in the format, and returns its result. */
template <class Function> static int call_for_format(rl_format format, Function function) {
  if (format.fp16) return function(half_tile_format());
  return format.tf32 ? function(tensor_float_tile_format()) : function(float_tile_format());
}

template <class F> static int check_support(F, rl_error *err) {
  return check_features<F>(err) < 0 ? -1 : check_residency<F>(err);
}

template <class F> static int launch_epoch(F, const rl_persistent_args *args, cudaStream_t stream, rl_error *err) {
  return launch_kernel<F>(persistent_epoch<F>, args, stream, err);
}

template <class F> static int launch_evaluation(F, const rl_persistent_args *args, const evaluation_results &results,
                                                cudaStream_t stream, rl_error *err) {
  return launch_kernel<F>(persistent_evaluate<F>, args, stream, err, results.losses, results.correct);
}

uint32_t rl_persistent_d_pooled1_parts(rl_format format) {
  return (uint32_t)call_for_format(format, [](auto tiles) { return decltype(tiles)::CONV1_IS_SPLIT ? 1 : 2; });
}

int rl_persistent_supported(rl_format format, rl_error *err) {
  return call_for_format(format, [&](auto tiles) { return check_support(tiles, err); });
}

int rl_persistent_epoch(rl_format format, const rl_persistent_args *args, cudaStream_t stream, rl_error *err) {
  return call_for_format(format, [&](auto tiles) { return launch_epoch(tiles, args, stream, err); });
}

int rl_persistent_evaluate(rl_format format, const rl_persistent_args *args, float *losses, uint8_t *correct, cudaStream_t stream,
                           rl_error *err) {
  return call_for_format(format, [&](auto tiles) { return launch_evaluation(tiles, args, {losses, correct}, stream, err); });
}
