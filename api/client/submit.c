/* The key of each submission is random. */
#include "api/client/submit.h"

#include <stdio.h>
#include <sys/random.h>

#include "api/client/retry.h"

enum { KEY_BYTES = 16, KEY_SIZE = 2 * KEY_BYTES + 1 };

static int make_key(char key[KEY_SIZE], rl_error *err) {
  unsigned char bytes[KEY_BYTES];
  if (getrandom(bytes, sizeof bytes, 0) != KEY_BYTES) return rl_fail_errno(err, "can't make an Idempotency-Key");
  for (int i = 0; i < KEY_BYTES; i++) snprintf(key + 2 * i, 3, "%02x", bytes[i]);
  return 0;
}

int rl_submit(const rl_cli *cli, const char *path, const char *body, rl_body *response, rl_error *err) {
  char key[KEY_SIZE];
  rl_retry retry = {0};
  rl_error failure = {0};
  if (make_key(key, err) < 0) return -1;
  while (rl_http_post_with_key(cli, path, body, key, response, &failure) < 0) {
    if (failure.domain == RL_WIRE && failure.code == RL_WIRE_TRUNCATED) retry.daemon_was_reached = true;
    if (rl_retry_wait(&retry, &failure)) continue;
    if (err != NULL) *err = failure;
    return -1;
  }
  return 0;
}
