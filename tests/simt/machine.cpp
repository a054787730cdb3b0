/* See machine.h: launches, the life of clusters, blocks and threads, and whose turn it is. */
#include "machine_parts.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>

dim3 blockDim, gridDim;

namespace simt {

struct machine machine;

/* --- chance ------------------------------------------------------------------------------------------------------------ */

static uint64_t first_random() {
  const char *given = getenv("RL_SIMT_SEED");
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 20;
  fprintf(stderr, "simt: RL_SIMT_SEED=%llu\n", (unsigned long long)seed);
  return seed * 0x9e3779b97f4a7c15u | 1;
}

/* xorshift64* (Vigna 2016); below `most`. */
uint32_t draw(uint32_t most) {
  static uint64_t state = first_random();
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (uint32_t)(((state * 0x2545f4914f6cdd1du >> 32) * most) >> 32);
}

/* --- who runs ---------------------------------------------------------------------------------------------------------- */

void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "simt: ");
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  if (const thread *t = machine.running) {
    const block *b = t->of->of;
    fprintf(stderr, ", in thread (%u, %u, %u) of block (%u, %u, %u)", t->index.x, t->index.y, t->index.z, b->index.x, b->index.y,
            b->index.z);
  }
  fprintf(stderr, "\n");
  abort();
}

thread &self() {
  if (!machine.running) die("device code outside of a kernel");
  return *machine.running;
}

uint32_t lane() { return self().lane; }

/* --- the life of a block ----------------------------------------------------------------------------------------------- */

static void end_block(block &b) {
  cluster &c = *b.of;
  if (!b.parcels.empty()) die("a block ends before what comes for it");
  spoil_memory(b);
  c.live--;
}

void end_thread() {
  thread &t = self();
  warp &w = *t.of;
  finish_copies(0, true);
  w.live &= ~(1u << t.lane);
  w.ready &= ~(1u << t.lane);
  t.waits_for = "(ended)";
  machine.passed = 0;
  if (w.meeting & w.live) try_meeting(w, w.mask[__builtin_ctz(w.meeting & w.live)]);
  if (--w.of->live == 0) end_block(*w.of);
}

static uint3 place(uint32_t i, dim3 in) { return {i % in.x, i / in.x % in.y, i / in.x / in.y}; }
static uint32_t count(dim3 of) { return of.x * of.y * of.z; }

static void begin_block(cluster &c, uint32_t rank, uint3 index) {
  c.blocks.push_back(std::make_unique<block>());
  block &b = *c.blocks.back();
  const uint32_t threads = count(machine.of->block);
  b.of = &c;
  b.rank = rank;
  b.index = index;
  b.live = threads;
  take_memory(b);
  b.threads = std::vector<thread>(threads);
  b.warps = std::vector<warp>((threads + WARP - 1) / WARP);
  for (uint32_t i = 0; i < threads; i++) {
    thread &t = b.threads[i];
    t.of = &b.warps[i / WARP];
    t.of->of = &b;
    t.of->lanes[i % WARP] = &t;
    t.of->live |= 1u << i % WARP;
    t.lane = i % WARP;
    t.index = place(i, machine.of->block);
    begin_fiber(t);
    wake(t);
  }
}

/* Clusters are blocks that neighbour each other along x. */
static void begin_cluster(uint32_t index) {
  machine.alive.push_back(std::make_unique<cluster>());
  cluster &c = *machine.alive.back();
  const uint32_t blocks = machine.of->cluster.x;
  c.live = blocks;
  c.threads = blocks * count(machine.of->block);
  for (uint32_t rank = 0; rank < blocks; rank++) begin_block(c, rank, place(index * blocks + rank, machine.of->grid));
}

static void bury_clusters() {
  for (size_t i = 0; i < machine.alive.size(); i++)
    if (machine.alive[i]->live == 0) {
      for (auto &b : machine.alive[i]->blocks) {
        give_memory_back(*b);
        for (thread &t : b->threads) end_fiber(t);
      }
      machine.alive[i--].swap(machine.alive.back());
      machine.alive.pop_back();
    }
}

