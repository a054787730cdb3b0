/* The kernels of the engine "persistent": one launch runs all steps of an epoch, another launch evaluates the test images.
 * persistent.cuh defines pairs and groups of blocks, microbatches, the names of tensors and Format. The blocks run for the whole
 * launch, and each block keeps its weights and moments in shared memory. What a block loads from others as a whole is stored in
 * global memory in the layout of shared memory, so that one bulk copy loads it: the operands of fc1's weight gradient and, except
 * in FP32, the weights of conv2 and fc1. In a step, blocks exchange data
 *
 *   in a pair    in FP32 and TF32 pooled1, and in FP32 pooled1_gradient, by st.async, which completes its bytes on an mbarrier of
 *                the receiving block. In FP16, each block computes conv1 for all pixels; in FP16 and TF32, each block adds up the
 *                gradients of conv1 that follow from its own channels of conv2
 *   in a group   pooled2, the parts of fc1's product, fc1_product_gradient and pooled2_gradient, as tagged words (exchange.cuh)
 *   in the grid  through global memory: the gradients of conv1 and conv2.bias as fixed-point sums, the others as rows of partial
 *                sums, with grid barriers and votes. Between arrive (or vote) and wait, a block does other work:
 *
 *     barrier    after the barrier, every block can read            computed between arrive and wait
 *     forward    pooled2 and fc1_product_gradient, the operands     fc1's backward pass
 *                of fc1's weight gradient
 *     rows       rows of partial sums: conv2.weight and the head    conv1's backward pass
 *     votes      whether a gradient overflowed                      fc1's weight gradient, updates of conv2 and fc1
 *     weights    in FP16 and TF32: the next step's weights of       conv1 of the next step
 *                conv2 and fc1, which are stored before the votes are
 *                known, unless the step is skipped
 *     update     the next step's weights, except those of conv1     conv1 of the next step; in FP16 and TF32, where only the
 *                and the biases of conv2, which each block          head is loaded after it, also conv2, and in TF32 fc1
 *                computes itself
 *
 * A thread adds up gradients over the microbatches of a step in registers. All sums but the fixed-point sums, which do not depend
 * on it, have a fixed order.
 *
 * Lower bounds of the time of a step of 64 images on an H200: FP16 1.4 µs for all products on the tensor cores; FP32, at 128 FMA
 * per cycle and SM, 2.3 µs for conv2 (Winograd), up to 2.6 µs for its gradients and 1.7 µs for fc1. The rest of a step is the
 * latency of the exchanges (docs/performance.md). */
#include "cuda_check.h"
#include "train/cuda/persistent_backward.cuh"
#include "train/cuda/persistent_forward.cuh"
#include "train/cuda/persistent_update.cuh"
#include "train/cuda/tile_float.cuh"
#include "train/cuda/tile_half.cuh"
#include "train/cuda/tile_tensor_float.cuh"

/* Returns the microbatch that follows; after the last microbatch of the epoch, one whose step_images are 0. */
template <class Format>
static __device__ __forceinline__ microbatch_state next_microbatch(const rl_persistent_args &args, microbatch_state microbatch) {
  if (!Format::ONE_MICROBATCH && has_image({microbatch.step_images, microbatch.index + 1, 0, 0}, 0)) {
    microbatch.index++;
    return microbatch;
  }
  const uint32_t images_done = (microbatch.step + 1) * args.batch;
  return {images_done < args.count ? min(args.batch, args.count - images_done) : 0, 0, args.batch, microbatch.step + 1};
}

