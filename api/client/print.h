/* Prints documents of the API as text for a terminal of 80 columns. */
#ifndef RL_CLIENT_PRINT_H
#define RL_CLIENT_PRINT_H

#include <cjson/cJSON.h>
#include <stdio.h>

/* A job's results from its three documents: the comparison table of training, the variants of kernels or of a layer, or
 * ceilings. */
void rl_print_results(FILE *out, const cJSON *job, const cJSON *results, const cJSON *comparison);
/* The runs of a job or of an item of /jobs on one line: "7 fp32, 8 fp16". */
void rl_print_runs(FILE *out, const cJSON *runs);
/* The runs of a kernel or source job. */
void rl_print_kernel_runs(FILE *out, const cJSON *job, const cJSON *runs);
/* Why cells of a run's row or column are empty, and its suspect samples. */
void rl_print_kernel_reasons(FILE *out, const cJSON *run);
/* The runs of a layer job. */
void rl_print_layer_runs(FILE *out, const cJSON *runs);
/* The run of a ceilings job. */
void rl_print_ceilings_run(FILE *out, const cJSON *run);
/* An item of /ceilings. */
void rl_print_ceilings(FILE *out, const cJSON *ceilings);
/* A run's report: one section with all of its tables, or the header of every section (NULL). */
void rl_print_report(FILE *out, const cJSON *report, const char *section);
/* The short form: the verdicts of the longest kernels, the findings by what they could save, and the timeline; at most 60 lines.
 * timeline: the document of /runs/{id}/timeline/findings; comparison: that of the job of a training run, which explains its
 * epoch; NULL: not asked for. */
void rl_print_report_summary(FILE *out, const cJSON *report, const cJSON *timeline, const cJSON *comparison);
/* The document of /runs/{id}/timeline/findings: the classes of time and the findings, or why there is no trace. */
void rl_print_timeline_findings(FILE *out, const cJSON *timeline);
/* The document of /compare/timeline: the classes and the rows that differ, or which run has no trace. */
void rl_print_timeline_comparison(FILE *out, const cJSON *comparison);
/* Two runs side by side. */
void rl_print_run_comparison(FILE *out, const cJSON *comparison);
/* A suite run: a row for each metric, the reasons and causes of those that changed or could not be judged, the verdict. */
void rl_print_suite_run(FILE *out, const cJSON *run);
/* The lists /suites and /suites/{name}/baselines. */
void rl_print_suites(FILE *out, const cJSON *suites);
void rl_print_baselines(FILE *out, const cJSON *baselines);
/* A document as the API returned it. Returns RL_EXIT_COMPLETED. */
int rl_print_json(const cJSON *document);

#endif
