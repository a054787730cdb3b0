/* Implements http.h. Each request has its own curl handle. The handle's progress callback ends the request after Ctrl-C. */
#include "api/client/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "api/client/interrupt.h"

enum { CONNECT_TIMEOUT_S = 5, REQUEST_TIMEOUT_S = 60, KEEPALIVE_TIMEOUT_S = 60, MAX_BODY_BYTES = 512 << 20 };

RL_DEFINE_CLEANUP(easy_free, CURL *, curl_easy_cleanup, NULL)
RL_DEFINE_CLEANUP(list_free, struct curl_slist *, curl_slist_free_all, NULL)

void rl_body_free(rl_body *body) {
  free(body->data);
  *body = (rl_body){0};
}

static size_t append_body(char *bytes, size_t size, size_t count, void *context) {
  rl_body *body = context;
  size_t byte_count = size * count;
  if (body->length + byte_count >= MAX_BODY_BYTES) return 0;
  char *data = realloc(body->data, body->length + byte_count + 1);
  if (data == NULL) return 0;
  memcpy(data + body->length, bytes, byte_count);
  body->data = data;
  body->length += byte_count;
  body->data[body->length] = '\0';
  return byte_count;
}

static int abort_on_interrupt(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
  (void)context, (void)a, (void)b, (void)c, (void)d;
  return rl_was_interrupted();
}

static int add_header(struct curl_slist **headers, rl_error *err, const char *format, const char *value) {
  char line[512];
  snprintf(line, sizeof line, format, value);
  struct curl_slist *extended = curl_slist_append(*headers, line);
  if (extended == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a request");
  *headers = extended;
  return 0;
}

/* Creates a handle with the options that all requests share. */
static CURL *request_new(const rl_cli *cli, const char *path, struct curl_slist **headers, rl_error *err) {
  CURL *easy = curl_easy_init();
  char url[1024];
  if (easy == NULL) {
    rl_fail(err, RL_ERRNO, ENOMEM, "libcurl could not be set up");
    return NULL;
  }
  size_t length = strlen(cli->url);
  while (length > 0 && cli->url[length - 1] == '/') length--;
  snprintf(url, sizeof url, "%.*s%s", (int)length, cli->url, path);
  curl_easy_setopt(easy, CURLOPT_URL, url);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  if (strstr(url, "//127.") != NULL || strstr(url, "//localhost") != NULL || strstr(url, "//[::1]") != NULL)
    curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* no proxy for loopback */
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_TIMEOUT_S);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, abort_on_interrupt);
  if (getenv("ROOFLINED_CACERT") != NULL) curl_easy_setopt(easy, CURLOPT_CAINFO, getenv("ROOFLINED_CACERT"));
  if (cli->token != NULL && add_header(headers, err, "Authorization: Bearer %s", cli->token) < 0) {
    curl_easy_cleanup(easy);
    return NULL;
  }
  return easy;
}

/* Converts a problem document into an error. */
static int fail_with_problem(long status, const rl_body *response, rl_error *err) {
  cJSON *problem = response->data != NULL ? cJSON_ParseWithLength(response->data, response->length) : NULL;
  const char *title = cJSON_GetStringValue(cJSON_GetObjectItem(problem, "title"));
  const char *detail = cJSON_GetStringValue(cJSON_GetObjectItem(problem, "detail"));
  const char *pointer = cJSON_GetStringValue(cJSON_GetObjectItem(problem, "pointer"));
  const char *code = cJSON_GetStringValue(cJSON_GetObjectItem(problem, "code"));
  bool detail_suffices = detail != NULL && code != NULL && (strcmp(code, "invalid_field") == 0 || strcmp(code, "not_found") == 0);
  if (title == NULL) rl_fail(err, RL_HTTP, (int)status, "the daemon responded with status %ld", status);
  else if (detail_suffices) rl_fail(err, RL_HTTP, (int)status, "%s", detail);
  else rl_fail(err, RL_HTTP, (int)status, "%s%s%s", title, detail != NULL ? ": " : "", detail != NULL ? detail : "");
  if (err != NULL && pointer != NULL) snprintf(err->json_pointer, sizeof err->json_pointer, "%s", pointer);
  cJSON_Delete(problem);
  return -1;
}

