/* Evaluates arithmetic expressions over named numbers, as the metric catalogue and the rules use them. Evaluating malformed or
 * hostile text is safe.
 *
 *   a || b   a && b   < <= > >= == !=   + -   * /   -a !a   ( )   number   name   min(a, ...) max(a, ...) floor(a) ceil(a)
 *
 * A name consists of letters, digits, '_' and '.', like metric names, and has fewer than RL_EXPRESSION_NAME_SIZE characters. NAN
 * means unknown: an operator with an unknown operand and a division by zero return NAN. Exceptions: && is 0 if either side is 0,
 * and || is 1 if either side is known and not 0. True is 1. */
#ifndef RL_ANALYZE_EXPRESSION_H
#define RL_ANALYZE_EXPRESSION_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_EXPRESSION_NAME_SIZE = 128 };

typedef struct rl_scope {
  double (*lookup)(void *context, const char *name); /* returns the value of a name; NAN: unknown */
  void *context;
} rl_scope;

/* Evaluates `length` bytes of text. Fails with RL_INPUT and the position of the first syntax error, and leaves *value
 * unchanged. */
int rl_expression_evaluate(const char *text, size_t length, const rl_scope *scope, double *value, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
