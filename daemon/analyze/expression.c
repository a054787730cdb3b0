#include "analyze/expression.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 }; /* nesting limit, so that no text exhausts the stack */

typedef struct reader {
  const char *next, *end;
  int depth;
  const rl_scope *scope;
  const char *failed; /* position of the error; NULL: none */
} reader;

static double fail_here(reader *r) {
  if (!r->failed) r->failed = r->next;
  r->next = r->end;
  return NAN;
}

static void skip_space(reader *r) {
  while (r->next < r->end && isspace((unsigned char)*r->next)) r->next++;
}

static bool accept(reader *r, const char *token) {
  size_t length = strlen(token);
  skip_space(r);
  if ((size_t)(r->end - r->next) < length || memcmp(r->next, token, length) != 0) return false;
  r->next += length;
  return true;
}

static void expect(reader *r, const char *token) {
  if (!accept(r, token)) fail_here(r);
}

/* --- operators --------------------------------------------------------------------------------------------------------- */

static double add(double a, double b) { return a + b; }
static double subtract(double a, double b) { return a - b; }
static double multiply(double a, double b) { return a * b; }
static double divide(double a, double b) { return b == 0 ? NAN : a / b; }

static double known(double a, double b, bool truth) { return isnan(a) || isnan(b) ? NAN : truth; }
static double less(double a, double b) { return known(a, b, a < b); }
static double less_equal(double a, double b) { return known(a, b, a <= b); }
static double more(double a, double b) { return known(a, b, a > b); }
static double more_equal(double a, double b) { return known(a, b, a >= b); }
static double equal(double a, double b) { return known(a, b, a == b); }
static double unequal(double a, double b) { return known(a, b, a != b); }

static double both(double a, double b) { return a == 0 || b == 0 ? 0 : known(a, b, true); }
static double either(double a, double b) {
  bool decided = (!isnan(a) && a != 0) || (!isnan(b) && b != 0);
  return decided ? 1 : known(a, b, false);
}

typedef struct binary_operator {
  const char *token;
  double (*apply)(double a, double b);
} binary_operator;

/* From lowest to highest precedence. Within a level a token stands before its prefixes. */
enum { LEVELS = 5, LEVEL_OPERATORS = 6 };
static const binary_operator operators[LEVELS][LEVEL_OPERATORS + 1] = {
    {{"||", either}},
    {{"&&", both}},
    {{"<=", less_equal}, {">=", more_equal}, {"==", equal}, {"!=", unequal}, {"<", less}, {">", more}},
    {{"+", add}, {"-", subtract}},
    {{"*", multiply}, {"/", divide}},
};

/* --- functions --------------------------------------------------------------------------------------------------------- */

static double minimum(double a, double b) { return known(a, b, true) * fmin(a, b); }
static double maximum(double a, double b) { return known(a, b, true) * fmax(a, b); }

typedef struct function {
  const char *name;
  double (*fold)(double a, double b); /* any number of arguments */
  double (*map)(double a);            /* or one argument */
} function;

static const function functions[] = {
    {"min", minimum, NULL}, {"max", maximum, NULL}, {"floor", NULL, floor}, {"ceil", NULL, ceil}};

static const function *find_function(const char *name) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strcmp(functions[i].name, name) == 0) return &functions[i];
  return NULL;
}

/* --- the grammar ------------------------------------------------------------------------------------------------------- */

static double read_level(reader *r, int level);

static double call(reader *r, const function *f) {
  double value = read_level(r, 0);
  if (f->map) {
    expect(r, ")");
    return f->map(value);
  }
  while (accept(r, ",")) value = f->fold(value, read_level(r, 0));
  expect(r, ")");
  return value;
}

static bool is_name_character(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

static double read_name(reader *r) {
  char name[RL_EXPRESSION_NAME];
  const char *begin = r->next;
  while (r->next < r->end && is_name_character(*r->next)) r->next++;
  size_t length = (size_t)(r->next - begin);
  if (length >= sizeof name) return fail_here(r);
  memcpy(name, begin, length);
  name[length] = 0;
  if (!accept(r, "(")) return r->scope->lookup(r->scope->context, name);
  const function *f = find_function(name);
  return f ? call(r, f) : fail_here(r);
}

static double read_number(reader *r) {
  char digits[32], *after;
  size_t length = 0;
  while (length < sizeof digits - 1 && r->next + length < r->end && is_name_character(r->next[length])) length++;
  memcpy(digits, r->next, length);
  digits[length] = 0;
  double value = strtod(digits, &after);
  if (after != digits + length) return fail_here(r);
  r->next += length;
  return value;
}

static double read_operand(reader *r);

static double read_unary(reader *r) {
  if (accept(r, "-")) return -read_operand(r);
  if (accept(r, "!")) return equal(read_operand(r), 0);
  if (accept(r, "(")) {
    double value = read_level(r, 0);
    expect(r, ")");
    return value;
  }
  if (r->next == r->end) return fail_here(r);
  if (isdigit((unsigned char)*r->next)) return read_number(r);
  return isalpha((unsigned char)*r->next) || *r->next == '_' ? read_name(r) : fail_here(r);
}

static double read_operand(reader *r) {
  if (r->depth == MAX_DEPTH) return fail_here(r);
  r->depth++;
  double value = read_unary(r);
  r->depth--;
  return value;
}

static const binary_operator *accept_operator(reader *r, int level) {
  for (const binary_operator *o = operators[level]; o->token; o++)
    if (accept(r, o->token)) return o;
  return NULL;
}

static double read_level(reader *r, int level) {
  if (level == LEVELS) return read_operand(r);
  double value = read_level(r, level + 1);
  for (const binary_operator *o; (o = accept_operator(r, level)) != NULL;) value = o->apply(value, read_level(r, level + 1));
  return value;
}

int rl_expression_evaluate(const char *text, size_t length, const rl_scope *scope, double *value, rl_error *err) {
  reader r = {.next = text, .end = text + length, .scope = scope};
  double result = read_level(&r, 0);
  skip_space(&r);
  if (r.next != r.end) fail_here(&r);
  if (r.failed)
    return rl_fail(err, RL_INPUT, 0, "syntax error in the expression at character %td: %.*s", r.failed - text, (int)length, text);
  *value = result;
  return 0;
}
