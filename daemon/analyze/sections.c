/* Evaluates a row's expression over the metrics and lists the parts of a row, the largest first. */
#include "analyze/sections.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/expression.h"

typedef struct row_inputs {
  const rl_metric_values *values;
  char *reason;             /* "": no input is missing */
  const char *known_reason; /* how the value of an uncounted input was obtained; NULL: all inputs were counted */
} row_inputs;

static double look_up_input(void *context, const char *name) {
  row_inputs *inputs = context;
  const rl_metric_value *found = rl_metric_find(inputs->values, name);
  if (found && !isnan(found->value)) {
    if (found->reason && !inputs->known_reason) inputs->known_reason = found->reason;
    return found->value;
  }
  if (inputs->reason[0] == '\0') {
    if (found && found->reason) snprintf(inputs->reason, RL_ROW_REASON_SIZE, "%s", found->reason);
    else snprintf(inputs->reason, RL_ROW_REASON_SIZE, "%s was not collected", name);
  }
  return NAN;
}

rl_row_value rl_row_evaluate(const rl_section_row *row, const rl_metric_values *values) {
  rl_row_value result = {.value = NAN};
  row_inputs inputs = {values, result.reason, NULL};
  rl_error err = {0};
  if (rl_expression_evaluate(row->expression, strlen(row->expression), &(rl_scope){look_up_input, &inputs}, &result.value, &err))
    snprintf(result.reason, sizeof result.reason, "%s", err.message);
  else if (!isnan(result.value))
    snprintf(result.reason, sizeof result.reason, "%s", inputs.known_reason ? inputs.known_reason : "");
  else if (result.reason[0] == '\0') snprintf(result.reason, sizeof result.reason, "not defined: a divisor is 0");
  return result;
}

const char *rl_row_text(const rl_section_row *row, double value) {
  if (!row->choices) return NULL;
  for (size_t i = 0; row->choices[i]; i++)
    if (value == (double)i) return row->choices[i];
  return NULL;
}

static int compare_values_descending(const void *a, const void *b) {
  const rl_row_part *x = a, *y = b;
  if (isnan(x->value) != isnan(y->value)) return isnan(x->value) ? 1 : -1;
  if (x->value != y->value && !isnan(x->value)) return x->value > y->value ? -1 : 1;
  return strcmp(x->name, y->name);
}

size_t rl_row_parts(const rl_section_row *row, const rl_metric_values *values, rl_row_part parts[RL_MAX_ROW_PARTS]) {
  size_t length = strlen(row->key), count = 0;
  if (row->parts == RL_PARTS_NONE) return 0;
  for (size_t i = 0; i < values->count && count < RL_MAX_ROW_PARTS; i++) {
    const rl_metric_value *item = &values->items[i];
    if (strncmp(item->name, row->key, length) == 0 && item->name[length] == ':')
      parts[count++] = (rl_row_part){item->name + length + 1, item->value};
  }
  qsort(parts, count, sizeof *parts, compare_values_descending);
  return count;
}

/* Returns true when a space-separated list contains the word. */
static bool contains_word(const char *words, const char *word) {
  size_t length = strlen(word);
  for (const char *found = words; (found = strstr(found, word)) != NULL; found += length)
    if ((found == words || found[-1] == ' ') && (found[length] == ' ' || found[length] == '\0')) return true;
  return false;
}

bool rl_row_is_available(const rl_section_row *row, const char *capability) {
  if (!row->chips || !capability || capability[0] == '\0') return true;
  return contains_word(row->chips, capability) || !contains_word(rl_catalogue_chips, capability);
}
