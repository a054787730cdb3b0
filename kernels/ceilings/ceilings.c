/* Defines the workload "ceilings": names of the rates, parameters and defaults (ceilings.h). */
#include "ceilings/ceilings.h"

#include <math.h>

#define LAUNCH_NAME(NAME, UNIT) #NAME,
#define RATE_NAME(NAME, UNIT) #NAME "_" #UNIT "_per_s",
const char *const rl_ceiling_launch_names[] = {RL_CEILINGS(LAUNCH_NAME) NULL};
const char *const rl_ceiling_rate_names[] = {RL_CEILINGS(RATE_NAME) NULL};

const rl_field rl_ceilings_fields[] = {
    RL_FIELD(rl_ceilings_params, samples, RL_FIELD_INT, .minimum = 1, .maximum = 1000,
             .summary = "number of samples of each rate; the highest one counts"),
    RL_FIELD(rl_ceilings_params, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0,
             .summary = "seed of the random data that the measurements read"),
    {0}};

static void defaults(void *params) { *(rl_ceilings_params *)params = (rl_ceilings_params){.samples = 20, .seed = 1}; }

/* Returns an unknown cost: this workload measures rates and has no floor. */
static rl_cost cost(const void *params, uint64_t images) {
  (void)params, (void)images;
  return (rl_cost){.bytes = NAN, .operations = NAN, .written_bytes = NAN};
}

static void iteration_counts(const void *params, uint32_t *warmup, uint32_t *iterations) {
  *warmup = 0; /* the device function `sample` runs each rate's launch before it takes samples */
  *iterations = (uint32_t)((const rl_ceilings_params *)params)->samples;
}

const rl_workload rl_ceilings = {.name = "ceilings",
                                 .job_kind = "ceilings",
                                 .summary = "highest bandwidths and arithmetic rates of the device",
                                 .fields = rl_ceilings_fields,
                                 .params_size = sizeof(rl_ceilings_params),
                                 .defaults = defaults,
                                 .cost = cost,
                                 .iteration_counts = iteration_counts,
                                 .timing_mode = RL_TIMING_RATES};
