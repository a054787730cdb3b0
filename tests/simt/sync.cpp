/* Sync points of emulated threads: warp operations, barriers of a block and of a cluster. */
#include "emulator_internal.h"

namespace simt {

void make_ready(thread_state &t) {
  warp_state &w = *t.warp;
  t.waits_for = NULL;
  w.ready_lanes |= 1u << t.lane;
  if (!w.queued) emulator.ready_warps.push_back(&w);
  w.queued = true;
}

static void make_all_ready(std::vector<thread_state *> &waiting) {
  for (thread_state *t : waiting) make_ready(*t);
  waiting.clear();
}

static void wait_at(const char *name) {
  thread_state &t = running_thread();
  t.waits_for = name;
  t.warp->ready_lanes &= ~(1u << t.lane);
  suspend();
}

void yield_point() {
  emulator.has_yielded = true;
  emulator.yields_since_progress++;
  suspend();
}

void try_sync_lanes(warp_state &w, uint32_t mask) {
  const uint32_t expected = mask & w.live_lanes;
  if ((w.lanes_at_sync & expected) != expected) return;
  if (w.require_all && expected != mask) die("%s: lanes %#x have exited", w.name[__builtin_ctz(expected)], mask & ~expected);
  const uint32_t first = (uint32_t)__builtin_ctz(expected);
  void *lanes[WARP] = {};
  for (uint32_t i = first; i < WARP; i++) {
    if (!(expected >> i & 1)) continue;
    if (w.name[i] != w.name[first] || w.sync_mask[i] != mask)
      die("lane %u is at %s with mask %#x, lane %u at %s with mask %#x", first, w.name[first], mask, i, w.name[i],
          w.sync_mask[i]);
    lanes[i] = w.operand[i];
  }
  w.perform(lanes);
  w.lanes_at_sync &= ~expected;
  for (uint32_t i = 0; i < WARP; i++)
    if (expected >> i & 1 && w.lanes[i] != emulator.running) make_ready(*w.lanes[i]);
}

void sync_lanes(const char *name, uint32_t mask, void *operand, lane_operation perform, bool require_all) {
  thread_state &t = running_thread();
  warp_state &w = *t.warp;
  if (!(mask >> t.lane & 1)) die("%s: the lane is not in its own mask %#x", name, mask);
  w.name[t.lane] = name;
  w.sync_mask[t.lane] = mask;
  w.operand[t.lane] = operand;
  w.perform = perform;
  w.require_all = require_all;
  w.lanes_at_sync |= 1u << t.lane;
  try_sync_lanes(w, mask);
  if (w.lanes_at_sync >> t.lane & 1) wait_at(name);
}

void block_barrier(const char *name, uint32_t id, uint32_t threads, bool waits) {
  block_state &b = *running_thread().warp->block;
  if (id >= NAMED_BARRIERS) die("%s: there is no barrier %u", name, id);
  named_barrier &barrier = b.barriers[id];
  if (threads % WARP) die("%s: %u threads are no whole warps", name, threads);
  if (threads == 0) threads = (uint32_t)b.threads.size();
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
  cluster_state &c = *running_thread().warp->block->cluster;
  running_thread().cluster_phase = c.phase;
  if (++c.arrived < c.threads) return;
  c.arrived = 0;
  c.phase++;
  make_all_ready(c.waiting);
}

void cluster_wait() {
  cluster_state &c = *running_thread().warp->block->cluster;
  if (c.phase != running_thread().cluster_phase) return yield_point();
  c.waiting.push_back(&running_thread());
  wait_at("the cluster's barrier");
}

}  // namespace simt
