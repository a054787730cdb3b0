/* The subject of a probe program (subject.h) that consists of the steps of one or more jobs. The arguments are triples
 * WORKLOAD ENGINE PARAMETERS, the parameters as JSON text; the steps of several triples become one step. The environment
 * variable PROBE_GAP_MIB gives the memory in MiB to leave unused before each buffer, because the duration of a kernel may depend
 * on the addresses of its buffers. */
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "subject.h"

enum { MAX_PARTS = 8, MAX_SEQUENCES = 64, MAX_LAUNCHES = 256 };

static struct {
  rl_instance base;
  rl_instance *parts[MAX_PARTS];
  size_t part_count;
  rl_sequence sequences[MAX_SEQUENCES]; /* each part's sequences before its step, then the joined step */
  rl_launch launches[MAX_LAUNCHES];     /* of the joined step */
} joined;

/* Defines a function that calls OPERATION of each part. */
#define DEFINE_FOR_PARTS(OPERATION)                                             \
  static int OPERATION##_all(rl_instance *instance, rl_error *err) {            \
    (void)instance;                                                             \
    for (size_t i = 0; i < joined.part_count; i++)                              \
      if (joined.parts[i]->ops->OPERATION(joined.parts[i], err) < 0) return -1; \
    return 0;                                                                   \
  }
DEFINE_FOR_PARTS(reset)
DEFINE_FOR_PARTS(save)
DEFINE_FOR_PARTS(restore)
#undef DEFINE_FOR_PARTS

static int read_no_results(rl_instance *instance, rl_iteration_results *results, rl_error *err) {
  (void)instance, (void)results, (void)err;
  return 0;
}

static void close_all(rl_instance *instance) {
  (void)instance;
  while (joined.part_count > 0) {
    rl_instance *part = joined.parts[--joined.part_count];
    part->ops->close(part);
  }
}

static const rl_instance_ops ops = {
    .reset = reset_all, .read_results = read_no_results, .save = save_all, .restore = restore_all, .close = close_all};

static const rl_device_ops *original_ops; /* operations of the device before add_gaps replaced them */
static size_t gap_bytes;

/* Allocates a gap before the buffer. The gap is never freed, so that no buffer is placed there. */
static int allocate_with_gap(rl_device *device, rl_memory_purpose purpose, size_t bytes, void **memory, rl_error *err) {
  void *gap;
  if (original_ops->allocate(device, purpose, gap_bytes, &gap, err) < 0) return -1;
  return original_ops->allocate(device, purpose, bytes, memory, err);
}

/* Puts a gap of `mib` MiB before each allocation of the device. */
static void add_gaps(rl_device *device, const char *mib) {
  static rl_device_ops ops_with_gaps;
  original_ops = device->ops;
  gap_bytes = mib == NULL ? 0 : strtoull(mib, NULL, 10) << 20;
  if (gap_bytes == 0) return;
  ops_with_gaps = *original_ops;
  ops_with_gaps.allocate = allocate_with_gap;
  device->ops = &ops_with_gaps;
}

static int open_part(rl_device *device, char **arguments, rl_error *err) {
  static char params[8192];
  const rl_workload *workload = rl_workload_find(arguments[0]);
  if (workload == NULL) return rl_fail(err, RL_INPUT, 0, "there is no workload %s", arguments[0]);
  workload->defaults(params);
  if (rl_fields_parse(workload->fields, arguments[2], strlen(arguments[2]), params, workload->params_size, err) < 0) return -1;
  const rl_engine *engine = rl_engine_find(workload->name, arguments[1], params, err);
  if (engine == NULL || engine->open(device, params, &joined.parts[joined.part_count], err) < 0) return -1;
  joined.part_count++;
  return 0;
}

/* Joins the steps of all parts to one step. */
static int join_parts(rl_device *device, rl_error *err) {
  rl_sequence step = {.name = "step", .launches = joined.launches, .repeat = 1};
  size_t sequence_count = 0;
  for (size_t i = 0; i < joined.part_count; i++) {
    const rl_instance *part = joined.parts[i];
    const rl_sequence *part_step = &part->iteration.sequences[part->step_sequence];
    if (sequence_count + part->step_sequence >= MAX_SEQUENCES || step.launch_count + part_step->launch_count > MAX_LAUNCHES)
      return rl_fail(err, RL_INPUT, 0, "the step would have more than %d sequences or %d launches", MAX_SEQUENCES, MAX_LAUNCHES);
    for (size_t s = 0; s < part->step_sequence; s++) joined.sequences[sequence_count++] = part->iteration.sequences[s];
    memcpy(joined.launches + step.launch_count, part_step->launches, part_step->launch_count * sizeof *part_step->launches);
    step.launch_count += part_step->launch_count;
  }
  joined.sequences[sequence_count] = step;
  joined.base = (rl_instance){.ops = &ops,
                              .device = device,
                              .iteration = {"parts", joined.sequences, sequence_count + 1},
                              .step_sequence = sequence_count};
  return 0;
}

int subject_open(int argc, char **argv, rl_instance **instance, rl_error *err) {
  if (argc == 0 || argc % 3 != 0 || argc / 3 > MAX_PARTS)
    return rl_fail(err, RL_INPUT, 0, "expected: WORKLOAD ENGINE PARAMETERS...");
  if (rl_device_count(err) == 0) return 1;
  rl_device *device = rl_device_open(0, err);
  if (device != NULL) add_gaps(device, getenv("PROBE_GAP_MIB"));
  for (int i = 0; i < argc && device != NULL; i += 3)
    if (open_part(device, argv + i, err) < 0) return -1;
  if (device == NULL || (argc > 3 && join_parts(device, err) < 0)) return -1;
  *instance = argc > 3 ? &joined.base : joined.parts[0];
  return (*instance)->ops->reset(*instance, err);
}
