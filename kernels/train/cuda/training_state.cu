/* See training_state.h. */
#include "train/cuda/training_state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cuda_check.h"
#include "train/setup.h"

enum { STATE_BYTES = 256 }; /* of rl_train_state, with padding that aligns what follows */
static_assert(sizeof(rl_train_state) <= STATE_BYTES, "the training state fits");

cudaStream_t rl_training_stream(const rl_training_base *e) { return (cudaStream_t)e->base.base.device->stream; }

/* Returns the index in the engine's order of parameter i of PyTorch's flat order. */
static uint32_t parameter_index(const rl_training_base *e, uint32_t i) {
  if (!e->format.channels_last) return i;
  if (i >= rl_tensor_offsets[RL_CONV2_W] && i < rl_tensor_offsets[RL_CONV2_B]) {
    uint32_t offset = rl_tensor_offsets[RL_CONV2_W], tap = (i - offset) % 9, c = (i - offset) / 9 % RL_C1,
             k = (i - offset) / 9 / RL_C1;
    return offset + (k * 9 + tap) * RL_C1 + c;
  }
  if (i >= rl_tensor_offsets[RL_FC1_W] && i < rl_tensor_offsets[RL_FC1_B]) {
    const uint32_t pixels = RL_POOLED2_SIDE * RL_POOLED2_SIDE;
    uint32_t offset = rl_tensor_offsets[RL_FC1_W], pixel = (i - offset) % pixels, c = (i - offset) / pixels % RL_C2,
             row = (i - offset) / RL_FC1_INPUTS;
    return offset + row * RL_FC1_INPUTS + pixel * RL_C2 + c;
  }
  return i;
}

static float *allocate_parameters(rl_error *err) {
  float *result = (float *)malloc(RL_PARAMETERS * sizeof *result);
  if (!result) rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the parameters");
  return result;
}

static int download_parameters(rl_training_base *e, const float *from, float *out, rl_error *err) {
  rl_device *device = e->base.base.device;
  float *device_order = allocate_parameters(err);
  if (!device_order || device->ops->download(device, device_order, from, RL_PARAMETERS * sizeof *device_order, err) < 0) {
    free(device_order);
    return -1;
  }
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) out[i] = device_order[parameter_index(e, i)];
  free(device_order);
  return 0;
}

static int upload_parameters(rl_training_base *e, const float *weights, rl_error *err) {
  rl_device *device = e->base.base.device;
  float *device_order = allocate_parameters(err);
  if (!device_order) return -1;
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) device_order[parameter_index(e, i)] = weights[i];
  int rc = device->ops->upload(device, e->weights, device_order, RL_PARAMETERS * sizeof *device_order, err);
  free(device_order);
  rl_adam adam = rl_training_adam(e);
  if (rc || (e->fp16_weights && rl_adam_round_weights(&adam, rl_training_stream(e), err) < 0)) return -1;
  return rl_cuda_check(cudaStreamSynchronize(rl_training_stream(e)), "setting the parameters", err);
}

static int write_state(rl_training_base *e, rl_error *err) {
  const double beta1 = 0.9f, beta2 = 0.999f;
  rl_device *device = e->base.base.device;
  rl_train_state state = {};
  state.seed = (uint64_t)e->base.params.seed;
  state.beta1_power = beta1;
  state.beta2_power = beta2;
  state.step_size = (float)(e->base.params.learning_rate / (1.0 - beta1));
  state.rsqrt_bias_correction2 = (float)(1.0 / sqrt(1.0 - beta2));
  state.dynamic_loss_scale = e->format.fp16;
  state.loss_scale.scale = e->format.fp16 ? RL_LOSS_SCALE_START : 1.0f;
  state.inverse_loss_scale = state.last_inverse_loss_scale = 1.0f / state.loss_scale.scale;
  return device->ops->upload(device, e->state, &state, sizeof state, err);
}

