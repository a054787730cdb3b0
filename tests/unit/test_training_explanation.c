/* Tests rl_training_explain on pairs of runs whose differences have known causes, and on both sides of each threshold. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/training_explanation.h"

enum { MAX_PARTS = 8 };

/* A run of four parts, and 1 ms without work on the device. Tests change its members. */
typedef struct run_fixture {
  rl_training_part parts[MAX_PARTS];
  rl_training_run run;
} run_fixture;

static rl_training_part make_part(const char *launch, const char *phase, double ms, rl_kernel_bound bound) {
  rl_training_part part = {.total_us = 1000 * ms, .launches = 10, .report_kernel = 0, .conversions = NAN, .instructions = NAN};
  snprintf(part.launch, sizeof part.launch, "%s", launch);
  snprintf(part.phase, sizeof part.phase, "%s", phase);
  part.verdict = (rl_kernel_verdict){.bound = bound, .pipeline = bound == RL_KERNEL_BOUND_PIPELINE ? "fma" : NULL};
  return part;
}

static void make_run(run_fixture *fixture_run, int64_t id, const char *precision, const double part_ms[4]) {
  *fixture_run = (run_fixture){.run = {.id = id,
                                       .variant = precision,
                                       .precision = precision,
                                       .parts = fixture_run->parts,
                                       .part_count = 4,
                                       .operations = 1e12,
                                       .operations_per_s = strcmp(precision, "fp16") == 0 ? 8e14 : 5e13,
                                       .memory_bytes = {55e6, 6 << 20, 24 << 20, 4 << 20},
                                       .skipped_steps = NAN,
                                       .steps = NAN,
                                       .scaling_reason = "no loss scaling"}};
  double sum_ms = 0;
  for (int i = 0; i < 4; i++) sum_ms += part_ms[i];
  fixture_run->run.epoch_ms = fixture_run->run.traced_ms = sum_ms + 1;
  fixture_run->run.busy_ratio = sum_ms / (sum_ms + 1);
  fixture_run->parts[0] = make_part("conv2_forward", "", part_ms[0], RL_KERNEL_BOUND_PIPELINE);
  fixture_run->parts[1] = make_part("conv1_forward", "", part_ms[1], RL_KERNEL_BOUND_L1);
  fixture_run->parts[2] = make_part("head", "", part_ms[2], RL_KERNEL_BOUND_LATENCY);
  fixture_run->parts[3] = make_part("adam", "", part_ms[3], RL_KERNEL_BOUND_DRAM);
}

typedef struct fixture {
  run_fixture baseline, candidate;
  rl_training_pair pair;
  rl_explanation explanation;
} fixture;

/* Returns a pair: fp32 takes 41 ms, fp16 takes 21 ms. In fp16, conv2 is 6 times as fast and conv1 as fast as in fp32. The caller
 * frees it. */
static fixture *make_pair(void) {
  fixture *f = calloc(1, sizeof *f);
  make_run(&f->baseline, 1, "fp32", (const double[]){24, 9, 4, 3});
  make_run(&f->candidate, 2, "fp16", (const double[]){4, 9, 3, 4});
  f->candidate.run.memory_bytes[1] = 7 << 20;
  f->candidate.run.memory_bytes[2] = 14 << 20;
  f->pair = (rl_training_pair){&f->baseline.run, &f->candidate.run, 41.0 / 21, NULL};
  return f;
}

static void explain_pair(fixture *f) {
  rl_error err;
  assert_int_equal(rl_training_explain(&f->pair, &f->explanation, &err), 0);
}

static const rl_explanation_sentence *find_sentence(const fixture *f, const char *topic, int64_t run) {
  for (size_t i = 0; i < f->explanation.count; i++)
    if (strcmp(f->explanation.sentences[i].topic, topic) == 0 && f->explanation.sentences[i].run == run)
      return &f->explanation.sentences[i];
  fail_msg("there is no sentence about %s of run %d", topic, (int)run);
  abort();
}

static bool has_topic(const fixture *f, const char *topic) {
  for (size_t i = 0; i < f->explanation.count; i++)
    if (strcmp(f->explanation.sentences[i].topic, topic) == 0) return true;
  return false;
}