/* Computes the forward pass of a microbatch, from the image to the parts of fc1's product. */
template <class Format>
static __device__ __forceinline__ void forward_pass(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                    const block_coords &coords, block_memory<Format> &smem, bool *overflow) {
  const uint32_t step = microbatch.step;
  const bool pair_active = has_image(microbatch, coords.pair), group_active = has_image(microbatch, coords.group_first_pair),
             is_first_microbatch = microbatch.index == 0;
  if (!is_first_microbatch) {
    cp_async_wait_all();
    __syncthreads();
    normalise_image(coords, smem);
    __syncthreads();
  }
  if (Format::CONV1_IS_SPLIT && pair_active && is_leader())
    mbarrier_arrive_expect_tx(&smem.pooled1_mbarrier, BLOCK_PIXELS * RL_CONV1_CHANNELS * sizeof(typename Format::value));
  if (pair_active && is_conv1_forward_warp<Format>()) conv1_forward(coords, smem);
  record_timestamp<Format>(args, step, RL_TIMED_conv1_forward);
  wait_and_load_conv2(args, microbatch, coords, smem);
  typename Format::loaded_weights loaded;
  if constexpr (step_schedule<Format>::TRANSFORMS_WEIGHTS)
    loaded = Format::load_weights(conv2_weights_of_block<Format>(args, coords));
  if (Format::CONV1_IS_SPLIT && pair_active)
    mbarrier_wait(&smem.pooled1_mbarrier, message_phase<Format>(microbatch, coords.pair));
  __syncthreads();
  if (!Format::CONV2_LOADS_INPUT_FIRST) record_timestamp<Format>(args, step, RL_TIMED_conv2_weights);
  else if (!pair_active) wait_for_conv2(args, microbatch, smem);
  if (pair_active) {
    conv2_forward(args, microbatch, coords, loaded, smem, overflow);
    record_timestamp<Format>(args, step, RL_TIMED_conv2_forward);
  }
  if (group_active && !pair_active && step_schedule<Format>::TRANSFORMS_WEIGHTS)
    load_fc1_and_head_async<Format, 0>(args, microbatch, coords, smem);
  /* After fc1 in TF32, which would otherwise wait for the leader; before it in FP16, which was faster. */
  const bool copies_head =
      step_schedule<Format>::HAS_BULK_WEIGHTS && is_first_microbatch && pair_active && coords.rank == 0 && is_leader();
  if (copies_head && !Format::FC1_LOADS_WEIGHTS_FIRST) begin_head_copy(args, microbatch, smem);
  if (group_active) fc1_forward(args, microbatch, coords, smem);
  if (copies_head && Format::FC1_LOADS_WEIGHTS_FIRST) begin_head_copy(args, microbatch, smem);
  record_timestamp<Format>(args, step, RL_TIMED_fc1_forward);
}

/* Computes the forward and the backward pass of a microbatch. */
template <class Format>
static __device__ __forceinline__ void run_microbatch(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                      const block_coords &coords, prefetch_state *prefetch,
                                                      block_memory<Format> &smem, gradient_sums<Format> &sums) {
  rl_block_exchange *exchange = args.block_exchange;
  const uint32_t step = microbatch.step;
  const microbatch_state next = next_microbatch<Format>(args, microbatch);
  const bool pair_active = has_image(microbatch, coords.pair), group_active = has_image(microbatch, coords.group_first_pair),
             is_last_microbatch = next.step != step;
  forward_pass(args, microbatch, coords, smem, &sums.overflow);
  if (pair_active && coords.rank == 0) train_head(args, microbatch, coords, prefetch->label, smem, sums);
  record_timestamp<Format>(args, step, RL_TIMED_head);
  /* Arrive here: the release of grid_barrier_arrive waits until the block's stores have drained. At this point most of them have;
   * later it would also wait for the tagged words that fc1_backward sends. */
  if (is_last_microbatch) grid_barrier_arrive(exchange->forward);
  if (is_last_microbatch && coords.rank == 0 && has_image({microbatch.step_images, 0, 0, 0}, coords.pair))
    store_head_row(args, coords, sums);
  if (Format::RECORDS && pair_active) store_activations_for_tests(args, microbatch, coords, smem);
  prefetch_next_image(args, next_microbatch<Format>(args, next), coords, prefetch, smem);
  if constexpr (Format::CONV2_GRADIENTS_TOGETHER)
    if (pair_active) load_conv2_async<Format>(args, coords, smem.conv2_gradients.weights);
  if (group_active) fc1_backward(args, microbatch, coords, smem);
  record_timestamp<Format>(args, step, RL_TIMED_fc1_backward);
  __syncthreads();
  /* conv2_backward begins with unpool2, in which the leader's warp has no work. */
  if (is_last_microbatch && is_leader()) grid_barrier_wait_in_one_thread(exchange->forward, step + 1);
  record_timestamp<Format>(args, step, RL_TIMED_forward_barrier);
  if (pair_active) conv2_backward(args, microbatch, coords, is_last_microbatch || !has_image(next, coords.pair), smem, sums);
  /* RAW: after __syncthreads, the leader may begin to copy what other blocks wrote before the grid barrier `forward`, and all
   * threads may read pooled1_gradient. The leader arrives at the grid barrier `rows` while other warps compute conv1_backward,
   * because its release waits until the block's stores have drained. */
  __syncthreads();
  if (is_last_microbatch) {
    if (is_leader()) {
      begin_operand_copies(args, 0, microbatch.step_images, smem);
      grid_barrier_arrive_in_one_thread(exchange->rows);
    }
    fill_missing_operands(0, microbatch.step_images, smem);
  }
  if constexpr (Format::RECORDS && !Format::CONV1_GRADIENT_IS_SPLIT)
    if (pair_active) store_pooled1_gradient_for_tests(args, microbatch, coords, smem);
  if (pair_active && is_conv1_backward_warp<Format>()) conv1_backward(args, microbatch, coords, smem, sums);
  record_timestamp<Format>(args, step, RL_TIMED_conv1_backward);
  /* WAR: the next microbatch overwrites pooled1_gradient and pooled1 in both blocks. */
  if (pair_active && !is_last_microbatch) cluster_barrier();
  advance(prefetch);
}

