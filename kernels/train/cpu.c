/* Implements cpu.h: the parts of a training run on a CPU that do not depend on the engine. n is the number of images in the
 * batch. */
#include "train/cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"
#include "train/oracle.h"
#include "train/setup.h"

int rl_cpu_allocate(rl_cpu_train *train, rl_memory_purpose purpose, size_t bytes, void **memory, rl_error *err) {
  rl_device *device = train->instance.base.device;
  if (train->allocation_count == RL_CPU_MAX_ALLOCATIONS)
    return rl_fail(err, RL_ERRNO, 0, "an engine makes more than %d allocations", RL_CPU_MAX_ALLOCATIONS);
  if (device->ops->allocate(device, purpose, bytes, memory, err) < 0) return -1;
  train->allocations[train->allocation_count++] = *memory;
  return device->ops->fill(device, *memory, 0, bytes, err);
}

/* --- layers that all engines share ----------------------------------------------------------------------------------- */

static void begin_epoch(rl_cpu_train *train, uint32_t n) {
  (void)n;
  if (train->ops->on_start != NULL) train->ops->on_start(train);
  if (train->state.step != 0) train->state.epoch++;
  train->state.step = 0;
}

static void begin_evaluation(rl_cpu_train *train, uint32_t n) {
  (void)n;
  if (train->ops->on_start != NULL) train->ops->on_start(train);
  train->state.test_position = train->state.test_correct = 0;
  train->state.test_loss = 0;
}

static void normalise(const rl_cpu_train *train, const uint8_t *image, float *x) {
  for (int i = 0; i < RL_IMAGE_PIXELS; i++) {
    float value = ((float)image[i] / 255.0f - 0.1307f) / 0.3081f;
    x[i] = train->fp16 ? rl_half_to_float(rl_half_from_float(value)) : value;
  }
}

/* Loads the n images of the current training step, normalised, and their labels. */
static void gather(rl_cpu_train *train, uint32_t n) {
  const rl_train_params *params = &train->instance.params;
  uint64_t key = rl_shuffle_key((uint64_t)params->seed, train->state.epoch);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t position = train->state.step * (uint32_t)params->batch_size + i;
    uint32_t image = rl_permute(position, train->instance.images, key);
    normalise(train, train->train_images + (size_t)image * RL_IMAGE_PIXELS, train->x + (size_t)i * RL_IMAGE_PIXELS);
    train->labels[i] = train->train_labels[image];
  }
}

/* Loads the next n test images, normalised, and their labels. */
static void gather_test(rl_cpu_train *train, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    uint32_t image = train->state.test_position + i;
    normalise(train, train->test_images + (size_t)image * RL_IMAGE_PIXELS, train->x + (size_t)i * RL_IMAGE_PIXELS);
    train->labels[i] = train->test_labels[image];
  }
  train->state.test_position += n;
}

/* Returns the sum of the images' losses, computed in double, and sets logits_gradient to the gradient of scale × mean loss.
 * Unless `correct` is NULL, adds the number of correctly classified images to *correct. */
static double batch_loss(rl_cpu_train *train, uint32_t n, double scale, uint32_t *correct) {
  double sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    double logits[RL_CLASSES], gradient[RL_CLASSES];
    for (int c = 0; c < RL_CLASSES; c++) logits[c] = train->logits[i * RL_CLASSES + c];
    sum += rl_oracle_loss(1, logits, &train->labels[i], scale / n, gradient, correct);
    for (int c = 0; c < RL_CLASSES; c++) {
      float value = (float)gradient[c];
      train->logits_gradient[i * RL_CLASSES + c] = train->fp16 ? rl_half_to_float(rl_half_from_float(value)) : value;
    }
  }
  return sum;
}

static void loss(rl_cpu_train *train, uint32_t n) {
  train->state.gradient_scale = train->fp16 ? train->state.loss_scale.scale : 1;
  train->step_losses[train->state.step] = (float)(batch_loss(train, n, train->state.gradient_scale, NULL) / n);
}

static void loss_test(rl_cpu_train *train, uint32_t n) {
  train->state.test_loss += batch_loss(train, n, 1, &train->state.test_correct);
}

/* Ends a step: updates the weights, unless a gradient overflowed in fp16. */
static void adam(rl_cpu_train *train, uint32_t n) {
  (void)n;
  bool is_finite = true;
  if (train->fp16) {
    is_finite = train->ops->all_finite(train);
    rl_loss_scale_update(&train->state.loss_scale, is_finite);
  }
  if (is_finite)
    train->ops->adam(train, ++train->state.applied_steps, train->instance.params.learning_rate, train->state.gradient_scale);
  train->state.step++;
}

