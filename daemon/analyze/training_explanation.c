/* Each sentence of the explanation has its own function. The parts of a traced epoch are its kernels, or the phases of kernels
 * that record them. */
#include "analyze/training_explanation.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/quantity.h"
#include "base/text.h"
#include "base/utf8.h"
#include "train/engines.h"

const char *const rl_epoch_class_names[RL_EPOCH_CLASS_COUNT] = {"arithmetic", "memory", "latency", "too_small",
                                                                "exchange",   "launch", "copy",    "unknown"};
const char *const rl_memory_purposes[RL_MEMORY_PURPOSES] = {"dataset", "weights", "activations", "workspace"};

static const char *const class_labels[RL_EPOCH_CLASS_COUNT] = {
    "kernels bound by arithmetic",
    "kernels bound by memory",
    "kernels bound by latency",
    "kernels too short or with too few blocks",
    "exchange between blocks",
    "launches and gaps",
    "copies",
    "kernels without a verdict",
};

enum { LISTED_PARTS = 4, WEIGHTS_PURPOSE = 1 }; /* WEIGHTS_PURPOSE: index into rl_memory_purposes */
static const double LISTED_RATIO = 0.005;       /* smaller shares of an epoch are not listed */
static const double EQUAL_RATIO = 0.01;         /* times that differ by less are equal */
static const double ROUNDING_MS = 1e-6;         /* the trace has whole nanoseconds */

/* --- texts ------------------------------------------------------------------------------------------------------------- */

/* Appends to the text of a sentence. Cuts text that does not fit. */
__attribute__((format(printf, 2, 3))) static void append(rl_explanation_sentence *sentence, const char *format, ...) {
  size_t used = strlen(sentence->text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence->text + used, sizeof sentence->text - used, format, arguments);
  va_end(arguments);
  rl_utf8_sanitize(sentence->text, sizeof sentence->text);
}

/* Writes the reason. If it is NULL, writes that the number was not measured. */
static void set_reason(char *to, size_t size, const char *subject, const char *reason) {
  snprintf(to, size, "%s%s%s", subject, subject[0] != '\0' ? ": " : "", reason != NULL ? reason : "it was not measured");
  rl_utf8_sanitize(to, size);
}

static rl_quantity_text duration_of_ms(double ms) { return rl_us_text(1000 * ms); }

typedef struct formatted {
  char text[32];
} formatted;

static formatted format_percent(double ratio) {
  formatted to;
  snprintf(to.text, sizeof to.text, "%.1f %%", 100 * ratio);
  return to;
}

/* Returns the run's variant; "run ID" if both runs have the same variant. */
static formatted name_of(const rl_training_pair *pair, const rl_training_run *run) {
  formatted to;
  bool is_unique = strcmp(pair->baseline->variant, pair->candidate->variant) != 0;
  if (is_unique) snprintf(to.text, sizeof to.text, "%s", run->variant);
  else snprintf(to.text, sizeof to.text, "run %lld", (long long)run->id);
  return to;
}

static void add_value(rl_explanation_sentence *sentence, const char *name, const char *unit, double value, const char *reason) {
  rl_explained_value *to = &sentence->values[sentence->value_count++];
  *to = (rl_explained_value){.name = name, .unit = unit, .value = value};
  if (isnan(value)) set_reason(to->reason, sizeof to->reason, "", reason);
}

static void add_link(rl_explanation_sentence *sentence, const rl_training_run *run, const rl_training_part *part, double ms) {
  if (sentence->link_count < RL_EXPLANATION_MAX_LINKS)
    sentence->links[sentence->link_count++] = (rl_explained_part){run->id, part, ms};
}

static void give_reason(rl_explanation_sentence *sentence, const rl_training_pair *pair, const rl_training_run *run,
                        const char *reason) {
  set_reason(sentence->reason, sizeof sentence->reason, name_of(pair, run).text, reason);
}

static rl_explanation_sentence *add_sentence(rl_explanation *explanation, const char *topic, const rl_training_run *run) {
  rl_explanation_sentence *sentence = &explanation->sentences[explanation->count++];
  *sentence = (rl_explanation_sentence){.topic = topic, .run = run != NULL ? run->id : 0};
  return sentence;
}

