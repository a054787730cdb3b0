/* Reads both runs and their kernels from the store, lets rl_training_explain find the sentences, and adds these to the JSON. */
#include "api/comparison_explanation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/training_explanation.h"
#include "api/report.h"
#include "base/json_members.h"
#include "base/utf8.h"

/* --- the runs ---------------------------------------------------------------------------------------------------------- */

/* A run in the form that rl_training_explain takes, and the memory to which its texts and parts point. */
typedef struct stored_run {
  rl_training_run run;
  rl_training_part *parts;
  bool is_training;
  char variant[64], precision[16], trace_reason[256], counters_reason[256], rate_reason[256], memory_reason[256],
      scaling_reason[256];
} stored_run;

static void free_parts(stored_run *stored) { free(stored->parts); }

/* Copies the text of a column to `copy` and returns `copy`; returns NULL if the column is NULL. */
static const char *copy_text(rl_cursor *cursor, int column, char *copy, size_t size) {
  const char *text = rl_cursor_text(cursor, column);
  if (text == NULL) return NULL;
  snprintf(copy, size, "%s", text);
  rl_utf8_sanitize(copy, size);
  return copy;
}
#define COPY_TEXT(CURSOR, COLUMN, COPY) copy_text(CURSOR, COLUMN, COPY, sizeof(COPY))

/* Reads the columns of explained_run.sql. */
static void read_columns(rl_cursor *cursor, stored_run *stored) {
  rl_training_run *run = &stored->run;
  const char *kind = rl_cursor_text(cursor, 2);
  COPY_TEXT(cursor, 0, stored->variant);
  COPY_TEXT(cursor, 1, stored->precision);
  stored->is_training = kind != NULL && strcmp(kind, "train") == 0;
  run->variant = stored->variant;
  run->precision = stored->precision;
  run->epoch_ms = rl_cursor_real(cursor, 3);
  run->traced_ms = rl_cursor_real(cursor, 4);
  run->busy_ratio = rl_cursor_real(cursor, 5);
  run->trace_reason = COPY_TEXT(cursor, 6, stored->trace_reason);
  run->counters_reason = COPY_TEXT(cursor, 7, stored->counters_reason);
  run->operations = rl_cursor_real(cursor, 8);
  run->operations_per_s = rl_cursor_real(cursor, 9);
  run->rate_reason = COPY_TEXT(cursor, 10, stored->rate_reason);
  for (int i = 0; i < RL_MEMORY_PURPOSES; i++) run->memory_bytes[i] = rl_cursor_real(cursor, 11 + i);
  run->memory_reason = COPY_TEXT(cursor, 15, stored->memory_reason);
  run->skipped_steps = rl_cursor_real(cursor, 16);
  run->steps = rl_cursor_real(cursor, 17);
  run->scaling_reason = COPY_TEXT(cursor, 18, stored->scaling_reason);
}

/* Sets the verdict of a phase of training: the verdict of the kernel that executes the phase. If the kernel has no counters, the
 * verdict's message and the note say why. */
static int read_verdict(rl_cursor *cursor, const stored_run *stored, rl_training_part *part, rl_error *err) {
  const char *json = rl_cursor_text(cursor, 5);
  rl_kernel_metrics metrics;
  if (part->report_kernel < 0) {
    part->verdict = (rl_kernel_verdict){.value = NAN};
    snprintf(part->note, sizeof part->note, "%s",
             stored->run.counters_reason != NULL ? stored->run.counters_reason : rl_cursor_text(cursor, 9));
    snprintf(part->verdict.message, sizeof part->verdict.message, "%s", part->note);
    return 0;
  }
  if (rl_cursor_integer(cursor, 8) > 1)
    snprintf(part->note, sizeof part->note, "counters of the first of %lld executions with equal grid, block and shared memory",
             (long long)rl_cursor_integer(cursor, 8));
  if (json == NULL) {
    part->verdict = (part - 1)->verdict; /* the previous part is an earlier phase of the same kernel */
    return 0;
  }
  if (rl_kernel_metrics_parse(json, "[]", &metrics, err) < 0) return -1;
  part->verdict = rl_kernel_verdict_make(&metrics.values);
  rl_kernel_metrics_clear(&metrics);
  return 0;
}

