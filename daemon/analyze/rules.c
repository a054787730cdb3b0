/* Evaluates a rule: reads its inputs, its terms, its condition and its speed-up, then writes its message. An input that could
 * not be collected gives a finding about the missing metric. */
#include "analyze/rules.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analyze/expression.h"
#include "analyze/rules_tables.h"
#include "base/quantity.h"

const char *const rl_finding_kind_names[] = {"info", "warning", "optimization", NULL};

const rl_rule_group rl_rule_groups[] = {
    {"Speed of light", rl_rules_speed_of_light},
    {"Launch", rl_rules_launch},
    {"Occupancy", rl_rules_occupancy},
    {"Scheduling", rl_rules_scheduling},
    {"Instructions", rl_rules_instructions},
    {"Memory", rl_rules_memory},
    {"Distribution of work", rl_rules_work_distribution},
    {"Timeline of a run", rl_rules_timeline},
    {NULL, NULL},
};

/* --- expressions ------------------------------------------------------------------------------------------------------- */

typedef struct evaluation { /* the state of evaluating one rule */
  const rl_rule *rule;
  double inputs[RL_RULE_MAX_INPUTS], terms[RL_RULE_MAX_TERMS];
  size_t input_count, term_count;           /* inputs and terms that already have a value */
  char undeclared[RL_EXPRESSION_NAME_SIZE]; /* a name in an expression that the rule does not declare; "" if there is none */
} evaluation;

static double look_up(void *context, const char *name) {
  evaluation *e = context;
  for (size_t i = 0; i < e->input_count; i++)
    if (strcmp(e->rule->inputs[i].name, name) == 0) return e->inputs[i];
  for (size_t i = 0; i < e->term_count; i++)
    if (strcmp(e->rule->terms[i].name, name) == 0) return e->terms[i];
  snprintf(e->undeclared, sizeof e->undeclared, "%s", name);
  return NAN;
}

static int evaluate_text(evaluation *e, const char *text, size_t length, double *value, rl_error *err) {
  rl_scope scope = {look_up, e};
  *value = NAN;
  if (rl_expression_evaluate(text, length, &scope, value, err) < 0) return -1;
  return e->undeclared[0] ? rl_fail(err, RL_INPUT, 0, "%s: %s is not declared", e->rule->id, e->undeclared) : 0;
}

static int evaluate(evaluation *e, const char *text, double *value, rl_error *err) {
  return evaluate_text(e, text, strlen(text), value, err);
}

static int evaluate_terms(evaluation *e, rl_error *err) {
  for (const rl_rule_term *term = e->rule->terms; term->name; term++) {
    if (evaluate(e, term->expression, &e->terms[e->term_count], err) < 0) return -1;
    e->term_count++;
  }
  return 0;
}

/* --- messages ---------------------------------------------------------------------------------------------------------- */

#define ADVICE_MARK "|"

typedef struct text_buffer {
  char *text;
  size_t size_bytes, used_bytes;
} text_buffer;

/* Appends formatted text. Truncates text that does not fit. */
static void append(text_buffer *buffer, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t free_bytes = buffer->size_bytes - buffer->used_bytes;
  int length = vsnprintf(buffer->text + buffer->used_bytes, free_bytes, format, arguments);
  va_end(arguments);
  if (length > 0) buffer->used_bytes += (size_t)length < free_bytes ? (size_t)length : free_bytes - 1;
}

/* Appends the value of a placeholder. begin: the text after its "{", such as "expression}", "expression:N}" with the number of
 * decimals, or "expression:us}" for a duration in microseconds. Sets *end to the text after the "}". */
static int append_value(evaluation *e, const char *begin, const char **end, text_buffer *message, rl_error *err) {
  size_t length = strcspn(begin, ":}");
  const char *format = begin + length;
  double value;
  if (evaluate_text(e, begin, length, &value, err) < 0) return -1;
  if (strncmp(format, ":us}", 4) == 0) append(message, "%s", rl_us_text(value).text);
  else append(message, "%.*f", *format == ':' ? format[1] - '0' : 1, value);
  *end = strchr(begin, '}') + 1;
  return 0;
}

/* Appends the text that ends at `end`, with the values of its placeholders. */
static int append_text(evaluation *e, const char *text, const char *end, text_buffer *message, rl_error *err) {
  while (text < end) {
    const char *placeholder = memchr(text, '{', (size_t)(end - text)), *plain_end = placeholder ? placeholder : end;
    append(message, "%.*s", (int)(plain_end - text), text);
    text = plain_end;
    if (placeholder && append_value(e, placeholder + 1, &text, message, err) < 0) return -1;
  }
  return 0;
}