int rl_training_reset(rl_instance *instance, rl_error *err) {
  rl_training_base *e = rl_training_base_of(instance);
  rl_device *device = instance->device;
  float *weights = allocate_parameters(err);
  if (!weights) return -1;
  rl_model_initialise((uint64_t)e->base.params.seed, weights);
  int rc = device->ops->zero(device, e->first_moment, 2 * RL_PADDED_PARAMETERS * sizeof(float), err) < 0 ||
           write_state(e, err) < 0 || upload_parameters(e, weights, err) < 0;
  free(weights);
  return rc ? -1 : 0;
}

static int read_state(rl_training_base *e, rl_train_state *state, rl_error *err) {
  rl_device *device = e->base.base.device;
  return device->ops->download(device, state, e->state, sizeof *state, err);
}

static int read_losses(rl_train_instance *instance, float *out, rl_error *err) {
  rl_training_base *e = rl_training_base_of(instance);
  rl_device *device = instance->base.device;
  return device->ops->download(device, out, e->losses, instance->steps * sizeof *out, err);
}

static int report_training(rl_training_base *e, const rl_train_state *state, rl_iteration_results *out, rl_error *err) {
  if (state->step == 0) return 0;
  float *losses = (float *)malloc(e->base.steps * sizeof *losses);
  if (!losses) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the losses");
  int rc = read_losses(&e->base, losses, err);
  double sum = 0;
  for (uint32_t i = 0; i < state->step && !rc; i++) sum += losses[i];
  free(losses);
  out->train_loss = sum / state->step;
  return rc;
}

static int report_test(rl_training_base *e, const rl_train_state *state, rl_iteration_results *out, rl_error *err) {
  if (state->test_step == 0) return 0;
  rl_device *device = e->base.base.device;
  uint32_t count = e->base.test_images, correct_count = 0;
  float *losses = (float *)malloc(count * (sizeof *losses + 1));
  uint8_t *correct = (uint8_t *)(losses + count);
  if (!losses) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the evaluation");
  double sum = 0;
  int rc = device->ops->download(device, losses, e->test_losses, count * sizeof *losses, err) < 0 ||
           device->ops->download(device, correct, e->test_correct, count, err) < 0;
  for (uint32_t i = 0; i < count && !rc; i++) {
    sum += losses[i];
    correct_count += correct[i];
  }
  free(losses);
  out->test_loss = sum / count;
  out->test_accuracy_ratio = (double)correct_count / count;
  return rc ? -1 : 0;
}

int rl_training_read_results(rl_instance *instance, rl_iteration_results *out, rl_error *err) {
  rl_training_base *e = rl_training_base_of(instance);
  rl_train_state state;
  rl_iteration_results result = {(double)e->base.images, NAN, NAN, NAN, NAN, NAN};
  if (read_state(e, &state, err) < 0 || report_training(e, &state, &result, err) < 0 || report_test(e, &state, &result, err) < 0)
    return -1;
  if (e->format.fp16) {
    result.loss_scale = state.loss_scale.scale;
    result.skipped_steps = state.loss_scale.skipped;
  }
  *out = result;
  return 0;
}

static int copy_mutable_state(rl_training_base *e, void *to, const void *from, rl_error *err) {
  if (rl_cuda_check(cudaMemcpyAsync(to, from, e->mutable_state_bytes, cudaMemcpyDeviceToDevice, rl_training_stream(e)),
                    "copying the state", err) < 0)
    return -1;
  return rl_cuda_check(cudaStreamSynchronize(rl_training_stream(e)), "copying the state", err);
}

int rl_training_save(rl_instance *instance, rl_error *err) {
  rl_training_base *e = rl_training_base_of(instance);
  rl_device *device = instance->device;
  if (!e->saved_state &&
      device->ops->allocate(device, RL_MEMORY_WORKSPACE, e->mutable_state_bytes, (void **)&e->saved_state, err) < 0)
    return -1;
  return copy_mutable_state(e, e->saved_state, e->mutable_state, err);
}

