/* Makes the body of a request from the suite's definition and the options, and posts it. */
#include "api/client/suite_submit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/http.h"
#include "api/client/request.h"
#include "api/client/submit.h"
#include "base/json.h"

enum { PATH_SIZE = 128 };

static int count_lines(const char *text, int offset) {
  int line = 1;
  for (int i = 0; i < offset && text[i] != '\0'; i++) line += text[i] == '\n';
  return line;
}

/* Reads a suite file. Returns NULL with err on failure; the message names the line of malformed JSON. */
static cJSON *read_definition(const char *file, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *text = rl_request_read_file(file, err);
  if (text == NULL) return NULL;
  cJSON *definition = rl_json_parse(text, strlen(text), err);
  if (definition == NULL) rl_wrap(err, "%.160s, line %d", file, count_lines(text, err->code));
  return definition;
}

/* Adds the members of the request's body to `body`, and copies the suite's name to `name`. */
static int make_body(const rl_suite_request *request, cJSON *body, char *name, rl_error *err) {
  const char *suite = request->suite;
  if (request->file != NULL) {
    cJSON *definition = read_definition(request->file, err);
    if (definition == NULL) return -1;
    cJSON_AddItemToObject(body, "definition", definition);
    if (suite == NULL) suite = cJSON_GetStringValue(rl_json_at(definition, "name"));
    if (suite == NULL) return rl_fail_usage(err, "%.160s names no suite: it needs \"name\"", request->file);
  }
  if (rl_check_name(suite, "suite", err) < 0) return -1;
  snprintf(name, RL_SUITE_NAME_SIZE, "%s", suite);
  if (request->against != NULL) cJSON_AddStringToObject(body, "against", request->against);
  if (request->device != NULL) cJSON_AddStringToObject(body, "device", request->device);
  const char *const against_members[][2] = {
      {"worker_build", request->against_build}, {"engine", request->against_engine}, {"variant", request->against_variant}};
  cJSON *against_request = NULL;
  for (size_t i = 0; i < sizeof against_members / sizeof *against_members; i++) {
    if (against_members[i][1] == NULL) continue;
    if (against_request == NULL) against_request = cJSON_AddObjectToObject(body, "against_request");
    cJSON_AddStringToObject(against_request, against_members[i][0], against_members[i][1]);
  }
  return 0;
}

typedef int post_function(const rl_cli *cli, const char *path, const char *body, rl_body *response, rl_error *err);

static int post_once(const rl_cli *cli, const char *path, const char *body, rl_body *response, rl_error *err) {
  return rl_http_send(cli, "POST", path, body, response, err);
}

/* Posts the body to path and returns the reply. */
static cJSON *post(const rl_cli *cli, post_function *send, const char *path, const cJSON *body, rl_error *err) {
  RL_CLEANUP(rl_body_free) rl_body response = {0};
  RL_CLEANUP(rl_free_text) char *text = cJSON_PrintUnformatted(body);
  if (text == NULL) rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a request");
  if (text == NULL || send(cli, path, text, &response, err) < 0) return NULL;
  cJSON *reply = cJSON_Parse(response.data != NULL ? response.data : "");
  if (reply == NULL) rl_fail(err, RL_HTTP, 0, "the response of %s%s is not JSON: is it rooflined?", cli->url, path);
  return reply;
}

cJSON *rl_suite_submit(const rl_cli *cli, const rl_suite_request *request, char *name, rl_error *err) {
  RL_CLEANUP(rl_json_free) cJSON *body = cJSON_CreateObject();
  char path[PATH_SIZE];
  if (make_body(request, body, name, err) < 0) return NULL;
  snprintf(path, sizeof path, "/suites/%s/runs", name);
  RL_CLEANUP(rl_json_free) cJSON *reply = post(cli, rl_submit_job, path, body, err);
  if (reply == NULL) return NULL;
  if (!isnan(rl_json_number(reply, "id"))) return rl_take_ownership(&reply);
  rl_fail(err, RL_HTTP, 0, "the daemon accepted the suite run but returned no id");
  return NULL;
}

cJSON *rl_post_named_baseline(const rl_cli *cli, const char *suite, const char *baseline, long long run, rl_error *err) {
  RL_CLEANUP(rl_json_free) cJSON *body = cJSON_CreateObject();
  cJSON_AddStringToObject(body, "name", baseline);
  cJSON_AddNumberToObject(body, "run", (double)run);
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "/suites/%s/baselines", suite);
  return post(cli, post_once, path, body, err);
}
