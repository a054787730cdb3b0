/* Stores webhook events: the reports of ended suite runs and the state of their delivery. An event and the verdicts that it
 * reports are stored in one transaction. The webhook's delivery thread (webhook/webhook.c) calls this module. As with store.h,
 * all functions are thread-safe, all changes are on disk when a function returns, and database errors have the domain
 * RL_STORAGE. */
#ifndef RL_STORE_WEBHOOKS_H
#define RL_STORE_WEBHOOKS_H

#include <stdint.h>

#include "base/error.h"

typedef struct rl_store rl_store;

/* Makes suite runs store webhook events when they end. `added` is called after each transaction that has stored events, by the
 * thread that has committed it. */
int rl_store_webhook_enable(rl_store *store, void (*added)(void *context), void *context, rl_error *err);
void rl_store_webhook_disable(rl_store *store); /* no suite run may end during the call */

typedef struct rl_webhook_event {
  int64_t id, suite_run_id;
  char event_id[48];
  char *body; /* malloc'ed */
  int64_t attempts, created_ns, next_attempt_ns;
} rl_webhook_event;
/* Returns 1 and sets *event to the pending event with the earliest next_attempt_ns; returns 0 if no event is pending. The caller
 * clears *event. */
int rl_store_webhook_next_event(rl_store *store, rl_webhook_event *event, rl_error *err);
void rl_webhook_event_clear(rl_webhook_event *event);

typedef enum rl_webhook_state { RL_WEBHOOK_PENDING, RL_WEBHOOK_DELIVERED, RL_WEBHOOK_GIVEN_UP } rl_webhook_state;
typedef struct rl_webhook_attempt {
  rl_webhook_state state;  /* state of the event after the attempt */
  int64_t next_attempt_ns; /* used if the state is pending */
  const char *error;       /* reason of the failure; NULL: the attempt did not fail */
} rl_webhook_attempt;
/* Stores the result of an attempt to deliver the event. */
int rl_store_webhook_record_attempt(rl_store *store, const rl_webhook_event *event, const rl_webhook_attempt *attempt,
                                    rl_error *err);

/* Numbers of events and of failed attempts since rl_store_webhook_enable. */
typedef struct rl_webhook_counts {
  int64_t pending; /* number of events that are pending at the time of the call */
  int64_t delivered, failed_attempts, given_up;
} rl_webhook_counts;
rl_webhook_counts rl_store_webhook_counts(const rl_store *store);

#endif
