/* Implements training_state.h: device memory of a training engine, and copies between it and arrays on the host in PyTorch's
 * layouts. */
#include "train/cuda/training_state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cuda_check.h"
#include "train/setup.h"

enum { STATE_BYTES = 256 }; /* size of rl_train_state with padding, which aligns the moments after it */
static_assert(sizeof(rl_train_state) <= STATE_BYTES, "the training state must fit into its part of the allocation");

cudaStream_t rl_training_stream(const rl_training_base *training) { return (cudaStream_t)training->base.base.device->stream; }

/* Returns the index in the engine's arrays of the parameter that has index i in PyTorch's layouts. If channels_last, conv2.weight
 * is [out][tap][in] instead of [out][in][tap], and the inputs of fc1.weight are in H,W,C order instead of C,H,W. */
static uint32_t parameter_index(const rl_training_base *training, uint32_t i) {
  if (!training->format.channels_last) return i;
  if (i >= rl_tensor_offsets[RL_CONV2_W] && i < rl_tensor_offsets[RL_CONV2_B]) {
    uint32_t offset = rl_tensor_offsets[RL_CONV2_W], tap = (i - offset) % 9, in = (i - offset) / 9 % RL_CONV1_CHANNELS,
             out = (i - offset) / 9 / RL_CONV1_CHANNELS;
    return offset + (out * 9 + tap) * RL_CONV1_CHANNELS + in;
  }
  if (i >= rl_tensor_offsets[RL_FC1_W] && i < rl_tensor_offsets[RL_FC1_B]) {
    const uint32_t pixels = RL_POOLED2_SIDE * RL_POOLED2_SIDE;
    uint32_t offset = rl_tensor_offsets[RL_FC1_W], pixel = (i - offset) % pixels, c = (i - offset) / pixels % RL_CONV2_CHANNELS,
             row = (i - offset) / RL_FC1_INPUTS;
    return offset + row * RL_FC1_INPUTS + pixel * RL_CONV2_CHANNELS + c;
  }
  return i;
}

static float *allocate_parameters(rl_error *err) {
  float *result = (float *)malloc(RL_PARAMETERS * sizeof *result);
  if (!result) rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the parameters");
  return result;
}

/* Copies an array of parameters, gradients or moments from the device to out[RL_PARAMETERS], in PyTorch's layouts. */
static int download_parameters(rl_training_base *training, const float *from, float *out, rl_error *err) {
  rl_device *device = training->base.base.device;
  float *device_order = allocate_parameters(err);
  if (!device_order || device->ops->download(device, device_order, from, RL_PARAMETERS * sizeof *device_order, err) < 0) {
    free(device_order);
    return -1;
  }
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) out[i] = device_order[parameter_index(training, i)];
  free(device_order);
  return 0;
}

/* Sets the weights on the device and their FP16 copies from weights[RL_PARAMETERS] in PyTorch's layouts. */
static int upload_parameters(rl_training_base *training, const float *weights, rl_error *err) {
  rl_device *device = training->base.base.device;
  float *device_order = allocate_parameters(err);
  if (!device_order) return -1;
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) device_order[parameter_index(training, i)] = weights[i];
  int rc = device->ops->upload(device, training->weights, device_order, RL_PARAMETERS * sizeof *device_order, err);
  free(device_order);
  rl_adam adam = rl_training_adam(training);
  if (rc || (training->fp16_weights && rl_adam_round_weights(&adam, rl_training_stream(training), err) < 0)) return -1;
  return rl_cuda_check(cudaStreamSynchronize(rl_training_stream(training)), "setting the parameters", err);
}

