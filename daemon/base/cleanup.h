/* Releases local variables at the end of their scope with GCC's attribute `cleanup`. For example, `RL_CLEANUP(rl_free_text) char
 * *text = ...` frees the text at the end of the scope, unless rl_take_ownership(&text) has set the variable to NULL before.
 * RL_DEFINE_CLEANUP defines a function such as rl_free_text for another type. */
#ifndef RL_BASE_CLEANUP_H
#define RL_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

#define RL_CLEANUP(function) __attribute__((cleanup(function)))

/* Defines `static void NAME(TYPE *object)`, which calls RELEASE(*object) unless *object equals EMPTY. */
#define RL_DEFINE_CLEANUP(NAME, TYPE, RELEASE, EMPTY)             \
  __attribute__((unused)) static inline void NAME(TYPE *object) { \
    if (*object != (EMPTY)) (void)RELEASE(*object);               \
  }

/* Returns the value of a pointer variable and sets the variable to NULL. */
#define rl_take_ownership(variable)                 \
  __extension__({                                   \
    __typeof__(*(variable)) pointer_ = *(variable); \
    *(variable) = NULL;                             \
    pointer_;                                       \
  })

RL_DEFINE_CLEANUP(rl_free_text, char *, free, NULL)
RL_DEFINE_CLEANUP(rl_close_descriptor, int, close, -1)

#endif
