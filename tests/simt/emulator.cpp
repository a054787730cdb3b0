/* Implements emulator.h: launches, the lifetime of clusters, blocks and threads, and the scheduler. */
#include "emulator_internal.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>

dim3 blockDim, gridDim;

namespace simt {

struct emulator_state emulator;

/* --- random numbers ---------------------------------------------------------------------------------------------------- */

/* Returns the state from RL_SIMT_SEED or, without it, from the time, and prints the seed. */
static uint64_t initial_random_state() {
  const char *seed_text = getenv("RL_SIMT_SEED");
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 20;
  fprintf(stderr, "simt: RL_SIMT_SEED=%llu\n", (unsigned long long)seed);
  return seed * 0x9e3779b97f4a7c15u | 1;
}

/* The generator is xorshift64* (Vigna 2016). */
uint32_t random_below(uint32_t limit) {
  static uint64_t state = initial_random_state();
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (uint32_t)(((state * 0x2545f4914f6cdd1du >> 32) * limit) >> 32);
}

/* --- the running thread ------------------------------------------------------------------------------------------------ */

void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "simt: ");
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  if (const thread_state *thread = emulator.running) {
    const block_state *block = thread->warp->block;
    fprintf(stderr, ", in thread (%u, %u, %u) of block (%u, %u, %u)", thread->index.x, thread->index.y, thread->index.z,
            block->index.x, block->index.y, block->index.z);
  }
  fprintf(stderr, "\n");
  abort();
}

thread_state &running_thread() {
  if (!emulator.running) die("device code outside of a kernel");
  return *emulator.running;
}

uint32_t lane() { return running_thread().lane; }
uint32_t warp() { return (uint32_t)(running_thread().warp - running_thread().warp->block->warps.data()); }

/* --- the lifetime of blocks -------------------------------------------------------------------------------------------- */

static void exit_block(block_state &block) {
  if (!block.pending_stores.empty()) die("a block exits while st.async stores to it are pending");
  poison_shared_memory(block);
  block.cluster->live_blocks--;
}

void exit_thread() {
  thread_state &thread = running_thread();
  warp_state &warp = *thread.warp;
  cp_async_wait_all();
  warp.live_lanes &= ~(1u << thread.lane);
  warp.ready_lanes &= ~(1u << thread.lane);
  thread.waits_for = "(exited)";
  emulator.yields_since_progress = 0;
  if (warp.lanes_at_sync & warp.live_lanes)
    try_sync_lanes(warp, warp.sync_mask[__builtin_ctz(warp.lanes_at_sync & warp.live_lanes)]);
  if (--warp.block->live_threads == 0) exit_block(*warp.block);
}

static uint3 index_3d(uint32_t i, dim3 extent) { return {i % extent.x, i / extent.x % extent.y, i / extent.x / extent.y}; }
static uint32_t volume(dim3 extent) { return extent.x * extent.y * extent.z; }

static void start_block(cluster_state &cluster, uint32_t rank, uint3 index) {
  cluster.blocks.push_back(std::make_unique<block_state>());
  block_state &block = *cluster.blocks.back();
  const uint32_t threads = volume(emulator.config->block);
  block.cluster = &cluster;
  block.rank = rank;
  block.index = index;
  block.live_threads = threads;
  allocate_shared_memory(block);
  block.threads = std::vector<thread_state>(threads);
  block.warps = std::vector<warp_state>((threads + WARP - 1) / WARP);
  for (uint32_t i = 0; i < threads; i++) {
    thread_state &thread = block.threads[i];
    thread.warp = &block.warps[i / WARP];
    thread.warp->block = &block;
    thread.warp->lanes[i % WARP] = &thread;
    thread.warp->live_lanes |= 1u << i % WARP;
    thread.lane = i % WARP;
    thread.index = index_3d(i, emulator.config->block);
    create_fiber(thread);
    make_ready(thread);
  }
}

/* Starts the blocks of cluster number `index`: config->cluster.x neighbouring blocks along x. */
static void start_cluster(uint32_t index) {
  emulator.resident.push_back(std::make_unique<cluster_state>());
  cluster_state &cluster = *emulator.resident.back();
  const uint32_t blocks = emulator.config->cluster.x;
  cluster.live_blocks = blocks;
  cluster.threads = blocks * volume(emulator.config->block);
  for (uint32_t rank = 0; rank < blocks; rank++)
    start_block(cluster, rank, index_3d(index * blocks + rank, emulator.config->grid));
}

static void free_finished_clusters() {
  for (size_t i = 0; i < emulator.resident.size(); i++)
    if (emulator.resident[i]->live_blocks == 0) {
      for (auto &block : emulator.resident[i]->blocks) {
        free_shared_memory(*block);
        for (thread_state &thread : block->threads) destroy_fiber(thread);
      }
      emulator.resident[i--].swap(emulator.resident.back());
      emulator.resident.pop_back();
    }
}

/* --- the scheduler ----------------------------------------------------------------------------------------------------- */

