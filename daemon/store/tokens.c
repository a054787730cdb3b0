/* Adds, removes and finds access tokens. The hashes of found tokens stay in memory until this or another program changes the
 * tokens, so that a request with a known token needs no query. */
#include <string.h>

#include "base/clock.h"
#include "store/store_internal.h"

int rl_store_token_add(rl_store *store, const char *name, const char *hash, rl_error *err) {
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = rl_db_run(&store->writer, err, "token_insert", RL_BIND_TEXT(":hash", hash), RL_BIND_TEXT(":name", name),
                     RL_BIND_INTEGER(":now", rl_realtime_ns()));
  return rl_store_end_transaction_changing_all(store, rc, err);
}

int rl_store_token_remove(rl_store *store, const char *name, int64_t *count, rl_error *err) {
  int64_t removed = 0;
  if (rl_store_begin_transaction(store, err) < 0) return -1;
  int rc = rl_db_run(&store->writer, err, "token_delete", RL_BIND_TEXT(":name", name));
  if (rc == 0) removed = sqlite3_changes64(store->writer.handle);
  if (rl_store_end_transaction_changing_all(store, rc, err) < 0) return -1;
  *count = removed;
  return 0;
}

/* --- cached tokens ----------------------------------------------------------------------------------------------------- */

/* Returns the token's slot, which is computed from the last hexadecimal digits of its hash. These digits are uniformly
 * distributed. */
static rl_cached_token *slot_of(rl_store *store, const char *hash) {
  const size_t length = strlen(hash);
  unsigned sum = 0;
  for (size_t i = length > 4 ? length - 4 : 0; i < length; i++) sum = 31 * sum + (unsigned char)hash[i];
  return &store->cached_tokens[sum % RL_CACHED_TOKENS];
}

static bool is_cached(rl_store *store, const char *hash, uint64_t revision) {
  pthread_mutex_lock(&store->cached_tokens_mutex);
  const rl_cached_token *token = slot_of(store, hash);
  bool found = revision != 0 && token->revision == revision && strcmp(token->hash, hash) == 0;
  pthread_mutex_unlock(&store->cached_tokens_mutex);
  return found;
}

static void cache_token(rl_store *store, const char *hash, uint64_t revision) {
  if (revision == 0 || strlen(hash) >= sizeof store->cached_tokens[0].hash) return;
  pthread_mutex_lock(&store->cached_tokens_mutex);
  rl_cached_token *token = slot_of(store, hash);
  token->revision = revision;
  strcpy(token->hash, hash);
  pthread_mutex_unlock(&store->cached_tokens_mutex);
}

bool rl_store_has_cached_token(rl_store *store, const char *hash) {
  return is_cached(store, hash, rl_store_revision(store, RL_REVISION_UNCLASSIFIED, 0));
}

int rl_store_has_token(rl_store *store, const char *hash, bool *known, rl_error *err) {
  /* The revision is read before the query, so that a later change invalidates the query's result. */
  const uint64_t revision = rl_store_revision(store, RL_REVISION_UNCLASSIFIED, 0);
  *known = is_cached(store, hash, revision);
  if (*known) return 0;
  if (rl_store_find_token(store, hash, known, err) < 0) return -1;
  if (*known) cache_token(store, hash, revision);
  return 0;
}
