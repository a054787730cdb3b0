/* Engine "persistent": all steps of an epoch in one launch (train/cuda/persistent.h), on devices with clusters of blocks and
 * room for 128 of them. */
#include "train/cuda/training.h"
#include "train/engines.h"

static rl_partial_rows rows(rl_format, uint32_t batch) {
  const uint32_t pairs = rl_persistent_rows(batch);
  return {2 * pairs, pairs, pairs, pairs};
}

static const rl_launch launches[] = {
    {"persistent_epoch", "kernel", rl_persistent_launch, NULL},
    {"persistent_evaluate", "kernel", rl_persistent_test_launch, NULL},
};

static const rl_recipe recipe = {launches, 2, 0, true, false, true, 0, rows, NULL, NULL, NULL, NULL, true};

static int open_engine(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  return rl_training_open(&recipe, device, params, instance, err);
}

static int device_supports(const void *params, rl_error *err) {
  const rl_train_params *p = (const rl_train_params *)params;
  return rl_persistent_supported({true, p->precision == RL_FP16, p->precision == RL_TF32}, err);
}

extern "C" {
extern const rl_engine rl_engine_persistent;
const rl_engine rl_engine_persistent = {&rl_train_persistent, open_engine, device_supports};
}
