/* Sets the response of a request; dispatch.c passes the response to MHD after the handler. All functions return -1 if memory is
 * exhausted. */
#ifndef RL_API_REPLY_H
#define RL_API_REPLY_H

#include <cjson/cJSON.h>
#include <microhttpd.h>

#include "api/http_request.h"
#include "api/response.h"

/* The functions with a response, a document or a malloc'ed text take ownership of it. NULL in its place means that memory was
 * exhausted when the caller made it; the function then fails. */
int rl_reply(rl_http_request *request, int status, struct MHD_Response *response, rl_error *err);
int rl_reply_json(rl_http_request *request, int status, cJSON *document, rl_error *err);
/* Replies 202 with the document and, in the Location header, the path of the job or suite run that was created. is_replayed: an
 * earlier request with the same Idempotency-Key created it. */
int rl_reply_accepted(rl_http_request *request, const char *location, bool is_replayed, cJSON *document, rl_error *err);
int rl_reply_text(rl_http_request *request, int status, char *text, const char *content_type, rl_error *err);
/* Replies with the problem document of request->err. */
int rl_reply_problem(rl_http_request *request, rl_error *err);

#endif