/* --- the traced epoch -------------------------------------------------------------------------------------------------- */

static bool is_traced(const rl_training_run *run) { return run->part_count > 0 && run->traced_ms > 0 && !isnan(run->busy_ratio); }

/* Returns the part's time in the traced epoch. If kernels overlap, they share the busy time in proportion to their durations, so
 * that all parts add up to the busy time. */
static double part_ms(const rl_training_run *run, const rl_training_part *part) {
  double sum_us = 0, busy_us = 1000 * run->busy_ratio * run->traced_ms;
  for (size_t i = 0; i < run->part_count; i++) sum_us += run->parts[i].total_us;
  return part->total_us / 1000 * (sum_us > busy_us ? busy_us / sum_us : 1);
}

static double idle_ms(const rl_training_run *run) { return fmax(0, 1 - run->busy_ratio) * run->traced_ms; }

/* Returns the busy time in which no kernel runs. */
static double copy_ms(const rl_training_run *run) {
  double rest_ms = run->busy_ratio * run->traced_ms;
  for (size_t i = 0; i < run->part_count; i++) rest_ms -= part_ms(run, &run->parts[i]);
  return rest_ms < ROUNDING_MS ? 0 : rest_ms;
}

static bool is_memory_pipeline(const char *pipeline) {
  static const char *const names[] = {"lsu", "mio", "tex", "tma"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(pipeline, names[i]) == 0) return true;
  return false;
}

static rl_epoch_class class_of_verdict(const rl_kernel_verdict *verdict) {
  switch (verdict->bound) {
    case RL_KERNEL_BOUND_DRAM:
    case RL_KERNEL_BOUND_L2:
    case RL_KERNEL_BOUND_L1:
    case RL_KERNEL_BOUND_ATOMICS: return RL_EPOCH_MEMORY;
    case RL_KERNEL_BOUND_PIPELINE: return is_memory_pipeline(verdict->pipeline) ? RL_EPOCH_MEMORY : RL_EPOCH_ARITHMETIC;
    case RL_KERNEL_BOUND_LATENCY:
    case RL_KERNEL_BOUND_TAIL: return RL_EPOCH_LATENCY;
    case RL_KERNEL_BOUND_LAUNCH:
    case RL_KERNEL_BOUND_TOO_SMALL: return RL_EPOCH_TOO_SMALL;
    case RL_KERNEL_BOUND_UNKNOWN: break;
  }
  return RL_EPOCH_UNKNOWN;
}

static rl_epoch_class class_of(const rl_training_part *part) {
  return rl_train_phase_is_exchange(part->phase) ? RL_EPOCH_EXCHANGE : class_of_verdict(&part->verdict);
}

typedef struct epoch_division {
  double ms[RL_EPOCH_CLASS_COUNT];
  const rl_training_part *longest[RL_EPOCH_CLASS_COUNT]; /* longest part of each class; NULL: the class has no part */
  bool has_verdicts, has_phases;
} epoch_division;

static epoch_division divide_epoch(const rl_training_run *run) {
  epoch_division division = {.ms = {[RL_EPOCH_LAUNCH] = idle_ms(run), [RL_EPOCH_COPY] = copy_ms(run)}};
  for (size_t i = 0; i < run->part_count; i++) {
    const rl_training_part *part = &run->parts[i];
    rl_epoch_class class_ = class_of(part);
    const rl_training_part **longest = &division.longest[class_];
    division.ms[class_] += part_ms(run, part);
    division.has_verdicts |= part->verdict.bound != RL_KERNEL_BOUND_UNKNOWN;
    division.has_phases |= part->phase[0] != '\0';
    if (*longest == NULL || (*longest)->total_us < part->total_us) *longest = part;
  }
  return division;
}

static const char *unknown_reason(const rl_training_run *run, const epoch_division *division) {
  const rl_training_part *part = division->longest[RL_EPOCH_UNKNOWN];
  return part != NULL && part->verdict.message[0] != '\0' ? part->verdict.message : run->counters_reason;
}