static int add_part(rl_cursor *cursor, stored_run *stored, rl_error *err) {
  rl_training_part *grown = realloc(stored->parts, (stored->run.part_count + 1) * sizeof *grown);
  if (grown == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for the kernels of a run");
  stored->parts = grown;
  rl_training_part *part = &grown[stored->run.part_count++];
  *part = (rl_training_part){.total_us = rl_cursor_real(cursor, 2),
                             .launches = rl_cursor_integer(cursor, 3),
                             .report_kernel = isnan(rl_cursor_real(cursor, 4)) ? -1 : rl_cursor_integer(cursor, 4),
                             .instructions = rl_cursor_real(cursor, 6),
                             .conversions = rl_cursor_real(cursor, 7)};
  COPY_TEXT(cursor, 0, part->launch);
  COPY_TEXT(cursor, 1, part->phase);
  return read_verdict(cursor, stored, part, err);
}

static int read_run(rl_store *store, int64_t id, stored_run *stored, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *variant;
  stored->run.id = id;
  if (rl_store_query(store, RL_QUERY_EXPLAINED_RUN, RL_BINDINGS(RL_BIND_INTEGER(":run", id)), &cursor, err) < 0) return -1;
  int found = rl_cursor_next(cursor, &variant, err);
  if (found == 0) return rl_fail(err, RL_HTTP, 404, "Run %lld not found.", (long long)id);
  if (found > 0) read_columns(cursor, stored);
  return found < 0 ? -1 : 0;
}

static int read_parts(rl_store *store, stored_run *stored, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *launch;
  int found;
  if (rl_store_query(store, RL_QUERY_EXPLAINED_KERNELS, RL_BINDINGS(RL_BIND_INTEGER(":run", stored->run.id)), &cursor, err) < 0)
    return -1;
  while ((found = rl_cursor_next(cursor, &launch, err)) > 0)
    if (add_part(cursor, stored, err) < 0) return -1;
  stored->run.parts = stored->parts;
  return found;
}

/* --- JSON -------------------------------------------------------------------------------------------------------------- */

static cJSON *values_json(const rl_explanation_sentence *sentence) {
  cJSON *array = cJSON_CreateArray();
  for (size_t i = 0; i < sentence->value_count; i++) {
    const rl_explained_value *value = &sentence->values[i];
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", value->name);
    rl_json_add_number(object, "value", value->value);
    cJSON_AddStringToObject(object, "unit", value->unit);
    rl_json_add_text(object, "reason", value->reason);
    cJSON_AddItemToArray(array, object);
  }
  return array;
}

static cJSON *links_json(const rl_explanation_sentence *sentence) {
  cJSON *array = cJSON_CreateArray();
  for (size_t i = 0; i < sentence->link_count; i++) {
    const rl_explained_part *link = &sentence->links[i];
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "run", (double)link->run);
    cJSON_AddStringToObject(object, "launch", link->part->launch);
    rl_json_add_text(object, "phase", link->part->phase);
    rl_json_add_number(object, "kernel", link->part->report_kernel >= 0 ? (double)link->part->report_kernel : NAN);
    cJSON_AddStringToObject(object, "bound", rl_kernel_bound_names[link->part->verdict.bound]);
    rl_json_add_text(object, "note", link->part->note);
    rl_json_add_number(object, "time_ms", link->time_ms);
    cJSON_AddItemToArray(array, object);
  }
  return array;
}

static cJSON *sentence_json(const rl_explanation_sentence *sentence) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "topic", sentence->topic);
  rl_json_add_number(object, "run", sentence->run > 0 ? (double)sentence->run : NAN);
  rl_json_add_text(object, "text", sentence->text);
  rl_json_add_text(object, "reason", sentence->reason);
  cJSON_AddItemToObject(object, "values", values_json(sentence));
  cJSON_AddItemToObject(object, "links", links_json(sentence));
  return object;
}

static int add_sentences(cJSON *comparison, const rl_training_pair *pair, rl_error *err) {
  rl_explanation *explanation = malloc(sizeof *explanation);
  if (explanation == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for an explanation");
  int code = rl_training_explain(pair, explanation, err);
  cJSON *array = code < 0 ? NULL : cJSON_AddArrayToObject(comparison, "explanation");
  for (size_t i = 0; code >= 0 && i < explanation->count; i++)
    cJSON_AddItemToArray(array, sentence_json(&explanation->sentences[i]));
  free(explanation);
  return code;
}

static int64_t run_of(const cJSON *comparison, const char *side) {
  return (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetObjectItem(comparison, side), "run"));
}

static bool is_suspect(const cJSON *side) { return cJSON_IsTrue(cJSON_GetObjectItem(side, "suspect")); }

enum { SPEEDUP_REASON_SIZE = 2 * RL_NAME_SIZE + 32 };

/* Returns why there is no speed-up; NULL: there is one. The reasons of suspect runs are members of the comparison's sides, so the
 * sentences do not repeat them. buffer: its size is SPEEDUP_REASON_SIZE. */
static const char *speedup_reason(const cJSON *comparison, char *buffer) {
  const cJSON *baseline = cJSON_GetObjectItem(comparison, "baseline"), *candidate = cJSON_GetObjectItem(comparison, "candidate");
  const char *from = cJSON_GetStringValue(cJSON_GetObjectItem(baseline, "variant")),
             *to = cJSON_GetStringValue(cJSON_GetObjectItem(candidate, "variant"));
  if (is_suspect(baseline) && is_suspect(candidate)) snprintf(buffer, SPEEDUP_REASON_SIZE, "%s and %s are suspect", from, to);
  else if (is_suspect(baseline) || is_suspect(candidate))
    snprintf(buffer, SPEEDUP_REASON_SIZE, "%s is suspect", is_suspect(baseline) ? from : to);
  else return cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(comparison, "unavailable"), "speedup_ratio"));
  return buffer;
}

int rl_comparison_add_explanation(rl_store *store, cJSON *comparison, rl_error *err) {
  RL_CLEANUP(free_parts) stored_run baseline = {0};
  RL_CLEANUP(free_parts) stored_run candidate = {0};
  char reason[SPEEDUP_REASON_SIZE];
  cJSON *unavailable = cJSON_GetObjectItem(comparison, "unavailable");
  if (read_run(store, run_of(comparison, "baseline"), &baseline, err) < 0 ||
      read_run(store, run_of(comparison, "candidate"), &candidate, err) < 0)
    return -1;
  if (!baseline.is_training || !candidate.is_training) {
    cJSON_AddNullToObject(comparison, "explanation");
    cJSON_AddStringToObject(unavailable, "explanation", "only runs of training jobs are explained");
    return 0;
  }
  if (read_parts(store, &baseline, err) < 0 || read_parts(store, &candidate, err) < 0) return -1;
  rl_training_pair pair = {&baseline.run, &candidate.run, cJSON_GetNumberValue(cJSON_GetObjectItem(comparison, "speedup_ratio")),
                           speedup_reason(comparison, reason)};
  return add_sentences(comparison, &pair, err);
}
