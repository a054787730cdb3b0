/* The kinds of jobs that have a file of their own, for the table in spec.c, and what they share with it. */
#ifndef RL_JOBS_SPEC_KINDS_H
#define RL_JOBS_SPEC_KINDS_H

#include "analyze/catalogue.h"
#include "jobs/spec.h"

/* Of every kind's request, whose struct has char device[16], uint32_t passes and int64_t deadline_s. */
#define RL_SPEC_COMMON_FIELDS(STRUCT)                                                                                 \
  RL_FIELD(STRUCT, device, RL_FIELD_TEXT,                                                                             \
           .summary = "an id from /devices; default: the first usable GPU, else the CPU"),                            \
      RL_FIELD(STRUCT, passes, RL_FIELD_CHOICES, .names = rl_pass_names,                                              \
               .summary = "ways of looking at each run; default timing"),                                             \
      RL_FIELD(STRUCT, deadline_s, RL_FIELD_INT, .minimum = 0, .maximum = 604800,                                     \
               .summary = "of the whole job, from its start; default 0: the daemon's job_deadline_s")

/* Of a kind whose runs can be profiled: its struct has int set and rl_profile profile. */
#define RL_SPEC_PROFILE_FIELD(STRUCT, MEMBER, TYPE, ...)                                                              \
  { .name = #MEMBER, .type = (TYPE), .offset = offsetof(STRUCT, profile) + offsetof(rl_profile, MEMBER),              \
    .size = sizeof(((rl_profile *)0)->MEMBER), __VA_ARGS__ }
#define RL_SPEC_PROFILE_FIELDS(STRUCT)                                                                                \
  RL_FIELD(STRUCT, set, RL_FIELD_CHOICE, .names = rl_set_names,                                                       \
           .summary = "sections of the report to collect, as of Nsight Compute; adds the counters pass; default auto: basic "  \
                      "where the counters pass is asked for, and neither sections nor metrics are"),                  \
      RL_SPEC_PROFILE_FIELD(STRUCT, sections, RL_FIELD_CHOICES, .names = rl_section_names, .may_be_empty = true,      \
                            .summary = "further sections; adds the counters pass"),                                   \
      RL_SPEC_PROFILE_FIELD(STRUCT, metrics, RL_FIELD_NAMES,                                                          \
                            .summary = "further metrics by their raw names; adds the counters pass")
/* Of a kind whose step has several kernels. */
#define RL_SPEC_SELECTION_FIELDS(STRUCT)                                                                              \
  RL_SPEC_PROFILE_FIELD(STRUCT, kernels, RL_FIELD_TEXT,                                                               \
                        .summary = "which kernels of the step the counters pass looks at: a pattern of *, ? and [] over names "  \
                                   "of kernels and of launches; adds the counters pass; default: every one"),         \
      RL_SPEC_PROFILE_FIELD(STRUCT, launch, RL_FIELD_INT, .minimum = -1, .maximum = 1000000,                          \
                            .summary = "which of these in the order of the step, from 0; adds the counters pass; default -1: all")
#define RL_SPEC_NO_SELECTION {.launch = -1}

/* Fill in the spec's profile: what was asked for adds the counters pass to *passes; with that pass and nothing asked for it is the usual one. */
int rl_spec_take_profile(int set, const rl_profile *asked, uint32_t *passes, rl_job_spec *spec, rl_error *err);

/* Put malloc'ed text into a buffer of the spec and free it; NULL says that memory was out. */
int rl_spec_keep_text(char *text, char *out, size_t size, rl_error *err);

extern const rl_field rl_spec_kernel_fields[], rl_spec_sequence_fields[], rl_spec_ceilings_fields[];
int rl_spec_kernel_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
int rl_spec_sequence_expand(const cJSON *object, rl_job_spec *spec, rl_error *err); /* of a kernel job with "kernels" */
int rl_spec_ceilings_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);

extern const rl_field rl_spec_source_fields[];
int rl_spec_source_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);

#endif
