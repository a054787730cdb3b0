/* What the launch of a kernel tells by itself, under ncu's names: launch__*, and the occupancy that follows from it. */
#ifndef RL_CUPTI_LAUNCH_H
#define RL_CUPTI_LAUNCH_H

#include "worker/cupti/occupancy.h"
#include "worker/cupti/trace.h"

typedef struct rl_launch_facts {
  const rl_occupancy *device;
  const rl_activity_row *row;
  const rl_launch_detail *detail;
  bool resident; /* residency is known */
  rl_residency residency;
  double stack_bytes, persisting_l2_bytes; /* limits of the context; NAN when not known */
} rl_launch_facts;

/* barriers: as rl_footprint_of takes them. */
rl_launch_facts rl_launch_facts_of(const rl_occupancy *device, const rl_activity_row *row, const rl_launch_detail *detail,
                                   int barriers);
/* The number of that name, NAN with *reason, a text that stays, when it is not known. */
double rl_launch_fact(const rl_launch_facts *facts, const char *metric, const char **reason);

#endif
