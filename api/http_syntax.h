/* Parsers for parts of HTTP headers and paths: decimal numbers, client addresses, media types, entity tags. Stateless,
 * thread-safe. */
#ifndef RL_API_HTTP_SYNTAX_H
#define RL_API_HTTP_SYNTAX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses a whole number from 0 to 2^53 without a sign: the syntax of ids in paths and headers. Returns false for any other text.
 * */
bool rl_decimal_parse(const char *text, int64_t *value);

/* Truncates the query of a URI in place after `maximum` parameters. Returns true if there were more. */
bool rl_query_truncate(char *uri, int maximum);

typedef struct rl_client_address {
  unsigned char bytes[16]; /* an IPv6 address whose last 64 bits are 0, or an IPv4 address as ::ffff:a.b.c.d */
} rl_client_address;
/* Sets *address to the client address that the nearest proxy named: the last element of X-Forwarded-For or, if that header is
 * absent, of Forwarded (RFC 7239). NULL stands for an absent header. Returns false if the headers contain no address. */
bool rl_client_address_parse(const char *x_forwarded_for, const char *forwarded, rl_client_address *address);

/* Returns true when content_type is application/json with any parameters. Accepts NULL. */
bool rl_media_type_is_json(const char *content_type);

enum { RL_ETAG_SIZE = 40 };
/* Writes the strong ETag of data, a quoted hexadecimal hash, into etag[RL_ETAG_SIZE]. */
void rl_etag_hash(const void *data, size_t size, char *etag);
/* Returns true when the Accept-Encoding header allows gzip: it names gzip with a weight other than 0. header may be NULL. */
bool rl_accepts_gzip(const char *header);
/* Returns true when the If-None-Match header, a list of ETags or "*", matches this ETag. An ETag in the list may begin with W/.
 * header may be NULL. */
bool rl_etag_matches(const char *header, const char *etag);

#endif
