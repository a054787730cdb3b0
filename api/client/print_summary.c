/* Prints the short form of a report. A kernel or a finding is printed only if all of its lines fit; the last line has the numbers
 * of omitted kernels, findings and lines. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/print.h"
#include "api/client/print_report_internal.h"
#include "base/cleanup.h"

enum { MAX_LINES = 60, FOOTER_LINES = 2, MAX_KERNEL_LINES = 24, MAX_TIMELINE_LINES = 16 };

typedef struct summary_page {
  FILE *out;
  int free_lines;
  int omitted_kernels, omitted_findings, omitted_lines; /* omitted_lines: lines of the timeline */
} summary_page;

static int count_lines(const char *text) {
  int count = 0;
  for (; *text != '\0'; text++) count += *text == '\n';
  return count;
}

/* Prints a block of lines if at least `reserved` free lines remain after it. Returns whether it was printed. */
static bool print_block(summary_page *page, const char *block, int reserved) {
  int lines = block != NULL ? count_lines(block) : 0;
  if (lines > page->free_lines - reserved) return false;
  if (block != NULL) fputs(block, page->out);
  page->free_lines -= lines;
  return true;
}

/* --- kernels ----------------------------------------------------------------------------------------------------------- */

static double duration_us(const cJSON *kernel) {
  double seconds = rl_json_number(kernel, "roofline.duration_s");
  return isnan(seconds) ? 0 : seconds * 1e6;
}

/* Prints one line with name and duration, then the verdict. */
static void print_kernel_brief(FILE *out, const cJSON *kernel) {
  const char *launch = rl_json_text(kernel, "launch");
  char time[RL_CELL_SIZE];
  fprintf(out, "%.0f ", rl_json_number(kernel, "ordinal"));
  rl_print_name(out, launch[0] != '\0' ? launch : rl_json_text(kernel, "name"));
  fprintf(out, " · %s\n", rl_format_us(time, rl_json_number(kernel, "roofline.duration_s") * 1e6));
  rl_print_style(out, RL_STYLE_BOLD);
  rl_print_wrapped(out, 2, rl_json_text(kernel, "verdict.message"));
  rl_print_style(out, RL_STYLE_NONE);
}

static char *render_kernel(const cJSON *kernel, bool is_only) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return NULL;
  if (is_only) rl_print_kernel_header(out, kernel);
  else print_kernel_brief(out, kernel);
  fclose(out);
  return text;
}

static int compare_durations(const void *left, const void *right) {
  const cJSON *a = *(const cJSON *const *)left, *b = *(const cJSON *const *)right;
  if (duration_us(a) != duration_us(b)) return duration_us(a) < duration_us(b) ? 1 : -1;
  return rl_json_number(a, "ordinal") < rl_json_number(b, "ordinal") ? -1 : 1;
}

/* Prints the verdicts, the longest kernel first. */
static void print_kernels(summary_page *page, const cJSON *kernels) {
  int count = cJSON_GetArraySize(kernels), used = 0;
  const cJSON *kernel, **sorted = calloc((size_t)count + 1, sizeof *sorted);
  if (sorted == NULL) return;
  cJSON_ArrayForEach (kernel, kernels) sorted[used++] = kernel;
  qsort(sorted, (size_t)count, sizeof *sorted, compare_durations);
  if (count > 1) print_block(page, "\n", 0);
  for (int i = 0; i < count; i++) {
    RL_CLEANUP(rl_free_text) char *text = render_kernel(sorted[i], count == 1);
    if (!print_block(page, text, i == 0 ? 0 : MAX_LINES - MAX_KERNEL_LINES)) page->omitted_kernels++;
  }
  free(sorted);
}

/* --- the epoch --------------------------------------------------------------------------------------------------------- */

/* Returns the sentence of a comparison about where the run's epoch spends its time; NULL: there is none. */
static const cJSON *find_epoch_sentence(const cJSON *comparison, double run) {
  const cJSON *pair, *sentence;
  cJSON_ArrayForEach (pair, rl_json_at(comparison, "items"))
    cJSON_ArrayForEach (sentence, rl_json_at(pair, "explanation"))
      if (strcmp(rl_json_text(sentence, "topic"), "epoch") == 0 && rl_json_number(sentence, "run") == run) return sentence;
  return NULL;
}

static void print_epoch(summary_page *page, const cJSON *comparison, double run) {
  const char *text = rl_json_text(find_epoch_sentence(comparison, run), "text");
  char *block = NULL;
  size_t size;
  FILE *out = text[0] != '\0' ? open_memstream(&block, &size) : NULL;
  if (out == NULL) return;
  fputc('\n', out);
  rl_print_wrapped(out, 0, text);
  fclose(out);
  print_block(page, block, 0);
  free(block);
}

/* --- findings ---------------------------------------------------------------------------------------------------------- */

typedef struct ranked_finding {
  const cJSON *kernel, *finding;
  double gain_us; /* upper bound of the time that acting on the finding saves; 0: unknown, or only a local estimate is known */
  int rank;       /* position in the report */
} ranked_finding;

static double gain_us(const cJSON *kernel, const cJSON *finding) {
  double saved_pct = rl_json_number(finding, "speedup_pct");
  bool is_local = strcmp(rl_json_text(finding, "scope"), "local") == 0;
  return isnan(saved_pct) || is_local ? 0 : saved_pct / 100 * duration_us(kernel);
}

