/* The options of the counters pass: which sections of the catalogue and which single metrics it collects, and for which kernels
 * of the step. The database and the frames to workers contain them as JSON. */
#ifndef RL_MODEL_PROFILE_H
#define RL_MODEL_PROFILE_H

#include <stdint.h>

#include "base/fields.h"

enum { RL_PROFILE_METRICS_SIZE = 2048, RL_KERNEL_PATTERN_SIZE = 128, RL_PROFILE_SIZE = 4096 };
enum { RL_ALL_MATCHING_KERNELS = -1 }; /* value of rl_profile_options.matching_index: no single kernel is chosen */

typedef struct rl_profile_options {
  uint32_t sections;                           /* bit i: rl_sections[i] */
  char metrics[RL_PROFILE_METRICS_SIZE];       /* names of additional raw metrics, one a line */
  char kernel_pattern[RL_KERNEL_PATTERN_SIZE]; /* glob that a kernel's or launch's name must match; "": all */
  int64_t matching_index;                      /* index among the matching kernels, from 0, or RL_ALL_MATCHING_KERNELS */
} rl_profile_options;
extern const rl_field rl_profile_options_fields[];

/* Indices into rl_profile_set_names, which a request can name to select several sections. "auto" stands for "basic" in a request
 * that selects neither sections nor metrics; in other requests it adds nothing. */
enum { RL_PROFILE_SET_AUTO };
extern const char *const rl_profile_set_names[]; /* "auto" "basic" "detailed" "full", NULL */

/* Returns the requested options with the sections of the set added. If they then select neither sections nor metrics, returns the
 * default options. set: index into rl_profile_set_names. */
rl_profile_options rl_profile_options_resolve(int set, const rl_profile_options *requested);

#endif
