/* Helpers for the tests of the CPU training engines: they write a small data set, open an engine, run it, and compare arrays. */
#ifndef RL_TESTS_ENGINES_H
#define RL_TESTS_ENGINES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "temporary_folder.h"
#include "train/model.h"

/* Fails the test with the error's message unless rc is 0. */
static inline void assert_ok(int rc, const rl_error *err) {
  if (rc != 0) fail_msg("%s: %s", rl_domain_name(err->domain), err->message);
}

/* Writes `count` items, at most 65535, to an IDX file in the folder. dimensions: 3 for images, 1 for labels. */
static inline void write_idx(const char *folder, const char *name, uint32_t count, const uint8_t *items, int dimensions) {
  char path[256];
  const uint8_t header[16] = {0, 0, 8, (uint8_t)dimensions, 0, 0, (uint8_t)(count >> 8), (uint8_t)count, 0, 0, 0, 28, 0,
                              0, 0, 28};
  snprintf(path, sizeof path, "%s/%s-idx%d-ubyte", folder, name, dimensions);
  FILE *file = fopen(path, "wb");
  size_t header_size = dimensions == 3 ? 16 : 8, size = (size_t)count * (dimensions == 3 ? RL_IMAGE_PIXELS : 1);
  assert_true(file != NULL && fwrite(header, 1, header_size, file) == header_size && fwrite(items, 1, size, file) == size);
  assert_int_equal(fclose(file), 0);
}

/* Writes synthetic digits as IDX files to a new folder, and sets ROOFLINED_MNIST_DIR to it. A small data set loads fast. */
static inline void use_few_digits(char folder[64], uint32_t train_images, uint32_t test_images) {
  rl_dataset data;
  rl_error err = {0};
  assert_ok(rl_dataset_render(1, train_images, test_images, &data, &err), &err);
  strcpy(folder, "/tmp/rl_digits_XXXXXX");
  assert_non_null(mkdtemp(folder));
  write_idx(folder, "train-images", train_images, data.train_images, 3);
  write_idx(folder, "train-labels", train_images, data.train_labels, 1);
  write_idx(folder, "t10k-images", test_images, data.test_images, 3);
  write_idx(folder, "t10k-labels", test_images, data.test_labels, 1);
  rl_dataset_free(&data);
  setenv("ROOFLINED_MNIST_DIR", folder, 1);
}

/* Removes the folder that use_few_digits made. */
static inline void remove_digits(const char *folder) { remove_folder(folder); }

/* Returns the default parameters, changed to this precision and batch size and to the data set of use_few_digits. images: number
 * of training images in an epoch; 0: all. */
static inline rl_train_params small_params(int precision, int64_t batch, int64_t images) {
  rl_train_params params;
  rl_mnist_cnn.defaults(&params);
  strcpy(params.dataset, "files");
  params.precision = precision;
  params.batch_size = batch;
  params.max_images = images;
  return params;
}

static inline rl_train_instance *open_train(const char *engine, rl_device *device, const rl_train_params *params) {
  rl_error err = {0};
  rl_instance *instance = NULL;
  const rl_engine *found = rl_engine_find("mnist_cnn", engine, params, &err);
  assert_ok(found == NULL ? -1 : 0, &err);
  assert_ok(found->open(device, params, &instance, &err), &err);
  return (rl_train_instance *)instance;
}

static inline void close_train(rl_train_instance *train) { train->base.ops->close(&train->base); }

static inline void run_sequence_list(rl_train_instance *train, const rl_sequence_list *sequence_list) {
  rl_error err = {0};
  rl_elapsed elapsed;
  assert_ok(train->base.device->ops->run_eager(train->base.device, sequence_list, NULL, &elapsed, &err), &err);
}

static inline void run_epoch(rl_train_instance *train) { run_sequence_list(train, &train->base.iteration); }

static inline rl_iteration_results read_train_results(rl_train_instance *train) {
  rl_error err = {0};
  rl_iteration_results results;
  assert_ok(train->base.ops->read_results(&train->base, &results, &err), &err);
  return results;
}

/* Returns ‖a - b‖ / ‖b‖, or ‖a - b‖ if b is 0. */
static inline double relative_float_distance(size_t count, const float *a, const float *b) {
  double squared_difference = 0, squared_norm = 0;
  for (size_t i = 0; i < count; i++) {
    squared_difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    squared_norm += (double)b[i] * b[i];
  }
  return squared_norm > 0 ? sqrt(squared_difference / squared_norm) : sqrt(squared_difference);
}

#endif
