/* Implements instance.h: an instance of the workload "ceilings" whose launches an engine adds. */
#include "ceilings/instance.h"

#include <math.h>

int rl_ceilings_supports(const void *params, rl_error *err) {
  (void)params, (void)err;
  return 0;
}

/* Implements reset, save and restore, which have nothing to do: no launch depends on the results of another. */
static int do_nothing(rl_instance *instance, rl_error *err) {
  (void)instance, (void)err;
  return 0;
}

static int read_results(rl_instance *instance, rl_iteration_results *results, rl_error *err) {
  (void)instance, (void)err;
  *results = (rl_iteration_results){NAN, NAN, NAN, NAN, NAN, NAN};
  return 0;
}

static const rl_instance_ops operations = {
    .reset = do_nothing, .read_results = read_results, .save = do_nothing, .restore = do_nothing};

void rl_ceilings_init(rl_ceilings_instance *instance, rl_device *device, const void *params, void (*close)(rl_instance *instance),
                      const char *reason) {
  instance->params = *(const rl_ceilings_params *)params;
  instance->ops = operations;
  instance->ops.close = close;
  for (int i = 0; i < RL_CEILINGS_COUNT; i++) instance->rates[i] = (rl_rate){.name = rl_ceiling_rate_names[i], .reason = reason};
  instance->sequence = (rl_sequence){"ceilings", instance->launches, 0, 1};
  instance->base = (rl_instance){.ops = &instance->ops,
                                 .device = device,
                                 .iteration = {"ceilings", &instance->sequence, 1},
                                 .deterministic = true,
                                 .rates = instance->rates,
                                 .rate_count = RL_CEILINGS_COUNT};
}

void rl_ceilings_add(rl_ceilings_instance *instance, rl_ceiling ceiling, double amount,
                     int (*enqueue)(void *arg, rl_stream stream, rl_error *err), void *arg) {
  rl_launch *launch = &instance->launches[instance->sequence.launch_count++];
  *launch = (rl_launch){.name = rl_ceiling_launch_names[ceiling], .nvtx_range = "ceilings", .enqueue = enqueue, .arg = arg};
  instance->rates[ceiling] = (rl_rate){.name = rl_ceiling_rate_names[ceiling], .launch = launch, .amount = amount};
}
