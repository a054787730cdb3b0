/* Private to daemon/request: the request fields that all kinds of jobs share, helpers that fill in an rl_job_spec, and the
 * functions of each kind for the table rl_job_kinds. */
#ifndef RL_REQUEST_SPEC_INTERNAL_H
#define RL_REQUEST_SPEC_INTERNAL_H

#include "model/catalogue.h"
#include "request/job_kind.h"
#include "workload.h"

/* Values of the fields that all kinds share. Only kinds whose runs can be profiled have the fields set and profile_options;
 * other kinds keep the defaults. */
typedef struct rl_spec_common {
  char device[16];
  uint32_t passes; /* bit i: rl_pass i */
  int64_t deadline_s;
  bool fresh_worker;
  char worker_build[65];
  char name[81], tags[512];           /* tags: one a line */
  int set;                            /* index into rl_profile_set_names */
  rl_profile_options profile_options; /* collected in addition to the set */
} rl_spec_common;
#define RL_SPEC_COMMON_DEFAULTS                                                                     \
  {                                                                                                 \
    .passes = 1u << RL_PASS_TIMING, .profile_options = {.matching_index = RL_ALL_MATCHING_KERNELS } \
  }

/* Defines the field NAME for member PATH of rl_spec_common. STRUCT: a kind's request, with a member `common`. */
#define RL_SPEC_FIELD(STRUCT, NAME, PATH, TYPE, ...)                                                                   \
  {                                                                                                                    \
    .name = NAME, .type = (TYPE), .offset = offsetof(STRUCT, common.PATH), .size = sizeof(((STRUCT *)0)->common.PATH), \
    __VA_ARGS__                                                                                                        \
  }
/* PATCH /jobs/{id} changes these. */
#define RL_SPEC_LABEL_FIELDS(STRUCT)                                                                         \
  RL_SPEC_FIELD(STRUCT, "name", name, RL_FIELD_TEXT, .summary = "shown in the list of jobs; default: none"), \
      RL_SPEC_FIELD(STRUCT, "tags", tags, RL_FIELD_NAMES, .summary = "shown in the list of jobs; GET /jobs finds them")
#define RL_SPEC_COMMON_FIELDS(STRUCT)                                                                                  \
  RL_SPEC_FIELD(STRUCT, "device", device, RL_FIELD_TEXT,                                                               \
                .summary = "an id from /devices; default: the first usable GPU, else the CPU"),                        \
      RL_SPEC_FIELD(STRUCT, "passes", passes, RL_FIELD_CHOICES, .names = rl_pass_names,                                \
                    .summary = "passes under which each run is measured; default timing"),                             \
      RL_SPEC_FIELD(STRUCT, "deadline_s", deadline_s, RL_FIELD_INT, .minimum = 0, .maximum = 604800,                   \
                    .summary = "seconds from the job's start to its end; default 0: the daemon's job_deadline_s"),     \
      RL_SPEC_FIELD(STRUCT, "fresh_worker", fresh_worker, RL_FIELD_BOOL,                                               \
                    .summary = "run the passes in worker processes that no earlier job used; default false"),          \
      RL_SPEC_FIELD(STRUCT, "worker_build", worker_build, RL_FIELD_TEXT,                                               \
                    .summary = "a build of the workers that the setting builds names; default: the daemon's workers"), \
      RL_SPEC_LABEL_FIELDS(STRUCT)
/* For kinds whose runs can be profiled. */
#define RL_SPEC_PROFILE_FIELDS(STRUCT)                                                                         \
  RL_SPEC_FIELD(STRUCT, "set", set, RL_FIELD_CHOICE, .names = rl_profile_set_names,                            \
                .summary =                                                                                     \
                    "sections of the report to collect, as in Nsight Compute; adds the counters pass; "        \
                    "default auto: basic if the counters pass is requested without sections and metrics"),     \
      RL_SPEC_FIELD(STRUCT, "sections", profile_options.sections, RL_FIELD_CHOICES, .names = rl_section_names, \
                    .may_be_empty = true, .summary = "further sections; adds the counters pass"),              \
      RL_SPEC_FIELD(STRUCT, "metrics", profile_options.metrics, RL_FIELD_NAMES,                                \
                    .summary = "further metrics by their raw names; adds the counters pass")
