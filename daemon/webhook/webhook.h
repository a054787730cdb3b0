/* The thread that delivers the webhook's events, one at a time, each at least once. An event is tried again until the receiver
 * replies with a status 2xx, or with 410, or three days have passed. The other events are delivered after the next start. */
#ifndef RL_WEBHOOK_WEBHOOK_H
#define RL_WEBHOOK_WEBHOOK_H

#include "base/cleanup.h"
#include "store/store.h"

typedef struct rl_webhook rl_webhook;

typedef struct rl_webhook_target {
  const char *url, *secret_file; /* see rl_webhook_key_read */
  const char *ca_file;           /* PEM; "": the system's authorities */
  int64_t retry_s;               /* pause after the first failure */
} rl_webhook_target;

/* Starts the thread; from now on suite runs that end store events. url and store must outlive the webhook. Fails with RL_INPUT
 * if the secret or the authorities can't be read. */
int rl_webhook_open(rl_store *store, const rl_webhook_target *target, rl_webhook **webhook, rl_error *err);
/* Interrupts a delivery, which is repeated after the next start, and stops the thread. No suite run may end meanwhile. Accepts
 * NULL. */
void rl_webhook_close(rl_webhook *webhook);

RL_DEFINE_CLEANUP(rl_webhook_cleanup, rl_webhook *, rl_webhook_close, NULL)
#endif
