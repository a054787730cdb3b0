/* Arithmetic over numbers by name: what the rows of the metric catalogue and the rules are written in. Any text is safe to read.
 *
 *   a || b   a && b   < <= > >= == !=   + -   * /   -a !a   ( )   number   name   min(a, ...) max(a, ...) floor(a) ceil(a)
 *
 * A name is letters, digits, '_' and '.', as metrics are called. NAN is "not known" and stays so through every operator, as does
 * a division by zero; && and || are known as soon as one side decides. True is 1. */
#ifndef RL_ANALYZE_EXPRESSION_H
#define RL_ANALYZE_EXPRESSION_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_EXPRESSION_NAME = 128 };

typedef struct rl_scope {
  double (*lookup)(void *context, const char *name); /* NAN: not known */
  void *context;
} rl_scope;

/* -1 (RL_INPUT) when the text can't be read, with the place in the message. */
int rl_expression_evaluate(const char *text, size_t length, const rl_scope *scope, double *value, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
