/* Prints a run's report, and two reports side by side: the kernels, their findings, and the rows of their report sections. */
#include <stdbool.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/print.h"
#include "api/client/print_report_internal.h"

enum {
  LINE_COLUMNS = 80,
  NAME_COLUMNS = 60,
  VALUE_COLUMNS = 20,
  COMPARED_NAME_COLUMNS = 34,
  COMPARED_VALUE_COLUMNS = 18,
  COMPARED_TIME_COLUMNS = 14,
  CHANGE_COLUMNS = 10
};

/* --- quantities -------------------------------------------------------------------------------------------------------- */

static char *format_with_unit(char *cell, double value, const char *unit) {
  char number[RL_CELL_SIZE];
  if (isnan(value) || value == rint(value) || fabs(value) >= 1000) rl_format_count(number, value);
  else snprintf(number, sizeof number, fabs(value) < 0.01 ? "%.2e" : "%.2f", value);
  snprintf(cell, RL_CELL_SIZE, "%.36s%s%.24s", number, unit[0] != '\0' && !isnan(value) ? " " : "", isnan(value) ? "" : unit);
  return cell;
}

/* Formats a value with the largest unit prefix for which the number is at least 1. step: factor between two prefixes, 1000 or
 * 1024. */
static char *format_with_prefix(char *cell, double value, double step, const char *const prefixes[5], const char *unit) {
  char prefixed[RL_CELL_SIZE];
  int prefix = 0;
  for (; prefix < 4 && fabs(value) >= step; prefix++) value /= step;
  snprintf(prefixed, sizeof prefixed, "%s%.24s", prefixes[prefix], unit);
  return format_with_unit(cell, value, prefixed);
}

static const char *const decimal_prefixes[] = {"", "k", "M", "G", "T"}, *const binary_prefixes[] = {"", "Ki", "Mi", "Gi", "Ti"};

/* Formats the value of a row by its unit. unit: the API's name of the unit. */
static char *format_quantity(char *cell, double value, const char *unit) {
  static const struct {
    const char *unit, *symbol;
    const char *const *prefixes;
    double step;
  } scales[] = {{"byte", "B", binary_prefixes, 1024},
                {"byte/s", "B/s", decimal_prefixes, 1000},
                {"hz", "Hz", decimal_prefixes, 1000},
                {"sector/s", "sector/s", decimal_prefixes, 1000}};
  for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
    if (strcmp(unit, scales[i].unit) == 0)
      return format_with_prefix(cell, value, scales[i].step, scales[i].prefixes, scales[i].symbol);
  if (strcmp(unit, "%") == 0) return rl_format_percent(cell, value / 100);
  if (strcmp(unit, "ratio") == 0) return rl_format_percent(cell, value);
  return strcmp(unit, "ns") == 0 ? rl_format_us(cell, value / 1000) : format_with_unit(cell, value, unit);
}

static char *format_change(char *cell, double ratio) {
  const double percent = fabs(ratio) < 0.0005 ? 0 : ratio * 100; /* not "-0.0 %" */
  snprintf(cell, RL_CELL_SIZE, isnan(ratio) ? "—" : "%+.1f %%", percent);
  return cell;
}

/* --- findings ---------------------------------------------------------------------------------------------------------- */

static bool is_info(const cJSON *finding) { return strcmp(rl_json_text(finding, "kind"), "info") == 0; }

const char *rl_finding_mark(const cJSON *finding) { return is_info(finding) ? "·" : "!"; }

/* Prints "at FILE:LINE, FILE:LINE" if the finding has lines. */
static void print_lines(FILE *out, int indent, const cJSON *finding) {
  const cJSON *line;
  const char *separator = "at ";
  if (cJSON_GetArraySize(rl_json_at(finding, "lines")) == 0) return;
  fprintf(out, "%*s", indent, "");
  cJSON_ArrayForEach (line, rl_json_at(finding, "lines")) {
    fputs(separator, out);
    rl_print_name(out, rl_json_text(line, "file"));
    fprintf(out, ":%.0f", rl_json_number(line, "line"));
    separator = ", ";
  }
  fputc('\n', out);
}

