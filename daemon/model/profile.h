/* What the counters pass looks at: sections of the catalogue, further metrics, and which kernels of the step. Plain values; their
 * JSON is what the store keeps and the wire carries. */
#ifndef RL_MODEL_PROFILE_H
#define RL_MODEL_PROFILE_H

#include <stdint.h>

#include "base/fields.h"

enum { RL_PROFILE_METRICS_SIZE = 2048, RL_KERNEL_PATTERN_SIZE = 128, RL_PROFILE_SIZE = 4096 };

typedef struct rl_profile {
  uint32_t sections;                     /* bit i: rl_sections[i] */
  char metrics[RL_PROFILE_METRICS_SIZE]; /* raw names beside those of the sections, one a line */
  char kernels[RL_KERNEL_PATTERN_SIZE];  /* glob over the names of kernels and of launches; "": every one */
  int64_t launch;                        /* which of the kernels that match, from 0; -1: all */
} rl_profile;
extern const rl_field rl_profile_fields[];

/* The sets of sections that a request can name; RL_PROFILE_SET_AUTO is "basic" where the request names neither sections nor
 * metrics. */
enum { RL_PROFILE_SET_AUTO };
extern const char *const rl_profile_set_names[]; /* "auto" "basic" "detailed" "full", NULL */

/* What to collect for a request: asked's sections, those of the set, and what every profile has where nothing is named. */
rl_profile rl_profile_resolve(int set, const rl_profile *asked);

#endif
