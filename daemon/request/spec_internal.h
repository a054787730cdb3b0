/* Private to daemon/request: the request fields that all kinds of jobs share, helpers that fill in an rl_job_spec, and the
 * functions of each kind for the table rl_job_kinds. */
#ifndef RL_REQUEST_SPEC_INTERNAL_H
#define RL_REQUEST_SPEC_INTERNAL_H

#include "model/catalogue.h"
#include "request/job_kind.h"
#include "workload.h"

/* Values of the fields that all kinds share. `set` and profile_options belong to kinds whose runs can be profiled; for other
 * kinds they keep their defaults. */
typedef struct rl_spec_common {
  char device[16];
  uint32_t passes; /* bit i: rl_pass i */
  int64_t deadline_s;
  bool fresh_worker;
  char worker_build[RL_WORKER_BUILD_SIZE];
  char name[81], tags[512];           /* tags: one per line */
  int set;                            /* index into rl_profile_set_names */
  rl_profile_options profile_options; /* sections and metrics in addition to the set, and the selected kernels */
} rl_spec_common;
#define RL_SPEC_COMMON_DEFAULTS                                                                     \
  {                                                                                                 \
    .passes = 1u << RL_PASS_TIMING, .profile_options = {.matching_index = RL_ALL_MATCHING_KERNELS } \
  }

/* Defines the field NAME for the member PATH of rl_spec_common. STRUCT: the struct of a kind's request, which has a member
 * `common`. */
#define RL_SPEC_FIELD(STRUCT, NAME, PATH, TYPE, ...)                                                                   \
  {                                                                                                                    \
    .name = NAME, .type = (TYPE), .offset = offsetof(STRUCT, common.PATH), .size = sizeof(((STRUCT *)0)->common.PATH), \
    __VA_ARGS__                                                                                                        \
  }
/* Applies rl_job_check_name to the member "name" of the request. */
int rl_spec_check_name(const cJSON *request, rl_error *err);
/* The fields that PATCH /jobs/{id} changes. */
#define RL_SPEC_LABEL_FIELDS(STRUCT)                                                                                   \
  RL_SPEC_FIELD(STRUCT, "name", name, RL_FIELD_TEXT, .summary = "name of the job in the list of jobs; default: none"), \
      RL_SPEC_FIELD(STRUCT, "tags", tags, RL_FIELD_NAMES,                                                              \
                    .summary = "tags of the job in the list of jobs; GET /jobs?search= finds them")
#define RL_SPEC_COMMON_FIELDS(STRUCT)                                                                                        \
  RL_SPEC_FIELD(STRUCT, "device", device, RL_FIELD_TEXT,                                                                     \
                .summary = "an id from /devices; default: the first usable GPU, else the CPU"),                              \
      RL_SPEC_FIELD(STRUCT, "passes", passes, RL_FIELD_CHOICES, .names = rl_pass_names,                                      \
                    .summary = "passes under which each run is measured; default timing"),                                   \
      RL_SPEC_FIELD(STRUCT, "deadline_s", deadline_s, RL_FIELD_INT, .minimum = 0, .maximum = 604800,                         \
                    .summary = "seconds from the job's start to its end; default 0: the daemon's job_deadline_s"),           \
      RL_SPEC_FIELD(STRUCT, "fresh_worker", fresh_worker, RL_FIELD_BOOL,                                                     \
                    .summary = "run the passes in worker processes that no earlier job used; default false"),                \
      RL_SPEC_FIELD(STRUCT, "worker_build", worker_build, RL_FIELD_TEXT,                                                     \
                    .summary = "name of a build of the workers in the setting `builds`; default: the daemon's own workers"), \
      RL_SPEC_LABEL_FIELDS(STRUCT)
/* The fields of kinds whose runs can be profiled. */
#define RL_SPEC_PROFILE_FIELDS(STRUCT)                                                                                   \
  RL_SPEC_FIELD(STRUCT, "set", set, RL_FIELD_CHOICE, .names = rl_profile_set_names,                                      \
                .summary =                                                                                               \
                    "sections of the report to collect, as in Nsight Compute; adds the counters pass; "                  \
                    "default auto: basic if the counters pass is requested and there are neither sections nor metrics, " \
                    "else no set"),                                                                                      \
      RL_SPEC_FIELD(STRUCT, "sections", profile_options.sections, RL_FIELD_CHOICES, .names = rl_section_names,           \
                    .may_be_empty = true, .summary = "further sections; adds the counters pass"),                        \
      RL_SPEC_FIELD(STRUCT, "metrics", profile_options.metrics, RL_FIELD_NAMES,                                          \
                    .summary = "further metrics by their raw names; adds the counters pass"),                            \
      RL_SPEC_FIELD(STRUCT, "cache", profile_options.cache, RL_FIELD_CHOICE, .names = rl_l2_state_names,                 \
                    .summary =                                                                                           \
                        "L2 before each kernel of the counters pass: full of clean lines of other memory, or "           \
                        "empty, as in Nsight Compute; empty adds the counters pass; default full")
