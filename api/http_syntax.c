#include "api/http_syntax.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool rl_decimal_parse(const char *text, int64_t *value) {
  int64_t sum = 0;
  if (*text == '\0') return false;
  for (; *text >= '0' && *text <= '9'; text++) {
    sum = sum * 10 + (*text - '0');
    if (sum > INT64_C(1) << 53) return false;
  }
  if (*text != '\0') return false;
  *value = sum;
  return true;
}

bool rl_media_type_is_json(const char *content_type) {
  static const char json[] = "application/json";
  if (content_type == NULL || strncasecmp(content_type, json, sizeof json - 1) != 0) return false;
  const char *rest = content_type + sizeof json - 1;
  rest += strspn(rest, " \t");
  return *rest == '\0' || *rest == ';';
}

void rl_etag_make(const void *data, size_t size, char *etag) {
  unsigned char digest[16];
  char hex[2 * sizeof digest + 1];
  crypto_generichash(digest, sizeof digest, data, size, NULL, 0);
  sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
  snprintf(etag, RL_ETAG_SIZE, "\"%s\"", hex);
}

/* Returns the end of the ETag at the front of the list, NULL when its quotes are not closed. A comma inside quotes belongs to the
 * ETag. */
static const char *skip_etag(const char *list) {
  if (*list != '"') return list + strcspn(list, ",");
  const char *quote = strchr(list + 1, '"');
  return quote != NULL ? quote + 1 : NULL;
}

bool rl_etag_matches(const char *header, const char *etag) {
  size_t length = strlen(etag);
  while (header != NULL && *header != '\0') {
    header += strspn(header, " \t,");
    if (*header == '*') return true;
    if (strncmp(header, "W/", 2) == 0) header += 2;
    if (strncmp(header, etag, length) == 0 && strchr(" \t,", header[length]) != NULL) return true;
    header = skip_etag(header);
  }
  return false;
}
