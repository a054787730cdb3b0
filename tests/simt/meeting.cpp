/* How threads of the machine wait for each other: operations of a warp, barriers of a block and of a cluster. */
#include "machine_parts.h"

namespace simt {

void wake(thread &t) {
  warp &w = *t.of;
  t.waits_for = NULL;
  w.ready |= 1u << t.lane;
  if (!w.queued) machine.queue.push_back(&w);
  w.queued = true;
}

static void wake_all(std::vector<thread *> &waiting) {
  for (thread *t : waiting) wake(*t);
  waiting.clear();
}

static void wait(const char *what) {
  thread &t = self();
  t.waits_for = what;
  t.of->ready &= ~(1u << t.lane);
  leave(false);
}

void pass() {
  machine.burst_over = true;
  machine.passed++;
  leave(false);
}

void try_meeting(warp &w, uint32_t mask) {
  const uint32_t expected = mask & w.live;
  if ((w.meeting & expected) != expected) return;
  if (w.whole && expected != mask) die("%s: lanes %#x have ended", w.name[__builtin_ctz(expected)], mask & ~expected);
  const uint32_t first = (uint32_t)__builtin_ctz(expected);
  void *lanes[WARP] = {};
  for (uint32_t i = first; i < WARP; i++) {
    if (!(expected >> i & 1)) continue;
    if (w.name[i] != w.name[first] || w.mask[i] != mask)
      die("lane %u is at %s with mask %#x, lane %u at %s with mask %#x", first, w.name[first], mask, i, w.name[i], w.mask[i]);
    lanes[i] = w.mine[i];
  }
  w.perform(lanes);
  w.meeting &= ~expected;
  for (uint32_t i = 0; i < WARP; i++)
    if (expected >> i & 1 && w.lanes[i] != machine.running) wake(*w.lanes[i]);
}

void meet(const char *name, uint32_t mask, void *mine, operation perform, bool whole) {
  thread &t = self();
  warp &w = *t.of;
  if (!(mask >> t.lane & 1)) die("%s: the lane is not in its own mask %#x", name, mask);
  w.name[t.lane] = name;
  w.mask[t.lane] = mask;
  w.mine[t.lane] = mine;
  w.perform = perform;
  w.whole = whole;
  w.meeting |= 1u << t.lane;
  try_meeting(w, mask);
  if (w.meeting >> t.lane & 1) wait(name);
}

void block_barrier(const char *name, uint32_t id, uint32_t threads, bool waits) {
  block &b = *self().of->of;
  if (id >= NAMED_BARRIERS) die("%s: there is no barrier %u", name, id);
  barrier &at = b.barriers[id];
  if (threads % WARP) die("%s: %u threads are no whole warps", name, threads);
  if (threads == 0) threads = (uint32_t)b.threads.size();
  if (at.come == 0) at.expected = threads;
  if (at.expected != threads) die("%s: barrier %u for %u threads, and for %u", name, id, threads, at.expected);
  if (++at.come == threads) {
    at.come = 0;
    machine.passed = 0;
    wake_all(at.waiting);
    if (waits) pass();
  } else if (waits) {
    at.waiting.push_back(&self());
    wait(name);
  }
}

void cluster_arrive() {
  cluster &c = *self().of->of->of;
  self().cluster_turn = c.turn;
  if (++c.come < c.threads) return;
  c.come = 0;
  c.turn++;
  wake_all(c.waiting);
}

void cluster_wait() {
  cluster &c = *self().of->of->of;
  if (c.turn != self().cluster_turn) return pass();
  c.waiting.push_back(&self());
  wait("the cluster's barrier");
}

}  // namespace simt