static void print_part(FILE *out, const cJSON *part) {
  fprintf(out, "  %s %s (%s)\n", rl_finding_mark(part), rl_json_text(part, "title"), rl_json_text(part, "section"));
  rl_print_wrapped(out, 4, rl_json_text(part, "message"));
  print_lines(out, 4, part);
}

enum { EVIDENCE_NAME_BYTES = 40, EVIDENCE_BYTES = 512 };

/* Prints the idle intervals and the names that a finding of a timeline is about. */
static void print_evidence(FILE *out, const cJSON *finding) {
  const cJSON *interval, *name;
  char duration[RL_CELL_SIZE], start[RL_CELL_SIZE], text[EVIDENCE_BYTES] = "";
  cJSON_ArrayForEach (interval, rl_json_at(finding, "intervals")) {
    const double start_ns = rl_json_number(interval, "start_ns");
    fprintf(out, "  %s idle at %s, before %.*s\n", rl_format_us(duration, (rl_json_number(interval, "end_ns") - start_ns) / 1000),
            rl_format_us(start, start_ns / 1000), EVIDENCE_NAME_BYTES, rl_json_text(interval, "after"));
  }
  cJSON_ArrayForEach (name, rl_json_at(finding, "names")) {
    const size_t length = strlen(text);
    snprintf(text + length, sizeof text - length, "%s%.*s", length > 0 ? "; " : "", EVIDENCE_NAME_BYTES,
             cJSON_GetStringValue(name));
  }
  if (text[0] != '\0') rl_print_wrapped(out, 2, text);
}

void rl_print_finding(FILE *out, const char *mark, const cJSON *finding) {
  const double speedup = rl_json_number(finding, "speedup_pct");
  const bool local = strcmp(rl_json_text(finding, "scope"), "local") == 0;
  const cJSON *part;
  rl_print_style(out, is_info(finding) ? RL_STYLE_INFO : RL_STYLE_WARNING);
  fputs(mark, out);
  rl_print_style(out, RL_STYLE_NONE);
  fprintf(out, " %s (%s", rl_json_text(finding, "title"), rl_json_text(finding, "section"));
  if (!isnan(speedup)) fprintf(out, local ? ", local estimate %.0f %%" : ", est. time saved ≤ %.0f %%", speedup);
  fputs(")\n", out);
  rl_print_wrapped(out, 2, rl_json_text(finding, "message"));
  print_lines(out, 2, finding);
  print_evidence(out, finding);
  cJSON_ArrayForEach (part, rl_json_at(finding, "parts")) print_part(out, part);
}

/* --- the report -------------------------------------------------------------------------------------------------------- */

void rl_print_report_run(FILE *out, const char *label, const cJSON *run) {
  const char *device = rl_json_text(run, "device_properties.name"), *commit = rl_json_text(run, "commit");
  const bool empty_cache = strcmp(rl_json_text(run, "cache"), "empty") == 0;
  fprintf(out, "%srun %.0f · %s %s on %s", label, rl_json_number(run, "run"), rl_json_text(run, "workload"),
          rl_json_text(run, "variant"), device[0] != '\0' ? device : rl_json_text(run, "device"));
  if (commit[0] != '\0') fprintf(out, " · commit %.12s", commit);
  fprintf(out, "%s\n", empty_cache ? " · L2 empty before each kernel" : "");
}

static void print_shape(FILE *out, const char *label, const cJSON *shape) {
  const cJSON *extent;
  if (!cJSON_IsArray(shape)) return;
  fputs(label, out);
  cJSON_ArrayForEach (extent, shape) fprintf(out, "%s%.0f", extent != shape->child ? "×" : "", extent->valuedouble);
  fputs(" · ", out);
}

void rl_print_kernel_header(FILE *out, const cJSON *kernel) {
  const bool library = cJSON_IsObject(rl_json_at(kernel, "library"));
  const char *advice = rl_json_text(kernel, library ? "library.advice" : "verdict.advice");
  char time[RL_CELL_SIZE];
  fprintf(out, "\n%.0f ", rl_json_number(kernel, "ordinal"));
  rl_print_name(out, rl_json_text(kernel, "name"));
  fputc('\n', out);
  rl_print_style(out, RL_STYLE_BOLD);
  rl_print_wrapped(out, 0, rl_json_text(kernel, "verdict.message"));
  rl_print_style(out, RL_STYLE_NONE);
  if (advice[0] != '\0') rl_print_wrapped(out, 2, advice);
  print_shape(out, "grid ", rl_json_at(kernel, "grid"));
  print_shape(out, "block ", rl_json_at(kernel, "block"));
  fprintf(out, "duration %s\n\n", rl_format_us(time, rl_json_number(kernel, "roofline.duration_s") * 1e6));
}

