/* Implements base64.h with libsodium. */
#include "source/base64.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

int rl_source_decode_base64(const char *text, size_t max_size, const char *pointer, unsigned char **bytes, size_t *size,
                            rl_error *err) {
  size_t length = strlen(text), capacity = length / 4 * 3 + 1;
  const char *end = NULL;
  unsigned char *decoded = malloc(capacity + 1);
  if (decoded == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a buffer");
  int rc = sodium_base642bin(decoded, capacity, text, length, NULL, size, &end, sodium_base64_VARIANT_ORIGINAL);
  if (rc != 0 || end != text + length || *size == 0 || *size > max_size) {
    free(decoded);
    return rc == 0 && *size > max_size ? rl_fail_at(err, pointer, "at most %zu bytes can be posted here", max_size)
                                       : rl_fail_at(err, pointer, "must be bytes in base64");
  }
  decoded[*size] = '\0';
  *bytes = decoded;
  return 0;
}
