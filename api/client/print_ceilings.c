/* Prints the run of a ceilings job, and an item of GET /ceilings. */
#include <stdbool.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/print.h"
#include "base/text.h"

enum { LABEL_COLUMNS = 19, VALUE_COLUMNS = 15 };

/* Prints the name of a rate without its unit ("dram_read" for dram_read_bytes_per_s), and the value with its unit. */
static void print_rate(FILE *out, const cJSON *rate) {
  const char *name = rl_json_text(rate, "name");
  const bool is_bytes = rl_ends_with(name, "_bytes_per_s");
  char label[RL_CELL_SIZE], cell[RL_CELL_SIZE];
  snprintf(label, sizeof label, "%.*s", (int)(strlen(name) - strlen(is_bytes ? "_bytes_per_s" : "_operations_per_s")), name);
  rl_print_cell(out, label, -LABEL_COLUMNS);
  rl_print_cell(out, (is_bytes ? rl_format_bytes_per_s : rl_format_operations_per_s)(cell, rl_json_number(rate, "value")),
                VALUE_COLUMNS);
  fprintf(out, "%s%s\n", rl_json_text(rate, "reason")[0] != '\0' ? "  " : "", rl_json_text(rate, "reason"));
}

static bool is_rate(const cJSON *measurement) {
  const char *name = rl_json_text(measurement, "name");
  return rl_ends_with(name, "_bytes_per_s") || rl_ends_with(name, "_operations_per_s");
}

void rl_print_ceilings_run(FILE *out, const cJSON *run) {
  const cJSON *measurement;
  if (rl_json_text(run, "engine")[0] == '\0') return; /* the run has not started */
  fprintf(out, "ceilings · samples: %.0f · commit %s\n\n", rl_json_number(run, "params.samples"), rl_json_text(run, "commit"));
  cJSON_ArrayForEach (measurement, rl_json_at(run, "measurements"))
    if (strcmp(rl_json_text(measurement, "pass"), "timing") == 0 && is_rate(measurement)) print_rate(out, measurement);
  rl_print_disturbed_ceilings(out, rl_json_text(run, "disturbed_reason"));
}

static double condition_value(const cJSON *ceilings, const char *name) {
  const cJSON *measurement;
  cJSON_ArrayForEach (measurement, rl_json_at(ceilings, "conditions"))
    if (strcmp(rl_json_text(measurement, "name"), name) == 0) return rl_json_number(measurement, "value");
  return NAN;
}

void rl_print_ceilings(FILE *out, const cJSON *ceilings) {
  const cJSON *rate;
  char age[RL_CELL_SIZE];
  const double clock_min = condition_value(ceilings, "sm_clock_least_mhz"),
               throttled = condition_value(ceilings, "throttled_ratio");
  fprintf(out, "%s %s", rl_json_text(ceilings, "device"), rl_json_text(ceilings, "device_name"));
  if (rl_json_text(ceilings, "driver")[0] != '\0') fprintf(out, " · driver %s", rl_json_text(ceilings, "driver"));
  fprintf(out, " · job %.0f, %s ago", rl_json_number(ceilings, "job"), rl_format_age(age, rl_json_number(ceilings, "age_s")));
  if (!isnan(clock_min))
    fprintf(out, "\nSM clock %.0f to %.0f of %.0f MHz, %.0f °C, throttled in %.0f %% of the readings", clock_min,
            condition_value(ceilings, "sm_clock_most_mhz"), rl_json_number(ceilings, "sm_clock_max_mhz"),
            condition_value(ceilings, "temperature_c_most"), throttled * 100);
  fputs("\n\n", out);
  cJSON_ArrayForEach (rate, rl_json_at(ceilings, "rates")) print_rate(out, rate);
  rl_print_disturbed_ceilings(out, rl_json_text(ceilings, "disturbed_reason"));
  if (cJSON_IsTrue(rl_json_at(ceilings, "stale"))) fprintf(out, "! stale: %s\n", rl_json_text(ceilings, "stale_reason"));
}
