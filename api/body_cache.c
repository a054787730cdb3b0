/* Implements the cache with a hash table and a list of the entries in order of use; one mutex guards both. An entry has a
 * reference count: the cache holds one reference while it contains the entry, and each caller that has made or found the entry
 * holds one. Releasing the last reference frees the entry. */
#include "api/body_cache.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <zlib.h>

enum {
  BUCKETS = 4096,
  GZIP_LEVEL = 1, /* the fastest level */
  GZIP_WINDOW_BITS = 15 + 16 /* 16: zlib writes a gzip header */,
  GZIP_MEMORY_LEVEL = 8,
  TRIM_THRESHOLD_BYTES = 8 << 20 /* bytes freed since the last malloc_trim that justify the next one */
};

typedef struct cache_entry {
  rl_cached_body body;
  char *key;
  void (*add_headers)(struct MHD_Response *response, const char *etag);
  const char *content_type;
  int references;
  TAILQ_ENTRY(cache_entry) recency;
  LIST_ENTRY(cache_entry) bucket_link;
} cache_entry;

struct rl_body_cache {
  size_t max_bytes;
  _Atomic size_t bytes;                          /* sum of counted_text.size of the texts that MHD has not freed yet */
  _Atomic size_t freed_bytes;                    /* bytes freed since the last malloc_trim */
  pthread_mutex_t lock;                          /* guards the members below and those of the entries */
  TAILQ_HEAD(recency_list, cache_entry) entries; /* the most recently used first */
  LIST_HEAD(, cache_entry) buckets[BUCKETS];
};

/* The text of an MHD response 200. `size`, the bytes of the text plus RL_BODY_OVERHEAD_BYTES, counts towards the cache's
 * `bytes` until MHD frees the text with the response. */
typedef struct counted_text {
  rl_body_cache *cache;
  size_t size;
  char *text;
} counted_text;

rl_body_cache *rl_body_cache_new(size_t max_bytes) {
  rl_body_cache *cache = calloc(1, sizeof *cache);
  if (cache == NULL) return NULL;
  cache->max_bytes = max_bytes;
  pthread_mutex_init(&cache->lock, NULL);
  TAILQ_INIT(&cache->entries);
  return cache;
}

static size_t bucket_of(const char *key) {
  uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
  for (; *key != '\0'; key++) hash = (hash ^ (unsigned char)*key) * 0x100000001b3;
  return (hash ^ hash >> 32) % BUCKETS;
}

/* --- responses --------------------------------------------------------------------------------------------------------- */

static void free_counted_text(void *context) {
  counted_text *counted = context;
  atomic_fetch_sub(&counted->cache->bytes, counted->size);
  atomic_fetch_add(&counted->cache->freed_bytes, counted->size);
  free(counted->text);
  free(counted);
}

/* Makes the response 200 with this text. Takes ownership of the text. */
static struct MHD_Response *make_response(rl_body_cache *cache, char *text, size_t size) {
  counted_text *counted = malloc(sizeof *counted);
  if (counted == NULL) {
    free(text);
    return NULL;
  }
  *counted = (counted_text){cache, size + RL_BODY_OVERHEAD_BYTES, text};
  atomic_fetch_add(&cache->bytes, counted->size);
  struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(size, text, free_counted_text, counted);
  if (response == NULL) free_counted_text(counted);
  return response;
}

static void destroy_encoding(rl_encoded_body *encoding) {
  if (encoding->response != NULL) MHD_destroy_response(encoding->response);
  if (encoding->not_modified != NULL) MHD_destroy_response(encoding->not_modified);
  *encoding = (rl_encoded_body){0};
}

/* Takes ownership of `text`. Returns -1 if memory is exhausted. */
static int make_responses(rl_body_cache *cache, const cache_entry *entry, char *text, size_t size, rl_encoded_body *encoding) {
  encoding->response = make_response(cache, text, size);
  encoding->not_modified = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
  if (encoding->response == NULL || encoding->not_modified == NULL) {
    destroy_encoding(encoding);
    return -1;
  }
  MHD_add_response_header(encoding->response, "Content-Type", entry->content_type);
  entry->add_headers(encoding->response, encoding->etag);
  entry->add_headers(encoding->not_modified, encoding->etag);
  return 0;
}

/* Returns the compressed text in gzip format in malloc'ed memory; NULL if memory is exhausted. */
static char *compress_text(const char *text, size_t length, size_t *size) {
  z_stream stream = {.next_in = (Bytef *)text, .avail_in = (uInt)length};
  if (deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) return NULL;
  stream.avail_out = (uInt)deflateBound(&stream, length);
  char *compressed = malloc(stream.avail_out);
  stream.next_out = (Bytef *)compressed;
  int rc = compressed != NULL ? deflate(&stream, Z_FINISH) : Z_MEM_ERROR;
  *size = stream.total_out;
  deflateEnd(&stream);
  if (rc == Z_STREAM_END) return compressed;
  free(compressed);
  return NULL;
}

/* --- entries ----------------------------------------------------------------------------------------------------------- */

static void free_entry(cache_entry *entry) {
  destroy_encoding(&entry->body.identity);
  destroy_encoding(&entry->body.gzip);
  free(entry->key);
  free(entry);
}

/* drop_reference and remove_entry return true if they dropped the last reference. The caller then unlocks the mutex and frees the
 * entry. */
static bool drop_reference(cache_entry *entry) { return --entry->references == 0; }

