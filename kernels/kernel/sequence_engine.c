/* The engine of sequences on any device. It opens an instance of each member with the best engine of its operator, and runs their
 * launches in order. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/sequence.h"

typedef struct sequence {
  rl_instance base;
  rl_kernel_params params[RL_KERNEL_SEQUENCE_MAX_MEMBERS];
  rl_instance *members[RL_KERNEL_SEQUENCE_MAX_MEMBERS];
  size_t count;
  rl_launch launches[RL_KERNEL_SEQUENCE_MAX_MEMBERS];
  char names[RL_KERNEL_SEQUENCE_MAX_MEMBERS][48];
  rl_sequence step;
} sequence;

static const rl_engine *find_engine(const rl_kernel_params *params, rl_error *err) {
  return rl_engine_find(params->op->workload.name, "auto", params, err);
}

static int supports(const void *params, rl_error *err) {
  rl_kernel_params members[RL_KERNEL_SEQUENCE_MAX_MEMBERS];
  size_t count;
  if (rl_kernel_sequence_decode_params(params, members, &count, err) < 0) return -1;
  for (size_t i = 0; i < count; i++)
    if (find_engine(&members[i], err) == NULL) return rl_wrap(err, "kernel %zu", i);
  return 0;
}

/* --- operations on all members ----------------------------------------------------------------------------------------- */

/* Defines a function that calls rl_instance_ops.NAME of each member. */
#define DEFINE_FOR_MEMBERS(NAME)                                                                                            \
  static int NAME(rl_instance *instance, rl_error *err) {                                                                   \
    sequence *self = (sequence *)instance;                                                                                  \
    for (size_t i = 0; i < self->count; i++)                                                                                \
      if (self->members[i]->ops->NAME(self->members[i], err) < 0) return rl_wrap(err, "kernel %zu, %s", i, self->names[i]); \
    return 0;                                                                                                               \
  }
DEFINE_FOR_MEMBERS(reset)
DEFINE_FOR_MEMBERS(save)
DEFINE_FOR_MEMBERS(restore)

static int read_results(rl_instance *instance, rl_iteration_results *results, rl_error *err) {
  (void)instance, (void)err;
  *results = (rl_iteration_results){NAN, NAN, NAN, NAN, NAN, NAN};
  return 0;
}

/* Sets *check to the result of the member whose error is the largest share of its tolerance. Returns -1 with the member's name if
 * the result of a member is wrong. */
static int check(rl_instance *instance, rl_check *check, rl_error *err) {
  sequence *self = (sequence *)instance;
  double largest_share = -1;
  for (size_t i = 0; i < self->count; i++) {
    rl_check member_check;
    if (self->members[i]->ops->check(self->members[i], &member_check, err) < 0)
      return rl_wrap(err, "kernel %zu, %s", i, self->names[i]);
    if (!(member_check.relative_error <= member_check.tolerance)) /* NAN fails too */
      return rl_fail(err, RL_ERRNO, EDOM, "the result of kernel %zu, %s, is wrong: its relative error of %.3g is more than %.3g",
                     i, self->names[i], member_check.relative_error, member_check.tolerance);
    const double tolerance_share = member_check.tolerance > 0 ? member_check.relative_error / member_check.tolerance : 0;
    if (tolerance_share > largest_share) *check = member_check;
    largest_share = fmax(largest_share, tolerance_share);
  }
  return 0;
}

static void close_sequence(rl_instance *instance) {
  sequence *self = (sequence *)instance;
  for (size_t i = 0; i < self->count; i++) self->members[i]->ops->close(self->members[i]);
  free(self);
}

static const rl_instance_ops operations = {
    .reset = reset, .read_results = read_results, .save = save, .restore = restore, .close = close_sequence, .check = check};

/* Names the first relu "relu" and the second "relu_2": launches of a step must have different names. */
static void name_launch(sequence *self, size_t index) {
  const char *op = self->params[index].op->workload.name;
  size_t occurrence = 1;
  for (size_t i = 0; i < index; i++) occurrence += self->params[i].op == self->params[index].op;
  if (occurrence == 1) snprintf(self->names[index], sizeof self->names[index], "%s", op);
  else snprintf(self->names[index], sizeof self->names[index], "%s_%zu", op, occurrence);
}

static int open_member(sequence *self, size_t index, rl_error *err) {
  const rl_engine *engine = find_engine(&self->params[index], err);
  if (engine == NULL || engine->open(self->base.device, &self->params[index], &self->members[index], err) < 0)
    return rl_wrap(err, "kernel %zu, %s", index, self->names[index]);
  const rl_instance *member = self->members[index];
  self->count++;
  self->launches[index] = member->iteration.sequences[member->step_sequence].launches[0]; /* a kernel's step is one launch */
  self->launches[index].name = self->names[index];
  self->base.deterministic &= member->deterministic;
  if (!member->deterministic && self->base.deterministic_note == NULL) self->base.deterministic_note = member->deterministic_note;
  return 0;
}

static int open_sequence(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  sequence *self = calloc(1, sizeof *self);
  size_t count;
  if (self == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a sequence");
  const rl_kernel_sequence_params *sequence_params = params;
  self->step = (rl_sequence){.name = "launch",
                             .launches = self->launches,
                             .repeat = (uint64_t)sequence_params->samples,
                             .pause_ms = (uint32_t)sequence_params->pause_ms};
  self->base = (rl_instance){.ops = &operations,
                             .device = device,
                             .deterministic = true,
                             .iteration = {.name = "kernel", .sequences = &self->step, .sequence_count = 1}};
  int rc = rl_kernel_sequence_decode_params(params, self->params, &count, err);
  for (size_t i = 0; rc == 0 && i < count; i++) {
    name_launch(self, i);
    rc = open_member(self, i, err);
  }
  if (rc < 0) {
    close_sequence(&self->base);
    return -1;
  }
  self->step.launch_count = count;
  *instance = &self->base;
  return 0;
}

#define ENGINE(DEVICE, KIND)                                                                                                  \
  static const rl_engine_description description_of_##DEVICE = {.name = #DEVICE,                                              \
                                                                .workload = "sequence",                                       \
                                                                .device = KIND,                                               \
                                                                .summary = "each kernel by the best engine for its operator", \
                                                                .supports = supports};                                        \
  const rl_engine rl_kernel_sequence_##DEVICE = {.description = &description_of_##DEVICE, .open = open_sequence};
ENGINE(cpu, RL_DEVICE_CPU)
ENGINE(cuda, RL_DEVICE_CUDA)