static int compare_gains(const void *left, const void *right) {
  const ranked_finding *a = left, *b = right;
  if (a->gain_us != b->gain_us) return a->gain_us < b->gain_us ? 1 : -1;
  return a->rank - b->rank;
}

static ranked_finding *rank_findings(const cJSON *kernels, int *count) {
  const cJSON *kernel, *finding;
  int total = 0;
  cJSON_ArrayForEach (kernel, kernels) total += cJSON_GetArraySize(rl_json_at(kernel, "findings"));
  ranked_finding *ranked = calloc((size_t)total + 1, sizeof *ranked);
  *count = 0;
  if (ranked == NULL) return NULL;
  cJSON_ArrayForEach (kernel, kernels)
    cJSON_ArrayForEach (finding, rl_json_at(kernel, "findings")) {
      ranked[*count] = (ranked_finding){kernel, finding, gain_us(kernel, finding), *count};
      ++*count;
    }
  qsort(ranked, (size_t)total, sizeof *ranked, compare_gains);
  return ranked;
}

static char *render_finding(const ranked_finding *ranked, bool names_kernel) {
  char *text = NULL, mark[32];
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return NULL;
  const char *kind = rl_finding_mark(ranked->finding);
  if (names_kernel) snprintf(mark, sizeof mark, "%s kernel %.0f:", kind, rl_json_number(ranked->kernel, "ordinal"));
  else snprintf(mark, sizeof mark, "%s", kind);
  rl_print_finding(out, mark, ranked->finding);
  fclose(out);
  return text;
}

/* Prints the findings of all kernels, the largest gain first. */
static void print_findings(summary_page *page, const cJSON *kernels, int reserved) {
  int count;
  ranked_finding *ranked = rank_findings(kernels, &count);
  if (count > 0 && cJSON_GetArraySize(kernels) > 1) print_block(page, "\n", reserved);
  for (int i = 0; ranked != NULL && i < count; i++) {
    RL_CLEANUP(rl_free_text) char *text = render_finding(&ranked[i], cJSON_GetArraySize(kernels) > 1);
    if (page->omitted_findings > 0 || !print_block(page, text, reserved)) page->omitted_findings++;
  }
  free(ranked);
}

/* --- the page ---------------------------------------------------------------------------------------------------------- */

static char *render_timeline(const cJSON *timeline) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return NULL;
  rl_print_timeline_findings(out, timeline);
  fclose(out);
  while (size > 1 && text[size - 1] == '\n' && text[size - 2] == '\n') text[--size] = '\0';
  return text;
}

static void print_first_lines(summary_page *page, const char *text) {
  while (text != NULL && *text != '\0') {
    size_t length = strcspn(text, "\n") + 1;
    if (page->free_lines > 0) fwrite(text, 1, length, page->out), page->free_lines--;
    else page->omitted_lines++;
    text += length;
  }
}

static void print_footer(const summary_page *page, const cJSON *report) {
  const struct {
    int count;
    const char *name;
  } omitted[] = {
      {page->omitted_kernels, "kernels"}, {page->omitted_findings, "findings"}, {page->omitted_lines, "lines of the timeline"}};
  const char *separator = " ";
  fputs("\nNot shown:", page->out);
  for (size_t i = 0; i < sizeof omitted / sizeof *omitted; i++) {
    if (omitted[i].count == 0) continue;
    fprintf(page->out, "%s%d %s", separator, omitted[i].count, omitted[i].name);
    separator = ", ";
  }
  fprintf(page->out, "%stables of numbers (rooflinectl report %.0f --all)\n", separator, rl_json_number(report, "run"));
}

static void print_disturbed_ceilings(summary_page *page, const cJSON *report) {
  RL_CLEANUP(rl_free_text) char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return;
  rl_print_disturbed_ceilings(out, rl_json_text(report, "ceilings_disturbed_reason"));
  fclose(out);
  print_block(page, text, 0);
}

void rl_print_report_summary(FILE *out, const cJSON *report, const cJSON *timeline, const cJSON *comparison) {
  const char *ceilings_reason = rl_json_text(report, "ceilings_reason"), *reason = rl_json_text(report, "counters_reason");
  const cJSON *kernels = rl_json_at(report, "kernels");
  summary_page page = {.out = out, .free_lines = MAX_LINES - FOOTER_LINES};
  rl_print_report_run(out, "", report);
  page.free_lines--;
  if (ceilings_reason[0] != '\0') fprintf(out, "— no measured ceilings: %s\n", ceilings_reason), page.free_lines--;
  print_disturbed_ceilings(&page, report);
  if (reason[0] != '\0') fprintf(out, "— no sections: %s\n", reason), page.free_lines--;
  RL_CLEANUP(rl_free_text) char *timeline_text = timeline != NULL ? render_timeline(timeline) : NULL;
  int timeline_lines = timeline_text != NULL ? count_lines(timeline_text) : 0;
  print_epoch(&page, comparison, rl_json_number(report, "run"));
  if (reason[0] == '\0') print_kernels(&page, kernels);
  print_findings(&page, kernels, timeline_lines < MAX_TIMELINE_LINES ? timeline_lines : MAX_TIMELINE_LINES);
  print_first_lines(&page, timeline_text);
  print_footer(&page, report);
}
