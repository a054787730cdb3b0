/* The thread that delivers the webhook's events, one at a time, each at least once. The thread posts an event again until the
 * receiver replies with a status 2xx or 410, or until three days have passed. Events that are pending when the daemon stops are
 * delivered after its next start. */
#ifndef RL_WEBHOOK_WEBHOOK_H
#define RL_WEBHOOK_WEBHOOK_H

#include "base/cleanup.h"
#include "store/store.h"

typedef struct rl_webhook rl_webhook;

typedef struct rl_webhook_target {
  const char *url, *secret_file; /* secret_file: file with the key (rl_webhook_key_read) */
  const char *ca_file;           /* PEM file with the trusted certificate authorities; "": the system's authorities */
  int64_t retry_s;               /* pause after the first failed attempt */
} rl_webhook_target;

/* Starts the thread. From then on, a suite run stores an event when it ends. The store and the texts url and ca_file must outlive
 * the webhook. Fails with RL_INPUT if secret_file or ca_file can't be read. */
int rl_webhook_open(rl_store *store, const rl_webhook_target *target, rl_webhook **webhook, rl_error *err);
/* Interrupts a delivery, which is repeated after the daemon's next start, and stops the thread. No suite run may end during the
 * call. Accepts NULL. */
void rl_webhook_close(rl_webhook *webhook);

RL_DEFINE_CLEANUP(rl_webhook_cleanup, rl_webhook *, rl_webhook_close, NULL)
#endif
