/* Webhook events in the database: the reports of finished suite runs and the state of their delivery. An event and the verdicts
 * that it reports are stored in one transaction. Like store.h: thread-safe, on disk when a function returns, errors
 * RL_STORAGE. */
#ifndef RL_STORE_WEBHOOKS_H
#define RL_STORE_WEBHOOKS_H

#include <stdint.h>

#include "base/error.h"

typedef struct rl_store rl_store;

/* Makes suite runs store events when they end. `added` is called after each transaction that stored events, in the thread that
 * committed it. */
int rl_store_webhook_enable(rl_store *store, void (*added)(void *context), void *context, rl_error *err);
void rl_store_webhook_disable(rl_store *store); /* no suite run may end during the call */

typedef struct rl_webhook_event {
  int64_t id, suite_run_id;
  char event_id[48];
  char *body; /* malloc'ed */
  int64_t attempts, created_ns, next_attempt_ns;
} rl_webhook_event;
/* Returns 1 and the pending event with the earliest next_attempt_ns; 0 if none is pending. The caller clears *event. */
int rl_store_webhook_next_event(rl_store *store, rl_webhook_event *event, rl_error *err);
void rl_webhook_event_clear(rl_webhook_event *event);

typedef enum rl_webhook_state { RL_WEBHOOK_PENDING, RL_WEBHOOK_DELIVERED, RL_WEBHOOK_GIVEN_UP } rl_webhook_state;
typedef struct rl_webhook_attempt {
  rl_webhook_state state;  /* state of the event after the attempt */
  int64_t next_attempt_ns; /* used if the state is pending */
  const char *error;       /* reason of the failure; NULL: the attempt did not fail */
} rl_webhook_attempt;
/* Records an attempt to deliver the event. */
int rl_store_webhook_record_attempt(rl_store *store, const rl_webhook_event *event, const rl_webhook_attempt *attempt,
                                    rl_error *err);

/* The counters begin at rl_store_webhook_enable. */
typedef struct rl_webhook_counts {
  int64_t pending; /* number of events that were pending at the time of the call */
  int64_t delivered, failed_attempts, given_up;
} rl_webhook_counts;
rl_webhook_counts rl_store_webhook_counts(const rl_store *store);

#endif