/* Writes the training state as it is before the first step. */
static int write_state(rl_training_base *training, rl_error *err) {
  const double beta1 = 0.9f, beta2 = 0.999f;
  rl_device *device = training->base.base.device;
  rl_train_state state = {};
  state.seed = (uint64_t)training->base.params.seed;
  state.beta1_power = beta1;
  state.beta2_power = beta2;
  state.step_size = (float)(training->base.params.learning_rate / (1.0 - beta1));
  state.rsqrt_bias_correction2 = (float)(1.0 / sqrt(1.0 - beta2));
  state.dynamic_loss_scale = training->format.fp16;
  state.loss_scale.scale = training->format.fp16 ? RL_LOSS_SCALE_START : 1.0f;
  state.inverse_loss_scale = state.last_inverse_loss_scale = 1.0f / state.loss_scale.scale;
  return device->ops->upload(device, training->state, &state, sizeof state, err);
}

int rl_training_reset(rl_instance *instance, rl_error *err) {
  rl_training_base *training = rl_training_base_of(instance);
  rl_device *device = instance->device;
  float *weights = allocate_parameters(err);
  if (!weights) return -1;
  rl_model_initialise((uint64_t)training->base.params.seed, weights);
  int rc = device->ops->fill(device, training->first_moment, 0, 2 * RL_PADDED_PARAMETERS * sizeof(float), err) < 0 ||
           write_state(training, err) < 0 || upload_parameters(training, weights, err) < 0;
  free(weights);
  return rc ? -1 : 0;
}

static int read_state(rl_training_base *training, rl_train_state *state, rl_error *err) {
  rl_device *device = training->base.base.device;
  return device->ops->download(device, state, training->state, sizeof *state, err);
}

static int read_losses(rl_train_instance *instance, float *out, rl_error *err) {
  rl_training_base *training = rl_training_base_of(instance);
  rl_device *device = instance->base.device;
  return device->ops->download(device, out, training->losses, instance->steps * sizeof *out, err);
}

/* Sets out->train_loss to the mean loss of the epoch's steps, if a step has run. */
static int report_training(rl_training_base *training, const rl_train_state *state, rl_iteration_results *out, rl_error *err) {
  if (state->step == 0) return 0;
  float *losses = (float *)malloc(training->base.steps * sizeof *losses);
  if (!losses) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the losses");
  int rc = read_losses(&training->base, losses, err);
  double sum = 0;
  for (uint32_t i = 0; i < state->step && !rc; i++) sum += losses[i];
  free(losses);
  out->train_loss = sum / state->step;
  return rc;
}

/* Sets the mean loss and the accuracy of the evaluation, if an evaluation has run. */
static int report_test(rl_training_base *training, const rl_train_state *state, rl_iteration_results *out, rl_error *err) {
  if (state->test_step == 0) return 0;
  rl_device *device = training->base.base.device;
  uint32_t count = training->base.test_images, correct_count = 0;
  float *losses = (float *)malloc(count * (sizeof *losses + 1));
  uint8_t *correct = (uint8_t *)(losses + count);
  if (!losses) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the evaluation");
  double sum = 0;
  int rc = device->ops->download(device, losses, training->test_losses, count * sizeof *losses, err) < 0 ||
           device->ops->download(device, correct, training->test_correct, count, err) < 0;
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
  rl_training_base *training = rl_training_base_of(instance);
  rl_train_state state;
  rl_iteration_results result = {(double)training->base.images, NAN, NAN, NAN, NAN, NAN};
  if (read_state(training, &state, err) < 0 || report_training(training, &state, &result, err) < 0 ||
      report_test(training, &state, &result, err) < 0)
    return -1;
  if (training->format.fp16) result.loss_scale = state.loss_scale.scale;
  result.skipped_steps = state.loss_scale.skipped;
  *out = result;
  return 0;
}

static int copy_mutable_state(rl_training_base *training, void *to, const void *from, rl_error *err) {
  if (rl_cuda_check(
          cudaMemcpyAsync(to, from, training->mutable_state_bytes, cudaMemcpyDeviceToDevice, rl_training_stream(training)),
          "copying the state", err) < 0)
    return -1;
  return rl_cuda_check(cudaStreamSynchronize(rl_training_stream(training)), "copying the state", err);
}

