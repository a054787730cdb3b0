/* Implements cached_reply.h. The key of a cached body consists of the path and the query. A cached body is current as long as the
 * revision of the data from which it was made is unchanged. Revision 0 means that the revision is unknown; such a body is not
 * cached. */
#include "api/cached_reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/http_syntax.h"
#include "api/response.h"
#include "api/server_internal.h"
#include "base/clock.h"

enum { MAX_KEY_BYTES = 512, MIN_GZIP_BYTES = 1024, SPACE_CHECK_MS = 2, VICTIM_WAIT_MS = 20 };
/* Number of replies that one request may end. Ending one frees nothing while another connection sends the same body. */
enum { MAX_VICTIMS = 16 };
static const int64_t MAX_SPACE_WAIT_NS = 3000000000; /* longer than a client has to read a reply while memory is short */

/* --- keys -------------------------------------------------------------------------------------------------------------- */

typedef struct key_writer {
  char text[MAX_KEY_BYTES];
  size_t length;            /* MAX_KEY_BYTES: the key is too long */
  const char *parameter;    /* name of the query parameter for which shared_value is written; NULL: none */
  const char *shared_value; /* written instead of the request's value of `parameter` */
  bool wrote_shared_value;
} key_writer;

/* Appends the kind, the length and the text of a part. kind: 'p' path, 'n' name of a parameter, 'v' its value in the request, 's'
 * its shared_value. */
static void write_key_part(key_writer *key, char kind, const char *part) {
  if (key->length >= sizeof key->text) return;
  int length = snprintf(key->text + key->length, sizeof key->text - key->length, "%c%zu:%s", kind, strlen(part), part);
  key->length = (size_t)length < sizeof key->text - key->length ? key->length + (size_t)length : sizeof key->text;
}

static enum MHD_Result write_parameter(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
  (void)kind;
  key_writer *key = context;
  write_key_part(key, 'n', name);
  if (key->parameter != NULL && strcmp(name, key->parameter) == 0) {
    write_key_part(key, 's', key->shared_value);
    key->wrote_shared_value = true;
  } else if (value != NULL) write_key_part(key, 'v', value);
  return MHD_YES;
}

/* Writes the path and the query parameters to the key. Returns false if they are too long. */
static bool write_key(const rl_http_request *request, key_writer *key) {
  key->length = 0;
  write_key_part(key, 'p', request->path);
  MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, write_parameter, key);
  if (key->parameter != NULL && !key->wrote_shared_value) {
    write_key_part(key, 'n', key->parameter);
    write_key_part(key, 's', key->shared_value);
  }
  return key->length < sizeof key->text;
}

/* --- dependencies ------------------------------------------------------------------------------------------------------ */

/* Returns the sum of the revisions; 0: one of them is unknown. */
static uint64_t read_revision(rl_store *store, const rl_body_dependencies *dependencies) {
  uint64_t sum = 0;
  for (int i = 0; i < RL_MAX_BODY_DEPENDENCIES; i++) {
    uint64_t revision = rl_store_revision(store, (rl_revision_kind)dependencies->kinds[i], dependencies->job_ids[i]);
    if (revision == 0) return 0;
    sum += revision;
  }
  return sum + (dependencies->has_age ? (uint64_t)time(NULL) : 0);
}

/* Sets *job_id to the job of the run whose id is the value of this query parameter. Returns false if there is no such run. */
static bool find_job_of_parameter(const rl_http_request *request, const char *name, int64_t *job_id) {
  const char *text = rl_http_request_parameter(request, name);
  int64_t run_id;
  rl_error ignored;
  return text != NULL && rl_decimal_parse(text, &run_id) &&
         rl_store_job_of_run(request->server->store, run_id, job_id, &ignored) == 0;
}

/* Sets request->dependencies to the stored data from which the reply is made. Returns false if the route's replies are not cached
 * or a run that the request names does not exist. */
