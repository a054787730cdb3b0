/* Prints which times are suspect, and the likely cause once for all runs that share it. */
#include <stdbool.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/print.h"

enum { LINE_SIZE = 512, INDENT_COLUMNS = 2 };

static void print_marked(FILE *out, const char *text) {
  fputs("! ", out);
  rl_print_after_label(out, INDENT_COLUMNS, text);
}

/* Prints the number of suspect items (the run's epochs or samples), and the reason of the first one. */
static void print_suspect_items(FILE *out, const cJSON *run, const char *items) {
  const cJSON *item, *list = rl_json_at(run, items), *first = NULL;
  char line[LINE_SIZE];
  int suspect = 0;
  cJSON_ArrayForEach (item, list) {
    if (!cJSON_IsTrue(rl_json_at(item, "suspect"))) continue;
    if (suspect++ == 0) first = item;
  }
  if (suspect == 0) return;
  snprintf(line, sizeof line, "%s is suspect (%d of %d %s): %s", rl_json_text(run, "variant"), suspect, cJSON_GetArraySize(list),
           items, rl_json_text(first, "suspect_reason"));
  print_marked(out, line);
}

void rl_print_suspect_runs(FILE *out, const cJSON *runs) {
  const cJSON *run, *earlier;
  cJSON_ArrayForEach (run, runs) print_suspect_items(out, run, "epochs"), print_suspect_items(out, run, "samples");
  cJSON_ArrayForEach (run, runs) {
    const char *cause = rl_json_text(run, "summary.suspect_cause");
    for (earlier = runs->child; earlier != run; earlier = earlier->next)
      if (strcmp(rl_json_text(earlier, "summary.suspect_cause"), cause) == 0) break;
    if (cause[0] != '\0' && earlier == run) rl_print_wrapped(out, INDENT_COLUMNS, cause);
  }
}

static void print_suspect_side(FILE *out, const char *name, const cJSON *side) {
  char line[LINE_SIZE];
  if (!cJSON_IsTrue(rl_json_at(side, "suspect"))) return;
  snprintf(line, sizeof line, "%s is suspect: %s", name, rl_json_text(side, "suspect_reason"));
  print_marked(out, line);
}

void rl_print_suspect_pair(FILE *out, const cJSON *pair) {
  const char *cause = rl_json_text(pair, "baseline.suspect_cause"), *other = rl_json_text(pair, "candidate.suspect_cause");
  print_suspect_side(out, "A", rl_json_at(pair, "baseline"));
  print_suspect_side(out, "B", rl_json_at(pair, "candidate"));
  if (cause[0] != '\0') rl_print_wrapped(out, INDENT_COLUMNS, cause);
  if (other[0] != '\0' && strcmp(cause, other) != 0) rl_print_wrapped(out, INDENT_COLUMNS, other);
}

void rl_print_disturbed_ceilings(FILE *out, const char *reason) {
  if (reason[0] != '\0') print_marked(out, reason);
}