/* Ends a step after its last microbatch: adds up the gradients over the grid and updates the parameters. */
template <class Format> static __device__ __forceinline__ void finish_step(const rl_persistent_args &args,
                                                                           const microbatch_state &microbatch,
                                                                           const block_coords &coords, block_memory<Format> &smem,
                                                                           gradient_sums<Format> &sums) {
  rl_block_exchange *exchange = args.block_exchange;
  const uint32_t step = microbatch.step, phase = step + 1;
  const bool pair_active = has_image({microbatch.step_images, 0, 0, 0}, coords.pair);
  if (pair_active) add_block_sums(args, microbatch, coords, smem, sums);
  clear_next_grid_sums(args, step);
  if (sums.overflow) smem.overflow_phase = phase;
  record_timestamp<Format>(args, step, RL_TIMED_store_sums);
  cp_async_wait_all(); /* the next image */
  mbarrier_wait_cta(&smem.operands_mbarrier, operands_phase(args, step, 0));
  __syncthreads();
  if (is_leader()) vote(&exchange->votes, smem.overflow_phase == phase);
  if (is_poller<Format>()) {
    grid_barrier_wait_in_one_thread(exchange->rows, phase);
    mbarrier_arrive(&smem.rows_mbarrier);
  }
  prepared_update<Format> update = prepare_update(args, microbatch, coords, smem);
  /* The poller's release waits until the block's stores have drained, so its warp has no part in the following updates. */
  if (coords.warp == FIRST_POLLING_THREAD / 32) {
    if (step_schedule<Format>::HAS_BULK_WEIGHTS && is_poller<Format>()) grid_barrier_arrive_in_one_thread(exchange->weights);
  } else {
    const float grid_sum = finish_poll(args, microbatch, update.words, smem);
    record_timestamp<Format>(args, step, RL_TIMED_votes);
    if (threadIdx.x == 0) smem.state.overflow = smem.skip_step;
    finish_update(args, microbatch, coords, grid_sum, update, smem);
  }
  record_timestamp<Format>(args, step, RL_TIMED_adam);
  record_timestamp<Format>(args, step + 1, STEP_BEGIN);
  grid_barrier_arrive(exchange->update);
  if (is_leader()) advance_train_state(&smem.state, args.adam.learning_rate, microbatch.step_images);
}

/* Initialises the mbarriers and the state of overflows. Call it before the first cluster_barrier, after which the peer may use
 * them. */
