/* The formats in which `rooflinectl regress --output` writes a suite run for other tools. Each is written from the run's document
 * (GET /suite-runs/{id}) alone:
 *
 * - junit: JUnit XML, valid by two schemas: https://github.com/windyroad/JUnit-Schema (Apache Ant) and junit-10.xsd of Jenkins'
 *   xUnit plugin. The verdict slower is a failure; inconclusive and incomparable are errors.
 * - github, github-bigger: the array of {name, unit, value, range, extra} that github-action-benchmark reads with its tools
 *   customSmallerIsBetter and customBiggerIsBetter (https://github.com/benchmark-action/github-action-benchmark). A file can have
 *   metrics for only one of these tools, so there are two formats.
 * - bmf: Bencher Metric Format, https://bencher.dev/docs/reference/bencher-metric-format.
 * - otava: a table for Apache Otava's CSV importer, https://github.com/apache/otava/blob/master/docs/CSV.md.
 * - markdown: a summary for a pull request, in GitHub Flavored Markdown (https://github.github.com/gfm). */
#ifndef RL_CLIENT_SUITE_OUTPUTS_H
#define RL_CLIENT_SUITE_OUTPUTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct rl_suite_output {
  const char *name, *summary;
  void (*write)(FILE *out, const cJSON *run);
  bool is_table; /* the first line is a header; if the file exists and has the same header, the lines after the header are
                    appended to the file */
} rl_suite_output;

/* All formats. The last element has a NULL name. */
extern const rl_suite_output rl_suite_outputs[];

/* Returns the first metric of the suite run that has no value; NULL if each metric has one. Such a suite run gets no row in the
 * format otava, because Otava rejects a file with an empty cell. */
const char *rl_suite_output_find_missing_value(const cJSON *run);

#endif
