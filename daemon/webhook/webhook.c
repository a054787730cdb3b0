/* Implements webhook.h. The thread waits for a pending event, posts it, and records the result. After a failure it pauses; each
 * pause is about twice as long as the previous one, but at most an hour. An event is given up after three days, or when the
 * receiver replies with the status 410. */
#include "webhook/webhook.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"
#include "store/webhooks.h"
#include "webhook/delivery.h"
#include "webhook/signature.h"

enum { MAX_PAUSE_S = 3600, STORE_PAUSE_S = 5, STATUS_GONE = 410 };
static const int64_t SECOND_NS = INT64_C(1000000000), GIVE_UP_AFTER_NS = 3 * INT64_C(86400000000000);

struct rl_webhook {
  rl_store *store;
  rl_webhook_client *client;
  rl_webhook_key key;
  int64_t retry_s;
  bool is_started;
  pthread_t thread;
  pthread_mutex_t mutex; /* guards the members below */
  pthread_cond_t woken;
  uint64_t wake_count; /* number of calls of wake; the thread waits until it changes */
  atomic_bool stopping;
};

static void wake(void *context) {
  rl_webhook *webhook = context;
  pthread_mutex_lock(&webhook->mutex);
  webhook->wake_count++;
  pthread_cond_signal(&webhook->woken);
  pthread_mutex_unlock(&webhook->mutex);
}

static uint64_t read_wake_count(rl_webhook *webhook) {
  pthread_mutex_lock(&webhook->mutex);
  uint64_t count = webhook->wake_count;
  pthread_mutex_unlock(&webhook->mutex);
  return count;
}

/* Waits until wake_count differs from `seen`, the webhook is closed, or pause_ns have passed. */
static void wait_for_event(rl_webhook *webhook, uint64_t seen, int64_t pause_ns) {
  const struct timespec until = rl_condition_deadline(pause_ns);
  int waited = 0;
  pthread_mutex_lock(&webhook->mutex);
  while (!atomic_load(&webhook->stopping) && webhook->wake_count == seen && waited != ETIMEDOUT)
    waited = pthread_cond_timedwait(&webhook->woken, &webhook->mutex, &until);
  pthread_mutex_unlock(&webhook->mutex);
}

/* Returns the pause after a failure, in ns. Its upper limit is retry_s, doubled for each earlier failure, but at most
 * MAX_PAUSE_S. The pause is chosen at random between half of the limit and the limit, so that senders that have failed at the
 * same time do not all post again at the same time. The pause is at least retry_after_s (at most MAX_PAUSE_S), for which the
 * receiver has asked. */
static int64_t choose_pause_ns(const rl_webhook *webhook, int64_t earlier_failures, int64_t retry_after_s) {
  int64_t limit_s = webhook->retry_s;
  for (int64_t i = 0; i < earlier_failures && limit_s < MAX_PAUSE_S; i++) limit_s *= 2;
  if (limit_s > MAX_PAUSE_S) limit_s = MAX_PAUSE_S;
  if (retry_after_s > MAX_PAUSE_S) retry_after_s = MAX_PAUSE_S;
  const int64_t pause_ns = limit_s * SECOND_NS / 2 + limit_s * 500 * randombytes_uniform(1000001);
  return pause_ns > retry_after_s * SECOND_NS ? pause_ns : retry_after_s * SECOND_NS;
}

static void log_attempt(const rl_webhook_event *event, const rl_webhook_attempt *attempt) {
  const char *id = event->event_id;
  const long long run = event->suite_run_id, attempts = event->attempts + 1;
  if (attempt->state == RL_WEBHOOK_DELIVERED)
    rl_log(RL_LOG_INFO, "webhook: delivered %s of suite run %lld, attempt %lld", id, run, attempts);
  else if (attempt->state == RL_WEBHOOK_GIVEN_UP)
    rl_log(RL_LOG_ERROR, "webhook: gave up %s of suite run %lld after %lld attempts: %s", id, run, attempts, attempt->error);
  else if (event->attempts == 0)
    rl_log(RL_LOG_WARNING, "webhook: can't deliver %s of suite run %lld, will try for three days: %s", id, run, attempt->error);
}

/* Posts the event and records the result. If the database can't be written now, repeats the recording until it succeeds or the
 * daemon stops; no other event is posted meanwhile. */
