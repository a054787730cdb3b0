/* What the counters pass collects: sections of the catalogue, further metrics, and for which kernels of a step. The store and the
 * wire keep it as JSON. */
#ifndef RL_MODEL_PROFILE_H
#define RL_MODEL_PROFILE_H

#include <stdint.h>

#include "base/fields.h"

enum { RL_PROFILE_METRICS_SIZE = 2048, RL_KERNEL_PATTERN_SIZE = 128, RL_PROFILE_SIZE = 4096 };

typedef struct rl_profile {
  uint32_t sections;                     /* bit i: rl_sections[i] */
  char metrics[RL_PROFILE_METRICS_SIZE]; /* raw metrics besides those of the sections, one name a line */
  char kernels[RL_KERNEL_PATTERN_SIZE];  /* glob for the names of kernels or launches; "": all */
  int64_t launch;                        /* index among the matching kernels, from 0; -1: all */
} rl_profile;
extern const rl_field rl_profile_fields[];

/* Sets of sections by name; AUTO is "basic" when a request names neither sections nor metrics. */
enum { RL_PROFILE_SET_AUTO };
extern const char *const rl_profile_set_names[]; /* "auto" "basic" "detailed" "full", NULL */

/* Returns the profile to collect: the requested one with the sections of the set; the default one when neither names anything. */
rl_profile rl_profile_resolve(int set, const rl_profile *requested);

#endif