static void print_row(FILE *out, const cJSON *row) {
  const char *text = rl_json_text(row, "text"), *reason = rl_json_text(row, "reason");
  char cell[RL_CELL_SIZE];
  rl_print_row_name(out, rl_json_text(row, "name"), NAME_COLUMNS);
  rl_print_number(out, text[0] != '\0' ? text : format_quantity(cell, rl_json_number(row, "value"), rl_json_text(row, "unit")),
                  VALUE_COLUMNS);
  fprintf(out, "%s%s\n", reason[0] != '\0' ? "  " : "", reason);
}

/* Prints the section's table without a name, and with all_tables also its other tables. */
static void print_section(FILE *out, const cJSON *section, bool all_tables, void (*print)(FILE *out, const cJSON *row)) {
  const cJSON *table, *row;
  fprintf(out, "\n%s (%s)\n", rl_json_text(section, "name"), rl_json_text(section, "id"));
  rl_print_line(out, LINE_COLUMNS);
  cJSON_ArrayForEach (table, rl_json_at(section, "tables")) {
    const char *name = rl_json_text(table, "name");
    if (name[0] != '\0' && !all_tables) continue;
    if (name[0] != '\0') fprintf(out, "\n%s\n", name);
    cJSON_ArrayForEach (row, rl_json_at(table, "rows")) print(out, row);
  }
}

static void print_kernel(FILE *out, const cJSON *kernel, const char *section_id) {
  const cJSON *finding, *section;
  rl_print_kernel_header(out, kernel);
  cJSON_ArrayForEach (finding, rl_json_at(kernel, "findings"))
    if (section_id == NULL || strcmp(rl_json_text(finding, "section"), section_id) == 0)
      rl_print_finding(out, rl_finding_mark(finding), finding);
  cJSON_ArrayForEach (section, rl_json_at(kernel, "sections"))
    if (section_id == NULL || strcmp(rl_json_text(section, "id"), section_id) == 0)
      print_section(out, section, section_id != NULL, print_row);
  if (!cJSON_IsArray(rl_json_at(kernel, "sections"))) fprintf(out, "— no sections: %s\n", rl_json_text(kernel, "reason"));
}

void rl_print_report(FILE *out, const cJSON *report, const char *section) {
  const char *ceilings_reason = rl_json_text(report, "ceilings_reason");
  const cJSON *kernel;
  rl_print_report_run(out, "", report);
  if (ceilings_reason[0] != '\0') fprintf(out, "— no measured ceilings: %s\n", ceilings_reason);
  rl_print_disturbed_ceilings(out, rl_json_text(report, "ceilings_disturbed_reason"));
  cJSON_ArrayForEach (kernel, rl_json_at(report, "kernels")) print_kernel(out, kernel, section);
}

/* --- the timeline ------------------------------------------------------------------------------------------------------ */

enum { CLASS_COLUMNS = 24, RANGES_COLUMNS = 8, TIME_COLUMNS = 12, SHARE_COLUMNS = 10, INTERVALS_COLUMNS = 11 };

static void print_time_class(FILE *out, const cJSON *item) {
  const cJSON *longest = cJSON_GetArrayItem(rl_json_at(item, "longest"), 0);
  double intervals = rl_json_number(item, "intervals");
  char cell[RL_CELL_SIZE];
  if (rl_json_number(item, "time_ns") == 0) return;
  rl_print_cell(out, rl_json_text(item, "class"), -CLASS_COLUMNS);
  rl_print_cell(out, rl_format_us(cell, rl_json_number(item, "time_ns") / 1000), TIME_COLUMNS);
  rl_print_cell(out, rl_format_percent(cell, rl_json_number(item, "ratio")), SHARE_COLUMNS);
  rl_print_cell(out, isnan(intervals) ? "" : rl_format_count(cell, intervals), INTERVALS_COLUMNS);
  if (longest != NULL) {
    double us = (rl_json_number(longest, "end_ns") - rl_json_number(longest, "start_ns")) / 1000;
    fprintf(out, "  %s before ", rl_format_us(cell, us));
    rl_print_name(out, rl_json_text(longest, "after"));
  }
  fputc('\n', out);
}

