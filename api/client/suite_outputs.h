/* Formats of a suite run for other tools. Each is a function of the run's document (GET /suite-runs/{id}) alone.
 *
 * junit     JUnit XML. Sources: https://github.com/windyroad/JUnit-Schema (Apache Ant) and junit-10.xsd of Jenkins' xUnit plugin;
 * it is valid by both. `slower` is a failure, `inconclusive` and `incomparable` are errors. github    The array of {name, unit,
 * value, range, extra} of github-action-benchmark's tools customSmallerIsBetter and customBiggerIsBetter
 * (https://github.com/benchmark-action/github-action-benchmark). A file serves one tool, so there are two formats. bmf Bencher
 * Metric Format, https://bencher.dev/docs/reference/bencher-metric-format otava     A table for Apache Otava's CSV importer,
 * https://github.com/apache/otava/blob/master/docs/CSV.md markdown  A summary for a pull request, in GitHub Flavored Markdown
 * (https://github.github.com/gfm). */
#ifndef RL_CLIENT_SUITE_OUTPUTS_H
#define RL_CLIENT_SUITE_OUTPUTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct rl_suite_output {
  const char *name, *summary;
  void (*write)(FILE *out, const cJSON *run);
  bool is_table; /* the first line is a header: a file of the same header receives only the further lines */
} rl_suite_output;

/* All formats. The last element has a NULL name. */
extern const rl_suite_output rl_suite_outputs[];

/* Returns the metric of the run that has no value; NULL: each has one. A run with such a metric has no row in `otava`: Otava
 * rejects a file with an empty cell. */
const char *rl_suite_output_find_missing_value(const cJSON *run);

#endif
