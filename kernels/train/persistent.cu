/* Engine "persistent": all steps of an epoch in one launch (train/cuda/persistent.cu), on devices with clusters of blocks and
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

/* H200, ms an epoch, this engine / "fused": batch 64 FP32 39.4 / 64.7, TF32 25.8 / 60.2, FP16 21.1 / 35.8; 128 FP16 18.1 / 22.6;
 * 256 FP32 34.6 / 46.4, TF32 20.5 / 42.1, but FP16 17.0 / 16.3. */
static bool leaves(const void *params) {
  const rl_train_params *p = (const rl_train_params *)params;
  return p->batch_size > (p->precision == RL_FP16 ? 128 : 256);
}

extern "C" {
extern const rl_engine rl_engine_persistent;
const rl_engine rl_engine_persistent = {"persistent",   "mnist_cnn",
                                        RL_DEVICE_CUDA, "All steps of an epoch in one launch, weights and moments on chip",
                                        supports,       open_engine,        leaves};
}
