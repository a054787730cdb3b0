/* Routes about the daemon itself: workloads, devices, health, readiness, the API description. */
#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "api/http_syntax.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/server_internal.h"
#include "base/commit.h"
#include "base/json_members.h"
#include "request/spec.h"

/* Returns the states of all devices in malloc'ed memory and sets *count; NULL if memory is exhausted. */
static rl_device_state *read_devices(rl_server *server, int *count) {
  rl_device_state *states = calloc(RL_DEVICES_MAX, sizeof *states);
  if (states == NULL) return NULL;
  *count = rl_supervisor_devices(server->supervisor, states, RL_DEVICES_MAX);
  return states;
}

static cJSON *device_json(const rl_device_state *state) {
  cJSON *device = cJSON_CreateObject();
  cJSON_AddStringToObject(device, "id", state->id);
  rl_json_add_text(device, "kind", state->kind);
  cJSON_AddStringToObject(device, "state", state->state);
  rl_json_add_text(device, "reason", state->reason);
  if (state->properties[0] != '\0') cJSON_AddRawToObject(device, "properties", state->properties);
  else cJSON_AddNullToObject(device, "properties");
  if (state->job_id != 0) cJSON_AddNumberToObject(device, "job", (double)state->job_id);
  else cJSON_AddNullToObject(device, "job");
  cJSON_AddNumberToObject(device, "restarts", (double)state->restarts);
  return device;
}

/* Returns the array of the devices that stored jobs name; null if the database can't be read now. */
static cJSON *read_job_devices(rl_store *store) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *device;
  int found;
  rl_error ignored;
  if (rl_store_query(store, RL_QUERY_JOB_DEVICES, NULL, 0, &cursor, &ignored) < 0) return cJSON_CreateNull();
  cJSON *devices = cJSON_CreateArray();
  while ((found = rl_cursor_next(cursor, &device, &ignored)) > 0) cJSON_AddItemToArray(devices, cJSON_CreateString(device));
  if (found == 0) return devices;
  cJSON_Delete(devices);
  return cJSON_CreateNull();
}

int rl_handle_list_devices(rl_http_request *request, rl_error *err) {
  int count;
  rl_device_state *states = read_devices(request->server, &count);
  if (states == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for devices");
  cJSON *document = cJSON_CreateObject(), *items = cJSON_AddArrayToObject(document, "items");
  for (int i = 0; i < count; i++) cJSON_AddItemToArray(items, device_json(&states[i]));
  free(states);
  cJSON_AddItemToObject(document, "job_devices", read_job_devices(request->server->store));
  return rl_reply_json(request, 200, document, err);
}

int rl_handle_list_workloads(rl_http_request *request, rl_error *err) {
  cJSON *document = cJSON_CreateObject();
  cJSON_AddItemToObject(document, "items", rl_job_list_kernels());
  return rl_reply_json(request, 200, document, err);
}

int rl_handle_get_health(rl_http_request *request, rl_error *err) {
  cJSON *document = cJSON_CreateObject();
  cJSON_AddStringToObject(document, "status", "ok");
  cJSON_AddStringToObject(document, "version", RL_VERSION);
  cJSON_AddStringToObject(document, "commit", RL_COMMIT);
  return rl_reply_json(request, 200, document, err);
}

/* Fails if the results of a job could not be stored so far, because then new jobs can't be stored either, or if the database
 * can't be written. The error becomes RL_HTTP 503, except for a locked database and a full disk, which have separate problem
 * codes. */
static int check_storing(rl_http_request *request, rl_error *err) {
  if (rl_queue_check_results_are_stored(request->server->queue, err) >= 0 &&
      rl_store_check_writable(request->server->store, err) >= 0)
    return 0;
  const bool is_full = err->domain == RL_STORAGE && err->code == RL_STORAGE_FULL;
  if (!rl_is_storage_locked(err) && !is_full) {
    err->domain = RL_HTTP;
    err->code = 503;
  }
  return -1;
}

/* The daemon is ready if it accepts jobs. A device whose worker has not started counts as usable, because a worker starts when
 * the first job needs it. */
int rl_handle_get_readiness(rl_http_request *request, rl_error *err) {
  rl_job_counts counts;
  int count, usable = 0;
  if (atomic_load(&request->server->stopping)) return rl_fail(err, RL_HTTP, 503, "The daemon is stopping.");
  if (rl_queue_count_jobs(request->server->queue, &counts, err) < 0 || check_storing(request, err) < 0) return -1;
  rl_device_state *states = read_devices(request->server, &count);
  if (states == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for devices");
  for (int i = 0; i < count; i++) usable += strcmp(states[i].state, "unusable") != 0;
  free(states);
  if (usable == 0) return rl_fail(err, RL_HTTP, 503, "No device can run jobs; GET /devices has the reasons.");
  cJSON *document = cJSON_CreateObject();
  cJSON_AddStringToObject(document, "status", "ready");
  cJSON_AddNumberToObject(document, "devices", usable);
  return rl_reply_json(request, 200, document, err);
}

int rl_handle_get_openapi(rl_http_request *request, rl_error *err) {
  return rl_reply_text(request, 200, strndup(rl_openapi->text, rl_openapi->size), "application/json", err);
}
