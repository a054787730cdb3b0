/* Implements http_syntax.h with parsers that allocate no memory. */
#include "api/http_syntax.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
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

bool rl_query_truncate(char *uri, int maximum) {
  char *separator = strchr(uri, '?');
  for (int i = 0; i < maximum && separator != NULL; i++) separator = strchr(separator + 1, '&');
  if (separator == NULL) return false;
  *separator = '\0';
  return true;
}

/* Returns the last element of a comma-separated list, without leading blanks. */
static const char *last_element(const char *list) {
  const char *comma = strrchr(list, ',');
  const char *element = comma != NULL ? comma + 1 : list;
  return element + strspn(element, " \t");
}

/* Returns the value of the parameter "for" in an element of a Forwarded header; NULL: the element has no such parameter. */
static const char *find_for_parameter(const char *element) {
  while (element != NULL) {
    element += strspn(element, "; \t");
    if (strncasecmp(element, "for=", 4) == 0) return element + 4;
    element = strchr(element, ';');
  }
  return NULL;
}

/* Copies the address without brackets and port from "1.2.3.4", "1.2.3.4:5", "::1", "[::1]" or "[::1]:5". The text may be in
 * quotes. */
static void copy_host(const char *text, char *host, size_t size) {
  text += *text == '"';
  bool bracketed = *text == '[';
  text += bracketed;
  size_t length = strcspn(text, bracketed ? "]" : "\"; \t");
  const char *colon = memchr(text, ':', length);
  if (!bracketed && colon != NULL && memchr(colon + 1, ':', length - (size_t)(colon + 1 - text)) == NULL)
    length = (size_t)(colon - text);
  snprintf(host, size, "%.*s", length < size ? (int)length : 0, text);
}

bool rl_client_address_parse(const char *x_forwarded_for, const char *forwarded, rl_client_address *address) {
  static const unsigned char ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff}; /* ::ffff: of an IPv4-mapped IPv6 address */
  const char *text = x_forwarded_for != NULL ? last_element(x_forwarded_for)
                     : forwarded != NULL     ? find_for_parameter(last_element(forwarded))
                                             : NULL;
  char host[INET6_ADDRSTRLEN];
  rl_client_address found = {{0}};
  if (text == NULL) return false;
  copy_host(text, host, sizeof host);
  memcpy(found.bytes, ipv4_prefix, sizeof ipv4_prefix);
  if (inet_pton(AF_INET, host, found.bytes + sizeof ipv4_prefix) != 1) {
    if (inet_pton(AF_INET6, host, found.bytes) != 1) return false;
    if (memcmp(found.bytes, ipv4_prefix, sizeof ipv4_prefix) != 0) memset(found.bytes + 8, 0, 8);
  }
  *address = found;
  return true;
}

bool rl_media_type_is_json(const char *content_type) {
  static const char json[] = "application/json";
  if (content_type == NULL || strncasecmp(content_type, json, sizeof json - 1) != 0) return false;
  const char *rest = content_type + sizeof json - 1;
  rest += strspn(rest, " \t");
  return *rest == '\0' || *rest == ';';
}

void rl_etag_hash(const void *data, size_t size, char *etag) {
  unsigned char digest[16];
  char hex[2 * sizeof digest + 1];
  crypto_generichash(digest, sizeof digest, data, size, NULL, 0);
  sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
  snprintf(etag, RL_ETAG_SIZE, "\"%s\"", hex);
}

/* Returns the end of the first ETag of the list; NULL if its quotes are not closed. A comma inside the quotes belongs to the
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

/* Returns true when the parameters of a list item give it a weight of 0, as ";q=0" does. */
static bool has_zero_weight(const char *parameters) {
  const char *weight = strcasestr(parameters, "q=");
  const char *comma = strchr(parameters, ',');
  return weight != NULL && (comma == NULL || weight < comma) && strtod(weight + 2, NULL) == 0;
}

bool rl_accepts_gzip(const char *header) {
  while (header != NULL && *header != '\0') {
    header += strspn(header, " \t,");
    size_t length = strcspn(header, " \t,;");
    if (length == strlen("gzip") && strncasecmp(header, "gzip", length) == 0) return !has_zero_weight(header + length);
    header += strcspn(header, ",");
  }
  return false;
}
