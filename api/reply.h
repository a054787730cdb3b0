/* Makes responses and replies to calls. The rl_reply functions queue a response on the call's connection; -1 if memory is
 * exhausted or the connection accepts no response. */
#ifndef RL_API_REPLY_H
#define RL_API_REPLY_H

#include <cjson/cJSON.h>
#include <microhttpd.h>

#include "api/call.h"

/* Returns a response that owns `text`, which is malloc'ed; NULL if memory is exhausted or text is NULL. */
struct MHD_Response *rl_response_text(char *text, size_t length, const char *type);
struct MHD_Response *rl_response_empty(void); /* NULL if memory is exhausted */
void rl_response_add_header(struct MHD_Response *response, const char *name, const char *value);

/* These own response, document or text from then on. It may be NULL: its allocation failed. */
int rl_reply(rl_call *call, int status, struct MHD_Response *response, rl_error *err);
int rl_reply_json(rl_call *call, int status, cJSON *document, rl_error *err);
int rl_reply_text(rl_call *call, int status, char *text, const char *type, rl_error *err);
/* Replies with the problem document of call->err. */
int rl_reply_problem(rl_call *call, rl_error *err);

#endif