int rl_training_restore(rl_instance *instance, rl_error *err) {
  rl_training_base *e = rl_training_base_of(instance);
  if (!e->saved_state) return rl_fail(err, RL_INPUT, 0, "no state was saved");
  return copy_mutable_state(e, e->mutable_state, e->saved_state, err);
}

static int read_parameters(rl_train_instance *instance, float *weights, rl_error *err) {
  return download_parameters(rl_training_base_of(instance), rl_training_base_of(instance)->weights, weights, err);
}

static int write_parameters(rl_train_instance *instance, const float *weights, rl_error *err) {
  return upload_parameters(rl_training_base_of(instance), weights, err);
}

static int read_gradients(rl_train_instance *instance, float *out, rl_error *err) {
  rl_training_base *e = rl_training_base_of(instance);
  rl_device *device = e->base.base.device;
  rl_train_state state;
  rl_gradients gradients;
  void *flat = NULL;
  if (read_state(e, &state, err) < 0) return -1;
  if (state.last_batch == 0) return rl_fail(err, RL_INPUT, 0, "no step has run");
  if (e->ops->gradients(e, state.last_batch, &gradients, err) < 0) return -1;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, RL_PARAMETERS * sizeof(float), &flat, err) < 0) return -1;
  int rc = 0;
  if (rl_adam_gather_gradients(&gradients, e->state, (float *)flat, rl_training_stream(e), err) < 0 ||
      download_parameters(e, (const float *)flat, out, err) < 0)
    rc = -1;
  device->ops->release(device, flat);
  return rc;
}

int rl_training_expose_tensors(rl_train_instance *instance, rl_error *err) {
  rl_training_base *e = rl_training_base_of(instance);
  return e->ops->expose_tensors ? e->ops->expose_tensors(e, err) : 0;
}

int rl_training_view(rl_train_instance *instance, rl_training_tensors *tensors, rl_error *err) {
  rl_training_base *e = rl_training_base_of(instance);
  rl_train_state state;
  if (read_state(e, &state, err) < 0) return -1;
  *tensors = {e->format.channels_last, e->format.fp16, state.last_batch};
  tensors->loss_scale = 1.0f / state.last_inverse_loss_scale;
  e->ops->get_tensors(e, tensors);
  return 0;
}

int rl_training_choices(rl_train_instance *instance, rl_training_choice choices[RL_TRAINING_CHOICES]) {
  rl_training_base *e = rl_training_base_of(instance);
  return e->ops->choices ? e->ops->choices(e, choices) : 0;
}

int rl_training_begin_epoch(void *arg, rl_stream stream, rl_error *err) {
  rl_training_base *e = rl_training_base_of(arg);
  return rl_epoch_begin(e->state, e->order, e->base.images, (cudaStream_t)stream, err);
}

int rl_training_begin_test(void *arg, rl_stream stream, rl_error *err) {
  uint32_t *step = &rl_training_base_of(arg)->state->test_step;
  return rl_cuda_check(cudaMemsetAsync(step, 0, sizeof *step, (cudaStream_t)stream), "starting the evaluation", err);
}

int rl_training_allocate(rl_training_base *e, const rl_training_buffer *buffers, size_t count, rl_error *err) {
  rl_device *device = e->base.base.device;
  for (size_t i = 0; i < count; i++) {
    void **to = (void **)buffers[i].to;
    if (*to || buffers[i].bytes == 0) continue;
    if (device->ops->allocate(device, buffers[i].purpose, buffers[i].bytes, to, err) < 0) return -1;
  }
  return 0;
}

static int upload_new(rl_device *device, const void *from, size_t bytes, uint8_t **to, rl_error *err) {
  if (device->ops->allocate(device, RL_MEMORY_DATASET, bytes, (void **)to, err) < 0) return -1;
  return device->ops->upload(device, *to, from, bytes, err);
}

