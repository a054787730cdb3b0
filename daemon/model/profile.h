/* A profile selects what the counters pass collects: sections of the catalogue and single metrics, for which kernels of a step.
 * The store and the frames to workers hold it as JSON. */
#ifndef RL_MODEL_PROFILE_H
#define RL_MODEL_PROFILE_H

#include <stdint.h>

#include "base/fields.h"

enum { RL_PROFILE_METRICS_SIZE = 2048, RL_KERNEL_PATTERN_SIZE = 128, RL_PROFILE_SIZE = 4096 };

typedef struct rl_profile {
  uint32_t sections;                     /* bit i: rl_sections[i] */
  char metrics[RL_PROFILE_METRICS_SIZE]; /* names of additional raw metrics, one a line */
  char kernels[RL_KERNEL_PATTERN_SIZE];  /* glob that a kernel's or launch's name must match; "": all */
  int64_t launch;                        /* index among the matching kernels, from 0; -1: all */
} rl_profile;
extern const rl_field rl_profile_fields[];

/* A request can name a set of sections. "auto" is "basic" if the request names neither sections nor metrics, else nothing. */
enum { RL_PROFILE_SET_AUTO };
extern const char *const rl_profile_set_names[]; /* "auto" "basic" "detailed" "full", NULL */

/* Returns the requested profile with the sections of the set added; the default profile if that selects nothing.
 * set: index into rl_profile_set_names. */
rl_profile rl_profile_resolve(int set, const rl_profile *requested);

#endif
