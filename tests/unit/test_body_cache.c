/* Tests the cache of response bodies: keys, replacement, the order in which bodies are dropped, the limit of its size, and the
 * memory that it returns to the system. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/body_cache.h"

enum {
  BODY_BYTES = 1000,
  COUNTED_BYTES_PER_BODY = BODY_BYTES + RL_BODY_OVERHEAD_BYTES,
  CACHE_BYTES = 10 * COUNTED_BYTES_PER_BODY
};

static void add_no_headers(struct MHD_Response *response, const char *etag) { (void)response, (void)etag; }

static rl_cached_body *make_body_of_size(rl_body_cache *cache, const char *key, size_t bytes) {
  char *text = malloc(bytes + 1);
  memset(text, 'x', bytes);
  text[bytes] = '\0';
  memcpy(text, key, strlen(key));
  if (!rl_body_cache_make_space(cache, bytes)) {
    free(text);
    return NULL;
  }
  return rl_body_cache_make(cache, key, text, "application/json", add_no_headers);
}

/* Makes a body of BODY_BYTES. */
static rl_cached_body *make_body(rl_body_cache *cache, const char *key) { return make_body_of_size(cache, key, BODY_BYTES); }

static void insert_body(rl_body_cache *cache, const char *key) {
  rl_cached_body *body = make_body(cache, key);
  assert_non_null(body);
  rl_body_cache_insert(cache, body);
  rl_body_cache_release(cache, body);
}

static bool is_cached(rl_body_cache *cache, const char *key) {
  rl_cached_body *body = rl_body_cache_find(cache, key);
  if (body == NULL) return false;
  assert_int_equal(strncmp(body->text, key, strlen(key)), 0);
  assert_string_equal(body->key, key);
  rl_body_cache_release(cache, body);
  return true;
}

static void bodies_are_found_by_key(void **state) {
  (void)state;
  rl_body_cache *cache = rl_body_cache_new(CACHE_BYTES);
  assert_false(is_cached(cache, "a"));
  insert_body(cache, "a");
  insert_body(cache, "b");
  assert_true(is_cached(cache, "a") && is_cached(cache, "b"));
  assert_false(is_cached(cache, "c"));
  assert_int_equal(rl_body_cache_bytes(cache), 2 * COUNTED_BYTES_PER_BODY);
  insert_body(cache, "a"); /* replaces the earlier body */
  assert_int_equal(rl_body_cache_bytes(cache), 2 * COUNTED_BYTES_PER_BODY);
  rl_body_cache_free(cache);
}

static void the_least_recently_used_is_dropped(void **state) {
  (void)state;
  rl_body_cache *cache = rl_body_cache_new(CACHE_BYTES);
  char key[8];
  for (int i = 0; i < 10; i++) {
    snprintf(key, sizeof key, "k%d", i);
    insert_body(cache, key);
  }
  assert_true(is_cached(cache, "k0"));
  insert_body(cache, "k10");
  insert_body(cache, "k11");
  assert_true(is_cached(cache, "k0") && is_cached(cache, "k3") && is_cached(cache, "k11"));
  assert_false(is_cached(cache, "k1") || is_cached(cache, "k2"));
  assert_int_equal(rl_body_cache_bytes(cache), CACHE_BYTES);
  rl_body_cache_free(cache);
}

/* A body that a reply is still sending counts towards the bound even after it has left the cache. */
static void bodies_in_use_are_bounded_too(void **state) {
  (void)state;
  rl_body_cache *cache = rl_body_cache_new(CACHE_BYTES);
  rl_cached_body *bodies[10];
  for (int i = 0; i < 10; i++) assert_non_null(bodies[i] = make_body(cache, "k"));
  assert_null(make_body(cache, "k"));
  rl_body_cache_release(cache, bodies[0]);
  assert_non_null(bodies[0] = make_body(cache, "k"));
  for (int i = 0; i < 10; i++) rl_body_cache_release(cache, bodies[i]);
  assert_int_equal(rl_body_cache_bytes(cache), 0);
  rl_body_cache_free(cache);
}

static void a_body_is_compressed_once(void **state) {
  (void)state;
  rl_body_cache *cache = rl_body_cache_new(CACHE_BYTES);
  rl_cached_body *body = make_body(cache, "k");
  assert_false(rl_body_cache_has_gzip(cache, body));
  rl_body_cache_add_gzip(cache, body);
  assert_true(rl_body_cache_has_gzip(cache, body));
  size_t bytes = rl_body_cache_bytes(cache);
  assert_in_range(bytes, COUNTED_BYTES_PER_BODY + RL_BODY_OVERHEAD_BYTES + 1,
                  COUNTED_BYTES_PER_BODY + RL_BODY_OVERHEAD_BYTES + 100);
  assert_string_not_equal(body->gzip.etag, body->identity.etag);
  assert_int_equal(strlen(body->gzip.etag), strlen(body->identity.etag) + strlen("-gzip"));
  rl_body_cache_add_gzip(cache, body);
  assert_int_equal(rl_body_cache_bytes(cache), bytes);
  rl_body_cache_release(cache, body);
  assert_int_equal(rl_body_cache_bytes(cache), 0);
  rl_body_cache_free(cache);
}

static int64_t read_resident_bytes(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  long long pages = 0;
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%*d %lld", &pages), 1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

/* `spacers` are allocations between the bodies that stay in use, so that free() alone cannot shrink the heap. */
static void freed_memory_is_returned_to_the_system(void **state) {
  (void)state;
  enum { BODIES = 2000, BYTES = 12000, MIN_RETURNED_BYTES = BODIES * BYTES / 2 };
  rl_body_cache *cache = rl_body_cache_new((size_t)BODIES * (BYTES + RL_BODY_OVERHEAD_BYTES));
  rl_cached_body *bodies[BODIES];
  void *spacers[BODIES];
  for (int i = 0; i < BODIES; i++) {
    bodies[i] = make_body_of_size(cache, "body", BYTES);
    assert_non_null(bodies[i]);
    spacers[i] = malloc(100);
  }
  for (int i = 0; i < BODIES; i++) rl_body_cache_release(cache, bodies[i]);
  int64_t before = read_resident_bytes();
  rl_body_cache_trim_heap(cache);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  assert_in_range(before - read_resident_bytes(), MIN_RETURNED_BYTES, before);
#endif
  (void)before;
  for (int i = 0; i < BODIES; i++) free(spacers[i]);
  rl_body_cache_free(cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bodies_are_found_by_key),
      cmocka_unit_test(the_least_recently_used_is_dropped),
      cmocka_unit_test(bodies_in_use_are_bounded_too),
      cmocka_unit_test(a_body_is_compressed_once),
      cmocka_unit_test(freed_memory_is_returned_to_the_system),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
