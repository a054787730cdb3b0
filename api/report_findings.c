/* Implements the functions of report.h for findings and for the library to which a kernel belongs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/library_kernel.h"
#include "api/report.h"
#include "base/json_members.h"

rl_findings rl_report_apply_rules(const rl_metric_values *values, bool of_library) {
  rl_findings findings = {.count = rl_rules_apply(values, NULL, 0)};
  findings.items = calloc(findings.count + 1, sizeof *findings.items);
  if (findings.items) rl_rules_apply(values, findings.items, findings.count);
  else findings.count = 0;
  findings.count = rl_findings_combine(findings.items, findings.count, values);
  if (of_library) rl_findings_advise_caller(findings.items, findings.count);
  return findings;
}

static cJSON *inputs_json(const rl_finding *finding) {
  cJSON *inputs = cJSON_CreateArray();
  for (int i = 0; i < finding->input_count; i++) {
    cJSON *input = cJSON_CreateObject();
    cJSON_AddStringToObject(input, "name", finding->inputs[i].name);
    rl_json_add_number(input, "value", finding->inputs[i].value);
    rl_json_add_text(input, "reason", finding->inputs[i].reason);
    cJSON_AddItemToArray(inputs, input);
  }
  return inputs;
}

/* --- lines ------------------------------------------------------------------------------------------------------------- */

enum { MAX_LINES = 512, MAX_LISTED_LINES = 5 };

typedef struct source_line {
  const char *file; /* belongs to the instruction */
  double line, executed;
} source_line;

/* Returns whether the opcode without its modifiers is one of the space-separated words. */
static bool is_listed(const char *opcode, const char *words) {
  size_t length = opcode ? strcspn(opcode, ".") : 0;
  for (const char *word = words; length > 0 && *word; word += strcspn(word, " "), word += *word == ' ')
    if (strcspn(word, " ") == length && strncmp(word, opcode, length) == 0) return true;
  return false;
}

static void add_to_lines(source_line lines[MAX_LINES], size_t *count, const cJSON *instruction) {
  const char *file = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(instruction, "file"));
  double line = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(instruction, "line"));
  const cJSON *counts = cJSON_GetObjectItemCaseSensitive(instruction, "counts");
  double executed = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(counts, "inst_executed"));
  size_t i = 0;
  if (!file || isnan(line) || !(executed > 0)) return;
  while (i < *count && (lines[i].line != line || strcmp(lines[i].file, file) != 0)) i++;
  if (i == MAX_LINES) return;
  if (i == *count) lines[(*count)++] = (source_line){.file = file, .line = line};
  lines[i].executed += executed;
}

static int compare_executed_descending(const void *a, const void *b) {
  double x = ((const source_line *)a)->executed, y = ((const source_line *)b)->executed;
  return x == y ? 0 : x > y ? -1 : 1;
}

/* Makes a list of the source lines that contain instructions to which the rule applies, the most executed line first. Returns an
 * empty list if the rule names no opcodes or instructions is NULL. */
static cJSON *lines_json(const rl_rule *rule, const cJSON *instructions) {
  source_line lines[MAX_LINES];
  size_t count = 0;
  const cJSON *instruction;
  cJSON *array = cJSON_CreateArray();
  if (!rule->opcodes) return array;
  cJSON_ArrayForEach (instruction, instructions)
    if (is_listed(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(instruction, "opcode")), rule->opcodes))
      add_to_lines(lines, &count, instruction);
  qsort(lines, count, sizeof *lines, compare_executed_descending);
  for (size_t i = 0; i < count && i < MAX_LISTED_LINES; i++) {
    cJSON *line = cJSON_CreateObject();
    cJSON_AddStringToObject(line, "file", lines[i].file);
    cJSON_AddNumberToObject(line, "line", lines[i].line);
    cJSON_AddNumberToObject(line, "executed", lines[i].executed);
    cJSON_AddItemToArray(array, line);
  }
  return array;
}

/* --- findings ---------------------------------------------------------------------------------------------------------- */

static void add_rule(cJSON *object, const rl_finding *finding, const cJSON *instructions) {
  cJSON_AddStringToObject(object, "rule", finding->rule->id);
  cJSON_AddNumberToObject(object, "version", finding->rule->version);
  cJSON_AddStringToObject(object, "section", finding->rule->section);
  cJSON_AddStringToObject(object, "kind", rl_finding_kind_names[finding->kind]);
  cJSON_AddStringToObject(object, "title", finding->rule->title);
  cJSON_AddStringToObject(object, "message", finding->message);
  cJSON_AddItemToObject(object, "inputs", inputs_json(finding));
  cJSON_AddItemToObject(object, "lines", lines_json(finding->rule, instructions));
}

