/* Implements login_sessions.h with an array of sessions, which a mutex guards. The time to compare an id with the sessions does
 * not depend on the id, so that it reveals nothing about valid ids. */
#include "api/login_sessions.h"

#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

typedef struct session {
  char id[RL_LOGIN_SESSION_ID_SIZE]; /* all zero: unused */
  char token_hash[RL_TOKEN_HASH_SIZE];
  int64_t expires_ns;
} session;

struct rl_login_sessions {
  pthread_mutex_t lock;
  session list[RL_LOGIN_SESSIONS_MAX];
};

rl_login_sessions *rl_login_sessions_new(void) {
  rl_login_sessions *sessions = sodium_init() < 0 ? NULL : calloc(1, sizeof *sessions);
  if (sessions != NULL) pthread_mutex_init(&sessions->lock, NULL);
  return sessions;
}

void rl_login_sessions_free(rl_login_sessions *sessions) {
  if (sessions == NULL) return;
  pthread_mutex_destroy(&sessions->lock);
  sodium_memzero(sessions->list, sizeof sessions->list);
  free(sessions);
}

static int count_of_token(const rl_login_sessions *sessions, const char *token_hash) {
  int count = 0;
  for (int i = 0; i < RL_LOGIN_SESSIONS_MAX; i++) count += strcmp(sessions->list[i].token_hash, token_hash) == 0;
  return count;
}

/* Returns the entry for a new session of the token: an unused or expired one; else the oldest session of the token that would
 * have the most sessions. So the holder of one token can't end the sessions of tokens that have fewer. The caller holds the lock.
 */
static session *find_replaceable(rl_login_sessions *sessions, int64_t now_ns, const char *token_hash) {
  session *found = NULL;
  int most = 0;
  for (int i = 0; i < RL_LOGIN_SESSIONS_MAX; i++) {
    session *entry = &sessions->list[i];
    if (entry->expires_ns <= now_ns) return entry;
    int count = count_of_token(sessions, entry->token_hash) + (strcmp(entry->token_hash, token_hash) == 0);
    if (count < most || (count == most && entry->expires_ns >= found->expires_ns)) continue;
    found = entry;
    most = count;
  }
  return found;
}

void rl_login_session_begin(rl_login_sessions *sessions, int64_t now_ns, const char *token_hash, char *id) {
  unsigned char bytes[32];
  randombytes_buf(bytes, sizeof bytes);
  sodium_bin2base64(id, RL_LOGIN_SESSION_ID_SIZE, bytes, sizeof bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  pthread_mutex_lock(&sessions->lock);
  session *replaced = find_replaceable(sessions, now_ns, token_hash);
  memcpy(replaced->id, id, RL_LOGIN_SESSION_ID_SIZE);
  snprintf(replaced->token_hash, sizeof replaced->token_hash, "%s", token_hash);
  replaced->expires_ns = now_ns + (int64_t)RL_LOGIN_SESSION_LIFETIME_S * 1000000000;
  pthread_mutex_unlock(&sessions->lock);
}

/* Compares id with every session, in a time that does not depend on id. The caller holds the lock. */
static session *find_session(rl_login_sessions *sessions, const char *id) {
  char padded[RL_LOGIN_SESSION_ID_SIZE] = {0};
  session *found = NULL;
  if (strlen(id) != RL_LOGIN_SESSION_ID_SIZE - 1) return NULL;
  memcpy(padded, id, RL_LOGIN_SESSION_ID_SIZE);
  for (int i = 0; i < RL_LOGIN_SESSIONS_MAX; i++)
    if (sodium_memcmp(sessions->list[i].id, padded, sizeof padded) == 0) found = &sessions->list[i];
  return found;
}

bool rl_login_session_find(rl_login_sessions *sessions, int64_t now_ns, const char *id, char *token_hash) {
  pthread_mutex_lock(&sessions->lock);
  const session *found = find_session(sessions, id);
  bool known = found != NULL && found->expires_ns > now_ns;
  if (known) memcpy(token_hash, found->token_hash, sizeof found->token_hash);
  pthread_mutex_unlock(&sessions->lock);
  return known;
}

int rl_login_sessions_count(rl_login_sessions *sessions, int64_t now_ns) {
  int count = 0;
  pthread_mutex_lock(&sessions->lock);
  for (int i = 0; i < RL_LOGIN_SESSIONS_MAX; i++) count += sessions->list[i].expires_ns > now_ns;
  pthread_mutex_unlock(&sessions->lock);
  return count;
}

void rl_login_session_end(rl_login_sessions *sessions, const char *id) {
  pthread_mutex_lock(&sessions->lock);
  session *found = find_session(sessions, id);
  if (found != NULL) sodium_memzero(found, sizeof *found);
  pthread_mutex_unlock(&sessions->lock);
}
