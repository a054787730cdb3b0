/* Implements fake_engine.h. The workloads fake, fake_launch and fake_rates differ only in how they are timed. */
#include "tests/worker/fake_engine.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/fields.h"
#include "workload.h"

typedef struct fake_params {
  char engine[16];
  int64_t steps, epochs, warmup, bytes, fail_at, die_at, sleep_us, timestamp_us;
  bool evaluates, prints, whole, restored, once;
  double error; /* relative error that the check reports */
} fake_params;

static const rl_field fake_fields[] = {
    RL_FIELD(fake_params, engine, RL_FIELD_TEXT),    RL_FIELD(fake_params, steps, RL_FIELD_INT),
    RL_FIELD(fake_params, epochs, RL_FIELD_INT),     RL_FIELD(fake_params, warmup, RL_FIELD_INT),
    RL_FIELD(fake_params, bytes, RL_FIELD_INT),      RL_FIELD(fake_params, fail_at, RL_FIELD_INT),
    RL_FIELD(fake_params, die_at, RL_FIELD_INT),     RL_FIELD(fake_params, prints, RL_FIELD_BOOL),
    RL_FIELD(fake_params, sleep_us, RL_FIELD_INT),   RL_FIELD(fake_params, timestamp_us, RL_FIELD_INT),
    RL_FIELD(fake_params, evaluates, RL_FIELD_BOOL), RL_FIELD(fake_params, error, RL_FIELD_NULLABLE_REAL),
    RL_FIELD(fake_params, whole, RL_FIELD_BOOL),     RL_FIELD(fake_params, restored, RL_FIELD_BOOL),
    RL_FIELD(fake_params, once, RL_FIELD_BOOL),      {0}};

static void fake_defaults(void *params) {
  *(fake_params *)params =
      (fake_params){.engine = "auto", .steps = 5, .epochs = 2, .warmup = 1, .bytes = 1000, .evaluates = true};
}
static rl_cost fake_cost(const void *params, uint64_t images) {
  (void)images;
  return (rl_cost){.bytes = 10, .operations = (double)((const fake_params *)params)->steps * 1e6};
}
static void fake_iteration_counts(const void *params, uint32_t *warmup, uint32_t *iterations) {
  const fake_params *p = params;
  *warmup = (uint32_t)p->warmup;
  *iterations = (uint32_t)p->epochs;
}
static const rl_workload fake_workload = {.name = "fake",
                                          .job_kind = "train",
                                          .fields = fake_fields,
                                          .params_size = sizeof(fake_params),
                                          .defaults = fake_defaults,
                                          .cost = fake_cost,
                                          .iteration_counts = fake_iteration_counts};
/* The workload fake, but each launch is timed alone. */
static const rl_workload fake_launch_workload = {.name = "fake_launch",
                                                 .job_kind = "kernel",
                                                 .fields = fake_fields,
                                                 .params_size = sizeof(fake_params),
                                                 .defaults = fake_defaults,
                                                 .cost = fake_cost,
                                                 .iteration_counts = fake_iteration_counts,
                                                 .timing_mode = RL_TIMING_LAUNCHES};
/* The workload fake, but rates are measured: gather moves 1000 bytes; the second rate is unavailable. */
static const rl_workload fake_rates_workload = {.name = "fake_rates",
                                                .job_kind = "ceilings",
                                                .fields = fake_fields,
                                                .params_size = sizeof(fake_params),
                                                .defaults = fake_defaults,
                                                .cost = fake_cost,
                                                .iteration_counts = fake_iteration_counts,
                                                .timing_mode = RL_TIMING_RATES};
const rl_workload *const rl_workloads[] = {&fake_workload, &fake_launch_workload, &fake_rates_workload, NULL};

enum { TIMED_STEPS = 4, TIMED_BLOCKS = 2 };
static const rl_timed_phase timed_phases[] = {{"gather", "data"}, {"descend", "optimizer"}};
enum { TIMED_PHASES = sizeof timed_phases / sizeof *timed_phases };

typedef struct fake_instance {
  rl_instance base;
  fake_params params;
  void *weights, *activations;
  double weight, loss, evaluated_weight;
  int64_t gathers;    /* launches of gather since the reset */
  int64_t free_slots; /* free slots of the buffer that gather fills */
  rl_launch step[2], evaluate, whole, restore;
  rl_sequence iteration[1], evaluation[1];
  rl_rate rates[2];
  bool timestamping;
  uint64_t begin_ns, end_ns, timestamps[TIMED_BLOCKS][TIMED_STEPS][1 + TIMED_PHASES];
} fake_instance;

