/* What comes into shared memory later than it is asked for: copies by cp.async, and values that count at an mbarrier. */
#include "machine_parts.h"

#include <cstring>

namespace simt {

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

}  // namespace simt
