/* A function that another module registers to be called after an event was stored. */
#ifndef RL_BASE_LISTENER_H
#define RL_BASE_LISTENER_H

#include <pthread.h>
#include <stdint.h>

/* Receives the number of the job or suite run to which the event belongs. */
typedef void rl_listener_function(void *context, int64_t id);

typedef struct rl_listener {
  pthread_mutex_t lock; /* held while on_event runs, so that rl_listener_set waits for it */
  rl_listener_function *on_event;
  void *context;
} rl_listener;

void rl_listener_init(rl_listener *listener);
void rl_listener_destroy(rl_listener *listener);
/* Sets the function, or removes it (NULL). The previous one is not running when this returns. */
void rl_listener_set(rl_listener *listener, rl_listener_function *on_event, void *context);
void rl_listener_notify(rl_listener *listener, int64_t id);

#endif
