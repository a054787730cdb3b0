/* Ownership by attribute: `rl_auto(free_text) char *text = ...` is released when it leaves its scope;
 * rl_steal(&text) hands it out on success. A module ends its header with RL_DEFINE_CLEANUP for its own type. */
#ifndef RL_BASE_CLEANUP_H
#define RL_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

#define rl_auto(function) __attribute__((cleanup(function)))

/* Define `static void NAME(TYPE *object)` that calls RELEASE(*object) unless *object equals EMPTY. */
#define RL_DEFINE_CLEANUP(NAME, TYPE, RELEASE, EMPTY)             \
  __attribute__((unused)) static inline void NAME(TYPE *object) { \
    if (*object != (EMPTY)) (void)RELEASE(*object);               \
  }

/* The pointer, taken out of its variable. */
#define rl_steal(variable)                        \
  __extension__({                                 \
    __typeof__(*(variable)) taken_ = *(variable); \
    *(variable) = NULL;                           \
    taken_;                                       \
  })

RL_DEFINE_CLEANUP(rl_free_text, char *, free, NULL)
RL_DEFINE_CLEANUP(rl_close_descriptor, int, close, -1)

#endif