/* Makes the JSON of a finding with empty lists of intervals, names and parts. */
static cJSON *finding_json(const rl_finding *finding, const cJSON *instructions) {
  cJSON *object = cJSON_CreateObject();
  rl_cause_id cause = finding->rule->cause;
  add_rule(object, finding, instructions);
  rl_json_add_number(object, "speedup_pct", finding->speedup_pct);
  rl_json_add_text(object, "scope", isnan(finding->speedup_pct) ? NULL : finding->global ? "global" : "local");
  rl_json_add_text(object, "cause", cause == RL_CAUSE_NONE ? NULL : rl_causes[cause].name);
  cJSON_AddArrayToObject(object, "intervals");
  cJSON_AddArrayToObject(object, "names");
  cJSON_AddArrayToObject(object, "parts");
  return object;
}

static cJSON *part_json(const rl_finding *finding, const cJSON *instructions) {
  cJSON *object = cJSON_CreateObject();
  add_rule(object, finding, instructions);
  return object;
}

cJSON *rl_report_findings_json(const rl_findings *findings, const cJSON *instructions) {
  cJSON *array = cJSON_CreateArray(), *parts = NULL;
  for (size_t i = 0; i < findings->count; i++) {
    const rl_finding *finding = &findings->items[i];
    cJSON *object = finding->is_part ? part_json(finding, instructions) : finding_json(finding, instructions);
    cJSON_AddItemToArray(finding->is_part ? parts : array, object);
    if (!finding->is_part) parts = cJSON_GetObjectItemCaseSensitive(object, "parts");
  }
  return array;
}

cJSON *rl_report_findings(const rl_metric_values *values, const cJSON *instructions, bool of_library) {
  rl_findings findings = rl_report_apply_rules(values, of_library);
  cJSON *array = rl_report_findings_json(&findings, instructions);
  free(findings.items);
  return array;
}

static const rl_finding *finding_of(const rl_findings *findings, const rl_rule *rule) {
  for (size_t i = 0; i < findings->count; i++)
    if (findings->items[i].rule == rule) return &findings->items[i];
  return NULL;
}

/* Makes an element of rl_report_finding_changes. a, b: the findings of the rule, or NULL. */
static cJSON *change_json(const rl_rule *rule, const char *change, const rl_finding *a, const rl_finding *b) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "rule", rule->id);
  cJSON_AddStringToObject(object, "change", change);
  cJSON_AddItemToObject(object, "a", a ? finding_json(a, NULL) : cJSON_CreateNull());
  cJSON_AddItemToObject(object, "b", b ? finding_json(b, NULL) : cJSON_CreateNull());
  return object;
}

/* Returns the change of a finding that run a (in_a), run b (in_b) or both have. */
static const char *change_of(const rl_rule *rule, bool in_a, const rl_metric_values *a, bool in_b, const rl_metric_values *b) {
  if (!rl_rule_can_decide(rule, a) || !rl_rule_can_decide(rule, b)) return "unknown";
  return in_a && in_b ? "unchanged" : in_a ? "resolved" : "new";
}

cJSON *rl_report_finding_changes(const rl_metric_values *a, bool a_of_library, const rl_metric_values *b, bool b_of_library) {
  rl_findings findings_a = rl_report_apply_rules(a, a_of_library), findings_b = rl_report_apply_rules(b, b_of_library);
  cJSON *array = cJSON_CreateArray();
  for (const rl_rule_group *group = rl_rule_groups; group->title; group++)
    for (const rl_rule *rule = group->rules; rule->id; rule++) {
      const rl_finding *in_a = finding_of(&findings_a, rule), *in_b = finding_of(&findings_b, rule);
      if (!in_a && !in_b) continue;
      cJSON_AddItemToArray(array, change_json(rule, change_of(rule, in_a != NULL, a, in_b != NULL, b), in_a, in_b));
    }
  free(findings_a.items);
  free(findings_b.items);
  return array;
}

const char *rl_report_library_name(const cJSON *run, const cJSON *kernel) {
  const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run, "kind"));
  const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(kernel, "name"));
  return name && kind && strcmp(kind, "source") != 0 ? rl_library_of_kernel(name) : NULL;
}

cJSON *rl_report_library(const cJSON *run, const cJSON *kernel, const rl_metric_values *values) {
  const char *library = rl_report_library_name(run, kernel);
  if (!library) return cJSON_CreateNull();
  rl_kernel_verdict verdict = rl_kernel_verdict_make(values);
  char advice[512];
  snprintf(advice, sizeof advice, "A kernel of %s, whose code you can't change; you can change how you call it. %s", library,
           rl_library_advice(&verdict));
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "name", library);
  cJSON_AddStringToObject(object, "advice", advice);
  return object;
}