size_t rl_rule_fact_length(const rl_rule *rule) { return strcspn(rule->message, ADVICE_MARK); }

const char *rl_rule_advice(const rl_rule *rule) {
  const char *fact_end = rule->message + rl_rule_fact_length(rule);
  return *fact_end ? fact_end + strlen(ADVICE_MARK) : fact_end;
}

static int write_message(evaluation *e, rl_finding *finding, rl_error *err) {
  text_buffer message = {finding->message, sizeof finding->message, 0};
  const char *fact = e->rule->message, *advice = rl_rule_advice(e->rule);
  message.text[0] = 0;
  if (append_text(e, fact, fact + rl_rule_fact_length(e->rule), &message, err) < 0) return -1;
  finding->advice_offset = message.used_bytes;
  return append_text(e, advice, advice + strlen(advice), &message, err);
}

/* --- one rule ---------------------------------------------------------------------------------------------------------- */

/* Returns whether the kernel did nothing that the metric measures. */
static bool is_undefined(const rl_metric_value *value) {
  return isnan(value->value) && value->reason && strcmp(value->reason, RL_METRIC_UNDEFINED) == 0;
}

/* Copies the inputs from the values. Returns an unknown input, if possible one that is not undefined; NULL if all are known. */
static const rl_metric_value *read_inputs(evaluation *e, const rl_metric_values *values, rl_finding *finding) {
  const rl_metric_value *missing = NULL;
  for (const rl_rule_input *input = e->rule->inputs; input->name; input++) {
    const rl_metric_value *found = rl_metric_find(values, input->metric);
    rl_metric_value *copy = &finding->inputs[finding->input_count++];
    *copy = found ? *found : (rl_metric_value){.value = NAN};
    copy->name = input->metric;
    e->inputs[e->input_count++] = copy->value;
    if (isnan(copy->value) && (!missing || is_undefined(missing))) missing = copy;
  }
  return missing;
}

/* Reports an input that could not be collected. An input that was not requested has no reason, and is not reported, like one that
 * is undefined. */
static bool report_missing(const rl_metric_value *missing, rl_finding *finding) {
  if (!finding->rule->reports_missing_inputs || !missing->reason || is_undefined(missing)) return false;
  finding->kind = RL_FINDING_INFO;
  snprintf(finding->message, sizeof finding->message, "This rule needs %s, which is unavailable: %s.", missing->name,
           missing->reason);
  finding->advice_offset = strlen(finding->message);
  return true;
}

static int evaluate_rule(evaluation *e, rl_finding *finding, bool *triggered, rl_error *err) {
  double condition, speedup = NAN;
  if (evaluate_terms(e, err) < 0 || evaluate(e, e->rule->condition, &condition, err) < 0 ||
      (e->rule->speedup && evaluate(e, e->rule->speedup, &speedup, err) < 0) || write_message(e, finding, err) < 0)
    return -1;
  finding->speedup_pct = isnan(speedup) ? NAN : fmin(fmax(speedup, 0), 100);
  *triggered = !isnan(condition) && condition != 0;
  return 0;
}

bool rl_rule_apply(const rl_rule *rule, const rl_metric_values *values, rl_finding *finding) {
  evaluation e = {.rule = rule};
  *finding = (rl_finding){.rule = rule, .kind = rule->kind, .speedup_pct = NAN, .global = rule->scope == RL_SPEEDUP_GLOBAL};
  const rl_metric_value *missing = read_inputs(&e, values, finding);
  bool triggered = false;
  return missing ? report_missing(missing, finding) : evaluate_rule(&e, finding, &triggered, NULL) == 0 && triggered;
}

bool rl_rule_can_decide(const rl_rule *rule, const rl_metric_values *values) {
  for (const rl_rule_input *input = rule->inputs; input->name; input++) {
    const rl_metric_value *found = rl_metric_find(values, input->metric);
    if (!found || (isnan(found->value) && !is_undefined(found))) return false;
  }
  return true;
}

int rl_rule_check(const rl_rule *rule, rl_error *err) {
  evaluation e = {.rule = rule};
  rl_finding finding;
  bool triggered;
  for (const rl_rule_input *input = rule->inputs; input->name; input++) e.inputs[e.input_count++] = 1;
  return evaluate_rule(&e, &finding, &triggered, err);
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
