/* Implements the sync points at which emulated threads wait for each other: warp operations, barriers of a block, and the barrier
 * of a cluster. */
#include "emulator_internal.h"

namespace simt {

void make_ready(thread_state &thread) {
  warp_state &warp = *thread.warp;
  thread.waits_for = NULL;
  warp.ready_lanes |= 1u << thread.lane;
  if (!warp.queued) emulator.ready_warps.push_back(&warp);
  warp.queued = true;
}

static void make_all_ready(std::vector<thread_state *> &waiting) {
  for (thread_state *thread : waiting) make_ready(*thread);
  waiting.clear();
}

void wait_at(const char *name) {
  thread_state &thread = running_thread();
  thread.waits_for = name;
  thread.warp->ready_lanes &= ~(1u << thread.lane);
  suspend();
}

void yield_point() {
  emulator.has_yielded = true;
  emulator.yields_since_progress++;
  suspend();
}

void try_sync_lanes(warp_state &warp, uint32_t mask) {
  const uint32_t expected = mask & warp.live_lanes;
  if ((warp.lanes_at_sync & expected) != expected) return;
  if (warp.require_all && expected != mask)
    die("%s: lanes %#x have exited", warp.name[__builtin_ctz(expected)], mask & ~expected);
  const uint32_t first = (uint32_t)__builtin_ctz(expected);
  void *lanes[WARP] = {};
  for (uint32_t i = first; i < WARP; i++) {
    if (!(expected >> i & 1)) continue;
    if (warp.name[i] != warp.name[first] || warp.sync_mask[i] != mask)
      die("lane %u is at %s with mask %#x, lane %u at %s with mask %#x", first, warp.name[first], mask, i, warp.name[i],
          warp.sync_mask[i]);
    lanes[i] = warp.operand[i];
  }
  warp.perform(lanes);
  warp.lanes_at_sync &= ~expected;
  for (uint32_t i = 0; i < WARP; i++)
    if (expected >> i & 1 && warp.lanes[i] != emulator.running) make_ready(*warp.lanes[i]);
}

void sync_lanes(const char *name, uint32_t mask, void *operand, lane_operation perform, bool require_all) {
  thread_state &thread = running_thread();
  warp_state &warp = *thread.warp;
  if (!(mask >> thread.lane & 1)) die("%s: the lane is not in its own mask %#x", name, mask);
  warp.name[thread.lane] = name;
  warp.sync_mask[thread.lane] = mask;
  warp.operand[thread.lane] = operand;
  warp.perform = perform;
  warp.require_all = require_all;
  warp.lanes_at_sync |= 1u << thread.lane;
  try_sync_lanes(warp, mask);
  if (warp.lanes_at_sync >> thread.lane & 1) wait_at(name);
}

void block_barrier(const char *name, uint32_t id, uint32_t threads, bool waits) {
  block_state &block = *running_thread().warp->block;
  if (id >= NAMED_BARRIERS) die("%s: there is no barrier %u", name, id);
  named_barrier &barrier = block.barriers[id];
  if (threads % WARP) die("%s: %u threads are no whole warps", name, threads);
  if (threads == 0) threads = (uint32_t)block.threads.size();
  if (barrier.arrived == 0) barrier.expected = threads;
  if (barrier.expected != threads) die("%s: barrier %u for %u threads, and for %u", name, id, threads, barrier.expected);
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    emulator.yields_since_progress = 0;
    make_all_ready(barrier.waiting);
    if (waits) yield_point();
  } else if (waits) {
    barrier.waiting.push_back(&running_thread());
    wait_at(name);
  }
}

void cluster_arrive() {
  cluster_state &cluster = *running_thread().warp->block->cluster;
  running_thread().cluster_phase = cluster.phase;
  if (++cluster.arrived < cluster.threads) return;
  cluster.arrived = 0;
  cluster.phase++;
  make_all_ready(cluster.waiting);
}

void cluster_wait() {
  cluster_state &cluster = *running_thread().warp->block->cluster;
  if (cluster.phase != running_thread().cluster_phase) return yield_point();
  cluster.waiting.push_back(&running_thread());
  wait_at("the cluster's barrier");
}

}  // namespace simt