static const rl_cpu_layer begin_epoch_layer = {"begin_epoch", begin_epoch}, gather_layer = {"gather", gather},
                          loss_layer = {"loss", loss}, adam_layer = {"adam", adam},
                          begin_evaluation_layer = {"begin_evaluation", begin_evaluation},
                          gather_test_layer = {"gather_test", gather_test}, loss_test_layer = {"loss_test", loss_test};

/* --- the sequences of an epoch and of an evaluation ------------------------------------------------------------------ */

static int enqueue(void *argument, rl_stream stream, rl_error *err) {
  (void)stream;
  (void)err;
  const rl_cpu_launch_argument *launch = argument;
  launch->layer->run(launch->train, launch->n);
  return 0;
}

typedef struct sequence_builder {
  rl_cpu_train *train;
  size_t launches, sequences; /* launches and sequences added so far */
  size_t first_launch;        /* first launch of the current sequence */
} sequence_builder;

static void add_launch(sequence_builder *builder, const char *range, const rl_cpu_layer *layer, uint32_t n) {
  rl_cpu_launch_argument *argument = &builder->train->launch_arguments[builder->launches];
  *argument = (rl_cpu_launch_argument){builder->train, layer, n};
  builder->train->launches[builder->launches++] = (rl_launch){layer->name, range, enqueue, argument};
}

static void end_sequence(sequence_builder *builder, const char *name, uint64_t repeat) {
  builder->train->sequences[builder->sequences++] =
      (rl_sequence){name, &builder->train->launches[builder->first_launch], builder->launches - builder->first_launch, repeat};
  builder->first_launch = builder->launches;
}

static void add_step(sequence_builder *builder, const char *name, uint32_t n, uint64_t repeat) {
  if (n == 0 || repeat == 0) return;
  add_launch(builder, "data", &gather_layer, n);
  for (const rl_cpu_layer *layer = builder->train->ops->forward; layer->name != NULL; layer++)
    add_launch(builder, "forward", layer, n);
  add_launch(builder, "forward", &loss_layer, n);
  for (const rl_cpu_layer *layer = builder->train->ops->backward; layer->name != NULL; layer++)
    add_launch(builder, "backward", layer, n);
  add_launch(builder, "optimizer", &adam_layer, n);
  end_sequence(builder, name, repeat);
}

static void add_evaluation(sequence_builder *builder, const char *name, uint32_t n, uint64_t repeat) {
  if (n == 0 || repeat == 0) return;
  add_launch(builder, "data", &gather_test_layer, n);
  for (const rl_cpu_layer *layer = builder->train->ops->forward; layer->name != NULL; layer++)
    add_launch(builder, "forward", layer, n);
  add_launch(builder, "forward", &loss_test_layer, n);
  end_sequence(builder, name, repeat);
}

static void build_sequences(rl_cpu_train *train) {
  const rl_train_instance *instance = &train->instance;
  uint32_t batch = (uint32_t)instance->params.batch_size;
  sequence_builder builder = {.train = train};
  add_launch(&builder, "data", &begin_epoch_layer, 0);
  end_sequence(&builder, "begin", 1);
  add_step(&builder, "step", batch, instance->images / batch);
  add_step(&builder, "tail", instance->tail, 1);
  train->instance.base.iteration = (rl_sequence_list){"epoch", train->sequences, builder.sequences};
  train->instance.base.step_sequence = 1;
  size_t first = builder.sequences;
  add_launch(&builder, "data", &begin_evaluation_layer, 0);
  end_sequence(&builder, "begin", 1);
  add_evaluation(&builder, "evaluate", batch, instance->test_images / batch);
  add_evaluation(&builder, "evaluate_tail", instance->test_images % batch, 1);
  train->instance.base.evaluation = (rl_sequence_list){"evaluation", train->sequences + first, builder.sequences - first};
}

/* --- the instance ------------------------------------------------------------------------------------------------------ */

static uint32_t parameter_index(const rl_cpu_train *train, uint32_t parameter) {
  return train->ops->parameter_index != NULL ? train->ops->parameter_index(parameter) : parameter;
}

