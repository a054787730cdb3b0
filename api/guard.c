#include "api/guard.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool digits(const char *text) {
  int count = 0;
  for (; isdigit((unsigned char)*text); text++) count++;
  return count >= 1 && count <= 5 && *text == '\0';
}

bool rl_guard_host_name(const char *host, char *name, int size) {
  bool bracketed = host[0] == '[';
  const char *start = host + bracketed, *end = bracketed ? strchr(start, ']') : start + strcspn(start, ":");
  if (end == NULL || end == start || end - start >= size) return false;
  const char *rest = end + bracketed;
  if (*rest != '\0' && !(*rest == ':' && digits(rest + 1))) return false;
  for (const char *c = start; c < end; c++) {
    bool good = isalnum((unsigned char)*c) || *c == '.' || *c == '-' || *c == '_' || (bracketed && *c == ':');
    if (!good) return false;
    name[c - start] = (char)tolower((unsigned char)*c);
  }
  name[end - start] = '\0';
  return true;
}

static bool same_address(const char *name, const char *address) {
  unsigned char left[sizeof(struct in6_addr)], right[sizeof left];
  if (strcasecmp(name, address) == 0) return true;
  return inet_pton(AF_INET6, name, left) == 1 && inet_pton(AF_INET6, address, right) == 1 &&
         memcmp(left, right, sizeof left) == 0;
}

static bool loopback(const char *name) {
  struct in_addr four;
  if (strcmp(name, "localhost") == 0 || same_address(name, "::1")) return true;
  return inet_pton(AF_INET, name, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
}

static bool listed(const char *name, const char *list) {
  size_t length = strlen(name);
  while (*list != '\0') {
    list += strspn(list, ", ");
    size_t item = strcspn(list, ", ");
    if (item == length && strncasecmp(list, name, length) == 0) return true;
    list += item;
  }
  return false;
}

bool rl_guard_host(const char *host, const char *address, const char *local, const char *allowed) {
  char name[256];
  if (host == NULL || !rl_guard_host_name(host, name, sizeof name)) return false;
  return loopback(name) || same_address(name, address) || (local != NULL && same_address(name, local)) || listed(name, allowed);
}

bool rl_guard_origin(const char *origin, const char *host) {
  if (origin == NULL) return true;
  static const char *const schemes[] = {"http://", "https://"};
  for (int i = 0; i < 2; i++) {
    size_t length = strlen(schemes[i]);
    if (strncasecmp(origin, schemes[i], length) == 0) return host != NULL && strcasecmp(origin + length, host) == 0;
  }
  return false;
}

bool rl_guard_fetch_site(const char *site) { return site == NULL || strcasecmp(site, "cross-site") != 0; }
