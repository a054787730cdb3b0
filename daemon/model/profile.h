/* The options of the counters pass: which sections of the catalogue and which single metrics it collects, and for which kernels
 * of a step. The database and the frames to workers contain the options as JSON. */
#ifndef RL_MODEL_PROFILE_H
#define RL_MODEL_PROFILE_H

#include <stdint.h>

#include "base/fields.h"

enum { RL_PROFILE_METRICS_SIZE = 2048, RL_KERNEL_PATTERN_SIZE = 128, RL_PROFILE_SIZE = 4096 };
enum { RL_ALL_MATCHING_KERNELS = -1 }; /* value of rl_profile_options.matching_index: all matching kernels */

/* The contents of L2 before each profiled kernel: clean lines of memory that the kernel does not access, or nothing. */
enum { RL_L2_FULL, RL_L2_EMPTY };
extern const char *const rl_l2_state_names[]; /* "full" "empty", NULL */

typedef struct rl_profile_options {
  uint32_t sections;                           /* bit i: rl_sections[i] */
  char metrics[RL_PROFILE_METRICS_SIZE];       /* names of additional raw metrics, one per line */
  char kernel_pattern[RL_KERNEL_PATTERN_SIZE]; /* glob pattern for the names of kernels and launches; "": every name matches */
  int64_t matching_index;                      /* index among the matching kernels, from 0, or RL_ALL_MATCHING_KERNELS */
  int cache;                                   /* RL_L2_FULL or RL_L2_EMPTY */
} rl_profile_options;
extern const rl_field rl_profile_options_fields[];

/* Indices into rl_profile_set_names, the names of sets of sections. "auto" stands for "basic" in a request that selects
 * neither sections nor metrics; in other requests it stands for no section. */
enum { RL_PROFILE_SET_AUTO, RL_PROFILE_SET_BASIC, RL_PROFILE_SET_DETAILED, RL_PROFILE_SET_FULL };
extern const char *const rl_profile_set_names[]; /* "auto" "basic" "detailed" "full", NULL */

/* Adds the sections of a set to the requested options and returns them. If these options select neither sections nor metrics,
 * returns the default options. set: index into rl_profile_set_names. */
rl_profile_options rl_profile_options_resolve(int set, const rl_profile_options *requested);

#endif
