/* See machine.h. */
#include "machine.h"

#include <sys/mman.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define SIMT_ASAN(...) __VA_ARGS__
#else
#define SIMT_ASAN(...)
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace simt {

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
static uint32_t draw(uint32_t most) {
  static uint64_t state = first_random();
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (uint32_t)(((state * 0x2545f4914f6cdd1du >> 32) * most) >> 32);
}

/* --- what there is ----------------------------------------------------------------------------------------------------- */

struct copy {
  void *to;
  const void *from;
  size_t bytes, copied;
  uint64_t group;
};

struct parcel { /* on its way to shared memory */
  void *to;
  uint32_t bytes;
  unsigned char value[16];
  struct mbarrier *at;
};

struct warp;
struct thread {
  warp *of = NULL;
  uint32_t lane = 0;
  uint3 index = {};
  const char *waits_for = NULL;
  unsigned char *stack = NULL;
  void *stack_pointer = NULL, *fake_stack = NULL;
  std::vector<copy> copies; /* under way */
  uint64_t copy_group = 0;   /* that is open */
  uint64_t cluster_turn = 0; /* of the cluster's barrier, that it has come to */
};

struct block;
struct warp {
  block *of = NULL;
  thread *lanes[WARP] = {};
  uint32_t live = 0, ready = 0, meeting = 0; /* lanes */
  bool queued = false;
  const char *name[WARP] = {}; /* of the operation that a lane has come to, */
  uint32_t mask[WARP] = {};    /* with this mask */
  void *mine[WARP] = {};
  operation perform = NULL;
  bool whole = false;
};

struct barrier {
  uint32_t come = 0, expected = 0;
  std::vector<thread *> waiting;
};

/* A block's shared memory: variables from the start, what the launch asked for from DYNAMIC_AT. */
enum : size_t { DYNAMIC_AT = STATIC_BYTES * 2, ARENA_BYTES = DYNAMIC_AT + MOST_SHARED_BYTES + 4096, POISON = 0xff };

struct cluster;
struct block {
  cluster *of = NULL;
  uint32_t rank = 0, live = 0;
  uint3 index = {};
  unsigned char *shared = NULL;
  std::vector<bool> has; /* slots of shared memory that were asked for */
  std::vector<thread> threads;
  std::vector<warp> warps;
  barrier barriers[NAMED_BARRIERS];
  std::vector<parcel> parcels; /* of its mbarriers */
};

struct cluster {
  std::vector<std::unique_ptr<block>> blocks;
  uint32_t live = 0, come = 0, threads = 0;
  uint64_t turn = 0;
  std::vector<thread *> waiting;
};

struct slot { /* of shared memory: the same place in every block */
  const void *key;
  size_t at, bytes;
};

static struct {
  const shape *of = NULL;
  const std::function<void()> *body = NULL;
  std::vector<slot> slots; /* the first: dynamic */
  size_t shared_end = 0;
  std::vector<std::unique_ptr<cluster>> alive;
  std::vector<warp *> queue; /* warps with ready lanes */
  uint64_t passed = 0;       /* since a thread ended or a block's barrier was reached */
  bool burst_over = false;
  thread *running = NULL;
  void *stack_pointer = NULL, *fake_stack = NULL;
  const void *stack_bottom = NULL;
  size_t stack_size = 0;
} machine;

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

static thread &self() {
  if (!machine.running) die("device code outside of a kernel");
  return *machine.running;
}

uint32_t lane() { return self().lane; }

/* --- fibers ------------------------------------------------------------------------------------------------------------ */

/* simt_switch(save, to): what calls must keep (System V ABI, x86-64) goes on the old stack, its pointer into *save; then the same
 * back from `to`. */
extern "C" void simt_switch(void **save, void *to);
asm(".text\n.globl simt_switch\n.type simt_switch, @function\nsimt_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n.size simt_switch, .-simt_switch\n");

enum : size_t { STACK_BYTES = 128 << 10, CANARY = 0x5aa5c33cf00f1ee1 };

/* Pieces of memory that are used again. */
struct pool {
  size_t bytes;
  std::vector<unsigned char *> free;
  unsigned char *take() {
    const size_t at_once = 32;
    if (free.empty()) {
      void *made = mmap(NULL, bytes * at_once, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (made == MAP_FAILED) die("out of memory");
      for (size_t i = 0; i < at_once; i++) free.push_back((unsigned char *)made + i * bytes);
    }
    unsigned char *piece = free.back();
    free.pop_back();
    return piece;
  }
};
static pool stacks = {STACK_BYTES, {}}, arenas = {ARENA_BYTES, {}};

static void leave(bool for_good) {
  thread &t = self();
  SIMT_ASAN(__sanitizer_start_switch_fiber(for_good ? NULL : &t.fake_stack, machine.stack_bottom, machine.stack_size));
  simt_switch(&t.stack_pointer, machine.stack_pointer);
  SIMT_ASAN(__sanitizer_finish_switch_fiber(t.fake_stack, NULL, NULL));
  (void)for_good;
}

static void resume(thread &t) {
  machine.running = &t;
  threadIdx = t.index;
  blockIdx = t.of->of->index;
  SIMT_ASAN(__sanitizer_start_switch_fiber(&machine.fake_stack, t.stack, STACK_BYTES));
  simt_switch(&machine.stack_pointer, t.stack_pointer);
  SIMT_ASAN(__sanitizer_finish_switch_fiber(machine.fake_stack, NULL, NULL));
  machine.running = NULL;
}

static void end_thread();

static void run_thread() {
  SIMT_ASAN(__sanitizer_finish_switch_fiber(NULL, &machine.stack_bottom, &machine.stack_size));
  (*machine.body)();
  end_thread();
  leave(true);
}

/* A stack from which simt_switch returns into run_thread. */
static void prepare(thread &t) {
  t.stack = stacks.take();
  *(size_t *)t.stack = CANARY;
  void **top = (void **)(t.stack + STACK_BYTES) - 2;
  top[0] = (void *)run_thread;
  top[1] = NULL;
  t.stack_pointer = top - 6;
}

/* --- waiting ----------------------------------------------------------------------------------------------------------- */

static void wake(thread &t) {
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

/* If all that are expected have met, the operation is done for them and they may go on. */
static void try_meeting(warp &w, uint32_t mask) {
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

/* --- shared memory ----------------------------------------------------------------------------------------------------- */

/* The slot's memory in this block, poisoned when it is first asked for. */
static void *memory_of(block &b, size_t index) {
  const slot &s = machine.slots[index];
  if (b.has.size() <= index) b.has.resize(index + 1);
  if (!b.has[index]) {
    SIMT_ASAN(__asan_unpoison_memory_region(b.shared + s.at, s.bytes));
    memset(b.shared + s.at, POISON, s.bytes);
    b.has[index] = true;
  }
  return b.shared + s.at;
}

/* The next place that is aligned so, and no better. */
static size_t aligned_after(size_t at, size_t alignment) {
  at = (at + alignment - 1) / alignment * alignment;
  return at % (2 * alignment) ? at : at + alignment;
}

void *shared_variable(const void *key, size_t bytes, size_t alignment) {
  enum { APART = 64 };
  block &b = *self().of->of;
  for (size_t i = 1; i < machine.slots.size(); i++)
    if (machine.slots[i].key == key) return memory_of(b, i);
  const size_t at = aligned_after(machine.shared_end + APART, alignment);
  machine.shared_end = at + bytes;
  size_t all = 0;
  machine.slots.push_back({key, at, bytes});
  for (size_t i = 1; i < machine.slots.size(); i++) all += machine.slots[i].bytes;
  if (all > STATIC_BYTES || machine.shared_end > DYNAMIC_AT) die("%zu bytes of static shared memory", all);
  return memory_of(b, machine.slots.size() - 1);
}

void *dynamic_memory(size_t alignment) {
  slot &dynamic = machine.slots[0];
  if (dynamic.at == 0) dynamic.at = aligned_after(DYNAMIC_AT + 1, alignment);
  return memory_of(*self().of->of, 0);
}

/* A block of the cluster is told by the bits above: 0 is the block itself. */
enum : uint32_t { RANK_SHIFT = 24 };

static block &block_at(uint32_t address) {
  block &own = *self().of->of;
  const uint32_t rank = address >> RANK_SHIFT;
  return rank ? *own.of->blocks[rank - 1] : own;
}

uint32_t shared_address(const void *of) {
  const unsigned char *shared = self().of->of->shared, *at = (const unsigned char *)of;
  if (at < shared || at >= shared + ARENA_BYTES) die("%p is no address of shared memory", of);
  return (uint32_t)(at - shared);
}

uint32_t address_in_cluster(uint32_t address, uint32_t rank) {
  if (rank >= cluster_blocks()) die("the cluster has no block %u", rank);
  return (address & ((1u << RANK_SHIFT) - 1)) | (rank + 1) << RANK_SHIFT;
}

void *at_shared_address(uint32_t address, size_t bytes) {
  block &b = block_at(address);
  const size_t at = address & ((1u << RANK_SHIFT) - 1);
  if (at % bytes) die("shared address %#zx is not aligned to %zu bytes", at, bytes);
  for (size_t i = 0; i < machine.slots.size(); i++)
    if (at >= machine.slots[i].at && at + bytes <= machine.slots[i].at + machine.slots[i].bytes && machine.slots[i].at)
      return b.shared + at;
  die("%zu bytes at shared address %#zx are out of bounds", bytes, at);
}

uint32_t cluster_rank() { return self().of->of->rank; }
uint32_t cluster_blocks() { return (uint32_t)self().of->of->of->blocks.size(); }

/* --- copies ------------------------------------------------------------------------------------------------------------ */

static void do_copy(const copy &c) {
  memcpy(c.to, c.from, c.copied);
  memset((char *)c.to + c.copied, 0, c.bytes - c.copied);
}

void copy_later(void *to, const void *from, size_t bytes, size_t copied) {
  if ((uintptr_t)from % bytes) die("cp.async: %p is not aligned to %zu bytes", from, bytes);
  thread &t = self();
  const copy c = {to, from, bytes, copied, t.copy_group};
  if (draw(2)) do_copy(c);
  else t.copies.push_back(c);
}

void close_copy_group() { self().copy_group++; }

void finish_copies(size_t but_the_last_groups, bool open_ones_too) {
  thread &t = self();
  const uint64_t end = open_ones_too                        ? t.copy_group + 1
                       : t.copy_group > but_the_last_groups ? t.copy_group - but_the_last_groups
                                                            : 0;
  size_t kept = 0;
  for (const copy &c : t.copies)
    if (c.group < end) do_copy(c);
    else t.copies[kept++] = c;
  t.copies.resize(kept);
}

/* --- mbarriers --------------------------------------------------------------------------------------------------------- */

struct mbarrier { /* what the program sees as 8 bytes */
  int32_t bytes_missing;
  uint8_t count, missing, parity, begun;
};
enum : uint8_t { BEGUN = 0x5a };

static mbarrier &mbarrier_at(uint32_t address) {
  mbarrier &of = *(mbarrier *)at_shared_address(address, sizeof(mbarrier));
  if (of.begun != BEGUN) die("the mbarrier at %#x has not been initialised", address);
  return of;
}

static void end_phase_if_all_came(mbarrier &of) {
  if (of.missing || of.bytes_missing) return;
  of.parity ^= 1;
  of.missing = of.count;
}

void begin_arrivals(uint32_t address, uint32_t count) {
  *(mbarrier *)at_shared_address(address, sizeof(mbarrier)) = {0, (uint8_t)count, (uint8_t)count, 0, BEGUN};
}

void end_arrivals(uint32_t address) { mbarrier_at(address).begun = 0; }

void expect_bytes(uint32_t address, uint32_t bytes) {
  mbarrier &of = mbarrier_at(address);
  if (of.missing == 0) die("more arrive at the mbarrier at %#x than it was initialised for", address);
  of.missing--;
  of.bytes_missing += (int32_t)bytes;
  end_phase_if_all_came(of);
}

static void deliver(const parcel &p) {
  memcpy(p.to, p.value, p.bytes);
  p.at->bytes_missing -= (int32_t)p.bytes;
  end_phase_if_all_came(*p.at);
}

void send(uint32_t to, const void *value, uint32_t bytes, uint32_t barrier) {
  parcel p = {at_shared_address(to, bytes), bytes, {}, &mbarrier_at(barrier)};
  memcpy(p.value, value, bytes);
  if (draw(2)) deliver(p);
  else block_at(barrier).parcels.push_back(p);
}

bool look_for_phase(uint32_t address, uint32_t parity) {
  pass();
  mbarrier &of = mbarrier_at(address);
  std::vector<parcel> &parcels = block_at(address).parcels;
  size_t kept = 0;
  for (size_t i = 0; i < parcels.size(); i++)
    if (parcels[i].at == &of && draw(4)) deliver(parcels[i]);
    else parcels[kept++] = parcels[i];
  parcels.resize(kept);
  return of.parity != (parity & 1);
}

/* --- launches ---------------------------------------------------------------------------------------------------------- */

static void end_block(block &b) {
  cluster &c = *b.of;
  if (!b.parcels.empty()) die("a block ends before what comes for it");
  for (size_t i = 0; i < b.has.size(); i++)
    if (b.has[i])
      memset(b.shared + machine.slots[i].at, POISON, machine.slots[i].bytes); /* no other block may read it any more */
  c.live--;
}

static void end_thread() {
  thread &t = self();
  warp &w = *t.of;
  finish_copies(0, true);
  if (*(size_t *)t.stack != CANARY) die("a stack of %zu bytes is too small", (size_t)STACK_BYTES);
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
  b.shared = arenas.take();
  SIMT_ASAN(__asan_poison_memory_region(b.shared, ARENA_BYTES));
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
    prepare(t);
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
        arenas.free.push_back(b->shared);
        for (thread &t : b->threads) stacks.free.push_back(t.stack);
      }
      machine.alive[i--].swap(machine.alive.back());
      machine.alive.pop_back();
    }
}

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

static std::map<const void *, size_t> &allowed() {
  static std::map<const void *, size_t> of;
  return of;
}

void allow_dynamic(const void *kernel, size_t bytes) { allowed()[kernel] = bytes; }

cudaError_t launch(const shape &of, const void *kernel, const std::function<void()> &body) {
  const auto found = allowed().find(kernel);
  const size_t most = found == allowed().end() ? (size_t)STATIC_BYTES : found->second;
  if (machine.running) die("a launch from a kernel");
  if (count(of.grid) == 0 || count(of.block) == 0 || count(of.block) > MOST_THREADS || of.cluster.y != 1 || of.cluster.z != 1 ||
      of.grid.x % of.cluster.x)
    return cudaErrorInvalidConfiguration;
  if (of.dynamic_bytes > most) return cudaErrorInvalidValue;
  machine.of = &of;
  machine.body = &body;
  machine.slots.assign(1, {NULL, 0, of.dynamic_bytes});
  machine.shared_end = 0;
  machine.passed = 0;
  blockDim = of.block;
  gridDim = of.grid;
  run_grid(count(of.grid) / of.cluster.x);
  return cudaSuccess;
}

} // namespace simt