/* Prints what each thread waits for; neighbouring lanes that wait for the same thing are printed on one line. */
[[noreturn]] static void report_deadlock(const char *message) {
  fprintf(stderr, "simt: %s\n", message);
  for (auto &cluster : emulator.resident)
    for (auto &block : cluster->blocks)
      for (warp_state &warp : block->warps)
        for (uint32_t i = 0, first = 0; i < WARP; i++) {
          const char *here = warp.lanes[i] ? warp.lanes[i]->waits_for : NULL,
                     *next = i + 1 < WARP && warp.lanes[i + 1] ? warp.lanes[i + 1]->waits_for : NULL;
          if (i + 1 < WARP && here == next) continue;
          if (warp.lanes[first])
            fprintf(stderr, "  block (%u, %u, %u), warp %zu, lanes %u to %u: %s\n", block->index.x, block->index.y,
                    block->index.z, (size_t)(&warp - &block->warps[0]), first, i, here ? here : "(running)");
          first = i + 1;
        }
  abort();
}

/* Most stacks are in no cache when their thread resumes. */
static void prefetch_stack(const thread_state &thread) {
  enum { CACHE_LINE = 64 };
  for (int line = 0; line < 3; line++) __builtin_prefetch((const char *)thread.stack_pointer + line * CACHE_LINE);
}

/* Resumes every ready lane of a warp up to `rounds` times, in a new random order each time, until a lane yields. */
static void run_warp(warp_state &warp, uint32_t rounds) {
  emulator.has_yielded = false;
  while (warp.ready_lanes && rounds-- && !emulator.has_yielded) {
    const uint32_t ready = warp.ready_lanes, first = random_below(WARP), stride = random_below(WARP) | 1;
    for (uint32_t i = 0; i < WARP; i++) {
      const uint32_t lane = (first + i * stride) % WARP, later = (lane + 2 * stride) % WARP;
      if (ready >> later & 1) prefetch_stack(*warp.lanes[later]);
      if (ready >> lane & 1) resume(*warp.lanes[lane]);
    }
  }
}

static std::vector<uint32_t> random_order(uint32_t count) {
  std::vector<uint32_t> order(count);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t other = random_below(i + 1);
    order[i] = order[other];
    order[other] = i;
  }
  return order;
}

/* Runs a random ready warp for a random number of rounds. */
static void run_random_warp() {
  static const uint32_t rounds[] = {1, 8, UINT32_MAX, UINT32_MAX};
  const size_t index = random_below((uint32_t)emulator.ready_warps.size());
  warp_state &warp = *emulator.ready_warps[index];
  run_warp(warp, rounds[random_below(4)]);
  if (warp.ready_lanes) return;
  warp.queued = false;
  emulator.ready_warps[index] = emulator.ready_warps.back();
  emulator.ready_warps.pop_back();
}

/* Lets the time limit of all waits for mbarriers pass. */
static void end_waits_for_mbarriers() {
  for (auto &cluster : emulator.resident)
    for (auto &block : cluster->blocks) wake_mbarrier_waiters(*block);
}

/* Starts the clusters in random order, a random number of them resident at a time, and runs warps until all have finished. */
static void run_grid(uint32_t clusters) {
  enum { MAX_RESIDENT = 6, YIELDS_BEFORE_NEXT_CLUSTER = 1 << 16, LIVELOCK_YIELDS = 1 << 23, RUNS_PER_TIME_LIMIT = 1 << 14 };
  std::vector<uint32_t> not_started = random_order(clusters);
  size_t resident_limit = emulator.config->cooperative ? clusters : 1 + random_below(MAX_RESIDENT);
  while (!not_started.empty() || !emulator.resident.empty()) {
    /* The resident threads may be spinning until other blocks have started. */
    if (emulator.yields_since_progress > YIELDS_BEFORE_NEXT_CLUSTER && !not_started.empty())
      resident_limit++, emulator.yields_since_progress = 0;
    while (!not_started.empty() && emulator.resident.size() < resident_limit) {
      start_cluster(not_started.back());
      not_started.pop_back();
    }
    if (emulator.ready_warps.empty() || random_below(RUNS_PER_TIME_LIMIT) == 0) end_waits_for_mbarriers();
    if (emulator.ready_warps.empty()) report_deadlock("deadlock");
    if (emulator.yields_since_progress > LIVELOCK_YIELDS) report_deadlock("livelock");
    run_random_warp();
    free_finished_clusters();
  }
}

/* --- launches ---------------------------------------------------------------------------------------------------------- */

kernel_attributes &attributes_of(const void *kernel) {
  static std::map<const void *, kernel_attributes> attributes;
  return attributes[kernel];
}

cudaError_t launch(const launch_config &config, const void *kernel, const std::function<void()> &body) {
  if (emulator.running) die("a launch from a kernel");
  if (volume(config.grid) == 0 || volume(config.block) == 0 || volume(config.block) > MAX_THREADS || config.cluster.y != 1 ||
      config.cluster.z != 1 || config.grid.x % config.cluster.x)
    return cudaErrorInvalidConfiguration;
  if (config.cluster.x > attributes_of(kernel).max_cluster) return cudaErrorInvalidClusterSize;
  if (config.dynamic_bytes > attributes_of(kernel).max_dynamic_bytes) return cudaErrorInvalidValue;
  emulator.config = &config;
  emulator.body = &body;
  reset_shared_layout(config.dynamic_bytes);
  emulator.yields_since_progress = 0;
  blockDim = config.block;
  gridDim = config.grid;
  run_grid(volume(config.grid) / config.cluster.x);
  return cudaSuccess;
}

}  // namespace simt