static void add_class_values(rl_explanation_sentence *sentence, const rl_training_run *run, const epoch_division *division) {
  for (int i = 0; i < RL_EPOCH_CLASS_COUNT; i++) {
    bool needs_verdict = i <= RL_EPOCH_TOO_SMALL;
    if (needs_verdict && !division->has_verdicts)
      add_value(sentence, rl_epoch_class_names[i], "ms", NAN, unknown_reason(run, division));
    else if (i == RL_EPOCH_EXCHANGE && !division->has_phases)
      add_value(sentence, rl_epoch_class_names[i], "ms", NAN, "no kernel of the run records its phases");
    else add_value(sentence, rl_epoch_class_names[i], "ms", division->ms[i], NULL);
  }
}

/* Returns the class with the most time among those that are not in `listed` (a bit set) and reach LISTED_RATIO of the epoch;
 * RL_EPOCH_CLASS_COUNT: there is none. */
static int next_class(const epoch_division *division, const rl_training_run *run, unsigned listed) {
  int found = RL_EPOCH_CLASS_COUNT;
  for (int i = 0; i < RL_EPOCH_CLASS_COUNT; i++)
    if (!(listed & 1u << i) && division->ms[i] >= LISTED_RATIO * run->traced_ms &&
        (found == RL_EPOCH_CLASS_COUNT || division->ms[i] > division->ms[found]))
      found = i;
  return found;
}

static void explain_epoch(const rl_training_pair *pair, const rl_training_run *run, rl_explanation_sentence *sentence) {
  if (!is_traced(run)) {
    give_reason(sentence, pair, run, run->trace_reason);
    return;
  }
  epoch_division division = divide_epoch(run);
  append(sentence, "%s, traced epoch of %s", name_of(pair, run).text, duration_of_ms(run->traced_ms).text);
  unsigned listed = 0;
  for (int next; (next = next_class(&division, run, listed)) < RL_EPOCH_CLASS_COUNT; listed |= 1u << next) {
    append(sentence, "%s %s %s (%s)", listed == 0 ? ":" : ",", class_labels[next],
           format_percent(division.ms[next] / run->traced_ms).text, duration_of_ms(division.ms[next]).text);
    if (division.longest[next] != NULL) add_link(sentence, run, division.longest[next], part_ms(run, division.longest[next]));
  }
  const char *reason = unknown_reason(run, &division);
  append(sentence, ".");
  if (listed & 1u << RL_EPOCH_UNKNOWN && reason != NULL && reason[0] != '\0') /* the message of a verdict is a sentence */
    append(sentence, " No verdict: %s%s", reason, rl_ends_with(reason, ".") ? "" : ".");
  add_class_values(sentence, run, &division);
}

/* --- two epochs part by part ------------------------------------------------------------------------------------------- */

/* The parts of both runs with one name: an engine's phase has the name of the launch that does its work in other engines. */
typedef struct part_pair {
  const char *name;
  const rl_training_part *baseline, *candidate; /* longest part of each run; NULL: none, or the pair is gaps or copies */
  double baseline_ms, candidate_ms;
} part_pair;

typedef struct part_pairs {
  part_pair *items;
  size_t count;
} part_pairs;

static void free_pairs(part_pairs *pairs) { free(pairs->items); }

static part_pair *pair_named(part_pairs *pairs, const char *name) {
  for (size_t i = 0; i < pairs->count; i++)
    if (strcmp(pairs->items[i].name, name) == 0) return &pairs->items[i];
  pairs->items[pairs->count] = (part_pair){.name = name};
  return &pairs->items[pairs->count++];
}

static const char *part_name(const rl_training_part *part) { return part->phase[0] != '\0' ? part->phase : part->launch; }

static const rl_training_part *longer(const rl_training_part *left, const rl_training_part *right) {
  return left == NULL || left->total_us < right->total_us ? right : left;
}

