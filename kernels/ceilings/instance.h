/* What the engines of the ceilings share: the rates that there are, of which each engine adds those that its device has. */
#ifndef RL_CEILINGS_INSTANCE_H
#define RL_CEILINGS_INSTANCE_H

#include "ceilings/ceilings.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_ceilings_instance { /* first member of an engine's own struct */
  rl_instance base;
  rl_instance_ops ops;
  rl_ceilings_params params;
  rl_launch launches[RL_CEILINGS_COUNT];
  rl_rate rates[RL_CEILINGS_COUNT];
  rl_sequence sequence;
} rl_ceilings_instance;

/* For rl_engine.supports. */
int rl_ceilings_supports(const void *params, rl_error *err);
/* Make a zeroed instance one without any rate yet, for the reason given; close takes it as a whole. */
void rl_ceilings_begin(rl_ceilings_instance *instance, rl_device *device, const void *params,
                       void (*close)(rl_instance *instance), const char *reason);
/* One launch of enqueue(arg) moves `amount` bytes or does as many operations. */
void rl_ceilings_add(rl_ceilings_instance *instance, rl_ceiling which, double amount,
                     int (*enqueue)(void *arg, rl_stream stream, rl_error *err), void *arg);

#ifdef __cplusplus
}
#endif
#endif
