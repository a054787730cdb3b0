/* Selects the longest idle intervals that belong to a class, or to the time that a rule is about. */
#include "api/timeline_evidence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/thresholds.h"
#include "base/json_members.h"

enum { CLASS_INTERVALS = 8, FINDING_INTERVALS = 3, FINDING_NAMES = 8, MAX_INTERVALS = CLASS_INTERVALS };

/* --- intervals --------------------------------------------------------------------------------------------------------- */

typedef struct interval_filter {
  uint32_t classes;               /* bit c: intervals of the class c */
  bool only_before_short_kernels; /* the interval ends with a kernel of less than RL_SHORT_KERNEL_NS */
  size_t most;                    /* at most this many intervals, the longest first */
} interval_filter;

#define CLASS(name) (1u << RL_TIME_##name)

static int64_t duration_ns(const rl_idle_interval *interval) { return interval->end_ns - interval->start_ns; }

static bool ends_with_short_kernel(const rl_idle_interval *interval) {
  const rl_trace_event *after = interval->after;
  return after != NULL && after->kind == RL_ACTIVITY_KERNEL && after->end_ns - after->start_ns < RL_SHORT_KERNEL_NS;
}

static void add_name(cJSON *object, const char *member, const rl_trace_events *events, const rl_trace_event *event) {
  rl_json_add_text(object, member, event != NULL ? events->names[event->name] : NULL);
}

static cJSON *interval_json(const rl_trace_events *events, const rl_idle_interval *interval) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddNumberToObject(object, "start_ns", (double)interval->start_ns);
  cJSON_AddNumberToObject(object, "end_ns", (double)interval->end_ns);
  add_name(object, "before", events, interval->before);
  add_name(object, "after", events, interval->after);
  add_name(object, "call", events, interval->call);
  return object;
}

static cJSON *intervals_json(const rl_run_timeline *timeline, const interval_filter *filter) {
  const rl_idle_interval *longest[MAX_INTERVALS + 1];
  size_t count = 0;
  for (size_t i = 0; i < timeline->classes.idle_count; i++) {
    const rl_idle_interval *interval = &timeline->classes.idle[i];
    if ((filter->classes & 1u << interval->time_class) == 0) continue;
    if (filter->only_before_short_kernels && !ends_with_short_kernel(interval)) continue;
    size_t position = count;
    for (; position > 0 && duration_ns(longest[position - 1]) < duration_ns(interval); position--)
      longest[position] = longest[position - 1];
    longest[position] = interval;
    if (count < filter->most) count++;
  }
  cJSON *array = cJSON_CreateArray();
  for (size_t i = 0; i < count; i++) cJSON_AddItemToArray(array, interval_json(&timeline->trace.events, longest[i]));
  return array;
}

cJSON *rl_timeline_longest_intervals(const rl_run_timeline *timeline, rl_time_class time_class) {
  const interval_filter filter = {.classes = 1u << time_class, .most = CLASS_INTERVALS};
  return intervals_json(timeline, &filter);
}

/* --- names ------------------------------------------------------------------------------------------------------------- */

static void add_text(cJSON *names, const char *text) {
  if (cJSON_GetArraySize(names) < FINDING_NAMES) cJSON_AddItemToArray(names, cJSON_CreateString(text));
}

static const char *memory_name(rl_memory_kind kind) {
  return rl_memory_kind_names[kind] != NULL ? rl_memory_kind_names[kind] : "unknown memory";
}

static bool is_pageable(const rl_copy_group *group) {
  return group->source == RL_MEMORY_PAGEABLE || group->destination == RL_MEMORY_PAGEABLE;
}
static bool is_of_host(const rl_copy_group *group) { return rl_trace_copy_named(group->name) == RL_TRACE_HOST_COPY; }
static bool is_of_devices(const rl_copy_group *group) { return rl_trace_copy_named(group->name) == RL_TRACE_DEVICE_COPY; }

static void add_copies(const rl_run_timeline *timeline, bool (*filter)(const rl_copy_group *), cJSON *names) {
  for (size_t i = 0; i < timeline->copy_count; i++) {
    const rl_copy_group *group = &timeline->copies[i];
    char text[128];
    if (!filter(group)) continue;
    snprintf(text, sizeof text, "%s, %s to %s", group->name, memory_name(group->source), memory_name(group->destination));
    add_text(names, text);
  }
}