int rl_training_save(rl_instance *instance, rl_error *err) {
  rl_training_base *training = rl_training_base_of(instance);
  rl_device *device = instance->device;
  if (!training->saved_state &&
      device->ops->allocate(device, RL_MEMORY_WORKSPACE, training->mutable_state_bytes, (void **)&training->saved_state, err) < 0)
    return -1;
  return copy_mutable_state(training, training->saved_state, training->mutable_state, err);
}

int rl_training_restore(rl_instance *instance, rl_error *err) {
  rl_training_base *training = rl_training_base_of(instance);
  if (!training->saved_state) return rl_fail(err, RL_INPUT, 0, "no state was saved");
  return copy_mutable_state(training, training->mutable_state, training->saved_state, err);
}

static int read_parameters(rl_train_instance *instance, float *weights, rl_error *err) {
  return download_parameters(rl_training_base_of(instance), rl_training_base_of(instance)->weights, weights, err);
}

static int write_parameters(rl_train_instance *instance, const float *weights, rl_error *err) {
  return upload_parameters(rl_training_base_of(instance), weights, err);
}

static int read_moments(rl_train_instance *instance, float *first, float *second, rl_error *err) {
  rl_training_base *training = rl_training_base_of(instance);
  if (download_parameters(training, training->first_moment, first, err) < 0) return -1;
  return download_parameters(training, training->second_moment, second, err);
}

static int read_gradients(rl_train_instance *instance, float *out, rl_error *err) {
  rl_training_base *training = rl_training_base_of(instance);
  rl_device *device = training->base.base.device;
  rl_train_state state;
  rl_gradients gradients;
  void *flat = NULL;
  if (read_state(training, &state, err) < 0) return -1;
  if (state.last_batch == 0) return rl_fail(err, RL_INPUT, 0, "no step has run");
  if (training->ops->gradients(training, state.last_batch, &gradients, err) < 0) return -1;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, RL_PARAMETERS * sizeof(float), &flat, err) < 0) return -1;
  int rc = 0;
  if (rl_adam_gather_gradients(&gradients, training->state, (float *)flat, rl_training_stream(training), err) < 0 ||
      download_parameters(training, (const float *)flat, out, err) < 0)
    rc = -1;
  device->ops->release(device, flat);
  return rc;
}

int rl_training_expose_tensors(rl_train_instance *instance, rl_error *err) {
  rl_training_base *training = rl_training_base_of(instance);
  return training->ops->expose_tensors ? training->ops->expose_tensors(training, err) : 0;
}

int rl_training_read_tensors(rl_train_instance *instance, rl_training_tensors *tensors, rl_error *err) {
  rl_training_base *training = rl_training_base_of(instance);
  rl_train_state state;
  if (read_state(training, &state, err) < 0) return -1;
  *tensors = {training->format.channels_last, training->format.fp16, state.last_batch};
  tensors->pooled1_gradient_parts = 1;
  tensors->loss_scale = 1.0f / state.last_inverse_loss_scale;
  training->ops->get_tensors(training, tensors);
  return 0;
}

int rl_training_choices(rl_train_instance *instance, rl_training_choice choices[RL_TRAINING_CHOICES]) {
  rl_training_base *training = rl_training_base_of(instance);
  return training->ops->choices ? training->ops->choices(training, choices) : 0;
}

int rl_training_begin_epoch(void *arg, rl_stream stream, rl_error *err) {
  rl_training_base *training = rl_training_base_of(arg);
  return rl_epoch_begin(training->state, training->order, training->base.images, (cudaStream_t)stream, err);
}

int rl_training_begin_test(void *arg, rl_stream stream, rl_error *err) {
  uint32_t *step = &rl_training_base_of(arg)->state->test_step;
  return rl_cuda_check(cudaMemsetAsync(step, 0, sizeof *step, (cudaStream_t)stream), "starting the evaluation", err);
}

