/* subject: WORKLOAD ENGINE PARAMETERS, the last as JSON text. */
#include <string.h>

#include "base/fields.h"
#include "subject.h"

int subject_open(int argc, char **argv, rl_instance **instance, rl_error *err) {
  static char params[8192];
  if (argc != 3) return rl_fail(err, RL_INPUT, 0, "expected: WORKLOAD ENGINE PARAMETERS");
  const rl_workload *workload = rl_workload_find(argv[0]);
  if (workload == NULL) return rl_fail(err, RL_INPUT, 0, "there is no workload %s", argv[0]);
  if (rl_device_count(err) == 0) return 1;
  workload->defaults(params);
  if (rl_fields_parse(workload->fields, argv[2], strlen(argv[2]), params, workload->params_size, err) != 0) return -1;
  const rl_engine *engine = rl_engine_find(workload->name, argv[1], params, err);
  rl_device *device = engine == NULL ? NULL : rl_device_open(0, err);
  if (device == NULL || engine->open(device, params, instance, err) != 0) return -1;
  return (*instance)->ops->reset(*instance, err);
}