static bool find_dependencies(rl_http_request *request) {
  rl_body_dependencies *dependencies = &request->dependencies;
  rl_error ignored;
  *dependencies = (rl_body_dependencies){.kinds = {RL_REVISION_UNCLASSIFIED, RL_REVISION_UNCLASSIFIED, RL_REVISION_UNCLASSIFIED}};
  switch (request->route->cached_by) {
    case RL_CACHED_BY_NOTHING: return false;
    case RL_CACHED_BY_PROGRAM: return true;
    case RL_CACHED_BY_JOB:
      dependencies->kinds[0] = RL_REVISION_JOB;
      dependencies->job_ids[0] = request->id;
      return true;
    case RL_CACHED_BY_RUN:
      dependencies->kinds[0] = RL_REVISION_JOB;
      dependencies->kinds[1] = RL_REVISION_CEILINGS;
      return rl_store_job_of_run(request->server->store, request->id, &dependencies->job_ids[0], &ignored) == 0;
    case RL_CACHED_BY_RUNS:
      dependencies->kinds[0] = dependencies->kinds[1] = RL_REVISION_JOB;
      dependencies->kinds[2] = RL_REVISION_CEILINGS;
      return find_job_of_parameter(request, "a", &dependencies->job_ids[0]) &&
             find_job_of_parameter(request, "b", &dependencies->job_ids[1]);
    case RL_CACHED_BY_AGED_CEILINGS:
      dependencies->kinds[0] = RL_REVISION_CEILINGS;
      dependencies->has_age = true;
      return true;
    case RL_CACHED_BY_SUITES: dependencies->kinds[0] = RL_REVISION_SUITES; return true;
    case RL_CACHED_BY_SUITES_AND_LISTS:
      dependencies->kinds[0] = RL_REVISION_SUITES;
      dependencies->kinds[1] = RL_REVISION_LISTS;
      return true;
    case RL_CACHED_BY_LISTS: dependencies->kinds[0] = RL_REVISION_LISTS; return true;
  }
  return false;
}

/* --- replies ----------------------------------------------------------------------------------------------------------- */

static bool wants_gzip(const rl_http_request *request, const rl_cached_body *body) {
  return body->length > MIN_GZIP_BYTES && rl_accepts_gzip(rl_http_request_header(request, "Accept-Encoding"));
}

static bool is_unchanged(const rl_http_request *request, const rl_encoded_body *encoding) {
  return encoding->response != NULL && rl_etag_matches(rl_http_request_header(request, "If-None-Match"), encoding->etag);
}

/* Takes over the caller's reference to the body. */
static void set_response(rl_http_request *request, rl_cached_body *body, bool gzip) {
  const rl_encoded_body *encodings[] = {gzip ? &body->gzip : &body->identity, gzip ? &body->identity : NULL};
  request->cached_body = body;
  request->status = 200;
  request->response = encodings[0]->response;
  for (int i = 0; i < 2 && encodings[i] != NULL; i++)
    if (is_unchanged(request, encodings[i])) {
      request->status = 304;
      request->response = encodings[i]->not_modified;
      return;
    }
}

/* Returns the current body with this key, which the caller releases; NULL if the cache has none. */
static rl_cached_body *find_current(rl_http_request *request, const char *key) {
  rl_server *server = request->server;
  rl_cached_body *body = rl_body_cache_find(server->body_cache, key);
  if (body == NULL || body->revision == read_revision(server->store, &body->dependencies)) return body;
  rl_body_cache_release(server->body_cache, body);
  return NULL;
}

bool rl_cached_reply_find(rl_http_request *request) {
  key_writer key = {0};
  if (request->route->cached_by == RL_CACHED_BY_NOTHING || !write_key(request, &key)) return false;
  rl_cached_body *body = find_current(request, key.text);
  bool must_compress = body != NULL && wants_gzip(request, body) && !rl_body_cache_has_gzip(request->server->body_cache, body);
  atomic_fetch_add(body != NULL ? &request->server->cache_hits : &request->server->cache_misses, 1);
  if (body == NULL || must_compress) {
    if (body != NULL) rl_body_cache_release(request->server->body_cache, body);
    request->cache_key = strdup(key.text);
    return false;
  }
  set_response(request, body, wants_gzip(request, body));
  return true;
}

