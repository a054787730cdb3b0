/* Formats that have their own files: suite_junit.c and suite_markdown.c. */
#ifndef RL_CLIENT_SUITE_OUTPUTS_INTERNAL_H
#define RL_CLIENT_SUITE_OUTPUTS_INTERNAL_H

#include <cjson/cJSON.h>
#include <stdio.h>

void rl_write_junit(FILE *out, const cJSON *run);
void rl_write_markdown(FILE *out, const cJSON *run);

#endif
