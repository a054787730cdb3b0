/* What of a training engine lasts from step to step: parameters in PyTorch's order, moments, the training state; what is reported
 * of them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cuda_check.h"
#include "train/cuda/training_parts.h"

/* --- parameters -------------------------------------------------------------------------------------------------------- */

/* Where parameter i of PyTorch's flat order lies in ours. */
static uint32_t place(const rl_training *e, uint32_t i) {
  if (!e->format.channels_last) return i;
  if (i >= rl_tensor_offsets[RL_CONV2_W] && i < rl_tensor_offsets[RL_CONV2_B]) {
    uint32_t at = rl_tensor_offsets[RL_CONV2_W], tap = (i - at) % 9, c = (i - at) / 9 % RL_C1, k = (i - at) / 9 / RL_C1;
    return at + (k * 9 + tap) * RL_C1 + c;
  }
  if (i >= rl_tensor_offsets[RL_FC1_W] && i < rl_tensor_offsets[RL_FC1_B]) {
    const uint32_t map = RL_P2 * RL_P2;
    uint32_t at = rl_tensor_offsets[RL_FC1_W], pixel = (i - at) % map, c = (i - at) / map % RL_C2, row = (i - at) / RL_FLAT;
    return at + row * RL_FLAT + pixel * RL_C2 + c;
  }
  return i;
}

static float *make_floats(rl_error *err) {
  float *made = (float *)malloc(RL_PARAMETERS * sizeof *made);
  if (!made) rl_fail(err, RL_SYS, ENOMEM, "out of memory for the parameters");
  return made;
}

static int download_parameters(rl_training *e, const float *from, float *out, rl_error *err) {
  rl_device *device = e->base.base.device;
  float *ours = make_floats(err);
  if (!ours || device->ops->download(device, ours, from, RL_PARAMETERS * sizeof *ours, err)) {
    free(ours);
    return -1;
  }
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) out[i] = ours[place(e, i)];
  free(ours);
  return 0;
}

static int upload_parameters(rl_training *e, const float *weights, rl_error *err) {
  rl_device *device = e->base.base.device;
  float *ours = make_floats(err);
  if (!ours) return -1;
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) ours[place(e, i)] = weights[i];
  int rc = device->ops->upload(device, e->weights, ours, RL_PARAMETERS * sizeof *ours, err);
  free(ours);
  rl_adam adam = rl_training_adam(e);
  if (rc || (e->halves && rl_adam_halves(&adam, rl_training_stream(e), err))) return -1;
  return rl_cuda_ok(cudaStreamSynchronize(rl_training_stream(e)), "setting the parameters", err);
}

/* --- state ------------------------------------------------------------------------------------------------------------- */

static int write_state(rl_training *e, rl_error *err) {
  const double beta1 = 0.9f, beta2 = 0.999f;
  rl_device *device = e->base.base.device;
  rl_train_state state = {};
  state.seed = (uint64_t)e->base.params.seed;
  state.beta1_power = beta1;
  state.beta2_power = beta2;
  state.step_size = (float)(e->base.params.learning_rate / (1.0 - beta1));
  state.inverse_root = (float)(1.0 / sqrt(1.0 - beta2));
  state.dynamic_scale = e->format.half;
  state.scale.scale = e->format.half ? RL_LOSS_SCALE_START : 1.0f;
  state.inverse_scale = state.last_inverse_scale = 1.0f / state.scale.scale;
  return device->ops->upload(device, e->state, &state, sizeof state, err);
}

int rl_training_reset(rl_instance *instance, rl_error *err) {
  rl_training *e = rl_training_of(instance);
  rl_device *device = instance->device;
  float *weights = make_floats(err);
  if (!weights) return -1;
  rl_model_initialise((uint64_t)e->base.params.seed, weights);
  int rc = device->ops->zero(device, e->first, 2 * RL_PADDED * sizeof(float), err) || write_state(e, err) ||
           upload_parameters(e, weights, err);
  free(weights);
  return rc ? -1 : 0;
}

static int read_state(rl_training *e, rl_train_state *state, rl_error *err) {
  rl_device *device = e->base.base.device;
  return device->ops->download(device, state, e->state, sizeof *state, err);
}

int rl_training_losses(rl_train_instance *instance, float *out, rl_error *err) {
  rl_training *e = rl_training_of(instance);
  rl_device *device = instance->base.device;
  return device->ops->download(device, out, e->losses, instance->steps * sizeof *out, err);
}

static int report_training(rl_training *e, const rl_train_state *state, rl_report *out, rl_error *err) {
  if (state->step == 0) return 0;
  float *each = (float *)malloc(e->base.steps * sizeof *each);
  if (!each) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the losses");
  int rc = rl_training_losses(&e->base, each, err);
  double sum = 0;
  for (uint32_t i = 0; i < state->step && !rc; i++) sum += each[i];
  free(each);
  out->train_loss = sum / state->step;
  return rc;
}