/* The fields of kinds whose steps consist of several kernels: they select the kernels to profile. */
#define RL_SPEC_SELECTION_FIELDS(STRUCT)                                                                                \
  RL_SPEC_FIELD(STRUCT, "kernels", profile_options.kernel_pattern, RL_FIELD_TEXT,                                       \
                .summary =                                                                                              \
                    "kernels of the step that the counters pass measures: a pattern with *, ? and [] for the names "    \
                    "of kernels and launches; adds the counters pass; default: all"),                                   \
      RL_SPEC_FIELD(STRUCT, "launch", profile_options.matching_index, RL_FIELD_INT, .minimum = -1, .maximum = 1000000,  \
                    .summary =                                                                                          \
                        "index, from 0 in the order of the step, of one of the kernels that match `kernels`; adds the " \
                        "counters pass; default -1: all")

/* Returns RL_DEVICE_CPU for "cpu", else RL_DEVICE_CUDA. */
rl_device_kind rl_spec_device_kind(const char *device);

/* Sets the spec's device, passes, time limit, worker build and profile. If the request has a set, sections, metrics, kernels
 * or a launch, adds the counters pass to the spec and to *common. If the counters pass is requested, the set is "auto", and
 * there are neither sections nor metrics, the pass collects the sections of the set "basic" and the default metrics
 * (rl_profile_options_resolve). */
int rl_spec_apply_common(rl_spec_common *common, rl_job_spec *spec, rl_error *err);
/* Writes the request with all defaults filled in to spec->request as JSON. */
int rl_spec_write_request(const rl_field *fields, const void *request, rl_job_spec *spec, rl_error *err);
/* Copies the malloc'ed text to `out`, which has `size` bytes, and frees the text. Fails if the text is too long, or NULL (memory
 * is exhausted). */
int rl_spec_move_text(char *text, char *out, size_t size, rl_error *err);
/* Appends a run with these parameters to the spec. variant: distinguishes the run from the job's other runs: the precision of a
 * training run, the variant of a kernel or of posted code, else the workload's name. */
int rl_spec_add_run(const rl_workload *workload, const char *variant, const void *params, rl_job_spec *spec, rl_error *err);

/* The functions of each kind: make_fields, expand and restrict_to_device of rl_job_kind (job_kind.h). rl_spec_workload_*
 * belong to "train" and "layer", whose field tables are built from the fields of their workloads; the other kinds have
 * constant tables. object: the request. unsupported_engines: as in rl_job_spec_restrict_to_device (spec.h). */
const rl_field *rl_spec_workload_make_fields(const char *kind, rl_request_fields *storage);
int rl_spec_workload_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
int rl_spec_workload_restrict_to_device(rl_job_spec *spec, const char *unsupported_engines, rl_error *err);

extern const rl_field rl_spec_kernel_fields[], rl_spec_sequence_fields[], rl_spec_ceilings_fields[], rl_spec_source_fields[],
    rl_spec_import_fields[];
int rl_spec_kernel_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
int rl_spec_kernel_restrict_to_device(rl_job_spec *spec, const char *unsupported_engines, rl_error *err);
/* A sequence is a request of kind "kernel" that has an array of launches, "kernels", instead of the field "kernel"
 * (spec_sequence.c). It expands to one run. */
int rl_spec_sequence_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
/* Fails with RL_INPUT at or below /kernels/N if devices of this kind do not support a kernel of the sequence. */
int rl_spec_sequence_check_device(const rl_run_spec *run, rl_device_kind kind, rl_error *err);
int rl_spec_ceilings_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
int rl_spec_source_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
/* `expand` of the kind "import", for POST /jobs: always fails with RL_INPUT at /kind, because an import needs the trace file as
 * the request's body. */
int rl_spec_refuse_import(const cJSON *object, rl_job_spec *spec, rl_error *err);

#endif