template <class Format> static __device__ __forceinline__ void init_step_state(block_memory<Format> &smem) {
  if (threadIdx.x != 0) return;
  mbarrier_init(&smem.pooled1_mbarrier);
  mbarrier_init(&smem.gradients_mbarrier);
  mbarrier_init(&smem.operands_mbarrier);
  mbarrier_init(&smem.votes_mbarrier);
  mbarrier_init(&smem.rows_mbarrier);
  mbarrier_init(&smem.conv2_mbarrier);
  mbarrier_init(&smem.fc1_mbarrier);
  mbarrier_init(&smem.head_mbarrier);
  smem.overflow_phase = smem.overflow_votes = 0;
  smem.skip_step = true; /* the weights of the first step are complete after the grid barrier `update` */
}

/* Loads and normalises the pair's first image, and loads the data set index of its second image. */
template <class Format> static __device__ __forceinline__ prefetch_state load_first_image(const rl_persistent_args &args,
                                                                                          const microbatch_state &microbatch,
                                                                                          const block_coords &coords,
                                                                                          block_memory<Format> &smem) {
  const uint32_t image = dataset_index(args, microbatch, coords.pair);
  load_image_async(args, image, smem);
  cp_async_wait_all();
  __syncthreads();
  normalise_image(coords, smem);
  return {args.labels[image], 0, dataset_index(args, next_microbatch<Format>(args, microbatch), coords.pair), 0};
}

/* Begins a launch: loads the parameters and the first image, and makes the weights, rounded to Format::value, available to the
 * other blocks, which wait for the grid barrier `update`. */
template <class Format>
static __device__ __forceinline__ prefetch_state begin_launch(const rl_persistent_args &args, const microbatch_state &microbatch,
                                                              const block_coords &coords, block_memory<Format> &smem) {
  rl_block_exchange *exchange = args.block_exchange;
  load_parameters(args, coords, smem);
  if constexpr (!Format::CONV1_GRADIENT_IS_SPLIT) clear_conv1_memory(smem);
  grid_barrier_arrive(exchange->loaded);
  const prefetch_state prefetch = load_first_image(args, microbatch, coords, smem);
  init_step_state(smem);
  grid_barrier_wait(exchange->loaded, 1);
  publish_parameters(args, coords, smem);
  grid_barrier_arrive(exchange->update);
  cluster_barrier();
  return prefetch;
}

/* Trains one epoch. */
template <class Format> static __global__ void __launch_bounds__(Format::THREADS, 1) persistent_epoch(rl_persistent_args args) {
  extern __shared__ __align__(BULK_ALIGNMENT) unsigned char shared[];
  block_memory<Format> &smem = *(block_memory<Format> *)shared;
  rl_block_exchange *exchange = args.block_exchange;
  const block_coords coords = own_coords();
  microbatch_state microbatch = {min(args.batch, args.count), 0, args.batch, 0};
  record_launch_timestamp<Format>(args, false);
  if (threadIdx.x == 0) smem.state = *args.adam.state;
  prefetch_state prefetch = begin_launch(args, microbatch, coords, smem);
  record_timestamp<Format>(args, 0, STEP_BEGIN);
  gradient_sums<Format> sums;
  while (microbatch.step_images > 0) {
    if (microbatch.index == 0) {
      sums = {};
      sums.conv2 = Format::init_weight_sums(conv2_weight_partial_row<Format>(args, coords));
    }
    run_microbatch(args, microbatch, coords, &prefetch, smem, sums);
    if (next_microbatch<Format>(args, microbatch).index == 0) finish_step(args, microbatch, coords, smem, sums);
    microbatch = next_microbatch<Format>(args, microbatch);
  }
  grid_barrier_wait(exchange->update, microbatch.step + 1);
  store_parameters(args, coords, smem);
  if (blockIdx.x == 0 && is_leader()) *args.adam.state = smem.state;
  cluster_barrier();
  record_launch_timestamp<Format>(args, true);
}

