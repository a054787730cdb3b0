/* An LRU cache of reply bodies and their MHD responses, so that a repeated request is answered without a query. The number of
 * bytes is limited; a body counts until the last reply that sends it has ended. Thread-safe. */
#ifndef RL_API_BODY_CACHE_H
#define RL_API_BODY_CACHE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/http_syntax.h"
#include "base/cleanup.h"

typedef struct rl_body_cache rl_body_cache;

enum { RL_BODY_OVERHEAD_BYTES = 3072 }; /* approximate size of the two responses of an encoding with their headers */

/* One encoding of a body, with the responses 200 and 304 that all requests for it share. */
typedef struct rl_encoded_body {
  char etag[RL_ETAG_SIZE];
  struct MHD_Response *response, *not_modified; /* NULL: this encoding was not made */
} rl_encoded_body;

/* The stored data from which a body was made. Each kind of data has a revision (rl_store_revision). The sum of the revisions
 * increases with each change. */
enum { RL_MAX_DEPENDENCIES = 3 };
typedef struct rl_dependency {
  int kinds[RL_MAX_DEPENDENCIES];       /* rl_revision_kind */
  int64_t job_ids[RL_MAX_DEPENDENCIES]; /* job of kinds[i] if that is RL_REVISION_JOB */
  bool has_age;                         /* the body contains an age in whole seconds, so it depends on the clock too */
} rl_dependency;

typedef struct rl_cached_body {
  const char *key;
  rl_dependency dependency;
  uint64_t revision;
  const char *text; /* the body without content encoding */
  size_t length;
  rl_encoded_body identity, gzip;
} rl_cached_body;

rl_body_cache *rl_body_cache_new(size_t max_bytes); /* NULL if memory is exhausted */
void rl_body_cache_free(rl_body_cache *cache);      /* after all replies have ended */
/* Makes a body, which the caller releases. Takes ownership of the malloc'ed `text`. add_headers is called for each response of
 * the body. Returns NULL if memory is exhausted, or if replies in progress already use max_bytes. */
rl_cached_body *rl_body_cache_make(rl_body_cache *cache, const char *key, char *text, const char *content_type,
                                   void (*add_headers)(struct MHD_Response *response, const char *etag));
/* Adds the gzip encoding, unless it exists or memory is exhausted. */
void rl_body_cache_add_gzip(rl_body_cache *cache, rl_cached_body *body);
/* Caches the body, and removes an earlier one with its key. Its dependency and revision must be set. */
void rl_body_cache_insert(rl_body_cache *cache, rl_cached_body *body);
/* Returns the body with this key, which the caller releases; NULL if the cache has none. */
rl_cached_body *rl_body_cache_find(rl_body_cache *cache, const char *key);
bool rl_body_cache_has_gzip(rl_body_cache *cache, const rl_cached_body *body);
void rl_body_cache_release(rl_body_cache *cache, rl_cached_body *body);
/* Calls malloc_trim if 8 MB of bodies were freed since its last call, because free memory between cached bodies is rarely reused.
 * Takes up to 30 ms, in which other threads may wait in malloc. Call at most once per second. */
void rl_body_cache_return_memory(rl_body_cache *cache);
/* Returns the bytes of all bodies that are cached or being sent, including RL_BODY_OVERHEAD_BYTES for each encoding. */
size_t rl_body_cache_bytes(rl_body_cache *cache);

#endif
