/* The daemon over HTTP, through libcurl. An answer of 400 or more becomes an rl_error from its problem document (RL_HTTP, code:
 * the status); no answer at all is RL_WIRE. Ctrl-C ends a request with RL_SYS, EINTR. One thread. */
#ifndef RL_CLIENT_HTTP_H
#define RL_CLIENT_HTTP_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "api/client/cli.h"
#include "api/client/sse.h"

typedef struct rl_text { /* grows; starts zeroed */
  char *data;            /* NUL-terminated once there is any */
  size_t length;
} rl_text;
void rl_text_free(rl_text *text);

/* Send body (NULL: none) and take the answer's body. path starts with "/". */
int rl_http_send(const rl_cli *cli, const char *method, const char *path, const char *body, rl_text *answer, rl_error *err);
/* GET path as a JSON document, which the caller deletes; NULL and err on any failure. */
cJSON *rl_http_get(const rl_cli *cli, const char *path, rl_error *err);
/* Read an event stream until it ends, `parser` stops it (0), or the connection breaks (-1, RL_WIRE). */
int rl_http_stream(const rl_cli *cli, const char *path, rl_sse *parser, rl_error *err);

static inline void rl_json_free(cJSON **document) { cJSON_Delete(*document); }
#endif
