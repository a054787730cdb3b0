/* Implements listener.h. A mutex is held while the function is set and while it runs. */
#include "base/listener.h"

#include <stddef.h>

void rl_listener_init(rl_listener *listener) {
  pthread_mutex_init(&listener->lock, NULL);
  listener->on_event = NULL;
}

void rl_listener_destroy(rl_listener *listener) { pthread_mutex_destroy(&listener->lock); }

void rl_listener_set(rl_listener *listener, rl_listener_function *on_event, void *context) {
  pthread_mutex_lock(&listener->lock);
  listener->on_event = on_event;
  listener->context = context;
  pthread_mutex_unlock(&listener->lock);
}

void rl_listener_notify(rl_listener *listener, int64_t id) {
  pthread_mutex_lock(&listener->lock);
  if (listener->on_event != NULL) listener->on_event(listener->context, id);
  pthread_mutex_unlock(&listener->lock);
}
