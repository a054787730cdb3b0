/* Fuzzes the reader of configuration files. An error must name the file, and all values must be within their bounds. */
#include <stdlib.h>
#include <string.h>

#include "config.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static int read_text(const char *text, size_t size, rl_config *config) {
  rl_error err;
  FILE *stream = fmemopen((void *)(uintptr_t)text, size, "r");
  if (stream == NULL) return -1;
  int rc = rl_config_read(stream, "fuzz", config, &err);
  fclose(stream);
  if (rc < 0 && strncmp(err.message, "fuzz:", 5) != 0) abort();
  return rc;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  static rl_config config;
  memset(&config, 0, sizeof config);
  if (size > 0) (void)read_text((const char *)data, size, &config);
  for (const rl_config_key *key = rl_config_keys; key->name != NULL; key++) {
    const void *value = (const char *)&config + key->offset;
    if (key->type == RL_KEY_TEXT && memchr(value, '\0', key->size) == NULL) abort();
    if (key->type == RL_KEY_INT && *(const int64_t *)value != 0 &&
        (*(const int64_t *)value < key->minimum || *(const int64_t *)value > key->maximum))
      abort();
  }
  return 0;
}
