/* Calls a registered function after each event of a job or a suite run is stored. The API's event streams register such a
 * function with the queue and with the suite runner. */
#ifndef RL_BASE_LISTENER_H
#define RL_BASE_LISTENER_H

#include <pthread.h>
#include <stdint.h>

/* id: of the job or suite run to which the event belongs. */
typedef void rl_listener_function(void *context, int64_t id);

typedef struct rl_listener {
  pthread_mutex_t lock; /* held while on_event runs, so that rl_listener_set waits for it */
  rl_listener_function *on_event;
  void *context;
} rl_listener;

void rl_listener_init(rl_listener *listener);
void rl_listener_destroy(rl_listener *listener);
/* Registers the function, or removes it when on_event is NULL. When this returns, the previous function is not running. */
void rl_listener_set(rl_listener *listener, rl_listener_function *on_event, void *context);
/* Calls the registered function, if there is one. */
void rl_listener_notify(rl_listener *listener, int64_t id);

#endif
