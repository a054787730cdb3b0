/* The part of an instance of the workload "ceilings" that all its engines share: the list of all rates. Each engine adds the
 * launches that measure the rates of its device. */
#ifndef RL_CEILINGS_INSTANCE_H
#define RL_CEILINGS_INSTANCE_H

#include "ceilings/ceilings.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_ceilings_instance { /* an engine's instance struct begins with this struct */
  rl_instance base;
  rl_instance_ops ops;
  rl_ceilings_params params;
  rl_launch launches[RL_CEILINGS_COUNT];
  rl_rate rates[RL_CEILINGS_COUNT];
  rl_sequence sequence;
} rl_ceilings_instance;

/* Implements rl_engine_description.supports: accepts all parameters. */
int rl_ceilings_supports(const void *params, rl_error *err);
/* Initialises a zeroed instance. A rate for which rl_ceilings_add adds no launch is null with `reason`. close must free the
 * engine's whole struct. */
void rl_ceilings_init(rl_ceilings_instance *instance, rl_device *device, const void *params, void (*close)(rl_instance *instance),
                      const char *reason);
/* Adds the launch that measures a rate: enqueue(arg, …) moves `amount` bytes or executes `amount` operations. */
void rl_ceilings_add(rl_ceilings_instance *instance, rl_ceiling ceiling, double amount,
                     int (*enqueue)(void *arg, rl_stream stream, rl_error *err), void *arg);

#ifdef __cplusplus
}
#endif
#endif
