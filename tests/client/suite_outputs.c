/* suite_outputs FORMAT < RUN.json: prints a suite run's document in a format of rooflinectl regress, or as its table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/print.h"
#include "api/client/suite_outputs.h"

enum { MAX_BYTES = 1 << 20 };

int main(int argc, char **argv) {
  char *text = malloc(MAX_BYTES);
  size_t length = text != NULL ? fread(text, 1, MAX_BYTES, stdin) : 0;
  cJSON *run = cJSON_ParseWithLength(text, length);
  const char *name = argc == 2 ? argv[1] : "";
  const rl_suite_output *output = rl_suite_outputs;
  while (output->name != NULL && strcmp(output->name, name) != 0) output++;
  const bool known = output->name != NULL || strcmp(name, "table") == 0;
  if (run != NULL && output->name != NULL) output->write(stdout, run);
  else if (run != NULL && known) rl_print_suite_run(stdout, run);
  cJSON_Delete(run);
  free(text);
  return run != NULL && known ? 0 : 2;
}
