/* A recursive-descent parser that evaluates while it reads. A table has the binary operators by precedence, another the
 * functions. The first syntax error ends the evaluation. */
#include "analyze/expression.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 }; /* limit of nesting, so that no text overflows the stack */

typedef struct parser {
  const char *next, *end;
  int depth;
  const rl_scope *scope;
  const char *error; /* position of the first syntax error; NULL: none */
} parser;

/* Records a syntax error here and skips the rest of the text. */
static double fail_here(parser *p) {
  if (!p->error) p->error = p->next;
  p->next = p->end;
  return NAN;
}

static void skip_space(parser *p) {
  while (p->next < p->end && isspace((unsigned char)*p->next)) p->next++;
}

/* Skips spaces. If the token comes next, skips it and returns true. */
static bool accept_token(parser *p, const char *token) {
  size_t length = strlen(token);
  skip_space(p);
  if ((size_t)(p->end - p->next) < length || memcmp(p->next, token, length) != 0) return false;
  p->next += length;
  return true;
}

static void expect_token(parser *p, const char *token) {
  if (!accept_token(p, token)) fail_here(p);
}

/* --- operators --------------------------------------------------------------------------------------------------------- */

static double add(double a, double b) { return a + b; }
static double subtract(double a, double b) { return a - b; }
static double multiply(double a, double b) { return a * b; }
static double divide(double a, double b) { return b == 0 ? NAN : a / b; }

/* Returns truth as 1 or 0; NAN if an operand is unknown. */
static double if_both_known(double a, double b, bool truth) { return isnan(a) || isnan(b) ? NAN : truth; }
static double less(double a, double b) { return if_both_known(a, b, a < b); }
static double less_equal(double a, double b) { return if_both_known(a, b, a <= b); }
static double greater(double a, double b) { return if_both_known(a, b, a > b); }
static double greater_equal(double a, double b) { return if_both_known(a, b, a >= b); }
static double equal(double a, double b) { return if_both_known(a, b, a == b); }
static double unequal(double a, double b) { return if_both_known(a, b, a != b); }

static double logical_and(double a, double b) { return a == 0 || b == 0 ? 0 : if_both_known(a, b, true); }
static double logical_or(double a, double b) {
  bool decided = (!isnan(a) && a != 0) || (!isnan(b) && b != 0);
  return decided ? 1 : if_both_known(a, b, false);
}

typedef struct binary_operator {
  const char *token;
  double (*apply)(double a, double b);
} binary_operator;

/* From lowest to highest precedence. Within a level, a token precedes its prefixes. */
enum { LEVEL_COUNT = 5, MAX_LEVEL_OPERATORS = 6 };
static const binary_operator operators[LEVEL_COUNT][MAX_LEVEL_OPERATORS + 1] = {
    {{"||", logical_or}},
    {{"&&", logical_and}},
    {{"<=", less_equal}, {">=", greater_equal}, {"==", equal}, {"!=", unequal}, {"<", less}, {">", greater}},
    {{"+", add}, {"-", subtract}},
    {{"*", multiply}, {"/", divide}},
};

/* --- functions --------------------------------------------------------------------------------------------------------- */

static double minimum(double a, double b) { return if_both_known(a, b, true) * fmin(a, b); }
static double maximum(double a, double b) { return if_both_known(a, b, true) * fmax(a, b); }

typedef struct function {
  const char *name;
  /* Function that is applied from left to right over any number of arguments; NULL: `unary` is used. */
  double (*binary)(double a, double b);
  double (*unary)(double a); /* function of one argument; NULL: `binary` is used */
} function;

static const function functions[] = {
    {"min", minimum, NULL}, {"max", maximum, NULL}, {"floor", NULL, floor}, {"ceil", NULL, ceil}};

static const function *find_function(const char *name) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strcmp(functions[i].name, name) == 0) return &functions[i];
  return NULL;
}

/* --- the grammar ------------------------------------------------------------------------------------------------------- */

static double read_level(parser *p, int level);

static double call_function(parser *p, const function *f) {
  double value = read_level(p, 0);
  if (f->unary) {
    expect_token(p, ")");
    return f->unary(value);
  }
  while (accept_token(p, ",")) value = f->binary(value, read_level(p, 0));
  expect_token(p, ")");
  return value;
}

static bool is_name_character(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

static double read_name(parser *p) {
  char name[RL_EXPRESSION_NAME_SIZE];
  const char *begin = p->next;
  while (p->next < p->end && is_name_character(*p->next)) p->next++;
  size_t length = (size_t)(p->next - begin);
  if (length >= sizeof name) return fail_here(p);
  memcpy(name, begin, length);
  name[length] = 0;
  if (!accept_token(p, "(")) return p->scope->lookup(p->scope->context, name);
  const function *f = find_function(name);
  return f ? call_function(p, f) : fail_here(p);
}

static double read_number(parser *p) {
  char digits[32], *after;
  size_t length = 0;
  while (length < sizeof digits - 1 && p->next + length < p->end && is_name_character(p->next[length])) length++;
  memcpy(digits, p->next, length);
  digits[length] = 0;
  double value = strtod(digits, &after);
  if (after != digits + length) return fail_here(p);
  p->next += length;
  return value;
}

static double read_operand(parser *p);

static double read_unary(parser *p) {
  if (accept_token(p, "-")) return -read_operand(p);
  if (accept_token(p, "!")) return equal(read_operand(p), 0);
  if (accept_token(p, "(")) {
    double value = read_level(p, 0);
    expect_token(p, ")");
    return value;
  }
  if (p->next == p->end) return fail_here(p);
  if (isdigit((unsigned char)*p->next)) return read_number(p);
  return isalpha((unsigned char)*p->next) || *p->next == '_' ? read_name(p) : fail_here(p);
}

static double read_operand(parser *p) {
  if (p->depth == MAX_DEPTH) return fail_here(p);
  p->depth++;
  double value = read_unary(p);
  p->depth--;
  return value;
}

static const binary_operator *accept_operator(parser *p, int level) {
  for (const binary_operator *o = operators[level]; o->token; o++)
    if (accept_token(p, o->token)) return o;
  return NULL;
}

static double read_level(parser *p, int level) {
  if (level == LEVEL_COUNT) return read_operand(p);
  double value = read_level(p, level + 1);
  for (const binary_operator *o; (o = accept_operator(p, level)) != NULL;) value = o->apply(value, read_level(p, level + 1));
  return value;
}

int rl_expression_evaluate(const char *text, size_t length, const rl_scope *scope, double *value, rl_error *err) {
  parser p = {.next = text, .end = text + length, .scope = scope};
  double result = read_level(&p, 0);
  skip_space(&p);
  if (p.next != p.end) fail_here(&p);
  if (p.error)
    return rl_fail(err, RL_INPUT, 0, "syntax error in the expression at character %td: %.*s", p.error - text, (int)length, text);
  *value = result;
  return 0;
}
