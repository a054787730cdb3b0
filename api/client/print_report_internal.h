/* Functions that print_report.c defines and print_summary.c also uses. */
#ifndef RL_CLIENT_PRINT_REPORT_INTERNAL_H
#define RL_CLIENT_PRINT_REPORT_INTERNAL_H

#include <cjson/cJSON.h>
#include <stdio.h>

/* Prints a line with the run's number, workload, variant, device and commit. label: precedes the line, such as "A ". */
void rl_print_report_run(FILE *out, const char *label, const cJSON *run);
/* Prints a kernel's name, verdict, advice, grid, block and duration. */
void rl_print_kernel_header(FILE *out, const cJSON *kernel);
/* Returns "!", or "·" for a finding of kind info. */
const char *rl_finding_mark(const cJSON *finding);
/* Prints a finding and its parts. mark: begins the first line. */
void rl_print_finding(FILE *out, const char *mark, const cJSON *finding);

#endif
