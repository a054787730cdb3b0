/* Evaluates arithmetic expressions over named numbers: the language of the metric catalogue and of the rules. Any text is safe
 * input.
 *
 *   a || b   a && b   < <= > >= == !=   + -   * /   -a !a   ( )   number   name   min(a, ...) max(a, ...) floor(a) ceil(a)
 *
 * A name consists of letters, digits, '_' and '.', like metric names. NAN means unknown: an operator with an unknown operand and
 * a division by zero give NAN. && and || are known as soon as one side decides. True is 1. */
#ifndef RL_ANALYZE_EXPRESSION_H
#define RL_ANALYZE_EXPRESSION_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_EXPRESSION_NAME = 128 };

typedef struct rl_scope {
  double (*lookup)(void *context, const char *name); /* NAN: unknown */
  void *context;
} rl_scope;

/* RL_INPUT: syntax error; the message has the position. */
int rl_expression_evaluate(const char *text, size_t length, const rl_scope *scope, double *value, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