static void deliver(rl_webhook *webhook, const rl_webhook_event *event) {
  char signature[RL_WEBHOOK_SIGNATURE_SIZE];
  const rl_webhook_post post = {event->event_id, signature, event->body, rl_realtime_ns() / SECOND_NS};
  rl_webhook_reply reply;
  rl_error err;
  rl_webhook_sign(&webhook->key, post.id, post.timestamp_s, post.body, signature);
  rl_webhook_send(webhook->client, &post, &reply);
  if (reply.is_interrupted && (reply.status < 200 || reply.status > 299)) return; /* the post is repeated after the next start */
  rl_webhook_attempt attempt = {.state = RL_WEBHOOK_PENDING, .error = reply.error[0] != '\0' ? reply.error : NULL};
  const int64_t now_ns = rl_realtime_ns();
  if (attempt.error == NULL) attempt.state = RL_WEBHOOK_DELIVERED;
  else if (reply.status == STATUS_GONE || now_ns - event->created_ns >= GIVE_UP_AFTER_NS) attempt.state = RL_WEBHOOK_GIVEN_UP;
  else attempt.next_attempt_ns = now_ns + choose_pause_ns(webhook, event->attempts, reply.retry_after_s);
  bool is_recorded = rl_store_webhook_record_attempt(webhook->store, event, &attempt, &err) >= 0;
  if (!is_recorded) rl_log(RL_LOG_WARNING, "webhook: can't record a delivery: %s", err.message);
  while (!is_recorded && !atomic_load(&webhook->stopping)) {
    wait_for_event(webhook, read_wake_count(webhook), STORE_PAUSE_S * SECOND_NS);
    is_recorded = rl_store_webhook_record_attempt(webhook->store, event, &attempt, &err) >= 0;
  }
  if (is_recorded) log_attempt(event, &attempt);
}

/* Returns the time until the event's next attempt; 0: now. If that time is longer than any pause, the wall clock was set back
 * after the attempt was planned, and the attempt is due now. */
static int64_t time_until_attempt_ns(const rl_webhook_event *event) {
  const int64_t pause_ns = event->next_attempt_ns - rl_realtime_ns();
  return pause_ns <= 0 || pause_ns > MAX_PAUSE_S * SECOND_NS ? 0 : pause_ns;
}

static void *run_thread(void *argument) {
  rl_webhook *webhook = argument;
  while (!atomic_load(&webhook->stopping)) {
    const uint64_t seen = read_wake_count(webhook);
    rl_webhook_event event;
    rl_error err;
    int found = rl_store_webhook_next_event(webhook->store, &event, &err);
    int64_t pause_ns = found > 0 ? time_until_attempt_ns(&event) : found == 0 ? INT64_MAX : STORE_PAUSE_S * SECOND_NS;
    if (pause_ns > MAX_PAUSE_S * SECOND_NS) pause_ns = MAX_PAUSE_S * SECOND_NS;
    if (pause_ns == 0) deliver(webhook, &event);
    else wait_for_event(webhook, seen, pause_ns);
    rl_webhook_event_clear(&event);
  }
  return NULL;
}

static int enable(rl_webhook *webhook, rl_error *err) {
  const int64_t begin_ns = rl_monotonic_ns();
  while (rl_store_webhook_enable(webhook->store, wake, webhook, err) < 0)
    if (!rl_store_should_retry_at_start(err, begin_ns)) return -1;
  return 0;
}

static int start_thread(rl_webhook *webhook, rl_error *err) {
  int code = pthread_create(&webhook->thread, NULL, run_thread, webhook);
  webhook->is_started = code == 0;
  return code == 0 ? 0 : rl_fail(err, RL_ERRNO, code, "can't start the thread of the webhook: %s", strerror(code));
}

int rl_webhook_open(rl_store *store, const rl_webhook_target *target, rl_webhook **webhook, rl_error *err) {
  RL_CLEANUP(rl_webhook_cleanup) rl_webhook *opened = calloc(1, sizeof *opened);
  if (opened == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for the webhook");
  opened->store = store;
  opened->retry_s = target->retry_s;
  pthread_mutex_init(&opened->mutex, NULL);
  rl_condition_init(&opened->woken);
  if (rl_webhook_key_read(target->secret_file, &opened->key, err) < 0 ||
      rl_webhook_client_open(target->url, target->ca_file, &opened->client, err) < 0 || enable(opened, err) < 0 ||
      start_thread(opened, err) < 0)
    return -1;
  *webhook = rl_take_ownership(&opened);
  return 0;
}

void rl_webhook_close(rl_webhook *webhook) {
  if (webhook == NULL) return;
  atomic_store(&webhook->stopping, true);
  if (webhook->client != NULL) rl_webhook_client_interrupt(webhook->client);
  wake(webhook);
  if (webhook->is_started) pthread_join(webhook->thread, NULL);
  rl_store_webhook_disable(webhook->store);
  rl_webhook_client_close(webhook->client);
  rl_webhook_key_clear(&webhook->key);
  pthread_cond_destroy(&webhook->woken);
  pthread_mutex_destroy(&webhook->mutex);
  free(webhook);
}
