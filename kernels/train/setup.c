/* Implements setup.h: loads the data set and derives the sizes of an epoch. */
#include "train/setup.h"

#include <stdio.h>
#include <stdlib.h>

int rl_train_set_up(rl_train_instance *instance, const rl_train_params *params, rl_dataset *dataset, rl_error *err) {
  enum { SMOKE_TEST_IMAGES = 5000 };
  if (rl_dataset_load(params->dataset, getenv("ROOFLINED_MNIST_DIR"), dataset, err) < 0) return -1;
  uint32_t requested = params->max_images > 0 ? (uint32_t)params->max_images : dataset->train_count;
  uint32_t images = requested < dataset->train_count ? requested : dataset->train_count;
  uint32_t batch = (uint32_t)params->batch_size;
  instance->params = *params;
  instance->images = images;
  instance->steps = (images + batch - 1) / batch;
  instance->tail = images % batch;
  instance->test_images = images < SMOKE_TEST_IMAGES && images < dataset->test_count ? images : dataset->test_count;
  rl_instance *base = &instance->base;
  snprintf(base->dataset, sizeof base->dataset, "%s", dataset->name);
  snprintf(base->dataset_sha256, sizeof base->dataset_sha256, "%s", dataset->sha256);
  base->images = images;
  base->steps = instance->steps;
  base->trained_parameters = RL_PARAMETERS;
  base->partial_dataset = images < dataset->train_count;
  return 0;
}