int rl_training_allocate(rl_training_base *training, const rl_training_buffer *buffers, size_t count, rl_error *err) {
  rl_device *device = training->base.base.device;
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

static int upload_dataset(rl_training_base *training, const rl_dataset *data, rl_error *err) {
  rl_device *device = training->base.base.device;
  size_t images = training->base.images, test_images = training->base.test_images;
  if (upload_new(device, data->train_images, images * RL_IMAGE_PIXELS, &training->train_images, err) < 0 ||
      upload_new(device, data->train_labels, images, &training->train_labels, err) < 0 ||
      upload_new(device, data->test_images, test_images * RL_IMAGE_PIXELS, &training->test_images, err) < 0 ||
      upload_new(device, data->test_labels, test_images, &training->test_labels, err) < 0 ||
      device->ops->allocate(device, RL_MEMORY_DATASET, images * sizeof *training->order, (void **)&training->order, err) < 0)
    return -1;
  return device->ops->fill(device, training->order, 0, images * sizeof *training->order, err);
}

static int load_dataset(rl_training_base *training, const rl_train_params *params, rl_error *err) {
  rl_dataset data = {};
  if (rl_train_set_up(&training->base, params, &data, err) < 0) return -1;
  int rc = upload_dataset(training, &data, err);
  rl_dataset_free(&data);
  return rc;
}

/* Allocates weights, FP16 copies, training state and moments in one allocation, and sets the pointers to them. */
static int allocate_mutable_state(rl_training_base *training, const rl_training_layout *layout, rl_error *err) {
  rl_device *device = training->base.base.device;
  const size_t floats = RL_PADDED_PARAMETERS * sizeof(float), moments = 2 * floats;
  const size_t fp16_bytes = layout->fp16_weights && training->format.fp16 ? RL_PADDED_PARAMETERS * sizeof(uint16_t) : 0;
  const size_t state_end = floats + fp16_bytes + STATE_BYTES;
  const size_t bytes = state_end + (layout->min_moment_bytes > moments ? layout->min_moment_bytes : moments);
  training->mutable_state_bytes = state_end + moments;
  if (device->ops->allocate(device, RL_MEMORY_WEIGHTS, bytes, (void **)&training->mutable_state, err) < 0) return -1;
  training->weights = (float *)training->mutable_state;
  training->fp16_weights = fp16_bytes ? training->mutable_state + floats : NULL;
  training->state = (rl_train_state *)(training->mutable_state + floats + fp16_bytes);
  training->first_moment = (float *)(training->mutable_state + state_end);
  training->second_moment = training->first_moment + RL_PADDED_PARAMETERS;
  return device->ops->fill(device, training->mutable_state, 0, training->mutable_state_bytes, err);
}

static int allocate_results(rl_training_base *training, rl_error *err) {
  const rl_training_buffer buffers[] = {
      {&training->losses, RL_MEMORY_ACTIVATIONS, training->base.steps * sizeof(float)},
      {&training->test_losses, RL_MEMORY_ACTIVATIONS, training->base.test_images * sizeof(float)},
      {&training->test_correct, RL_MEMORY_ACTIVATIONS, training->base.test_images},
  };
  return rl_training_allocate(training, buffers, sizeof buffers / sizeof *buffers, err);
}

int rl_training_base_open(rl_training_base *training, const rl_train_params *params, const rl_training_layout *layout,
                          rl_error *err) {
  training->base.losses = read_losses;
  training->base.parameters = read_parameters;
  training->base.gradients = read_gradients;
  training->base.set_parameters = write_parameters;
  training->base.moments = read_moments;
  training->base.base.deterministic = true;
  training->format = {layout->channels_last || params->precision != RL_FP32, params->precision == RL_FP16,
                      params->precision == RL_TF32};
  training->value_bytes = training->format.fp16 ? 2 : 4;
  if (load_dataset(training, params, err) < 0 || allocate_mutable_state(training, layout, err) < 0) return -1;
  return allocate_results(training, err);
}

void rl_training_base_close(rl_training_base *training) {
  rl_device *device = training->base.base.device;
  void *const memory[] = {training->train_images, training->train_labels,  training->test_images, training->test_labels,
                          training->order,        training->mutable_state, training->saved_state, training->losses,
                          training->test_losses,  training->test_correct};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) device->ops->release(device, memory[i]);
}