static int fail_with_curl(const rl_cli *cli, CURLcode code, rl_error *err) {
  if (code == CURLE_ABORTED_BY_CALLBACK) return rl_fail(err, RL_ERRNO, EINTR, "interrupted");
  const bool connection_broke =
      code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR || code == CURLE_PARTIAL_FILE;
  return rl_fail(err, RL_WIRE, connection_broke ? RL_WIRE_TRUNCATED : RL_WIRE_CLOSED, "no response from %s: %s", cli->url,
                 curl_easy_strerror(code));
}

/* Sends the request and receives the response's body. Fails if the status is 400 or more. */
static int perform(const rl_cli *cli, CURL *easy, const struct curl_slist *headers, rl_body *response, rl_error *err) {
  RL_CLEANUP(rl_body_free) rl_body received = {0};
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, append_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &received);
  CURLcode code = curl_easy_perform(easy);
  if (code != CURLE_OK) return fail_with_curl(cli, code, err);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  if (status < 200 || status >= 300) return fail_with_problem(status, &received, err);
  if (response != NULL) {
    *response = received;
    received = (rl_body){0};
  }
  return 0;
}

typedef struct json_request {
  const char *method, *path;
  const char *body, *idempotency_key; /* NULL: none */
} json_request;

static int send_json(const rl_cli *cli, const json_request *request, rl_body *response, rl_error *err) {
  RL_CLEANUP(list_free) struct curl_slist *headers = NULL;
  RL_CLEANUP(easy_free) CURL *easy = request_new(cli, request->path, &headers, err);
  if (easy == NULL) return -1;
  if (request->idempotency_key != NULL && add_header(&headers, err, "Idempotency-Key: %s", request->idempotency_key) < 0)
    return -1;
  if (request->body != NULL) {
    if (add_header(&headers, err, "Content-Type: %s", "application/json") < 0) return -1;
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(request->body));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
  }
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)REQUEST_TIMEOUT_S);
  return perform(cli, easy, headers, response, err);
}

int rl_http_send(const rl_cli *cli, const char *method, const char *path, const char *body, rl_body *response, rl_error *err) {
  return send_json(cli, &(json_request){.method = method, .path = path, .body = body}, response, err);
}

int rl_http_post_with_key(const rl_cli *cli, const char *path, const char *body, const char *key, rl_body *response,
                          rl_error *err) {
  return send_json(cli, &(json_request){.method = "POST", .path = path, .body = body, .idempotency_key = key}, response, err);
}

int rl_http_upload(const rl_cli *cli, const char *path, FILE *file, rl_body *response, rl_error *err) {
  RL_CLEANUP(list_free) struct curl_slist *headers = NULL;
  RL_CLEANUP(easy_free) CURL *easy = request_new(cli, path, &headers, err);
  struct stat status;
  if (easy == NULL || add_header(&headers, err, "Content-Type: %s", "application/octet-stream") < 0) return -1;
  if (fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode))
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)status.st_size);
  curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "POST");
  curl_easy_setopt(easy, CURLOPT_READDATA, file);
  /* Limits the time without progress instead of the whole time, because a large file takes long. */
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)REQUEST_TIMEOUT_S);
  return perform(cli, easy, headers, response, err);
}

typedef struct file_reply {
  CURL *easy;
  rl_download *download;
  rl_body refusal; /* the response's body if its status is not 200 */
} file_reply;

static size_t write_file(char *bytes, size_t size, size_t count, void *context) {
  file_reply *reply = context;
  long status = 0;
  curl_easy_getinfo(reply->easy, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) return append_body(bytes, size, count, &reply->refusal);
  return reply->download->write(reply->download->context, bytes, size * count) ? size * count : 0;
}

/* Reads the file name from Content-Disposition. Ignores a name with a slash, which could be outside of the folder. */
static size_t read_file_name(char *bytes, size_t size, size_t count, void *context) {
  rl_download *download = context;
  char line[256], name[RL_FILE_NAME_SIZE];
  snprintf(line, sizeof line, "%.*s", (int)(size * count), bytes);
  if (strncasecmp(line, "Content-Disposition:", 20) == 0 && strchr(line, '/') == NULL &&
      sscanf(line + 20, " attachment; filename=\"%127[^\"]", name) == 1 && name[0] != '.')
    memcpy(download->file_name, name, sizeof name);
  return size * count;
}

