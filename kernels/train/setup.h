/* What every engine does first: load the data set and derive an epoch's sizes from it. */
#ifndef RL_TRAIN_SETUP_H
#define RL_TRAIN_SETUP_H

#include "data/dataset.h"
#include "train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the data set that params ask for (folder: $ROOFLINED_MNIST_DIR) into *dataset, which the caller frees, and fills in
 * instance->params, images, steps, tail, test_images and, in base, dataset, dataset_sha256, samples, steps, parameters and
 * partial. max_images below 5000 limits the test images too: a smoke test should not spend its time on evaluation. */
int rl_train_setup(rl_train_instance *instance, const rl_train_params *params, rl_dataset *dataset, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
