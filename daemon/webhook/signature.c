/* Implements signature.h with libsodium. */
#include "webhook/signature.h"

#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define PREFIX "whsec_"

RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

int rl_webhook_key_decode(const char *text, rl_webhook_key *key, rl_error *err) {
  rl_webhook_key decoded = {0};
  const char *end;
  if (sodium_init() < 0) return rl_fail(err, RL_ERRNO, 0, "libsodium can't be initialised");
  if (strncmp(text, PREFIX, strlen(PREFIX)) == 0) text += strlen(PREFIX);
  int rc = sodium_base642bin(decoded.bytes, sizeof decoded.bytes, text, strlen(text), NULL, &decoded.length, &end,
                             sodium_base64_VARIANT_ORIGINAL);
  if (rc == 0 && *end == '\0' && decoded.length >= RL_WEBHOOK_KEY_MIN) *key = decoded;
  else
    rc = rl_fail(err, RL_INPUT, 0,
                 "the key must be " PREFIX " and %d to %d bytes in base64, as echo " PREFIX
                 "$(head -c 32 /dev/urandom | base64) prints",
                 RL_WEBHOOK_KEY_MIN, RL_WEBHOOK_KEY_MAX);
  rl_webhook_key_clear(&decoded);
  return rc;
}

static int find_key_file(const char *path, char key_path[PATH_MAX], rl_error *err) {
  const char *folder = path[0] == '/' ? NULL : getenv("CREDENTIALS_DIRECTORY");
  if (path[0] != '/' && folder == NULL)
    return rl_fail(err, RL_INPUT, 0, "webhook_secret_file is a relative path, and systemd has set no $CREDENTIALS_DIRECTORY");
  int length = folder != NULL ? snprintf(key_path, PATH_MAX, "%s/%s", folder, path) : snprintf(key_path, PATH_MAX, "%s", path);
  return length < PATH_MAX ? 0 : rl_fail(err, RL_INPUT, 0, "the path of webhook_secret_file is too long");
}

int rl_webhook_key_read(const char *path, rl_webhook_key *key, rl_error *err) {
  char key_path[PATH_MAX], line[256] = "";
  if (find_key_file(path, key_path, err) < 0) return -1;
  RL_CLEANUP(close_file) FILE *file = fopen(key_path, "re");
  if (file == NULL || (fgets(line, sizeof line, file) == NULL && ferror(file))) {
    rl_fail_errno(err, "webhook_secret_file %.200s", key_path);
    err->domain = RL_INPUT;
    return -1;
  }
  line[strcspn(line, " \t\r\n")] = '\0';
  int rc = rl_webhook_key_decode(line, key, err) < 0 ? rl_wrap(err, "%.200s:1", key_path) : 0;
  sodium_memzero(line, sizeof line);
  return rc;
}

void rl_webhook_key_clear(rl_webhook_key *key) { sodium_memzero(key, sizeof *key); }

void rl_webhook_sign(const rl_webhook_key *key, const char *id, int64_t timestamp_s, const char *body,
                     char signature[RL_WEBHOOK_SIGNATURE_SIZE]) {
  crypto_auth_hmacsha256_state state;
  unsigned char hash[crypto_auth_hmacsha256_BYTES];
  char head[96];
  const int length = snprintf(head, sizeof head, "%.48s.%lld.", id, (long long)timestamp_s);
  crypto_auth_hmacsha256_init(&state, key->bytes, key->length);
  crypto_auth_hmacsha256_update(&state, (const unsigned char *)head, (unsigned long long)length);
  crypto_auth_hmacsha256_update(&state, (const unsigned char *)body, strlen(body));
  crypto_auth_hmacsha256_final(&state, hash);
  memcpy(signature, "v1,", 3);
  sodium_bin2base64(signature + 3, RL_WEBHOOK_SIGNATURE_SIZE - 3, hash, sizeof hash, sodium_base64_VARIANT_ORIGINAL);
}
