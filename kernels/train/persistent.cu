/* Engine "persistent": all steps of an epoch in one launch (train/cuda/persistent.h), on devices with clusters of blocks and
 * room for 128 of them. */
#include "train/cuda/training.h"

static rl_rows rows(rl_format, uint32_t batch) {
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

static int supports(const void *params, rl_error *err) {
  const rl_train_params *p = (const rl_train_params *)params;
  if (p->batch_size < 1 || p->batch_size > 8192) return rl_fail_at(err, "/batch_size", "must be between 1 and 8192");
  return rl_persistent_supported({true, p->precision == RL_FP16, p->precision == RL_TF32}, err);
}

/* H200, ms an epoch, this engine / the fastest other one: batch 64 FP32 36.4 / 64.4, TF32 22.6 / 59.0, FP16 18.9 / 27.4;
 * 512 FP32 32.6 / 46.5, TF32 18.5 / 25.6, but FP16 15.6 / 8.2; 4096 FP32 32.4 / 40.0, but TF32 18.4 / 18.1. */
static bool leaves(const void *params) {
  const rl_train_params *p = (const rl_train_params *)params;
  return p->precision == RL_FP16 ? p->batch_size > 128 : p->precision == RL_TF32 && p->batch_size > 2048;
}

extern "C" {
extern const rl_engine rl_engine_persistent;
const rl_engine rl_engine_persistent = {
    "persistent", "mnist_cnn", RL_DEVICE_CUDA, "All steps of an epoch in one launch, weights and moments on chip",
    supports,     open_engine, leaves};
}
