/* Values for the parameters of a named SQL statement (db.h) or of a query of the store (store.h). */
#ifndef RL_STORE_BINDING_H
#define RL_STORE_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rl_binding {
  const char *name; /* ":job"; a parameter without a binding is NULL */
  enum { RL_SQL_NULL, RL_SQL_INTEGER, RL_SQL_REAL, RL_SQL_TEXT } type;
  int64_t integer;
  double real;
  const char *text;
} rl_binding;

static inline bool rl_binding_is_null(const rl_binding *binding) {
  return binding->type == RL_SQL_NULL || (binding->type == RL_SQL_TEXT && binding->text == NULL);
}

#define RL_BIND_INTEGER(NAME, VALUE) \
  { .name = (NAME), .type = RL_SQL_INTEGER, .integer = (int64_t)(VALUE) }
#define RL_BIND_REAL(NAME, VALUE) \
  { .name = (NAME), .type = RL_SQL_REAL, .real = (VALUE) } /* NAN and infinity become NULL */
#define RL_BIND_TEXT(NAME, VALUE) \
  { .name = (NAME), .type = RL_SQL_TEXT, .text = (VALUE) } /* a NULL pointer becomes NULL */
/* Binds NULL instead of "". */
#define RL_BIND_TEXT_OR_NULL(NAME, VALUE) RL_BIND_TEXT(NAME, (VALUE)[0] != '\0' ? (VALUE) : NULL)

/* Expands to two arguments: an array of bindings and its length. */
#define RL_BINDINGS(...) (rl_binding[]){__VA_ARGS__}, (int)(sizeof((rl_binding[]){__VA_ARGS__}) / sizeof(rl_binding))

#endif
