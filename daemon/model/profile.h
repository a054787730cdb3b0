/* The options of the counters pass: the sections of the catalogue and the single metrics to collect, and the kernels of a step.
 * The store and the frames to workers hold them as JSON. */
#ifndef RL_MODEL_PROFILE_H
#define RL_MODEL_PROFILE_H

#include <stdint.h>

#include "base/fields.h"

enum { RL_PROFILE_METRICS_SIZE = 2048, RL_KERNEL_PATTERN_SIZE = 128, RL_PROFILE_SIZE = 4096 };
enum { RL_ALL_MATCHING_KERNELS = -1 }; /* rl_profile_options.matching_index */

typedef struct rl_profile_options {
  uint32_t sections;                           /* bit i: rl_sections[i] */
  char metrics[RL_PROFILE_METRICS_SIZE];       /* names of additional raw metrics, one a line */
  char kernel_pattern[RL_KERNEL_PATTERN_SIZE]; /* glob that a kernel's or launch's name must match; "": all */
  int64_t matching_index;                      /* index among the matching kernels, from 0, or RL_ALL_MATCHING_KERNELS */
} rl_profile_options;
extern const rl_field rl_profile_options_fields[];

/* A request can name a set of sections. "auto" is "basic" if the request names neither sections nor metrics, else nothing. */
enum { RL_PROFILE_SET_AUTO };
extern const char *const rl_profile_set_names[]; /* "auto" "basic" "detailed" "full", NULL */

/* Returns the requested options with the sections of the set added; the default options if that selects nothing.
 * set: index into rl_profile_set_names. */
rl_profile_options rl_profile_options_resolve(int set, const rl_profile_options *requested);

#endif