static int set_parameters(rl_train_instance *instance, const float *weights, rl_error *err) {
  (void)err;
  rl_cpu_train *train = (rl_cpu_train *)instance;
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) train->weights[parameter_index(train, i)] = weights[i];
  if (train->ops->on_weights_changed != NULL) train->ops->on_weights_changed(train);
  return 0;
}

static int get_parameters(rl_train_instance *instance, float *weights, rl_error *err) {
  (void)err;
  const rl_cpu_train *train = (const rl_cpu_train *)instance;
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) weights[i] = train->weights[parameter_index(train, i)];
  return 0;
}

static int get_moments(rl_train_instance *instance, float *first, float *second, rl_error *err) {
  (void)err;
  const rl_cpu_train *train = (const rl_cpu_train *)instance;
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) {
    first[i] = train->first_moment[parameter_index(train, i)];
    second[i] = train->second_moment[parameter_index(train, i)];
  }
  return 0;
}

static int get_gradients(rl_train_instance *instance, float *gradients, rl_error *err) {
  (void)err;
  const rl_cpu_train *train = (const rl_cpu_train *)instance;
  for (uint32_t i = 0; i < RL_PARAMETERS; i++)
    gradients[i] = train->gradients[parameter_index(train, i)] / train->state.gradient_scale;
  return 0;
}

static int get_losses(rl_train_instance *instance, float *losses, rl_error *err) {
  (void)err;
  memcpy(losses, ((const rl_cpu_train *)instance)->step_losses, instance->steps * sizeof *losses);
  return 0;
}

static int reset(rl_instance *instance, rl_error *err) {
  rl_cpu_train *train = (rl_cpu_train *)instance;
  float *initial = malloc(sizeof *initial * RL_PARAMETERS);
  if (initial == NULL) return rl_fail_errno(err, "memory for the initial weights");
  rl_model_initialise((uint64_t)train->instance.params.seed, initial);
  memset(train->first_moment, 0, sizeof *train->first_moment * RL_PARAMETERS);
  memset(train->second_moment, 0, sizeof *train->second_moment * RL_PARAMETERS);
  train->state = (rl_cpu_state){.loss_scale = {.scale = RL_LOSS_SCALE_START}, .gradient_scale = 1, .test_loss = NAN};
  int rc = set_parameters(&train->instance, initial, err);
  free(initial);
  return rc;
}

static int read_results(rl_instance *instance, rl_iteration_results *out, rl_error *err) {
  (void)err;
  const rl_cpu_train *train = (const rl_cpu_train *)instance;
  const rl_cpu_state *state = &train->state;
  double sum = 0;
  for (uint32_t i = 0; i < state->step; i++) sum += train->step_losses[i];
  *out = (rl_iteration_results){
      .images = train->instance.images,
      .train_loss = state->step > 0 ? sum / state->step : NAN,
      .test_loss = state->test_position > 0 ? state->test_loss / state->test_position : NAN,
      .test_accuracy_ratio = state->test_position > 0 ? (double)state->test_correct / state->test_position : NAN,
      .loss_scale = train->fp16 ? state->loss_scale.scale : NAN,
      .skipped_steps = state->loss_scale.skipped};
  return 0;
}

static int save(rl_instance *instance, rl_error *err) {
  rl_cpu_train *train = (rl_cpu_train *)instance;
  if (train->saved_arrays == NULL) train->saved_arrays = malloc(3 * sizeof(float) * RL_PARAMETERS);
  if (train->saved_arrays == NULL) return rl_fail_errno(err, "memory for a saved state");
  const float *const arrays[3] = {train->weights, train->first_moment, train->second_moment};
  for (int i = 0; i < 3; i++) memcpy(train->saved_arrays + i * RL_PARAMETERS, arrays[i], sizeof(float) * RL_PARAMETERS);
  train->saved_state = train->state;
  return 0;
}

static int restore(rl_instance *instance, rl_error *err) {
  rl_cpu_train *train = (rl_cpu_train *)instance;
  if (train->saved_arrays == NULL) return rl_fail(err, RL_ERRNO, 0, "no state was saved");
  float *const arrays[3] = {train->weights, train->first_moment, train->second_moment};
  for (int i = 0; i < 3; i++) memcpy(arrays[i], train->saved_arrays + i * RL_PARAMETERS, sizeof(float) * RL_PARAMETERS);
  train->state = train->saved_state;
  if (train->ops->on_weights_changed != NULL) train->ops->on_weights_changed(train);
  return 0;
}

