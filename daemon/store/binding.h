/* Values for the parameters of a named statement. */
#ifndef RL_STORE_BINDING_H
#define RL_STORE_BINDING_H

#include <stdint.h>

typedef struct rl_binding {
  const char *name; /* ":job"; a parameter without a binding is NULL */
  enum { RL_BIND_NULL, RL_BIND_INT, RL_BIND_REAL, RL_BIND_TEXT } type;
  int64_t integer;
  double real;
  const char *text;
} rl_binding;

#define RL_INT(NAME, VALUE) \
  { .name = (NAME), .type = RL_BIND_INT, .integer = (int64_t)(VALUE) }
#define RL_REAL(NAME, VALUE) \
  { .name = (NAME), .type = RL_BIND_REAL, .real = (VALUE) } /* NAN and infinity become NULL */
#define RL_TEXT(NAME, VALUE) \
  { .name = (NAME), .type = RL_BIND_TEXT, .text = (VALUE) } /* a NULL pointer becomes NULL */
/* "" becomes NULL. */
#define RL_TEXT_OR_NULL(NAME, VALUE) RL_TEXT(NAME, (VALUE)[0] != '\0' ? (VALUE) : NULL)

/* Expands to two arguments: an array of bindings and its length. */
#define RL_BINDINGS(...) (rl_binding[]){__VA_ARGS__}, (int)(sizeof((rl_binding[]){__VA_ARGS__}) / sizeof(rl_binding))

#endif