static int end_download(const rl_cli *cli, CURLcode code, file_reply *reply, rl_error *err) {
  long status = 0;
  curl_easy_getinfo(reply->easy, CURLINFO_RESPONSE_CODE, &status);
  if (code == CURLE_OK) return status == 200 ? 0 : fail_with_problem(status, &reply->refusal, err);
  if (code == CURLE_WRITE_ERROR) return rl_fail_errno(err, "can't write the file");
  if (status != 200 || code == CURLE_ABORTED_BY_CALLBACK) return fail_with_curl(cli, code, err);
  return rl_fail(err, RL_HTTP, 0, "the daemon ended its reply early; its log may contain the reason");
}

int rl_http_download(const rl_cli *cli, const char *path, rl_download *download, rl_error *err) {
  RL_CLEANUP(list_free) struct curl_slist *headers = NULL;
  RL_CLEANUP(easy_free) CURL *easy = request_new(cli, path, &headers, err);
  if (easy == NULL) return -1;
  file_reply reply = {.easy = easy, .download = download};
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_file);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &reply);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, read_file_name);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, download);
  /* Limits the time without progress instead of the whole time, because a large file takes long. */
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)REQUEST_TIMEOUT_S);
  int rc = end_download(cli, curl_easy_perform(easy), &reply, err);
  rl_body_free(&reply.refusal);
  return rc;
}

cJSON *rl_http_get(const rl_cli *cli, const char *path, rl_error *err) {
  RL_CLEANUP(rl_body_free) rl_body response = {0};
  if (rl_http_send(cli, "GET", path, NULL, &response, err) < 0) return NULL;
  cJSON *document = response.data != NULL ? cJSON_ParseWithLength(response.data, response.length) : NULL;
  if (document == NULL) rl_fail(err, RL_HTTP, 0, "the response of %s%s is not JSON: is it rooflined?", cli->url, path);
  return document;
}

cJSON *rl_http_get_job(const rl_cli *cli, long long id, const char *subpath, rl_error *err) {
  char path[80];
  snprintf(path, sizeof path, "/jobs/%lld%s", id, subpath);
  return rl_http_get(cli, path, err);
}

typedef struct event_stream {
  CURL *easy;
  rl_sse *parser;
  rl_body refusal; /* the response's body if its status is not 200 */
} event_stream;

static size_t parse_events(char *bytes, size_t size, size_t count, void *context) {
  event_stream *stream = context;
  long status = 0;
  curl_easy_getinfo(stream->easy, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) return append_body(bytes, size, count, &stream->refusal);
  return rl_sse_parse(stream->parser, bytes, size * count) ? size * count : 0;
}

int rl_http_read_events(const rl_cli *cli, const char *path, rl_sse *parser, rl_error *err) {
  RL_CLEANUP(list_free) struct curl_slist *headers = NULL;
  RL_CLEANUP(easy_free) CURL *easy = request_new(cli, path, &headers, err);
  if (easy == NULL || add_header(&headers, err, "Accept: %s", "text/event-stream") < 0) return -1;
  if (parser->id[0] != '\0' && add_header(&headers, err, "Last-Event-ID: %s", parser->id) < 0) return -1;
  event_stream stream = {.easy = easy, .parser = parser};
  rl_sse_reset(parser);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, parse_events);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &stream);
  /* The daemon sends a comment every 15 s, so a connection without data for KEEPALIVE_TIMEOUT_S is broken. */
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)KEEPALIVE_TIMEOUT_S);
  CURLcode code = curl_easy_perform(easy);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  int rc = 0;
  if (parser->stopped) rc = 0;
  else if (code != CURLE_OK) rc = fail_with_curl(cli, code, err);
  else if (status != 200) rc = fail_with_problem(status, &stream.refusal, err);
  rl_body_free(&stream.refusal);
  return rc;
}
