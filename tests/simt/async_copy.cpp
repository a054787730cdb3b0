/* Implements the asynchronous copies into shared memory: cp.async, and st.async and cp.async.bulk with the mbarriers that count
 * their bytes. Each copy takes effect when it is issued or, at random, later when a thread waits for it. */
#include "emulator_internal.h"

#include <cstring>

namespace simt {

/* --- cp.async ---------------------------------------------------------------------------------------------------------- */

static void complete(const pending_copy &copy) {
  memcpy(copy.to, copy.from, copy.copied);
  memset((char *)copy.to + copy.copied, 0, copy.bytes - copy.copied);
}

void cp_async(void *to, const void *from, size_t bytes, size_t copied) {
  if ((uintptr_t)from % bytes) die("cp.async: %p is not aligned to %zu bytes", from, bytes);
  thread_state &thread = running_thread();
  const pending_copy copy = {to, from, bytes, copied, thread.open_copy_group};
  if (random_below(2)) complete(copy);
  else thread.copies.push_back(copy);
}

void cp_async_commit_group() { running_thread().open_copy_group++; }

static void complete_groups_before(uint64_t end) {
  thread_state &thread = running_thread();
  size_t remaining = 0;
  for (const pending_copy &copy : thread.copies)
    if (copy.group < end) complete(copy);
    else thread.copies[remaining++] = copy;
  thread.copies.resize(remaining);
}

void cp_async_wait_group(size_t newest_groups) {
  const uint64_t committed = running_thread().open_copy_group;
  complete_groups_before(committed > newest_groups ? committed - newest_groups : 0);
}

void cp_async_wait_all() { complete_groups_before(running_thread().open_copy_group + 1); }

/* --- mbarriers --------------------------------------------------------------------------------------------------------- */

struct mbarrier { /* state that is stored in the 8 bytes of the kernel's mbarrier object */
  int32_t pending_bytes;
  uint8_t count, pending_arrivals; /* arrivals of each phase; arrivals that the current phase still needs */
  uint8_t parity, magic;
};
enum : uint8_t { INITIALISED = 0x5a };

static mbarrier &mbarrier_at(uint32_t address) {
  mbarrier &barrier = *(mbarrier *)shared_pointer(address, sizeof(mbarrier));
  if (barrier.magic != INITIALISED) die("the mbarrier at %#x has not been initialised", address);
  return barrier;
}

void wake_mbarrier_waiters(block_state &block, const mbarrier *barrier) {
  size_t remaining = 0;
  for (const mbarrier_waiter &waiter : block.mbarrier_waiters)
    if (!barrier || waiter.barrier == barrier) make_ready(*waiter.thread);
    else block.mbarrier_waiters[remaining++] = waiter;
  block.mbarrier_waiters.resize(remaining);
}

/* Begins the next phase if no arrival and no byte is missing. */
static void complete_phase_if_done(block_state &block, mbarrier &barrier) {
  if (barrier.pending_arrivals || barrier.pending_bytes) return;
  barrier.parity ^= 1;
  barrier.pending_arrivals = barrier.count;
  wake_mbarrier_waiters(block, &barrier);
}

void mbarrier_init(uint32_t address, uint32_t count) {
  *(mbarrier *)shared_pointer(address, sizeof(mbarrier)) = {0, (uint8_t)count, (uint8_t)count, 0, INITIALISED};
}

void mbarrier_inval(uint32_t address) { mbarrier_at(address).magic = 0; }

void mbarrier_arrive(uint32_t address, uint32_t expected_bytes) {
  mbarrier &barrier = mbarrier_at(address);
  if (barrier.pending_arrivals == 0) die("more arrivals at the mbarrier at %#x than it was initialised for", address);
  barrier.pending_arrivals--;
  barrier.pending_bytes += (int32_t)expected_bytes;
  complete_phase_if_done(block_of_address(address), barrier);
}

/* --- st.async and cp.async.bulk ----------------------------------------------------------------------------------------- */

static void complete(block_state &block, const pending_store &store) {
  memcpy(store.to, store.from ? store.from : store.value, store.bytes);
  store.barrier->pending_bytes -= (int32_t)store.bytes;
  complete_phase_if_done(block, *store.barrier);
}

static void complete_now_or_later(const pending_store &store, uint32_t barrier) {
  block_state &block = block_of_address(barrier);
  if (random_below(2)) return complete(block, store);
  block.pending_stores.push_back(store);
  wake_mbarrier_waiters(block, store.barrier); /* they complete it */
}

void st_async(uint32_t to, const void *value, uint32_t bytes, uint32_t barrier) {
  pending_store store = {shared_pointer(to, bytes), bytes, NULL, {}, &mbarrier_at(barrier)};
  memcpy(store.value, value, bytes);
  complete_now_or_later(store, barrier);
}

void cp_async_bulk(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier) {
  if ((uintptr_t)from % 16 || bytes % 16) die("cp.async.bulk: %u bytes at %p are not aligned to 16 bytes", bytes, from);
  complete_now_or_later({shared_pointer(to, bytes, 16), bytes, from, {}, &mbarrier_at(barrier)}, barrier);
}

bool mbarrier_try_wait(uint32_t address, uint32_t parity) {
  yield_point();
  mbarrier &barrier = mbarrier_at(address);
  block_state &block = block_of_address(address);
  std::vector<pending_store> &stores = block.pending_stores;
  size_t remaining = 0;
  bool may_complete = false;
  for (size_t i = 0; i < stores.size(); i++)
    if (stores[i].barrier == &barrier && random_below(4)) complete(block, stores[i]);
    else {
      may_complete |= stores[i].barrier == &barrier;
      stores[remaining++] = stores[i];
    }
  stores.resize(remaining);
  if (barrier.parity != (parity & 1)) return true;
  if (!may_complete) {
    block.mbarrier_waiters.push_back({&barrier, &running_thread()});
    wait_at("an mbarrier");
  }
  return false;
}

}  // namespace simt
