/* The raw metrics that a profile asks for, each once, and where each comes from. */
#ifndef RL_CUPTI_WANTED_H
#define RL_CUPTI_WANTED_H

#include "model/catalogue.h"
#include "model/profile.h"
#include "worker/code/absence.h"

typedef struct rl_wanted_metric {
  const char *name;
  rl_metric_origin origin;
  const char *left_out; /* why it is not collected, though it could be; NULL: it is */
  double decided;       /* left out: its value all the same, NAN when there is none */
} rl_wanted_metric;

typedef struct rl_wanted {
  rl_wanted_metric *items; /* first the counters that are to be collected */
  size_t count, counters;
  char *metrics; /* where names that the catalogue does not have stand */
} rl_wanted;

/* absent: from all code that is looked at. What is asked for by name is counted in any case. */
int rl_wanted_make(const rl_profile *profile, rl_absences absent, rl_wanted *wanted, rl_error *err);
/* Of what the code decides, a counter that the chip does not have has no value. */
int rl_wanted_limit_to_chip(rl_wanted *wanted, const char *chip, rl_error *err);
void rl_wanted_clear(rl_wanted *wanted);

#endif
