/* Makes a kernel's report as JSON: the sections, the findings of the rules, and the roofline. The report handlers call these
 * functions with metrics that they have read from the store; no function here reads the store. */
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

/* Parses the JSON texts that the store's queries return. kernel_json NULL: the kernel has no metrics. */
int rl_kernel_metrics_parse(const char *kernel_json, const char *run_json, rl_kernel_metrics *metrics, rl_error *err);
void rl_kernel_metrics_clear(rl_kernel_metrics *metrics);

/* Determines which sections the report of a run shows. */
typedef struct rl_report_view {
  char capability[8];      /* compute capability: "9.0"; "" when unknown */
  bool request_is_known;   /* requested_bits is valid; false: the requested sections are not stored */
  uint32_t requested_bits; /* bit i: rl_sections[i] */
  bool empty_cache;        /* L2 was empty before each kernel, as in ncu */
} rl_report_view;

/* Makes a view from two columns of the run's row, which may be NULL. requested: a JSON list of section ids. */
rl_report_view rl_report_view_make(const char *capability, const char *requested, bool empty_cache);
/* Returns the bits of the sections to show: the requested sections, or, if the request is unknown, the sections that have values.
 * 0: the counters pass did not profile the kernel. */
uint32_t rl_report_view_sections(const rl_report_view *view, const rl_metric_values *values);

/* Returns [{"id", "name", "tables": [{"name", "rows": [{"name", "unit", "value", "metric", "reason"}]}]}]. */
cJSON *rl_report_sections(const rl_report_view *view, const rl_metric_values *values);
/* Returns the sections like rl_report_sections, but with "a", "b", "difference" and "relative" (difference / |a|) instead of
 * "value". */
cJSON *rl_report_differences(const rl_report_view *view_a, const rl_metric_values *a, const rl_report_view *view_b,
                             const rl_metric_values *b);

/* A list of findings. The caller frees items. */
typedef struct rl_findings {
  rl_finding *items;
  size_t count;
} rl_findings;
/* Applies all rules and combines findings with the same cause (findings.h). of_library: the findings are about a library's
 * kernel, so that their advice is for its caller. Returns an empty list if memory is exhausted. */
rl_findings rl_report_apply_rules(const rl_metric_values *values, bool of_library);
/* Returns [{"rule", "version", "section", "kind", "title", "message", "inputs", "lines", "speedup_pct", "scope", "cause",
 * "parts"}]. An element of "parts" has the members up to "lines". instructions: the kernel's instructions, from which "lines" is
 * made; may be NULL. */
cJSON *rl_report_findings_json(const rl_findings *findings, const cJSON *instructions);
/* Calls rl_report_apply_rules and rl_report_findings_json. */
cJSON *rl_report_findings(const rl_metric_values *values, const cJSON *instructions, bool of_library);
/* Compares the findings of each rule for a kernel in runs a and b. Returns [{"rule", "change", "a", "b"}]. change: "new",
 * "resolved", "unchanged", or "unknown": a metric of the rule is not known in one of the runs, or the run does not have the
 * kernel. a and b: the finding or null. Each finding is an element of the list, also one that
 * rl_report_findings_json adds to the "parts" of another. a_of_library, b_of_library: the kernel of this run belongs to a
 * library. */
cJSON *rl_report_finding_changes(const rl_metric_values *a, bool a_of_library, const rl_metric_values *b, bool b_of_library);
/* Returns the kernel's rl_kernel_verdict as JSON. library: the kernel belongs to a library; its verdict then has no advice,
 * because the user can't change its code. */
cJSON *rl_report_verdict(const rl_metric_values *values, bool library);
/* Returns the name of the library to which the kernel belongs, or NULL. run: the run's row. The kernels of a source job belong to
 * no library, because the job compiles or loads the client's code. kernel: NULL is allowed. */
const char *rl_report_library_name(const cJSON *run, const cJSON *kernel);
/* Returns {"name", "advice"} of the kernel's library, or null. */
cJSON *rl_report_library(const cJSON *run, const cJSON *kernel, const rl_metric_values *values);
/* Returns the kernel's rl_roofline as JSON: achieved rates, ceilings, points and classification. */
cJSON *rl_report_roofline(const rl_metric_values *values);

/* Returns one section of the metric catalogue with its rows. */
cJSON *rl_report_catalogue(size_t section);

#endif
