/* Replies to requests. The rl_reply functions set the request's response, which dispatch.c passes to MHD. They return -1 if
 * memory is exhausted. */
#ifndef RL_API_REPLY_H
#define RL_API_REPLY_H

#include <cjson/cJSON.h>
#include <microhttpd.h>

#include "api/http_request.h"
#include "api/response.h"

/* Reply with response, document or text, and take ownership of it. NULL means that its allocation failed. */
int rl_reply(rl_http_request *request, int status, struct MHD_Response *response, rl_error *err);
int rl_reply_json(rl_http_request *request, int status, cJSON *document, rl_error *err);
/* Replies 202 with the location of the job or suite run that the request has created. is_replayed: an earlier request with the
 * same Idempotency-Key has created it. */
int rl_reply_accepted(rl_http_request *request, const char *location, bool is_replayed, cJSON *document, rl_error *err);
int rl_reply_text(rl_http_request *request, int status, char *text, const char *content_type, rl_error *err);
/* Replies with the problem document of request->err. */
int rl_reply_problem(rl_http_request *request, rl_error *err);

#endif
