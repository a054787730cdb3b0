/* Loads the data set and derives the sizes of an epoch; every engine does this first. */
#ifndef RL_TRAIN_SETUP_H
#define RL_TRAIN_SETUP_H

#include "data/dataset.h"
#include "train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the data set that params choose (folder: $ROOFLINED_MNIST_DIR) into *dataset, which the caller frees. Fills in
 * instance->params, images, steps, tail and test_images, and in instance->base: dataset, dataset_sha256, images, steps,
 * trained_parameters and partial_dataset. If params->max_images is below 5000, it limits the test images too, so that a smoke
 * test spends little time on evaluation. */
int rl_train_set_up(rl_train_instance *instance, const rl_train_params *params, rl_dataset *dataset, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
