/* Implements submission.h. */
#include "api/submission.h"

#include <stdio.h>
#include <string.h>

#include "api/auth.h"
#include "api/reply.h"
#include "api/server_internal.h"

enum { MAX_KEY_LENGTH = 128 };

int rl_http_request_idempotency_key(rl_http_request *request, const char **key, rl_error *err) {
  *key = rl_http_request_header(request, "Idempotency-Key");
  if (*key == NULL) return 0;
  size_t length = strlen(*key);
  for (const char *c = *key; *c != '\0'; c++)
    if (*c < 0x21 || *c > 0x7e) length = 0;
  if (length >= 1 && length <= MAX_KEY_LENGTH) return 0;
  return rl_http_request_fail_parameter(request, err, "Idempotency-Key", "must be 1 to 128 visible ASCII characters");
}

int rl_http_request_job_policy(rl_http_request *request, rl_job_policy *policy, rl_error *err) {
  const rl_config *config = request->server->config;
  bool authorized = false;
  if (config->allow_source && rl_http_request_find_credential(request, &authorized, err) < 0) return -1;
  *policy = (rl_job_policy){.posting = !config->allow_source ? RL_POSTING_OFF
                                       : authorized          ? RL_POSTING_ALLOWED
                                                             : RL_POSTING_NEEDS_TOKEN,
                            .source_buffer_bytes = config->source_buffer_bytes,
                            .builds = config->builds};
  return 0;
}

cJSON *rl_accepted_job_json(int64_t id, rl_job_state state) {
  static const struct {
    const char *name, *tail;
  } links[] = {{"self", ""},
               {"events", "/events"},
               {"results", "/results"},
               {"kernels", "/kernels"},
               {"timeline", "/timeline"},
               {"comparison", "/comparison"}};
  cJSON *document = cJSON_CreateObject();
  cJSON_AddNumberToObject(document, "id", (double)id);
  cJSON_AddStringToObject(document, "state", rl_job_state_names[state]);
  cJSON *object = cJSON_AddObjectToObject(document, "links");
  for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
    char path[64];
    snprintf(path, sizeof path, "/jobs/%lld%s", (long long)id, links[i].tail);
    cJSON_AddStringToObject(object, links[i].name, path);
  }
  return document;
}

int rl_http_request_reply_job(rl_http_request *request, int64_t id, rl_job_state state, bool is_replayed, rl_error *err) {
  char location[64];
  snprintf(location, sizeof location, "/jobs/%lld", (long long)id);
  return rl_reply_accepted(request, location, is_replayed, rl_accepted_job_json(id, state), err);
}
