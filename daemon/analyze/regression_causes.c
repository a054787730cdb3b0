/* Pairs the kernels of two runs by launch and name, gives each pair's difference a class and evidence, and adds causes for
 * clocks, small differences and time outside kernels. The largest causes come first. */
#include "analyze/regression_causes.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/quantity.h"

/* Relative change of a kernel's time that occurs from run to run without a cause. */
#define NOISE_RATIO 0.01
/* Clocks that differ by less count as equal: NVML reports clocks in steps of 15 MHz, which are 0.8 % of 1980 MHz. */
#define CLOCK_RATIO 0.01
/* Minimum share of the runs' difference for which noise of a kernel is a separate cause. Smaller differences are added up in one
 * cause. */
#define MIN_LISTED_SHARE 0.05

const char *rl_regression_cause_class_name(rl_regression_cause_class class_) {
  static const char *const names[RL_REGRESSION_CLASS_COUNT] = {"code", "configuration", "device", "harness", "noise"};
  return class_ < RL_REGRESSION_CLASS_COUNT ? names[class_] : "unknown";
}

void rl_regression_causes_clear(rl_regression_causes *causes) {
  free(causes->items);
  *causes = (rl_regression_causes){0};
}

static bool is_known(const char *text) { return text != NULL && *text != '\0'; }
static bool same_text(const char *a, const char *b) { return is_known(a) ? is_known(b) && strcmp(a, b) == 0 : !is_known(b); }
static bool same_number(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* --- evidence ---------------------------------------------------------------------------------------------------------- */

static void add_evidence(rl_regression_cause *cause, const char *property, const char *baseline, const char *current) {
  if (cause->evidence_count == RL_REGRESSION_MAX_EVIDENCE) return;
  rl_regression_evidence *evidence = &cause->evidence[cause->evidence_count++];
  snprintf(evidence->property, sizeof evidence->property, "%s", property);
  snprintf(evidence->baseline, sizeof evidence->baseline, "%s", is_known(baseline) ? baseline : "unknown");
  snprintf(evidence->current, sizeof evidence->current, "%s", is_known(current) ? current : "unknown");
}

/* Adds the texts if they differ. Returns whether they do. */
static bool compare_texts(rl_regression_cause *cause, const char *property, const char *baseline, const char *current) {
  if (same_text(baseline, current)) return false;
  add_evidence(cause, property, baseline, current);
  return true;
}

static bool compare_numbers(rl_regression_cause *cause, const char *property, double baseline, double current) {
  char before[32] = "", now[32] = "";
  if (same_number(baseline, current)) return false;
  if (isfinite(baseline)) snprintf(before, sizeof before, "%.6g", baseline);
  if (isfinite(current)) snprintf(now, sizeof now, "%.6g", current);
  add_evidence(cause, property, before, now);
  return true;
}

static bool compare_shapes(rl_regression_cause *cause, const char *property, const int64_t baseline[3],
                           const int64_t current[3]) {
  char text[2][64];
  const int64_t *const shapes[] = {baseline, current};
  if (memcmp(baseline, current, 3 * sizeof *baseline) == 0) return false;
  for (int i = 0; i < 2; i++)
    snprintf(text[i], sizeof text[i], "%lld x %lld x %lld", (long long)shapes[i][0], (long long)shapes[i][1],
             (long long)shapes[i][2]);
  add_evidence(cause, property, text[0], text[1]);
  return true;
}

static bool differs_by(double baseline, double current, double ratio) {
  return isfinite(baseline) && isfinite(current) && fabs(current - baseline) > ratio * fmax(fabs(baseline), fabs(current));
}

/* Adds as evidence the counts of work that differ and the stall reason that changed most, if both runs measured them. This
 * evidence does not decide the class. */
static void compare_metrics(rl_regression_cause *cause, const rl_metric_values *baseline, const rl_metric_values *current) {
  static const char *const work[] = {"smsp__inst_executed.sum", "dram__bytes.sum", "lts__t_sectors.sum"};
  static const char stalled[] = "smsp__average_warps_issue_stalled_", per_issue[] = "_per_issue_active.ratio";
  for (size_t i = 0; i < sizeof work / sizeof *work; i++) {
    double before = rl_metric_values_get(baseline, work[i]), now = rl_metric_values_get(current, work[i]);
    if (differs_by(before, now, NOISE_RATIO)) compare_numbers(cause, work[i], before, now);
  }
  const rl_metric_value *grown = NULL;
  double largest_change = 0;
  for (size_t i = 0; i < baseline->count; i++) {
    const char *name = baseline->items[i].name, *end = strstr(name, per_issue);
    if (strncmp(name, stalled, sizeof stalled - 1) != 0 || end == NULL || end[sizeof per_issue - 1] != '\0') continue;
    double before = baseline->items[i].value, now = rl_metric_values_get(current, name);
    if (differs_by(before, now, 0.1) && fabs(now - before) > largest_change)
      largest_change = fabs(now - before), grown = &baseline->items[i];
  }
  if (grown != NULL) compare_numbers(cause, grown->name, grown->value, rl_metric_values_get(current, grown->name));
}

/* --- differences between the runs ------------------------------------------------------------------------------------- */

typedef struct comparison {
  const rl_regression_run *baseline, *current;
  bool configuration_differs, parameters_differ, device_differs, build_differs;
  bool posted_code_differs;
  double clock_ratio;                /* baseline / current SM clock; 1: equal or unknown */
  double baseline_us, difference_us; /* total time of the baseline; current - baseline */
  rl_regression_cause clock_cause;   /* sum of the parts that the SM clock explains */
  size_t clock_kernel_count;         /* kernels with such a part */
  rl_regression_cause small_noise;   /* sum of the noise below MIN_LISTED_SHARE */
  size_t small_noise_count;
  rl_regression_causes causes; /* has space for every kernel and three more causes */
} comparison;

static bool compare_parameters(const comparison *c, rl_regression_cause *cause) {
  const rl_regression_run *before = c->baseline, *now = c->current;
  bool engine = compare_texts(cause, "engine", before->engine, now->engine);
  bool params = compare_texts(cause, "params", before->params, now->params);
  return compare_texts(cause, "dataset_sha256", before->dataset_sha256, now->dataset_sha256) || engine || params;
}

static bool compare_configuration(const comparison *c, rl_regression_cause *cause) {
  bool parameters = compare_parameters(c, cause);
  bool libraries = compare_texts(cause, "libraries", c->baseline->libraries, c->current->libraries);
  return compare_texts(cause, "driver", c->baseline->driver, c->current->driver) || parameters || libraries;
}

static bool compare_devices(const comparison *c, rl_regression_cause *cause) {
  const rl_regression_run *before = c->baseline, *now = c->current;
  bool other = compare_texts(cause, "device_uuid", before->device_uuid, now->device_uuid);
  bool throttled = compare_texts(cause, "throttle_reasons", before->throttle_reasons, now->throttle_reasons);
  bool memory = differs_by(before->memory_clock_mhz, now->memory_clock_mhz, CLOCK_RATIO) &&
                compare_numbers(cause, "memory_clock_mhz", before->memory_clock_mhz, now->memory_clock_mhz);
  return other || throttled || memory;
}

static bool compare_builds(const comparison *c, rl_regression_cause *cause) {
  return compare_texts(cause, "worker_commit", c->baseline->worker_commit, c->current->worker_commit);
}

static bool compare_posted_code(const comparison *c, rl_regression_cause *cause) {
  return compare_texts(cause, "posted_sha256", c->baseline->posted_sha256, c->current->posted_sha256);
}

static void compare_runs(comparison *c) {
  rl_regression_cause ignored = {0};
  c->parameters_differ = compare_parameters(c, &ignored);
  c->configuration_differs = compare_configuration(c, &ignored);
  c->device_differs = compare_devices(c, &ignored);
  c->build_differs = compare_builds(c, &ignored);
  c->posted_code_differs = compare_posted_code(c, &ignored);
  double before = c->baseline->sm_clock_mhz, now = c->current->sm_clock_mhz;
  c->clock_ratio = differs_by(before, now, CLOCK_RATIO) && before > 0 && now > 0 ? before / now : 1;
}

/* --- texts ------------------------------------------------------------------------------------------------------------- */

static void set_text(rl_regression_cause *cause, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void set_text(rl_regression_cause *cause, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(cause->text, sizeof cause->text, format, arguments);
  va_end(arguments);
}

static void add_text(rl_regression_cause *cause, const char *text) {
  size_t used = strlen(cause->text);
  snprintf(cause->text + used, sizeof cause->text - used, "%s", text);
}

typedef struct amount {
  char text[48];
} amount;
static amount describe_us(double difference_us) {
  amount a;
  snprintf(a.text, sizeof a.text, "%s %s", rl_us_text(fabs(difference_us)).text, difference_us < 0 ? "less" : "more");
  return a;
}

static const char *name_of(const rl_regression_kernel *kernel) {
  return is_known(kernel->launch) ? kernel->launch : is_known(kernel->name) ? kernel->name : "a kernel without a name";
}

/* --- kernels ----------------------------------------------------------------------------------------------------------- */

static rl_regression_cause *append(comparison *c, const rl_regression_cause *cause) {
  rl_regression_cause *added = &c->causes.items[c->causes.count++];
  *added = *cause;
  return added;
}

/* Returns the class of a difference in machine code. Libraries and the driver contain kernels too: if the configuration differs
 * and the worker's build does not, the class is configuration. */
static rl_regression_cause_class class_of_code_difference(const comparison *c) {
  return c->configuration_differs && !c->build_differs ? RL_REGRESSION_CONFIGURATION : RL_REGRESSION_CODE;
}

/* Adds a kernel that only one run executes. added: whether this is the current run. */
static void add_unpaired_kernel(comparison *c, const rl_regression_kernel *kernel, bool added) {
  rl_regression_cause cause = {
      .class_ = c->build_differs && !c->configuration_differs ? RL_REGRESSION_CODE : RL_REGRESSION_CONFIGURATION,
      .difference_us = added ? kernel->total_us : -kernel->total_us};
  snprintf(cause.subject, sizeof cause.subject, "%s", name_of(kernel));
  add_evidence(&cause, "kernel", added ? "not executed" : kernel->name, added ? kernel->name : "not executed");
  if (cause.class_ == RL_REGRESSION_CODE) compare_builds(c, &cause);
  else compare_configuration(c, &cause);
  set_text(&cause, "%s takes %s: only the %s executes it.", cause.subject, describe_us(cause.difference_us).text,
           added ? "current run" : "baseline");
  append(c, &cause);
}

/* Adds the part of a kernel's difference that the SM clock explains to clock_cause, and returns it. A kernel that waits for
 * memory does not scale with the clock, so the part is at most the difference. */
static double attribute_to_clock(comparison *c, const rl_regression_kernel *baseline, double difference) {
  double expected = baseline->total_us * (c->clock_ratio - 1);
  if (!(expected * difference > 0)) return 0;
  double part = fabs(expected) < fabs(difference) ? expected : difference;
  c->clock_cause.difference_us += part, c->clock_kernel_count++;
  return part;
}

static bool is_merged_pair(const rl_regression_kernel *before, const rl_regression_kernel *now) {
  return before->is_merged || now->is_merged;
}

/* Compares the launches of one kernel. Returns whether they are known to differ. */
static bool compare_launches(rl_regression_cause *cause, const rl_regression_kernel *before, const rl_regression_kernel *now) {
  if (is_merged_pair(before, now)) return false;
  bool launches = compare_numbers(cause, "launches", (double)before->launches, (double)now->launches);
  bool grid = compare_shapes(cause, "grid", before->grid, now->grid);
  bool block = compare_shapes(cause, "block", before->block, now->block);
  bool dynamic = compare_numbers(cause, "dynamic_shared_bytes", before->dynamic_shared_bytes, now->dynamic_shared_bytes);
  return launches || grid || block || dynamic;
}

/* Sets class and text for a kernel without a known difference of code, launch or inputs. known: whether the code hashes of both
 * runs are known. */
static void classify_equal_kernel(const comparison *c, const rl_regression_kernel *before, bool known, bool is_merged,
                                  rl_regression_cause *cause) {
  const char *subject = cause->subject, *equal = is_merged ? "machine code and inputs"
                                                 : known   ? "machine code, launch and inputs"
                                                           : "launch, inputs and the worker's build";
  amount change = describe_us(cause->difference_us);
  if (fabs(cause->difference_us) <= NOISE_RATIO * before->total_us) {
    cause->class_ = RL_REGRESSION_NOISE;
    set_text(cause, "%s takes %s: within the %.0f %% by which equal kernels differ.", subject, change.text, 100 * NOISE_RATIO);
  } else if (c->device_differs) {
    cause->class_ = RL_REGRESSION_DEVICE;
    compare_devices(c, cause);
    set_text(cause, "%s takes %s: its %s are equal, but the device or its state differs.", subject, change.text, equal);
  } else if (c->configuration_differs) {
    cause->class_ = RL_REGRESSION_CONFIGURATION;
    compare_configuration(c, cause);
    set_text(cause, "%s takes %s: its %s are equal, but the driver or a library differs.", subject, change.text, equal);
  } else if (c->build_differs) {
    cause->class_ = RL_REGRESSION_HARNESS;
    compare_builds(c, cause);
    set_text(cause, "%s takes %s: its %s are equal, but the worker's build differs.", subject, change.text, equal);
  } else {
    cause->class_ = RL_REGRESSION_NOISE;
    set_text(cause, "%s takes %s: its %s are equal, and nothing that is known differs.", subject, change.text, equal);
  }
}

/* Adds the properties of the compiled kernel that differ, and the metrics. Does not decide the class. */
static void compare_properties(rl_regression_cause *cause, const rl_regression_kernel *before, const rl_regression_kernel *now) {
  compare_numbers(cause, "registers_per_thread", before->registers_per_thread, now->registers_per_thread);
  compare_numbers(cause, "static_shared_bytes", before->static_shared_bytes, now->static_shared_bytes);
  if (is_merged_pair(before, now)) return; /* the others are those of one row */
  compare_numbers(cause, "theoretical_occupancy_ratio", before->theoretical_occupancy_ratio, now->theoretical_occupancy_ratio);
  compare_metrics(cause, &before->metrics, &now->metrics);
}

static void add_kernel_pair(comparison *c, const rl_regression_kernel *before, const rl_regression_kernel *now) {
  rl_regression_cause cause = {.difference_us = now->total_us - before->total_us};
  snprintf(cause.subject, sizeof cause.subject, "%s", name_of(now));
  cause.difference_us -= attribute_to_clock(c, before, cause.difference_us);
  bool known = is_known(before->code_sha256) && is_known(now->code_sha256);
  bool code_differs = known && strcmp(before->code_sha256, now->code_sha256) != 0;
  amount change = describe_us(cause.difference_us);
  rl_regression_cause launch = {0};
  bool launch_differs = compare_launches(&launch, before, now);
  if (code_differs || (!known && (c->build_differs || c->posted_code_differs) && !c->parameters_differ)) {
    cause.class_ = code_differs ? class_of_code_difference(c) : RL_REGRESSION_CODE;
    compare_texts(&cause, "code_sha256", before->code_sha256, now->code_sha256);
    compare_texts(&cause, "kernel", before->name, now->name);
    set_text(&cause,
             code_differs ? "%s takes %s: its machine code differs%s."
                          : "%s takes %s: its machine code is unknown, and the code that it was built from differs%s.",
             cause.subject, change.text,
             cause.class_ == RL_REGRESSION_CODE ? "" : ", with a library or driver, not with the worker's build");
    compare_posted_code(c, &cause);
    compare_builds(c, &cause);
    if (cause.class_ == RL_REGRESSION_CONFIGURATION) compare_configuration(c, &cause);
  } else if (launch_differs || c->parameters_differ) {
    cause.class_ = RL_REGRESSION_CONFIGURATION;
    set_text(&cause, "%s takes %s: its %s.", cause.subject, change.text,
             launch_differs ? "launch differs, not its machine code" : "inputs differ, not its machine code");
    if (c->parameters_differ) compare_parameters(c, &cause);
  } else {
    classify_equal_kernel(c, before, known, is_merged_pair(before, now), &cause);
  }
  if (is_merged_pair(before, now))
    add_text(
        &cause,
        " One run has several rows for executions that differ in their launch, the other has one row: the launch may differ.");
  compare_launches(&cause, before, now);
  compare_properties(&cause, before, now);
  bool is_small = cause.class_ == RL_REGRESSION_NOISE && !is_merged_pair(before, now) &&
                  fabs(cause.difference_us) < MIN_LISTED_SHARE * fabs(c->difference_us);
  if (is_small) c->small_noise.difference_us += cause.difference_us, c->small_noise_count++;
  else if (cause.difference_us != 0) append(c, &cause);
}

/* --- pairs ------------------------------------------------------------------------------------------------------------- */

typedef bool (*pairing)(const rl_regression_kernel *a,
                        const rl_regression_kernel *b); /* returns whether a and b are the same kernel */
static bool same_launch_and_name(const rl_regression_kernel *a, const rl_regression_kernel *b) {
  return same_text(a->launch, b->launch) && same_text(a->name, b->name);
}
/* Executions in a step that differ in grid or block; streams may change their order. */
static bool same_configuration(const rl_regression_kernel *a, const rl_regression_kernel *b) {
  return same_launch_and_name(a, b) && memcmp(a->grid, b->grid, sizeof a->grid) == 0 &&
         memcmp(a->block, b->block, sizeof a->block) == 0;
}
static bool same_launch(const rl_regression_kernel *a, const rl_regression_kernel *b) {
  return is_known(a->launch) && same_text(a->launch, b->launch);
}
static bool same_name(const rl_regression_kernel *a, const rl_regression_kernel *b) { return same_text(a->name, b->name); }

/* Pairs the n-th kernel of a launch, name, grid and block in the baseline with the n-th such kernel in the current run. Pairs the
 * remaining kernels by launch and name, then by launch, then by name. pair_of[baseline kernel]: index in the current run, or its
 * kernel_count. used[current kernel]: it is paired. */
static void pair_kernels(comparison *c, size_t *pair_of, bool *used) {
  static const pairing pairings[] = {same_configuration, same_launch_and_name, same_launch, same_name};
  size_t before = c->baseline->kernel_count, now = c->current->kernel_count;
  for (size_t i = 0; i < before; i++) pair_of[i] = now;
  for (size_t p = 0; p < sizeof pairings / sizeof *pairings; p++)
    for (size_t i = 0; i < before; i++)
      for (size_t k = 0; k < now && pair_of[i] == now; k++)
        if (!used[k] && pairings[p](&c->baseline->kernels[i], &c->current->kernels[k])) pair_of[i] = k, used[k] = true;
}

static int add_kernels(comparison *c, rl_error *err) {
  size_t *pair_of = malloc((c->baseline->kernel_count + 1) * sizeof *pair_of);
  bool *used = calloc(c->current->kernel_count + 1, sizeof *used);
  if (pair_of == NULL || used == NULL) {
    free(pair_of), free(used);
    errno = ENOMEM;
    return rl_fail_errno(err, "pairs of kernels");
  }
  pair_kernels(c, pair_of, used);
  for (size_t i = 0; i < c->baseline->kernel_count; i++)
    if (pair_of[i] < c->current->kernel_count) add_kernel_pair(c, &c->baseline->kernels[i], &c->current->kernels[pair_of[i]]);
    else add_unpaired_kernel(c, &c->baseline->kernels[i], false);
  for (size_t k = 0; k < c->current->kernel_count; k++)
    if (!used[k]) add_unpaired_kernel(c, &c->current->kernels[k], true);
  free(pair_of), free(used);
  return 0;
}

/* --- causes beyond single kernels --------------------------------------------------------------------------------------- */

static void add_clock_cause(comparison *c) {
  if (c->clock_kernel_count == 0) return;
  rl_regression_cause *cause = append(c, &c->clock_cause);
  cause->class_ = RL_REGRESSION_DEVICE;
  compare_numbers(cause, "sm_clock_mhz", c->baseline->sm_clock_mhz, c->current->sm_clock_mhz);
  compare_numbers(cause, "power_w", c->baseline->power_w, c->current->power_w);
  compare_texts(cause, "throttle_reasons", c->baseline->throttle_reasons, c->current->throttle_reasons);
  bool one = c->clock_kernel_count == 1;
  set_text(cause, "The SM clock explains that %zu kernel%s %s: %.0f MHz in the baseline, %.0f MHz now.", c->clock_kernel_count,
           one ? " takes" : "s take", describe_us(cause->difference_us).text, c->baseline->sm_clock_mhz,
           c->current->sm_clock_mhz);
}

static void add_small_noise(comparison *c) {
  if (c->small_noise.difference_us == 0) return;
  rl_regression_cause *cause = append(c, &c->small_noise);
  cause->class_ = RL_REGRESSION_NOISE;
  set_text(cause, "%zu small differences of kernels with equal machine code, launch and inputs: %s together.",
           c->small_noise_count, describe_us(cause->difference_us).text);
}

/* Adds the difference that no kernel explains: gaps between launches, overlap of kernels, and differences between profile and
 * blocks. */
static void add_unattributed_time(comparison *c) {
  rl_regression_cause cause = {.difference_us = c->difference_us};
  for (size_t i = 0; i < c->causes.count; i++) cause.difference_us -= c->causes.items[i].difference_us;
  if (fabs(cause.difference_us) <= 1e-9 * (fabs(c->difference_us) + c->baseline_us)) return;
  bool is_small = fabs(cause.difference_us) <= NOISE_RATIO * c->baseline_us;
  cause.class_ = c->build_differs && !is_small ? RL_REGRESSION_HARNESS : RL_REGRESSION_NOISE;
  if (cause.class_ == RL_REGRESSION_HARNESS) compare_builds(c, &cause);
  set_text(&cause,
           "%s can't be attributed to a kernel: it is time between kernels or of kernels that overlap, or the profile differs "
           "from the "
           "blocks.",
           describe_us(cause.difference_us).text);
  append(c, &cause);
}

/* Inserts evidence before all other evidence. */
static void add_first_evidence(rl_regression_cause *cause, const char *property, const char *baseline, const char *current) {
  rl_regression_cause first = {0};
  add_evidence(&first, property, baseline, current);
  size_t kept = cause->evidence_count < RL_REGRESSION_MAX_EVIDENCE ? cause->evidence_count : RL_REGRESSION_MAX_EVIDENCE - 1;
  memmove(&cause->evidence[1], &cause->evidence[0], kept * sizeof *cause->evidence);
  cause->evidence[0] = first.evidence[0];
  cause->evidence_count = kept + 1;
}

/* Changes the class of all causes except small noise to device, if other processes used the device while the current run was
 * timed and differ from the other processes of the baseline. Such processes slow down every kernel, including changed ones. */
static void blame_other_processes(comparison *c) {
  const char *before = c->baseline->other_processes, *now = c->current->other_processes;
  if (!is_known(now) || same_text(before, now)) return;
  for (size_t i = 0; i < c->causes.count; i++) {
    rl_regression_cause *cause = &c->causes.items[i];
    if (cause->class_ == RL_REGRESSION_NOISE && fabs(cause->difference_us) <= NOISE_RATIO * c->baseline_us) continue;
    cause->class_ = RL_REGRESSION_DEVICE;
    add_first_evidence(cause, "other_processes", is_known(before) ? before : "none", now);
    add_text(cause, " Other processes used the device while the blocks were timed, so nothing else can be blamed.");
  }
}

/* Sorts noise after all other classes. */
static int largest_first(const void *a, const void *b) {
  const rl_regression_cause *first = a, *second = b;
  bool noise = first->class_ == RL_REGRESSION_NOISE, other_noise = second->class_ == RL_REGRESSION_NOISE;
  double x = fabs(first->difference_us), y = fabs(second->difference_us);
  return noise != other_noise ? noise - other_noise : (x < y) - (x > y);
}

RL_DEFINE_CLEANUP(free_kernels, rl_regression_kernel *, free, NULL)

/* Copies a run and its kernels, which the caller frees. Computes the total time if it is unknown. If the total is the time of the
 * kernels, scales the kernels to it: a trace with a warm cache and samples with a cold cache have different sums, but similar
 * shares. */
static int copy_run(const rl_regression_run *run, rl_regression_run *copy, rl_regression_kernel **kernels, rl_error *err) {
  double sum = 0;
  *copy = *run;
  copy->kernels = *kernels = malloc((run->kernel_count + 1) * sizeof **kernels);
  if (*kernels == NULL) {
    errno = ENOMEM;
    return rl_fail_errno(err, "causes of a difference");
  }
  for (size_t i = 0; i < run->kernel_count; i++) {
    if (!isfinite(run->kernels[i].total_us))
      return rl_fail(err, RL_INPUT, 0, "the time of %s is unknown", name_of(&run->kernels[i]));
    (*kernels)[i] = run->kernels[i];
    sum += run->kernels[i].total_us;
  }
  if (!isfinite(run->total_us)) copy->total_us = sum;
  for (size_t i = 0; i < run->kernel_count && run->is_kernel_time && sum > 0; i++) (*kernels)[i].total_us *= copy->total_us / sum;
  return 0;
}

/* Returns the number of kernels with the launch and name of `kernel`, and the sum of their launches in *launches. */
static size_t count_executions(const rl_regression_run *run, const rl_regression_kernel *kernel, int64_t *launches) {
  size_t count = 0;
  *launches = 0;
  for (size_t i = 0; i < run->kernel_count; i++)
    if (same_launch_and_name(&run->kernels[i], kernel)) count++, *launches += run->kernels[i].launches;
  return count;
}

/* Workers of older builds have one row for all executions of a kernel in a launch, also those whose grids differ. Merges rows of
 * `run` that are one row with as many launches in `other`: it may be their sum, or one launch configuration. The caller has
 * checked that the builds differ, because workers of one build count alike. Rows of one kernel have the same machine code. */
static void merge_executions(const rl_regression_run *other, rl_regression_run *run, rl_regression_kernel *kernels) {
  for (const rl_regression_kernel *whole = other->kernels; whole < other->kernels + other->kernel_count; whole++) {
    int64_t whole_launches, launches;
    if (count_executions(other, whole, &whole_launches) != 1 || count_executions(run, whole, &launches) < 2 ||
        launches != whole_launches)
      continue;
    rl_regression_kernel *merged = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < run->kernel_count; i++) {
      if (merged != NULL && same_launch_and_name(&kernels[i], whole)) {
        merged->total_us += kernels[i].total_us;
        continue;
      }
      kernels[kept] = kernels[i];
      if (merged == NULL && same_launch_and_name(&kernels[i], whole)) merged = &kernels[kept];
      kept++;
    }
    run->kernel_count = kept;
    merged->launches = launches;
    merged->is_merged = true;
  }
}

int rl_regression_causes_find(const rl_regression_run *baseline, const rl_regression_run *current, rl_regression_causes *causes,
                              rl_error *err) {
  RL_CLEANUP(free_kernels) rl_regression_kernel *baseline_kernels = NULL;
  RL_CLEANUP(free_kernels) rl_regression_kernel *current_kernels = NULL;
  rl_regression_run before, now;
  comparison c = {.baseline = &before, .current = &now};
  if (copy_run(baseline, &before, &baseline_kernels, err) < 0 || copy_run(current, &now, &current_kernels, err) < 0) return -1;
  if (!same_text(before.worker_commit, now.worker_commit)) {
    merge_executions(&before, &now, current_kernels);
    merge_executions(&now, &before, baseline_kernels);
  }
  c.baseline_us = before.total_us, c.difference_us = now.total_us - before.total_us;
  c.causes.items = calloc(baseline->kernel_count + current->kernel_count + 3, sizeof *c.causes.items);
  if (c.causes.items == NULL) {
    errno = ENOMEM;
    return rl_fail_errno(err, "causes of a difference");
  }
  compare_runs(&c);
  if (add_kernels(&c, err) < 0) return free(c.causes.items), -1;
  add_clock_cause(&c);
  add_small_noise(&c);
  add_unattributed_time(&c);
  blame_other_processes(&c);
  qsort(c.causes.items, c.causes.count, sizeof *c.causes.items, largest_first);
  for (size_t i = 0; i < c.causes.count; i++)
    c.causes.items[i].share_ratio = c.difference_us != 0 ? c.causes.items[i].difference_us / c.difference_us : NAN;
  c.causes.difference_us = c.difference_us;
  *causes = c.causes;
  return 0;
}