/* --- turns ------------------------------------------------------------------------------------------------------------- */

[[noreturn]] static void report_deadlock(const char *what) {
  fprintf(stderr, "simt: %s\n", what);
  for (auto &c : machine.alive)
    for (auto &b : c->blocks)
      for (warp &w : b->warps)
        for (uint32_t i = 0, from = 0; i < WARP; i++) { /* neighbours that wait for the same in one line */
          const char *here = w.lanes[i] ? w.lanes[i]->waits_for : NULL,
                     *next = i + 1 < WARP && w.lanes[i + 1] ? w.lanes[i + 1]->waits_for : NULL;
          if (i + 1 < WARP && here == next) continue;
          if (w.lanes[from])
            fprintf(stderr, "  block (%u, %u, %u), warp %zu, lanes %u to %u: %s\n", b->index.x, b->index.y, b->index.z,
                    (size_t)(&w - &b->warps[0]), from, i, here ? here : "(running)");
          from = i + 1;
        }
  abort();
}

/* Lanes in an order that is drawn anew each time; `burst`: times. */
static void run_warp(warp &w, uint32_t burst) {
  machine.burst_over = false;
  while (w.ready && burst-- && !machine.burst_over) {
    const uint32_t ready = w.ready, first = draw(WARP), stride = draw(WARP) | 1;
    for (uint32_t i = 0; i < WARP; i++) {
      const uint32_t lane = (first + i * stride) % WARP;
      if (ready >> lane & 1) resume(*w.lanes[lane]);
    }
  }
}

static void run_grid(uint32_t clusters) {
  enum { MOST_AT_ONCE = 6, PATIENCE = 1 << 16, MOST_PATIENCE = 1 << 23 };
  static const uint32_t bursts[] = {1, 8, UINT32_MAX, UINT32_MAX};
  std::vector<uint32_t> order(clusters);
  for (uint32_t i = 0; i < clusters; i++) {
    const uint32_t other = draw(i + 1);
    order[i] = order[other];
    order[other] = i;
  }
  size_t at_once = machine.of->cooperative ? clusters : 1 + draw(MOST_AT_ONCE);
  while (!order.empty() || !machine.alive.empty()) {
    if (machine.passed > PATIENCE && !order.empty())
      at_once++, machine.passed = 0; /* they may be spinning until others have come */
    while (!order.empty() && machine.alive.size() < at_once) {
      begin_cluster(order.back());
      order.pop_back();
    }
    if (machine.queue.empty()) report_deadlock("deadlock");
    if (machine.passed > MOST_PATIENCE) report_deadlock("nobody gets any further");
    const size_t chosen = draw((uint32_t)machine.queue.size());
    warp &w = *machine.queue[chosen];
    run_warp(w, bursts[draw(4)]);
    if (!w.ready) {
      w.queued = false;
      machine.queue[chosen] = machine.queue.back();
      machine.queue.pop_back();
    }
    bury_clusters();
  }
}

/* --- launches ---------------------------------------------------------------------------------------------------------- */

allowed &allowed_to(const void *kernel) {
  static std::map<const void *, allowed> of;
  return of[kernel];
}

cudaError_t launch(const shape &of, const void *kernel, const std::function<void()> &body) {
  if (machine.running) die("a launch from a kernel");
  if (count(of.grid) == 0 || count(of.block) == 0 || count(of.block) > MOST_THREADS || of.cluster.y != 1 || of.cluster.z != 1 ||
      of.grid.x % of.cluster.x)
    return cudaErrorInvalidConfiguration;
  if (of.cluster.x > allowed_to(kernel).cluster) return cudaErrorInvalidClusterSize;
  if (of.dynamic_bytes > allowed_to(kernel).dynamic_bytes) return cudaErrorInvalidValue;
  machine.of = &of;
  machine.body = &body;
  lay_out(of.dynamic_bytes);
  machine.passed = 0;
  blockDim = of.block;
  gridDim = of.grid;
  run_grid(count(of.grid) / of.cluster.x);
  return cudaSuccess;
}

}  // namespace simt
