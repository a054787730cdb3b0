/* The small syntaxes of HTTP headers and paths: decimal numbers, media types, entity tags. Stateless, thread-safe. */
#ifndef RL_API_HTTP_SYNTAX_H
#define RL_API_HTTP_SYNTAX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses a whole decimal number from 0 to 2^53 without a sign, as ids in paths and headers are. */
bool rl_decimal_parse(const char *text, int64_t *value);

/* Returns true when content_type is application/json with any parameters; Accepts NULL. */
bool rl_media_type_is_json(const char *content_type);

enum { RL_ETAG_SIZE = 40 };
/* Writes a strong ETag of these bytes, a quoted hexadecimal hash, into etag[RL_ETAG_SIZE]. */
void rl_etag_make(const void *data, size_t size, char *etag);
/* Returns true when If-None-Match (a list of ETags, W/ allowed, or *) has this ETag; header may be NULL. */
bool rl_etag_matches(const char *header, const char *etag);

#endif
