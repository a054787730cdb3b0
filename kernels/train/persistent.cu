/* Engine "persistent": all steps of an epoch in one launch (train/cuda/persistent.cu), FP16 and TF32, on devices with clusters of blocks and room for 128 of
 * them. Only evaluation has launches as the other engines have: those of "merged" in FP16, else those of "fused". */
#include "train/cuda/training.h"

static rl_rows rows(rl_format, uint32_t batch) {
  const uint32_t pairs = rl_persistent_rows(batch);
  return {2 * pairs, pairs, pairs, pairs};
}

static const rl_launch half_launches[] = {
    {"conv1_forward", "forward", rl_conv1_forward_launch, NULL},
    {"conv2_forward", "forward", rl_conv2_forward_launch, NULL},
    {"classify", "forward", rl_classify_launch, NULL},
};
static const rl_launch float_launches[] = {
    {"conv1_forward", "forward", rl_conv1_forward_launch, NULL},
    {"conv2_forward", "forward", rl_conv2_forward_launch, NULL},
    {"fc1_forward", "forward", rl_fc1_forward_launch, NULL},
    {"head", "forward", rl_head_launch, NULL},
};
enum { HALF_LAUNCHES = sizeof half_launches / sizeof *half_launches, FLOAT_LAUNCHES = sizeof float_launches / sizeof *float_launches };

static const rl_launch epoch = {"persistent_epoch", "kernel", rl_persistent_launch, NULL};

/* So many images evaluated at once that it takes no more memory than training with the usual batch of 64. */
static const rl_recipe half_recipe = {half_launches, HALF_LAUNCHES, HALF_LAUNCHES, true, false, true, 128, rows, NULL, NULL, NULL, NULL, &epoch},
                       float_recipe = {float_launches, FLOAT_LAUNCHES, FLOAT_LAUNCHES, true, false, false, 64, rows, NULL, NULL, NULL, NULL, &epoch};

static int open_engine(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  const bool half = ((const rl_train_params *)params)->precision == RL_FP16;
  return rl_training_open(half ? &half_recipe : &float_recipe, device, params, instance, err);
}

static int supports(const void *params, rl_error *err) {
  const rl_train_params *p = (const rl_train_params *)params;
  if (p->precision == RL_FP32) return rl_fail_at(err, "/precision", "engine persistent trains in fp16 and tf32 alone");
  if (p->batch_size < 1 || p->batch_size > 8192) return rl_fail_at(err, "/batch_size", "must be between 1 and 8192");
  return rl_persistent_supported({true, p->precision == RL_FP16, p->precision == RL_TF32}, err);
}

extern "C" {
extern const rl_engine rl_engine_persistent;
const rl_engine rl_engine_persistent = {"persistent",   "mnist_cnn",
                                        RL_DEVICE_CUDA, "All steps of an epoch in one launch, weights and moments on chip; FP16 and TF32",
                                        supports,       open_engine};
}