static void close_train(rl_instance *instance) {
  rl_cpu_train *train = (rl_cpu_train *)instance;
  rl_device *device = instance->device;
  while (train->allocation_count > 0) device->ops->release(device, train->allocations[--train->allocation_count]);
  rl_thread_pool_close(train->thread_pool);
  free(train->saved_arrays);
  free(train);
}

static const rl_instance_ops operations = {
    .reset = reset, .read_results = read_results, .save = save, .restore = restore, .close = close_train};

static int copy_data(rl_cpu_train *train, rl_dataset *data, rl_error *err) {
  rl_train_instance *instance = &train->instance;
  const struct {
    uint8_t **copy;
    const uint8_t *source;
    size_t bytes;
  } copies[] = {{&train->train_images, data->train_images, (size_t)instance->images * RL_IMAGE_PIXELS},
                {&train->train_labels, data->train_labels, instance->images},
                {&train->test_images, data->test_images, (size_t)instance->test_images * RL_IMAGE_PIXELS},
                {&train->test_labels, data->test_labels, instance->test_images}};
  rl_device *device = instance->base.device;
  for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
    if (rl_cpu_allocate(train, RL_MEMORY_DATASET, copies[i].bytes, (void **)copies[i].copy, err) < 0 ||
        device->ops->upload(device, *copies[i].copy, copies[i].source, copies[i].bytes, err) < 0)
      return -1;
  return 0;
}

static int allocate_shared(rl_cpu_train *train, rl_error *err) {
  size_t batch = (size_t)train->instance.params.batch_size;
  const struct {
    void *pointer; /* address of the pointer to set */
    rl_memory_purpose purpose;
    size_t bytes;
  } allocations[] = {{&train->weights, RL_MEMORY_WEIGHTS, sizeof(float) * RL_PARAMETERS},
                     {&train->first_moment, RL_MEMORY_WEIGHTS, sizeof(float) * RL_PARAMETERS},
                     {&train->second_moment, RL_MEMORY_WEIGHTS, sizeof(float) * RL_PARAMETERS},
                     {&train->gradients, RL_MEMORY_WEIGHTS, sizeof(float) * RL_PARAMETERS},
                     {&train->x, RL_MEMORY_ACTIVATIONS, sizeof(float) * batch * RL_IMAGE_PIXELS},
                     {&train->logits, RL_MEMORY_ACTIVATIONS, sizeof(float) * batch * RL_CLASSES},
                     {&train->logits_gradient, RL_MEMORY_ACTIVATIONS, sizeof(float) * batch * RL_CLASSES},
                     {&train->labels, RL_MEMORY_ACTIVATIONS, batch},
                     {&train->step_losses, RL_MEMORY_WORKSPACE, sizeof(float) * train->instance.steps}};
  for (size_t i = 0; i < sizeof allocations / sizeof *allocations; i++)
    if (rl_cpu_allocate(train, allocations[i].purpose, allocations[i].bytes, allocations[i].pointer, err) < 0) return -1;
  return 0;
}

static int initialise(rl_cpu_train *train, rl_error *err) {
  rl_dataset data = {0};
  rl_train_params params = train->instance.params;
  if (rl_train_set_up(&train->instance, &params, &data, err) < 0) return -1;
  int rc = copy_data(train, &data, err);
  rl_dataset_free(&data);
  if (rc < 0 || allocate_shared(train, err) < 0) return -1;
  train->thread_pool = rl_thread_pool_open(train->ops->threaded ? train->instance.base.device->threads : 1, err);
  if (train->thread_pool == NULL || train->ops->prepare(train, err) < 0) return -1;
  build_sequences(train);
  return reset(&train->instance.base, err);
}

int rl_cpu_open(const rl_cpu_engine_ops *ops, rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  rl_cpu_train *train = calloc(1, ops->size);
  if (train == NULL) return rl_fail_errno(err, "memory for an engine's instance");
  train->ops = ops;
  train->instance = (rl_train_instance){.base = {.ops = &operations, .device = device, .deterministic = true},
                                        .params = *(const rl_train_params *)params,
                                        .losses = get_losses,
                                        .parameters = get_parameters,
                                        .gradients = get_gradients,
                                        .set_parameters = set_parameters,
                                        .moments = get_moments};
  train->fp16 = train->instance.params.precision == RL_FP16;
  if (initialise(train, err) < 0) {
    close_train(&train->instance.base);
    return -1;
  }
  *instance = &train->instance.base;
  return 0;
}