static bool remove_entry(rl_body_cache *cache, cache_entry *entry) {
  TAILQ_REMOVE(&cache->entries, entry, recency);
  LIST_REMOVE(entry, bucket_link);
  return drop_reference(entry);
}

/* Removes the least recently used entries until added_bytes more bytes fit. Returns false if these bytes don't fit even in the
 * empty cache: they exceed max_bytes together with the removed bodies that replies in progress still use. */
static bool evict_until_fits(rl_body_cache *cache, size_t added_bytes) {
  while (atomic_load(&cache->bytes) + added_bytes > cache->max_bytes) {
    pthread_mutex_lock(&cache->lock);
    cache_entry *oldest = TAILQ_LAST(&cache->entries, recency_list);
    bool was_last_reference = oldest != NULL && remove_entry(cache, oldest);
    pthread_mutex_unlock(&cache->lock);
    if (oldest == NULL) return false;
    if (was_last_reference) free_entry(oldest);
  }
  return true;
}

bool rl_body_cache_make_space(rl_body_cache *cache, size_t length) {
  return evict_until_fits(cache, length + RL_BODY_OVERHEAD_BYTES);
}

void rl_body_cache_free(rl_body_cache *cache) {
  if (cache == NULL) return;
  (void)evict_until_fits(cache, SIZE_MAX / 2); /* removes every entry, because so many bytes never fit */
  pthread_mutex_destroy(&cache->lock);
  free(cache);
}

rl_cached_body *rl_body_cache_make(rl_body_cache *cache, const char *key, char *text, const char *content_type,
                                   void (*add_headers)(struct MHD_Response *response, const char *etag)) {
  size_t length = strlen(text);
  cache_entry *entry = calloc(1, sizeof *entry);
  if (entry == NULL) {
    free(text);
    return NULL;
  }
  *entry = (cache_entry){.key = strdup(key), .add_headers = add_headers, .content_type = content_type, .references = 1};
  entry->body = (rl_cached_body){.key = entry->key, .text = text, .length = length};
  rl_etag_hash(text, length, entry->body.identity.etag);
  if (make_responses(cache, entry, text, length, &entry->body.identity) == 0 && entry->key != NULL) return &entry->body;
  free_entry(entry);
  return NULL;
}

bool rl_body_cache_has_gzip(rl_body_cache *cache, const rl_cached_body *body) {
  pthread_mutex_lock(&cache->lock);
  bool has_gzip = body->gzip.response != NULL;
  pthread_mutex_unlock(&cache->lock);
  return has_gzip;
}

void rl_body_cache_add_gzip(rl_body_cache *cache, rl_cached_body *body) {
  cache_entry *entry = (cache_entry *)body;
  rl_encoded_body gzip = {0};
  size_t size;
  char *compressed = compress_text(body->text, body->length, &size);
  if (compressed == NULL) return;
  snprintf(gzip.etag, sizeof gzip.etag, "%.*s-gzip\"", (int)strlen(body->identity.etag) - 1, body->identity.etag);
  if (make_responses(cache, entry, compressed, size, &gzip) < 0) return;
  MHD_add_response_header(gzip.response, "Content-Encoding", "gzip");
  pthread_mutex_lock(&cache->lock);
  bool is_first = body->gzip.response == NULL;
  if (is_first) body->gzip = gzip;
  pthread_mutex_unlock(&cache->lock);
  if (!is_first) destroy_encoding(&gzip);
  (void)evict_until_fits(cache, 0);
}

/* The caller holds the lock. */
static cache_entry *find_entry(rl_body_cache *cache, const char *key) {
  cache_entry *entry;
  LIST_FOREACH (entry, &cache->buckets[bucket_of(key)], bucket_link)
    if (strcmp(entry->key, key) == 0) return entry;
  return NULL;
}

void rl_body_cache_insert(rl_body_cache *cache, rl_cached_body *body) {
  cache_entry *entry = (cache_entry *)body;
  pthread_mutex_lock(&cache->lock);
  cache_entry *earlier = find_entry(cache, entry->key);
  bool was_last_reference = earlier != NULL && remove_entry(cache, earlier);
  entry->references++;
  TAILQ_INSERT_HEAD(&cache->entries, entry, recency);
  LIST_INSERT_HEAD(&cache->buckets[bucket_of(entry->key)], entry, bucket_link);
  pthread_mutex_unlock(&cache->lock);
  if (was_last_reference) free_entry(earlier);
}

rl_cached_body *rl_body_cache_find(rl_body_cache *cache, const char *key) {
  pthread_mutex_lock(&cache->lock);
  cache_entry *entry = find_entry(cache, key);
  if (entry != NULL) {
    entry->references++;
    TAILQ_REMOVE(&cache->entries, entry, recency);
    TAILQ_INSERT_HEAD(&cache->entries, entry, recency);
  }
  pthread_mutex_unlock(&cache->lock);
  return entry != NULL ? &entry->body : NULL;
}

void rl_body_cache_release(rl_body_cache *cache, rl_cached_body *body) {
  cache_entry *entry = (cache_entry *)body;
  pthread_mutex_lock(&cache->lock);
  bool was_last_reference = drop_reference(entry);
  pthread_mutex_unlock(&cache->lock);
  if (was_last_reference) free_entry(entry);
}

void rl_body_cache_trim_heap(rl_body_cache *cache) {
  if (atomic_load(&cache->freed_bytes) < TRIM_THRESHOLD_BYTES) return;
  atomic_store(&cache->freed_bytes, 0);
  malloc_trim(0);
}

size_t rl_body_cache_bytes(rl_body_cache *cache) { return atomic_load(&cache->bytes); }
