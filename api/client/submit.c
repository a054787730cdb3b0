/* Implements submit.h. Gives each submission a random Idempotency-Key. */
#include "api/client/submit.h"

#include <sodium.h>

#include "api/client/retry.h"

enum { KEY_BYTES = 16, KEY_SIZE = 2 * KEY_BYTES + 1 };

static void make_key(char key[KEY_SIZE]) {
  unsigned char bytes[KEY_BYTES];
  randombytes_buf(bytes, sizeof bytes);
  sodium_bin2hex(key, KEY_SIZE, bytes, sizeof bytes);
}

int rl_submit_job(const rl_cli *cli, const char *path, const char *body, rl_body *response, rl_error *err) {
  char key[KEY_SIZE];
  rl_retry retry = {0};
  rl_error failure = {0};
  make_key(key);
  while (rl_http_post_with_key(cli, path, body, key, response, &failure) < 0) {
    if (failure.domain == RL_WIRE && failure.code == RL_WIRE_TRUNCATED) retry.daemon_was_reached = true;
    if (rl_retry_wait(&retry, &failure)) continue;
    if (err != NULL) *err = failure;
    return -1;
  }
  return 0;
}