static bool is_idle_class(const cJSON *time) { return strncmp(time->string, "idle_", 5) == 0; }

static double idle_ns(const cJSON *range) {
  const cJSON *time;
  double sum = 0;
  cJSON_ArrayForEach (time, rl_json_at(range, "classes"))
    if (is_idle_class(time)) sum += time->valuedouble;
  return sum;
}

/* Returns the idle class with the most time; NULL if every idle class has no time. */
static const cJSON *longest_idle_class(const cJSON *range) {
  const cJSON *time, *longest = NULL;
  cJSON_ArrayForEach (time, rl_json_at(range, "classes"))
    if (is_idle_class(time) && time->valuedouble > (longest != NULL ? longest->valuedouble : 0)) longest = time;
  return longest;
}

/* Prints the row of a phase or of all ranges of one name: their time and idle time, and the idle class with the most time. */
static void print_window_part(FILE *out, const char *name, const cJSON *part) {
  const cJSON *longest = longest_idle_class(part);
  const cJSON *ranges = rl_json_at(part, "ranges");
  char cell[RL_CELL_SIZE];
  rl_print_cell(out, name, -CLASS_COLUMNS);
  if (ranges != NULL) rl_print_number(out, rl_format_count(cell, ranges->valuedouble), RANGES_COLUMNS);
  rl_print_cell(out, rl_format_us(cell, rl_json_number(part, "time_ns") / 1000), TIME_COLUMNS);
  rl_print_cell(out, rl_format_percent(cell, rl_json_number(part, "ratio")), SHARE_COLUMNS);
  rl_print_cell(out, rl_format_us(cell, idle_ns(part) / 1000), INTERVALS_COLUMNS);
  rl_print_cell(out, rl_format_us(cell, rl_json_number(part, "critical_path_ns") / 1000), INTERVALS_COLUMNS);
  if (longest != NULL) fprintf(out, "  %s %s", longest->string, rl_format_us(cell, longest->valuedouble / 1000));
  fputc('\n', out);
}

/* Prints a table of ranges or phases. name: the member that contains a part's name; unnamed: the text that is printed if that
 * member is null. */
static void print_window_parts(FILE *out, const char *title, const cJSON *parts, const char *name, const char *unnamed) {
  const cJSON *part;
  if (cJSON_GetArraySize(parts) == 0) return;
  fputc('\n', out);
  rl_print_cell(out, title, -CLASS_COLUMNS);
  if (rl_json_at(parts->child, "ranges") != NULL) rl_print_cell(out, "ranges", RANGES_COLUMNS);
  rl_print_cell(out, "time", TIME_COLUMNS);
  rl_print_cell(out, "share", SHARE_COLUMNS);
  rl_print_cell(out, "idle", INTERVALS_COLUMNS);
  rl_print_cell(out, "on path", INTERVALS_COLUMNS);
  fputs("  most idle time\n", out);
  cJSON_ArrayForEach (part, parts) {
    const char *text = rl_json_text(part, name);
    if (rl_json_number(part, "time_ns") > 0) print_window_part(out, text[0] != '\0' ? text : unnamed, part);
  }
}

static void print_queue(FILE *out, const cJSON *queue) {
  const cJSON *total = rl_json_at(queue, "total");
  char share[RL_CELL_SIZE], idle[RL_CELL_SIZE];
  if (!cJSON_IsObject(total)) return;
  fprintf(out, "\nlaunch queue: median %.0f, maximum %.0f; empty for %s of the window (device idle: %s)\n",
          rl_json_number(total, "median"), rl_json_number(total, "max"),
          rl_format_percent(share, rl_json_number(total, "empty_ratio")),
          rl_format_us(idle, rl_json_number(queue, "empty_idle_ns") / 1000));
}

