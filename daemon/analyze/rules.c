#include "analyze/rules.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analyze/expression.h"
#include "analyze/rules_tables.h"

const char *const rl_finding_kind_names[] = {"info", "warning", "optimization", NULL};

const rl_rule_group rl_rule_groups[] = {
    {"Speed of light", rl_rules_speed},
    {"Launch", rl_rules_launch},
    {"Occupancy", rl_rules_occupancy},
    {"Scheduling", rl_rules_scheduling},
    {"Instructions", rl_rules_instructions},
    {"Memory", rl_rules_memory},
    {"Distribution of work", rl_rules_distribution},
    {NULL, NULL},
};

/* --- reading a rule's expressions -------------------------------------------------------------------------------------- */

typedef struct reading {
  const rl_rule *rule;
  double inputs[RL_RULE_INPUTS], terms[RL_RULE_TERMS];
  size_t input_count, term_count;      /* as far as they are known by now */
  char undeclared[RL_EXPRESSION_NAME]; /* a name that the rule does not declare; "" */
} reading;

static double look_up(void *context, const char *name) {
  reading *r = context;
  for (size_t i = 0; i < r->input_count; i++)
    if (strcmp(r->rule->inputs[i].name, name) == 0) return r->inputs[i];
  for (size_t i = 0; i < r->term_count; i++)
    if (strcmp(r->rule->terms[i].name, name) == 0) return r->terms[i];
  snprintf(r->undeclared, sizeof r->undeclared, "%s", name);
  return NAN;
}

static int evaluate_part(reading *r, const char *text, size_t length, double *value, rl_error *err) {
  rl_scope scope = {look_up, r};
  *value = NAN;
  if (rl_expression_evaluate(text, length, &scope, value, err) != 0) return -1;
  return r->undeclared[0] ? rl_fail(err, RL_INPUT, 0, "%s: %s is not declared", r->rule->id, r->undeclared) : 0;
}

static int evaluate(reading *r, const char *text, double *value, rl_error *err) {
  return evaluate_part(r, text, strlen(text), value, err);
}

static int evaluate_terms(reading *r, rl_error *err) {
  for (const rl_rule_term *term = r->rule->terms; term->name; term++) {
    if (evaluate(r, term->expression, &r->terms[r->term_count], err) != 0) return -1;
    r->term_count++;
  }
  return 0;
}

/* --- the message ------------------------------------------------------------------------------------------------------- */

typedef struct line {
  char *text;
  size_t size, used;
} line;

static void append(line *to, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int written = vsnprintf(to->text + to->used, to->size - to->used, format, arguments);
  va_end(arguments);
  if (written > 0) to->used = (size_t)written < to->size - to->used ? to->used + (size_t)written : to->size - 1;
}

/* expression} or expression:N}; *after is behind the brace. */
static int append_value(reading *r, const char *begin, const char **after, line *to, rl_error *err) {
  size_t length = strcspn(begin, ":}");
  int decimals = begin[length] == ':' ? begin[length + 1] - '0' : 1;
  double value;
  if (evaluate_part(r, begin, length, &value, err) != 0) return -1;
  append(to, "%.*f", decimals, value);
  *after = strchr(begin, '}') + 1;
  return 0;
}

static int write_message(reading *r, line to, rl_error *err) {
  to.text[0] = 0;
  for (const char *at = r->rule->message; *at;) {
    size_t plain = strcspn(at, "{");
    append(&to, "%.*s", (int)plain, at);
    at += plain;
    if (*at == '{' && append_value(r, at + 1, &at, &to, err) != 0) return -1;
  }
  return 0;
}

/* --- one rule over one kernel ------------------------------------------------------------------------------------------ */

/* Fills the inputs; returns the first that is not known, or NULL. */
static const rl_metric_value *read_inputs(reading *r, const rl_metric_values *values, rl_finding *finding) {
  const rl_metric_value *missing = NULL;
  for (const rl_rule_input *input = r->rule->inputs; input->name; input++) {
    const rl_metric_value *found = rl_metric_find(values, input->metric);
    rl_metric_value *copy = &finding->inputs[finding->input_count++];
    *copy = found ? *found : (rl_metric_value){.value = NAN};
    copy->name = input->metric;
    r->inputs[r->input_count++] = copy->value;
    if (!missing && isnan(copy->value)) missing = copy;
  }
  return missing;
}

/* What was not asked for is not missed: only what could not be had has a reason. */
static bool say_missing(const rl_metric_value *missing, rl_finding *finding) {
  if (!finding->rule->says_missing || !missing->reason) return false;
  finding->kind = RL_FINDING_INFO;
  snprintf(finding->message, sizeof finding->message, "This can't be judged without %s: %s.", missing->name, missing->reason);
  return true;
}

static int judge(reading *r, rl_finding *finding, bool *made, rl_error *err) {
  double when, speedup = NAN;
  if (evaluate_terms(r, err) != 0 || evaluate(r, r->rule->when, &when, err) != 0 ||
      (r->rule->speedup && evaluate(r, r->rule->speedup, &speedup, err) != 0) ||
      write_message(r, (line){finding->message, sizeof finding->message, 0}, err) != 0)
    return -1;
  finding->speedup_pct = isnan(speedup) ? NAN : fmin(fmax(speedup, 0), 100);
  *made = !isnan(when) && when != 0;
  return 0;
}

bool rl_rule_apply(const rl_rule *rule, const rl_metric_values *values, rl_finding *finding) {
  reading r = {.rule = rule};
  *finding = (rl_finding){.rule = rule, .kind = rule->kind, .speedup_pct = NAN, .global = rule->scope == RL_SPEEDUP_GLOBAL};
  const rl_metric_value *missing = read_inputs(&r, values, finding);
  bool made = false;
  return missing ? say_missing(missing, finding) : judge(&r, finding, &made, NULL) == 0 && made;
}

int rl_rule_check(const rl_rule *rule, rl_error *err) {
  reading r = {.rule = rule};
  rl_finding finding;
  bool made;
  for (const rl_rule_input *input = rule->inputs; input->name; input++) r.inputs[r.input_count++] = 1;
  return judge(&r, &finding, &made, err);
}

/* --- all rules --------------------------------------------------------------------------------------------------------- */

size_t rl_rules_apply(const rl_metric_values *values, rl_finding *findings, size_t capacity) {
  size_t count = 0;
  for (const rl_rule_group *group = rl_rule_groups; group->title; group++)
    for (const rl_rule *rule = group->rules; rule->id; rule++) {
      rl_finding finding;
      if (!rl_rule_apply(rule, values, &finding)) continue;
      if (count < capacity) findings[count] = finding;
      count++;
    }
  return count;
}

const rl_rule *rl_rule_find(const char *id) {
  for (const rl_rule_group *group = rl_rule_groups; group->title; group++)
    for (const rl_rule *rule = group->rules; rule->id; rule++)
      if (strcmp(rule->id, id) == 0) return rule;
  return NULL;
}
