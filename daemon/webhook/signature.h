/* Signs webhook posts according to the Standard Webhooks specification
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md). Stateless. */
#ifndef RL_WEBHOOK_SIGNATURE_H
#define RL_WEBHOOK_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { RL_WEBHOOK_KEY_MIN = 24, RL_WEBHOOK_KEY_MAX = 64, RL_WEBHOOK_SIGNATURE_SIZE = 64 };

typedef struct rl_webhook_key {
  unsigned char bytes[RL_WEBHOOK_KEY_MAX];
  size_t length;
} rl_webhook_key;

/* Decodes a key: "whsec_" followed by 24 to 64 bytes in base64; the prefix may be absent. Fails with RL_INPUT if the text has
 * another form. */
int rl_webhook_key_decode(const char *text, rl_webhook_key *key, rl_error *err);
/* Reads the key from the first line of a file. A relative path is relative to $CREDENTIALS_DIRECTORY (systemd's LoadCredential=).
 * Fails with RL_INPUT; the message contains the path. */
int rl_webhook_key_read(const char *path, rl_webhook_key *key, rl_error *err);
void rl_webhook_key_clear(rl_webhook_key *key);

/* Writes "v1," followed by the HMAC-SHA256 of "ID.TIMESTAMP.BODY" in base64 into signature. timestamp_s: seconds since 1970. */
void rl_webhook_sign(const rl_webhook_key *key, const char *id, int64_t timestamp_s, const char *body,
                     char signature[RL_WEBHOOK_SIGNATURE_SIZE]);

#endif
