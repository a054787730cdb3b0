/* Parses the Host and Origin headers and compares their hosts. */
#include "api/origin_check.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_port(const char *text) {
  int count = 0;
  for (; isdigit((unsigned char)*text); text++) count++;
  return count >= 1 && count <= 5 && *text == '\0';
}

/* Copies the host of "name[:port]", "1.2.3.4[:port]" or "[::1][:port]" in lower case and without brackets into name[size].
 * Returns false for any other text. */
static bool parse_host(const char *host, char *name, int size) {
  bool bracketed = host[0] == '[';
  const char *start = host + bracketed, *end = bracketed ? strchr(start, ']') : start + strcspn(start, ":");
  if (end == NULL || end == start || end - start >= size) return false;
  const char *rest = end + bracketed;
  if (*rest != '\0' && !(*rest == ':' && is_port(rest + 1))) return false;
  for (const char *c = start; c < end; c++) {
    bool valid = isalnum((unsigned char)*c) || *c == '.' || *c == '-' || *c == '_' || (bracketed && *c == ':');
    if (!valid) return false;
    name[c - start] = (char)tolower((unsigned char)*c);
  }
  name[end - start] = '\0';
  return true;
}

static bool is_same_address(const char *name, const char *address) {
  unsigned char left[sizeof(struct in6_addr)], right[sizeof left];
  if (strcasecmp(name, address) == 0) return true;
  return inet_pton(AF_INET6, name, left) == 1 && inet_pton(AF_INET6, address, right) == 1 &&
         memcmp(left, right, sizeof left) == 0;
}

static bool is_loopback(const char *name) {
  struct in_addr ipv4;
  if (strcmp(name, "localhost") == 0 || is_same_address(name, "::1")) return true;
  return inet_pton(AF_INET, name, &ipv4) == 1 && ntohl(ipv4.s_addr) >> 24 == 127;
}

static bool is_in_list(const char *name, const char *list) {
  size_t length = strlen(name);
  while (*list != '\0') {
    list += strspn(list, ", ");
    size_t item_length = strcspn(list, ", ");
    if (item_length == length && strncasecmp(list, name, length) == 0) return true;
    list += item_length;
  }
  return false;
}

bool rl_host_is_allowed(const char *host, const char *address, const char *local_address, const char *allowed_hosts) {
  char name[256];
  if (host == NULL || !parse_host(host, name, sizeof name)) return false;
  return is_loopback(name) || is_same_address(name, address) || (local_address != NULL && is_same_address(name, local_address)) ||
         is_in_list(name, allowed_hosts);
}

bool rl_origin_is_allowed(const char *origin, const char *host) {
  if (origin == NULL) return true;
  static const char *const schemes[] = {"http://", "https://"};
  for (int i = 0; i < 2; i++) {
    size_t length = strlen(schemes[i]);
    if (strncasecmp(origin, schemes[i], length) == 0) return host != NULL && strcasecmp(origin + length, host) == 0;
  }
  return false;
}

bool rl_fetch_site_is_allowed(const char *site) { return site == NULL || strcasecmp(site, "cross-site") != 0; }
