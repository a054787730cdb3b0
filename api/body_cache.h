/* An LRU cache of reply bodies and their MHD responses, so that a repeated request is answered without a query (cached_reply.h).
 * The total size is limited. A removed body counts until the last reply that sends it has ended. Thread-safe. */
#ifndef RL_API_BODY_CACHE_H
#define RL_API_BODY_CACHE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/http_syntax.h"
#include "base/cleanup.h"

typedef struct rl_body_cache rl_body_cache;

enum { RL_BODY_OVERHEAD_BYTES = 3072 }; /* approximate size of an encoding's two MHD responses with their headers */

/* A body in one content encoding, and its two MHD responses, which all requests for the body share. */
typedef struct rl_encoded_body {
  char etag[RL_ETAG_SIZE];
  struct MHD_Response *response, *not_modified; /* replies 200 and 304; NULL: the body does not exist in this encoding */
} rl_encoded_body;

/* The stored data from which a body was made, by kind. Each kind of data has a revision number, which increases with each
 * change of the data (rl_store_revision). */
enum { RL_MAX_BODY_DEPENDENCIES = 3 };
typedef struct rl_body_dependencies {
  int kinds[RL_MAX_BODY_DEPENDENCIES];       /* rl_revision_kind; unused elements: RL_REVISION_UNCLASSIFIED */
  int64_t job_ids[RL_MAX_BODY_DEPENDENCIES]; /* job of kinds[i] if that is RL_REVISION_JOB */
  bool has_age;                              /* the body contains an age in whole seconds, so it depends on the clock too */
} rl_body_dependencies;

typedef struct rl_cached_body {
  const char *key;
  rl_body_dependencies dependencies;
  uint64_t revision; /* sum of the revisions of `dependencies` when the body was made */
  const char *text;  /* the body without content encoding */
  size_t length;
  rl_encoded_body identity, gzip;
} rl_cached_body;

rl_body_cache *rl_body_cache_new(size_t max_bytes); /* NULL if memory is exhausted */
void rl_body_cache_free(rl_body_cache *cache);      /* after all replies have ended */
/* Removes cached bodies until a body of this length fits. Returns false if it doesn't fit, because the bodies of replies in
 * progress leave too little of max_bytes. */
bool rl_body_cache_make_space(rl_body_cache *cache, size_t length);
/* Makes a body, which the caller releases; the caller has made space for it. Takes ownership of the malloc'ed `text`. Calls
 * add_headers for each response of the body. Returns NULL if memory is exhausted. */
rl_cached_body *rl_body_cache_make(rl_body_cache *cache, const char *key, char *text, const char *content_type,
                                   void (*add_headers)(struct MHD_Response *response, const char *etag));
/* Adds the gzip encoding, unless it exists or memory is exhausted. */
void rl_body_cache_add_gzip(rl_body_cache *cache, rl_cached_body *body);
/* Adds the body to the cache in place of an earlier body with the same key. The body's dependencies and revision must be
 * set. */
void rl_body_cache_insert(rl_body_cache *cache, rl_cached_body *body);
/* Returns the body with this key, which the caller releases; NULL if the cache has none. */
rl_cached_body *rl_body_cache_find(rl_body_cache *cache, const char *key);
bool rl_body_cache_has_gzip(rl_body_cache *cache, const rl_cached_body *body);
void rl_body_cache_release(rl_body_cache *cache, rl_cached_body *body);
/* Returns free heap memory to the kernel (malloc_trim) if at least 8 MiB of bodies were freed since the last malloc_trim. Without
 * this call the heap would grow, because malloc rarely reuses the gaps between cached bodies. Takes up to 30 ms, in which other
 * threads may wait in malloc. Call at most once per second. */
void rl_body_cache_trim_heap(rl_body_cache *cache);
/* Returns the bytes of all bodies that are cached or being sent, including RL_BODY_OVERHEAD_BYTES for each encoding. */
size_t rl_body_cache_bytes(rl_body_cache *cache);

#endif
