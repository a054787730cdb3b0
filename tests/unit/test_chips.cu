/* Checks the catalogue's chips against CUPTI, which knows the counters of every chip without a device: a row of a section is on a
 * chip if and only if the chip has all of the row's counters. This file is C++ because CUPTI's header is C++. */
#include <cupti_profiler_host.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "analyze/expression.h"
#include "analyze/sections.h"

static const struct chip {
  const char *name, *capability;
} chips[] = {{"GA100", "8.0"}, {"GA102", "8.6"}, {"AD102", "8.9"}, {"GH100", "9.0"}, {"GB100", "10.0"}, {"GB202", "12.0"}};

static int failures;

/* Prints a failure and counts it unless `holds`. format: contains three %s, for a, b and c. */
static void expect(bool holds, const char *format, const char *a, const char *b, const char *c) {
  if (holds) return;
  printf(format, a, b, c);
  failures++;
}

/* The counters of one chip. Caches CUPTI's answers. */
struct chip_counters {
  CUpti_Profiler_Host_Object *host;
  std::map<std::string, bool> answers;

  explicit chip_counters(const char *chip) {
    CUpti_Profiler_Host_Initialize_Params open = {CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE};
    open.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    open.pChipName = chip;
    expect(cuptiProfilerHostInitialize(&open) == CUPTI_SUCCESS, "%s is not known to CUPTI%s%s\n", chip, "", "");
    host = open.pHostObject;
  }

  ~chip_counters() {
    CUpti_Profiler_Host_Deinitialize_Params close = {CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE};
    close.pHostObject = host;
    cuptiProfilerHostDeinitialize(&close);
  }

  bool has(const char *name) {
    auto found = answers.find(name);
    if (found != answers.end()) return found->second;
    CUpti_Profiler_Host_GetMetricProperties_Params params = {CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE};
    params.pHostObject = host;
    params.pMetricName = name;
    return answers[name] = cuptiProfilerHostGetMetricProperties(&params) == CUPTI_SUCCESS;
  }
};

static bool is_counter(const char *name) {
  for (size_t i = 0; i < rl_raw_metric_count; i++)
    if (strcmp(rl_raw_metrics[i].name, name) == 0) return rl_raw_metrics[i].origin == RL_ORIGIN_COUNTER;
  return false;
}

/* Context of an expression's evaluation: whether the chip has all counters that were looked up. */
struct counter_check {
  chip_counters *counters;
  bool has_all;
};

static double check_counter(void *context, const char *name) {
  counter_check *check = static_cast<counter_check *>(context);
  if (is_counter(name) && !check->counters->has(name)) check->has_all = false;
  return 1;
}

static bool has_counters_of(chip_counters *counters, const rl_section_row *row) {
  counter_check check = {counters, true};
  rl_scope scope = {check_counter, &check};
  double value;
  expect(rl_expression_evaluate(row->expression, strlen(row->expression), &scope, &value, NULL) == 0, "cannot evaluate %s%s%s\n",
         row->expression, "", "");
  return check.has_all;
}

int main(void) {
  std::string capabilities;
  for (const chip &chip : chips) {
    chip_counters counters(chip.name);
    for (size_t s = 0; s < rl_section_count; s++)
      for (size_t r = 0; r < rl_sections[s].row_count; r++) {
        const rl_section_row *row = &rl_sections[s].rows[r];
        bool has_counters = has_counters_of(&counters, row);
        expect(has_counters == rl_row_is_available(row, chip.capability),
               has_counters ? "%s has the counters of %s: %s\n" : "%s lacks counters of %s: %s\n", chip.capability,
               rl_sections[s].id, row->name);
      }
    capabilities += (capabilities.empty() ? "" : " ") + std::string(chip.capability);
  }
  expect(capabilities == rl_catalogue_chips, "the catalogue knows %s, not %s%s\n", rl_catalogue_chips, capabilities.c_str(), "");
  if (failures == 0) printf("every row is on the chips that have its counters\n");
  return failures > 0;
}