static int pair_parts(const rl_training_pair *pair, part_pairs *pairs, rl_error *err) {
  const rl_training_run *baseline = pair->baseline, *candidate = pair->candidate;
  pairs->items = calloc(baseline->part_count + candidate->part_count + 2, sizeof *pairs->items);
  if (pairs->items == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the parts of two epochs");
  for (size_t i = 0; i < baseline->part_count; i++) {
    part_pair *to = pair_named(pairs, part_name(&baseline->parts[i]));
    to->baseline = longer(to->baseline, &baseline->parts[i]);
    to->baseline_ms += part_ms(baseline, &baseline->parts[i]);
  }
  for (size_t i = 0; i < candidate->part_count; i++) {
    part_pair *to = pair_named(pairs, part_name(&candidate->parts[i]));
    to->candidate = longer(to->candidate, &candidate->parts[i]);
    to->candidate_ms += part_ms(candidate, &candidate->parts[i]);
  }
  *pair_named(pairs, class_labels[RL_EPOCH_LAUNCH]) =
      (part_pair){class_labels[RL_EPOCH_LAUNCH], NULL, NULL, idle_ms(baseline), idle_ms(candidate)};
  *pair_named(pairs, class_labels[RL_EPOCH_COPY]) =
      (part_pair){class_labels[RL_EPOCH_COPY], NULL, NULL, copy_ms(baseline), copy_ms(candidate)};
  return 0;
}

static int compare_differences(const void *left, const void *right) {
  const part_pair *a = left, *b = right;
  double difference = fabs(a->baseline_ms - a->candidate_ms) - fabs(b->baseline_ms - b->candidate_ms);
  return (difference < 0) - (difference > 0);
}

static int compare_candidates(const void *left, const void *right) {
  const part_pair *a = left, *b = right;
  return (a->candidate_ms < b->candidate_ms) - (a->candidate_ms > b->candidate_ms);
}

/* Appends the part's two times; or one, if only one of the runs has the part. */
static void append_pair(rl_explanation_sentence *sentence, const rl_training_pair *pair, const part_pair *part) {
  if ((part->baseline == NULL) != (part->candidate == NULL)) {
    const bool in_baseline = part->baseline != NULL;
    append(sentence, "%s %s (only in %s)", part->name, duration_of_ms(in_baseline ? part->baseline_ms : part->candidate_ms).text,
           name_of(pair, in_baseline ? pair->baseline : pair->candidate).text);
    return;
  }
  append(sentence, "%s %s → %s", part->name, duration_of_ms(part->baseline_ms).text, duration_of_ms(part->candidate_ms).text);
  if (part->baseline_ms > 0 && part->candidate_ms > 0) append(sentence, " (%.2f×)", part->baseline_ms / part->candidate_ms);
}

/* Appends the parts that changed most in the direction of the whole epoch (faster or slower). */
static void append_largest_differences(rl_explanation_sentence *sentence, const rl_training_pair *pair, part_pairs *pairs,
                                       bool faster) {
  size_t listed = 0;
  qsort(pairs->items, pairs->count, sizeof *pairs->items, compare_differences);
  for (size_t i = 0; i < pairs->count && listed < LISTED_PARTS; i++) {
    const part_pair *part = &pairs->items[i];
    double saved_ms = (part->baseline_ms - part->candidate_ms) * (faster ? 1 : -1);
    if (saved_ms < LISTED_RATIO * fmax(pair->baseline->traced_ms, pair->candidate->traced_ms)) continue;
    append(sentence, listed++ == 0 ? " Largest differences: " : ", ");
    append_pair(sentence, pair, part);
    if (part->baseline != NULL) add_link(sentence, pair->baseline, part->baseline, part->baseline_ms);
    else if (part->candidate != NULL) add_link(sentence, pair->candidate, part->candidate, part->candidate_ms);
  }
  if (listed > 0) append(sentence, ".");
}

static void explain_speedup(const rl_training_pair *pair, part_pairs *pairs, rl_explanation_sentence *sentence) {
  const rl_training_run *baseline = pair->baseline, *candidate = pair->candidate;
  formatted from = name_of(pair, baseline), to = name_of(pair, candidate);
  add_value(sentence, "speedup", "ratio", pair->speedup_ratio, pair->speedup_reason);
  if (isnan(pair->speedup_ratio)) {
    set_reason(sentence->reason, sizeof sentence->reason, "", pair->speedup_reason);
    return;
  }
  bool is_equal = fabs(pair->speedup_ratio - 1)<EQUAL_RATIO, faster = pair->speedup_ratio> 1;
  if (is_equal) append(sentence, "%s is as fast as %s", to.text, from.text);
  else if (faster) append(sentence, "%s is %.2f× as fast as %s", to.text, pair->speedup_ratio, from.text);
  else append(sentence, "%s takes %.2f× the time of %s", to.text, 1 / pair->speedup_ratio, from.text);
  append(sentence, " (%s → %s an epoch).", duration_of_ms(baseline->epoch_ms).text, duration_of_ms(candidate->epoch_ms).text);
  add_value(sentence, "saved", "ms", baseline->epoch_ms - candidate->epoch_ms, NULL);
  if (!is_equal && is_traced(baseline) && is_traced(candidate)) append_largest_differences(sentence, pair, pairs, faster);
}

static bool gains_little(const part_pair *part) {
  return part->candidate_ms > 0 && part->baseline_ms < RL_LITTLE_GAIN_RATIO * part->candidate_ms;
}

/* Appends the longest parts that gain little. Returns the time of all parts that gain little. */
static double append_little_gains(rl_explanation_sentence *sentence, const rl_training_pair *pair, part_pairs *pairs) {
  double little_ms = 0;
  size_t listed = 0;
  for (size_t i = 0; i < pairs->count; i++)
    if (gains_little(&pairs->items[i])) little_ms += pairs->items[i].candidate_ms;
  if (little_ms < LISTED_RATIO * pair->candidate->traced_ms) return little_ms;
  append(sentence,
         "The speed-up is limited by parts that are less than %.1f× as fast; they take %s of %s (%s of the traced epoch): ",
         RL_LITTLE_GAIN_RATIO, duration_of_ms(little_ms).text, name_of(pair, pair->candidate).text,
         format_percent(little_ms / pair->candidate->traced_ms).text);
  qsort(pairs->items, pairs->count, sizeof *pairs->items, compare_candidates);
  for (size_t i = 0; i < pairs->count && listed < LISTED_PARTS; i++) {
    const part_pair *part = &pairs->items[i];
    if (!gains_little(part)) continue;
    append(sentence, "%s", listed++ == 0 ? "" : ", ");
    append_pair(sentence, pair, part);
    if (part->candidate != NULL) add_link(sentence, pair->candidate, part->candidate, part->candidate_ms);
  }
  append(sentence, ". If all other parts took no time, it would be %.2f×.", pair->baseline->traced_ms / little_ms);
  return little_ms;
}

static void explain_limit(const rl_training_pair *pair, part_pairs *pairs, rl_explanation_sentence *sentence) {
  const rl_training_run *baseline = pair->baseline, *candidate = pair->candidate;
  if (!(pair->speedup_ratio >= 1 + EQUAL_RATIO)) {
    const char *reason = isnan(pair->speedup_ratio) ? pair->speedup_reason : "the epoch is not faster";
    set_reason(sentence->reason, sizeof sentence->reason, "", reason);
    return;
  }
  if (!is_traced(baseline) || !is_traced(candidate)) {
    const rl_training_run *run = is_traced(baseline) ? candidate : baseline;
    give_reason(sentence, pair, run, run->trace_reason);
    return;
  }
  double little_ms = append_little_gains(sentence, pair, pairs);
  if (sentence->text[0] == '\0') append(sentence, "Every part is at least %.1f× as fast.", RL_LITTLE_GAIN_RATIO);
  add_value(sentence, "little_gain", "ms", little_ms, NULL);
  add_value(sentence, "speedup_limit", "ratio", little_ms > 0 ? baseline->traced_ms / little_ms : NAN,
            "no part limits the speed-up");
}

/* --- arithmetic, memory and the costs of FP16 -------------------------------------------------------------------------- */

static double arithmetic_ms(const rl_training_run *run) { return 1000 * run->operations / run->operations_per_s; }

static void explain_arithmetic(const rl_training_pair *pair, rl_explanation_sentence *sentence) {
  const rl_training_run *runs[] = {pair->baseline, pair->candidate};
  static const char *const names[] = {"baseline_arithmetic", "candidate_arithmetic"};
  for (int i = 0; i < 2; i++) {
    double ms = arithmetic_ms(runs[i]);
    add_value(sentence, names[i], "ms", ms, runs[i]->rate_reason);
    if (isnan(ms) && sentence->reason[0] == '\0') give_reason(sentence, pair, runs[i], runs[i]->rate_reason);
  }
  double rate_ratio = pair->candidate->operations_per_s / pair->baseline->operations_per_s;
  add_value(sentence, "rate", "ratio", rate_ratio, sentence->reason);
  if (sentence->reason[0] != '\0') return;
  append(sentence, "At the device's measured rates, the arithmetic that an epoch can't skip takes");
  for (int i = 0; i < 2; i++) {
    append(sentence, "%s %s in %s", i == 0 ? "" : " and", duration_of_ms(arithmetic_ms(runs[i])).text,
           name_of(pair, runs[i]).text);
    if (runs[i]->epoch_ms > 0)
      append(sentence, " (%s of the epoch)", format_percent(arithmetic_ms(runs[i]) / runs[i]->epoch_ms).text);
  }
  append(sentence, ": the rate is %.2f× as high.", rate_ratio);
}

static void explain_memory(const rl_training_pair *pair, rl_explanation_sentence *sentence) {
  static const char *const names[RL_MEMORY_PURPOSES] = {"saved_dataset", "saved_weights", "saved_activations", "saved_workspace"};
  const rl_training_run *baseline = pair->baseline, *candidate = pair->candidate;
  bool changed = false;
  for (int i = 0; i < RL_MEMORY_PURPOSES; i++) {
    double saved = baseline->memory_bytes[i] - candidate->memory_bytes[i];
    const rl_training_run *without = isnan(baseline->memory_bytes[i]) ? baseline : candidate;
    add_value(sentence, names[i], "B", saved, without->memory_reason);
    if (isnan(saved) && sentence->reason[0] == '\0') give_reason(sentence, pair, without, without->memory_reason);
  }
  if (sentence->reason[0] != '\0') return;
  append(sentence, "Memory of %s beside %s", name_of(pair, candidate).text, name_of(pair, baseline).text);
  for (int i = 0; i < RL_MEMORY_PURPOSES; i++) {
    if (baseline->memory_bytes[i] == candidate->memory_bytes[i]) continue;
    append(sentence, "%s %s %s → %s", changed ? "," : ":", rl_memory_purposes[i], rl_bytes_text(baseline->memory_bytes[i]).text,
           rl_bytes_text(candidate->memory_bytes[i]).text);
    changed = true;
  }
  append(sentence, changed ? "." : ": every purpose needs as much.");
}

static const rl_training_part *find_part(const rl_training_run *run, const char *name) {
  for (size_t i = 0; i < run->part_count; i++)
    if (strcmp(part_name(&run->parts[i]), name) == 0) return &run->parts[i];
  return NULL;
}

/* FP16 engines update FP32 weights and compute with FP16 copies of them. */
static void explain_weights(const rl_training_pair *pair, rl_explanation_sentence *sentence) {
  const rl_training_run *baseline = pair->baseline, *candidate = pair->candidate;
  double added = candidate->memory_bytes[WEIGHTS_PURPOSE] - baseline->memory_bytes[WEIGHTS_PURPOSE];
  const rl_training_run *without = isnan(baseline->memory_bytes[WEIGHTS_PURPOSE]) ? baseline : candidate;
  add_value(sentence, "added_weights", "B", added, without->memory_reason);
  if (isnan(added)) {
    give_reason(sentence, pair, without, without->memory_reason);
    return;
  }
  append(sentence, "FP32 master weights stay beside the FP16 copies: weights and optimizer state take %s",
         rl_bytes_text(candidate->memory_bytes[WEIGHTS_PURPOSE]).text);
  if (added > 0) append(sentence, ", %s more than in %s.", rl_bytes_text(added).text, name_of(pair, baseline).text);
  else append(sentence, ", not more than in %s.", name_of(pair, baseline).text);
  const rl_training_part *before = find_part(baseline, "adam"), *now = find_part(candidate, "adam");
  if (before == NULL || now == NULL || !is_traced(baseline) || !is_traced(candidate)) return;
  append(sentence, " The update (adam) takes %s an epoch, in %s %s.", duration_of_ms(part_ms(candidate, now)).text,
         name_of(pair, baseline).text, duration_of_ms(part_ms(baseline, before)).text);
  add_link(sentence, candidate, now, part_ms(candidate, now));
}

static void explain_conversions(const rl_training_pair *pair, rl_explanation_sentence *sentence) {
  const rl_training_run *run = pair->candidate;
  double conversions = 0, instructions = 0;
  const rl_training_part *most = NULL;
  for (size_t i = 0; i < run->part_count; i++) {
    const rl_training_part *part = &run->parts[i];
    if (isnan(part->instructions) || isnan(part->conversions)) continue;
    conversions += part->conversions * (double)part->launches;
    instructions += part->instructions * (double)part->launches;
    if (most == NULL || most->conversions * (double)most->launches < part->conversions * (double)part->launches) most = part;
  }
  double ratio = instructions > 0 ? conversions / instructions : NAN;
  const char *reason = run->counters_reason != NULL ? run->counters_reason : "the counters pass collected no instructions";
  add_value(sentence, "conversions", "ratio", ratio, reason);
  if (isnan(ratio)) {
    give_reason(sentence, pair, run, reason);
    return;
  }
  append(sentence, "Conversions between FP16 and FP32 are %s of the instructions that %s executes, where they were counted.",
         format_percent(ratio).text, name_of(pair, run).text);
  if (ratio > 0) add_link(sentence, run, most, is_traced(run) ? part_ms(run, most) : NAN);
}

static void explain_scaling(const rl_training_pair *pair, rl_explanation_sentence *sentence) {
  const rl_training_run *run = pair->candidate;
  add_value(sentence, "skipped_steps", "step", run->skipped_steps, run->scaling_reason);
  add_value(sentence, "steps", "step", run->steps, run->scaling_reason);
  if (isnan(run->skipped_steps) || isnan(run->steps)) give_reason(sentence, pair, run, run->scaling_reason);
  else append(sentence, "Loss scaling skipped %.0f of %.0f steps of the measured epochs.", run->skipped_steps, run->steps);
}

static bool is_half(const rl_training_run *run) { return strcmp(run->precision, "fp16") == 0; }

int rl_training_explain(const rl_training_pair *pair, rl_explanation *explanation, rl_error *err) {
  RL_CLEANUP(free_pairs) part_pairs pairs = {0};
  explanation->count = 0;
  if (pair_parts(pair, &pairs, err) < 0) return -1;
  explain_epoch(pair, pair->baseline, add_sentence(explanation, "epoch", pair->baseline));
  explain_epoch(pair, pair->candidate, add_sentence(explanation, "epoch", pair->candidate));
  explain_speedup(pair, &pairs, add_sentence(explanation, "speedup", NULL));
  explain_limit(pair, &pairs, add_sentence(explanation, "limit", NULL));
  explain_arithmetic(pair, add_sentence(explanation, "arithmetic", NULL));
  explain_memory(pair, add_sentence(explanation, "memory", NULL));
  if (!is_half(pair->candidate) || is_half(pair->baseline)) return 0;
  explain_weights(pair, add_sentence(explanation, "weights", pair->candidate));
  explain_conversions(pair, add_sentence(explanation, "conversions", pair->candidate));
  explain_scaling(pair, add_sentence(explanation, "scaling", pair->candidate));
  return 0;
}