static const rl_explained_value *find_value(const rl_explanation_sentence *sentence, const char *name) {
  for (size_t i = 0; i < sentence->value_count; i++)
    if (strcmp(sentence->values[i].name, name) == 0) return &sentence->values[i];
  fail_msg("there is no value %s", name);
  abort();
}

static void assert_value(const rl_explanation_sentence *sentence, const char *name, double expected) {
  assert_float_equal(find_value(sentence, name)->value, expected, 1e-9 * fabs(expected) + 1e-12);
  assert_string_equal(find_value(sentence, name)->reason, "");
}

static void assert_missing(const rl_explanation_sentence *sentence, const char *name, const char *reason) {
  assert_true(isnan(find_value(sentence, name)->value));
  assert_string_equal(find_value(sentence, name)->reason, reason);
}

static void assert_text_contains(const rl_explanation_sentence *sentence, const char *text) {
  if (strstr(sentence->text, text) == NULL) fail_msg("\"%s\" is not in \"%s\"", text, sentence->text);
}

static void the_epoch_is_divided_by_verdicts(void **state) {
  (void)state;
  fixture *f = make_pair();
  explain_pair(f);
  const rl_explanation_sentence *epoch = find_sentence(f, "epoch", 1);
  assert_string_equal(epoch->text,
                      "fp32, traced epoch of 41.00 ms: kernels bound by arithmetic 58.5 % (24.00 ms), kernels bound by memory "
                      "29.3 % (12.00 ms), kernels bound by latency 9.8 % (4.00 ms), launches and gaps 2.4 % (1.00 ms).");
  assert_value(epoch, "arithmetic", 24);
  assert_value(epoch, "memory", 12);
  assert_value(epoch, "latency", 4);
  assert_value(epoch, "launch", 1);
  assert_missing(epoch, "exchange", "no kernel of the run records its phases");
  assert_int_equal(epoch->link_count, 3); /* one to the longest part of each class; launches and gaps have no part */
  assert_string_equal(epoch->links[1].part->launch, "conv1_forward");
  assert_float_equal(epoch->links[1].time_ms, 9, 1e-9);
  free(f);
}

