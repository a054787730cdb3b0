/* What the machine consists of, for its own files: fiber.cpp runs threads, meeting.cpp has them wait for each other, shared.cpp
 * is their memory, transfer.cpp what comes into it later, and machine.cpp launches and says whose turn it is. */
#ifndef SIMT_MACHINE_PARTS_H
#define SIMT_MACHINE_PARTS_H

#include <memory>
#include <vector>

#include "machine.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define SIMT_ASAN(...) __VA_ARGS__
#else
#define SIMT_ASAN(...)
#endif

namespace simt {

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
  std::vector<copy> copies;  /* under way */
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

extern struct machine {
  const shape *of = NULL; /* of the launch, */
  const std::function<void()> *body = NULL;
  std::vector<std::unique_ptr<cluster>> alive;
  std::vector<warp *> queue; /* warps with ready lanes */
  uint64_t passed = 0;       /* since a thread ended or a block's barrier was reached */
  bool burst_over = false;
  thread *running = NULL;
} machine;

uint32_t draw(uint32_t most); /* a random number below it */
thread &self();               /* that runs; dies where none does */

void begin_fiber(thread &t); /* on a stack of its own */
void resume(thread &t);      /* until it leaves */
void leave(bool for_good = false);
void end_fiber(thread &t);
void end_thread(); /* called on its own stack when it has done its work */

void wake(thread &t);
void try_meeting(warp &w, uint32_t mask); /* if all that are expected have come, the operation is done and they may go on */

void lay_out(size_t dynamic_bytes); /* shared memory, before a launch */
void take_memory(block &b);
void spoil_memory(block &b); /* no other block may read it any more */
void give_memory_back(block &b);
block &block_at(uint32_t address); /* whose shared memory it is */

}  // namespace simt

#endif