enum { PATH_NAMES = 5 };

static void print_path_row(FILE *out, const char *name, double time_ns, double window_ns) {
  char cell[RL_CELL_SIZE];
  if (time_ns == 0) return;
  rl_print_cell(out, name, -CLASS_COLUMNS);
  rl_print_cell(out, rl_format_us(cell, time_ns / 1000), TIME_COLUMNS);
  rl_print_cell(out, rl_format_percent(cell, time_ns / window_ns), SHARE_COLUMNS);
  fputc('\n', out);
}

/* Prints the parts of the critical path, then the operations that take most of the path's time. */
static void print_path(FILE *out, const cJSON *timeline) {
  const cJSON *path = rl_json_at(timeline, "critical_path"), *window = rl_json_at(timeline, "window");
  const cJSON *part, *names = rl_json_at(path, "names");
  const char *reason = rl_json_text(path, "reason");
  double window_ns = rl_json_number(window, "end_ns") - rl_json_number(window, "start_ns");
  if (reason[0] != '\0') fprintf(out, "\n— no critical path: %s\n", reason);
  if (cJSON_GetArraySize(names) == 0) return;
  fputs("\ncritical path\n", out);
  cJSON_ArrayForEach (part, rl_json_at(path, "parts")) print_path_row(out, part->string, part->valuedouble, window_ns);
  for (int i = 0; i < PATH_NAMES && i < cJSON_GetArraySize(names); i++) {
    const cJSON *item = cJSON_GetArrayItem(names, i);
    char name[RL_CELL_SIZE];
    snprintf(name, sizeof name, "  %.60s", rl_json_text(item, "name"));
    print_path_row(out, name, rl_json_number(item, "time_ns"), window_ns);
  }
}

/* Prints the launches of each group of independent launches. */
static void print_independent_launches(FILE *out, const cJSON *found) {
  const cJSON *group, *launch;
  const char *reason = rl_json_text(found, "reason");
  if (reason[0] != '\0') fprintf(out, "\n— independent launches are unknown: %s\n", reason);
  char time[RL_CELL_SIZE], concurrent[RL_CELL_SIZE], share[RL_CELL_SIZE];
  cJSON_ArrayForEach (group, rl_json_at(found, "groups")) {
    fprintf(out, "\nindependent launches, times of all steps: %s in sequence, about %s concurrently\n",
            rl_format_us(time, rl_json_number(group, "time_ns") / 1000),
            rl_format_us(concurrent, rl_json_number(group, "concurrent_ns") / 1000));
    cJSON_ArrayForEach (launch, rl_json_at(group, "launches"))
      fprintf(out, "  %s: %s, %.0f blocks of the %.0f that fit, %s of the DRAM read bandwidth\n", rl_json_text(launch, "launch"),
              rl_format_us(time, rl_json_number(launch, "time_ns") / 1000), rl_json_number(launch, "blocks"),
              rl_json_number(launch, "resident_blocks"), rl_format_percent(share, rl_json_number(launch, "memory_ratio")));
  }
}

void rl_print_timeline_findings(FILE *out, const cJSON *timeline) {
  const char *reason = rl_json_text(timeline, "reason"), *incomplete_reason = rl_json_text(timeline, "incomplete_reason");
  const cJSON *item;
  if (reason[0] != '\0') {
    fprintf(out, "\n— no timeline: %s\n", reason);
    return;
  }
  fputs("\nTimeline\n", out);
  rl_print_line(out, LINE_COLUMNS);
  rl_print_cell(out, "class", -CLASS_COLUMNS);
  rl_print_cell(out, "time", TIME_COLUMNS);
  rl_print_cell(out, "share", SHARE_COLUMNS);
  rl_print_cell(out, "intervals", INTERVALS_COLUMNS);
  fputs("  longest\n", out);
  cJSON_ArrayForEach (item, rl_json_at(timeline, "classes")) print_time_class(out, item);
  if (incomplete_reason[0] != '\0') fprintf(out, "— causes are unknown: %s\n", incomplete_reason);
  if (cJSON_GetArraySize(rl_json_at(timeline, "findings")) > 0) fputc('\n', out);
  cJSON_ArrayForEach (item, rl_json_at(timeline, "findings")) rl_print_finding(out, rl_finding_mark(item), item);
  print_window_parts(out, "phase", rl_json_at(timeline, "phases"), "phase", "(without a phase)");
  print_window_parts(out, "NVTX range", rl_json_at(timeline, "ranges"), "name", "(outside of ranges)");
  print_queue(out, rl_json_at(timeline, "queue"));
  print_path(out, timeline);
  print_independent_launches(out, rl_json_at(timeline, "independent_launches"));
  fputc('\n', out);
}