int fake_opened_count, fake_closed_count;

static void sleep_us(int64_t us) {
  if (us > 0) nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static int gather(void *arg, rl_stream stream, rl_error *err) {
  fake_instance *self = arg;
  (void)stream;
  self->gathers++;
  if (self->params.once && self->free_slots-- == 0) return rl_fail(err, RL_ERRNO, ERANGE, "the buffer is full");
  if (self->params.prints) {
    printf("not a frame\n");
    fflush(stdout);
  }
  if (self->gathers == self->params.die_at) raise(SIGKILL);
  if (self->gathers == self->params.fail_at) return rl_fail(err, RL_ERRNO, EIO, "the launch broke");
  sleep_us(self->params.sleep_us);
  return 0;
}
static int descend(void *arg, rl_stream stream, rl_error *err) {
  fake_instance *self = arg;
  (void)stream, (void)err;
  self->weight += 0.1 * (3 - self->weight);
  self->loss = (3 - self->weight) * (3 - self->weight);
  return 0;
}

/* Returns the time of a clock with another origin than the trace, like the clock of a device; 0 if timestamps are off. Takes
 * timestamp_us. */
static uint64_t timestamp(const fake_instance *self) {
  if (!self->timestamping) return 0;
  sleep_us(self->params.timestamp_us);
  return (uint64_t)rl_monotonic_ns() + 1000000000000000;
}

/* Records the end of a phase; phase -1: the begin of the step. Block 1 has the timestamps of block 0, but skips gather. */
static void record_timestamp(fake_instance *self, int64_t step, int phase) {
  if (step >= TIMED_STEPS) return;
  self->timestamps[0][step][1 + phase] = timestamp(self);
  if (phase != 0) self->timestamps[1][step][1 + phase] = self->timestamps[0][step][1 + phase];
}

/* Runs all steps. */
static int run_whole(void *arg, rl_stream stream, rl_error *err) {
  fake_instance *self = arg;
  self->begin_ns = timestamp(self);
  for (int64_t step = 0; step < self->params.steps; step++) {
    record_timestamp(self, step, -1);
    if (gather(self, stream, err) < 0) return -1;
    record_timestamp(self, step, 0);
    if (descend(self, stream, err) < 0) return -1;
    record_timestamp(self, step, 1);
  }
  self->end_ns = timestamp(self);
  return 0;
}

static int set_timestamps(rl_instance *instance, bool on, rl_error *err) {
  (void)err;
  ((fake_instance *)instance)->timestamping = on;
  return 0;
}
static int read_timestamps(rl_instance *instance, rl_phase_timestamps *timestamps, rl_error *err) {
  fake_instance *self = (fake_instance *)instance;
  (void)err;
  *timestamps = (rl_phase_timestamps){
      "whole", timed_phases, TIMED_PHASES, TIMED_STEPS, TIMED_BLOCKS, self->begin_ns, self->end_ns, self->timestamps[0][0], 1};
  return 0;
}

static int restore(void *arg, rl_stream stream, rl_error *err) {
  (void)stream, (void)err;
  ((fake_instance *)arg)->free_slots = 1;
  return 0;
}
static int evaluate(void *arg, rl_stream stream, rl_error *err) {
  fake_instance *self = arg;
  (void)stream, (void)err;
  self->evaluated_weight = self->weight;
  return 0;
}
static int fake_reset(rl_instance *instance, rl_error *err) {
  fake_instance *self = (fake_instance *)instance;
  (void)err;
  self->weight = self->loss = self->evaluated_weight = 0;
  self->gathers = 0;
  self->free_slots = 1;
  return 0;
}
static int fake_read_results(rl_instance *instance, rl_iteration_results *results, rl_error *err) {
  fake_instance *self = (fake_instance *)instance;
  (void)err;
  *results = (rl_iteration_results){.images = (double)self->params.steps * 64,
                                    .train_loss = self->loss,
                                    .test_loss = 3 - self->evaluated_weight,
                                    .test_accuracy_ratio = self->evaluated_weight / 3,
                                    .loss_scale = NAN,
                                    .skipped_steps = NAN};
  return 0;
}
static void fake_close(rl_instance *instance) {
  fake_instance *self = (fake_instance *)instance;
  instance->device->ops->release(instance->device, self->weights);
  instance->device->ops->release(instance->device, self->activations);
  free(self);
  fake_closed_count++;
}
static int fake_check(rl_instance *instance, rl_check *check, rl_error *err) {
  (void)err;
  ((fake_instance *)instance)->free_slots = 0; /* the check runs the step, which fills the buffer */
  *check = (rl_check){.relative_error = ((fake_instance *)instance)->params.error, .tolerance = 0.5, .checked_ratio = 0.75};
  return 0;
}
static const rl_open_measurement fake_open_measurements[] = {{"compile_ms", 2.5, NULL},
                                                             {"spill_bytes", NAN, "nothing is compiled"}};
static const rl_instance_ops fake_ops = {
    .reset = fake_reset, .read_results = fake_read_results, .close = fake_close, .check = fake_check};
static const rl_instance_ops fake_whole_ops = {.reset = fake_reset,
                                               .read_results = fake_read_results,
                                               .close = fake_close,
                                               .check = fake_check,
                                               .set_phase_timestamps = set_timestamps,
                                               .read_phase_timestamps = read_timestamps};

static int fake_supports(const void *params, rl_error *err) {
  return ((const fake_params *)params)->steps < 100000 ? 0 : rl_fail_at(err, "/steps", "must be below 100000");
}

static int fake_open(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  fake_instance *self = calloc(1, sizeof *self);
  void *scratch;
  if (!self) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory");
  self->params = *(const fake_params *)params;
  /* Released scratch memory still counts in the peak. */
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, 300, &scratch, err) < 0) return -1;
  device->ops->release(device, scratch);
  if (device->ops->allocate(device, RL_MEMORY_WEIGHTS, 100, &self->weights, err) < 0 ||
      device->ops->allocate(device, RL_MEMORY_ACTIVATIONS, (size_t)self->params.bytes, &self->activations, err) < 0) {
    device->ops->release(device, self->weights);
    free(self);
    return -1;
  }
  self->step[0] = (rl_launch){"gather", "data", gather, self};
  self->step[1] = (rl_launch){"descend", "optimizer", descend, self};
  self->evaluate = (rl_launch){"evaluate", "evaluate", evaluate, self};
  self->restore = (rl_launch){"restore", "data", restore, self};
  self->iteration[0] =
      (rl_sequence){"step", self->step, 2, (uint64_t)self->params.steps, self->params.restored ? &self->restore : NULL};
  self->evaluation[0] = (rl_sequence){"evaluate", &self->evaluate, 1, 1};
  self->base = (rl_instance){.ops = &fake_ops,
                             .device = device,
                             .deterministic = true,
                             .dataset = "synthetic",
                             .iteration = {"epoch", self->iteration, 1},
                             .images = (uint64_t)self->params.steps * 64,
                             .steps = (uint64_t)self->params.steps,
                             .trained_parameters = 1,
                             .open_measurements = fake_open_measurements,
                             .open_measurement_count = 2,
                             .rates = self->rates,
                             .rate_count = 2};
  if (self->params.whole) {
    self->whole = (rl_launch){"whole", "kernel", run_whole, self};
    self->iteration[0] = (rl_sequence){"step", &self->whole, 1, 1};
    self->base.ops = &fake_whole_ops;
    self->base.optimizer_steps_per_repeat = self->base.steps;
  }
  self->rates[0] = (rl_rate){.name = "gather_bytes_per_s", .launch = &self->step[0], .amount = 1000};
  self->rates[1] = (rl_rate){.name = "scatter_bytes_per_s", .reason = "nothing is scattered"};
  if (self->params.evaluates) self->base.evaluation = (rl_sequence_list){"evaluation", self->evaluation, 1};
  *instance = &self->base;
  fake_opened_count++;
  return 0;
}
static const rl_engine_description fake_engine_description = {
    .name = "hand", .workload = "fake", .device = RL_DEVICE_CPU, .supports = fake_supports};
static const rl_engine fake_engine = {.description = &fake_engine_description, .open = fake_open};
static const rl_engine_description fake_launch_engine_description = {
    .name = "hand", .workload = "fake_launch", .device = RL_DEVICE_CPU, .supports = fake_supports};
static const rl_engine fake_launch_engine = {.description = &fake_launch_engine_description, .open = fake_open};
static const rl_engine_description fake_rates_engine_description = {
    .name = "hand", .workload = "fake_rates", .device = RL_DEVICE_CPU, .supports = fake_supports};
static const rl_engine fake_rates_engine = {.description = &fake_rates_engine_description, .open = fake_open};
const rl_engine *const rl_engines[] = {&fake_engine, &fake_launch_engine, &fake_rates_engine, NULL};
