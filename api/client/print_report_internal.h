/* Functions that print_report.c defines and print_summary.c also uses. */
#ifndef RL_CLIENT_PRINT_REPORT_INTERNAL_H
#define RL_CLIENT_PRINT_REPORT_INTERNAL_H

#include <cjson/cJSON.h>
#include <stdio.h>

void rl_print_report_run(FILE *out, const char *label, const cJSON *run);
void rl_print_kernel_header(FILE *out, const cJSON *kernel);
const char *rl_finding_mark(const cJSON *finding); /* returns "!", or "·" for a finding without advice */
void rl_print_finding(FILE *out, const char *mark, const cJSON *finding);

#endif
