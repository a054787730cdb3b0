/* Prints documents of the API as text for a terminal of 80 columns. The commands of rooflinectl call this module. */
#ifndef RL_CLIENT_PRINT_H
#define RL_CLIENT_PRINT_H

#include <stdbool.h>
#include <cjson/cJSON.h>
#include <stdio.h>

/* Prints a job's results: the comparison table of training, the variants of kernels or of a layer, or ceilings. */
void rl_print_results(FILE *out, const cJSON *job, const cJSON *results, const cJSON *comparison);
/* Prints the runs of a job, or of an item of GET /jobs, on one line: "7 fp32, 8 fp16". */
void rl_print_runs(FILE *out, const cJSON *runs);
/* Prints the runs of a kernel or source job. */
void rl_print_kernel_runs(FILE *out, const cJSON *job, const cJSON *runs);
/* Prints why values of a run are missing from the table. */
void rl_print_kernel_reasons(FILE *out, const cJSON *run);
/* Prints which runs are suspect, and the likely causes. */
void rl_print_suspect_runs(FILE *out, const cJSON *runs);
/* Does so for the runs A and B of a comparison. */
void rl_print_suspect_pair(FILE *out, const cJSON *pair);
/* Prints why ceilings may be too low; "": prints nothing. */
void rl_print_disturbed_ceilings(FILE *out, const char *reason);
/* Prints the runs of a layer job. */
void rl_print_layer_runs(FILE *out, const cJSON *runs);
/* Prints the run of a ceilings job. */
void rl_print_ceilings_run(FILE *out, const cJSON *run);
/* Prints an item of GET /ceilings. */
void rl_print_ceilings(FILE *out, const cJSON *ceilings);
/* Prints a run's report. section: prints only this section, with all its tables; NULL: the header of every section. */
void rl_print_report(FILE *out, const cJSON *report, const char *section);
/* Prints a report in at most 60 lines: the verdicts of the longest kernels, the findings sorted by the time they could save, and
 * the timeline. timeline: GET /runs/{id}/timeline/findings, or NULL. comparison: GET /jobs/{id}/comparison of a training run's
 * job, which explains the epoch's time, or NULL. */
void rl_print_report_summary(FILE *out, const cJSON *report, const cJSON *timeline, const cJSON *comparison);
/* Prints GET /runs/{id}/timeline/findings: the time classes and the findings, or why there is no trace. */
void rl_print_timeline_findings(FILE *out, const cJSON *timeline);
/* Prints GET /compare/timeline: the time classes and the rows that differ, or which run has no trace. */
void rl_print_timeline_comparison(FILE *out, const cJSON *comparison);
/* Prints GET /compare: two runs side by side. reports: GET /runs/{id}/report?detail=verdicts of each run. all: prints the header
 * of every section, not only of the first. */
void rl_print_run_comparison(FILE *out, const cJSON *comparison, const cJSON *const reports[2], bool all);
/* Prints a suite run: a row for each metric, the reasons and causes of metrics that changed or could not be judged, and the
 * verdict. */
void rl_print_suite_run(FILE *out, const cJSON *run);
/* Print GET /suites and GET /suites/{name}/baselines. */
void rl_print_suites(FILE *out, const cJSON *suites);
void rl_print_baselines(FILE *out, const cJSON *baselines);
/* Prints a document as JSON. Returns RL_EXIT_COMPLETED. */
int rl_print_json(const cJSON *document);

#endif