/* Evaluates all test images as one step. losses, correct: [images]. */
template <class Format> static __global__ void __launch_bounds__(Format::THREADS, 1)
    persistent_evaluate(rl_persistent_args args, float *losses, uint8_t *correct) {
  extern __shared__ __align__(BULK_ALIGNMENT) unsigned char shared[];
  block_memory<Format> &smem = *(block_memory<Format> *)shared;
  rl_block_exchange *exchange = args.block_exchange;
  const block_coords coords = own_coords();
  bool overflow = false;
  microbatch_state microbatch = {args.count, 0, args.batch, 0};
  prefetch_state prefetch = begin_launch(args, microbatch, coords, smem);
  while (microbatch.step_images > 0) {
    const microbatch_state next = next_microbatch<Format>(args, microbatch);
    forward_pass(args, microbatch, coords, smem, &overflow);
    if (has_image(microbatch, coords.pair) && coords.rank == 0)
      evaluate_head(args, microbatch, coords, prefetch.label, smem, {losses, correct});
    /* WAR: the next microbatch overwrites the pair's pooled1, pooled2 and parts of fc1's product. At this point they have been
     * read: rank 0 has received all parts, and the blocks of the group send these parts only after they have read pooled2. */
    cluster_barrier();
    prefetch_next_image(args, next_microbatch<Format>(args, next), coords, &prefetch, smem);
    advance(&prefetch);
    microbatch = next;
  }
  grid_barrier_arrive(exchange->update);
  grid_barrier_wait(exchange->update, 2);
  store_parameters(args, coords, smem);
  if (blockIdx.x == 0 && threadIdx.x == 0) args.adam.state->test_step++;
  cluster_barrier();
}

size_t rl_persistent_exchange_bytes(void) { return sizeof(rl_block_exchange); }
uint32_t rl_persistent_partial_rows(uint32_t batch) { return partial_rows(batch); }

typedef struct launch_config {
  cudaLaunchConfig_t config;
  cudaLaunchAttribute attributes[2];
} launch_config;

/* Sets the size of the launch, clusters of two blocks, and the attribute for a cooperative launch, which guarantees that all
 * blocks are resident: they wait for each other. */
template <class Format> static void init_launch_config(launch_config *launch, cudaStream_t stream) {
  *launch = {};
  launch->config.gridDim = BLOCKS;
  launch->config.blockDim = Format::THREADS;
  launch->config.dynamicSmemBytes = sizeof(block_memory<Format>);
  launch->config.stream = stream;
  launch->config.attrs = launch->attributes;
  launch->config.numAttrs = 2;
  launch->attributes[0].id = cudaLaunchAttributeClusterDimension;
  launch->attributes[0].val.clusterDim = {2, 1, 1};
  launch->attributes[1].id = cudaLaunchAttributeCooperative;
  launch->attributes[1].val.cooperative = 1;
}

template <class Format, class... Parameters> static int allow_shared_memory(void (*kernel)(Parameters...), rl_error *err) {
  return rl_cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(block_memory<Format>)),
                       "raising the limit of shared memory", err);
}

/* Returns 0 if the current device has the features that the kernels need, or -1 with the reason in err. */
template <class Format> static int check_features(rl_error *err) {
  cudaFuncAttributes function_attributes = {};
  int device = 0, has_clusters = 0, max_shared_bytes = 0;
  if (rl_cuda_check(cudaGetDevice(&device), "getting the device", err) < 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, device), "querying cluster launches", err) <
          0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&max_shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                    "querying shared memory", err) < 0 ||
      rl_cuda_check(cudaFuncGetAttributes(&function_attributes, persistent_epoch<Format>), "reading the kernel's attributes",
                    err) < 0)
    return -1;
  if (has_clusters && function_attributes.ptxVersion >= 90 && (size_t)max_shared_bytes >= sizeof(block_memory<Format>)) return 0;
  return rl_fail_at(err, "/engine",
                    "engine persistent needs thread block clusters, compute capability 9.0 and code compiled for it; engine "
                    "fused runs without them");
}

/* Returns 0 if all blocks can be resident at the same time, which they must, because they wait for each other; or -1 with the
 * reason in err. */
