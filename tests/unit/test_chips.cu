/* The catalogue's chips against CUPTI, which knows each chip's counters without one being there: a row is on a chip exactly when
 * all of its counters are. C++ because CUPTI's header is. */
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

static void claim(bool holds, const char *format, const char *a, const char *b, const char *c) {
  if (holds) return;
  printf(format, a, b, c);
  failures++;
}

/* The counters of one chip; each is asked for once. */
struct counters {
  CUpti_Profiler_Host_Object *host;
  std::map<std::string, bool> known;

  explicit counters(const char *chip) {
    CUpti_Profiler_Host_Initialize_Params open = {CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE};
    open.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    open.pChipName = chip;
    claim(cuptiProfilerHostInitialize(&open) == CUPTI_SUCCESS, "%s is not known to CUPTI%s%s\n", chip, "", "");
    host = open.pHostObject;
  }

  ~counters() {
    CUpti_Profiler_Host_Deinitialize_Params close = {CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE};
    close.pHostObject = host;
    cuptiProfilerHostDeinitialize(&close);
  }

  bool has(const char *name) {
    auto found = known.find(name);
    if (found != known.end()) return found->second;
    CUpti_Profiler_Host_GetMetricProperties_Params ask = {CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE};
    ask.pHostObject = host;
    ask.pMetricName = name;
    return known[name] = cuptiProfilerHostGetMetricProperties(&ask) == CUPTI_SUCCESS;
  }
};

static bool is_counter(const char *name) {
  for (size_t i = 0; i < rl_raw_metric_count; i++)
    if (strcmp(rl_raw_metrics[i].name, name) == 0) return rl_raw_metrics[i].origin == RL_ORIGIN_COUNTER;
  return false;
}

struct question {
  counters *of;
  bool all;
};

static double look_up(void *context, const char *name) {
  question *asked = static_cast<question *>(context);
  if (is_counter(name) && !asked->of->has(name)) asked->all = false;
  return 1;
}

static bool has_counters_of(counters *of, const rl_section_row *row) {
  question asked = {of, true};
  rl_scope scope = {look_up, &asked};
  double value;
  claim(rl_expression_evaluate(row->expression, strlen(row->expression), &scope, &value, NULL) == 0, "%s can't be read%s%s\n",
        row->expression, "", "");
  return asked.all;
}

int main(void) {
  std::string capabilities;
  for (const chip &each : chips) {
    counters of(each.name);
    for (size_t s = 0; s < rl_section_count; s++)
      for (size_t r = 0; r < rl_sections[s].row_count; r++) {
        const rl_section_row *row = &rl_sections[s].rows[r];
        bool there = has_counters_of(&of, row);
        claim(there == rl_row_is_on(row, each.capability),
              there ? "%s has the counters of %s: %s\n" : "%s lacks counters of %s: %s\n", each.capability, rl_sections[s].id,
              row->name);
      }
    capabilities += (capabilities.empty() ? "" : " ") + std::string(each.capability);
  }
  claim(capabilities == rl_catalogue_chips, "the catalogue knows %s, not %s%s\n", rl_catalogue_chips, capabilities.c_str(), "");
  if (failures == 0) printf("every row is on the chips that have its counters\n");
  return failures > 0;
}
