/* Implements thread_numbers.h. The keys are in a hash table, whose hash function has a random key, so that no file can cause many
 * collisions. */
#include "import/thread_numbers.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

enum { SLOTS = 1 << 18 };
_Static_assert((int)SLOTS > 2 * (int)RL_MAX_NUMBERED_THREADS, "more than half of the hash table must stay free");
static const uint32_t FIRST_PROVISIONAL = (uint32_t)RL_MAX_THREAD_ID + 1;

struct rl_thread_numbers {
  unsigned char hash_key[crypto_shorthash_KEYBYTES];
  rl_thread_key *keys; /* keys[i]: the thread with the number FIRST_PROVISIONAL + i */
  size_t count, capacity;
  uint32_t slots[SLOTS]; /* 1 + index of a key; 0: free */
};

RL_DEFINE_CLEANUP(free_flags, bool *, free, NULL)
RL_DEFINE_CLEANUP(free_numbers, uint32_t *, free, NULL)

rl_thread_numbers *rl_thread_numbers_new(void) {
  rl_thread_numbers *threads = calloc(1, sizeof *threads);
  if (threads != NULL) randombytes_buf(threads->hash_key, sizeof threads->hash_key);
  return threads;
}

void rl_thread_numbers_free(rl_thread_numbers *threads) {
  if (threads == NULL) return;
  free(threads->keys);
  free(threads);
}

/* Returns the slot of the key; if the key is new, the free slot for it. */
static uint32_t *find_slot(rl_thread_numbers *threads, rl_thread_key key) {
  uint64_t hash;
  crypto_shorthash((unsigned char *)&hash, (const unsigned char *)&key, sizeof key, threads->hash_key);
  for (size_t slot = hash % SLOTS;; slot = (slot + 1) % SLOTS) {
    uint32_t *found = &threads->slots[slot];
    if (*found == 0) return found;
    const rl_thread_key *other = &threads->keys[*found - 1];
    if (other->process == key.process && other->thread == key.thread) return found;
  }
}

int rl_thread_numbers_find(rl_thread_numbers *threads, rl_thread_key key, uint32_t *number, rl_error *err) {
  uint32_t *slot = find_slot(threads, key);
  if (*slot == 0) {
    if (threads->count == RL_MAX_NUMBERED_THREADS)
      return rl_fail(err, RL_INPUT, 0, "the trace has more than %d threads whose tid is not a number from 1 to %d",
                     RL_MAX_NUMBERED_THREADS, RL_MAX_THREAD_ID);
    if (rl_array_reserve(&threads->keys, threads->count, &threads->capacity, sizeof key, err) < 0) return -1;
    threads->keys[threads->count++] = key;
    *slot = (uint32_t)threads->count;
  }
  *number = FIRST_PROVISIONAL + *slot - 1;
  return 0;
}

int rl_thread_numbers_replace(const rl_thread_numbers *threads, rl_activity_row *rows, size_t count, rl_error *err) {
  /* Of the numbers from 1 to the sum, the rows use at most `count`, so that one is free for each thread. */
  const size_t limit = count + threads->count;
  uint32_t next = 1;
  if (threads->count == 0) return 0;
  RL_CLEANUP(free_flags) bool *is_used = calloc(limit + 1, sizeof *is_used);
  RL_CLEANUP(free_numbers) uint32_t *numbers = calloc(threads->count, sizeof *numbers);
  if (is_used == NULL || numbers == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a trace");
  for (size_t i = 0; i < count; i++)
    if (rows[i].thread <= limit) is_used[rows[i].thread] = true;
  for (size_t i = 0; i < count; i++) {
    if (rows[i].thread < FIRST_PROVISIONAL) continue;
    uint32_t *number = &numbers[rows[i].thread - FIRST_PROVISIONAL];
    while (*number == 0 && is_used[next]) next++;
    if (*number == 0) *number = next++;
    rows[i].thread = *number;
  }
  return 0;
}
