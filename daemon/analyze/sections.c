#include "analyze/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/expression.h"

typedef struct inputs {
  const rl_metric_values *values;
  char *reason; /* "" until an input is missing */
} inputs;

static double input(void *context, const char *name) {
  inputs *all = context;
  const rl_metric_value *found = rl_metric_find(all->values, name);
  if (found && !isnan(found->value)) return found->value;
  if (all->reason[0] == '\0') {
    if (found && found->reason) snprintf(all->reason, RL_ROW_REASON_SIZE, "%s", found->reason);
    else snprintf(all->reason, RL_ROW_REASON_SIZE, "%s was not collected", name);
  }
  return NAN;
}

rl_row_value rl_row_evaluate(const rl_section_row *row, const rl_metric_values *values) {
  rl_row_value result = {.value = NAN};
  inputs all = {values, result.reason};
  rl_error err = {0};
  if (rl_expression_evaluate(row->expression, strlen(row->expression), &(rl_scope){input, &all}, &result.value, &err))
    snprintf(result.reason, sizeof result.reason, "%s", err.message);
  else if (!isnan(result.value)) result.reason[0] = '\0';
  else if (result.reason[0] == '\0') snprintf(result.reason, sizeof result.reason, "not defined: a divisor is 0");
  return result;
}

const char *rl_row_text(const rl_section_row *row, double value) {
  if (!row->choices) return NULL;
  for (size_t i = 0; row->choices[i]; i++)
    if (value == (double)i) return row->choices[i];
  return NULL;
}

size_t rl_row_parts(const rl_section_row *row, const rl_metric_values *values, const rl_metric_value **first) {
  size_t length = strlen(row->key), count = 0;
  if (!row->instances) return 0;
  for (size_t i = 0; i < values->count; i++) {
    const rl_metric_value *item = &values->items[i];
    if (strncmp(item->name, row->key, length) != 0 || item->name[length] != ':') continue;
    if (count++ == 0) *first = item;
  }
  return count;
}

/* Is the word one of the space-separated words? */
static bool holds(const char *words, const char *word) {
  size_t length = strlen(word);
  for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
    if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return true;
  return false;
}

bool rl_row_is_on(const rl_section_row *row, const char *capability) {
  if (!row->chips || !capability || capability[0] == '\0') return true;
  return holds(row->chips, capability) || !holds(rl_catalogue_chips, capability);
}
