#include "api/sessions.h"

#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

typedef struct session {
  char id[RL_SESSION_ID_SIZE]; /* all zero: free */
  char hash[RL_TOKEN_HASH_SIZE];
  int64_t expires_ns;
} session;

struct rl_sessions {
  pthread_mutex_t lock;
  session list[RL_SESSIONS_MAX];
};

rl_sessions *rl_sessions_new(void) {
  rl_sessions *sessions = sodium_init() < 0 ? NULL : calloc(1, sizeof *sessions);
  if (sessions != NULL) pthread_mutex_init(&sessions->lock, NULL);
  return sessions;
}

void rl_sessions_free(rl_sessions *sessions) {
  if (sessions == NULL) return;
  pthread_mutex_destroy(&sessions->lock);
  sodium_memzero(sessions->list, sizeof sessions->list);
  free(sessions);
}

void rl_session_begin(rl_sessions *sessions, int64_t now_ns, const char *hash, char *id) {
  unsigned char bytes[32];
  randombytes_buf(bytes, sizeof bytes);
  sodium_bin2base64(id, RL_SESSION_ID_SIZE, bytes, sizeof bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  pthread_mutex_lock(&sessions->lock);
  session *oldest = sessions->list; /* a free one has expires_ns 0 */
  for (int i = 1; i < RL_SESSIONS_MAX; i++)
    if (sessions->list[i].expires_ns < oldest->expires_ns) oldest = &sessions->list[i];
  memcpy(oldest->id, id, RL_SESSION_ID_SIZE);
  snprintf(oldest->hash, sizeof oldest->hash, "%s", hash);
  oldest->expires_ns = now_ns + (int64_t)RL_SESSION_S * 1000000000;
  pthread_mutex_unlock(&sessions->lock);
}

/* Compares with every one, in a time that does not depend on the id. Called under the lock. */
static session *find(rl_sessions *sessions, const char *id) {
  char padded[RL_SESSION_ID_SIZE] = {0};
  session *found = NULL;
  if (strlen(id) != RL_SESSION_ID_SIZE - 1) return NULL;
  memcpy(padded, id, RL_SESSION_ID_SIZE);
  for (int i = 0; i < RL_SESSIONS_MAX; i++)
    if (sodium_memcmp(sessions->list[i].id, padded, sizeof padded) == 0) found = &sessions->list[i];
  return found;
}

bool rl_session_find(rl_sessions *sessions, int64_t now_ns, const char *id, char *hash) {
  pthread_mutex_lock(&sessions->lock);
  const session *found = find(sessions, id);
  bool known = found != NULL && found->expires_ns > now_ns;
  if (known) memcpy(hash, found->hash, sizeof found->hash);
  pthread_mutex_unlock(&sessions->lock);
  return known;
}

int rl_sessions_count(rl_sessions *sessions, int64_t now_ns) {
  int count = 0;
  pthread_mutex_lock(&sessions->lock);
  for (int i = 0; i < RL_SESSIONS_MAX; i++) count += sessions->list[i].expires_ns > now_ns;
  pthread_mutex_unlock(&sessions->lock);
  return count;
}

void rl_session_end(rl_sessions *sessions, const char *id) {
  pthread_mutex_lock(&sessions->lock);
  session *found = find(sessions, id);
  if (found != NULL) sodium_memzero(found, sizeof *found);
  pthread_mutex_unlock(&sessions->lock);
}
