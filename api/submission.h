/* Functions that the handlers of POST /jobs, /imports and /suites/{name}/runs share: the Idempotency-Key, the permission to post
 * code, and the reply. */
#ifndef RL_API_SUBMISSION_H
#define RL_API_SUBMISSION_H

#include <cjson/cJSON.h>

#include "api/http_request.h"
#include "request/spec.h"

/* Sets *key to the Idempotency-Key header; NULL: the request has none. Fails with RL_INPUT if it is malformed. */
int rl_http_request_idempotency_key(rl_http_request *request, const char **key, rl_error *err);
/* Sets *policy: whether this client may post code. Posting code requires a token, even if the server requires no token for other
 * requests. */
int rl_http_request_job_policy(rl_http_request *request, rl_job_policy *policy, rl_error *err);
/* Replies 202 with the job's id and state. is_replayed: an earlier request with the same Idempotency-Key submitted the job. */
int rl_http_request_reply_job(rl_http_request *request, int64_t id, rl_job_state state, bool is_replayed, rl_error *err);
/* Returns the body of the reply 202 for a submitted job; NULL if memory is exhausted. */
cJSON *rl_accepted_job_json(int64_t id, rl_job_state state);

#endif