static void each_bound_has_its_class(void **state) {
  (void)state;
  static const struct {
    rl_kernel_bound bound;
    const char *pipeline, *class_;
  } cases[] = {{RL_KERNEL_BOUND_DRAM, NULL, "memory"},
               {RL_KERNEL_BOUND_L2, NULL, "memory"},
               {RL_KERNEL_BOUND_L1, NULL, "memory"},
               {RL_KERNEL_BOUND_ATOMICS, NULL, "memory"},
               {RL_KERNEL_BOUND_PIPELINE, "lsu", "memory"},
               {RL_KERNEL_BOUND_PIPELINE, "mio", "memory"},
               {RL_KERNEL_BOUND_PIPELINE, "fma", "arithmetic"},
               {RL_KERNEL_BOUND_PIPELINE, "tensor", "arithmetic"},
               {RL_KERNEL_BOUND_PIPELINE, "issue", "arithmetic"},
               {RL_KERNEL_BOUND_LATENCY, NULL, "latency"},
               {RL_KERNEL_BOUND_TAIL, NULL, "latency"},
               {RL_KERNEL_BOUND_LAUNCH, NULL, "too_small"},
               {RL_KERNEL_BOUND_TOO_SMALL, NULL, "too_small"},
               {RL_KERNEL_BOUND_UNKNOWN, NULL, "unknown"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture *f = make_pair();
    for (int part = 0; part < 4; part++) {
      f->baseline.parts[part].verdict.bound = cases[i].bound;
      f->baseline.parts[part].verdict.pipeline = cases[i].pipeline;
    }
    explain_pair(f);
    assert_value(find_sentence(f, "epoch", 1), cases[i].class_, 40);
    free(f);
  }
}

/* Kernels of 40 ms, all too small for a verdict, keep the device busy for busy_ratio of the epoch. */
static void explain_small_kernels(fixture *f, double busy_ratio) {
  for (int i = 0; i < 4; i++)
    f->baseline.parts[i].verdict.bound = i % 2 == 0 ? RL_KERNEL_BOUND_TOO_SMALL : RL_KERNEL_BOUND_LAUNCH;
  f->baseline.run.busy_ratio = busy_ratio;
  f->baseline.run.traced_ms = 40 / busy_ratio;
  explain_pair(f);
}

static void only_time_without_work_counts_as_launches(void **state) {
  (void)state;
  fixture *f = make_pair();
  explain_small_kernels(f, 0.95);
  assert_value(find_sentence(f, "epoch", 1), "launch", 40 / 0.95 - 40);
  assert_value(find_sentence(f, "epoch", 1), "too_small", 40);
  assert_string_equal(find_sentence(f, "epoch", 1)->text,
                      "fp32, traced epoch of 42.11 ms: kernels too short or with too few blocks 95.0 % (40.00 ms), launches "
                      "and gaps 5.0 % (2.11 ms).");
  explain_small_kernels(f, 0.4);
  assert_value(find_sentence(f, "epoch", 1), "launch", 60);
  assert_text_contains(find_sentence(f, "epoch", 1), "epoch of 100.0 ms: launches and gaps 60.0 % (60.00 ms)");
  free(f);
}

static void phases_that_exchange_data_are_apart_from_the_others(void **state) {
  (void)state;
  fixture *f = make_pair();
  f->candidate.parts[0] = make_part("persistent_epoch", "conv2_forward", 4, RL_KERNEL_BOUND_LATENCY);
  f->candidate.parts[1] = make_part("persistent_epoch", "conv1_forward", 9, RL_KERNEL_BOUND_LATENCY);
  f->candidate.parts[2] = make_part("persistent_epoch", "rows_barrier", 3, RL_KERNEL_BOUND_LATENCY);
  f->candidate.parts[3] = make_part("persistent_epoch", "adam", 4, RL_KERNEL_BOUND_LATENCY);
  explain_pair(f);
  const rl_explanation_sentence *epoch = find_sentence(f, "epoch", 2);
  assert_value(epoch, "exchange", 3);
  assert_value(epoch, "latency", 17);
  assert_text_contains(epoch, "exchange between blocks 14.3 % (3.00 ms)");
  assert_text_contains(find_sentence(f, "speedup", 0),
                       "conv2_forward 24.00 ms → 4.00 ms (6.00×)"); /* a phase is compared with the launch of the same name */
  free(f);
}

static void without_counters_the_classes_are_unknown(void **state) {
  (void)state;
  fixture *f = make_pair();
  for (int i = 0; i < 4; i++) {
    f->baseline.parts[i].verdict = (rl_kernel_verdict){.message = "a CPU has no hardware counters"};
    f->baseline.parts[i].report_kernel = -1;
  }
  explain_pair(f);
  const rl_explanation_sentence *epoch = find_sentence(f, "epoch", 1);
  assert_string_equal(epoch->text,
                      "fp32, traced epoch of 41.00 ms: kernels without a verdict 97.6 % (40.00 ms), launches and gaps 2.4 % "
                      "(1.00 ms). No verdict: a CPU has no hardware counters.");
  assert_missing(epoch, "arithmetic", "a CPU has no hardware counters");
  assert_value(epoch, "unknown", 40);
  free(f);
}

static void a_verdict_without_a_bound_ends_the_sentence(void **state) {
  (void)state;
  fixture *f = make_pair();
  f->baseline.parts[0].verdict = (rl_kernel_verdict){.message = "The verdict needs the duration: it was not collected."};
  explain_pair(f);
  const char *text = find_sentence(f, "epoch", 1)->text,
             *reason = "No verdict: The verdict needs the duration: it was not collected.";
  assert_string_equal(text + strlen(text) - strlen(reason), reason);
  free(f);
}

static void without_a_trace_the_sentence_has_the_reason(void **state) {
  (void)state;
  fixture *f = make_pair();
  f->candidate.run.part_count = 0;
  f->candidate.run.traced_ms = f->candidate.run.busy_ratio = NAN;
  f->candidate.run.trace_reason = "the job did not ask for the activity pass";
  explain_pair(f);
  assert_string_equal(find_sentence(f, "epoch", 2)->text, "");
  assert_string_equal(find_sentence(f, "epoch", 2)->reason, "fp16: the job did not ask for the activity pass");
  assert_string_equal(find_sentence(f, "limit", 0)->reason, "fp16: the job did not ask for the activity pass");
  assert_string_equal(find_sentence(f, "speedup", 0)->text, "fp16 is 1.95× as fast as fp32 (41.00 ms → 21.00 ms an epoch).");
  free(f);
}

/* Two branches of a graph run at once: their 40 ms take 20 ms. */
static void overlapping_kernels_share_the_busy_time(void **state) {
  (void)state;
  fixture *f = make_pair();
  f->baseline.run.traced_ms = 21;
  f->baseline.run.busy_ratio = 20.0 / 21;
  explain_pair(f);
  assert_value(find_sentence(f, "epoch", 1), "arithmetic", 12);
  assert_value(find_sentence(f, "epoch", 1), "memory", 6);
  assert_value(find_sentence(f, "epoch", 1), "copy", 0);
  free(f);
}

static void busy_time_without_kernels_is_copies(void **state) {
  (void)state;
  fixture *f = make_pair();
  f->baseline.run.traced_ms = 51;
  f->baseline.run.busy_ratio = 45.0 / 51;
  explain_pair(f);
  assert_value(find_sentence(f, "epoch", 1), "copy", 5);
  assert_value(find_sentence(f, "epoch", 1), "launch", 6);
  free(f);
}

static void parts_that_gain_little_limit_the_speedup(void **state) {
  (void)state;
  fixture *f = make_pair();
  explain_pair(f);
  const rl_explanation_sentence *limit = find_sentence(f, "limit", 0);
  /* conv1 (9 → 9), adam (3 → 4), head (4 → 3, 1.33×) and gaps (1 → 1) */
  assert_value(limit, "little_gain", 17);
  assert_value(limit, "speedup_limit", 41.0 / 17);
  assert_text_contains(limit,
                       "they take 17.00 ms of fp16 (81.0 % of the traced epoch): conv1_forward 9.00 ms → 9.00 ms (1.00×), adam");
  assert_text_contains(limit, "If all other parts took no time, it would be 2.41×.");
  assert_int_equal(limit->links[0].run, 2);
  assert_string_equal(find_sentence(f, "speedup", 0)->text,
                      "fp16 is 1.95× as fast as fp32 (41.00 ms → 21.00 ms an epoch). Largest "
                      "differences: conv2_forward 24.00 ms → 4.00 ms (6.00×), head 4.00 ms → "
                      "3.00 ms (1.33×).");
  free(f);
}

static void a_part_of_one_run_has_no_time_in_the_other(void **state) {
  (void)state;
  fixture *f = make_pair();
  snprintf(f->candidate.parts[1].launch, sizeof f->candidate.parts[1].launch, "convolutions_forward");
  explain_pair(f);
  assert_text_contains(find_sentence(f, "limit", 0),
                       "traced epoch): convolutions_forward 9.00 ms (only in fp16), adam 3.00 ms → 4.00 ms");
  assert_text_contains(find_sentence(f, "speedup", 0),
                       "conv2_forward 24.00 ms → 4.00 ms (6.00×), conv1_forward 9.00 ms (only in fp32)");
  free(f);
}

static void a_part_just_above_the_threshold_does_not_limit(void **state) {
  (void)state;
  static const struct {
    double head_ms, little_gain_ms;
  } cases[] = {{4 / RL_LITTLE_GAIN_RATIO * 1.01, 14 + 4 / RL_LITTLE_GAIN_RATIO * 1.01}, {4 / RL_LITTLE_GAIN_RATIO * 0.99, 14}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture *f = make_pair();
    make_run(&f->candidate, 2, "fp16", (const double[]){4, 9, cases[i].head_ms, 4});
    explain_pair(f);
    assert_value(find_sentence(f, "limit", 0), "little_gain", cases[i].little_gain_ms);
    free(f);
  }
}

static void without_a_slow_part_no_part_is_the_limit(void **state) {
  (void)state;
  fixture *f = make_pair();
  make_run(&f->candidate, 2, "fp16", (const double[]){4, 4.5, 2, 1.5});
  f->candidate.run.traced_ms = 12;
  f->candidate.run.busy_ratio = 1;
  f->pair.speedup_ratio = 41.0 / 12;
  explain_pair(f);
  assert_string_equal(find_sentence(f, "limit", 0)->text, "Every part is at least 1.5× as fast.");
  assert_missing(find_sentence(f, "limit", 0), "speedup_limit", "no part limits the speed-up");
  free(f);
}

static void equal_and_slower_epochs_have_no_limit(void **state) {
  (void)state;
  static const struct {
    double speedup;
    const char *text, *limit;
  } cases[] = {{1.009, "fp16 is as fast as fp32", "the epoch is not faster"},
               {1.02, "fp16 is 1.02× as fast as fp32", ""},
               {0.991, "fp16 is as fast as fp32", "the epoch is not faster"},
               {0.8, "fp16 takes 1.25× the time of fp32", "the epoch is not faster"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture *f = make_pair();
    f->pair.speedup_ratio = cases[i].speedup;
    explain_pair(f);
    assert_text_contains(find_sentence(f, "speedup", 0), cases[i].text);
    assert_string_equal(find_sentence(f, "limit", 0)->reason, cases[i].limit);
    free(f);
  }
}

static void a_slower_run_names_the_parts_that_are_slower(void **state) {
  (void)state;
  fixture *f = make_pair();
  f->pair = (rl_training_pair){&f->candidate.run, &f->baseline.run, 21.0 / 41, NULL};
  explain_pair(f);
  assert_text_contains(find_sentence(f, "speedup", 0), "fp32 takes 1.95× the time of fp16");
  assert_text_contains(find_sentence(f, "speedup", 0), "conv2_forward 4.00 ms → 24.00 ms (0.17×)");
  assert_false(has_topic(f, "weights")); /* fp32 has no copies of weights, no conversions and no loss scaling */
  assert_false(has_topic(f, "scaling"));
  free(f);
}

static void a_suspect_time_has_no_speedup(void **state) {
  (void)state;
  fixture *f = make_pair();
  f->pair.speedup_ratio = NAN;
  f->pair.speedup_reason = "fp16 is suspect: faster than its floor";
  explain_pair(f);
  assert_string_equal(find_sentence(f, "speedup", 0)->text, "");
  assert_string_equal(find_sentence(f, "speedup", 0)->reason, "fp16 is suspect: faster than its floor");
  assert_string_equal(find_sentence(f, "limit", 0)->reason, "fp16 is suspect: faster than its floor");
  free(f);
}

static void arithmetic_follows_from_measured_rates(void **state) {
  (void)state;
  fixture *f = make_pair();
  explain_pair(f);
  assert_string_equal(find_sentence(f, "arithmetic", 0)->text,
                      "At the device's measured rates, the arithmetic that an epoch can't skip takes 20.00 ms in fp32 (48.8 % of "
                      "the epoch) and 1.25 ms in fp16 (6.0 % of the epoch): the rate is 16.00× as high.");
  f->candidate.run.operations_per_s = NAN;
  f->candidate.run.rate_reason = "no ceilings of this device";
  explain_pair(f);
  assert_string_equal(find_sentence(f, "arithmetic", 0)->reason, "fp16: no ceilings of this device");
  assert_string_equal(find_sentence(f, "arithmetic", 0)->text, "");
  assert_missing(find_sentence(f, "arithmetic", 0), "candidate_arithmetic", "no ceilings of this device");
  assert_value(find_sentence(f, "arithmetic", 0), "baseline_arithmetic", 20);
  free(f);
}

static void memory_is_compared_by_purpose(void **state) {
  (void)state;
  fixture *f = make_pair();
  explain_pair(f);
  assert_string_equal(find_sentence(f, "memory", 0)->text,
                      "Memory of fp16 beside fp32: weights 6.0 MiB → 7.0 MiB, activations 24.0 MiB → 14.0 MiB.");
  assert_value(find_sentence(f, "memory", 0), "saved_activations", 10 << 20);
  assert_value(find_sentence(f, "memory", 0), "saved_weights", -(1 << 20));
  assert_string_equal(find_sentence(f, "weights", 2)->text,
                      "FP32 master weights stay beside the FP16 copies: weights and optimizer state take 7.0 MiB, 1.0 MiB more "
                      "than in fp32. The update (adam) takes 4.00 ms an epoch, in fp32 3.00 ms.");
  f->candidate.run.memory_bytes[1] = f->baseline.run.memory_bytes[1];
  f->candidate.run.memory_bytes[2] = f->baseline.run.memory_bytes[2];
  explain_pair(f);
  assert_text_contains(find_sentence(f, "weights", 2), "take 6.0 MiB, not more than in fp32.");
  assert_text_contains(find_sentence(f, "memory", 0), "every purpose needs as much");
  f->candidate.run.memory_bytes[1] = NAN;
  f->candidate.run.memory_reason = "the timing pass is pending";
  explain_pair(f);
  assert_string_equal(find_sentence(f, "memory", 0)->reason, "fp16: the timing pass is pending");
  assert_string_equal(find_sentence(f, "weights", 2)->reason, "fp16: the timing pass is pending");
  free(f);
}

static void conversions_and_skipped_steps_are_named_for_fp16(void **state) {
  (void)state;
  fixture *f = make_pair();
  explain_pair(f);
  assert_string_equal(find_sentence(f, "conversions", 2)->reason, "fp16: the counters pass collected no instructions");
  assert_string_equal(find_sentence(f, "scaling", 2)->reason, "fp16: no loss scaling");
  f->candidate.parts[1].instructions = 900;
  f->candidate.parts[1].conversions = 0;
  f->candidate.parts[3].instructions = 100;
  f->candidate.parts[3].conversions = 50;
  f->candidate.run.skipped_steps = 2;
  f->candidate.run.steps = 938;
  explain_pair(f);
  assert_value(find_sentence(f, "conversions", 2), "conversions", 0.05);
  assert_string_equal(find_sentence(f, "conversions", 2)->links[0].part->launch, "adam");
  assert_string_equal(find_sentence(f, "scaling", 2)->text, "Loss scaling skipped 2 of 938 steps of the measured epochs.");
  f->candidate.run.precision = "tf32";
  explain_pair(f);
  assert_false(has_topic(f, "conversions"));
  free(f);
}

static void equal_variants_are_told_apart_by_their_runs(void **state) {
  (void)state;
  fixture *f = make_pair();
  f->candidate.run.variant = f->candidate.run.precision = "fp32";
  explain_pair(f);
  assert_text_contains(find_sentence(f, "speedup", 0), "run 2 is 1.95× as fast as run 1");
  free(f);
}

/* With the longest names, sentences exceed their buffer. Each is truncated. */
static void long_sentences_are_cut(void **state) {
  (void)state;
  fixture *f = make_pair();
  for (int i = 0; i < 4; i++) {
    memset(f->baseline.parts[i].launch, 'a' + i, sizeof f->baseline.parts[i].launch - 1);
    memset(f->candidate.parts[i].launch, 'p' + i, sizeof f->candidate.parts[i].launch - 1);
  }
  explain_pair(f);
  for (size_t i = 0; i < f->explanation.count; i++)
    assert_true(strlen(f->explanation.sentences[i].text) < RL_EXPLANATION_TEXT_SIZE);
  free(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_epoch_is_divided_by_verdicts),
      cmocka_unit_test(each_bound_has_its_class),
      cmocka_unit_test(only_time_without_work_counts_as_launches),
      cmocka_unit_test(phases_that_exchange_data_are_apart_from_the_others),
      cmocka_unit_test(without_counters_the_classes_are_unknown),
      cmocka_unit_test(a_verdict_without_a_bound_ends_the_sentence),
      cmocka_unit_test(without_a_trace_the_sentence_has_the_reason),
      cmocka_unit_test(overlapping_kernels_share_the_busy_time),
      cmocka_unit_test(busy_time_without_kernels_is_copies),
      cmocka_unit_test(parts_that_gain_little_limit_the_speedup),
      cmocka_unit_test(a_part_of_one_run_has_no_time_in_the_other),
      cmocka_unit_test(a_part_just_above_the_threshold_does_not_limit),
      cmocka_unit_test(without_a_slow_part_no_part_is_the_limit),
      cmocka_unit_test(equal_and_slower_epochs_have_no_limit),
      cmocka_unit_test(a_slower_run_names_the_parts_that_are_slower),
      cmocka_unit_test(a_suspect_time_has_no_speedup),
      cmocka_unit_test(arithmetic_follows_from_measured_rates),
      cmocka_unit_test(memory_is_compared_by_purpose),
      cmocka_unit_test(conversions_and_skipped_steps_are_named_for_fp16),
      cmocka_unit_test(equal_variants_are_told_apart_by_their_runs),
      cmocka_unit_test(long_sentences_are_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