template <class Format> static int check_residency(rl_error *err) {
  int pairs = 0;
  launch_config launch;
  init_launch_config<Format>(&launch, NULL);
  if (allow_shared_memory<Format>(persistent_epoch<Format>, err) < 0 ||
      rl_cuda_check(cudaOccupancyMaxActiveClusters(&pairs, persistent_epoch<Format>, &launch.config),
                    "querying resident clusters", err) < 0)
    return -1;
  if (pairs >= BLOCK_PAIRS) return 0;
  return rl_fail_at(err, "/engine",
                    "engine persistent needs %d co-resident blocks, and this device can hold %d; engine fused needs none",
                    (int)BLOCKS, 2 * pairs);
}

/* Clears args->block_exchange and launches a kernel. extra_args: the kernel's arguments after rl_persistent_args. */
template <class Format, class... Parameters, class... ExtraArgs>
static int launch_kernel(void (*kernel)(Parameters...), const rl_persistent_args *args, cudaStream_t stream, rl_error *err,
                         ExtraArgs... extra_args) {
  launch_config launch;
  init_launch_config<Format>(&launch, stream);
  if (allow_shared_memory<Format>(kernel, err) < 0 ||
      rl_cuda_check(cudaMemsetAsync(args->block_exchange, 0, sizeof(rl_block_exchange), stream), "clearing the exchange", err) <
          0)
    return -1;
  return rl_cuda_check(cudaLaunchKernelEx(&launch.config, kernel, *args, extra_args...), "launching engine persistent", err);
}

/* Calls `function` with a value of the tile format (tile.cuh) for `format`, and returns its result. */
template <class Function> static int call_for_format(rl_format format, Function function) {
  if (format.fp16) return function(half_tile_format());
  return format.tf32 ? function(tensor_float_tile_format()) : function(float_tile_format());
}

template <class Format> static int check_support(Format, rl_error *err) {
  return check_features<Format>(err) < 0 ? -1 : check_residency<Format>(err);
}

/* Launches the version of the epoch's kernel that is the fastest for the size of the steps. */
template <class Format> static int launch_version(const rl_persistent_args *args, cudaStream_t stream, rl_error *err) {
  if (args->batch <= BLOCK_PAIRS)
    return launch_kernel<one_microbatch<Format>>(persistent_epoch<one_microbatch<Format>>, args, stream, err);
  return launch_kernel<Format>(persistent_epoch<Format>, args, stream, err);
}

template <class Format> static int launch_epoch(Format, const rl_persistent_args *args, cudaStream_t stream, rl_error *err) {
  if (args->timestamps || args->pooled1) return launch_version<recording<Format>>(args, stream, err);
  return launch_version<Format>(args, stream, err);
}

template <class Format> static int launch_evaluation(Format, const rl_persistent_args *args, const evaluation_results &results,
                                                     cudaStream_t stream, rl_error *err) {
  return launch_kernel<Format>(persistent_evaluate<Format>, args, stream, err, results.losses, results.correct);
}

uint32_t rl_persistent_pooled1_gradient_parts(rl_format format) {
  return (uint32_t)call_for_format(format, [](auto tiles) { return decltype(tiles)::CONV1_GRADIENT_IS_SPLIT ? 1 : 2; });
}

rl_persistent_row_format rl_persistent_conv2_row_format(rl_format format) {
  rl_persistent_row_format rows = {};
  call_for_format(format, [&](auto tiles) {
    typedef decltype(tiles) tile_format;
    rows = {sizeof(typename tile_format::row_value) == sizeof(__half), tile_format::ROW_SCALE};
    return 0;
  });
  return rows;
}

size_t rl_persistent_fc1_operands_bytes(rl_format format, uint32_t batch) {
  return (batch + TILE_BATCH - 1) / TILE_BATCH * (size_t)call_for_format(format, [](auto tiles) {
           typedef decltype(tiles) tile_format;
           return (int)(fc1_operands<tile_format>::BATCH_VALUES * sizeof(typename tile_format::value));
         });
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
