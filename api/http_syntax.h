/* The small syntaxes of HTTP headers and paths: decimal numbers, media types, entity tags. Stateless, thread-safe. */
#ifndef RL_API_HTTP_SYNTAX_H
#define RL_API_HTTP_SYNTAX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses a whole decimal number from 0 to 2^53 without a sign, as ids in paths and headers are. */
bool rl_decimal_parse(const char *text, int64_t *value);

/* Cuts the query of a URI, in place, after `maximum` parameters. Returns true if there were more. */
bool rl_query_cut(char *uri, int maximum);

typedef struct rl_client_address {
  unsigned char bytes[16]; /* of an IPv6 /64, or of an IPv4 address as ::ffff:a.b.c.d */
} rl_client_address;
/* Returns the client that the nearest proxy names: the last in X-Forwarded-For, or, without that, in Forwarded (RFC 7239). Either
 * may be NULL. Returns false if there is no address. */
bool rl_client_address_parse(const char *x_forwarded_for, const char *forwarded, rl_client_address *address);

/* Returns true when content_type is application/json with any parameters. Accepts NULL. */
bool rl_media_type_is_json(const char *content_type);

enum { RL_ETAG_SIZE = 40 };
/* Writes the strong ETag of data, a quoted hexadecimal hash, into etag[RL_ETAG_SIZE]. */
void rl_etag_hash(const void *data, size_t size, char *etag);
/* Returns true when Accept-Encoding names gzip, not with q=0; header may be NULL. */
bool rl_accepts_gzip(const char *header);
/* Returns true when If-None-Match (a list of ETags, W/ allowed, or *) has this ETag; header may be NULL. */
bool rl_etag_matches(const char *header, const char *etag);

#endif
