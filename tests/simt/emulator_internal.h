/* The state of the emulator, shared by its files: emulator.cpp launches and schedules, fiber.cpp runs threads, sync.cpp has the
 * points at which threads wait for each other (sync points), shared_memory.cpp the shared memory of blocks, async_copy.cpp
 * asynchronous copies and mbarriers. */
#ifndef SIMT_EMULATOR_INTERNAL_H
#define SIMT_EMULATOR_INTERNAL_H

#include <memory>
#include <vector>

#include "emulator.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define SIMT_ASAN(...) __VA_ARGS__
#else
#define SIMT_ASAN(...)
#endif

namespace simt {

struct pending_copy { /* a cp.async that has not copied yet */
  void *to;
  const void *from;
  size_t bytes, copied; /* size of the destination; bytes that are copied; the rest becomes zero */
  uint64_t group;       /* number of the commit group, from 0 */
};

struct pending_store { /* an st.async or a bulk copy that has not stored yet */
  void *to;
  uint32_t bytes;
  const void *from; /* of a bulk copy; NULL: value */
  unsigned char value[16];
  struct mbarrier *barrier;
};

struct warp_state;
struct thread_state {
  warp_state *warp = NULL;
  uint32_t lane = 0;
  uint3 index = {};
  const char *waits_for = NULL;
  unsigned char *stack = NULL;
  void *stack_pointer = NULL, *fake_stack = NULL;
  std::vector<pending_copy> copies;
  uint64_t open_copy_group = 0; /* number of the group that the next cp.async.commit_group commits */
  uint64_t cluster_phase = 0;   /* phase of the cluster's barrier in which the thread arrived last */
};

struct block_state;
struct warp_state {
  block_state *block = NULL;
  thread_state *lanes[WARP] = {};
  uint32_t live_lanes = 0, ready_lanes = 0, lanes_at_sync = 0; /* masks of lanes: not exited; can run; wait in sync_lanes */
  bool queued = false;                                         /* the warp is in emulator.ready_warps */
  /* The arguments that each lane in lanes_at_sync passed to sync_lanes. */
  const char *name[WARP] = {};
  uint32_t sync_mask[WARP] = {};
  void *operand[WARP] = {};
  lane_operation perform = NULL;
  bool require_all = false;
};

struct named_barrier {
  uint32_t arrived = 0, expected = 0; /* numbers of threads in the current phase */
  std::vector<thread_state *> waiting;
};

struct mbarrier_waiter {
  struct mbarrier *barrier;
  thread_state *thread;
};

struct cluster_state;
struct block_state {
  cluster_state *cluster = NULL;
  uint32_t rank = 0, live_threads = 0;
  uint3 index = {};
  unsigned char *shared = NULL;
  std::vector<bool> initialised; /* for each shared variable: its memory has been filled with NaN */
  std::vector<thread_state> threads;
  std::vector<warp_state> warps;
  named_barrier barriers[NAMED_BARRIERS];
  std::vector<pending_store> pending_stores; /* st.async stores that will complete on the block's mbarriers */
  std::vector<mbarrier_waiter> mbarrier_waiters;
};

struct cluster_state {
  std::vector<std::unique_ptr<block_state>> blocks;
  uint32_t live_blocks = 0, threads = 0;
  uint32_t arrived = 0; /* threads that have arrived at the cluster's barrier in the current phase */
  uint64_t phase = 0;   /* phase of the cluster's barrier */
  std::vector<thread_state *> waiting;
};

extern struct emulator_state {
  const launch_config *config = NULL;
  const std::function<void()> *body = NULL;
  std::vector<std::unique_ptr<cluster_state>> resident;
  std::vector<warp_state *> ready_warps; /* warps that have a ready lane */
  uint64_t yields_since_progress = 0;    /* yields since a thread exited or a block's barrier completed */
  bool has_yielded = false;              /* a lane of the running warp has yielded */
  thread_state *running = NULL;
} emulator;

uint32_t random_below(uint32_t limit);
thread_state &running_thread(); /* ends the program if no emulated thread runs */

void create_fiber(thread_state &thread);
void resume(thread_state &thread); /* runs the thread until it calls suspend */
void suspend(bool exits = false);
void destroy_fiber(thread_state &thread);
void exit_thread(); /* ends the running thread; called on that thread's stack */

void make_ready(thread_state &thread);
void wait_at(const char *name); /* suspends the running thread until make_ready. name: for the report of a deadlock */
void wake_mbarrier_waiters(block_state &block, const struct mbarrier *barrier = NULL); /* NULL: of all mbarriers */
/* If all expected lanes of the mask are at the sync point, performs the operation and makes them ready. */
void try_sync_lanes(warp_state &warp, uint32_t mask);

void reset_shared_layout(size_t dynamic_bytes); /* forgets the variables of the launch before; called at the start of a launch */
void allocate_shared_memory(block_state &block);
void poison_shared_memory(block_state &block); /* called when the block exits: a later read by another block gives NaN */
void free_shared_memory(block_state &block);
block_state &block_of_address(uint32_t address);

}  // namespace simt

#endif
