/* See emulator.h: launches, the lifetime of clusters, blocks and threads, and the scheduler. */
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

static uint64_t initial_random_state() {
  const char *given = getenv("RL_SIMT_SEED");
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 20;
  fprintf(stderr, "simt: RL_SIMT_SEED=%llu\n", (unsigned long long)seed);
  return seed * 0x9e3779b97f4a7c15u | 1;
}

/* xorshift64* (Vigna 2016). */
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
  if (const thread_state *t = emulator.running) {
    const block_state *b = t->warp->block;
    fprintf(stderr, ", in thread (%u, %u, %u) of block (%u, %u, %u)", t->index.x, t->index.y, t->index.z, b->index.x, b->index.y,
            b->index.z);
  }
  fprintf(stderr, "\n");
  abort();
}

thread_state &running_thread() {
  if (!emulator.running) die("device code outside of a kernel");
  return *emulator.running;
}

uint32_t lane() { return running_thread().lane; }

/* --- the lifetime of blocks -------------------------------------------------------------------------------------------- */

static void exit_block(block_state &b) {
  if (!b.pending_stores.empty()) die("a block exits while st.async stores to it are pending");
  poison_shared_memory(b);
  b.cluster->live_blocks--;
}

void exit_thread() {
  thread_state &t = running_thread();
  warp_state &w = *t.warp;
  cp_async_wait_all();
  w.live_lanes &= ~(1u << t.lane);
  w.ready_lanes &= ~(1u << t.lane);
  t.waits_for = "(exited)";
  emulator.yields_since_progress = 0;
  if (w.lanes_at_sync & w.live_lanes) try_sync_lanes(w, w.sync_mask[__builtin_ctz(w.lanes_at_sync & w.live_lanes)]);
  if (--w.block->live_threads == 0) exit_block(*w.block);
}

static uint3 index_3d(uint32_t i, dim3 extent) { return {i % extent.x, i / extent.x % extent.y, i / extent.x / extent.y}; }
static uint32_t volume(dim3 extent) { return extent.x * extent.y * extent.z; }

static void start_block(cluster_state &c, uint32_t rank, uint3 index) {
  c.blocks.push_back(std::make_unique<block_state>());
  block_state &b = *c.blocks.back();
  const uint32_t threads = volume(emulator.config->block);
  b.cluster = &c;
  b.rank = rank;
  b.index = index;
  b.live_threads = threads;
  allocate_shared_memory(b);
  b.threads = std::vector<thread_state>(threads);
  b.warps = std::vector<warp_state>((threads + WARP - 1) / WARP);
  for (uint32_t i = 0; i < threads; i++) {
    thread_state &t = b.threads[i];
    t.warp = &b.warps[i / WARP];
    t.warp->block = &b;
    t.warp->lanes[i % WARP] = &t;
    t.warp->live_lanes |= 1u << i % WARP;
    t.lane = i % WARP;
    t.index = index_3d(i, emulator.config->block);
    create_fiber(t);
    make_ready(t);
  }
}

/* A cluster is cluster.x neighbouring blocks along x. */
static void start_cluster(uint32_t index) {
  emulator.resident.push_back(std::make_unique<cluster_state>());
  cluster_state &c = *emulator.resident.back();
  const uint32_t blocks = emulator.config->cluster.x;
  c.live_blocks = blocks;
  c.threads = blocks * volume(emulator.config->block);
  for (uint32_t rank = 0; rank < blocks; rank++) start_block(c, rank, index_3d(index * blocks + rank, emulator.config->grid));
}

static void free_finished_clusters() {
  for (size_t i = 0; i < emulator.resident.size(); i++)
    if (emulator.resident[i]->live_blocks == 0) {
      for (auto &b : emulator.resident[i]->blocks) {
        free_shared_memory(*b);
        for (thread_state &t : b->threads) destroy_fiber(t);
      }
      emulator.resident[i--].swap(emulator.resident.back());
      emulator.resident.pop_back();
    }
}

/* --- the scheduler ----------------------------------------------------------------------------------------------------- */

/* Prints what each thread waits for; neighbouring lanes that wait for the same thing are printed on one line. */
[[noreturn]] static void report_deadlock(const char *message) {
  fprintf(stderr, "simt: %s\n", message);
  for (auto &c : emulator.resident)
    for (auto &b : c->blocks)
      for (warp_state &w : b->warps)
        for (uint32_t i = 0, first = 0; i < WARP; i++) {
          const char *here = w.lanes[i] ? w.lanes[i]->waits_for : NULL,
                     *next = i + 1 < WARP && w.lanes[i + 1] ? w.lanes[i + 1]->waits_for : NULL;
          if (i + 1 < WARP && here == next) continue;
          if (w.lanes[first])
            fprintf(stderr, "  block (%u, %u, %u), warp %zu, lanes %u to %u: %s\n", b->index.x, b->index.y, b->index.z,
                    (size_t)(&w - &b->warps[0]), first, i, here ? here : "(running)");
          first = i + 1;
        }
  abort();
}

/* Resumes every ready lane up to `rounds` times, in a new random order each time, until a lane yields. */
static void run_warp(warp_state &w, uint32_t rounds) {
  emulator.has_yielded = false;
  while (w.ready_lanes && rounds-- && !emulator.has_yielded) {
    const uint32_t ready = w.ready_lanes, first = random_below(WARP), stride = random_below(WARP) | 1;
    for (uint32_t i = 0; i < WARP; i++) {
      const uint32_t lane = (first + i * stride) % WARP;
      if (ready >> lane & 1) resume(*w.lanes[lane]);
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

static void run_random_warp() {
  static const uint32_t rounds[] = {1, 8, UINT32_MAX, UINT32_MAX};
  const size_t index = random_below((uint32_t)emulator.ready_warps.size());
  warp_state &w = *emulator.ready_warps[index];
  run_warp(w, rounds[random_below(4)]);
  if (w.ready_lanes) return;
  w.queued = false;
  emulator.ready_warps[index] = emulator.ready_warps.back();
  emulator.ready_warps.pop_back();
}

static void run_grid(uint32_t clusters) {
  enum { MAX_RESIDENT = 6, YIELDS_BEFORE_NEXT_CLUSTER = 1 << 16, LIVELOCK_YIELDS = 1 << 23 };
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
