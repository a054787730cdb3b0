/* Sends HTTP requests to the daemon with libcurl. A reply with a status other than 2xx becomes an RL_HTTP error with the status
 * as its code and the text of the problem document. If the daemon does not respond, a request fails with RL_WIRE: with the code
 * RL_WIRE_TRUNCATED if the connection broke after it was established, else with RL_WIRE_CLOSED. Ctrl-C ends a request with
 * RL_ERRNO, EINTR. Not thread-safe. */
#ifndef RL_CLIENT_HTTP_H
#define RL_CLIENT_HTTP_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "api/client/cli.h"
#include "api/client/sse.h"

typedef struct rl_body { /* body of a response; initially zeroed */
  char *data;            /* NUL-terminated; NULL: empty */
  size_t length;
} rl_body;
void rl_body_free(rl_body *body);

/* Sends body (NULL: none) and receives the response's body. path starts with "/". */
int rl_http_send(const rl_cli *cli, const char *method, const char *path, const char *body, rl_body *response, rl_error *err);
/* Posts a JSON body with an Idempotency-Key. */
int rl_http_post_with_key(const rl_cli *cli, const char *path, const char *body, const char *key, rl_body *response,
                          rl_error *err);
/* Sends the rest of the file as the body of a POST, without reading it into memory as a whole. */
int rl_http_upload(const rl_cli *cli, const char *path, FILE *file, rl_body *response, rl_error *err);
enum { RL_FILE_NAME_SIZE = 128 };
typedef struct rl_download {
  bool (*write)(void *context, const char *bytes, size_t length); /* returns false to end the request */
  void *context;
  char file_name[RL_FILE_NAME_SIZE]; /* file name in the header Content-Disposition, without a folder; "": the header has none */
} rl_download;
/* Gets a file and passes its bytes to download->write. Fails with RL_HTTP and code 0 if the daemon ended the reply early, with
 * RL_ERRNO if `write` returned false. */
int rl_http_download(const rl_cli *cli, const char *path, rl_download *download, rl_error *err);
/* Gets a JSON document, which the caller deletes. Returns NULL and fills err on failure. */
cJSON *rl_http_get(const rl_cli *cli, const char *path, rl_error *err);
/* Calls rl_http_get for /jobs/ID followed by subpath ("/results", or "" for the job itself). */
cJSON *rl_http_get_job(const rl_cli *cli, long long id, const char *subpath, rl_error *err);
/* Reads an event stream. Returns 0 when the stream ends or the parser's on_event returns false; −1 with RL_WIRE when the
 * connection breaks. */
int rl_http_read_events(const rl_cli *cli, const char *path, rl_sse *parser, rl_error *err);

static inline void rl_json_free(cJSON **document) { cJSON_Delete(*document); }
#endif