static int report_test(rl_training *e, const rl_train_state *state, rl_report *out, rl_error *err) {
  if (state->test_step == 0) return 0;
  rl_device *device = e->base.base.device;
  uint32_t count = e->base.test_images, right = 0;
  float *each = (float *)malloc(count * (sizeof *each + 1));
  uint8_t *correct = (uint8_t *)(each + count);
  if (!each) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the evaluation");
  double sum = 0;
  int rc = device->ops->download(device, each, e->test_losses, count * sizeof *each, err) ||
           device->ops->download(device, correct, e->test_correct, count, err);
  for (uint32_t i = 0; i < count && !rc; i++) {
    sum += each[i];
    right += correct[i];
  }
  free(each);
  out->test_loss = sum / count;
  out->test_accuracy_ratio = (double)right / count;
  return rc ? -1 : 0;
}

int rl_training_report(rl_instance *instance, rl_report *out, rl_error *err) {
  rl_training *e = rl_training_of(instance);
  rl_train_state state;
  rl_report made = {(double)e->base.images, NAN, NAN, NAN, NAN, NAN};
  if (read_state(e, &state, err) || report_training(e, &state, &made, err) || report_test(e, &state, &made, err)) return -1;
  if (e->format.half) {
    made.loss_scale = state.scale.scale;
    made.skipped_steps = state.scale.skipped;
  }
  *out = made;
  return 0;
}

static int copy_kept(rl_training *e, void *to, const void *from, rl_error *err) {
  if (rl_cuda_ok(cudaMemcpyAsync(to, from, e->kept_bytes, cudaMemcpyDeviceToDevice, rl_training_stream(e)), "copying the state",
                 err))
    return -1;
  return rl_cuda_ok(cudaStreamSynchronize(rl_training_stream(e)), "copying the state", err);
}

int rl_training_save(rl_instance *instance, rl_error *err) {
  rl_training *e = rl_training_of(instance);
  rl_device *device = instance->device;
  if (!e->saved && device->ops->allocate(device, RL_MEMORY_WORKSPACE, e->kept_bytes, (void **)&e->saved, err)) return -1;
  return copy_kept(e, e->saved, e->kept, err);
}

int rl_training_restore(rl_instance *instance, rl_error *err) {
  rl_training *e = rl_training_of(instance);
  if (!e->saved) return rl_fail(err, RL_INPUT, 0, "nothing was saved");
  return copy_kept(e, e->kept, e->saved, err);
}

int rl_training_parameters(rl_train_instance *instance, float *weights, rl_error *err) {
  return download_parameters(rl_training_of(instance), rl_training_of(instance)->weights, weights, err);
}

int rl_training_set_parameters(rl_train_instance *instance, const float *weights, rl_error *err) {
  return upload_parameters(rl_training_of(instance), weights, err);
}

/* The stage of the last step. */
static const rl_stage *last_stage(const rl_training *e, const rl_train_state *state) {
  return &e->stages[state->last_batch == e->stages[RL_STEP].gather.batch ? RL_STEP : RL_TAIL];
}

int rl_training_gradients(rl_train_instance *instance, float *out, rl_error *err) {
  rl_training *e = rl_training_of(instance);
  rl_device *device = instance->base.device;
  rl_train_state state;
  void *flat = NULL;
  if (read_state(e, &state, err)) return -1;
  if (state.last_batch == 0) return rl_fail(err, RL_INPUT, 0, "no step was done yet");
  if (!e->d_conv2_weight) return rl_fail(err, RL_INPUT, 0, "nobody watched the gradients");
  rl_gradients last = last_stage(e, &state)->gradients;
  last.conv2_weight = e->d_conv2_weight;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, RL_PARAMETERS * sizeof(float), &flat, err)) return -1;
  int rc = rl_adam_gather(&last, e->state, (float *)flat, rl_training_stream(e), err) ||
           download_parameters(e, (const float *)flat, out, err);
  device->ops->release(device, flat);
  return rc ? -1 : 0;
}

int rl_training_view(rl_train_instance *instance, rl_training_tensors *tensors, rl_error *err) {
  rl_training *e = rl_training_of(instance);
  rl_train_state state;
  if (read_state(e, &state, err)) return -1;
  const bool whole = e->recipe->whole_epoch;
  *tensors = {e->format.channels_last,
              e->format.half,
              state.last_batch,
              whole ? e->shown.pooled1 : e->pooled1,
              e->pooled2,
              whole ? e->shown.codes1 : e->codes1,
              whole ? e->shown.codes2 : e->codes2,
              e->product2,
              e->d_pooled1,
              e->d_pooled2,
              e->d_fc1,
              1.0f / state.last_inverse_scale};
  return 0;
}