/* --- the comparison ---------------------------------------------------------------------------------------------------- */

static void print_difference(FILE *out, const cJSON *row) {
  const char *unit = rl_json_text(row, "unit"), *reason = rl_json_text(row, "reason");
  char cell[RL_CELL_SIZE];
  rl_print_row_name(out, rl_json_text(row, "name"), COMPARED_NAME_COLUMNS);
  rl_print_number(out, format_quantity(cell, rl_json_number(row, "a"), unit), COMPARED_VALUE_COLUMNS);
  rl_print_number(out, format_quantity(cell, rl_json_number(row, "b"), unit), COMPARED_VALUE_COLUMNS);
  rl_print_number(out, format_change(cell, rl_json_number(row, "relative")), CHANGE_COLUMNS);
  fprintf(out, "%s%s\n", reason[0] != '\0' ? "  " : "", reason);
}

static void print_finding_changes(FILE *out, const cJSON *pair) {
  static const struct {
    const char *change, *mark;
  } marks[] = {{"new", "+"}, {"resolved", "-"}, {"unchanged", "="}, {"unknown", "?"}};
  const cJSON *changed;
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
    cJSON_ArrayForEach (changed, rl_json_at(pair, "findings"))
      if (strcmp(rl_json_text(changed, "change"), marks[i].change) == 0)
        rl_print_finding(out, marks[i].mark, rl_json_at(changed, cJSON_IsObject(rl_json_at(changed, "b")) ? "b" : "a"));
}

static const char *describe_code(const cJSON *same) {
  if (cJSON_IsBool(same)) return cJSON_IsTrue(same) ? "the same machine code" : "the machine code differs";
  return "it is unknown whether the machine code differs";
}

/* Prints what bounds the kernel of one side. kernel: its object in the comparison. */
static void print_verdict(FILE *out, const char *side, const cJSON *kernel, const cJSON *report) {
  const cJSON *reported;
  char line[512];
  cJSON_ArrayForEach (reported, rl_json_at(report, "kernels"))
    if (rl_json_number(reported, "ordinal") == rl_json_number(kernel, "ordinal")) {
      snprintf(line, sizeof line, "%s: %s", side, rl_json_text(reported, "verdict.message"));
      rl_print_wrapped(out, 0, line);
    }
}

static void print_pair(FILE *out, const cJSON *pair, const cJSON *const reports[2], bool all) {
  const cJSON *section, *a = rl_json_at(pair, "a"), *b = rl_json_at(pair, "b");
  const bool is_in_both_runs = cJSON_IsObject(a) && cJSON_IsObject(b);
  fputc('\n', out);
  rl_print_name(out, rl_json_text(cJSON_IsObject(a) ? a : b, "name"));
  if (!is_in_both_runs) {
    fprintf(out, "\nonly in %s\n", cJSON_IsObject(a) ? "A" : "B");
    return;
  }
  fputc('\n', out);
  print_verdict(out, "A", a, reports[0]);
  print_verdict(out, "B", b, reports[1]);
  fprintf(out, "%s\n\n", describe_code(rl_json_at(pair, "same_code")));
  print_finding_changes(out, pair);
  cJSON_ArrayForEach (section, rl_json_at(pair, "sections"))
    if (all || section == rl_json_at(pair, "sections")->child) print_section(out, section, false, print_difference);
}

