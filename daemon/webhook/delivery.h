/* Posts one event to the webhook's receiver with libcurl: http or https, no redirects, at most 5 s to connect and 10 s in total,
 * through $https_proxy or $http_proxy unless the receiver is on loopback. The body of the reply is read up to a limit and
 * discarded. Only the webhook's thread calls these functions, except for rl_webhook_client_interrupt. */
#ifndef RL_WEBHOOK_DELIVERY_H
#define RL_WEBHOOK_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

typedef struct rl_webhook_client rl_webhook_client;

/* Opens a client for the receiver at `url`. ca_file: PEM file with the certificate authorities that the client trusts; "": the
 * system's authorities. url and ca_file must outlive the client. Fails with RL_INPUT if ca_file can't be read. */
int rl_webhook_client_open(const char *url, const char *ca_file, rl_webhook_client **client, rl_error *err);
void rl_webhook_client_close(rl_webhook_client *client);
/* Ends the current post and every later one at once. Any thread may call this. */
void rl_webhook_client_interrupt(rl_webhook_client *client);

typedef struct rl_webhook_post {
  const char *id, *signature, *body;
  int64_t timestamp_s;
} rl_webhook_post;
typedef struct rl_webhook_reply {
  long status;           /* HTTP status; 0: no reply was received */
  int64_t retry_after_s; /* value of Retry-After; 0: the reply has no such header */
  bool is_interrupted;
  char error[128]; /* why the post failed. Does not contain the URL, which may be a secret; "": the status is 2xx */
} rl_webhook_reply;
/* Posts the event and fills *reply. */
void rl_webhook_send(rl_webhook_client *client, const rl_webhook_post *post, rl_webhook_reply *reply);

RL_DEFINE_CLEANUP(rl_webhook_client_cleanup, rl_webhook_client *, rl_webhook_client_close, NULL)
#endif