static int upload_dataset(rl_training_base *e, const rl_dataset *data, rl_error *err) {
  rl_device *device = e->base.base.device;
  size_t images = e->base.images, test_images = e->base.test_images;
  if (upload_new(device, data->train_images, images * RL_IMAGE_PIXELS, &e->train_images, err) < 0 ||
      upload_new(device, data->train_labels, images, &e->train_labels, err) < 0 ||
      upload_new(device, data->test_images, test_images * RL_IMAGE_PIXELS, &e->test_images, err) < 0 ||
      upload_new(device, data->test_labels, test_images, &e->test_labels, err) < 0 ||
      device->ops->allocate(device, RL_MEMORY_DATASET, images * sizeof *e->order, (void **)&e->order, err) < 0)
    return -1;
  return device->ops->zero(device, e->order, images * sizeof *e->order, err);
}

static int load_dataset(rl_training_base *e, const rl_train_params *params, rl_error *err) {
  rl_dataset data = {};
  if (rl_train_setup(&e->base, params, &data, err) < 0) return -1;
  int rc = upload_dataset(e, &data, err);
  rl_dataset_free(&data);
  return rc;
}

/* Weights, FP16 copies, state, moments, one after the other. */
static int allocate_mutable_state(rl_training_base *e, const rl_training_layout *layout, rl_error *err) {
  rl_device *device = e->base.base.device;
  const size_t floats = RL_PADDED_PARAMETERS * sizeof(float), moments = 2 * floats;
  const size_t fp16_bytes = layout->fp16_weights && e->format.fp16 ? RL_PADDED_PARAMETERS * sizeof(uint16_t) : 0;
  const size_t front = floats + fp16_bytes + STATE_BYTES;
  const size_t bytes = front + (layout->min_moment_bytes > moments ? layout->min_moment_bytes : moments);
  e->mutable_state_bytes = front + moments;
  if (device->ops->allocate(device, RL_MEMORY_WEIGHTS, bytes, (void **)&e->mutable_state, err) < 0) return -1;
  e->weights = (float *)e->mutable_state;
  e->fp16_weights = fp16_bytes ? e->mutable_state + floats : NULL;
  e->state = (rl_train_state *)(e->mutable_state + floats + fp16_bytes);
  e->first_moment = (float *)(e->mutable_state + front);
  e->second_moment = e->first_moment + RL_PADDED_PARAMETERS;
  return device->ops->zero(device, e->mutable_state, e->mutable_state_bytes, err);
}

static int allocate_results(rl_training_base *e, rl_error *err) {
  const rl_training_buffer buffers[] = {
      {&e->losses, RL_MEMORY_ACTIVATIONS, e->base.steps * sizeof(float)},
      {&e->test_losses, RL_MEMORY_ACTIVATIONS, e->base.test_images * sizeof(float)},
      {&e->test_correct, RL_MEMORY_ACTIVATIONS, e->base.test_images},
  };
  return rl_training_allocate(e, buffers, sizeof buffers / sizeof *buffers, err);
}

int rl_training_base_open(rl_training_base *e, const rl_train_params *params, const rl_training_layout *layout, rl_error *err) {
  e->base.losses = read_losses;
  e->base.parameters = read_parameters;
  e->base.gradients = read_gradients;
  e->base.set_parameters = write_parameters;
  e->base.base.deterministic = true;
  e->format = {layout->channels_last || params->precision != RL_FP32, params->precision == RL_FP16, params->precision == RL_TF32};
  e->value_bytes = e->format.fp16 ? 2 : 4;
  if (load_dataset(e, params, err) < 0 || allocate_mutable_state(e, layout, err) < 0) return -1;
  return allocate_results(e, err);
}

void rl_training_base_close(rl_training_base *e) {
  rl_device *device = e->base.base.device;
  void *const memory[] = {e->train_images,  e->train_labels, e->test_images, e->test_labels, e->order,
                          e->mutable_state, e->saved_state,  e->losses,      e->test_losses, e->test_correct};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) device->ops->release(device, memory[i]);
}