static void add_host_copies(const rl_run_timeline *timeline, cJSON *names) { add_copies(timeline, is_of_host, names); }
static void add_device_copies(const rl_run_timeline *timeline, cJSON *names) { add_copies(timeline, is_of_devices, names); }
static void add_pageable_copies(const rl_run_timeline *timeline, cJSON *names) { add_copies(timeline, is_pageable, names); }

static void add_path_names(const rl_run_timeline *timeline, cJSON *names) {
  for (size_t i = 0; i < timeline->path.name_count && i < FINDING_NAMES; i++)
    add_text(names, timeline->trace.events.names[timeline->path.names[i].name]);
}

static void add_independent_launches(const rl_run_timeline *timeline, cJSON *names) {
  const rl_independent_launches *found = &timeline->launches.found;
  const rl_launch_group *group = rl_independent_launches_largest(found);
  for (size_t i = 0; group != NULL && i < group->count; i++) add_text(names, found->launches[group->first + i].name);
}

/* --- findings ---------------------------------------------------------------------------------------------------------- */

typedef struct rule_evidence {
  const char *rule;
  interval_filter filter;
  void (*add_names)(const rl_run_timeline *timeline, cJSON *names); /* NULL: the finding has no names */
} rule_evidence;

#define HOST_CLASSES (CLASS(IDLE_HOST_WORK) | CLASS(IDLE_LAUNCH_LATENCY))

static const rule_evidence rules[] = {
    {.rule = "timeline_host_work", .filter = {CLASS(IDLE_HOST_WORK), false, FINDING_INTERVALS}},
    {.rule = "timeline_launch_latency", .filter = {CLASS(IDLE_LAUNCH_LATENCY), false, FINDING_INTERVALS}},
    {.rule = "timeline_first_launch", .filter = {CLASS(IDLE_FIRST_LAUNCH), false, FINDING_INTERVALS}},
    {.rule = "timeline_synchronization", .filter = {CLASS(IDLE_SYNCHRONIZATION), false, FINDING_INTERVALS}},
    {.rule = "timeline_blocking_copies", .filter = {CLASS(IDLE_COPY), false, FINDING_INTERVALS}},
    {.rule = "timeline_graph_gaps", .filter = {CLASS(IDLE_GRAPH), false, FINDING_INTERVALS}},
    {.rule = "timeline_small_kernels", .filter = {CLASS(IDLE_DEVICE_LATENCY), true, FINDING_INTERVALS}},
    {.rule = "timeline_small_launches", .filter = {HOST_CLASSES, true, FINDING_INTERVALS}},
    {.rule = "timeline_empty_queue",
     .filter = {HOST_CLASSES | CLASS(IDLE_SYNCHRONIZATION) | CLASS(IDLE_COPY), false, FINDING_INTERVALS}},
    {.rule = "timeline_profiler", .filter = {CLASS(IDLE_PROFILER), false, FINDING_INTERVALS}},
    {.rule = "timeline_unknown", .filter = {CLASS(IDLE_UNKNOWN), false, FINDING_INTERVALS}},
    {.rule = "timeline_copies_alone", .add_names = add_host_copies},
    {.rule = "timeline_device_copies_alone", .add_names = add_device_copies},
    {.rule = "timeline_pageable_copies", .add_names = add_pageable_copies},
    {.rule = "timeline_pinned_rate", .add_names = add_pageable_copies},
    {.rule = "timeline_critical_path", .add_names = add_path_names},
    {.rule = "timeline_independent_launches", .add_names = add_independent_launches}};

static void add_evidence(const rl_run_timeline *timeline, cJSON *finding) {
  const char *rule = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(finding, "rule"));
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    if (strcmp(rules[i].rule, rule) != 0) continue;
    cJSON_ReplaceItemInObjectCaseSensitive(finding, "intervals", intervals_json(timeline, &rules[i].filter));
    if (rules[i].add_names != NULL) rules[i].add_names(timeline, cJSON_GetObjectItemCaseSensitive(finding, "names"));
  }
}

cJSON *rl_timeline_findings_json(const rl_run_timeline *timeline) {
  rl_findings findings = rl_run_timeline_findings(timeline);
  cJSON *array = rl_report_findings_json(&findings, NULL), *finding;
  free(findings.items);
  cJSON_ArrayForEach (finding, array) add_evidence(timeline, finding);
  return array;
}
