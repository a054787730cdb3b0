#include "source/source_cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 2 };

static struct {
  pthread_mutex_t lock;
  struct {
    char sha256[RL_SHA256_SIZE];
    char *text;
    size_t length;
  } kept[KEPT];
  unsigned next; /* where the next one goes */
} shelf = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int place_of(const char *sha256) {
  for (int i = 0; i < KEPT; i++)
    if (strcmp(shelf.kept[i].sha256, sha256) == 0) return i;
  return -1;
}

int rl_source_cache_put(const char *text, size_t length, rl_error *err) {
  char sha256[RL_SHA256_SIZE], *copy = malloc(length + 1);
  if (copy == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for posted code");
  memcpy(copy, text, length);
  copy[length] = '\0';
  rl_sha256(text, length, sha256);
  pthread_mutex_lock(&shelf.lock);
  int place = place_of(sha256);
  if (place < 0) place = (int)(shelf.next++ % KEPT);
  free(shelf.kept[place].text);
  shelf.kept[place].text = copy;
  shelf.kept[place].length = length;
  memcpy(shelf.kept[place].sha256, sha256, sizeof sha256);
  pthread_mutex_unlock(&shelf.lock);
  return 0;
}

int rl_source_cache_get(const char *sha256, rl_source *source, rl_error *err) {
  pthread_mutex_lock(&shelf.lock);
  int place = place_of(sha256);
  int rc = place >= 0 ? rl_source_read(shelf.kept[place].text, shelf.kept[place].length, source, err)
                      : rl_fail_at(err, "/source", "the source of this hash did not come");
  pthread_mutex_unlock(&shelf.lock);
  return rc;
}