/* Prints the ratios and differences of the two runs that the comparison contains. */
static void print_ratios(FILE *out, const cJSON *pair) {
  static const struct {
    const char *label, *field;
    rl_cell_format format;
  } ratios[] = {{"speed, median epoch", "speedup_ratio", rl_format_factor},
                {"speed, shortest epoch", "speedup_min_ratio", rl_format_factor},
                {"speed, cold cache", "speedup_cold_ratio", rl_format_factor},
                {"speed, warm cache", "speedup_warm_ratio", rl_format_factor},
                {"peak memory", "peak_memory_ratio", rl_format_factor},
                {"test accuracy", "test_accuracy_difference_ratio", rl_format_percentage_points}};
  char cell[RL_CELL_SIZE];
  for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
    if (!cJSON_IsNumber(rl_json_at(pair, ratios[i].field))) continue;
    rl_print_cell(out, ratios[i].label, -COMPARED_NAME_COLUMNS);
    rl_print_cell(out, ratios[i].format(cell, rl_json_number(pair, ratios[i].field)), COMPARED_VALUE_COLUMNS);
    fputc('\n', out);
  }
}

void rl_print_run_comparison(FILE *out, const cJSON *comparison, const cJSON *const reports[2], bool all) {
  const char *reason = rl_json_text(comparison, "comparison_reason");
  const cJSON *pair;
  rl_print_report_run(out, "A ", rl_json_at(comparison, "a"));
  rl_print_report_run(out, "B ", rl_json_at(comparison, "b"));
  print_ratios(out, rl_json_at(comparison, "comparison"));
  rl_print_suspect_pair(out, rl_json_at(comparison, "comparison"));
  if (reason[0] != '\0') fprintf(out, "— no numbers: %s\n", reason);
  if (cJSON_GetArraySize(rl_json_at(comparison, "kernels")) == 0)
    fputs("— neither run has a counters pass, so there are no kernels to compare\n", out);
  cJSON_ArrayForEach (pair, rl_json_at(comparison, "kernels")) print_pair(out, pair, reports, all);
}

static void print_compared_time(FILE *out, const char *label, const char *mark, const cJSON *item) {
  char cell[RL_CELL_SIZE];
  rl_print_row_name(out, label, COMPARED_NAME_COLUMNS);
  rl_print_number(out, rl_format_us(cell, rl_json_number(item, "a_ns") / 1000), COMPARED_TIME_COLUMNS);
  rl_print_number(out, rl_format_us(cell, rl_json_number(item, "b_ns") / 1000), COMPARED_TIME_COLUMNS);
  rl_print_number(out, rl_format_us(cell, rl_json_number(item, "difference_ns") / 1000), COMPARED_TIME_COLUMNS);
  fprintf(out, "%s%s\n", mark[0] != '\0' ? "  " : "", mark);
}

enum { LABEL_SIZE = 160 };

static void print_compared_row(FILE *out, const cJSON *row) {
  char label[LABEL_SIZE];
  const char *idle = rl_json_text(row, "idle");
  snprintf(label, sizeof label, idle[0] != '\0' ? "%.20s before %.120s" : "%s%.140s", idle, rl_json_text(row, "name"));
  print_compared_time(out, label, rl_json_text(row, "change"), row);
}

static bool print_missing_trace(FILE *out, const char *label, const cJSON *run) {
  const char *reason = rl_json_text(run, "reason");
  if (reason[0] != '\0') fprintf(out, "— no timeline of %s: %s\n", label, reason);
  return reason[0] != '\0';
}

void rl_print_timeline_comparison(FILE *out, const cJSON *comparison) {
  const cJSON *item;
  fputc('\n', out);
  if (print_missing_trace(out, "A", rl_json_at(comparison, "a"))) return;
  if (print_missing_trace(out, "B", rl_json_at(comparison, "b"))) return;
  fputs("Timeline\n", out);
  rl_print_line(out, LINE_COLUMNS);
  cJSON_ArrayForEach (item, rl_json_at(comparison, "classes"))
    if (rl_json_number(item, "a_ns") > 0 || rl_json_number(item, "b_ns") > 0)
      print_compared_time(out, rl_json_text(item, "class"), "", item);
  print_compared_time(out, "window", "", rl_json_at(comparison, "window"));
  fputc('\n', out);
  cJSON_ArrayForEach (item, rl_json_at(comparison, "rows"))
    if (strcmp(rl_json_text(item, "change"), "same") != 0) print_compared_row(out, item);
}