/* For kinds whose runs have steps of several kernels. */
#define RL_SPEC_SELECTION_FIELDS(STRUCT)                                                                               \
  RL_SPEC_FIELD(STRUCT, "kernels", profile_options.kernel_pattern, RL_FIELD_TEXT,                                      \
                .summary =                                                                                             \
                    "kernels of the step that the counters pass measures: a pattern with *, ? and [] for the names "   \
                    "of kernels and launches; adds the counters pass; default: all"),                                  \
      RL_SPEC_FIELD(STRUCT, "launch", profile_options.matching_index, RL_FIELD_INT, .minimum = -1, .maximum = 1000000, \
                    .summary =                                                                                         \
                        "index of one of these kernels in the order of the step, from 0; adds the counters "           \
                        "pass; default -1: all")

/* Returns RL_DEVICE_CPU for "cpu", else RL_DEVICE_CUDA. */
rl_device_kind rl_spec_device_kind(const char *device);

/* Sets the spec's device, passes, deadline and profile. If the request has a set, sections, metrics, kernels or a launch, adds
 * the counters pass to the spec and to *common. A counters pass without set, sections and metrics collects set "basic" and the
 * default metrics. */
int rl_spec_apply_common(rl_spec_common *common, rl_job_spec *spec, rl_error *err);
/* Writes the request, with all defaults filled in, to spec->request as JSON. */
int rl_spec_write_request(const rl_field *fields, const void *request, rl_job_spec *spec, rl_error *err);
/* Copies the malloc'ed text into out[size] and frees it. Returns -1 if text is NULL (its allocation failed) or too long. */
int rl_spec_move_text(char *text, char *out, size_t size, rl_error *err);
/* Appends a run with these parameters to the spec. variant: what distinguishes the run from the job's other runs: the precision
 * of a training run, the variant of a kernel or of posted code, else the workload's name. */
int rl_spec_add_run(const rl_workload *workload, const char *variant, const void *params, rl_job_spec *spec, rl_error *err);

/* The functions of each kind: make_fields, expand and restrict_to_device of rl_job_kind (job_kind.h). The fields of "train" and
 * "layer" derive from the fields of their workloads, so they are made in `storage`; the other kinds have constant tables. */
const rl_field *rl_spec_workload_make_fields(const char *kind, rl_request_fields *storage);
int rl_spec_workload_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
int rl_spec_workload_restrict_to_device(rl_job_spec *spec, const char *unsupported_engines, rl_error *err);

extern const rl_field rl_spec_kernel_fields[], rl_spec_sequence_fields[], rl_spec_ceilings_fields[], rl_spec_source_fields[],
    rl_spec_import_fields[];
int rl_spec_kernel_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
int rl_spec_kernel_restrict_to_device(rl_job_spec *spec, const char *unsupported_engines, rl_error *err);
/* A sequence is a request of kind "kernel" whose field "kernels" is an array of launches (spec_sequence.c), in place of the field
 * "kernel". It expands to one run. */
int rl_spec_sequence_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
/* Returns -1 with RL_INPUT at or below /kernels/N if devices of this kind do not support a kernel. */
int rl_spec_sequence_check_device(const rl_run_spec *run, rl_device_kind kind, rl_error *err);
int rl_spec_ceilings_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
int rl_spec_source_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
/* An import needs the trace, which POST /jobs can't take. Returns -1 with RL_INPUT at /kind. */
int rl_spec_refuse_import(const cJSON *object, rl_job_spec *spec, rl_error *err);

#endif
