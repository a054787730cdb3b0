/* subject: WORKLOAD ENGINE PARAMETERS, the last as JSON text; several of them one after the other become one step.
 * $PROBE_APART_MIB: how much memory lies between two buffers. How long a kernel takes may depend on where they are. */
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "subject.h"

enum { MOST_PARTS = 8, MOST_SEQUENCES = 64, MOST_LAUNCHES = 256 };

static struct {
  rl_instance base;
  rl_instance *parts[MOST_PARTS];
  size_t part_count;
  rl_sequence sequences[MOST_SEQUENCES]; /* what each part does before its step, then the steps of all */
  rl_launch launches[MOST_LAUNCHES];     /* of the steps */
} all;

#define EACH_PART(OPERATION)                                               \
  static int OPERATION##_all(rl_instance *instance, rl_error *err) {       \
    (void)instance;                                                        \
    for (size_t i = 0; i < all.part_count; i++)                            \
      if (all.parts[i]->ops->OPERATION(all.parts[i], err) != 0) return -1; \
    return 0;                                                              \
  }
EACH_PART(reset)
EACH_PART(save)
EACH_PART(restore)
#undef EACH_PART

static int report_nothing(rl_instance *instance, rl_report *report, rl_error *err) {
  (void)instance, (void)report, (void)err;
  return 0;
}

static void close_all(rl_instance *instance) {
  (void)instance;
  while (all.part_count > 0) {
    rl_instance *part = all.parts[--all.part_count];
    part->ops->close(part);
  }
}

static const rl_instance_ops ops = {
    .reset = reset_all, .report = report_nothing, .save = save_all, .restore = restore_all, .close = close_all};

static const rl_device_ops *dense; /* the device's own */
static size_t gap_bytes;

/* A gap stays: the next one would find its place. */
static int allocate_apart(rl_device *device, rl_purpose purpose, size_t bytes, void **memory, rl_error *err) {
  void *gap;
  if (dense->allocate(device, purpose, gap_bytes, &gap, err) != 0) return -1;
  return dense->allocate(device, purpose, bytes, memory, err);
}

static void place_apart(rl_device *device, const char *mib) {
  static rl_device_ops apart;
  dense = device->ops;
  gap_bytes = mib == NULL ? 0 : strtoull(mib, NULL, 10) << 20;
  if (gap_bytes == 0) return;
  apart = *dense;
  apart.allocate = allocate_apart;
  device->ops = &apart;
}

static int open_part(rl_device *device, char **words, rl_error *err) {
  static char params[8192];
  const rl_workload *workload = rl_workload_find(words[0]);
  if (workload == NULL) return rl_fail(err, RL_INPUT, 0, "there is no workload %s", words[0]);
  workload->defaults(params);
  if (rl_fields_parse(workload->fields, words[2], strlen(words[2]), params, workload->params_size, err) != 0) return -1;
  const rl_engine *engine = rl_engine_find(workload->name, words[1], params, err);
  if (engine == NULL || engine->open(device, params, &all.parts[all.part_count], err) != 0) return -1;
  all.part_count++;
  return 0;
}

static int join(rl_device *device, rl_error *err) {
  rl_sequence step = {.name = "step", .launches = all.launches, .repeat = 1};
  size_t sequences = 0;
  for (size_t i = 0; i < all.part_count; i++) {
    const rl_instance *part = all.parts[i];
    const rl_sequence *steps = &part->iteration.sequences[part->step_sequence];
    if (sequences + part->step_sequence >= MOST_SEQUENCES || step.launch_count + steps->launch_count > MOST_LAUNCHES)
      return rl_fail(err, RL_INPUT, 0, "too much for one step");
    for (size_t s = 0; s < part->step_sequence; s++) all.sequences[sequences++] = part->iteration.sequences[s];
    memcpy(all.launches + step.launch_count, steps->launches, steps->launch_count * sizeof *steps->launches);
    step.launch_count += steps->launch_count;
  }
  all.sequences[sequences] = step;
  all.base = (rl_instance){
      .ops = &ops, .device = device, .iteration = {"parts", all.sequences, sequences + 1}, .step_sequence = sequences};
  return 0;
}

int subject_open(int argc, char **argv, rl_instance **instance, rl_error *err) {
  if (argc == 0 || argc % 3 != 0 || argc / 3 > MOST_PARTS)
    return rl_fail(err, RL_INPUT, 0, "expected: WORKLOAD ENGINE PARAMETERS...");
  if (rl_device_count(err) == 0) return 1;
  rl_device *device = rl_device_open(0, err);
  if (device != NULL) place_apart(device, getenv("PROBE_APART_MIB"));
  for (int i = 0; i < argc && device != NULL; i += 3)
    if (open_part(device, argv + i, err) != 0) return -1;
  if (device == NULL || (argc > 3 && join(device, err) != 0)) return -1;
  *instance = argc > 3 ? &all.base : all.parts[0];
  return (*instance)->ops->reset(*instance, err);
}