/* Takes over the caller's reference to the body. */
static void compress_and_set_response(rl_http_request *request, rl_cached_body *body) {
  rl_body_cache *cache = request->server->body_cache;
  bool gzip = wants_gzip(request, body);
  if (gzip && !rl_body_cache_has_gzip(cache, body)) rl_body_cache_add_gzip(cache, body);
  set_response(request, body, gzip && rl_body_cache_has_gzip(cache, body));
}

bool rl_cached_reply_begin(rl_http_request *request) {
  if (request->cache_key == NULL) return false;
  /* A body that is found here has no gzip encoding yet, or was stored after rl_cached_reply_find had searched. */
  rl_cached_body *body = find_current(request, request->cache_key);
  if (body != NULL) {
    compress_and_set_response(request, body);
    return true;
  }
  if (find_dependencies(request)) request->revision = read_revision(request->server->store, &request->dependencies);
  return false;
}

bool rl_cached_reply_share(rl_http_request *request, const char *parameter, const char *shared_value) {
  key_writer key = {.parameter = parameter, .shared_value = shared_value};
  char *text = request->cache_key != NULL && write_key(request, &key) ? strdup(key.text) : NULL;
  if (text == NULL) return false;
  free(request->cache_key);
  request->cache_key = text;
  rl_cached_body *body = find_current(request, text);
  if (body != NULL) compress_and_set_response(request, body);
  return body != NULL;
}

static void add_headers(struct MHD_Response *response, const char *etag) {
  rl_response_add_header(response, "ETag", etag);
  rl_response_add_header(response, "Cache-Control", "private, no-cache");
  rl_response_add_header(response, "Vary", "Accept-Encoding");
  rl_response_add_security_headers(response);
}

/* Waits until a body fits, at most VICTIM_WAIT_MS. */
static bool fits_soon(const rl_server *server, size_t length) {
  for (int waited_ms = 0; waited_ms < VICTIM_WAIT_MS; waited_ms += SPACE_CHECK_MS) {
    if (rl_body_cache_make_space(server->body_cache, length)) return true;
    usleep(SPACE_CHECK_MS * 1000);
  }
  return false;
}

/* Makes space for a body. If replies in progress use all memory, ends one after another of those that began longest ago, at most
 * MAX_VICTIMS; MHD frees a body when it closes the last connection that sends it. Returns false if this does not help. */
static bool make_space(const rl_server *server, size_t length) {
  if (rl_body_cache_make_space(server->body_cache, length)) return true;
  const int64_t start_ns = rl_monotonic_ns();
  int victims = 0;
  for (int64_t now_ns = start_ns; now_ns - start_ns < MAX_SPACE_WAIT_NS; now_ns = rl_monotonic_ns()) {
    if (victims < MAX_VICTIMS) victims += rl_connections_shut_down_stalled(server->connections, RL_RESOURCE_REPLIES, now_ns);
    if (fits_soon(server, length)) return true;
    if (atomic_load(&server->stopping)) return false;
  }
  return false;
}

int rl_cached_reply_make(rl_http_request *request, char *text, const char *content_type, rl_error *err) {
  rl_body_cache *cache = request->server->body_cache;
  if (text == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for a response");
  if (!make_space(request->server, strlen(text))) {
    free(text);
    return rl_fail(err, RL_LIMIT, RL_LIMIT_BUSY,
                   "Replies in progress use all memory that the daemon allows for replies; try again later.");
  }
  rl_cached_body *body = rl_body_cache_make(cache, request->cache_key, text, content_type, add_headers);
  if (body == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for a response");
  body->dependencies = request->dependencies;
  body->revision = request->revision;
  if (request->revision != 0) rl_body_cache_insert(cache, body);
  compress_and_set_response(request, body);
  return 0;
}
