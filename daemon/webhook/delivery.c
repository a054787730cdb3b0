/* Implements delivery.h. Uses curl's multi interface for one transfer at a time, because it has a function that wakes the waiting
 * thread. */
#include "webhook/delivery.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNECT_TIMEOUT_MS = 5000, TIMEOUT_MS = 10000, POLL_MS = 1000, MAX_RECEIVED_BYTES = 64 << 10, HEADERS_MAX = 6 };

struct rl_webhook_client {
  const char *url, *ca_file;
  bool is_loopback; /* the receiver's host is loopback */
  CURLM *multi;
  atomic_bool is_interrupted;
};

RL_DEFINE_CLEANUP(free_list, struct curl_slist *, curl_slist_free_all, NULL)
RL_DEFINE_CLEANUP(free_easy, CURL *, curl_easy_cleanup, NULL)

/* Returns whether the URL's host is loopback; posts to loopback use no proxy. */
static bool is_loopback(const char *url) {
  char *host = NULL;
  CURLU *parts = curl_url();
  bool parsed = parts != NULL && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
                curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK;
  bool found = parsed && (strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 || strncmp(host, "127.", 4) == 0);
  curl_free(host);
  curl_url_cleanup(parts);
  return found;
}

int rl_webhook_client_open(const char *url, const char *ca_file, rl_webhook_client **client, rl_error *err) {
  if (ca_file[0] != '\0' && access(ca_file, R_OK) < 0)
    return rl_fail(err, RL_INPUT, errno, "webhook_ca_file: %s: %s", ca_file, strerror(errno));
  rl_webhook_client *opened = calloc(1, sizeof *opened);
  if (opened == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for the webhook");
  opened->url = url;
  opened->ca_file = ca_file;
  opened->is_loopback = is_loopback(url);
  if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) opened->multi = curl_multi_init();
  if (opened->multi == NULL) {
    free(opened);
    return rl_fail(err, RL_ERRNO, ENOMEM, "libcurl could not be set up");
  }
  *client = opened;
  return 0;
}

void rl_webhook_client_close(rl_webhook_client *client) {
  if (client == NULL) return;
  curl_multi_cleanup(client->multi);
  free(client);
}

void rl_webhook_client_interrupt(rl_webhook_client *client) {
  atomic_store(&client->is_interrupted, true);
  curl_multi_wakeup(client->multi);
}

/* --- what the receiver sends ------------------------------------------------------------------------------------------- */

typedef struct received_data {
  size_t bytes;
  long status;     /* status code of the last status line */
  bool is_replied; /* the headers with a status of 200 or more are complete; the body is not needed */
} received_data;

/* Callback for the reply's body, which is counted and discarded. Returns the number of bytes; 0, which ends the transfer, if the
 * reply is too long. */
static size_t discard(char *data, size_t size, size_t count, void *context) {
  (void)data;
  received_data *received_reply = context;
  received_reply->bytes += size * count;
  return received_reply->bytes <= MAX_RECEIVED_BYTES ? size * count : 0;
}

/* Callback for a line of the reply's headers. */
static size_t read_header(char *data, size_t size, size_t count, void *context) {
  received_data *received_reply = context;
  const size_t length = size * count;
  if (length > 9 && memcmp(data, "HTTP/", 5) == 0) received_reply->status = strtol(data + 9, NULL, 10);
  if (length <= 2) received_reply->is_replied = received_reply->status >= 200; /* the empty line after the headers */
  return discard(data, size, count, context);
}

/* --- posts ------------------------------------------------------------------------------------------------------------- */

static struct curl_slist *make_headers(const rl_webhook_post *post) {
  char lines[HEADERS_MAX][256] = {"content-type: application/json", "expect:", "user-agent: rooflined/" RL_VERSION};
  snprintf(lines[3], sizeof lines[3], "webhook-id: %s", post->id);
  snprintf(lines[4], sizeof lines[4], "webhook-timestamp: %lld", (long long)post->timestamp_s);
  snprintf(lines[5], sizeof lines[5], "webhook-signature: %s", post->signature);
  struct curl_slist *headers = NULL;
  for (int i = 0; i < HEADERS_MAX; i++) {
    struct curl_slist *extended = curl_slist_append(headers, lines[i]);
    if (extended == NULL) {
      curl_slist_free_all(headers);
      return NULL;
    }
    headers = extended;
  }
  return headers;
}

static void set_options(CURL *easy, const rl_webhook_client *client, const rl_webhook_post *post,
                        const struct curl_slist *headers, received_data *received_reply) {
  curl_easy_setopt(easy, CURLOPT_URL, client->url);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  if (client->is_loopback) curl_easy_setopt(easy, CURLOPT_PROXY, "");
  if (client->ca_file[0] != '\0') curl_easy_setopt(easy, CURLOPT_CAINFO, client->ca_file);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* the status of a proxy is not that of the receiver */
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(post->body));
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, post->body);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* an interrupted post does not wait for the resolver thread */
  curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, received_reply);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, read_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, received_reply);
}

/* Returns the result of the transfer, which has ended. */
static CURLcode read_result(CURLM *multi) {
  int remaining_messages;
  for (CURLMsg *message; (message = curl_multi_info_read(multi, &remaining_messages)) != NULL;)
    if (message->msg == CURLMSG_DONE) return message->data.result;
  return CURLE_ABORTED_BY_CALLBACK;
}

static CURLcode transfer(rl_webhook_client *client, CURL *easy) {
  int running = 1;
  if (curl_multi_add_handle(client->multi, easy) != CURLM_OK) return CURLE_OUT_OF_MEMORY;
  while (running > 0 && !atomic_load(&client->is_interrupted))
    if (curl_multi_perform(client->multi, &running) != CURLM_OK ||
        (running > 0 && curl_multi_poll(client->multi, NULL, 0, POLL_MS, NULL) != CURLM_OK))
      break;
  CURLcode code = read_result(client->multi);
  curl_multi_remove_handle(client->multi, easy);
  return code;
}

static void fill_reply(CURL *easy, CURLcode code, const received_data *received_reply, rl_webhook_reply *reply) {
  if (!received_reply->is_replied) {
    const char *reason =
        received_reply->bytes > MAX_RECEIVED_BYTES ? "The reply's headers are too long" : curl_easy_strerror(code);
    snprintf(reply->error, sizeof reply->error, "%s", reason);
    return;
  }
  curl_off_t retry_after_s = 0;
  if (curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after_s) == CURLE_OK) reply->retry_after_s = retry_after_s;
  reply->status = received_reply->status;
  if (received_reply->status >= 300)
    snprintf(reply->error, sizeof reply->error, "The reply's status is %ld", received_reply->status);
}

void rl_webhook_send(rl_webhook_client *client, const rl_webhook_post *post, rl_webhook_reply *reply) {
  RL_CLEANUP(free_list) struct curl_slist *headers = make_headers(post);
  RL_CLEANUP(free_easy) CURL *easy = curl_easy_init();
  received_data received_reply = {0};
  *reply = (rl_webhook_reply){.error = "out of memory"};
  if (headers == NULL || easy == NULL) return;
  reply->error[0] = '\0';
  set_options(easy, client, post, headers, &received_reply);
  CURLcode code = transfer(client, easy);
  reply->is_interrupted = atomic_load(&client->is_interrupted);
  fill_reply(easy, code, &received_reply, reply);
}
