/* A kernel's report as JSON, from its numbers: sections, what the rules say of them, the roofline. Plain functions over what the
 * store gives; nothing of requests. */
#ifndef RL_API_REPORT_H
#define RL_API_REPORT_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "analyze/rules.h"
#include "analyze/sections.h"
#include "base/cleanup.h"
#include "base/error.h"

/* The numbers of a kernel together with those of its run. */
typedef struct rl_numbers {
  cJSON *kernel, *run; /* [[name, value, reason]...]: what the items point into */
  rl_metric_value *items;
  rl_metric_values values;
} rl_numbers;

/* From JSON text as the store's queries give it; kernel NULL: none. -1 when memory is out. */
int rl_numbers_read(const char *kernel, const char *run, rl_numbers *numbers, rl_error *err);
void rl_numbers_clear(rl_numbers *numbers);

/* What a report shows of a run's kernels. */
typedef struct rl_view {
  char capability[8]; /* "9.0"; "" when not known */
  bool asked_known;
  uint32_t asked; /* sections */
} rl_view;

/* From the columns of the run's row; NULL is not known. */
rl_view rl_view_of(const char *capability, const char *asked);
/* The sections to show of these numbers: what was asked for, or what was collected. 0: the kernel was not looked at. */
uint32_t rl_view_sections(const rl_view *view, const rl_metric_values *values);

/* [{"id", "name", "tables": [{"name", "rows": [{"name", "unit", "value", "metric", "reason"}]}]}] */
cJSON *rl_report_sections(const rl_view *view, const rl_metric_values *values);
/* The same with "a", "b", "difference" and "relative" (difference / |a|) in place of a value. */
cJSON *rl_report_differences(const rl_view *view_a, const rl_metric_values *a, const rl_view *view_b, const rl_metric_values *b);

/* What the rules say of these numbers; the caller frees items. No items when memory is out. */
typedef struct rl_findings {
  rl_finding *items;
  size_t count;
} rl_findings;
rl_findings rl_report_findings(const rl_metric_values *values);
/* [{"rule", "version", "section", "kind", "title", "message", "speedup_pct", "scope", "inputs"}] */
cJSON *rl_report_verdicts(const rl_metric_values *values);
/* What moved and computed how fast, under which ceilings, and what that makes of the kernel: rl_roofline as JSON. */
cJSON *rl_report_roofline(const rl_metric_values *values);
/* [{"rule", "change": "appeared" "went" "stayed", "a": finding or null, "b": finding or null}] */
cJSON *rl_report_verdict_changes(const rl_metric_values *a, const rl_metric_values *b);

/* A section of the catalogue with its rows. */
cJSON *rl_report_catalogue(size_t section);

#endif
