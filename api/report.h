/* A kernel's report as JSON: sections, the findings of the rules, the roofline. Pure functions over the metrics that the store
 * returns. */
#ifndef RL_API_REPORT_H
#define RL_API_REPORT_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "analyze/findings.h"
#include "analyze/sections.h"
#include "base/cleanup.h"
#include "base/error.h"

/* The metrics of a kernel and of its run, in one sorted list. */
typedef struct rl_kernel_metrics {
  cJSON *kernel, *run; /* [[name, value, reason]...]: the items point into them */
  rl_metric_value *items;
  rl_metric_values values;
} rl_kernel_metrics;

/* Parses the JSON texts of the store's queries; kernel NULL: the kernel has none. */
int rl_kernel_metrics_parse(const char *kernel, const char *run, rl_kernel_metrics *metrics, rl_error *err);
void rl_kernel_metrics_clear(rl_kernel_metrics *metrics);

/* Determines the sections that a report shows for the kernels of a run. */
typedef struct rl_report_view {
  char capability[8];      /* "9.0"; "" when unknown */
  bool request_is_known;   /* false: the run's row does not have the request */
  uint32_t requested_bits; /* bit i: rl_sections[i] */
} rl_report_view;

/* Makes a view of the columns of the run's row; each may be NULL. requested: a JSON list of section ids. */
rl_report_view rl_report_view_make(const char *capability, const char *requested);
/* Returns the bits of the sections to show: the requested ones, or, when the request is unknown, those that have values. 0: the
 * counters pass did not profile the kernel. */
uint32_t rl_report_view_sections(const rl_report_view *view, const rl_metric_values *values);

/* [{"id", "name", "tables": [{"name", "rows": [{"name", "unit", "value", "metric", "reason"}]}]}] */
cJSON *rl_report_sections(const rl_report_view *view, const rl_metric_values *values);
/* The same, with "a", "b", "difference" and "relative" (difference / |a|) instead of "value". */
cJSON *rl_report_differences(const rl_report_view *view_a, const rl_metric_values *a, const rl_report_view *view_b,
                             const rl_metric_values *b);

/* The caller frees items. */
typedef struct rl_findings {
  rl_finding *items;
  size_t count;
} rl_findings;
/* Returns the findings of all rules, combined by cause (findings.h); none if memory is exhausted. */
rl_findings rl_report_apply_rules(const rl_metric_values *values);
/* [{"rule", "version", "section", "kind", "title", "message", "inputs", "speedup_pct", "scope", "cause", "parts"}]; a part has
 * the members up to "inputs". */
cJSON *rl_report_findings_json(const rl_findings *findings, const cJSON *instructions);
/* The same, of the findings that rl_report_apply_rules returns. */
cJSON *rl_report_findings(const rl_metric_values *values, const cJSON *instructions);
/* [{"rule", "change": "appeared" "went" "stayed", "a": finding or null, "b": finding or null}]: every rule for itself, without
 * parts. */
cJSON *rl_report_finding_changes(const rl_metric_values *a, const rl_metric_values *b);
/* The kernel's rl_kernel_verdict. library: a library's kernel, whose author the advice does not reach. */
cJSON *rl_report_verdict(const rl_metric_values *values, bool library);
/* {"name", "advice"} of the library that the kernel belongs to, or null. run: the report's row; a source job compiles or loads
 * the caller's own code, so that its kernels belong to no library. */
cJSON *rl_report_library(const cJSON *run, const cJSON *kernel, const rl_metric_values *values);
/* The kernel's rl_roofline: achieved rates, ceilings, points and classification. */
cJSON *rl_report_roofline(const rl_metric_values *values);

/* One section of the metric catalogue with its rows. */
cJSON *rl_report_catalogue(size_t section);

#endif
